"""What may be said about the names in a table's header.

A file without a header line hands over its first row as if it were names, and a row is never quoted. So a name that a
table brings is repeated only where its header is one beyond doubt; otherwise columns are counted, and found by number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from hedgerow.errors import TableError, listing, suggestion

_WITHHELD = (
    "Has the table a header line, and is its delimiter the right one (--file delimiter=semicolon)? Its names are not "
    "shown: too few of them are declared, so they may be a row."
)

_VALUE = re.compile(
    r"[+-]?(\d{1,3}|\d{5,}|0\d{3}|[3-9]\d{3})|[+-]?\d*[.,]\d+([eE][+-]?\d+)?|\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d{2,4}.*"
)
"""A number that is no year, or a date."""
_NAMELESS = re.compile(r"|__index_level_\d+__|Unnamed: \d+")


def is_nameless(name: str) -> bool:
    """Whether nobody named a column: the numbers of the rows, as pandas and R write them, or a delimiter too many."""
    return _NAMELESS.fullmatch(name) is not None


def refuse_row(names: Sequence[str], what: str) -> None:
    """Refuses names of which a quarter or more are numbers or dates: they would be written down, and may be a row.

    Years, and numbers that count the columns, are names that tables do have.
    """
    values = [name for name in names if _VALUE.fullmatch(name.strip())]
    counting = [str(index) for index in range(len(names) + 1)]
    if 4 * len(values) < len(names) or not values or list(names) in (counting[:-1], counting[1:]):
        return
    raise TableError(
        "no-header",
        f"{len(values)} of the {len(names)} names in the header of {what} are numbers or dates, so it looks like a "
        "row. Hint: give the table a header line.",
    )


def refuse_title(names: Sequence[str], what: str) -> None:
    """Refuses names of which several, and most, are empty: a title stands above the header. The names are not shown."""
    nameless = sum(map(is_nameless, names))
    if nameless > 1 and 2 * nameless > len(names):
        raise TableError(
            "no-header",
            f"{nameless} of the {len(names)} names in the header of {what} are empty, so it looks like a title. Hint: "
            "--file skip=1, or file: {skip: 1} in the schema, leaves out a line above the header.",
        )


def is_header(names: Sequence[str], declared: Collection[str]) -> bool:
    """Whether more than half of the names are declared ones, each counted once: no row looks like that."""
    return 2 * len(set(names) & set(declared)) > len(names)


def refuse_twice(names: Sequence[str], what: str) -> None:
    """Refuses a header in which a name stands twice. Nothing is declared where this is asked, so no name is shown."""
    first: dict[str, int] = {}
    for index, name in enumerate(names, 1):
        if name and first.setdefault(name, index) != index:
            raise TableError(
                "duplicate-column",
                f"the columns {first[name]} and {index} of {what} have the same name. Hint: "
                "rename one; if these are no names, the table lacks a header line.",
            )


def refuse_lacking(header: Sequence[str], needed: Collection[str], declared: Collection[str], what: str) -> None:
    """Refuses a table without one of the needed columns."""
    if "" in needed and list(header).count("") > 1:
        raise TableError("duplicate-column", f"{what} has several columns without a name, and one is declared.")
    lacking = [name for name in needed if name not in header]
    if not lacking:
        return
    if not is_header(header, declared):
        raise TableError(
            "missing-column",
            f"{what} lacks {len(lacking)} of the {len(needed)} columns that the schema declares. {_WITHHELD}",
        )
    strange = [name for name in header if name not in declared]
    raise TableError(
        "missing-column",
        f"{what} lacks {quoted(lacking)}, which the schema declares; its columns: {listing(header)}."
        f"{suggestion(lacking[0], strange)}",
    )


def undeclared(header: Sequence[str], declared: Collection[str]) -> str | None:
    """The columns that nothing is declared about, for a message: their names, or how many they are; None if none.

    A column that nobody named need not be declared: it is left out.
    """
    strange = [name for name in header if name not in declared and not is_nameless(name)]
    if not strange:
        return None
    if is_header(header, declared):
        return f"{quoted(strange)}.{suggestion(strange[0], declared)}"
    return f"{len(strange)} of {len(header)} columns. {_WITHHELD}"


def quoted(names: Sequence[str]) -> str:
    return listing(f'"{name}"' for name in names)
