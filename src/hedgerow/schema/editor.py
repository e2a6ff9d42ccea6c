"""A JSON Schema of the format, so that editors can complete and check a schema file while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DISCOVERED = ("discovered", "leaves", "times", "endings")
"""Keys that no person writes."""
_SCALAR = {"type": ["string", "number", "boolean", "null"]}


def editor_schema(generated: dict[str, Any], invented: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The generated description, adapted to what editors make of YAML: there `NO` or `1` may stand for text.

    `invented` describes the columns that are no part of `columns` once a file is read.
    """
    kinds = generated["$defs"]
    kinds |= {kind["title"]: kind for kind in invented}
    for name, kind in kinds.items():
        for written in DISCOVERED:
            kind.get("properties", {}).pop(written, None)
        if name not in ("Group", "File", "Weight", "Total"):
            kind["required"] = ["type", *kind.get("required", [])]
    kinds["Category"]["properties"]["values"]["anyOf"][1]["items"] = _SCALAR
    kinds["Group"]["properties"]["allowed"]["anyOf"][1]["items"]["items"] = _SCALAR
    for name in ("Date", "Datetime"):
        for bound in ("min", "max"):
            kinds[name]["properties"][bound] = {"type": "string", "format": "date"}
    columns = generated["properties"]["columns"]["additionalProperties"]
    columns["oneOf"] += [{"$ref": f"#/$defs/{name}"} for name in ("Codelist", *(kind["title"] for kind in invented))]
    columns.pop("discriminator", None)
    kinds["Codelist"] = _codelist(kinds["Category"])
    generated["properties"]["codelists"] = {
        "description": "Lists of values that several columns share, by name.",
        "type": "object",
        "additionalProperties": {"type": "array", "items": _SCALAR},
    }
    sizes = {
        "description": "The domain of a coded table: column → number of codes.",
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 1},
    }
    whole = {key: value for key, value in generated.items() if key != "$defs"}
    return {"$schema": DIALECT, "title": "Hedgerow schema", "anyOf": [whole, sizes], "$defs": kinds}


def _codelist(category: dict[str, Any]) -> dict[str, Any]:
    """A category whose values stand in a codelist."""
    properties = {key: value for key, value in category["properties"].items() if key != "values"}
    return {
        **category,
        "title": "Codelist",
        "description": "A category with the values of a shared list.",
        "properties": {**properties, "codelist": {"type": "string"}},
        "required": ["codelist"],
    }
