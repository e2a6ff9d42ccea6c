"""Engines made elsewhere, named before the location of a table: `package.module:Class://LOCATION`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, TableError
from hedgerow.foreign import imported
from hedgerow.private.engines.engine import Engine
from hedgerow.private.engines.sql.location import is_url

if TYPE_CHECKING:
    from hedgerow.private.sources.source import Source

TAKES = "(location, *, bounding_key=None, memory=4 << 30)"


def engine_elsewhere(table: Any) -> str | None:
    """The class that a URL names before the location; None where it names a database of ours, or is no URL."""
    scheme = table.split("://", 1)[0] if is_url(table) else ""
    return scheme if ":" in scheme else None


def open_elsewhere(url: str, *, bounding_key: bytes | None = None, memory: int = 4 << 30) -> Engine:
    """The engine of a table whose class its user named. What it raises may quote rows, so not a word of it is kept."""
    name, location = url.split("://", 1)
    made = imported(name, "engine")
    if not takes_location(made):
        raise TableError("not-an-engine", f'"{name}" cannot be opened as an engine: its class must take {TAKES}.')
    try:
        engine = made(location, bounding_key=bounding_key, memory=memory)
    except (HedgerowError, MemoryError):
        raise
    except Exception as problem:
        raise TableError(
            "cannot-open", f'the engine "{name}" could not open its table ({type(problem).__name__}).'
        ) from None
    if not isinstance(engine, Engine):
        raise TableError(
            "not-an-engine", f'"{name}" is not an engine: it lacks one of header, prepare, people_per_value and count.'
        )
    return engine


def takes_location(made: Any) -> bool:
    """Whether a class can be given what every engine is opened with."""
    try:
        inspect.signature(made).bind("location", bounding_key=None, memory=4 << 30)
    except (TypeError, ValueError):
        return False
    return True


def rows_elsewhere(url: str) -> Source:
    """The rows of such a table, for what looks at rows; refused where the engine counts in place and gives none."""
    source: Source | None = getattr(open_elsewhere(url), "source", None)
    if source is None:
        raise TableError(
            "no-rows-handed-out",
            f'the engine "{engine_elsewhere(url)}" hands out no rows: it has no `source`. `synth` counts with it all '
            "the same; what looks at single rows needs them.",
        )
    return source
