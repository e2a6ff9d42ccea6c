"""The laws of metrics: ours keep them, a stranger's can be checked by them, and each law catches what breaks it."""

import random
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from blocks import blocks
from hedgerow.audit import Violation, check_metric
from hedgerow.private.evaluate import METRICS, Figure, Metric, evaluate, find
from hedgerow.private.evaluate.evaluation import settled_metrics, shown_figures
from hedgerow.private.evaluate.marginals import tvd1
from hedgerow.samples import opm
from hedgerow.schema import Schema
from refusals import refused
from repository import ROOT

PAGE = ROOT / "docs" / "extend" / "metric.md"
MODULE, USE = (block.text for block in blocks(PAGE) if block.language == "python")
MORE = """

class Modes:
    name, figures = "modes", MODES.figures

    def compute(self, comparison):
        return modes(comparison)


CLASH = Metric("clash", lambda c: {"tvd1": 0.0}, {"tvd1": Figure("mine", "something else")})
NOTHING = 3
"""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """The module of the page about metrics, and more."""
    (tmp_path / "modes.py").write_text(MODULE)
    (tmp_path / "metrics_elsewhere.py").write_text(MODULE + MORE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", METRICS)
def test_ours_keep_the_laws(name):
    check_metric(name)


def first(comparison):
    """An honest figure, to be broken."""
    return tvd1(*comparison.tables)


def held(comparison):
    """How many codes of each attribute only one of the tables holds: none beside random codes, which hold all."""
    real, synthetic, domain = comparison.tables
    return float(sum(len(np.setxor1d(real[name], synthetic[name])) for name in domain.names))


HONEST = Metric("mine", lambda c: {"mine": first(c)}, {"mine": Figure("mine", "a share")})


def write(comparison):
    comparison.real[comparison.domain.names[0]][0] = 0
    return {"mine": 0.0}


BROKEN = {
    "is declared or given": lambda c: {"other": 0.0},
    "neither a finite float": lambda c: {"mine": float("nan")},
    "float nor None": lambda c: {"mine": np.float64(0)},
    "same seed gave other": lambda c: {"mine": random.random()},
    "order of the rows": lambda c: {"mine": float(c.real["site"][0])},
    "less good": lambda c: {"mine": -first(c)},
    "less good than beside random or equal rows": lambda c: {"mine": -held(c)},
    "what it says of random and of equal rows": lambda c: {"mine": 0.5},
    "wrote to the tables": write,
    "as JSON": lambda c: {"mine": 0.0, "mine_at": np.zeros(1)},
    "it failed": lambda c: {"mine": first(c) / (len(c.domain) - 1)},
}


@pytest.mark.parametrize("said", BROKEN)
def test_each_law_can_fail(said):
    check_metric(HONEST)
    with pytest.raises(Violation, match=said):
        check_metric(replace(HONEST, compute=BROKEN[said]))


def test_names_and_words_are_checked():
    for figures in ({}, {"rows": HONEST.figures["mine"]}, {"Mine": HONEST.figures["mine"]}, {"mine": Figure("", "")}):
        with pytest.raises(Violation):
            check_metric(replace(HONEST, figures=figures))


def test_what_is_about_risk_and_about_the_real_rows():
    risk = {"mine": Figure("mine", "a share", about="risk")}
    with pytest.raises(Violation, match="less of a risk"):
        check_metric(replace(HONEST, figures=risk))
    about_real = {"mine": Figure("mine", "a share", about="real rows")}
    with pytest.raises(Violation, match="about the real rows"):
        check_metric(replace(HONEST, figures=about_real))


def test_a_metric_made_elsewhere(elsewhere):
    for name in ("metrics_elsewhere:Modes", "metrics_elsewhere:MODES"):
        check_metric(name)
        report = evaluate(opm.generate(50), opm.generate(50), Schema.parse(opm.SCHEMA), metrics=["tvd1", name])
        assert report["modes"] == report["tvd1"] == 0
    settled = settled_metrics(["metrics_elsewhere:Modes", "tvd2", "tvd1"], None, ())
    assert list(settled) == ["tvd1", "tvd2", "metrics_elsewhere:Modes"]
    assert list(shown_figures(settled.values())) == ["tvd1", "tvd2", "modes"]
    for name, said in (
        ("metrics_elsewhere:NOTHING", "not-a-metric"),
        ("metrics_elsewhere:Nowhere", "cannot-import"),
        ("no.where:X", "cannot-import"),
    ):
        with refused(said):
            find(name)
    with refused("metric-name-taken"):
        settled_metrics(["metrics_elsewhere:Modes", "metrics_elsewhere:MODES"], None, ())
    with refused("metric-name-taken"):
        settled_metrics([HONEST, replace(HONEST, draws=True)], None, ())
    assert list(settled_metrics([HONEST, HONEST, "tvd1", "tvd1"], None, ())) == ["tvd1", "mine"]
    with refused("figure-name-taken", '"tvd1"', '"clash"'):
        settled_metrics(["tvd1", "metrics_elsewhere:CLASH"], None, ())


def test_the_page_about_metrics(elsewhere, monkeypatch):
    monkeypatch.chdir(elsewhere)
    for name, seed in (("real", 0), ("synthetic", 1)):
        pq.write_table(opm.generate(200, seed=seed), f"{name}.parquet")
    (elsewhere / "people.yaml").write_text(opm.SCHEMA)
    said = {}
    exec(compile(USE, str(PAGE), "exec"), said)
    assert 0 <= said["report"]["modes"] <= 1


def test_the_commands_take_it_too(hedgerow, people, elsewhere):
    env = {"PYTHONPATH": str(elsewhere)}
    given = ("people.parquet", "-s", "people.yaml", "--metrics", "tvd1,metrics_elsewhere:Modes", "-q")
    done = hedgerow("evaluate", "people.parquet", *given, "--report", "page.html", env=env)
    assert done.code == 0, done.err
    assert "modes                 0.0 %  columns whose most frequent value is another one" in done.out
    assert "columns whose most frequent value" in (people / "page.html").read_text()
    compared = hedgerow(
        *("compare", *given, "--methods", "independent", "--epsilons", "1", "--runs", "1", "-o", "out", "--json"),
        env=env,
    )
    assert compared.code == 0, compared.err
    assert all("modes" in row for row in compared.json["rows"])
    assert "modes" in (people / "out" / "comparison.html").read_text()
