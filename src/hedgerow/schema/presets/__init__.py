"""Presets: a schema and the options of a method under one name, as data beside this file.

`-s preset:NAME` takes the place of a schema file. The options belong to the method that the preset names; another
method takes the schema alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import SchemaError, listing, suggestion

if TYPE_CHECKING:
    from hedgerow.schema import Schema

PREFIX = "preset:"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Preset:
    """A schema, and options by method. A weight that depends on ε is written `{0: 8, 0.301: 6, 4: 4}`: from ε on."""

    name: str
    about: str
    schema: Schema
    methods: Mapping[str, Mapping[str, Any]]

    def options(self, method: str, epsilon: float) -> dict[str, Any]:
        """The options of a method at this ε, for `hedgerow.methods.build`; none where the preset has none for it."""
        return {option: _at(value, epsilon) for option, value in self.methods.get(method, {}).items()}


def names() -> tuple[str, ...]:
    """The presets that come with Hedgerow."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load(name: str) -> Preset:
    """A preset by its name, with or without `preset:` in front."""
    name = name.removeprefix(PREFIX)
    if name not in names():
        raise SchemaError(
            "unknown-preset", f'unknown preset "{name}"; presets: {listing(names())}.{suggestion(name, names())}'
        )
    return _read(name)


@cache
def _read(name: str) -> Preset:
    from hedgerow.schema import Schema
    from hedgerow.schema.document import read_yaml

    path = _FOLDER / f"{name}.yaml"
    data, _ = read_yaml(path.read_text(encoding="utf-8"), path.name)
    return Preset(name, data["about"], Schema.from_dict(data["schema"]), data["options"])


def _at(value: Any, epsilon: float) -> Any:
    """The value with every schedule `{from ε: value}` replaced by its last entry that does not exceed ε."""
    if isinstance(value, list):
        return [_at(item, epsilon) for item in value]
    if not isinstance(value, dict):
        return value
    if value and all(_is_number(key) for key in value):
        begun = [key for key in value if float(key) <= epsilon]
        return value[max(begun, key=float)]
    return {key: _at(item, epsilon) for key, item in value.items()}


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False
