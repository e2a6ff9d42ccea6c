"""Partitions of a marginal: cells that are measured together, so that noise is added to few sums and not to many cells.

Zhang, Deng, Yin (2023), "Partition-based differentially private synthetic data generation", arXiv:2310.06371. Each
function returns a whole sequence of partitions, from one block to single cells; where to stop is decided later, and as
often as needed. What they are given must be public (a model's marginal): a partition tells what it was made from.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Counts, IntArray


class Partitions(Protocol):
    """A sequence of ever finer partitions of the same cells."""

    @property
    def errors(self) -> Counts:
        """By the number of blocks less one: Σ over the cells of |count − mean of its block|."""
        ...

    def blocks(self, count: int) -> IntArray:
        """The block of every cell where there are `count` blocks (or as many as can be)."""
        ...


class Intervals:
    """Intervals of the cells in ascending order of their counts. See `sorted_merges`."""

    def __init__(self, counts: Counts):
        flat = np.ascontiguousarray(counts, dtype=np.float64).reshape(-1)
        self._order = np.argsort(flat, kind="stable")
        merges = _model.merge_sequence(flat[self._order])
        self._opened: IntArray = np.array(merges.boundaries[::-1], dtype=np.int64)  # as blocks become more
        self.errors: Counts = np.array(merges.errors[::-1])

    def blocks(self, count: int) -> IntArray:
        starts = np.zeros(len(self._order), dtype=np.int64)
        starts[self._opened[: max(0, count - 1)] + 1] = 1
        labels = np.empty_like(starts)
        labels[self._order] = np.cumsum(starts)
        return labels


class Boxes:
    """Boxes of neighbouring cells, cut one at a time; the axes take turns.

    At most `most` blocks are prepared. See `error_splits` and `mass_splits` for which cut comes next.
    """

    def __init__(self, counts: Counts, most: int | None, by_mass: bool):
        flat = np.ascontiguousarray(counts, dtype=np.float64).reshape(-1)
        self._cells = counts.size
        self._splits = _model.split_sequence(flat, counts.shape, counts.size if most is None else most, by_mass)

    @property
    def errors(self) -> Counts:
        return np.array(self._splits.errors)

    def blocks(self, count: int) -> IntArray:
        labels = np.empty(self._cells, dtype=np.int64)
        self._splits.label(int(np.clip(count, 1, len(self._splits.errors))), labels)
        return labels


def sorted_merges(counts: Counts, most: int | None = None) -> Intervals:
    """The write-up's Algorithm 3: cells in ascending order, neighbours merged where that adds least error.

    Blocks hold cells of like counts, wherever they lie. Merging begins with single cells, so the whole sequence is
    prepared, whatever `most` is.
    """
    return Intervals(counts)


def error_splits(counts: Counts, most: int | None = None) -> Boxes:
    """The write-up's Algorithm 4: the cut that takes away most of the reconstruction error comes next.

    The best cut of any block along the axis whose turn it is; the write-up's text says "the block with the highest
    error", its pseudo-code "the best split point".
    """
    return Boxes(counts, most, by_mass=False)


def mass_splits(counts: Counts, most: int | None = None) -> Boxes:
    """The cut whose lighter side is heaviest comes next: blocks of like mass.

    A model keeps its own shape inside a measured block, so there is no error of an even spread to avoid; what matters
    is that deviations of either sign do not fall into one block, and rows can only deviate where there are rows.
    """
    return Boxes(counts, most, by_mass=True)
