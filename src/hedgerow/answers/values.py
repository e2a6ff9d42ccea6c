"""Values of a group of weighted rows, and how each moves when the rows' shares do.

Every value here is a smooth function of the shares of rows, so close by it is linear: what it is wrong by is the sum of
influence · error of the share, over all rows (Hampel 1974, "The influence curve and its role in robust estimation",
JASA 69). Arithmetic between values follows by the chain rule. So whatever is asked, one number per row says what its
error is made of.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray, numbers
from hedgerow.schema.conditions import Condition, Expression

if TYPE_CHECKING:
    from hedgerow.answers.rows import Rows

NEIGHBOURHOOD = 0.05
"""The density at a quantile is that of so much of the rows on both sides of it."""


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of a group, and all rows that the question's condition lets through."""

    rows: Rows
    members: BoolArray
    asked: BoolArray


@dataclass(frozen=True, eq=False)
class Estimate:
    """A value, its influence row by row, and its derivative by the number of rows.

    `along` says that values along a line make it, not numbers of rows alone; `bounds` that it lies between two numbers
    whatever the rows are.
    """

    value: float
    influence: FloatArray
    by_total: float = 0.0
    along: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    quantile: Quantile | None = None
    """Where the value is a quantile itself: its interval is then found along the line, not by the slope of it."""

    @property
    def linear(self) -> FloatArray:
        """The influence whose variance its interval is made of: of a quantile that of its level."""
        return self.influence if self.quantile is None else self.quantile.influence


@dataclass(frozen=True, eq=False)
class Quantile:
    """The sorted values of a group with their cumulated shares, the level that was asked for, and its influence."""

    values: FloatArray
    upto: FloatArray
    level: float
    influence: FloatArray

    def at(self, level: float) -> float:
        """The least value up to which this share of the rows lies."""
        return float(self.values[_place(self.upto, level)])


def _place(upto: FloatArray, level: float) -> int:
    """Where a growing share reaches a level; sums of floats may fall short of it by a little."""
    return min(int(np.searchsorted(upto, level * upto[-1] * (1 - 1e-12))), len(upto) - 1)


class Value(ABC):
    """What a SELECT lists beside groups."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it speaks of."""

    @abstractmethod
    def of(self, group: Group) -> Estimate:
        """Its estimate for a group; Fault where the group has no row that it could speak of."""


@dataclass(frozen=True)
class Known(Value):
    """A number."""

    number: float

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    def of(self, group: Group) -> Estimate:
        return Estimate(self.number, np.zeros(len(group.members)))


@dataclass(frozen=True)
class Combined(Value):
    """Two values added, subtracted, multiplied or divided."""

    sign: str
    left: Value
    right: Value

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.left.columns, *self.right.columns)

    def of(self, group: Group) -> Estimate:
        a, b = self.left.of(group), self.right.of(group)
        if self.sign in "+-":
            sign = 1.0 if self.sign == "+" else -1.0
            return _linear(a.value + sign * b.value, a, 1.0, b, sign)
        if self.sign == "*":
            return _linear(a.value * b.value, a, b.value, b, a.value)
        if b.value == 0:
            raise Fault("divided-by-zero", "the value that it divides by is 0 there")
        ratio = a.value / b.value
        return _linear(ratio, a, 1 / b.value, b, -ratio / b.value)


def _linear(value: float, a: Estimate, by_a: float, b: Estimate, by_b: float) -> Estimate:
    influence = by_a * a.influence + by_b * b.influence
    return Estimate(value, influence, by_a * a.by_total + by_b * b.by_total, a.along or b.along)


@dataclass(frozen=True)
class Aggregate(Value):
    """COUNT, SHARE, SUM, AVG, VARIANCE, STDDEV, CORR or QUANTILE of a group's rows, perhaps of some of them alone.

    Rows in which what is aggregated is NULL do not count, as in SQL.
    """

    name: str
    of_what: tuple[Expression, ...]
    condition: Condition | None = None
    level: float = 0.5

    @property
    def columns(self) -> tuple[str, ...]:
        inside = [*self.of_what, *([self.condition] if self.condition else [])]
        return tuple(name for part in inside for name in part.columns)

    def of(self, group: Group) -> Estimate:
        rows, members = group.rows, group.members
        if self.condition is not None:
            members = members & rows.truth(self.condition)
        if self.name == "SHARE":
            held = rows.truth(self.of_what[0]) if self.of_what else members  # type: ignore[arg-type]
            among = members if self.of_what else group.asked
            return _share(rows, members & held, among)
        for expression in self.of_what:
            members = members & ~rows.null(expression)
        if self.name == "COUNT":
            share = rows.share(members)
            return Estimate(rows.total * share, rows.total * members.astype(np.float64), share, bounds=(0.0, math.inf))
        lines = [np.where(members, rows.numbers(expression), 0.0) for expression in self.of_what]
        if self.name == "SUM":
            mean = float(rows.weights @ lines[0])
            return Estimate(rows.total * mean, rows.total * lines[0], mean, along=True)
        share = _held(rows, members)
        if self.name == "QUANTILE":
            return _quantile(rows, lines[0], members, share, self.level)
        means = [float(rows.weights @ line) / share for line in lines]
        centred = [np.where(members, line - mean, 0.0) for line, mean in zip(lines, means, strict=True)]
        if self.name == "AVG":
            return Estimate(means[0], centred[0] / share, along=True)
        return _second(self.name, rows, centred, members, share)


def _held(rows: Rows, members: BoolArray) -> float:
    share = rows.share(members)
    if share <= 0:
        raise Fault("nobody", "no row of the release fits")
    return share


def _share(rows: Rows, held: BoolArray, among: BoolArray) -> Estimate:
    whole = _held(rows, among)
    share = rows.share(held) / whole
    return Estimate(share, (held - share * among) / whole, bounds=(0.0, 1.0))


def _second(name: str, rows: Rows, centred: list[FloatArray], members: BoolArray, share: float) -> Estimate:
    """Variances, their roots and correlations: moments of the rows themselves, not of whom they are drawn from."""
    variances = [float(rows.weights @ line**2) / share for line in centred]
    if name == "CORR":
        if min(variances) <= 0:
            raise Fault("no-variation", "a column has one value alone there, which correlates with nothing")
        x, y = (line / math.sqrt(variance) for line, variance in zip(centred, variances, strict=True))
        value = float(rows.weights @ (x * y)) / share
        return Estimate(value, (x * y - value / 2 * (x**2 + y**2)) / share, along=True, bounds=(-1.0, 1.0))
    variance = variances[0]
    influence = np.where(members, centred[0] ** 2 - variance, 0.0) / share
    if name == "VARIANCE":
        return Estimate(variance, influence, along=True, bounds=(0.0, math.inf))
    root = math.sqrt(variance)
    return Estimate(root, influence / (2 * root) if root else 0 * influence, along=True, bounds=(0.0, math.inf))


def _quantile(rows: Rows, line: FloatArray, members: BoolArray, share: float, level: float) -> Estimate:
    inside = np.flatnonzero(members & (rows.weights > 0))
    order = inside[np.argsort(line[inside], kind="stable")]
    sorted_line, upto = line[order], np.cumsum(rows.weights[order]) / share
    value = float(sorted_line[_place(upto, level)])
    found = Quantile(sorted_line, upto, level, np.where(members, level - (line <= value), 0.0) / share)
    low, high = max(0.0, level - NEIGHBOURHOOD), min(1.0, level + NEIGHBOURHOOD)
    slope = (found.at(high) - found.at(low)) / (high - low)
    return Estimate(value, slope * found.influence, along=True, quantile=found)


def as_numbers(expression: Expression, rows: Rows) -> FloatArray:
    """The values of an expression as floats, NaN where it is NULL."""
    return numbers(expression.values(rows.table)).values
