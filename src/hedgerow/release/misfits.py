"""What the first look of a run found, as its noisy answers tell it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from hedgerow.coded.measurement import Measurement

CLEARLY = 3.0
"""Standard deviations of its noise by which a share must exceed what it is compared with."""
FALSE_ALARM = 1e-3
"""How often a run in which everything fits may say of any column that something does not."""


@dataclass(frozen=True)
class Misfit:
    """A column, the share of its values that fit nothing declared, and the standard deviation of its noise."""

    column: str
    share: float
    std: float

    @property
    def surely(self) -> float:
        """The least that it can be taken for."""
        return self.share - CLEARLY * self.std

    @property
    def said(self) -> str:
        return f"{100 * min(max(self.share, 0.0), 1.0):.1f} % ± {100 * self.std:.1f} %"


@dataclass(frozen=True)
class Misfits:
    """The look's answers for all columns."""

    columns: tuple[Misfit, ...]

    @classmethod
    def of(cls, measurements: Sequence[Measurement]) -> Misfits:
        """From the noisy number of rows and the noisy numbers of misfits."""
        total, *counts = measurements
        rows = max(1.0, float(total.values[0]))
        shares = [(measurement.query.attributes[0], float(measurement.values[0]) / rows) for measurement in counts]
        return cls(tuple(Misfit(column, share, total.std / rows * math.hypot(1, share)) for column, share in shares))

    @property
    def noise(self) -> float:
        """The standard deviation of a share that is small."""
        return max((each.std for each in self.columns), default=0.0)

    def sees(self, share: float) -> bool:
        """Whether a share as large as this would show."""
        return all(CLEARLY * each.std <= share or each.surely > share for each in self.columns)

    @property
    def seen(self) -> list[Misfit]:
        """The columns whose share stands out of its noise, the largest first. The more columns, the farther out."""
        if not self.columns:
            return []
        farther = max(CLEARLY, NormalDist().inv_cdf(1 - FALSE_ALARM / len(self.columns)))
        return sorted((each for each in self.columns if each.share > farther * each.std), key=lambda each: -each.share)
