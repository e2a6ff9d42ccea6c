"""A question: one SELECT over the released table, read into values of groups of rows.

    SELECT sex, AVG(income), COUNT(*) FROM people WHERE age >= 18 GROUP BY sex ORDER BY 2 DESC

Conditions and the expressions inside aggregates are those of `hedgerow.schema.conditions`; aggregates are those of
`hedgerow.answers.values`, and arithmetic between them makes differences and ratios. What is not known is refused by
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hedgerow.answers.values import Aggregate, Combined, Known, Value
from hedgerow.errors import OptionError, listing
from hedgerow.schema.column import Column
from hedgerow.schema.conditions import Condition, Expression, parse_condition, parse_expression

DIALECT = "duckdb"
LONGEST = 20_000
"""Letters of a question."""
AGGREGATES = (
    "COUNT(*), COUNT(column), SHARE(condition), SUM, AVG, MEDIAN, QUANTILE(column, 0.9), STDDEV, VARIANCE, CORR, each "
    "with FILTER (WHERE …), and + − × ÷ between them"
)


class Named(NamedTuple):
    """Something that a SELECT lists, as it is written or named there."""

    name: str
    value: Value


class Grouping(NamedTuple):
    """What rows are grouped by, as it is written or named."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Question:
    """What is asked: of which rows, in which groups, which values, and in which order they are listed."""

    text: str
    values: tuple[Named, ...]
    groups: tuple[Grouping, ...] = ()
    where: Condition | None = None
    order: tuple[tuple[str, bool], ...] = ()
    """Names of groups or values to sort by, and whether the largest comes first."""
    most: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it speaks of, each once."""
        return tuple(dict.fromkeys(name for value in self.values for name in self.columns_of(value)))

    def columns_of(self, named: Named) -> tuple[str, ...]:
        """The columns that one of the values speaks of: its own, and those that choose and group the rows."""
        inside = [*(group.expression for group in self.groups), *([self.where] if self.where else [])]
        return tuple(dict.fromkeys([*(name for part in inside for name in part.columns), *named.value.columns]))


def read_questions(text: str, columns: Mapping[str, Column]) -> list[Question]:
    """Every SELECT of a text, which semicolons part."""
    return [_Reading(tree, columns).question() for tree in parsed(text)]


def read_question(tree: exp.Expression, columns: Mapping[str, Column], text: str) -> Question:
    """A SELECT that was parsed; `text` is how it was asked."""
    return _Reading(tree, columns, text).question()


def parsed(text: str) -> list[exp.Expression]:
    """The statements of a text, one at least."""
    if len(text) > LONGEST * 100:
        raise OptionError("question-too-long", f"questions have at most {LONGEST * 100:,} letters together.")
    try:
        trees = [tree for tree in sqlglot.parse(text, dialect=DIALECT) if tree is not None]
    except (SqlglotError, RecursionError):
        raise OptionError(
            "bad-question",
            f'"{_short(text)}" is not a SELECT as in SQL. Hint: text stands in single quotes, a name with other signs '
            "in double quotes; several questions are parted by semicolons.",
        ) from None
    if not trees:
        raise OptionError("no-question", "nothing was asked; a question is a SELECT, such as SELECT COUNT(*) FROM t.")
    return trees


class _Reading:
    """One SELECT being read."""

    def __init__(self, tree: exp.Expression, columns: Mapping[str, Column], text: str | None = None):
        self.tree, self.columns = tree, columns
        self.text = tree.sql(dialect=DIALECT) if text is None else text

    def question(self) -> Question:
        tree = self.tree
        if not isinstance(tree, exp.Select):
            raise self._refused(tree, "a question is one SELECT")
        if len(self.text) > LONGEST:
            raise OptionError("question-too-long", f"a question has at most {LONGEST:,} letters.")
        self._refuse_unknown_clauses(tree)
        where = tree.args.get("where")
        condition = parse_condition(_sql(where.this), self.columns) if where else None
        groups = self._groups(tree)
        grouped = {str(group.expression): group for group in groups}
        values: list[Named] = []
        for item in tree.expressions:
            name, node = (item.alias, item.this) if isinstance(item, exp.Alias) else (_sql(item), item)
            if isinstance(node, exp.Star):
                raise self._refused(node, "a release answers figures, not rows; `hedgerow sample` draws rows")
            if not _aggregates(node):
                if str(self._expression(node)) not in grouped and not _constant(node):
                    raise self._refused(node, "what is listed is an aggregate, or stands in GROUP BY too")
                if not _constant(node):
                    continue
            values.append(Named(name, self._value(node)))
        if not values:
            raise self._refused(tree, f"nothing is asked of the groups; aggregates: {AGGREGATES}")
        names = [*(group.name for group in groups), *(value.name for value in values)]
        limit = tree.args.get("limit")
        most = int(_number(limit.expression, self)) if limit else None
        return Question(self.text, tuple(values), tuple(groups), condition, self._order(tree, names), most)

    def _refuse_unknown_clauses(self, tree: exp.Select) -> None:
        if tree.args.get("joins"):
            raise self._refused(tree.args["joins"][0], "a question is about one table; JOIN is not known")
        known = {"expressions", "from", "from_", "where", "group", "order", "limit", "kind"}
        for name, clause in tree.args.items():
            if clause and name not in known:
                node = clause[0] if isinstance(clause, list) else clause
                raise self._refused(node if isinstance(node, exp.Expression) else tree, f"{name.upper()} is not known")
        source = tree.args.get("from") or tree.args.get("from_")
        if source is not None and not isinstance(source.this, exp.Table):
            raise self._refused(source.this, "FROM names the released table, whatever it is called")

    def _groups(self, tree: exp.Select) -> list[Grouping]:
        clause = tree.args.get("group")
        named = {item.alias: item.this for item in tree.expressions if isinstance(item, exp.Alias)}
        found = []
        for node in clause.expressions if clause else ():
            if isinstance(node, exp.Literal) and not node.is_string:
                place = int(_number(node, self))
                if not 1 <= place <= len(tree.expressions):
                    raise self._refused(node, f"the SELECT lists {len(tree.expressions)} things")
                node = tree.expressions[place - 1]
            name = node.alias if isinstance(node, exp.Alias) else _sql(node)
            node = node.this if isinstance(node, exp.Alias) else node
            if isinstance(node, exp.Column) and node.name in named and node.name not in self.columns:
                name, node = node.name, named[node.name]
            listed = [alias for alias, inner in named.items() if inner == node]
            expression = self._expression(node)
            plain = expression.columns[0] if type(expression).__name__ == "Field" else name
            found.append(Grouping(listed[0] if listed else plain, expression))
        return found

    def _order(self, tree: exp.Select, names: list[str]) -> tuple[tuple[str, bool], ...]:
        clause = tree.args.get("order")
        found = []
        for ordered in clause.expressions if clause else ():
            node = ordered.this
            if isinstance(node, exp.Literal) and not node.is_string:
                place = int(_number(node, self))
                listed = [item.alias if isinstance(item, exp.Alias) else _sql(item) for item in tree.expressions]
                name = listed[place - 1] if 1 <= place <= len(listed) else str(place)
            else:
                name = _sql(node)
            alike = [known for known in names if known.casefold() == name.strip('"').casefold()]
            if not alike:
                raise self._refused(node, f"ORDER BY names what the SELECT lists: {listing(names)}")
            found.append((alike[0], bool(ordered.args.get("desc"))))
        return tuple(found)

    def _value(self, node: exp.Expression) -> Value:
        """An aggregate, a number, or arithmetic between them."""
        if isinstance(node, exp.Paren):
            return self._value(node.this)
        if isinstance(node, exp.Neg):
            return Combined("*", Known(-1.0), self._value(node.this))
        if isinstance(node, exp.Literal) and not node.is_string:
            return Known(_number(node, self))
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}[type(node)]
            return Combined(sign, self._value(node.left), self._value(node.right))
        condition = None
        if isinstance(node, exp.Filter):
            condition = parse_condition(_sql(node.expression.this), self.columns)
            node = node.this
        return self._aggregate(node, condition)

    def _aggregate(self, node: exp.Expression, condition: Condition | None) -> Aggregate:
        if isinstance(node, exp.Count) and not isinstance(node.this, exp.Distinct):
            of = () if node.this is None or isinstance(node.this, exp.Star) else (self._expression(node.this),)
            return Aggregate("COUNT", of, condition)
        if isinstance(node, exp.Anonymous) and node.name.upper() == "SHARE" and len(node.expressions) == 1:
            inner = node.expressions[0]
            of = () if isinstance(inner, exp.Star) else (parse_condition(_sql(inner), self.columns),)
            return Aggregate("SHARE", of, condition)
        if isinstance(node, exp.Corr):
            return Aggregate("CORR", (self._line(node.this), self._line(node.expression)), condition)
        if isinstance(node, exp.WithinGroup):
            share = _number(node.this.this, self)
            ordered = node.expression.expressions[0]
            level = 1 - share if ordered.args.get("desc") else share
            return self._quantile(ordered.this, level, node, condition)
        if isinstance(node, exp.Median):
            return self._quantile(node.this, 0.5, node, condition)
        if isinstance(node, exp.PercentileCont | exp.PercentileDisc | exp.Quantile | exp.ApproxQuantile):
            share_node = node.args.get("expression") or node.args.get("quantile")
            if share_node is None:
                raise self._refused(node, "a quantile needs its level, as in QUANTILE(income, 0.9)")
            return self._quantile(node.this, _number(share_node, self), node, condition)
        name = _MOMENTS.get(type(node))
        if name is None or isinstance(node.this, exp.Distinct):
            raise self._refused(node, f"this is not among the aggregates: {AGGREGATES}")
        inner = self._expression(node.this)
        if name == "AVG" and isinstance(inner, Condition):
            return Aggregate("SHARE", (inner,), condition)
        return Aggregate(name, (self._line(node.this),), condition)

    def _quantile(
        self, node: exp.Expression, level: float, whole: exp.Expression, condition: Condition | None
    ) -> Aggregate:
        if not 0 <= level <= 1:
            raise self._refused(whole, "the level of a quantile lies between 0 and 1")
        return Aggregate("QUANTILE", (self._line(node),), condition, level)

    def _line(self, node: exp.Expression) -> Expression:
        """An expression whose values can be added up."""
        found = self._expression(node)
        if found.kind != "number":
            raise self._refused(node, f"this takes numbers, not a {found.kind}; CAST, or EXTRACT a part of it")
        return found

    def _expression(self, node: exp.Expression) -> Expression:
        return parse_expression(_sql(node), self.columns)

    def _refused(self, node: exp.Expression, why: str) -> OptionError:
        return OptionError("unknown-question", f'in "{_short(self.text)}", “{_short(_sql(node), 60)}”: {why}.')


_MOMENTS: dict[type[exp.Expression], str] = {
    exp.Sum: "SUM",
    exp.Avg: "AVG",
    exp.Stddev: "STDDEV",
    exp.StddevSamp: "STDDEV",
    exp.StddevPop: "STDDEV",
    exp.Variance: "VARIANCE",
    exp.VariancePop: "VARIANCE",
}


def _aggregates(node: exp.Expression) -> bool:
    """Whether an aggregate stands in it."""
    kinds = (exp.AggFunc, exp.WithinGroup, exp.Filter)
    return any(isinstance(part, kinds) or _shares(part) for part in node.walk())


def _shares(node: exp.Expression) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "SHARE"


def _constant(node: exp.Expression) -> bool:
    return not any(isinstance(part, exp.Column) for part in node.walk())


def _number(node: exp.Expression, reading: _Reading) -> float:
    try:
        return float(Fraction(node.sql(dialect=DIALECT)))
    except (ValueError, ZeroDivisionError):
        raise reading._refused(node, "a number stands here") from None


def _sql(node: exp.Expression) -> str:
    return node.sql(dialect=DIALECT)


def _short(text: str, most: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
