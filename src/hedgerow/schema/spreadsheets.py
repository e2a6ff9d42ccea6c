"""Text that a spreadsheet would run as a formula: guarded by an apostrophe in the CSV files that we write.

What `guarded` wrote, `unguarded` reads as it was: text that begins with apostrophes and would be risky behind them gets
one more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA = "^'*[\\s\\x00]*[=+\\-@\uff1d\t\r\n]"
"""What a spreadsheet may take for a formula, after white space too."""
NUMBER = r"^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$"
"""Numbers are left alone."""


def guarded_name(name: str) -> str:
    return f"'{name}" if _risky_name(name) else name


def unguarded_name(name: str) -> str:
    return name[1:] if name.startswith("'") and _risky_name(name[1:]) else name


def guarded(table: pa.Table) -> pa.Table:
    """The table as a CSV file may hold it, column names included."""
    import pyarrow.compute as pc

    for index, field in enumerate(table.schema):
        if not _is_text(field.type):
            continue
        column = table.column(index)
        risky = _risky(column)
        if pc.any(risky).as_py():
            quoted = pc.if_else(risky, pc.binary_join_element_wise("'", column, ""), column)
            table = table.set_column(index, field, quoted)
    return table.rename_columns([guarded_name(name) for name in table.column_names])


def unguarded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What `guarded` was given; names are left as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = list(batch.columns)
    for index, column in enumerate(columns):
        if _is_text(column.type) and pc.any(pc.starts_with(column, "'")).as_py():
            bare = pc.utf8_slice_codeunits(column, 1)
            quoted = pc.and_(pc.starts_with(column, "'"), _risky(bare))
            columns[index] = pc.if_else(quoted, bare, column)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _risky(column: Any) -> Any:
    import pyarrow.compute as pc

    number = pc.match_substring_regex(column, NUMBER)
    return pc.fill_null(pc.and_(pc.match_substring_regex(column, FORMULA), pc.invert(number)), False)


def _risky_name(name: str) -> bool:
    return re.match(FORMULA, name) is not None


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
