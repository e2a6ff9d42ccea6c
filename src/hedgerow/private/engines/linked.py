"""Several linked tables as one engine: every question is about the view of one table, whose rows have weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import Domain, IntArray
from hedgerow.coded.query import MarginalQuery, Query
from hedgerow.errors import HedgerowError, OptionError, TableError, listing
from hedgerow.private.bounding import fresh_key
from hedgerow.private.engines.arrow import ArrowEngine, refuse_nested
from hedgerow.private.engines.storage import StoredColumns, stored_table
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.private.kinship import Kept, kept_rows
from hedgerow.private.sources.source import BATCH_ROWS, Source, by_person
from hedgerow.schema import Encoding, Schema
from hedgerow.schema.arrays import plain
from hedgerow.schema.fits import MISFIT
from hedgerow.schema.links import Tables, before, left_of, pace_of, rows_of, start_of, step_of
from hedgerow.schema.ordered import OrderedColumn


class LinkedEngine:
    """Linked tables in this process. Implements `hedgerow.private.engines.engine.Engine`.

    The tables are read once, and the rows that stay are chosen once. They are held as they were read, in memory while
    they are few; of their codes each view has as many tables as its rows have weights, and a count is the weighted sum
    of theirs.
    """

    def __init__(
        self, schema: Schema, sources: Mapping[str, Source], *, bounding_key: bytes | None = None, memory: int
    ):
        assert schema.linked is not None
        self._schema, self._tables = schema, schema.linked
        self._sources = sources
        """By name; a table that is alone, whose persons are kept, has none."""
        self._key = fresh_key() if bounding_key is None else bounding_key
        self._memory = memory
        self._read: dict[str, pa.Table] = {}
        self._kept: dict[str, Kept] = {}
        self._views: dict[str, list[tuple[int, ArrowEngine]]] = {}
        self._generated = schema.linked.generated(schema.columns)

    def header(self) -> tuple[str, ...]:
        return tuple(
            f"{name}.{column}" if name else column
            for name, source in self._sources.items()
            for column in source.header()
        )

    def prepare(self, encoding: Encoding) -> None:
        """Read and bound what was not read yet, then code every view."""
        if not self._kept:
            self._load()
        self._views = {name: self._coded(name, encoding) for name in self._tables.names}

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        raise HedgerowError("open-category-with-tables", "values of linked tables cannot be discovered.")

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order: the weights of the rows in each cell."""
        if not self._views:
            raise HedgerowError("not-prepared", "an engine must be prepared before it can count.")
        for query in queries:
            yield self._weighed(query)

    def _weighed(self, query: Query) -> Exact[ExactCounts]:
        names = query.reads if isinstance(query, MarginalQuery) else tuple(query.sizes)
        if isinstance(query, MarginalQuery) and names and names[0] in self._tables.misfits:
            return self._left_out(query, names[0])
        counts: IntArray | None = None
        cells: list[SparseCounts] = []
        for weight, engine in self._views[self._tables.view(names)]:
            (found,) = (exact.opened() for exact in engine.count([query]))
            if isinstance(found, SparseCounts):
                cells.append(SparseCounts(found.cells, weight * found.counts))
            else:
                counts = weight * found if counts is None else counts + weight * found
        if not cells:
            return Exact(np.zeros(query.cells, dtype=np.int64) if counts is None else counts)
        if counts is not None:
            held = np.flatnonzero(counts)
            cells.append(SparseCounts(held, counts[held]))
        every, place = np.unique(np.concatenate([each.cells for each in cells]), return_inverse=True)
        sums: IntArray = np.zeros(len(every), dtype=np.int64)
        np.add.at(sums, place, np.concatenate([each.counts for each in cells]))
        return Exact(SparseCounts(every, sums))

    def _left_out(self, query: MarginalQuery, misfit: str) -> Exact[ExactCounts]:
        """The weight of the units that a look asks for."""
        units = self._kept[misfit.partition(".")[0]].misfits[misfit]
        codes = np.zeros(2)
        codes[MISFIT] = units * self._tables.parts
        return Exact(query.aggregate(codes).astype(np.int64))

    def _load(self) -> None:
        self._read, orders = read_tables(self._schema, self._sources, self._memory)
        self._kept = kept_rows(self._tables, self._read, orders, self._key)

    def _coded(self, name: str, encoding: Encoding) -> list[tuple[int, ArrowEngine]]:
        """The view of a table, a coded table for each weight."""
        kept = self._kept[name]
        owners = self._tables.line(name)
        blocks = [
            block
            for block in encoding.blocks
            if block.columns
            and all(column.partition(".")[0] in owners for column in block.columns)
            and not any(self._of_ancestor(column, name) for column in block.columns)
        ]
        domain = Domain(attribute for block in blocks for attribute in block.attributes)
        weights = np.unique(kept.weight).tolist()
        stored = {weight: StoredColumns(domain, self._memory // max(1, len(weights))) for weight in weights}
        for begin in range(0, len(kept.rows), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            batch = _Columns(self, name, part)
            coded = {
                attribute.name: codes.astype(attribute.dtype)
                for block in blocks
                for attribute, codes in zip(block.attributes, block.encode(batch).codes, strict=True)
            }
            for weight in np.unique(kept.weight[part]).tolist():
                here = np.flatnonzero(kept.weight[part] == weight)
                stored[weight].append({each: codes[here] for each, codes in coded.items()}, len(here))
        engines = []
        for weight, columns in stored.items():
            engine = ArrowEngine(None)
            engine._table = columns
            engines.append((weight, engine))
        if not engines:
            engine = ArrowEngine(None)
            engine._table = StoredColumns(domain, self._memory)
            engines.append((1, engine))
        return engines

    def _of_ancestor(self, column: str, name: str) -> bool:
        """Whether a column says how rows of a table above hang together: that is no part of a view."""
        owner = column.partition(".")[0]
        return owner != name and column in self._aside(owner)

    def _aside(self, parent: str) -> frozenset[str]:
        shared = {left_of(parent), step_of(parent)}
        return frozenset([*shared, *map(before, self._schema.columns)])

    def values(self, name: str, column: str, part: slice) -> pa.Array:
        """A column of a view, some of its rows."""
        kept = self._kept[name]
        owner, _, own = column.partition(".")
        rows: IntArray = np.arange(len(kept.rows))[part]
        if owner != name:
            at = name
            while at != owner:
                rows, at = self._kept[at].parent[rows], self._tables.parent(at)
            return self._own(owner, own, rows)
        if own.startswith("before(") and column in self._generated:
            prior = self._own(name, own[len("before(") : -1], np.maximum(rows - 1, 0))
            return pc.if_else(pa.array(kept.first[rows]), pa.scalar(None, prior.type), prior)
        return self._own(name, own, rows)

    def _own(self, name: str, own: str, rows: IntArray) -> pa.Array:
        """A column of a table, at some of the rows that stay."""
        kept, column = self._kept[name], f"{name}.{own}"
        if column == left_of(name):
            return pa.array(kept.left[rows])
        if column == step_of(name):
            steps = kept.step[rows]
            return pa.array(np.nan_to_num(steps).astype(np.int64), mask=np.isnan(steps))
        for child in self._tables.children(name):
            if column == rows_of(name, child):
                return pa.array(np.bincount(self._kept[child].parent, minlength=len(kept.rows))[rows])
            if column == start_of(name, child):
                return self._starts(child, len(kept.rows), rows)
        return _one(self._read[name].column(own).take(pa.array(kept.rows[rows])))

    def _starts(self, child: str, parents: int, rows: IntArray) -> pa.Array:
        """The order of the first child of each of these rows; null where there is none."""
        kept, order = self._kept[child], self._tables.links[child].order
        heads = np.flatnonzero(kept.first)
        place: IntArray = np.full(parents, -1, dtype=np.int64)
        place[kept.parent[heads]] = kept.rows[heads]
        found = place[rows]
        return _one(self._read[child].column(order).take(pa.array(found, mask=found < 0)))


class _Columns:
    """Some rows of a view, column by column as they are asked for."""

    def __init__(self, engine: LinkedEngine, name: str, part: slice):
        self._engine, self._name, self._part = engine, name, part
        self.num_rows = len(range(*part.indices(len(engine._kept[name].rows))))

    def column(self, name: str) -> pa.Array:
        return self._engine.values(self._name, name, self._part)


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def read_tables(
    schema: Schema, sources: Mapping[str, Source], memory: int = 1 << 62
) -> tuple[dict[str, pa.Table], dict[str, npt.NDArray[np.float64]]]:
    """The declared columns and the ids of every table, as they were read, and where the rows of ordered ones stand, in
    steps. A table of more than `memory` bytes lies in a file.
    """
    assert schema.linked is not None
    read: dict[str, pa.Table] = {}
    orders: dict[str, npt.NDArray[np.float64]] = {}
    wanted = {name: _wanted(schema, schema.linked, name) for name in schema.linked.names}
    if schema.linked.kept:
        every = list(dict.fromkeys(column for columns in wanted.values() for column in columns))
        whole = _read_one("", sources[""], every, schema.linked.ids(schema.linked.root), memory)
    for name in schema.linked.names:
        if schema.linked.kept:
            read[name] = whole.select(wanted[name])
        else:
            read[name] = _read_one(name, sources[name], wanted[name], schema.linked.ids(name), memory)
        order = schema.linked.links[name].order
        if order is not None:
            column = schema.columns[f"{name}.{order}"]
            assert isinstance(column, OrderedColumn)
            orders[name] = np.empty(read[name].num_rows)
            for begin in range(0, read[name].num_rows, BATCH_ROWS):
                some = _one(read[name].column(order).slice(begin, BATCH_ROWS))
                orders[name][begin : begin + len(some)] = column.settled(some)[0] / pace_of(column)
    return read, orders


def _wanted(schema: Schema, tables: Tables, name: str) -> list[str]:
    """The columns of a table that are read: declared ones, and those that name rows."""
    own = [column for column in schema.columns if column.partition(".")[0] == name]
    declared = [column.partition(".")[2] for column in own if column not in schema.generated]
    return list(dict.fromkeys([*declared, *tables.ids(name)]))


def _read_one(name: str, source: Source, wanted: Sequence[str], ids: Sequence[str], memory: int) -> pa.Table:
    """All rows of one table."""
    for each in ids:
        source = by_person(source, each)
    batches = (_readable(batch, ids) for batch in source.batches(wanted))
    first = next(batches, None)
    if first is None:  # of no row ids are of no type: they may be compared with any
        return pa.table({each: pa.array([], pa.null() if each in ids else pa.string()) for each in wanted})
    return stored_table(_alike(chain([first], batches), first.schema, name), first.schema, memory)


def _readable(batch: pa.RecordBatch, ids: Sequence[str]) -> pa.RecordBatch:
    """Types that rows can be taken from: columns as an encoder reads them first, ids as they are."""
    refuse_nested(batch)
    arrays = [
        _own_bytes(array) if name in ids else plain(array)
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _own_bytes(array: pa.Array) -> pa.Array:
    """Ids that are views, or written once for several rows, one by one."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    views = pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type)
    return pc.cast(array, pa.binary()) if views else array


def _alike(batches: Iterable[pa.RecordBatch], kinds: pa.Schema, name: str) -> Iterator[pa.RecordBatch]:
    """All rows of a table, whose types are the same in all of its files."""
    for batch in batches:
        for field, other in zip(kinds, batch.schema, strict=True):
            if field.type != other.type:
                of = f'of the table "{name}" ' if name else ""
                raise TableError(
                    "mixed-types",
                    f'the column "{field.name}" {of}is "{field.type}" in one file and "{other.type}" '
                    "in another. Hint: give it one type everywhere.",
                )
        yield batch.cast(kinds)


def open_tables(
    table: Any, schema: Schema, *, bounding_key: bytes | None = None, memory: int = 4 << 30
) -> LinkedEngine:
    """An engine for linked tables: a folder with a file of each, the URL of a database that has them, or a mapping from
    their names to frames, paths or URLs. A table whose persons are kept is one, as any other.
    """
    from hedgerow.private.sources.source import open_source

    if schema.keep is not None:
        sources = {"": open_source(table, schema.alone.written, memory=memory)}
    else:
        sources = {
            name: open_source(each, schema.table(name).written, memory=memory)
            for name, each in named_tables(table, schema).items()
        }
    return LinkedEngine(schema, sources, bounding_key=bounding_key, memory=memory // 16)


def named_tables(table: Any, schema: Schema) -> dict[str, Any]:
    """What each of the linked tables is read from: its frame, its file, or its URL."""
    from pathlib import Path

    from hedgerow.private.engines.elsewhere import engine_elsewhere
    from hedgerow.private.sources.source import in_database

    assert schema.linked is not None
    names = schema.linked.names
    if isinstance(table, Mapping):
        lacking = [name for name in names if name not in table]
        if lacking:
            raise TableError("missing-table", f'the tables lack "{lacking[0]}"; given: {listing(map(str, table))}.')
        return {name: table[name] for name in names}
    if isinstance(table, str | Path) and "://" not in str(table):
        return {name: _file(Path(table), name) for name in names}
    if in_database(table) and engine_elsewhere(table) is None:
        between = "." if table.lower().startswith("spark://") and "/" not in table.split("://", 1)[1] else "/"
        return {name: f"{table.rstrip('/')}{between}{name}" for name in names}
    raise OptionError(
        "not-linked-tables",
        "linked tables are a folder with a file for each (FOLDER/TABLE.csv), a database that has them "
        "(duckdb://FILE, postgres://SERVER/DATABASE), or a mapping from names to frames, files and URLs.",
    )


def _file(folder: Any, name: str) -> Any:
    """The one file, or folder of Parquet files, of a table."""
    if not folder.is_dir():
        raise TableError(
            "no-such-folder", f'"{folder}" is not a folder; linked tables are a folder with a file for each.'
        )
    found = sorted(path for path in folder.iterdir() if path.name.partition(".")[0] == name)
    if len(found) != 1:
        said = "none" if not found else listing(path.name for path in found)
        raise TableError("missing-table", f'"{folder}" must have one file for the table "{name}"; it has {said}.')
    return found[0]
