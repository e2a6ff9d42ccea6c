"""Rows that are evened: columns stay, marginals come nearer to the model, what is known of a pair is in its triple."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.models import evened as evening
from hedgerow.models.evened import Evened, evened, raked
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import State
from hedgerow.models.records import Adjusted, Target, shares_of
from hedgerow.models.stored import Stored
from models_by_hand import models
from refusals import refused


def rng():
    return np.random.default_rng(7)


def distance(model, rows, marginals):
    goals = [model.marginal(marginal) / model.total for marginal in marginals]
    return sum(
        np.abs(shares_of(rows, model.domain, each) - goal).sum() for each, goal in zip(marginals, goals, strict=True)
    )


@given(models(spread=1.0), st.integers(1, 400))
@settings(max_examples=25)
def test_columns_stay_and_marginals_come_nearer(model, rows):
    marginals = list(combinations(model.domain.names, min(2, len(model.domain))))
    plain, even = model.draw(rows, rng()), Evened(model, marginals).draw(rows, rng())
    for name in model.domain.names:
        assert np.array_equal(np.sort(plain[name]), np.sort(even[name]))
        assert even[name].dtype == plain[name].dtype
    assert distance(model, even, marginals) <= distance(model, plain, marginals) + 1e-6


def test_triples_of_a_model_without_cliques_are_nearly_even():
    model = GraphicalModel.uniform(Domain.of(dict.fromkeys("abcdef", 2)), 1000.0)
    triples = list(combinations("abcdef", 3))
    plain, even = model.draw(1000, rng()), Evened(model, triples).draw(1000, rng())
    assert distance(model, even, triples) < 0.5 * distance(model, plain, triples)


shares = st.lists(st.floats(0.01, 1.0), min_size=12, max_size=12)


@given(shares, shares, shares)
def test_a_marginal_has_the_parts_that_are_known(whole, first, second):
    target = Target.of(("a", "b", "c"), np.reshape(whole, (2, 3, 2)))
    pair = Target.of(("a", "b"), np.reshape(first[:6], (2, 3)))
    assert raked(target, [pair]).shares.sum(axis=2) == pytest.approx(pair.shares)
    other = Target.of(("c",), np.asarray(second[:2]))
    both = raked(target, [pair, other, Target.of(("d",), np.ones(2))])
    assert both.shares.sum(axis=(0, 1)) == pytest.approx(other.shares)
    assert both.shares.sum(axis=2) == pytest.approx(pair.shares, abs=0.02)
    assert raked(target, []).shares == pytest.approx(target.shares)


def test_rows_are_evened_in_the_first_list_that_is_not_too_long():
    model = GraphicalModel.uniform(Domain.of(dict.fromkeys("abcd", 3)), 1000.0)
    triples, pairs = list(combinations("abcd", 3)), list(combinations("abcd", 2))
    assert evened(model, triples, pairs).marginals == tuple(triples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evening, "VISITS", evening.LEAST_PASSES * 1000 * 2 * len(pairs))
        assert evened(model, [*triples, ("a", "b", "c", "d")], pairs).marginals == tuple(pairs)
        patch.setattr(evening, "VISITS", 1000)
        assert evened(model, triples, pairs) is model
        assert np.array_equal(Evened(model, pairs).draw(500, rng())["a"], model.draw(500, rng())["a"])


def test_what_cannot_occur_is_not_filled_by_an_exchange():
    plain = Domain.of({"a": 2, "b": 2})
    domain = Domain(plain.attributes, {("a", "b"): np.array([[True, True], [True, False]])})
    model = GraphicalModel.uniform(domain, 100.0, [("a", "b")])
    assert evened(model, [("a", "b")]) is model


def test_a_state_that_is_evened_by_no_model_of_goals_or_in_too_much_is_refused():
    model = GraphicalModel.uniform(Domain.of(dict.fromkeys("abcd", 3)), 1000.0)
    nested = Evened(Evened(model, [("a", "b")]), [("a", "c")]).state()
    with refused("model-evened"):
        Evened.from_state(model.domain, Stored(nested))
    state = Evened(model, [("a", "b")]).state()
    many = replace(state, values={**state.values, "marginals": [["a", "b"]] * (evening.MOST_MARGINALS + 1)})
    with refused("model-evened"):
        Evened.from_state(model.domain, Stored(many))
    assert isinstance(state, State)
    again = Evened.from_state(model.domain, Stored(state))
    assert np.array_equal(again.draw(100, rng())["c"], Evened(model, [("a", "b")]).draw(100, rng())["c"])


def test_as_many_marginals_as_rows_may_be_evened_in_are_read_again():
    model = GraphicalModel.uniform(Domain.of({f"x{number}": 2 for number in range(110)}), 1000.0)
    even = evened(model, list(combinations(model.domain.names, 2)))
    assert isinstance(even, Evened)
    assert len(even.marginals) > 0.99 * evening.MOST_MARGINALS
    assert Evened.from_state(model.domain, Stored(even.state())).marginals == even.marginals


def test_pairs_beyond_the_model_are_in_the_triples_of_its_rows():
    model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 2, "c": 2}), 2000.0)
    tied = Target.of(("a", "b"), np.array([[0.5, 0.0], [0.0, 0.5]]))
    rows = Evened(Adjusted(model, [tied]), [("a", "b", "c")]).draw(2000, rng())
    assert shares_of(rows, model.domain, ("a", "b")) == pytest.approx(tied.shares, abs=0.02)
    assert shares_of(rows, model.domain, ("a", "b", "c"))[0, 0] == pytest.approx([0.25, 0.25], abs=0.02)
