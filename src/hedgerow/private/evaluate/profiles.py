"""Rhythms of dates and times: the hour of the day, the day of the week. PRIVATE: exact functions of real rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hedgerow.private.evaluate.metric import Figure
from hedgerow.private.evaluate.raw import RawColumn
from hedgerow.private.evaluate.values import ColumnFigure, columnwise
from hedgerow.schema.arrays import FloatArray

HOUR, DAY = 3_600, 86_400
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
THURSDAY = 3
"""The first of January 1970."""


def hours(seconds: FloatArray) -> FloatArray:
    """The hour of the day of each moment, 0 to 23."""
    hour: FloatArray = np.floor(np.mod(seconds, DAY) / HOUR)
    return hour


def weekdays(seconds: FloatArray) -> FloatArray:
    """The day of the week of each moment, Monday 0."""
    day: FloatArray = np.mod(np.floor(seconds / DAY) + THURSDAY, 7)
    return day


def profile(column: RawColumn, part: Callable[[FloatArray], FloatArray], size: int) -> FloatArray:
    """The share of the moments in each part of the day or of the week; 0 everywhere without any."""
    return np.bincount(part(column.present).astype(np.int64), minlength=size) / max(len(column.present), 1)


def _profile_error(part: Callable[[FloatArray], FloatArray], size: int) -> ColumnFigure:
    def compute(real: RawColumn, synthetic: RawColumn) -> float | None:
        if not len(real.present):
            return None
        if not len(synthetic.present):
            return 1.0
        return float(np.abs(profile(real, part, size) - profile(synthetic, part, size)).sum()) / 2

    return compute


HOURS = columnwise(
    "hours",
    _profile_error(hours, 24),
    ("moment",),
    Figure(
        "hours",
        "mean distance of the hours of the day of columns with a time",
        words="{} of the moments lie in another hour of the day.",
    ),
)
WEEKDAY = columnwise(
    "weekdays",
    _profile_error(weekdays, 7),
    ("day", "moment"),
    Figure(
        "weekdays",
        "mean distance of the days of the week of columns with a date",
        words="{} of the dates lie on another day of the week.",
    ),
)
