"""The bridge between a table's columns and coded attributes, both ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import Attribute, CodedTable, Codes, Domain, IntArray
from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.schema.arrays import BoolArray, CodeArray, nulls, plain, texts
from hedgerow.schema.column import Column, Encoded
from hedgerow.schema.group import GroupEncoding
from hedgerow.schema.invented import LONGEST
from hedgerow.schema.rules.zeros import zeros

if TYPE_CHECKING:
    from hedgerow.schema.conditions import Expression
    from hedgerow.schema.schema import Schema

SLICE_ROWS = 1 << 17
"""Rows that are turned from codes into values at a time; a Parquet file gets as many in a row group."""
PASSES = 2
"""So often every mend is made: one may undo what another did."""
SLICE_BYTES = 1 << 30
"""Fewer rows where the longest values would take more than this."""


class Encoding:
    """Codes for rows and rows for codes, as the schema declares them and nothing else.

    The domain, the column types and the code of each row follow from the schema and that row alone.
    """

    def __init__(self, schema: Schema):
        self.person = schema.person
        self.rows_per_person = schema.max_rows_per_person
        self._columns: dict[str, Column] = dict(schema.columns)
        self.blocks: tuple[Block, ...] = tuple(_blocks(schema))
        """Columns that are coded together, and the attributes that hold them."""
        self.columns: tuple[str, ...] = tuple(self._columns)
        self.rules = schema.kept_rules
        attributes = Domain(attribute for block in self.blocks for attribute in block.attributes)
        alone = self.rules.kept if schema.linked is None else ()  # linked rows that break a rule are drawn again
        support, self.mends = zeros(alone, self.blocks, attributes)
        """Where rows go that hold codes which the rules do not allow together."""
        self.domain = Domain(attributes, support)
        self.invented = {name: column for name, column in schema.invented.items() if column.comes_back}
        """Columns of the output that are never read: they have no attributes."""
        self.never_read = tuple(schema.invented)
        """Those, and columns that are left out."""
        self.arrow_schema: pa.Schema = pa.schema(
            [
                (name, self._columns[name].arrow_type if name in self._columns else pa.string())
                for name in schema.names
                if name in self._columns or name in self.invented
            ]
        )
        for name, expression in self.rules.derived.items():
            kind = expression.values(self.arrow_schema.empty_table()).type
            self.arrow_schema = self.arrow_schema.append(pa.field(name, kind))

    @property
    def declared(self) -> Mapping[str, Column]:
        """The columns as they are declared."""
        return self._columns

    @property
    def named(self) -> Mapping[str, Column | Expression]:
        """What conditions may speak of: the columns, and derived ones as what they are computed by."""
        return {**self._columns, **self.rules.derived}

    def attributes_of(self, column: str) -> tuple[str, ...]:
        """The attributes that hold a column."""
        if column not in self._columns:
            raise OptionError(
                "unknown-column",
                f'unknown column "{column}"; columns: {listing(self._columns)}.{suggestion(column, self._columns)}',
            )
        return next(block.names for block in self.blocks if column in block.columns)

    def columns_of(self, attribute: str) -> tuple[str, ...]:
        """The columns that an attribute holds."""
        self.domain.index(attribute)
        return next(block.columns for block in self.blocks if attribute in block.names)

    def labels(self, attribute: str) -> list[str]:
        """What each code of an attribute stands for, in words."""
        self.domain.index(attribute)
        return next(
            labels
            for block in self.blocks
            for name, labels in zip(block.names, block.labels(), strict=True)
            if name == attribute
        )

    def ordered(self, attribute: str) -> int:
        """How many codes of an attribute, the first ones, are numbers or grades in their order; 0 where unordered."""
        return self.domain[attribute].ordered or 0

    def missing(self, column: str) -> BoolArray:
        """Which codes of the first of `attributes_of(column)` say that the column's value is missing."""
        attribute = self.attributes_of(column)[0]
        block = next(block for block in self.blocks if column in block.columns)
        codes = block.codes_of(column)
        layout = self._columns[column].layout
        blank: BoolArray = (codes >= layout.values) & (codes < layout.values + len(layout.marks))
        return np.append(blank, np.zeros(self.domain[attribute].size - len(blank), dtype=bool))

    def encode(self, batch: pa.RecordBatch | pa.Table) -> dict[str, Codes]:
        """One narrow array for each attribute. Never raises on an odd value."""
        coded: dict[str, Codes] = {}
        for block in self.blocks:
            for attribute, codes in zip(block.attributes, block.encode(batch).codes, strict=True):
                coded[attribute.name] = codes.astype(attribute.dtype)
        for mend in self.mends * PASSES:
            mend(coded)
        return coded

    def read_back(self, table: pa.RecordBatch | pa.Table) -> dict[str, Codes]:
        """The codes of a table that was decoded. A mark that its column cannot hold came back as nothing, and is read
        as itself; of several such marks as the first.
        """
        columns = {name: table.column(name) for name in self.columns}
        for name, mark in self._empty.items():
            blank = self._columns[name].blank(columns[name])
            if blank.any():
                columns[name] = pc.if_else(pa.array(blank), mark, texts(columns[name]))
        return self.encode(pa.table(columns))

    @cached_property
    def _empty(self) -> dict[str, str]:
        """The mark that nothing stands for in a decoded table, by column; none where nothing is a mark itself."""
        found = {}
        for name, column in self._columns.items():
            codes = column.layout.values + np.arange(len(column.marks))
            others = [np.zeros(len(codes), dtype=np.int64) for _ in column.attributes(name)[1:]]
            values = plain(column.write([codes, *others], np.random.default_rng(0)))
            values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
            empty = [mark for mark, null in zip(column.marks, nulls(values), strict=True) if null]
            if empty and "" not in column.marks:
                found[name] = empty[0]
        return found

    def outside(self, batch: pa.RecordBatch | pa.Table) -> dict[tuple[str, ...], BoolArray]:
        """For each column, and each group, the rows whose value the declaration does not hold. Private: exact rows."""
        found: dict[tuple[str, ...], BoolArray] = {}
        for name, column in self._columns.items():
            found[(name,)] = column.encode(batch.column(name)).outside
        for block in self.blocks:
            if len(block.columns) > 1:
                found[block.columns] = block.encode(batch).outside
        return found

    def decode(self, coded: CodedTable, rng: np.random.Generator, first: int = 0) -> pa.Table:
        """A table of the declared types, uniform within a bin (or a divisibility class of it).

        `first` is the number of its first row in all of the table, for keys that count rows.
        """
        return self._unfolded(self._folded(coded, rng, first))

    def decode_in_slices(self, coded: CodedTable, rng: np.random.Generator, first: int = 0) -> Iterator[pa.Table]:
        """The same table some rows at a time: all at once, values take much more memory than codes."""
        folded = self._folded(coded, rng, first)
        rows = max(1, min(SLICE_ROWS, SLICE_BYTES // self._widest(folded)))
        for first in range(0, len(folded), rows):
            yield self._unfolded(folded.slice(first, rows))

    def rederived(self, table: pa.Table) -> pa.Table:
        """A table whose columns were changed, with derived columns computed anew."""
        for name, expression in self.rules.derived.items():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, self.arrow_schema.field(name), expression.values(table))
        return table

    def renumbered(self, table: pa.Table, first: int, rng: np.random.Generator) -> pa.Table:
        """Some of the rows of a table with invented columns of their own, from the row of this number on."""
        for name, column in self.invented.items():
            values = column.values(len(table), first, rng)
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            table = table.set_column(table.schema.get_field_index(name), self.arrow_schema.field(name), values)
        return table

    def _widest(self, folded: pa.RecordBatch) -> int:
        """Bytes of the longest row of values that the dictionaries allow, and 8 for each column."""
        texts = [
            pc.max(pc.binary_length(array.dictionary)).as_py() or 0
            for array in folded
            if pa.types.is_dictionary(array.type) and pa.types.is_string(array.type.value_type)
        ]
        written = sum(LONGEST for name in self.invented if not pa.types.is_dictionary(folded.schema.field(name).type))
        return 8 * len(self.columns) + sum(texts) + written

    def _folded(self, coded: CodedTable, rng: np.random.Generator, first: int) -> pa.RecordBatch:
        """Values, some of them as codes with a dictionary; every code is in its dictionary."""
        arrays: dict[str, pa.Array] = {}
        for block in self.blocks:
            codes: list[CodeArray] = [coded[name] for name in block.names]
            arrays |= zip(block.columns, block.decode(codes, rng), strict=True)
        rows = len(next(iter(arrays.values())))
        arrays |= {name: column.values(rows, first, rng) for name, column in self.invented.items()}
        names = [name for name in self.arrow_schema.names if name not in self.rules.derived]
        return pa.record_batch([arrays[name] for name in names], names=names)

    def _unfolded(self, folded: pa.RecordBatch) -> pa.Table:
        arrays = [
            pc.take(array.dictionary, array.indices, boundscheck=False) if pa.types.is_dictionary(array.type) else array
            for array in folded
        ]
        if self.rules.derived:
            known = pa.table(arrays, names=folded.schema.names)
            arrays += [expression.values(known) for expression in self.rules.derived.values()]
        return pa.Table.from_arrays(arrays, schema=self.arrow_schema)


class Single:
    """One column by itself."""

    def __init__(self, name: str, column: Column):
        self.columns = (name,)
        self.attributes: tuple[Attribute, ...] = column.attributes(name)
        self.names = tuple(attribute.name for attribute in self.attributes)
        self._column = column

    @property
    def undeclared(self) -> int | None:
        """The code of values that are not declared and do not come back; None where all do, if only as "other"."""
        layout = self._column.layout
        return layout.hidden if pa.types.is_string(self._column.value_type) or layout.other is None else layout.other

    def labels(self) -> tuple[list[str], ...]:
        return self._column.labels()

    def codes_of(self, column: str) -> IntArray:
        return np.arange(self.attributes[0].size)

    def encode(self, batch: Any) -> Encoded:
        return self._column.encode(batch.column(self.columns[0]))

    def decode(self, codes: list[CodeArray], rng: np.random.Generator) -> list[pa.Array]:
        return [self._column.decode(codes, rng)]


class _Joint:
    """Several columns as one attribute."""

    def __init__(self, columns: tuple[str, ...], group: GroupEncoding):
        self.columns = columns
        self.attributes: tuple[Attribute, ...] = (group.attribute,)
        self.names = (group.attribute.name,)
        self._group = group

    @property
    def undeclared(self) -> int | None:
        """The code of all combinations that are not declared."""
        return len(self._group.combinations)

    def labels(self) -> tuple[list[str], ...]:
        return (self._group.labels(),)

    def codes_of(self, column: str) -> IntArray:
        """The column's own code in every combination."""
        return self._group.combinations[:, self.columns.index(column)]

    def encode(self, batch: Any) -> Encoded:
        return self._group.encode([batch.column(name) for name in self.columns])

    def decode(self, codes: list[CodeArray], rng: np.random.Generator) -> list[pa.Array]:
        return self._group.decode(codes[0], rng)


Block: TypeAlias = Single | _Joint


def _blocks(schema: Schema) -> list[Block]:
    """Columns in order; a group stands where its first column does."""
    group_of = {name: group for group in schema.joint for name in group.columns}
    blocks: list[Block] = []
    done: set[str] = set()
    for name, column in schema.columns.items():
        group = group_of.get(name)
        if group is None:
            blocks.append(Single(name, column))
        elif group.name not in done:
            done.add(group.name)
            blocks.append(
                _Joint(group.columns, GroupEncoding(group, [schema.columns[other] for other in group.columns]))
            )
    return blocks
