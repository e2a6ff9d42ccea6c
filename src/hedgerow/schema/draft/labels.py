"""SPSS, Stata and SAS files: their labels, formats and missing codes. The rows of such a file are not read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import Declaration, Findings, spell

LABELLED = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""Files by their ending, and what reads them."""
_DATETIME = re.compile(r"^(DATETIME|E8601DT|YMDHMS|%TC)", re.IGNORECASE)
_DATE = re.compile(r"^([AEJS]?DATE|MMDDYY|DDMMYY|YYMMDD|E8601DA|%TD)", re.IGNORECASE)
_WHOLE = re.compile(r"^(F|N|COMMA|DOT)\d+(\.0)?$", re.IGNORECASE)


def read_labels(path: Path) -> Findings:
    """Value labels become categories, user-missing codes named missing values, formats the types."""
    about = _metadata(path)
    return {name: _declaration(about, name) for name in about.column_names}


def _metadata(path: Path) -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise OptionError(
            "missing-package", "reading SPSS, Stata and SAS labels needs pyreadstat: pip install 'hedgerow[draft]'."
        ) from None
    try:
        read, options = how_to_read(path)
        return getattr(pyreadstat, read)(str(path), metadataonly=True, **options)[1]
    except Exception:  # the reader's own text could quote the file's content
        raise OptionError("cannot-read", f'"{path.name}" cannot be read as a {path.suffix} file.') from None


def how_to_read(path: Path) -> tuple[str, dict[str, Any]]:
    """The function of pyreadstat that reads a file, and its options: codes that are declared as missing are kept."""
    ending = path.suffix.lower()
    options: dict[str, Any] = {"output_format": "dict"}  # which needs no package beside pyreadstat
    if ending in (".sav", ".zsav", ".dta", ".sas7bdat"):
        options["user_missing"] = True
    catalogue = path.with_suffix(".sas7bcat")
    if ending == ".sas7bdat" and catalogue.exists():
        options["catalog_file"] = str(catalogue)
    return LABELLED[ending], options


def _declaration(about: Any, name: str) -> Declaration:
    labels = about.variable_value_labels.get(name, {})
    missing = _missing(about, name, labels)
    values = {code: label for code, label in labels.items() if spell(code) not in missing}
    kind = _kind(about, name)
    declaration: Declaration = {"missing": {"": "not recorded", **missing} if missing else True}
    scale = about.variable_measure.get(name) == "scale"
    if values and not (scale and kind in ("integer", "number")):
        declaration |= {"type": "category", "values": [spell(code) for code in values]}
        if about.variable_measure.get(name) == "ordinal":
            declaration["ordered"] = True
        return declaration
    declaration["type"] = kind
    if values:
        declaration["special"] = list(values)
    return declaration


def _kind(about: Any, name: str) -> str:
    layout = str(about.original_variable_types.get(name, ""))
    held = str(about.readstat_variable_types.get(name, ""))
    if _DATETIME.match(layout):
        return "datetime"
    if _DATE.match(layout):
        return "date"
    if held == "string":
        return "category"
    return "integer" if held.startswith("int") or _WHOLE.match(layout) else "number"


def _missing(about: Any, name: str, labels: dict[Any, str]) -> dict[str, str]:
    """Codes that the file declares as missing, each with its label; Stata's .a … .z are labelled by their letter."""
    found = {f".{code}": label for code, label in labels.items() if _is_letter(code, about, name)}
    found |= {str(code): labels.get(code, "missing") for code in about.missing_user_values.get(name, [])}
    for span in about.missing_ranges.get(name, []):
        low, high = span["lo"], span["hi"]
        if low == high:
            found[spell(low)] = labels.get(low, "missing")
        elif not isinstance(low, str):
            found |= {spell(code): label for code, label in labels.items() if low <= code <= high}
    return found


def _is_letter(code: Any, about: Any, name: str) -> bool:
    return isinstance(code, str) and len(code) == 1 and about.readstat_variable_types.get(name) != "string"
