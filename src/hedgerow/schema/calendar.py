"""Date and datetime columns: days or seconds in order, cut at calendar steps."""

from __future__ import annotations

import datetime
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, model_validator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray, Reading, moments
from hedgerow.schema.cells import Steps
from hedgerow.schema.ordered import WIDEST, SteppedColumn
from hedgerow.schema.reading import as_date, as_moment

DAY = 86_400
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": DAY, "week": 7 * DAY}
_MONDAY = 4 * DAY  # 1970-01-05


class Date(SteppedColumn):
    """Days between two dates, one cell for each step."""

    arrow_type: ClassVar[pa.DataType] = pa.date32()

    type: Literal["date"] = "date"
    min: Annotated[datetime.date, BeforeValidator(as_date)]
    max: Annotated[datetime.date, BeforeValidator(as_date)]
    step: Literal["day", "week", "month", "quarter", "year"] = "day"

    @model_validator(mode="after")
    def _check(self) -> Date:
        _check_steps(self.min, self.max, self.step)
        return self

    @cached_property
    def cells(self) -> Steps:
        starts = [start // DAY for start in _starts(_seconds(self.min), _seconds(self.max), self.step)]
        return Steps(starts, _seconds(self.max) // DAY, avoid=map(int, self.own_numbers))

    def span_label(self, first: datetime.date, last: datetime.date) -> str:
        return _step_label(self.step, first, last)

    def read(self, array: pa.Array) -> Reading:
        seconds, empty = moments(array)
        return Reading(np.floor(seconds / DAY), empty)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int32, copy=False), pa.int32(), mask=null).view(pa.date32())


class Datetime(SteppedColumn):
    """Seconds between two moments, one cell for each step. Moments with a time zone are taken in UTC."""

    arrow_type: ClassVar[pa.DataType] = pa.timestamp("s")

    type: Literal["datetime"] = "datetime"
    min: Annotated[datetime.datetime, BeforeValidator(as_moment)]
    max: Annotated[datetime.datetime, BeforeValidator(as_moment)]
    step: Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"] = "hour"

    @model_validator(mode="after")
    def _check(self) -> Datetime:
        _check_steps(self.min, self.max, self.step)
        return self

    @cached_property
    def cells(self) -> Steps:
        starts = _starts(_seconds(self.min), _seconds(self.max), self.step)
        return Steps(starts, _seconds(self.max), avoid=map(int, self.own_numbers))

    def span_label(self, first: datetime.datetime, last: datetime.datetime) -> str:
        return _step_label(self.step, first, last)

    def read(self, array: pa.Array) -> Reading:
        return moments(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), pa.int64(), mask=null).view(pa.timestamp("s"))


def _step_label(step: str, first: datetime.date, last: datetime.date) -> str:
    """A month by its month, a year by its year, also where the bounds cut it; other steps by their ends."""
    short = {"month": "%Y-%m", "year": "%Y", "day": "%Y-%m-%d", "hour": "%Y-%m-%d %H h", "minute": "%Y-%m-%d %H:%M"}
    if step in short:
        return first.strftime(short[step])
    return str(first) if first == last else f"{first} – {last}"


def _seconds(moment: datetime.date) -> int:
    midnight = datetime.datetime(moment.year, moment.month, moment.day)
    within = moment - midnight if isinstance(moment, datetime.datetime) else datetime.timedelta()
    return (midnight - datetime.datetime(1970, 1, 1) + within) // datetime.timedelta(seconds=1)


def _check_steps(low: datetime.date, high: datetime.date, step: str) -> None:
    if low > high:
        raise Fault("min-above-max", f"min: {low.isoformat()} is later than max {high.isoformat()}")
    if len(_starts(_seconds(low), _seconds(high), step, most=WIDEST + 1)) > WIDEST:
        raise Fault(
            "too-many-steps",
            f"step: there are more than {WIDEST:,} steps of a {step} between min and max; use a longer step",
        )


def _starts(low: int, high: int, step: str, most: int | None = None) -> list[int]:
    """The first second of every step from low to high; the first step is cut by low. At most `most` of them."""
    if step in _SECONDS:
        width = _SECONDS[step]
        origin = _MONDAY if step == "week" else 0
        second = origin + ((low - origin) // width + 1) * width
        stop = high + 1 if most is None else min(high + 1, second + most * width)
        return [low, *range(second, stop, width)]
    months = {"month": 1, "quarter": 3, "year": 12}[step]
    first, last = _month(low), _month(high)
    turns = range((first // months + 1) * months, last + 1, months)
    return [low, *(_month_start(turn) for turn in turns)]


def _month(second: int) -> int:
    """Months since year 0 of the month that holds a second."""
    day = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=second)
    return day.year * 12 + day.month - 1


def _month_start(month: int) -> int:
    return _seconds(datetime.date(month // 12, month % 12 + 1, 1))
