"""Encoding a Parquet file of 10 million rows and 20 columns: CPU seconds, and peak memory against what is allowed."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 10_000_000
BLOCK = 1 << 20
ALLOWED_BESIDE_CODES = 600 * 10**6
REGIONS = [f"region {number:02d}" for number in range(40)]
SCHEMA = f"""
columns:
  region: {{type: category, values: {json.dumps(REGIONS)}}}
  kind:   {{type: category, values: [rent, own, other], missing: true}}
  income: {{type: number, min: 0, max: 1000000, bins: 100}}
  weight: {{type: number, min: 0, max: 10, bins: 20}}
  born:   {{type: date, min: 1920-01-01, max: 2019-12-31, step: month}}
""" + "".join(f"  x{index}: {{type: integer, min: 0, max: {19 + 7 * index}}}\n" for index in range(15))


def run() -> list[dict[str, Any]]:
    """One line: the peak of a fresh process that does nothing but encode."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.parquet"
        write_table(table)
        measured = subprocess.run([sys.executable, __file__, str(table)], capture_output=True, text=True, check=True)
        measured_line: dict[str, Any] = json.loads(measured.stdout)
        file_mb = table.stat().st_size / 1e6
    allowed = measured_line["encoded_mb"] + ALLOWED_BESIDE_CODES / 1e6
    return [
        {
            "what": "encoding 10 M × 20",
            "file_mb": file_mb,
            **measured_line,
            "allowed_mb": allowed,
            "ratio": measured_line["peak_mb"] / allowed,
            "at_most": 1.0,
        }
    ]


def write_table(path: Path) -> None:
    """Made-up rows, written block by block."""
    rng = np.random.default_rng(0)
    writer = None
    for batch in _batches(rng):
        writer = writer or pq.ParquetWriter(path, batch.schema)
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def _batches(rng: np.random.Generator) -> Iterator[pa.RecordBatch]:
    regions = pa.array(REGIONS)
    kinds = pa.array(["rent", "own", "other", None])
    for begin in range(0, ROWS, BLOCK):
        rows = min(BLOCK, ROWS - begin)
        columns = {
            "region": regions.take(pa.array(rng.integers(0, len(REGIONS), rows))),
            "kind": kinds.take(pa.array(rng.integers(0, 4, rows))),
            "income": pa.array(rng.exponential(40_000, rows)),
            "weight": pa.array(rng.random(rows, dtype=np.float32) * np.float32(10)),
            "born": pa.array(rng.integers(-18_000, 18_000, rows).astype("datetime64[D]")),
        }
        for index in range(15):
            share = rng.random(rows, dtype=np.float32)
            columns[f"x{index}"] = pa.array((share * share * (20 + 7 * index)).astype(np.int64))
        yield pa.record_batch(columns)


def _encode(path: str) -> dict[str, float]:
    from hedgerow.private.engines.arrow import ArrowEngine
    from hedgerow.private.sources.source import open_source
    from hedgerow.schema import Schema

    encoding = Schema.parse(SCHEMA).encoding()
    begin = time.process_time()
    ArrowEngine(open_source(path)).prepare(encoding)
    return {
        "cpu_s": time.process_time() - begin,
        "encoded_mb": ROWS * sum(attribute.dtype.itemsize for attribute in encoding.domain) / 1e6,
        "peak_mb": _peak_bytes() / 1e6,
    }


def _peak_bytes() -> int:
    """The most memory this process has held; getrusage would count what its parent held before it was born."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_encode(sys.argv[1])))
    else:
        for line in run():
            print(json.dumps(line, ensure_ascii=False))
