"""Methods side by side: failures are rows, what is done is kept, runs are paired, and floors are always there."""

import json
import stat
import sys
import threading
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.compare import Cell, ForeignTable, Plan, compare
from hedgerow.compare.cell import floor, problem_of, refuse_changed, run_cell
from hedgerow.compare.grid import Grid, remaining_seconds
from hedgerow.errors import OptionError
from hedgerow.pages.comparison import MetricView, best_methods, main_metric
from hedgerow.private.ledger import Ledger
from hedgerow.samples import opm
from refusals import refused

THIRD_PARTY = """
import os, time
from dataclasses import dataclass
from pathlib import Path
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

@dataclass(frozen=True)
class Killed(Independent):
    # kills the comparison, or itself, at a moment that a file beside this one names
    def run(self, curator, progress) -> Model:
        model = super().run(Struck(curator, self), progress)
        self.strike("ended")
        return model
    def strike(self, moment):
        orders = Path(__file__).with_name("orders.txt")
        order, *later = orders.read_text().split() or [""]
        who, _, when = order.partition(":")
        if when == moment:
            orders.write_text(" ".join(later))
            os.kill(os.getppid() if who == "comparison" else os.getpid(), 9)
            time.sleep(600)

class Struck:
    def __init__(self, curator, method):
        self._curator, self._method = curator, method
    def __getattr__(self, name):
        return getattr(self._curator, name)
    def measure(self, *words, **named):
        answer = self._curator.measure(*words, **named)
        self._method.strike("measured")
        return answer
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A table, its schema, and a package of methods made elsewhere."""
    pq.write_table(opm.generate(400), tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    (tmp_path / "thirdparty.py").write_text(THIRD_PARTY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "thirdparty", raising=False)  # that of another test
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
    assert found["thirdparty:Raises"]["code"] == "internal"
    problem = found["thirdparty:Raises"]["problem"]  # its words may quote rows
    assert problem == "an error in your method (thirdparty): ValueError at thirdparty.py:15 in run."
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
    with refused("another-comparison", "metrics"):
        compare(plan(place, metrics=("tvd3",)), out)


def test_a_ledger_is_debited_by_every_run_and_refuses_one_too_many(place):
    """ε = 1 fits a lifetime of 1.5, ε = 2 does not: a row that says so."""
    path = place / "people.ledger"
    ledger = Ledger.create(path, "opm", Budget(1.5, 1e-8))
    rows = compare(plan(place, epsilons=(1.0, 2.0), metrics=("tvd1",), ledger=str(path)), place / "out")
    done = {row["epsilon"]: row["status"] for row in rows if row["kind"] == "method"}
    assert done == {1.0: "done", 2.0: "failed"}
    records = [entry.record for entry in ledger.entries()]
    assert [record["method"] for record in records if "debit" in record] == ["look", "independent"]
    assert any("compare" in str(record) for record in records)  # the look at exact data is noted


def debits(path):
    return [entry.record["method"] for entry in Ledger(path).entries() if "debit" in entry.record]


def test_a_comparison_that_is_killed_goes_on_with_what_it_paid_for(hedgerow, place):
    """Killed between and after the answers of a run, itself or its cell: as many pairs of debits as runs."""
    Ledger.create(place / "people.ledger", "opm", Budget(9, 1e-8))
    command = ("compare", "people.parquet", "-s", "people.yaml", "-o", "out", "--methods", "thirdparty:Killed")
    command += ("--epsilons", "1", "--runs", "1", "--metrics", "tvd1", "--ledger", "people.ledger", "--json", "-q")
    orders = ["comparison:measured", "comparison:ended", "cell:measured"]
    (place / "orders.txt").write_text(" ".join(orders))
    for left in (2, 1):
        assert hedgerow(*command).code == -9
        assert len((place / "orders.txt").read_text().split()) == left
        assert debits(place / "people.ledger") == ["look", "independent"]
    stopped = {row["name"]: row for row in hedgerow(*command).json["rows"]}
    assert stopped["thirdparty:Killed"]["problem"] == "ended by SIGKILL (out of memory?)"
    done = hedgerow(*command, "--retry")
    assert done.code == 0, done.err
    assert {row["status"] for row in done.json["rows"]} == {"done"}
    assert debits(place / "people.ledger") == ["look", "independent"] * 2  # the killed one, and the floor
    assert [path.suffix for path in (place / "out" / "cells").iterdir()] == [".json"] * 4  # no journal, no half file


def test_figures_do_not_outlive_the_code_that_made_them(place):
    """The default of a method made elsewhere changes: its cell is run again, and the old one is no longer shown."""
    first = plan(place, methods=("thirdparty:Works",), metrics=("tvd1",))
    before = {row["name"]: row for row in compare(first, place / "out")}
    (place / "thirdparty.py").write_text(THIRD_PARTY.replace("class Works(Independent):\n    pass", CHANGED))
    said = []
    after = {row["name"]: row for row in compare(first, place / "out", say=said.append)}
    assert said[0] == "3 of 4 cells are done already"
    assert said[-1].startswith("1 cells that other code or other options made")
    assert after["thirdparty:Works"]["status"] == "done"
    assert after["thirdparty:Works"]["rows"] == 7 != before["thirdparty:Works"]["rows"]
    assert pq.read_table(place / "out" / "results.parquet").num_rows == 4
    manifest = json.loads((place / "out" / "manifest.json").read_text())
    sources = [cell["made"]["outside"] for cell in manifest["cells"].values() if cell["name"] == "thirdparty:Works"]
    assert len(sources) == 2
    assert sources[0] != sources[1]


CHANGED = """class Works(Independent):
    def run(self, curator, progress) -> Model:
        model = super().run(curator, progress)
        model.total = 7.0
        return model"""


def test_whatever_makes_a_cell_is_part_of_it(place, monkeypatch):
    """Options with their defaults, files that they name, our own source, the judge's files."""

    def made(**changes):
        return {cell.name: cell for cell in plan(place, methods=("mst", "aim"), **changes).cells()}

    (place / "list.yaml").write_text("[[sex, race]]")
    given = {"aim": {"workload": str(place / "list.yaml")}}
    usual, listed = made(), made(options=given)
    assert usual["mst"].made["options"]["merge"] == 3
    assert usual["mst"].key == made()["mst"].key
    assert listed["aim"].key != usual["aim"].key
    (place / "list.yaml").write_text("[[sex, age]]")
    assert made(options=given)["aim"].key != listed["aim"].key
    assert made(max_memory=1 << 30)["mst"].key != usual["mst"].key
    monkeypatch.setattr("hedgerow.methods.mst.MST.__init__", lambda self: object.__setattr__(self, "merge", 4.0))
    monkeypatch.setattr("hedgerow.methods.mst.MST.choosing", 0.3)
    assert made()["mst"].key != usual["mst"].key
    monkeypatch.undo()
    monkeypatch.setattr("hedgerow.compare.plan.package_digest", lambda: "another")
    assert not {cell.key for cell in made().values()} & {cell.key for cell in usual.values()}
    with refused("method-changed", "the source"):
        refuse_changed(plan(place, methods=("mst",)), made()["mst"])


def test_two_comparisons_do_not_fill_one_folder_at_once(place):
    """The second waits, and finds everything done."""
    said = []
    small = plan(place, metrics=("tvd1",))
    grid = Grid(small, place / "out")
    with grid.open([], said.append):
        other = threading.Thread(target=compare, args=(small, place / "out"), kwargs={"say": said.append})
        other.start()
        while not said:
            time.sleep(0.01)
        grid.fill(1, False, lambda line: None)
    other.join()
    assert "another comparison is at work" in said[0]
    assert said[1] == "3 of 3 cells are done already"


def test_what_can_be_refused_is_refused_before_anything_runs(place):
    with refused("unknown-method", 'Did you mean "mst"'):
        compare(plan(place, methods=("msst",)), place / "out")
    with refused("setting-without-method"):
        compare(plan(place, options={"mst": {}}), place / "out")
    with refused("bad-table-option"):
        ForeignTable.parse("theirs=made.csv")
    assert ForeignTable.parse("a@b@0.5=x=y.csv") == ForeignTable("a@b", 0.5, "x=y.csv")
    assert not (place / "out").exists()
    before = sorted(place.iterdir()), place.stat().st_mode
    for occupied in (place, place / "people.yaml"):
        with refused("not-a-comparison"):
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


def test_values_as_they_stand_are_compared_too(place):
    asked = plan(place, metrics=("tvd1", "means", "ks"))
    cells = {
        "method": Cell("method", "independent", 1.0, 0),
        "bootstrap": Cell("floor", "bootstrap", None, 0),
        "subsample": Cell("floor", "subsample", None, 0),
        "itself": Cell("table", "theirs", 2.0, 0, {}, asked.table),
    }
    found = {name: run_cell(asked, cell) for name, cell in cells.items()}
    assert (found["itself"]["means"], found["itself"]["ks"]) == (0, 0)
    assert 0 < found["bootstrap"]["ks"] < found["subsample"]["ks"] < 0.5
    assert 0 < found["method"]["ks"] <= 1


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


def test_a_method_in_a_file_is_known_by_its_file(place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "mine.py").write_text(THIRD_PARTY)
    name = "./mine.py:Works"
    [made] = [cell.made for cell in plan(place, methods=(name,)).cells() if cell.name == name]
    (place / "mine.py").write_text(THIRD_PARTY + "# changed\n")
    [changed] = [cell.made for cell in plan(place, methods=(name,)).cells() if cell.name == name]
    assert made["outside"][name] != changed["outside"][name]


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
    assert (wrong.code, wrong.refusal) == (2, "bad-epsilons")
