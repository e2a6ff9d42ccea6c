"""The commands as data, for what is made of them: completions and the manual page."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from hedgerow.cli.command import Said, said


@dataclass(frozen=True)
class Parameter:
    """An argument (which has no spellings) or an option."""

    name: str
    spellings: tuple[str, ...]
    help: str
    takes: str
    """FILE, NUMBER or TEXT; nothing for a switch."""
    required: bool
    repeated: bool


@dataclass(frozen=True)
class Command:
    """A command, or a group of them."""

    words: tuple[str, ...]
    """hedgerow, ledger, show."""
    said: Said
    parameters: tuple[Parameter, ...]
    parts: tuple[Command, ...] = ()

    @property
    def options(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if each.spellings)

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if not each.spellings)

    def all(self) -> Iterator[Command]:
        """This one and what is below it."""
        yield self
        for part in self.parts:
            yield from part.all()


def tree() -> Command:
    """All commands."""
    from hedgerow.cli.app import app

    return _command(("hedgerow",), typer.main.get_command(app))


def _command(words: tuple[str, ...], made: Any) -> Command:
    parts = tuple(_command((*words, name), part) for name, part in getattr(made, "commands", {}).items())
    if parts and len(words) > 1:
        return Command(words, Said(made.help, ()), (), parts)
    function = inspect.unwrap(made.callback)
    types = get_type_hints(function, include_extras=True)
    parameters = tuple(_parameter(each, types[each.name]) for each in made.params if each.name in types)
    return Command(words, said(function), parameters, parts)


def _parameter(made: Any, annotated: Any) -> Parameter:
    """What the function's annotation says of it; the parser knows how it is spelled."""
    kind, about = get_args(annotated)
    kinds = [each for each in (*get_args(kind), kind) if each is not type(None)]
    inner = [each for each in kinds if each in (bool, int, float, str, Path)]
    repeated = any(getattr(each, "__origin__", None) is list for each in kinds)
    if repeated:
        inner = [each for outer in kinds for each in get_args(outer)]
    option = made.param_type_name == "option"
    one = inner[0] if inner else str  # of some words
    takes = "" if one is bool else "FILE" if one is Path else "TEXT" if one is str else "NUMBER"
    spellings = tuple(made.opts) if option else ()
    return Parameter(made.name, spellings, about.help or "", takes, made.required, repeated)
