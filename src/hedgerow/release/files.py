"""Files appear whole or not at all."""

from __future__ import annotations

import filecmp
import glob
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, listing
from hedgerow.release.disk import exists, is_at, move_new, move_new_folder, reason, sync
from hedgerow.release.locks import lock, opened, opened_folder
from hedgerow.schema.spreadsheets import guarded

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow")
_KEPT = 60
"""Characters of a file's name that the name of its unfinished self repeats: at most 240 bytes of the 255."""
_unfinished: set[Path] = set()
"""What this process is writing just now."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A full disk and its like are told with the name of the file, never with the text of the error."""
    try:
        yield
    except OSError as problem:
        raise OptionError("cannot-write", f'"{path}" could not be written ({reason(problem)}).') from None


@contextmanager
def whole_file(path: Path, *, replace: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path`, on disk, when everything went well.

    Without `replace` a file that has appeared there meanwhile is left alone, unless it holds the very same bytes: those
    of a run that was killed just after it wrote them. A kill leaves at most a hidden `.NAME.….part`, which the next
    command that writes there removes (`clear_unfinished`).
    """
    partial = _beside(path)
    with writing(path):
        descriptor: int | None = None
        try:
            descriptor = _locked(partial, mode)
            yield partial
            sync(partial)
            if sys.platform == "win32":  # what is open there keeps its name
                os.close(descriptor)
                descriptor = None
            if replace:
                os.replace(partial, path)
            else:
                _publish(partial, path)
            sync(path.parent)
        finally:
            _remove(partial)
            if descriptor is not None:
                os.close(descriptor)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A folder beside `path` to fill; it gets the name `path`, on disk, when everything went well.

    Nothing may have that name yet. A kill leaves at most a hidden `.NAME.….part`, as for files.
    """
    clear_unfinished(path)
    if exists(path):
        raise OptionError(
            "already-exists", f'"{path}" exists already and was not touched; name another folder, or remove it.'
        )
    partial = _beside(path)
    with writing(path):
        descriptor: int | None = None
        try:
            partial.mkdir()
            if sys.platform != "win32":  # there its lock would be a file in it
                descriptor = opened_folder(partial)
                with suppress(OSError):  # a file system without locks
                    lock(descriptor)
            yield partial
            for each in sorted(partial.rglob("*")):
                sync(each)
            sync(partial)
            move_new_folder(partial, path)
            sync(path.parent)
        finally:
            _remove(partial)
            if descriptor is not None:
                os.close(descriptor)


def _publish(partial: Path, path: Path) -> None:
    try:
        move_new(partial, path)
    except FileExistsError:
        if not filecmp.cmp(partial, path, shallow=False):
            raise OptionError(
                "already-exists", f'"{path}" was made by another meanwhile and was not touched; move it away.'
            ) from None


def _beside(path: Path) -> Path:
    """Where `path` is written before it is whole; no longer than a name may be."""
    partial = path.with_name(f".{path.name[:_KEPT]}.{secrets.token_hex(4)}.part")
    _unfinished.add(partial)
    return partial


def _remove(partial: Path) -> None:
    with suppress(OSError):
        _unlink(partial)
    _unfinished.discard(partial)


def _unlink(partial: Path) -> None:
    """Remove an unfinished file, or an unfinished folder with all that is in it."""
    if partial.is_dir() and not partial.is_symlink():
        shutil.rmtree(partial)
    else:
        partial.unlink(missing_ok=True)


def remove_unfinished() -> None:
    """For a process that is stopped: Ctrl-C may come at the very moment when it tidies up."""
    for partial in list(_unfinished):
        _remove(partial)


def _locked(partial: Path, mode: int) -> int:
    """An unfinished file, locked while its writer lives, so that one whose writer is gone can be told."""
    while True:
        descriptor = opened(partial, os.O_RDWR | os.O_CREAT, mode)
        with suppress(OSError):  # a file system without locks
            lock(descriptor)
        if is_at(descriptor, partial):
            return descriptor
        os.close(descriptor)  # another process took it for one that was left behind


def clear_unfinished(path: Path) -> None:
    """Remove what commands that were killed have left of `path`; what another one is writing just now stays."""
    for partial in path.parent.glob(f".{glob.escape(path.name[:_KEPT])}.*.part"):
        remove_abandoned(partial)


def remove_abandoned(partial: Path) -> None:
    """Remove an unfinished file or folder unless its writer lives.

    On Windows nobody can remove a file that its writer has open, and of a folder nobody can tell: it stays.
    """
    with suppress(OSError):
        if sys.platform == "win32":
            partial.unlink()
        else:
            descriptor = opened(partial, os.O_RDONLY | os.O_NONBLOCK)
            try:
                lock(descriptor, wait=False)
                _unlink(partial)
            finally:
                os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read: for what was computed from real rows."""
    with whole_file(path, mode=0o600) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def named_after(path: Path, suffix: str) -> Path:
    """The file that goes beside an output, of the same name with another ending."""
    if path.name in ("", ".."):
        raise OptionError("is-a-folder", f'"{path}" is a folder and has no name that others can have; name another.')
    return path.with_suffix(suffix)


def check_writable(path: Path, suffixes: Iterable[str] = ()) -> None:
    """Refuse an output that could not be written, before anything is spent."""
    wanted = tuple(suffixes)
    try:
        if exists(path) and path.is_dir():
            raise OptionError("is-a-folder", f'"{path}" is a folder; name a file.')
        if wanted and path.suffix not in wanted:
            raise OptionError("unknown-suffix", f'"{path}" must end in one of {listing(wanted)}.')
        probe = _beside(path)
        clear_unfinished(path)
        try:
            os.close(_locked(probe, 0o600))
        finally:
            _remove(probe)
    except OSError as problem:
        raise OptionError("cannot-write", f'"{path}" cannot be written ({reason(problem)}).') from None


def write_table(
    path: Path, schema: pa.Schema, batches: Iterable[pa.Table], warning: str | None = None, *, replace: bool = True
) -> int:
    """Write tables one after the other as .csv, .parquet or .arrow; returns the number of rows."""
    rows = 0
    with table_writer(path, schema, warning, replace=replace) as write:
        for batch in batches:
            write(batch)
            rows += len(batch)
    return rows


@contextmanager
def table_writer(
    path: Path, schema: pa.Schema, warning: str | None = None, *, replace: bool = True
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends to a .csv, .parquet or .arrow file, which is there when everything went well.

    A `warning` goes into the file's metadata; a CSV has none, so it gets a note beside it, before it is there itself.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if warning:
        schema = schema.with_metadata({"hedgerow": warning})
    with whole_file(path, replace=replace) as partial:
        # the writer of a CSV file closes what it has opened when it pleases, so what it writes to is closed here
        with pa.OSFile(str(partial), "wb") as written:
            writer: Any
            if path.suffix == ".parquet":
                # rows come in random order: the least and the greatest value of a row group help no reader
                writer = pa.parquet.ParquetWriter(written, schema, compression="zstd", write_statistics=False)
            elif path.suffix == ".arrow":
                writer = pa.ipc.new_file(written, schema)
            else:
                writer = pa.csv.CSVWriter(written, guarded(schema.empty_table()).schema)

            def write(batch: pa.Table) -> None:
                table = batch.replace_schema_metadata(schema.metadata)
                writer.write_table(guarded(table) if path.suffix == ".csv" else table)

            with writer:
                yield write
        if warning and path.suffix == ".csv":
            with whole_file(void_note(path)) as note:
                note.write_text(warning + "\n", encoding="utf-8", newline="\n")
    if path.suffix == ".csv" and not warning:
        with suppress(OSError):
            void_note(path).unlink()  # it spoke of the table that was here before


def void_note(path: Path) -> Path:
    """The note beside a CSV file that has no guarantee."""
    return path.with_name(path.name + ".NO-GUARANTEE.txt")
