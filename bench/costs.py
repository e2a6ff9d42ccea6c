"""What every method costs as the work grows: rows, columns, values per column, ε. Writes docs/costs.md.

    python -m bench.costs [METHOD…]

A made-up table with half-copied columns; one thing varies at a time. Every run is a process of its own on one thread,
with `--max-time 2m`. Results are kept in build/costs.json, so that the page can be filled in piece by piece.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, NamedTuple

from bench.process import ROOT, in_a_process

KEPT = ROOT / "build" / "costs.json"
PAGE = ROOT / "docs" / "costs.md"
SECONDS = 120.0


class Size(NamedTuple):
    """A table and a budget."""

    rows: int = 100_000
    columns: int = 10
    values: int = 8
    epsilon: float = 1.0


AXES: dict[str, tuple[Size, ...]] = {
    "rows in": tuple(Size(rows=rows) for rows in (10_000, 100_000, 1_000_000)),
    "columns": tuple(Size(columns=columns) for columns in (5, 10, 20, 40)),
    "values per column": tuple(Size(values=values) for values in (3, 8, 30, 100)),
    "ε": tuple(Size(epsilon=epsilon) for epsilon in (0.1, 1.0, 10.0)),
}


def measure(method: str, size: Size) -> dict[str, Any]:
    """One run, rows drawn included."""
    import numpy as np
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.cli.progress import peak_rss_mb
    from hedgerow.progress import Limits, Progress

    coins = np.random.default_rng(0)
    before = coins.integers(0, size.values, size.rows)
    table = {}
    for place in range(size.columns):
        before = np.where(coins.random(size.rows) < 0.5, before, coins.integers(0, size.values, size.rows))
        table[f"c{place:02}"] = before
    text = "columns:\n" + "".join(f"  {name}: {{type: code, size: {size.values}}}\n" for name in table)
    private = pa.table(table)
    del table
    begin = time.process_time()
    progress = Progress(Limits(seconds=SECONDS))
    budget = hr.Budget(size.epsilon, 1e-9)
    hr.synthesize(private, hr.Schema.parse(text), budget, method, progress=progress).sample()
    return {"cpu_s": time.process_time() - begin, "peak_mb": peak_rss_mb(), "ended_early": progress.ended_early}


def run() -> list[dict[str, Any]]:
    """Fill in what is missing and write the page."""
    from hedgerow.methods import names

    wanted = (sys.argv[1:] if __name__ == "__main__" else []) or list(names())
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    KEPT.parent.mkdir(exist_ok=True)
    for size in dict.fromkeys(size for sizes in AXES.values() for size in sizes):
        for method in wanted:
            key = f"{method}|{'|'.join(map(str, size))}"
            if key not in kept:
                kept[key] = in_a_process("bench.costs", "measure", method, size)
                KEPT.write_text(json.dumps(kept, indent=1))
                print(key, kept[key], file=sys.stderr, flush=True)
    PAGE.write_text(page(kept))
    return [{"run": key, **found} for key, found in kept.items()]


def page(kept: dict[str, Any]) -> str:
    """docs/costs.md."""
    base = Size()
    lines = [
        "# What methods cost",
        "",
        f"Whole runs on a made-up table of {base.rows:,} rows, {base.columns} columns of {base.values} values each,",
        f"ε = {base.epsilon:g}; one thing varies at a time. CPU seconds on one thread, and peak memory of the process,",
        "from the table in memory to as many synthetic rows. Written by `python -m bench.costs`; runs have",
        "`--max-time 2m`, and a star marks those that it ended early.",
        "",
    ]
    methods = sorted({key.split("|")[0] for key in kept})
    for axis, sizes in AXES.items():
        heads = [f"{_value(axis, size):,}" for size in sizes]
        lines += [
            f"## {axis.capitalize()}",
            "",
            "| method | " + " | ".join(heads) + " |",
            "|---" * (len(sizes) + 1) + "|",
        ]
        for method in methods:
            cells = [_cell(kept.get(f"{method}|{'|'.join(map(str, size))}")) for size in sizes]
            lines.append(f"| `{method}` | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _value(axis: str, size: Size) -> float:
    return {"rows in": size.rows, "columns": size.columns, "values per column": size.values, "ε": size.epsilon}[axis]


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    if "failed" in found:
        return "failed"
    return f"{found['cpu_s']:.1f} s, {found['peak_mb']:.0f} MB{' *' if found['ended_early'] else ''}"


if __name__ == "__main__":
    run()
