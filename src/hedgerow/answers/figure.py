"""One figure that private rows themselves may be asked for: the sum of a bounded number over some rows, or its mean.

COUNT is the sum of 1 and SHARE the mean of a truth, so there are no other kinds. A row's number is rounded to a whole
number of public steps and clipped to what the schema declares, so one row moves a sum by no more than the largest of
them. A mean is the quotient of two sums, both of which one row moves by at most half of the range: that of what a
number lies above or below the middle of the range, and that of half of the range itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import norm

from hedgerow.answers.question import Question, read_questions
from hedgerow.answers.values import Aggregate
from hedgerow.coded.domain import Attribute, Domain, IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.errors import OptionError
from hedgerow.schema.arrays import BoolArray, nulls, plain
from hedgerow.schema.column import Encoded
from hedgerow.schema.conditions import Condition, Expression
from hedgerow.schema.conditions.cells import held_by_code, length
from hedgerow.schema.conditions.language import Field
from hedgerow.schema.conditions.values import Numbers, Values
from hedgerow.schema.encoding import Encoding

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema

ASKED = "asked"
"""The attribute that says what a row adds."""
MOST_STEPS = 1 << 22
"""From 0 to the largest number that a row may add."""


@dataclass(frozen=True)
class Figure:
    """What is asked, in whole steps: a row that counts adds `first` … `last` of them, any other nothing."""

    question: Question
    value: Aggregate
    step: Fraction
    first: int
    last: int

    @classmethod
    def of(cls, text: str, schema: Schema) -> Figure:
        """Read a question; OptionError where it is not one figure with declared bounds."""
        questions = read_questions(text, schema.columns)
        question, value = questions[0], questions[0].values[0].value
        if len(questions) > 1 or len(question.values) > 1 or question.groups or not isinstance(value, Aggregate):
            raise _refused(question, "one question is confirmed at a time, with one aggregate and no groups")
        if value.name not in ("COUNT", "SHARE", "SUM", "AVG"):
            raise _refused(question, f"{value.name} has no bound on what one row can move it by")
        if value.name == "SHARE" and not value.of_what:
            raise _refused(question, "the share of a group needs its group; write SHARE(condition)")
        if value.name == "COUNT":
            return cls(question, value, Fraction(1), 1, 1)
        if value.name == "SHARE":
            return cls(question, value, Fraction(1), 0, 1)
        low, high, unit = _bounds(value.of_what[0], question)
        largest = max(abs(low), abs(high), high - low)
        if largest == 0 or (value.name == "AVG" and low == high):
            raise _refused(question, "its bounds leave one value alone")
        step = max(unit, largest / MOST_STEPS)
        return cls(question, value, step, round(low / step), round(high / step))

    @property
    def is_mean(self) -> bool:
        return self.value.name in ("SHARE", "AVG")

    @property
    def sums(self) -> list[IntArray]:
        """What a row of each code adds to every sum; rows of code 0 do not count."""
        steps = np.arange(self.first, self.last + 1)
        if not self.is_mean:
            return [np.append(0, steps)]
        width = self.last - self.first
        return [np.append(0, 2 * steps - self.first - self.last), np.append(0, np.full(len(steps), width))]

    @property
    def name(self) -> str:
        return self.question.values[0].name

    @property
    def columns(self) -> tuple[str, ...]:
        return self.question.columns

    def codes(self, rows: pa.Table) -> IntArray:
        """What each row adds, as a code; a function of that row alone."""
        value = self.value
        counts: BoolArray = np.ones(rows.num_rows, dtype=bool)
        for condition in (self.question.where, value.condition):
            if condition is not None:
                counts = counts & condition.truth(rows).true
        if not value.of_what:
            return counts.astype(np.int64)
        (added,) = value.of_what
        if value.name == "COUNT":
            return (counts & ~nulls(added.values(rows))).astype(np.int64)
        if value.name == "SHARE":  # as the answer of a release: where the condition is NULL it does not hold
            assert isinstance(added, Condition)
            return np.where(counts, 1 + added.truth(rows).true, 0)
        line = added._of(rows)
        assert isinstance(line, Numbers)
        steps = np.rint(np.where(line.null, 0.0, line.plain) / float(self.step))
        places = np.clip(steps, self.first, self.last).astype(np.int64) - self.first
        return np.where(counts & ~line.null, 1 + places, 0)

    def estimate(self, noisy: tuple[int, ...], noise: Noise, level: float) -> tuple[float, float, float]:
        """The figure and the ends of its interval, from noisy sums.

        A quotient's interval is Fieller's (1954): the quotients r for which above − r·all is within its noise.
        """
        reach = _reach(noise, level, len(noisy))
        step = float(self.step)
        if not self.is_mean:
            low, high = noisy[0] - reach, noisy[0] + reach
            bounds = (0.0, math.inf) if self.first >= 0 else (-math.inf, math.inf)
            return max(bounds[0], step * noisy[0]), max(bounds[0], step * low), step * high
        above, all_ = noisy
        middle, half = step * (self.first + self.last) / 2, step * (self.last - self.first) / 2
        if all_ <= reach:
            return middle + half * _within(above / all_ if all_ > 0 else 0.0), middle - half, middle + half
        square = all_**2 - reach**2
        root = reach * math.sqrt(max(0.0, above**2 + square))
        ends = ((above * all_ + sign * root) / square for sign in (-1, 1))
        return tuple(middle + half * _within(each) for each in (above / all_, *ends))  # type: ignore[return-value]


class Asked(Encoding):
    """The rows of a table as what they add to a figure, and nothing else."""

    def __init__(self, schema: Schema, figure: Figure):
        super().__init__(schema)
        attribute = Attribute(ASKED, figure.last - figure.first + 2)
        self.columns = figure.columns or self.columns[:1]  # rows are counted by one column, where none is spoken of
        self.blocks: tuple[Any, ...] = (_Added(figure, attribute, schema, self.columns),)
        self.domain = Domain([attribute])
        self.mends = []


class _Added:
    """The columns of a question, coded together."""

    def __init__(self, figure: Figure, attribute: Attribute, schema: Schema, columns: tuple[str, ...]):
        self.columns = columns
        self.attributes, self.names = (attribute,), (attribute.name,)
        self._figure = figure
        self._fields = [Field(name, schema.columns[name]) for name in columns]

    def encode(self, batch: Any) -> Encoded:
        rows = {field.name: _as_released(field, batch.column(field.name)) for field in self._fields}
        codes = self._figure.codes(pa.table(rows))
        return Encoded((codes,), np.zeros(len(codes), dtype=bool))


def _as_released(field: Field, values: pa.Array) -> pa.Array:
    """The values, NULL where a released table would hold NULL in their place: marks of what is missing."""
    held = held_by_code(field)
    values = plain(values)
    if held is None:
        return values
    codes = field.column.encode(values).codes[0]
    missing = np.append(_nulls(held), False)[np.minimum(codes, length(held))]
    return pc.if_else(pa.array(missing), pa.scalar(None, values.type), values) if missing.any() else values


def _nulls(held: Values) -> BoolArray:
    return nulls(held) if isinstance(held, pa.Array) else held.null


def _bounds(line: Expression, question: Question) -> tuple[Fraction, Fraction, Fraction]:
    """The least and the greatest that an expression can be, by what its columns declare, and its unit."""
    known: dict[str, Values] = {}
    for name, field in line.fields.items():
        held = held_by_code(field)
        if not isinstance(held, Numbers):
            raise _refused(question, f"“{name}” has no declared bounds that a sum could have")
        low, high = np.nanmin(held.low, keepdims=True), np.nanmax(held.high, keepdims=True)
        known[name] = Numbers(low, high, held.unit)
    found = line.evaluate(known, 1)
    if not isinstance(found, Numbers) or not np.isfinite([*found.low, *found.high]).all():
        raise _refused(question, "its declared bounds do not bound what is added up")
    unit = Fraction(1) if found.unit is None else found.unit
    return Fraction(found.low[0]) * unit, Fraction(found.high[0]) * unit, Fraction(0) if found.unit is None else unit


def _refused(question: Question, why: str) -> OptionError:
    return OptionError(
        "cannot-confirm",
        f'"{question.text}" cannot be asked of the private rows: {why}. '
        "Hint: COUNT(*), SHARE(condition), SUM(column) or AVG(column) of columns with bounds, with WHERE.",
    )


def _reach(noise: Noise, level: float, sums: int) -> float:
    """How far noise reaches with probability `level`: one draw's, or that of a − r·b as a multiple of √(1 + r²)."""
    if noise.kind == "gaussian":
        return noise.std * float(norm.ppf((1 + level) / 2))
    return (noise.scale * math.log(sums / (1 - level)) + 1) * math.sqrt(sums)


def _within(quotient: float) -> float:
    return min(1.0, max(-1.0, quotient))
