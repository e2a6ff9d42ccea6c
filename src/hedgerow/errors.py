"""What can go wrong, by whose fault.

    HedgerowError            ours unless it is one of the following (exit code 1)
    └── InputError           the input is at fault (exit code 2): one sentence, nothing written
        ├── SchemaError      the declaration
        ├── TableError       the table or the way to it
        ├── OptionError      a command-line or method option
        ├── BudgetError      more was asked than is left
        ├── LimitError       the work would not fit --max-memory or --max-time
        ├── ReleaseError     a release that cannot be read or does not verify
        └── MisfitError      the values do not fit the declaration, as a first look found (exit code 3)

A message names what was asked, what is available, what was not touched and what to do next.
It never quotes a value from a private row. Names in it come from files, so what would not show, or would turn the
letters after it about, is spelled out. Whether anything was spent by then is not for the place that raises it to say,
which cannot know: whoever keeps the books adds it (`standing`).
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

_CLAIM = re.compile(r" Nothing was (read|spent)[^.]*\.")
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # which Persian, Indic scripts and emoji are written with


class HedgerowError(Exception):
    """The root of every error that Hedgerow raises on purpose."""

    exit_code = 1
    standing: str | None = None
    """What had been spent when it was raised, in a sentence; None where nobody kept books."""

    def __init__(self, message: str = ""):
        super().__init__(visible(message))

    def __str__(self) -> str:
        said = super().__str__()
        if self.standing is None:
            return said
        before, hint, after = _CLAIM.sub("", said).partition(" Hint: ")
        return f"{before} {self.standing}{hint}{after}"


@contextmanager
def standing(books: Callable[[], str]) -> Iterator[None]:
    """Errors from inside say what the books say; a claim that was typed where they were raised gives way to it."""
    try:
        yield
    except HedgerowError as problem:
        if problem.standing is None:
            problem.standing = books()
        raise


class InputError(HedgerowError):
    """Something that was handed in is at fault."""

    exit_code = 2


class SchemaError(InputError):
    """The declaration cannot be used as it stands."""


class TableError(InputError):
    """The table cannot be read, or lacks what the schema declares."""


class OptionError(InputError):
    """An option has a name or a value that does not exist."""


class BudgetError(InputError):
    """A charge or a release asks for more than is left."""


class LimitError(InputError):
    """The work would not fit the memory or the time that was allowed."""


class MisfitError(InputError):
    """A look that was paid for found that the values of a column do not fit what is declared."""

    exit_code = 3


class ReleaseError(InputError):
    """A release file is damaged, altered, or does not hold what it claims."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean "age"?` when something known is close to `name`, otherwise nothing.

    Both arguments are public: column names, keys, options; never values from rows.
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f' Did you mean "{close[0]}"?' if close else ""


def listing(names: Iterable[str], most: int = 12) -> str:
    """The names, comma-separated, cut after `most` with a count of the rest."""
    shown = list(names)
    rest = len(shown) - most
    return ", ".join(shown[:most]) + (f", … ({rest} more)" if rest > 0 else "")


def visible(text: str, keep: str = "") -> str:
    """The text with controls, marks of direction and other letters that cannot be seen spelled as ⟨U+202E⟩.

    Those in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        f"⟨U+{ord(letter):04X}⟩"
        if unicodedata.category(letter) in _UNSEEN and letter not in keep and letter not in _JOINERS
        else letter
        for letter in text
    )
