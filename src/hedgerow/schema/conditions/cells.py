"""What a condition says of codes: which combinations of cells may hold values that make it true.

A cell of a column is a value, or a range of them. A condition is evaluated over the ranges, so what is left out cannot
be true for any value of the cells; where a condition cuts through a cell, the cell stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import IntArray, Marginal
from hedgerow.schema.arrays import BoolArray, plain
from hedgerow.schema.conditions.language import All, Condition, Field
from hedgerow.schema.conditions.values import DAY, Numbers, Truth, Values
from hedgerow.schema.listed import ListedColumn
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.schema.encoding import Block, Encoding

MOST_CELLS = 1 << 20
"""Combinations of codes that a condition is evaluated on at most."""


def conjuncts(condition: Condition) -> Iterator[Condition]:
    """The conditions that must all be true for this one to be."""
    if isinstance(condition, All):
        for part in condition.conditions:
            yield from conjuncts(part)
    else:
        yield condition


def may_be_true(condition: Condition, encoding: Encoding) -> tuple[Marginal, BoolArray] | None:
    """The attributes that the condition's columns are coded by, and which of their cells may make it true.

    A cell for what is not declared (the hidden one) may hold anything.
    """
    found = judged(condition, encoding.blocks, MOST_CELLS)
    return None if found is None else (found[0], found[1].true | found[2])


def judged(condition: Condition, blocks: Sequence[Block], most: int) -> tuple[Marginal, Truth, BoolArray] | None:
    """The attributes that the condition's columns are coded by, what it may be in each of their cells, and which of
    those hold something that is not declared.

    None where there are more than `most` cells, or a column of which nobody can say what its codes hold.
    """
    blocks = [block for block in blocks if set(block.columns) & set(condition.columns)]
    attributes = tuple(block.names[0] for block in blocks)
    shape = tuple(block.attributes[0].size for block in blocks)
    if math.prod(shape) > most:
        return None
    codes = dict(zip(attributes, np.indices(shape).reshape(len(shape), -1), strict=True))
    known: dict[str, Values] = {}
    free: BoolArray = np.zeros(math.prod(shape), dtype=bool)
    for block in blocks:
        for name in set(block.columns) & set(condition.columns):
            held = held_by_code(condition.fields[name])
            if held is None:
                return None
            own = block.codes_of(name)  # a group's hidden cell stands for no combination
            at = codes[block.names[0]]
            hidden = at >= len(own)
            own_codes = own[np.where(hidden, 0, at)]
            hidden |= own_codes >= length(held)
            free |= hidden
            known[name] = taken(held, np.where(hidden, 0, own_codes))
    truth = condition.evaluate(known, len(free))
    return (
        attributes,
        Truth(*(each.reshape(shape) for each in (truth.true, truth.false, truth.null))),
        free.reshape(shape),
    )


def held_by_code(field: Field) -> Values | None:
    """The value, or the range of values, of each code of a column but the hidden one; None where nobody can say."""
    column = field.column
    if not isinstance(column, OrderedColumn | ListedColumn):
        return None
    layout = column.layout
    codes: IntArray = np.arange(layout.size - (layout.hidden is not None))
    others = [np.zeros(len(codes), dtype=np.int64) for _ in column.attributes(field.name)[1:]]
    held = field.read(plain(column.write([codes, *others], np.random.default_rng(0))))
    if not isinstance(column, OrderedColumn):
        return held
    assert isinstance(held, Numbers)
    low, high = held.low.copy(), held.low.copy()
    scale = DAY if field.kind == "date" else 1
    low[: layout.own], high[: layout.own] = (ends.astype(np.float64) * scale for ends in column.cells.spans)
    return Numbers(low, high, held.unit)


def length(values: Values) -> int:
    if isinstance(values, Numbers):
        return len(values.low)
    return len(values.true) if isinstance(values, Truth) else len(values)


def taken(values: Values, indices: IntArray) -> Values:
    if isinstance(values, Numbers):
        return Numbers(values.low[indices], values.high[indices], values.unit)
    if isinstance(values, Truth):
        return Truth(values.true[indices], values.false[indices], values.null[indices])
    return values.take(pa.array(indices))
