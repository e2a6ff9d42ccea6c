"""How a command ends: with what usually comes next, for whoever is at the terminal."""

from __future__ import annotations

import shlex
import sys

from hedgerow.errors import visible


def say_next(quiet: bool, *words: object, why: str = "") -> None:
    """A command that usually comes next, spelled for a shell, on stderr; nothing where quiet was asked for."""
    if not quiet:
        typed = " ".join(shlex.quote(str(word)) for word in words)
        print(visible(f"next: hedgerow {typed}{f'   ({why})' if why else ''}"), file=sys.stderr)
