"""Fitting: exact answers are reproduced, noisy ones are met as well as any distribution can, and the end is certain."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery, TreeQuery, total_query
from hedgerow.models.graphical import estimation, mirror, proximal
from hedgerow.models.graphical.estimation import fit, loss
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.graphical.terms import Terms, inner
from hedgerow.progress import Limits, Progress
from models_by_hand import joint, marginal_of, measured, models, structures
from refusals import refused


def noisy(domain, table, marginals, std, seed):
    rng = np.random.default_rng(seed)
    answers = [marginal_of(table, domain, marginal) for marginal in marginals]
    return [
        measured(domain, marginal, np.rint(answer + rng.normal(0, std, answer.shape)).astype(np.int64), std)
        for marginal, answer in zip(marginals, answers, strict=True)
    ]


def random_table(domain, rows, seed, concentration=0.3):
    rng = np.random.default_rng(seed)
    shape = domain.shape(domain.names)
    shares = rng.dirichlet(np.full(math.prod(shape), concentration))
    return rng.multinomial(rows, shares).reshape(shape).astype(float)


@given(models(spread=1.0))
def test_exact_measurements_on_a_decomposable_set_are_reproduced(model):
    """The scopes of an elimination are decomposable; the joint's own counts on them are met."""
    domain = model.domain
    table = 1e6 * joint(model) / model.total
    scopes = [model.plan.layout.marginal(bucket.scope) for bucket in model.plan.buckets]
    measurements = [
        Measurement(MarginalQuery(domain, scope), marginal_of(table, domain, scope).reshape(-1), Noise("gaussian", 1.0))
        for scope in scopes
    ]
    fitted = fit(domain, measurements)
    for scope in scopes:
        np.testing.assert_allclose(fitted.marginal(scope), marginal_of(table, domain, scope), atol=1.0)


@given(structures(most_cells=100), st.sampled_from([500.0, 15.0, 0.7]), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_the_loss_is_the_least_of_all_distributions(structure, std, seed):
    """Against a solver that knows nothing of graphical models: least squares over the dense joint."""
    from scipy.optimize import minimize

    domain, cliques = structure
    table = random_table(domain, 2000, seed)
    measurements = noisy(domain, table, cliques, std, seed)
    fitted = fit(domain, measurements, total=2000.0)
    shape = domain.shape(domain.names)

    def objective(weights):
        shares = np.exp(weights - weights.max())
        shares /= shares.sum()
        counts = 2000.0 * shares.reshape(shape)
        value, gradient = 0.0, np.zeros(shape)
        for measurement in measurements:
            marginal = measurement.query.attributes
            residual = marginal_of(counts, domain, marginal) - measurement.values.reshape(domain.shape(marginal))
            value += 0.5 * (residual**2).sum() / measurement.std**2
            lifted = [domain[name].size if name in marginal else 1 for name in domain.names]
            gradient = gradient + residual.reshape(lifted) / measurement.std**2
        flat = gradient.reshape(-1)
        return value, 2000.0 * shares * (flat - shares @ flat)

    best = minimize(objective, np.zeros(math.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": 500}).fun
    cells = sum(measurement.query.cells for measurement in measurements)
    assert loss(fitted, measurements) <= best + 3e-4 * max(best, 0.01 * cells) + 1e-6


@pytest.mark.parametrize("std", [500.0, 15.0, 0.7])
def test_less_noise_means_less_error(std):
    """From σ = 500 down to below 1 the fit gets closer to the truth, not further: no schedule that runs out."""
    domain = Domain.of({"a": 8, "b": 6, "c": 7, "d": 5})
    table = random_table(domain, 50_000, 1)
    cliques = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    fitted = fit(domain, noisy(domain, table, cliques, std, 2))
    errors = [np.abs(fitted.marginal(c) - marginal_of(table, domain, c)).mean() for c in cliques]
    assert max(errors) < std


def test_aggregated_and_nested_measurements_are_met():
    domain = Domain.of({"a": 4, "b": 3, "c": 5})
    table = random_table(domain, 10_000, 3)
    ab, bc = marginal_of(table, domain, ("a", "b")), marginal_of(table, domain, ("b", "c"))
    levels = {"a": [0, 0, 1, 1]}
    blocks = [0, 1, 1, -1, 2, 2]
    coarse = MarginalQuery(domain, ("a", "b"), levels=levels, blocks=blocks)
    measurements = [
        measured(domain, ("a", "b"), coarse.aggregate(ab), levels=levels, blocks=blocks),
        measured(domain, ("b", "c"), bc),
        measured(domain, ("b",), ab.sum(axis=0)),
        measured(domain, ("b",), ab.sum(axis=0)),
        measured(domain, (), [10_000]),
    ]
    fitted = fit(domain, measurements)
    assert fitted.total == pytest.approx(10_000)
    assert loss(fitted, measurements) < 0.01
    np.testing.assert_allclose(coarse.aggregate(fitted.marginal(("a", "b"))), coarse.aggregate(ab), atol=0.1)
    inside = fitted.marginal(("a", "b"))
    np.testing.assert_allclose(inside[0], inside[1], rtol=1e-6)  # what was not told apart is told evenly


def test_only_an_aggregate_measured():
    domain = Domain.of({"a": 4, "b": 3})
    fitted = fit(domain, [measured(domain, ("a",), [30, 70], levels={"a": [0, 0, 0, 1]})])
    np.testing.assert_allclose(fitted.marginal(("a",)), [10, 10, 10, 70], atol=1e-2)


def test_repeated_measurements_count_by_their_precision():
    domain = Domain.of({"a": 2})
    fitted = fit(
        domain, [measured(domain, ("a",), [60, 40], 1.0), measured(domain, ("a",), [40, 60], 2.0)], total=100.0
    )
    np.testing.assert_allclose(fitted.marginal(("a",)), [56, 44], atol=0.05)  # (4·60 + 40) / 5


def test_the_total_is_the_inverse_variance_average_of_complete_measurements():
    domain = Domain.of({"a": 2, "b": 4})
    complete = [measured(domain, ("a",), [50, 50], 1.0), measured(domain, ("b",), [30, 30, 30, 30], 1.0)]
    partial = measured(domain, ("b",), [1000], blocks=[0, 0, 0, -1])
    assert fit(domain, [*complete, partial]).total == pytest.approx((100 / 2 + 120 / 4) / (1 / 2 + 1 / 4))
    assert fit(domain, [partial]).total == 1
    assert fit(domain, [measured(domain, ("a",), [-50, -50])]).total == 1


def test_nothing_measured_is_uniform():
    domain = Domain.of({"a": 2, "b": 3})
    np.testing.assert_allclose(fit(domain, [], total=6.0).marginal(("a", "b")), np.ones((2, 3)))
    assert fit(domain, [measured(domain, (), [12])]).total == 12


def test_one_cell_attributes_and_separate_parts():
    domain = Domain.of({"a": 1, "b": 3, "c": 1, "d": 2})
    measurements = [measured(domain, ("a", "b"), [10, 20, 70]), measured(domain, ("c", "d"), [40, 60])]
    fitted = fit(domain, measurements)
    np.testing.assert_allclose(fitted.marginal(("b", "d")), np.outer([10, 20, 70], [0.4, 0.6]), atol=1e-2)


def test_structural_zeros_are_exact():
    domain = Domain.of({"a": 3, "b": 3, "c": 2})
    possible = np.array([[True, False, True], [True, True, False], [False, True, True]])
    noise = [measured(domain, ("a", "b"), np.full(9, 100), 10.0), measured(domain, ("b", "c"), np.full(6, 150), 10.0)]
    fitted = fit(Domain(domain, {("a", "b"): possible}), noise)
    table = fitted.marginal(("a", "b"))
    assert (table[~possible] == 0).all()
    assert (table[possible] > 0).all()
    rows = fitted.draw(5000, np.random.default_rng(0))
    assert possible[rows["a"], rows["b"]].all()
    with refused("nothing-possible"):
        fit(Domain(domain, {("a", "b"): np.zeros((3, 3), dtype=bool)}), noise)


def test_the_start_shortens_the_search_and_changes_nothing_else():
    domain = Domain.of({"a": 8, "b": 6, "c": 7, "d": 5})
    measurements = noisy(domain, random_table(domain, 50_000, 1, 0.02), [*itertools.combinations("abcd", 2)], 2.0, 2)
    before = fit(domain, measurements[:-1])
    warm, cold = fit(domain, measurements, start=before), fit(domain, measurements)
    assert loss(warm, measurements) == pytest.approx(loss(cold, measurements), rel=3e-4)
    rough_warm, rough_cold = (
        loss(fit(domain, measurements, start=start, most_calls=10), measurements) for start in (before, None)
    )
    assert rough_warm < 0.5 * rough_cold


@pytest.mark.parametrize("std", [500.0, 15.0, 0.5])
def test_rough_fits_one_after_the_other_end_where_one_long_fit_does(std):
    """As an adaptive method fits: one marginal more each time, few calls each, and a table that is mostly empty."""
    domain = Domain.of({"a": 8, "b": 6, "c": 7, "d": 5, "e": 4})
    cliques = [*itertools.combinations("abcde", 2), ("a", "b", "c"), ("c", "d", "e")]
    measurements = noisy(domain, random_table(domain, 50_000, 1, 0.02), cliques, std, 2)
    model = None
    for count in range(1, len(measurements)):
        model = fit(domain, measurements[:count], total=50_000.0, start=model, most_calls=10)
        assert np.isfinite(model.potentials).all()
        assert np.isfinite(model.marginal(cliques[count])).all()
    last = fit(domain, measurements, total=50_000.0, start=model)
    alone = fit(domain, measurements, total=50_000.0)
    assert loss(last, measurements) == pytest.approx(loss(alone, measurements), rel=1e-3, abs=0.5)


def test_a_start_with_other_cliques_is_used_as_far_as_it_fits():
    domain = Domain.of({"a": 3, "b": 3, "c": 3})
    start = fit(domain, [measured(domain, ("a", "c"), np.arange(9) * 10)])
    measurements = [measured(domain, ("a", "b"), np.arange(9) * 10)]
    assert loss(fit(domain, measurements, start=start), measurements) < 0.01


def test_a_model_that_does_not_fit_is_refused_with_its_size():
    domain = Domain.of(dict.fromkeys("abcdef", 100))
    pairs = [measured(domain, pair, np.zeros(10_000)) for pair in itertools.combinations("abcdef", 2)]
    with refused("model-too-large", "4,000,000,000"):
        fit(domain, pairs, limits=Limits(memory=4_000_000_000))


def test_trees_are_refused():
    domain = Domain.of({"a": 2})
    query = TreeQuery(domain, ("a",), [0, -1, -1], [1, 0, 1])
    with refused("not-a-marginal-query", "TreeQuery"):
        fit(domain, [Measurement(query, np.array([1, 2]), Noise("gaussian", 1.0))])


def test_out_of_time_returns_the_best_so_far():
    class Hurry(Progress):
        def out_of_time(self):
            return True

    domain = Domain.of({"a": 3, "b": 3})
    measurements = [measured(domain, ("a", "b"), np.arange(9) * 100)]
    fitted = fit(domain, measurements, progress=Hurry())
    assert loss(fitted, measurements) < loss(GraphicalModel.uniform(domain, fitted.total), measurements)


def test_fewer_calls_give_a_rougher_model_of_the_same_kind():
    domain = Domain.of({"a": 8, "b": 6, "c": 7})
    measurements = noisy(domain, random_table(domain, 50_000, 1), [("a", "b"), ("b", "c"), ("a", "c")], 15.0, 2)
    rough, full = (loss(fit(domain, measurements, most_calls=calls), measurements) for calls in (10, 1000))
    untouched = loss(GraphicalModel.uniform(domain, 50_000), measurements)
    assert full < rough < untouched


def test_mirror_descent_reaches_the_same_loss(monkeypatch):
    """The fallback alone, from scratch, on a small problem."""
    domain = Domain.of({"a": 4, "b": 3, "c": 4})
    table = random_table(domain, 500, 5)
    measurements = noisy(domain, table, [("a", "b"), ("b", "c"), ("a", "c")], 10.0, 6)
    expected = loss(fit(domain, measurements, total=500.0), measurements)

    def stuck(oracle, start, *others):
        oracle(start)
        return False

    monkeypatch.setattr(proximal, "minimise", stuck)
    monkeypatch.setattr(estimation, "TOLERANCE", 1e-6)
    alone = loss(fit(domain, measurements, total=500.0), measurements)
    assert alone == pytest.approx(expected, rel=1e-3)
    assert mirror.WINDOW > 1


@given(structures(), st.integers(0, 2**32 - 1))
def test_projection_is_onto_what_distributions_can_answer(structure, seed):
    """Idempotent, orthogonal, and the identity on the answers of a model."""
    domain, cliques = structure
    rng = np.random.default_rng(seed)
    measurements = [
        measured(domain, clique, rng.integers(0, 100, domain.cells(clique)), std=rng.uniform(1, 5))
        for clique in cliques
    ]
    made = plan(domain, cliques)
    terms = Terms(made, measurements)
    vector = rng.normal(size=len(terms))
    once = terms.projected(vector)
    np.testing.assert_allclose(terms.projected(once), once, atol=1e-9)
    assert abs(inner(once, vector - once)) < 1e-9 * max(1, len(terms))
    marginals = np.empty(made.leaf_cells)
    made.network().calibrate(rng.normal(size=made.leaf_cells), marginals)
    answers = terms.answers(100 * marginals)
    np.testing.assert_allclose(terms.projected(answers), answers, atol=1e-9 * 100)


@given(structures(), st.integers(0, 2**32 - 1))
def test_potentials_are_the_adjoint_of_answers(structure, seed):
    domain, cliques = structure
    rng = np.random.default_rng(seed)
    measurements = [
        measured(domain, clique, rng.integers(0, 9, domain.cells(clique)), std=rng.uniform(1, 5)) for clique in cliques
    ]
    coarse = [
        measured(domain, clique, [1, 2], blocks=np.r_[0, 1, rng.integers(-1, 2, domain.cells(clique) - 2)])
        for clique in cliques
        if domain.cells(clique) > 1
    ]
    made = plan(domain, cliques)
    terms = Terms(made, [*measurements, *coarse])
    multipliers, marginals = rng.normal(size=len(terms)), rng.normal(size=made.leaf_cells)
    lifted = terms.potentials(np.zeros(made.leaf_cells), multipliers, -1.0)
    assert inner(lifted, marginals) == pytest.approx(inner(multipliers, terms.answers(marginals)), abs=1e-9)


def test_total_alone_needs_no_clique():
    domain = Domain.of({"a": 2})
    measurement = Measurement(total_query(domain), np.array([7]), Noise("gaussian", 1.0))
    assert fit(domain, [measurement]).marginal(("a",)).tolist() == [3.5, 3.5]
