"""From the text of a condition to the language, by way of sqlglot's tree. What it lacks is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, cast

import numpy as np
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.schema.arrays import moment
from hedgerow.schema.column import Column
from hedgerow.schema.conditions.language import (
    All,
    Among,
    Begins,
    Boundaries,
    Cast,
    Coalesce,
    Comparison,
    Condition,
    Constant,
    Difference,
    Either,
    Expression,
    Field,
    Holds,
    IsNull,
    Kind,
    Not,
    Part,
    Scaled,
    Span,
    Sum,
)
from hedgerow.schema.conditions.parts import PARTS, SECONDS

LONGEST = 20_000
"""Letters of a condition."""
DEEPEST = 40
"""Brackets and operators inside each other."""
KNOWN = (
    "=, <>, <, <=, >, >=, AND, OR, NOT, IN, BETWEEN, IS NULL, LIKE 'so%', + and − between columns, × and ÷ by "
    "constants, CAST, COALESCE, EXTRACT, DATE_DIFF, INTERVAL"
)

Named: TypeAlias = Mapping[str, Column | Expression]
"""Columns by name; a name may also stand for an expression over others."""

_PART_CALLS: dict[type[exp.Expression], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
    exp.DayOfWeek: "DOW",
    exp.DayOfWeekIso: "ISODOW",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Second: "SECOND",
}
_TYPES: dict[Kind, tuple[exp.DataType.Type, ...]] = {
    "number": (*exp.DataType.INTEGER_TYPES, *exp.DataType.FLOAT_TYPES, exp.DataType.Type.DECIMAL),
    "text": tuple(exp.DataType.TEXT_TYPES),
    "date": (exp.DataType.Type.DATE,),
    "moment": (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME, exp.DataType.Type.TIMESTAMPNTZ),
    "truth": (exp.DataType.Type.BOOLEAN,),
}


def parse_condition(text: str, columns: Named) -> Condition:
    """A condition over columns, such as `age < 15 AND income IS NULL`; refused with a sentence if it is none."""
    return _Reading(text, columns).condition(_tree(text))


def parse_expression(text: str, columns: Named) -> Expression:
    """An expression over columns, such as `fare + tip`."""
    return _Reading(text, columns).expression(_tree(text))


@lru_cache(maxsize=4096)  # a schema reads its rules again whenever a column of it is cut
def _tree(text: str) -> exp.Expression:
    if len(text) > LONGEST:
        raise OptionError(
            "condition-too-long", f"a condition has at most {LONGEST:,} letters; this one has {len(text):,}."
        )
    try:
        return sqlglot.parse_one(text, dialect="duckdb", into=exp.Condition)
    except RecursionError:
        raise _too_deep(text) from None
    except SqlglotError:
        raise OptionError(
            "bad-condition",
            f'"{_short(text)}" is no condition as in SQL. Hint: text stands in single quotes, a name with other signs '
            "in double quotes.",
        ) from None


def _too_deep(text: str) -> OptionError:
    return OptionError(
        "condition-too-deep", f'"{_short(text)}" has more than {DEEPEST} operators or brackets inside each other.'
    )


class _Reading:
    """One text being read: its columns, and the text itself for messages."""

    def __init__(self, text: str, columns: Named):
        self.text, self.columns = text, columns
        self._depth = 0

    def condition(self, node: exp.Expression) -> Condition:
        found = self.expression(node)
        if found.kind != "truth":
            raise OptionError(
                "not-a-condition", f'in "{_short(self.text)}", {_sql(node)} is a {_word(found)}, no condition.'
            )
        return found if isinstance(found, Condition) else Holds(found)

    def expression(self, node: exp.Expression) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _too_deep(self.text)
        try:
            if type(node) in _PART_CALLS:
                return self._part(_PART_CALLS[type(node)], node.this, node)
            read = _READERS.get(type(node))
            if read is None:
                raise self._unknown(node)
            return read(self, node)
        finally:
            self._depth -= 1

    def _unknown(self, node: exp.Expression) -> OptionError:
        return OptionError(
            "unknown-operator",
            f'in "{_short(self.text)}", {_sql(node)} is not among what a condition may hold: {KNOWN}.',
        )

    def _mismatch(self, node: exp.Expression, why: str) -> OptionError:
        return OptionError("kinds-differ", f'in "{_short(self.text)}", {_sql(node)}: {why}.')

    def _column(self, node: exp.Column) -> Expression:
        name = f"{node.table}.{node.name}" if node.args.get("table") else node.name
        if node.args.get("db"):
            raise self._unknown(node)
        if name not in self.columns and not node.this.quoted:
            alike = [known for known in self.columns if known.casefold() == name.casefold()]
            name = alike[0] if len(alike) == 1 else name
        if name not in self.columns:
            raise OptionError(
                "unknown-column",
                f'in "{_short(self.text)}", "{name}" is not a column; columns: {listing(self.columns)}.'
                f"{suggestion(name, self.columns)}",
            )
        found = self.columns[name]
        return found if isinstance(found, Expression) else Field(name, found)

    def _literal(self, node: exp.Literal) -> Expression:
        if node.is_string:
            return Constant(node.this, "text")
        try:
            return Constant(Fraction(node.this), "number")
        except ValueError:
            raise self._unknown(node) from None

    def _paren(self, node: exp.Paren) -> Expression:
        return self.expression(node.this)

    def _and(self, node: exp.And) -> Expression:
        return All(_flat(All, [self.condition(part) for part in _branches(node)]))

    def _or(self, node: exp.Or) -> Expression:
        return Either(_flat(Either, [self.condition(part) for part in _branches(node)]))

    def _not(self, node: exp.Not) -> Expression:
        return Not(self.condition(node.this))

    def _compare(self, node: exp.Binary) -> Expression:
        left, right = self._alike(node, self.expression(node.left), self.expression(node.right))
        if isinstance(node, exp.EQ | exp.NEQ):
            if isinstance(left, Constant) and not isinstance(right, Constant):
                left, right = right, left
            equal = Comparison("=", left, right)
            return equal if isinstance(node, exp.EQ) else Not(equal)
        if left.kind in ("text", "truth"):
            raise self._mismatch(node, f"{left.kind} has no order here; use = or IN, or CAST it to a number")
        if isinstance(node, exp.GT | exp.GTE):
            left, right = right, left
        return Comparison("<" if isinstance(node, exp.LT | exp.GT) else "<=", left, right)

    def _between(self, node: exp.Between) -> Expression:
        inner, low = self._alike(node, self.expression(node.this), self.expression(node.args["low"]))
        again, high = self._alike(node, self.expression(node.this), self.expression(node.args["high"]))
        if inner.kind in ("text", "truth"):
            raise self._mismatch(node, f"{inner.kind} has no order here; use = or IN, or CAST it to a number")
        return All((Comparison("<=", low, inner), Comparison("<=", again, high)))

    def _in(self, node: exp.In) -> Expression:
        if not node.expressions:
            raise self._unknown(node)
        inner = self.expression(node.this)
        constants = []
        for each in node.expressions:
            inner, constant = self._alike(node, inner, self.expression(each))
            if not isinstance(constant, Constant):
                raise self._mismatch(node, "IN takes a list of constants")
            constants.append(constant)
        if inner.kind == "truth":
            options = tuple(Comparison("=", inner, constant) for constant in constants)
            return Either(options) if len(options) > 1 else options[0]
        return Among(inner, tuple(constants))

    def _is(self, node: exp.Is) -> Expression:
        inner, said = self.expression(node.this), node.expression
        if isinstance(said, exp.Null):
            return IsNull(inner)
        if not isinstance(said, exp.Boolean) or inner.kind != "truth":
            raise self._unknown(node)
        said_so = inner if said.this else Not(inner if isinstance(inner, Condition) else Holds(inner))
        return Coalesce((said_so, Constant(False, "truth")), "truth")

    def _like(self, node: exp.Like) -> Expression:
        inner, pattern = self.expression(node.this), node.expression
        if inner.kind != "text" or not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise self._mismatch(node, "LIKE compares a text with a pattern in quotes")
        begin, rest = pattern.this.rstrip("%"), pattern.this[len(pattern.this.rstrip("%")) :]
        if "%" in begin or "_" in begin:
            raise self._mismatch(node, "LIKE takes a prefix: letters, and % at the end alone")
        return Begins(inner, begin) if rest else Comparison("=", inner, Constant(begin, "text"))

    def _add(self, node: exp.Binary) -> Expression:
        left, right = self.expression(node.left), self.expression(node.right)
        minus = isinstance(node, exp.Sub)
        kind = _sum_kind(left, right, minus)
        if kind is None:
            raise self._mismatch(
                node, f"a {_word(left)} and a {_word(right)} have no {'difference' if minus else 'sum'}"
            )
        if isinstance(left, Constant) and isinstance(right, Constant) and left.kind == right.kind == "number":
            return Constant(left.value + (-right.value if minus else right.value), "number")
        return Difference(left, right, kind) if minus else Sum(left, right, kind)

    def _times(self, node: exp.Binary) -> Expression:
        left, right = self.expression(node.left), self.expression(node.right)
        over = isinstance(node, exp.Div)
        if not over and isinstance(left, Constant):
            left, right = right, left
        if not over and left.kind == "number" and isinstance(right, Constant) and right.kind == "span":
            return Span(left, right.value)
        if not isinstance(right, Constant) or right.kind != "number" or left.kind not in ("number", "span"):
            raise self._mismatch(node, "numbers are multiplied and divided by constants alone")
        if over and right.value == 0:
            raise self._mismatch(node, "nothing is divided by 0")
        return _scaled(left, 1 / right.value if over else right.value)

    def _negated(self, node: exp.Neg) -> Expression:
        inner = self.expression(node.this)
        if inner.kind not in ("number", "span"):
            raise self._mismatch(node, f"a {_word(inner)} has no negative")
        return _scaled(inner, Fraction(-1))

    def _cast(self, node: exp.Cast) -> Expression:
        inner, to = self.expression(node.this), node.args["to"]
        kind = next((kind for kind, types in _TYPES.items() if to.this in types), None)
        if kind is None:
            raise self._mismatch(node, "CAST is to INTEGER, DECIMAL, DOUBLE, VARCHAR, DATE, TIMESTAMP or BOOLEAN")
        if isinstance(inner, Constant) and inner.kind == "text" and kind in ("date", "moment", "number"):
            return self._as(node, inner, kind)
        if kind != inner.kind and (inner.kind, kind) not in _CASTS:
            raise self._mismatch(node, f"a {_word(inner)} is not cast to {to.sql(dialect='duckdb')}")
        decimals = None
        if kind == "number" and to.this in exp.DataType.INTEGER_TYPES:
            decimals = 0
        elif to.this == exp.DataType.Type.DECIMAL:
            sizes = [int(each.name) for each in to.expressions if each.name.isdigit()]
            decimals = sizes[1] if len(sizes) > 1 else 0 if sizes else 3
            if decimals > 15:
                raise self._mismatch(node, "DECIMAL has at most 15 decimals here")
        return Cast(inner, kind, decimals)

    def _coalesce(self, node: exp.Coalesce) -> Expression:
        options = [self.expression(each) for each in (node.this, *node.expressions)]
        first = options[0]
        for index, each in enumerate(options[1:], 1):
            _, options[index] = self._alike(node, first, each)
        kind: Kind = "moment" if any(option.kind == "moment" for option in options) else first.kind
        return Coalesce(tuple(options), kind)

    def _extract(self, node: exp.Extract) -> Expression:
        return self._part(node.name.upper(), node.expression, node)

    def _part(self, part: str, inner: exp.Expression, node: exp.Expression) -> Expression:
        while isinstance(inner, exp.TsOrDsToDate | exp.TsOrDsToTimestamp):  # as sqlglot wraps YEAR(x)
            inner = inner.this
        of = self.expression(inner)
        if part in PARTS and of.kind in ("date", "moment"):
            return Part(part, of)
        if part == "EPOCH" and of.kind in ("date", "moment", "span"):
            return Part(part, of)
        raise self._mismatch(
            node, f"a {_word(of)} has no {part.lower()}; dates and moments have {listing(PARTS).lower()}"
        )

    def _boundaries(self, node: exp.DateDiff) -> Expression:
        part = str(node.args["unit"].name if node.args.get("unit") else "DAY").upper().rstrip("S")
        last, first = self.expression(node.this), self.expression(node.expression)
        if part not in SECONDS or part == "WEEK" or {first.kind, last.kind} - {"date", "moment"}:
            raise self._mismatch(node, "DATE_DIFF takes 'second', 'minute', 'hour' or 'day' and two dates or moments")
        return Boundaries(part, first, last)

    def _interval(self, node: exp.Interval) -> Expression:
        unit = str(node.args["unit"].name if node.args.get("unit") else "").upper().rstrip("S")
        try:
            seconds = Fraction(node.this.name) * SECONDS[unit]
        except (KeyError, ValueError):
            raise self._mismatch(node, f"a span is a number of {listing(SECONDS).lower()}s") from None
        return Constant(seconds, "span")

    def _alike(self, node: exp.Expression, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Both of one kind: a constant is read as what the other one is."""
        if isinstance(right, Constant) and not isinstance(left, Constant):
            return left, self._as(node, right, left.kind)
        if isinstance(left, Constant) and not isinstance(right, Constant):
            return self._as(node, left, right.kind), right
        if left.kind != right.kind and not {left.kind, right.kind} <= {"date", "moment"}:
            raise self._mismatch(node, f"a {_word(left)} and a {_word(right)} cannot be compared")
        return left, right

    def _as(self, node: exp.Expression, constant: Constant, kind: Kind) -> Constant:
        value = constant.value
        if value is None or constant.kind == kind or {constant.kind, kind} <= {"date", "moment"}:
            return Constant(None, kind) if value is None else constant
        if kind == "text" and constant.kind == "number":  # categories such as 1, 2, 3 are text
            return Constant(str(constant), "text")
        if constant.kind == "text" and kind in ("date", "moment"):
            seconds = moment(value)
            if not np.isnan(seconds):
                whole = kind == "date" and seconds % 86_400 == 0
                return Constant(Fraction(int(seconds)), "date" if whole else "moment")
        if constant.kind == "text" and kind == "number":
            try:
                return Constant(Fraction(value.strip()), "number")
            except ValueError:
                pass
        raise self._mismatch(node, f"{constant} is no {_NAMES[kind]}")


_CASTS: set[tuple[Kind, Kind]] = {
    ("text", "number"),
    ("text", "date"),
    ("text", "moment"),
    ("date", "moment"),
    ("moment", "date"),
}
_NAMES: dict[Kind, str] = {
    "number": "number",
    "text": "text",
    "truth": "truth value",
    "date": "date",
    "moment": "moment",
    "span": "span of time",
}
_READERS: dict[type[exp.Expression], Callable[[_Reading, exp.Expression], Expression]] = cast(
    "dict[type[exp.Expression], Callable[[_Reading, exp.Expression], Expression]]",
    {
        exp.Column: _Reading._column,
        exp.Literal: _Reading._literal,
        exp.Boolean: lambda _, node: Constant(bool(node.this), "truth"),
        exp.Null: lambda _, node: Constant(None, "truth"),
        exp.Paren: _Reading._paren,
        exp.And: _Reading._and,
        exp.Or: _Reading._or,
        exp.Not: _Reading._not,
        exp.EQ: _Reading._compare,
        exp.NEQ: _Reading._compare,
        exp.LT: _Reading._compare,
        exp.LTE: _Reading._compare,
        exp.GT: _Reading._compare,
        exp.GTE: _Reading._compare,
        exp.Between: _Reading._between,
        exp.In: _Reading._in,
        exp.Is: _Reading._is,
        exp.Like: _Reading._like,
        exp.Add: _Reading._add,
        exp.Sub: _Reading._add,
        exp.Mul: _Reading._times,
        exp.Div: _Reading._times,
        exp.Neg: _Reading._negated,
        exp.Cast: _Reading._cast,
        exp.TryCast: _Reading._cast,
        exp.Coalesce: _Reading._coalesce,
        exp.Extract: _Reading._extract,
        exp.DateDiff: _Reading._boundaries,
        exp.Interval: _Reading._interval,
    },
)


def _branches(node: exp.Connector) -> list[exp.Expression]:
    """What AND or OR connects, however many there are, without going deeper for each."""
    return list(node.flatten())  # type: ignore[no-untyped-call]


def _flat(kind: type[All] | type[Either], conditions: list[Condition]) -> tuple[Condition, ...]:
    """a AND (b AND c) as three conditions."""
    return tuple(part for each in conditions for part in (each.conditions if isinstance(each, kind) else (each,)))


def _sum_kind(left: Expression, right: Expression, minus: bool) -> Kind | None:
    kinds = (left.kind, right.kind)
    if kinds in (("number", "number"), ("span", "span")):
        return left.kind
    if minus and kinds == ("date", "date"):
        return "number"
    if minus and set(kinds) <= {"date", "moment"}:
        return "span"
    if kinds in (("date", "span"), ("moment", "span")):
        return "moment"
    return "moment" if kinds in (("span", "date"), ("span", "moment")) and not minus else None


def _scaled(inner: Expression, factor: Fraction) -> Expression:
    if isinstance(inner, Constant):
        return Constant(inner.value * factor, inner.kind)
    if isinstance(inner, Scaled):
        return _scaled(inner.inner, inner.factor * factor)
    return inner if factor == 1 else Scaled(inner, factor)


def _word(expression: Expression) -> str:
    return _NAMES[expression.kind]


def _sql(node: exp.Expression) -> str:
    return f"“{_short(node.sql(dialect='duckdb'), 60)}”"


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
