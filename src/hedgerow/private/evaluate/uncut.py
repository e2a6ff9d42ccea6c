"""Cells for columns that a run has still to cut, so that codes can be compared under the schema alone. PRIVATE.

They are read off the real rows, exactly: whatever is computed here is private already, and stays so. The synthetic
table has no say in them, so the figures of several tables can be compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import IntArray
from hedgerow.private.evaluate.raw import RowSample
from hedgerow.schema.endings import ENDING
from hedgerow.schema.leaves import Leaf, alike, drawable

if TYPE_CHECKING:
    from hedgerow.private.sources.source import Source
    from hedgerow.schema import Schema
    from hedgerow.schema.arrays import FloatArray

CELLS = 40
"""A line is cut into ranges of about this part of its rows; values that hold more stand alone."""
MOST_VALUES = 1_000
"""Of an open category the commonest; the rest are "other"."""


def with_cells_of(schema: Schema, source: Source, seed: int) -> Schema:
    """The schema with cells, or values, wherever they are still to be bought: where the rows of the source lie."""
    waiting = schema.discoveries
    if not waiting:
        return schema

    def placed(batch: pa.RecordBatch) -> pa.Table:
        columns: dict[str, pa.Array] = {}
        for name, kind in waiting:
            if kind == "values":
                columns[name] = pc.cast(schema.open_values(name, batch.column(name)), pa.string())
            else:
                lines = schema.waiting(name).places(batch.column(name)).lines.items()
                columns |= {f"{name}{line}": pa.array(places) for line, places in lines if line != ENDING}
        return pa.table(columns)

    sample = RowSample(placed, pa.concat_tables, seed)
    for batch in source.batches([name for name, _ in waiting]):
        sample.add(batch)
    rows = sample.drawn()
    for name, kind in waiting:
        if kind == "values":
            schema = schema.with_values(name, [] if rows is None else _commonest(rows[name]))
        else:
            column = schema.waiting(name)
            own = column.elsewhere()
            cells = {
                line: drawable(_cells(rows[f"{name}{line}"].to_numpy()), own.get(line, ())) if rows is not None else []
                for line in column.trees()
                if line != ENDING
            }
            whole = {line: alike(tree.low, tree.high, 1) for line, tree in column.trees().items()}
            schema = schema.with_cuts({name: {line: found or whole[line] for line, found in cells.items()}})
    return schema


def _commonest(values: pa.ChunkedArray) -> Sequence[str]:
    """In the order of the letters, as a discovery lists them."""
    counted = pc.value_counts(values.drop_null())
    words, counts = counted.field("values").to_pylist(), counted.field("counts").to_pylist()
    ranked = sorted(zip(words, counts, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return sorted(word for word, _ in ranked[:MOST_VALUES])


def _cells(places: FloatArray) -> list[list[Leaf]]:
    """Ranges of like many rows, and single steps that hold more than such a range should."""
    steps: IntArray
    steps, counts = np.unique(places[~np.isnan(places)].astype(np.int64), return_counts=True)
    if not len(steps):
        return []
    size = counts.sum() / CELLS
    alone = counts >= size
    bucket = ((np.cumsum(counts) - counts) // size).astype(np.int64)
    begins = np.flatnonzero(np.append(True, np.diff(bucket) > 0) | alone | np.append(False, alone[:-1]))
    ends = np.append(begins, len(steps))
    return [[Leaf(int(steps[a]), int(steps[b - 1]), int(counts[a:b].sum()))] for a, b in pairwise(ends)]
