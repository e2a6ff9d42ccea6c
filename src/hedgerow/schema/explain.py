"""Sentences for declarations that cannot be used: where, which key, what is known, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from hedgerow.errors import Fault, SchemaError, listing, suggestion
from hedgerow.schema.document import Lines, Path
from hedgerow.schema.editor import DISCOVERED
from hedgerow.schema.file import File


class Said(NamedTuple):
    """A fault in words, and the key that it is about."""

    code: str
    sentence: str
    path: Path


def schema_error(
    error: ValidationError, kinds: Mapping[str, type[BaseModel]], top: type[BaseModel], base: Path = ()
) -> SchemaError:
    """One sentence for the first fault (a misspelt key before anything that follows from it).

    `base` is where in the schema the declaration stands that was checked.
    """
    faults = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    code, message, path = _sentence(faults[0], kinds, top, base)
    if len(faults) > 1:
        message += f" ({len(faults) - 1} more after this one.)"
    found = SchemaError(code, message)
    found.path = path  # type: ignore[attr-defined]
    return found


def located(error: SchemaError, name: str, lines: Lines) -> SchemaError:
    """The same error with the file's name and the line of the key that it speaks of."""
    path: Path = getattr(error, "path", ())
    while path and path not in lines:
        path = path[:-1]
    where = f"{name}, line {lines[path]}" if path else name
    return SchemaError(error.code, f"{where}: {error}")


def key_error(code: str, path: Path, message: str, kind: type[SchemaError] = SchemaError) -> SchemaError:
    """An error about one key."""
    error = kind(code, f"{spelled(path)}: {message}")
    error.path = path  # type: ignore[attr-defined]
    return error


def spelled(path: Path) -> str:
    return ".".join(map(str, path)) or "the schema"


def _sentence(fault: Any, kinds: Mapping[str, type[BaseModel]], top: type[BaseModel], base: Path) -> Said:
    location: Path = (*base, *fault["loc"])
    model = top
    if len(location) > 2 and location[0] == "columns" and location[2] in kinds:
        model = kinds[str(location[2])]
        location = (*location[:2], *location[3:])
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        key, known = str(location[-1]), _keys(model, location)
        return Said(
            "unknown-key",
            f'{spelled(location[:-1])}: unknown key "{key}"; keys: {listing(known)}.{suggestion(key, known)}',
            location,
        )
    if kind == "missing":
        return Said("missing-key", f'{spelled(location[:-1])}: the key "{location[-1]}" is needed.', location[:-1])
    if kind == "union_tag_not_found":
        return Said(
            "missing-type", f'{spelled(location)}: the key "type" is needed; types: {listing(kinds)}.', location
        )
    if kind == "union_tag_invalid":
        tag = str(context.get("tag", ""))
        return Said(
            "unknown-type",
            f'{spelled(location)}.type: unknown type "{tag}"; types: {listing(kinds)}.{suggestion(tag, kinds)}',
            location,
        )
    if kind == "literal_error":
        return Said("not-a-choice", f"{spelled(location)}: must be one of {context['expected']}.", location)
    problem = context.get("error")
    text = str(problem) if kind == "value_error" else str(fault["msg"])
    code = problem.code if isinstance(problem, Fault) else "bad-declaration"
    return Said(code, f"{spelled(location)}{_joint(location, text)}{text}.", _deeper(location, text))


def _keys(model: type[BaseModel], location: Path) -> list[str]:
    if location[0] == "groups":
        return ["columns", "allowed", "source"]
    if location[0] == "file":
        return list(File.model_fields)
    if location[0] == "weight":
        return ["column", "max", "decimals", "draw"]
    if location[0] == "totals":
        return ["table", "columns", "count"]
    names = [name for name in model.model_fields if name not in DISCOVERED]
    return sorted(names, key=lambda name: (name != "type", name in ("missing", "other", "source", "strip")))


def _joint(location: Path, text: str) -> str:
    """A check of a whole column names its key first: columns.age + min: … reads columns.age.min: …"""
    key = text.partition(":")[0]
    return "." if location and key.isidentifier() and ":" in text else ": "


def _deeper(location: Path, text: str) -> Path:
    key = text.partition(":")[0]
    return (*location, key) if key.isidentifier() else location
