"""Evaluating, every figure and the page: CPU seconds and peak memory against what is allowed.

Adult (where $HEDGEROW_DATA holds it) beside a bootstrap sample of itself, and
a made-up table of 1 million rows and 20 columns beside another draw of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tables import DATA, at_hand

ROOT = Path(__file__).resolve().parent.parent
ROWS, COLUMNS = 1_000_000, 20
SIZES = [2, 2, 3, 5, 5, 7, 8, 9, 10, 12, 15, 16, 20, 24, 30, 40, 50, 64, 85, 100]


def run() -> list[dict[str, Any]]:
    """A fresh process for each table."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        adult = DATA / "adult"
        if at_hand("adult"):
            real = pq.read_table(adult / "data.parquet")
            drawn = np.random.default_rng(0).integers(0, len(real), len(real))
            pq.write_table(real.take(drawn), place / "bootstrap.parquet")
            words = [adult / "data.parquet", place / "bootstrap.parquet", "-s", adult / "domain.json"]
            lines.append(_measured("adult", place, [*words, "--target", "income>50K"], 10.0, None))
        write_pair(place)
        words = [place / "real.parquet", place / "synthetic.parquet", "-s", place / "schema.yaml", "--target", "x0"]
        lines.append(_measured("1 M × 20", place, words, 60.0, 3000.0))
    return lines


def write_pair(folder: Path) -> None:
    """Two draws of a made-up table in which every column leans on the one before; every second one is ordered."""
    kinds = [
        f"{{type: integer, min: 0, max: {size - 1}}}" if index % 2 else f"{{type: code, size: {size}}}"
        for index, size in enumerate(SIZES)
    ]
    declared = "".join(f"  x{index}: {kind}\n" for index, kind in enumerate(kinds))
    (folder / "schema.yaml").write_text(f"columns:\n{declared}")
    for seed, name in enumerate(("real", "synthetic")):
        rng = np.random.default_rng(seed)
        columns: dict[str, pa.Array] = {}
        before = rng.random(ROWS)
        for index, size in enumerate(SIZES):
            before = (before + 0.5 * rng.random(ROWS) ** 2) % 1
            columns[f"x{index}"] = pa.array((before * size).astype(np.int16))
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def _measured(what: str, folder: Path, words: list[Any], seconds: float, megabytes: float | None) -> dict[str, Any]:
    command = "import sys; from hedgerow.cli import main; main()"
    page = folder / "page.html"
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            command,
            "evaluate",
            *map(str, words),
            "--report",
            str(page),
            "--overwrite",
            "--json",
            "-q",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    report = json.loads(done.stdout)
    spent = sum(phase["cpu_s"] for phase in report["phases"].values())
    slowest = max(report["phases"], key=lambda name: report["phases"][name]["cpu_s"])
    return {
        "what": f"evaluating {what}",
        "cpu_s": spent,
        "allowed_s": seconds,
        "peak_mb": report["peak_rss_mb"],
        "allowed_mb": megabytes,
        "slowest": f"{slowest} {report['phases'][slowest]['cpu_s']:.1f} s",
        "page_mb": page.stat().st_size / 1e6,
    }


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line, ensure_ascii=False))
