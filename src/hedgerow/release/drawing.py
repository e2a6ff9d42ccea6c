"""Rows that obey the rules: those of a model that break one are drawn again, whole, from the model itself.

What is kept of independent rows follows the model's own distribution given the rules. A graphical model has learnt what
the codes allow, so little is left to draw again: values that share a cell with others, and rules on many columns. Where
a model leaves legal rows next to no mass, drawing again would not end; rows are then completed: the columns of a rule
that a row breaks are drawn uniformly over what is declared, until it breaks none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import CodedTable, IntArray
from hedgerow.errors import HedgerowError
from hedgerow.models.conditioning import TooRareError, completed
from hedgerow.models.matching import Totals, matched
from hedgerow.models.model import BLOCK_ROWS, Model
from hedgerow.schema.rules.satisfying import satisfied

if TYPE_CHECKING:
    from hedgerow.schema import Encoding
    from hedgerow.schema.arrays import BoolArray

FEWEST = 1 << 12
"""Rows that are drawn at once to replace others, at least …"""
PATIENCE = 100
"""… and at most this many for each row that is to be replaced, and FEWEST more."""
COMPLETIONS = 300
"""Times that the columns of a broken rule are drawn anew before a row becomes the one that is known to be legal."""


class Drawing:
    """The rows of one block, drawn with its own generator."""

    def __init__(self, model: Model, encoding: Encoding, rng: np.random.Generator):
        self._model, self._encoding, self._rng = model, encoding, rng
        self._names = [name for name in encoding.arrow_schema.names if name not in encoding.invented]
        self._spare = encoding.arrow_schema.empty_table().select(self._names)
        """Legal rows that were drawn and not yet needed."""
        self.tried = self.right = self.completed = 0
        """Rows drawn from the model, those of them that were right, and those that had to be completed."""

    def rows(self, size: int, first: int = 0, totals: Totals | None = None) -> Iterator[pa.Table]:
        """`size` rows some at a time, of which none breaks a rule, and which match totals of as many rows where there
        are some. `first` numbers the first of them."""
        if totals is None:
            codes, settled = self._model.draw(size, self._rng), []
        else:
            codes = matched(self._model, totals, self._rng)
            settled = list(dict.fromkeys(name for marginal, _ in totals for name in marginal))
        tables = self._encoding.decode_in_slices(codes, self._rng, first)
        return self._kept(tables, {name: codes[name] for name in settled}) if self._encoding.rules else tables

    def _kept(self, tables: Iterable[pa.Table], settled: CodedTable) -> Iterator[pa.Table]:
        done = 0
        for table in tables:
            broken = self._broken(table)
            kept = table
            if broken.any():
                lacking = {name: codes[done + np.flatnonzero(broken)] for name, codes in settled.items()}
                legal = self._legal_given(lacking) if lacking else self._legal(int(broken.sum()))
                kept = self._replaced(table, broken, legal)
                if self._encoding.rules.broken(kept.filter(pa.array(broken))).any():
                    raise HedgerowError("rule-broken", "a row that breaks a rule was about to be written; none was.")
            done += len(table)
            yield kept

    def _broken(self, table: pa.Table) -> BoolArray:
        broken = self._encoding.rules.broken(table)
        self.tried += len(broken)
        self.right += len(broken) - int(broken.sum())
        return broken

    def _replaced(self, table: pa.Table, which: BoolArray, by: pa.Table) -> pa.Table:
        """The table with other values in some rows; what is invented stays."""
        place = np.arange(len(which))
        place[which] = len(which) + np.arange(int(which.sum()))
        whole = pa.concat_tables([table.select(self._names), by]).take(pa.array(place))
        columns = {
            name: whole.column(name) if name in self._names else table.column(name) for name in table.column_names
        }
        return pa.table(columns).cast(table.schema)

    def _legal(self, rows: int) -> pa.Table:
        """So many rows that obey, whole rows of the model as far as patience goes."""
        allowed = PATIENCE * rows + FEWEST
        while len(self._spare) < rows and allowed > 0:
            chance = max(1 / PATIENCE, self.right / max(1, self.tried))
            wanted = min(BLOCK_ROWS, max(FEWEST, round(1.1 * (rows - len(self._spare)) / chance)))
            allowed -= wanted
            for table in self._encoding.decode_in_slices(self._model.draw(wanted, self._rng), self._rng):
                right = table.select(self._names).filter(pa.array(~self._broken(table)))
                self._spare = pa.concat_tables([self._spare, right])
        found, self._spare = self._spare.slice(0, rows), self._spare.slice(rows)
        lacking = rows - len(found)
        return pa.concat_tables([found, self._complete(lacking)]) if lacking else found

    def _legal_given(self, settled: CodedTable) -> pa.Table:
        """Rows that obey and hold settled codes, as far as patience goes; then rules come before what is settled."""
        rows = len(next(iter(settled.values())))
        found = self._encoding.arrow_schema.empty_table().select(self._names)
        order: list[IntArray] = []
        waiting: IntArray = np.arange(rows)
        for _ in range(PATIENCE):
            if not len(waiting):
                break
            fixed: CodedTable = {name: codes[waiting] for name, codes in settled.items()}
            try:
                codes = completed(self._model, fixed, {}, len(waiting), self._rng)
            except TooRareError:
                break
            table = self._encoding.decode(codes, self._rng)
            right = ~self._broken(table)
            found = pa.concat_tables([found, table.select(self._names).filter(pa.array(right))])
            order.append(waiting[right])
            waiting = waiting[~right]
        if len(waiting):
            found = pa.concat_tables([found, self._legal(len(waiting))])
        return found.take(pa.array(np.argsort(np.concatenate([*order, waiting]))))

    def _complete(self, rows: int) -> pa.Table:
        """Rows of the model with the columns of broken rules drawn uniformly, until all rules are obeyed."""
        rules = self._encoding.rules
        table = self._encoding.decode(self._model.draw(rows, self._rng), self._rng)
        for _ in range(COMPLETIONS):
            freed: dict[str, BoolArray] = {}
            breaches = np.zeros(rows, dtype=np.int64)
            chosen = np.zeros(rows, dtype=np.int64)
            for each in rules.kept:  # one of the rules that a row breaks, each with the same chance
                false = each.condition.truth(table).false
                breaches += false
                chosen = np.where(false & (self._rng.random(rows) * breaches < 1), each.number, chosen)
            if not breaches.any():
                break
            for each in rules.kept:
                for name in each.condition.columns:
                    freed[name] = freed.get(name, np.zeros(rows, dtype=bool)) | (chosen == each.number)
            table = self._with(table, self._uniform(rows), freed)
        else:
            table = self._with(
                table, self._known(rows), dict.fromkeys(self._known(1).column_names, rules.broken(table))
            )
        self.completed += rows
        return table.select(self._names)

    def _uniform(self, rows: int) -> pa.Table:
        """Rows whose columns are independent and uniform over their declared cells."""
        codes = {
            attribute.name: self._rng.integers(0, attribute.size - attribute.hidden, rows).astype(attribute.dtype)
            for attribute in self._encoding.domain
        }
        return self._encoding.decode(codes, self._rng)

    def _known(self, rows: int) -> pa.Table:
        """The row that is known to be legal, so many times."""
        return satisfied(self._encoding.rules).take(pa.array(np.zeros(rows, dtype=np.int64)))

    def _with(self, table: pa.Table, other: pa.Table, where: dict[str, BoolArray]) -> pa.Table:
        """The table with some columns of another one in some rows; derived columns are computed anew."""
        import pyarrow.compute as pc

        for name, rows in where.items():
            place = table.column_names.index(name)
            values = other.column(name).cast(table.schema.field(name).type)
            table = table.set_column(place, name, pc.if_else(pa.array(rows), values, table.column(name)))
        return self._encoding.rederived(table)
