"""Leaves: where a private discovery cut a line, and how a value comes back from between two cuts.

A cell holds one or several leaves; a leaf is a run of whole steps with a weight, its noisy share of the cell. Cells
stand in their order, and what lies between two of them belongs to the nearer one, so every declared value has a cell. A
draw picks a leaf of the cell by weight, and a step of the leaf along the slope of the leaves beside it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.cells import Ranked, Steps, equal_steps
from hedgerow.schema.endings import DIGITS, Endings, Habit
from hedgerow.schema.reading import as_number, as_whole

MOST_LEAVES = 1 << 16
"""Of one column."""
HEAVIEST = 2**53
GUIDES = 64
"""A draw of one of the leaves of a cell begins in one of so many parts of it."""
STEEPEST = 8.0
"""A tail falls with the ninth power of the distance from zero, at most."""


class Leaf(NamedTuple):
    """A run of whole steps, both ends included, and how much of its cell lies in it."""

    first: int
    last: int
    weight: int


def reaches_out(first: int, last: int) -> bool:
    """Whether a run of steps on one side of zero ends at least twice as far from it as it begins."""
    near, far = sorted((abs(first), abs(last)))
    return first * last > 0 and far >= 2 * near


def alike(low: int, high: int, count: int) -> list[list[Leaf]]:
    """Cells of one leaf each that are about equally wide."""
    starts = equal_steps(low, high, min(count, high - low + 1))
    return [[Leaf(first, last - 1, 1)] for first, last in pairwise([*starts, high + 1])]


class Leaves(Steps):
    """Cells of leaves between `low` and `high`.

    `avoid` holds steps that have a cell of their own elsewhere; no draw returns them. With a `rhythm` (the seven days
    of a week) steps have classes too, their remainders by it: a draw returns the class that it is asked for, where a
    leaf of the cell has one. `likely` is the habit of last digits inside leaves, `endings` which steps have which.
    """

    def __init__(
        self,
        cells: Sequence[Sequence[Leaf]],
        low: int,
        high: int,
        avoid: Iterable[int] = (),
        rhythm: int = 0,
        likely: Mapping[str, float] | None = None,
        endings: Endings = DIGITS,
    ):
        own = set(avoid)
        flat = [_within(leaf, own) for cell in cells for leaf in cell]
        self._rhythm = rhythm
        self._likely = likely
        self._endings = endings
        self._first: IntArray = np.array([leaf.first for leaf in flat], dtype=np.int64)
        self._last: IntArray = np.array([leaf.last for leaf in flat], dtype=np.int64)
        self._weight: FloatArray = np.array([leaf.weight for leaf in flat], dtype=np.float64)
        self._begin: IntArray = np.cumsum([0, *map(len, cells)])
        self._outer = self._first[self._begin[:-1]], self._last[self._begin[1:] - 1]
        firsts, lasts = self._outer
        starts = np.append(low, (lasts[:-1] + firsts[1:]) // 2 + 1)
        super().__init__(starts, high, avoid=own)
        self.single = bool((firsts == lasts).all())

    @property
    def spans(self) -> tuple[IntArray, IntArray]:
        return self._outer

    def nearest(self, numbers: FloatArray, cells: IntArray) -> IntArray:
        """The step nearest to each number that a leaf of its cell holds."""
        whole: IntArray = numbers.astype(np.int64)
        left = np.searchsorted(self._first, whole, side="right") - 1
        left = np.clip(left, self._begin[cells], self._begin[cells + 1] - 1)
        right = np.minimum(left + 1, self._begin[cells + 1] - 1)
        below = np.clip(whole, self._first[left], self._last[left])
        above = np.clip(whole, self._first[right], self._last[right])
        return np.where(np.abs(above - whole) < np.abs(whole - below), above, below)

    def draw(self, cells: IntArray, classes: IntArray | None, rng: np.random.Generator) -> IntArray:
        which, along = rng.random(len(cells)), rng.random(len(cells))
        leaf = self._all.leaf(cells, which)
        if self._likely:
            return self._habit.draw(leaf, self._along(leaf, along), rng)
        drawn = self._all.step(leaf, self._along(leaf, along))
        for residue, kind in enumerate(self._kinds if classes is not None else ()):
            rows = np.flatnonzero((classes == residue) & kind.held[cells])
            leaf = kind.leaf(cells[rows], which[rows])
            drawn[rows] = kind.step(leaf, self._along(leaf, along[rows]))
        return drawn

    @cached_property
    def _habit(self) -> Habit:
        return Habit(self._likely or {}, self._endings, self._first, self._last, self._avoid)

    @cached_property
    def _all(self) -> _Kind:
        every = np.zeros(1, dtype=np.int64)
        return _Kind(Ranked(every, 1, self._first, self._last, self._avoid), self._weight, self._begin)

    @cached_property
    def _kinds(self) -> list[_Kind]:
        """The steps of each class."""
        share = self._weight / self._all.ranked.count
        found = []
        for residue in range(self._rhythm):
            steps = Ranked(np.array([residue]), self._rhythm, self._first, self._last, self._avoid)
            found.append(_Kind(steps, share * steps.count, self._begin))
        return found

    def _along(self, leaf: IntArray, share: FloatArray) -> FloatArray:
        """How far into its leaf each draw lies, from 0 to 1."""
        along = _sloping(share, self._slopes[leaf])
        for tail, near, far, power in self._tails:
            here = leaf == tail
            along[here] = _running_out(share[here], near, far, power)
        return np.clip(along, 0.0, math.nextafter(1.0, 0.0))

    @cached_property
    def _tails(self) -> list[tuple[int, float, float, float]]:
        """Outermost leaves that reach at least twice as far from zero as they begin, with both ends and their law.

        Rows thin out there as they did before: where half as far from zero 2^a times as many rows lie beyond, their
        number falls with the power a + 1 of the distance, the square at least. An even spread would put most of them
        into the far half, and the mean with them.
        """
        found = []
        for tail, beside in ((0, 1), (len(self._first) - 1, -2)):
            first, last = int(self._first[tail]), int(self._last[tail])
            outwards = last < 0 if tail == 0 else first > 0
            if outwards and reaches_out(first, last) and self._thins_out(tail, beside):
                ends = (first - 1, last) if tail == 0 else (first, last + 1)
                found.append((tail, float(ends[0]), float(ends[1]), self._fall(tail)))
        return found

    def _fall(self, tail: int) -> float:
        """How often the rows beyond are halved from half the distance at which a tail begins to that distance."""
        before = self._before(tail, 2)
        return min(max(math.log2(1 + before / self._weight[tail]), 1.0), STEEPEST)

    def _before(self, tail: int, times: int) -> float:
        """How many rows lie nearer to zero than where a tail begins, but no more than so many times nearer."""
        near = float(self._first[tail] if self._first[tail] > 0 else self._last[tail])
        low, high = sorted((near / times, near))
        within = np.clip(np.minimum(self._last + 1, high) - np.maximum(self._first, low), 0, None)
        return float((self._weight * within / (self._last - self._first + 1)).sum())

    def _thins_out(self, leaf: int, beside: int) -> bool:
        """Whether a leaf is thinner than the one beside it; one that stands alone in two decades is no tail of any."""
        width = self._last - self._first + 1
        thinner = len(width) > 1 and self._weight[leaf] / width[leaf] < self._weight[beside] / width[beside] / 2
        return bool(thinner) and self._before(leaf, 10) > 0

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


class _Kind:
    """The steps of one kind in every leaf, and how much of each cell lies in its leaves."""

    def __init__(self, ranked: Ranked, weight: FloatArray, begin: IntArray):
        self.ranked = ranked
        self._leaves = np.flatnonzero(weight > 0)
        self._begin = np.searchsorted(self._leaves, begin)
        sizes = np.diff(self._begin)
        self.held = sizes > 0
        """Which cells have a step of this kind at all."""
        whole = np.add.reduceat(weight, begin[:-1])
        self._upto = np.cumsum(weight[self._leaves] / np.repeat(whole, sizes))
        self._after = np.append(self._upto, np.inf)
        self._guide = np.searchsorted(self._upto, np.arange(GUIDES * len(begin)) / GUIDES, side="right")
        """For each part of a cell, the leaf at whose begin a search may start (Chen, Asau 1974)."""

    def leaf(self, cells: IntArray, share: FloatArray) -> IntArray:
        """The leaf of each cell below which this share of its weight lies."""
        first, last = self._begin[cells], self._begin[cells + 1] - 1
        upto = np.append(0.0, self._upto)[first] + share
        found = self._guide[(upto * GUIDES).astype(np.int64)]
        beyond = np.flatnonzero(self._after[found] <= upto)
        while len(beyond):
            found[beyond] += 1
            beyond = beyond[self._after[found[beyond]] <= upto[beyond]]
        return self._leaves[np.clip(found, first, last)]

    def step(self, leaf: IntArray, along: FloatArray) -> IntArray:
        """The step that lies so far into each leaf, among those of this kind."""
        count = self.ranked.count[leaf]
        return self.ranked.nth(leaf, np.minimum((along * count).astype(np.int64), count - 1))


def _within(leaf: Leaf, own: set[int]) -> Leaf:
    """The leaf without steps at its ends that have a cell of their own elsewhere."""
    first, last = leaf.first, leaf.last
    while first in own:
        first += 1
    while last in own:
        last -= 1
    return Leaf(first, last, leaf.weight)


def _sloping(share: FloatArray, slope: FloatArray) -> FloatArray:
    """The inverse of the distribution on (0, 1) whose density goes from 1 − slope to 1 + slope."""
    return 2 * share / (1 - slope + np.sqrt((1 - slope) ** 2 + 4 * slope * share))


def _running_out(share: FloatArray, low: float, high: float, power: float) -> FloatArray:
    """The same where the rows beyond fall with a power of the distance from zero, between ends on one side of it."""
    near, far = (abs(end) ** -power for end in (low, high))
    number: FloatArray = math.copysign(1.0, low) * (near - share * (near - far)) ** (-1 / power)
    return (number - low) / (high - low)


def parted(cells: Iterable[Sequence[Leaf]], starts: Sequence[int]) -> list[list[Leaf]]:
    """The cells parted where a run of steps begins that rules tell from those before it; a leaf's weight by width."""
    found: list[list[Leaf]] = []
    for cell in cells:
        parts: dict[int, list[Leaf]] = {}
        for leaf in cell:
            inside = [start for start in starts if leaf.first < start <= leaf.last]
            for first, after in pairwise([leaf.first, *inside, leaf.last + 1]):
                weight = leaf.weight * (after - first) / (leaf.last - leaf.first + 1)
                parts.setdefault(bisect.bisect_right(starts, first), []).append(
                    Leaf(first, after - 1, max(1, round(weight)))
                )
        found += parts.values()
    return found


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


def as_leaves(value: Any, end: Callable[[Any], Any] = as_number) -> Any:
    """Cells, each a list of leaves [first, last, weight]; `end` reads the first two."""
    if not isinstance(value, list | tuple) or not all(isinstance(cell, list | tuple) for cell in value):
        raise Fault("bad-leaves", "must be a list of cells")
    return tuple(tuple(_as_leaf(leaf, end) for leaf in cell) for cell in value)


def _as_leaf(value: Any, end: Callable[[Any], Any]) -> tuple[Any, Any, int]:
    if not isinstance(value, list | tuple) or len(value) != 3:
        raise Fault("bad-leaves", "a leaf must be [first, last, weight]")
    return end(value[0]), end(value[1]), as_whole(value[2])


Cut = Annotated[tuple[tuple[tuple[int | float, int | float, int], ...], ...], BeforeValidator(as_leaves)]
"""What a discovery wrote down, in declared units."""
