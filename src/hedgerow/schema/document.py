"""Reading a schema file strictly: text stays text, and every key remembers its line.

YAML's guesses (NO is false, 06001 is 3073, 1999-12-31 is a date) would change what the publisher wrote, so none is
made here: every scalar is text until a column kind that expects a number or a date reads it.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import yaml

from hedgerow.errors import SchemaError

Path: TypeAlias = tuple[str | int, ...]
Lines: TypeAlias = dict[Path, int]

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def read_yaml(text: str, name: str) -> tuple[Any, Lines]:
    """The document as dicts, lists and text, and the line of every key and item."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "characters that YAML does not allow"
        line = text.splitlines()[mark.line : mark.line + 1] if mark is not None else []
        rule = any(word in each for each in line for word in ("when:", "then:"))
        hint = " Hint: a condition with a comma is put in double quotes." if rule else ""
        raise SchemaError("not-yaml", f"{name}{where}: this is not YAML ({problem}).{hint}") from None
    lines: Lines = {}
    if root is None:
        return None, lines
    return _Reader(name, lines).value(root, ()), lines


def read_json(text: str, name: str) -> tuple[Any, Lines]:
    """The document as dicts, lists, text and booleans (numbers stay as written), and lines where they can be told."""
    try:
        data = json.loads(text, parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_once(name))
    except json.JSONDecodeError as error:
        raise SchemaError("not-json", f"{name}, line {error.lineno}: this is not JSON ({error.msg}).") from None
    except RecursionError:
        raise SchemaError("nested-too-deeply", f"{name}: the document is nested too deeply.") from None
    try:
        return data, read_yaml(text, name)[1]
    except SchemaError:  # JSON that YAML cannot read, e.g. indented by tabs
        return data, {}


class _Reader:
    """Walks YAML's nodes once."""

    def __init__(self, name: str, lines: Lines):
        self._name = name
        self._lines = lines
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self._lines.setdefault(path, line)
        if id(node) in self._seen:
            raise SchemaError(
                "yaml-alias", f"{self._name}, line {line}: YAML aliases (*name) are not read; use `codelists` to share."
            )
        self._seen.add(id(node))
        if len(path) > 32:
            raise SchemaError("nested-too-deeply", f"{self._name}, line {line}: the document is nested too deeply.")
        if isinstance(node, yaml.ScalarNode):
            return node.value
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: yaml.Node, path: Path) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise SchemaError("key-not-text", f"{self._name}, line {line}: a key must be text.")
            key = key_node.value
            if key in mapping:
                raise SchemaError(
                    "duplicate-key", f'{self._name}, line {line}: the key "{key}" stands twice in {_where(path)}.'
                )
            self._lines[(*path, key)] = line
            mapping[key] = self.value(value_node, (*path, key))
        return mapping


def _where(path: Path) -> str:
    return ".".join(map(str, path)) or "the document"


def _once(name: str) -> Any:
    """A JSON hook that refuses a key that stands twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(items)
        if len(mapping) != len(items):
            keys = [key for key, _ in items]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise SchemaError("duplicate-key", f'{name}: the key "{twice}" stands twice in one object.')
        return mapping

    return pairs


class Flow(dict[str, Any]):
    """A mapping that is written on one line: `{type: integer, min: 0, max: 115}`."""


class Block(dict[str, Any]):
    """A mapping with a line for each key, whatever they hold."""


class _Writer(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def check_simple_key(self) -> bool:
        """Write an empty key as '': and not in YAML's long form `? '' :`."""
        simple = bool(super().check_simple_key())
        return simple or (isinstance(self.event, yaml.ScalarEvent) and self.event.value == "")


def _write_text(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """In double quotes, with escapes, wherever YAML would otherwise take a letter for a line break or refuse it."""
    style = None if all(letter == " " or letter.isprintable() for letter in text) else '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _write_text)
_Writer.add_representer(Flow, lambda writer, data: writer.represent_mapping("tag:yaml.org,2002:map", data, True))
_Writer.add_representer(Block, lambda writer, data: writer.represent_mapping("tag:yaml.org,2002:map", data, False))


def write_yaml(data: dict[str, Any], width: int = 120) -> str:
    """YAML that `read_yaml` reads back as written."""
    text: str = yaml.dump(
        data, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=width, default_flow_style=None
    )
    return text
