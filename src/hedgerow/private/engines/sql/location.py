"""URLs of tables that live in a database."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hedgerow.errors import TableError, listing

if TYPE_CHECKING:
    from hedgerow.private.engines.sql.database import Database

_DATABASES = {
    "duckdb": ("hedgerow.private.engines.sql.duckdb", "DuckDB"),
    "postgres": ("hedgerow.private.engines.sql.postgres", "PostgreSQL"),
    "postgresql": ("hedgerow.private.engines.sql.postgres", "PostgreSQL"),
    "spark": ("hedgerow.private.engines.sql.spark", "Spark"),
}


def is_url(table: object) -> bool:
    return isinstance(table, str) and "://" in table


def open_database(url: str, memory: int = 4 << 30) -> Database:
    """The table that a URL names, behind a session of its own; no row is read yet.

    A URL is written down in shell histories and process lists, so it may not hold a secret; it is not quoted back.
    """
    scheme = url.split("://")[0]
    if scheme not in _DATABASES:
        raise TableError(
            "unknown-engine",
            f'there is no engine for "{scheme}://"; engines: {listing(f"{name}://" for name in _DATABASES)}.',
        )
    if "?" in url or "#" in url or _has_password(url):
        raise TableError(
            "credentials-in-url",
            "a URL of a table holds no password and no options. Hint: credentials belong in the "
            "environment or the driver's own files (for PostgreSQL, PGPASSWORD or ~/.pgpass).",
        )
    module, name = _DATABASES[scheme]
    try:
        database: type[Database] = getattr(importlib.import_module(module), name)
    except ImportError:
        raise TableError(
            "missing-package",
            f'tables behind {scheme}:// need further packages. Hint: pip install "hedgerow[engines]".',
        ) from None
    return database(url.split("://", 1)[1], memory)


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return True
