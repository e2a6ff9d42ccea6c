"""Rows follow the model as closely as whole rows can; what is independent in the model stays independent in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.models import load
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import block_rng
from models_by_hand import joint, models


def counts(domain, rows, marginal):
    if not marginal:
        return np.array(float(len(rows[domain.names[0]])))
    table = np.zeros(domain.shape(marginal))
    np.add.at(table, tuple(rows[name] for name in marginal), 1)
    return table


@given(models(), st.integers(0, 3000), st.integers(0, 2**32 - 1))
def test_rows_fit_the_domain_and_depend_on_the_rng_alone(model, rows, seed):
    first = model.draw(rows, np.random.default_rng(seed))
    second = model.draw(rows, np.random.default_rng(seed))
    for attribute in model.domain:
        codes = first[attribute.name]
        assert codes.dtype == attribute.dtype
        assert len(codes) == rows
        assert (codes < attribute.size).all()
        assert (codes == second[attribute.name]).all()


def test_another_rng_draws_other_rows():
    model = GraphicalModel.uniform(Domain.of({"a": 100, "b": 100}), 1)
    first, second = (model.draw(1000, np.random.default_rng(seed)) for seed in (0, 1))
    assert (first["a"] != second["a"]).any()


@given(models(), st.integers(1, 20_000), st.integers(0, 2**32 - 1))
def test_counts_along_an_elimination_are_rounded_expectations(model, rows, seed):
    """Given the drawn neighbours, every value's count is its expectation rounded up or down."""
    domain = model.domain
    drawn = model.draw(rows, np.random.default_rng(seed))
    for bucket in model.plan.buckets:
        scope, given_names = model.plan.layout.marginal(bucket.scope), model.plan.layout.marginal(bucket.message)
        axis = scope.index(model.plan.layout.names[bucket.attribute])
        exact = model.marginal(scope)
        weight = exact.sum(axis=axis, keepdims=True)
        conditional = np.divide(exact, weight, out=np.zeros_like(exact), where=weight > 0)
        parents = np.expand_dims(counts(domain, drawn, given_names), axis)
        assert (np.abs(counts(domain, drawn, scope) - parents * conditional) < 1 + 1e-6)[
            np.broadcast_to(weight > 1e-12 * model.total, exact.shape)
        ].all()


@pytest.mark.parametrize("method", ["draw", "draw_independent"])
@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_rows_have_the_models_distribution(method, model, seed):
    """Each cell of the whole joint within six standard deviations and a half (false alarms below 1e-9 a cell)."""
    rows = 20_000
    expected = joint(model) / model.total * rows
    drawn = getattr(model, method)(rows, np.random.default_rng(seed))
    found = counts(model.domain, drawn, model.domain.names)
    assert (np.abs(found - expected) <= 6.5 * np.sqrt(expected) + 14).all()


@pytest.mark.parametrize("method", ["draw", "draw_independent"])
def test_conditionally_independent_columns_stay_so(method):
    """b and c depend on a alone. A sampler that fills groups in order would make them perfectly correlated."""
    domain = Domain.of({"a": 3, "b": 10, "c": 10})
    structure = plan(domain, [("a", "b"), ("a", "c")])
    rng = np.random.default_rng(0)
    model = GraphicalModel(structure, rng.normal(size=structure.leaf_cells), 1.0)
    drawn = getattr(model, method)(90_000, np.random.default_rng(1))
    for value in range(3):
        group = drawn["a"] == value
        correlation = np.corrcoef(drawn["b"][group].astype(float), drawn["c"][group].astype(float))[0, 1]
        assert abs(correlation) < 6 / np.sqrt(group.sum())


def test_columns_that_share_no_clique_are_closer_than_chance():
    """b and c are spread over each other's values, given a, more evenly than drawing row by row would."""
    domain = Domain.of({"a": 3, "b": 10, "c": 10})
    structure = plan(domain, [("a", "b"), ("a", "c")])
    model = GraphicalModel(structure, np.random.default_rng(0).normal(size=structure.leaf_cells), 1.0)
    for rows in (5_000, 50_000, 200_000):  # one slice of rows, and several
        expected = rows * model.marginal(("a", "b", "c"))
        errors = {
            method: np.abs(
                counts(domain, getattr(model, method)(rows, np.random.default_rng(1)), domain.names) - expected
            ).mean()
            for method in ("draw", "draw_independent")
        }
        assert errors["draw"] < 0.5 * errors["draw_independent"]


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 12])
def test_every_row_is_as_likely_as_any_other(rows):
    """In the smallest groups too: each row's value, over many draws, has the model's distribution."""
    domain = Domain.of({"a": 2, "b": 3})
    potentials = np.log([0.2, 0.8, 0.5, 0.3, 0.2])
    model = GraphicalModel(plan(domain, [("a",), ("b",)]), potentials, 1.0)
    rng, draws = np.random.default_rng(5), 20_000
    found = np.zeros((rows, 2, 3))
    for _ in range(draws):
        drawn = model.draw(rows, rng)
        found[np.arange(rows), drawn["a"], drawn["b"]] += 1
    expected = model.marginal(("a", "b")) * draws
    assert (np.abs(found - expected) < 6.5 * np.sqrt(expected)).all()


def test_rows_come_in_random_order():
    """Neighbouring rows have nothing to do with each other, in any column."""
    domain = Domain.of({"a": 50, "b": 50})
    structure = plan(domain, [("a", "b")])
    model = GraphicalModel(structure, np.random.default_rng(0).normal(size=2500), 1.0)
    drawn = model.draw(60_000, np.random.default_rng(1))
    for column in drawn.values():
        codes = column.astype(float)
        assert abs(np.corrcoef(codes[1:], codes[:-1])[0, 1]) < 6 / np.sqrt(len(codes))


def test_rounding_is_closer_than_chance():
    domain = Domain.of({"a": 20, "b": 20})
    structure = plan(domain, [("a", "b")])
    model = GraphicalModel(structure, np.random.default_rng(0).normal(size=400), 1.0)
    rows = 100_000
    errors = {
        method: np.abs(
            counts(domain, getattr(model, method)(rows, np.random.default_rng(1)), ("a", "b"))
            - rows * model.marginal(("a", "b"))
        )
        for method in ("draw", "draw_independent")
    }
    assert errors["draw"].max() < 3
    assert errors["draw"].mean() < 0.2 * errors["draw_independent"].mean()


def test_sparse_groups_give_the_same_law():
    """More cells of neighbours than rows take the sorting path; the conditional law is the same."""
    domain = Domain.of({"a": 300, "b": 300, "c": 4})
    structure = plan(domain, [("a", "c"), ("b", "c"), ("a", "b")], order=["c", "a", "b"])
    rng = np.random.default_rng(0)
    model = GraphicalModel(structure, rng.normal(size=structure.leaf_cells), 1.0)
    assert structure.layout.cells(structure.buckets[0].message) == 90_000
    rows = 20_000  # 2 · rows < 90,000 cells
    drawn = model.draw(rows, np.random.default_rng(1))
    expected = rows * model.marginal(("c",))
    assert (np.abs(counts(domain, drawn, ("c",)) - expected) < 6 * np.sqrt(expected)).all()
    pair = rows * model.marginal(("a", "c"))
    assert (np.abs(counts(domain, drawn, ("a", "c")) - pair) <= 7 * np.sqrt(pair) + 14).all()


def test_extreme_models_can_be_drawn_from():
    """Potentials that only logarithms can hold: a is 1 with weight e, b and c are free."""
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    structure = plan(domain, [("a", "b"), ("a", "c")])
    first = np.array([[700.0, 700.0], [-700.0, -700.0]])
    potentials = np.concatenate([first.ravel(), (-first + np.array([[0.0, 0.0], [1.0, 1.0]])).ravel()])
    drawn = GraphicalModel(structure, potentials, 1.0).draw(10_000, np.random.default_rng(0))
    assert abs(drawn["a"].sum() - 10_000 * np.e / (1 + np.e)) <= 1
    assert abs(int(drawn["b"].sum()) - 5000) <= 2


def test_no_rows():
    model = GraphicalModel.uniform(Domain.of({"a": 2}), 1)
    assert len(model.draw(0, np.random.default_rng(0))["a"]) == 0


def test_a_block_depends_on_the_release_the_seed_and_its_number_alone():
    """Any worker may draw any block, in any order, from a copy of the release."""
    domain = Domain.of({"a": 9, "b": 9, "c": 9})
    structure = plan(domain, [("a", "b"), ("b", "c"), ("a", "c")])
    model = GraphicalModel(structure, np.random.default_rng(0).normal(size=structure.leaf_cells), 1.0)
    places = [(seed, block) for seed in (0, 1) for block in (0, 1, 2)]
    drawn = {place: model.draw(500, block_rng(*place)) for place in places}
    again = load(domain, model.state())
    for place in reversed(places):
        rows = again.draw(500, block_rng(*place))
        assert all((rows[name] == drawn[place][name]).all() for name in domain.names)
    assert len({np.stack(list(rows.values())).tobytes() for rows in drawn.values()}) == len(places)
