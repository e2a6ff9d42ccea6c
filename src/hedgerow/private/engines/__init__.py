"""Where the table lives. Private side: engines see rows and exact counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError
from hedgerow.schema.file import Written

if TYPE_CHECKING:
    from hedgerow.private.engines.engine import Engine
    from hedgerow.schema import Schema

__all__ = ["open_engine", "open_tables"]

PLAIN = Written()


def open_engine(
    table: Any,
    written: Written = PLAIN,
    *,
    bounding_key: bytes | None = None,
    memory: int = 4 << 30,
    stay: bool = False,
) -> Engine:
    """An engine for a table: a path, a URL, a pandas or polars frame, anything with the Arrow C interface, an engine.

    `package.module:Class://LOCATION` is a table in an engine made elsewhere: its class gets the location, the key and
    the memory. No row is read yet. `written` is how the table is written (`Schema.written`). `bounding_key` is the
    secret of contribution bounding; it is fresh for every engine unless an audit needs two engines to agree. `memory`
    is what the whole run may take: a sixteenth of it may hold coded rows, further ones go to disk. With `stay` the
    rows of a database are coded and counted there.
    """
    from hedgerow.private.engines.arrow import ArrowEngine
    from hedgerow.private.engines.elsewhere import engine_elsewhere, open_elsewhere
    from hedgerow.private.engines.engine import Engine
    from hedgerow.private.engines.sql.location import open_database
    from hedgerow.private.sources.source import in_database, open_source, refuse_strip

    if stay and (not in_database(table) or engine_elsewhere(table) is not None):
        raise OptionError(
            "nowhere-to-stay",
            "--stay is for rows that may not leave a database; this table is in none that we reach. Hint: leave "
            "--stay out, or name the table by its URL (duckdb://, postgres://, spark://).",
        )
    if isinstance(table, Engine):
        return table
    if in_database(table):
        refuse_strip(written)
        if engine_elsewhere(table) is not None:
            return open_elsewhere(table, bounding_key=bounding_key, memory=memory)
        return open_database(table, memory // 2 if stay else memory // 8).engine(bounding_key, memory, stay)
    source = open_source(table, written, memory=memory)
    return ArrowEngine(source, bounding_key=bounding_key, memory=memory // 16)


def open_tables(table: Any, schema: Schema, *, bounding_key: bytes | None = None, memory: int = 4 << 30) -> Engine:
    """An engine for linked tables: a folder with a file of each, or a mapping from their names to frames or paths."""
    from hedgerow.private.engines.linked import open_tables

    return open_tables(table, schema, bounding_key=bounding_key, memory=memory)
