"""Everything at once: each interaction of a workload measured by itself, where one model holds them all.

Then choosing marginals round by round only wastes budget. What marginals share is measured once and not in each of
them, with the noise that is best for the workload: ResidualPlanner (Xiao, He, Zhang, Kifer 2023).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hedgerow.coded.domain import Workload
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import Norm
from hedgerow.curator import Curator
from hedgerow.methods.shared.coverings import covering, pairs_of
from hedgerow.methods.shared.strategies import FixedWorkload
from hedgerow.models.graphical.estimation import fit_near
from hedgerow.models.graphical.junction import size
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.graphical.terms import LEAST_STD
from hedgerow.models.interactions import of_cliques
from hedgerow.progress import Limits

MOST_NOISE_SHARE = 0.5
"""The expected noise of a marginal as a part of the rows, at most."""
MOST_MARGINALS = 5_000
"""Of more marginals it is not tried."""
MOST_ENTRIES = 1 << 24
"""Of the matrices that lead from the cells of cliques to what was measured: 128 MB."""


def measured_at_once(
    curator: Curator,
    workload: Workload,
    prior: GraphicalModel,
    measured: Sequence[Measurement],
    megabytes: float,
    limits: Limits,
) -> GraphicalModel | None:
    """The model of all interactions of a workload, measured for all that is left, and of what was measured before.

    None, and nothing is spent, where a model is too small for them or where noise would drown the workload. The σ of
    the fit's α is the mean noise of the workload's cells.
    """
    domain, spend, tables = curator.domain, curator.remaining, workload.weights
    if not spend or len(tables) > MOST_MARGINALS or size(domain, pairs_of(tables)) > megabytes * 2**20:
        return None
    plan, cliques = FixedWorkload(domain, tables, {}), covering(domain, tables)
    numbers = sum(math.prod(size - 1 for size in domain.shape(part)) for part in plan.interactions)
    if numbers * max(map(domain.cells, cliques)) > MOST_ENTRIES:
        return None
    norm: Norm = "l2" if curator.noise(spend)[0].kind == "gaussian" else "l1"
    weights = dict(zip(plan.interactions, plan.weights(norm, "sum"), strict=True))
    del weights[()]  # the number of rows is known
    noises = dict(zip(weights, curator.noise(spend, list(weights.values())), strict=True))
    spread = plan.deviations(norm, {(): 0.0, **{part: noise.variance for part, noise in noises.items()}})
    noise = sum(tables[each] * plan.queries(each) * math.sqrt(2 / math.pi) * spread[each] for each in tables)
    if noise > MOST_NOISE_SHARE * prior.total * sum(tables.values()):
        return None
    answers = curator.measure([plan.query(part) for part in weights], weights=list(weights.values()), spend=spend)
    std = max(LEAST_STD, sum(spread.values()) / len(spread))
    return fit_near(prior, [*measured, *of_cliques(domain, cliques, answers)], std=std, limits=limits)
