"""Workbooks, and the files of SPSS, Stata and SAS: read by others' libraries, in a process of their own.

Those libraries unpack what a file claims to hold before we see any of it, and a damaged file may end the process that
reads it. So they run apart, with as much memory as they may take, and hand rows over in batches; when they fail, the
file is refused and nothing else happens. `hedgerow.private.sources.readers` is what runs there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.errors import TableError
from hedgerow.private.sources.readers import LACKING, SHEETS, TOO_LARGE, UNKNOWN_SHEET
from hedgerow.private.sources.source import BATCH_ROWS, unique_names, wanted_columns
from hedgerow.private.sources.validation import validated
from hedgerow.schema.draft.labels import LABELLED, how_to_read
from hedgerow.schema.file import File


class ApartSource:
    """A table that another process reads. Every pass starts one; its memory is half of what the run may take."""

    def __init__(self, path: Path, file: File, memory: int):
        self._path = path
        self._what = f'the table "{path}"'
        self._file = file
        self._labelled = path.suffix.lower() in LABELLED
        self._memory = memory // 2
        with self._rows(None) as reader:
            names = reader.schema.names
        self._header = unique_names(names, self._what)

    def header(self) -> tuple[str, ...]:
        return self._header

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = wanted_columns(columns, self._header, self._what)
        with self._rows([self._header.index(name) for name in wanted]) as reader:
            for batch in reader:
                checked = validated(batch.rename_columns(wanted), self._what)
                for begin in range(0, checked.num_rows, BATCH_ROWS):
                    yield checked.slice(begin, BATCH_ROWS)

    @contextmanager
    def _rows(self, columns: list[int] | None) -> Iterator[Any]:
        """The stream of some columns, by their places; of none, the names alone."""
        read, options = how_to_read(self._path) if self._labelled else (None, {})
        asked = {
            "read": read,
            "options": options,
            "path": str(self._path),
            "columns": columns,
            "sheet": self._file.sheet,
            "skip": self._file.skip,
            "encoding": self._file.encoding,
            "memory": self._memory,
        }
        command = [sys.executable, "-P", "-m", "hedgerow.private.sources.readers", json.dumps(asked)]
        quiet = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet
        ) as process:
            assert process.stdout is not None
            whole = False
            try:
                with pa.ipc.open_stream(process.stdout) as reader:
                    yield reader
                    whole = True
            except (pa.ArrowException, OSError):
                process.stdout.close()  # it stops at once; what was wrong follows from how it ends
            except BaseException:
                process.kill()
                raise
            if process.wait() != 0 or not whole:
                raise self._refusal(process.returncode)

    def _refusal(self, code: int) -> TableError:
        """Why a process ended as it did; its own words may quote rows, and nobody heard them."""
        if code == LACKING:
            package, extra = ("pyreadstat", "draft") if self._labelled else ("python-calamine", "excel")
            return TableError(
                "missing-package", f"{self._what} needs {package} to be read. Hint: pip install 'hedgerow[{extra}]'."
            )
        if code == SHEETS:
            return TableError(
                "which-sheet",
                f"{self._what} has several sheets. Hint: say which one by its name or number, with --file sheet=1, or "
                "file: {sheet: 1} in the schema.",
            )
        if code == UNKNOWN_SHEET:
            return TableError("unknown-sheet", f'{self._what} has no sheet "{self._file.sheet}".')
        if code in (TOO_LARGE, -signal.SIGABRT):
            return TableError(
                "table-too-large",
                f"{self._what} cannot be read in {self._memory >> 20:,} MB, half of --max-memory, or it is damaged. "
                "Hint: give more memory, or save it as .parquet or .csv, which are read piece by piece.",
            )
        return TableError(
            "unreadable-table", f"{self._what} cannot be read: it is damaged, incomplete, or of another kind."
        )
