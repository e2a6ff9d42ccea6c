"""The habit of last digits: cents that end in 99, amounts that end in 500 or in thousands; times on the quarter hour.

An ending is written by its digits. `99` stands for whole steps whose last two digits are those; `00`, `000` … for those
that end in just so many zeros; `500`, `5000` … for those with a 5 before them. So every step but 0 has one ending. A
habit says how much likelier a step with an ending is than it would be if all steps were alike; `""` says it of all
that are not named.

A time of the day ends in the longest of some units that it is a whole number of: `60m`, `30m` … `1m`, `30s` … `1s`. So
a table whose moments are whole minutes shows at once, however few of them each minute has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import BeforeValidator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray
from hedgerow.schema.cells import Ranked
from hedgerow.schema.reading import as_number

ENDING = ":ending"
"""The line of a column's endings."""
REST = ""
_DIGITS = re.compile(r"(?!00)\d\d|5?0{2,15}")
HOUR = 3_600
UNITS = {
    **{f"{minutes}m": 60 * minutes for minutes in (60, 30, 15, 10, 5, 1)},
    **{f"{seconds}s": seconds for seconds in (30, 15, 10, 5, 1)},
}
"""Seconds that a time of the day may be a whole number of, the longest first."""
_MOST_DIGITS = 17
_LIKELIEST = 1e15
_AT_ONCE = 1 << 13
"""Rows whose endings are drawn at a time, out of a hundred shares each."""
_TRIES = 16
"""A draw of the rest that has a named ending is drawn again so often; then it stays."""


def endings(digits: int) -> list[str]:
    """All endings of numbers with at most so many digits."""
    zeros = ["0" * count for count in range(2, digits)]
    return [*(f"{last:02}" for last in range(1, 100)), *(each for some in zeros for each in (f"5{some}", some))]


def ending_of(numbers: FloatArray) -> FloatArray:
    """The place of each number's ending in that list; NaN for 0 and for what is NaN."""
    whole = np.where(np.isnan(numbers), 0, np.abs(numbers)).astype(np.int64)
    found = (whole - whole // 100 * 100 - 1).astype(np.float64)
    round_ones = np.flatnonzero((found < 0) & (whole > 0))
    left, zeros = whole[round_ones] // 100, np.full(len(round_ones), 2)
    while (more := left % 10 == 0).any():
        left[more] //= 10
        zeros[more] += 1
    found[round_ones] = 99 + 2 * (zeros - 2) + (left % 10 != 5)
    found[whole == 0] = np.nan
    return found


class Endings(Protocol):
    """A way to tell the steps of a line apart by how they end: each has one ending, or none."""

    names: list[str]
    few: bool
    """Whether they are so few that each is seen, or is not there."""

    def places(self, steps: FloatArray) -> FloatArray:
        """The place of each step's ending among the names; NaN where it has none."""
        ...

    def residues(self, name: str) -> tuple[IntArray, int]:
        """The remainders, ascending, and by what, of the steps with an ending."""
        ...


class Digits:
    """The last digits of numbers that have at most so many."""

    few = False

    def __init__(self, digits: int):
        self.names = endings(digits)

    def places(self, steps: FloatArray) -> FloatArray:
        return ending_of(steps)

    def residues(self, name: str) -> tuple[IntArray, int]:
        return residues_of(name)


DIGITS = Digits(_MOST_DIGITS)


class Clock:
    """How round times of the day are, in steps of so many seconds."""

    few = True

    def __init__(self, seconds: int):
        self.names = [name for name, unit in UNITS.items() if unit % seconds == 0]
        steps = np.arange(HOUR // seconds)
        whole = [steps * seconds % UNITS[name] == 0 for name in self.names]
        self._place: IntArray = np.argmax(whole, axis=0).astype(np.int64)

    def places(self, steps: FloatArray) -> FloatArray:
        nothing = np.isnan(steps)
        known = np.where(nothing, 0, steps).astype(np.int64) % len(self._place)
        return np.where(nothing, np.nan, self._place[known])

    def residues(self, name: str) -> tuple[IntArray, int]:
        return np.flatnonzero(self._place == self.names.index(name)), len(self._place)


class Habit:
    """Draws from leaves as a habit says; `first` and `last` are their ends, `endings` are those of its steps."""

    def __init__(
        self,
        likely: Mapping[str, float],
        endings: Endings,
        first: IntArray,
        last: IntArray,
        avoid: Sequence[int],
    ):
        self._likely = dict(likely)
        self._endings = endings
        self._mirrored = last < 0
        self._first = np.where(self._mirrored, -last, first)
        self._last = np.where(self._mirrored, -first, last)
        self._avoid = tuple(sorted(abs(step) for step in avoid))
        self._named = [name for name in likely if name != REST]

    @cached_property
    def _sets(self) -> list[tuple[IntArray, int]]:
        """The remainders of the steps with each named ending, then those of all."""
        return [*map(self._endings.residues, self._named), (np.zeros(1, dtype=np.int64), 1)]

    def _ranked(self, nth: int, leaf: IntArray) -> Ranked:
        """The steps of one of these sets in some leaves: all sets in all leaves would be millions of numbers."""
        return Ranked(*self._sets[nth], self._first[leaf], self._last[leaf], self._avoid)

    @cached_property
    def _upto(self) -> FloatArray:
        """For each leaf, the shares of its named endings, added up, and then 1; uniform where nothing is likely."""
        every = np.arange(len(self._first))
        counts = np.array([self._ranked(nth, every).count for nth in range(len(self._sets))], dtype=np.float64)
        counts[-1] = np.maximum(counts[-1] - counts[:-1].sum(axis=0), 0)
        likely = np.array([*(self._likely[name] for name in self._named), self._likely.get(REST, 1.0)])
        weight = counts * likely[:, None]
        weight[-1, weight.sum(axis=0) == 0] = 1.0
        return np.cumsum(weight / weight.sum(axis=0), axis=0)

    def draw(self, leaf: IntArray, along: FloatArray, rng: np.random.Generator) -> IntArray:
        """A step of each leaf, about so far into it."""
        share = rng.random(len(leaf))
        ending = np.empty(len(leaf), dtype=np.int64)
        for begin in range(0, len(leaf), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            ending[part] = (self._upto[:-1, leaf[part]] <= share[part]).sum(axis=0)
        along = np.where(self._mirrored[leaf], 1 - along, along)
        drawn = np.empty(len(leaf), dtype=np.int64)
        for index in range(len(self._sets)):
            rows = np.flatnonzero(ending == index)
            drawn[rows] = self._nth(index, leaf[rows], along[rows])
        rows = np.flatnonzero(ending == len(self._named))
        for _ in range(_TRIES):  # the rest has no named ending
            rows = rows[self._is_named(drawn[rows])]
            if not len(rows):
                break
            drawn[rows] = self._nth(-1, leaf[rows], rng.random(len(rows)))
        return np.where(self._mirrored[leaf], -drawn, drawn)

    def _nth(self, index: int, leaf: IntArray, along: FloatArray) -> IntArray:
        """The step of a set that lies so far into each leaf."""
        ranked = self._ranked(index, leaf)
        place = np.clip((along * ranked.count).astype(np.int64), 0, ranked.count - 1)
        return ranked.nth(np.arange(len(leaf)), place)

    def _is_named(self, steps: IntArray) -> BoolArray:
        places = self._endings.places(steps.astype(np.float64))
        return self._held[np.nan_to_num(places, nan=-1).astype(np.int64)]

    @cached_property
    def _held(self) -> BoolArray:
        """Which endings are named, by their places; last, for what has none, that it is not."""
        return np.array([name in self._likely for name in self._endings.names] + [False])


def residues_of(ending: str) -> tuple[IntArray, int]:
    """The remainders, and by what, of the numbers with an ending."""
    if not ending.endswith("00"):
        return np.array([int(ending)]), 100
    unit = int(10 ** ending.count("0"))
    digits = [5] if ending[0] == "5" else [1, 2, 3, 4, 6, 7, 8, 9]
    return np.array(digits) * unit, 10 * unit


def as_endings(value: Any, known: Callable[[str], Any] = _DIGITS.fullmatch) -> Any:
    """A mapping from endings to how likely they are."""
    if not isinstance(value, Mapping):
        raise Fault("bad-endings", "must be a mapping from last digits to how likely they are")
    read = {}
    for name, likely in value.items():
        number = as_number(likely)
        if not isinstance(name, str) or (name != REST and not known(name)):
            raise Fault(
                "bad-endings",
                "an ending must be two digits, or zeros with or without a 5 before them; of a time 60m, 30m … 1s",
            )
        if not 0 <= number <= _LIKELIEST:
            raise Fault("bad-endings", "how likely an ending is must be a number of at least 0")
        read[name] = number
    return read


Likely = Annotated[dict[str, int | float], BeforeValidator(as_endings)]
LikelyTimes = Annotated[dict[str, int | float], BeforeValidator(partial(as_endings, known=UNITS.__contains__))]
