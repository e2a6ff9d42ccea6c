"""`parameters.json` of NIST's 2020 challenge: a schema and the runs that were asked for, in one file.

Its `schema` says of each column a dtype and either the list of `values` or `min` and `max`; a column with none of them
names a person. Its `runs` say ε, δ, how many rows may come out and how many a person may have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import SchemaError
from hedgerow.schema.document import read_json
from hedgerow.schema.reading import as_number, as_whole

MOST_CELLS = 100
"""Wider ranges without bins of their own get so many equal ones."""
_KEYS = {"dtype", "kind", "values", "codes", "min", "max", "bins", "description"}


@dataclass(frozen=True)
class ContestRun:
    """One release that the file asks for."""

    epsilon: float
    delta: float
    most_rows: int | None


def is_parameters(data: Any) -> bool:
    """Whether a document is such a file."""
    return isinstance(data, Mapping) and isinstance(data.get("runs"), list) and isinstance(data.get("schema"), Mapping)


def schema_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The file's columns as a schema of ours."""
    columns: dict[str, Any] = {}
    persons = []
    for name, about in data["schema"].items():
        if not isinstance(about, Mapping) or "dtype" not in about:
            raise SchemaError(
                "column-incomplete",
                f'schema.{name}: a column needs a dtype, and values or min and max (or is the "id").',
            )
        strange = [key for key in about if key not in _KEYS]
        if strange:
            raise SchemaError("unknown-key", f'schema.{name}: unknown key "{strange[0]}".')
        if about.get("kind") == "id" or not {"values", "min", "max"} & set(about):
            persons.append(name)
        else:
            columns[name] = _column(name, about)
    if len(persons) > 1:
        raise SchemaError(
            "two-persons", f'schema.{persons[1]}: "{persons[0]}" already names a person; give values, or min and max.'
        )
    schema: dict[str, Any] = {"columns": columns}
    if persons:
        bounds = {_whole(run, "max_records_per_individual") for run in data["runs"]} - {None}
        if len(bounds) > 1:
            raise SchemaError("runs-differ", "runs: max_records_per_individual must be the same in all runs.")
        schema |= {"person": persons[0], "max_rows_per_person": next(iter(bounds), 1)}
    return schema


def runs(path: str | Path) -> list[ContestRun]:
    """The runs that a parameters file asks for; none where the file is of another kind."""
    path = Path(path)
    if path.suffix.lower() != ".json" or not path.is_file():
        return []
    data = read_json(path.read_text(encoding="utf-8-sig"), path.name)[0]
    if not is_parameters(data):
        return []
    found = []
    for index, run in enumerate(data["runs"]):
        try:
            found.append(ContestRun(float(run["epsilon"]), float(run["delta"]), _whole(run, "max_records")))
        except (KeyError, TypeError, ValueError):
            raise SchemaError("bad-run", f"runs.{index}: a run needs epsilon and delta, both numbers.") from None
    return found


def _column(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    if "values" in about:
        return {"type": "category", "values": list(about["values"])} | _dtype(about)
    if not {"min", "max"} <= set(about):
        raise SchemaError("range-incomplete", f"schema.{name}: a range needs both min and max.")
    kind = "number" if str(about["dtype"]).startswith("float") else "integer"
    column = {"type": kind, "min": about["min"], "max": about["max"]}
    if "bins" in about:
        return column | {"bins": about["bins"]}
    if kind == "number" or _span(name, about) > MOST_CELLS:
        return column | {"bins": MOST_CELLS}
    return column


def _dtype(about: Mapping[str, Any]) -> dict[str, Any]:
    """What the values come back as, where they are numbers as the dtype says."""
    said = str(about["dtype"]).lower()
    kind = "integer" if said.startswith(("int", "uint")) else "number" if said.startswith("float") else "text"
    if kind == "text" or not all(map(_is_number, about["values"])):
        return {}
    return {"dtype": kind}


def _is_number(value: Any) -> bool:
    try:
        as_number(value)
    except ValueError:
        return False
    return True


def _span(name: str, about: Mapping[str, Any]) -> int:
    try:
        return int(about["max"]) - int(about["min"]) + 1
    except (TypeError, ValueError):
        raise SchemaError(
            "not-whole", f"schema.{name}: min and max must be whole numbers for an integer dtype."
        ) from None


def _whole(run: Any, key: str) -> int | None:
    """A whole number of a run, None where it is not given."""
    value = run.get(key) if isinstance(run, Mapping) else None
    try:
        return None if value is None else as_whole(value)
    except ValueError as problem:
        raise SchemaError("bad-run", f"runs: {key} {problem}.") from None
