"""What drivers of databases say when they fail: it may quote rows, statements or credentials, so none of it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from hedgerow.errors import HedgerowError, TableError


@contextmanager
def in_our_words(what: str, reason: Callable[[Exception], str | None]) -> Iterator[None]:
    """Turns what is raised inside into a sentence of ours, where `reason` knows it or a value is to blame."""
    try:
        yield
    except HedgerowError:
        raise
    except Exception as error:
        said = reason(error)
        if said is None and isinstance(error, pa.ArrowException | ArithmeticError | ValueError):
            said = "it holds a value that no program here can hold"
        if said is None:
            raise
        raise failed(what, said) from None


def failed(what: str, reason: str) -> TableError:
    return TableError("database-failed", f"{what} cannot be used: {reason}. Nothing was changed there.")
