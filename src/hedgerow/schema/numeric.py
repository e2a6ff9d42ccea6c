"""Integer, number and code columns."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, model_validator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray, Reading, numbers
from hedgerow.schema.cells import LONGEST_PERIOD, Intervals, Steps, equal_steps, steps_between
from hedgerow.schema.column import Layout
from hedgerow.schema.ordered import WIDEST, HeapedColumn, OrderedColumn, SteppedColumn, declared_edges
from hedgerow.schema.reading import Real, Truth, Whole, as_bins

Bins = Annotated[int | Literal["private"] | tuple[int | float, ...], BeforeValidator(as_bins)]
Closed = Literal["left", "right"]
MOST_BINS = 2**20
MOST_CODES = 2**24


class Integer(HeapedColumn):
    """Whole numbers between two bounds: one cell each, or in bins."""

    arrow_type: ClassVar[pa.DataType] = pa.int64()

    type: Literal["integer"] = "integer"
    min: Whole
    max: Whole
    bins: Bins | None = None
    closed: Closed = "left"
    special: tuple[Whole, ...] = ()
    heaps: tuple[Whole, ...] = ()
    discovered: Truth = False

    @model_validator(mode="after")
    def _check(self) -> Integer:
        _check_bounds(self.min, self.max)
        _check_special(self.special)
        width = self.max - self.min + 1
        if self.bins is None and width > WIDEST:
            raise Fault(
                "too-many-values",
                f"bins: {width:,} values between min and max are more than {WIDEST:,}; add `bins` (a count, edges or "
                "private)",
            )
        if isinstance(self.bins, int) and not 1 <= self.bins <= width:
            raise Fault("bad-bins", f"bins: {self.bins} bins do not fit {width:,} values")
        if isinstance(self.bins, int) and self.bins > MOST_BINS:
            raise Fault("bad-bins", f"bins: more than {MOST_BINS:,} bins")
        if isinstance(self.bins, tuple):
            starts = self._starts()
            if any(right <= left for left, right in zip(starts, [*starts[1:], self.max + 1], strict=True)):
                raise Fault("empty-bin", "bins: two edges have no whole number between them")
        self._check_heaps()
        return self

    def _check_heaps(self) -> None:
        if self.heaps and self.bins is None:
            raise Fault("heaps-without-bins", "heaps: without `bins` every value has a cell of its own and needs none")
        for index, rule in enumerate(self.heaps):
            if rule < 2:
                raise Fault("bad-heap", f"heaps: {rule} is not a divisor; use whole numbers of at least 2")
            if any(rule % earlier == 0 for earlier in self.heaps[:index]):
                raise Fault(
                    "heap-never-matches",
                    f"heaps: {rule} can never match, an earlier divisor already does; put it first",
                )
        if self.heaps and math.lcm(*self.heaps) > LONGEST_PERIOD:
            raise Fault("bad-heap", f"heaps: the divisors' least common multiple is beyond {LONGEST_PERIOD:,}")

    @property
    def rules(self) -> tuple[int, ...]:
        return self.heaps

    @property
    def discovery(self) -> str | None:
        return "bins" if self.bins == "private" else None

    @property
    def special_numbers(self) -> tuple[float, ...]:
        return tuple(map(float, self.special))

    @cached_property
    def cells(self) -> Steps:
        return Steps(self._starts(), self.max, self.heaps, map(int, self.own_numbers))

    def edge(self, number: float) -> int:
        """The whole number that cuts where `number` does."""
        return math.ceil(number) if self.closed == "left" else math.floor(number)

    def _starts(self) -> list[int]:
        if isinstance(self.bins, tuple):
            return steps_between(declared_edges(self.bins, self.min, self.max), self.min, self.closed == "right")
        if isinstance(self.bins, int):
            return equal_steps(self.min, self.max, self.bins)
        return list(range(self.min, self.max + 1))

    def read(self, array: pa.Array) -> Reading:
        return numbers(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), mask=null if null.any() else None)


class Number(OrderedColumn):
    """Real numbers between two bounds, in bins."""

    arrow_type: ClassVar[pa.DataType] = pa.float64()

    type: Literal["number"] = "number"
    min: Real
    max: Real
    bins: Bins
    closed: Closed = "left"
    special: tuple[Real, ...] = ()
    discovered: Truth = False

    @model_validator(mode="after")
    def _check(self) -> Number:
        _check_bounds(self.min, self.max)
        _check_special(self.special)
        if self.min == self.max:
            raise Fault("min-above-max", f"max: must be greater than min {self.min}")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MOST_BINS:
            raise Fault("bad-bins", f"bins: must be between 1 and {MOST_BINS:,}, got {self.bins}")
        if self.bins != "private" and (np.diff(self._edges()) <= 0).any():
            raise Fault("bad-bins", "bins: too many for the range between min and max")
        return self

    @property
    def discovery(self) -> str | None:
        return "bins" if self.bins == "private" else None

    @property
    def special_numbers(self) -> tuple[float, ...]:
        return tuple(map(float, self.special))

    @cached_property
    def cells(self) -> Intervals:
        return Intervals(self._edges(), self.closed == "right", self.own_numbers)

    def edge(self, number: float) -> float:
        """Where a bin may be cut: anywhere."""
        return float(number)

    def _edges(self) -> FloatArray:
        if isinstance(self.bins, tuple):
            return np.array(declared_edges(self.bins, self.min, self.max), dtype=np.float64)
        count = self.bins if isinstance(self.bins, int) else 1
        share = np.arange(count + 1) / count
        return self.min * (1 - share) + self.max * share

    def read(self, array: pa.Array) -> Reading:
        return numbers(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.float64, copy=False), mask=null if null.any() else None)


class Code(SteppedColumn):
    """Already coded 0 … size−1, and exactly as wide as declared.

    A number that is no code is clipped, a null or text becomes code 0, so that the coded benchmark tables of the field
    keep their sizes; declare `missing` or `other` for a cell of its own.
    """

    arrow_type: ClassVar[pa.DataType] = pa.int64()

    type: Literal["code"] = "code"
    size: Whole
    ordered: Truth | None = None

    @model_validator(mode="after")
    def _check(self) -> Code:
        if not 1 <= self.size <= MOST_CODES:
            raise Fault("bad-code-size", f"size: must be between 1 and {MOST_CODES:,}, got {self.size}")
        return self

    @property
    def has_order(self) -> bool | None:
        return self.ordered

    @cached_property
    def layout(self) -> Layout:
        return self._lay_out(self.size, needs_hidden=False)

    @cached_property
    def cells(self) -> Steps:
        return Steps(np.arange(self.size), self.size - 1)

    def read(self, array: pa.Array) -> Reading:
        return numbers(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), mask=null if null.any() else None)


def _check_bounds(low: float, high: float) -> None:
    if low > high:
        raise Fault("min-above-max", f"min: {low} is greater than max {high}")


def _check_special(special: tuple[float, ...]) -> None:
    if len(set(special)) != len(special):
        raise Fault("value-twice", "special: a value stands twice")
