"""A private table in a database: what is asked of every database, and what they say when they refuse.

Everything is asked through ibis, so that a table looks the same wherever it lives; `duckdb`, `postgres` and `spark`
hold what differs. A session reads the table and writes nothing but temporary tables that it alone can see and that
vanish with it. What drivers say may quote rows, statements or credentials, so not a word of it is passed on.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import pyarrow as pa
from ibis.common.exceptions import IbisError, TableNotFound

from hedgerow.errors import TableError
from hedgerow.private.engines.sql.drivers import in_our_words
from hedgerow.private.identity import unnamable
from hedgerow.private.sources.source import BATCH_ROWS, Source, unique_names, wanted_columns

if TYPE_CHECKING:
    from hedgerow.private.engines.engine import Engine

_FIRST_DAY, _LAST_DAY = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)


class Database:
    """A table behind a session of its own. Implements `hedgerow.private.sources.source.Source`."""

    name: ClassVar[str]
    form: ClassVar[str]
    """What its URLs look like."""
    streams: ClassVar[bool] = True
    """Whether rows come here batch by batch, however many they are."""
    at_once: ClassVar[int] = 32
    """Marginals that share a statement, which has a way to travel."""

    def __init__(self, location: str, memory: int):
        self.what = f"the table in {self.name}"
        self._held = 0
        self._secret = secrets.token_hex(8)
        with self.asking():
            self._backend, self._given = self._open(location, memory)
            self.table = _readable(self._given)
        self._header = unique_names(self.table.columns, self.what)

    def engine(self, bounding_key: bytes | None, memory: int, stay: bool) -> Engine:
        """What counts the table: rows come here or are coded by SQL, unless the database can run our own code."""
        from hedgerow.private.engines.sql.engine import SqlEngine

        return SqlEngine(self, bounding_key=bounding_key, memory=memory, stay=stay)

    def _open(self, location: str, memory: int) -> tuple[Any, Any]:
        """The ibis backend and the table, from what stands behind the scheme of a URL.

        `memory` is what the database itself may take, where it runs in this process.
        """
        raise NotImplementedError

    def exact(self, text: Any) -> Any:
        """Text as its bytes: under a collation texts can be equal that a declaration tells apart."""
        raise NotImplementedError

    def _reason(self, error: Exception) -> str | None:
        """Why the driver raised, in words of ours; None if this is no error of the driver."""
        raise NotImplementedError

    def hexadecimal(self, value: Any) -> Any:
        """The bytes of a text, or bytes, in lower-case hexadecimal."""
        return _hex(value).lower()

    def _compared_as_written(self, column: str) -> bool:
        """Whether the database, too, holds only those texts equal that are written alike."""
        return True

    def snapshot(self) -> AbstractContextManager[Any]:
        """Statements inside see the table as it is at one moment, where the database can do that."""
        return nullcontext()

    def tally(self, table: Any, cells: Sequence[Any]) -> Any:
        """How many rows reach each number, where every row has several. Here: a scan for each, in one statement."""
        return ibis.union(*(table.select(cell=cell).group_by("cell").agg(rows=count) for cell in cells))

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self.what)
        return self.stream(self.table.select(*wanted))

    def by_person(self, person: str) -> Source:
        return _ByPerson(self, (person,))

    def naming(self, *persons: str) -> Any:
        """The table with each of the columns `persons` spelled as `hedgerow.private.identity` spells it.

        Days, moments and floating-point numbers are not spelled in SQL: they stand as they are.
        """
        columns = wanted_columns(persons, self._header, self.what)
        with self.asking():
            return _readable(self._given, {column: self._who(column) for column in columns})

    def _who(self, column: str) -> Any:
        spelled = _spelled(self._given[column])
        if spelled.type().is_string() and not self._compared_as_written(column):
            raise TableError(
                "person-collation",
                f'the column "{column}", which names a person, holds texts that {self.name} takes for equal '
                "although they are written differently. Hint: give a view in which it is plain "
                "text that is written in one way.",
            )
        return spelled

    def stream(self, question: Any) -> Iterator[pa.RecordBatch]:
        """The rows of an expression over the table, however many. Every pass sees the table as the first one did."""
        return self.fetch(question)

    def let_go(self) -> None:
        """The table has been looked at for the last time, as far as is known; it may change for whoever looks again."""

    def fetch(self, question: Any) -> Iterator[pa.RecordBatch]:
        """The rows of an ibis expression."""
        with self.asking():
            yield from self._backend.to_pyarrow_batches(question, chunk_size=BATCH_ROWS)

    def fetch_all(self, question: Any) -> pa.Table:
        """All rows at once, of the types that ibis declares: databases narrow a constant as they like."""
        kinds = question.schema().to_pyarrow()
        found = list(self.fetch(question))
        return pa.Table.from_batches(found).cast(kinds) if found else kinds.empty_table()

    def hold(self, question: Any) -> Any:
        """The rows of an ibis expression, computed once and kept for this session alone."""
        with self.asking():
            return self._backend.create_table(self._next_name(), question, temp=True)

    def upload(self, columns: Mapping[str, Any]) -> Any:
        """Numbers of ours as a table of this session."""
        with self.asking():
            return self._backend.create_table(self._next_name(), pa.table(dict(columns)), temp=True)

    def drop(self, held: Any) -> None:
        with self.asking():
            self._backend.drop_table(held.get_name(), force=True)

    def asking(self) -> AbstractContextManager[None]:
        """What the driver raises inside, or what asks it for us, becomes a sentence of ours."""
        return in_our_words(self.what, self._why)

    def _why(self, error: Exception) -> str | None:
        reason = self._reason(error)
        if reason is None and isinstance(error, TableNotFound):
            return "there is no such table, or it may not be seen"
        if reason is None and isinstance(error, IbisError):
            return "something was asked that it cannot do"
        return reason

    def _next_name(self) -> str:
        """No two sessions share a name, also where they can see each other's tables."""
        self._held += 1
        return f"hedgerow_{self._secret}_{self._held}"

    def _bad_location(self) -> TableError:
        return TableError("bad-table-name", f"a table in {self.name} is named {self.form}.")


def count(table: Any) -> Any:
    return table.count()


class _ByPerson:
    """A table of a database with columns in which ids are spelled."""

    def __init__(self, database: Database, persons: tuple[str, ...]):
        self._database, self._persons = database, persons
        self._table = database.naming(*persons)

    def by_person(self, person: str) -> Source:
        return _ByPerson(self._database, (*self._persons, person))

    def header(self) -> tuple[str, ...]:
        return self._database.header()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self.header(), self._database.what)
        return self._database.stream(self._table.select(*wanted))


def _spelled(column: Any) -> Any:
    kind = column.type()
    if kind.is_string() or kind.is_binary() or kind.is_date() or kind.is_timestamp() or kind.is_floating():
        return column
    if kind.is_integer() or kind.is_uuid() or kind.is_inet() or kind.is_macaddr():
        return column.cast("string")
    if not kind.is_decimal():
        raise unnamable(kind)
    digits = column.cast("string")
    if kind.scale == 0:
        return digits
    return ibis.ifelse(
        digits.contains(".") & ~digits.contains("E"),  # not 1.5E-10, as Spark may write it
        digits.re_replace(r"\.?0+$", ""),
        digits.nullif("NaN"),
    )


def _readable(table: Any, spelled: Mapping[str, Any] | None = None) -> Any:
    """The table with every column as a type that an encoding reads, the same in every database.

    Days outside the calendar that programs share (infinity too) move to its ends, where declared bounds clip them.
    """
    columns = dict(spelled or {})
    for name, kind in table.schema().items():
        if name in columns:
            continue
        column = table[name]
        if kind.is_nested():
            raise TableError(
                "column-type", f'the column "{name}" has the type "{kind}", which no kind of column holds.'
            )
        if kind.is_decimal() and (kind.precision is None or kind.scale is None):
            column = column.cast("float64")
        elif kind.is_date() or kind.is_timestamp():
            ends = [ibis.literal(str(day)).cast(kind) for day in (_FIRST_DAY, _LAST_DAY)]
            column = ibis.cases((column < ends[0], ends[0]), (column > ends[1], ends[1]), else_=column)
        elif not (kind.is_numeric() or kind.is_boolean() or kind.is_string() or kind.is_binary()):
            column = column.cast("string")
        columns[name] = column
    return table.select(**{name: columns[name] for name in table.columns})


@ibis.udf.scalar.builtin  # type: ignore[untyped-decorator]
def md5(text: str) -> str:  # type: ignore[empty-body]
    """Lower-case hexadecimal, under this name in every database."""


@ibis.udf.scalar.builtin(name="hex")  # type: ignore[untyped-decorator]
def _hex(value) -> str:  # type: ignore[empty-body,no-untyped-def]
    """Hexadecimal of bytes, or of a text's bytes as they lie there, in whichever case."""
