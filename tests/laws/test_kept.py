"""One table whose persons are kept: a person moves what one is said to move, and comes back as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hedgerow
from hedgerow import Budget, Schema
from hedgerow.audit.replay import replay
from hedgerow.methods import build
from hedgerow.private.engines import open_tables
from hedgerow.private.evaluate import evaluate
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Randomizer
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, verify
from hedgerow.run import Run
from refusals import refused

SCHEMA = """
dataset: checks
person: id
max_rows_per_person: 3
keep: person
person_columns: [sex, born]
order: day
ignore: [note]
columns:
  mark: {type: integer, min: 0, max: 9, missing: true}
  sex: {type: category, values: [f, m], other: true}
  day: {type: date, min: 2020-01-01, max: 2020-03-31}
  born: {type: integer, min: 1950, max: 1999}
  key: {type: id}
"""
WITHOUT_FIXED = SCHEMA.replace("person_columns: [sex, born]\n", "")
UNORDERED = SCHEMA.replace("order: day\n", "")
NAMES = ["id", "mark", "sex", "note", "day", "born", "key"]
Rows = list[tuple[Any, ...]]


def rows_of(person: Any, count: int, sex: str = "f", born: int = 1960, mark: int = 1) -> Rows:
    return [(person, (mark + each) % 10, sex, "x", f"2020-02-{each % 28 + 1:02}", born, each) for each in range(count)]


def made(persons: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    found: Rows = []
    for number in range(persons):
        sex, born = "fm"[rng.integers(2)], int(rng.integers(1950, 2000))
        found += rows_of(f"p{number}", int(rng.integers(1, 6)), sex, born, (born - 1950) // 6)
    return [found[place] for place in rng.permutation(len(found))]


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=NAMES)


PERSONS: dict[str, Rows] = {
    "one row": rows_of("new", 1),
    "as many as the bound": rows_of("new", 3),
    "more than the bound": rows_of("new", 40),
    "equal rows": rows_of("new", 1) * 4,
    "columns of the person that differ": [*rows_of("new", 2), *rows_of("new", 2, "m", 1980), *rows_of("new", 1, "?")],
    "nobody": rows_of(None, 5),
}


def replayed(method: str, person: Rows, declared: str) -> list[float]:
    schema, without = Schema.parse(declared), made(20, 3)
    rng = np.random.default_rng(1)
    extra = [*without, *person]
    extra = [extra[place] for place in rng.permutation(len(extra))]

    def on(rows: Rows) -> Any:
        def run(mechanisms: Randomizer) -> Release:
            engine = open_tables(frame(rows), schema, bounding_key=b"the same for both")
            return Run(schema, Budget(2.0, 1e-6), build(method), 0, Progress(), quality=0.05).release(
                engine, mechanisms
            )

        return run

    return list(replay(on(extra), on(without)).ratios)


@pytest.mark.parametrize("declared", [SCHEMA, WITHOUT_FIXED, UNORDERED], ids=["all", "nothing fixed", "no order"])
@pytest.mark.parametrize("kind", PERSONS)
def test_a_person_moves_no_more_than_one(kind: str, declared: str) -> None:
    ratios = replayed("mst", PERSONS[kind], declared)
    if kind == "nobody":
        assert max(ratios) == 0
    else:
        assert 0.99 < max(ratios) <= 1 + 1e-9


@pytest.mark.parametrize("method", ["hedge", "independent"])
def test_methods_that_link_keep_persons(method: str) -> None:
    assert max(replayed(method, PERSONS["columns of the person that differ"], SCHEMA)) <= 1 + 1e-9


@pytest.mark.parametrize("declared", [SCHEMA, WITHOUT_FIXED, UNORDERED], ids=["all", "nothing fixed", "no order"])
def test_persons_come_back(declared: str, tmp_path: Any) -> None:
    """As many rows each as are allowed, one sex and one year of birth, in order, and the columns where they were."""
    real = frame(made(600, 5))
    release = hedgerow.synthesize(real, Schema.parse(declared), Budget(1e3, 1e-6), unsafe_noise_seed=2)
    drawn = release.to_pandas()
    assert list(drawn) == ["id", "mark", "sex", "day", "born", "key"]
    persons = drawn.groupby("id")
    assert persons.size().between(1, 3).all()
    assert drawn.id.nunique() == pytest.approx(600, abs=30)
    bounded = real.groupby("id").size().clip(upper=3).mean()
    assert persons.size().mean() == pytest.approx(bounded, abs=0.15)
    assert drawn.key.is_unique
    if declared is not WITHOUT_FIXED:
        assert (persons.sex.nunique() == 1).all()
        assert (persons.born.nunique() == 1).all()
        assert drawn.born.corr(drawn.mark.astype(float)) > 0.5
    if declared is not UNORDERED:
        assert all(days.is_monotonic_increasing for _, days in persons.day)
    path = tmp_path / "x.release"
    release.save(path)
    again, _ = verify(path)
    pd.testing.assert_frame_equal(again.to_pandas(), drawn)
    assert pa.concat_tables(again.batches(50, 1)).equals(again.sample(50, 1))
    (piece,) = again.pieces(50, 1, 0)
    assert piece[""].equals(again.sample(50, 1))
    assert again.sample(0).schema.equals(again.sample(50).schema)
    assert Schema.from_dict(again.schema.to_dict()) == again.schema


def test_of_blocks_every_person_has_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from hedgerow.release import linked

    release = hedgerow.synthesize(frame(made(200, 5)), Schema.parse(SCHEMA), Budget(1e3, 1e-6), unsafe_noise_seed=2)
    monkeypatch.setattr(linked, "BLOCK_UNITS", 64)
    monkeypatch.setattr(linked, "VALUES_AT_A_TIME", 100)
    drawn = release.sample(200).to_pandas()
    assert drawn.id.nunique() == 200
    assert (drawn.groupby("id").born.nunique() == 1).all()


def test_persons_whose_columns_differ_are_told_of() -> None:
    """A year of birth that differs from row to row is a mistake, which stops the run; the bound never does."""
    rows = frame([row for number in range(400) for row in (*rows_of(number, 2), *rows_of(number, 2, born=1990))])
    schema = Schema.parse(SCHEMA)
    with refused("misfits", "person.duplicates()"):
        hedgerow.synthesize(rows, schema, Budget(5, 1e-6), unsafe_noise_seed=1)
    meant = ["person.duplicates()"]
    release = hedgerow.synthesize(rows, schema, Budget(5, 1e-6), unsafe_noise_seed=1, allow_misfits=meant)
    assert release.misfits is not None
    assert {each.column for each in release.misfits.seen} == {"person.duplicates()", "row.beyond()"}
    assert (release.to_pandas().groupby("id").born.nunique() == 1).all()


def test_questions_are_about_rows_or_persons() -> None:
    rows = frame(made(500, 5))
    release = hedgerow.synthesize(rows, Schema.parse(SCHEMA), Budget(1e3, 1e-6), unsafe_noise_seed=2)

    def asked(question: str) -> float:
        (answer,) = release.ask(question)
        return float(answer.rows[0].estimate)

    bounded = rows.groupby("id").head(3)
    assert asked("SELECT COUNT(*) FROM checks") == pytest.approx(len(bounded), rel=0.05)
    assert asked("SELECT COUNT(*) FROM person") == pytest.approx(rows.id.nunique(), rel=0.05)
    women = rows[rows.sex == "f"]
    assert asked("SELECT COUNT(*) FROM person WHERE sex = 'f'") == pytest.approx(women.id.nunique(), rel=0.1)
    assert asked("SELECT AVG(c.mark) FROM checks c WHERE c.sex = 'f'") == pytest.approx(
        bounded[bounded.sex == "f"].mark.mean(), abs=0.5
    )
    with refused("unknown-question", "one table"):
        asked("SELECT COUNT(*) FROM checks JOIN person ON checks.id = person.id")


def test_real_and_made_tables_are_compared_person_by_person() -> None:
    rows = frame(made(300, 5)).drop(columns="note")
    schema = Schema.parse(SCHEMA.replace("ignore: [note]\n", ""))
    found = evaluate(rows, rows, schema)
    assert found["rows"]["real"] == {"person": 300, "row": len(rows)}
    assert found["tables"]["row"]["parent_pairs"] == 0
    assert found["tables"]["row"]["children"] == 0
    apart = rows.assign(id=range(len(rows)))
    assert evaluate(rows, apart, schema)["tables"]["row"]["children"] > 0.5


REFUSED = {
    "keep-without-person": "keep: person\ncolumns: {a: {type: code, size: 2}}",
    "bad-keep": "person: id\nkeep: rows\ncolumns: {a: {type: code, size: 2}}",
    "all-person-columns": "person: id\nkeep: person\nperson_columns: [a]\ncolumns: {a: {type: code, size: 2}}",
    "unknown-column": "person: id\nkeep: person\nperson_columns: [b]\ncolumns: {a: {type: code, size: 2}}",
    "bad-person-columns": "person: id\nkeep: person\nperson_columns: a\ncolumns: {a: {type: code, size: 2}}",
    "person-is-a-column": "person: a\nkeep: person\ncolumns: {a: {type: code, size: 2}, b: {type: code, size: 2}}",
    "bad-order": "person: id\nkeep: person\norder: b\ncolumns: {a: {type: code, size: 2}}",
    "only-with-keep": "person: id\nperson_columns: [a]\ncolumns: {a: {type: code, size: 2}}",
    "not-with-tables": "person: id\nkeep: person\ngroups: []\ncolumns: {a: {type: code, size: 2}}",
    "no-columns": "person: id\nkeep: person\ncolumns: []",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_kept_is_refused(code: str) -> None:
    with refused(code):
        Schema.parse(REFUSED[code])


def test_tables_that_are_linked_have_no_persons_to_keep() -> None:
    tables = {"a": {"key": "id", "columns": {"x": {"type": "code", "size": 2}}}}
    with refused("not-with-tables", "keep"):
        Schema.from_dict({"keep": "person", "tables": tables})
    whole = Schema.from_dict({"tables": tables}).to_dict()
    with refused("bad-keep"):
        Schema.from_dict({**whole, "keep": "person"})


def test_a_ledger_adds_up_releases_that_keep_persons_and_others(tmp_path: Any) -> None:
    """Both are per person, and the column that names one is the same."""
    rows, books = frame(made(50, 5)), tmp_path / "books"
    Ledger.create(books, "checks", Budget(3.0, 1e-5))
    plain = Schema.from_dict(
        {
            "dataset": "checks",
            "person": "id",
            "max_rows_per_person": 3,
            "ignore": ["sex", "day", "born", "note", "key"],
            "columns": {"mark": {"type": "integer", "min": 0, "max": 9, "missing": True}},
        }
    )
    for schema in (Schema.parse(SCHEMA), plain):
        hedgerow.synthesize(rows, schema, Budget(1.0, 1e-6), "independent", ledger=books)
    debited = [entry.record["unit"] for entry in Ledger(books).entries() if "debit" in entry.record]
    assert set(debited) == {"id"}


def test_a_header_is_checked_under_its_own_names() -> None:
    schema = Schema.parse(SCHEMA)
    schema.check_header(NAMES)
    with refused("missing-column", "born"):
        schema.check_header([name for name in NAMES if name != "born"])
    with refused("undeclared-column", "more"):
        schema.check_header([*NAMES, "more"])
