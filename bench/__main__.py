"""`make bench`: every benchmark, side by side with its peer in one run, in CPU seconds."""

from __future__ import annotations

import importlib
import sys
from typing import Any

BENCHMARKS = (
    "startup",
    "noise",
    "counting",
    "encoding",
    "model",
    "methods",
    "dpsyn",
    "rdt",
    "evaluate",
    "engines",
    "scale",
    "store",
    "numeric",
    "costs",
)


def show(rows: list[dict[str, Any]]) -> None:
    """Rows as an aligned table, one column per key."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [keys, *([_text(row.get(key)) for key in keys] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(keys))]
    for line in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> None:
    """All of them, or those that are named."""
    for name in sys.argv[1:] or BENCHMARKS:
        print(f"\n== {name}", flush=True)
        show(importlib.import_module(f"bench.{name}").run())


if __name__ == "__main__":
    main()
