"""Rules as they are kept: the conditions that a schema's rules say, over the columns that it declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from hedgerow.errors import Fault, OptionError, suggestion
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.column import Column
from hedgerow.schema.conditions import Condition, Expression, parse_condition, parse_expression
from hedgerow.schema.conditions.language import Coalesce, Constant, Either, Field, Holds, Not
from hedgerow.schema.explain import key_error
from hedgerow.schema.rules.declared import Rule
from hedgerow.schema.rules.lookup import Listed

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Kept:
    """A rule, its place in the schema from 1, and the condition that no row may make FALSE."""

    number: int
    rule: Rule
    condition: Condition

    def __str__(self) -> str:
        return f"rule {self.number} ({self.rule})"


class Rules:
    """All rules of a schema, and the expressions of its derived columns."""

    def __init__(
        self, columns: Mapping[str, Column], derive: Mapping[str, str], rules: Sequence[Rule], linked: bool = False
    ):
        names = _Names(columns, derive, linked)
        self.derived: dict[str, Expression] = {name: names.expression(name) for name in derive}
        self.kept: tuple[Kept, ...] = tuple(
            Kept(number, rule, _condition(rule, names, columns, number - 1)) for number, rule in enumerate(rules, 1)
        )
        for each in self.kept:
            if not each.condition.columns:
                raise key_error("rule-without-columns", ("rules", each.number - 1), "it speaks of no column.")

    def __bool__(self) -> bool:
        return bool(self.kept)

    @property
    def conditions(self) -> list[Condition]:
        return [each.condition for each in self.kept]

    def broken(self, table: pa.Table | pa.RecordBatch) -> BoolArray:
        """Which rows break a rule."""
        fields = {name: field for condition in self.conditions for name, field in condition.fields.items()}
        known = {name: field.read(table.column(name)) for name, field in fields.items()}
        found = np.zeros(table.num_rows, dtype=bool)
        for condition in self.conditions:
            found |= condition.evaluate(known, table.num_rows).false
        return found


class _Names(Mapping[str, Column | Expression]):
    """Columns, and derived ones as expressions, each read when it is first named.

    Columns of linked tables are TABLE.COLUMN; one that a single table has may be named without it.
    """

    def __init__(self, columns: Mapping[str, Column], derive: Mapping[str, str], linked: bool = False):
        self._columns, self.derive = columns, derive
        held: dict[str, list[str]] = {}
        for name in columns if linked else ():
            held.setdefault(name.partition(".")[2], []).append(name)
        self._short = {name: full[0] for name, full in held.items() if len(full) == 1}
        self._read: dict[str, Expression] = {}
        self._reading: list[str] = []

    def __getitem__(self, name: str) -> Column | Expression:
        if name in self._short:
            return self.field(name)
        return self._columns[name] if name in self._columns else self.expression(name)

    def __contains__(self, name: object) -> bool:
        return name in self._columns or name in self.derive or name in self._short

    def __iter__(self) -> Iterator[str]:
        return iter((*self._columns, *self.derive))

    def __len__(self) -> int:
        return len(self._columns) + len(self.derive)

    def field(self, name: str) -> Field:
        """A declared column."""
        full = self._short.get(name, name)
        return Field(full, self._columns[full])

    def expression(self, name: str) -> Expression:
        """A derived column over columns that are not."""
        if name in self._reading:
            circle = " → ".join([*self._reading[self._reading.index(name) :], name])
            raise key_error("recursive-derive", ("derive", name), f"it is derived from itself: {circle}.")
        if name not in self._read:
            self._reading.append(name)
            self._read[name] = _at(("derive", name), lambda: parse_expression(self.derive[name], self))
            self._reading.pop()
        return self._read[name]


def _condition(rule: Rule, names: _Names, columns: Mapping[str, Column], place: int) -> Condition:
    if rule.check is not None:
        check = rule.check
        return _at(("rules", place), lambda: parse_condition(check, names))
    if rule.when is not None and rule.then is not None:
        said, follows = rule.when, rule.then
        when = _at(("rules", place, "when"), lambda: parse_condition(said, names))
        then = _at(("rules", place, "then"), lambda: parse_condition(follows, names))
        surely = Holds(Coalesce((when, Constant(False, "truth")), "truth"))
        return Either((Not(surely), then))
    assert rule.columns is not None
    assert rule.lookup is not None
    for name in rule.columns:
        if name not in names or name in names.derive:
            raise key_error(
                "unknown-column", ("rules", place, "columns"), f'"{name}" is not a column.{suggestion(name, columns)}'
            )
    try:
        return Listed(tuple(map(names.field, rule.columns)), rule.lookup)
    except Fault as fault:
        raise key_error(fault.code, ("rules", place), f"{fault}.") from None


def _at(path: tuple[str | int, ...], read: Callable[[], T]) -> T:
    """What is read, or an error that says where in the schema it stands."""
    try:
        return read()
    except OptionError as problem:
        raise key_error(problem.code, path, str(problem)) from None
