"""Rows of a release as a Spark frame, drawn by the workers.

A release is public, and block b of a draw depends only on the release, the seed and b. So the release is sent to the
workers, each makes the blocks that it is given, and the rows are those of any other way to draw them, in their order.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.models.model import BLOCK_ROWS

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.release.bundle import Release, Trust

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def frame(release: Release, session: Any, rows: int, seed: int, where: str | None = None) -> Any:
    """One partition per block, made when it is asked for. Workers need this package and memory for one block."""
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.release")
        release.save(path)
        file = path.read_bytes()
    blocks = math.ceil(rows / BLOCK_ROWS)
    columns = from_arrow_schema(release.encoding.arrow_schema, prefer_timestamp_ntz=True)
    numbers = session.range(0, blocks, numPartitions=max(1, blocks))
    return numbers.mapInArrow(_drawn(file, release.trust, rows, seed, where, to_arrow_schema(columns)), columns)


def _drawn(file: bytes, trust: Trust, rows: int, seed: int, where: str | None, schema: pa.Schema) -> Batches:
    def draw(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        release = _loaded(file, trust)
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                for table in release.block(min(BLOCK_ROWS, rows - number * BLOCK_ROWS), seed, number, where):
                    yield from table.cast(schema).to_batches()  # Spark counts time in microseconds

    return draw


@cache
def _loaded(file: bytes, trust: Trust) -> Release:
    """A worker reads the release once."""
    from hedgerow.release.bundle import Release

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.release")
        path.write_bytes(file)
        return Release.load(path, **trust._asdict())
