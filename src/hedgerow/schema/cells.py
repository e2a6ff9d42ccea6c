"""Cells of numbers in order: which cell a number falls in, and a uniform draw from a cell.

Two lines exist: whole steps (integers, days, seconds), where a cell is a run of integers, and the continuum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import IntArray
from hedgerow.schema.arrays import BoolArray, FloatArray

LONGEST_PERIOD = 1_000_000
BUCKETS_A_START = 2
"""Of a lookup, at least."""
MOST_A_BUCKET = 16
"""Where more starts share a bucket, what lies in it is searched by halves."""


class Cells(Protocol):
    """What an ordered column needs to know of its cells."""

    low: float
    high: float
    single: bool
    """Whether every cell holds one number alone."""

    def __len__(self) -> int: ...

    @property
    def spans(self) -> tuple[FloatArray | IntArray, FloatArray | IntArray]:
        """The first and the last number of every cell."""
        ...

    def inside(self, numbers: FloatArray) -> BoolArray:
        """Which numbers the declaration holds. NaN is not inside."""
        ...

    def settle(self, numbers: FloatArray) -> FloatArray:
        """The declared number that stands for each one: clipped to the bounds, rounded down where steps are whole."""
        ...

    def cell(self, numbers: FloatArray) -> IntArray:
        """The cell of each settled number."""
        ...

    def draw(self, cells: IntArray, classes: IntArray | None, rng: np.random.Generator) -> FloatArray | IntArray:
        """One number from each cell (of that divisibility class, if there are any), uniformly."""
        ...


class Steps:
    """Runs of integers: cell i holds starts[i] … starts[i+1]−1, the last one ends with `last`.

    `avoid` holds integers that have a cell of their own elsewhere (special values, marks); no draw returns them
    unless their run holds nothing else.
    """

    def __init__(
        self, starts: Sequence[int] | IntArray, last: int, heaps: Sequence[int] = (), avoid: Iterable[int] = ()
    ):
        self.starts: IntArray = np.asarray(starts, dtype=np.int64)
        self.ends: IntArray = np.append(self.starts[1:] - 1, last)
        self.low, self.high = float(self.starts[0]), float(last)
        self.heaps = tuple(heaps)
        self._avoid = tuple(sorted(set(avoid)))
        self.single = len(self.starts) == last - int(self.starts[0]) + 1

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def spans(self) -> tuple[IntArray, IntArray]:
        return self.starts, self.ends

    def inside(self, numbers: FloatArray) -> BoolArray:
        within: BoolArray = (numbers >= self.low) & (numbers <= self.high)
        within &= np.floor(numbers) == numbers
        return within

    def settle(self, numbers: FloatArray) -> FloatArray:
        clipped = np.clip(numbers, self.low, self.high)
        return np.floor(clipped, out=clipped)

    def cell(self, numbers: FloatArray) -> IntArray:
        return self.sought.of(numbers)

    def divisibility(self, numbers: FloatArray) -> IntArray:
        """The first rule of `heaps` that divides each number; the last class where none does."""
        classes: IntArray = np.full(len(numbers), len(self.heaps), dtype=np.int64)
        whole = np.floor(numbers).astype(np.int64)
        for index in reversed(range(len(self.heaps))):
            classes[whole % self.heaps[index] == 0] = index
        return classes

    @cached_property
    def sought(self) -> Sought:
        """The run of each number."""
        return Sought(self.starts)

    @cached_property
    def _classes(self) -> tuple[Ranked, ...]:
        period = math.lcm(*self.heaps) if self.heaps else 1
        residues: IntArray = np.arange(period, dtype=np.int64)
        of_residue = self.divisibility(residues.astype(np.float64))
        return tuple(
            Ranked(residues[of_residue == place], period, self.starts, self.ends, self._avoid)
            for place in range(len(self.heaps) + 1)
        )

    @cached_property
    def _any(self) -> tuple[Ranked, Ranked]:
        """Any number of the run but those to be avoided; and, for a run of nothing else, any number at all."""
        every = np.zeros(1, dtype=np.int64)
        return (
            Ranked(every, 1, self.starts, self.ends, self._avoid),
            Ranked(every, 1, self.starts, self.ends, ()),
        )

    def draw(self, cells: IntArray, classes: IntArray | None, rng: np.random.Generator) -> IntArray:
        drawn: IntArray = np.zeros(len(cells), dtype=np.int64)
        waiting = np.ones(len(cells), dtype=bool)
        by_class = [] if classes is None else [(one, classes == index) for index, one in enumerate(self._classes)]
        for one, mine in [*by_class, *((one, True) for one in self._any)]:
            rows = np.flatnonzero(waiting & mine & (one.count[cells] > 0))
            drawn[rows] = one.draw(cells[rows], rng)
            waiting[rows] = False
        return drawn


class Sought:
    """Which of many runs of integers each number lies in, by where the runs begin; the first also has what lies before.

    A number's order of magnitude and its leading bits name a bucket; from the first run that reaches into it at most a
    few steps are left to go. Runs are as fine near zero, or near the bound next to it, as they are coarse far out.
    """

    def __init__(self, starts: IntArray):
        self.starts = starts
        self._together = len(starts) == int(starts[-1]) - int(starts[0]) + 1
        if not self._together:
            self._build()

    def _build(self) -> None:
        low, high = int(self.starts[0]), int(self.starts[-1])
        self._origin = float(min(max(0, low), high))
        self._mirrored = low < self._origin
        places = self.starts.astype(np.float64)
        keys = self._keys(places, 0)
        most = max(1 << 8, BUCKETS_A_START * len(self.starts))
        self._shift = max(0, ((int(keys[-1]) - int(keys[0])) // most).bit_length())
        keys = self._keys(places, self._shift)
        self._base = int(keys[0])
        self._next = np.append(places[1:], np.inf)
        held = np.bincount(keys - self._base)
        self._crowded = held > MOST_A_BUCKET if (held > MOST_A_BUCKET).any() else None
        self._table: npt.NDArray[np.int32] = np.maximum(np.cumsum(held) - held - 1, 0).astype(np.int32)

    def of(self, numbers: FloatArray) -> IntArray:
        """The number of each one's run. No number may be NaN."""
        if self._together:
            whole = numbers.astype(np.int64)
            whole -= self.starts[0]
            return np.clip(whole, 0, len(self.starts) - 1, out=whole)
        keys = self._keys(numbers, self._shift)
        keys -= self._base
        np.clip(keys, 0, len(self._table) - 1, out=keys)
        found: IntArray = self._table[keys].astype(np.int64)
        if self._crowded is not None:
            rows = np.flatnonzero(self._crowded[keys])
            found[rows] = np.maximum(np.searchsorted(self.starts, numbers[rows].astype(np.int64), side="right") - 1, 0)
        beyond = numbers >= self._next[found]
        found += beyond
        rows = np.flatnonzero(beyond)
        while len(rows):
            rows = rows[numbers[rows] >= self._next[found[rows]]]
            found[rows] += 1
        return found

    def _keys(self, numbers: FloatArray, shift: int) -> IntArray:
        """Whole numbers in the order of the numbers; equal where leading bits are, the more the larger the shift."""
        away = numbers - self._origin if self._origin else numbers
        if not self._mirrored:
            return (away + 1.0).view(np.int64) >> shift
        below = away < 0
        keys: IntArray = ((np.abs(away) + 1.0).view(np.int64) - _ONE) >> shift
        return np.where(below, -keys, keys)


_ONE = int(np.float64(1.0).view(np.int64))


class Ranked:
    """The integers with certain residues, ranked: the r-th of them, and how many lie in each run, in closed form."""

    def __init__(self, residues: IntArray, period: int, starts: IntArray, ends: IntArray, avoid: tuple[int, ...]):
        self._residues, self._period = residues, period
        self._first = self._below(starts)
        self.count: IntArray = self._below(ends + 1) - self._first
        members = set(residues.tolist()) if avoid else set()
        mine = [value for value in avoid if value % period in members]
        self._skipped = self._below(np.asarray(mine, dtype=np.int64))
        for value in mine:
            self.count -= (starts <= value) & (value <= ends)

    def _below(self, numbers: IntArray) -> IntArray:
        """How many members are smaller than each number, from a common origin."""
        turns, rest = np.divmod(numbers, self._period)
        return turns * len(self._residues) + np.searchsorted(self._residues, rest, side="left")

    def draw(self, cells: IntArray, rng: np.random.Generator) -> IntArray:
        return self.nth(cells, rng.integers(0, self.count[cells])) if len(cells) else cells

    def nth(self, cells: IntArray, rank: IntArray) -> IntArray:
        """The members of the runs `cells` that come after `rank` others there."""
        first = self._first[cells]
        rank = first + rank
        for skipped in self._skipped:
            rank += (skipped >= first) & (rank >= skipped)
        turns, index = np.divmod(rank, len(self._residues))
        return turns * self._period + self._residues[index]


class Intervals:
    """Intervals between edges; each holds its left edge (or its right one), the outermost hold both ends."""

    def __init__(self, edges: Sequence[float] | FloatArray, closed_right: bool = False, avoid: Sequence[float] = ()):
        self.edges: FloatArray = np.asarray(edges, dtype=np.float64)
        self.low, self.high = float(self.edges[0]), float(self.edges[-1])
        self.single = False
        self._closed_right = closed_right
        self._avoid = np.asarray(sorted(avoid), dtype=np.float64)

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def spans(self) -> tuple[FloatArray, FloatArray]:
        return self.edges[:-1], self.edges[1:]

    def inside(self, numbers: FloatArray) -> BoolArray:
        within: BoolArray = (numbers >= self.low) & (numbers <= self.high)
        return within

    def settle(self, numbers: FloatArray) -> FloatArray:
        return np.clip(numbers, self.low, self.high)

    def cell(self, numbers: FloatArray) -> IntArray:
        return np.searchsorted(self.edges[1:-1], numbers, side="left" if self._closed_right else "right")

    def draw(self, cells: IntArray, classes: IntArray | None, rng: np.random.Generator) -> FloatArray:
        left, right = self.edges[cells], self.edges[cells + 1]
        share = rng.random(len(cells))
        drawn: FloatArray = left * (1 - share) + right * share
        if self._closed_right:
            drawn = np.clip(drawn, np.where(cells == 0, left, np.nextafter(left, np.inf)), right)
        else:
            drawn = np.clip(drawn, left, np.where(cells == len(self) - 1, right, np.nextafter(right, -np.inf)))
        if len(self._avoid):
            middle = left / 2 + right / 2
            drawn = np.where(np.isin(drawn, self._avoid), middle, drawn)
        return drawn


def equal_steps(low: int, high: int, count: int) -> list[int]:
    """Starts of `count` runs of integers between low and high whose lengths differ by at most one."""
    width = high - low + 1
    return [low + index * width // count for index in range(count)]


def steps_between(edges: Sequence[float], low: int, closed_right: bool) -> list[int]:
    """Starts of the runs of integers between edges: an edge belongs to its right neighbour, or to its left one."""
    if closed_right:
        return [low, *(math.floor(edge) + 1 for edge in edges[1:-1])]
    return [low, *(math.ceil(edge) for edge in edges[1:-1])]
