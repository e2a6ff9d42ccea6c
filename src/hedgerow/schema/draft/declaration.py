"""What a public source says of one column: some keys of its declaration, and how several sources are put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from hedgerow.schema.schema import TODO

Declaration: TypeAlias = dict[str, Any]
Findings: TypeAlias = dict[str, Declaration]

RANGE = "range alone"
"""Marks bounds that say nothing of which values between them occur; never written."""
_ORDER = (
    *("type", "values", "dtype", "min", "max", "size", "decimals", "bins", "step"),
    *("format", "special", "ordered", "missing", "other"),
    "source",
)
_NEEDED = {
    "integer": ("min", "max"),
    "number": ("min", "max"),
    "category": ("values",),
    "date": ("min", "max"),
    "datetime": ("min", "max"),
    "code": ("size",),
    "boolean": (),
}


def merge(first: Declaration, later: Declaration) -> Declaration:
    """What the first source says wins; a later one fills the gaps, unless it speaks of another type.

    A list of codes says more than a range alone, whichever comes first; the end of the range is one of the codes.
    """
    for about, other in ((first, later), (later, first)):
        if RANGE in about and "values" in other:
            end = [] if spell(about["max"]) in other["values"] else [spell(about["max"])]
            return {**other, "values": [*other["values"], *end]}
    if "type" in first and "type" in later and first["type"] != later["type"]:
        return first
    return {**later, **first}


def complete(declaration: Declaration) -> Declaration:
    """The declaration in its usual order, TODO where a person must decide."""
    declaration = {key: value for key, value in declaration.items() if key != RANGE}
    kind = declaration.get("type", TODO)
    filled = {"type": kind, **dict.fromkeys(_NEEDED.get(kind, ()), TODO), **declaration}
    return {key: filled[key] for key in sorted(filled, key=_ORDER.index)}


def is_complete(declaration: Declaration) -> bool:
    return TODO not in declaration.values()


def find(findings: Mapping[str, Declaration], column: str) -> Declaration:
    """What a source says of a column: by its exact name, else by the only name that differs in case alone."""
    if column in findings:
        return findings[column]
    alike = [name for name in findings if name.casefold() == column.casefold()]
    return findings[alike[0]] if len(alike) == 1 else {}


def spell(number: Any) -> str:
    """A code as a table would hold it as text: 1.0 is "1"."""
    if isinstance(number, float) and number.is_integer():
        return str(int(number))
    return str(number)


def number(text: Any) -> int | float | None:
    """A number that a source states, None if it does not state one."""
    try:
        value = float(str(text))
    except ValueError:
        return None
    if value != value or value in (float("inf"), float("-inf")):
        return None
    return int(value) if value.is_integer() else value
