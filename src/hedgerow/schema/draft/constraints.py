"""Rules that public sources state: CHECK and FOREIGN KEY of SQL, if/then/else of JSON Schema, constraints of SDV.

Each becomes what the key `rules` holds. Whether conditions can say it is decided by reading it (`drafting`); what they
cannot, and what a person must look up, is a line of the draft.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from hedgerow.schema.conditions.language import identifier, literal
from hedgerow.schema.draft.catalogue import read_checks, read_references

Rule: TypeAlias = str | dict[str, str]


@dataclass
class Stated:
    """Rules, and what may become one by a person's hand."""

    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def join(self, other: Stated) -> None:
        self.rules += other.rules
        self.notes += other.notes


def read_constraints(source: str) -> Stated:
    """What a source says of several columns together; nothing of a source of another kind."""
    path = Path(source)
    if source.lower().endswith(".sql"):
        keys = [_reference(columns, table, others) for columns, table, others in read_references(path)]
        return Stated(list(read_checks(path)), [key for key in keys if key])
    if not source.lower().endswith(".json"):
        return Stated()
    data = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(data, Mapping):
        return Stated()
    found = Stated(list(_conditionals(data, data.get("required", ()))))
    tables = [data, *(each for each in _mapping(data.get("tables")).values() if isinstance(each, Mapping))]
    for about in (about for table in tables for about in _listed(table.get("constraints"))):
        found.join(_of_sdv(about))
    for resource in _listed(data.get("resources", [{"schema": data}])):
        for key in _listed(_mapping(resource.get("schema")).get("foreignKeys")):
            said = _mapping(key.get("reference"))
            found.notes.append(
                _reference(_names(key.get("fields")), str(said.get("resource", "")), _names(said.get("fields")))
            )
    found.notes = [note for note in found.notes if note]
    return found


def _reference(columns: Sequence[str], table: str, others: Sequence[str]) -> str:
    """A foreign key of several columns says what goes together, in a table that only a person can give."""
    if len(columns) < 2:
        return ""
    looked_up = f"{{columns: [{', '.join(columns)}], lookup: {table}.csv}}"
    return f"a foreign key: {looked_up}, a public table of {', '.join(others)},"


# ------------------------------------------------------------ JSON Schema


def _conditionals(schema: Mapping[str, Any], required: Sequence[str]) -> Iterator[Rule]:
    """`if`, `then` and `else`, here and in `allOf`."""
    for each in (schema, *_listed(schema.get("allOf"))):
        when = _holds(_mapping(each.get("if")), required, surely=True)
        if when is None:
            continue
        for key, condition in (("then", when), ("else", f"NOT ({when})")):
            follows = _holds(_mapping(each.get(key)), required, surely=False)
            if follows:
                yield {"when": condition, "then": follows}


def _holds(schema: Mapping[str, Any], required: Sequence[str], surely: bool) -> str | None:
    """A condition that is true of a row that the schema accepts; None where it says nothing that can be read.

    A property that is not there is accepted. `surely`: the condition is never NULL, as `if` is never.
    """
    parts = []
    needed = _names(schema.get("required"))
    for name, about in _mapping(schema.get("properties")).items():
        said = _of_property(identifier(str(name)), _mapping(about))
        if said is None:
            return None
        if surely and name in needed:
            said = f"{identifier(str(name))} IS NOT NULL AND {said}"
        elif surely and name not in required:
            said = f"{identifier(str(name))} IS NULL OR {said}"
        parts.append(said)
    parts += [f"{identifier(name)} IS NOT NULL" for name in needed if name not in _mapping(schema.get("properties"))]
    for key, word in (("allOf", " AND "), ("anyOf", " OR ")):
        inner = [_holds(_mapping(each), required, surely) for each in _listed(schema.get(key))]
        if None in inner:
            return None
        parts += [word.join(f"({each})" for each in inner)] if inner else []
    if "not" in schema:
        inside = _holds(_mapping(schema["not"]), required, surely)
        if inside is None:
            return None
        parts.append(f"NOT ({inside})")
    return _together(parts)


def _of_property(name: str, about: Mapping[str, Any]) -> str | None:
    parts = []
    if "const" in about:
        parts.append(f"{name} IS NULL" if about["const"] is None else f"{name} = {_constant(about['const'])}")
    if values := _listed_values(about.get("enum")):
        parts.append(f"{name} IN ({', '.join(map(_constant, values))})")
    for key, sign in (("minimum", ">="), ("maximum", "<="), ("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if isinstance(about.get(key), int | float) and not isinstance(about[key], bool):
            parts.append(f"{name} {sign} {_constant(about[key])}")
    if about.get("type") == "null":
        parts.append(f"{name} IS NULL")
    if "not" in about:
        inner = _of_property(name, _mapping(about["not"]))
        if inner is None:
            return None
        parts.append(f"NOT ({inner})")
    return _together(parts)


# ------------------------------------------------------------ SDV


def _of_sdv(about: Mapping[str, Any]) -> Stated:
    """A constraint by the name of its class, with its parameters beside it or below it."""
    kind = str(about.get("constraint_class", about.get("constraint", ""))).rpartition(".")[2]
    said = {**about, **_mapping(about.get("constraint_parameters"))}
    make = _SDV.get(kind)
    try:
        rule = make(said) if make else None
    except KeyError:
        rule = None
    if rule is not None:
        return Stated([rule])
    columns = _names(said.get("column_names"))
    if kind == "FixedCombinations" and columns:
        return Stated([], [f"{{columns: [{', '.join(columns)}], lookup: a public table of combinations}}"])
    return Stated([], [f"the constraint {kind or 'without a name'}"])


def _less(said: Mapping[str, Any]) -> str:
    return "<" if said.get("strict_boundaries") else "<="


def _inequality(said: Mapping[str, Any]) -> str:
    return f"{identifier(said['low_column_name'])} {_less(said)} {identifier(said['high_column_name'])}"


def _range(said: Mapping[str, Any]) -> str:
    low, middle, high = (identifier(said[f"{name}_column_name"]) for name in ("low", "middle", "high"))
    return f"{low} {_less(said)} {middle} AND {middle} {_less(said)} {high}"


def _scalar(said: Mapping[str, Any]) -> str | None:
    relation = str(said["relation"])
    return (
        f"{identifier(said['column_name'])} {relation} {_constant(said['value'])}"
        if relation in ("<", "<=", ">", ">=")
        else None
    )


def _scalars(said: Mapping[str, Any]) -> str:
    column, low, high = identifier(said["column_name"]), _constant(said["low_value"]), _constant(said["high_value"])
    return f"{column} {_more(said)} {low} AND {column} {_less(said)} {high}"


def _more(said: Mapping[str, Any]) -> str:
    return _less(said).replace("<", ">")


def _one_hot(said: Mapping[str, Any]) -> str:
    names = [identifier(name) for name in _names(said["column_names"])]
    return " AND ".join([f"{' + '.join(names)} = 1", *(f"{name} IN (0, 1)" for name in names)])


_SDV: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "Inequality": _inequality,
    "Range": _range,
    "ScalarInequality": _scalar,
    "ScalarRange": _scalars,
    "Positive": lambda said: f"{identifier(said['column_name'])} {_more(said)} 0",
    "Negative": lambda said: f"{identifier(said['column_name'])} {_less(said)} 0",
    "OneHotEncoding": _one_hot,
}


# ------------------------------------------------------------ words


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, int | float) else literal(str(value))


def _together(parts: Sequence[str]) -> str | None:
    if len(parts) > 1:
        return " AND ".join(f"({part})" for part in parts)
    return parts[0] if parts else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _listed_values(value: Any) -> list[Any]:
    return [each for each in value if each is not None] if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value] if isinstance(value, list) else []
