"""What the methods share that choose and measure round by round on a growing graphical model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.models.graphical.junction import sizes_with
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.partitions import Partitions, mass_splits

ROUGH = (25, 150)
"""Least and most oracle calls of a fit between rounds; the last one runs to the end."""
WORK = 2e7
"""Cells that the oracle calls of such a fit may go through: large models get fewer calls."""
COARSE = 16
"""A third of the blocks, where that is so many, is offered too: the choice then weighs detail against noise."""
CELLS_A_ROUND = 4_000_000
"""Cells of all the marginals that one round considers; where there are more, lots decide, the small degrees first."""
MARGINALS_A_ROUND = 6_000
"""The same of their number."""


def rough_calls(model: GraphicalModel) -> int:
    """How much effort a fit between rounds is worth."""
    return int(np.clip(WORK / model.plan.work, *ROUGH))


def within(
    domain: Domain, cliques: Sequence[Marginal], marginals: Sequence[Marginal], megabytes: float
) -> list[Marginal]:
    """The marginals that a model on these cliques holds already, or that would leave it no larger than this."""
    sizes = sizes_with(domain, cliques, marginals)
    held = [set(clique) for clique in cliques]
    return [
        marginal
        for marginal, size in zip(marginals, sizes, strict=True)
        if size <= megabytes * 2**20 or any(clique >= set(marginal) for clique in held)
    ]


@dataclass(frozen=True, eq=False)
class Known:
    """Answers that were computed already."""

    of: dict[MarginalQuery, Counts]

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (self.of[query] for query in queries)


def considered(curator: Curator, marginals: Sequence[Marginal]) -> list[Marginal]:
    """All of the marginals, or a part by lot, small degrees first, that has few enough cells for one round."""
    cells = list(map(curator.domain.cells, marginals))
    if len(marginals) <= MARGINALS_A_ROUND and sum(cells) <= CELLS_A_ROUND:
        return list(marginals)
    lots = curator.coins.permutation(len(marginals)).tolist()
    room, least = CELLS_A_ROUND, min(cells)
    kept: list[Marginal] = []
    for lot in sorted(lots, key=lambda lot: len(marginals[lot])):
        if room < least or len(kept) == MARGINALS_A_ROUND:
            break
        if cells[lot] <= room:
            kept.append(marginals[lot])
            room -= cells[lot]
    return kept


def resolutions(
    domain: Domain,
    marginal: Marginal,
    counts: Counts,
    most: int,
    family: Callable[[Counts, int], Partitions] = mass_splits,
) -> Iterator[tuple[MarginalQuery, Counts]]:
    """The marginal in so many blocks (or its cells where it has no more), and coarser, with the model's answers.

    `counts` are the model's; the partitions are made from them, and so from noisy answers.
    """
    flat = counts.reshape(-1)
    if counts.size <= most:
        yield MarginalQuery(domain, marginal), flat
    wanted = [count for count in (most, most // 3) if count < counts.size and (count == most or count >= COARSE)]
    if wanted:
        partitions = family(counts, wanted[0])
    for count in wanted:
        of_cell = partitions.blocks(count)
        query = MarginalQuery(domain, marginal, blocks=of_cell)
        yield query, np.bincount(of_cell, weights=flat, minlength=query.cells).astype(np.float64)


def offers(
    domain: Domain,
    model: GraphicalModel,
    wanted: Mapping[Marginal, float],
    marginals: Sequence[Marginal],
    blocks: int,
    noise: Noise,
    family: Callable[[Counts, int], Partitions] = mass_splits,
) -> tuple[list[Candidate], Known]:
    """The marginals at each of their resolutions as candidates, less what noise would add, and the model's answers."""
    known = Known({})
    candidates = []
    for marginal in marginals:
        for query, answer in resolutions(domain, marginal, model.marginal(marginal), blocks, family):
            known.of[query] = answer
            candidates.append(Candidate(query, wanted[marginal], noise.mean_absolute * query.cells))
    return candidates, known


def contribution(answer: Measurement, before: GraphicalModel, after: GraphicalModel) -> float:
    """How far the model moved on what was measured, in multiples of the noise that it was shown."""
    assert isinstance(answer.query, MarginalQuery)
    [old], [new] = before.answers([answer.query]), after.answers([answer.query])
    return float(np.abs(new - old).sum()) / (answer.noise.mean_absolute * answer.query.cells)


def next_budget(budget: Amount, least: Amount, moved: float) -> Amount:
    """More for a round when the last one hardly told more than its noise; less, but not below the plan, otherwise."""
    factor = min(4.0, max(0.5, 2 / max(moved, 1e-9)))
    return Amount(budget.currency, max(least.units, int(budget.units * factor)))
