"""Values as they stand in a table, for what readers compute: means, quantiles, spikes, digits. PRIVATE.

Codes forget what lies inside a bin. A raw column holds the numbers themselves (of dates the seconds since 1970), and of
categories which one it is. What is missing has no value; what the schema does not hold is left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import CodedTable, IntArray
from hedgerow.private.sources.coded import coded_rows
from hedgerow.schema.arrays import BoolArray, FloatArray, moments, numbers, plain
from hedgerow.schema.calendar import CalendarColumn
from hedgerow.schema.column import Column
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.private.sources.source import Source
    from hedgerow.schema import Encoding

MOST_ROWS = 250_000
"""Where a table has more rows, so many of them, drawn by the seed, stand for all. Memory is bounded by them."""
Kind = Literal["number", "day", "moment", "category"]


@dataclass(frozen=True, eq=False)
class RawColumn:
    """One column: a number for every row, NaN where there is none."""

    name: str
    kind: Kind
    values: FloatArray
    """Numbers, seconds since 1970 (days and moments), or which category it is; misfits have a category of their own."""
    misfits: IntArray
    """The rows whose value the schema does not hold."""

    @cached_property
    def present(self) -> FloatArray:
        """The values that there are, in order."""
        return np.sort(self.values[~np.isnan(self.values)])

    def take(self, rows: IntArray) -> RawColumn:
        found = np.zeros(len(self.values), dtype=bool)
        found[self.misfits] = True
        return replace(self, values=self.values[rows], misfits=np.flatnonzero(found[rows]))


@dataclass(frozen=True, eq=False)
class RawTable:
    """The columns of a table in the schema's order."""

    columns: Mapping[str, RawColumn]

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())).values)

    def take(self, rows: IntArray) -> RawTable:
        return RawTable({name: column.take(rows) for name, column in self.columns.items()})


def kind_of(column: Column) -> Kind:
    """What the values of a declared column are. Codes are numbers only where the schema says that they are in order."""
    kind = column.value_type
    if pa.types.is_date(kind):
        return "day"
    if pa.types.is_timestamp(kind):
        return "moment"
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return "number" if is_number and column.has_order else "category"


def raw_table(rows: pa.Table | pa.RecordBatch, encoding: Encoding) -> RawTable:
    """All rows of a table that is in memory."""
    return RawTable({name: _raw(name, column, rows.column(name)) for name, column in encoding.declared.items()})


def drawn_from(coded: CodedTable, encoding: Encoding, seed: int) -> RawTable:
    """Values drawn from codes, for whoever has nothing else."""
    return raw_table(encoding.decode(coded, np.random.default_rng(seed)), encoding)


def coded_and_raw(source: Source, encoding: Encoding, what: str, seed: int) -> tuple[CodedTable, RawTable]:
    """Codes of all rows and values of at most `MOST_ROWS`, in one pass over the source."""
    sample = RowSample(lambda batch: raw_table(batch, encoding), _joined, seed)
    coded = coded_rows(_Watched(source, sample), encoding, what)
    values = sample.drawn()
    assert values is not None  # there are rows: `coded_rows` has seen them
    return coded, values


class _Watched:
    """A source whose batches are looked at while they go by."""

    def __init__(self, source: Source, sample: RowSample[Any]):
        self._source, self._sample = source, sample

    def header(self) -> tuple[str, ...]:
        return self._source.header()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._source.batches(columns):
            self._sample.add(batch)
            yield batch


class Rows(Protocol):
    """Something read off rows, of which some can be taken."""

    def take(self, rows: IntArray) -> Self: ...


Part = TypeVar("Part", bound=Rows)


class RowSample(Generic[Part]):
    """At most `MOST_ROWS` rows of batches that go by, as `read` reads them.

    Those with the smallest of as many random numbers as there are rows: every set of rows is as likely as another.
    """

    def __init__(self, read: Callable[[pa.RecordBatch], Part], joined: Callable[[Sequence[Part]], Part], seed: int):
        self._read, self._joined = read, joined
        self._rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, MOST_ROWS])))
        self._keys: list[FloatArray] = []
        self._parts: list[Part] = []
        self._held, self._highest = 0, 1.0

    def add(self, batch: pa.RecordBatch) -> None:
        keys = self._rng.random(batch.num_rows)
        kept = np.flatnonzero(keys < self._highest)
        if len(kept) < batch.num_rows:
            batch = batch.take(pa.array(kept))
        self._keys.append(keys[kept])
        self._parts.append(self._read(batch))
        self._held += len(kept)
        if self._held > 2 * MOST_ROWS:
            self._prune()

    def drawn(self) -> Part | None:
        """The rows; nothing where no batch went by."""
        if not self._parts:
            return None
        self._prune()
        return self._parts[0]

    def _prune(self) -> None:
        keys = np.concatenate(self._keys)
        table = self._joined(self._parts)
        if len(keys) > MOST_ROWS:
            self._highest = float(np.partition(keys, MOST_ROWS)[MOST_ROWS])
            kept = np.flatnonzero(keys < self._highest)
            keys, table = keys[kept], table.take(kept)
        self._keys, self._parts, self._held = [keys], [table], len(keys)


def _joined(parts: Sequence[RawTable]) -> RawTable:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.rows for part in parts[:-1])])
    return RawTable(
        {
            name: replace(
                first,
                values=np.concatenate([part.columns[name].values for part in parts]),
                misfits=np.concatenate(
                    [part.columns[name].misfits + start for part, start in zip(parts, starts, strict=True)]
                ),
            )
            for name, first in parts[0].columns.items()
        }
    )


def _raw(name: str, column: Column, array: pa.Array) -> RawColumn:
    array = plain(array)
    kind, layout = kind_of(column), column.layout
    encoded = column.encode(array)
    codes: IntArray = encoded.codes[0]
    misfits = np.flatnonzero(encoded.outside & (codes != (-1 if layout.other is None else layout.other)))
    if kind == "category":
        return RawColumn(name, kind, codes.astype(np.float64), misfits)
    held: BoolArray = (codes < layout.values) & ~encoded.outside
    values = _numbers(column, array, held) if kind == "number" else _seconds(column, array, held)
    return RawColumn(name, kind, np.where(held & np.isfinite(values), values, np.nan), misfits)


def _numbers(column: Column, array: pa.Array, held: BoolArray) -> FloatArray:
    """Numbers with all their digits; as the column reads them, where they are written in a way of its own."""
    if array.type in (pa.float16(), pa.float32()):
        array = pc.cast(pc.cast(array, pa.float32()), pa.string())  # 0.1 is 0.1, and not 0.10000000149
    values = numbers(array).values
    strange = held & np.isnan(values)
    if strange.any() and isinstance(column, OrderedColumn):
        as_read = column.to_arrow(np.where(strange, column.read(array).values, 0), ~strange)
        values[strange] = numbers(as_read).values[strange]
    return values


def _seconds(column: Column, array: pa.Array, held: BoolArray) -> FloatArray:
    if isinstance(column, CalendarColumn):
        return moments(column.typed(np.where(held, column.read(array).values, 0), ~held)).values
    return moments(array).values
