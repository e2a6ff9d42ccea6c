"""Coverings: few marginals that together hold all of a workload, as cliques of one model of it.

A model over everything at once has each of many small marginals in some clique; a few wider cliques that hold several
of them are quicker to go through. Which ones is a function of the domain and the workload alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from hedgerow.coded.domain import Domain, Marginal

TIMES = (1, 2, 4, 8)
"""A clique has up to so many times the cells of the widest marginal of the workload."""


def covering(domain: Domain, workload: Mapping[Marginal, float]) -> list[Marginal]:
    """Cliques that hold every marginal of the workload, of the widths that need fewest cells together."""
    widest = max(map(domain.cells, workload))
    options = [_greedy(domain, workload, widest * times) for times in TIMES]
    return min(options, key=lambda cliques: sum(map(domain.cells, cliques)))


def pairs_of(workload: Mapping[Marginal, float]) -> list[Marginal]:
    """Which attributes meet in the workload; a model over all of it is as large as one over these."""
    return list(dict.fromkeys(pair for marginal in workload for pair in combinations(marginal, 2)))


def _greedy(domain: Domain, workload: Mapping[Marginal, float], most: int) -> list[Marginal]:
    """Start with a marginal that is not covered yet; add the attribute that covers most others while there is room."""
    left = {frozenset(marginal): weight for marginal, weight in workload.items()}
    cliques = []
    while left:
        held = set(next(iter(left)))
        while True:
            room = [n for n in domain.names if n not in held and domain.cells((*held, n)) <= most]
            gains = {n: sum(weight for m, weight in left.items() if n in m and m <= held | {n}) for n in room}
            best = max(gains, key=lambda name: gains[name] / domain[name].size, default=None)
            if best is None or not gains[best]:
                break
            held.add(best)
        cliques.append(domain.marginal(held))
        left = {marginal: weight for marginal, weight in left.items() if not marginal <= held}
    return cliques
