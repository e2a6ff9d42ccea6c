"""Where conditions tell the numbers of one column apart: cells that begin there are legal or not as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from hedgerow.schema.conditions.language import Among, Comparison, Condition, Expression, Field
from hedgerow.schema.conditions.lines import as_line
from hedgerow.schema.conditions.values import Numbers
from hedgerow.schema.rules.lookup import Listed

MOST = 1_000
"""Values of a column that are told apart; of longer lists none is."""


def boundaries(conditions: Iterable[Condition], column: str) -> list[int]:
    """Where runs of a column's units begin, in order, so that conditions on it alone are decided for a whole run."""
    found: set[int] = set()
    for condition in conditions:
        for node in condition.walk():
            starts = list(_starts(node, column))
            if len(starts) <= MOST:
                found.update(starts)
    return sorted(found)


def _starts(node: Expression, column: str) -> Iterable[int]:
    if isinstance(node, Comparison):
        left, right = as_line(node.left), as_line(node.right)
        if left is None or right is None:
            return
        factor = left.get(column, Fraction(0)) - right.get(column, Fraction(0))
        if factor and not {name for name in (*left, *right) if name not in ("", column)}:
            threshold = (right.get("", Fraction(0)) - left.get("", Fraction(0))) / factor
            yield from _around(node, column, threshold, factor < 0)
    elif isinstance(node, Among) and isinstance(node.inner, Field) and node.inner.name == column:
        for constant in node.constants:
            if isinstance(constant.value, Fraction):
                yield from _both(node.inner, constant.value)
    elif isinstance(node, Listed):
        for field, values in zip(node.of, node._columns, strict=True):
            if field.name == column and isinstance(values, Numbers):
                for value in np.unique(values.low[~values.null]).tolist():
                    yield int(value)
                    yield int(value) + 1


def _around(node: Comparison, column: str, threshold: Fraction, turned: bool) -> Iterable[int]:
    """Below or above: x < t and x ≥ t part at t, x ≤ t and x > t after it."""
    field = node.fields[column]
    if node.operator == "=":
        yield from _both(field, threshold)
        return
    unit = field.unit
    if unit is not None:
        parts_before = (node.operator == "<") != turned
        place = threshold / unit
        yield math.ceil(place) if parts_before else math.floor(place) + 1


def _both(field: Field, value: Fraction) -> Iterable[int]:
    if field.unit is not None and (value / field.unit).denominator == 1:
        yield int(value / field.unit)
        yield int(value / field.unit) + 1
