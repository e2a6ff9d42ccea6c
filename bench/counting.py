"""Counting marginals: CPU seconds per marginal, and the ratio to np.bincount in the same run, on one thread.

The peer forms its index as np.ravel_multi_index does, in place on 64-bit integers, from the same narrow columns.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.tables import DATA, at_hand
from bench.turns import least_seconds
from hedgerow.coded.domain import CodedTable, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines.arrow import ArrowEngine

TARGET = 0.5
WIDE_TARGET = 1.0
GENERATED_ROWS = 10_000_000
GENERATED_SIZES = (2, 2, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24, 42, 85, 100, 300)


def run() -> list[dict[str, Any]]:
    """One line per table and number of attributes."""
    lines = []
    for name in at_hand("adult", "acs-temporal"):
        lines += _compare(name, *load(name), degrees=(2, 3), most=200)
    lines += _compare("10 M × 20", *generate(GENERATED_ROWS), degrees=(2, 3), most=16)
    if at_hand("loans"):
        domain, columns = load("loans")
        wide = [marginal for marginal in domain.marginals(3) if domain.cells(marginal) >= 900_000]
        lines.append(_line("loans, wide", domain, columns, _spread(wide, 200), WIDE_TARGET))
    return lines


def load(name: str) -> tuple[Domain, CodedTable]:
    """A real coded table."""
    domain = Domain.of(json.loads((DATA / name / "domain.json").read_text()))
    table = pq.read_table(DATA / name / "data.parquet")
    return domain, {a.name: table[a.name].to_numpy().astype(a.dtype) for a in domain}


def generate(rows: int) -> tuple[Domain, CodedTable]:
    """A made-up table of 20 columns whose small codes are the frequent ones."""
    rng = np.random.default_rng(0)
    domain = Domain.of({f"x{index}": size for index, size in enumerate(GENERATED_SIZES)})
    columns = {}
    for attribute in domain:
        share = rng.random(rows, dtype=np.float32)
        columns[attribute.name] = (share * share * np.float32(attribute.size * 0.999)).astype(attribute.dtype)
    return domain, columns


def numpy_counts(domain: Domain, columns: CodedTable, marginal: Marginal) -> IntArray:
    """The peer: what one would write with numpy."""
    index = columns[marginal[0]].astype(np.int64)
    for name in marginal[1:]:
        index *= domain[name].size
        index += columns[name]
    return np.bincount(index, minlength=domain.cells(marginal))


def _compare(name: str, domain: Domain, columns: CodedTable, degrees: Sequence[int], most: int) -> list[dict[str, Any]]:
    return [
        _line(f"{name}, {degree}-way", domain, columns, _spread(list(domain.marginals(degree)), most), TARGET)
        for degree in degrees
    ]


def _spread(marginals: Sequence[Marginal], most: int) -> list[Marginal]:
    """At most `most` of them, evenly spread."""
    return list(itertools.islice(marginals, 0, None, -(-len(marginals) // most)))


def _line(
    name: str, domain: Domain, columns: CodedTable, marginals: Sequence[Marginal], target: float
) -> dict[str, Any]:
    engine = ArrowEngine.from_codes(domain, columns, threads=1)
    queries = [MarginalQuery(domain, marginal) for marginal in marginals]

    def ours() -> None:
        for _ in engine.count(queries):
            pass

    def theirs() -> None:
        for marginal in marginals:
            numpy_counts(domain, columns, marginal)

    mine, peer = least_seconds(ours, theirs, rounds=3)
    return {
        "what": f"counting {name}",
        "marginals": len(marginals),
        "cpu_ms_each": 1e3 * mine / len(marginals),
        "numpy_cpu_ms_each": 1e3 * peer / len(marginals),
        "ratio": mine / peer,
        "at_most": target,
    }


if __name__ == "__main__":
    for line in run():
        print(json.dumps(line, ensure_ascii=False))
