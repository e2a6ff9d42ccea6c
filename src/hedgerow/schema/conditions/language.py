"""The language of conditions: a few kinds of expressions, and the conditions that are made of them.

An expression has a kind (number, text, truth, date, moment or span of time), the columns that it speaks of, and its
SQL. It is evaluated on what is known of each column: the values of rows, or the ranges of cells.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.schema.arrays import moment, nulls, numbers, plain, texts
from hedgerow.schema.column import Column
from hedgerow.schema.conditions.parts import PARTS, SECONDS
from hedgerow.schema.conditions.values import DAY, Numbers, Truth, Values, aligned, compared
from hedgerow.schema.listed import Boolean, Category
from hedgerow.schema.numeric import Number
from hedgerow.schema.ordered import OrderedColumn

Kind: TypeAlias = Literal["number", "text", "truth", "date", "moment", "span"]
Known: TypeAlias = Mapping[str, Values]
"""What is known of each column: as many values, or ranges, of every one."""


class Expression(ABC):
    """Something that has a value in every row."""

    kind: Kind

    @property
    @abstractmethod
    def parts(self) -> tuple[Expression, ...]:
        """What it is made of."""

    @abstractmethod
    def evaluate(self, known: Known, rows: int) -> Values:
        """Its value in every row, or the range of its values."""

    @abstractmethod
    def __str__(self) -> str:
        """Its SQL, which reads back as the same expression."""

    def walk(self) -> Iterator[Expression]:
        """Itself and all that it is made of."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns that it speaks of, each once, in the order in which they first stand there."""
        return {part.name: part for part in self.walk() if isinstance(part, Field)}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of those columns."""
        return tuple(self.fields)

    def values(self, batch: pa.RecordBatch | pa.Table) -> pa.Array:
        """Its value in every row of a table that holds its columns, as declared or as written in a raw table."""
        return as_arrow(self._of(batch), self.kind)

    def _of(self, batch: pa.RecordBatch | pa.Table) -> Values:
        known = {name: field.read(batch.column(name)) for name, field in self.fields.items()}
        return self.evaluate(known, batch.num_rows)


class Condition(Expression):
    """An expression that is true, false or NULL."""

    kind: Kind = "truth"

    @abstractmethod
    def evaluate(self, known: Known, rows: int) -> Truth: ...

    def truth(self, batch: pa.RecordBatch | pa.Table) -> Truth:
        """Which rows make it true, false or NULL."""
        found = self._of(batch)
        assert isinstance(found, Truth)
        return found


@dataclass(frozen=True)
class Field(Expression):
    """The value of a column, as the table holds it: a mark that comes back as itself is that value, else NULL."""

    name: str
    column: Column

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return kind_of(self.column)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def unit(self) -> Fraction | None:
        """What its numbers are whole numbers of."""
        return unit_of(self.column)

    def evaluate(self, known: Known, rows: int) -> Values:
        return known[self.name]

    def read(self, array: pa.Array) -> Values:
        """The values of an array, each by itself."""
        column = self.column
        if self.kind == "text":
            return texts(array)
        if self.kind == "truth":
            found = _truths(column, array)
            return Truth.of(found == 1, found < 0)
        if isinstance(column, OrderedColumn):
            line = column.read(array).values
            return Numbers.of(line * DAY if self.kind == "date" else line, self.unit)
        read = numbers(array).values
        unit = self.unit
        return Numbers.of(read, None) if unit is None else Numbers.of(np.rint(read * unit.denominator), unit)

    def __str__(self) -> str:
        return identifier(self.name)


@dataclass(frozen=True)
class Constant(Expression):
    """A number, a text, a date or moment or span in seconds, true or false, or NULL."""

    value: Any
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    def evaluate(self, known: Known, rows: int) -> Values:
        if self.kind == "text":
            return pa.array(np.full(rows, self.value, dtype=object), pa.string())
        if self.kind == "truth":
            return Truth.constant(self.value, rows)
        if self.value is None:
            return Numbers.of(np.full(rows, np.nan), Fraction(1))
        return Numbers.constant(self.value, rows)

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if self.kind == "text":
            return literal(self.value)
        if self.kind == "number":
            return _decimal(self.value)
        if self.kind == "truth":
            return "TRUE" if self.value else "FALSE"
        if self.kind == "span":
            return f"INTERVAL '{int(self.value)}' SECOND"
        said = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(self.value))
        if self.kind == "date":
            return f"CAST('{said.date().isoformat()}' AS DATE)"
        return f"CAST('{said.isoformat(' ')}' AS TIMESTAMP)"


@dataclass(frozen=True)
class Sum(Expression):
    """Two expressions added; of a moment and a span, a moment."""

    left: Expression
    right: Expression
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, known: Known, rows: int) -> Values:
        return _line(self.left, known, rows).plus(_line(self.right, known, rows))

    def __str__(self) -> str:
        return f"({self.left} + {self.right})"


@dataclass(frozen=True)
class Difference(Expression):
    """One expression less another; of two dates a number of days, of two moments a span of time."""

    left: Expression
    right: Expression
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, known: Known, rows: int) -> Values:
        found = _line(self.left, known, rows).plus(_line(self.right, known, rows).times(Fraction(-1)))
        days = self.kind == "number" and self.left.kind == "date"
        return found.times(Fraction(1, DAY)) if days else found

    def __str__(self) -> str:
        return f"({self.left} - {self.right})"


@dataclass(frozen=True)
class Scaled(Expression):
    """An expression times a constant."""

    inner: Expression
    factor: Fraction

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return self.inner.kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Values:
        return _line(self.inner, known, rows).times(self.factor)

    def __str__(self) -> str:
        over = self.factor.denominator
        if over == 1 or _finite(over):
            return f"({self.inner} * {_decimal(self.factor)})"
        return f"({self.inner} * {self.factor.numerator} / {over})"


@dataclass(frozen=True)
class Span(Expression):
    """A number of spans of time: minutes * INTERVAL '1 minute'."""

    inner: Expression
    seconds: Fraction

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return "span"

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Values:
        return _line(self.inner, known, rows).times(self.seconds)

    def __str__(self) -> str:
        return f"({self.inner} * INTERVAL '{_decimal(self.seconds)}' SECOND)"


@dataclass(frozen=True)
class Part(Expression):
    """The year, month, day, hour … of a date or moment; or the seconds of a span."""

    part: str
    inner: Expression

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return "number"

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Values:
        line = _line(self.inner, known, rows)
        return line if self.part == "EPOCH" else PARTS[self.part](line)

    def __str__(self) -> str:
        return f"EXTRACT({self.part} FROM {self.inner})"


@dataclass(frozen=True)
class Boundaries(Expression):
    """How many days, hours, minutes or seconds begin between one moment and another: DATE_DIFF('day', a, b)."""

    part: str
    first: Expression
    last: Expression

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return "number"

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.first, self.last)

    def evaluate(self, known: Known, rows: int) -> Values:
        seconds = SECONDS[self.part]
        first, last = (
            _floored(_line(each, known, rows).in_units(Fraction(1)), seconds) for each in (self.first, self.last)
        )
        return last.plus(first.times(Fraction(-1)))

    def __str__(self) -> str:
        return f"DATE_DIFF('{self.part}', {self.first}, {self.last})"


@dataclass(frozen=True)
class Cast(Expression):
    """A value as another kind. What cannot be read so is NULL, where SQL would stop."""

    inner: Expression
    kind: Kind
    decimals: int | None = None
    """Of numbers: rounded to so many; None keeps them as they are."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Values:
        found = self.inner.evaluate(known, rows)
        if isinstance(found, Truth) or self.kind == self.inner.kind == "text":
            return found
        if self.kind == "number":
            line = found if isinstance(found, Numbers) else Numbers.of(numbers(found).values, None)
            return line if self.decimals is None else line.rounded(Fraction(1, 10**self.decimals))
        if not isinstance(found, Numbers):
            read = np.array([moment(text) for text in found.to_pylist()], dtype=np.float64)
            found = Numbers.of(read, Fraction(1))
        return _floored(found.in_units(Fraction(1)), DAY).times(Fraction(DAY)) if self.kind == "date" else found

    def __str__(self) -> str:
        kinds = {"text": "VARCHAR", "date": "DATE", "moment": "TIMESTAMP", "truth": "BOOLEAN", "number": "DOUBLE"}
        name = kinds[self.kind]
        if self.kind == "number" and self.decimals is not None:
            name = "INTEGER" if self.decimals == 0 else f"DECIMAL(18, {self.decimals})"
        return f"CAST({self.inner} AS {name})"


@dataclass(frozen=True)
class Coalesce(Expression):
    """The first value that is not NULL."""

    options: tuple[Expression, ...]
    kind: Kind

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.options

    def evaluate(self, known: Known, rows: int) -> Values:
        return reduce(_or_else, (option.evaluate(known, rows) for option in self.options))

    def __str__(self) -> str:
        return f"COALESCE({', '.join(map(str, self.options))})"


@dataclass(frozen=True)
class Holds(Condition):
    """An expression that is a truth by itself: a boolean column, TRUE, FALSE, NULL."""

    inner: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Truth:
        found = self.inner.evaluate(known, rows)
        assert isinstance(found, Truth)
        return found

    def __str__(self) -> str:
        return str(self.inner)


@dataclass(frozen=True)
class Comparison(Condition):
    """`=`, `<` or `<=`; the others are these turned about or negated."""

    operator: Literal["=", "<", "<="]
    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate(self, known: Known, rows: int) -> Truth:
        if isinstance(self.right, Constant) and self.right.kind == "text":
            return _equal(self.left.evaluate(known, rows), pa.scalar(self.right.value, pa.string()))
        left, right = self.left.evaluate(known, rows), self.right.evaluate(known, rows)
        if isinstance(left, Truth) and isinstance(right, Truth):
            return (left & right) | (~left & ~right)
        if isinstance(left, Numbers) and isinstance(right, Numbers):
            return compared(self.operator, left, right)
        return _equal(left, right)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.operator} {_operand(self.right)}"


@dataclass(frozen=True)
class Among(Condition):
    """`IN` a list of constants."""

    inner: Expression
    constants: tuple[Constant, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner, *self.constants)

    def evaluate(self, known: Known, rows: int) -> Truth:
        said = [constant.value for constant in self.constants if constant.value is not None]
        found = self.inner.evaluate(known, rows)
        if isinstance(found, Numbers):
            each = [compared("=", found, Numbers.constant(value, rows)) for value in said]
            truth = reduce(Truth.__or__, each, Truth.constant(False, rows))
        else:
            assert not isinstance(found, Truth)
            held = pc.is_in(found, value_set=pa.array(said, found.type))
            truth = Truth.of(np.asarray(held.to_numpy(zero_copy_only=False), dtype=bool), nulls(found))
        unknown = len(said) < len(self.constants)
        return truth | Truth.constant(None, rows) if unknown else truth

    def __str__(self) -> str:
        return f"{self.inner} IN ({', '.join(map(str, self.constants))})"


@dataclass(frozen=True)
class Begins(Condition):
    """`LIKE 'so%'`."""

    inner: Expression
    prefix: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Truth:
        found = self.inner.evaluate(known, rows)
        begins = pc.fill_null(pc.starts_with(found, pattern=self.prefix), False)
        return Truth.of(np.asarray(begins.to_numpy(zero_copy_only=False), dtype=bool), nulls(found))

    def __str__(self) -> str:
        return f"{self.inner} LIKE {literal(self.prefix + '%')}"


@dataclass(frozen=True)
class IsNull(Condition):
    """Whether there is no value; never NULL itself."""

    inner: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Truth:
        found = self.inner.evaluate(known, rows)
        if isinstance(found, Truth):
            return Truth(found.null, found.true | found.false, np.zeros(rows, dtype=bool))
        null = found.null if isinstance(found, Numbers) else nulls(found)
        return Truth.of(null, np.zeros(rows, dtype=bool))

    def __str__(self) -> str:
        return f"{_operand(self.inner)} IS NULL"


@dataclass(frozen=True)
class Not(Condition):
    """False where the condition is true, and the other way about."""

    inner: Condition

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate(self, known: Known, rows: int) -> Truth:
        return ~self.inner.evaluate(known, rows)

    def __str__(self) -> str:
        return f"NOT ({self.inner})"


@dataclass(frozen=True)
class All(Condition):
    """`AND`."""

    conditions: tuple[Condition, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.conditions

    def evaluate(self, known: Known, rows: int) -> Truth:
        return reduce(Truth.__and__, (each.evaluate(known, rows) for each in self.conditions))

    def __str__(self) -> str:
        return " AND ".join(_bracketed(each) for each in self.conditions)


@dataclass(frozen=True)
class Either(Condition):
    """`OR`."""

    conditions: tuple[Condition, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.conditions

    def evaluate(self, known: Known, rows: int) -> Truth:
        return reduce(Truth.__or__, (each.evaluate(known, rows) for each in self.conditions))

    def __str__(self) -> str:
        return " OR ".join(_bracketed(each) for each in self.conditions)


def kind_of(column: Column) -> Kind:
    """What a column's values are."""
    kind = column.value_type
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "moment"
    if pa.types.is_boolean(kind):
        return "truth"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "number"


def unit_of(column: Column) -> Fraction | None:
    """What a column's numbers are whole numbers of; None on the continuum."""
    if isinstance(column, Number):
        return None if column.scale is None else Fraction(1, column.scale)
    if isinstance(column, Category) and column.dtype == "number":
        decimals = [-Decimal(value).normalize().as_tuple().exponent for value in column.listed]  # type: ignore[operator]
        return Fraction(1, 10 ** max(0, *decimals, 0))
    if pa.types.is_floating(column.value_type):
        return None
    return Fraction(1)


def identifier(name: str) -> str:
    """A column's name as SQL reads it."""
    from sqlglot import Tokenizer, TokenType

    try:
        tokens = Tokenizer().tokenize(name)
    except Exception:
        tokens = []
    if len(tokens) == 1 and tokens[0].token_type == TokenType.VAR and tokens[0].text == name and name.isidentifier():
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL reads it."""
    return "'" + text.replace("'", "''") + "'"


def as_arrow(found: Values, kind: Kind) -> pa.Array:
    """Values of rows as an Arrow array of their kind."""
    if isinstance(found, Truth):
        return pa.array(found.true, mask=found.null)
    if not isinstance(found, Numbers):
        return found
    if kind == "number" and (found.unit is None or found.unit.denominator > 1):
        return pa.array(found.plain, mask=found.null)
    whole = pa.array(np.where(found.null, 0, np.rint(found.plain)).astype(np.int64), mask=found.null)
    if kind == "number":
        return whole
    if kind == "date":
        return pc.divide(whole, DAY).cast(pa.int32()).view(pa.date32())
    return whole.view(pa.timestamp("s") if kind == "moment" else pa.duration("s"))


def _line(expression: Expression, known: Known, rows: int) -> Numbers:
    found = expression.evaluate(known, rows)
    assert isinstance(found, Numbers)
    return found


def _floored(line: Numbers, seconds: int) -> Numbers:
    """Whole stretches of so many seconds before each moment."""
    low = np.floor(line.low / seconds)
    return Numbers(low, low if line.single else np.floor(line.high / seconds), Fraction(1))


def _or_else(first: Values, second: Values) -> Values:
    if isinstance(first, Numbers) and isinstance(second, Numbers):
        a, b = aligned(first, second)
        low = np.where(a.null, b.low, a.low)
        return Numbers(low, low if a.single and b.single else np.where(a.null, b.high, a.high), a.unit)
    if isinstance(first, Truth) and isinstance(second, Truth):
        return Truth(
            first.true | (first.null & second.true), first.false | (first.null & second.false), first.null & second.null
        )
    return pc.coalesce(first, second)


def _equal(left: Any, right: Any) -> Truth:
    found = pc.equal(left, right)
    null = nulls(found)
    return Truth.of(np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool), null)


def _truths(column: Column, array: pa.Array) -> Any:
    """0, 1, or −1 where there is none."""
    if isinstance(column, Boolean):
        return column.find(plain(array))
    read = numbers(array).values
    return np.where(read == 1, 1, np.where(read == 0, 0, -1))


def _operand(expression: Expression) -> str:
    return (
        f"({expression})"
        if isinstance(expression, Condition) and not isinstance(expression, Holds)
        else str(expression)
    )


def _bracketed(condition: Condition) -> str:
    return f"({condition})" if isinstance(condition, All | Either) else str(condition)


def _finite(denominator: int) -> bool:
    """Whether a fraction of this denominator has finitely many decimals."""
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    return denominator == 1


def _decimal(value: Fraction) -> str:
    """A number as SQL reads it, exactly."""
    if not _finite(value.denominator):
        return f"({value.numerator} / {value.denominator})"
    decimals = 0
    while (value * 10**decimals).denominator > 1:
        decimals += 1
    digits = f"{abs(int(value * 10**decimals)):0{decimals + 1}d}"
    sign = "-" if value < 0 else ""
    return sign + (digits if not decimals else f"{digits[:-decimals]}.{digits[-decimals:]}")
