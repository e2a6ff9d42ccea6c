"""Options that are lists: given as data, or as the name of a YAML or JSON file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hedgerow.coded.domain import Domain, Marginal
from hedgerow.errors import OptionError, listing, suggestion


def read_list(value: Any, what: str) -> list[Any]:
    """The entries of an option; text names the file that holds them. Text stays text, as in a schema."""
    if isinstance(value, str):
        value = _from_file(Path(value), what)
    if not isinstance(value, list | tuple):
        raise OptionError("not-a-list", f"{what} must be a list.")
    return list(value)


def read_mapping(value: Any, what: str) -> dict[str, Any]:
    """The keys of an option; text names the file that holds them."""
    if isinstance(value, str):
        value = _from_file(Path(value), what)
    if not isinstance(value, Mapping):
        raise OptionError("not-a-mapping", f"{what} must have keys, one for each column.")
    return {str(key): held for key, held in value.items()}


def read_names(value: Any, what: str) -> tuple[str, ...]:
    """A list of names; text names one, or several with commas between them."""
    given = [name.strip() for name in value.split(",")] if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) and name for name in given):
        raise OptionError("not-a-list", f"{what} must be a list of names.")
    return tuple(given)


def attributes_of(names: tuple[str, ...], domain: Domain, columns: Mapping[str, Marginal], what: str) -> Marginal:
    """The attributes that names stand for: a column for all of its own, an attribute such as `wage:heap` for itself."""
    found: list[str] = []
    for name in names:
        if name in columns:
            found += columns[name]
        elif name in domain:
            found.append(name)
        else:
            known = [*columns, *(other for other in domain.names if other not in columns)]
            raise OptionError(
                "unknown-column",
                f'{what}: unknown column "{name}"; columns: {listing(columns)}.{suggestion(name, known)}',
            )
    return domain.marginal(found)


def _from_file(path: Path, what: str) -> Any:
    from hedgerow.schema.document import read_yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise OptionError("cannot-read", f'{what}: "{path}" is not a file that can be read as text.') from None
    return read_yaml(text, path.name)[0]
