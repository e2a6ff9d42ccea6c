"""Plans and sizes, before anything is allocated."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from hedgerow.coded.domain import Domain
from hedgerow.models.graphical.junction import bounds_with, maximal, plan, size, sizes_with
from models_by_hand import structures


def test_a_chain_is_its_own_junction_tree():
    domain = Domain.of({"a": 2, "b": 3, "c": 5})
    assert size(domain, [("a", "b"), ("b", "c")]) == 8 * (2 * 3 + 3 * 5)


def test_a_square_needs_one_diagonal():
    domain = Domain.of({"a": 2, "b": 10, "c": 2, "d": 10})
    cycle = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    assert size(domain, cycle) == 8 * (2 * 10 * 2) * 2  # through a and c, not through b and d


def test_unmeasured_attributes_count_alone():
    assert size(Domain.of({"a": 2, "b": 7}), []) == 8 * (2 + 7)


def test_maximal_cliques_keep_their_order():
    assert maximal([("a",), ("b", "c"), ("c", "b"), ("a", "b"), ()]) == [("b", "c"), ("a", "b")]


@given(structures())
def test_every_attribute_is_eliminated_once_and_every_clique_lies_in_a_scope(structure):
    domain, cliques = structure
    made = plan(domain, cliques)
    assert sorted(made.order) == sorted(domain.names)
    scopes = [set(made.layout.marginal(bucket.scope)) for bucket in made.buckets]
    assert all(any(set(clique) <= scope for scope in scopes) for clique in cliques)
    used = [number for bucket in made.buckets for number in bucket.inputs]
    used += [number for join in made.joins for number in join.leaves]
    assert sorted(used) == [n for n, axes in enumerate(made.tables) if axes], "each table is multiplied exactly once"


@given(structures())
def test_scopes_form_a_tree_with_running_intersection(structure):
    """What a bucket sends on lies inside the scope that receives it, and size counts the maximal scopes."""
    domain, cliques = structure
    made = plan(domain, cliques)
    for number, bucket in enumerate(made.buckets):
        table = len(made.leaves) + number
        receivers = [later for later in made.buckets if table in later.inputs]
        assert len(receivers) == (1 if bucket.message else 0)
        assert all(set(bucket.message) <= set(receiver.scope) for receiver in receivers)
    distinct = {frozenset(bucket.scope) for bucket in made.buckets}
    widest = [scope for scope in distinct if not any(scope < other for other in distinct)]
    assert made.work >= sum(map(made.layout.cells, widest))
    assert size(domain, cliques) >= 8 * max((domain.cells(clique) for clique in cliques), default=0)


@given(structures())
def test_a_bound_with_a_pair_is_no_less_than_the_best_elimination(structure):
    domain, cliques = structure
    pairs = list(domain.marginals(2))[:3]
    for pair, bound in zip(pairs, bounds_with(plan(domain, cliques), pairs), strict=True):
        best = min(cells_of(plan(domain, [*cliques, pair], order)) for order in itertools.permutations(domain.names))
        assert 8 * best <= bound


def cells_of(made):
    """Of the scopes that lie in no other."""
    scopes = {frozenset(bucket.scope) for bucket in made.buckets}
    return sum(made.layout.cells(scope) for scope in scopes if not any(scope < other for other in scopes))


def test_a_bound_with_a_pair_carries_the_attribute_that_takes_less_room():
    domain = Domain.of({"a": 2, "b": 3, "c": 5, "d": 7, "e": 11})
    made = plan(domain, [("a", "b"), ("b", "c"), ("c", "d")])
    chain = 2 * 3 + 3 * 5 + 5 * 7 + 11
    assert bounds_with(made, [("a", "b"), ("a", "e")]).tolist() == [8 * chain, 8 * (chain + 22)]
    # a is carried to b × c and c × d, and not d to b × c and a × b
    assert 8 * (chain + 15 + 35) <= bounds_with(made, [("a", "d")])[0] < 8 * (chain + 6 * 15 + 6 * 6)


@given(structures())
def test_sizes_with_candidates_are_sizes_of_the_larger_sets(structure):
    domain, cliques = structure
    candidates = list(domain.marginals(min(2, len(domain))))
    together = sizes_with(domain, cliques, candidates)
    assert together.tolist() == pytest.approx([size(domain, [*cliques, candidate]) for candidate in candidates])


def test_bytes_are_those_of_the_allocated_tables():
    domain = Domain.of({"a": 2, "b": 3, "c": 5})
    made = plan(domain, [("a", "b"), ("b", "c")])
    assert made.leaf_cells == 6 + 15
    messages = sum(domain.cells(made.layout.marginal(bucket.message)) for bucket in made.buckets)
    assert made.bytes == 8 * (3 * 21 + 2 * messages)


def test_joins_are_narrow_products_of_leaves_of_one_bucket():
    domain = Domain.of(dict.fromkeys("abcdef", 4))
    made = plan(domain, list(domain.marginals(3)))
    joined = [leaf for join in made.joins for leaf in join.leaves]
    assert joined
    assert len(set(joined)) == len(joined)
    for number, join in enumerate(made.joins, start=len(made.leaves) + len(made.buckets)):
        [bucket] = [bucket for bucket in made.buckets if number in bucket.inputs]
        assert set(join.axes) == {axis for leaf in join.leaves for axis in made.leaves[leaf]} <= set(bucket.scope)
        assert 8 * made.layout.cells(join.axes) <= made.layout.cells(bucket.scope)


def test_a_given_order_is_kept():
    domain = Domain.of({"a": 2, "b": 3, "c": 5})
    assert plan(domain, [("a", "b"), ("b", "c")], ["b", "a", "c"]).order == ("b", "a", "c")


def test_sizes_of_huge_sets_do_not_overflow():
    domain = Domain.of({f"x{i}": 1000 for i in range(40)})
    assert np.isfinite(sizes_with(domain, list(domain.marginals(2)), [("x0", "x1")])).all()
    assert size(domain, list(domain.marginals(2))) == pytest.approx(8 * 1000.0**40)
