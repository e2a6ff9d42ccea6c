"""How the select–measure–generate methods begin: the total, then one-way marginals with the share they deserve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hedgerow.budget import Amount
from hedgerow.curator import Curator
from hedgerow.measurement import Measurement, estimated_total
from hedgerow.query import MarginalQuery

TOTAL_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Start:
    """What is known before any relation between attributes is measured."""

    one_ways: list[Measurement]
    total: float


def start(curator: Curator, least_share: float) -> Start:
    """Measure the total and every attribute by itself.

    The one-way marginals get the part of the budget that public quantities suggest, at least `least_share` of it.
    """
    whole = curator.remaining
    count = curator.total(spend=whole.share(TOTAL_SHARE))
    rough = max(1.0, count.total)
    share = max(least_share, one_way_share(curator, whole, rough))
    spend = curator.remaining if share >= 1 else whole.share(share)
    one_ways = measure_one_ways(curator, spend)
    return Start(one_ways, estimated_total([count, *one_ways]))


def measure_one_ways(curator: Curator, spend: Amount) -> list[Measurement]:
    """Every attribute's own counts, with weights k^(1/3): the least sum of absolute errors for the amount."""
    domain = curator.domain
    queries = [MarginalQuery(domain, (name,)) for name in domain.names]
    return curator.measure(queries, spend=spend, weights=[attribute.size ** (1 / 3) for attribute in domain])


def one_way_share(curator: Curator, whole: Amount, total: float) -> float:
    """The part of the budget that one-way marginals deserve, from public quantities alone.

    `error` is what they would still be wrong by if they had everything. Where that is large, sharper columns are
    worth more than any relation between them; beyond .6 relations are not worth buying at all, and the share is 1.
    Form and constants were fitted on public tables (adult, br2000, nltcs, titanic).
    """
    sizes = [attribute.size for attribute in curator.domain]
    mean = sum(sizes) / len(sizes)
    noise = curator.noise(whole, [1.0] * len(sizes))[0].scale
    error = 0.4 * mean * noise / total
    if error > 0.6:
        return 1.0
    return min(0.95, error / (error + 0.02) * (1 - math.exp(-mean / 10)))
