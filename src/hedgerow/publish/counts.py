"""Tables of counts beside the synthetic rows: consistent with each other, because one model answers all of them.

A count is what the model expects of a cell, and beside it stands the interval that `ask` would give for it, with what
it rests on. What is known of the table as a whole stands there too: the noise of a cell, where just these columns were
counted together, and the measured distance from the private table, where that was bought.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.answers.cells import Cells, Tabulating
from hedgerow.errors import OptionError, SchemaError, suggestion
from hedgerow.schema.document import read_yaml
from hedgerow.schema.spreadsheets import guarded_name

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release

FOLDER = "counts"
MOST_CELLS = 1 << 12
"""Of one table: each gets an interval of its own."""
HEADER = ("count", "low", "high", "basis", "noise_std", "distance", "distance_std")


def read(path: Path) -> tuple[tuple[str, ...], ...]:
    """The lists of columns in a workload file: each entry a list of columns, or {columns: […]}."""
    try:
        data, _ = read_yaml(path.read_text(encoding="utf-8-sig"), path.name)
    except (OSError, UnicodeDecodeError):
        raise OptionError("bad-workload", f'the workload file "{path}" cannot be read.') from None
    except SchemaError as problem:
        raise OptionError("bad-workload", str(problem)) from None
    return of(data, path.name)


def of(data: object, name: str) -> tuple[tuple[str, ...], ...]:
    """The same from plain values."""
    found = [each.get("columns") if isinstance(each, dict) else each for each in data] if isinstance(data, list) else []
    listed = [tuple(each) for each in found if isinstance(each, list) and each and all(type(x) is str for x in each)]
    if not listed or len(listed) != len(found) or any(len(set(each)) != len(each) for each in listed):
        raise OptionError("bad-workload", f'"{name}" must hold lists of columns, one for each table of counts.')
    return tuple(listed)


def names(wanted: tuple[tuple[str, ...], ...]) -> list[str]:
    """A file for each table."""
    return [f"{FOLDER}/{number:03}.csv" for number in range(1, len(wanted) + 1)]


@dataclass(frozen=True)
class Counted:
    """One table of counts, with what is known of its error as a whole: noise of a cell, distance, noise of that."""

    cells: Cells
    known: tuple[str, str, str]
    """As they are written; empty where nothing is known."""

    @property
    def lines(self) -> Iterator[tuple[list[int], list[str]]]:
        """The codes of each cell, and what is said of it."""
        found = self.cells
        for codes, count, low, high, basis in zip(
            found.codes.tolist(), found.counts, found.low, found.high, found.bases, strict=True
        ):
            yield codes, [f"{count:.3f}", f"{low:.1f}", f"{high:.1f}", basis, *self.known]


def attributes(release: Release, columns: tuple[str, ...]) -> tuple[str, ...]:
    """What a table of some columns is over: the attributes that code them, in the order of the domain."""
    coding = [name for column in columns for name in release.encoding.attributes_of(column)]
    return release.model.domain.marginal(coding)


def counted(release: Release, tabulating: Tabulating, columns: tuple[str, ...]) -> Counted:
    """What the model expects over some columns."""
    for column in columns:
        if column not in release.encoding.declared:
            raise OptionError(
                "unknown-column",
                f'the release has no column "{column}".{suggestion(column, release.encoding.declared)}',
            )
    size = release.encoding.domain.cells(attributes(release, columns))
    if size > MOST_CELLS:
        raise OptionError(
            "too-many-cells",
            f"the table of {' × '.join(columns)} has {size:,} cells, more than {MOST_CELLS:,}; "
            "ask for fewer columns. Nothing was written.",
        )
    answer = release.marginal(columns)
    cells = tabulating.cells(columns)
    quality = release.quality
    measured = () if quality is None else (*quality.columns, *quality.pairs, *quality.wider)
    distance = next((each for each in measured if each.attributes == cells.attributes), None)
    noise = "" if answer.noise_std is None else f"{answer.noise_std:.4g}"
    known = (noise, "", "") if distance is None else (noise, f"{distance.value:.4f}", f"{distance.std:.4f}")
    return Counted(cells, known)


def table(release: Release, found: Counted) -> bytes:
    """The counts as a CSV file that people read, a row for each cell."""
    labels = [release.encoding.labels(name) for name in found.cells.attributes]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*map(guarded_name, found.cells.attributes), *HEADER])
    for codes, said in found.lines:
        writer.writerow([*(guarded_name(each[code]) for each, code in zip(labels, codes, strict=True)), *said])
    return text.getvalue().encode()
