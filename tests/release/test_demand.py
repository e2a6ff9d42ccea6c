"""Rows on demand: every row meets what was asked, and is drawn as the release draws rows of that kind."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.methods.rdt import RDT
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.progress import Progress
from hedgerow.release import demand
from hedgerow.release.parts import write_parts
from hedgerow.schema.conditions import parse_condition
from refusals import refused

SCHEMA = hr.Schema.parse(
    """
columns:
  id: {type: id, pattern: "P-######"}
  age: {type: integer, min: 0, max: 99, bins: [18, 30, 45, 65], missing: true}
  sex: {type: category, values: [F, M]}
  town: {type: category, values: [north, south, east]}
  paid: {type: number, min: 0, max: 1000, decimals: 2, bins: [100, 250, 500]}
  member: {type: boolean, missing: true}
  since: {type: date, min: 2020-01-01, max: 2023-12-31, step: month}
groups:
  - {columns: [sex, town], allowed: [[F, north], [F, south], [M, south], [M, east]]}
"""
)
METHODS = {
    "graphical": "mst",
    "histograms": "independent",
    "records": "privsyn",
    "segments": hr.methods.build("dpsyn", {"segments": "age"}),
    "trees": RDT(trees=2, height=2, sweeps=1),
}
CONDITIONS = [
    "age < 40 AND sex = 'F'",
    "paid > 333.33",
    "member OR age IS NULL",
    "since >= '2021-02-14' AND town <> 'south'",
    "age + 10 * 1 <= paid / 10",
]


def people(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.array([["F", "north"], ["F", "south"], ["M", "south"], ["M", "east"]])
    pair = groups[rng.choice(4, rows, p=[0.1, 0.4, 0.3, 0.2])]
    age = rng.integers(0, 95, rows)
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(rows) < 0.1),
            "sex": pair[:, 0],
            "town": pair[:, 1],
            "paid": np.round(rng.gamma(2.0, 80.0, rows) + age, 2).clip(0, 1000),
            "member": pa.array(rng.random(rows) < 0.3 + 0.4 * (age > 50), mask=rng.random(rows) < 0.2),
            "since": np.datetime64("2020-01-01") + rng.integers(0, 1400, rows),
        }
    )


@pytest.fixture(scope="module")
def releases():
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = hr.synthesize(people(), SCHEMA, hr.Budget(20.0), METHODS[kind], unsafe_noise_seed=4)
        return made[kind]

    return of


def met(where, table):
    return parse_condition(where, SCHEMA.columns).truth(table).true


def profile(table):
    """Counts over some small cells, by which two tables are compared."""
    age = np.asarray(table["age"].fill_null(200).to_numpy() // 20)
    paid = np.asarray(table["paid"].to_numpy() // 200)
    return age, paid, np.asarray(table["sex"].to_numpy() == "F"), np.asarray(table["town"].to_numpy() == "south")


@pytest.mark.parametrize("kind", METHODS)
def test_rows_are_those_of_the_release_that_meet_the_condition(releases, kind):
    """Against whole-row rejection from a plain draw: each share within seven standard deviations of two samples."""
    release, rows = releases(kind), 3000
    plain = release.sample(40_000, seed=9)
    for where in CONDITIONS:
        table = release.sample(rows, where=where)
        assert len(table) == rows
        assert met(where, table).all()
        reference = plain.filter(pa.array(met(where, plain)))
        share = len(reference) / len(plain)
        assert abs(release.share(where) - share) < 7 * np.sqrt(share / 2**14) + 0.002
        for ours, theirs in zip(profile(table), profile(reference), strict=True):
            for value in np.unique(theirs):
                p, q = (ours == value).mean(), (theirs == value).mean()
                spread = np.sqrt(q * (1 - q) * (1 / rows + 1 / len(reference)))
                assert abs(p - q) < 7 * spread + 0.006, (where, value)


def test_null_is_not_enough(releases):
    table = releases("graphical").sample(500, where="NOT member")
    assert table["member"].to_pylist() == [False] * 500
    assert releases("graphical").sample(200, where="member IS NULL")["member"].null_count == 200


def test_a_condition_is_drawn_alike_by_everybody(tmp_path):
    schema = hr.Schema.parse(
        'columns: {n: {type: id, pattern: "######"}, a: {type: code, size: 5}, b: {type: code, size: 9}}'
    )
    table = pa.table({"a": [0, 1, 4] * 20, "b": list(range(9)) * 6 + [0] * 6})
    release = hr.synthesize(table, schema, hr.Budget(5.0), "independent", unsafe_noise_seed=1)
    where, rows = "a < 3 AND b > 2", BLOCK_ROWS + 7
    release.save(tmp_path / "x.release")
    whole = release.sample(rows, seed=2, where=where)
    assert whole.equals(hr.Release.load(tmp_path / "x.release").sample(rows, seed=2, where=where))
    assert not whole.equals(release.sample(rows, seed=3, where=where))
    assert whole["n"].to_pylist()[:: rows - 1] == ["000001", f"{rows}"]
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        write_parts(tmp_path / "x.release", folder, rows, 2, workers, Progress(), blocks_per_part=1, where=where)
        parts = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
        assert parts.equals(whole)
    with refused("another-draw", "where"):
        write_parts(tmp_path / "x.release", folder, rows, 2, 1, Progress(), blocks_per_part=1)
    with refused("where-no-mass"):
        write_parts(tmp_path / "x.release", tmp_path / "f", rows, 2, 1, Progress(), where="a > 4")
    assert not (tmp_path / "f").exists()


def test_without_a_number_of_rows_as_many_come_as_the_model_expects(releases):
    release = releases("graphical")
    where = "town = 'east'"
    expected = release.share(where) * release.estimated_rows
    assert abs(len(release.sample(where=where)) - expected) <= 1
    assert release.share("age IS NULL OR age IS NOT NULL") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("age > 99", "where-no-mass"),
        ("sex = 'M' AND town = 'north'", "where-no-mass"),
        ("sex = 'X'", "where-no-mass"),
        ("agee < 3", "unknown-column"),
        ("age", "not-a-condition"),
        ("age <", "bad-condition"),
    ],
)
def test_what_cannot_be_met_is_said(releases, where, code):
    with refused(code):
        releases("graphical").sample(10, where=where)


def test_what_is_too_rare_to_be_found_is_said(releases, monkeypatch):
    monkeypatch.setattr(demand, "BLOCK_ROWS", 1 << 14)
    with refused("where-too-rare", "below"):
        releases("records").sample(10, where="paid = 512.34 AND age = 17 AND since = '2020-02-02'")


@pytest.mark.parametrize("kind", METHODS)
def test_given_rows_come_back_whole_and_in_order(releases, kind):
    release = releases(kind)
    given = pa.table({"age": [17, None, 44, 60] * 50, "town": ["north", "south", "", "east"] * 50})
    table = release.complete(given, seed=1)
    assert table.schema.equals(release.encoding.arrow_schema)
    assert table["id"].to_pylist() == [f"P-{number + 1:06}" for number in range(200)]
    for row, (age, town) in enumerate(zip(given["age"].to_pylist(), given["town"].to_pylist(), strict=True)):
        assert age is None or table["age"][row].as_py() == age
        assert not town or table["town"][row].as_py() == town
    pairs = set(zip(table["sex"].to_pylist(), table["town"].to_pylist(), strict=True))
    assert pairs <= {("F", "north"), ("F", "south"), ("M", "south"), ("M", "east")}
    assert table.equals(release.complete(given, seed=1))
    assert not table.equals(release.complete(given, seed=2))


def test_the_rest_of_a_given_row_follows_the_model(releases):
    """Given the town, the rest is what a plain draw has in that town."""
    release, rows = releases("graphical"), 8000
    plain = release.sample(60_000, seed=9)
    reference = plain.filter(pa.array(met("town = 'south' AND member", plain)))
    table = release.complete(pa.table({"town": ["south"] * rows, "member": ["yes"] * rows}))
    for ours, theirs in zip(profile(table), profile(reference), strict=True):
        for value in np.unique(theirs):
            p, q = (ours == value).mean(), (theirs == value).mean()
            assert abs(p - q) < 7 * np.sqrt(q * (1 - q) * (1 / rows + 1 / len(reference))) + 0.006


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"agee": [1]}, "unknown-column"),
        ({"age": [120]}, "given-undeclared"),
        ({"sex": ["M"], "town": ["north"]}, "given-undeclared"),
        ({}, "nothing-given"),
        ({"id": ["P-1"]}, "unknown-column"),
    ],
)
def test_what_cannot_be_given_is_said(releases, given, code):
    with refused(code):
        releases("graphical").complete(pa.table(given))
