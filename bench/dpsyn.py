"""DPSyn at the full size of NIST's 2020 challenge, and the record update by itself, beside what we allow them.

The made-up survey stands in for the contest's table: 1,033,968 rows, 181 places × 7 years, 36 columns, and another
region as the public table. One process from the file to the synthetic file, on one thread.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
EPSILONS = ("0.1", "1")
ALLOWED_SECONDS = 600
ALLOWED_MB = 4096
UPDATE_SECONDS = 10


def run() -> list[dict[str, Any]]:
    rows = [_update()]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("acs", "acs-public"):
            _hedgerow("example", name, "-o", str(Path(folder) / f"{name}.parquet"))
        rows += [_contest(Path(folder), epsilon) for epsilon in EPSILONS]
    return rows


def _contest(folder: Path, epsilon: str) -> dict[str, Any]:
    """A whole run, at the contest's δ."""
    done = _hedgerow(
        *(
            "synth",
            str(folder / "acs.parquet"),
            "-s",
            str(folder / "acs.yaml"),
            "-s",
            "preset:acs",
            "-m",
            "dpsyn",
            "-e",
            epsilon,
            "--delta",
            "3.45e-11",
        ),
        *("--public", str(folder / "acs-public.parquet"), "-o", str(folder / f"{epsilon}.parquet"), "--json", "-q"),
    )
    report = json.loads(done)
    return _row(
        f"dpsyn, ε = {epsilon}, contest size", sum(phase["cpu_s"] for phase in report["phases"].values()),
        ALLOWED_SECONDS, report["peak_rss_mb"],
    )  # fmt: skip


def _update() -> dict[str, Any]:
    """10,000 records, 22 attributes, all 231 pairs, 61 iterations and the exchanges."""
    import resource

    from hedgerow.coded.domain import Domain
    from hedgerow.models.records import Records, Target

    rng = np.random.default_rng(0)
    domain = Domain.of({f"x{index}": int(size) for index, size in enumerate(rng.integers(2, 25, 22))})
    shares = {attribute.name: rng.dirichlet(np.ones(attribute.size)) for attribute in domain}
    targets = [Target((a, b), np.outer(shares[a], shares[b])) for a, b in combinations(domain.names, 2)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    Records(domain, targets, 10_000).draw(10_000, rng)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return _row("update of 10,000 records", after.ru_utime - before, UPDATE_SECONDS, after.ru_maxrss / 1024)


def _row(what: str, seconds: float, allowed: float, peak: float) -> dict[str, Any]:
    kept = seconds <= allowed and peak <= ALLOWED_MB
    return {
        "run": what,
        "cpu s": round(seconds, 1),
        "allowed s": allowed,
        "peak MB": round(peak),
        "allowed MB": ALLOWED_MB,
        "kept": "yes" if kept else "NO",
    }


def _hedgerow(*words: str) -> str:
    """One command in a process of its own, on one thread."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([*COMMAND, *words], check=True, capture_output=True, text=True, env={**os.environ, **threads})
    return done.stdout


if __name__ == "__main__":
    from bench.__main__ import show

    show(run())
