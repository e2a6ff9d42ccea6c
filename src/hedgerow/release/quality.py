"""How far the synthetic table is from the private one, as noisy scores tell it.

A distance is ½‖d − n̂·p‖₁/n̂, where d are the private counts of a marginal, p the shares of the rows that are drawn by
default, and n̂ the noisy number of rows: the total variation distance, which is the most that any statement about these
columns can differ by. The scores carry Gaussian or Laplace noise of a known scale and nothing else, so a distance is
as likely too large as too small; one that is truly small may come out below nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import Noise

UPPER = 0.9
"""How sure an upper bound is."""
UPPER_IN_STD = {"gaussian": 1.2815515655446004, "laplace": math.log(5) / math.sqrt(2)}
"""What a draw of the noise exceeds with a probability of 1 − UPPER, in standard deviations."""
TELLS = 0.1
"""A distance whose noise is beyond this says nothing of use."""


@dataclass(frozen=True)
class Distance:
    """A noisy total variation distance: a marginal's (attributes in the order of the domain), or a mean over several.

    `value` is as it came, `std` the standard deviation of its noise, `upper` what the truth stays below with a
    probability of 90 %.
    """

    attributes: Marginal
    value: float
    std: float
    upper: float

    @property
    def said(self) -> str:
        """In per cent, as fine as its noise allows; a distance is between 0 and 1, whatever its noise."""
        digits = 1 if self.std >= 0.001 else 2
        return f"{100 * min(max(self.value, 0.0), 1.0):.{digits}f} % ± {100 * self.std:.{digits}f} %"

    @property
    def tells(self) -> bool:
        """Whether its noise leaves something to read."""
        return self.std <= TELLS


@dataclass(frozen=True)
class Quality:
    """The measured distances of a release: of every column, of pairs, and of a workload's wider marginals."""

    columns: tuple[Distance, ...]
    pairs: tuple[Distance, ...]
    wider: tuple[Distance, ...]

    @classmethod
    def of(cls, charge: Charge, scores: Sequence[float], total: float) -> Quality:
        """From the scores of a charge, each of which is a weight times an L1 distance with the same noise."""
        assert charge.mechanism in ("gaussian", "laplace")
        noise = Noise(charge.mechanism, charge.scale / charge.extra).std * charge.extra  # drawn on the grid
        found: dict[int, list[Distance]] = {1: [], 2: [], 3: []}
        for query, weight, score in zip(charge.queries, charge.weights, scores, strict=True):
            value, std = score / (2 * weight * total), noise / (2 * weight * total)
            distance = Distance(tuple(query["attributes"]), value, std, value + UPPER_IN_STD[charge.mechanism] * std)
            found[min(3, len(distance.attributes))].append(distance)
        return cls(tuple(found[1]), tuple(found[2]), tuple(found[3]))

    @property
    def mean_column(self) -> Distance | None:
        """The mean over all columns."""
        return mean(self.columns)

    @property
    def mean_pair(self) -> Distance | None:
        """The mean over all pairs: noise averages out, so it tells something where single pairs do not."""
        return mean(self.pairs)

    @property
    def mean_wider(self) -> Distance | None:
        """The mean over the workload's marginals of three columns and more."""
        return mean(self.wider)

    @property
    def worst_pair(self) -> Distance | None:
        """The pair of the highest upper bound, which bounds the truly worst pair as surely: its own is no higher."""
        return max(self.pairs, key=lambda pair: pair.upper, default=None)

    def criteria(self) -> dict[str, Distance | None]:
        """What a schema may demand, by its words (`accept`)."""
        return {
            "columns": self.mean_column,
            "pairs": self.mean_pair,
            "worst_pair": self.worst_pair,
            "workload": self.mean_wider,
        }

    def typical(self, distances: Sequence[Distance]) -> float:
        """The root of the mean square of what distances truly are: that of the noise is taken off."""
        if not distances:
            return 0.0
        squares = sum(each.value**2 - each.std**2 for each in distances) / len(distances)
        return math.sqrt(max(0.0, squares))


def mean(distances: Sequence[Distance]) -> Distance | None:
    """The mean of distances whose noises are independent; its own is taken for Gaussian."""
    if not distances:
        return None
    count = len(distances)
    value = sum(each.value for each in distances) / count
    std = math.sqrt(sum(each.std**2 for each in distances)) / count
    return Distance((), value, std, value + UPPER_IN_STD["gaussian"] * std)
