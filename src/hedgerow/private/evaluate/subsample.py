"""The synthetic table's error in words that need no theory: "as good as a 12 % sample". PRIVATE."""

from __future__ import annotations

import math

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain
from hedgerow.private.evaluate.marginals import chosen_marginals, distances
from hedgerow.private.evaluate.metric import Figure, distance
from hedgerow.private.sources.coded import rows_of

MARGINALS = 200
FEWEST_ROWS = 10


def subsample_equivalent(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """The share of real rows whose random sample would be as far from the real table as the synthetic table is.

    Far is the mean total variation distance over two-way marginals (a fixed sample of 200 where there are more).
    Samples without replacement of ½, ¼, ⅛, … of the rows are drawn (each inside the one before), down to 10 rows.
    Between two of them log distance is interpolated against log (1 − f)/f, because the distance of a sample of share
    f grows like √((1 − f)/f). 1: the synthetic table is exact. The least answer is the smallest sample tried.
    """
    marginals = chosen_marginals(domain, 2, seed, MARGINALS)

    def distance(table: CodedTable) -> float:
        return float(distances(real, table, domain, marginals).mean())

    wanted = distance(synthetic)
    rows = rows_of(real)
    order = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, rows]))).permutation(rows)
    larger, near = 1.0, 0.0  # a sample share, and its distance
    while rows * larger / 2 >= FEWEST_ROWS:
        share = max(1, round(rows * larger / 2)) / rows
        kept = np.sort(order[: round(rows * share)])
        far = distance({name: codes[kept] for name, codes in real.items()})
        if wanted <= far:
            return _between(wanted, larger, near, share, far)
        larger, near = share, far
    return larger


def _between(wanted: float, larger: float, near: float, smaller: float, far: float) -> float:
    """The share between two samples at which the distance is the wanted one."""
    if wanted <= near or far == near:
        return larger
    if near == 0:  # between everything and the first sample: distance ∝ √((1 − f)/f)
        odds = (1 - smaller) / smaller * (wanted / far) ** 2
    else:
        part = math.log(wanted / near) / math.log(far / near)
        odds = ((1 - larger) / larger) ** (1 - part) * ((1 - smaller) / smaller) ** part
    return 1 / (1 + odds)


SUBSAMPLE = distance(
    "subsample",
    subsample_equivalent,
    Figure(
        "sample",
        "as good on pairs as a random sample of this share of the real rows",
        "percent",
        headline=True,
        best="high",
    ),
    draws=True,
    compared=True,
)
