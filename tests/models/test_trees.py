"""Random trees and the rows that look up their leaves: laws, and examples worked by hand."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hedgerow.audit import check_model
from hedgerow.coded.domain import Attribute, Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import TreeQuery
from hedgerow.models import load
from hedgerow.models.forests import GOLDEN, Forest, RandomTrees, even_uniforms, look_up
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.model import State, block_rng
from hedgerow.models.trees import RandomTree, clipped_leaves, expected_leaves, grow, shrunk_leaves, told
from hedgerow.private.engines.arrow import ArrowEngine
from refusals import refused

NO_NOISE = Noise("gaussian", 1e-9)


@st.composite
def domains(draw):
    sizes = draw(st.lists(st.integers(1, 7), min_size=2, max_size=5))
    return Domain(Attribute(f"x{index}", size, size * draw(st.booleans())) for index, size in enumerate(sizes))


def paths(query):
    """Every way from the root to a leaf: the (attribute, code) pairs on it, and the leaf."""
    found = []

    def walk(node, path):
        if query.split[node] < 0:
            found.append((path, int(query.child[node])))
            return
        index = int(query.split[node])
        for code in range(query.split_sizes[index]):
            walk(int(query.child[node]) + code, [*path, (query.splits_on[index], code)])

    walk(0, [])
    return found


@given(domains(), st.integers(1, 5), st.sampled_from([0, 2, 3]), st.integers(0, 99))
def test_every_path_asks_about_different_attributes_never_the_label_and_is_as_long_as_the_height(
    domain, height, ranges, seed
):
    label = domain.names[0]
    tree = grow(domain, label, height, np.random.default_rng(seed), ranges=ranges)
    others = [a for a in domain if a.name != label and a.size > 1]
    for path, leaf in paths(tree.query):
        asked = [name for name, _ in path]
        assert len(asked) == len(set(asked)) == min(height - 1, len(others))
        assert label not in asked
        assert 0 <= leaf < tree.query.leaves
    assert set(tree.query.splits_on) == {name for path, _ in paths(tree.query) for name, _ in path}


@given(domains(), st.integers(2, 5), st.sampled_from([0, 2, 3]), st.integers(0, 99))
def test_levels_add_up_the_rows_that_pass_through_them(domain, height, ranges, seed):
    """Summing leaves over a node's children, level by level, ends at the number of rows; no child is counted twice."""
    rng = np.random.default_rng(seed)
    tree = grow(domain, domain.names[0], height, rng, ranges=ranges)
    coded = {a.name: rng.integers(0, a.size, 50).astype(a.dtype) for a in domain}
    counts = next(ArrowEngine.from_codes(domain, coded).count([tree.query])).opened().reshape(tree.query.shape)
    below = tree.query.leaves
    for first in reversed(tree.firsts):
        assert first[0] == 0
        assert (np.diff(first, append=below) >= 2).all()
        counts = np.add.reduceat(counts, first, axis=0)
        below = len(first)
    np.testing.assert_array_equal(counts[0], np.bincount(coded[domain.names[0]], minlength=counts.shape[1]))


@given(domains(), st.integers(0, 99))
def test_a_full_tree_tells_every_combination_apart(domain, seed):
    label = domain.names[-1]
    tree = grow(domain, label, len(domain), np.random.default_rng(seed))
    assert tree.query.leaves == math.prod(a.size for a in domain if a.name != label)
    assert sorted(leaf for _, leaf in paths(tree.query)) == list(range(tree.query.leaves))


@given(st.integers(2, 40), st.integers(2, 8), st.integers(0, 99))
def test_ranges_are_stretches_of_neighbouring_codes(size, ranges, seed):
    domain = Domain([Attribute("a", size, ordered=size), Attribute("b", 2)])
    tree = grow(domain, "b", 2, np.random.default_rng(seed), ranges=ranges)
    leaves = [leaf for _, leaf in paths(tree.query)]
    assert leaves == sorted(leaves)
    assert set(leaves) == set(range(min(size, ranges)))
    unordered = Domain.of({"a": size, "b": 2})
    assert grow(unordered, "b", 2, np.random.default_rng(seed), ranges=ranges).query.leaves == size


def test_nodes_choose_for_themselves_and_evenly():
    """Below a root that asks for one attribute, each of the five others is asked by about a fifth (6 deviations)."""
    domain = Domain.of({"root": 2, **{f"x{index}": 3 for index in range(5)}, "label": 2})
    rng = np.random.default_rng(3)
    asked = Counter()
    for _ in range(2000):
        query = grow(domain, "label", 3, rng).query
        names = [query.splits_on[index] for index in query.split[:3]]
        if names[0] == "root":
            asked.update(names[1:])
    expected = asked.total() / 5
    assert asked.total() > 400
    assert set(asked) == {f"x{index}" for index in range(5)}
    assert all(abs(count - expected) < 6 * math.sqrt(expected) for count in asked.values())


@given(domains(), st.integers(1, 5), st.sampled_from([0, 2, 3]))
@settings(max_examples=30)
def test_the_expected_number_of_leaves_is_the_mean_over_all_orders(domain, height, ranges):
    label = domain.names[0]
    widths = [min(a.size, ranges) if ranges and a.ordered else a.size for a in domain if a.name != label and a.size > 1]
    splits = min(height - 1, len(widths))
    products = [math.prod(order[:splits]) for order in itertools.permutations(widths)]
    assert expected_leaves(domain, label, height, ranges) == pytest.approx(sum(products) / len(products))


def test_a_tree_that_would_not_fit_is_refused_before_it_is_made():
    domain = Domain.of({f"x{index}": 1000 for index in range(8)})
    with refused("tree-too-large", 'height 7 for "x0"'):
        grow(domain, "x0", 7, np.random.default_rng(0), memory=64 << 20)


def two_leaves():
    """a (2 codes) splits the label b (2 codes)."""
    domain = Domain.of({"a": 2, "b": 2})
    return RandomTree(TreeQuery(domain, ("a",), [0, -1, -1], [1, 0, 1], "b"), (np.array([0]),))


def test_leaves_by_hand():
    """σ² = 12, root ½ ½. Left (40, 0): r = (20, −20), ‖r‖² = 800, noise 12·(0 + 2·½) = 12, so 1 − 12/800 is kept.

    Right (3, 1): r = (1, −1), ‖r‖² = 2 < 12, so nothing is.
    """
    noise = Noise("gaussian", math.sqrt(12 - 1 / 12))
    measurement = Measurement(two_leaves().query, np.array([40, 0, 3, 1]), noise)
    kept = 1 - 12 / 800
    expected = [[(20 + kept * 20) / 40, (20 - kept * 20) / 40], [0.5, 0.5]]
    np.testing.assert_allclose(shrunk_leaves(two_leaves(), measurement, np.array([5.0, 5.0])), expected)
    empty = Measurement(two_leaves().query, np.array([30, -10, -2, -7]), noise)
    np.testing.assert_allclose(clipped_leaves(two_leaves(), empty, np.array([1.0, 3.0])), [[1, 0], [0.25, 0.75]])


@given(domains(), st.integers(2, 5), st.integers(0, 99))
def test_without_noise_leaves_are_proportions_and_with_nothing_but_noise_they_are_the_root(domain, height, seed):
    rng = np.random.default_rng(seed)
    label = domain.names[0]
    tree = grow(domain, label, height, rng)
    assume(tree.firsts)  # a tree that splits nothing is its root
    counts = rng.integers(1, 50, tree.query.cells)
    root = np.arange(1.0, domain[label].size + 1)
    exact = counts.reshape(tree.query.shape)
    proportions = exact / exact.sum(axis=1, keepdims=True)
    for leaves in (shrunk_leaves, clipped_leaves):
        found = leaves(tree, Measurement(tree.query, counts, NO_NOISE), root)
        np.testing.assert_allclose(found, proportions, atol=1e-9)
    hidden = shrunk_leaves(tree, Measurement(tree.query, counts, Noise("gaussian", 1e9)), root)
    np.testing.assert_allclose(hidden, np.tile(root / root.sum(), (tree.query.leaves, 1)))


def test_what_a_tree_tells_by_hand():
    """Three rows in a leaf ¼ away from the root, one in a leaf ½ away; a leaf of negative counts has no say."""
    measurement = Measurement(two_leaves().query, np.array([2, 1, 0, 1]), NO_NOISE)
    leaves = np.array([[0.75, 0.25], [0.0, 1.0]])
    assert told(measurement, leaves, np.array([5.0, 5.0])) == pytest.approx((3 * 0.25 + 0.5) / 4)
    negative = Measurement(two_leaves().query, np.array([2, 1, -5, 1]), NO_NOISE)
    assert told(negative, leaves, np.array([5.0, 5.0])) == pytest.approx(0.25)


@given(st.integers(1, 40), st.integers(0, 99))
def test_looking_up_is_counting_thresholds(labels, seed):
    rng = np.random.default_rng(seed)
    thresholds = np.sort(rng.integers(0, (1 << 31) + 1, (6, labels), dtype=np.uint32), axis=1)
    thresholds[:, -1] = 1 << 31
    leaves = rng.integers(0, 6, 200, dtype=np.uint32)
    coin = rng.integers(0, 1 << 31, 200, dtype=np.uint32)
    expected = (thresholds[leaves] <= coin[:, None]).sum(axis=1)
    np.testing.assert_array_equal(look_up(thresholds, leaves, coin), expected)


def test_rows_whose_lots_are_equal_keep_their_order():
    """Sorts that are not stable order equal keys by the version and the processor, and a stranger could not redraw."""

    class Same:
        def integers(self, low, high, size=None, dtype=None):
            return dtype(7) if size is None else np.full(size, 7, dtype=dtype)

    reached = np.tile(np.arange(3, dtype=np.uint32), 700)
    order = np.argsort(reached, kind="stable")
    steps = (np.arange(len(reached), dtype=np.uint64) * GOLDEN + np.uint64(7)) & np.uint64(0xFFFFFFFF)
    assert (even_uniforms(reached, Same())[order] == steps >> np.uint64(1)).all()


def test_even_uniforms_give_counts_closer_to_their_expectation_than_chance_would():
    leaves = np.random.default_rng(0).integers(0, 50, 20_000, dtype=np.uint32)
    coin = even_uniforms(leaves, np.random.default_rng(1))
    assert coin.max() < 1 << 31
    for leaf in range(50):
        own = coin[leaves == leaf]
        for share in (0.1, 0.5, 0.7):
            assert abs((own < share * (1 << 31)).sum() - share * len(own)) < 4  # by chance about 10


def model(distributions, weights=(1.0,), single=(0.5, 0.5), sweeps=1):
    """a is 0 in a quarter of the rows; trees that ask for a tell b, whose own shares are `single`."""
    domain = Domain.of({"a": 2, "b": 2})
    start = Histograms(domain, [Part(("a",), np.array([1.0, 3.0])), Part(("b",), np.array(single))], 1000)
    trees = [two_leaves()] * len(distributions)
    return RandomTrees(start, [Forest.of(domain, trees, distributions, np.array(weights))], sweeps)


def test_rows_follow_the_leaves_that_they_reach():
    leaves = np.array([[1.0, 0.0], [0.25, 0.75]])
    rows = model([leaves], single=(0.25 + 0.75 * 0.25, 0.75 * 0.75)).draw(40_000, block_rng(0, 0))
    assert (rows["b"][rows["a"] == 0] == 0).all()  # a label without weight is never drawn
    assert rows["b"][rows["a"] == 1].mean() == pytest.approx(0.75, abs=1e-3)
    assert rows["a"].mean() == pytest.approx(0.75, abs=1e-3)


def test_a_forest_draws_from_the_weighted_mean_of_its_trees():
    certain, even = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.5, 0.5]])
    for weights, share in (([1.0, 1.0], 0.75), ([3.0, 1.0], 0.875), ([0.0, 2.0], 0.5)):
        single = (0.25 * share + 0.75 * (1 - share), 0.25 * (1 - share) + 0.75 * share)
        rows = model([certain, even], weights, single).draw(40_000, block_rng(0, 0))
        assert rows["b"][rows["a"] == 1].mean() == pytest.approx(share, abs=0.02)
        assert rows["b"][rows["a"] == 0].mean() == pytest.approx(1 - share, abs=0.02)


def test_single_columns_stay_as_they_were_measured():
    """Leaves that say b = 1 too often are brought most of the way back; what a column lacks is never drawn."""
    leaves = [np.array([[0.5, 0.5], [0.1, 0.9]])]
    rows = model(leaves, single=(0.5, 0.5)).draw(40_000, block_rng(0, 0))
    assert rows["b"].mean() == pytest.approx(0.5, abs=0.1)  # the leaves alone would give 0.8
    odds = [rows["b"][rows["a"] == a].mean() / (1 - rows["b"][rows["a"] == a].mean()) for a in (0, 1)]
    assert odds[1] / odds[0] == pytest.approx(9.0, rel=0.1)  # the relation stays
    assert not model(leaves, single=(1.0, 0.0)).draw(500, block_rng(0, 0))["b"].any()


@given(st.integers(2, 6), st.integers(0, 99))
def test_calibration_reaches_its_target_where_leaves_agree_and_never_leaves_the_simplex(labels, seed):
    rng = np.random.default_rng(seed)
    same = rng.dirichlet(np.ones(labels))
    made = Forest("b", *(np.zeros(0, dtype=np.uint32),) * 3, np.rint(np.tile(same, (4, 1)) * 2**31).astype(np.uint32))
    target = rng.dirichlet(np.ones(labels))
    thresholds = made.calibrated(rng.integers(0, 4, 100).astype(np.uint32), target)
    np.testing.assert_allclose(thresholds[0] / 2**31, np.cumsum(target), atol=1e-6)
    assert (np.diff(thresholds.astype(np.int64), axis=1) >= 0).all()
    assert (thresholds[:, -1] == 1 << 31).all()


@given(domains(), st.integers(1, 4), st.integers(0, 20))
@settings(max_examples=15)
def test_forests_reach_the_leaves_of_their_trees(domain, trees, seed):
    """A forest whose leaves are certain of one label draws, for every row, the label that one of its trees says."""
    rng = np.random.default_rng(seed)
    label = domain.names[0]
    grown = [grow(domain, label, 3, rng, ranges=2) for _ in range(trees)]
    says = [rng.integers(0, domain[label].size, tree.query.leaves) for tree in grown]
    distributions = [np.eye(domain[label].size)[said] for said in says]
    start = Histograms(domain, [Part((a.name,), np.ones(a.size)) for a in domain], 10)
    rows = RandomTrees(start, [Forest.of(domain, grown, distributions, np.ones(trees))], 1).draw(60, rng)
    for row in range(60):
        reached = []
        for tree, said in zip(grown, says, strict=True):
            node = 0
            while tree.query.split[node] >= 0:
                name = tree.query.splits_on[tree.query.split[node]]
                node = int(tree.query.child[node]) + int(rows[name][row])
            reached.append(said[tree.query.child[node]])
        assert rows[label][row] in reached


def test_the_model_keeps_the_laws_and_reads_back():
    check_model(model([np.array([[0.5, 0.5], [0.25, 0.75]])], sweeps=3))


def test_a_state_whose_leaves_do_not_fit_is_refused():
    made = model([np.array([[0.5, 0.5], [0.25, 0.75]])])
    state = made.state()
    wide = {**state.arrays, "leaves0": np.zeros((2, 5), dtype=np.uint32)}
    with refused("model-entry", '"leaves0"'):
        load(made.domain, State(state.kind, state.values, wide))
    few = {**state.arrays, "leaves0": np.full((1, 2), 1 << 30, dtype=np.uint32)}
    with refused("model-leaves"):
        load(made.domain, State(state.kind, state.values, few))
