"""Tables of counts beside the synthetic rows: consistent with each other, because one model answers all of them.

A count is what the model expects. Beside it stands what is known of its error: the noise of a cell, where just these
columns were counted together, and the measured distance of the whole table from the private one, where that was bought.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hedgerow.errors import OptionError, SchemaError
from hedgerow.schema.document import read_yaml
from hedgerow.schema.spreadsheets import guarded_name

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release

FOLDER = "counts"
MOST_CELLS = 200_000
HEADER = ("count", "noise_std", "distance", "distance_std")


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
    """One table of counts, with what is known of its error: noise of a cell, distance of the table, its noise."""

    attributes: tuple[str, ...]
    counts: npt.NDArray[np.float64]
    known: tuple[str, str, str]
    """As they are written; empty where nothing is known."""


def attributes(release: Release, columns: tuple[str, ...]) -> tuple[str, ...]:
    """What a table of some columns is over: the attributes that code them, in the order of the domain."""
    coding = [name for column in columns for name in release.encoding.attributes_of(column)]
    return release.model.domain.marginal(coding)


def counted(release: Release, columns: tuple[str, ...]) -> Counted:
    """What the model expects over some columns."""
    answer = release.marginal(columns)
    if answer.counts.size > MOST_CELLS:
        raise OptionError(
            "too-many-cells",
            f"the table of {' × '.join(columns)} has {answer.counts.size:,} cells, more than {MOST_CELLS:,}; "
            "ask for fewer columns. Nothing was written.",
        )
    quality = release.quality
    measured = () if quality is None else (*quality.columns, *quality.pairs, *quality.wider)
    distance = next((each for each in measured if each.attributes == answer.attributes), None)
    noise = "" if answer.noise_std is None else f"{answer.noise_std:.4g}"
    known = (noise, "", "") if distance is None else (noise, f"{distance.value:.4f}", f"{distance.std:.4f}")
    return Counted(answer.attributes, answer.counts, known)


def table(release: Release, found: Counted) -> bytes:
    """The counts as a CSV file that people read, a row for each cell."""
    labels = [release.encoding.labels(name) for name in found.attributes]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*map(guarded_name, found.attributes), *HEADER])
    for cell in np.ndindex(found.counts.shape):
        held = [guarded_name(said[code]) for said, code in zip(labels, cell, strict=True)]
        writer.writerow([*held, f"{found.counts[cell]:.3f}", *found.known])
    return text.getvalue().encode()
