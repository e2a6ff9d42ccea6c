"""Totals already published: counts over some columns that anyone may read, and that the publisher asserts to be exact.

They cost nothing and protect nobody: they were public before. Tables that form a junction tree and agree where they
overlap can all be matched by one table of whole rows; others are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from hedgerow.coded.domain import IntArray, Marginal
from hedgerow.errors import Fault, SchemaError, listing, suggestion
from hedgerow.schema.column import Column
from hedgerow.schema.explain import key_error
from hedgerow.schema.listed import ListedColumn
from hedgerow.schema.named import NamedTables
from hedgerow.schema.ordered import OrderedColumn
from hedgerow.schema.reading import Text, as_text

MOST_TABLES = 32
MOST_CELLS = 1 << 22
"""Cells of one table of totals."""
MOST_COUNTED = 1 << 40
"""Rows that totals may add up to."""


def _as_table(value: Any) -> Any:
    if isinstance(value, str):
        raise Fault("totals-path", f'table: "{value}" is a path, which is read with the schema file that names it')
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) for row in value):
        raise Fault("bad-totals", "table: must be the path of a CSV file, or rows such as [[north, 120], [south, 80]]")
    return tuple((*("" if item is None else as_text(item) for item in row[:-1]), _whole(row[-1:])) for row in value)


def _whole(count: Sequence[Any]) -> int:
    try:
        number = float(count[0])
    except (IndexError, TypeError, ValueError):
        raise Fault("bad-totals", "table: every row ends with its count, a whole number") from None
    if not 0 <= number <= MOST_COUNTED or number != int(number):
        raise Fault("bad-totals", f"table: counts must be whole numbers from 0 to {MOST_COUNTED:,}")
    return int(number)


class Total(BaseModel):
    """One table of counts: the values of its columns, and how many rows have them; what is not listed has none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: Annotated[tuple[tuple[str | int, ...], ...], BeforeValidator(_as_table)]
    columns: tuple[Text, ...]
    count: Text = "count"

    @model_validator(mode="after")
    def _check(self) -> Total:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise Fault("bad-totals", "columns: totals need columns, each named once")
        if not self.table or any(len(row) != len(self.columns) + 1 for row in self.table):
            raise Fault("bad-totals", f"table: every row needs {len(self.columns)} values and a count")
        return self

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"table": [list(row) for row in self.table], "columns": list(self.columns), "count": self.count}

    @property
    def rows(self) -> int:
        """How many rows it counts."""
        return sum(int(row[-1]) for row in self.table)

    @property
    def said(self) -> str:
        return f"{' × '.join(self.columns)} ({len(self.table):,} counts, {self.rows:,} rows)"


@dataclass(frozen=True, eq=False)
class Table:
    """Counts over attributes, in domain order, with a cell for every code."""

    attributes: Marginal
    counts: IntArray


def with_tables(totals: Any, named: NamedTables) -> Any:
    """The totals of a schema file with the public tables that they name."""
    if not isinstance(totals, list):
        return totals
    return [_with_table(total, named, index) for index, total in enumerate(totals)]


def _with_table(total: Any, named: NamedTables, index: int) -> Any:
    if not isinstance(total, Mapping) or not isinstance(total.get("table"), str):
        return total
    columns = total.get("columns")
    if not isinstance(columns, list):
        return total
    wanted = [*map(as_text, columns), as_text(total.get("count", "count"))]
    return {**total, "table": named.rows(total["table"], wanted, ("totals", index, "table"))}


def tables(totals: Sequence[Total], columns: Mapping[str, Column], grouped: Sequence[str]) -> list[Table]:
    """The totals as counts of codes, in the order of a junction tree: each overlaps those before it in one of them.

    Refused where a column's cells hold more than one value, tables disagree, or no junction tree holds them all.
    """
    if len(totals) > MOST_TABLES:
        raise key_error("bad-totals", ("totals",), f"there are more than {MOST_TABLES} tables.")
    found = [_counted(index, total, columns, grouped) for index, total in enumerate(totals)]
    for index, total in enumerate(totals):
        if total.rows != totals[0].rows or not total.rows:
            raise _disagree(
                index, f"{total.rows:,} rows, and the first one {totals[0].rows:,}; all need as many, and 1 at least"
            )
    order = _ordered([table.attributes for table in found])
    if order is None:
        raise key_error(
            "totals-no-tree",
            ("totals",),
            "their columns form no junction tree (as a × b, b × c and a × c do not), so they cannot all be matched. "
            "Hint: give one table over all of the columns, or leave one out.",
        )
    names = list(columns)
    for place, index in enumerate(order):
        for other in order[:place]:
            shared = sorted(set(found[index].attributes) & set(found[other].attributes), key=names.index)
            if shared and not np.array_equal(_summed(found[index], shared), _summed(found[other], shared)):
                raise _disagree(index, f"other counts of {listing(shared)} than the table over {totals[other].said}")
    return [found[index] for index in order]


def _disagree(index: int, what: str) -> SchemaError:
    return key_error("totals-disagree", ("totals", index), f"it has {what}.")


def _counted(index: int, total: Total, columns: Mapping[str, Column], grouped: Sequence[str]) -> Table:
    path = ("totals", index, "columns")
    for name in total.columns:
        if name not in columns:
            raise key_error("unknown-column", path, f'"{name}" is not a column.{suggestion(name, columns)}')
        if name in grouped or not _tells_values(name, columns[name]):
            raise key_error(
                "totals-column",
                path,
                f'"{name}" is in a group, is cut privately, or has bins: totals need a code for each of its values.',
            )
    names = sorted(total.columns, key=list(columns).index)
    shape = tuple(columns[name].layout.size for name in names)
    if math.prod(shape) > MOST_CELLS:
        raise key_error("totals-column", path, f"together they have more than {MOST_CELLS:,} cells.")
    counts: IntArray = np.zeros(shape, dtype=np.int64)
    codes = [_codes(columns[name], [str(row[total.columns.index(name)]) for row in total.table]) for name in names]
    if any(code is None for code in codes):
        lost = next(name for name, code in zip(names, codes, strict=True) if code is None)
        raise key_error(
            "undeclared-value", ("totals", index, "table"), f'it has a value of "{lost}" that is not declared.'
        )
    cells = np.ravel_multi_index([code for code in codes if code is not None], shape)
    if len(np.unique(cells)) != len(cells):
        raise key_error("bad-totals", ("totals", index, "table"), "two of its rows count the same values.")
    counts.reshape(-1)[cells] = [int(row[-1]) for row in total.table]
    return Table(tuple(names), counts)


def _tells_values(name: str, column: Column) -> bool:
    if column.discovery is not None or getattr(column, "discovered", False) or len(column.attributes(name)) > 1:
        return False
    return isinstance(column, ListedColumn) or (isinstance(column, OrderedColumn) and column.cells.single)


def _codes(column: Column, values: list[str]) -> IntArray | None:
    codes, outside = column.encode(pa.array(values, pa.string()))
    return None if (outside & (codes[0] != column.layout.other)).any() else codes[0]


def _summed(table: Table, kept: Sequence[str]) -> IntArray:
    summed: IntArray = table.counts.sum(
        axis=tuple(axis for axis, name in enumerate(table.attributes) if name not in kept)
    )
    return summed


def _ordered(marginals: Sequence[Marginal]) -> list[int] | None:
    """An order of a junction tree, from its first table on; None where there is none.

    The widest spanning tree of the overlaps is one exactly if its overlaps have as many attributes as all sets together
    have beyond their union (Bernstein, Goodman 1981).
    """
    order, overlap = [0], 0
    left = set(range(1, len(marginals)))
    while left:
        width, best = max(
            (len(set(marginals[each]) & set(marginals[other])), -each) for each in left for other in order
        )
        overlap += width
        order.append(-best)
        left.remove(-best)
    union = {name for marginal in marginals for name in marginal}
    return order if overlap == sum(map(len, marginals)) - len(union) else None
