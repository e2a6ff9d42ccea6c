"""A made-up table of many columns of mixed widths, each drawn from a few of the columns before it.

    python -m bench.wide FOLDER [COLUMNS [ROWS]]

Writes data.parquet and domain.json, as `bench.quality` reads them: what hedge costs where columns are many.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

COLUMNS, ROWS = 110, 20_000
WIDTHS = (2, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 32, 50)
PARENTS = 3
"""Columns that another depends on, at most."""
NEAR = 12
"""They are among so many before it."""


def made(columns: int = COLUMNS, rows: int = ROWS, seed: int = 0) -> tuple[dict[str, Any], dict[str, int]]:
    """The columns, and the size of each."""
    rng = np.random.default_rng(seed)
    table: dict[str, npt.NDArray[np.int64]] = {}
    sizes = {f"c{number:03}": int(rng.choice(WIDTHS)) for number in range(columns)}
    for number, (name, size) in enumerate(sizes.items()):
        near = list(table)[max(0, number - NEAR) : number]
        parents: list[str] = []
        if near:
            parents = rng.choice(near, min(len(near), int(rng.integers(0, PARENTS + 1))), replace=False).tolist()
        falling = rng.permutation(np.arange(1, size + 1) ** -rng.uniform(0.3, 1.5))
        own = rng.choice(size, rows, p=falling / falling.sum())
        shift = np.zeros(rows, dtype=np.int64)
        for parent in parents:
            shift += rng.integers(0, size, sizes[parent])[table[parent]]
        follows = rng.random(rows) < rng.uniform(0.2, 0.7)
        table[name] = np.where(follows & (len(parents) > 0), (shift + own // 4) % size, own)
    return table, sizes


def write(folder: Path, columns: int = COLUMNS, rows: int = ROWS) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, sizes = made(columns, rows)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(table), folder / "data.parquet")
    (folder / "domain.json").write_text(json.dumps(sizes))


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:4]))
