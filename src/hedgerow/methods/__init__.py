"""The methods by name. Each is one file of this folder that reads like its paper.

The file tells the name: `field_groups.py` holds the class `FieldGroups`, which is the method `field-groups`. Those of
`paper/` are methods as published: `paper/aim.py` is `aim:paper`. What several methods share lies in `shared/`.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from functools import cache
from pkgutil import iter_modules
from typing import Any, get_args, get_type_hints

from hedgerow import models
from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.foreign import imported
from hedgerow.methods.option import check, declared, values
from hedgerow.models.model import Model

DEFAULT = "hedge"
PAPER = ":paper"
_BESIDE = ("choice", "method", "option")
"""The files of this folder that hold no method."""


def names() -> tuple[str, ...]:
    """The methods that come with Hedgerow."""
    return tuple(name for name in _files() if not name.endswith(PAPER))


def published() -> tuple[str, ...]:
    """Methods as published, for comparisons."""
    return tuple(name for name in _files() if name.endswith(PAPER))


@cache
def _files() -> Mapping[str, str]:
    """The files of the methods, by the names of the methods; none is imported before it is asked for."""
    found = sorted(file.name for file in iter_modules(__path__) if not file.ispkg and file.name not in _BESIDE)
    papers = sorted(file.name for file in iter_modules([f"{folder}/paper" for folder in __path__]))
    ours = {file.replace("_", "-"): file for file in found}
    return ours | {file.replace("_", "-") + PAPER: f"paper.{file}" for file in papers}


def find(name: str) -> type[Any]:
    """The class of a method, by its name here or as `package.module:Class` for one made elsewhere."""
    ours = _files()
    if name not in ours and ":" not in name:
        raise OptionError(
            "unknown-method", f'unknown method "{name}"; methods: {listing(names())}.{suggestion(name, ours)}'
        )
    kind = _class_in(ours[name]) if name in ours else imported(name, "method")
    if not (
        dataclasses.is_dataclass(kind) and isinstance(kind, type) and hasattr(kind, "run") and hasattr(kind, "about")
    ):
        raise OptionError("not-a-method", f'"{name}" is not a method: a dataclass with `about` and `run`.')
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
                "unknown-option",
                f'{name} has no option "{option}"; options: {available}.{suggestion(option, known)}',
            )
        given[option] = known[option].parsed(value)
    check(kind, name, given)
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
        annotated = get_type_hints(run).get("return")
    except NameError:  # a name that only type checkers see
        annotated = None
    returned = [annotated] if isinstance(annotated, type) else list(get_args(annotated))
    if not returned or not all(isinstance(model, type) for model in returned):
        raise OptionError(
            "no-model-declared",
            f"the method {said} does not say which model it returns, so nobody knows whether its release could be "
            "read. Hint: def run(self, curator, progress) -> Model for one of Hedgerow's own, or the "
            "name of your class.",
        )
    for model in returned:
        if model is not Model:
            try:
                models.refuse_unreadable(model)
            except OptionError as problem:
                raise OptionError(problem.code, f"releases of {said} could not be read: {problem}") from None


def options(method: Any) -> dict[str, Any]:
    """The options of a method as plain values."""
    return values(method)


def _class_in(file: str) -> type[Any]:
    """The class that is named after its file."""
    module = importlib.import_module(f"{__name__}.{file}")
    kinds = (kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__)
    return next(kind for kind in kinds if kind.__name__.lower() == file.rpartition(".")[2].replace("_", ""))


def __getattr__(class_name: str) -> Any:
    """`hedgerow.methods.Independent` and its like, imported when first used."""
    for file in _files().values() if class_name[:1].isupper() else ():
        if file.replace("_", "") == class_name.lower():
            return _class_in(file)
    raise AttributeError(class_name)
