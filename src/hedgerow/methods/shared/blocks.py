"""Marginals in blocks: candidates that are partitions of a marginal, at one or two resolutions.

Partitions are made from the model, and so from noisy answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.methods.shared.rounds import Offer, Round
from hedgerow.models.partitions import Partitions, mass_splits, sorted_merges

FEWEST_BLOCKS = 4
"""A marginal in fewer blocks tells nothing of a relation: the least pair has 2 × 2 cells."""
LEAST_COARSE_BLOCKS = 16
"""A third of the blocks, where that is so many, is offered too: the choice then weighs detail against noise."""

Family = Callable[[Counts, int], Partitions]


@dataclass(frozen=True, eq=False)
class Known:
    """Answers that were computed already."""

    of: dict[MarginalQuery, Counts]

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (self.of[query] for query in queries)


def offer_blocks(
    now: Round, marginals: Sequence[Marginal], most: int, megabytes: float, family: Family = mass_splits
) -> Offer:
    """The marginals in at most so many blocks, less what noise would add, beside the model's answers.

    A column is partitioned by its sorted counts: neighbouring codes need not be alike.
    """
    known = Known({})
    candidates = []
    for marginal in marginals:
        how = family if len(marginal) > 1 else sorted_merges
        for query, answer in resolutions(now.domain, marginal, now.model.marginal(marginal), most, how):
            known.of[query] = answer
            candidates.append(Candidate(query, now.wanted[marginal], now.noise.mean_absolute * query.cells))
    return Offer(candidates, known, megabytes)


def resolutions(
    domain: Domain, marginal: Marginal, counts: Counts, most: int, family: Family = mass_splits
) -> Iterator[tuple[MarginalQuery, Counts]]:
    """The marginal in so many blocks (or its cells where it has no more), and coarser, with the model's answers.

    `counts` are the model's.
    """
    flat = counts.reshape(-1)
    if counts.size <= most:
        yield MarginalQuery(domain, marginal), flat
    wanted = [
        count for count in (most, most // 3) if count < counts.size and (count == most or count >= LEAST_COARSE_BLOCKS)
    ]
    if wanted:
        partitions = family(counts, wanted[0])
    for count in wanted:
        of_cell = partitions.blocks(count)
        query = MarginalQuery(domain, marginal, blocks=of_cell)
        yield query, np.bincount(of_cell, weights=flat, minlength=query.cells).astype(np.float64)
