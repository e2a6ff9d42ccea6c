"""How far the synthetic table is from the private one, as noisy scores tell it.

A distance is ½‖d − n̂·p‖₁/n̂, where d are the private counts of a marginal, p the shares of the rows that are drawn by
default, and n̂ the noisy number of rows: the total variation distance, which is the most that any statement about these
columns can differ by. The scores carry Gaussian or Laplace noise of a known scale and nothing else, so a distance is
as likely too large as too small; one that is truly small may come out below nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
class Within:
    """How far the rows of a declared subgroup are from the private ones: the mean over the other columns, as a part of
    the subgroup's own rows, of which the release has about so many.
    """

    column: str
    value: str
    rows: float
    distance: Distance


class Asked(NamedTuple):
    """A subgroup that a query was asked within, and about how many rows it has."""

    column: str
    value: str
    rows: float


@dataclass(frozen=True)
class Quality:
    """The measured distances of a release: of every column, of pairs, of a workload's wider marginals, of subgroups."""

    columns: tuple[Distance, ...]
    pairs: tuple[Distance, ...]
    wider: tuple[Distance, ...]
    subgroups: tuple[Within, ...] = ()

    @classmethod
    def of(cls, charge: Charge, scores: Sequence[float], total: float, within: Mapping[str, Asked]) -> Quality:
        """From the scores of a charge, each of which is a weight times an L1 distance with the same noise.

        `within` names the subgroups, by the digests of the queries that were asked within them.
        """
        assert charge.mechanism in ("gaussian", "laplace")
        noise = Noise(charge.mechanism, charge.scale / charge.extra).std * charge.extra  # drawn on the grid
        found: dict[int, list[Distance]] = {1: [], 2: [], 3: []}
        inside: dict[Asked, list[Distance]] = {}
        for query, weight, score in zip(charge.queries, charge.weights, scores, strict=True):
            asked = within.get(query.get("aggregation", ""))
            unit = 2 * weight * (total if asked is None else asked.rows)
            value, std = score / unit, noise / unit
            distance = Distance(tuple(query["attributes"]), value, std, value + UPPER_IN_STD[charge.mechanism] * std)
            (found[min(3, len(distance.attributes))] if asked is None else inside.setdefault(asked, [])).append(
                distance
            )
        subgroups = tuple(Within(*asked, _mean(each)) for asked, each in inside.items())
        return cls(tuple(found[1]), tuple(found[2]), tuple(found[3]), subgroups)

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
            "worst_subgroup": max((each.distance for each in self.subgroups), key=lambda it: it.upper, default=None),
        }

    def typical(self, distances: Sequence[Distance]) -> float:
        """The root of the mean square of what distances truly are: that of the noise is taken off."""
        if not distances:
            return 0.0
        squares = sum(each.value**2 - each.std**2 for each in distances) / len(distances)
        return math.sqrt(max(0.0, squares))


def mean(distances: Sequence[Distance]) -> Distance | None:
    """The mean of distances whose noises are independent; its own is taken for Gaussian."""
    return _mean(distances) if distances else None


def _mean(distances: Sequence[Distance]) -> Distance:
    count = len(distances)
    value = sum(each.value for each in distances) / count
    std = math.sqrt(sum(each.std**2 for each in distances)) / count
    return Distance((), value, std, value + UPPER_IN_STD["gaussian"] * std)
