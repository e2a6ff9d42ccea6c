"""Descriptors in JSON: Frictionless, CSVW, JSON Schema, SDV's metadata, a contest's own files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.schema.draft.declaration import Declaration, Findings, number, spell
from hedgerow.schema.draft.specs import families_in, is_specification, read_cities, read_specification

_FRICTIONLESS = {
    "string": "category", "integer": "integer", "number": "number", "boolean": "boolean", "date": "date",
    "datetime": "datetime", "year": "integer",
}  # fmt: skip
_CSVW = {
    "string": "category", "token": "category", "integer": "integer", "int": "integer", "long": "integer",
    "short": "integer", "byte": "integer", "nonNegativeInteger": "integer", "positiveInteger": "integer",
    "unsignedInt": "integer", "unsignedByte": "integer", "unsignedShort": "integer", "gYear": "integer",
    "number": "number", "decimal": "number", "double": "number", "float": "number", "boolean": "boolean",
    "date": "date", "datetime": "datetime", "dateTime": "datetime",
}  # fmt: skip
_ALTERNATIVES = re.compile(r"^\^?\(?([^\\()\[\]{}.*+?^$|]+(?:\|[^\\()\[\]{}.*+?^$|]+)+)\)?\$?$")


def read_descriptor(path: Path) -> Findings:
    """The columns of whichever of the kinds this is."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise OptionError("not-json", f'"{path.name}" is not JSON.') from None
    if isinstance(data, dict):
        if _is_sdv(data):
            return _sdv(data)
        if "resources" in data or "fields" in data:
            return _frictionless(data)
        if "tables" in data or "tableSchema" in data:
            return _csvw(data)
        if "properties" in data:
            return read_json_schema(data)
        if is_specification(data):
            return read_specification(data, path.name)
    if families_in(data) is not None:
        return read_cities(data)
    raise OptionError(
        "unknown-descriptor",
        f'"{path.name}" is no descriptor that can be read: a Frictionless one has `resources` or `fields`, '
        "a CSVW one `tableSchema` or `tables`, metadata of SDV `columns` and `sdtype`, a JSON Schema `properties`; a "
        "specification says of every column its type and its max, a file of cities the state of every code.",
    )


def _frictionless(data: dict[str, Any]) -> Findings:
    found: Findings = {}
    for resource in data.get("resources", [{"schema": data}]):
        schema = resource.get("schema", {})
        if isinstance(schema, dict):
            for field in schema.get("fields", []):
                marks = field.get("missingValues", schema.get("missingValues", [""]))
                found.setdefault(str(field.get("name")), _field(field, marks))
    return found


def _field(field: dict[str, Any], marks: list[Any]) -> Declaration:
    limits = field.get("constraints", {})
    declaration: Declaration = {}
    kind = _FRICTIONLESS.get(str(field.get("type", "")))
    if kind:
        declaration["type"] = kind
    values = limits.get("enum") or field.get("categories")
    if values and kind != "boolean":
        listed = [value.get("value") if isinstance(value, dict) else value for value in values]
        declaration |= {"type": "category", "values": [spell(value) for value in listed]}
        if field.get("categoriesOrdered"):
            declaration["ordered"] = True
    elif kind in ("integer", "number", "date", "datetime"):
        declaration |= _bounds(kind, limits.get("minimum"), limits.get("maximum"))
    if not limits.get("required"):
        declaration["missing"] = _marks(marks)
    return declaration


def _csvw(data: dict[str, Any]) -> Findings:
    found: Findings = {}
    for table in data.get("tables", [data]):
        for column in table.get("tableSchema", {}).get("columns", []):
            title = column.get("titles", column.get("name"))
            title = next(iter(title.values())) if isinstance(title, dict) else title
            title = title[0] if isinstance(title, list) else title
            found.setdefault(str(title), _csvw_column(column))
    return found


def _csvw_column(column: dict[str, Any]) -> Declaration:
    datatype = column.get("datatype", {})
    datatype = {"base": datatype} if isinstance(datatype, str) else datatype
    declaration: Declaration = {}
    kind = _CSVW.get(str(datatype.get("base", "string" if datatype else "")))
    if kind:
        declaration["type"] = kind
    low = datatype.get("minimum", datatype.get("minInclusive"))
    high = datatype.get("maximum", datatype.get("maxInclusive"))
    if kind == "category" and (listed := _ALTERNATIVES.match(str(datatype.get("format", "")))):
        declaration["values"] = listed[1].split("|")
    elif kind in ("integer", "number", "date", "datetime"):
        declaration |= _bounds(kind, low, high)
    if not column.get("required"):
        null = column.get("null", [""])
        declaration["missing"] = _marks(null if isinstance(null, list) else [null])
    return declaration


def _is_sdv(data: dict[str, Any]) -> bool:
    return any("sdtype" in about for table in _sdv_tables(data) for about in table.values())


def _sdv_tables(data: dict[str, Any]) -> list[dict[str, dict[str, Any]]]:
    tables = data.get("tables")
    several = tables.values() if isinstance(tables, dict) else [data]
    found = [table.get("columns") for table in several if isinstance(table, dict)]
    return [
        {str(name): about for name, about in columns.items() if isinstance(about, dict)}
        for columns in found
        if isinstance(columns, dict)
    ]


def _sdv(data: dict[str, Any]) -> Findings:
    """SDV's metadata says of a column what it is, and of a moment how it is written; domains it leaves to the rows."""
    found: Findings = {}
    for table in _sdv_tables(data):
        for name, about in table.items():
            found.setdefault(name, _sdv_column(about))
    return found


def _sdv_column(about: dict[str, Any]) -> Declaration:
    kind = str(about.get("sdtype"))
    if kind == "numerical":
        whole = "int" in str(about.get("computer_representation", "")).lower()
        return {"type": "integer" if whole else "number"}
    if kind == "datetime":
        form = str(about.get("datetime_format", ""))
        timed = not form or re.search("%[HIMSp]", form)
        plain = form in ("", "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
        return {"type": "datetime" if timed else "date", **({} if plain else {"format": form})}
    known = {"categorical": "category", "boolean": "boolean", "id": "id"}
    return {"type": known[kind]} if kind in known else {}


def read_json_schema(data: dict[str, Any]) -> Findings:
    """The properties of a JSON Schema, such as a Pydantic model gives."""
    return {name: _property(about, data.get("$defs", {})) for name, about in data["properties"].items()}


def _property(about: dict[str, Any], definitions: dict[str, Any]) -> Declaration:
    options = [_resolve(option, definitions) for option in about.get("anyOf", [about])]
    real = [option for option in options if option.get("type") != "null"]
    declaration: Declaration = {"missing": True} if len(real) < len(options) else {}
    if not real:
        return declaration
    option = next((each for each in real if each.get("type") in ("integer", "number")), real[0])
    kind = {"integer": "integer", "number": "number", "boolean": "boolean", "string": "category"}.get(
        str(option.get("type"))
    )
    if option.get("format") in ("date", "date-time"):
        kind = "date" if option["format"] == "date" else "datetime"
    values = option.get("enum") or ([option["const"]] if "const" in option else None)
    if values:
        return {**declaration, "type": "category", "values": [spell(value) for value in values if value is not None]}
    if kind:
        declaration["type"] = kind
    if kind in ("integer", "number"):
        step = 1 if kind == "integer" else 0
        low, high = number(option.get("exclusiveMinimum")), number(option.get("exclusiveMaximum"))
        low = number(option.get("minimum")) if low is None else low + step
        high = number(option.get("maximum")) if high is None else high - step
        declaration |= _bounds(kind, low, high)
    return declaration


def _resolve(option: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = str(option.get("$ref", ""))
    found = definitions.get(reference.rpartition("/")[2], option)
    return found if isinstance(found, dict) else option


def _bounds(kind: str, low: Any, high: Any) -> Declaration:
    """The bounds that are stated, as the kind writes them."""
    stated = {"min": low, "max": high}
    if kind in ("integer", "number"):
        stated = {key: number(bound) for key, bound in stated.items() if bound is not None}
    return {key: bound for key, bound in stated.items() if bound is not None}


def _marks(marks: list[Any]) -> bool | dict[str, str]:
    named = [str(mark) for mark in marks if str(mark)]
    return dict.fromkeys(("", *named), "missing") if named else True
