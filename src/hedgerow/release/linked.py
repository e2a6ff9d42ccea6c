"""Releases of linked tables: their rows are drawn unit by unit, parents first, then children one after the other."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.answers.linked import LinkedAsking
from hedgerow.coded.domain import CodedTable, Counts, IntArray
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import OptionError, ReleaseError
from hedgerow.models.families import Children, Coding, Rows
from hedgerow.models.linked import Chain, LinkedModel
from hedgerow.models.model import block_rng
from hedgerow.models.rows import CountedRows, Recounted
from hedgerow.models.stored import Allowance
from hedgerow.release.bundle import MOST_ROWS, Release, RulesKept
from hedgerow.release.files import table_writer
from hedgerow.release.lawful import Lawful
from hedgerow.schema.links import PERSON, ROW, View, rows_of, start_of

if TYPE_CHECKING:
    from hedgerow.answers.asking import Answers
    from hedgerow.schema import Schema

BLOCK_UNITS = 1 << 16
"""Units of a block."""
PILOT_UNITS = 1 << 11
"""Units that are drawn to say how rules are kept."""
VALUES_AT_A_TIME = 1 << 25
"""Values of all rows that are held at a time; a unit with more of them is drawn by itself."""
BYTES_A_VALUE = 16
"""Of a row while it is drawn and written."""


class LinkedRelease(Release):
    """A release of linked tables: `sample` gives a table of each."""

    block_rows = BLOCK_UNITS

    def refuse_unfit(self) -> None:
        tables, model = self.schema.linked, self.model
        assert tables is not None
        columns = {name: self.encoding.attributes_of(name) for name in self.encoding.columns}
        views = {name: View.of(tables, name, columns) for name in tables.names}
        drawn: dict[str, View] = {}
        for name in tables.names[1:]:
            start = columns.get(start_of(tables.parent(name), name))
            if start is not None:
                drawn[start_of(tables.parent(name), name)] = View(start, (), views[tables.parent(name)].own, None, {})
            drawn[name] = views[name]
        if (
            not isinstance(model, LinkedModel)
            or set(model.root.domain.names) != set(views[tables.root].own)
            or list(model.chains) != list(drawn)
            or not all(_can_draw(model.chains[name], view) for name, view in drawn.items())
        ):
            raise ReleaseError(
                "model-without-tables", "the model of the release does not fit the tables of its schema."
            )
        widest = sum(most * len(views[name].attributes) for name, most in tables.most_rows.items())
        Allowance(self.trust.memory).take(memory=BYTES_A_VALUE * widest)  # a unit is drawn whole

    @property
    def parts(self) -> int:
        return self.schema.max_rows_per_person

    @property
    def estimated_rows(self) -> int:
        """The noisy estimate of the number of units: rows of the root."""
        return int(min(MOST_ROWS, max(1, round(self.model.total / self.parts))))

    @property
    def doubts(self) -> list[str]:
        delta = self.certificate.budget.delta
        if self.certificate.void or self.rows_are_noise or delta * self.estimated_rows <= 1:
            return []
        return [
            f"δ = {delta:g} is more than 1 divided by the estimated number of units, {self.estimated_rows:,}: "
            "publishing one of them as it is would keep it."
        ]

    def sample(self, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> dict[str, pa.Table]:
        """A table for each name, with so many rows of the root (default: the noisy estimate of their number)."""
        if where is not None:
            self._refuse("where")
        if rows is not None and rows < 0:
            raise OptionError("bad-row-count", f"the number of rows must not be negative, got {rows}.")
        drawn = list(self.families(rows, seed))
        return {name: pa.concat_tables([part[name] for part in drawn]) for name in drawn[0]}

    def families(self, rows: int | None = None, seed: int = 0) -> Iterator[dict[str, pa.Table]]:
        """Whole units some at a time, at least one part of none, from blocks of 2¹⁶; block b depends only on the
        release, the seed, b and its size.
        """
        wanted = self.estimated_rows if rows is None else rows
        for number, begin in enumerate(range(0, max(1, wanted), BLOCK_UNITS)):
            yield from self.families_of(min(BLOCK_UNITS, wanted - begin), seed, number)

    def families_of(self, size: int, seed: int, number: int) -> Iterator[dict[str, pa.Table]]:
        """Whole units of one block."""
        return _Block(self, size, block_rng(seed, number), number).tables()

    def pieces(self, size: int, seed: int, number: int, where: str | None = None) -> Iterator[dict[str, pa.Table]]:
        """Whole units of one block."""
        if where is not None:
            self._refuse("where")
        return self.families_of(size, seed, number)

    def to_spark(self, session: Any, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> Any:
        """The rows of `sample` as a Spark frame for each table, which the workers fill."""
        from hedgerow.release import spark_parts

        if where is not None:
            self._refuse("where")
        return spark_parts.frames(self, session, self.estimated_rows if rows is None else rows, seed)

    @cached_property
    def rules_kept(self) -> RulesKept:
        """How the rules are kept, read off a fixed draw of so many units."""
        block = _Block(self, PILOT_UNITS, block_rng(0, 0), 0)
        for _ in block.families():
            pass
        tried = max(1, block.lawful.tried)
        return RulesKept(block.lawful.right / tried, block.lawful.left_out / tried)

    def recounted(self, rows: int, seed: int) -> Recounted:
        return CountedUnits(self, min(rows, BLOCK_UNITS), seed)

    @cached_property
    def arrow_schemas(self) -> dict[str, pa.Schema]:
        """Of each table as it is drawn."""
        return {name: table.schema for name, table in next(self.families(0)).items()}

    def table(self) -> dict[str, pa.Table]:
        return self.sample()

    def to_pandas(self) -> dict[str, Any]:
        return {name: table.to_pandas() for name, table in self.sample().items()}

    def to_polars(self) -> dict[str, Any]:
        import polars

        return {name: polars.from_arrow(table) for name, table in self.sample().items()}

    def _refuse(self, what: str) -> NoReturn:
        raise OptionError(
            "not-of-linked-tables",
            f"{what} is not there for releases of linked tables, or of persons that are kept, yet; sample, ask, "
            "verify and publish are.",
        )

    def drawn_units(self, units: int) -> Iterator[dict[str, Rows]]:
        """Codes of so many units of one block, some at a time, always the same."""
        yield from _Block(self, min(units, BLOCK_UNITS), block_rng(0, 0), 0).families()

    @cached_property
    def _linked_asking(self) -> LinkedAsking:
        return LinkedAsking(self)

    def ask(self, question: str, level: float = 0.9, population: bool = False) -> Answers:
        """Answers to a SELECT from one table, or from tables that are joined along their keys: see docs/use/ask.md."""
        return self._linked_asking.ask(question, level, population)

    def complete(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("complete")

    def tables(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("tables")

    def marginal(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("marginal")

    def batches(self, *_: Any, **__: Any) -> Iterator[pa.Table]:
        self._refuse("batches")


class KeptRelease(LinkedRelease):
    """A release of one table whose persons are kept: its rows come in families, and stand in one table.

    Rows that are asked for are those of so many persons.
    """

    def sample(self, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> pa.Table:
        """The table, with so many persons (default: the noisy estimate of their number)."""
        if rows is not None and rows < 0:
            raise OptionError("bad-row-count", f"the number of persons must not be negative, got {rows}.")
        return pa.concat_tables(self.batches(rows, seed, where))

    def batches(self, rows: int | None = None, seed: int = 0, where: str | None = None) -> Iterator[pa.Table]:
        """The rows of so many persons, some at a time."""
        if where is not None:
            self._refuse("where")
        yield from (self._as_one(part) for part in self.families(rows, seed))

    def pieces(self, size: int, seed: int, number: int, where: str | None = None) -> Iterator[dict[str, pa.Table]]:
        """Whole persons of one block."""
        if where is not None:
            self._refuse("where")
        yield from ({"": self._as_one(part)} for part in self.families_of(size, seed, number))

    def _as_one(self, part: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of some persons, each with what is the same in all of them."""
        rows, person, key = part[ROW], part[PERSON], self.arrow_schema.names[0]
        keys, links = person.column(key), rows.column(key)
        owners = pc.subtract(links, keys[0]) if len(person) else links
        above = person.take(owners)
        return pa.table(
            [(rows if name in rows.column_names else above).column(name) for name in self.arrow_schema.names],
            self.arrow_schema,
        )

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The person first, then the columns as they are declared."""
        assert self.schema.linked is not None
        key = self.schema.linked.links[PERSON].key
        return self.schema.alone.encoding().arrow_schema.insert(0, pa.field(key, pa.int64()))

    @property
    def arrow_schemas(self) -> dict[str, pa.Schema]:
        return {"": self.arrow_schema}

    def to_pandas(self) -> Any:
        return self.sample().to_pandas()

    def to_polars(self) -> Any:
        return Release.to_polars(self)

    def to_spark(self, session: Any, rows: int | None = None, seed: int = 0, *, where: str | None = None) -> Any:
        """The rows of `sample` as a Spark frame, which the workers fill."""
        return super().to_spark(session, rows, seed, where=where)[""]


class CountedUnits:
    """Linked tables as they were drawn, with rows that weigh what those of a private unit do (`models.rows.Recounted`).

    They answer about the columns of one table, and how many rows hang on a row is one of them.
    """

    def __init__(self, release: LinkedRelease, units: int, seed: int):
        assert release.schema.linked is not None
        self._links = release.schema.linked
        self._encodings = {name: release.schema.table(name).encoding() for name in self._links.names}
        self._scale = release.model.total / max(1, units * release.parts)
        held: dict[str, dict[int, list[CodedTable]]] = {name: {} for name in self._links.names}
        for part in release.families(units, seed):
            owners: dict[str, IntArray] = {}
            for name in part:
                owners[name] = self._owners(name, part, owners)
                weights = release.parts // np.bincount(owners[name])[owners[name]]
                coded = self._coded(release, name, part)
                for weight in np.unique(weights).tolist():
                    here = np.flatnonzero(weights == weight)
                    found = {each: codes[here] for each, codes in coded.items()}
                    held[name].setdefault(weight, []).append(found)
        self._tables = {
            name: {
                weight: {each: np.concatenate([some[each] for some in parts]) for each in parts[0]}
                for weight, parts in by_weight.items()
            }
            for name, by_weight in held.items()
        }

    def _owners(self, name: str, part: Mapping[str, pa.Table], owners: Mapping[str, IntArray]) -> IntArray:
        """The unit of each row."""
        if name == self._links.root:
            return np.arange(len(part[name]))
        return owners[self._links.parent(name)][self._parents(name, part)]

    def _parents(self, name: str, part: Mapping[str, pa.Table]) -> IntArray:
        """The place of the row that each row links to; keys are given in order."""
        above, link = self._links.parent(name), self._links.links[name].link
        keys = part[above].column(self._links.links[above].key)
        links: IntArray = part[name].column(link).to_numpy()
        return links - keys[0].as_py() if len(links) else links

    def _coded(self, release: LinkedRelease, name: str, part: Mapping[str, pa.Table]) -> CodedTable:
        own = self._encodings[name].read_back(part[name])
        found: CodedTable = {f"{name}.{each}": codes for each, codes in own.items()}
        for child in self._links.children(name):
            column = rows_of(name, child)
            numbers = pa.array(np.bincount(self._parents(child, part), minlength=len(part[name])))
            (codes,) = release.encoding.declared[column].encode(numbers).codes
            (attribute,) = release.encoding.attributes_of(column)
            found[attribute] = codes.astype(release.encoding.domain[attribute].dtype)
        return found

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for held in self._tables.values() for coded in held.values() for name in coded)

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        for query in queries:
            table = next((name.partition(".")[0] for name in query.sizes), self._links.root)
            answer: Counts = np.zeros(query.cells)
            for weight, coded in self._tables[table].items():
                rows = CountedRows(coded, len(next(iter(coded.values()))))
                answer += weight * self._scale * next(rows.answers([query]))
            yield answer


def write_tables(folder: Path, release: LinkedRelease, rows: int | None, seed: int, *, replace: bool) -> dict[str, int]:
    """A CSV file for each table; returns the rows of each. Every file is there whole or not at all."""
    warning = " ".join(release.certificate.statements()) if release.certificate.void else None
    written = dict.fromkeys(release.arrow_schemas, 0)
    with ExitStack() as files:
        writers = {
            name: files.enter_context(table_writer(folder / f"{name}.csv", schema, warning, replace=replace))
            for name, schema in release.arrow_schemas.items()
        }
        for part in release.families(rows, seed):
            for name, table in part.items():
                writers[name](table)
                written[name] += len(table)
    return written


def _can_draw(chain: Chain, view: View) -> bool:
    """Whether a chain draws every attribute of a view once, given what is known by then."""
    known = {*view.given, *filter(None, [view.left])}
    for number, local in enumerate(chain.locals):
        if (local.attribute == view.step) != (number == 0 and view.step is not None):
            return False
        known |= {*filter(None, [view.earlier.get(local.attribute)])}
        if not set(local.given) <= known:
            return False
        known |= {local.attribute, *view.order}
    return sorted(local.attribute for local in chain.locals) == sorted(view.own)


def drawn_from(path: Path) -> str:
    """What is drawn from a release, "row", "person" or "unit", as far as its schema says; whatever else it is shows
    elsewhere.
    """
    try:
        with zipfile.ZipFile(path) as file:
            said = json.loads(file.read("schema.json"))
            return "row" if not said.get("tables") else "person" if said.get("keep") else "unit"
    except (OSError, KeyError, ValueError, AttributeError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        return "row"


class _Block:
    def __init__(self, release: LinkedRelease, units: int, rng: np.random.Generator, number: int):
        assert release.schema.linked is not None
        self._schema: Schema = release.schema
        self._links = release.schema.linked
        self._encoding = release.encoding
        self._coding = Coding(release.encoding, rng)
        self._model = cast("LinkedModel", release.model)
        self._units, self._rng = units, rng
        self.lawful = Lawful(release.schema, self._coding, self._model)
        self._first = {name: number * BLOCK_UNITS * most for name, most in self._links.most_rows.items()}
        """How many keys of each table were given, or kept free for blocks before this one."""

    def tables(self) -> Iterator[dict[str, pa.Table]]:
        for drawn, values in self._drawn():
            yield {name: self._written(name, rows, values.get(name)) for name, rows in drawn.items()}
            for name, rows in drawn.items():
                self._first[name] += len(rows)

    def families(self) -> Iterator[dict[str, Rows]]:
        """Whole units, as many at a time as may be held."""
        yield from (drawn for drawn, _ in self._drawn())

    def _drawn(self) -> Iterator[tuple[dict[str, Rows], dict[str, pa.Table]]]:
        """Whole units, and the values of their rows where rules speak of them."""
        root, lawful = self._links.root, self.lawful
        units = Rows.of_root(self._coding, self._links, self._model.draw(self._units, self._rng))
        held = pa.table({})
        if lawful:
            units, held = lawful.units(units)
        for some in self._parts(units):
            drawn = {root: units.part(some)}
            values = {root: held.slice(some.start, some.stop - some.start)} if lawful else {}
            for name in self._links.names[1:]:
                parents = drawn[self._links.parent(name)]
                drawn[name] = Children(self._coding, self._links, name, parents).draw_all(self._model.chains)
                if lawful:
                    drawn[name], values[name] = lawful.children(name, drawn, values, drawn[name])
            yield drawn, values

    def _parts(self, units: Rows) -> Iterator[slice]:
        """Units next to each other, as many as may be held at a time and one at least."""
        values = np.full(self._units, self._width(self._links.root), dtype=np.int64)
        for child, rows in units.counts.items():
            values += rows * self._below(child)
        ends = np.cumsum(values)
        begin = 0
        while begin < self._units:
            spent = ends[begin - 1] if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, spent + VALUES_AT_A_TIME, side="right")))
            yield slice(begin, end)
            begin = end
        if not self._units:
            yield slice(0, 0)

    def _below(self, name: str) -> int:
        """The most values that a row can have, with all that hang on it."""
        links = self._links
        return self._width(name) + sum(
            links.links[child].max_per_parent * self._below(child) for child in links.children(name)
        )

    def _width(self, name: str) -> int:
        return len(self._links.ids(name)) + sum(each.partition(".")[0] == name for each in self._encoding.domain.names)

    def _written(self, name: str, drawn: Rows, values: pa.Table | None) -> pa.Table:
        """Values, with keys that are made anew and links that fit them."""
        link, first = self._links.links[name], self._first[name]
        table = (
            self.lawful.values(name, drawn, first) if values is None else self.lawful.renumbered(name, values, first)
        )
        if link.link is not None:
            table = _with_ids(table, link.link, self._ids(self._links.parent(name), drawn.parent))
        if link.key is not None and link.key != link.link:
            table = _with_ids(table, link.key, self._ids(name, np.arange(len(drawn))))
        return table

    def _ids(self, name: str, rows: IntArray) -> IntArray:
        return self._first[name] + rows + 1


def _with_ids(table: pa.Table, name: str, ids: IntArray) -> pa.Table:
    """The table with a column of numbers before all others, of which it may have none."""
    held = pa.array(ids)
    return table.add_column(0, name, held) if table.column_names else pa.table({name: held})
