"""Rank correlations of values as they stand. PRIVATE: exact functions of real rows."""

from __future__ import annotations

import numpy as np
from scipy import stats

from hedgerow.private.evaluate.correlations import Correlations, mean_difference
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.evaluate.raw import RawTable
from hedgerow.private.evaluate.values import IN_ORDER
from hedgerow.schema.arrays import FloatArray

LEAST = 1e-9
"""A sum of squared ranks (from −½ to ½) below this is 0 but for rounding: one row that differs gives far more."""


def spearman(table: RawTable) -> Correlations:
    """Spearman's ρ of every pair of columns with numbers or dates: Pearson's r of the ranks, ties at their mean rank.

    Ranks are those among all values of a column; rows where one of the two is missing are left out of that pair. A pair
    in which one column does not vary has no coefficient; it counts as 0, because nothing goes together.
    """
    names = [name for name, column in table.columns.items() if column.kind in IN_ORDER]
    if not names:
        return Correlations((), np.eye(0))
    ranks = np.column_stack([_ranks(table.columns[name].values) for name in names])
    there = ~np.isnan(ranks)
    ranks[~there] = 0
    present = there.astype(np.float64)
    rows = np.maximum(present.T @ present, 1)
    sums = ranks.T @ present  # [i, j]: of the ranks of i over the rows where j is present too
    squares = (ranks**2).T @ present - sums**2 / rows
    products = ranks.T @ ranks - sums * sums.T / rows
    below = np.sqrt(np.clip(squares * squares.T, 0, None))
    varies = np.minimum(squares, squares.T) > LEAST
    matrix = np.clip(np.where(varies, products / np.where(varies, below, 1), 0), -1, 1)
    np.fill_diagonal(matrix, 1)
    return Correlations(tuple(names), matrix)


def _ranks(values: FloatArray) -> FloatArray:
    """From −½ to ½, NaN where there is no value."""
    ranks = np.full(len(values), np.nan)
    there = ~np.isnan(values)
    if there.any():
        ranks[there] = stats.rankdata(values[there]) / there.sum() - 0.5
    return ranks


def _rank_error(comparison: Comparison) -> dict[str, float | None]:
    real, synthetic = comparison.values
    return {"spearman": mean_difference(spearman(real), spearman(synthetic))}


SPEARMAN = Metric(
    "spearman",
    _rank_error,
    {
        "spearman": Figure(
            "Spearman's ρ",
            "mean difference of the rank correlations of numbers and dates",
            words="How strongly two columns rise and fall together is off by {}.",
        )
    },
    needs=("values",),
    beside_samples=True,
)
