"""Sets of parents as large as their noise allows: PrivBayes chooses among them, and PrivMRF after it.

Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), "PrivBayes: Private data release via Bayesian networks", ACM TODS
42(4), §5.
"""

from __future__ import annotations

from collections.abc import Sequence

from hedgerow.coded.domain import Domain
from hedgerow.coded.halving import heights, size_at
from hedgerow.coded.measurement import Noise
from hedgerow.models.network import Parents


def useful_cells(total: float, noise: Noise, theta: float) -> float:
    """How many cells a marginal may have for its mean cell to hold θ times the noise: θ-usefulness (Definition 4.7)."""
    return total / (theta * noise.mean_absolute)


def maximal_parents(domain: Domain, names: Sequence[str], cells: float, coarse: bool) -> list[Parents]:
    """Every set of parents of at most so many cells that no attribute can join, and none be finer in (Algorithm 6).

    With `coarse`, ordered attributes may stand at a fraction of their resolution.
    """
    if cells < 1:
        return []
    if not names:
        return [()]
    first, rest = domain[names[0]], names[1:]
    found: list[Parents] = []
    taken: set[Parents] = set()
    for level in range(heights(first) if coarse else 1):
        for others in maximal_parents(domain, rest, cells / size_at(first, level), coarse):
            if others not in taken:
                taken.add(others)
                found.append(((first.name, level), *others))
    return found + [others for others in maximal_parents(domain, rest, cells, coarse) if others not in taken]


def some_maximal_parents(
    domain: Domain, names: Sequence[str], cells: float, coarse: bool, most: int
) -> Sequence[Parents]:
    """Those of as many of the names, from the first on, as have at most so many sets together."""
    found: Sequence[Parents] = maximal_parents(domain, names[:1], cells, coarse)
    for count in range(2, len(names) + 1):
        more = maximal_parents(domain, names[:count], cells, coarse)
        if len(more) > most:
            break
        found = more
    return [tuple(sorted(parents, key=lambda parent: domain.index(parent[0]))) for parents in found]
