"""MariaDB: a database server."""

from __future__ import annotations

import os
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pymysql
from pymysql import converters
from pymysql.cursors import SSCursor

from hedgerow.errors import TableError
from hedgerow.private.engines.sql.rows import RowsOnly
from hedgerow.private.identity import unnamable
from hedgerow.private.sources.source import BATCH_ROWS

_COLUMNS = """
SELECT column_name, data_type, collation_name FROM information_schema.columns
WHERE table_schema = database() AND table_name = %s ORDER BY ordinal_position
"""
_NAMED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year"), int),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), bytes),
    "decimal": Decimal,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "uuid": uuid.UUID,
}
"""How values that name a person are read, by type; texts are those that have a collation."""
_EXACT = "_nopad_bin"
"""How collations end that tell apart whatever is written differently; others ignore spaces at the end, or more."""
_AS_WRITTEN = dict(converters.encoders)
"""What is asked has its types, what comes is text."""
_DENIED = {1044, 1142, 1143, 1227, 1370}
_ABSENT = {1049, 1054, 1146, 1356}


class MariaDB(RowsOnly):
    """What a URL leaves out comes from MYSQL_PWD and from ~/.my.cnf, as for its own programs."""

    name = "MariaDB"
    form = "mariadb://[USER@][HOST[:PORT]]/DATABASE/TABLE"

    def _open(self, location: str) -> Sequence[str]:
        server, _, path = location.partition("/")
        user, _, address = server.rpartition("@")
        host, _, port = address.rpartition(":") if address.rpartition(":")[2].isdigit() else (address, "", "")
        database, _, table = unquote(path).partition("/")
        if not database or not table:
            raise TableError("bad-table-name", f"a table in {self.name} is named {self.form}.")
        host = unquote(host).strip("[]")
        self._server = {
            "host": None if host.startswith("/") else host,
            "unix_socket": host if host.startswith("/") else None,
            "port": int(port or 0),
            "user": unquote(user) or None,
            "database": database,
            "password": os.environ.get("MYSQL_PWD", ""),
        }
        self._table = _quoted(table)
        self._connection: Any = None
        with self._asked(_COLUMNS, [table]) as cursor:
            self._kinds = {name: (kind, collation) for name, kind, collation in cursor}
        self.let_go()
        if not self._kinds:
            raise TableError(
                "database-failed",
                f"{self.what} cannot be used: there is no such table, or it may not be seen. Nothing was changed "
                "there.",
            )
        return list(self._kinds)

    def _asked(self, question: str, words: Sequence[Any] = ()) -> Any:
        """A cursor that fetches as it is read; every value comes as the server writes it, or as bytes."""
        if self._connection is None:
            self._connection = pymysql.connect(
                **self._server, conv=_AS_WRITTEN, charset="utf8mb4", read_default_file="~/.my.cnf", cursorclass=SSCursor
            )
            weakref.finalize(self, self._connection._force_close)
            with self._connection.cursor() as cursor:
                cursor.execute("SET time_zone = '+00:00'")
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        cursor = self._connection.cursor()
        cursor.execute(question, words or None)
        return cursor

    def _read(self, columns: Sequence[str], person: str | None) -> Iterator[Sequence[Sequence[Any]]]:
        readers = [self._reader(name, name == person) for name in columns]
        with closing(self._asked(f"SELECT {', '.join(map(_quoted, columns))} FROM {self._table}")) as cursor:
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield [
                    [None if value is None else read(value) for read, value in zip(readers, row, strict=True)]
                    for row in rows
                ]

    def _reader(self, column: str, person: bool) -> Callable[[Any], Any]:
        kind, collation = self._kinds[column]
        if kind == "bit":
            return lambda value: int.from_bytes(value, "big")
        if not person or collation is not None:
            return lambda value: value
        if kind not in _NAMED:
            raise unnamable(kind)
        return _NAMED[kind]

    def _refuse_blind(self, person: str) -> None:
        collation = self._kinds[person][1]
        if collation is not None and not collation.endswith(_EXACT):
            raise self.refuse_blind(person)

    def let_go(self) -> None:
        """The end of the transaction."""
        if self._connection is not None:
            self._connection._force_close()
            self._connection = None

    def _reason(self, error: Exception) -> str | None:
        if not isinstance(error, pymysql.MySQLError | OSError):
            return None
        code = error.args[0] if error.args else None
        if code in _DENIED:
            return "permission denied; reading the table is needed"
        if code in _ABSENT:
            return "the table or one of its columns is not there"
        if isinstance(error, pymysql.OperationalError | pymysql.InterfaceError | OSError):
            return "the server cannot be reached, refused the login, or ended the connection"
        return "the server refused"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
