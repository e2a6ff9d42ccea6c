"""Files appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, listing
from hedgerow.schema.spreadsheets import guarded

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` when everything went well."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield partial
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: for what was computed from real rows."""
    place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.fchmod(place, 0o600)
    with os.fdopen(place, "w", encoding="utf-8") as page:
        page.write(text)


def check_writable(path: Path, suffixes: Iterable[str] = ()) -> None:
    """Refuse an output that could not be written, before anything is spent."""
    wanted = tuple(suffixes)
    if wanted and path.suffix not in wanted:
        raise OptionError(f'"{path}" must end in one of {listing(wanted)}. Nothing was read.')
    if path.is_dir():
        raise OptionError(f'"{path}" is a folder; name a file. Nothing was read.')
    probe = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as problem:
        reason = (problem.strerror or "refused").lower()
        raise OptionError(f'"{path}" cannot be written ({reason}). Nothing was read.') from None


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.Table], warning: str | None = None) -> int:
    """Write tables one after the other as .csv, .parquet or .arrow; returns the number of rows.

    A `warning` goes into the file's metadata; a CSV has none, so it gets a note beside it.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if warning:
        schema = schema.with_metadata({"hedgerow": warning})
    rows = 0
    with whole_file(path) as partial:
        writer: Any
        if path.suffix == ".parquet":
            # rows come in random order: the least and the greatest value of a row group help no reader
            writer = pa.parquet.ParquetWriter(partial, schema, compression="zstd", write_statistics=False)
        elif path.suffix == ".arrow":
            writer = pa.ipc.new_file(str(partial), schema)
        else:
            writer = pa.csv.CSVWriter(partial, guarded(schema.empty_table()).schema)
        with writer:
            for batch in batches:
                table = batch.replace_schema_metadata(schema.metadata)
                writer.write_table(guarded(table) if path.suffix == ".csv" else table)
                rows += len(table)
    if path.suffix == ".csv":
        if warning:
            void_note(path).write_text(warning + "\n")
        else:
            void_note(path).unlink(missing_ok=True)  # it spoke of the table that was here before
    return rows


def void_note(path: Path) -> Path:
    """The note beside a CSV file that has no guarantee."""
    return path.with_name(path.name + ".NO-GUARANTEE.txt")
