"""Methods side by side: failures are rows, what is done is kept, runs are paired, and floors are always there."""

import json
import stat

import numpy as np
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.compare import Cell, ForeignTable, Plan, compare
from hedgerow.compare.cell import floor, problem_of
from hedgerow.compare.grid import remaining_seconds
from hedgerow.errors import OptionError, SchemaError
from hedgerow.pages.comparison import MetricView, best_methods, main_metric
from hedgerow.private.ledger import Ledger
from hedgerow.samples import opm

THIRD_PARTY = """
import os, time
from dataclasses import dataclass
from hedgerow.methods.independent import Independent
from hedgerow.methods.method import About
from hedgerow.models.model import Model

ABOUT = About("third", "A third party's", "", "", "")

@dataclass(frozen=True)
class Raises:
    about = ABOUT
    def run(self, curator, progress) -> Model:
        raise ValueError("Zaphod-7731")

@dataclass(frozen=True)
class Dies:
    about = ABOUT
    def run(self, curator, progress) -> Model:
        os.kill(os.getpid(), 9)

@dataclass(frozen=True)
class Sleeps:
    about = ABOUT
    def run(self, curator, progress) -> Model:
        time.sleep(600)

@dataclass(frozen=True)
class Works(Independent):
    pass
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table, its schema, and a package of methods made elsewhere."""
    pq.write_table(opm.generate(400), tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    (tmp_path / "thirdparty.py").write_text(THIRD_PARTY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def plan(place, **changes):
    about = {"table": str(place / "people.parquet"), "schema": str(place / "people.yaml"), "methods": ("independent",)}
    return Plan(**{**about, "epsilons": (1.0,), "runs": 1, "metrics": ("tvd1", "tvd2"), **changes})


def test_from_a_grid_to_a_page_and_on_again(place):
    """Failures, crashes and time-outs are rows; floors are there unasked; done cells are not run again."""
    out = place / "out"
    methods = ("thirdparty:Works", "thirdparty:Raises", "thirdparty:Dies")
    foreign = ForeignTable("theirs", 2.0, str(place / "people.parquet"))
    lines = []
    first = plan(place, methods=methods, tables=(foreign,))
    rows = compare(first, out, command=["hedgerow", "compare", "…"], say=lines.append)
    found = {row["name"]: row for row in rows}
    assert list(found) == ["bootstrap", "subsample", *methods, "independent", "theirs"]
    assert found["thirdparty:Raises"]["status"] == "failed"
    assert found["thirdparty:Raises"]["problem"] == "ValueError at thirdparty.py:14 in run"  # its words may quote rows
    assert found["thirdparty:Dies"]["problem"] == "ended by SIGKILL (out of memory?)"
    assert found["theirs"]["tvd2"] == 0
    assert 0 < found["bootstrap"]["tvd2"] < found["subsample"]["tvd2"]
    assert found["independent"]["cpu_s"] > 0
    assert found["independent"]["peak_mb"] > 10
    assert len(lines) == 7
    # the same again: nothing is left to do; and a method that never ends is stopped without losing the others
    again = []
    assert compare(first, out, command=["hedgerow", "compare", "…"], say=again.append) == rows
    assert again == ["7 of 7 cells are done already"]
    rows = compare(plan(place, methods=("thirdparty:Sleeps",), max_seconds=2.0), out, command=["more"])
    assert {row["name"]: row["status"] for row in rows}["thirdparty:Sleeps"] == "timed out"
    # what the folder holds
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["commands"] == [["hedgerow", "compare", "…"], ["more"]]
    assert manifest["versions"]["hedgerow"]
    table = pq.read_table(out / "results.parquet")
    assert table.num_rows == 8
    assert b"PRIVATE" in table.schema.metadata[b"hedgerow"]
    page = (out / "comparison.html").read_text()
    assert "PRIVATE" in page
    assert "timed out" in page
    assert "Zaphod-7731" not in page
    for name in ("manifest.json", "results.parquet", "comparison.html"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600
    # another judge needs another folder
    with pytest.raises(OptionError, match="differs in: metrics"):
        compare(plan(place, metrics=("tvd3",)), out)


def test_a_ledger_is_debited_by_every_run_and_refuses_one_too_many(place):
    """ε = 1 fits a lifetime of 1.5, ε = 2 does not: a row that says so."""
    path = place / "people.ledger"
    ledger = Ledger.create(path, "opm", Budget(1.5, 1e-8))
    rows = compare(plan(place, epsilons=(1.0, 2.0), metrics=("tvd1",), ledger=str(path)), place / "out")
    done = {row["epsilon"]: row["status"] for row in rows if row["kind"] == "method"}
    assert done == {1.0: "done", 2.0: "failed"}
    records = [entry.record for entry in ledger.entries()]
    assert sum("debit" in record for record in records) == 1
    assert any("compare" in str(record) for record in records)  # the look at exact data is noted


def test_what_can_be_refused_is_refused_before_anything_runs(place):
    (place / "open.yaml").write_text("columns:\n  sex: {type: category, values: private}\n")
    with pytest.raises(SchemaError, match="one domain for all runs"):
        compare(plan(place, schema=str(place / "open.yaml")), place / "out")
    with pytest.raises(OptionError, match='Did you mean "mst"'):
        compare(plan(place, methods=("msst",)), place / "out")
    with pytest.raises(OptionError, match="not among the methods"):
        compare(plan(place, options={"mst": {}}), place / "out")
    with pytest.raises(OptionError, match="NAME@ε=FILE"):
        ForeignTable.parse("theirs=made.csv")
    assert ForeignTable.parse("a@b@0.5=x=y.csv") == ForeignTable("a@b", 0.5, "x=y.csv")
    assert not (place / "out").exists()
    before = sorted(place.iterdir()), place.stat().st_mode
    for occupied in (place, place / "people.yaml"):
        with pytest.raises(OptionError, match="holds no comparison; it was not touched"):
            compare(plan(place), occupied)
    assert before == (sorted(place.iterdir()), place.stat().st_mode)


def test_runs_are_paired_and_cells_are_told_apart(place):
    cells = list(plan(place, methods=("mst", "aim"), epsilons=(0.1, 1.0), runs=2).cells())
    assert len(cells) == len({cell.key for cell in cells}) == 2 * (2 + 2 * 3)
    assert [cell.run for cell in cells] == [0] * 8 + [1] * 8  # run by run
    seeded = plan(place, seed=5, unsafe_noise_seed=100)
    assert [seeded.paired(run) for run in range(2)] == [(5, 100), (6, 101)]
    assert plan(place).paired(3) == (3, None)
    assert Cell("method", "aim", 1.0, 0).key != Cell("method", "aim", 1.0, 0, {"rounds": "8"}).key


def test_floors_are_samples_of_the_real_rows():
    real = {"a": np.arange(200, dtype=np.uint8)}
    assert len(floor("subsample", real, 0)["a"]) == 20
    assert len(set(floor("subsample", real, 0)["a"].tolist())) == 20  # without replacement
    assert len(floor("bootstrap", real, 0)["a"]) == 200
    assert len(set(floor("bootstrap", real, 0)["a"].tolist())) < 160  # with replacement: 126 are expected
    assert (floor("bootstrap", real, 3)["a"] == floor("bootstrap", real, 3)["a"]).all()


def test_the_time_left_worked_by_hand():
    """aim took 4 s and 6 s, mst 1 s: aim again 5, mst again 1, and something new as long as all on average, 11/3."""
    took = {"aim": [4.0, 6.0], "mst": [1.0]}
    waiting = [Cell("method", name, 1.0, 0) for name in ("aim", "mst", "new")]
    assert remaining_seconds(took, waiting) == pytest.approx(5 + 1 + 11 / 3)
    assert remaining_seconds({}, waiting) == 0


def test_the_best_method_worked_by_hand():
    def row(name, epsilon, **figures):
        return {"name": name, "options": "{}", "epsilon": epsilon, **figures}

    rows = [row("a", 1.0, tvd3=0.3), row("a", 1.0, tvd3=0.1), row("b", 1.0, tvd3=0.25), row("b", 10.0, tvd3=0.1)]
    low = MetricView("tvd3", "triples", "", "low")
    assert best_methods(rows, low) == {1.0: [("a", pytest.approx(0.2)), ("b", 0.25)], 10.0: [("b", 0.1)]}
    high = MetricView("tvd3", "triples", "", "high")
    assert best_methods(rows, high)[1.0][0][0] == "b"
    assert main_metric([MetricView("range3", "", "", "low"), low]) == low


def test_words_of_others_are_not_passed_on():
    with pytest.raises(ValueError) as raised:
        int("Zaphod-7731")
    assert "Zaphod" not in problem_of(raised.value)
    assert problem_of(OptionError("our own sentence.")) == "our own sentence."


def test_the_command(hedgerow, place):
    done = hedgerow(
        *("compare", "people.parquet", "-s", "people.yaml", "-o", "out", "--methods", "mst", "--epsilons", "1"),
        *("--runs", 1, "--metrics", "tvd1", "--set", "mst.merge=2", "--json", "-q"),
    )
    assert done.code == 0, done.err
    rows = {row["name"]: row for row in done.json["rows"]}
    assert done.json["private"] is True
    assert rows["mst"]["options"] == '{"merge": "2"}'
    assert done.err == ""
    wrong = hedgerow("compare", "people.parquet", "-s", "people.yaml", "-o", "out", "--epsilons", "1,x")
    assert wrong.code == 2
    assert "--epsilons takes numbers" in wrong.err
