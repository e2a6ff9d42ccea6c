"""Parts of dates and moments: the year, the month … of numbers of seconds since 1970, also of ranges of them.

Within the stretch that a part counts in (the months of a year, the hours of a day) it grows with time; a range that
reaches over its end may have any.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.conditions.values import DAY, Numbers

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": DAY, "WEEK": 7 * DAY}
_Moments: TypeAlias = npt.NDArray[np.datetime64]
_Count: TypeAlias = Callable[[_Moments], FloatArray]


@dataclass(frozen=True)
class _Counted:
    """A part, the stretch that it counts in, and the least and the largest that it can be."""

    part: _Count
    stretch: _Count | None
    least: int = 0
    largest: int = 0

    def __call__(self, line: Numbers) -> Numbers:
        seconds = line.in_units(Fraction(1))
        low = _of(seconds.low, self.part)
        if seconds.single:
            return Numbers.of(low, Fraction(1))
        high = _of(seconds.high, self.part)
        if self.stretch is None:
            return Numbers(low, high, Fraction(1))
        within = (_of(seconds.low, self.stretch) == _of(seconds.high, self.stretch)) | seconds.null
        return Numbers(np.where(within, low, self.least), np.where(within, high, self.largest), Fraction(1))


def _of(seconds: FloatArray, count: _Count) -> FloatArray:
    null = np.isnan(seconds)
    found = count(np.where(null, 0, seconds).astype(np.int64).astype("datetime64[s]"))
    return np.where(null, np.nan, found)


def _since(moments: _Moments, unit: str) -> FloatArray:
    """Whole units since 1970."""
    return moments.astype(f"datetime64[{unit}]").astype(np.int64).astype(np.float64)


def _within(unit: str, of: str, first: int) -> _Count:
    """Units since the beginning of a longer one."""

    def count(moments: _Moments) -> FloatArray:
        begin = moments.astype(f"datetime64[{of}]").astype(f"datetime64[{unit}]")
        found: FloatArray = (moments.astype(f"datetime64[{unit}]") - begin).astype(np.int64).astype(np.float64)
        return found + first

    return count


def _weekday(first: int) -> _Count:
    """Days since a day of the week: 1970 began on a Thursday."""
    return lambda moments: (_since(moments, "D") + first) % 7


def _week(first: int) -> _Count:
    return lambda moments: (_since(moments, "D") + first) // 7


PARTS: dict[str, _Counted] = {
    "YEAR": _Counted(lambda moments: _since(moments, "Y") + 1970, None),
    "QUARTER": _Counted(
        lambda moments: _within("M", "Y", 0)(moments) // 3 + 1, lambda moments: _since(moments, "Y"), 1, 4
    ),
    "MONTH": _Counted(_within("M", "Y", 1), lambda moments: _since(moments, "Y"), 1, 12),
    "DAY": _Counted(_within("D", "M", 1), lambda moments: _since(moments, "M"), 1, 31),
    "DOY": _Counted(_within("D", "Y", 1), lambda moments: _since(moments, "Y"), 1, 366),
    "DOW": _Counted(_weekday(4), _week(4), 0, 6),
    "ISODOW": _Counted(lambda moments: _weekday(3)(moments) + 1, _week(3), 1, 7),
    "HOUR": _Counted(_within("h", "D", 0), lambda moments: _since(moments, "D"), 0, 23),
    "MINUTE": _Counted(_within("m", "h", 0), lambda moments: _since(moments, "h"), 0, 59),
    "SECOND": _Counted(_within("s", "m", 0), lambda moments: _since(moments, "m"), 0, 59),
}
