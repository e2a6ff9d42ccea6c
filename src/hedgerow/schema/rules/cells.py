"""What the codes of a column, or the pieces of its declared range, allow: values for conditions to be judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import IntArray
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.conditions.language import Field
from hedgerow.schema.conditions.values import DAY, Numbers, Truth, Values
from hedgerow.schema.listed import ListedColumn
from hedgerow.schema.ordered import OrderedColumn


def of_codes(field: Field) -> Values | None:
    """What each code of a column stands for, without the hidden one; None where its kind does not say."""
    column = field.column
    if isinstance(column, ListedColumn):
        return field.read(column.one_by_one)
    if not isinstance(column, OrderedColumn):
        return None
    low, high = (np.asarray(ends, dtype=np.float64) for ends in column.cells.spans)
    single = _outside_bins(column)
    return _numbers(field, np.append(low, single), np.append(high, single))


def of_pieces(field: Field, starts: Sequence[int]) -> Values | None:
    """All that a column may hold, in pieces that begin at the given units and at its bounds."""
    column = field.column
    if not isinstance(column, OrderedColumn):
        return of_codes(field)
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


def taken(values: Values, index: IntArray) -> Values:
    """Some of the values, or ranges of them."""
    if isinstance(values, Numbers):
        low = values.low[index]
        return Numbers(low, low if values.single else values.high[index], values.unit)
    if isinstance(values, Truth):
        return Truth(values.true[index], values.false[index], values.null[index])
    return values.take(pa.array(index))


def count(values: Values) -> int:
    return len(values.low if isinstance(values, Numbers) else values.true if isinstance(values, Truth) else values)


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
