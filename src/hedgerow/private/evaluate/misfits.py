"""How many values of a table its schema does not hold, by column. PRIVATE: these are exact counts of real rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.errors import OptionError
from hedgerow.markup import Markup, tag
from hedgerow.pages.shell import private_page, table
from hedgerow.private.identity import Spelling
from hedgerow.private.sources.source import by_person
from hedgerow.release.files import write_private
from hedgerow.schema import Schema

if TYPE_CHECKING:
    from hedgerow.private.sources.source import Source


@dataclass
class Misfits:
    """Counts for one column (or one group): rows, and three sorts of values that the schema does not hold.

    `blank` says nothing where no `missing` is declared, `unread` is text where a number or a date is declared,
    `outside` lies beyond the bounds or is not listed.
    """

    columns: tuple[str, ...]
    rows: int = 0
    blank: int = 0
    unread: int = 0
    outside: int = 0


def count_misfits(batches: Iterable[pa.RecordBatch], schema: Schema) -> list[Misfits]:
    """Misfits of every column and group, in order. No value is kept."""
    encoding = schema.settled().encoding()
    empty = pa.RecordBatch.from_pylist([], encoding.arrow_schema)
    counted: dict[tuple[str, ...], Misfits] = {}
    for batch in chain([empty], batches):  # a table without rows has columns too
        for columns, outside in encoding.outside(batch).items():
            misfits = counted.setdefault(columns, Misfits(columns))
            blank = np.logical_and.reduce([schema.columns[name].blank(batch.column(name)) for name in columns])
            alone = len(columns) == 1
            unread = schema.columns[columns[0]].unread(batch.column(columns[0])) & ~blank & alone
            misfits.rows += len(outside)
            misfits.blank += int((outside & blank).sum())
            misfits.unread += int((outside & unread).sum())
            misfits.outside += int((outside & ~blank & ~unread).sum())
    waiting = {name for name, kind in schema.discoveries if kind == "values"}
    return [misfits for columns, misfits in counted.items() if not waiting & set(columns)]


def write_misfits(source: Source, schema: Schema, path: Path) -> list[Misfits]:
    """Count, and write a page marked PRIVATE that only its owner can read. Columns are named, values never."""
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OptionError("cannot-write", f'"{path}" cannot be written.')
    unnamed = Unnamed(schema.person)
    columns = list(dict.fromkeys([*schema.columns, *([schema.person] if schema.person is not None else [])]))
    misfits = count_misfits(unnamed.noted(by_person(source, schema.person).batches(columns)), schema)
    write_private(path, _page(schema, misfits, unnamed))
    return misfits


class Unnamed:
    """How many rows name nobody, noted while batches go by."""

    def __init__(self, column: str | None):
        self.column = column
        self.rows = self.nobody = 0
        self._spelled = Spelling()

    def noted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if self.column is not None:
                self.rows += batch.num_rows
                self.nobody += self._spelled(batch.column(self.column)).null_count
            yield batch


def _fates(schema: Schema, misfits: Misfits) -> str:
    """What becomes of each sort that there is."""
    if len(misfits.columns) > 1:
        return "replaced by allowed combinations" if misfits.blank or misfits.outside else ""
    column = schema.columns[misfits.columns[0]]
    sorts = (
        ("blank", misfits.blank, column.blank_fate),
        ("not readable", misfits.unread, column.unread_fate),
        ("others", misfits.outside, column.fate),
    )
    return "; ".join(f"{name}: {fate}" for name, count, fate in sorts if count)


def _about(unnamed: Unnamed) -> list[Markup]:
    if unnamed.column is None:
        return []
    said = f'{unnamed.nobody:,} of {unnamed.rows:,} rows name no person in "{unnamed.column}"; they are left out.'
    return [tag("p", said)]


def _page(schema: Schema, misfits: list[Misfits], unnamed: Unnamed) -> str:
    name = schema.dataset or "this table"
    rows = [
        [
            " + ".join(each.columns),
            f"{each.rows:,}",
            f"{each.blank:,}",
            f"{each.unread:,}",
            f"{each.outside:,}",
            _fates(schema, each),
        ]
        for each in misfits
    ]
    header = ["column", "rows", "blank, undeclared", "not readable", "other misfits", "they are"]
    return private_page(
        f"misfits of {name}",
        tag("h1", f"Misfits of {name}"),
        tag("p", "Values that the schema does not hold. They are not errors: each is coded as the last column says."),
        tag("p", "Not readable: text where a number, a code or a date is declared."),
        *_about(unnamed),
        tag("p", "Exact counts of real rows: do not set bounds from them."),
        table(header, rows, figures=(1, 2, 3, 4)),
    )
