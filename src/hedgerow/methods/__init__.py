"""The methods by name. Each is one file that reads like its paper."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hedgerow import models
from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.models.model import Model

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
    module, class_name = _METHODS.get(name, name).split(":", 1)
    try:
        kind = getattr(importlib.import_module(module), class_name)
    except (ImportError, AttributeError):
        raise OptionError(f'the method "{name}" cannot be imported; expected package.module:Class.') from None
    if not (
        dataclasses.is_dataclass(kind) and isinstance(kind, type) and hasattr(kind, "run") and hasattr(kind, "about")
    ):
        raise OptionError(f'"{name}" is not a method: a dataclass with `about` and `run`. Nothing was read.')
    return kind


def build(name: str, options: Mapping[str, Any] | None = None) -> Any:
    """A method with options as text (the command line's --set option=value) or as a preset holds them.

    An option whose metadata has `read` turns either into its value; the others are plain text, numbers or truths.
    """
    kind = find(name)
    known = {option.name: option for option in dataclasses.fields(kind)}
    choices = _choices(kind)
    given = {}
    for option, text in (options or {}).items():
        if option not in known:
            available = listing(known) or "none"
            raise OptionError(
                f'{name} has no option "{option}"; options: {available}.{suggestion(option, known)} Nothing was read.'
            )
        if option in choices and text not in choices[option]:
            raise OptionError(
                f'{name}: option "{option}" is one of {listing(choices[option])}, got "{text}". Nothing was read.'
            )
        read = known[option].metadata.get("read")
        given[option] = read(text) if read is not None else _parse(name, option, text, known[option].default)
    return kind(**given)


def refuse_unreadable(method: Any) -> None:
    """Refuses a method whose release nobody could read, before anything is spent.

    A method made elsewhere says what it returns by the annotation of `run`: classes of models, joined by |. `Model`
    stands for those of this package, which every reader has.
    """
    run = type(method).run
    if run.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    said = f"{type(method).__module__}:{type(method).__qualname__}"
    try:
        declared = get_type_hints(run).get("return")
    except NameError:  # a name that only type checkers see
        declared = None
    returned = [declared] if isinstance(declared, type) else list(get_args(declared))
    if not returned or not all(isinstance(model, type) for model in returned):
        raise OptionError(
            f"the method {said} does not say which model it returns, so nobody knows whether its release could be "
            "read. Nothing was read. Hint: def run(self, curator, progress) -> Model for one of Hedgerow's own, or the "
            "name of your class."
        )
    for model in returned:
        if model is not Model:
            try:
                models.refuse_unreadable(model)
            except OptionError as problem:
                raise OptionError(f"releases of {said} could not be read: {problem} Nothing was read.") from None


def options(method: Any) -> dict[str, Any]:
    """The options of a method as plain values."""
    return {option.name: getattr(method, option.name) for option in dataclasses.fields(method)}


def _choices(kind: type[Any]) -> dict[str, tuple[Any, ...]]:
    """The values of every option that is declared as a Literal."""
    try:
        hints = get_type_hints(kind)
    except NameError:  # a method made elsewhere may name types that only type checkers see
        return {}
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _parse(method: str, option: str, text: str, default: Any) -> Any:
    """Text as the type of the option's default."""
    try:
        if isinstance(default, bool):
            return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
        value = type(default)(text)
        if isinstance(value, int | float) and not 0 <= value < math.inf:
            raise ValueError
        return value
    except (KeyError, ValueError):
        wanted = {bool: "true or false", int: "a whole number from 0 on", float: "a number from 0 on"}.get(
            type(default), "text"
        )
        raise OptionError(f'{method}: option "{option}" takes {wanted}, got "{text}". Nothing was read.') from None


def __getattr__(class_name: str) -> Any:
    """`hedgerow.methods.Independent` and its like, imported when first used."""
    for place in _METHODS.values():
        module, name = place.split(":")
        if name == class_name:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(class_name)
