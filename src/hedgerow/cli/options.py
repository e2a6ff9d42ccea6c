"""What several commands take: options that are declared once, and how their words are read."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hedgerow.errors import OptionError, listing, suggestion

SchemaNames = Annotated[
    list[str],
    typer.Option(
        "-s",
        "--schema",
        help="What the columns may hold: a file, or preset:NAME; a preset after a file gives it groups, bins, options.",
    ),
]
SchemaName = Annotated[str, typer.Option("-s", "--schema", help="What the columns may hold: a file, or preset:NAME.")]
Delta = Annotated[float, typer.Option(help="0 gives pure ε with Laplace noise.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, and no word of what comes next.")]
ModelMemory = Annotated[str, typer.Option(help="What the model in the release may take, beside the rows.")]

FileKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        help="How the table is written, KEY=VALUE: delimiter, decimal, encoding, sheet, skip, strip, as in the "
        "schema's `file:`; repeatable.",
    ),
]


def _allow(names: list[str] | None) -> list[str] | None:
    """The user's word that a class made elsewhere may be imported, whichever schema names it."""
    if names:
        from hedgerow.schema import allow

        allow(*names)
    return names


AllowColumn = Annotated[
    list[str] | None,
    typer.Option(
        callback=_allow,
        help="package.module:Class of a column kind made elsewhere that you trust: its code is run; repeatable.",
    ),
]

AllowModel = Annotated[
    list[str] | None,
    typer.Option(help="package.module:Class of a model made elsewhere that you trust: its code is run; repeatable."),
]


def words(text: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def file_keys(pairs: list[str] | None) -> dict[str, Any]:
    """--file KEY=VALUE, given several times; of `strip` each."""
    from hedgerow.schema.file import File

    given: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or key not in File.model_fields:
            raise OptionError(
                "bad-setting",
                f'--file takes KEY=VALUE, for example delimiter=semicolon, got "{pair}"; keys: '
                f"{listing(File.model_fields)}.{suggestion(key, File.model_fields)}",
            )
        if key == "strip":
            given.setdefault(key, []).append(value)
        elif key in given:
            raise OptionError("set-twice", f'--file gives "{key}" twice, as "{given[key]}" and as "{value}".')
        else:
            given[key] = value
    return given


def settings(pairs: list[str]) -> dict[str, str]:
    """--set option=value, given several times."""
    given: dict[str, str] = {}
    for pair in pairs:
        option, equals, value = pair.partition("=")
        if not equals:
            raise OptionError("bad-setting", f'--set takes option=value, got "{pair}".')
        if option in given:
            raise OptionError("set-twice", f'"{option}" is given twice, as "{given[option]}" and as "{value}".')
        given[option] = value
    return given


def size(text: str) -> int:
    """4GB, 500MB, 2GiB or a number of bytes."""
    units = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
    number = text.strip().lower().removesuffix("b").removesuffix("i")
    unit = number[-1:] if number[-1:] in units else ""
    try:
        value = float(number.removesuffix(unit)) if unit else float(number)
        if not 1 << 26 <= value * units[unit] < 1 << 60:
            raise ValueError
    except ValueError:
        raise OptionError(
            "bad-size", f'"{text}" is not a size of at least 64MB; write for example 4GB or 500MB.'
        ) from None
    return int(value * units[unit])


def seconds(text: str) -> float:
    """90, 90s, 10m or 2h."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        value = float(number) * units[unit]
        if not 0 < value < 1e9:
            raise ValueError
    except ValueError:
        raise OptionError("bad-time", f'"{text}" is not a time; write for example 90s, 10m or 2h.') from None
    return value


def count(text: str) -> int:
    """1000, 1_000 or 1e9."""
    try:
        value = float(text)
        if not (value.is_integer() and 0 <= value < 1e15):
            raise ValueError
    except (ValueError, OverflowError):
        raise OptionError(
            "bad-row-count", f'"{text}" is not a number of rows below 1e15; write for example 1000000 or 1e9.'
        ) from None
    return int(value)
