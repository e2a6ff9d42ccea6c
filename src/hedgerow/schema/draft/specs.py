"""The files of NIST's 2018 challenge that say what a column may hold: the specification, and cities with their states.

A specification is a JSON object from a column's name to what it holds: `{"SEX": {"type": "enum", "maxval": 2}}`. Its
type is enum, integer, float, date or string; the bounds are called `max` or `maxval`, `min` or `minval`; `count` says
how many codes there are; `optional` that nothing may stand there. A file of cities maps codes to states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import RANGE, Declaration, Findings, number, spell

_KEYS = {"type", "max", "maxval", "min", "minval", "count", "optional"}
_WHOLE = ("enum", "integer", "int", "code", "categorical")
_REAL = ("float", "numeric", "number", "real", "double")
CITY = "CITY"


def is_specification(data: Any) -> bool:
    """Whether a document says of each column its type and bounds, and nothing that a specification does not say."""
    return (
        isinstance(data, Mapping)
        and bool(data)
        and all(isinstance(about, Mapping) and about and about.keys() <= _KEYS for about in data.values())
    )


def read_specification(data: Mapping[str, Any], name: str) -> Findings:
    """The range of every column. A codebook that lists a column's codes says more, whichever comes first."""
    return {str(column): _range(str(column), about, name) for column, about in data.items()}


def _range(column: str, about: Mapping[str, Any], name: str) -> Declaration:
    kind = str(about.get("type", "enum")).lower()
    declaration: Declaration = {"missing": True} if about.get("optional") is True else {}
    if kind in ("string", "text"):
        return {"type": "category", **declaration}
    if kind == "date":
        return {"type": "date", **declaration}
    if kind not in _WHOLE + _REAL:
        raise OptionError("bad-specification", f'"{name}": the type "{kind}" of "{column}" is not known.')
    low = number(about.get("min", about.get("minval", 0)))
    high = number(about.get("max", about.get("maxval")))
    if high is None and (count := number(about.get("count"))) is not None:
        high = count - 1
    if low is None or high is None or low > high:
        raise OptionError("bad-specification", f'"{name}": "{column}" needs a max (or maxval, or count).')
    if kind in _REAL:
        return {"type": "number", "min": low, "max": high, **declaration}
    return {"type": "integer", "min": int(low), "max": int(high), RANGE: True, **declaration}


def families_in(data: Any) -> dict[str, str] | None:
    """Codes, each with its family, of a document that maps codes to states, or states to codes; None of another."""
    if isinstance(data, Mapping) and len(data) == 1 and isinstance(inner := next(iter(data.values())), Mapping):
        data = inner
    if (
        isinstance(data, list)
        and data
        and all(isinstance(row, Mapping) and {"code", "state"} <= row.keys() for row in data)
    ):
        return {_code(row["code"]): str(row["state"]) for row in data}
    if not isinstance(data, Mapping) or not data:
        return None
    if all(isinstance(codes, list) and codes for codes in data.values()):
        return {_code(code): str(state) for state, codes in data.items() for code in codes}
    whole = all(number(code) is not None and isinstance(state, str | int) for code, state in data.items())
    return {_code(code): str(state) for code, state in data.items()} if whole else None


def cities_column(data: Any) -> str:
    """The column that a file of cities speaks of: the one that it names, else CITY."""
    named = isinstance(data, Mapping) and len(data) == 1 and isinstance(next(iter(data.values())), Mapping)
    return str(next(iter(data))) if named else CITY


def read_cities(data: Any) -> Findings:
    """The codes of all cities."""
    codes = sorted(families_in(data) or {}, key=lambda code: (number(code) is None, number(code) or 0, code))
    whole = all(isinstance(number(code), int) for code in codes)
    return {cities_column(data): {"type": "category", "values": codes, **({"dtype": "integer"} if whole else {})}}


def read_families_file(path: Path) -> tuple[tuple[str, str], ...] | None:
    """Codes as the table holds them, each with its family; None where the file holds none."""
    import json

    try:
        found = families_in(json.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        return None
    return None if not found else tuple(found.items())


def _code(value: Any) -> str:
    stated = number(value)
    return str(value) if stated is None else spell(stated)
