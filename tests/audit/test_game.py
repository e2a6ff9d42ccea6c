"""The distinguishing game: its bound is a bound, it sees what is there, and it catches a broken promise."""

import json

import numpy as np
import pytest

from hedgerow.audit.game import Verdict, certified, play
from hedgerow.audit.mutants import MUTANTS
from hedgerow.audit.report import Finding
from hedgerow.cli.audit import audit as command
from hedgerow.methods.independent import Independent
from refusals import refused

ENOUGH = 300


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0, 4.0])
def test_the_bound_lies_below_the_truth_and_near_it(mu):
    rng = np.random.default_rng(5)
    bounds = [certified(rng.normal(0, 1, 4000), rng.normal(mu, 1, 4000)) for _ in range(20)]
    assert max(bounds) <= mu
    assert np.mean(bounds) >= (0.3 if mu < 1 else 0.6) * mu


def test_the_bound_by_hand():
    """Three of ten and one of ten wrong: Clopper–Pearson at 0.05 / 2 each allows 0.6525 and 0.4450."""
    absent = np.array([0.0] * 10 + [0] * 7 + [1] * 3)
    present = np.array([1.0] * 10 + [1] * 9 + [0])
    assert certified(absent, present, 0.05) == pytest.approx(0.0)  # Φ⁻¹(.3475) − Φ⁻¹(.4450) < 0
    assert certified(absent[:10].repeat(100), present[:10].repeat(100), 0.05) == pytest.approx(4.88, abs=0.05)


def test_no_statistic_at_all_certifies_nothing():
    same = np.random.default_rng(1).normal(size=2000)
    assert certified(same, same) == 0.0


def test_a_verdict():
    assert Verdict(2.0, 1.9, 10).kept
    assert Verdict(2.0, 1.9, 10).alive
    assert not Verdict(2.0, 2.1, 10).kept
    assert not Verdict(2.0, 1.2, 10).alive


def test_too_few_runs_are_called_so_and_not_a_dead_test():
    """1,000 runs certify about half of the promise, however honest the method: that convicts and clears nobody."""
    few = Finding("independent", 6, None, Verdict(2.0, 1.1, 1000), tuple(MUTANTS))
    assert few.problems == []
    assert few.doubts == ["too few runs: 2 × 1,000 let the game see only μ = 1.10 of 2.00; 2 × 4,000 would do"]
    enough = Finding("independent", 6, None, Verdict(2.0, 1.1, 4000), tuple(MUTANTS))
    assert enough.problems == ["the game sees only μ = 1.10 of 2.00: a dead test"]
    assert enough.doubts == []
    leaking = Finding("independent", 6, None, Verdict(2.0, 2.1, 1000), tuple(MUTANTS))
    assert leaking.problems == ["leaks at least μ = 2.10, promises 2.00"]
    assert leaking.doubts == []


def test_the_command_says_too_few_runs(monkeypatch, capsys):
    few = Finding("independent", 6, None, Verdict(2.0, 1.1, 1000), tuple(MUTANTS))
    monkeypatch.setattr("hedgerow.audit.report.audit", lambda *words: few)
    with refused("audit-unsettled", "independent", "--runs 4000"):
        command(["independent"], 6, 1000, json_=True)
    (found,) = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    assert found["doubts"] == few.doubts


def test_a_method_that_keeps_its_promise_passes():
    assert play(Independent(), ENOUGH).kept


def test_a_method_with_a_quarter_of_its_noise_is_convicted():
    halved = MUTANTS["noise halved"]
    with halved(Independent()) as once, halved(once) as mutant:
        assert not play(mutant, ENOUGH).kept
