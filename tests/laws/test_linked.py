"""Linked tables: one unit moves what it is said to move, on every level, and what comes back hangs together."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

import hedgerow
from hedgerow import Budget, Schema
from hedgerow.audit.model import tampered
from hedgerow.audit.mutants import bounded_after_joining
from hedgerow.audit.replay import Replayed, Violation, replay
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.methods import build
from hedgerow.models import load
from hedgerow.private import kinship
from hedgerow.private.engines import open_tables
from hedgerow.private.evaluate import evaluate as hedgerow_evaluate
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Randomizer
from hedgerow.progress import Limits, Progress
from hedgerow.release import linked
from hedgerow.release.bundle import Release, verify
from hedgerow.release.linked import LinkedRelease
from hedgerow.run import Run
from refusals import refused

SCHEMA = """
dataset: houses
tables:
  visits:
    parent: persons
    link: person
    order: day
    max_per_parent: 3
    columns:
      day: {type: date, min: 2020-01-01, max: 2020-03-31}
      kind: {type: category, values: [short, long], other: true, missing: true}
  houses:
    key: id
    columns:
      region: {type: code, size: 4}
  persons:
    key: pid
    parent: houses
    link: house
    max_per_parent: 2
    columns:
      sex: {type: category, values: [f, m]}
      age: {type: integer, min: 0, max: 9}
"""
DAYS = [f"2020-0{month}-{day:02}" for month in (1, 2, 3) for day in range(1, 29)]
Tables = dict[str, list[tuple[Any, ...]]]
NAMES = {"houses": ("id", "region"), "persons": ("pid", "house", "sex", "age"), "visits": ("person", "day", "kind")}


def made(units: int, seed: int) -> Tables:
    rng = np.random.default_rng(seed)
    tables: Tables = {name: [] for name in NAMES}
    for unit in range(units):
        tables["houses"].append((f"h{unit}", int(rng.integers(4))))
        for number in range(int(rng.integers(0, 5))):
            person = f"h{unit}p{number}"
            tables["persons"].append((person, f"h{unit}", "fm"[rng.integers(2)], int(rng.integers(10))))
            for _ in range(int(rng.integers(0, 6))):
                kind = ("short", "long", None, "odd")[rng.integers(4)]
                tables["visits"].append((person, DAYS[rng.integers(len(DAYS))], kind))
    return tables


def frames(tables: Tables) -> dict[str, pa.Table]:
    found = {}
    for name, columns in NAMES.items():
        values = list(zip(*tables[name], strict=True)) or [()] * len(columns)
        kinds = {"region": pa.int64(), "age": pa.int64()}
        found[name] = pa.table(
            {
                each: pa.array(list(held), kinds.get(each, pa.string()))
                for each, held in zip(columns, values, strict=True)
            }
        )
    return found


def person(number: int, visits: int, house: str = "new") -> Tables:
    name = f"{house}p{number}"
    return {"persons": [(name, house, "f", 3)], "visits": [(name, "2020-02-01", "long")] * visits}


UNITS: dict[str, Tables] = {
    "none": {"houses": [("new", 1)]},
    "with children": {"houses": [("new", 1)], **person(0, 0)},
    "with grandchildren": {"houses": [("new", 1)], **person(0, 2)},
    "more than the bound": {
        "houses": [("new", 1)],
        "persons": [(f"newp{number}", "new", "f", 3) for number in range(9)],
        "visits": [(f"newp{number}", "2020-02-01", "long") for number in range(9) for _ in range(40)],
    },
    "two root rows with one key": {"houses": [("new", 1), ("new", 2)], **person(0, 1)},
    "two persons with one key": {
        "houses": [("new", 1)],
        "persons": [("newp0", "new", "f", 3), ("newp0", "new", "m", 4)],
        "visits": [("newp0", "2020-02-01", "long")],
    },
    "orphans alone": person(0, 4),
    "a key that another unit has too": {"houses": [("new", 1)], "persons": [("h1p0", "new", "f", 3)]},
}


MOMENTS = SCHEMA.replace(
    "date, min: 2020-01-01, max: 2020-03-31", "datetime, min: 2020-01-01, max: 2020-07-31, step: minute"
)
HOURS = SCHEMA.replace(
    "date, min: 2020-01-01, max: 2020-03-31", "datetime, min: 2020-01-01, max: 2020-01-05, step: hour"
)
"""Visits in the order of moments: cut into days and times, or an hour a step."""


def at_moments(tables: Tables) -> Tables:
    """Every visit at a time of its day, which follows from what it is."""
    visits = [(who, f"{day} {8 + len(str(kind))}:{int(day[-2:]):02}:30", kind) for who, day, kind in tables["visits"]]
    return {**tables, "visits": visits}


def replayed(method: str, unit: Tables, budget: Budget, seed: int = 1, declared: str = SCHEMA) -> Replayed:
    schema, key = Schema.parse(declared), b"the same for both"
    without = made(12, seed)
    if "datetime" in declared:
        without, unit = at_moments(without), at_moments({"visits": [], **unit})
    extra = {name: [*rows, *unit.get(name, [])] for name, rows in without.items()}
    rng = np.random.default_rng(seed)
    shuffled = {name: [rows[index] for index in rng.permutation(len(rows))] for name, rows in extra.items()}

    def on(tables: Tables) -> Any:
        def run(mechanisms: Randomizer) -> Release:
            engine = open_tables(frames(tables), schema, bounding_key=key)
            return Run(schema, budget, build(method), 0, Progress(), quality=0.05).release(engine, mechanisms)

        return run

    return replay(on(shuffled), on(without))


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("method", ["hedge", "mst", "independent"])
def test_a_unit_moves_no_more_than_its_parts(method: str, kind: str) -> None:
    found = replayed(method, UNITS[kind], Budget(2.0, 1e-6))
    assert max(found.ratios) <= 1 + 1e-9
    if kind in ("none", "with grandchildren"):
        assert max(found.ratios) > 0.99, "the replay may be blind"


@pytest.mark.parametrize("declared", [MOMENTS, HOURS], ids=["moments", "hours"])
@pytest.mark.parametrize("kind", ["none", "with grandchildren", "more than the bound"])
def test_a_unit_moves_no_more_where_rows_are_ordered_by_moments(kind: str, declared: str) -> None:
    found = replayed("hedge", UNITS[kind], Budget(2.0, 1e-6), declared=declared)
    assert max(found.ratios) <= 1 + 1e-9
    if kind != "more than the bound":
        assert max(found.ratios) > 0.99, "the replay may be blind"


@pytest.mark.parametrize("declared", [MOMENTS, HOURS], ids=["moments", "hours"])
def test_moments_come_back_in_order_and_at_their_time_of_the_day(declared: str) -> None:
    tables = frames(at_moments(made(400, 2)))
    schema, meant = Schema.parse(declared), ["visits.day"]  # hours are declared of five days alone
    release = hedgerow.synthesize(tables, schema, Budget(1e4, 1e-6), unsafe_noise_seed=1, allow_misfits=meant)
    assert isinstance(release, LinkedRelease)
    visits = release.sample(400, seed=4)["visits"].to_pandas()
    assert len(visits) > 400
    assert all(moments.is_monotonic_increasing for _, moments in visits.groupby("person").day)
    if declared == MOMENTS:  # the hour follows from what kind of visit it was, the minute from the day
        real = tables["visits"].to_pandas()
        of_real = real.groupby(real.kind.fillna("none")).day.agg(lambda days: days.str[-8:-6].astype(int).mean())
        of_made = visits.groupby(visits.kind.fillna("none").replace("other", "odd")).day.agg(
            lambda days: days.dt.hour.mean()
        )
        assert set(visits.day.dt.hour) <= {11, 12, 13}
        for kind in ("short", "none"):
            assert of_made[kind] == pytest.approx(of_real[kind], abs=0.3)


def test_a_unit_moves_no_more_where_delta_is_0() -> None:
    assert max(replayed("mst", UNITS["more than the bound"], Budget(2.0, 0.0)).ratios) <= 1 + 1e-9


def test_rows_that_hang_on_nothing_change_nothing() -> None:
    looked, *asked = replayed("hedge", UNITS["orphans alone"], Budget(2.0, 1e-6)).ratios
    assert looked > 0, "orphans show in the look"
    assert max(asked) == 0
    unlinked: Tables = {"persons": [(None, None, "f", 3)] * 5, "visits": [(None, "2020-01-01", "long")] * 5}
    assert max(replayed("hedge", unlinked, Budget(2.0, 1e-6)).ratios) == 0


ODD = {
    "bytes that are no text": pa.array([b"\xff1", b"\xff2", None]),
    "bytes of a fixed length": pa.array([b"\xff1", b"\xff2", None], pa.binary(2)),
    "bytes in views": pa.array([b"\xff1", b"\xff2", None], pa.binary_view()),
    "text in views": pa.array(["f", "m", None], pa.string_view()),
    "codes of bytes": pa.array([b"\xff1", b"\xff2", None]).dictionary_encode(),
    "codes of large text": pa.array(["f", "m", None], pa.large_string()).dictionary_encode(),
    "runs": pc.run_end_encode(pa.array(["f", "m", None])),
    "numbers": pa.array([1.5, float("nan"), None]),
    "moments": pa.array([0, 2**62, None]).view(pa.timestamp("s", "Asia/Tokyo")),
    "nothing": pa.nulls(3),
}


THREE: Tables = {
    "houses": [("a", 1), ("b", 2), ("c", 3)],
    "persons": [("p", "a", "f", 1), ("q", "b", "m", 2), ("r", "c", "f", 3)],
    "visits": [("p", "2020-01-01", "long"), ("q", "2020-01-02", "long"), ("r", "2020-01-03", "long")],
}


def persons_of(tables: dict[str, pa.Table], given: pa.Array, *columns: str) -> int:
    """How many persons are counted where some columns hold what is given."""
    for each in columns:
        name, _, column = each.partition(".")
        tables[name] = tables[name].set_column(tables[name].column_names.index(column), column, given)
    schema = Schema.parse(SCHEMA)
    encoding = schema.with_stand_ins().with_histories().encoding()
    engine = open_tables(tables, schema, bounding_key=b"key")
    engine.prepare(encoding)
    (found,) = engine.count([MarginalQuery(encoding.domain, ("persons.age",))])
    return int(found.opened().sum()) // schema.max_rows_per_person  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ODD)
def test_whatever_a_column_holds_the_tables_are_read(kind: str) -> None:
    """Bytes that are no text ended the run with an error of ours, be they in one row alone; so did views of text."""
    for column in ("houses.region", "persons.sex", "visits.day", "visits.kind"):
        assert persons_of(frames(THREE), ODD[kind], column) == 3
    if kind not in ("numbers", "nothing", "moments"):  # of the others two are ids
        assert persons_of(frames(THREE), ODD[kind], "houses.id", "persons.house") == 2
        assert persons_of(frames(THREE), ODD[kind], "persons.pid", "visits.person") == 3


def test_files_that_hold_a_column_in_several_types_are_refused(tmp_path: Any) -> None:
    for name, table in frames(made(3, 0)).items():
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "1.parquet")
    large = frames(made(3, 0))["houses"].set_column(0, "id", pa.array(["x"] * 3, pa.large_string()))
    pq.write_table(large, tmp_path / "houses" / "2.parquet")
    schema = Schema.parse(SCHEMA)
    with refused("mixed-types", "houses", "id"):
        open_tables(tmp_path, schema).prepare(schema.encoding())


def every_count(tables: Any, schema: Schema) -> list[Any]:
    """What a run may be told about single columns of linked tables."""
    encoding = schema.with_stand_ins().with_histories().encoding()
    engine = open_tables(tables, schema, bounding_key=b"the same for both")
    engine.prepare(encoding)
    asked = [MarginalQuery(encoding.domain, (name,)) for name in encoding.domain.names]
    return [exact.opened().tolist() for exact in engine.count(asked)]  # type: ignore[union-attr]


def with_numbers_for_keys(tables: Tables) -> Tables:
    houses = {row[0]: number for number, row in enumerate(tables["houses"])}
    persons = {row[0]: 7 * number for number, row in enumerate(tables["persons"])}
    return {
        "houses": [(houses[row[0]], *row[1:]) for row in tables["houses"]],
        "persons": [(persons[row[0]], houses[row[1]], *row[2:]) for row in tables["persons"]],
        "visits": [(persons[row[0]], *row[1:]) for row in tables["visits"]],
    }


@pytest.mark.parametrize("keys", ["texts", "numbers"])
@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_tables_in_a_database_are_counted_as_files_are(engine: str, keys: str, request: Any, tmp_path: Any) -> None:
    """Keys and links are spelled alike, those of a table that has both among them."""
    server, schema = request.getfixturevalue(engine), Schema.parse(SCHEMA)
    rows = made(30, 5)
    tables = frames(rows)
    if keys == "numbers":
        ids = {"houses": ["id"], "persons": ["pid", "house"], "visits": ["person"]}
        for name, held in with_numbers_for_keys(rows).items():
            for each in ids[name]:
                place = tables[name].column_names.index(each)
                numbers = pa.array([row[NAMES[name].index(each)] for row in held], pa.int64())
                tables[name] = tables[name].set_column(place, each, numbers)
    if engine == "duckdb":
        with server.driver.connect(str(tmp_path / "all.db")) as connection:
            for name, table in tables.items():
                connection.register("given", table)
                connection.execute(f"create table {name} as select * from given")
        whole = f"duckdb://{tmp_path / 'all.db'}"
        one_by_one = {name: f"{whole}/{name}" for name in tables}
    else:
        one_by_one = {name: server.install(table) for name, table in tables.items()}
        whole = server.url("").rstrip("/")
        with server.connect() as connection:
            for name, url in one_by_one.items():
                connection.execute(f"drop table if exists {name}")
                connection.execute(f"alter table {url.rpartition('/')[2]} rename to {name}")
        one_by_one = {name: f"{whole}/{name}" for name in tables}
    # whatever types its columns have, a hash is that of what they hold as text: days are text here and there
    assert every_count(whole, schema) == every_count(tables, schema)
    assert every_count(one_by_one, schema) == every_count(tables, schema)


def test_ids_of_linked_tables_whose_collation_holds_texts_equal_are_refused(duckdb: Any, tmp_path: Any) -> None:
    """Its keeper would count one unit, and we two; the second id of a table is looked at as the first one is."""
    for table, column in (("houses", "id"), ("persons", "pid"), ("persons", "house"), ("visits", "person")):
        file = tmp_path / f"{table}-{column}.db"
        with duckdb.driver.connect(str(file)) as connection:
            for name, held in frames(made(5, 1)).items():
                connection.register("given", held)
                connection.execute(f"create table {name} as select * from given")
            connection.execute(f"alter table {table} alter {column} type varchar collate nocase")
        with refused("person-collation", column):
            every_count(f"duckdb://{file}", Schema.parse(SCHEMA))


def test_a_mutant_that_bounds_after_joining_is_caught() -> None:
    with bounded_after_joining(build("mst")), pytest.raises(Violation, match="neighbours differ by"):
        replayed("mst", UNITS["more than the bound"], Budget(2.0, 1e-6))


def test_what_comes_back_hangs_together(tmp_path: Any) -> None:
    release = hedgerow.synthesize(frames(made(300, 2)), Schema.parse(SCHEMA), Budget(5.0, 1e-6), unsafe_noise_seed=1)
    assert isinstance(release, LinkedRelease)
    drawn = {name: table.to_pandas() for name, table in release.sample(200, seed=4).items()}
    assert list(drawn) == ["houses", "persons", "visits"]
    assert len(drawn["houses"]) == 200
    assert drawn["houses"].id.is_unique
    assert drawn["persons"].pid.is_unique
    assert drawn["persons"].house.isin(drawn["houses"].id).all()
    assert drawn["visits"].person.isin(drawn["persons"].pid).all()
    assert drawn["persons"].groupby("house").size().max() <= 2
    visits = drawn["visits"].groupby("person")
    assert visits.size().max() <= 3
    assert all(days.is_monotonic_increasing for _, days in visits.day)
    release.save(tmp_path / "r.release")
    loaded, _ = verify(tmp_path / "r.release")
    again = loaded.sample(200, seed=4)
    assert all(again[name].equals(release.sample(200, seed=4)[name]) for name in again)


def test_the_distances_of_linked_tables_are_measured() -> None:
    """Against what the drawn tables truly are; every kind of distance is asked, and no other column."""
    schema, tables, budget = Schema.parse(SCHEMA), frames(families(80)), Budget(1e5, 1e-6)
    release = hedgerow.synthesize(tables, schema, budget, "independent", seed=3)
    assert release.certificate.charges[-1].purpose == "quality"
    assert release.certificate.drawn == {"rows": 80, "seed": 3}
    quality = release.quality
    assert quality is not None
    asked = [frozenset(each.attributes) for each in (*quality.columns, *quality.pairs)]
    assert {"houses.rows(persons)"} in asked
    assert {"visits.kind", "visits.before(kind)"} in asked
    assert {"persons.sex", "visits.kind"} in asked
    assert not any("left()" in name or "start(" in name for names in asked for name in names)
    regions = {each.attributes: each.value for each in quality.columns}[("houses.region",)]
    drawn = release.sample(80, seed=3)["houses"].column("region").to_numpy()
    truth = np.abs(np.bincount(drawn, minlength=4) - 20).sum() / 160
    assert regions == pytest.approx(truth, abs=0.01)
    assert hedgerow.synthesize(tables, schema, budget, "independent", quality=0.0).quality is None


def test_which_rows_stay_depends_on_their_own_unit_alone() -> None:
    schema = Schema.parse(SCHEMA)
    assert schema.linked is not None
    tables = frames(made(30, 3))
    orders = {"visits": np.arange(tables["visits"].num_rows, dtype=np.float64)}
    whole = kinship.kept_rows(schema.linked, tables, orders, b"key")
    fewer = {**tables, "houses": tables["houses"].slice(0, 15)}
    part = kinship.kept_rows(schema.linked, fewer, orders, b"key")
    for name in ("persons", "visits"):
        few = set(part[name].rows.tolist())
        assert few <= set(whole[name].rows.tolist())
    for name, most in (("persons", 2), ("visits", 3)):
        assert np.bincount(whole[name].parent).max() <= most
        assert np.bincount(whole[name].unit, weights=whole[name].weight).max() <= schema.linked.parts
    # a stretch of an order is contiguous
    for parent in np.unique(whole["visits"].parent):
        rows = whole["visits"].rows[whole["visits"].parent == parent]
        link = tables["visits"].column("person")[int(rows[0])].as_py()
        every = [number for number, each in enumerate(tables["visits"].column("person").to_pylist()) if each == link]
        begin = every.index(int(rows[0]))
        assert rows.tolist() == every[begin : begin + len(rows)]


BAD = {
    "cyclic-links": SCHEMA.replace("    parent: houses\n", "    parent: visits\n").replace(
        "    link: person\n", "    key: vid\n    link: person\n"
    ),
    "second-link": SCHEMA.replace("link: house", "link: [house, other]"),
    "unknown-parent": SCHEMA.replace("parent: persons", "parent: person"),
    "no-root": SCHEMA.replace(
        "    key: id\n", "    key: id\n    parent: persons\n    link: x\n    max_per_parent: 1\n"
    ),
    "missing-bound": SCHEMA.replace("    max_per_parent: 2\n", ""),
    "missing-link": SCHEMA.replace("    link: house\n", ""),
    "missing-key": SCHEMA.replace("    key: pid\n", ""),
    "too-many-children": SCHEMA.replace("max_per_parent: 2", "max_per_parent: 2000000"),
    "root-with-link": SCHEMA.replace("    key: id\n", "    key: id\n    order: region\n"),
    "bad-order": SCHEMA.replace("order: day", "order: kind"),
    "id-is-a-column": SCHEMA.replace("region:", "id:"),
    "open-category-with-tables": SCHEMA.replace("values: [f, m]", "values: private"),
    "not-with-tables": SCHEMA + "totals: []\n",
    "table-without-columns": SCHEMA + "  others: {key: x}\n",
    "bad-table-name": SCHEMA
    + "  a.b: {parent: houses, link: x, max_per_parent: 2, columns: {x: {type: code, size: 2}}}\n",
    "unknown-key": SCHEMA.replace("    key: pid\n", "    key: pid\n    keys: pid\n"),
    "bad-tables": "tables: [a]\n",
}


@pytest.mark.parametrize("code", BAD)
def test_what_cannot_be_meant_is_refused(code: str) -> None:
    with pytest.raises(HedgerowError) as caught:
        Schema.parse(BAD[code])
    assert caught.value.code == code


def families(count: int) -> Tables:
    """Houses with one person each, who has one visit."""
    every = range(count)
    return {
        "houses": [(f"h{each}", each % 4) for each in every],
        "persons": [(f"p{each}", f"h{each}", "f", 3) for each in every],
        "visits": [(f"p{each}", DAYS[each], "long") for each in every],
    }


AWKWARD: dict[str, tuple[Tables, dict[str, float]]] = {
    "orphans": (
        {
            "persons": [(f"q{each // 2}", f"x{each // 4}", "f", 3) for each in range(20)],
            "visits": [("q1", DAYS[0], "odd")],
        },
        {"persons.orphans()": 0.1},
    ),
    "orphans further down": ({"visits": [(f"nobody{each}", DAYS[0], "long") for each in range(30)]}, {}),
    "keys of the root twice": (
        {"houses": [(f"h{each % 5}", 1) for each in range(15)]},
        {"houses.duplicates()": 0.1},
    ),
    "keys further down twice": (
        {"persons": [("p1", "h1", "m", 4), ("p1", "h1", "m", 5), ("p2", "h2", "m", 5)]},
        {"persons.duplicates()": 0.04},
    ),
    "a key in two units": ({"persons": [("p1", "h2", "m", 4)]}, {}),
    "null links": (
        {
            "houses": [(None, 2)] * 20,
            "persons": [(f"n{each}", None, "m", 4) for each in range(20)],
            "visits": [(None, DAYS[0], "long")] * 20,
        },
        {},
    ),
    "beyond the bound": (
        {"persons": [(f"q{each}", f"h{each % 10}", "f", 3) for each in range(30)]},
        {"persons.beyond()": 0.2},
    ),
    "a parent with very many children": ({"visits": [("p1", DAYS[0], "long")] * 1_000_000}, {"visits.beyond()": 0.02}),
    "an empty child table": ({}, {}),
}


@pytest.mark.parametrize("kind", AWKWARD)
def test_links_that_do_not_fit_are_left_out_and_told_with_noise(kind: str, tmp_path: Any) -> None:
    """No error, the budget that was asked for, and a look that says how many units it concerns."""
    added, expected = AWKWARD[kind]
    tables = {name: [*rows, *added.get(name, [])] for name, rows in families(50).items()}
    if kind == "an empty child table":
        tables["visits"] = []
    schema, budget, books = Schema.parse(SCHEMA), Budget(1e5, 1e-6), tmp_path / "books"
    assert schema.linked is not None
    ledger = Ledger.create(books, "houses", Budget(2e5, 1e-6))
    release = hedgerow.synthesize(frames(tables), schema, budget, "independent", ledger=books)
    assert release.certificate.unit == "unit"
    assert ledger.spent() == release.certificate.whole
    assert release.misfits is not None
    assert release.misfits.noise < 0.002
    told = {each.column: each.share for each in release.misfits.columns if each.column in schema.linked.misfits}
    assert told == pytest.approx(dict.fromkeys(schema.linked.misfits, 0.0) | expected, abs=0.015)
    drawn = {name: table.to_pandas() for name, table in release.sample(30).items()}
    assert drawn["persons"].house.isin(drawn["houses"].id).all()
    assert drawn["visits"].person.isin(drawn["persons"].pid).all()


def test_an_empty_table_is_read_whatever_its_parents_keys_are() -> None:
    tables = frames({**families(5), "persons": [], "visits": []})
    numbered = pa.table({"id": pa.array(range(5), pa.int64()), "region": tables["houses"].column("region")})
    release = hedgerow.synthesize({**tables, "houses": numbered}, Schema.parse(SCHEMA), Budget(1.0, 1e-6), "mst")
    assert release.guarantee is not None


def test_many_orphans_stop_the_run_unless_they_are_meant(tmp_path: Any) -> None:
    tables = families(50)
    tables["houses"] = tables["houses"][:25]
    ledger = Ledger.create(tmp_path / "books", "houses", Budget(100.0, 1e-6))

    def run(**named: Any) -> Any:
        return hedgerow.synthesize(
            frames(tables), Schema.parse(SCHEMA), Budget(50.0, 1e-6), "independent", ledger=tmp_path / "books", **named
        )

    with pytest.raises(HedgerowError, match="units that persons names and houses lacks") as caught:
        run()
    assert caught.value.code == "misfits"
    looked = ledger.spent()
    assert len(ledger.entries()) == 2, "the look is paid for, and nothing else"
    release = run(allow_misfits=["persons.orphans()"])
    assert ledger.spent() == looked + release.certificate.whole


def test_a_table_may_be_declared_before_its_parent(tmp_path: Any) -> None:
    """In the schema above it is; which table is read first decides nothing."""
    data = Schema.parse(SCHEMA).to_dict()
    assert next(iter(data["tables"])) == "visits"
    turned = Schema.from_dict({**data, "tables": dict(reversed(data["tables"].items()))})
    key, tables = b"the same for both", frames(made(20, 1))
    counts = []
    for schema in (Schema.from_dict(data), turned):
        engine = open_tables(tables, schema, bounding_key=key)
        encoding = schema.with_histories().encoding()
        engine.prepare(encoding)
        asked = [MarginalQuery(encoding.domain, (name,)) for name in sorted(encoding.domain.names)]
        counts.append([exact.opened().tolist() for exact in engine.count(asked)])  # type: ignore[union-attr]
    assert counts[0] == counts[1]
    spent = []
    for number, schema in enumerate((Schema.from_dict(data), turned)):
        ledger = Ledger.create(tmp_path / f"books{number}", "houses", Budget(2.0, 1e-6))
        release = hedgerow.synthesize(tables, schema, Budget(1.0, 1e-6), "mst", ledger=tmp_path / f"books{number}")
        assert ledger.spent() == release.certificate.whole
        spent.append(ledger.spent())
    assert spent[0] == spent[1]


@pytest.mark.parametrize("code", ["cyclic-links", "second-link"])
def test_what_is_refused_costs_nothing(code: str, tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "books", "houses", Budget(100.0, 1e-6))
    (tmp_path / "s.yaml").write_text(BAD[code])
    with pytest.raises(HedgerowError) as caught:
        hedgerow.synthesize(frames(made(5, 1)), tmp_path / "s.yaml", Budget(1.0, 1e-6), ledger=tmp_path / "books")
    assert caught.value.code == code
    assert len(ledger.entries()) == 1, "nothing but how it was opened"


def test_methods_without_links_say_so_before_spending(tmp_path: Any) -> None:
    with pytest.raises(HedgerowError) as caught:
        hedgerow.synthesize(frames(made(5, 1)), Schema.parse(SCHEMA), Budget(1.0, 1e-6), "aim")
    assert caught.value.code == "method-without-links"
    assert "nothing was spent" in str(caught.value)


def test_schemas_read_back() -> None:
    schema = Schema.parse(SCHEMA)
    assert Schema.from_dict(schema.to_dict()).to_dict() == schema.to_dict()
    assert Schema.parse(schema.to_yaml()).to_dict() == schema.to_dict()
    whole = schema.with_histories()
    assert Schema.from_dict(whole.to_dict()).to_dict() == whole.to_dict()
    assert "persons.before(age)" in whole.columns
    assert "houses.rows(persons)" in whole.columns


def test_a_model_that_was_tampered_with_is_refused_or_draws_its_tables() -> None:
    release = hedgerow.synthesize(
        frames(made(60, 3)), Schema.parse(SCHEMA), Budget(4.0), "hedge", unsafe_noise_seed=1, quality=0.0
    )
    outcomes = []
    altered = list(tampered(release.model.state()))
    for state in altered[:: len(altered) // 150]:
        try:
            model = load(release.model.domain, state)
            other = LinkedRelease(release.schema, model, release.certificate, release.answers)
            other.refuse_unfit()
        except HedgerowError:
            outcomes.append("refused")
            continue
        drawn = other.sample(20)
        assert {name: table.schema for name, table in drawn.items()} == {
            name: table.schema for name, table in release.sample(1).items()
        }
        outcomes.append("drawn")
    assert {"refused", "drawn"} <= set(outcomes)


SHOPS = """
tables:
  shops: {key: id, columns: {region: {type: code, size: 4}}}
  sales: {key: sale, parent: shops, link: shop, max_per_parent: 1000000, columns: {kind: {type: code, size: 3}}}
  goods: {parent: sales, link: sale, max_per_parent: 1, columns: {size: {type: code, size: 2}}}
"""


def test_units_with_very_many_rows_are_drawn_in_parts(monkeypatch: Any, tmp_path: Any) -> None:
    """A unit may have a million rows: no more are held than fit, or one unit, and keys fit in all parts together."""
    sales = np.arange(6 * 300)
    tables = {
        "shops": pa.table({"id": range(6), "region": [0, 1, 2, 3, 0, 1]}),
        "sales": pa.table({"sale": sales, "shop": sales // 300, "kind": sales % 3}),
        "goods": pa.table({"sale": sales, "size": sales % 2}),
    }
    release = hedgerow.synthesize(
        tables, Schema.parse(SHOPS), Budget(1e5, 1e-6), "independent", unsafe_noise_seed=1, quality=0.0
    )
    assert isinstance(release, LinkedRelease)
    monkeypatch.setattr(linked, "BLOCK_UNITS", 6)
    monkeypatch.setattr(linked, "VALUES_AT_A_TIME", 5000)
    parts = list(release.families(12, seed=2))
    held = [sum(table.num_rows * table.num_columns for table in part.values()) for part in parts]
    assert len(parts) > 4
    assert all(values <= 5000 or part["shops"].num_rows == 1 for values, part in zip(held, parts, strict=True))
    drawn = {name: table.to_pandas() for name, table in release.sample(12, seed=2).items()}
    assert drawn["shops"].id.tolist() == list(range(1, 13))
    assert drawn["sales"].sale.is_unique
    assert len(drawn["sales"]) > 1000
    assert drawn["sales"].shop.isin(drawn["shops"].id).all()
    assert drawn["goods"].sale.isin(drawn["sales"].sale).all()
    release.save(tmp_path / "r.release")
    with pytest.raises(HedgerowError) as told:
        Release.load(tmp_path / "r.release", memory=50 << 20)
    assert told.value.code == "model-memory"


def test_a_model_of_linked_tables_draws_no_single_table() -> None:
    release = hedgerow.synthesize(frames(made(20, 3)), Schema.parse(SCHEMA), Budget(4.0), "mst", unsafe_noise_seed=1)
    with pytest.raises(HedgerowError) as told:
        Release(release.schema, release.model, release.certificate, release.answers).refuse_unfit()
    assert told.value.code == "model-without-tables"
    held = release.model.state().held_by("adjusted", {"marginals": []}, {})
    with pytest.raises(HedgerowError) as told:
        load(release.model.domain, held)
    assert told.value.code == "model-held-links"


@pytest.mark.parametrize("endings", ["", ", endings: {60m: 5, 1s: 0, '': 1}"])
def test_a_start_is_a_day_whatever_was_bought_of_the_times(endings: str) -> None:
    cut = "leaves: [[[2020-01-01, 2020-07-31, 1]]], times: [[['00:00', '23:59:59', 1]]]"
    moments = f"datetime, min: 2020-01-01, max: 2020-07-31, {cut}{endings}"
    schema = Schema.parse(SCHEMA.replace("date, min: 2020-01-01, max: 2020-03-31", moments)).with_histories()
    assert schema.columns["persons.start(visits)"].type == "date"


def test_where_time_is_up_every_table_is_made_all_the_same() -> None:
    """A limit bounds the work on every table; what was paid for is used, in fewer steps, and the release says so."""
    tables, schema, hurried = frames(made(300, 2)), Schema.parse(SCHEMA), Limits(seconds=1e-9)
    slow = hedgerow.synthesize(tables, schema, Budget(5.0, 1e-6), unsafe_noise_seed=1, quality=0)
    fast = hedgerow.synthesize(tables, schema, Budget(5.0, 1e-6), unsafe_noise_seed=1, quality=0, limits=hurried)
    assert not any("--max-time" in note for note in slow.certificate.notes)
    assert any("--max-time" in note for note in fast.certificate.notes)
    assert isinstance(fast, LinkedRelease)
    persons = fast.sample(300, seed=1)["persons"].to_pandas()
    assert set(persons.sex.dropna()) == {"f", "m"}


RULES = [
    "visits.kind = 'long' OR persons.age < 5",
    "day >= DATE '2020-01-15' OR region < 3",
    {"when": "houses.region = 0", "then": "sex = 'f'"},
    "region <> 2",
]


def ruled(rules: list[Any] = RULES) -> Schema:
    return Schema.from_dict({**Schema.parse(SCHEMA).to_dict(), "rules": rules})


def breaches(schema: Schema, tables: dict[str, pa.Table]) -> list[int]:
    """How many rows break each rule, by a join of our own."""
    houses, persons, visits = (tables[name].to_pandas() for name in ("houses", "persons", "visits"))
    people = persons.merge(houses, left_on="house", right_on="id", suffixes=("", "_house"))
    every = visits.merge(people, left_on="person", right_on="pid")
    late = every.day.astype(str) >= "2020-01-15"
    return [
        int(((every.kind != "long") & every.kind.notna() & (every.age >= 5)).sum()),
        int((~late & (every.region >= 3)).sum()),
        int(((people.region == 0) & (people.sex != "f")).sum()),
        int((houses.region == 2).sum()),
    ]


@pytest.mark.parametrize("budget", [5.0, 1e4])
def test_rules_hold_in_every_row_of_every_table(budget: float, tmp_path: Any) -> None:
    """Across parent and child, on three levels, in tables of which many real rows break them too."""
    schema, meant = ruled(), ["visits.rule 1", "visits.rule 2", "persons.rule 3", "houses.rule 4"]
    tables = frames(made(300, 2))
    assert min(breaches(schema, tables)) > 0
    release = hedgerow.synthesize(
        tables, schema, Budget(budget, 1e-6), unsafe_noise_seed=1, allow_misfits=[*meant, "visits.kind"]
    )
    assert isinstance(release, LinkedRelease)
    assert release.misfits is not None
    assert set(meant) <= {each.column for each in release.misfits.columns}
    drawn = release.sample(400, seed=3)
    assert breaches(schema, drawn) == [0, 0, 0, 0]
    assert len(drawn["houses"]) == 400
    assert len(drawn["visits"]) > 100
    assert drawn["visits"].to_pandas().groupby("person").day.is_monotonic_increasing.all()
    assert 0 < release.rules_kept.right < 1
    release.save(tmp_path / "x.release")
    again, _ = verify(tmp_path / "x.release")
    assert again.sample(400, seed=3) == drawn
    found = hedgerow_evaluate(tables, drawn, schema)["misfits"]
    assert found["real"]["persons"]["breaking rule 3"] == breaches(schema, tables)[2]
    assert found["synthetic"]["persons"]["breaking rule 3"] == 0


def test_rows_for_which_nothing_is_legal_are_left_out() -> None:
    """A house of region 0 can have no visit: they are gone, whatever it counted; and the root becomes what is legal."""
    schema = ruled(["region <> 0 OR kind IS NULL", "houses.region = 1 OR houses.region = 0"])
    tables = frames(made(100, 2))
    names = ["visits.rule 1", "houses.rule 2", "visits.kind"]
    release = hedgerow.synthesize(tables, schema, Budget(1e4, 1e-6), unsafe_noise_seed=1, allow_misfits=names)
    assert isinstance(release, LinkedRelease)
    drawn = {name: table.to_pandas() for name, table in release.sample(200, seed=3).items()}
    assert set(drawn["houses"].region) == {0, 1}
    never = frames({**made(100, 2), "houses": [(f"h{unit}", 3) for unit in range(100)]})
    release = hedgerow.synthesize(never, schema, Budget(1e4, 1e-6), unsafe_noise_seed=1, allow_misfits=names)
    assert isinstance(release, LinkedRelease)
    assert set(release.sample(50)["houses"].column("region").to_pylist()) <= {0, 1}


@pytest.mark.parametrize("kind", ["with grandchildren", "more than the bound", "two root rows with one key"])
def test_a_unit_that_breaks_rules_moves_no_more(kind: str) -> None:
    ruled_text = f"{SCHEMA}max_misfits: 1.0\nrules: [{', '.join(json.dumps(each) for each in RULES)}]\n"
    found = replayed("mst", UNITS[kind], Budget(2.0, 1e-6), declared=ruled_text)
    assert max(found.ratios) <= 1 + 1e-9


def test_rules_of_tables_that_do_not_hang_on_each_other_are_refused() -> None:
    side = {"parent": "houses", "link": "house", "max_per_parent": 2, "columns": {"kind": {"type": "code", "size": 2}}}
    declared = yaml.safe_load(SCHEMA)
    declared["tables"]["cars"] = side
    for rule, code in (
        ("cars.kind = 1 OR persons.sex = 'f'", "rule-across-tables"),
        ("kind = 1", "unknown-column"),
        ("persons.left() = 1", "unknown-operator"),
        ("boats.kind = 1", "unknown-column"),
    ):
        with refused(code):
            Schema.from_dict({**declared, "rules": [rule]})


def test_tables_that_do_not_fit_into_memory_are_counted_the_same() -> None:
    """As they were read they lie in files then."""
    tables, schema = frames(made(60, 5)), Schema.parse(SCHEMA)
    encoding = schema.with_stand_ins().with_histories().encoding()
    engine = open_tables(tables, schema, bounding_key=b"the same for both", memory=16)
    engine.prepare(encoding)
    asked = [MarginalQuery(encoding.domain, (name,)) for name in encoding.domain.names]
    assert [exact.opened().tolist() for exact in engine.count(asked)] == every_count(tables, schema)  # type: ignore[union-attr]
