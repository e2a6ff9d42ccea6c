"""Conditions as in SQL's CHECK over declared columns: `dropoff >= pickup`, `payment = 'cash' AND tip = 0`.

They are parsed with sqlglot into a small language of our own, which is evaluated on Arrow tables row by row, with SQL's
three truth values; and over ranges of values, which tells what a whole cell of a column allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.schema.conditions.language import Condition, Expression
from hedgerow.schema.conditions.values import Truth

if TYPE_CHECKING:
    from hedgerow.schema.conditions.parsing import Named

__all__ = ["Condition", "Expression", "Truth", "parse_condition", "parse_expression"]


def parse_condition(text: str, columns: Named) -> Condition:
    """A condition over columns, such as `dropoff >= pickup`. The parser is loaded where there is something to parse."""
    from hedgerow.schema.conditions import parsing

    return parsing.parse_condition(text, columns)


def parse_expression(text: str, columns: Named) -> Expression:
    """An expression over columns, such as `fare + tip`."""
    from hedgerow.schema.conditions import parsing

    return parsing.parse_expression(text, columns)
