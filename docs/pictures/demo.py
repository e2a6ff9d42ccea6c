"""Draws docs/pictures/demo.svg: counts of the sample table and of its synthetic version, as `make demo` makes them.

python docs/pictures/demo.py demo/private.parquet demo/synthetic.parquet
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

COLUMNS = ("race", "age", "agency", "pay")
WIDTH, HEIGHT, LEFT, TOP, GAP = 190, 120, 16, 34, 22
REAL, SYNTHETIC, TEXT = "#9a9a9a", "#2e7d4f", "#57606a"


def shares(column: pa.ChunkedArray, labels: list[str]) -> list[float]:
    counts = {str(entry["values"]): entry["counts"] for entry in pc.value_counts(column).to_pylist()}
    return [counts.get(label, 0) / len(column) for label in labels]


def binned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Pay in classes of 8,000 dollars."""
    return pa.chunked_array([pa.array((np.asarray(column) // 8000 * 8).astype(str))])


def panel(name: str, number: int, real: pa.Table, synthetic: pa.Table) -> str:
    first, second = real[name], synthetic[name]
    if name == "pay":
        first, second = binned(first), binned(second)
        labels = [str(8 * index) for index in range(12)]
    else:
        labels = sorted({str(value) for value in first.unique().to_pylist()})
    pairs = list(zip(shares(first, labels), shares(second, labels), strict=True))
    most = max(max(pair) for pair in pairs)
    left = LEFT + number * (WIDTH + GAP)
    slot = WIDTH / len(labels)
    parts = [
        f'<text x="{left}" y="{TOP - 12}" class="name">{escape(name)}{" (1,000 $)" if name == "pay" else ""}</text>'
    ]
    for index, (label, pair) in enumerate(zip(labels, pairs, strict=True)):
        for side, (share, colour) in enumerate(zip(pair, (REAL, SYNTHETIC), strict=True)):
            height = share / most * HEIGHT
            x = left + index * slot + side * slot * 0.42
            parts.append(
                f'<rect x="{x:.1f}" y="{TOP + HEIGHT - height:.1f}" width="{slot * 0.4:.1f}" height="{height:.1f}" '
                f'fill="{colour}"><title>{escape(name)} {escape(label)}: {share:.2%}</title></rect>'
            )
        if len(labels) < 9 or index % 2 == 0:
            short = label[0] if name == "agency" else label
            parts.append(f'<text x="{left + (index + 0.41) * slot:.1f}" y="{TOP + HEIGHT + 14}">{escape(short)}</text>')
    return "\n".join(parts)


def main() -> None:
    real, synthetic = (pq.read_table(path) for path in sys.argv[1:3])
    width = 2 * LEFT + len(COLUMNS) * WIDTH + (len(COLUMNS) - 1) * GAP
    height = TOP + HEIGHT + 24
    style = f"text{{font:11px sans-serif;fill:{TEXT};text-anchor:middle}}.name{{font-size:13px;text-anchor:start}}"
    panels = "\n".join(panel(name, number, real, synthetic) for number, name in enumerate(COLUMNS))
    Path(__file__).with_name("demo.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{style}</style>\n{panels}\n</svg>\n"
    )


if __name__ == "__main__":
    main()
