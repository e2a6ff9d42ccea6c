"""The model's answers are those of the dense joint, whatever the cliques, the range of the potentials, the query."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.query import MarginalQuery
from hedgerow.models import load
from hedgerow.models.graphical import inference
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import State
from models_by_hand import joint, marginal_of, models
from refusals import refused


def subsets(domain):
    return [marginal for degree in range(len(domain) + 1) for marginal in domain.marginals(degree)]


@given(models())
def test_clique_marginals_are_those_of_the_joint(model):
    table = joint(model)
    for clique in model.cliques:
        expected = marginal_of(table, model.domain, clique)
        np.testing.assert_allclose(model.marginal(clique), expected, atol=1e-9 * model.total)


@given(models())
def test_any_marginal_is_that_of_the_joint(model):
    table = joint(model)
    for marginal in subsets(model.domain):
        expected = marginal_of(table, model.domain, marginal)
        np.testing.assert_allclose(model.marginal(marginal), expected, atol=1e-9 * model.total)


@given(st.sampled_from([3.0, 700.0]).flatmap(models))
def test_marginals_across_wide_separators_are_those_of_the_joint(model):
    """The same for queries that are not conditioned on a separator but eliminated in one go, as wide ones are."""
    table = joint(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "NEAR", 0)
        patch.setattr(inference, "SMALL", 0)
        for marginal in subsets(model.domain):
            expected = marginal_of(table, model.domain, marginal)
            np.testing.assert_allclose(model.marginal(marginal), expected, atol=1e-9 * model.total)


@given(models())
def test_marginals_agree_on_overlaps(model):
    for first, second in itertools.combinations(model.cliques, 2):
        shared = model.domain.marginal(set(first) & set(second))
        sums = [
            model.marginal(clique).sum(axis=tuple(i for i, name in enumerate(clique) if name not in shared))
            for clique in (first, second)
        ]
        np.testing.assert_allclose(sums[0], sums[1], atol=1e-9 * model.total)


@given(models(), st.data())
def test_aggregated_queries_are_aggregates_of_the_joint(model, data):
    domain = model.domain
    marginal = data.draw(st.sampled_from(subsets(domain)[1:]))
    levels = {
        name: data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
        for name, n in zip(marginal[:1], domain.shape(marginal), strict=False)
    }
    plain = MarginalQuery(domain, marginal, levels=levels)
    size = int(np.prod(plain.shape))
    blocks = data.draw(st.lists(st.integers(-1, 3), min_size=size, max_size=size).filter(lambda b: max(b) >= 0))
    queries = [plain, MarginalQuery(domain, marginal, levels=levels, blocks=blocks)]
    table = marginal_of(joint(model), domain, marginal)
    for query, answer in zip(queries, model.answers(queries), strict=True):
        np.testing.assert_allclose(answer, query.aggregate(table), atol=1e-9 * model.total)


@given(models(spread=700.0))
def test_extreme_potentials_are_right(model):
    """Thousands of nats apart: linear space alone would underflow everywhere."""
    table = joint(model)
    for marginal in subsets(model.domain):
        expected = marginal_of(table, model.domain, marginal)
        np.testing.assert_allclose(model.marginal(marginal), expected, atol=1e-9 * model.total)


@pytest.mark.parametrize("length", [3, 12])
def test_potentials_that_fight_each_other(length):
    """Every link of a ring prefers by e^700 what the next one forbids; the exact answer is known by symmetry."""
    domain = Domain.of({f"x{i:02}": 2 for i in range(length)})
    cliques = [*itertools.pairwise(domain.names), (domain.names[0], domain.names[-1])]
    structure = plan(domain, cliques)
    potentials = np.concatenate([np.array([[700.0, -700.0], [-700.0, 700.0]]).ravel() for _ in structure.leaves])
    model = GraphicalModel(structure, potentials, 1.0)
    for name in domain.names:
        np.testing.assert_allclose(model.marginal((name,)), [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(model.marginal(domain.names[:2]), [[0.5, 0], [0, 0.5]], atol=1e-12)


def test_opposed_leaves_need_logarithms():
    """Two leaves that disagree by 1,400 nats about a: what is left decides between cells of e^-1400."""
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    structure = plan(domain, [("a", "b"), ("a", "c")])
    first = np.array([[700.0, 700.0], [-700.0, -700.0]])
    potentials = np.concatenate([first.ravel(), (-first + np.array([[0.0, 0.0], [1.0, 1.0]])).ravel()])
    model = GraphicalModel(structure, potentials, 1.0)
    np.testing.assert_allclose(model.marginal(("a",)), np.array([1, np.e]) / (1 + np.e), atol=1e-12)
    np.testing.assert_allclose(model.marginal(("b", "c")), np.full((2, 2), 0.25), atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 700.0])
def test_joined_leaves_change_no_answer(spread):
    """Every pair and triple of six attributes: more leaves meet in a bucket than it multiplies one by one."""
    domain = Domain.of(dict.fromkeys("abcdef", 4))
    structure = plan(domain, [marginal for degree in (2, 3) for marginal in domain.marginals(degree)][:30])
    assert structure.joins
    potentials = np.random.default_rng(0).normal(0, spread, structure.leaf_cells)
    potentials[7] = -np.inf
    model = GraphicalModel(structure, potentials, 1000.0)
    table = joint(model)
    for marginal in [*model.cliques, ("a", "b", "c", "d"), domain.names]:
        np.testing.assert_allclose(model.marginal(marginal), marginal_of(table, domain, marginal), atol=1e-6)
    drawn = model.draw(1000, np.random.default_rng(0))
    assert table[tuple(drawn[name] for name in domain.names)].min() > 0


@given(models(), st.data())
def test_structural_zeros_stay_zero(model, data):
    """Cells with potential −∞ have no mass, in any marginal."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    potentials = np.where(rng.random(model.plan.leaf_cells) < 0.2, -np.inf, model.potentials)
    for place in model.plan.leaf_places:
        potentials[place.start] = 0.0  # the all-zero row stays possible
    zeroed = GraphicalModel(model.plan, potentials, model.total)
    table = joint(zeroed)
    for marginal in subsets(model.domain):
        answer = zeroed.marginal(marginal)
        expected = marginal_of(table, model.domain, marginal)
        np.testing.assert_allclose(answer, expected, atol=1e-9 * model.total)
        assert (answer[expected == 0] == 0).all()


def test_nothing_possible_is_an_error():
    domain = Domain.of({"a": 2})
    with refused("nothing-possible"):
        GraphicalModel(plan(domain, [("a",)]), np.full(2, -np.inf), 1.0)


def test_a_model_of_nothing_is_uniform():
    model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 5, "c": 1}), 30)
    np.testing.assert_allclose(model.marginal(("a", "b")), np.full((2, 5), 3.0))
    np.testing.assert_allclose(model.marginal(()), 30)
    np.testing.assert_allclose(model.marginal(("c",)), [30])


def test_unknown_and_misordered_attributes_are_refused():
    model = GraphicalModel.uniform(Domain.of({"age": 2, "sex": 2}), 1)
    with refused("unknown-attribute", 'Did you mean "age"'):
        model.marginal(("agee",))
    with refused("bad-marginal"):
        model.marginal(("sex", "age"))


@given(models())
def test_state_round_trip_draws_identical_rows(model):
    state = model.state()
    again = load(model.domain, State(state.kind, state.values, state.arrays))
    first = model.draw(500, np.random.default_rng(3))
    second = again.draw(500, np.random.default_rng(3))
    assert all((first[name] == second[name]).all() for name in model.domain.names)
    assert again.total == model.total


def test_a_damaged_state_is_refused():
    model = GraphicalModel.uniform(Domain.of({"a": 2, "b": 3}), 1, [("a", "b")])
    state = model.state()
    with refused("model-entry"):
        load(model.domain, State(state.kind, state.values, {"potentials": np.zeros(5)}))
    values = {**state.values, "order": ["a"]}
    with refused("model-order"):
        load(model.domain, State(state.kind, values, state.arrays))


def test_what_is_too_large_is_sampled_with_a_stated_error(monkeypatch):
    domain = Domain.of({"a": 4, "b": 4, "c": 4})
    rng = np.random.default_rng(0)
    structure = plan(domain, [("a", "b"), ("b", "c")])
    model = GraphicalModel(structure, rng.normal(size=structure.leaf_cells), 1000.0)
    exact = model.marginal(("a", "c"))
    assert model.is_exact(("a", "c"))
    monkeypatch.setattr(inference, "EXACT_WORK", 20)
    fresh = GraphicalModel(structure, model.potentials, 1000.0)
    assert not fresh.is_exact(("a", "c"))
    estimate, error = fresh.sampled(("a", "c"))
    np.testing.assert_allclose(fresh.marginal(("a", "c")), estimate)
    assert 0 < error < 10
    assert np.abs(estimate - exact).sum() < 3 * error


def test_a_table_beyond_memory_is_refused_with_its_size():
    domain = Domain.of({"a": 100, "b": 100, "c": 100})
    model = GraphicalModel(plan(domain, []), np.zeros(300), 1.0, memory=1_000_000)
    with refused("marginal-too-large", "1,000,000"):
        model.marginal(("a", "b", "c"))


def test_little_memory_changes_no_answer(monkeypatch):
    """With hardly any room to remember tables, answers are the same, only slower."""
    domain = Domain.of(dict.fromkeys("abcdefgh", 4))
    cliques = [("a", "b", "c"), ("b", "c", "d"), ("d", "e"), ("e", "f", "g"), ("g", "h"), ("a", "h")]
    structure = plan(domain, cliques)
    potentials = np.random.default_rng(1).normal(size=structure.leaf_cells)
    roomy = GraphicalModel(structure, potentials, 1.0)
    tight = GraphicalModel(structure, potentials, 1.0, memory=40_000)
    for marginal in domain.marginals(3):
        assert tight.is_exact(marginal)
        np.testing.assert_allclose(tight.marginal(marginal), roomy.marginal(marginal), atol=1e-12)
    monkeypatch.setattr(inference, "REMEMBERED", 1_000)
    forgetful = GraphicalModel(structure, potentials, 1.0)
    for marginal in domain.marginals(3):
        np.testing.assert_allclose(forgetful.marginal(marginal), roomy.marginal(marginal), atol=1e-12)


@pytest.mark.parametrize("low", [-712.0, -725.0, -740.0])
def test_a_separator_with_hardly_any_mass(low):
    """Its cell has a mass whose inverse is no number; what goes through it is nothing, not an error."""
    domain = Domain.of(dict.fromkeys("abcd", 3))
    structure = plan(domain, itertools.pairwise(domain.names))
    for leaf, axis in itertools.product(structure.leaf_places, (0, 1)):
        potentials = np.zeros(structure.leaf_cells)
        np.moveaxis(potentials[leaf].reshape(3, 3), axis, 0)[2] = low
        model = GraphicalModel(structure, potentials, 1.0)
        for pair in itertools.combinations(domain.names, 2):
            assert model.marginal(pair).sum() == pytest.approx(1.0)
