"""What readers compute from a column of numbers or dates: mean, standard deviation, sum, quantiles, distances. PRIVATE.

Each figure is a mean over the columns; `NAME_columns` holds it column by column in the schema's order, and `NAME_at`
the column where it is worst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.evaluate.raw import Kind, RawColumn, RawTable
from hedgerow.schema.arrays import FloatArray

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST = 1e300
"""Standard deviations that a difference is said to be at most."""
NUMBERS: tuple[Kind, ...] = ("number",)
IN_ORDER: tuple[Kind, ...] = ("number", "day", "moment")
ColumnFigure: TypeAlias = Callable[[RawColumn, RawColumn], float | None]
"""(real, synthetic) → a number, None where it means nothing."""


def by_column(tables: tuple[RawTable, RawTable], figure: ColumnFigure, kinds: tuple[Kind, ...]) -> dict[str, float]:
    """A figure for each column of some kinds, where it has one."""
    real, synthetic = tables
    found: dict[str, float] = {}
    for name, column in real.columns.items():
        if column.kind in kinds and (value := figure(column, synthetic.columns[name])) is not None:
            found[name] = float(value)
    return found


def columnwise(
    name: str, compute: ColumnFigure, kinds: tuple[Kind, ...], figure: Figure, compared: bool = False
) -> Metric:
    """The metric that is the mean of a figure over columns."""

    def over_columns(comparison: Comparison) -> dict[str, Any]:
        found = by_column(comparison.values, compute, kinds)
        worst = max(found, key=found.__getitem__) if found else None
        mean = float(np.mean(list(found.values()))) if found else None
        return {name: mean, f"{name}_at": worst, f"{name}_columns": found}

    return Metric(name, over_columns, {name: figure}, needs=("values",), compared=compared, beside_samples=True)


def mean(values: FloatArray) -> float:
    """The mean, also where a sum would be beyond what a number can hold."""
    size = _size(values)
    return float((values / size).mean()) * size


def deviation(values: FloatArray) -> float:
    """The standard deviation (over all values, not one less)."""
    size = _size(values)
    return float((values / size).std()) * size


def quantiles(values: FloatArray, levels: tuple[float, ...] = LEVELS) -> FloatArray:
    """Of values in order, the least that has at least such a share of them at or below it."""
    found: FloatArray = np.quantile(values, levels, method="inverted_cdf")
    return found


def kolmogorov(real: FloatArray, synthetic: FloatArray) -> float:
    """Of values in order: the largest difference between the shares of both at or below any number."""
    return float(np.abs(_gaps(real, synthetic, np.union1d(real, synthetic))).max())


def wasserstein(real: FloatArray, synthetic: FloatArray) -> float:
    """Of values in order: how far a value has to be moved, on average, to make the two alike."""
    line = np.union1d(real, synthetic)
    return float((np.abs(_gaps(real, synthetic, line[:-1])) * np.diff(line)).sum())


def _gaps(real: FloatArray, synthetic: FloatArray, at: FloatArray) -> FloatArray:
    """Shares at or below some numbers, synthetic less real."""
    ours, theirs = (np.searchsorted(values, at, side="right") / len(values) for values in (real, synthetic))
    return theirs - ours


def _size(values: FloatArray) -> float:
    return float(np.abs(values).max()) or 1.0


def _where_there_are_values(figure: Callable[[FloatArray, FloatArray], float]) -> ColumnFigure:
    """None where the real column is empty; 1 where the synthetic one alone is."""

    def compute(real: RawColumn, synthetic: RawColumn) -> float | None:
        if not len(real.present):
            return None
        return figure(real.present, synthetic.present) if len(synthetic.present) else 1.0

    return compute


def in_deviations(off: float, real: FloatArray) -> float:
    """A difference in standard deviations of the real column; where that does not vary, 1 for any difference."""
    spread = deviation(real)
    return min(off / spread, MOST) if spread > 0 else float(off > 0)


def _scaled(real: FloatArray, synthetic: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both between −1 and 1, so that no difference is beyond what a number can hold."""
    size = max(_size(real), _size(synthetic))
    return real / size, synthetic / size


def _mean_error(real: FloatArray, synthetic: FloatArray) -> float:
    real, synthetic = _scaled(real, synthetic)
    return in_deviations(abs(mean(synthetic) - mean(real)), real)


def _deviation_error(real: FloatArray, synthetic: FloatArray) -> float:
    ours, theirs = deviation(real), deviation(synthetic)
    return abs(theirs - ours) / max(ours, theirs) if ours != theirs else 0.0


def _quantile_error(real: FloatArray, synthetic: FloatArray) -> float:
    real, synthetic = _scaled(real, synthetic)
    return in_deviations(mean(np.abs(quantiles(synthetic) - quantiles(real))), real)


def _wasserstein_error(real: FloatArray, synthetic: FloatArray) -> float:
    real, synthetic = _scaled(real, synthetic)
    return in_deviations(wasserstein(real, synthetic), real)


def total(column: RawColumn) -> float:
    """The sum, for each row of the table: what is missing adds nothing."""
    return mean(column.present) * (len(column.present) / len(column.values)) if len(column.present) else 0.0


def sum_error(real: RawColumn, synthetic: RawColumn) -> float | None:
    """How far sums are apart, as a share of the sum of the real sizes, as if both tables had as many rows."""
    if not len(real.present):
        return None
    whole = mean(np.abs(real.present)) * (len(real.present) / len(real.values))
    off = abs(total(synthetic) - total(real))
    return min(off / whole, MOST) if whole > 0 else float(off > 0)


MEANS = columnwise(
    "means",
    _where_there_are_values(_mean_error),
    IN_ORDER,
    Figure(
        "means",
        "mean error of the means of numbers and dates, in standard deviations of the real column",
        "percent",
        headline=True,
        words="Means are off by {} of a standard deviation.",
    ),
    compared=True,
)
DEVIATIONS = columnwise(
    "deviations",
    _where_there_are_values(_deviation_error),
    IN_ORDER,
    Figure(
        "standard deviations",
        "mean difference of standard deviations, as a share of the larger",
        "percent",
        words="Standard deviations are off by {}.",
    ),
)
SUMS = columnwise(
    "sums",
    sum_error,
    NUMBERS,
    Figure(
        "sums",
        "mean error of the sums of numbers, as a share; tables made equally long",
        "percent",
        words="Sums of whole columns are off by {}.",
    ),
)
QUANTILES = columnwise(
    "quantiles",
    _where_there_are_values(_quantile_error),
    IN_ORDER,
    Figure(
        "quantiles",
        "mean error of the 5, 25, 50, 75 and 95 % quantiles, in standard deviations",
        "percent",
        words="Medians, quartiles and the like are off by {} of a standard deviation.",
    ),
)
KS = columnwise(
    "ks",
    _where_there_are_values(kolmogorov),
    IN_ORDER,
    Figure(
        "Kolmogorov",
        "mean Kolmogorov distance of numbers and dates: the largest error of a share of rows below a number",
        headline=True,
        words="However a number or a date is cut in two, the shares on both sides are off by {} at most.",
    ),
    compared=True,
)
WASSERSTEIN = columnwise(
    "wasserstein",
    _where_there_are_values(_wasserstein_error),
    IN_ORDER,
    Figure(
        "Wasserstein",
        "how far values have to be moved to make a column alike, in standard deviations",
        "percent",
        words="The typical value would have to move by {} of a standard deviation.",
    ),
)
