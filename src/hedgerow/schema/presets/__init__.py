"""Presets: a schema and the options of methods under one name, as data beside this file or in a file of the user's own.

`-s preset:NAME` takes the place of a schema file, and so does a file of the same form (`hedgerow preset show NAME -o
mine.yaml`). The options belong to the methods that the preset names; another method takes the schema alone. With a
schema before it (`-s mine.yaml -s preset:NAME`) a preset gives its structure to that table (`presets.applying`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import OptionError, SchemaError, listing, suggestion

if TYPE_CHECKING:
    from hedgerow.schema import Schema

PREFIX = "preset:"
_FOLDER = Path(__file__).parent
_KEYS = {"about", "schema", "options"}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,14}")


@dataclass(frozen=True, eq=False)
class Preset:
    """A schema, and options by method. A weight that depends on ε is written `{0: 8, 0.301: 6, 4: 4}`: from ε on."""

    name: str
    about: str
    declared: Mapping[str, Any]
    """The schema as plain data; it may leave what only the user knows, such as a list of places, to fill in."""
    methods: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    """What became of it when it was applied to another table, in sentences."""
    text: str = ""
    """The file that it was read from, with its comments."""

    @cached_property
    def schema(self) -> Schema:
        from hedgerow.schema import Schema

        try:
            return Schema.from_dict(dict(self.declared))
        except SchemaError as problem:
            if self.open:
                raise SchemaError(
                    "preset-left-open",
                    f"the preset {self.name} leaves {listing(self.open)} to you. Hint: declare what "
                    f"your table holds in a file of your own, and give both: -s FILE -s {PREFIX}{self.name}.",
                ) from None
            raise problem

    @property
    def open(self) -> tuple[str, ...]:
        """Columns that the user has to declare."""
        from hedgerow.schema.schema import TODO

        return tuple(name for name, column in self.declared["columns"].items() if column == TODO)

    def options(self, method: str, epsilon: float) -> dict[str, Any]:
        """The options of a method at this ε, for `hedgerow.methods.build`; none where the preset has none for it."""
        return {option: _at(value, epsilon) for option, value in self.methods.get(method, {}).items()}

    def to_yaml(self) -> str:
        """A file that `-s` takes: as it was read, or written anew where it was applied to another table."""
        from hedgerow.schema.document import Flow, write_yaml

        head = f"# A preset of your own, begun as {PREFIX}{self.name}: edit it, then -s this file.\n"
        if self.text:
            return head + self.text
        schema = dict(_plain(self.declared))
        schema["columns"] = {
            name: Flow(column) if isinstance(column, Mapping) else column for name, column in schema["columns"].items()
        }
        if "groups" in schema:
            schema["groups"] = [Flow(group) for group in schema["groups"]]
        said = {"about": self.about, "schema": schema, "options": _lines(_plain(self.methods))}
        return head + write_yaml(said)


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
    return _read(_FOLDER / f"{name}.yaml", name)


def is_preset(data: Any) -> bool:
    """Whether a document is a preset: a schema with its columns under `schema`, and options."""
    return (
        isinstance(data, Mapping)
        and data.keys() <= _KEYS
        and isinstance(data.get("schema"), Mapping)
        and isinstance(data["schema"].get("columns"), Mapping)
    )


def find(declared: Any) -> Preset | None:
    """The preset that a declaration names or is: `preset:NAME`, a file of that form, or several; None otherwise."""
    if isinstance(declared, list | tuple):
        return _together(declared)
    if not isinstance(declared, str | Path):
        return None
    if str(declared).startswith(PREFIX):
        return load(str(declared))
    path = Path(declared)
    if path.suffix.lower() not in (".yaml", ".yml") or not path.is_file():
        return None
    return _own(path)


def _together(declared: Sequence[str | Path]) -> Preset | None:
    """The first says what the columns hold; every further one is a preset that gives it structure."""
    from hedgerow.schema import Schema
    from hedgerow.schema.presets.applying import applied

    if len(declared) == 1:
        return find(declared[0])
    first = find(declared[0])
    found = first or Preset(str(declared[0]), "", Schema.load(declared[0]).to_dict(), {})
    for each in declared[1:]:
        preset = find(each)
        if preset is None:
            raise OptionError(
                "no-preset",
                f'"{each}" is no preset. The first -s says what the columns hold; further ones are {PREFIX}NAME or a '
                f"file of that form. Presets: {listing(names())}.",
            )
        found = applied(found, preset)
    return found


def _own(path: Path) -> Preset | None:
    from hedgerow.schema.document import read_yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
        data, _ = read_yaml(text, path.name)
    except (OSError, UnicodeDecodeError, SchemaError):
        return None  # whoever reads it as a schema says what is wrong
    return _preset(data, path.stem, text) if is_preset(data) else None


@cache
def _read(path: Path, name: str) -> Preset:
    from hedgerow.schema.document import read_yaml

    text = path.read_text(encoding="utf-8")
    return _preset(read_yaml(text, path.name)[0], name, text)


def _preset(data: Mapping[str, Any], name: str, text: str) -> Preset:
    options = data.get("options", {})
    if not isinstance(options, Mapping) or not all(isinstance(each, Mapping) for each in options.values()):
        raise SchemaError("bad-preset", f"{name}: options must be a mapping from a method to its options.")
    return Preset(name, str(data.get("about", "")), data["schema"], options, text=text)


def _at(value: Any, epsilon: float) -> Any:
    """The value with every schedule `{from ε: value}` replaced by its last entry that does not exceed ε."""
    if isinstance(value, list):
        return [_at(item, epsilon) for item in value]
    if not isinstance(value, dict):
        return value
    if is_schedule(value):
        begun = [key for key in value if float(key) <= epsilon]
        if not begun:
            raise SchemaError(
                "bad-schedule", f"a schedule by ε begins at {min(map(float, value)):g}, above {epsilon:g}; begin at 0."
            )
        return value[max(begun, key=float)]
    return {key: _at(item, epsilon) for key, item in value.items()}


def is_schedule(value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one from ε to what holds from there on."""
    return bool(value) and all(_is_number(key) for key in value)


def _is_number(text: str) -> bool:
    try:
        return float(text) >= 0
    except ValueError:
        return False


def _plain(value: Any) -> Any:
    """Whole numbers without the quotes that text would get; a file hands them over as text again."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _lines(value: Any) -> Any:
    """Entries of lists on a line each."""
    from hedgerow.schema.document import Flow

    if isinstance(value, Mapping):
        return {key: _lines(item) for key, item in value.items()}
    if isinstance(value, list):
        return [Flow(item) if isinstance(item, Mapping) else item for item in value]
    return value
