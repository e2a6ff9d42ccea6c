"""What is published: a release, the tables drawn from it, and what its publisher and its ledger say.

All documents of a folder are functions of this, of nothing else, and the same each time: that is how they are checked.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hedgerow.publish.counts import of
from hedgerow.publish.publisher import Publisher
from hedgerow.release.certificate import versions
from hedgerow.schema.spreadsheets import guarded, guarded_name

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release
    from hedgerow.schema import Schema
    from hedgerow.schema.encoding import Encoding

FORMAT = "hedgerow publication 1"
_KINDS = {"bool": "boolean", "int64": "integer", "double": "number", "date32[day]": "date", "string": "string"}


@dataclass(frozen=True)
class File:
    """A file of the folder: what catalogues say of it."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Table:
    """Rows that were drawn from the release: so many, with that seed."""

    name: str
    rows: int
    seed: int

    @property
    def csv(self) -> str:
        return f"{self.name}.csv"

    @property
    def parquet(self) -> str:
        return f"{self.name}.parquet"


@dataclass(frozen=True)
class Column:
    """A column as it stands in the files: its name in a CSV file, its type, and what can be in it."""

    name: str
    written: str
    kind: str
    """string, integer, number, boolean, date or datetime."""
    about: str
    values: tuple[str, ...]
    """All that can stand there, as a CSV file holds it; empty where it is not a list."""
    least: Any
    most: Any
    missing: Mapping[str, str]
    """Marks that stand for a missing value, and what they say."""
    origin: str
    """declared, discovered, or invented."""


@dataclass(frozen=True)
class Publication:
    """A release with all that is said about it."""

    release: Release
    release_file: str
    tables: tuple[Table, ...]
    publisher: Publisher
    ledger: Mapping[str, Any] | None
    """What the ledger says, where it was given (`hedgerow.private.ledger.Ledger.statement`)."""
    made_with: Mapping[str, str]
    counts: tuple[tuple[str, ...], ...] = ()
    """The columns of each table of counts."""

    @property
    def slug(self) -> str:
        """The title in letters that an address can hold."""
        said = f"{self.publisher['title']} {self.publisher['publisher']} {self.publisher['publication_date'][:4]}"
        return re.sub("[^a-z0-9]+", "-", said.lower()).strip("-")

    def columns(self, table: Table) -> tuple[Column, ...]:
        """The columns of one of the tables."""
        return self._columns[table.name]

    @cached_property
    def _columns(self) -> dict[str, tuple[Column, ...]]:
        return {table.name: tuple(_columns(self.release.encoding, self.release.schema)) for table in self.tables}

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "release": self.release_file,
            "tables": [asdict(table) for table in self.tables],
            "publisher": self.publisher.to_json(),
            "ledger": self.ledger and dict(self.ledger),
            "made_with": dict(self.made_with),
            "counts": [list(columns) for columns in self.counts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], release: Release, name: str) -> Publication:
        """As `to_json` wrote it; KeyError, TypeError or an error of ours where it did not."""
        return cls(
            release,
            str(data["release"]),
            tuple(Table(str(each["name"]), int(each["rows"]), int(each["seed"])) for each in data["tables"]),
            Publisher.of(data["publisher"], name),
            data["ledger"],
            {str(name): str(version) for name, version in data["made_with"].items()},
            of(data["counts"], name) if data["counts"] else (),
        )


def made_with() -> dict[str, str]:
    """Versions and platform: what rows that are drawn again may depend on."""
    return {**versions(), "platform": f"{platform.system()} {platform.machine()}".strip()}


def _columns(encoding: Encoding, schema: Schema) -> Iterator[Column]:
    declared = schema.to_dict()["columns"]
    for field in encoding.arrow_schema:
        name = field.name
        said = declared[name]
        kind = _KINDS.get(str(field.type), "datetime")
        if name in encoding.invented:
            about = f"Never read and invented: {encoding.invented[name].fate}."
            yield Column(name, guarded_name(name), "string", about, (), None, None, {}, "invented")
            continue
        column = encoding.declared[name]
        marks = column.missing if isinstance(column.missing, dict) else dict.fromkeys(column.marks, "missing")
        bought = bool(said.get("discovered"))
        bounded = kind in ("integer", "number", "date", "datetime") and not said.get("special")
        most = said["size"] - 1 if said["type"] == "code" else said.get("max")
        yield Column(
            name,
            guarded_name(name),
            kind,
            _about(said, column.fate, bought),
            _values(said, column.other, marks) if kind == "string" else (),
            (0 if said["type"] == "code" else said.get("min")) if bounded else None,
            most if bounded else None,
            marks,
            "discovered" if bought else "declared",
        )


def _values(said: Mapping[str, Any], other: bool, marks: Mapping[str, str]) -> tuple[str, ...]:
    """Everything that a text column can hold, as a CSV file spells it."""
    import pyarrow as pa

    listed = said.get("values")
    if not isinstance(listed, list):
        return ()
    held = [*listed, *(mark for mark in marks if mark), *(["other"] if other and "other" not in listed else [])]
    return tuple(guarded(pa.table({"value": pa.array(held, pa.string())})).column(0).to_pylist())


def _about(said: Mapping[str, Any], fate: str, bought: bool) -> str:
    """The declaration in words."""
    kind = said["type"]
    if "values" in said:
        words = f"One of {len(said['values'])} values{', in their order' if said.get('ordered') else ''}"
    elif kind == "code":
        words = f"A code from 0 to {said['size'] - 1}"
    elif "min" in said:
        words = f"{kind.capitalize()} from {said['min']} to {said['max']}"
    else:
        words = kind.capitalize()
    if said.get("special"):
        words += f"; also {', '.join(map(str, said['special']))}"
    if said.get("format"):
        words += f"; written as {said['format']}"
    if bought:
        words += "; its cells were learnt from the private rows, under the guarantee"
    return f"{words}. Values beyond the declaration are {fate}."
