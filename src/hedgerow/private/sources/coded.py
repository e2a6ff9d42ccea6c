"""A whole table under an encoding: read batch by batch, coded. For tables that are public, or are to be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.coded.domain import CodedTable, Codes
from hedgerow.errors import TableError
from hedgerow.schema.header import refuse_lacking

if TYPE_CHECKING:
    from hedgerow.private.sources.source import Source
    from hedgerow.schema import Encoding


def with_columns_of(encoding: Encoding, source: Source, what: str) -> Source:
    """The source, if it has every column of the encoding; further columns are not looked at."""
    declared = [*encoding.columns, *([encoding.person] if encoding.person is not None else [])]
    refuse_lacking(source.header(), encoding.columns, declared, f"the {what} table")
    return source


def coded_rows(source: Source, encoding: Encoding, what: str) -> CodedTable:
    """All rows as codes. Every row counts, also those beyond `max_rows_per_person`: they are what there is.

    What a synthetic table leaves empty is what a release writes so.
    """
    encode = encoding.read_back if what == "synthetic" else encoding.encode
    chunks: dict[str, list[Codes]] = {name: [] for name in encoding.domain.names}
    for batch in source.batches(encoding.columns):
        for name, codes in encode(batch).items():
            chunks[name].append(codes)
    if not any(len(codes) for codes in chunks[encoding.domain.names[0]]):
        raise TableError("no-rows", f"the {what} table has no rows.")
    coded: CodedTable = {}
    for name in encoding.domain.names:
        coded[name] = np.concatenate(chunks.pop(name), dtype=encoding.domain[name].dtype)
    return coded


def rows_of(table: CodedTable) -> int:
    """How many rows a coded table has; refused where it has none, because shares of nothing do not exist."""
    rows = len(next(iter(table.values()), ()))
    if not rows:
        raise TableError("no-rows", "a table without rows cannot be compared.")
    return rows
