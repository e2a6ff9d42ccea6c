"""Coded rows as rows of a frame: each holds a block of them, one array of bytes for each attribute.

Beside the codes of a block stand its place, its rows and its digest: the sum of what
every row is mixed into, whatever their order. A table's *roll* is the sum of the digests of every partition. Whoever
counts blocks calls the roll along with the counts, so a block that is counted twice, or not at all, or that was made
anew from other rows, shows before a count is used.

A fault on a worker becomes a row as well: what is raised there is written into logs, and may quote a value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow import errors
from hedgerow.coded.domain import Codes, Domain, IntArray
from hedgerow.errors import INTERNAL, HedgerowError, TableError, place_of
from hedgerow.private.engines.sql.drivers import failed
from hedgerow.private.engines.storage import refuse_strange

Batches: TypeAlias = Iterator[pa.RecordBatch]
Work: TypeAlias = Callable[[int, Batches], Batches]
"""What a task does: from the number of its partition, the same whenever it is tried again, and what is in it."""

FAULT = pa.field("fault", pa.string())
HEAD = [pa.field("place", pa.int64()), pa.field("rows", pa.int64()), pa.field("digest", pa.int64())]
"""Of a block: the number of the partition that made it and its own there, its rows, their digest."""
BLOCKS = 32
"""Bits of a place that are a block's own number."""
BLOCK_BYTES = 1 << 19
"""Java looks at larger ones with great care, and copies them beyond its caches."""
MOST_ROWS = 1 << 16
_FIRST, _STEP, _LAST = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F))


def layout(domain: Domain) -> pa.Schema:
    """The columns of a frame of blocks."""
    return pa.schema([*HEAD, FAULT, *(pa.field(column(index), pa.binary()) for index in range(len(domain)))])


def column(index: int) -> str:
    """Where the codes of an attribute are."""
    return f"c{index}"


class Blocks:
    """Makes blocks of rows that come batch by batch."""

    def __init__(self, domain: Domain, part: int):
        self._domain = domain
        self._place = part << BLOCKS
        self._layout = layout(domain)
        self._rows = 0
        self._held: list[Mapping[str, Codes]] = []
        row_bytes = sum(attribute.dtype.itemsize for attribute in domain)
        self._enough = min(MOST_ROWS, max(1, BLOCK_BYTES // max(1, row_bytes)))

    def add(self, coded: Mapping[str, Codes], rows: int) -> Batches:
        """Take further rows; blocks, once there are enough."""
        for attribute in self._domain:
            refuse_strange(attribute, coded[attribute.name])
        begin = 0
        while begin < rows:
            end = min(rows, begin + self._enough - self._rows)
            self._held.append({name: codes[begin:end] for name, codes in coded.items()})
            self._rows += end - begin
            begin = end
            if self._rows == self._enough:
                yield self._block()

    def rest(self) -> Batches:
        """What is left."""
        if self._rows:
            yield self._block()

    def _block(self) -> pa.RecordBatch:
        columns = [np.concatenate([coded[a.name] for coded in self._held]).astype(a.dtype) for a in self._domain]
        head = [pa.array([value], pa.int64()) for value in (self._place, self._rows, digest(columns, self._rows))]
        codes = [_blob(codes) for codes in columns]
        self._held, self._rows, self._place = [], 0, self._place + 1
        return pa.RecordBatch.from_arrays([*head, pa.nulls(1, pa.string()), *codes], schema=self._layout)


def _blob(codes: Codes) -> pa.Array:
    ends = pa.py_buffer(np.array([0, codes.nbytes], dtype=np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(codes)])


def codes_of(batch: pa.RecordBatch, index: int, dtype: np.dtype[Any]) -> Codes:
    """The codes of all blocks of a batch, which lie one behind the other."""
    blobs = batch.column(column(index))
    _, ends, codes = blobs.buffers()
    begin, *_, end = np.frombuffer(ends, dtype=np.int32)[blobs.offset : blobs.offset + len(blobs) + 1]
    found: Codes = np.require(np.frombuffer(codes[begin:end], dtype=dtype), None, "A")
    return found


def digest(columns: Sequence[npt.NDArray[Any]], rows: int) -> int:
    """A number of 64 bits with a sign that follows from the rows, in whatever order they are."""
    mixed = np.full(rows, _FIRST, dtype=np.uint64)
    for codes in columns:
        mixed += codes
        mixed *= _STEP
    mixed ^= mixed >> np.uint64(29)
    mixed *= _LAST
    mixed ^= mixed >> np.uint64(32)
    return int(mixed.sum(dtype=np.uint64).astype(np.int64))


class Roll:
    """The sum of the digests of each partition's blocks."""

    def __init__(self) -> None:
        self.digests: dict[int, int] = {}

    def call(self, batch: pa.RecordBatch) -> int:
        """Take the blocks of a batch; returns how many rows they hold."""
        refuse_passed_on(batch)
        for place, digest in zip(*(batch.column(name).to_pylist() for name in ("place", "digest")), strict=True):
            part = place >> BLOCKS
            self.digests[part] = (self.digests.get(part, 0) + digest) % (1 << 64)
        return sum(batch.column("rows").to_pylist())

    def arrays(self) -> tuple[IntArray, IntArray]:
        """Partitions in order, and their digests as numbers with a sign."""
        parts = sorted(self.digests)
        digests = np.array([self.digests[part] for part in parts], dtype=np.uint64)
        return np.array(parts, dtype=np.int64), digests.astype(np.int64)


def guarded(work: Work, columns: pa.Schema) -> Work:
    """The same work, whose faults are a row: nothing of what they say stands in a log of the cluster."""

    def run(part: int, batches: Batches) -> Batches:
        try:
            yield from work(part, batches)
        except Exception as problem:
            fault = pa.array([_fault(problem)], pa.string())
            arrays = [fault if field.name == FAULT.name else pa.nulls(1, field.type) for field in columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    return run


class PassedOn(Exception):
    """A fault of a task whose results this one reads."""


def refuse_passed_on(batch: pa.RecordBatch) -> None:
    """A fault there is one here."""
    for fault in batch.column(FAULT.name).drop_null():
        raise PassedOn(fault.as_py())


def _fault(problem: Exception) -> str:
    if isinstance(problem, PassedOn):
        return str(problem)
    if isinstance(problem, HedgerowError):
        kind, code, said = type(problem).__name__, problem.code, str(problem)
    elif isinstance(problem, pa.ArrowException | ArithmeticError | ValueError | UnicodeError):
        kind, code, said = TableError.__name__, "database-failed", "it holds a value that no program here can hold"
    elif isinstance(problem, MemoryError):
        kind, code, said = TableError.__name__, "database-failed", "a worker has too little memory"
    else:
        kind, code, said = HedgerowError.__name__, INTERNAL, f"an error on a worker: {place_of(problem)}"
    return json.dumps([kind, code, said])


def refuse_faults(faults: Iterable[str | None], what: str) -> None:
    """Raise what a worker met with."""
    for fault in faults:
        if fault is not None:
            kind, code, said = json.loads(fault)
            if code == "database-failed":
                raise failed(what, said)
            raise getattr(errors, kind)(code, said)
