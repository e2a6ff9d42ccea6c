"""Ways into a table: files, frames, Arrow streams, databases. Names come from metadata, rows come in batches.

No type is ever inferred from rows: the columns of a text file are text, other formats bring their types with them. How
a file is written (delimiter, encoding, decimal sign) follows from its name and from what is declared, never from rows.
What the readers below us say about bad input may quote rows, so their words are never passed on; ours name the file at
most.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from urllib.parse import unquote

import pyarrow as pa

from hedgerow.errors import TableError
from hedgerow.private.engines.elsewhere import engine_elsewhere, open_elsewhere, rows_elsewhere
from hedgerow.private.engines.sql.location import is_url, open_database
from hedgerow.private.identity import spelled_objects
from hedgerow.private.sources.stores import Stored, in_store, why
from hedgerow.private.sources.validation import validated
from hedgerow.schema.draft.labels import LABELLED
from hedgerow.schema.file import Cleaning, File, Written
from hedgerow.schema.header import refuse_lacking, refuse_twice
from hedgerow.schema.spreadsheets import unguarded, unguarded_name

if TYPE_CHECKING:
    from hedgerow.schema.conditions.language import Expression
    from hedgerow.schema.conditions.lines import Solved

BATCH_ROWS = 1 << 16
_CSV_BLOCK = 1 << 22
_LONGEST_HEADER = 1 << 20
_ARROW_FILE = b"ARROW1"
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
"""Text files by their ending, and what separates their fields unless something else is declared."""
_PACKED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_PARQUET = (".parquet", ".pq")
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_LIKELY = {";": "semicolon", "\t": "tab", "|": "pipe", ",": "comma"}
_SUFFIXES = (
    "a .csv, .tsv or .txt file (also packed: .gz, .zst), a .parquet, .arrow or .feather file, a folder of .parquet "
    f"files, a workbook (.xlsx), or a file of SPSS, Stata or SAS ({', '.join(LABELLED)})"
)
_KINDS = (
    f"the path of {_SUFFIXES}, the URL of a table in a database, a pandas or polars frame, or anything with the Arrow "
    "C stream interface"
)
PLAIN = Written()
"""Comma-separated UTF-8, and values as they stand."""


class Source(Protocol):
    """A table that can be read column by column, batch by batch."""

    def header(self) -> tuple[str, ...]:
        """Column names, from the header or metadata alone; no row is read."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of the named columns, at most BATCH_ROWS at a time. Files and frames can be read again."""
        ...


@runtime_checkable
class NamingSource(Source, Protocol):
    """A table whose columns, as they are read, do not tell every two values apart."""

    def by_person(self, person: str) -> Source:
        """The same table, but in the column `person` different ids stay different and equal ones equal."""
        ...


def by_person(source: Source, person: str | None) -> Source:
    """The table as it must be read where rows are bounded: ids as `hedgerow.private.identity` tells them apart."""
    return source.by_person(person) if person is not None and isinstance(source, NamingSource) else source


def open_source(table: Any, written: Written = PLAIN, *, memory: int = 4 << 30) -> Source:
    """The way into `table`: a path, a URL, a pandas or polars frame, or anything with the Arrow C stream interface.

    `written` is how it is written, as declared. `memory` is what the run may take, and bounds what a workbook or a file
    of a statistical package may take while it is read.
    """
    if in_database(table):
        refuse_strip(written)
    source = _open(table, written.file, memory)
    if written.columns and not in_database(table):
        source = CleanedSource(source, written.columns)
    return SolvedSource(source, written.derived) if written.derived else source


def in_database(table: object) -> bool:
    return is_url(table) and not in_store(table)


def refuse_strip(written: Written) -> None:
    """A database gives its values as they are."""
    stripped = [name for name, cleaning in written.columns.items() if cleaning.strip]
    if stripped:
        raise TableError(
            "strip-in-database",
            f'`strip`, for the column "{stripped[0]}", is for files; a database gives values as they are. Hint: name a '
            "view in which the column is a number.",
        )


def _open(table: Any, file: File, memory: int) -> Source:
    if isinstance(table, str | os.PathLike):
        return _open_path(os.fspath(table), file, memory)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return FrameSource(table)
    if hasattr(table, "__arrow_c_array__"):
        table = pa.Table.from_batches([pa.record_batch(table)])
    if hasattr(table, "__arrow_c_stream__"):
        return StreamSource(table)
    raise TableError("unknown-table-kind", f"a table cannot be read from a {type(table).__name__}; give {_KINDS}.")


def header_of(table: Any, written: Written = PLAIN) -> tuple[str, ...]:
    """The column names of a table, from its header or metadata alone; also where no row may leave."""
    if engine_elsewhere(table) is not None:
        return open_elsewhere(table).header()
    return open_source(table, written).header()


def open_synthetic(table: Any) -> Source:
    """The way into a table that we, or somebody else, made: plain, and text is what it was before we wrote it."""
    source = open_source(table)
    return UnguardedSource(source) if isinstance(source, TextSource) else source


def described(table: Any) -> str:
    """What a message calls a table: by its path if it has one; a URL is not quoted back."""
    named = isinstance(table, str | os.PathLike) and not in_database(table)
    return f'the table "{os.fspath(table)}"' if named else "the table"


def dataset_name(table: str) -> str:
    """people, of people.csv, of people.csv.gz and of people/metadata/v3.metadata.json."""
    from hedgerow.private.sources.lakes import folder_of

    name = Path(folder_of(table)).stem
    return Path(name).stem if Path(name).suffix.lower() in DELIMITERS else name


def parquet_files(folder: Path) -> list[Path]:
    """The files of a table that is a folder, in the order of their names."""
    return sorted(file for file in folder.rglob("*.parquet") if not _hidden(file.relative_to(folder)))


def _open_path(given: str, file: File, memory: int) -> Source:
    if in_store(given):
        return _open_stored(given, file)
    if is_url(given):
        return open_database(given) if engine_elsewhere(given) is None else rows_elsewhere(given)
    path = Path(given)
    if not path.exists():
        raise TableError("no-such-table", f'the table "{path}" does not exist.')
    lake = _lake(given, path)
    if lake is not None:
        return lake
    if path.is_dir():
        files = parquet_files(path)
        if not files:
            raise TableError("no-parquet", f'the folder "{path}" holds no .parquet file.')
        return ParquetSource(path, files)
    if path.stat().st_size == 0:
        raise TableError("empty-file", f'the table "{path}" is an empty file.')
    name, packed = _unpacked(path.name)
    ending = Path(name).suffix
    if ending in DELIMITERS:
        return TextSource(path, file, DELIMITERS[ending], packed)
    if packed is None and ending in _PARQUET:
        return ParquetSource(path, [path])
    if packed is None and ending in (".arrow", ".feather", ".ipc"):
        return IpcSource(path)
    if packed is None and ending in (*_WORKBOOKS, *LABELLED):
        from hedgerow.private.sources.apart import ApartSource

        return ApartSource(path, file, memory)
    raise TableError(
        "unknown-table-kind",
        f'the kind of table "{path}" cannot be told from its name; give {_SUFFIXES}.',
    )


def _lake(given: str, place: Path | Stored) -> Source | None:
    from hedgerow.private.sources.lakes import lake_at

    return lake_at(given, place)


def _open_stored(given: str, file: File) -> Source:
    """A file, or a folder of Parquet files, that is reached over the network."""
    stored = Stored(given)
    if not stored.exists:
        raise TableError("no-such-table", f"{stored.what} does not exist.")
    lake = _lake(given, stored)
    if lake is not None:
        return lake
    if stored.is_folder:
        listed = [path for path in stored.paths() if path.endswith(".parquet") and not _hidden(Path(path))]
        found = [stored.file(path) for path in listed]
        if not found:
            raise TableError("no-parquet", f"{stored.what} is a folder that holds no .parquet file.")
        return ParquetSource(given, found)
    if stored.is_empty:
        raise TableError("empty-file", f"{stored.what} is an empty file.")
    name, packed = _unpacked(stored.name)
    ending = Path(name).suffix
    if ending in DELIMITERS:
        return TextSource(stored, file, DELIMITERS[ending], packed)
    if packed is None and ending in _PARQUET:
        return ParquetSource(given, [stored])
    raise TableError(
        "unknown-table-kind",
        f"the kind of {stored.what} cannot be told from its name; behind a URL there are .csv, .tsv and .txt "
        "files (also packed: .gz, .zst), .parquet files and folders of those. Hint: download it first.",
    )


def _unpacked(name: str) -> tuple[str, str | None]:
    """The name of a file without what says how it is packed, and how it is."""
    name = name.lower()
    for ending, how in _PACKED.items():
        if name.endswith(ending):
            return name.removesuffix(ending), how
    return name, None


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


class TextSource:
    """A text file with a header line, its fields separated by one sign; every column is text, an empty field too.

    Read in blocks, unpacked on the way: a packed file of any size takes no more memory than another.
    """

    def __init__(self, path: Path | Stored, file: File, delimiter: str, packed: str | None):
        self._path = path
        self._what = f'the table "{path}"'
        self._packed = packed
        self._delimiter = file.delimiter or delimiter
        self._encoding = file.encoding or "utf-8"
        self._skip = file.skip
        names = self._read_header()
        if file.delimiter is None:
            self._refuse_unsplit(names)
        self._header = unique_names(names, self._what)

    def header(self) -> tuple[str, ...]:
        return self._header

    def _opened(self) -> Any:
        if isinstance(self._path, Stored):
            return self._path.stream(self._packed)
        return pa.input_stream(str(self._path), compression=self._packed)

    def _read_header(self) -> list[str]:
        """The first record that is not blank, below what is left out; of what follows, only whether it is there."""
        decoder = codecs.getincrementaldecoder(self._encoding)("replace")
        text, begin, end, first = "", 0, None, b""
        with _reading(self._what), self._opened() as file:
            while end is None and len(text) < _LONGEST_HEADER and (piece := file.read(1 << 16)):
                first = first or piece[:4]
                text += decoder.decode(piece)
                begin = _below(text, self._skip)
                end = _end_of_record(text, begin)
            rest = text[end:] if end is not None else ""
            self._quotes_above = text.count('"', 0, begin)
            named = text[begin:end].lstrip("\ufeff\r\n")
            records = csv.reader(io.StringIO(named, newline=""), delimiter=self._delimiter)
            names = next(records, [])
            self._header_alone = not rest and not file.read(1) and next(records, None) is None
        if not names:
            raise TableError("no-header", f"{self._what} has no header line.")
        if any("\0" in name or "\ufffd" in name for name in names):
            hint = "utf-16" if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "windows-1252"
            raise TableError(
                "wrong-encoding",
                f'the header of "{self._path}" is not {self._encoding.upper()} text. Hint: if it is {hint}, add --file '
                f"encoding={hint}, or file: {{encoding: {hint}}} to the schema.",
            )
        return names

    def _refuse_unsplit(self, names: Sequence[str]) -> None:
        """One column, whose name holds what may well separate several: it was not read rightly."""
        found = {sign: names[0].count(sign) for sign in _LIKELY if sign in names[0]} if len(names) == 1 else {}
        if found:
            sign = max(found, key=lambda each: found[each])
            shown, named = f'"{sign}"' if sign.isprintable() else "a tab", _LIKELY[sign]
            raise TableError(
                "wrong-delimiter",
                f"{self._what} has one column where {_LIKELY[self._delimiter]}s separate columns; its delimiter is "
                f"probably {shown}. Hint: add --file delimiter={named}, or file: {{delimiter: {named}}} to the schema; "
                f"--file delimiter={_LIKELY[self._delimiter]} if it is one column.",
            )

    def _refuse_damage(self) -> None:
        """A quote that is never closed would swallow the rest of the table into one field; letters must be letters."""
        quotes = self._quotes_above
        decoder = codecs.getincrementaldecoder(self._encoding)()
        with _reading(self._what), self._opened() as file:
            while piece := file.read(1 << 22):
                quotes += _decoded(decoder, piece, self._what, self._encoding).count('"')
            _decoded(decoder, b"", self._what, self._encoding)
        if quotes % 2:
            raise TableError("open-quote", f"{self._what} has a quote that is never closed.")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import csv as arrow_csv

        wanted = wanted_columns(columns, self._header, self._what)
        if self._header_alone:  # which Arrow takes for damage where no line end follows
            return
        self._refuse_damage()
        named = f"{_LIKELY[self._delimiter]}-separated" if self._delimiter in _LIKELY else "separated"
        with _reading(self._what, f"it must be {self._encoding.upper()} text with {named} fields"):
            try:
                reader = arrow_csv.open_csv(
                    self._opened(),
                    read_options=arrow_csv.ReadOptions(
                        use_threads=False, block_size=_CSV_BLOCK, encoding=self._encoding, skip_rows=self._skip
                    ),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=len(self._header) > 1
                    ),
                    convert_options=arrow_csv.ConvertOptions(
                        include_columns=wanted,
                        column_types=dict.fromkeys(wanted, pa.string()),
                        strings_can_be_null=False,
                    ),
                )
                yield from _sliced(reader)
            except pa.ArrowInvalid as problem:
                ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(problem))
                if ragged is None:
                    raise
                row, expected, got = map(int, ragged.groups())
                raise TableError(
                    "ragged-row",
                    f"row {row} of {self._what} has {got} fields where the header has {expected}. "
                    f"Hint: a field that holds a {_LIKELY.get(self._delimiter, 'delimiter')} must stand in quotes; "
                    "lines above the header are left out by --file skip=1, or file: {skip: 1} in the schema.",
                ) from None


def _below(text: str, lines: int) -> int:
    """Where the text goes on below so many lines."""
    begin = 0
    for _ in range(lines):
        begin = text.find("\n", begin) + 1 or len(text)
    return begin


def _end_of_record(text: str, first: int) -> int | None:
    """Where the first record that is not blank ends; None where it goes on. Quotes may hold line ends."""
    begin, quotes = first, 0
    while end := text.find("\n", begin) + 1:
        quotes += text.count('"', begin, end)
        if quotes % 2 == 0 and text[first:end].strip("\ufeff \t\r\n"):
            return end
        begin = end
    return None


class CleanedSource:
    """A table some of whose columns are written with signs, or with another decimal sign."""

    def __init__(self, source: Source, columns: Mapping[str, Cleaning]):
        self._source = source
        self._columns = columns

    def by_person(self, person: str) -> CleanedSource:
        return CleanedSource(by_person(self._source, person), self._columns)

    def header(self) -> tuple[str, ...]:
        return self._source.header()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._source.batches(columns):
            cleaned = [
                self._columns[name](array) if name in self._columns else array
                for name, array in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(cleaned, names=batch.schema.names)


class SolvedSource:
    """A table that lacks a column, and has the derived one that tells it: `seconds`, where there are two moments."""

    def __init__(self, source: Source, derived: Mapping[str, Expression]):
        self._source, self._derived = source, derived

    def by_person(self, person: str) -> SolvedSource:
        return SolvedSource(by_person(self._source, person), self._derived)

    @cached_property
    def _solved(self) -> dict[str, Solved]:
        from hedgerow.schema.conditions.lines import solved

        return {each.name: each for each in solved(self._derived, self._source.header())}

    def header(self) -> tuple[str, ...]:
        return (*self._source.header(), *self._solved)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = [name for name in columns if name not in self._solved]
        needed = [name for each in columns if each in self._solved for name in self._solved[each].needs]
        for batch in self._source.batches(list(dict.fromkeys([*own, *needed]))):
            arrays = [self._solved[name](batch) if name in self._solved else batch.column(name) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


class UnguardedSource:
    """A CSV file that we wrote: the apostrophes in front of what looks like a formula are taken off."""

    def __init__(self, source: TextSource):
        self._source = source
        self._written = {unguarded_name(name): name for name in source.header()}

    def header(self) -> tuple[str, ...]:
        return tuple(self._written)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._source.batches([self._written.get(name, name) for name in columns]):
            yield unguarded(batch.rename_columns(list(columns)))


class ParquetSource:
    """A Parquet file, or the Parquet files of a folder in the order of their names.

    What folders below it say of their rows (`year=2024/`) are columns of text, behind those of the files, where all
    files lie in folders that say the same kind of thing, and none says it itself.
    """

    def __init__(self, path: Path | str, files: Sequence[Path | Stored]):
        self._path = path
        self._what = f'the table "{path}"'
        self._files = files
        names = self._names(files[0])
        self._told = [_told_by_folders(str(file).removeprefix(str(path))) for file in files]
        if len({frozenset(told) for told in self._told}) > 1 or not self._told[0].keys().isdisjoint(names):
            self._told = [{}] * len(files)
        self._header = unique_names([*names, *self._told[0]], self._what)
        for file in files[1:]:
            if set(self._names(file)) != set(names):
                raise TableError(
                    "files-differ",
                    f'the files of {self._what} differ in their columns: "{files[0].name}", "{file.name}".',
                )

    def _names(self, file: Path | Stored) -> list[str]:
        with _open_parquet(file, self._called(file)) as parquet:
            return list(parquet.schema_arrow.names)

    def _called(self, file: Path | Stored) -> str:
        """A file of the table; folders on the way to it are named after what rows hold, so they are left out."""
        return self._what if str(file) == str(self._path) else f'the file "{file.name}" of {self._what}'

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self._what)
        files = zip(self._files, self._told, strict=True)
        return (batch for file, told in files for batch in self._of_file(file, wanted, told))

    def _of_file(
        self, file: Path | Stored, wanted: list[str], told: Mapping[str, str | None]
    ) -> Iterator[pa.RecordBatch]:
        own = [name for name in wanted if name not in told]
        with _open_parquet(file, self._called(file)) as parquet:
            for batch in parquet.iter_batches(BATCH_ROWS, columns=own, use_threads=False):
                checked = validated(batch.select(own), self._called(file))
                if told:
                    arrays = [
                        pa.repeat(pa.scalar(told[name], pa.string()), batch.num_rows)
                        if name in told
                        else checked.column(name)
                        for name in wanted
                    ]
                    checked = pa.RecordBatch.from_arrays(arrays, names=wanted)
                yield checked


def _told_by_folders(path: str) -> dict[str, str | None]:
    """What the names of folders say of the rows in them, as Hive and Spark write it."""
    pairs = [part.split("=", 1) for part in path.split("/")[:-1] if "=" in part]
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, value in pairs}


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@contextmanager
def _open_parquet(file: Path | Stored, what: str) -> Iterator[Any]:
    """A Parquet file that is read page by page, never a whole column at once."""
    from pyarrow import parquet

    far = isinstance(file, Stored)
    how = {"buffer_size": 1 << (22 if far else 20), "pre_buffer": False, "page_checksum_verification": True}
    with _reading(what), _bytes_of(file) as given, parquet.ParquetFile(given, **how) as opened:
        yield opened


def _bytes_of(file: Path | Stored) -> Any:
    """What a reader of Parquet reads from."""
    return file.opened() if isinstance(file, Stored) else nullcontext(file)


class IpcSource:
    """An Arrow file (Feather), or an Arrow stream in a file.

    Read, never mapped into memory: a mapped file that somebody shortens or rewrites meanwhile would end the process, or
    change under our hands after it was checked.
    """

    def __init__(self, path: Path):
        self._path = path
        self._what = f'the table "{path}"'
        with _reading(self._what), pa.OSFile(str(path)) as file:
            names = self._reader(file).schema.names
        self._header = unique_names(names, self._what)

    @staticmethod
    def _reader(file: Any, **options: Any) -> Any:
        """A file begins with its name, a stream does not: damage never makes one pass for the other."""
        begins = file.read(len(_ARROW_FILE))
        file.seek(0)
        return (pa.ipc.open_file if begins == _ARROW_FILE else pa.ipc.open_stream)(file, **options)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self._what)
        return _sliced(self._of_file(wanted))

    def _of_file(self, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        options = pa.ipc.IpcReadOptions(included_fields=sorted(self._header.index(name) for name in wanted))
        with _reading(self._what), pa.OSFile(str(self._path)) as file:
            reader = self._reader(file, options=options)
            batches = reader if isinstance(reader, pa.RecordBatchReader) else map(reader.get_batch, _indices(reader))
            for batch in batches:
                yield validated(batch.select(wanted), self._what)


def _indices(reader: Any) -> range:
    return range(reader.num_record_batches)


class FrameSource:
    """A pandas frame. Columns of Python objects are read as text, whatever the rows hold; persons by value."""

    def __init__(self, frame: Any, person: str | None = None):
        self._frame = frame
        self._person = person
        self._header = unique_names([str(label) for label in frame.columns], "the frame")

    def by_person(self, person: str) -> FrameSource:
        """Objects that name persons are told apart by value, not by how Python writes them."""
        return FrameSource(self._frame, person)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, "the frame")
        series = {name: self._frame.iloc[:, self._header.index(name)] for name in wanted}
        ids = None
        if self._person in series and series[self._person].dtype == object:
            objects = series[self._person]
            ids = spelled_objects(None if gone else one for one, gone in zip(objects, objects.isna(), strict=True))
        for begin in range(0, len(self._frame), BATCH_ROWS):
            with _reading("the frame", "it holds text that UTF-8 cannot write"):
                arrays = [
                    ids.slice(begin, BATCH_ROWS)
                    if ids is not None and name == self._person
                    else self._array(name, series[name].iloc[begin : begin + BATCH_ROWS])
                    for name in wanted
                ]
            yield validated(pa.RecordBatch.from_arrays(arrays, names=wanted), "the frame")

    @staticmethod
    def _array(name: str, values: Any) -> pa.Array:
        if values.dtype == object:
            missing = values.isna().to_numpy()
            spelled = [None if gone else str(value) for value, gone in zip(values, missing, strict=True)]
            return pa.array(spelled, pa.string())
        try:
            array = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            raise TableError(
                "column-type", f'the column "{name}" of the frame has a type that cannot be read.'
            ) from None
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


class StreamSource:
    """Anything with the Arrow C stream interface, a polars frame for one. A reader can be read once only."""

    def __init__(self, table: Any):
        self._table = table
        self._what = f"the {type(table).__name__}"
        with _reading(self._what):
            self._reader: Any = pa.RecordBatchReader.from_stream(table)
        self._header = unique_names(self._reader.schema.names, self._what)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self._what)
        with _reading(self._what):
            for batch in self._once():
                yield from _sliced([validated(batch.select(wanted), self._what)])

    def _once(self) -> Any:
        """The stream that was opened for the header, or a new one of a table that can give another."""
        reader, self._reader = self._reader, None
        if reader is not None:
            return reader
        if isinstance(self._table, pa.RecordBatchReader):
            raise TableError("read-once", "a RecordBatchReader can be read once only; make another, or give a table.")
        return pa.RecordBatchReader.from_stream(self._table)


def _decoded(decoder: codecs.IncrementalDecoder, piece: bytes, what: str, encoding: str) -> str:
    try:
        return decoder.decode(piece, final=not piece)
    except UnicodeError:
        raise TableError(
            "wrong-encoding",
            f"{what} is not {encoding.upper()} text. Hint: save it as UTF-8, or say how it is written, for example "
            "--file encoding=windows-1252.",
        ) from None


def _sliced(batches: Any) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for begin in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(begin, BATCH_ROWS)


def unique_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    refuse_twice(names, what)
    return tuple(names)


def wanted_columns(columns: Sequence[str], header: Sequence[str], what: str) -> list[str]:
    refuse_lacking(header, columns, columns, what)
    return list(columns)


@contextmanager
def _reading(what: str, expected: str = "it is damaged, incomplete, or of another kind") -> Iterator[None]:
    """Turns what a reader raises into a sentence of ours. Theirs may quote rows, so not a word of it is kept."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise TableError(
            "unreadable-table",
            f"{what} cannot be read: it asks for more memory than there is, so it is damaged or holds too many rows in "
            "one batch.",
        ) from None
    except MemoryError:
        raise
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error, csv.Error) as error:
        code = getattr(error, "errno", None)
        reason = why(error) or (os.strerror(code).lower() if code else expected)
        raise TableError("unreadable-table", f"{what} cannot be read: {reason}.") from None
