"""The embedded engine: the table is encoded once into narrow columns and counted by the compiled kernel."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeGuard

import numpy as np

from hedgerow.coded.domain import CodedTable, Codes, Domain, IntArray
from hedgerow.coded.joining import Join
from hedgerow.coded.query import MarginalQuery, Query
from hedgerow.errors import HedgerowError, LimitError, TableError
from hedgerow.private.bounding import Holders, Persons, fresh_key, kept_rows
from hedgerow.private.engines.storage import StoredColumns
from hedgerow.private.engines.tally import CELLS_AT_ONCE, Answer, Tally, batched
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.private.sources.source import by_person

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.private.sources.source import Source
    from hedgerow.schema import Encoding, Schema

MOST_CELLS = 1 << 62
"""Cells are numbered in 64 bits."""
_ALWAYS_DENSE = 1 << 16
_NEVER_DENSE = 1 << 24
_DENSE_PER_ROW = 8
_WORTH_A_THREAD = 1 << 20
IN_MEMORY = 1 << 28
"""Bytes of codes that stay in memory unless another number is given."""


class ArrowEngine:
    """Counts a table in this process. Implements `hedgerow.private.engines.engine.Engine`."""

    def __init__(
        self,
        source: Source | None,
        *,
        bounding_key: bytes | None = None,
        threads: int | None = None,
        memory: int = IN_MEMORY,
    ):
        self._source = source
        self._memory = memory
        self._key = fresh_key() if bounding_key is None else bounding_key
        self._threads = min(2, os.cpu_count() or 1) if threads is None else threads
        self._table: StoredColumns | None = None
        self._joined: dict[bytes, Codes] = {}
        """Joined columns of a table that is in memory, by their joins."""
        self._alone: dict[str, IntArray] = {}
        """Columns of which blocks were counted: the rows of each code."""

    @classmethod
    def from_codes(cls, domain: Domain, columns: CodedTable, *, threads: int | None = None) -> Self:
        """An engine over rows that are coded already: nothing to encode, one row is one person."""
        return cls.over(StoredColumns.of(domain, columns), threads=threads)

    @classmethod
    def over(cls, table: StoredColumns, *, threads: int | None = None) -> Self:
        """An engine over rows that are coded, bounded and stored."""
        engine = cls(None, threads=threads)
        engine._table = table
        return engine

    @property
    def source(self) -> Source | None:
        """The rows as they are, for evaluations; None where they came coded."""
        return self._source

    def header(self) -> tuple[str, ...]:
        """Column names; of coded rows, attribute names."""
        return self._prepared.domain.names if self._source is None else self._source.header()

    def prepare(self, encoding: Encoding) -> None:
        """Encode chunk by chunk, then keep at most θ rows of every person.

        Memory is that of the encoded table up to what is allowed (the rest goes to disk), one batch, and the names of
        the persons where the schema has them.
        """
        if self._source is None:
            if encoding.domain != self._prepared.domain:
                raise HedgerowError("another-domain", "coded rows can be prepared for their own domain only.")
            return
        self._table = None
        self._joined.clear()
        self._alone.clear()
        columns = list(dict.fromkeys([*encoding.columns, *([encoding.person] if encoding.person is not None else [])]))
        coded = StoredColumns(encoding.domain, self._memory)
        persons = Persons()
        for batch in self._rows(columns, encoding.person):
            refuse_nested(batch)
            coded.append(encoding.encode(batch), batch.num_rows)
            if encoding.person is not None:
                persons.add(batch.column(encoding.person))
        if encoding.person is not None:
            coded = coded.kept(kept_rows(persons, coded.views(), encoding.rows_per_person, self._key))
        self._table = coded

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        """A pass over one open column (and the person's) before the table is encoded."""
        wanted = [column, *([schema.person] if schema.person is not None else [])]
        holders = Holders()
        for batch in self._rows(wanted, schema.person):
            person = batch.column(schema.person) if schema.person is not None else None
            holders.add(schema.open_values(column, batch.column(column)), person)
        return Exact(holders.per_value(schema.max_rows_per_person, self._key))

    def _rows(self, columns: Sequence[str], person: str | None) -> Iterator[pa.RecordBatch]:
        assert self._source is not None
        return by_person(self._source, person).batches(columns)

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order, counted as they are consumed.

        Dense up to 8 cells per row (and always up to 2¹⁶ cells, never beyond 2²⁴), otherwise occupied cells alone.
        """
        table = self._prepared
        for query in queries:
            check_query(query, table.domain)
        lines = [query for query in queries if _is_line(query) and query.base_shape[0] <= most_dense(table.rows)]
        return self._along(table, lines) if len(lines) == len(queries) else self._answers(table, queries)

    def _along(self, table: StoredColumns, lines: Sequence[MarginalQuery]) -> Iterator[Exact[ExactCounts]]:
        """Blocks of single columns, level after level: the rows are gone through once, for the first level."""
        unknown = [line.attributes for line in lines if line.attributes[0] not in self._alone]
        plain = [MarginalQuery(table.domain, attributes) for attributes in dict.fromkeys(unknown)]
        for query, counted in zip(plain, self._answers(table, plain), strict=True):
            codes = counted.opened()
            assert isinstance(codes, np.ndarray)
            self._alone[query.attributes[0]] = codes
        for line in lines:
            yield Exact(line.aggregate(self._alone[line.attributes[0]]).astype(np.int64))

    def _answers(self, table: StoredColumns, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """Queries go to the kernel in batches that share a scan, small enough for their answers to stay in cache."""
        dense = most_dense(table.rows)
        for batch in batched(queries, dense, CELLS_AT_ONCE):
            answers = self._count_batch(table, batch, dense)
            answers.reverse()
            while answers:  # an answer that was consumed gives its buffer back before the next batch is counted
                yield Exact(_counts(answers.pop()))

    def _count_batch(self, table: StoredColumns, batch: Sequence[Query], dense: int) -> list[Answer]:
        """Block by block; counts of blocks add up. Joined columns stand behind those of the table."""
        tally = Tally(table.domain, batch, dense)
        for columns, rows in table.blocks(tally.touched):
            columns += [self._codes(table, join, columns) for join in tally.joins]
            tally.add(columns, rows, self._threads if rows * len(batch) >= _WORTH_A_THREAD else 1)
        return tally.answers

    def _codes(self, table: StoredColumns, join: Join, columns: Sequence[Codes]) -> Codes:
        """The joined column of a block of rows; kept where all rows are one block."""
        if join.digest in self._joined:
            return self._joined[join.digest]
        codes = join.codes([columns[table.domain.index(name)] for name in join.members])
        if not table.on_disk:
            self._joined[join.digest] = codes
        return codes

    @property
    def _prepared(self) -> StoredColumns:
        if self._table is None:
            raise HedgerowError("not-prepared", "an engine must be prepared before it can count.")
        return self._table


def most_dense(rows: int) -> int:
    """How many cells may be written out one by one: in proportion to the rows, neither few nor very many."""
    return max(_ALWAYS_DENSE, min(_NEVER_DENSE, _DENSE_PER_ROW * rows))


def refuse_nested(batch: pa.RecordBatch) -> None:
    """Lists and structs have no cell; their type is metadata, so it may be named."""
    import pyarrow as pa

    for field in batch.schema:
        kind = field.type.value_type if pa.types.is_run_end_encoded(field.type) else field.type
        if pa.types.is_nested(kind):
            raise TableError(
                "column-type", f'the column "{field.name}" has the type "{field.type}", which no kind of column holds.'
            )


def _is_line(query: Query) -> TypeGuard[MarginalQuery]:
    """Whether a query is of blocks of one column as it is."""
    return isinstance(query, MarginalQuery) and query.blocks is not None and query.reads == query.attributes[:1]


def check_query(query: Query, domain: Domain) -> None:
    """Who counts trusts shapes: they must be those of the coded columns, and cells must have numbers."""
    if isinstance(query, MarginalQuery):
        names, sizes = query.reads, tuple(query.sizes.values())
    else:
        names, sizes = query.splits_on, query.split_sizes
        if query.label is not None and domain[query.label].size != query.label_size:
            raise HedgerowError("another-domain", f"{query!r} was made for another domain.")
    if domain.shape(names) != sizes:
        raise HedgerowError("another-domain", f"{query!r} was made for another domain.")
    if math.prod(query.shape) > MOST_CELLS:
        raise LimitError(
            "too-many-cells",
            f"{query!r} has more than 2^62 cells, which is more than can be numbered. Nothing was counted. "
            "Hint: use fewer attributes, or coarser levels.",
        )


def _counts(answer: Answer) -> ExactCounts:
    return SparseCounts(*answer) if isinstance(answer, tuple) else answer
