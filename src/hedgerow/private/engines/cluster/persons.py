"""Rows of one person come together on one worker, where at most θ of them stay.

Every task spreads its rows over buckets by what the person is spelled like; a bucket's rows meet in one task, which
keeps those that `hedgerow.private.bounding` keeps anywhere. A bucket of a task travels as one Arrow message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.coded.domain import CodedTable
from hedgerow.private.bounding import Holders, Persons, kept_rows
from hedgerow.private.engines.cluster.blocks import FAULT, Batches, Blocks, Work, guarded, layout, refuse_passed_on
from hedgerow.private.engines.cluster.tasks import gathered
from hedgerow.private.engines.storage import StoredColumns
from hedgerow.private.identity import Spelling
from hedgerow.schema import Encoding, Schema

SPREAD = pa.schema([pa.field("bucket", pa.int64()), pa.field("message", pa.binary()), FAULT])
HELD = pa.schema([pa.field("value", pa.binary()), pa.field("people", pa.int64()), FAULT])
_PERSON = "person"
_ROWS_AT_ONCE = 1 << 19
_IN_MEMORY = 1 << 28
_WEIGHTS = np.random.default_rng(0).integers(1, 1 << 63, 64, dtype=np.uint64) | np.uint64(1)


def spreading(encoding: Encoding, kinds: pa.Schema, buckets: int) -> Work:
    """Coded rows beside who they are of, by bucket; rows of nobody are left out."""

    def coded(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        codes = encoding.encode(batch)
        return {f"c{index}": pa.array(codes[name]) for index, name in enumerate(encoding.domain.names)}

    assert encoding.person is not None
    return _spreading(encoding.person, kinds, buckets, coded)


def spreading_values(schema: Schema, column: str, kinds: pa.Schema, buckets: int) -> Work:
    """Values of an open category beside who holds them, each pair of a batch once, by bucket."""

    def values(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {"value": schema.open_values(column, batch.column(column))}

    assert schema.person is not None
    return _spreading(schema.person, kinds, buckets, values, distinct=True)


def _spreading(
    person: str,
    kinds: pa.Schema,
    buckets: int,
    beside: Callable[[pa.RecordBatch], dict[str, pa.Array]],
    distinct: bool = False,
) -> Work:
    def work(part: int, batches: Batches) -> Batches:
        spelled = Spelling()
        held: list[pa.Table] = []
        rows = 0
        for batch in gathered(batches, kinds):
            names = spelled(batch.column(person))
            some = pa.table({_PERSON: names, **beside(batch)})
            some = some.group_by(some.column_names).aggregate([]).drop_null() if distinct else some
            held.append(some.filter(some[_PERSON].is_valid()))
            rows += len(held[-1])
            if rows >= _ROWS_AT_ONCE:
                yield from _messages(pa.concat_tables(held), buckets)
                held, rows = [], 0
        if rows:
            yield from _messages(pa.concat_tables(held), buckets)

    return guarded(work, SPREAD)


def _messages(rows: pa.Table, buckets: int) -> Batches:
    (whole,) = rows.combine_chunks().to_batches()
    bucket = bucket_of(whole.column(_PERSON), buckets)
    order = np.argsort(bucket, kind="stable")
    whole = whole.take(pa.array(order))
    ends = np.cumsum(np.bincount(bucket, minlength=buckets))
    for number in np.flatnonzero(np.diff(ends, prepend=0)):
        begin = 0 if number == 0 else int(ends[number - 1])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_batch(whole.slice(begin, int(ends[number]) - begin))
        arrays = [pa.array([number]), pa.array([sink.getvalue().to_pybytes()], pa.binary()), pa.nulls(1, pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=SPREAD)


def bucket_of(names: pa.Array, buckets: int) -> npt.NDArray[np.int64]:
    """A number below `buckets` that follows from each spelling, none of which is empty."""
    _, offsets, data = names.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[names.offset : names.offset + len(names) + 1].astype(np.int64)
    if len(names) == 0:
        return np.empty(0, dtype=np.int64)
    letters = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]].astype(np.uint64)
    begins, lengths = ends[:-1] - ends[0], np.diff(ends)
    position = np.arange(len(letters)) - np.repeat(begins, lengths)
    mixed = np.add.reduceat((letters + np.uint64(1)) * _WEIGHTS[position % len(_WEIGHTS)], begins)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    bucket: npt.NDArray[np.int64] = ((mixed >> np.uint64(33)) % np.uint64(buckets)).astype(np.int64)
    return bucket


def bounding(encoding: Encoding, key: bytes) -> Work:
    """Blocks of the rows that stay, of whole persons."""

    def work(part: int, batches: Batches) -> Batches:
        persons = Persons()
        coded = StoredColumns(encoding.domain, _IN_MEMORY)
        for rows in _met(batches):
            persons.add(rows.column(_PERSON))
            coded.append(_codes(rows, encoding), rows.num_rows)
        coded = coded.kept(kept_rows(persons, coded.views(), encoding.rows_per_person, key))
        blocks = Blocks(encoding.domain, part)
        for columns, count in coded.blocks(range(len(encoding.domain))):
            yield from blocks.add(dict(zip(encoding.domain.names, columns, strict=True)), count)
        yield from blocks.rest()

    return guarded(work, layout(encoding.domain))


def _codes(rows: pa.RecordBatch, encoding: Encoding) -> CodedTable:
    return {name: rows.column(f"c{index}").to_numpy() for index, name in enumerate(encoding.domain.names)}


def holding(values_per_person: int, key: bytes) -> Work:
    """How many people hold each value, of whole persons."""

    def work(part: int, batches: Batches) -> Batches:
        holders = Holders()
        for rows in _met(batches):
            holders.add(rows.column("value"), rows.column(_PERSON))
        yield from _held(holders.per_value(values_per_person, key))

    return guarded(work, HELD)


def holding_alone(schema: Schema, column: str, kinds: pa.Schema) -> Work:
    """How many rows hold each value, where every row is a person."""

    def work(part: int, batches: Batches) -> Batches:
        holders = Holders()
        for batch in gathered(batches, kinds):
            holders.add(schema.open_values(column, batch.column(column)), None)
        yield from _held(holders.per_value(1, b""))

    return guarded(work, HELD)


def _held(people: Mapping[str, int]) -> Batches:
    if people:
        values = pa.array([value.encode() for value in people], pa.binary())
        arrays = [values, pa.array(people.values(), pa.int64()), pa.nulls(len(people), pa.string())]
        yield pa.RecordBatch.from_arrays(arrays, schema=HELD)


def _met(batches: Batches) -> Iterator[pa.RecordBatch]:
    """What tasks sent to this one; a fault of theirs is one here."""
    for batch in batches:
        refuse_passed_on(batch)
        for message in batch.column("message"):
            with pa.ipc.open_stream(message.as_buffer()) as reader:
                yield from reader
