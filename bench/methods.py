"""Whole runs of methods on the field's tables, from the file to synthetic rows, on one thread.

CPU seconds and peak memory, each beside what we allow it. The tables are those of `bench.quality`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from bench.process import in_a_process
from bench.tables import at_hand


class Case(NamedTuple):
    """A run, and the most CPU seconds and gigabytes that it may take."""

    method: str
    table: str
    epsilon: float
    seconds: float
    gigabytes: float


CASES = (
    Case("hedge", "adult", 1, 10, 2),
    Case("hedge", "adult", 10, 30, 2),
    Case("hedge", "acs-temporal", 1, 120, 2),
    Case("hedge", "loans", 1, 120, 2),
    Case("mst", "adult", 1, 2, 2),
    Case("mst", "loans", 1, 20, 4),
    Case("aim", "adult", 1, 20, 2),
    Case("aim", "adult", 10, 120, 2),
    Case("aim", "acs-temporal", 1, 120, 4),
    Case("aim", "loans", 1, 300, 4),
    Case("ppsyn", "adult", 1, 30, 2),
    Case("ppsyn", "loans", 1, 300, 4),
)


def run() -> list[dict[str, Any]]:
    there = at_hand(*dict.fromkeys(case.table for case in CASES))
    return [_row(case) for case in CASES if case.table in there]


def _row(case: Case) -> dict[str, Any]:
    found = in_a_process("bench.quality", "measure", case.table, case.method, case.epsilon, {})
    row: dict[str, Any] = {"method": case.method, "table": case.table, "epsilon": case.epsilon}
    if "failed" in found:
        return {**row, "kept": found["failed"]}
    kept = found["cpu_s"] <= case.seconds and found["peak_mb"] <= 1024 * case.gigabytes
    return {
        **row,
        "cpu s": found["cpu_s"],
        "allowed s": case.seconds,
        "peak MB": found["peak_mb"],
        "allowed MB": 1024 * case.gigabytes,
        "tvd3": found["tvd3"],
        "kept": "yes" if kept else "NO",
    }
