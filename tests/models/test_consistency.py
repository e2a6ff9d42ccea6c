"""Overlapping marginals agree afterwards, lose no rows, and have no negative counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.models.consistency import View, agree, consistent, norm_cut, norm_sub, shared_sets

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2}
SETS = [("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "d"), ("a",), ("d",), ("a", "c", "d")]


def view(marginal, seed, weight=1.0, low=-5.0):
    shape = tuple(SIZES[name] for name in marginal)
    return View(marginal, np.random.default_rng(seed).uniform(low, 20.0, shape), weight)


views = st.lists(st.sampled_from(SETS), min_size=1, max_size=5, unique=True).flatmap(
    lambda sets: st.tuples(
        st.just(sets),
        st.lists(st.floats(0.01, 10), min_size=len(sets), max_size=len(sets)),
        st.integers(0, 1000),
    )
)


def made(drawn):
    sets, weights, seed = drawn
    return [view(each, seed + index, weight) for index, (each, weight) in enumerate(zip(sets, weights, strict=True))]


def disagreement(found):
    """The largest difference of two views on what they share."""
    worst = 0.0
    for left in found:
        for right in found:
            shared = tuple(name for name in left.marginal if name in right.marginal)
            worst = max(worst, float(np.abs(left.onto(shared) - right.onto(shared)).max()))
    return worst


@given(views, st.floats(1, 1000))
def test_one_pass_makes_all_views_agree_and_sum_to_the_total(drawn, total):
    found = agree(made(drawn), total)
    assert disagreement(found) < 1e-2
    assert all(each.counts.sum() == pytest.approx(total) for each in found)


@given(views)
def test_marginals_of_one_table_are_left_alone(drawn):
    sets, weights, seed = drawn
    table = np.random.default_rng(seed).random(tuple(SIZES.values())) * 10
    whole = View(tuple(SIZES), table)
    found = [View(each, whole.onto(each), weight) for each, weight in zip(sets, weights, strict=True)]
    for before, after in zip(found, consistent(found, float(table.sum())), strict=True):
        np.testing.assert_allclose(after.counts, before.counts, atol=1e-6)


@given(views)
def test_consistent_views_have_no_negative_cell(drawn):
    for each in consistent(made(drawn), 50.0):
        assert each.counts.min() >= 0
        assert each.counts.sum() == pytest.approx(50.0)


def test_the_average_weighs_by_precision():
    """Two cells stand above each cell of a: (10, 30) at precision 1 meets (20, 20) at 3/2, by hand."""
    single = View(("a",), np.array([10.0, 30.0]), 1.0)
    pair = View(("a", "d"), np.array([[10.0, 10.0], [15.0, 5.0]]), 3.0)
    one, two = agree([single, pair], 40.0)
    np.testing.assert_allclose(one.counts, [16.0, 24.0])
    np.testing.assert_allclose(two.counts, [[8.0, 8.0], [17.0, 7.0]])


def test_averaging_views_of_the_same_counts_takes_noise_away():
    rng = np.random.default_rng(0)
    truth = np.full(4, 100.0)
    errors = {1: [], 6: []}
    for _ in range(200):
        found = [View(("c", f"x{index}"), rng.normal(50.0, 5.0, (4, 2))) for index in range(6)]
        for count, kept in errors.items():
            kept.append(np.abs(agree(found[:count], 400.0)[0].onto(("c",)) - truth).mean())
    assert np.mean(errors[6]) < 0.6 * np.mean(errors[1])


def test_shared_sets_are_closed_under_intersection_and_smaller_ones_come_first():
    found = shared_sets([("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d")])
    assert [set(each) for each in found[:1]] == [{"c"}]
    assert {frozenset(each) for each in found} == {frozenset("c"), frozenset("bc"), frozenset("ac"), frozenset("cd")}
    assert [len(each) for each in found] == sorted(len(each) for each in found)


counts = st.lists(st.floats(-100, 100), min_size=1, max_size=12).map(np.array).filter(lambda c: c.sum() > 1)


@given(counts)
@pytest.mark.parametrize("clean", [norm_sub, norm_cut])
def test_non_negativity_keeps_the_total(clean, counts):
    found = clean(counts)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(counts.sum())
    np.testing.assert_allclose(clean(np.abs(counts)), np.abs(counts), atol=1e-9)


@given(counts)
def test_norm_sub_is_the_repeated_subtraction(counts):
    """Cut negatives, let the rest pay equally, again."""
    by_hand, total = counts.copy(), counts.sum()
    for _ in range(100):
        by_hand = np.maximum(by_hand, 0)
        positive = by_hand > 0
        by_hand[positive] -= (by_hand.sum() - total) / positive.sum()
    np.testing.assert_allclose(norm_sub(counts), np.maximum(by_hand, 0), atol=1e-6)


def test_norm_cut_by_hand():
    """−5 is paid by 1, 3 and one of 10; 20 keeps all it has."""
    np.testing.assert_allclose(norm_cut(np.array([20.0, -5.0, 3.0, 10.0, 1.0])), [20, 0, 0, 9, 0])


@given(counts)
def test_norm_cut_takes_from_the_smallest_first(counts):
    found = norm_cut(counts)
    touched = (found < counts) & (counts > 0)
    whole = (found == counts) & (counts > 0)
    if touched.any() and whole.any():
        assert counts[touched].max() <= counts[whole].min() + 1e-9
    assert ((found > 0) & touched).sum() <= 1 + (counts[touched] < 1e-9).sum()


@pytest.mark.parametrize("clean", [norm_sub, norm_cut])
def test_nothing_but_negatives_becomes_nothing(clean):
    assert not clean(np.array([-1.0, -2.0])).any()
