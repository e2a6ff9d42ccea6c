"""Tables of a lake: folders of Parquet files beside a log that says which of their rows count.

Rows that were replaced or deleted lie in such a folder for weeks, so it is never read file by file: the format's own
reader says what the table holds, or nothing is read. Every pass sees the version that the first one saw. Readers open
files themselves; what they say may quote rows, requests and names, so not a word of it is passed on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from hedgerow.errors import HedgerowError, TableError
from hedgerow.private.sources.source import BATCH_ROWS, Source, unique_names, wanted_columns
from hedgerow.private.sources.stores import PATIENCE, Stored, in_store, s3_settings, why
from hedgerow.private.sources.validation import validated

DELTA, ICEBERG = "Delta", "Iceberg"
LOGS = {"_delta_log": DELTA, "metadata": ICEBERG, ".hoodie": "Hudi", "_spark_metadata": "Spark's streams"}
"""Folders that tell which rows count, and whose they are; that of Iceberg by what is in it too."""
_VERSION = re.compile(r"(v\d+|\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.gz)?\.metadata\.json(\.gz)?", re.I)
"""How every writer of Iceberg names a version of a table."""
_FILES = (".parquet", ".pq")
_HINT = "metadata/version-hint.text"


def lake_at(table: str, place: Path | Stored) -> Source | None:
    """The table of a lake that a folder is, or that a file of Iceberg's metadata describes; None for other places.

    A part of one, and a folder with several in it, are refused.
    """
    if _describes_iceberg(table):
        return iceberg(table, table)
    paths = _paths(place)
    _refuse_part(table, place)
    found = {kind: depth for depth, kind in sorted(_logs(paths), reverse=True)}
    if not found:
        return None
    if found.get(DELTA) == 0:
        return delta(table)
    if found.get(ICEBERG) == 0:
        return iceberg(table, _current(table, place, paths))
    kind, depth = min(found.items(), key=lambda each: each[1])
    if depth:
        raise _stale(f'the folder "{table}"', kind, "name the folder of the table itself")
    raise _stale(f'the folder "{table}"', kind, "give a copy of what it holds now, or name it in Spark's catalogue")


def folder_of(table: str) -> str:
    """The folder of a table that is named by a file of Iceberg's metadata; of another, what it is named by."""
    if not _describes_iceberg(table):
        return table
    return table.rsplit("/", 2)[0] if "://" in table else str(Path(os.path.abspath(table)).parent.parent)


def _describes_iceberg(table: str) -> bool:
    return table.endswith((".metadata.json", ".metadata.json.gz"))


def _paths(place: Path | Stored) -> list[str]:
    """What lies below a folder."""
    if isinstance(place, Stored):
        return place.paths() if place.is_folder else []
    return [each.relative_to(place).as_posix() for each in place.rglob("*")] if place.is_dir() else []


def _logs(paths: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Logs that lie there, by how deep the folder of their table does."""
    for path in paths:
        parts = PurePosixPath(path).parts
        for depth, part in enumerate(parts):
            if part in LOGS and (LOGS[part] != ICEBERG or any(map(_VERSION.fullmatch, parts[depth + 1 :]))):
                yield depth, LOGS[part]


def _refuse_part(table: str, place: Path | Stored) -> None:
    """A file of a lake, or a folder that is a part of one of its tables, has no log of its own."""
    for beside in _above(place):
        for kind in [kind for depth, kind in _logs(beside) if depth == 0]:
            raise _stale(f'"{table}"', kind, "name the folder of the whole table")


def _above(place: Path | Stored) -> Iterator[list[str]]:
    """What lies in the folders above that may be a table's: that of a file, and those that are cut into parts.

    In a store, where we may look: who may read one file need not be allowed to list others.
    """
    is_file = not (place.is_folder if isinstance(place, Stored) else place.is_dir())
    if is_file and not place.name.endswith(_FILES):
        return
    here = place.resolve() if isinstance(place, Path) else place
    while is_file or _is_part(here.name):
        above, is_file = None, False
        with nullcontext() if isinstance(here, Path) else suppress(TableError):
            above = here.parent
            beside = [] if above is None else _beside(above)
        if above is None or above == here:
            return
        here = above
        yield beside


def _beside(folder: Path | Stored) -> list[str]:
    """The logs in a folder, and what Iceberg's holds; nobody looks through all that a folder has besides."""
    if isinstance(folder, Path):
        found = [log for log in LOGS if (folder / log).exists()]
        deeper = [each.name for each in folder.glob("metadata/*")]
    else:
        found = [log for log in LOGS if folder.file(log).exists]
        deeper = folder.file("metadata").paths(deep=False) if "metadata" in found else []
    return [*found, *(f"metadata/{name}" for name in deeper)]


def parted(folder: str) -> Iterator[str]:
    """A folder or file, and the folders above that it may be a part of."""
    folder = folder.rstrip("/")
    yield folder
    while _is_part(name := folder.rpartition("/")[2]) or name.endswith(_FILES):
        folder = folder.rpartition("/")[0]
        yield folder


def _is_part(name: str) -> bool:
    """Whether folders of a table's files are named so: by Hive and whoever follows it, and by Iceberg."""
    return "=" in name or name == "data"


def refuse_lake(table: str, logs: Iterable[str]) -> None:
    """For an engine that reads plain files: a table with one of these folders in it is not read there."""
    for log in logs:
        raise _stale(f'the folder "{table}"', LOGS[log], "name the table in Spark's catalogue, spark://SCHEMA.TABLE")


def _stale(what: str, kind: str, hint: str) -> TableError:
    return TableError(
        "rows-that-count",
        f"{what} has files of a table of {kind}; rows may be in them that were replaced or deleted. Hint: {hint}.",
    )


def _current(table: str, place: Path | Stored, paths: Iterable[str]) -> str:
    """The metadata of the newest version, where the folder says which it is: its catalogue knows otherwise."""
    names = set(paths)
    if _HINT in names:
        with _reading(table):
            hint = _text(place, _HINT).strip()
        number = int(hint) if hint.isascii() and hint.isdigit() else None
        while number is not None and _of_version(number + 1, names):  # written before the hint is
            number += 1
        for name in (hint,) if number is None else _of_version(number, names):
            if f"metadata/{name}" in names and _describes_iceberg(name):
                return f"{table.rstrip('/')}/metadata/{name}"
    raise TableError(
        "iceberg-version",
        f'the folder "{table}" is an Iceberg table, and does not say which of its versions holds. '
        "Hint: name the file that its catalogue gives as metadata_location, FOLDER/metadata/….metadata.json.",
    )


def _of_version(number: int, names: set[str]) -> list[str]:
    found = (f"v{number}{ending}" for ending in (".metadata.json", ".gz.metadata.json", ".metadata.json.gz"))
    return [name for name in found if f"metadata/{name}" in names]


def _text(place: Path | Stored, path: str) -> str:
    if isinstance(place, Path):
        return (place / path).read_text(encoding="utf-8")
    with place.file(path).stream(None) as stream:
        return str(stream.read().decode("utf-8"))


class LakeSource:
    """One version of a table, whatever happens to the table meanwhile."""

    def __init__(self, what: str, version: Any, rows: Callable[[list[str]], Iterable[pa.RecordBatch]]):
        self._what = what
        self._rows = rows
        self._header = unique_names([field.name for field in version.schema().fields], what)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self._what)
        with _reading(self._what):
            yield from _as_many(self._rows(wanted), wanted, self._what)


def delta(table: str) -> LakeSource:
    """A Delta table as its newest version has it now."""
    what = f'the table "{table}"'
    deltalake = _package("deltalake", what)
    with _reading(what):
        version = deltalake.DeltaTable(table, storage_options=_delta_settings(table))
        return LakeSource(what, version, lambda wanted: pa.RecordBatchReader.from_stream(version.scan(columns=wanted)))


def iceberg(table: str, described: str) -> LakeSource:
    """An Iceberg table as one file of its metadata has it; that file never changes."""
    what = f'the table "{table}"'
    pyiceberg = _package("pyiceberg.table", what)
    with _reading(what):
        version = _opened(pyiceberg, described)
        return LakeSource(what, version, lambda wanted: _by_file(version, wanted))


def _by_file(version: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    """Asked for all files, the reader would hold as many as it can."""
    from pyiceberg.io.pyarrow import ArrowScan

    scan = version.scan(selected_fields=tuple(wanted))
    arrow = ArrowScan(version.metadata, version.io, scan.projection(), scan.row_filter)
    for task in scan.plan_files():
        yield from arrow.to_record_batches([task])


def _opened(pyiceberg: Any, described: str) -> Any:
    """A table without a catalogue. Settings are ours: what a table says of them could name any server and program."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.serializers import FromInputFile

    given = s3_settings()
    known = {"endpoint_override": "s3.endpoint", "region": "s3.region"}
    files = PyArrowFileIO(
        {
            "s3.connect-timeout": "10",
            "s3.request-timeout": str(PATIENCE),
            **{known[name]: value for name, value in given.items()},
        }
    )
    where = described if in_store(described) else os.path.abspath(described)
    metadata = FromInputFile.table_metadata(files.new_input(where))
    return pyiceberg.StaticTable(("table",), metadata, where, files, NoopCatalog("none"))


def _delta_settings(table: str) -> dict[str, str]:
    """What the reader does not find in the environment as pyarrow does."""
    if not in_store(table):
        return {}
    patience = {"connect_timeout": "10s", "timeout": f"{PATIENCE:.0f}s", "max_retries": "2", "retry_timeout": "20s"}
    given = s3_settings() if table.startswith("s3://") else {}
    known = {"endpoint_override": "AWS_ENDPOINT_URL", "region": "AWS_REGION"}
    plain = given.get("endpoint_override", "").startswith("http://")
    return {
        **patience,
        **{known[name]: value for name, value in given.items()},
        **({"AWS_ALLOW_HTTP": "true"} if plain else {}),
    }


def _as_many(found: Iterable[pa.RecordBatch], wanted: list[str], what: str) -> Iterator[pa.RecordBatch]:
    """The same rows, looked at, as many at a time as are worth encoding."""
    held: list[pa.RecordBatch] = []
    for batch in found:
        held.append(validated(batch.select(wanted), what))
        if sum(each.num_rows for each in held) >= BATCH_ROWS:
            yield from _one(held)
            held = []
    if held:
        yield from _one(held)


def _one(held: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    together: list[pa.RecordBatch] = pa.Table.from_batches(held).combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
    return together


def _package(name: str, what: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise TableError(
            "missing-package",
            f"{what} is of a kind that needs further packages. Hint: pip install 'hedgerow[lakes]'.",
        ) from None


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Turns what a reader raises into a sentence of ours."""
    try:
        yield
    except (HedgerowError, MemoryError):
        raise
    except Exception as error:
        reason = why(error) or "a file is not there or damaged, or it uses something that its reader does not know"
        raise TableError("unreadable-table", f"{what} cannot be read: {reason}.") from None
