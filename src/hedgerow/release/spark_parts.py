"""Rows of a release as Spark frames, drawn by the workers.

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

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.release.bundle import Release, Trust

    Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def frames(release: Release, session: Any, rows: int, seed: int, where: str | None = None) -> dict[str, Any]:
    """A frame of each table (one that is alone has no name), with a partition per block, made when it is asked for.

    Workers need this package and memory for one block. Each frame of linked tables draws its blocks by itself.
    """
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.release")
        release.save(path)
        file = path.read_bytes()
    blocks = math.ceil(rows / release.block_rows)
    found = {}
    for name, schema in release.arrow_schemas.items():
        columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        numbers = session.range(0, blocks, numPartitions=max(1, blocks))
        drawn = _drawn(file, release.trust, name, rows, seed, where, to_arrow_schema(columns))
        found[name] = numbers.mapInArrow(drawn, columns)
    return found


def _drawn(file: bytes, trust: Trust, name: str, rows: int, seed: int, where: str | None, schema: pa.Schema) -> Batches:
    def draw(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        release = _loaded(file, trust)
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                size = min(release.block_rows, rows - number * release.block_rows)
                for piece in release.pieces(size, seed, number, where):
                    yield from piece[name].cast(schema).to_batches()  # Spark counts time in microseconds

    return draw


@cache
def _loaded(file: bytes, trust: Trust) -> Release:
    """A worker reads the release once."""
    from hedgerow.release.bundle import Release

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.release")
        path.write_bytes(file)
        return Release.load(path, **trust._asdict())
