"""Codes that belong to families of which only one can occur, such as the cities of one state.

The winner of Match 3 knew the cities of every state, but not the state: the noisy counts of all cities tell it.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.errors import OptionError

Families = tuple[tuple[str, tuple[tuple[int, str], ...]], ...]
"""For a column: its codes, each with the family that it belongs to."""


def read_families(value: Any) -> Families:
    """`COLUMN:FILE`, where the file is a CSV with the heads code and family."""
    column, colon, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon:
        raise OptionError("bad-support", "support takes COLUMN:FILE, such as CITY:cities.csv.")
    try:
        with Path(name).open(newline="", encoding="utf-8-sig") as file:
            members = tuple((int(row["code"]), row["family"]) for row in csv.DictReader(file))
    except (OSError, UnicodeDecodeError):
        raise OptionError("cannot-read", f'support: "{name}" is not a file that can be read as text.') from None
    except (KeyError, TypeError, ValueError):
        members = ()
    if not members:
        raise OptionError(
            "bad-support-file",
            f'support: "{name}" must be a CSV with the heads code (a whole number) and family.',
        )
    twice = [code for code, count in Counter(code for code, _ in members).items() if count > 1]
    if twice:
        raise OptionError("bad-support-file", f'support: "{name}" lists code {twice[0]} more than once.')
    return ((column, members),)


def check_codes(attribute: Attribute, members: Sequence[tuple[int, str]]) -> None:
    """Refuses codes that the attribute does not have, before anything is spent."""
    strange = [code for code, _ in members if not 0 <= code < attribute.size]
    if strange:
        raise OptionError(
            "code-out-of-range",
            f'support: the codes of "{attribute.name}" lie between 0 and {attribute.size - 1}, got {strange[0]}.',
        )


def supported(measurement: Measurement, members: Sequence[tuple[int, str]]) -> IntArray | None:
    """A map that keeps the codes of the family that stands out most and of none, and merges the others.

    A family stands out by its noisy count in standard deviations. None where nothing would be merged.
    """
    size = measurement.query.cells
    families: dict[str, list[int]] = {}
    for code, family in members:
        families.setdefault(family, []).append(code)
    found = max(families.values(), key=lambda codes: measurement.values[codes].sum() / np.sqrt(len(codes)), default=[])
    merged = np.zeros(size, dtype=bool)
    merged[[code for code, _ in members]] = True
    merged[found] = False
    if merged.sum() < 2:
        return None
    mapping: IntArray = np.where(merged, np.count_nonzero(~merged), np.cumsum(~merged) - 1)
    return mapping
