"""What every method costs as the work grows: rows in, columns, values per column, ε, rows out.

    python -m bench.costs [METHOD…]

A made-up table with half-copied columns; one thing varies at a time. Every run is a process of its own on one thread,
with `--max-time 1m`. Results are kept in build/costs.json, so that they can be filled in piece by piece; the tables
stand in docs/studies/performance.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.process import ROOT, in_a_process

KEPT = ROOT / "build" / "costs.json"
RELEASES = ROOT / "build" / "costs"
SECONDS = 60.0


class Size(NamedTuple):
    """A table and a budget."""

    rows: int = 100_000
    columns: int = 10
    values: int = 8
    epsilon: float = 1.0


BASE = Size()
AXES: dict[str, dict[float, Size]] = {
    "Rows in": {rows: Size(rows=rows) for rows in (10_000, 100_000, 1_000_000)},
    "Columns": {columns: Size(columns=columns) for columns in (5, 10, 20, 40)},
    "Values per column": {values: Size(values=values) for values in (3, 8, 30, 100)},
    "ε": {epsilon: Size(epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)},
}
ROWS_OUT = (100_000, 1_000_000, 10_000_000)


def measure(method: str, size: Size) -> dict[str, Any]:
    """One run, from the table in memory to as many synthetic rows; the plain one leaves its release behind."""
    import hedgerow as hr
    from hedgerow.progress import Limits, Progress, peak_rss_mb

    private = made_up(size)
    text = "columns:\n" + "".join(f"  {name}: {{type: code, size: {size.values}}}\n" for name in private.column_names)
    begin = time.process_time()
    progress = Progress(Limits(seconds=SECONDS))
    release = hr.synthesize(private, hr.Schema.parse(text), hr.Budget(size.epsilon, 1e-9), method, progress=progress)
    release.sample()
    found = {"cpu_s": time.process_time() - begin, "peak_mb": peak_rss_mb(), "ended_early": progress.ended_early}
    if size == BASE:
        RELEASES.mkdir(parents=True, exist_ok=True)
        release.save(RELEASES / method)
    return found


def made_up(size: Size) -> Any:
    """Every column half a copy of the one before it."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    before = rng.integers(0, size.values, size.rows)
    table = {}
    for index in range(size.columns):
        before = np.where(rng.random(size.rows) < 0.5, before, rng.integers(0, size.values, size.rows))
        table[f"c{index:02}"] = before
    return pa.table(table)


def draw(method: str, rows: int) -> dict[str, Any]:
    """Rows out of the plain run's release, as Parquet files."""
    from hedgerow.progress import Progress, peak_rss_mb
    from hedgerow.release.parts import write_parts

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        begin = time.process_time()
        write_parts(RELEASES / method, Path(folder), rows, 0, 1, Progress())
        return {"cpu_s": time.process_time() - begin, "peak_mb": peak_rss_mb(), "ended_early": False}


def run() -> list[dict[str, Any]]:
    """Fill in what is missing and write the page."""
    from bench import performance
    from hedgerow.methods import names

    wanted = (sys.argv[1:] if __name__ == "__main__" else []) or list(names())
    found = kept()
    KEPT.parent.mkdir(exist_ok=True)
    for method in wanted:
        works: list[Size | int] = [size for sizes in AXES.values() for size in sizes.values()]
        for work in (*works, *ROWS_OUT):
            key = _key(method, work)
            if key not in found and not _too_long(found, method, work):
                function = "draw" if isinstance(work, int) else "measure"
                found[key] = in_a_process("bench.costs", function, method, work)
                KEPT.write_text(json.dumps(found, indent=1))
                print(key, found[key], file=sys.stderr, flush=True)
    performance.write_page()
    return [{"run": key, **figures} for key, figures in found.items()]


def _too_long(found: dict[str, dict[str, Any]], method: str, work: Size | int) -> bool:
    """No time limit ends a draw, so the next larger one is left out where a tenth of it took more than a minute."""
    tenth = found.get(_key(method, work // 10), {}) if isinstance(work, int) else {}
    return bool(tenth.get("cpu_s", 0.0) > SECONDS)


def kept() -> dict[str, dict[str, Any]]:
    """What was measured so far."""
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def _key(method: str, work: Size | int) -> str:
    return f"{method}|{work if isinstance(work, int) else '|'.join(map(str, work))}"


def sections() -> list[str]:
    """The tables, for the page."""
    found = kept()
    methods = sorted({key.split("|")[0] for key in found})
    if not methods:
        return []
    parts = [
        "## Whole runs of every method",
        f"A made-up table of {BASE.rows:,} rows and {BASE.columns} columns of {BASE.values} values each, ε = "
        f"{BASE.epsilon:g}; one thing varies at\na time. From the table in memory to as many synthetic rows; peak "
        "memory is that of the whole process. Runs have\n`--max-time 1m`, and a star marks those that it ended early: "
        "what they had by then is what they released.\nNo limit ends the drawing of rows; ten times as many are left "
        "out where a draw took more than a minute.",
    ]
    works: dict[str, dict[float, Any]] = {**AXES, "Rows out, as Parquet files": {rows: rows for rows in ROWS_OUT}}
    for name, axis in works.items():
        lines = ["| method | " + " | ".join(f"{value:,}" for value in axis) + " |", "|---" * (len(axis) + 1) + "|"]
        for method in methods:
            cells = [_cell(found.get(_key(method, work))) for work in axis.values()]
            lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
        parts += [f"### {name}", "\n".join(lines)]
    return parts


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    if "failed" in found:
        return "failed"
    return f"{found['cpu_s']:.1f} s, {found['peak_mb']:.0f} MB{' *' if found['ended_early'] else ''}"


if __name__ == "__main__":
    run()
