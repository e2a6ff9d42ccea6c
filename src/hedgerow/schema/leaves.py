"""Leaves: where a private discovery cut a line, and how a value comes back from between two cuts.

A cell holds one or several leaves; a leaf is a run of whole steps with a weight, its noisy share of the cell. Cells
stand in their order, and what lies between two of them belongs to the nearer one, so every declared value has a cell. A
draw picks a leaf of the cell by weight, and a step of the leaf along the slope of the leaves beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.cells import Ranked, Steps, equal_steps
from hedgerow.schema.reading import as_number, as_whole

MOST_LEAVES = 1 << 16
"""Of one column."""
HEAVIEST = 2**53


class Leaf(NamedTuple):
    """A run of whole steps, both ends included, and how much of its cell lies in it."""

    first: int
    last: int
    weight: int


def alike(low: int, high: int, count: int) -> list[list[Leaf]]:
    """Cells of one leaf each that are about equally wide."""
    starts = equal_steps(low, high, min(count, high - low + 1))
    return [[Leaf(first, last - 1, 1)] for first, last in pairwise([*starts, high + 1])]


class Leaves(Steps):
    """Cells of leaves between `low` and `high`.

    `avoid` holds steps that have a cell of their own elsewhere; no draw returns them.
    """

    def __init__(self, cells: Sequence[Sequence[Leaf]], low: int, high: int, avoid: Iterable[int] = ()):
        flat = [leaf for cell in cells for leaf in cell]
        self._first: IntArray = np.array([leaf.first for leaf in flat], dtype=np.int64)
        self._last: IntArray = np.array([leaf.last for leaf in flat], dtype=np.int64)
        self._weight: FloatArray = np.array([leaf.weight for leaf in flat], dtype=np.float64)
        self._begin: IntArray = np.cumsum([0, *map(len, cells)])
        self._outer = self._first[self._begin[:-1]], self._last[self._begin[1:] - 1]
        firsts, lasts = self._outer
        starts = np.append(low, (lasts[:-1] + firsts[1:]) // 2 + 1)
        super().__init__(starts, high, avoid=avoid)
        self.single = bool((firsts == lasts).all())

    @property
    def spans(self) -> tuple[IntArray, IntArray]:
        return self._outer

    def cell(self, numbers: FloatArray) -> IntArray:
        return np.searchsorted(self.starts, numbers.astype(np.int64), side="right") - 1

    def draw(self, cells: IntArray, classes: IntArray | None, rng: np.random.Generator) -> IntArray:
        leaf = self._leaf(cells, rng.random(len(cells)))
        count = self._steps.count[leaf]
        along = self._along(leaf, rng.random(len(cells)))
        return self._steps.nth(leaf, np.minimum((along * count).astype(np.int64), count - 1))

    def _leaf(self, cells: IntArray, share: FloatArray) -> IntArray:
        """The leaf of each cell below which this share of its weight lies."""
        whole = np.add.reduceat(self._weight, self._begin[:-1])
        within = np.cumsum(self._weight / np.repeat(whole, np.diff(self._begin)))
        before = np.append(0.0, within)[self._begin[cells]]
        found = np.searchsorted(within, before + share, side="right")
        return np.clip(found, self._begin[cells], self._begin[cells + 1] - 1)

    @cached_property
    def _steps(self) -> Ranked:
        """Every step of every leaf but those to be avoided."""
        return Ranked(np.zeros(1, dtype=np.int64), 1, self._first, self._last, self._avoid)

    def _along(self, leaf: IntArray, share: FloatArray) -> FloatArray:
        """How far into its leaf each draw lies, from 0 to 1."""
        along = _sloping(share, self._slopes[leaf])
        for tail, near, far in self._tails:
            here = leaf == tail
            along[here] = _running_out(share[here], near, far)
        return np.clip(along, 0.0, math.nextafter(1.0, 0.0))

    @cached_property
    def _tails(self) -> list[tuple[int, float, float]]:
        """Outermost leaves that reach at least twice as far from zero as they begin, with both ends.

        Rows thin out there: between the ends their number falls with the square of the distance from zero. An even
        spread would put most of them into the far half, and the mean with them.
        """
        found = []
        first, last = self._first[-1], self._last[-1]
        if first > 0 and last >= 2 * first and self._thins_out(-1, -2):
            found.append((len(self._first) - 1, float(first), float(last + 1)))
        first, last = self._first[0], self._last[0]
        if last < 0 and first <= 2 * last and self._thins_out(0, 1):
            found.append((0, float(first - 1), float(last)))
        return found

    def _thins_out(self, leaf: int, beside: int) -> bool:
        width = self._last - self._first + 1
        return len(width) > 1 and bool(self._weight[leaf] / width[leaf] < self._weight[beside] / width[beside] / 2)

    @cached_property
    def _slopes(self) -> FloatArray:
        """For each leaf, from −1 to 1: how the density at its ends, halfway to what lies beside it, rises or falls."""
        width = (self._last - self._first + 1).astype(np.float64)
        density = self._weight / width
        wide = np.flatnonzero(width > 1)
        slopes = np.zeros(len(width))
        if len(wide) < 2:
            return slopes
        ends = np.tile(density[wide], (2, 1))
        gap = self._first[wide[1:]] - self._last[wide[:-1]] - 1
        alone = np.diff(wide) - 1  # single steps between two wide leaves do not part them
        near = gap <= alone + 1
        between = (density[wide[:-1]] + density[wide[1:]]) / 2
        ends[1, :-1] = np.where(near, between, ends[1, :-1])
        ends[0, 1:] = np.where(near, between, ends[0, 1:])
        slopes[wide] = (ends[1] - ends[0]) / (ends[1] + ends[0])
        return slopes


def _sloping(share: FloatArray, slope: FloatArray) -> FloatArray:
    """The inverse of the distribution on (0, 1) whose density goes from 1 − slope to 1 + slope."""
    return 2 * share / (1 - slope + np.sqrt((1 - slope) ** 2 + 4 * slope * share))


def _running_out(share: FloatArray, low: float, high: float) -> FloatArray:
    """The same for a density that falls with the square of the distance from zero, between ends on one side of it."""
    number = 1 / (1 / low - share * (1 / low - 1 / high))
    return (number - low) / (high - low)


def drawable(cells: Iterable[Sequence[Leaf]], avoid: Iterable[int]) -> list[list[Leaf]]:
    """The cells without leaves of which every step has a cell of its own elsewhere."""
    own = set(avoid)
    kept = ([leaf for leaf in cell if not _only(leaf, own)] for cell in cells)
    return [cell for cell in kept if cell]


def check_leaves(cells: Sequence[Sequence[Leaf]], low: int, high: int, avoid: Iterable[int]) -> None:
    """Refuse leaves that do not stand in their order between the bounds, or hold nothing that could be drawn."""
    flat = [leaf for cell in cells for leaf in cell]
    if not flat or not all(cells):
        raise Fault("bad-leaves", "leaves: every cell needs at least one leaf")
    if len(flat) > MOST_LEAVES:
        raise Fault("bad-leaves", f"leaves: more than {MOST_LEAVES:,}")
    own = set(avoid)
    before = low - 1
    for leaf in flat:
        if not before < leaf.first <= leaf.last <= high:
            raise Fault("bad-leaves", "leaves: they must stand in their order between min and max")
        if not 1 <= leaf.weight <= HEAVIEST:
            raise Fault("bad-leaves", "leaves: a weight must be a whole number of at least 1")
        if _only(leaf, own):
            raise Fault("bad-leaves", "leaves: one holds nothing but values with a cell of their own")
        before = leaf.last


def _only(leaf: Leaf, own: set[int]) -> bool:
    return leaf.last - leaf.first < len(own) and own.issuperset(range(leaf.first, leaf.last + 1))


def as_leaves(value: Any) -> Any:
    """Cells, each a list of leaves [first, last, weight]."""
    if not isinstance(value, list | tuple) or not all(isinstance(cell, list | tuple) for cell in value):
        raise Fault("bad-leaves", "must be a list of cells")
    return tuple(tuple(_as_leaf(leaf) for leaf in cell) for cell in value)


def _as_leaf(value: Any) -> tuple[int | float, int | float, int]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise Fault("bad-leaves", "a leaf must be [first, last, weight]")
    return as_number(value[0]), as_number(value[1]), as_whole(value[2])


Cut = Annotated[
    tuple[tuple[tuple[int | float, int | float, int], ...], ...],
    BeforeValidator(as_leaves),
]
"""What a discovery wrote down, in declared units."""
