"""What a command may write, and what it never writes over: one rule for all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hedgerow.errors import OptionError
from hedgerow.release.files import check_writable, writing

PAGE = (".html",)


def check_outputs(
    outputs: Sequence[tuple[Path, Sequence[str]]], inputs: Mapping[str, str | Path | None], *, overwrite: bool
) -> None:
    """Refuse, before anything is read or spent, outputs that cannot be written or would destroy something.

    Each output comes with the endings that it may have. None may be an input, lie in a folder that is one, or be
    named twice; one that exists needs `overwrite`, and a ledger or a journal is never overwritten.
    """
    seen: set[Path] = set()
    for path, suffixes in outputs:
        _refuse_input(path, inputs)
        if path.resolve() in seen:
            raise OptionError(f'"{path}" is named for two outputs; name another one. Nothing was read.')
        seen.add(path.resolve())
        if os.path.isfile(path):  # a name that is too long is refused below
            _refuse_existing(path, overwrite)
        check_writable(path, suffixes)


def _refuse_input(path: Path, inputs: Mapping[str, str | Path | None]) -> None:
    for name, given in inputs.items():
        if given is None:
            continue
        place = _place(given)
        if path.resolve() == place:
            raise OptionError(f'"{path}" is the {name} itself; name another output. Nothing was read.')
        if os.path.isdir(place) and place in path.resolve().parents:
            raise OptionError(f'"{path}" lies inside the {name}; name another output. Nothing was read.')


def _place(given: str | Path) -> Path:
    """Where an input lies: a file, a folder, or the file of a database (duckdb://FILE/TABLE)."""
    scheme, found, rest = str(given).partition("://")
    return Path(rest).parent.resolve() if found and scheme == "duckdb" else Path(given).resolve()


def _refuse_existing(path: Path, overwrite: bool) -> None:
    from hedgerow.private import books, journal

    with writing(path), open(path, "rb") as file:
        beginning = file.read(256)
    for what, mark in (("a ledger", books.MARK), ("a journal of paid answers", journal.MARK)):
        if mark in beginning:
            raise OptionError(f'"{path}" is {what}, which is never overwritten; name another output. Nothing was read.')
    if not overwrite:
        raise OptionError(
            f'"{path}" exists already and was not touched; name another output, or give --overwrite. Nothing was read.'
        )
