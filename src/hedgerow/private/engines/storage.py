"""Where coded rows lie: in memory while they are few, in files without names when they are many.

A file that has no name is readable by this process alone, and is gone when the process is, however it ends.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.coded.domain import Attribute, CodedTable, Codes, Domain
from hedgerow.errors import HedgerowError, LimitError

BLOCK_ROWS = 1 << 20
"""Rows that are read from files at a time."""


class StoredColumns:
    """Narrow codes, one column per attribute, every code inside its size. Grows batch by batch up to `seal`.

    Once the codes take more than `memory` bytes, all of them move to files; `block` then brings back what is asked.
    """

    def __init__(self, domain: Domain, memory: int):
        self.domain = domain
        self.rows = 0
        self._memory = memory
        self._row_bytes = sum(attribute.dtype.itemsize for attribute in domain)
        self._stored: list[_Column] = [_InMemory(attribute) for attribute in domain]

    @classmethod
    def of(cls, domain: Domain, coded: CodedTable) -> StoredColumns:
        """Codes that are in memory already."""
        columns = cls(domain, 1 << 62)
        columns.rows = len(next(iter(coded.values()))) if coded else 0
        for index, attribute in enumerate(domain):
            codes = coded[attribute.name]
            if len(codes) != columns.rows:
                raise HedgerowError("bad-codes", "columns of a table must have the same length.")
            refuse_strange(attribute, codes)
            columns._stored[index] = _Given(np.ascontiguousarray(codes, dtype=attribute.dtype))
        return columns

    @property
    def on_disk(self) -> bool:
        return any(isinstance(column, _InFile) for column in self._stored)

    def append(self, coded: Mapping[str, Codes], rows: int) -> None:
        """Further rows."""
        self.rows += rows
        if not self.on_disk and self.rows * self._row_bytes > self._memory:
            self._stored = [_InFile.of(column) for column in self._stored]
        for attribute, column in zip(self.domain, self._stored, strict=True):
            codes = coded[attribute.name]
            if len(codes) != rows or codes.dtype != attribute.dtype:
                raise HedgerowError("bad-codes", f'"{attribute.name}" needs {rows} codes of type {attribute.dtype}.')
            refuse_strange(attribute, codes)
            column.append(codes)

    def blocks(self, indices: Sequence[int]) -> Iterator[tuple[list[Codes], int]]:
        """All rows: at once where they are in memory, otherwise block by block.

        Columns that are not among `indices` hold anything: room that nobody writes to or reads takes no memory.
        """
        size = BLOCK_ROWS if self.on_disk else max(1, self.rows)
        wanted = set(indices)
        for start in range(0, max(1, self.rows), size):
            rows = min(size, self.rows - start)
            yield (
                [
                    column.read(start, rows) if index in wanted else np.empty(rows, dtype=attribute.dtype)
                    for index, (attribute, column) in enumerate(zip(self.domain, self._stored, strict=True))
                ],
                rows,
            )

    def views(self) -> list[Codes]:
        """Whole columns to look things up in; those on disk are read where they are touched."""
        return [column.view() for column in self._stored]

    def kept(self, keep: npt.NDArray[np.bool_]) -> StoredColumns:
        """Some of the rows, in their order."""
        chosen = StoredColumns(self.domain, self._memory)
        start = 0
        for codes, rows in self.blocks(range(len(self.domain))):
            mask = keep[start : start + rows]
            some = {attribute.name: column[mask] for attribute, column in zip(self.domain, codes, strict=True)}
            chosen.append(some, int(mask.sum()))
            start += rows
        return chosen


def stored_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, memory: int) -> pa.Table:
    """Rows as they were read; of more than `memory` bytes in a file without a name, read where they are touched."""
    held: list[pa.RecordBatch] = []
    size, file = 0, None
    for batch in batches:
        size += batch.nbytes
        held.append(batch)
        if file is None and size > memory:
            file = _TableFile(schema)
        if file is not None:
            file.append(held)
            held.clear()
    return pa.Table.from_batches(held, schema) if file is None else file.table()


class _TableFile:
    """Rows in Arrow's own form, in a file without a name, in the folder for temporary files (TMPDIR)."""

    def __init__(self, schema: pa.Schema):
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="hedgerow-")  # noqa: SIM115
        self._writer = pa.ipc.new_file(self._file, schema)

    def append(self, batches: Iterable[pa.RecordBatch]) -> None:
        try:
            for batch in batches:
                self._writer.write_batch(batch)
        except OSError as problem:
            raise _no_room("a table as it was read", problem) from None

    def table(self) -> pa.Table:
        """All rows; the file is gone when nothing holds them any more."""
        try:
            self._writer.close()
            self._file.flush()
        except OSError as problem:
            raise _no_room("a table as it was read", problem) from None
        with self._file:
            held = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_file(pa.py_buffer(held)).read_all()


def _no_room(what: str, problem: OSError) -> LimitError:
    reason = (problem.strerror or "refused").lower()
    return LimitError(
        "no-disk-space",
        f"{what} does not fit the folder for temporary files ({reason}). "
        "Hint: set TMPDIR to a larger disk, or raise --max-memory.",
    )


class _Column:
    """One attribute's codes."""

    def append(self, codes: Codes) -> None:
        raise NotImplementedError

    def read(self, start: int, rows: int) -> Codes:
        raise NotImplementedError

    def view(self) -> Codes:
        raise NotImplementedError


class _Given(_Column):
    """An array from elsewhere."""

    def __init__(self, codes: Codes):
        self.codes = codes

    def read(self, start: int, rows: int) -> Codes:
        return self.codes[start : start + rows]

    def view(self) -> Codes:
        return self.codes


class _InMemory(_Given):
    """An array whose length is not known yet. Room that was not written to takes no memory."""

    def __init__(self, attribute: Attribute):
        self._room: Codes = np.empty(1 << 18, dtype=attribute.dtype)
        super().__init__(self._room[:0])

    def append(self, codes: Codes) -> None:
        rows = len(self.codes)
        if rows + len(codes) > len(self._room):
            room = np.empty(max(rows + len(codes), 2 * len(self._room)), dtype=self._room.dtype)
            room[:rows] = self.codes
            self._room = room
        self._room[rows : rows + len(codes)] = codes
        self.codes = self._room[: rows + len(codes)]


class _InFile(_Column):
    """A file without a name, in the folder for temporary files (TMPDIR)."""

    def __init__(self, dtype: np.dtype[np.uint8] | np.dtype[np.uint16] | np.dtype[np.uint32]):
        self._dtype = dtype
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="hedgerow-", buffering=1 << 20)  # noqa: SIM115

    @classmethod
    def of(cls, column: _Column) -> _InFile:
        codes = column.view()
        moved = cls(codes.dtype)
        moved.append(codes)
        return moved

    def append(self, codes: Codes) -> None:
        try:
            self._file.write(np.ascontiguousarray(codes).data)
        except OSError as problem:
            raise _no_room("the coded table", problem) from None

    def read(self, start: int, rows: int) -> Codes:
        self._file.flush()
        codes: Codes = np.empty(rows, dtype=self._dtype)
        room = memoryview(codes.view(np.uint8).data)
        done = 0
        while done < len(room):
            read = _read_at(self._file, start * self._dtype.itemsize + done, room[done:])
            if not read:
                raise LimitError(
                    "spill-damaged",
                    "the file of coded rows in the folder for temporary files is shorter than what was written to it. "
                    "Hint: set TMPDIR to another disk, or raise --max-memory.",
                )
            done += read
        return codes

    def view(self) -> Codes:
        self._file.flush()
        if not os.fstat(self._file.fileno()).st_size:
            return np.empty(0, dtype=self._dtype)
        return np.memmap(self._file, dtype=self._dtype, mode="r")


def _read_at(file: IO[bytes], offset: int, room: memoryview) -> int:
    """Fill `room` from a place in a file, whatever other threads read meanwhile; how many bytes there were."""
    if sys.platform == "win32":
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            found = held[offset : offset + len(room)]
        room[: len(found)] = found
        return len(found)
    else:
        return os.preadv(file.fileno(), [room], offset)


def refuse_strange(attribute: Attribute, codes: Codes) -> None:
    """Who counts trusts codes: they must be below their attribute's size."""
    if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= attribute.size):
        raise HedgerowError(
            "bad-codes", f'attribute "{attribute.name}" needs one code of 0 … {attribute.size - 1} per row.'
        )
