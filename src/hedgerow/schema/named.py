"""Public tables that a schema file names by their paths: read once, with the file, and written into the schema."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from hedgerow.schema.explain import key_error


class Paths(tuple[Path, ...]):
    """Where public tables were read from: no part of what a schema says, so any are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Paths)

    def __hash__(self) -> int:
        return 0


class NamedTables:
    """Tables beside a schema file. Whoever knows the private table looks at each path before it is opened."""

    def __init__(self, folder: Path, before_reading: Callable[[Path], None] | None = None):
        self._folder, self._before_reading = folder, before_reading
        self.paths: list[Path] = []
        """Those that were read."""

    def rows(self, name: str, columns: Sequence[str], where: tuple[str | int, ...]) -> list[list[str]]:
        """Some columns of a CSV file; `where` in the schema it is named."""
        path = self._folder / name
        if self._before_reading is not None:
            self._before_reading(path)
        self.paths.append(path)
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.DictReader(file)
                lacking = [column for column in columns if column not in (reader.fieldnames or ())]
                if lacking:
                    raise key_error("bad-public-table", where, f'"{path.name}" has no column "{lacking[0]}".')
                return [[row[column] or "" for column in columns] for row in reader]
        except (OSError, UnicodeDecodeError, csv.Error):
            raise key_error("bad-public-table", where, f'"{path}" is not a CSV file that can be read.') from None
