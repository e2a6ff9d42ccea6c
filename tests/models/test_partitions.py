"""Partitions of a marginal: each refines the one before, and every step is the best there is."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hedgerow.models.partitions import error_splits, mass_splits, sorted_merges

tables = st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(
    lambda shape: arrays(np.float64, tuple(shape), elements=st.integers(0, 60).map(float))
)
FAMILIES = [sorted_merges, error_splits, mass_splits]


def reconstruction_error(counts, blocks):
    flat = counts.reshape(-1)
    return sum(np.abs(flat[blocks == block] - flat[blocks == block].mean()).sum() for block in np.unique(blocks))


def boxes(counts, blocks):
    """Each block as its range of codes along every axis; fails unless it fills them."""
    found = []
    for block in range(int(blocks.max()) + 1):
        cells = np.argwhere(blocks.reshape(counts.shape) == block)
        low, high = cells.min(axis=0), cells.max(axis=0) + 1
        assert len(cells) == np.prod(high - low)
        found.append(tuple(slice(a, b) for a, b in zip(low, high, strict=True)))
    return found


def cuts(box, axis):
    side = box[axis]
    for at in range(side.start + 1, side.stop):
        yield (
            (*box[:axis], slice(side.start, at), *box[axis + 1 :]),
            (*box[:axis], slice(at, side.stop), *box[axis + 1 :]),
        )


@pytest.mark.parametrize("family", FAMILIES)
@given(counts=tables)
def test_there_is_one_partition_of_every_size_and_each_refines_the_one_before(family, counts):
    partitions = family(counts)
    assert len(partitions.errors) == counts.size
    before = None
    for count in range(1, counts.size + 1):
        blocks = partitions.blocks(count)
        assert np.array_equal(np.unique(blocks), np.arange(count))
        assert partitions.errors[count - 1] == pytest.approx(reconstruction_error(counts, blocks), abs=1e-6)
        if before is not None:
            assert len(set(zip(blocks.tolist(), before.tolist(), strict=True))) == count
        before = blocks
    assert partitions.errors[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("family", [error_splits, mass_splits])
@given(counts=tables, most=st.integers(1, 40))
def test_a_sequence_that_ends_early_is_the_beginning_of_the_whole_one(family, counts, most):
    some, whole = family(counts, most), family(counts)
    assert len(some.errors) == min(most, counts.size)
    for count in range(1, most + 1):
        assert np.array_equal(some.blocks(count), whole.blocks(min(count, most, counts.size)))


@given(counts=arrays(np.float64, st.integers(2, 9), elements=st.integers(0, 60).map(float)))
def test_sorted_merges_take_the_pair_of_neighbours_that_adds_least_error(counts):
    partitions = sorted_merges(counts)
    for count in range(2, counts.size + 1):
        blocks = partitions.blocks(count)
        highest = [counts[blocks == block].max() for block in range(count)]
        assert all(highest[block] <= counts[blocks == block + 1].min() for block in range(count - 1))
        unions = [np.where(blocks == block + 1, block, blocks) for block in range(count - 1)]
        least = min(reconstruction_error(counts, union) for union in unions)
        assert partitions.errors[count - 2] == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("family", [error_splits, mass_splits])
@given(counts=tables)
def test_splits_take_the_best_cut_along_the_axis_whose_turn_it_is(family, counts):
    def gain(box, parts):
        if family is mass_splits:
            return min(counts[part].sum() for part in parts)
        errors = [np.abs(counts[part] - counts[part].mean()).sum() for part in (box, *parts)]
        return errors[0] - errors[1] - errors[2]

    partitions = family(counts)
    turn = 0
    for count in range(1, counts.size):
        before, after = boxes(counts, partitions.blocks(count)), boxes(counts, partitions.blocks(count + 1))
        [changed] = [number for number, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
        open_axes = [axis for axis in range(counts.ndim) if any(len(list(cuts(box, axis))) for box in before)]
        axis = next(axis for axis in ((turn + step) % counts.ndim for step in range(counts.ndim)) if axis in open_axes)
        best = max(gain(box, parts) for box in before for parts in cuts(box, axis))
        taken = (after[changed], after[count])
        assert taken in list(cuts(before[changed], axis))
        assert gain(before[changed], taken) == pytest.approx(best, abs=1e-6)
        turn = axis + 1


def test_one_row_more_merges_other_cells():
    """Why the write-up's method is not private: its partitions come from exact counts."""
    assert sorted_merges(np.array([50.0, 70.0, 91.0])).blocks(2).tolist() == [0, 0, 1]
    assert sorted_merges(np.array([50.0, 71.0, 91.0])).blocks(2).tolist() == [0, 1, 1]


def test_a_worked_example_of_splits():
    counts = np.array([[8.0, 8.0, 0.0], [8.0, 8.0, 4.0]])
    assert error_splits(counts).errors[0] == pytest.approx(4 * 2 + 6 + 2)  # the mean is 6
    # along the first axis either row has a mean of its own; then the second axis parts 8, 8 from 0
    assert error_splits(counts).blocks(3).tolist() == [0, 0, 2, 1, 1, 1]
    assert mass_splits(counts).blocks(2).tolist() == [0, 0, 0, 1, 1, 1]


def test_wide_marginals_are_partitioned():
    counts = np.exp(np.random.default_rng(0).normal(0, 2, (40, 50, 50)))
    for family, count in itertools.product(FAMILIES, (1, 64, 5000)):
        assert len(np.unique(family(counts).blocks(count))) == count
