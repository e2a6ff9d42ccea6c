"""Views: few marginals that together hold all of a workload.

Where a model over everything at once is small, choosing marginals round by round only wastes budget: it is better to
measure all that matters in one go. Measuring a view of four attributes instead of its four triples puts less noise on
each triple, because fewer views share the budget (the idea of PriView: Qardaji, Yang, Li 2014). Which views is a
function of the domain and the workload alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

from hedgerow.coded.domain import Domain, Marginal

TIMES = (1, 2, 4, 8)
"""A view has up to so many times the cells of the widest marginal of the workload."""


def covering(domain: Domain, workload: Mapping[Marginal, float]) -> list[Marginal]:
    """Views that hold every marginal of the workload, of the size that leaves least noise on them."""
    widest = max(map(domain.cells, workload))
    options = [_greedy(domain, workload, widest * times) for times in TIMES]
    return min(options, key=lambda views: _noise(domain, workload, views))


def pairs_of(workload: Mapping[Marginal, float]) -> list[Marginal]:
    """Which attributes meet in the workload; a model over all of it is as large as one over these."""
    return list(dict.fromkeys(pair for marginal in workload for pair in combinations(marginal, 2)))


def _greedy(domain: Domain, workload: Mapping[Marginal, float], most: int) -> list[Marginal]:
    """Start with a marginal that is not covered yet; add the attribute that covers most others while there is room."""
    left = {frozenset(marginal): weight for marginal, weight in workload.items()}
    views = []
    while left:
        view = set(next(iter(left)))
        while True:
            room = [n for n in domain.names if n not in view and domain.cells((*view, n)) <= most]
            gains = {n: sum(weight for m, weight in left.items() if n in m and m <= view | {n}) for n in room}
            best = max(gains, key=lambda name: gains[name] / domain[name].size, default=None)
            if best is None or not gains[best]:
                break
            view.add(best)
        views.append(domain.marginal(view))
        left = {marginal: weight for marginal, weight in left.items() if not marginal <= view}
    return views


def _noise(domain: Domain, workload: Mapping[Marginal, float], views: list[Marginal]) -> float:
    """Up to a factor, the expected L1 noise on the workload's marginals when the views share a budget equally."""
    noise = 0.0
    for marginal, weight in workload.items():
        holding = min(domain.cells(view) for view in views if set(marginal) <= set(view))
        noise += weight * math.sqrt(holding * domain.cells(marginal))
    return math.sqrt(len(views)) * noise
