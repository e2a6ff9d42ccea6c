"""A public table as a condition: the values of some columns stand together in one of its rows."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray, nulls
from hedgerow.schema.conditions.language import Condition, Expression, Field, Known
from hedgerow.schema.conditions.values import Numbers, Truth, Values
from hedgerow.schema.numeric import Integer, Number

if TYPE_CHECKING:
    from hedgerow.schema.rules.kept import Rules

MOST_CELLS = 1 << 24
"""Combinations of the values that a lookup names."""


@dataclass(frozen=True, eq=False)
class Listed(Condition):
    """TRUE where a row of the table has these values (blank is NULL), NULL where one of them is NULL, else FALSE."""

    of: tuple[Field, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for index, field in enumerate(self.of):
            said = [row[index] for row in self.rows]
            codes, outside = field.column.encode(pa.array(said, pa.string()))
            lost = outside & (codes[0] != field.column.layout.other)
            if lost.any():
                value = said[int(lost.argmax())]
                raise Fault("undeclared-value", f'lookup: "{value}" is not a declared value of "{field.name}"')
        if math.prod(len(axis) + 1 for axis in self._axes) > MOST_CELLS:
            raise Fault("huge-rule", f"lookup: its values have more than {MOST_CELLS:,} combinations")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.of

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.of))}) IN (… {len(self.rows):,} rows)"

    @cached_property
    def _columns(self) -> list[Values]:
        return [
            field.read(pa.array([row[index] or None for row in self.rows], pa.string()))
            for index, field in enumerate(self.of)
        ]

    @cached_property
    def _axes(self) -> list[FloatArray | list[str]]:
        """The distinct values of each column, in their order."""
        return [_distinct(values) for values in self._columns]

    @cached_property
    def _below(self) -> npt.NDArray[np.int64]:
        """How many rows of the table lie below each corner of the grid of distinct values; a blank comes last."""
        grid: IntArray = np.zeros([len(axis) + 2 for axis in self._axes], dtype=np.int64)
        places = [_place(values, axis)[0] for values, axis in zip(self._columns, self._axes, strict=True)]
        grid[tuple(place + 1 for place in places)] = 1
        for axis in range(grid.ndim):
            grid = grid.cumsum(axis=axis)
        return grid

    def evaluate(self, known: Known, rows: int) -> Truth:
        """A row is a point of the grid, a range of values a box of it."""
        placed = [_place(known[field.name], axis) for field, axis in zip(self.of, self._axes, strict=True)]
        held: IntArray = np.zeros(rows, dtype=np.int64)
        for corner in itertools.product((0, 1), repeat=len(placed)):
            sign = (-1) ** (len(placed) - sum(corner))
            held += sign * self._below[tuple(place[side] for place, side in zip(placed, corner, strict=True))]
        null = np.any([place[3] for place in placed], axis=0) & (held == 0)
        single = np.all([place[2] for place in placed], axis=0)
        true = held > 0
        return Truth(true, ~null & ~(true & single), null)


def joint(listed: Listed) -> bool:
    """Whether every column tells all the others, and each always has a value: one attribute then codes them all."""
    plain = all(
        field.column.discovery is None
        and len(field.column.attributes(field.name)) == 1
        and not field.column.marks
        and field.column.layout.other is None
        for field in listed.of
    )
    return plain and len(listed.of) > 1 and all(len(axis) == len(listed.rows) for axis in listed._axes)


def listed_leaves(rules: Rules) -> list[tuple[str, dict[str, Any]]]:
    """Numbers that would be cut, but of which a public table lists all values: those are their cells."""
    found: dict[str, dict[str, Any]] = {}
    for condition in rules.conditions:
        for field, values in (
            zip(condition.of, condition._columns, strict=True) if isinstance(condition, Listed) else ()
        ):
            column = field.column
            if isinstance(column, Integer | Number) and column.discovery == "cuts" and isinstance(values, Numbers):
                singles = Numbers.of(np.unique(values.low[~values.null]), values.unit).plain.tolist()
                found[field.name] = {"bins": None, "leaves": tuple(((value, value, 1),) for value in singles)}
    return list(found.items())


def _distinct(values: Values) -> FloatArray | list[str]:
    if isinstance(values, Numbers):
        return np.unique(values.low[~values.null])
    if isinstance(values, Truth):
        return ["0", "1"]
    return sorted({text for text in values.to_pylist() if text is not None})


def _place(values: Values, axis: FloatArray | list[str]) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
    """Where values lie on an axis, from here up to there; whether that is one value; and whether it is NULL."""
    if isinstance(values, Numbers):
        line = np.asarray(axis, dtype=np.float64)
        null = values.null
        first = np.searchsorted(line, np.where(null, 0, values.low), side="left")
        last = np.searchsorted(line, np.where(null, 0, values.high), side="right")
        single = values.low == values.high
    else:
        if isinstance(values, Truth):
            found: IntArray = np.where(values.true, 1, 0)
            null = values.null
        else:
            index = pc.fill_null(pc.index_in(values, pa.array(list(axis), pa.string())), -1)
            found = np.asarray(index.to_numpy(zero_copy_only=False), dtype=np.int64)
            null = nulls(values)
        first = np.where(found < 0, 0, found)
        last = np.where(found < 0, 0, found + 1)
        single = np.ones(len(first), dtype=bool)
    blank = len(axis)
    return np.where(null, blank, first), np.where(null, blank + 1, last), single | null, null
