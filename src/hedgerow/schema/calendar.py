"""Date and datetime columns.

Few steps, and steps of a week or more, have a cell each. Many days, hours, minutes or seconds are cut where rows turn
out to be, and a moment is then several attributes: which stretch of days, which day of the week, which time of the day.
What comes back is a moment that agrees with all of them, as far as its stretch has such a day.
"""

from __future__ import annotations

import datetime
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, PrivateAttr, model_validator

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.errors import Fault, listing
from hedgerow.schema.arrays import BoolArray, CodeArray, FloatArray, Reading, moments
from hedgerow.schema.cells import Steps
from hedgerow.schema.endings import ENDING, REST, Clock, LikelyTimes
from hedgerow.schema.leaves import Leaf, Leaves, as_leaves, check_leaves
from hedgerow.schema.ordered import NARROW, WIDEST, SteppedColumn
from hedgerow.schema.reading import Text, Truth, as_date, as_moment, as_time
from hedgerow.schema.trees import Calendar, Flat, Ladder, Placed, Tree
from hedgerow.schema.written import check_format, finest, read, write

DAY = 86_400
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": DAY, "week": 7 * DAY}
_MONDAY = 4 * DAY  # 1970-01-05
_THURSDAY = 3
"""The place of 1970-01-01 in a week that begins on Monday."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LADDER = (3_600, 600, 60, 10, 1)
"""How a day is looked into, in seconds."""
TIME, WEEKDAY = ":time", ":weekday"

Stretches = Annotated[
    tuple[tuple[tuple[datetime.date, datetime.date, int], ...], ...], BeforeValidator(partial(as_leaves, end=as_date))
]
Times = Annotated[
    tuple[tuple[tuple[datetime.time, datetime.time, int], ...], ...], BeforeValidator(partial(as_leaves, end=as_time))
]


class CalendarColumn(SteppedColumn):
    """Moments between two bounds, as whole numbers of days or of seconds since 1970."""

    per_day: ClassVar[int]
    """How many numbers a day has."""

    min: Any
    max: Any
    step: str
    format: Text | None = None
    leaves: Stretches | None = None
    discovered: Truth = False
    _each: bool = PrivateAttr(False)

    @abstractmethod
    def typed(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        """Numbers as Arrow's own dates or moments."""

    @property
    def day_leaves(self) -> Any:
        """Where the day was cut; nothing where it is not."""
        return None

    @property
    def day_habit(self) -> Mapping[str, float] | None:
        """How likely times of the day end in one way or another; nothing where all are alike."""
        return None

    @property
    def arrow_type(self) -> pa.DataType:
        return self.value_type if self.format is None else pa.string()

    @property
    @abstractmethod
    def value_type(self) -> pa.DataType:
        """Arrow's own type of a day or a moment."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min > self.max:
            raise Fault("min-above-max", f"min: {self.min.isoformat()} is later than max {self.max.isoformat()}")
        if not self._is_wide and len(self._starts(most=WIDEST + 1)) > WIDEST:
            raise Fault(
                "too-many-steps",
                f"step: there are more than {WIDEST:,} steps of a {self.step} between min and max; use a longer step",
            )
        if self.format is not None:
            check_format(self.format, self._examples())
        if (self.leaves is None) != (self.day_leaves is None) and self._steps_a_day > 1:
            raise Fault("bad-leaves", "leaves: a column that was cut has stretches of days and times of the day")
        if self.leaves is not None:
            if not self._is_wide:
                raise Fault("bad-leaves", f"leaves: steps of a {self.step} are too few or too long to be cut")
            check_leaves(self._stretches(), *self._days, self._own_days)
        if self.day_leaves is not None:
            check_leaves(self._times(), 0, self._steps_a_day - 1, ())
        if self.day_habit is not None and not {*self.day_habit} <= {*self._clock.names, REST}:
            raise Fault("bad-endings", f"endings: times in steps of a {self.step} end in {listing(self._clock.names)}")
        return self

    def with_a_cell_each(self) -> Self:
        """The same declaration as it was read before days and moments were cut: up to 10,000 steps have a cell each."""
        column = type(self)(**{name: getattr(self, name) for name in type(self).model_fields})
        column._each = True
        return column if len(column._starts(most=WIDEST + 1)) <= WIDEST else self

    def _examples(self) -> Iterator[datetime.datetime]:
        """Moments that a way of writing must tell apart: bounds, years, and one with an afternoon of its own."""
        first, last = _seconds(self.min), _seconds(self.max)
        width = min(_SECONDS.get(self.step, DAY), DAY) if self.per_day > 1 else DAY
        afternoon = 15 * 3_600 + 4 * 60 + 5
        for second in (first, last, last - last % DAY + afternoon, min(first + DAY, last), min(first + 40 * DAY, last)):
            yield _moment(second - second % width)
        for year in range(self.min.year + 1, self.max.year + 1):
            yield datetime.datetime(year, 1, 1)

    @property
    def _is_wide(self) -> bool:
        """Whether there are too many steps of at most a day to have a cell each."""
        width = _SECONDS.get(self.step, 7 * DAY)
        return not self._each and width <= DAY and (_seconds(self.max) - _seconds(self.min)) // width >= NARROW

    @property
    def _steps_a_day(self) -> int:
        return DAY // min(_SECONDS.get(self.step, DAY), DAY) if self.per_day > 1 else 1

    @property
    def _days(self) -> tuple[int, int]:
        return _seconds(self.min) // DAY, _seconds(self.max) // DAY

    @property
    def _own_days(self) -> list[int]:
        return [number // self.per_day for number in self.own_steps]

    @property
    def discovery(self) -> str | None:
        return "cuts" if self._is_wide and self.leaves is None else None

    # ------------------------------------------------------------ one attribute, or several

    @cached_property
    def cells(self) -> Steps:
        if not self._is_wide:
            return Steps(self._starts(), self._number(self.max), avoid=self.own_steps)
        first, last = self._days
        low, high = first * self.per_day, (last + 1) * self.per_day - 1
        if self.leaves is None:
            return Steps([low], high)
        scaled = [
            [Leaf(a * self.per_day, (b + 1) * self.per_day - 1, w) for a, b, w in cell] for cell in self._stretches()
        ]
        return Leaves(scaled, low, high)

    @cached_property
    def _day_cells(self) -> Leaves:
        return Leaves(self._stretches(), *self._days, self._own_days, rhythm=len(WEEKDAYS))

    @cached_property
    def _time_cells(self) -> Leaves:
        last = self._steps_a_day - 1
        return Leaves(self._times(), 0, last, likely=self.day_habit, endings=self._clock)

    @cached_property
    def _clock(self) -> Clock:
        return Clock(DAY // self._steps_a_day)

    def _stretches(self) -> list[list[Leaf]]:
        cells = self.leaves or ()
        return [[Leaf(_seconds(a) // DAY, _seconds(b) // DAY, weight) for a, b, weight in cell] for cell in cells]

    def _times(self) -> list[list[Leaf]]:
        width = DAY // self._steps_a_day
        return [
            [Leaf(_of_day(first) // width, _of_day(last) // width, weight) for first, last, weight in cell]
            for cell in self.day_leaves or ()
        ]

    def attributes(self, name: str) -> tuple[Attribute, ...]:
        found = super().attributes(name)
        if self._is_wide:
            found += (Attribute(f"{name}{WEEKDAY}", len(WEEKDAYS), ordered=0),)
        if self._is_wide and self._steps_a_day > 1:
            cells = max(1, len(self.day_leaves or ()))
            found += (Attribute(f"{name}{TIME}", cells, ordered=cells),)
        return found

    def labels(self) -> tuple[list[str], ...]:
        said = super().labels()
        if self._is_wide:
            said += (list(WEEKDAYS),)
        if self._is_wide and self._steps_a_day > 1:
            ends = [(cell[0][0], cell[-1][1]) for cell in self.day_leaves or ()] or [
                (datetime.time.min, datetime.time.max)
            ]
            said += ([_span(first, last) for first, last in ends],)
        return said

    def span_label(self, first: datetime.date, last: datetime.date) -> str:
        return _span(_date(first), _date(last)) if self._is_wide else _step_label(self.step, first, last)

    def _classes(self, bounded: FloatArray, codes: IntArray) -> tuple[IntArray, ...]:
        if not self._is_wide:
            return ()
        own = codes < self.layout.own
        days = np.floor_divide(bounded, self.per_day)
        if self.leaves is not None:
            days = self._day_cells.nearest(days, np.where(own, codes, 0)).astype(np.float64)
        found = [np.where(own, (days.astype(np.int64) + _THURSDAY) % len(WEEKDAYS), 0)]
        if self._steps_a_day > 1:
            times = self._of_the_day(bounded)
            found.append(np.where(own, 0 if self.day_leaves is None else self._time_cells.cell(times), 0))
        return tuple(found)

    def _of_the_day(self, numbers: FloatArray) -> FloatArray:
        return np.floor_divide(np.mod(numbers, DAY), DAY // self._steps_a_day)

    def write(self, codes: Sequence[CodeArray], rng: np.random.Generator) -> pa.Array:
        if not self._is_wide:
            return super().write(codes, rng)
        cells = codes[0].astype(np.int64, copy=False)
        own = self._own_cells(cells)
        days = self._day_cells.draw(own, (codes[1].astype(np.int64) - _THURSDAY) % len(WEEKDAYS), rng)
        numbers = days * self.per_day
        if self._steps_a_day > 1:
            numbers += self._time_cells.draw(codes[2].astype(np.int64), None, rng) * (DAY // self._steps_a_day)
        return self._as_values(numbers, cells)

    # ------------------------------------------------------------ being cut

    def trees(self) -> dict[str, Tree]:
        found: dict[str, Tree] = {"": Calendar(*self._days)}
        if self._steps_a_day > 1:
            width = DAY // self._steps_a_day
            widths = tuple(seconds // width for seconds in _LADDER if seconds >= width)
            found[TIME] = Ladder(0, self._steps_a_day - 1, widths)
            if len(self._clock.names) > 1:
                found[ENDING] = Flat(0, len(self._clock.names) - 1)
        return found

    def habits(self) -> tuple[str, Clock]:
        return TIME, self._clock

    def places(self, array: pa.Array) -> Placed:
        numbers, outside = self.settled(array)
        found = {"": np.floor_divide(numbers, self.per_day)}
        if self._steps_a_day > 1:
            found[TIME] = self._of_the_day(numbers)
            found[ENDING] = self._clock.places(found[TIME])
        return Placed(found, outside)

    def elsewhere(self) -> dict[str, list[int]]:
        return {"": self._own_days}

    def cut(self, cells: Mapping[str, Sequence[Sequence[Leaf]]]) -> dict[str, Any]:
        days = [[(_date(_moment(a * DAY)), _date(_moment(b * DAY)), w) for a, b, w in cell] for cell in cells[""]]
        found: dict[str, Any] = {"leaves": days}
        if TIME in cells:
            width = DAY // self._steps_a_day
            found["times"] = [[(_time(a * width), _time(b * width), w) for a, b, w in cell] for cell in cells[TIME]]
        return found

    # ------------------------------------------------------------ in and out

    def _read(self, array: pa.Array) -> Reading:
        """Seconds since 1970."""
        form = self.format
        return moments(array) if form is None else moments(array, lambda text: read(text, form))

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        if self.format is None:
            return self.typed(numbers, null)
        seconds = np.where(null, 0, numbers).astype(np.int64) * (DAY // self.per_day)
        written = write(seconds, self.format)
        return (
            pa.array(np.where(null, None, written.to_numpy(zero_copy_only=False)), pa.string())
            if null.any()
            else written
        )

    def _spelled(self, numbers: FloatArray | IntArray) -> list[Any]:
        return list(self.typed(numbers, np.zeros(len(numbers), dtype=bool)).to_pylist())

    def _number(self, moment: datetime.date) -> int:
        return _seconds(moment) // (DAY // self.per_day)

    def _starts(self, most: int | None = None) -> list[int]:
        seconds = _starts(_seconds(self.min), _seconds(self.max), self.step, most)
        return [second // (DAY // self.per_day) for second in seconds]


class Date(CalendarColumn):
    """Days between two dates."""

    per_day: ClassVar[int] = 1

    type: Literal["date"] = "date"
    min: Annotated[datetime.date, BeforeValidator(as_date)]
    max: Annotated[datetime.date, BeforeValidator(as_date)]
    step: Literal["day", "week", "month", "quarter", "year"] = "day"

    @property
    def value_type(self) -> pa.DataType:
        return pa.date32()

    def read(self, array: pa.Array) -> Reading:
        seconds, empty = self._read(array)
        return Reading(np.floor(seconds / DAY), empty)

    def typed(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int32, copy=False), pa.int32(), mask=null).view(pa.date32())


class Datetime(CalendarColumn):
    """Seconds between two moments. Those with a time zone are taken in UTC. What is cut is bounded by whole days."""

    per_day: ClassVar[int] = DAY

    type: Literal["datetime"] = "datetime"
    min: Annotated[datetime.datetime, BeforeValidator(as_moment)]
    max: Annotated[datetime.datetime, BeforeValidator(as_moment)]
    step: Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"] = "second"
    times: Times | None = None
    endings: LikelyTimes | None = None

    @model_validator(mode="before")
    @classmethod
    def _step_of_format(cls, data: Any) -> Any:
        """Where nobody says by which steps, a format tells: no more can be written."""
        if isinstance(data, Mapping) and "step" not in data and isinstance(data.get("format"), str):
            return {**data, "step": finest(data["format"])}
        return data

    def unsaid(self, key: str) -> Any:
        return None if key == "step" else super().unsaid(key)  # always said: it once was an hour

    @property
    def day_leaves(self) -> Any:
        return self.times

    @property
    def day_habit(self) -> Mapping[str, float] | None:
        return self.endings

    @property
    def value_type(self) -> pa.DataType:
        return pa.timestamp("s")

    @property
    def has_times(self) -> bool:
        """Whether the time of the day is an attribute."""
        return self._is_wide and self._steps_a_day > 1

    @property
    def pace(self) -> int:
        """Seconds from one step of an order to the next: a day's at most, and a day's where times are apart."""
        return DAY if self._is_wide else min(_SECONDS.get(self.step, DAY), DAY)

    def seconds_of_day(self, codes: CodeArray, rng: np.random.Generator) -> IntArray:
        """A second of the day for each code of the times."""
        drawn: IntArray = self._time_cells.draw(codes.astype(np.int64), None, rng) * (DAY // self._steps_a_day)
        return drawn

    def read(self, array: pa.Array) -> Reading:
        return self._read(array)

    def typed(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), pa.int64(), mask=null).view(pa.timestamp("s"))


def _step_label(step: str, first: datetime.date, last: datetime.date) -> str:
    """A month by its month, a year by its year, also where the bounds cut it; other steps by their ends."""
    short = {"month": "%Y-%m", "year": "%Y", "day": "%Y-%m-%d", "hour": "%Y-%m-%d %H h", "minute": "%Y-%m-%d %H:%M"}
    return first.strftime(short[step]) if step in short else _span(first, last)


def _span(first: Any, last: Any) -> str:
    return str(first) if first == last else f"{first} – {last}"


def _date(moment: datetime.date) -> datetime.date:
    return moment.date() if isinstance(moment, datetime.datetime) else moment


def _moment(second: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=second)


def _time(second: int) -> datetime.time:
    return _moment(second).time()


def _of_day(time: datetime.time) -> int:
    return time.hour * 3_600 + time.minute * 60 + time.second


def _seconds(moment: datetime.date) -> int:
    midnight = datetime.datetime(moment.year, moment.month, moment.day)
    within = moment - midnight if isinstance(moment, datetime.datetime) else datetime.timedelta()
    return (midnight - datetime.datetime(1970, 1, 1) + within) // datetime.timedelta(seconds=1)


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
    day = _moment(second)
    return day.year * 12 + day.month - 1


def _month_start(month: int) -> int:
    return _seconds(datetime.date(month // 12, month % 12 + 1, 1))
