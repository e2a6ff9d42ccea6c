"""The methods by name. Each is one file that reads like its paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.foreign import imported
from hedgerow.methods.option import check, declared, values

_METHODS = {
    "aim": "hedgerow.methods.aim:AIM",
    "dpsyn": "hedgerow.methods.dpsyn:DPSyn",
    "field-groups": "hedgerow.methods.field_groups:FieldGroups",
    "hedge": "hedgerow.methods.hedge:Hedge",
    "independent": "hedgerow.methods.independent:Independent",
    "match3": "hedgerow.methods.match3:Match3",
    "mst": "hedgerow.methods.mst:MST",
    "mwem": "hedgerow.methods.mwem:MWEM",
    "ppsyn": "hedgerow.methods.ppsyn:PPSyn",
    "privsyn": "hedgerow.methods.privsyn:PrivSyn",
    "rdt": "hedgerow.methods.rdt:RDT",
}
DEFAULT = "hedge"


def names() -> tuple[str, ...]:
    """The methods that come with Hedgerow."""
    return tuple(_METHODS)


def find(name: str) -> type[Any]:
    """The class of a method, by its name here or as `package.module:Class` for one made elsewhere."""
    if name not in _METHODS and ":" not in name:
        raise OptionError(f'unknown method "{name}"; methods: {listing(_METHODS)}.{suggestion(name, _METHODS)}')
    kind = imported(_METHODS.get(name, name), "method")
    if not (
        dataclasses.is_dataclass(kind) and isinstance(kind, type) and hasattr(kind, "run") and hasattr(kind, "about")
    ):
        raise OptionError(f'"{name}" is not a method: a dataclass with `about` and `run`. Nothing was read.')
    return kind


def build(name: str, options: Mapping[str, Any] | None = None) -> Any:
    """A method with options as text (the command line's --set option=value) or as a preset holds them."""
    kind = find(name)
    known = declared(kind)
    given = {}
    for option, value in (options or {}).items():
        if option not in known:
            available = listing(known) or "none"
            raise OptionError(
                f'{name} has no option "{option}"; options: {available}.{suggestion(option, known)} Nothing was read.'
            )
        given[option] = known[option].parsed(value)
    check(kind, name, given)
    return kind(**given)


def options(method: Any) -> dict[str, Any]:
    """The options of a method as plain values."""
    return values(method)


def __getattr__(class_name: str) -> Any:
    """`hedgerow.methods.Independent` and its like, imported when first used."""
    for where in _METHODS.values():
        if where.endswith(f":{class_name}"):
            return imported(where, "method")
    raise AttributeError(class_name)
