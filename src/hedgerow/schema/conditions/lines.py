"""Sums of columns times factors: where one of them tells numbers apart, and what one of them is, given the others.

A derived column is an equation: `dropoff = pickup + seconds * INTERVAL '1 second'`. A table that has `dropoff` and no
`seconds` has them all the same. How long a trip takes is learnt far better from its length than from its two ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from hedgerow.schema.arrays import FloatArray, moments, numbers
from hedgerow.schema.conditions.language import Constant, Difference, Expression, Field, Scaled, Span, Sum


def as_line(expression: Expression) -> dict[str, Fraction] | None:
    """A sum of columns times factors, and a constant under the name ""; None where it is no such sum."""
    if isinstance(expression, Field):
        return {expression.name: Fraction(1)}
    if isinstance(expression, Constant):
        return {"": expression.value} if isinstance(expression.value, Fraction) else None
    if isinstance(expression, Scaled | Span):
        inner = as_line(expression.inner)
        factor = expression.factor if isinstance(expression, Scaled) else expression.seconds
        return inner and {name: each * factor for name, each in inner.items()}
    if isinstance(expression, Sum | Difference):
        left, right = as_line(expression.left), as_line(expression.right)
        if left is None or right is None or expression.kind != expression.left.kind:
            return None
        sign = -1 if isinstance(expression, Difference) else 1
        return {name: left.get(name, Fraction(0)) + sign * right.get(name, Fraction(0)) for name in {**left, **right}}
    return None


@dataclass(frozen=True, eq=False)
class Solved:
    """A column of numbers that a table lacks, by a derived column that it has: each row by itself."""

    name: str
    total: str
    """The derived column."""
    expression: Expression

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns that are read for it."""
        return (self.total, *(name for name in self.expression.columns if name != self.name))

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """Its values; null where one of the others has none, or none that can be read."""
        line = as_line(self.expression)
        assert line is not None
        left = _read(batch.column(self.total), self.expression.kind) - float(line.get("", 0))
        for name, field in self.expression.fields.items():
            if name != self.name:
                known = field.read(batch.column(name)).plain  # type: ignore[union-attr]
                left = left - float(line[name]) * known
        found = left / float(line[self.name])
        return pa.array(found, mask=np.isnan(found))


def _read(array: pa.Array, kind: str) -> FloatArray:
    return numbers(array).values if kind == "number" else moments(array).values


def solved(derived: Mapping[str, Expression], header: Collection[str]) -> list[Solved]:
    """The columns that a table with this header lacks, and that a derived column of it tells."""
    found: dict[str, Solved] = {}
    for total, expression in derived.items():
        line = as_line(expression)
        if total not in header or line is None:
            continue
        lacking = [name for name in expression.columns if name not in header]
        if len(lacking) == 1 and expression.fields[lacking[0]].kind == "number" and line[lacking[0]]:
            found.setdefault(lacking[0], Solved(lacking[0], total, expression))
    return list(found.values())
