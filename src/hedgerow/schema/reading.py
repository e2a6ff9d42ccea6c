"""How the scalars of a declaration are read: as text, whole number, number, date or truth, and never guessed.

A schema file hands every scalar over as text; Python may hand over the value itself. Both give the same declaration.
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator

from hedgerow.errors import Fault

LARGEST = 2**53
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def as_text(value: Any) -> str:
    """Text exactly as written. A whole number from Python is spelled out; a truth value or a fraction is refused."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Fault("not-text", f"must be text, got {_kind(value)}; put it in quotes")
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Fault("not-utf8", "must be text that UTF-8 can write")
    return value


def as_number(value: Any) -> int | float:
    """A finite number, whole if it is written without a fraction (1e6 is whole)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Fault("not-a-number", f"must be a number, got {_kind(value)}")
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise Fault("not-a-number", f'must be a number, got "{value}"')
    try:
        exact = Decimal(str(value).strip() if isinstance(value, str) else repr(value))
    except InvalidOperation:
        raise Fault("not-a-number", "must be a number") from None
    if not exact.is_finite() or not math.isfinite(float(exact)):
        raise Fault("not-a-number", "must be a finite number")
    return int(exact) if exact == exact.to_integral_value() else float(exact)


def as_whole(value: Any) -> int:
    """A whole number of at most 2⁵³, so that every way of writing it is exact."""
    number = as_number(value)
    if not isinstance(number, int):
        raise Fault("not-whole", f"must be a whole number, got {number}")
    if abs(number) > LARGEST:
        raise Fault("number-too-large", "must lie between −2⁵³ and 2⁵³; declare longer numbers as a category")
    return number


def as_truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise Fault("not-true-or-false", f"must be true or false, got {_shown(value)}")


def as_moment(value: Any) -> datetime.datetime:
    """An ISO date or date-time without time zone, to the second."""
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            raise Fault("not-a-date", f'must be a date such as 1999-12-31 (and 23:59:59), got "{value}"') from None
    if not isinstance(value, datetime.datetime):
        raise Fault("not-a-date", f"must be a date such as 1999-12-31, got {_kind(value)}")
    if value.tzinfo is not None:
        raise Fault("time-zone", "must be written without a time zone; moments that have one are read in UTC")
    return value.replace(microsecond=0)


def as_date(value: Any) -> datetime.date:
    moment = as_moment(value)
    if (moment.hour, moment.minute, moment.second) != (0, 0, 0):
        raise Fault("not-a-date", "must be a date without a time")
    return moment.date()


def as_bins(value: Any) -> Any:
    """A count, the word private, or a list of edges."""
    if isinstance(value, list | tuple):
        return tuple(as_number(edge) for edge in value)
    if value == "private":
        return value
    try:
        return as_whole(value)
    except ValueError:
        raise Fault("bad-bins", f"must be a count, a list of edges, or private, got {_shown(value)}") from None


def as_values(value: Any) -> Any:
    """A list of texts, or the word private."""
    if isinstance(value, list | tuple):
        return tuple(as_text(item) for item in value)
    if value == "private":
        return value
    raise Fault("not-a-list", f"must be a list of values, or private, got {_shown(value)}")


def as_missing(value: Any) -> Any:
    """true, or a mapping from the mark that stands in the table to what it means."""
    if isinstance(value, dict):
        return {as_text(mark): as_text(meaning) for mark, meaning in value.items()}
    try:
        return as_truth(value)
    except ValueError:
        raise Fault("bad-missing", 'must be true, or marks with their meaning such as {"-8": refused}') from None


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", tuple: "a list", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), type(value).__name__)


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str | int | float) else _kind(value)


Text = Annotated[str, BeforeValidator(as_text)]
Whole = Annotated[int, BeforeValidator(as_whole)]
Real = Annotated[int | float, BeforeValidator(as_number)]
Truth = Annotated[bool, BeforeValidator(as_truth)]
