"""Codes that belong to families of which only one can occur, such as the cities of one state.

The winner of Match 3 knew the cities of every state, but not the state: the noisy counts of all cities tell it.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.errors import OptionError, listing

if TYPE_CHECKING:
    from hedgerow.schema import Schema

Families = tuple[tuple[str, tuple[tuple[int | str, str], ...]], ...]
"""For a column: its codes, or (as text) its values, each with the family that it belongs to."""


def read_families(value: Any) -> Families:
    """`COLUMN:FILE`, where the file is a CSV with the heads code and family, or JSON from values to families.

    Codes count from 0 in the order of the declaration. Values are as the table holds them.
    """
    column, colon, name = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon:
        raise OptionError("bad-support", "support takes COLUMN:FILE, such as CITY:cities.json.")
    if name.lower().endswith(".json"):
        from hedgerow.schema.draft.specs import read_families_file

        listed = read_families_file(Path(name))
        if listed is None:
            raise OptionError(
                "bad-support-file",
                f'support: "{name}" must be JSON that maps codes to families, such as {{"510": "Ohio"}}, or families '
                "to lists of codes.",
            )
        return ((column, listed),)
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


def codes_of(families: Families, schema: Schema) -> Families:
    """The families with every value as the code that the schema gives it; values that it does not list are left out."""
    import pyarrow as pa

    found = []
    for name, members in families:
        values = [str(value) for value, _ in members if isinstance(value, str)]
        if not values:
            found.append((name, members))
            continue
        if name not in schema.columns:
            raise OptionError(
                "unknown-column", f'support: unknown column "{name}"; columns: {listing(schema.columns)}.'
            )
        encoded = schema.columns[name].encode(pa.array(values, pa.string()))
        coded = {
            value: code
            for value, code, outside in zip(values, encoded.codes[0].tolist(), encoded.outside.tolist(), strict=True)
            if not outside
        }
        if not coded:
            raise OptionError("bad-support-file", f'support: "{name}" declares none of the values that the file lists.')
        found.append((name, tuple((coded[str(value)], family) for value, family in members if str(value) in coded)))
    return tuple(found)


def check_codes(attribute: Attribute, members: Sequence[tuple[int | str, str]]) -> None:
    """Refuses codes that the attribute does not have, before anything is spent."""
    if any(isinstance(code, str) for code, _ in members):
        raise OptionError(
            "values-not-coded", f'support: the values of "{attribute.name}" were not looked up in a schema.'
        )
    strange = [code for code, _ in members if not 0 <= int(code) < attribute.size]
    if strange:
        raise OptionError(
            "code-out-of-range",
            f'support: the codes of "{attribute.name}" lie between 0 and {attribute.size - 1}, got {strange[0]}.',
        )


def supported(measurement: Measurement, members: Sequence[tuple[int | str, str]]) -> IntArray | None:
    """A map that keeps the codes of the family that stands out most and of none, and merges the others.

    A family stands out by its noisy count in standard deviations. None where nothing would be merged.
    """
    size = measurement.query.cells
    families: dict[str, list[int]] = {}
    for code, family in members:
        families.setdefault(family, []).append(int(code))
    found = max(families.values(), key=lambda codes: measurement.values[codes].sum() / np.sqrt(len(codes)), default=[])
    merged = np.zeros(size, dtype=bool)
    merged[[int(code) for code, _ in members]] = True
    merged[found] = False
    if merged.sum() < 2:
        return None
    mapping: IntArray = np.where(merged, np.count_nonzero(~merged), np.cumsum(~merged) - 1)
    return mapping
