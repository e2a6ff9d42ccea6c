"""Noisy answers, and the noise that was actually drawn for them.

Both are checked when they are made: whoever fits a model to them can rely on finite numbers, one for every cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hedgerow.coded.domain import Counts, IntArray
from hedgerow.coded.query import Measurable
from hedgerow.errors import HedgerowError

LARGEST = 2.0**63
"""Counts are whole numbers of 64 bits."""
WIDEST = 1e150
"""A scale whose square is a number."""


@dataclass(frozen=True)
class Noise:
    """Integer noise: round(scale · Z) for a standard normal Z, or discrete Laplace P(k) ∝ e^(−|k|/scale)."""

    kind: Literal["gaussian", "laplace"]
    scale: float

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "laplace"):
            raise HedgerowError("unknown-noise", f"noise is gaussian or laplace, not {self.kind!r}.")
        if not isinstance(self.scale, int | float | np.number) or not 0 < self.scale < WIDEST:
            raise HedgerowError(
                "bad-noise-scale", f"noise needs one scale above 0 and below {WIDEST:g}, the same for every cell."
            )

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

    query: Measurable
    values: IntArray
    noise: Noise
    kept: IntArray | None = None

    def __post_init__(self) -> None:
        if self.kept is None:
            self._refuse_other_numbers(self.query.cells)
            return
        kept = np.asarray(self.kept)
        inside = kept.ndim == 1 and (kept.dtype.kind in "iu" or not kept.size)
        if inside and kept.size:
            inside = bool(kept[0] >= 0 and kept[-1] < self.query.cells and (kept[1:] > kept[:-1]).all())
        if not inside:
            raise HedgerowError(
                "bad-kept-cells",
                f"the cells kept of {self._name} must be ascending numbers below {self.query.cells:,}.",
            )
        self._refuse_other_numbers(len(kept))

    def _refuse_other_numbers(self, count: int) -> None:
        values = self.values
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "iuf" or values.shape != (count,):
            given = f"of shape {values.shape} and type {values.dtype}" if isinstance(values, np.ndarray) else "a list"
            cells = f"{self.query.cells:,} cell{'' if self.query.cells == 1 else 's'}"
            kept = "" if self.kept is None else f", of which {count:,} were kept"
            raise HedgerowError(
                "answer-length", f"{self._name} has {cells}{kept}: it needs one number for each, not {given}."
            )
        if values.dtype.kind == "f" and not (np.abs(values) < LARGEST).all():
            raise HedgerowError("bad-noisy-counts", f"noisy counts of {self._name} must be finite, and below 2^63.")

    @property
    def _name(self) -> str:
        return " × ".join(self.query.attributes) or "the total"

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
