"""PrivSyn as published: a tenth each for columns and scores, the rest for marginals; gradual updates make the rows.

Zhang, Wang, Li, Honorio, Backes, He, Chen, Zhang (2021), "PrivSyn: Differentially private data synthesis", USENIX
Security 21.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import INDEPENDENCE, Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.privsyn import PrivSyn as OURS
from hedgerow.methods.privsyn import merged_cliques, trade_off
from hedgerow.methods.shared.views import measure, pooled, view
from hedgerow.models.consistency import consistent
from hedgerow.models.model import Model
from hedgerow.models.records import Target, Updated
from hedgerow.progress import Progress


@dataclass(frozen=True)
class PrivSyn(Options):
    """Many overlapping marginals, as published."""

    columns: float = option(0.1, "part of the budget that measures each column by itself", above=0, below=0.5)
    choosing: float = option(0.1, "part of the budget that scores the pairs", above=0, below=0.5)
    most_cells: int = option(5000, "cells at most of pairs that are merged into one marginal", at_least=0)

    accounting: ClassVar[str] = "zcdp"
    about: ClassVar[About] = replace(
        OURS.about,
        name="privsyn:paper",
        title="PrivSyn, as published",
        departures=("Noise is drawn on whole counts. The number of rows is the mean of what the columns add up to.",),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain, whole = curator.domain, curator.remaining
        with progress.phase("measure every column"):
            queries = [MarginalQuery(domain, (name,)) for name in domain.names]
            alone = len(queries) == 1
            one_ways = curator.measure(queries, spend=whole if alone else whole.share(self.columns))
            total = estimated_total(one_ways)
        views = [view(measurement) for measurement in one_ways]
        if not alone:
            with progress.phase("choose and measure pairs"):
                chosen = self.chosen(curator, whole.share(self.choosing), total)
                views += measure(curator, chosen or [(name,) for name in domain.names], curator.remaining)
        with progress.phase("make consistent"):
            agreed = consistent(pooled(views), total, progress=progress)
        return Updated(domain, [Target.of(each.marginal, each.counts) for each in agreed], total)

    def chosen(self, curator: Curator, spend: Amount, total: float) -> list[Marginal]:
        """DenseMarg (Algorithm 1 of the paper) on noisy InDif, and cliques of few cells merged."""
        domain = curator.domain
        pairs = list(combinations(domain.names, 2))
        candidates = [Candidate(MarginalQuery(domain, pair)) for pair in pairs]
        scores = curator.score(candidates, against=INDEPENDENCE, spend=spend)
        cells = np.array([domain.cells(pair) for pair in pairs], dtype=np.float64)
        noise = curator.noise(curator.remaining)[0]
        kept = trade_off(np.clip(scores, 0.0, 2 * total), cells, noise)
        return merged_cliques(domain, [pairs[index] for index in kept], self.most_cells)
