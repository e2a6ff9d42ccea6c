"""How a command is made known: its docstring says what it does, and ends in examples, all of which the tests run."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import typer

_HEAD = "\n\nExamples:\n"
_KEEP = "\b"
"""Tells the parser to leave the lines of a paragraph as they are."""
HELP = {"help_option_names": ["-h", "--help"]}


class Said(NamedTuple):
    """What a docstring says of a command."""

    about: str
    examples: tuple[str, ...]


def said(function: Callable[..., Any]) -> Said:
    about, _, examples = (inspect.getdoc(function) or "").partition(_HEAD)
    return Said(about, tuple(textwrap.dedent(examples).splitlines()))


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a function a command of `app`, with its examples below its options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        about, examples = said(function)
        shown = "\n".join([_KEEP, "Examples:", *(f"  {line}" for line in examples)])
        app.command(name, help=about, epilog=shown, context_settings=HELP)(function)
        return function

    return register


def group(about: str) -> typer.Typer:
    """Commands under one name."""
    return typer.Typer(
        help=about,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # plain text is there at once, and what is copied from it runs
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
