"""A made-up table of emergency calls with columns that are nearly functions of each other.

    python -m bench.dispatch [FOLDER [ROWS]]

Ten of its 31 columns are moments of one call, minutes apart, in months; seven are names of one place. Writes
data.parquet and domain.json, as `bench.quality` reads them, or prints how many combinations there are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 100_000
MONTHS = 100
MINUTES = MONTHS * 30 * 24 * 60
WAITS = (0.4, 1.0, 0.6, 1.5, 2.0, 5.0, 12.0, 18.0, 6.0)
"""Mean minutes between one moment of a call and the next."""
STAGES = ((4, 0.07), (5, 0.1), (6, 0.35), (8, 0.1))
"""Moments from which on a call may have none, and how often."""
PLACES = 260
NAMES = (45, 41, 27, 11, 10, 9, 3)
"""How many names each of the seven divisions has."""

Columns = dict[str, npt.NDArray[np.int64]]


def made(rows: int = ROWS, seed: int = 0) -> tuple[Columns, dict[str, int]]:
    """The columns, and the size of each."""
    rng = np.random.default_rng(seed)
    table: Columns = {}
    sizes: dict[str, int] = {}

    def add(name: str, codes: Any, size: int) -> npt.NDArray[np.int64]:
        table[name], sizes[name] = np.asarray(codes, dtype=np.int64), size
        return table[name]

    place = rng.choice(PLACES, rows, p=_falling(rng, PLACES, 0.8))
    for number, size in enumerate(NAMES):
        centres = np.sort(rng.integers(0, PLACES, size - 1))
        known = np.searchsorted(centres, np.arange(PLACES))  # neighbouring places share a name
        name = np.where(rng.random(rows) < 0.004, rng.integers(0, size, rows), known[place])
        add(f"place{number}", name, size)
    kind = add("kind", rng.choice(32, rows, p=_falling(rng, 32, 1.4)), 32)
    group = add("group", rng.integers(0, 4, 32)[kind], 4)
    priority = add("priority", _mixed(rng, rng.integers(0, 3, 32)[kind], 3, 0.2), 3)
    add("final", _mixed(rng, priority, 3, 0.1), 3)
    add("als", _mixed(rng, rng.integers(0, 2, 32)[kind], 2, 0.15), 2)
    unit = add("unit", _mixed(rng, rng.integers(0, 10, 32)[kind], 10, 0.5), 10)
    add("vehicle", _mixed(rng, (table["place0"] * 2 + unit % 2) % 90, 90, 0.4), 90)
    add("order", np.minimum(rng.geometric(0.6, rows) - 1 + (group == 1), 9), 10)
    add("alarms", (rng.random(rows) < 0.02 + 0.05 * (group == 2)).astype(int), 2)
    moment = (1 - np.sqrt(rng.random(rows)) * 0.9) * MINUTES
    add("year", moment * 9 // MINUTES, 9)
    add("month", rng.integers(0, 12, rows), 12)
    weekday = add("weekday", rng.integers(0, 7, rows), 7)
    add("hour", (rng.normal(14.5, 5.0, rows) + weekday / 4 + 2 * group) % 24, 24)
    add("ending", _mixed(rng, (kind * 5 + priority) % 15, 15, 0.5), 15)
    ended = np.full(rows, len(WAITS) + 1)
    for stage, often in STAGES:
        ended = np.where(rng.random(rows) < often * (0.4 + 0.6 * priority), np.minimum(ended, stage), ended)
    for number, wait in enumerate((0.0, *WAITS)):
        moment = moment + rng.gamma(1.5, wait / 1.5 + 1e-9, rows)
        code = np.minimum(moment * MONTHS // MINUTES, MONTHS - 1)
        add(f"time{number}", np.where((number >= ended) | (rng.random(rows) < 0.002), MONTHS, code), MONTHS + 1)
    return table, sizes


def _falling(rng: np.random.Generator, count: int, power: float) -> npt.NDArray[np.float64]:
    shares = rng.permutation(np.arange(1, count + 1)) ** -power
    return np.asarray(shares / shares.sum())


def _mixed(rng: np.random.Generator, codes: npt.NDArray[np.int64], size: int, share: float) -> npt.NDArray[np.int64]:
    """The codes, a share of them replaced by chance."""
    return np.where(rng.random(len(codes)) < share, rng.integers(0, size, len(codes)), codes)


def write(folder: Path, rows: int = ROWS, seed: int = 0) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, sizes = made(rows, seed)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), folder / "data.parquet")
    (folder / "domain.json").write_text(json.dumps(sizes))


def combinations(table: Columns, names: list[str]) -> npt.NDArray[np.int64]:
    """How many rows each combination holds, the commonest first."""
    rows = np.stack([table[name] for name in names], axis=1)
    return np.sort(np.unique(rows, axis=0, return_counts=True)[1])[::-1]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
    else:
        for start in ("time", "place"):
            table, _ = made()
            counts = combinations(table, [name for name in table if name.startswith(start)])
            enough = int(np.searchsorted(np.cumsum(counts), 0.97 * ROWS)) + 1
            print(f"{start}: {len(counts):,} combinations; {enough:,} hold 97 % of the rows")
