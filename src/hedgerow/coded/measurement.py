"""Noisy answers, and the noise that was actually drawn for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hedgerow.coded.domain import Counts, IntArray
from hedgerow.coded.query import Query


@dataclass(frozen=True)
class Noise:
    """Integer noise: round(scale · Z) for a standard normal Z, or discrete Laplace P(k) ∝ e^(−|k|/scale)."""

    kind: Literal["gaussian", "laplace"]
    scale: float

    @cached_property
    def variance(self) -> float:
        """The exact variance of one draw. Rounding adds 1/12 to a wide Gaussian (up to e^(−2π²·scale²)), less below."""
        if self.kind == "laplace":
            return 0.5 / math.sinh(0.5 / self.scale) ** 2 if self.scale > 1e-2 else 0.0
        if self.scale >= 2:
            return self.scale**2 + 1 / 12
        # Σ k²·P(k) = Σ_{k≥1} (2k−1)·P(|round| ≥ k)
        return sum((2 * k - 1) * math.erfc((k - 0.5) / (self.scale * math.sqrt(2))) for k in range(1, 32))

    @property
    def std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def mean_absolute(self) -> float:
        """E|draw| up to rounding: √(2/π)·σ for Gaussian noise, b for Laplace."""
        return self.scale * (math.sqrt(2 / math.pi) if self.kind == "gaussian" else 1.0)


@dataclass(frozen=True)
class Threshold:
    """Noise every cell, keep those whose noisy count is at least `scales` noise scales."""

    scales: float


@dataclass(frozen=True, eq=False)
class Measurement:
    """The noisy counts of one query.

    `values` holds one integer per cell, or, after a Threshold, one per surviving cell, whose numbers are `kept`.
    """

    query: Query
    values: IntArray
    noise: Noise
    kept: IntArray | None = None

    @property
    def std(self) -> float:
        """Standard deviation of the noise on one cell."""
        return self.noise.std

    @property
    def total(self) -> float:
        """This measurement's own estimate of the number of rows (of those that its query counts)."""
        return float(self.values.sum())

    def dense(self) -> Counts:
        """One float per cell; cells that did not survive a threshold are 0."""
        if self.kept is None:
            return self.values.astype(np.float64)
        counts = np.zeros(self.query.cells)
        counts[self.kept] = self.values
        return counts


@dataclass(frozen=True, eq=False)
class Answer:
    """All that one charge brought, noisy and public: measurements, or the query chosen, or noisy scores."""

    measurements: tuple[Measurement, ...] = ()
    chosen: Mapping[str, Any] | None = None
    scores: tuple[float, ...] = ()


def estimated_total(measurements: Sequence[Measurement]) -> float:
    """The number of rows, from complete measurements that count every row: the inverse-variance mean of their sums.

    Never below 1, so that a model can always be scaled to it.
    """
    sums = np.array([measurement.total for measurement in measurements])
    precision = np.array([1 / max(m.query.cells * m.noise.variance, 1e-12) for m in measurements])
    return max(1.0, float((sums * precision).sum() / precision.sum()))
