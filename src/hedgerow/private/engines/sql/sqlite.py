"""SQLite: a database in a file, read by Python's own library."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import TableError
from hedgerow.private.engines.sql.rows import RowsOnly
from hedgerow.private.sources.source import BATCH_ROWS


class SQLite(RowsOnly):
    """The file is opened for reading only. All passes are one transaction, so they see the table at one moment."""

    name = "SQLite"
    form = "sqlite://FILE/TABLE"

    def _open(self, location: str) -> Sequence[str]:
        file, _, table = location.rpartition("/")
        if not file or not table:
            raise TableError("bad-table-name", f"a table in {self.name} is named {self.form}.")
        if not Path(file).is_file():
            raise TableError("no-such-table", f'the database "{file}" does not exist.')
        self._file = f"{Path(file).absolute().as_uri()}?mode=ro"
        self._table = _quoted(table)
        self._connection: sqlite3.Connection | None = None
        names = [name for name, *_ in self._asked(f"SELECT * FROM {self._table} LIMIT 0").description]
        self.let_go()
        return names

    def _asked(self, question: str) -> sqlite3.Cursor:
        if self._connection is None:
            self._connection = sqlite3.connect(self._file, uri=True, isolation_level=None, check_same_thread=False)
            self._connection.text_factory = bytes
            self._connection.execute("BEGIN")
        return self._connection.execute(question)

    def _read(self, columns: Sequence[str], person: str | None) -> Iterator[Sequence[Sequence[Any]]]:
        cursor = self._asked(f"SELECT {', '.join(map(_quoted, columns))} FROM {self._table}")
        while rows := cursor.fetchmany(BATCH_ROWS):
            yield rows

    def let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _refuse_blind(self, person: str) -> None:
        """No catalogue tells how a column compares; the steps in which its distinct values would be found do."""
        others = {name for _, name in self._asked("PRAGMA collation_list")} - {b"BINARY"}
        steps = self._asked(f"EXPLAIN SELECT DISTINCT {_quoted(person)} FROM {self._table}")
        said = [value for step in steps for value in step if isinstance(value, bytes)]
        if others & {word for value in said for word in re.findall(rb"\w+", value)}:
            raise self.refuse_blind(person)

    def _reason(self, error: Exception) -> str | None:
        if not isinstance(error, sqlite3.Error):
            return None
        said = str(error)
        if "no such" in said:
            return "the table, or one of its columns or collations, is not there"
        if "locked" in said or "busy" in said:
            return "another program is writing to it"
        return "the file is damaged, no SQLite file, or may not be read"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
