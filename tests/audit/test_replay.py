"""The replay audit passes for what is private and catches what is not."""

from contextlib import nullcontext

import numpy as np
import pytest

from hedgerow import methods
from hedgerow.audit import Violation, check_method
from hedgerow.audit.method import BUDGETS, KINDS, check_drawn_noise, pairs, replay_pair
from hedgerow.audit.mutants import MUTANTS
from hedgerow.audit.replay import Recorder
from hedgerow.audit.report import is_caught
from hedgerow.coded.measurement import Noise
from hedgerow.coded.query import total_query
from hedgerow.methods.independent import Independent
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.model import Model
from hedgerow.private import mechanisms
from hedgerow.private.exact import Exact


@pytest.mark.parametrize("name", [*methods.names(), *methods.published()])
def test_every_method_keeps_every_law(name):
    check_method(methods.build(name))


def test_the_pairs_are_of_every_kind_and_differ_by_one_person():
    made = list(pairs(len(KINDS)))
    assert [pair.kind for pair in made] == list(KINDS)
    for pair in made:
        gone = set(pair.table["id"].to_pylist()) - set(pair.neighbour["id"].to_pylist())
        assert len(gone - {None}) == 1
    assert len({pair.table["id"].type for pair in made}) == 5


# ---------------------------------------------------------------- mutants: each breaks one rule and must be caught


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_caught(name):
    assert is_caught(Independent(), MUTANTS[name], pairs=4 * len(KINDS))


def test_a_method_that_breaks_no_rule_is_not_caught():
    assert not is_caught(Independent(), nullcontext, pairs=4 * len(KINDS))


def test_what_a_forgotten_bound_looks_like():
    crowded = next(pair for pair in pairs(len(KINDS)) if pair.kind == "many rows")
    expected = r"declares the sensitivity .* but neighbours differ by 3 times that"
    with MUTANTS["rows per person forgotten"](Independent()) as method, pytest.raises(Violation, match=expected):
        replay_pair(method, BUDGETS[0], crowded)


def uniform_noise(self, noise, count):
    width = noise.scale * 12**0.5
    return np.rint(np.random.default_rng().uniform(-width / 2, width / 2, count)).astype(np.int64)


def constant_noise(self, noise, count):
    return np.rint(np.random.default_rng(7).normal(0, noise.scale, count)).astype(np.int64)


def repeating_noise(self, noise, count):
    drawn = np.random.default_rng().normal(0, noise.scale, (count + 2) // 3)
    return np.rint(np.repeat(drawn, 3)[:count]).astype(np.int64)


def no_noise(self, noise, count):
    return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize("draw", [uniform_noise, constant_noise, repeating_noise, no_noise])
def test_mutants_with_noise_of_another_law(monkeypatch, draw):
    monkeypatch.setattr(mechanisms.Mechanisms, "_draw", draw)
    with pytest.raises(Violation, match="noise"):
        check_method(Independent(), count=8 * len(KINDS))


class Peeking(Independent):
    """Reads something exact from the vault behind the curator's back; `peek` says what."""

    def run(self, curator, progress) -> Model:
        model = super().run(curator, progress)
        return self.peek(curator, model)


def exact_rows(curator):
    return int(next(iter(curator._engine.count([total_query(curator.domain)]))).opened().sum())


class ExactTotal(Peeking):
    @staticmethod
    def peek(curator, model):
        model = getattr(model, "model", model)
        return Histograms(model.domain, model.parts, float(exact_rows(curator)))


def test_a_mutant_that_shows_the_exact_total_is_caught():
    with pytest.raises(Violation):
        check_method(ExactTotal(), count=4 * len(KINDS))


def test_replay_attains_the_sensitivity_it_declares():
    """The person with the most rows, all in one cell, moves a count by exactly θ: the bound is tight."""
    found = [replay_pair(Independent(), BUDGETS[0], pair).ratios[-1] for pair in pairs(len(KINDS))]
    assert max(found) == pytest.approx(1.0)
    assert all(ratio <= 1 + 1e-9 for ratio in found)


@pytest.mark.parametrize(("factor", "caught"), [(1.0, False), (0.67, True), (1.5, True)])
def test_three_arms_of_the_noise_check(factor, caught):
    recorder = Recorder()
    noise = Noise("gaussian", 20.0)
    for _ in range(10):
        recorder.noisy_counts(Exact(np.zeros(1000, dtype=np.int64)), 1000, noise)
    calls = [
        type(call)((*call.asked[:2], Noise("gaussian", 20.0 * factor)), call.exact, call.answer)
        for call in recorder.calls
    ]
    if caught:
        with pytest.raises(Violation):
            check_drawn_noise(calls)
    else:
        check_drawn_noise(calls)


def test_a_model_that_cannot_be_saved_is_caught():
    class Forgetful(Histograms):
        def state(self):
            flat = [Part(part.marginal, np.ones(len(part.weights)), part.cells) for part in self.parts]
            return Histograms(self.domain, flat, self.total).state()

    class Losing(Independent):
        def run(self, curator, progress) -> Model:
            model = super().run(curator, progress)
            inner = getattr(model, "model", model)
            return Forgetful(inner.domain, inner.parts, inner.total)

    with pytest.raises(Violation):
        check_method(Losing())


def test_half_of_the_noise_is_noticed_in_what_survives_a_threshold():
    method = methods.build("field-groups")
    assert is_caught(method, MUTANTS["noise halved"])
    assert not is_caught(method, nullcontext)
