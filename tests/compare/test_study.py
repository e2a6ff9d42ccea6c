"""Several tables, labels, other people's programs; and what a paper takes of them."""

import json
import math
import sys
import xml.etree.ElementTree as ET

import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.compare import Plan, Study, compare
from hedgerow.compare.program import made_by, words_of
from hedgerow.compare.summary import interval, latex, results_csv, summaries, summary_csv, svg
from hedgerow.errors import HedgerowError
from hedgerow.pages.comparison import MetricView
from hedgerow.samples import opm
from refusals import refused

TVD = MetricView("tvd2", "pairs", "mean distance of pairs", "low")
PROGRAM = "import sys, shutil; shutil.copy(sys.argv[1], sys.argv[2])"


def row(name, run, value, epsilon=1.0, table="a", status="done"):
    about = {"table": table, "kind": "method", "name": name, "epsilon": epsilon, "run": run, "status": status}
    return {**about, "tvd2": value, "made": "{}"}


ROWS = [
    *(row("ours", run, value) for run, value in enumerate([0.2, 0.3, 0.4])),
    *(row("theirs_2", run, value) for run, value in enumerate([0.3, 0.4, 0.6])),
    row("theirs_2", 3, None, status="failed"),
    row("once", 0, 0.5, epsilon=2.0),
    row("floor", 0, 0.1, epsilon=None),
]


def test_means_intervals_and_paired_differences_by_hand():
    found = {each.name: each for each in summaries(ROWS, ["tvd2"], "ours")}
    assert found["ours"].mean == pytest.approx(0.3)
    assert found["ours"].difference is None
    # Student's t with two degrees of freedom: 4.3027
    assert found["ours"].high - found["ours"].mean == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-4)
    assert found["theirs_2"].runs == 3
    assert found["theirs_2"].difference == pytest.approx(0.4 / 3)
    apart = interval([0.1, 0.1, 0.2])
    assert (found["theirs_2"].difference_low, found["theirs_2"].difference_high) == pytest.approx(apart[1:])
    assert found["once"].low is None
    assert found["once"].difference is None  # nothing to compare with at its ε


def test_what_a_paper_takes():
    found = summaries(ROWS, ["tvd2"], "ours")
    text = latex(found, TVD)
    assert "\\mathbf{0.3000}" in text
    assert "theirs\\_2 & $0.4333 \\pm" in text
    assert "once & -- & $\\mathbf{0.5000}$" in text
    assert text.count("\\\\") == 5
    assert len(summary_csv(found).splitlines()) == 1 + len(found)
    assert "made" not in results_csv(ROWS).splitlines()[0].split(",")
    root = ET.fromstring(svg(found, TVD))
    assert root.tag.endswith("svg")
    assert "theirs_2" in "".join(root.itertext())


@pytest.fixture
def place(tmp_path):
    pq.write_table(opm.generate(300), tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    (tmp_path / "theirs.py").write_text(PROGRAM)
    return tmp_path


def plan(place):
    tables = {"people": {"table": str(place / "people.parquet"), "schema": str(place / "people.yaml")}}
    methods = {
        "MST": {"method": "mst:paper", "set": {"merge": 2}},
        "theirs": {"program": f"{sys.executable} {place / 'theirs.py'} {{table}} {{out}}.parquet"},
    }
    return {"tables": tables, "methods": methods, "epsilons": [2], "runs": 1, "metrics": ["tvd2"], "against": "theirs"}


def test_a_study_from_python_and_again_from_its_manifest(place):
    found = hr.compare(plan(place), place / "out", jobs=2)
    rows = {each["name"]: each for each in found.rows}
    assert {each["status"] for each in found.rows} == {"done"}
    assert rows["theirs"]["tvd2"] == 0
    assert rows["theirs"]["cpu_s"] > 0
    assert json.loads(rows["MST"]["made"])["options"] == {"merge": 2.0}
    [ours] = [each for each in found.summary if each.name == "MST"]
    assert ours.difference == pytest.approx(rows["MST"]["tvd2"])
    for name in ("study.json", "results.csv", "summary.csv", "tvd2.tex", "tvd2.svg", "people/comparison.html"):
        assert (place / "out" / name).stat().st_mode & 0o077 == 0
    again = Study.load(place / "out" / "study.json")
    assert again == Study.of(plan(place))
    (place / "theirs.py").write_text(PROGRAM + " ")  # another program makes another cell
    [one] = [cell.key for cell in again.plans["people"].cells() if cell.name == "theirs"]
    assert one not in {path.stem for path in (place / "out" / "people" / "cells").iterdir()}


def test_what_cannot_be_a_plan_is_refused(place):
    about = plan(place)
    for changed in ({"tables": {}}, {"methods": []}, {"epsilon": 1}, {"tables": {"../x": {}}}, {"methods": {"a": 7}}):
        with refused("bad-plan"):
            Study.of({**about, **changed})
    with refused("bad-program"):
        Study.of({**about, "methods": {"theirs": {"program": "cat {table}"}}})
    with refused("bad-plan"):
        Study.load(place / "nothing.yaml")
    (place / "full").mkdir()
    (place / "full" / "mine.txt").write_text("mine")
    with refused("not-a-comparison"):
        hr.compare(about, place / "full")


def test_a_program_and_a_ledger_do_not_go_together(place):
    files = {"table": str(place / "people.parquet"), "schema": str(place / "people.yaml"), "ledger": "some.ledger"}
    command = f"{sys.executable} {place / 'theirs.py'} {{table}} {{out}}.parquet"
    asked = Plan(**files, methods=("mst",), epsilons=(1.0,), runs=1, metrics=("tvd1",), programs={"theirs": command})
    with refused("program-and-ledger", "theirs"):
        compare(asked, place / "out")


@pytest.mark.parametrize("command", ["false {table} {out}.csv", "true {table} {out}.csv", "/nowhere {table} {out}.csv"])
def test_a_program_that_fails_says_so_and_no_more(command):
    assert words_of(command)
    given = dict.fromkeys(("table", "schema", "epsilon", "delta", "seed"), "x")
    with pytest.raises(HedgerowError, match='the program "theirs"') as raised, made_by("theirs", command, given):
        pass
    assert raised.value.code == "program-failed"
