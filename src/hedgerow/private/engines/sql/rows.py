"""Databases that are asked for rows and for nothing else: these come here batch by batch, as texts.

A subclass is a file of its own: how its URLs look, how the table is opened and read, and what an error of the driver
means. A value is read as one of a CSV file is, by itself, so that no value is read otherwise because of another row.
In the column that names a person values stay what they are, since 7 and "7" may be two persons there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import pyarrow as pa

from hedgerow.errors import OptionError, TableError
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.engines.sql.drivers import in_our_words
from hedgerow.private.identity import spelled_objects
from hedgerow.private.sources.source import unique_names, wanted_columns
from hedgerow.schema import Encoding
from hedgerow.schema.probing import Probing


class RowsOnly:
    """A table whose rows may come here. Implements `hedgerow.private.sources.source.NamingSource`."""

    name: ClassVar[str]
    form: ClassVar[str]
    """What its URLs look like."""

    def __init__(self, location: str, memory: int):
        self.what = f"the table in {self.name}"
        with self.asking():
            names = self._open(location)
        self._header = unique_names(names, self.what)

    def _open(self, location: str) -> Sequence[str]:
        """Reach the table that stands behind the scheme of a URL; returns the names of its columns."""
        raise NotImplementedError

    def _read(self, columns: Sequence[str], person: str | None) -> Iterator[Sequence[Sequence[Any]]]:
        """Rows of some columns, at most BATCH_ROWS at a time: None, text, bytes, whole and floating-point numbers.

        In the column `person` every value has a type that tells which others it can be compared with. Every pass sees
        the table as the first one did, until `let_go`.
        """
        raise NotImplementedError

    def _refuse_blind(self, person: str) -> None:
        """Refuse a column of persons whose texts the database takes for equal although they are written differently."""
        raise NotImplementedError

    def _reason(self, error: Exception) -> str | None:
        """Why the driver raised, in words of ours; None if this is no error of the driver."""
        raise NotImplementedError

    def let_go(self) -> None:
        """The table has been looked at for the last time, as far as is known."""

    def engine(self, bounding_key: bytes | None, memory: int, stay: bool) -> ArrowEngine:
        """Rows are coded and counted here."""
        if stay:
            raise OptionError(
                "cannot-stay",
                f"{self.name} hands out rows, which are counted here; Hedgerow counts nothing there. "
                "Hint: leave --stay out if the rows may leave it.",
            )
        return _CountedHere(self, bounding_key=bounding_key, memory=memory // 16)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self.read(columns, None)

    def by_person(self, person: str) -> _ByPerson:
        return _ByPerson(self, person)

    def read(self, columns: Sequence[str], person: str | None) -> Iterator[pa.RecordBatch]:
        """Batches of some columns; that of persons is spelled, as `hedgerow.private.identity` does it."""
        wanted = wanted_columns(columns, self._header, self.what)
        kinds: list[str] = []
        with self.asking():
            if person in wanted:
                self._refuse_blind(person)
            for rows in self._read(wanted, person):
                arrays = [
                    spelled_objects(values, kinds) if name == person else as_written(values)
                    for name, values in zip(wanted, zip(*rows, strict=True), strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=wanted)

    def refuse_blind(self, person: str) -> TableError:
        return TableError(
            "person-collation",
            f'the column "{person}", which names a person, holds texts that {self.name} takes for equal although they '
            "are written differently. Hint: give a view in which it is plain text that is written in one way.",
        )

    def asking(self) -> AbstractContextManager[None]:
        """What the driver raises inside becomes a sentence of ours."""
        return in_our_words(self.what, self._reason)


class _ByPerson:
    """A table of such a database whose persons are spelled."""

    def __init__(self, table: RowsOnly, person: str):
        self._table = table
        self._person = person

    def header(self) -> tuple[str, ...]:
        return self._table.header()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return self._table.read(columns, self._person)


class _CountedHere(ArrowEngine):
    """Rows that came from a database, which is let go once nobody will look again."""

    def __init__(self, table: RowsOnly, *, bounding_key: bytes | None, memory: int):
        super().__init__(table, bounding_key=bounding_key, memory=memory)
        self._database = table

    @property
    def place(self) -> str:
        """Where rows are counted, in words."""
        return f"rows of {self._database.name} are read and counted here"

    def prepare(self, encoding: Encoding) -> None:
        super().prepare(encoding)
        if not isinstance(encoding, Probing):  # after a look others come, which must see the same rows
            self._database.let_go()


def as_written(values: Sequence[Any]) -> pa.Array:
    """Values as the bytes of their text: of each by itself, the same as a file of their type would be read as."""
    floats = [value for value in values if isinstance(value, float)]
    written = iter(pa.array(floats, pa.float64()).cast(pa.string()).to_pylist())
    return pa.array([None if value is None else _bytes(value, written) for value in values], pa.binary())


def _bytes(value: Any, written: Iterator[str]) -> bytes:
    if isinstance(value, bytes):
        return value
    return (next(written) if isinstance(value, float) else str(value)).encode()
