"""How the select–measure–generate methods begin: the total, then one-way marginals with the share they deserve.

`Start` goes on from there as AIM, MST and PPSyn do here: columns are denoised, rare codes merged, a first model fitted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator
from hedgerow.methods.shared.columns import Columns
from hedgerow.methods.shared.compression import Compression, compress
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.progress import Progress

TOTAL_SHARE = 0.01
WIDE = 42
"""Columns of the widest table on which shares were looked at."""
WIDTH_POWER = 1 / 5
"""A column of k codes weighs k to this power."""


@dataclass(frozen=True, eq=False)
class First:
    """What is known before any relation between attributes is measured."""

    one_ways: list[Measurement]
    total: float


@dataclass(frozen=True, eq=False)
class Start:
    """Denoised columns behind merged codes, and the model that they make."""

    uncompressed: Curator
    curator: Curator
    """The same, where codes that noise hides are one."""
    columns: Columns
    compression: Compression
    measured: Sequence[Measurement]
    """What is known of the columns."""
    model: GraphicalModel

    @classmethod
    def of(cls, curator: Curator, least_share: float, merge: float, progress: Progress) -> Start:
        """Merged are codes whose noisy counts are below `merge` standard deviations."""
        with progress.phase("measure every column"):
            first = first_measurements(curator, least_share)
        columns = Columns.known_from(curator.domain, first.one_ways, first.total)
        compression = compress(curator.domain, first.one_ways, merge)
        compressed = curator.recode(compression.recoding)
        measured = columns.measurements(compression.recoding)
        with progress.phase("fit columns"):
            model = fit(compressed.domain, measured, total=first.total, limits=progress.limits)
        return cls(curator, compressed, columns, compression, measured, model)

    def measure_again(self, spend: Amount) -> list[Measurement]:
        """The columns once more, where no relation between them is worth its noise."""
        return self.compression.reexpress(measure_one_ways(self.uncompressed, spend))

    def expand(self, model: Model) -> Model:
        """The model in the domain that was declared; what was merged is spread as the columns say."""
        return self.columns.expand(model, self.compression.recoding)


def first_measurements(curator: Curator, least_share: float) -> First:
    """Measure the total and every attribute by itself.

    The one-way marginals get the part of the budget that public quantities suggest, at least `least_share` of it.
    """
    whole = curator.remaining
    count = curator.total(spend=whole.share(TOTAL_SHARE))
    rough = max(1.0, count.total)
    share = max(least_share, one_way_share(curator, whole, rough))
    spend = curator.remaining if share >= 1 else whole.share(share)
    one_ways = measure_one_ways(curator, spend)
    return First(one_ways, estimated_total([count, *one_ways]))


def measure_one_ways(curator: Curator, spend: Amount, weights: Sequence[float] | None = None) -> list[Measurement]:
    """Every attribute's own counts."""
    return measure_columns(curator, [(name,) for name in curator.domain.names], spend, weights)


def measure_columns(
    curator: Curator, columns: Sequence[Marginal], spend: Amount, weights: Sequence[float] | None = None
) -> list[Measurement]:
    """The columns' counts in one stack; unless weights say otherwise, wide ones sharper, for the least sum of errors.

    Noise on k cells costs k·σ of L1 error; under a fixed Σ1/σ² the least sum would have 1/σ ∝ k^(1/3). Denoising takes
    more off the wide ones, so they need less; the power was fitted on public tables (adult, br2000, titanic).
    """
    queries = [MarginalQuery(curator.domain, column) for column in columns]
    return curator.measure(queries, spend=spend, weights=weights or [query.cells**WIDTH_POWER for query in queries])


def one_way_share(curator: Curator, whole: Amount, total: float) -> float:
    """The part of the budget that one-way marginals deserve, from public quantities alone.

    `error` is what they would still be wrong by if they had everything. Where that is large, sharper columns are
    worth more than any relation between them; beyond .6 relations are not worth buying at all, and the share is 1.
    Form and constants were fitted on public tables (adult, br2000, nltcs, titanic). Of more columns than `WIDE` a
    budget can buy the relations of an ever smaller part, while every marginal has its columns' errors: the odds grow
    in proportion.
    """
    sizes = [attribute.size for attribute in curator.domain]
    mean = sum(sizes) / len(sizes)
    noise = curator.noise(whole, [1.0] * len(sizes))[0].scale
    error = 0.4 * mean * noise / total
    if error > 0.6:
        return 1.0
    share = error / (error + 0.02) * (1 - math.exp(-mean / 10))
    if len(sizes) > WIDE:
        odds = share / (1 - share) * len(sizes) / WIDE
        share = odds / (1 + odds)
    return min(0.95, share)
