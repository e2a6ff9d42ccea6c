"""What can go wrong, by whose fault.

    HedgerowError            ours unless it is one of the following (exit code 1)
    └── InputError           the input is at fault (exit code 2): one sentence, nothing written
        ├── SchemaError      the declaration
        ├── TableError       the table or the way to it
        ├── OptionError      a command-line or method option
        ├── BudgetError      more was asked than is left
        ├── LimitError       the work would not fit --max-memory or --max-time
        ├── ReleaseError     a release that cannot be read or does not verify
        ├── MisfitError      the values do not fit the declaration, as a first look found (exit code 3)
        └── AcceptanceError  a release misses what the schema accepts (exit code 4)

A message names what was asked, what is available, what was not touched and what to do next.
It never quotes a value from a private row. Names in it come from files, so what would not show, or would turn the
letters after it about, is spelled out. Whether anything was read or spent by then is not for the place that raises
it to say, which cannot know: whoever keeps the books adds it (`standing`, `unread`).

Every kind of fault has a code, lowercase words with hyphens, that stays while sentences are improved: people search for
it, programs compare it. tests/golden/errors.txt lists the codes with their sentences.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

UNREAD = "No row was read, nothing was spent."
_CLAIM = re.compile(r" Nothing was (read|spent)[^.]*\.")
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # which Persian, Indic scripts and emoji are written with


OTHER = "other"
"""The code of an error that came without one: raised by someone's own method, engine, column or metric."""
INTERNAL = "internal"
"""The code of what was not raised on purpose."""


class HedgerowError(Exception):
    """The root of every error that Hedgerow raises on purpose: what kind of fault it is, and a sentence.

    With one argument, that is the sentence: whoever extends Hedgerow need not have codes of their own.
    """

    exit_code = 1
    code: str
    standing: str | None = None
    """What had been spent when it was raised, in a sentence; None where nobody kept books."""

    def __init__(self, code: str, message: str | None = None):
        super().__init__(visible(code if message is None else message))
        self.code = OTHER if message is None else code

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


def unread() -> AbstractContextManager[None]:
    """What is done inside comes before any row: errors say so. The innermost books speak."""
    return standing(lambda: UNREAD)


class Fault(ValueError):
    """A fault that is found where it cannot be said in what. Whoever catches it does, and keeps the code."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


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


class AcceptanceError(InputError):
    """A release that was paid for is not as good as the schema demands."""

    exit_code = 4


class ReleaseError(InputError):
    """A release file is damaged, altered, or does not hold what it claims."""


def code_of(problem: BaseException) -> str:
    """The code of an error, ours or not."""
    return problem.code if isinstance(problem, HedgerowError) else INTERNAL


def place_of(problem: BaseException) -> str:
    """All that is said of an error that nobody raised on purpose: its type and its place. Its text may quote a row."""
    import traceback

    frame = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} at {os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"


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
    return ", ".join(shown[:most]) + (f", … ({rest:,} more)" if rest > 0 else "")


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 row, 2,000 rows."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def visible(text: str, keep: str = "") -> str:
    """The text with controls, marks of direction and other letters that cannot be seen spelled as ⟨U+202E⟩.

    Those in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    import unicodedata

    return "".join(
        f"⟨U+{ord(letter):04X}⟩"
        if unicodedata.category(letter) in _UNSEEN and letter not in keep and letter not in _JOINERS
        else letter
        for letter in text
    )
