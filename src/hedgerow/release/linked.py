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

from hedgerow.coded.domain import CodedTable, Codes, Counts, IntArray
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import OptionError, ReleaseError
from hedgerow.models.linked import Chain, LinkedModel
from hedgerow.models.model import block_rng
from hedgerow.models.rows import CountedRows, Recounted
from hedgerow.models.stored import Allowance
from hedgerow.release.bundle import MOST_ROWS, Release
from hedgerow.release.files import table_writer
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.links import View, before, left_of, rows_of, start_of, step_of
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.schema import Schema
    from hedgerow.schema.column import Column

BLOCK_UNITS = 1 << 16
"""Units of a block."""
VALUES_AT_A_TIME = 1 << 25
"""Values of all rows that are held at a time; a unit with more of them is drawn by itself."""
BYTES_A_VALUE = 16
"""Of a row while it is drawn and written."""
TRIES = 100
"""Times that a step is drawn again which only a first row has."""


class LinkedRelease(Release):
    """A release of linked tables: `sample` gives a table of each."""

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
            block = _Block(self, min(BLOCK_UNITS, wanted - begin), block_rng(seed, number), number)
            yield from block.tables()

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
            f"{what} is not there for releases of linked tables yet; sample, verify and publish are.",
        )

    def ask(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("ask")

    def complete(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("complete")

    def to_spark(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("to_spark")

    def tables(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("tables")

    def marginal(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("marginal")

    def batches(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("batches")


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
    known = {*view.given, *view.earlier.values(), *filter(None, [view.left])}
    for number, local in enumerate(chain.locals):
        if (local.attribute == view.step) != (number == 0 and view.step is not None):
            return False
        if not set(local.given) <= known:
            return False
        known |= {local.attribute, *view.order}
    return sorted(local.attribute for local in chain.locals) == sorted(view.own)


def holds_links(path: Path) -> bool:
    """Whether a file is a release of linked tables, as far as its schema says; whatever else it is shows elsewhere."""
    try:
        with zipfile.ZipFile(path) as file:
            return bool(json.loads(file.read("schema.json")).get("tables"))
    except (OSError, KeyError, ValueError, AttributeError, zipfile.BadZipFile, RuntimeError, NotImplementedError):
        return False


class _Drawn:
    """Rows of one table: codes of its own attributes, its parents, how many rows of each child follow, and its orders
    where it has one.
    """

    def __init__(
        self, codes: CodedTable, parent: IntArray, counts: Mapping[str, IntArray], orders: pa.Array | None = None
    ):
        self.codes, self.parent, self.counts, self.orders = codes, parent, counts, orders

    @property
    def rows(self) -> int:
        return len(self.parent)

    def part(self, some: slice) -> _Drawn:
        """Rows of the root that lie next to each other."""
        codes = {name: held[some] for name, held in self.codes.items()}
        counts = {name: held[some] for name, held in self.counts.items()}
        return _Drawn(codes, np.arange(some.stop - some.start), counts)


class _Block:
    def __init__(self, release: LinkedRelease, units: int, rng: np.random.Generator, number: int):
        assert release.schema.linked is not None
        self._schema: Schema = release.schema
        self._links = release.schema.linked
        self._encoding = release.encoding
        self._model = cast("LinkedModel", release.model)
        self._units, self._rng = units, rng
        self._first = {name: number * BLOCK_UNITS * most for name, most in self._links.most_rows.items()}
        """How many keys of each table were given, or kept free for blocks before this one."""

    def tables(self) -> Iterator[dict[str, pa.Table]]:
        root = self._links.root
        codes = self._model.draw(self._units, self._rng)
        units = _Drawn(codes, np.arange(self._units), self._counts(root, codes))
        for some in self._parts(units):
            drawn = {root: units.part(some)}
            for name in self._links.names[1:]:
                drawn[name] = self._children(name, drawn[self._links.parent(name)])
            yield {name: self._written(name, rows) for name, rows in drawn.items()}
            for name, rows in drawn.items():
                self._first[name] += rows.rows

    def _parts(self, units: _Drawn) -> Iterator[slice]:
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

    def _counts(self, name: str, codes: CodedTable) -> dict[str, IntArray]:
        """How many rows of each child table follow on rows of a table."""
        return {child: self._numbers(rows_of(name, child), codes) for child in self._links.children(name)}

    def _column(self, name: str) -> Column:
        return self._encoding.declared[name]

    def _numbers(self, column: str, codes: CodedTable) -> IntArray:
        """Whole numbers that a generated column stands for."""
        held = [codes[name] for name in self._encoding.attributes_of(column)]
        return np.asarray(self._column(column).decode(held, self._rng).to_numpy(zero_copy_only=False), dtype=np.int64)

    def _codes(self, column: str, array: pa.Array) -> CodedTable:
        names = self._encoding.attributes_of(column)
        found = self._column(column).encode(array).codes
        return {name: codes.astype(self._encoding.domain[name].dtype) for name, codes in zip(names, found, strict=True)}

    def _children(self, name: str, parents: _Drawn) -> _Drawn:
        """The rows of a table, those that come first of all parents, then those that come next, and so on."""
        counts = parents.counts[name]
        begins = np.cumsum(counts) - counts
        alive = np.flatnonzero(counts > 0)
        chain, line = self._model.chains[name], _Line(self, name, parents, alive)
        codes = self._unfilled(name, int(counts.sum()))
        orders: FloatArray = np.zeros(int(counts.sum()))
        place = 0
        while len(alive):
            known: CodedTable = {each: held[alive] for each, held in parents.codes.items()}
            known |= self._codes(left_of(name), pa.array(counts[alive] - 1 - place))
            known |= line.given(len(alive))
            own = line.moved(known, alive)
            for local in chain.locals:
                if local.attribute not in own:
                    own[local.attribute] = chain.draw(local, {**known, **own}, len(alive), self._rng)
            rows = begins[alive] + place
            for attribute, held in own.items():
                codes[attribute][rows] = held
            if line.ordered:
                orders[rows] = line.at
            place += 1
            goes_on = np.flatnonzero(counts[alive] > place)
            line.advance(own, goes_on)
            alive = alive[goes_on]
        parent = np.repeat(np.arange(parents.rows), counts)
        return _Drawn(codes, parent, self._counts(name, codes), line.orders(orders) if line.ordered else None)

    def _unfilled(self, name: str, rows: int) -> CodedTable:
        """Room for the codes of all rows of a table."""
        attributes = [local.attribute for local in self._model.chains[name].locals]
        order = self._links.links[name].order
        if order is not None:
            attributes += self._encoding.attributes_of(f"{name}.{order}")
        return {each: np.zeros(rows, dtype=self._encoding.domain[each].dtype) for each in attributes}

    def _written(self, name: str, drawn: _Drawn) -> pa.Table:
        """Values, with keys that are made anew and links that fit them."""
        link = self._links.links[name]
        encoding = self._schema.table(name).encoding()
        codes = {each: drawn.codes[f"{name}.{each}"] for each in encoding.domain.names}
        table = encoding.decode(codes, self._rng, self._first[name])
        if drawn.orders is not None:
            index = table.schema.get_field_index(link.order)
            table = table.set_column(index, encoding.arrow_schema.field(link.order), drawn.orders)
        if link.link is not None:
            table = table.add_column(0, link.link, pa.array(self._ids(self._links.parent(name), drawn.parent)))
        if link.key is not None and link.key != link.link:
            table = table.add_column(0, link.key, pa.array(self._ids(name, np.arange(drawn.rows))))
        return table

    def _ids(self, name: str, rows: IntArray) -> IntArray:
        return self._first[name] + rows + 1


class _Line:
    """What is remembered from one row of each parent to the next."""

    def __init__(self, block: _Block, name: str, parents: _Drawn, having: IntArray):
        self._block, self._name = block, name
        encoding, link = block._encoding, block._links.links[name]
        self._order = None if link.order is None else f"{name}.{link.order}"
        self._first = True
        self.at: FloatArray = np.zeros(0)
        """Where the order of the rows stands that are drawn now."""
        if self._order is not None:
            self.at = self._starts(start_of(block._links.parent(name), name), parents, having)
        self._earlier: CodedTable = {}
        self._maps = {
            column: _to_before(encoding.declared[column], encoding.declared[before(column)])
            for column in encoding.columns
            if before(column) in encoding.declared
            if column.partition(".")[0] == name
        }

    def _starts(self, column: str, parents: _Drawn, having: IntArray) -> FloatArray:
        """Where the first row of each parent stands that has one; the parents hold its codes from now on."""
        block = self._block
        declared = cast("OrderedColumn", block._column(column))
        chain = block._model.chains[column]
        own = block._codes(column, pa.nulls(parents.rows, pa.string()))
        waiting = having
        for _ in range(TRIES):
            for local in chain.locals:
                known = {name: codes[waiting] for name, codes in {**parents.codes, **own}.items()}
                own[local.attribute][waiting] = chain.draw(local, known, len(waiting), block._rng)
            numbers = self._settled(column, own)
            waiting = having[np.isnan(numbers[having])]
            if not len(waiting):
                break
        parents.codes |= own
        return np.where(np.isnan(numbers), float(declared.cells.low), numbers)

    def _settled(self, column: str, codes: CodedTable) -> FloatArray:
        """The numbers that an order stands at; NaN where it says nothing."""
        declared = cast("OrderedColumn", self._block._column(column))
        held = [codes[name] for name in self._block._encoding.attributes_of(column)]
        values = declared.write(held, self._block._rng)
        values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        return declared.settled(values)[0]

    def given(self, rows: int) -> CodedTable:
        """Codes of what the row before holds."""
        if not self._first:
            return self._earlier
        found: CodedTable = {}
        for column in self._maps:
            found |= self._block._codes(before(column), pa.nulls(rows, pa.string()))
        return found

    def moved(self, known: CodedTable, alive: IntArray) -> CodedTable:
        """Codes of the order, and of how far it lies from that of the row before."""
        if self._order is None:
            return {}
        block, step = self._block, step_of(self._name)
        if self._first:
            self.at = self.at[alive]
            steps = block._codes(step, pa.nulls(len(alive), pa.int64()))
        else:
            (name,) = block._encoding.attributes_of(step)
            steps = {name: self._steps(name, known, len(alive))}
            column = cast("OrderedColumn", block._column(self._order))
            highest = column.settled(pa.array([column.max]))[0][0]  # type: ignore[attr-defined]
            self.at = np.minimum(self.at + block._numbers(step, steps), highest)
        return steps | block._codes(self._order, self.orders(self.at))

    @property
    def ordered(self) -> bool:
        return self._order is not None

    def orders(self, numbers: FloatArray) -> pa.Array:
        """The orders that numbers stand for."""
        assert self._order is not None
        declared = cast("OrderedColumn", self._block._column(self._order))
        return declared.to_arrow(numbers.astype(np.int64), np.zeros(len(numbers), dtype=bool)).cast(declared.arrow_type)

    def _steps(self, name: str, known: CodedTable, rows: int) -> Codes:
        """How far rows lie from those before them; that there is none before is not among it."""
        block = self._block
        chain = block._model.chains[self._name]
        local = next(each for each in chain.locals if each.attribute == name)
        none = block._column(step_of(self._name)).layout.null
        codes = chain.draw(local, known, rows, block._rng)
        for _ in range(TRIES):
            again = np.flatnonzero(codes == none)
            if not len(again):
                break
            held = {each: known[each][again] for each in local.given}
            codes[again] = chain.draw(local, held, len(again), block._rng)
        codes[codes == none] = 0
        return codes

    def advance(self, own: CodedTable, goes_on: IntArray) -> None:
        """The rows of parents that have another one become the rows before."""
        encoding = self._block._encoding
        self._earlier = {}
        for column, mapping in self._maps.items():
            now, then = encoding.attributes_of(column), encoding.attributes_of(before(column))
            for number, (old, new) in enumerate(zip(now, then, strict=True)):
                codes = own[old][goes_on]
                self._earlier[new] = (mapping[codes] if number == 0 else codes).astype(encoding.domain[new].dtype)
        self._first = False
        if self._order is not None:
            self.at = self.at[goes_on]


def _to_before(own: Column, then: Column) -> IntArray:
    """For each code of a column, that of the same value in the row before, which may be missing as well."""
    marks = [then.layout.mark(mark) for mark in own.layout.marks]
    beyond = [then.layout.other] if own.layout.other is not None and own.layout.other >= own.layout.values else []
    hidden = [then.layout.null] if own.layout.hidden is not None else []
    codes = [*range(own.layout.values), *marks, *beyond, *hidden]
    return np.array([0 if code is None else code for code in codes], dtype=np.int64)
