"""An IPUMS codebook (.cbk): plain text with a list of variables and, for most of them, their codes and labels.

    Variable      Columns   Len
    SEX           P 5       1
    AGE           P 6-8     3

    SEX		Sex
    1		Male
    2		Female

A block begins with a variable's name and its label, and holds a line for every code. Lines between the blocks, and
variables without codes ("CITYPOP is a 5-digit number"), say nothing of values.
"""

from __future__ import annotations

import re
from pathlib import Path

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import Declaration, Findings, spell

_LISTED = re.compile(r"^\s*([A-Z][A-Z0-9_]*)\s+(?:[HP]\s+)?\d+(?:-\d+)?\s+\d+\b")
_HEAD = re.compile(r"^\s*([A-Z][A-Z0-9_]*)(?:\t+| {2,})\S")
_CODE = re.compile(r"^\s*(-?\d+)(?:\t+| {2,}|\s*=\s*)\S")


def read_ipums(path: Path) -> Findings:
    """The codes of every variable that has some, as whole numbers in the order of the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = path.read_text(encoding="cp1252")
    listed = {found[1] for line in text.splitlines() if (found := _LISTED.match(line))}
    codes: dict[str, list[str]] = {}
    variable: str | None = None
    for line in text.splitlines():
        if _LISTED.match(line):
            variable = None
        elif code := _CODE.match(line):
            if variable is not None:
                codes.setdefault(variable, []).append(spell(int(code[1])))
        elif head := _HEAD.match(line):
            variable = head[1] if not listed or head[1] in listed else None
    if not codes:
        raise OptionError("empty-codebook", f'"{path.name}" holds no variable with codes, as an IPUMS codebook does.')
    return {name: _declaration(found) for name, found in codes.items()}


def _declaration(codes: list[str]) -> Declaration:
    return {"type": "category", "values": list(dict.fromkeys(codes)), "dtype": "integer"}
