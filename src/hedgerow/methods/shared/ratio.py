"""Contribution per unit of budget: every marginal brings its cheapest partition, and the best ratio is likeliest.

Zhang, Deng, Yin (2023), arXiv:2310.06371, Algorithms 2–4, which compute contributions, partitions and budgets from
exact counts. Here a contribution is a noisy distance less what the model has moved since, a partition is one of the
model's own marginal, and a budget follows from the two: given the earlier answers all of them are constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hedgerow.budget.amounts import Amount, Currency
from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.measurement import Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.shared.blocks import FEWEST_BLOCKS, Family, Known
from hedgerow.methods.shared.rounds import Offer, Round, Strategy, adapted, drawn_by_lot
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.partitions import sorted_merges

SCORING_SHARE = 0.05
"""The part of what the columns left that buys the noisy distances of all pairs."""
MOST_PAIRS = 5_000
"""Of more pairs no distances are bought."""
MOST_NOISE = 0.1
"""Nor where their noise would be more than this part of the rows."""
FLAT = 0.3
"""What a marginal is then taken to contribute, as a part of the rows."""
LEAST = 0.02
"""No marginal is taken to contribute less than this part of the rows: its distance is a noisy one."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """How far the data are from a model, pair by pair, as noisy distances said when that model was the newest."""

    begun: GraphicalModel
    of: Mapping[Marginal, float]

    @classmethod
    def bought(cls, curator: Curator, model: GraphicalModel, wanted: Sequence[Marginal]) -> Contributions:
        """The distances of all pairs that matter, for their share of what is left."""
        pairs = [marginal for marginal in wanted if len(marginal) == 2]
        spend = curator.remaining.share(SCORING_SHARE)
        if not spend or not 0 < len(pairs) <= MOST_PAIRS:
            return cls(model, {})
        if curator.noise(spend, [1.0] * len(pairs))[0].scale > MOST_NOISE * model.total:
            return cls(model, {})
        candidates = [Candidate(MarginalQuery(curator.domain, pair)) for pair in pairs]
        return cls(model, dict(zip(pairs, curator.score(candidates, against=model, spend=spend), strict=True)))

    def now(self, model: GraphicalModel) -> Callable[[Marginal], float]:
        """What a marginal may still contribute: its widest pair's distance, less what the model has moved on it."""
        left = {
            pair: distance - float(np.abs(model.marginal(pair) - self.begun.marginal(pair)).sum())
            for pair, distance in self.of.items()
        }
        flat, least = FLAT * model.total, LEAST * model.total
        return lambda marginal: max(least, *(left.get(pair, flat) for pair in combinations(marginal, 2)))


@dataclass(frozen=True)
class Cheapest:
    """So many blocks, and the largest mean noise of a count that leaves the error within what is allowed."""

    blocks: int
    noise: float


def cheapest(errors: Counts, allowed: float, fewest: int) -> Cheapest:
    """Algorithms 3 and 4: the number of blocks that needs least budget.

    |P| blocks of mean noise m are wrong by RE(P) + |P|·m, so the noise may be (allowed − RE(P))/|P|; the largest costs
    least. Where no partition leaves room for noise, it is the finest, with what room there would be without its error.
    """
    blocks = np.arange(fewest, len(errors) + 1)
    noise = (allowed - errors[fewest - 1 :]) / blocks
    best = int(noise.argmax())
    if noise[best] <= 0:
        return Cheapest(len(errors), allowed / len(errors))
    return Cheapest(int(blocks[best]), float(noise[best]))


@dataclass(frozen=True, eq=False)
class ByRatio(Strategy):
    """A candidate's score is its distance from the model, less its noise, times the least budget over its own."""

    curator: Curator
    contributions: Contributions
    family: Family
    eta: float
    size: float
    measuring: float

    def tells(self, now: Round) -> bool:
        """Whether the fewest blocks of a marginal that differs as much as any could be measured."""
        return FEWEST_BLOCKS * now.noise.mean_absolute <= self.eta * now.model.total

    def consider(self, curator: Curator, wanted: Sequence[Marginal]) -> Sequence[Marginal]:
        return drawn_by_lot(curator, wanted)

    def propose(self, now: Round) -> Offer:
        """Every marginal that the model has room for, in its cheapest partition, with the budget that this needs."""
        megabytes = self.size * now.used
        expected = self.contributions.now(now.model)
        most = Amount(now.spend.currency, max(now.spend.units, now.free.units // 2))
        known, candidates, costs = Known({}), [], []
        for marginal in now.fitting(now.considered, megabytes):
            counts = now.model.marginal(marginal)
            allowed = self.eta * (expected(marginal) if len(marginal) > 1 else LEAST * now.model.total)
            found = self.partitioned(now.domain, marginal, counts, allowed, finest(allowed, now.noise, now.spend, most))
            if found is None:
                continue
            query, needed = found
            cost = clipped(price(now.noise, now.spend, needed), now.spend, most)
            noise = self.curator.noise(cost)[0].mean_absolute
            known.of[query] = query.aggregate(counts)
            candidates.append(
                Candidate(query, now.wanted[marginal] * now.spend.units / cost.units, noise * query.cells)
            )
            costs.append(cost)
        return Offer(candidates, known, megabytes, costs)

    def partitioned(
        self, domain: Domain, marginal: Marginal, counts: Counts, allowed: float, most: int
    ) -> tuple[MarginalQuery, float] | None:
        """The marginal's cheapest partition of at most so many blocks, and the noise that it may have."""
        fewest = FEWEST_BLOCKS if len(marginal) > 1 else 2
        most = min(most, counts.size)
        if most < fewest:
            return None
        partitions = (self.family if len(marginal) > 1 else sorted_merges)(counts, most)
        errors = partitions.errors[:most]
        found = cheapest(errors * (allowed / self.eta / max(errors[0], 1e-9)), allowed, min(fewest, len(errors)))
        if found.blocks >= counts.size:
            return MarginalQuery(domain, marginal), found.noise
        return MarginalQuery(domain, marginal, blocks=partitions.blocks(found.blocks)), found.noise

    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        return adapted(budget, planned, moved)


def price(noise: Noise, spend: Amount, needed: float) -> float:
    """How many times `spend` buys this mean noise, where `spend` buys `noise`."""
    power = 1 if spend.currency is Currency.PURE else 2
    return (noise.mean_absolute / needed) ** power


def clipped(times: float, spend: Amount, most: Amount) -> Amount:
    """So many times the amount, at least once and at most `most`."""
    if times * spend.units >= most.units:
        return most if most.units > spend.units else spend
    return Amount(spend.currency, max(spend.units, math.floor(times * spend.units)))


def finest(allowed: float, noise: Noise, spend: Amount, most: Amount) -> int:
    """The most blocks that the largest budget could buy."""
    power = 1 if spend.currency is Currency.PURE else 0.5
    least = noise.mean_absolute / (most.units / spend.units) ** power
    return int(allowed / least)
