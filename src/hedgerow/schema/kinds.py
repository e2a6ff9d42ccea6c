"""The kinds of columns by name: those that come with Hedgerow, and those made elsewhere that the user allows.

A schema file may name `type: package.module:Class`. A schema may also come from a stranger, alone or inside a release,
and importing a class runs its code: so what a file names is never imported unless the user said so, with `allow` or
`--allow-column`, or by handing in a column of that class from Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BaseModel, Discriminator, InstanceOf, Tag, ValidationError
from pydantic.json_schema import SkipJsonSchema

from hedgerow.errors import OptionError, SchemaError
from hedgerow.foreign import imported, is_foreign
from hedgerow.schema.calendar import Date, Datetime
from hedgerow.schema.column import Column
from hedgerow.schema.explain import key_error, schema_error
from hedgerow.schema.listed import Boolean, Category
from hedgerow.schema.numeric import Code, Integer, Number

KINDS: dict[str, type[Column]] = {
    "integer": Integer,
    "number": Number,
    "category": Category,
    "boolean": Boolean,
    "date": Date,
    "datetime": Datetime,
    "code": Code,
}
_ELSEWHERE = "\n"
"""The tag of a column that is made already; no file can hold it as a type."""

_allowed: dict[str, type[Column]] = {}


class NotAllowedError(SchemaError):
    """A schema names a kind of column made elsewhere that nobody allowed."""


def allow(*kinds: type[Column] | str) -> None:
    """Let schemas name these kinds of columns, classes or `package.module:Class`, from now on in this process."""
    for kind in kinds:
        found = imported(kind, "column kind") if isinstance(kind, str) else kind
        if not (isinstance(found, type) and issubclass(found, Column)):
            raise OptionError(
                "not-a-column-kind", f'"{kind}" is not a kind of column: a subclass of hedgerow.schema.column.Column.'
            )
        _allowed[_address(found)] = found
        if isinstance(kind, str):
            _allowed[kind] = found


def elsewhere(columns: Iterable[Column]) -> tuple[str, ...]:
    """The kinds among some columns that are not Hedgerow's own, by the names that a process can import."""
    found = dict.fromkeys(name_of(column) for column in columns)
    return tuple(name for name in found if name not in KINDS and is_foreign(name))


def name_of(column: Column) -> str:
    """What a schema file says for the kind of a column."""
    kind = type(column)
    return next((name for name, known in KINDS.items() if known is kind), None) or _address(kind)


def made(columns: Mapping[Any, Any]) -> dict[Any, Any]:
    """The declarations of columns, those of kinds made elsewhere turned into columns; refuses what is not allowed."""
    return {name: _made(str(name), declaration) for name, declaration in columns.items()}


def _made(name: str, declaration: Any) -> Any:
    if isinstance(declaration, Column):
        _allowed.setdefault(_address(type(declaration)), type(declaration))  # whoever made it has its code already
        return declaration
    kind = declaration.get("type") if isinstance(declaration, Mapping) else None
    if not isinstance(kind, str) or not is_foreign(kind):
        return declaration
    if kind not in _allowed:
        raise key_error(
            "column-not-allowed",
            ("columns", name, "type"),
            f'"{kind}" is made elsewhere, and reading it runs its code, so nothing was imported. Hint: if you trust '
            f"it, add --allow-column {kind}, or call hedgerow.schema.allow.",
            NotAllowedError,
        )
    rest = {key: value for key, value in declaration.items() if key != "type"}
    try:
        return _allowed[kind].model_validate(rest)
    except ValidationError as problem:
        raise schema_error(problem, {}, _allowed[kind], ("columns", name)) from None


def _tag(value: Any) -> str | None:
    """Which member of the union a value is for."""
    if isinstance(value, Column):
        return next((name for name, known in KINDS.items() if known is type(value)), _ELSEWHERE)
    kind = value.get("type") if isinstance(value, Mapping) else None
    return None if kind is None or kind == _ELSEWHERE else str(kind)


def _address(kind: type[BaseModel]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


if TYPE_CHECKING:
    AnyColumn = Column
else:
    _MEMBERS = [Annotated[kind, Tag(name)] for name, kind in KINDS.items()]
    _HANDED_IN = Annotated[SkipJsonSchema[InstanceOf[Column]], Tag(_ELSEWHERE)]
    AnyColumn = Annotated[Union[(*_MEMBERS, _HANDED_IN)], Discriminator(_tag)]
