"""Questions put to a release of linked tables.

What is measured of linked tables are means over units: in every view the rows of a unit weigh 1 together. A question is
about rows. So the influence of a row on an answer (`hedgerow.answers.values`) is multiplied by how many rows its unit
has, relative to the mean: then its sum over units' shares is what it was over rows' shares, and what the release says
of its errors, in units, tells what the answer is wrong by. How many rows there are is so among the columns that every
question about a child table is about.

Rows of the root are the model's own cells; those of other tables are a fixed draw of whole units, and what luck has in
it is part of the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.answers.asking import Answer, Answers, Row, check_level, estimates, refuse_nobody, total_std
from hedgerow.answers.basis import Grounds
from hedgerow.answers.discrepancy import Discrepancy, guess
from hedgerow.answers.joined import Joined, askable, read_joined
from hedgerow.answers.rows import ModelRows, Rows, decoded
from hedgerow.answers.spread import Spread, variance_of
from hedgerow.answers.values import Estimate
from hedgerow.coded.domain import CodedTable, IntArray, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.models.families import Rows as Members
from hedgerow.schema.arrays import FloatArray
from hedgerow.schema.links import rows_of

if TYPE_CHECKING:
    from hedgerow.release.linked import LinkedRelease

UNITS = 1 << 15
"""Units that are drawn, at most."""
WIDER = 1.7
"""How much larger errors of child tables are than distances over units tell: how many rows a unit has and what they
hold are learnt a pair at a time. Set after one release of docs/studies/linked.md, whose intervals held 76 % of the
answers without it where they were to hold 90 %."""
MOST_ROWS = 1 << 20
"""Rows of a table beyond which no more units are drawn."""


class LinkedAsking:
    """A release of linked tables that is asked: questions share its rows, and what is known of its errors."""

    def __init__(self, release: LinkedRelease):
        assert release.schema.linked is not None
        self._tables, self._encoding = release.schema.linked, release.encoding
        self._columns = askable(self._tables, release.encoding.declared)
        self._parts = release.parts
        self._units = release.model.total / release.parts
        self._root = ModelRows(release.model, release.encoding)
        self._draw: Callable[[int], Iterator[dict[str, Members]]] = release.drawn_units
        quality = release.quality
        distances = () if quality is None else (*quality.columns, *quality.pairs)
        known = {name for column in self._columns for name in self._encoding.attributes_of(column)}
        self._discrepancy = Discrepancy(
            release.encoding.domain,
            [each for each in distances if known.issuperset(each.attributes)],
            self._codes_of,
            guess(release.counted, release.model.total),
        )
        self._grounds = Grounds(release.encoding.domain, release.counted)
        views = {name: [each for each in release.counted if self._is_of(name, each)] for name in self._tables.names}
        deviation = total_std(views[self._tables.root])
        self._spreads = {
            name: Spread(Grounds(release.encoding.domain, held), self._discrepancy, deviation)
            for name, held in views.items()
        }

    def _is_of(self, table: str, measurement: Measurement) -> bool:
        """Whether a measurement counts rows of a table."""
        return self._tables.view(tuple(measurement.query.sizes)) == table

    def ask(self, text: str, level: float, population: bool) -> Answers:
        """Every question of a text, answered."""
        check_level(level)
        return Answers(
            [self._answer(each, level, population) for each in read_joined(text, self._tables, self._columns)]
        )

    def _answer(self, asked: Joined, level: float, population: bool) -> Answer:
        table, question = asked
        rows = self._rows(table, question.columns)
        refuse_nobody(question, rows)
        found = []
        for group, named, estimate in estimates(question, rows):
            columns = question.columns_of(named)
            basis = self._grounds.basis(self._attributes(columns), rows, estimate.influence)
            if table == self._tables.root:
                weighed = Rows(rows.table, rows.weights, rows.total * self._parts, rows.codes)
                told, marginal = replace(estimate, by_total=estimate.by_total / self._parts), self._attributes(columns)
                luck = variance_of(rows.weights, estimate.linear) / self._units if population else 0.0
            else:
                basis = "modelled" if basis == "measured" else basis
                weighed, told = self._over_units(table, rows, estimate)
                marginal = self._attributes((*columns, *self._numbers(table)))
                luck = self._luck(table, estimate.linear, population)
            low, high = self._spreads[table].interval(told, basis, marginal, weighed, level, luck)
            found.append(Row(group, named.name, estimate.value, low, high, basis))
        return Answer(question.text, tuple(found))

    def _attributes(self, columns: Sequence[str]) -> Marginal:
        names = dict.fromkeys(name for column in columns for name in self._encoding.attributes_of(column))
        return self._encoding.domain.marginal(tuple(names))

    def _numbers(self, table: str) -> list[str]:
        """The columns that say how many rows of a table a unit has."""
        return [rows_of(above, below) for above, below in pairwise(self._tables.line(table))]

    # ------------------------------------------------------------ rows

    def _rows(self, table: str, columns: Sequence[str]) -> Rows:
        """Weighted rows of a table, with columns of those above it."""
        if table == self._tables.root:
            rows = self._root.of(columns)
            return Rows(rows.table, rows.weights, self._units, rows.codes)
        count = len(self._members[table])
        codes = self._codes(table, self._attributes((*columns, *self._numbers(table))))
        held = decoded(self._encoding, codes, columns) if columns else None
        shown = {} if held is None else {name: held.column(name) for name in columns}
        for name in self._tables.line(table)[1:]:
            order = f"{name}.{self._tables.links[name].order}"
            if order in shown:
                orders = self._members[name].orders
                assert orders is not None
                shown[order] = orders.take(pa.array(self._upwards(table, name)))
        plain = pa.table(shown) if shown else pa.table({"": pa.nulls(count)})
        total = self._units * count / len(self._members[self._tables.root])
        return Rows(plain, np.full(count, 1 / max(1, count)), total, codes)

    @cached_property
    def _members(self) -> Mapping[str, Members]:
        """Whole units, drawn once."""
        parts: list[dict[str, Members]] = []
        for part in self._draw(UNITS):
            parts.append(part)
            if max(sum(len(each[name]) for each in parts) for name in self._tables.names) >= MOST_ROWS:
                break
        found = {}
        for name in self._tables.names:
            above = self._tables.links[name].parent or name
            firsts = np.cumsum([0, *(len(part[above]) for part in parts)])
            units = np.cumsum([0, *(len(part[self._tables.root]) for part in parts)])
            orders = [part[name].orders for part in parts]
            found[name] = Members(
                {each: np.concatenate([part[name].codes[each] for part in parts]) for each in parts[0][name].codes},
                np.concatenate([part[name].parent + first for part, first in zip(parts, firsts, strict=False)]),
                np.concatenate([part[name].unit + unit for part, unit in zip(parts, units, strict=False)]),
                {},
                None if orders[0] is None else pa.concat_arrays(orders),
            )
        return found

    def _upwards(self, table: str, name: str) -> IntArray:
        """For each row of a table the place of its row in one above it."""
        place: IntArray = np.arange(len(self._members[table]))
        while table != name:
            place = self._members[table].parent[place]
            table = self._tables.parent(table)
        return place

    def _codes(self, table: str, marginal: Marginal) -> CodedTable:
        owners = {name: name.partition(".")[0] for name in marginal}
        places = {owner: self._upwards(table, owner) for owner in set(owners.values())}
        return {name: self._members[owner].codes[name][places[owner]] for name, owner in owners.items()}

    def _codes_of(self, marginal: Marginal) -> CodedTable:
        """Rows that hold some attributes."""
        last = max((name.partition(".")[0] for name in marginal), key=self._tables.names.index)
        return self._codes(last, marginal)

    # ------------------------------------------------------------ units

    def _over_units(self, table: str, rows: Rows, estimate: Estimate) -> tuple[Rows, Estimate]:
        """The same rows and the same answer where the rows of a unit weigh 1 together."""
        unit = self._members[table].unit
        sizes = np.bincount(unit)[unit]
        having = len(np.unique(unit))
        mean = len(unit) / max(1, having)
        total = self._units * having / len(self._members[self._tables.root])
        weighed = Rows(rows.table, 1 / (sizes * max(1, having)), total * self._parts, rows.codes)
        rise = WIDER * sizes / mean
        quantile = estimate.quantile
        if quantile is not None:
            quantile = replace(quantile, influence=quantile.influence * rise)
        by_total = estimate.by_total * rows.total / self._units / self._parts
        return weighed, replace(estimate, influence=estimate.influence * rise, by_total=by_total, quantile=quantile)

    def _luck(self, table: str, influence: FloatArray, population: bool) -> float:
        """The variance that comes from drawing so many units, and no more; and from the sample that real ones are."""
        units = len(self._members[self._tables.root])
        rows = len(influence)
        each = np.bincount(self._members[table].unit, weights=influence, minlength=units) * units / max(1, rows)
        return float(each.var()) * (1 / units + (1 / self._units if population else 0.0))
