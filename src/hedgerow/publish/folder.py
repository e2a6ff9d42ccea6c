"""The folder of a publication: written whole or not at all, and checked by whoever has nothing but the folder."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError, ReleaseError, counted, listing
from hedgerow.publish.documents import PUBLICATION, computed, computed_names, documents
from hedgerow.publish.publication import FORMAT, File, Publication, Table, made_with
from hedgerow.release.bundle import Release, Trust
from hedgerow.release.bundle import verify as verify_release
from hedgerow.release.files import TABLE_SUFFIXES, table_writer, whole_file, whole_folder
from hedgerow.release.signing import as_pem, check_signature, from_pem, sign
from hedgerow.schema.spreadsheets import guarded

if TYPE_CHECKING:
    import pyarrow as pa

SUMS, SIGNATURE, PUBLIC_KEY = "SHA256SUMS", "SHA256SUMS.sig", "SHA256SUMS.pem"
TRANSLATIONS = "templates"
"""Where the templates of translations lie in the folder, so that what follows from them can be checked."""
SAME = "on the same platform and versions only"
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_SUM = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)?)")
_BLOCK = 1 << 20


def write(
    folder: Path,
    publication: Publication,
    release: Path,
    *,
    given: Path | None = None,
    key: Path | None = None,
    translations: Mapping[str, str] | None = None,
) -> list[str]:
    """Write a folder that does not exist yet. `given` is a table that the rows drawn here must be the same as; of
    linked tables a folder of them.

    Returns the names of its files.
    """
    with whole_folder(folder) as partial:
        publication = _draw(partial, publication)
        for table, path in _given(given, publication):
            _refuse_other(path, partial, table)
        shutil.copyfile(release, partial / publication.release_file)
        files = {name: _file(partial, name) for name in _data_names(publication)}
        templates = {f"{TRANSLATIONS}/{name}": text.encode() for name, text in (translations or {}).items()}
        said = documents(publication, files, translations or {})
        for name, data in {**computed(publication), **templates, **said}.items():
            (partial / name).parent.mkdir(exist_ok=True)
            (partial / name).write_bytes(data)
        sums = _sums(partial, _names(partial))
        (partial / SUMS).write_bytes(sums)
        if key is not None:
            signed = sign(sums, key)
            (partial / SIGNATURE).write_bytes(bytes.fromhex(signed["signature"]))
            (partial / PUBLIC_KEY).write_bytes(as_pem(signed["public_key"]))
        return _names(partial)


def pack(folder: Path, file: Path) -> None:
    """The folder as one zip, without times and owners."""
    with whole_file(file, replace=False) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in _names(folder):
            about = zipfile.ZipInfo(f"{folder.resolve().name}/{name}", _FIRST_DAY)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(about, (folder / name).read_bytes())


def refuse_packed(file: Path) -> None:
    """A folder that `pack` wrote is no release, and is told so."""
    with suppress(OSError, zipfile.BadZipFile, NotImplementedError), zipfile.ZipFile(file) as packed:
        if any(name.rpartition("/")[2] == SUMS for name in packed.namelist()):
            raise ReleaseError(
                "packed-publication", f'"{file}" is a published folder, packed. Hint: unpack it, and verify the folder.'
            )


def _draw(folder: Path, publication: Publication) -> Publication:
    """Both files of every table, from one and the same draw; the publication with the numbers of rows that came."""
    drawn = dict.fromkeys(publication.tables, 0)
    with ExitStack() as files:
        writers = [
            (table, files.enter_context(table_writer(folder / name, publication.arrow_schema(table))))
            for table in publication.tables
            for name in (table.csv, table.parquet)
        ]
        for part in publication.drawn():
            for table, write in writers:
                write(part[table])
            for table, rows in part.items():
                drawn[table] += len(rows)
    return replace(publication, tables=tuple(replace(table, rows=rows) for table, rows in drawn.items()))


def _given(given: Path | None, publication: Publication) -> Iterator[tuple[Table, Path]]:
    """The files that hold what somebody has drawn before, table by table."""
    if given is None:
        return
    for table in publication.tables:
        place = publication.place(table)
        yield table, given if place is None else table_in(given, place.declared)


def table_in(folder: Path, name: str) -> Path:
    """The file of one of the linked tables in a folder, or the folder of its parts."""
    for suffix in TABLE_SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    if any((folder / name).glob("*.parquet")):
        return folder / name
    raise OptionError(
        "no-such-table-file",
        f'"{folder}" holds no table of "{name}" ({", ".join(name + suffix for suffix in TABLE_SUFFIXES)}). Linked '
        "tables are given as the folder that synth or sample wrote. Nothing was written.",
    )


def _refuse_other(path: Path, folder: Path, table: Table) -> None:
    """Refuse a table that differs from what was drawn."""
    if path.suffix == ".csv":
        same = _digest(path) == _digest(folder / table.csv)
    else:
        held = _Rows(path)
        same = all(held.take(part) for part in _batches(folder / table.parquet)) and held.ended
    if not same:
        raise OptionError(
            "not-a-draw",
            f'"{path}" is not what the release draws here with {table.rows:,} rows and seed {table.seed}, so it was '
            "not published: it may be another table, changed, or drawn by other versions. Hint: hedgerow sample "
            "draws it anew without paying; --seed names another seed.",
        )


# ---------------------------------------------------------------- checking


def verify(folder: Path, trust: Trust) -> tuple[Release, list[str], str | None, ReleaseError | None]:
    """Check everything in a folder; what was confirmed, who signed it, and what could not be confirmed about the rows.

    Raises ReleaseError at the first thing that is wrong. Rows come last: that they come out the same is promised on the
    same platform and with the same versions only, so elsewhere another draw is a doubt, and returned as one.
    """
    confirmed, signer = _check_sums(folder)
    try:
        data = json.loads((folder / PUBLICATION).read_bytes())
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ReleaseError("publication-format", f'"{folder}" is no publication of the format "{FORMAT}".')
        release, checked = verify_release(folder / _name(data["release"]), **trust._asdict())
        publication = Publication.from_json(data, release, PUBLICATION)
        for table in publication.tables:
            _name(table.name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ReleaseError(
            "publication-unreadable", f'"{folder / PUBLICATION}" cannot be read ({type(problem).__name__}).'
        ) from None
    confirmed += checked
    if release.guarantee is None:
        return release, confirmed, signer, None
    confirmed.append(_check_documents(folder, publication))
    try:
        confirmed += _check_tables(folder, publication)
        confirmed.append(_check_computed(folder, publication))
    except ReleaseError as problem:
        if made_with() == publication.made_with:
            raise
        return release, confirmed, signer, problem
    return release, confirmed, signer, None


def _name(name: object) -> str:
    """A name inside the folder, and not a way out of it."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name):
        raise ReleaseError("publication-name", "the publication names a file outside of its folder.")
    return name


def _check_sums(folder: Path) -> tuple[list[str], str | None]:
    try:
        sums = (folder / SUMS).read_bytes()
        lines = [_SUM.fullmatch(line) for line in sums.decode("ascii").split("\n")]
        listed = {line[2]: line[1] for line in lines if line}
        if not listed or _written(listed) != sums:
            raise ReleaseError("sums-written", f'"{folder / SUMS}" is not written as checksums are.')
        held = set(_names(folder)) - {SUMS, SIGNATURE, PUBLIC_KEY}
        if held != listed.keys():
            strange = sorted(held ^ listed.keys())
            raise ReleaseError(
                "publication-files", f"the folder holds other files than {SUMS} lists: {listing(strange)}."
            )
        for name, digest in listed.items():
            if not stat.S_ISREG((folder / name).lstat().st_mode):
                raise ReleaseError("publication-files", f'"{name}" is not a plain file.')
            if _digest(folder / name) != digest:
                raise ReleaseError("publication-altered", f'"{name}" was changed after it was published.')
        confirmed = [f"{counted(len(listed), 'file')} match {SUMS}, and nothing lies beside them"]
        if not (folder / SIGNATURE).exists() and not (folder / PUBLIC_KEY).exists():
            return confirmed, None
        given = (folder / PUBLIC_KEY).read_bytes()
        public = from_pem(given)
        if as_pem(public) != given:
            raise ReleaseError("signature-written", f'"{folder / PUBLIC_KEY}" is not written as Hedgerow writes keys.')
        signature = (folder / SIGNATURE).read_bytes()
        signer = check_signature(sums, {"public_key": public, "signature": signature.hex()})
    except (OSError, UnicodeDecodeError):
        raise ReleaseError(
            "not-a-publication", f'"{folder}" is not a folder that hedgerow publish wrote, or cannot be read.'
        ) from None
    return [*confirmed, f"the folder is signed by the Ed25519 key {signer}"], signer


def _check_documents(folder: Path, publication: Publication) -> str:
    """With the version that wrote them, documents are written again and compared; another may word them differently."""
    here, there = made_with()["hedgerow"], publication.made_with.get("hedgerow")
    if here != there:
        return (
            f"documents: unchanged since hedgerow {there} wrote them; whether they say what the release says was "
            f"not checked, because this is hedgerow {here}"
        )
    translations = {
        path.name: path.read_text(encoding="utf-8") for path in sorted((folder / TRANSLATIONS).glob("*.md"))
    }
    files = {name: _file(folder, name) for name in _data_names(publication)}
    try:
        written = documents(publication, files, translations)
    except HedgerowError as problem:
        raise ReleaseError("publication-documents", f"the documents cannot be written again: {problem}") from None
    except Exception as problem:  # publication.json is a stranger's, and may break anything below
        raise ReleaseError(
            "publication-unreadable", f'"{folder / PUBLICATION}" cannot be read ({type(problem).__name__}).'
        ) from None
    known = {*written, *files, *computed_names(publication), *(f"{TRANSLATIONS}/{name}" for name in translations)}
    strange = set(_names(folder)) - known - {SUMS, SIGNATURE, PUBLIC_KEY}
    differing = [name for name, data in written.items() if not _holds(folder / name, data)]
    if differing or strange:
        raise ReleaseError(
            "publication-documents",
            "these do not follow from the release and the publisher's facts: "
            f"{listing([*differing, *sorted(strange)])}.",
        )
    return f"{counted(len(written), 'document')} say what the release, the publisher and the ledger say, to the letter"


def _check_tables(folder: Path, publication: Publication) -> list[str]:
    """Draw all tables again, beside the files that hold them."""
    for table, same in _drawn_again(folder, publication).items():
        if not same:
            versions = ", ".join(f"{name} {version}" for name, version in publication.made_with.items())
            raise ReleaseError(
                "rows-not-confirmed",
                f'the rows in "{table.csv}" or "{table.parquet}" are not those that the release draws here with seed '
                f"{table.seed}: rows come out the same {SAME} ({versions}). On those, the table was exchanged or "
                "changed; elsewhere it cannot be told.",
            )
    return [
        f"{table.rows:,} rows of {table.csv} and {table.parquet} were drawn again with seed {table.seed}: the same (to "
        f"be expected {SAME})"
        for table in publication.tables
    ]


def _drawn_again(folder: Path, publication: Publication) -> dict[Table, bool]:
    """Whether the files of each table hold what is drawn; of the first that does not it is known, of others maybe."""
    for table in publication.tables:
        size = (folder / table.csv).stat().st_size
        if not (0 <= table.rows <= size and 0 <= table.drawn <= size):  # a row is a byte at least: no work for nothing
            return {table: False}
    held = {table: _Files(folder, publication, table) for table in publication.tables}
    for part in publication.drawn():
        for table, rows in part.items():
            if not held[table].take(rows):
                return {table: False}
    return {table: files.ended for table, files in held.items()}


def _check_computed(folder: Path, publication: Publication) -> str:
    made = computed(publication)
    differing = [name for name, data in made.items() if not _holds(folder / name, data)]
    if differing:
        raise ReleaseError(
            "numbers-not-confirmed",
            f"{listing(differing)}: not what this version makes of the release here; such numbers come out the same "
            f"{SAME}.",
        )
    return f"{listing(made)}: what the release says, to the letter"


class _Files:
    """The two files of a table, held against rows that are drawn again, some at a time."""

    def __init__(self, folder: Path, publication: Publication, table: Table):
        import pyarrow.csv

        self._csv, self._rows, self._left = folder / table.csv, _Rows(folder / table.parquet), table.rows
        self._spelled = _Hashing()
        schema = guarded(publication.arrow_schema(table).empty_table()).schema
        self._writer = pyarrow.csv.CSVWriter(self._spelled, schema)

    def take(self, part: pa.Table) -> bool:
        """Whether these are the rows that come next."""
        self._writer.write_table(guarded(part))
        self._left -= len(part)
        return self._left >= 0 and self._rows.take(part)

    @property
    def ended(self) -> bool:
        """Whether there are no more of them, and all were spelled as in the CSV file."""
        self._writer.close()
        return self._left == 0 and self._rows.ended and self._spelled.digest.hexdigest() == _digest(self._csv)


class _Hashing(io.RawIOBase):
    """A file that keeps nothing but the hash of what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)


class _Rows:
    """The rows of a Parquet or Arrow file, held against others some at a time."""

    def __init__(self, path: Path):
        self._held = _batches(path)
        self._rest: pa.Table | None = None

    def take(self, part: pa.Table) -> bool:
        """Whether these are the rows that come next; a file that cannot be read holds none."""
        import pyarrow as pa

        with suppress(pa.ArrowException, OSError):
            while len(part):
                if not self._rest:
                    self._rest = next(self._held, None)
                if self._rest is None or self._rest.schema.names != part.schema.names:
                    return False
                size = min(len(part), len(self._rest))
                ours = part.slice(0, size).replace_schema_metadata(None)
                if not ours.equals(self._rest.slice(0, size).cast(ours.schema)):  # Parquet has no seconds
                    return False
                part, self._rest = part.slice(size), self._rest.slice(size)
            return True
        return False

    @property
    def ended(self) -> bool:
        return not self._rest and next(self._held, None) is None


def _batches(path: Path) -> Iterator[pa.Table]:
    """What a Parquet or Arrow file holds, or a folder of Parquet files, without empty parts."""
    import pyarrow as pa
    import pyarrow.parquet

    if path.is_dir():
        for file in sorted(path.glob("*.parquet")):
            yield from _batches(file)
    elif path.suffix == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from (pa.Table.from_batches([batch]) for batch in file.iter_batches() if len(batch))
    else:
        with pa.ipc.open_file(path) as file:
            held = map(file.get_batch, range(file.num_record_batches))
            yield from (pa.Table.from_batches([batch]) for batch in held if len(batch))


def as_many_rows(publication: Publication, given: Path) -> Publication:
    """A publication with as many rows as a table that was drawn before holds; of linked tables, as their root does, and
    where persons are kept, with as many persons.
    """
    first, path = next(_given(given, publication))
    schema = publication.arrow_schema(first)
    if first.persons is None:
        again = replace(first, rows=sum(len(part) for part in _parts_of(path, schema)))
    else:
        last = max((_last(part.column(0)) for part in _parts_of(path, schema) if len(part)), default=0)
        again = replace(first, persons=last)
    return replace(publication, tables=(again, *publication.tables[1:]))


def _last(numbers: Any) -> int:
    """The number of the last person."""
    try:
        return max(0, int(numbers[len(numbers) - 1].as_py()))
    except (TypeError, ValueError):
        return 0


def _parts_of(path: Path, schema: pa.Schema) -> Iterator[Any]:
    """A table of these columns that Hedgerow wrote, some rows at a time, as text where it is a CSV file."""
    import pyarrow as pa
    import pyarrow.csv

    try:
        if path.suffix != ".csv":
            yield from _batches(path)
            return
        names = guarded(schema.empty_table()).column_names
        parsed = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        as_text = pyarrow.csv.ConvertOptions(column_types={name: pa.string() for name in names})
        with pyarrow.csv.open_csv(path, parse_options=parsed, convert_options=as_text) as lines:
            yield from lines
    except (OSError, pa.ArrowException):
        raise OptionError("cannot-read", f'the table "{path}" cannot be read.') from None


# ---------------------------------------------------------------- files


def _data_names(publication: Publication) -> list[str]:
    names = [name for table in publication.tables for name in (table.csv, table.parquet)]
    return [*names, publication.release_file]


def _names(folder: Path) -> list[str]:
    """All files below a folder, by their way from it; links are listed, never followed."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
    )


def _sums(folder: Path, names: list[str]) -> bytes:
    return _written({name: _digest(folder / name) for name in names})


def _written(digests: Mapping[str, str]) -> bytes:
    return "".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()


def _file(folder: Path, name: str) -> File:
    return File(name, (folder / name).stat().st_size, _digest(folder / name))


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
