"""The pieces of a column's declared range: values for rules to be judged by before the column has cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.conditions.cells import held_by_code
from hedgerow.schema.conditions.language import Field
from hedgerow.schema.conditions.values import DAY, Numbers, Values
from hedgerow.schema.ordered import OrderedColumn


def pieces_of(field: Field, starts: Sequence[int]) -> Values | None:
    """All that a column may hold, in pieces that begin at the given units and at its bounds."""
    column = field.column
    if not isinstance(column, OrderedColumn):
        return held_by_code(field)
    scale = DAY if field.kind == "date" else 1
    low, high = column.cells.low, column.cells.high
    single = _outside_bins(column)
    if field.unit is None:
        ends = np.array([low, high])
        return _numbers(field, np.append(np.append(ends, low), single), np.append(np.append(ends, high), single))
    inner = {-(-start // scale) for start in starts}
    begins = sorted({int(low), int(low) + 1, int(high), *(start for start in inner if low < start <= high)})
    begins = [begin for begin in begins if begin <= high]
    ends = np.array([*begins[1:], high + 1]) - 1
    return _numbers(field, np.append(np.array(begins, dtype=np.float64), single), np.append(ends, single))


def _outside_bins(column: OrderedColumn) -> FloatArray:
    """The number of each cell after the bins, NaN where it is none: special values, marks, other."""
    layout = column.layout
    shown = layout.size - (layout.hidden is not None)
    found: FloatArray = np.full(shown - layout.own, np.nan)
    for cell, value in column.single_numbers():
        if column.holds(value):
            found[cell - layout.own] = value
    return found


def _numbers(field: Field, low: FloatArray, high: FloatArray) -> Numbers:
    scale = DAY if field.kind == "date" else 1
    return Numbers(low * scale, high * scale, field.unit)
