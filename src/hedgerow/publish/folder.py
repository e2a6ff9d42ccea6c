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
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import HedgerowError, OptionError, ReleaseError, counted, listing
from hedgerow.publish.documents import PUBLICATION, computed, computed_names, documents
from hedgerow.publish.publication import FORMAT, File, Publication, Table, made_with
from hedgerow.release.bundle import Release, Trust
from hedgerow.release.bundle import verify as verify_release
from hedgerow.release.files import whole_file, whole_folder, write_table
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
    """Write a folder that does not exist yet. `given` is a table that the rows drawn here must be the same as.

    Returns the names of its files.
    """
    with whole_folder(folder) as partial:
        for table in publication.tables:
            _draw(partial, publication, table, given)
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


def _draw(folder: Path, publication: Publication, table: Table, given: Path | None) -> None:
    """Both files of a table, from one and the same draw."""
    release = publication.release
    for name in (table.csv, table.parquet):
        drawn = release.batches(table.rows, table.seed)
        write_table(folder / name, release.encoding.arrow_schema, drawn, None)
    if given is None:
        return
    if given.suffix == ".csv":
        same = _digest(given) == _digest(folder / table.csv)
    else:
        same = _same_rows(given, release.batches(table.rows, table.seed))
    if not same:
        raise OptionError(
            "not-a-draw",
            f'"{given}" is not what the release draws here with {table.rows:,} rows and seed {table.seed}, so it was '
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
        confirmed += [_check_table(folder, publication, table) for table in publication.tables]
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
        lines = [_SUM.fullmatch(line) for line in sums.decode("ascii").splitlines()]
        listed = {line[2]: line[1] for line in lines if line}
        if len(listed) != len(lines) or not lines:
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
        public = from_pem((folder / PUBLIC_KEY).read_bytes())
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


def _check_table(folder: Path, publication: Publication, table: Table) -> str:
    release = publication.release
    possible = 0 <= table.rows <= (folder / table.csv).stat().st_size  # a row is a byte at least: no work for nothing
    spelled = possible and _spelled(release, table) == _digest(folder / table.csv)
    if not spelled or not _same_rows(folder / table.parquet, release.batches(table.rows, table.seed)):
        versions = ", ".join(f"{name} {version}" for name, version in publication.made_with.items())
        raise ReleaseError(
            "rows-not-confirmed",
            f'the rows in "{table.csv}" or "{table.parquet}" are not those that the release draws here with seed '
            f"{table.seed}: rows come out the same {SAME} ({versions}). On those, the table was exchanged or changed; "
            "elsewhere it cannot be told.",
        )
    files = f"{table.csv} and {table.parquet}"
    return f"{table.rows:,} rows of {files} were drawn again with seed {table.seed}: the same (to be expected {SAME})"


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


def _spelled(release: Release, table: Table) -> str:
    """The SHA-256 of the CSV file of a table, which is not written."""
    import pyarrow.csv

    sink = _Hashing()
    with pyarrow.csv.CSVWriter(sink, guarded(release.encoding.arrow_schema.empty_table()).schema) as writer:
        for batch in release.batches(table.rows, table.seed):
            writer.write_table(guarded(batch))
    return sink.digest.hexdigest()


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


def _same_rows(path: Path, drawn: Iterator[pa.Table]) -> bool:
    """Whether a Parquet or Arrow file holds the rows that are drawn, some at a time."""
    import pyarrow as pa

    with suppress(pa.ArrowException, OSError):
        held = _batches(path)
        rest = next(held, None)
        for part in drawn:
            while len(part):
                if rest is None or rest.schema.names != part.schema.names:
                    return False
                size = min(len(part), len(rest))
                ours = part.slice(0, size).replace_schema_metadata(None)
                theirs = pa.Table.from_batches([rest.slice(0, size)]).cast(ours.schema)  # Parquet has no seconds
                if not ours.equals(theirs):
                    return False
                part = part.slice(size)
                rest = rest.slice(size) if size < len(rest) else next(held, None)
        return rest is None
    return False


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet

    if path.suffix == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from (batch for batch in file.iter_batches() if len(batch))
    else:
        with pa.ipc.open_file(path) as file:
            yield from (batch for batch in map(file.get_batch, range(file.num_record_batches)) if len(batch))


def rows_of(path: Path, release: Release) -> int:
    """How many rows a table holds that Hedgerow wrote."""
    import pyarrow as pa
    import pyarrow.csv

    try:
        if path.suffix != ".csv":
            return sum(len(batch) for batch in _batches(path))
        names = guarded(release.encoding.arrow_schema.empty_table()).column_names
        parsed = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        as_text = pyarrow.csv.ConvertOptions(column_types={name: pa.string() for name in names})
        with pyarrow.csv.open_csv(path, parse_options=parsed, convert_options=as_text) as lines:
            return sum(len(batch) for batch in lines)
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
    return "".join(f"{_digest(folder / name)}  {name}\n" for name in names).encode()


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
