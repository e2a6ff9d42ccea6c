"""PostgreSQL: a database server."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import Any
from urllib.parse import quote, unquote

import ibis
import psycopg
import pyarrow as pa
from adbc_driver_manager import Error as StreamError
from adbc_driver_postgresql import dbapi

from hedgerow.private.engines.sql.database import Database
from hedgerow.private.sources.source import BATCH_ROWS

_MONEY = ibis.dtype("decimal(19, 4)")
"""What ibis takes `money` for. The server itself compares it with no number, and writes it with a currency sign."""
_BLIND = """
SELECT bool_or(pg_type.typname = 'citext' OR NOT coalesce(collisdeterministic, true))
FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
JOIN pg_attribute ON attrelid = pg_class.oid
JOIN pg_type ON pg_type.oid = atttypid
LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE relname = %s AND attname = %s
  AND CASE WHEN %s::text IS NULL THEN pg_table_is_visible(pg_class.oid) ELSE nspname = %s END
"""


class PostgreSQL(Database):
    """What a URL leaves out (host, port, user, password) comes from the environment and the files that libpq reads."""

    name = "PostgreSQL"
    form = "postgres://[USER@][HOST[:PORT]]/DATABASE/[SCHEMA.]TABLE"

    def _open(self, location: str, memory: int) -> tuple[Any, Any]:
        server, _, path = location.partition("/")
        user, _, address = server.rpartition("@")
        host, _, port = address.rpartition(":") if address.rpartition(":")[2].isdigit() else (address, "", "")
        database, _, table = path.partition("/")
        if not database or not table:
            raise self._bad_location()
        host, user, database = unquote(host).strip("[]"), unquote(user), unquote(database)
        backend = ibis.postgres.connect(
            host=host or None, port=int(port) if port else None, user=user or None, database=database
        )
        given = {"host": host, "port": port, "user": user, "dbname": database}
        self._server = "&".join(f"{name}={quote(value, safe='')}" for name, value in given.items() if value)
        self._streaming: Any = None
        backend.con.execute("SET jit = off")  # compiling a statement takes longer than it saves
        backend.con.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        schema, _, name = unquote(table).rpartition(".")
        self._place = (schema or None, name)
        found = backend.table(name, database=schema or None)
        return backend, found.select(**{name: _plain(found[name]) for name in found.columns})

    def stream(self, question: Any) -> Iterator[pa.RecordBatch]:
        """By binary COPY, in a connection of its own whose one transaction lasts as long as the table is looked at."""
        kinds = question.schema().to_pyarrow()
        with self.asking():
            if self._streaming is None:
                self._streaming = dbapi.connect(f"postgresql:///?{self._server}")
                weakref.finalize(self, self._streaming.close)
                with self._streaming.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with self._streaming.cursor() as cursor:
                cursor.execute(self._backend.compile(question))
                with closing(cursor.fetch_record_batch()) as reader:
                    for batch in reader:
                        for begin in range(0, batch.num_rows, BATCH_ROWS):
                            yield _typed(batch.slice(begin, BATCH_ROWS), kinds)

    def let_go(self) -> None:
        """The end of the transaction, with its locks."""
        if self._streaming is not None:
            self._streaming.close()
            self._streaming = None

    def snapshot(self) -> AbstractContextManager[Any]:
        transaction: AbstractContextManager[Any] = self._backend.con.transaction()
        return transaction

    def hold(self, question: Any) -> Any:
        """Statistics are gathered at once: without them joins are planned for tables of another size."""
        held = super().hold(question)
        with self.asking():
            self._backend.con.execute(f'ANALYZE "{held.get_name()}"')
        return held

    def exact(self, text: Any) -> Any:
        return _convert_to(text, "UTF8")

    def hexadecimal(self, value: Any) -> Any:
        return _encode(value if value.type().is_binary() else self.exact(value), "hex")

    def _compared_as_written(self, column: str) -> bool:
        """Not so under citext, or a collation that is not deterministic."""
        schema, table = self._place
        (blind,) = self._backend.con.execute(_BLIND, [table, column, schema, schema]).fetchone()
        return not blind

    def _reason(self, error: Exception) -> str | None:
        if not isinstance(error, psycopg.Error | StreamError):
            return None
        state = error.sqlstate or ""
        if state == "42501":
            return "permission denied; reading the table and making temporary tables (TEMPORARY) are needed"
        if state in ("42P01", "42703", "3F000"):
            return "the table or one of its columns is not there"
        if state.startswith("53"):
            return "the server has too little memory or disk"
        if isinstance(error, StreamError):
            self._streaming = None  # its transaction is over
        if (
            isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            or not state
            or state[:2] in ("08", "57")
        ):
            return "the server cannot be reached, refused the login, or ended the connection"
        return "the server refused"


def _typed(batch: pa.RecordBatch, kinds: pa.Schema) -> pa.RecordBatch:
    """The types that were declared: decimals come as text."""
    arrays = [array.storage if isinstance(array, pa.ExtensionArray) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(
        [array.cast(kind) for array, kind in zip(arrays, kinds.types, strict=True)], schema=kinds
    )


def _plain(column: Any) -> Any:
    """What other programs can hold: texts as text, money as a number, and of decimals those that are numbers."""
    if column.type() == _MONEY:
        column = column.cast("decimal(21, 4)")
    kind = column.type()
    if kind.is_decimal() and kind.precision is not None:
        return column.nullif(ibis.literal("NaN").cast(kind))
    return _text(column) if kind.is_string() else column


@ibis.udf.scalar.builtin(name="text")  # type: ignore[untyped-decorator]
def _text(value: str) -> str:  # type: ignore[empty-body]
    """Plain text of what ibis takes for text already: enumerations, padded and case-blind texts."""


@ibis.udf.scalar.builtin(name="convert_to")  # type: ignore[untyped-decorator]
def _convert_to(text: str, encoding: str) -> bytes:  # type: ignore[empty-body]
    """Bytes of a text."""


@ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
def _encode(value: bytes, form: str) -> str:  # type: ignore[empty-body]
    """Bytes as text of that form."""
