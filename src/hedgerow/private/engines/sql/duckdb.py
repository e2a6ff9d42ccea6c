"""DuckDB: a database in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import ibis

from hedgerow.errors import TableError
from hedgerow.private.engines.sql.database import Database
from hedgerow.private.engines.sql.spill import SpillFolder

_ALIKE = (("a", "A"), ("e", "é"), ("é", "e\u0301"), ("a", "a\u00ad"), ("a", "a "), ("ss", "ß"))
"""Texts that are written differently, and that some collation holds equal."""


class DuckDB(Database):
    """The file is attached to a database in memory, for reading only; what does not fit goes to a folder of our own."""

    name = "DuckDB"
    form = "duckdb://FILE/[SCHEMA.]TABLE"
    at_once = 1  # it runs in this process: nothing travels, and a union of 32 large counts was seen to stall for ever

    def _open(self, location: str, memory: int) -> tuple[Any, Any]:
        file, _, table = location.rpartition("/")
        if not file or not table:
            raise self._bad_location()
        if not Path(file).is_file():
            raise TableError("no-such-table", f'the database "{file}" does not exist.')
        self._spill = SpillFolder("hedgerow-duckdb-")
        backend = ibis.duckdb.connect(
            ":memory:",
            temp_directory=str(self._spill.path),
            memory_limit=f"{max(memory, 1 << 28) >> 20}MiB",
            autoinstall_known_extensions="false",
        )
        backend.con.execute("SET enable_progress_bar = false")  # it would be drawn on standard output
        backend.attach(file, "source", read_only=True)
        schema, _, name = table.rpartition(".")
        return backend, backend.table(name, database=("source", schema or "main"))

    def exact(self, text: Any) -> Any:
        return _encode(text)

    def _compared_as_written(self, column: str) -> bool:
        """Not so under most collations. No catalogue tells of them, so an empty selection is asked how it compares."""
        nothing = self._backend.compile(self._given.select(text=self._given[column]).filter(False))
        alike = f"SELECT coalesce((SELECT any_value(text)::VARCHAR FROM ({nothing})), ?) = ?"
        return not any(self._backend.con.execute(alike, pair).fetchone()[0] for pair in _ALIKE)

    def _reason(self, error: Exception) -> str | None:
        if isinstance(error, duckdb.CatalogException | duckdb.BinderException):
            return "the table or one of its columns is not there any more"
        if isinstance(error, duckdb.OutOfMemoryException):
            return "DuckDB has too little memory or disk; raise --max-memory, or set TMPDIR to a larger disk"
        if isinstance(error, duckdb.IOException):
            return "the file is in use by another program, damaged, or not a DuckDB file"
        return "DuckDB refused" if isinstance(error, duckdb.Error) else None


@ibis.udf.scalar.builtin(name="encode")  # type: ignore[untyped-decorator]
def _encode(text: str) -> bytes:  # type: ignore[empty-body]
    """UTF-8 bytes."""
