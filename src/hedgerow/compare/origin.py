"""What makes a cell: code, options and files. Any of them changed is another cell, so no figure outlives its maker."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import hedgerow
from hedgerow import __version__
from hedgerow.errors import OptionError
from hedgerow.methods import options, published

Origin = Mapping[str, Any]
SOURCES = (".py", ".yaml", ".so", ".pyd")
"""What decides how the package behaves: modules, presets, kernels."""


def origin(source: str, outside: Iterable[str], method: Any = None, given: Mapping[str, Any] | None = None) -> Origin:
    """What makes a cell of `method` with the options `given`: plain values, as they read back from JSON.

    `source` is that of Hedgerow (`package_digest`); `outside` are the names of what was made elsewhere, and their
    sources. `options` holds every option with its value, default or not; `files`, the files that options name.
    """
    named = {option: Path(text) for option, text in (given or {}).items() if isinstance(text, str)}
    made = {
        "version": __version__,
        "source": source,
        "outside": {name: module_digest(name) for name in outside if ":" in name and name not in published()},
        "options": {} if method is None else options(method),
        "files": {option: digest_of(path) for option, path in named.items() if path.is_file()},
    }
    plain: Origin = json.loads(json.dumps(made))
    return plain


def is_current(made: Origin, source: str) -> bool:
    """Whether the code that made a cell is the code that stands here now."""
    try:
        return made.get("source") == source and all(module_digest(x) == was for x, was in made["outside"].items())
    except OptionError:
        return False


def package_digest() -> str:
    """SHA-256 over the source of all of Hedgerow: what a method shares with others decides as much as its own file."""
    return _digest(Path(place) for place in hedgerow.__path__)


def module_digest(name: str) -> str:
    """SHA-256 over the file of `package.module:Class` or, where it lies in a package, over that package's files.

    Of `folder/file.py:Class` over that file.
    """
    where = name.rpartition(":")[0]
    if where.endswith(".py"):
        return digest_of(Path(where))
    try:
        module = importlib.import_module(where)
    except ImportError:
        raise OptionError("cannot-import", f'"{name}" cannot be imported; expected package.module:Class.') from None
    if module.__file__ is None:
        raise OptionError("no-source-file", f'"{name}" lies in no file, so nothing tells whether it changed.')
    file = Path(module.__file__)
    return _digest([file.parent if module.__package__ else file])


def _digest(places: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for place in places:
        files = [place] if place.is_file() else sorted(each for each in place.rglob("*") if each.suffix in SOURCES)
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(place.parent)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def digest_of_table(table: str) -> str:
    """A table by its file or files, also where a URL names one; one that a server keeps is known by its URL alone."""
    _, url, rest = table.partition("://")
    if not url:
        return digest_of(Path(table))
    file = next((place for place in (Path(rest), Path(rest).parent) if os.path.isfile(place)), None)
    return table if file is None else f"{table} {digest_of(file)}"


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the files of a folder."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    digest = hashlib.sha256()
    try:
        for file in files:
            with open(file, "rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    except OSError as problem:
        raise OptionError(
            "cannot-read", f'"{path}" cannot be read ({(problem.strerror or "refused").lower()}).'
        ) from None
    return digest.hexdigest()
