"""A codebook in CSV: one line for each column, or one for each value of a column. docs/use/schema.md has the format."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from hedgerow.errors import OptionError, listing
from hedgerow.schema.draft.declaration import Declaration, Findings, number

_NAMES = ("name", "column", "variable", "field")
_VALUES = ("value", "code")
_TRUE = ("true", "yes", "y", "1", "x")
_LABELLED = re.compile(r"^([^=<>!\s]+)\s*=\s*(.*)$")
_KINDS = {
    "int": "integer", "integer": "integer", "whole": "integer", "float": "number", "double": "number",
    "numeric": "number", "number": "number", "decimal": "number", "real": "number", "continuous": "number",
    "bool": "boolean", "boolean": "boolean", "logical": "boolean", "date": "date", "datetime": "datetime",
    "timestamp": "datetime", "code": "code", "category": "category", "categorical": "category", "nominal": "category",
    "factor": "category", "string": "category", "text": "category", "character": "category", "ordinal": "category",
}  # fmt: skip


def read_codebook(path: Path) -> Findings:
    """Every column that the codebook names, with what its lines say together."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise OptionError("not-utf8", f'the codebook "{path.name}" is not UTF-8 text.') from None
    first = text.partition("\n")[0]
    delimiter = max("\t;,", key=first.count)
    lines = csv.DictReader(text.splitlines(), delimiter=delimiter)
    heads = {(head or "").strip().lower(): head for head in lines.fieldnames or []}
    name_head = next((heads[name] for name in _NAMES if name in heads), None)
    if name_head is None:
        raise OptionError(
            "codebook-heads",
            f'the codebook "{path.name}" needs a column called {" or ".join(_NAMES)}; it has {listing(heads)}.',
        )
    findings: Findings = {}
    for line in lines:
        cells = {head: (line.get(original) or "").strip() for head, original in heads.items()}
        name = (line.get(name_head) or "").strip()
        if name:
            _add(findings.setdefault(name, {}), cells)
    return {name: _finish(declaration) for name, declaration in findings.items()}


def _add(declaration: Declaration, cells: dict[str, str]) -> None:
    """What one line adds to a column."""
    kind = cells.get("type", "").lower()
    if kind:
        declaration.setdefault("type", _KINDS.get(kind, kind))
        if kind == "ordinal":
            declaration["ordered"] = True
    for key in ("min", "max", "bins", "size"):
        if cells.get(key):
            stated = number(cells[key])
            declaration.setdefault(key, cells[key] if stated is None else stated)
    if cells.get("step"):
        declaration.setdefault("step", cells["step"])
    if cells.get("ordered", "").lower() in _TRUE:
        declaration["ordered"] = True
    if cells.get("other", "").lower() in _TRUE:
        declaration["other"] = True
    if cells.get("values"):
        declaration.setdefault("values", [value for value, _ in _items(cells["values"])])
    if cells.get("missing"):
        _add_missing(declaration, cells)
    for head in _VALUES:
        if cells.get(head) and cells.get("missing", "").lower() not in _TRUE:
            declaration.setdefault("values", []).append(cells[head])


def _add_missing(declaration: Declaration, cells: dict[str, str]) -> None:
    """`yes` beside a value marks that value; `yes` beside a column says that it can be empty; else marks are listed."""
    said = cells["missing"]
    single = next((cells[head] for head in _VALUES if cells.get(head)), None)
    if said.lower() not in (*_TRUE, "no", "false", "n", "0"):
        declaration["missing"] = {mark: meaning or "missing" for mark, meaning in _items(said)}
    elif said.lower() in _TRUE and single is not None:
        marks = declaration.get("missing")
        known = marks if isinstance(marks, dict) else {}
        declaration["missing"] = {**known, single: cells.get("label") or "missing"}
    elif said.lower() in _TRUE:
        declaration.setdefault("missing", True)


def _items(text: str) -> list[tuple[str, str]]:
    """`1=yes|2=no`, or `yes|no`: values with their labels. A value such as <=50K is not mistaken for a label."""
    separator = "|" if "|" in text else ";" if ";" in text else ","
    items = []
    for part in filter(None, (part.strip() for part in text.split(separator))):
        labelled = _LABELLED.match(part)
        items.append((labelled[1], labelled[2]) if labelled else (part, ""))
    return items


def _finish(declaration: Declaration) -> Declaration:
    """A column with listed values and no type is a category; a type that takes no values does not keep them."""
    if "values" in declaration:
        declaration.setdefault("type", "category")
        if declaration["type"] != "category":
            declaration.pop("values")
    return declaration
