"""What runs apart: `python -m hedgerow.private.sources.readers REQUEST` writes a table to stdout as an Arrow stream.

Every cell of a workbook becomes text, by itself: 39 and 39.0 are "39", a date is written as ISO has it, an empty cell
is empty text; rows without any are passed over. Of SPSS, Stata and SAS, plain numbers are numbers; text, dates and
times are text. Codes stay codes, those declared as missing too; Stata's and SAS's letters (.a) stay where a label names
one, and are nulls elsewhere. Which it is follows from what a file says of its columns, never from rows.
"""

from __future__ import annotations

import datetime
import importlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.release.workers import end_with_parent

LACKING, SHEETS, UNKNOWN_SHEET, TOO_LARGE, DAMAGED = 71, 72, 73, 74, 75
"""How the process ends where it cannot do what it is for."""
_ROWS = 1 << 13
_RESERVED = 1 << 26
"""Addresses, not memory, that threads set aside."""
_TEMPORAL = re.compile(r"date|time|yy|mm|mon|moyr|week|wk|qyr|jul|dt|%-?t", re.IGNORECASE)


def workbook(path: str, sheet: str | None, skip: int) -> tuple[list[str], Iterator[list[str]]]:
    """The names in the first row of a sheet that is not empty, below those that are left out, and the rows below."""
    from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    book = CalamineWorkbook.from_path(path)
    sheets = [each for each in book.sheets_metadata if each.typ == SheetTypeEnum.WorkSheet]
    if sheet is None:
        shown = [each.name for each in sheets if each.visible == SheetVisibleEnum.Visible]
        if len(shown) != 1:
            sys.exit(SHEETS)
        name = shown[0]
    else:
        names = [each.name for each in sheets]
        number = int(sheet) if sheet.isdecimal() and sheet not in names else 0
        if sheet not in names and not 1 <= number <= len(names):
            sys.exit(UNKNOWN_SHEET)
        name = sheet if sheet in names else names[number - 1]
    found = islice(book.get_sheet_by_name(name).iter_rows(), skip, None)
    rows = (row for row in (list(map(cell, cells)) for cells in found) if any(row))
    return next(rows, []), rows


def cell(value: Any) -> str:
    """A cell as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return cell(value.total_seconds())
    return str(value)


def write_workbook(asked: dict[str, Any], out: Any) -> None:
    names, rows = workbook(asked["path"], asked["sheet"], asked["skip"])
    wanted = asked["columns"]
    fields = names if wanted is None else [names[index] for index in wanted]
    schema = pa.schema([(name, pa.string()) for name in fields])
    with pa.ipc.new_stream(out, schema) as writer:
        for part in _parts(rows) if wanted is not None else ():
            arrays = [pa.array([row[index] for row in part], pa.string()) for index in wanted]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _parts(rows: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    part: list[list[str]] = []
    for row in rows:
        part.append(row)
        if len(part) == _ROWS:
            yield part
            part = []
    if part:
        yield part


def write_statistics(asked: dict[str, Any], out: Any) -> None:
    """Some rows at a time, as many as fit: the library begins at the top of the file for each part."""
    import pyreadstat

    read, options = getattr(pyreadstat, asked["read"]), asked["options"]
    if asked["encoding"] is not None:
        options["encoding"] = asked["encoding"]
    about = read(asked["path"], metadataonly=True, **options)[1]
    names, wanted = about.column_names, asked["columns"]
    if wanted is None:
        schema = pa.schema([(name, pa.string()) for name in names])
        with pa.ipc.new_stream(out, schema):
            return
    columns = [names[index] for index in wanted]
    kinds = [_kind(about, name) for name in columns]
    schema = pa.schema(list(zip(columns, kinds, strict=True)))
    rows = max(_ROWS, asked["memory"] // (1 + len(columns)) // 1024)
    with pa.ipc.new_stream(out, schema) as writer:
        first = 0
        while True:
            found = read(asked["path"], usecols=columns, row_offset=first, row_limit=rows, **options)[0]
            held = len(found[columns[0]]) if columns else 0
            arrays = [_array(found.pop(name), kind, about, name) for name, kind in zip(columns, kinds, strict=True)]
            if held:
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
            first += held
            if held < rows:
                return


def _kind(about: Any, name: str) -> pa.DataType:
    plain = about.readstat_variable_types.get(name) != "string" and not _letters(about, name)
    return pa.float64() if plain and not _TEMPORAL.search(str(about.original_variable_types.get(name))) else pa.string()


def _letters(about: Any, name: str) -> bool:
    """Whether a label names a letter among the numbers of a column."""
    return any(isinstance(code, str) for code in about.variable_value_labels.get(name, ()))


def _array(values: Sequence[Any], kind: pa.DataType, about: Any, name: str) -> pa.Array:
    number = about.readstat_variable_types.get(name) != "string"
    if kind == pa.float64():
        return pa.array([None if isinstance(value, str) else value for value in values], kind)
    dot = "." if number else ""
    return pa.array(
        [None if value is None else dot + value if isinstance(value, str) else cell(value) for value in values], kind
    )


def limit(memory: int) -> None:
    """No more memory than this beyond what the process takes by now; where the system cannot hold it, no limit."""
    if sys.platform != "win32":
        import resource

        with suppress(OSError, ValueError):
            taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            most = taken + memory + _RESERVED
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(request: str) -> None:
    end_with_parent()
    asked = json.loads(request)
    try:
        importlib.import_module("python_calamine" if asked["read"] is None else "pyreadstat")
    except ImportError:
        sys.exit(LACKING)
    limit(asked["memory"])
    try:
        (write_workbook if asked["read"] is None else write_statistics)(asked, sys.stdout.buffer)
    except MemoryError:
        sys.exit(TOO_LARGE)
    except BrokenPipeError:
        raise
    except BaseException as problem:  # the libraries' own kinds, and what they make of a panic
        sys.exit(problem.code if isinstance(problem, SystemExit) else DAMAGED)


if __name__ == "__main__":
    main(sys.argv[1])
