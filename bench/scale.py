"""Tables larger than memory in, more rows than memory out, very wide tables: CPU seconds and peak memory.

Every step is a process of its own on one thread. The made-up table has 20 columns along a chain; it is written to a
temporary folder (about 2 GB for 100 million rows) and removed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.process import in_a_process, needed

COLUMNS = 20
PART = 10_000_000
GENEROUS, LITTLE = 4 << 30, 512 << 20


def sizes() -> dict[str, int]:
    return {f"c{index}": 2 + (7 * index) % 11 for index in range(COLUMNS)}


def schema_text(columns: dict[str, int]) -> str:
    return "columns:\n" + "".join(f"  {name}: {{type: code, size: {size}}}\n" for name, size in columns.items())


def write_rows(folder: str, rows: int) -> dict[str, float]:
    """A Parquet folder: each column half a copy of the one before it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    Path(folder).mkdir()
    for part in range(0, rows, PART):
        rng = np.random.default_rng(part)
        count = min(PART, rows - part)
        before = rng.integers(0, 12, count, dtype=np.uint8)
        columns = {}
        for name, size in sizes().items():
            fresh = rng.integers(0, size, count, dtype=np.uint8)
            before = np.where(rng.integers(0, 2, count, dtype=np.uint8) == 0, before % size, fresh).astype(np.uint8)
            columns[name] = before
        pq.write_table(pa.table(columns), f"{folder}/{part:012d}.parquet", use_dictionary=False, compression="lz4")
    return {}


def synthesize(folder: str, release: str, memory: int) -> dict[str, float]:
    """A whole run of mst, without its rows."""
    import hedgerow as hr
    from hedgerow.progress import Limits

    schema = hr.Schema.parse(schema_text(sizes()))
    limits = Limits(memory=memory)
    hr.synthesize(folder, schema, hr.Budget(1.0, 1e-9), "mst", limits=limits).save(release)
    return {}


def count(folder: str, memory: int) -> dict[str, float]:
    """All pairs, the coded rows in memory or on disk."""
    from hedgerow.coded.query import MarginalQuery
    from hedgerow.private.engines.arrow import ArrowEngine
    from hedgerow.private.sources.source import open_source
    from hedgerow.schema import Schema

    encoding = Schema.parse(schema_text(sizes())).encoding()
    engine = ArrowEngine(open_source(folder), memory=memory, threads=1)
    engine.prepare(encoding)
    queries = [MarginalQuery(encoding.domain, pair) for pair in encoding.domain.marginals(2)]
    begin = time.process_time()
    for exact in engine.count(queries):
        exact.opened()
    return {"counting_s": time.process_time() - begin}


def draw(release: str, folder: str, rows: int) -> dict[str, float]:
    """Rows out, Parquet writing included."""
    from hedgerow.progress import Progress
    from hedgerow.release.parts import write_parts

    write_parts(Path(release), Path(folder), rows, 0, 1, Progress())
    return {}


def many_columns(method: str, columns: int, rows: int, seconds: float | None) -> dict[str, float]:
    """A chain of narrow columns."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    widths = {f"c{index}": 2 + index % 10 for index in range(columns)}
    table, before = {}, rng.integers(0, 8, rows)
    for name, size in widths.items():
        before = np.where(rng.random(rows) < 0.5, before % size, rng.integers(0, size, rows))
        table[name] = before.astype(np.uint8)
    return _whole_run(pa.table(table), widths, method, seconds)


def many_values(method: str, values: int, rows: int, seconds: float | None) -> dict[str, float]:
    """Ten narrow columns, the first of them told by a column of very many values."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    wide = (rng.pareto(1.0, rows) * 100).astype(np.int64) % values
    table = {"wide": wide, "c0": wide % 8} | {f"c{index}": rng.integers(0, 8, rows) for index in range(1, 10)}
    return _whole_run(pa.table(table), {"wide": values} | {f"c{index}": 8 for index in range(10)}, method, seconds)


def _whole_run(table: Any, widths: dict[str, int], method: str, seconds: float | None) -> dict[str, float]:
    import hedgerow as hr
    from hedgerow.progress import Limits

    limits = Limits(seconds=seconds)
    begin = time.monotonic()
    schema = hr.Schema.parse(schema_text(widths))
    hr.synthesize(table, schema, hr.Budget(1.0, 1e-9), method, limits=limits).sample()
    return {"wall_s": time.monotonic() - begin}


def spent(function: str, *words: Any) -> dict[str, float]:
    """What the call says, with the CPU seconds and the peak memory of its process."""
    from hedgerow.progress import peak_rss_mb

    found: dict[str, float] = globals()[function](*words)
    return found | {"cpu_s": time.process_time(), "peak_mb": peak_rss_mb()}


def step(function: str, *words: Any) -> dict[str, Any]:
    """`spent` in a process of its own."""
    return in_a_process("bench.scale", "spent", function, *words)


def run() -> list[dict[str, Any]]:
    most = int(float(os.environ.get("HEDGEROW_SCALE", "1e8")))
    lines: list[dict[str, Any]] = []

    def line(what: str, size: int, found: dict[str, Any]) -> None:
        lines.append({"what": what, "size": size, **found})
        print(lines[-1], file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        release = f"{folder}/r.release"
        few, many = f"{folder}/few", f"{folder}/many"
        needed(step("write_rows", few, most // 10))
        line("mst, rows in", most // 10, step("synthesize", few, release, GENEROUS))
        line("mst, rows in, --max-memory 512M", most // 10, step("synthesize", few, release, LITTLE))
        for what, memory in (("count pairs, in memory", 1 << 40), ("count pairs, on disk", 0)):
            line(what, most // 10, step("count", few, memory))
        needed(step("write_rows", many, most))
        line("mst, rows in", most, step("synthesize", many, release, GENEROUS))
        for size in (most // 10, most):
            found = needed(step("draw", release, f"{folder}/out{size}", size))
            line("rows out", size, found | {"rows_per_s": size / found["cpu_s"]})
    for method, seconds in (("mst", None), ("aim", 300.0), ("field-groups", 300.0)):
        line(f"{method}, columns (100,000 rows)", 500, step("many_columns", method, 500, 100_000, seconds))
    for method, seconds in (("independent", None), ("mst", None), ("aim", 300.0)):
        line(
            f"{method}, values of one column (100,000 rows)",
            10**6,
            step("many_values", method, 10**6, 100_000, seconds),
        )
    return lines
