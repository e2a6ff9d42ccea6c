"""Rows of linked tables as codes: those of a child table given their parents, attribute after attribute.

All rows of a table are held together, parent by parent, each parent's from the first to the last. An attribute that is
given nothing of the row before is drawn for all of them at once. One that is given what it was there itself is drawn
for all first rows, then for all second ones, and so on; where few parents have rows left, each row is drawn for every
code that the one before may have, and one of these is followed: that needs no look at one row after the other until
the end, so a million rows of one parent take seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import CodedTable, Codes, IntArray
from hedgerow.models.linked import CELLS_AT_A_TIME, Chain, Local, pick
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.calendar import DAY, Datetime
from hedgerow.schema.links import Tables, before, left_of, pace_of, rows_of, start_of, step_of, time_of
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.schema import Encoding
    from hedgerow.schema.column import Column

TRIES = 100
"""Times that a step is drawn again which only a first row has, or a beginning where there is none."""
FEW = 8
"""Parents that have rows left, at most, where rows are drawn for every code of the one before."""


class Rows:
    """Rows of one table: codes of its own attributes, its parents and units, how many rows of each child table follow,
    what they are ordered by, and the rows of the parent table.
    """

    def __init__(
        self,
        codes: CodedTable,
        parent: IntArray,
        unit: IntArray,
        counts: Mapping[str, IntArray],
        orders: pa.Array | None = None,
        above: Rows | None = None,
    ):
        self.codes, self.parent, self.unit, self.counts, self.orders = codes, parent, unit, counts, orders
        self.above = above

    def __len__(self) -> int:
        return len(self.parent)

    @classmethod
    def of_root(cls, coding: Coding, tables: Tables, codes: CodedTable) -> Rows:
        units = np.arange(len(next(iter(codes.values()))))
        return cls(codes, units, units, coding.counts(tables, tables.root, codes))

    def part(self, some: slice) -> Rows:
        """Rows of the root that lie next to each other."""
        units = np.arange(some.stop - some.start)
        codes = {name: held[some] for name, held in self.codes.items()}
        return Rows(codes, units, units, {name: held[some] for name, held in self.counts.items()})

    def take(self, rows: IntArray) -> Rows:
        """Some rows by themselves, of the same parents."""
        return Rows(
            {name: held[rows] for name, held in self.codes.items()},
            self.parent[rows],
            self.unit[rows],
            {name: held[rows] for name, held in self.counts.items()},
            None if self.orders is None else self.orders.take(pa.array(rows)),
            self.above,
        )

    def of(self, parents: Rows, some: IntArray) -> Rows:
        """Rows that were drawn for some of the parents, as rows of all of them."""
        return Rows(self.codes, some[self.parent], self.unit, self.counts, self.orders, parents)

    @classmethod
    def together(cls, first: Rows, second: Rows) -> Rows:
        """Rows of the same parents."""
        orders = None
        if first.orders is not None and second.orders is not None:
            orders = pa.concat_arrays([first.orders, second.orders])
        return cls(
            {name: np.concatenate([held, second.codes[name]]) for name, held in first.codes.items()},
            np.concatenate([first.parent, second.parent]),
            np.concatenate([first.unit, second.unit]),
            {name: np.concatenate([held, second.counts[name]]) for name, held in first.counts.items()},
            orders,
            first.above,
        )


class Coding:
    """Between values and codes, where drawing needs both."""

    def __init__(self, encoding: Encoding, rng: np.random.Generator):
        self.encoding, self.rng = encoding, rng

    def column(self, name: str) -> Column:
        return self.encoding.declared[name]

    def codes(self, column: str, array: pa.Array) -> CodedTable:
        names = self.encoding.attributes_of(column)
        found = self.column(column).encode(array).codes
        return {name: codes.astype(self.encoding.domain[name].dtype) for name, codes in zip(names, found, strict=True)}

    def numbers(self, column: str, codes: CodedTable) -> IntArray:
        """Whole numbers that a generated column stands for."""
        held = [codes[name] for name in self.encoding.attributes_of(column)]
        return np.asarray(self.column(column).decode(held, self.rng).to_numpy(zero_copy_only=False), dtype=np.int64)

    def settled(self, column: str, codes: CodedTable) -> FloatArray:
        """The numbers that a line's column stands at; NaN where it says nothing."""
        declared = cast("OrderedColumn", self.column(column))
        values = declared.write([codes[name] for name in self.encoding.attributes_of(column)], self.rng)
        values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
        return declared.settled(values)[0]

    def counts(self, tables: Tables, name: str, codes: CodedTable) -> dict[str, IntArray]:
        """How many rows of each child table follow on rows of a table."""
        return {child: self.numbers(rows_of(name, child), codes) for child in tables.children(name)}


class Children:
    """The rows of a child table while they are drawn."""

    def __init__(self, coding: Coding, tables: Tables, name: str, parents: Rows):
        self._coding, self._tables, self._name, self._parents = coding, tables, name, parents
        self._encoding = coding.encoding
        counts = parents.counts[name]
        self.parent: IntArray = np.repeat(np.arange(len(parents)), counts)
        self.place: IntArray = np.arange(len(self.parent)) - (np.cumsum(counts) - counts)[self.parent]
        self.unit: IntArray = parents.unit[self.parent]
        self.own: CodedTable = {}
        """Codes of its attributes, as far as they are drawn."""
        self._left = counts[self.parent] - 1 - self.place
        link = tables.links[name]
        self._order = None if link.order is None else f"{name}.{link.order}"
        self._time = None if self._order is None else time_of(coding.encoding.declared, self._order)
        self._begins: FloatArray = np.zeros(0)
        """Where the first row of each parent stands, in steps; and every row, as far as steps tell."""
        self._orders: FloatArray = np.zeros(0)
        self._earlier: dict[str, _Earlier] = {}
        self._then: dict[str, str] = {}
        for column in self._encoding.columns:
            if column.partition(".")[0] == name and before(column) in self._encoding.declared:
                self._remember(column)

    def __len__(self) -> int:
        return len(self.parent)

    def _remember(self, column: str) -> None:
        encoding = self._encoding
        mapping = to_before(encoding.declared[column], encoding.declared[before(column)])
        now, then = encoding.attributes_of(column), encoding.attributes_of(before(column))
        none = self._coding.codes(before(column), pa.nulls(1, pa.string()))
        for number, (old, new) in enumerate(zip(now, then, strict=True)):
            self._earlier[new] = _Earlier(old, mapping if number == 0 else None, int(none[new][0]))
            self._then[old] = new

    def known(self, name: str, rows: slice | IntArray) -> Codes:
        """Codes of an attribute that some of the rows are given."""
        if name in self.own:
            return self.own[name][rows]
        above, place = self._parents, self.parent[rows]
        while name not in above.codes and above.above is not None:
            above, place = above.above, above.parent[place]
        if name in above.codes:
            return above.codes[name][place]
        if name in self._earlier:
            return self._codes_before(name, np.arange(len(self))[rows])
        return self._coding.codes(left_of(self._name), pa.array(self._left[rows]))[name]

    def _codes_before(self, name: str, rows: IntArray) -> Codes:
        said = self._earlier[name]
        codes = said.of(self.own[said.attribute][np.maximum(rows - 1, 0)])
        found: Codes = np.where(self.place[rows] == 0, said.none, codes).astype(self._encoding.domain[name].dtype)
        return found

    def draw_all(self, chains: Mapping[str, Chain]) -> Rows:
        """Every attribute, by the chains of the table and of where its orders begin."""
        start = start_of(self._tables.parent(self._name), self._name)
        if start in chains:
            self.begin(chains[start])
        for local in chains[self._name].locals:
            self.draw(chains[self._name], local)
        return self.rows()

    def rows(self) -> Rows:
        orders = None if self._order is None else self._timed()
        counts = self._coding.counts(self._tables, self._name, self.own)
        return Rows(self.own, self.parent, self.unit, counts, orders, self._parents)

    def begin(self, chain: Chain) -> None:
        """Draw where the order of each parent's rows begins; the parents hold its codes from now on."""
        column = start_of(self._tables.parent(self._name), self._name)
        coding, parents = self._coding, self._parents
        declared = cast("OrderedColumn", coding.column(column))
        own = coding.codes(column, pa.nulls(len(parents), pa.string()))
        having = waiting = np.flatnonzero(parents.counts[self._name] > 0)
        for _ in range(TRIES):
            for local in chain.locals:
                known = {name: codes[waiting] for name, codes in {**parents.codes, **own}.items()}
                own[local.attribute][waiting] = chain.draw(local, known, len(waiting), coding.rng)
            numbers = coding.settled(column, own)
            waiting = having[np.isnan(numbers[having])]
            if not len(waiting):
                break
        parents.codes |= own
        numbers = np.where(np.isnan(numbers), float(declared.cells.low), numbers)
        self._begins = np.floor(numbers / pace_of(declared))

    def draw(self, chain: Chain, local: Local) -> None:
        """Draw an attribute of every row."""
        name = local.attribute
        if name == self._step:
            self.own[name] = self._steps(chain, local)
            self._move()
        elif self._then.get(name) in local.given:
            self._draw_in_order(chain, local)
        else:
            self.own[name] = self._draw_at(chain, local, np.arange(len(self)))

    def _draw_at(self, chain: Chain, local: Local, rows: IntArray) -> Codes:
        known = {each: self.known(each, rows) for each in local.given}
        return chain.draw(local, known, len(rows), self._coding.rng)

    @property
    def _step(self) -> str | None:
        """The attribute that says how far a row lies from the one before."""
        return None if self._order is None else self._encoding.attributes_of(step_of(self._name))[0]

    @property
    def absent(self) -> int:
        """The code of a step that first rows have, and no others."""
        none = self._coding.column(step_of(self._name)).layout.null
        assert none is not None
        return none

    def _steps(self, chain: Chain, local: Local) -> Codes:
        """That there is none before is said of first rows, and of no other."""
        none = self.absent
        codes: Codes = np.full(len(self), none, dtype=self._encoding.domain[local.attribute].dtype)
        waiting = np.flatnonzero(self.place > 0)
        for _ in range(TRIES):
            if not len(waiting):
                return codes
            codes[waiting] = self._draw_at(chain, local, waiting)
            waiting = waiting[codes[waiting] == none]
        codes[waiting] = 0
        return codes

    def _move(self) -> None:
        """Where every row stands in its order, by where its parent begins and the steps up to it."""
        assert self._order is not None
        column = cast("OrderedColumn", self._coding.column(self._order))
        highest = np.floor(column.settled(pa.array([column.max]))[0][0] / pace_of(column))  # type: ignore[attr-defined]
        steps = np.zeros(len(self))
        moving = np.flatnonzero(self.place > 0)
        held = {name: self.own[name][moving] for name in self._encoding.attributes_of(step_of(self._name))}
        steps[moving] = self._coding.numbers(step_of(self._name), held)
        ends = np.cumsum(steps)
        firsts = np.flatnonzero(self.place == 0)
        moved = ends - np.repeat(ends[firsts], np.diff(np.append(firsts, len(self))))
        self._orders = np.minimum(self._begins[self.parent] + moved, highest)
        found = self._coding.codes(self._order, self._written(self._orders * pace_of(column)))
        self.own |= {name: codes for name, codes in found.items() if name != self._time}

    def _timed(self) -> pa.Array:
        """The orders of all rows; of those of one parent and day the times come in order."""
        assert self._order is not None
        column = self._coding.column(self._order)
        numbers = self._orders * pace_of(column)
        if self._time is None or self._time not in self.own:
            return self._written(numbers)
        assert isinstance(column, Datetime)
        times = column.seconds_of_day(self.own[self._time], self._coding.rng)
        place = np.lexsort((times, self._orders, self.parent))  # rows stand by parent and order: within a day they move
        self.own[self._time] = self.own[self._time][place]
        return self._written(np.floor(self._orders) * DAY + times[place])

    def _written(self, numbers: FloatArray) -> pa.Array:
        """The orders that numbers stand for."""
        assert self._order is not None
        declared = cast("OrderedColumn", self._coding.column(self._order))
        return declared.to_arrow(numbers.astype(np.int64), np.zeros(len(numbers), dtype=bool)).cast(declared.arrow_type)

    # ------------------------------------------------------------ given the row before

    def _draw_in_order(self, chain: Chain, local: Local) -> None:
        then = self._then[local.attribute]
        self.own[local.attribute] = np.zeros(len(self), dtype=self._encoding.domain[local.attribute].dtype)
        for begin in range(0, len(self), step := max(1, CELLS_AT_A_TIME // local.size)):
            part = slice(begin, min(begin + step, len(self)))
            known = {each: chain.merged(each, self.known(each, part)) for each in local.given if each != then}
            alone = local.logarithms(known, part.stop - part.start)
            depth = np.minimum(self.place[part], np.arange(part.stop - part.start))
            order = np.argsort(depth, kind="stable")
            sizes = np.bincount(depth)
            done = 0
            for size in sizes.tolist():
                if size <= FEW:
                    self._follow(chain, local, begin + np.sort(order[done:]), begin, alone)
                    break
                rows = order[done : done + size]
                held = chain.merged(then, self._codes_before(then, begin + rows))
                drawn = pick(alone[rows] + local.factor(then)[held], self._coding.rng.random(size))
                self.own[local.attribute][begin + rows] = chain.spread(
                    local.attribute, drawn, self._coding.rng.random(size)
                )
                done += size

    def _follow(self, chain: Chain, local: Local, rows: IntArray, begin: int, alone: FloatArray) -> None:
        """Rows of few parents: each for every code of the row before, of which one is followed."""
        then = self._then[local.attribute]
        said, factor = self._earlier[then], local.factor(then)
        codes = self.own[local.attribute]
        heads = np.append(True, np.diff(rows) != 1) | (self.place[rows] == 0)
        most = max(1, CELLS_AT_A_TIME // factor.size)
        last = 0
        for first in range(0, len(rows), most):
            some = rows[first : first + most]
            lots, spread = self._coding.rng.random((2, len(some)))
            weights = (alone[some - begin][:, None, :] + factor[None, :, :]).reshape(-1, local.size)
            drawn = pick(weights, np.repeat(lots, len(factor)))
            every = chain.spread(local.attribute, drawn, np.repeat(spread, len(factor)))
            further = chain.merged(then, said.of(every))
            starts = chain.merged(then, self._codes_before(then, some))
            width, chosen, ways = len(factor), [], further.tolist()
            for number, (fresh, start) in enumerate(
                zip(heads[first : first + most].tolist(), starts.tolist(), strict=True)
            ):
                place = number * width + (start if fresh else last)
                chosen.append(place)
                last = ways[place]
            codes[some] = every[chosen]


class _Earlier:
    """What the row before holds: of which attribute, how its codes are said there, and that there is none."""

    def __init__(self, attribute: str, mapping: IntArray | None, none: int):
        self.attribute, self.mapping, self.none = attribute, mapping, none

    def of(self, codes: Codes) -> Codes:
        """Codes as the row after says them."""
        found: Codes = codes if self.mapping is None else self.mapping[codes].astype(np.uint32)
        return found


def to_before(own: Column, then: Column) -> IntArray:
    """For each code of a column, that of the same value in the row before, which may be missing as well."""
    marks = [then.layout.mark(mark) for mark in own.layout.marks]
    beyond = [then.layout.other] if own.layout.other is not None and own.layout.other >= own.layout.values else []
    hidden = [then.layout.null] if own.layout.hidden is not None else []
    codes = [*range(own.layout.values), *marks, *beyond, *hidden]
    return np.array([0 if code is None else code for code in codes], dtype=np.int64)
