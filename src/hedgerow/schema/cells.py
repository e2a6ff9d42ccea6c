"""Cells of numbers in order: which cell a number falls in, and a uniform draw from a cell.

Two lines exist: whole steps (integers, days, seconds), where a cell is a run of integers, and the continuum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from hedgerow.coded.domain import IntArray
from hedgerow.schema.arrays import BoolArray, FloatArray

LONGEST_PERIOD = 1_000_000


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
        whole: IntArray = numbers.astype(np.int64)
        if self.single:
            whole -= self.starts[0]
            return whole
        return np.searchsorted(self.starts, whole, side="right") - 1

    def divisibility(self, numbers: FloatArray) -> IntArray:
        """The first rule of `heaps` that divides each number; the last class where none does."""
        classes: IntArray = np.full(len(numbers), len(self.heaps), dtype=np.int64)
        whole = np.floor(numbers).astype(np.int64)
        for index in reversed(range(len(self.heaps))):
            classes[whole % self.heaps[index] == 0] = index
        return classes

    @cached_property
    def _classes(self) -> tuple[_Class, ...]:
        period = math.lcm(*self.heaps) if self.heaps else 1
        residues: IntArray = np.arange(period, dtype=np.int64)
        of_residue = self.divisibility(residues.astype(np.float64))
        return tuple(
            _Class(residues[of_residue == index], period, self.starts, self.ends, self._avoid)
            for index in range(len(self.heaps) + 1)
        )

    @cached_property
    def _any(self) -> tuple[_Class, _Class]:
        """Any number of the run but those to be avoided; and, for a run of nothing else, any number at all."""
        every = np.zeros(1, dtype=np.int64)
        return (
            _Class(every, 1, self.starts, self.ends, self._avoid),
            _Class(every, 1, self.starts, self.ends, ()),
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


class _Class:
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
        if not len(cells):
            return cells
        first = self._first[cells]
        rank = first + rng.integers(0, self.count[cells])
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
