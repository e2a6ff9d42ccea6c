"""Conditions as in SQL's CHECK over declared columns: `dropoff >= pickup`, `payment = 'cash' AND tip = 0`.

They are parsed with sqlglot into a small language of our own, which is evaluated on Arrow tables row by row, with SQL's
three truth values; and over ranges of values, which tells what a whole cell of a column allows.
"""

from hedgerow.schema.conditions.language import Condition, Expression
from hedgerow.schema.conditions.parsing import parse_condition, parse_expression
from hedgerow.schema.conditions.values import Truth

__all__ = ["Condition", "Expression", "Truth", "parse_condition", "parse_expression"]
