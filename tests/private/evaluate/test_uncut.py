"""The schema that a steward wrote is enough for `evaluate` and `compare`, whatever a run has still to buy for it."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from hedgerow.compare.cell import run_cell
from hedgerow.compare.grid import _check
from hedgerow.compare.plan import Cell, Plan
from hedgerow.private.evaluate import evaluate, raw
from hedgerow.private.evaluate.uncut import CELLS, MOST_VALUES, with_cells_of
from hedgerow.private.sources.source import open_source
from hedgerow.schema import Schema

KINDS = {
    "cost": "{type: number, min: 0, max: 10000000, decimals: 2}",
    "ratio": "{type: number, min: -1, max: 1, missing: true}",
    "change": '{type: integer, min: -1000000, max: 1000000, special: [0], missing: {"-8": refused}}',
    "wage": "{type: integer, min: 0, max: 99999, heaps: [100, 10]}",
    "kids": "{type: integer, min: 0, max: 9}",
    "born": '{type: date, min: 1900-01-01, max: 2029-12-31, format: "%d.%m.%Y"}',
    "moved": "{type: date, min: 2000-01-01, max: 2009-12-31, missing: true}",
    "seen": "{type: datetime, min: 2019-01-01, max: 2020-12-31, step: minute}",
    "rung": '{type: datetime, min: 2019-01-01, max: 2019-12-31, step: second, format: "%d/%m/%Y %H:%M:%S"}',
    "town": "{type: category, values: private}",
    "grade": "{type: category, values: [low, high], other: true}",
    "well": "{type: boolean}",
}
SCHEMA = Schema.parse("dataset: d\ncolumns:\n" + "".join(f"  {name}: {said}\n" for name, said in KINDS.items()))


def table(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    moments = [
        datetime.datetime(2019, 1, 1) + datetime.timedelta(minutes=int(n)) for n in rng.integers(0, 400_000, rows)
    ]
    return pa.table(
        {
            "cost": np.where(rng.random(rows) < 0.6, 0, np.round(rng.lognormal(6, 2, rows), 2)),
            "ratio": pa.array([None if n % 7 == 0 else x for n, x in enumerate(rng.normal(0, 0.2, rows))]),
            "change": np.where(rng.random(rows) < 0.1, -8, rng.normal(0, 900, rows).astype(int)),
            "wage": rng.integers(0, 300, rows) * 50,
            "kids": rng.integers(0, 4, rows),
            "born": [f"{moment:%d.%m.%Y}" for moment in moments],
            "moved": pa.array([None if n % 5 == 0 else datetime.date(2004, 5, 1 + n % 28) for n in range(rows)]),
            "seen": moments,
            "rung": [f"{moment:%d/%m/%Y %H:%M:%S}" for moment in moments if moment.year == 2019][:rows],
            "town": rng.choice(["Aa", "Bb", "Cc"], rows, p=[0.7, 0.2, 0.1]),
            "grade": rng.choice(["low", "high", "middling"], rows),
            "well": rng.random(rows) < 0.5,
        }
    )


def one(kind, values):
    """A column by itself, beside one that needs nothing."""
    schema = Schema.parse(f"columns:\n  x: {kind}\n  kids: {KINDS['kids']}\n")
    return schema, pa.table({"x": values, "kids": np.arange(len(values)) % 3})


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_column_is_compared_with_the_schema_as_it_was_declared(name):
    schema, rows = one(KINDS[name], table()[name])
    found = evaluate(rows, rows, schema, metrics=["tvd2", "range3", "conjunctions", "cramers_v", "spikes", "digits"])
    assert found["tvd2"] == 0
    halves = evaluate(rows.slice(0, 300), rows.slice(300), schema, metrics=["tvd1", "ks", "weekdays", "hours", "means"])
    assert 0 < halves["tvd1"] < 0.5
    assert halves["left_out"] == {}
    is_date, is_moment = name in ("born", "moved", "seen", "rung"), name in ("seen", "rung")
    assert ("x" in halves.get("weekdays_columns", {})) == is_date
    assert ("x" in halves.get("hours_columns", {})) == is_moment


def test_all_at_once_with_a_page(tmp_path):
    found = evaluate(table(), table(seed=1), SCHEMA, report=tmp_path / "e.html")
    waiting = ["cost", "ratio", "change", "wage", "born", "moved", "seen", "rung", "town"]
    assert found["cut_by_rows"] == waiting
    assert all(found[name] is not None for name in ("tvd3", "ks", "hours", "weekdays", "spearman", "detector"))
    page = (tmp_path / "e.html").read_text()
    assert "ranges that hold alike many real" in page


def test_cells_follow_from_the_real_rows_and_the_schema_alone():
    schema = with_cells_of(SCHEMA, open_source(table()), 0)
    assert schema.discoveries == []
    assert schema.to_dict() == with_cells_of(SCHEMA, open_source(table()), 0).to_dict()
    for name in ("cost", "ratio", "change", "wage", "born", "seen", "seen:time", "rung:time"):
        assert 5 < schema.encoding().domain[name].ordered <= 2 * CELLS
    assert [0.0, 0.0] in [cell[0][:2] for cell in schema.to_dict()["columns"]["cost"]["leaves"]]  # a spike alone
    assert schema.columns["town"].values == ("Aa", "Bb", "Cc")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (KINDS["cost"], pa.array([None] * 50, pa.float64())),
        (KINDS["cost"], pa.array([7.25] * 50)),
        (KINDS["cost"], pa.array([1e300, float("nan"), float("inf"), -float("inf"), 3.0] * 10)),
        (KINDS["cost"], pa.array(["1,50", "many", "", "3.5", None] * 10)),
        ("{type: integer, min: 0, max: 999, special: [5]}", pa.array([5] * 50)),
        (KINDS["moved"], pa.array([None] * 50, pa.string())),
        (KINDS["seen"], pa.array(["2050-01-01", "x"] * 25)),
        (KINDS["town"], pa.array([None] * 50, pa.string())),
        (KINDS["town"], pa.array(["other", "", "Aa", None, " "] * 10)),
    ],
)
def test_awkward_columns_have_cells_too(kind, values):
    schema, rows = one(kind, values)
    assert evaluate(rows, rows, schema, metrics=["tvd2", "ks", "spikes", "detector"])["tvd2"] == 0


def test_many_rows_and_many_values_stay_bounded(monkeypatch):
    monkeypatch.setattr(raw, "MOST_ROWS", 5_000)
    values = [f"town {n}" for n in range(20_000)]
    schema, rows = one(KINDS["town"], values)
    assert len(with_cells_of(schema, open_source(rows), 0).columns["x"].values) == MOST_VALUES
    schema, rows = one(KINDS["change"], np.arange(20_000) - 10_000)
    cells = with_cells_of(schema, open_source(rows), 0).columns["x"].cells
    shares = np.bincount(cells.cell(np.arange(-10_000.0, 10_000))) / 20_000
    assert shares.max() < 2 / CELLS


def test_a_reader_that_can_be_read_once_is_enough():
    rows = table()
    found = evaluate(rows.to_reader(), rows.to_reader(), SCHEMA, metrics=["tvd1", "means"])
    assert (found["tvd1"], found["means"]) == (0, 0)


def test_a_comparison_takes_such_a_schema(tmp_path):
    schema = Schema.from_dict(
        {**SCHEMA.to_dict(), "columns": {n: SCHEMA.to_dict()["columns"][n] for n in ("cost", "seen", "town")}}
    )
    (tmp_path / "s.yaml").write_text(schema.to_yaml())
    pacsv.write_csv(table().select(["cost", "seen", "town"]), tmp_path / "t.csv")
    plan = Plan(
        str(tmp_path / "t.csv"), str(tmp_path / "s.yaml"), ("independent",), (2.0,), 1, ("tvd1", "ks"), delta=1e-6
    )
    _check(plan)
    for cell in (Cell("method", "independent", 2.0, 0), Cell("floor", "bootstrap", None, 0)):
        assert 0 < run_cell(plan, cell)["tvd1"] < 1
    itself = run_cell(plan, Cell("table", "theirs", 2.0, 0, {}, plan.table))
    assert (itself["tvd1"], itself["ks"]) == (0, 0)
