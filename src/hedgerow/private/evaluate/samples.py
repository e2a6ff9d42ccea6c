"""Samples of the real rows in the place of the synthetic table: what luck alone does to a figure. PRIVATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hedgerow.coded.domain import CodedTable, IntArray
from hedgerow.private.evaluate.metric import Comparison
from hedgerow.private.evaluate.raw import RawTable
from hedgerow.private.sources.coded import rows_of

SAMPLES = {"tenth": "a tenth", "half": "a half", "bootstrap": "a bootstrap"}
"""Of the real rows: one in ten and one in two without replacement, and as many as there are with replacement."""
PARTS = {"tenth": 10, "half": 2}


def sample_rows(name: str, rows: int, seed: int) -> IntArray:
    """Which of the rows a sample holds."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, rows])))
    if name == "bootstrap":
        return rng.integers(0, rows, rows)
    return rng.permutation(rows)[: max(1, rows // PARTS[name])]


def sample_of(table: CodedTable, name: str, seed: int) -> CodedTable:
    """The codes of a sample."""
    kept = sample_rows(name, rows_of(table), seed)
    return {attribute: codes[kept] for attribute, codes in table.items()}


def sample_of_values(table: RawTable, name: str, seed: int) -> RawTable:
    """The values of a sample."""
    return table.take(sample_rows(name, table.rows, seed))


def beside(comparison: Comparison, name: str, seed: int) -> Comparison:
    """The same comparison with a sample of the real rows in the place of the synthetic table."""
    real = comparison.values[0]
    values = real, sample_of_values(real, name, seed)
    return replace(comparison, synthetic=sample_of(comparison.real, name, seed), raw_tables=values)


def verdict(value: float | None, samples: Mapping[str, float | None]) -> str:
    """How good a figure is, where low is good, in words that need no theory."""
    tenth, half, bootstrap = (samples.get(name) for name in SAMPLES)
    if value is None or tenth is None or half is None or bootstrap is None:
        return ""
    if value == 0:
        return "no difference"
    if value <= max(half, bootstrap):
        return "as close as a half of the real rows"
    if value <= tenth:
        return "between a half and a tenth of the real rows"
    if tenth == 0:
        return "further than any sample of the real rows"
    times = f"{value / tenth:.1f}" if value < 10 * tenth else f"{value / tenth:,.0f}"
    return f"{times} times as far as a tenth of the real rows"
