"""What is published: a release, the tables drawn from it, and what its publisher and its ledger say.

All documents of a folder are functions of this, of nothing else, and the same each time: that is how they are checked.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from hedgerow.errors import ReleaseError
from hedgerow.publish.counts import of
from hedgerow.publish.publisher import Publisher
from hedgerow.release.certificate import versions
from hedgerow.release.linked import LinkedRelease
from hedgerow.schema.spreadsheets import guarded, guarded_name

if TYPE_CHECKING:
    import pyarrow as pa

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
    persons: int | None = None
    """Whose rows they are, where persons are kept."""

    @property
    def drawn(self) -> int:
        """What the release is asked for."""
        return self.rows if self.persons is None else self.persons

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Table:
        persons = int(data["persons"]) if "persons" in data else None
        return cls(str(data["name"]), int(data["rows"]), int(data["seed"]), persons)

    @property
    def csv(self) -> str:
        return f"{self.name}.csv"

    @property
    def parquet(self) -> str:
        return f"{self.name}.parquet"


@dataclass(frozen=True)
class Place:
    """Where a table stands among linked ones."""

    declared: str
    """What the schema calls it."""
    key: str | None
    """The column that names its rows, if one does."""
    link: str | None
    """The column that names a row of the table above it; the root has none."""
    above: Table | None
    most: int
    """Rows of it that hang on one row of the table above it, at most."""


@dataclass(frozen=True)
class Reference:
    """A column of a table that names rows of another one, and the key that it holds."""

    column: str
    table: Table
    key: str


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
    """declared, discovered, invented, or made anew."""


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
        """The columns of one of the tables, as they stand in its files."""
        return self._columns[table.name]

    def place(self, table: Table) -> Place | None:
        """Where one of the tables stands among those that are linked; None where there is one alone."""
        return self._places.get(table.name)

    def reference(self, table: Table) -> Reference | None:
        """Where the rows of one of the tables link to."""
        place = self.place(table)
        if place is None or place.above is None:
            return None
        there = self._places[place.above.name]
        assert place.link is not None
        assert there.key is not None
        return Reference(place.link, place.above, there.key)

    def drawn(self) -> Iterator[dict[Table, pa.Table]]:
        """The rows of all tables, some at a time."""
        first = self.tables[0]
        if isinstance(self.release, LinkedRelease) and self._places:
            for part in self.release.families(first.drawn, first.seed):
                yield {table: part[self._places[table.name].declared] for table in self.tables}
        else:
            yield from ({first: part} for part in self.release.batches(first.drawn, first.seed))

    def arrow_schema(self, table: Table) -> pa.Schema:
        """The columns of a table's files and their types."""
        place = self.place(table)
        if place is not None and isinstance(self.release, LinkedRelease):
            return self.release.arrow_schemas[place.declared]
        return self.release.arrow_schema

    @cached_property
    def _places(self) -> dict[str, Place]:
        links = self.release.schema.linked
        if links is None or links.kept:
            return {}
        tables = dict(zip(links.names, self.tables, strict=True))
        return {
            table.name: Place(name, link.key, link.link, tables.get(link.parent or ""), link.max_per_parent)
            for name, table in tables.items()
            for link in [links.links[name]]
        }

    @cached_property
    def _columns(self) -> dict[str, tuple[Column, ...]]:
        found = {}
        for table in self.tables:
            place = self.place(table)
            schema = self.release.schema.alone if place is None else self.release.schema.table(place.declared)
            ids = self._person if place is None else tuple(_ids(place))
            found[table.name] = (*ids, *_columns(schema.encoding(), schema))
        return found

    @property
    def _person(self) -> tuple[Column, ...]:
        """The column that names a person, where persons are kept."""
        links = self.release.schema.linked
        if links is None:
            return ()
        return (
            _number(str(links.links[links.root].key), "A number for each person, made anew: it tells whose a row is."),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "release": self.release_file,
            "tables": [table.to_json() for table in self.tables],
            "publisher": self.publisher.to_json(),
            "ledger": self.ledger and dict(self.ledger),
            "made_with": dict(self.made_with),
            "counts": [list(columns) for columns in self.counts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], release: Release, name: str) -> Publication:
        """As `to_json` wrote it; KeyError, TypeError or an error of ours where it did not."""
        tables = tuple(map(Table.from_json, data["tables"]))
        wanted = max(1, len(release.schema.several))
        kept = release.schema.keep is not None
        if (
            len({table.name for table in tables}) != wanted
            or len(tables) != wanted
            or ([table.persons is not None for table in tables] != [kept] * wanted)
        ):
            raise ReleaseError("publication-tables", "the publication has other tables than the schema of its release.")
        return cls(
            release,
            str(data["release"]),
            tables,
            Publisher.of(data["publisher"], name),
            data["ledger"],
            {str(name): str(version) for name, version in data["made_with"].items()},
            of(data["counts"], name) if data["counts"] else (),
        )


def made_with() -> dict[str, str]:
    """Versions and platform: what rows that are drawn again may depend on."""
    return {**versions(), "platform": f"{platform.system()} {platform.machine()}".strip()}


def tables_of(release: Release, stem: str, rows: int, seed: int) -> tuple[Table, ...]:
    """The tables that a release draws, before anybody counted how many rows hang on those of the root.

    Files of linked tables are called as the schema calls the tables, in letters that every file system has.
    """
    links = release.schema.linked
    if links is None or links.kept:
        return (Table(stem, rows, seed, None if links is None else rows),)
    taken: dict[str, Table] = {}
    for name in links.names:
        plain = re.sub("[^A-Za-z0-9_-]+", "-", name).strip("-") or "table"
        free = next(each for each in _numbered(plain) if each.lower() not in taken)
        taken[free.lower()] = Table(free, rows if name == links.root else 0, seed)
    return tuple(taken.values())


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _ids(place: Place) -> Iterator[Column]:
    """The columns of linked tables that say which row is meant."""
    said = {place.key: "Key: a number for each row, made anew; it tells rows apart and says nothing else."}
    if place.above is not None:
        said[place.link] = f"Link: the number of the row of {place.above.name} that this row belongs to."
    for name, about in said.items():
        if name is not None:
            yield _number(name, about)


def _number(name: str, about: str) -> Column:
    """A column of numbers that nothing was learnt for."""
    return Column(name, guarded_name(name), "integer", about, (), None, None, {}, "made anew")


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
