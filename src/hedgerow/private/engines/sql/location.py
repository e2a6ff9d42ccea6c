"""URLs of tables that live in a database."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hedgerow.errors import TableError, listing

if TYPE_CHECKING:
    from hedgerow.private.engines.sql.database import Database
    from hedgerow.private.engines.sql.rows import RowsOnly

_FORM = re.compile(r'^class (\w+)\((?:Database|RowsOnly)\):.*?^    form = "(\w+)://', re.M | re.S)
"""How a file of this folder says that it holds a database, and what stands before :// in its URLs."""
_ALSO = {"postgresql": "postgres"}
"""Another spelling, which libpq reads too."""


@cache
def _databases() -> dict[str, tuple[str, str]]:
    """Module and class by scheme: read off the text of the files, because importing one needs its driver."""
    texts = ((file.stem, file.read_text(encoding="utf-8")) for file in sorted(Path(__file__).parent.glob("*.py")))
    found = {scheme: (f"{__package__}.{stem}", kind) for stem, text in texts for kind, scheme in _FORM.findall(text)}
    return found | {other: found[scheme] for other, scheme in _ALSO.items()}


def is_url(table: object) -> bool:
    return isinstance(table, str) and "://" in table


def open_database(url: str, memory: int = 1 << 29) -> Database | RowsOnly:
    """The table that a URL names, behind a session of its own; no row is read yet.

    `memory` is what the database itself may take, where it runs in this process.
    A URL is written down in shell histories and process lists, so it may not hold a secret; it is not quoted back.
    """
    scheme = url.split("://")[0]
    if scheme not in _databases():
        raise TableError(
            "unknown-engine",
            f'there is no engine for "{scheme}://"; engines: {listing(f"{name}://" for name in sorted(_databases()))}.',
        )
    if "?" in url or "#" in url or _has_password(url):
        raise TableError(
            "credentials-in-url",
            "a URL of a table holds no password and no options. Hint: credentials belong in the "
            "environment or the driver's own files (for PostgreSQL, PGPASSWORD or ~/.pgpass).",
        )
    module, name = _databases()[scheme]
    try:
        database: type[Database] | type[RowsOnly] = getattr(importlib.import_module(module), name)
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
