"""Classes made elsewhere, named `package.module:Class`, or `folder/file.py:Class` on the command line.

Importing one runs its code, so a name must come from the user: typed on the command line, or handed in from Python. A
schema or a release may come from a stranger; what those name is imported only where the user allowed it.
"""

from __future__ import annotations

import importlib
import sys
from operator import attrgetter
from pathlib import Path
from traceback import walk_tb
from typing import Any

from hedgerow.errors import OptionError, place_of

LONGEST = 200
"""Letters of a name: it is quoted in messages."""
_makers: dict[str, str] = {}
"""The packages of what was imported by such a name, and what that was: a method, a metric, an engine."""


def is_foreign(name: str) -> bool:
    """Whether a name is of the form `package.module:Class`."""
    module, colon, path = name.partition(":")
    named = bool(colon) and len(name) <= LONGEST
    return named and all(part.isidentifier() for part in [*module.split("."), *path.split(".")])


def imported(name: str, what: str) -> Any:
    """What `package.module:Class` names; `what` says in the message what it would have been."""
    file, _, path = name.rpartition(":")
    folder = ""  # a module in the folder where one stands; what is installed comes first
    if file.endswith(".py"):
        folder, name = str(Path(file).resolve().parent), f"{Path(file).stem}:{path}"
    if not is_foreign(name):
        raise OptionError("cannot-import", f'the {what} "{name}" cannot be imported; expected package.module:Class.')
    module, _, path = name.partition(":")
    if folder not in sys.path:
        sys.path.append(folder)
    _makers[_package(module)] = what
    try:
        found = importlib.import_module(module)
        if folder and not Path(str(found.__file__)).samefile(file):
            raise OptionError(
                "cannot-import",
                f'"{module}" is the name of another module than "{file}". Hint: give the file another name.',
            )
        return attrgetter(path)(found)
    except OptionError:
        raise
    except AttributeError:
        raise OptionError("cannot-import", f'the module "{module}" has no {what} "{path}".') from None
    except Exception as problem:
        raise OptionError(
            "cannot-import",
            f'the {what} "{name}" cannot be imported ({type(problem).__name__}); expected package.module:Class. '
            "Hint: install the package, or put its folder into PYTHONPATH.",
        ) from None


def fault(problem: BaseException) -> str:
    """Whose an error is that nobody raised on purpose, and its place: ours, or that of a class made elsewhere.

    Of one made elsewhere every step through its own code is listed, as a traceback would, but for the words of the
    error: those may quote a row.
    """
    maker = _maker(problem)
    if maker is None:
        return f"an error of ours, not of your input: {place_of(problem)}."
    steps = [
        f"  {Path(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}\n"
        for frame, line in walk_tb(problem.__traceback__)
        if _package(frame.f_globals.get("__name__", "")) == maker
    ]
    return f"an error in your {_makers[maker]} ({maker}): {place_of(problem)}.\n{''.join(steps)}"


def _maker(problem: BaseException) -> str | None:
    """The package made elsewhere that raised, or whose call of a library did; None where the last caller is ours."""
    ours = _package(__name__)  # which names classes of its own in the same way
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(problem.__traceback__))
    callers = [name for name in map(_package, frames) if name == ours or name in _makers]
    return callers[-1] if callers and callers[-1] != ours else None


def _package(module: str) -> str:
    return module.partition(".")[0]
