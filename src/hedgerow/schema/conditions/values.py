"""What expressions are made of while they are evaluated: numbers on a common unit, texts, truths.

Every value maps by itself: no row's result depends on another row, so whatever is decided by a condition on private
rows changes with one person's rows alone.

A number is a range: what a row holds is a range of one number, what a cell of a column holds is a wider one. So one
evaluation serves both, and what it says about ranges is what may be true of some number in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from hedgerow.schema.arrays import BoolArray, FloatArray

DAY = 86_400


@dataclass(frozen=True)
class Numbers:
    """Whole numbers of a unit, NaN for NULL: 0.1 is 1 of 1/10, so that sums and comparisons of decimals are exact
    as long as they stay below 2⁵³ units. Where a number lies on the continuum there is no unit.

    Days, moments and spans of time are numbers of seconds.
    """

    low: FloatArray
    high: FloatArray
    unit: Fraction | None

    @classmethod
    def of(cls, numbers: FloatArray, unit: Fraction | None) -> Numbers:
        """One number in each row."""
        return cls(numbers, numbers, unit)

    @classmethod
    def constant(cls, value: Fraction, rows: int) -> Numbers:
        return cls.of(np.full(rows, float(value.numerator)), Fraction(1, value.denominator))

    @cached_property
    def null(self) -> BoolArray:
        return np.isnan(self.low)

    @property
    def single(self) -> bool:
        return self.low is self.high

    @property
    def plain(self) -> FloatArray:
        """The numbers themselves, as floats; of rows, not of ranges."""
        if self.unit is None:
            return self.low
        return self.low * self.unit.numerator / self.unit.denominator

    def times(self, factor: Fraction) -> Numbers:
        if factor < 0:
            turned = self.times(-factor)
            return (
                Numbers.of(-turned.low, turned.unit) if self.single else Numbers(-turned.high, -turned.low, turned.unit)
            )
        if factor == 0:
            return Numbers.of(self.low * 0, Fraction(1))
        if self.unit is not None:
            return Numbers(self.low, self.high, self.unit * factor)
        low = self.low * float(factor)
        return Numbers(low, low if self.single else self.high * float(factor), None)

    def plus(self, other: Numbers) -> Numbers:
        left, right = aligned(self, other)
        low = left.low + right.low
        return Numbers(low, low if left.single and right.single else left.high + right.high, left.unit)

    def in_units(self, unit: Fraction | None) -> Numbers:
        """The same numbers; `unit` divides their own, or there is none."""
        if unit == self.unit:
            return self
        assert self.unit is not None
        factor = self.unit / (1 if unit is None else unit)
        low = self.low * factor.numerator / factor.denominator
        return Numbers(low, low if self.single else self.high * factor.numerator / factor.denominator, unit)

    def rounded(self, unit: Fraction) -> Numbers:
        """The nearest multiple of a unit, halves away from zero as decimals are rounded."""
        low = _rounded(self.low, self.unit, unit)
        return Numbers(low, low if self.single else _rounded(self.high, self.unit, unit), unit)


def aligned(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Both on a common unit; on the continuum where one of them lies there."""
    if left.unit is None or right.unit is None:
        return left.in_units(None), right.in_units(None)
    common = _common(left.unit, right.unit)
    return left.in_units(common), right.in_units(common)


def _common(left: Fraction, right: Fraction) -> Fraction:
    """The greatest unit that divides both."""
    below = math.lcm(left.denominator, right.denominator)
    return Fraction(math.gcd(int(left * below), int(right * below)), below)


def _rounded(numbers: FloatArray, unit: Fraction | None, to: Fraction) -> FloatArray:
    factor = (1 if unit is None else unit) / to
    if factor.denominator == 1:
        return numbers * factor.numerator if unit is not None else _nearest(numbers * float(factor))
    return _nearest(numbers * factor.numerator / factor.denominator)


def _nearest(numbers: FloatArray) -> FloatArray:
    away: FloatArray = np.copysign(np.floor(np.abs(numbers) + 0.5), numbers)
    return away


@dataclass(frozen=True)
class Truth:
    """Whether a condition is true, false or NULL in each row; of ranges, whether it may be."""

    true: BoolArray
    false: BoolArray
    null: BoolArray

    @classmethod
    def of(cls, true: BoolArray, null: BoolArray) -> Truth:
        """Of rows: what is neither true nor NULL is false."""
        return cls(true & ~null, ~true & ~null, null)

    @classmethod
    def constant(cls, value: bool | None, rows: int) -> Truth:
        return cls.of(np.full(rows, value is True), np.full(rows, value is None))

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true, self.null)

    def __and__(self, other: Truth) -> Truth:
        null = (self.null & (other.null | other.true)) | (other.null & self.true)
        return Truth(self.true & other.true, self.false | other.false, null)

    def __or__(self, other: Truth) -> Truth:
        return ~(~self & ~other)


Values: TypeAlias = Numbers | Truth | pa.Array
"""Numbers and moments, truths, or an Arrow array of text."""


def compared(operator: str, left: Numbers, right: Numbers) -> Truth:
    """`=`, `<` or `<=` of numbers; NULL where one of them is."""
    a, b = aligned(left, right)
    null = a.null | b.null
    if operator == "=":
        true, false = (a.low <= b.high) & (b.low <= a.high), (a.low < b.high) | (b.low < a.high)
    elif operator == "<":
        true, false = a.low < b.high, a.high >= b.low
    else:
        true, false = a.low <= b.high, a.high > b.low
    return Truth(true & ~null, false & ~null, null)
