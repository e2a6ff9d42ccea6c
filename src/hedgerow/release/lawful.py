"""Linked rows that obey the rules: what breaks one is drawn again, given the rows that it hangs on.

The root comes first: of its rows those that break a rule about it are drawn again, whole, as those of a single table
are. Of a child table all rows of one parent are drawn again together, since each follows from the one before it; what
breaks fewer rules takes the place of what broke more. A row for which patience does not help is left out, with all that
would hang on it: its parent allows nothing that the model draws. So no row that is written breaks a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import IntArray
from hedgerow.models.families import Children, Coding, Rows
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.rules.satisfying import satisfied

if TYPE_CHECKING:
    from hedgerow.models.linked import LinkedModel
    from hedgerow.schema import Schema

TRIES = 50
"""Times that rows are drawn again."""
FEWEST = 1 << 10
"""Rows of the root that are drawn at once to replace others, at least."""
Values = Mapping[str, pa.Table]
"""The values of rows by table, without their keys."""


class Lawful:
    """Values of rows as they are drawn, and rows that break no rule."""

    def __init__(self, schema: Schema, coding: Coding, model: LinkedModel):
        assert schema.linked is not None
        self._links, self._coding, self._model = schema.linked, coding, model
        self._rules = schema.kept_rules
        self._encodings = {name: schema.table(name).encoding() for name in self._links.names}
        self.tried = self.right = self.left_out = 0
        """Rows drawn at first, those of them that were right, and those that were left out."""

    def __bool__(self) -> bool:
        return bool(self._rules)

    def values(self, name: str, rows: Rows, first: int = 0) -> pa.Table:
        """The values of rows of a table; `first` is the number of the first of them, for keys that count rows."""
        encoding, link = self._encodings[name], self._links.links[name]
        if not encoding.arrow_schema.names:
            return pa.table({"": pa.nulls(len(rows))}).select([])
        codes = {each: rows.codes[f"{name}.{each}"] for each in encoding.domain.names}
        table = encoding.decode(codes, self._coding.rng, first)
        if rows.orders is not None:
            index = table.schema.get_field_index(link.order)
            table = table.set_column(index, encoding.arrow_schema.field(link.order), rows.orders)
        return table

    def renumbered(self, name: str, table: pa.Table, first: int) -> pa.Table:
        """Values of rows that stay, with keys of their own."""
        return self._encodings[name].renumbered(table, first, self._coding.rng)

    def units(self, units: Rows) -> tuple[Rows, pa.Table]:
        """As many rows of the root that obey."""
        root = self._links.root
        values = self.values(root, units)
        broken = self._broken(root, units, {root: values})
        self._count(broken)
        for _ in range(TRIES):
            waiting = np.flatnonzero(broken)
            if not len(waiting):
                break
            drawn = self._model.draw(max(FEWEST, 2 * len(waiting)), self._coding.rng)
            fresh = Rows.of_root(self._coding, self._links, drawn)
            held = self.values(root, fresh)
            right = np.flatnonzero(~self._broken(root, fresh, {root: held}))[: len(waiting)]
            units, values = self._replaced(units, values, waiting[: len(right)], fresh, held, right)
            broken[waiting[: len(right)]] = False
        waiting, legal = np.flatnonzero(broken), np.flatnonzero(~broken)
        if len(waiting) and len(legal):
            chosen = legal[self._coding.rng.integers(0, len(legal), len(waiting))]
            units, values = self._replaced(units, values, waiting, units, values, chosen)
        elif len(waiting):
            units, values = self._known(units, values)
        return units, values

    def children(self, name: str, drawn: Mapping[str, Rows], values: Values, rows: Rows) -> tuple[Rows, pa.Table]:
        """Rows of a child table that obey, of the same parents, and their values."""
        parents = drawn[self._links.parent(name)]
        table = self.values(name, rows)
        broken = self._broken(name, rows, {**values, name: table})
        self._count(broken)
        for _ in range(TRIES):
            before = np.bincount(rows.parent[broken], minlength=len(parents))
            groups = np.flatnonzero(before)
            if not len(groups):
                break
            again = Children(self._coding, self._links, name, parents.take(groups)).draw_all(self._model.chains)
            again = again.of(parents, groups)
            held = self.values(name, again)
            wrong = self._broken(name, again, {**values, name: held})
            after = np.bincount(again.parent[wrong], minlength=len(parents))
            better = after < before
            stay, come = np.flatnonzero(~better[rows.parent]), np.flatnonzero(better[again.parent])
            order = np.argsort(np.concatenate([rows.parent[stay], again.parent[come]]), kind="stable")
            rows = Rows.together(rows.take(stay), again.take(come)).take(order)
            table = pa.concat_tables([table.take(stay), held.take(come)]).take(order)
            broken = np.concatenate([broken[stay], wrong[come]])[order]
        self.left_out += int(broken.sum())
        stay = np.flatnonzero(~broken)
        return rows.take(stay), table.take(stay)

    def _count(self, broken: BoolArray) -> None:
        self.tried += len(broken)
        self.right += len(broken) - int(broken.sum())

    def _broken(self, name: str, rows: Rows, values: Values) -> BoolArray:
        """Which rows break a rule about their table and those above it."""
        broken = np.zeros(len(rows), dtype=bool)
        for each in self._rules.kept:
            columns = each.condition.columns
            if len(rows) and self._links.view(columns) == name:
                held = {column: self._column(column, name, rows, values) for column in columns}
                broken |= each.condition.truth(pa.table(held)).false
        return broken

    def _column(self, column: str, name: str, rows: Rows, values: Values) -> pa.ChunkedArray:
        """A column of a table, or of one above it, for each of the rows."""
        owner, _, own = column.partition(".")
        place: IntArray = np.arange(len(rows))
        at: Rows | None = rows
        while name != owner:
            assert at is not None
            place, at, name = at.parent[place], at.above, self._links.parent(name)
        return values[owner].column(own).take(pa.array(place))

    def _replaced(
        self, units: Rows, values: pa.Table, where: IntArray, fresh: Rows, held: pa.Table, which: IntArray
    ) -> tuple[Rows, pa.Table]:
        """Rows of the root with others in the place of some."""
        place = np.arange(len(units))
        place[where] = len(units) + which
        codes = {name: np.concatenate([own, fresh.codes[name]])[place] for name, own in units.codes.items()}
        table = pa.concat_tables([values, held]).take(pa.array(place))
        return Rows.of_root(self._coding, self._links, codes), table

    def _known(self, units: Rows, values: pa.Table) -> tuple[Rows, pa.Table]:
        """Rows of the root with what is known to be legal in the columns that rules speak of."""
        root = self._links.root
        legal = satisfied(self._rules).take(pa.array(np.zeros(len(units), dtype=np.int64)))
        for column in legal.column_names:
            owner, _, own = column.partition(".")
            if owner == root:
                field = values.schema.field(own)
                values = values.set_column(values.column_names.index(own), field, legal.column(column).cast(field.type))
        codes = {f"{root}.{name}": held for name, held in self._encodings[root].read_back(values).items()}
        return Rows.of_root(self._coding, self._links, {**units.codes, **codes}), values
