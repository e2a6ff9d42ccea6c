"""PrivSyn: pairs chosen by how far they are from independent, measured with shared noise, rows updated to fit.

Zhang, Wang, Li, Honorio, Backes, He, Chen, Zhang (2021), "PrivSyn: Differentially private data synthesis", USENIX
Security 21.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import INDEPENDENCE, Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.compression import Compression, compress
from hedgerow.methods.shared.start import first_measurements, measure_one_ways
from hedgerow.methods.shared.views import measure, pooled, share_power, view
from hedgerow.methods.shared.workloads import MOST_MARGINALS, some_pairs
from hedgerow.models.consistency import View, consistent
from hedgerow.models.model import Model
from hedgerow.models.records import Records, Target
from hedgerow.progress import Progress

LEAST_SHARE = 0.1
"""The one-way marginals' part of the budget, as in the paper; more where they need it."""
MOST_CLIQUES = 100_000
"""Cliques that are looked at for merging."""
PAIR, STEP = 150_000, 20
"""Work of a pair that is scored, and of each time that it is weighed against the others."""


@dataclass(frozen=True)
class PrivSyn(Options):
    """Many overlapping marginals, no graphical model."""

    choosing: float = option(0.1, "part of the budget that scores the pairs", above=0, at_most=1)
    merge: float = options.merge()
    most_cells: int = option(5000, "cells at most of pairs that are merged into one marginal", at_least=0)
    worth: float = options.worth(0.5, "pairs")

    about: ClassVar[About] = About(
        name="privsyn",
        title="PrivSyn",
        summary="Pairs chosen by their distance from independence, made consistent, and rows updated until they fit.",
        argument=(
            "The total and the one-way counts are measured with integer noise. Every pair's distance from independence "
            "(InDif), which one person moves by at most 4θ, is scored with noise on all scores together; what is "
            "chosen, merged and how the noise is shared follow from noisy answers. The chosen marginals are measured "
            "with what is left. Consistency, record updates and drawing are post-processing."
        ),
        paper="Zhang et al. (2021), PrivSyn: Differentially private data synthesis, USENIX Security; arXiv:2012.15128.",
        departures=(
            "The budget is kept in μ² (Gaussian DP), which needs less noise than zCDP; 1 % of it buys the total, and "
            "the one-way marginals get more than a tenth where the domain, the noise and the noisy total say so.",
            "Values hidden by noise are merged, as in MST.",
            "Pairs whose noise would exceed what they can tell are not scored.",
            "After the gradual update, rows exchange single values where all marginals together gain by it.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        whole = curator.remaining
        with progress.phase("measure every column"):
            first = first_measurements(curator, LEAST_SHARE)
        compression = compress(curator.domain, first.one_ways, self.merge)
        merged = curator.recode(compression.recoding)
        views = [one_way_view(compression, measurement) for measurement in first.one_ways]
        if curator.remaining:
            with progress.phase("choose pairs"):
                chosen = self.chosen(merged, whole, first.total, progress)
            with progress.phase("measure marginals"):
                if chosen:
                    views += measure(merged, chosen, curator.remaining)
                else:
                    again = measure_one_ways(curator, curator.remaining)
                    views += [one_way_view(compression, measurement) for measurement in again]
        with progress.phase("make consistent"):
            agreed = consistent(pooled(views), first.total, progress=progress)
        targets = [Target.of(each.marginal, each.counts) for each in agreed]
        return compression.expand(Records(merged.domain, targets, first.total))

    def chosen(self, curator: Curator, whole: Amount, total: float, progress: Progress) -> list[Marginal]:
        """Pairs by the trade-off between the noise of measuring them and what is lost without, merged into cliques.

        Where there are more than can be scored in the time allowed, lots decide which are looked at.
        """
        domain = curator.domain
        scoring = whole.share(min(self.choosing, curator.remaining.units / whole.units / 2))
        noise = curator.noise(curator.remaining - scoring)[0]
        pairs = [
            pair
            for pair in some_pairs(curator, progress.affords(MOST_MARGINALS, PAIR, len(domain)))
            if noise.mean_absolute * domain.cells(pair) <= self.worth * total
        ]
        if not pairs:
            return []
        candidates = [Candidate(MarginalQuery(domain, pair)) for pair in pairs]
        scores = curator.score(candidates, against=INDEPENDENCE, spend=scoring)
        cells = [domain.cells(pair) for pair in pairs]
        kept = trade_off(np.clip(scores, 0.0, 2 * total), np.array(cells, dtype=np.float64), noise, progress)
        return merged_cliques(domain, [pairs[index] for index in kept], self.most_cells)


def trade_off(losses: Counts, cells: Counts, noise: Noise, progress: Progress | None = None) -> list[int]:
    """Which pairs to measure: greedily while noise error + what the others lose falls (Algorithm 2).

    With noise shared by `weights`, the absolute errors of cells c_i add up to noise · (Σ c_i^p)^(1/p), where p = 2/3
    for Gaussian noise and 1/2 for Laplace noise. That grows with the sum, so the best next pair is found at once.
    The pairs chosen so far are a choice too, so it may end when the time is up.
    """
    progress = progress or Progress()
    power = 1 - share_power(noise)
    sizes = cells**power
    chosen: list[int] = []
    load = 0.0
    left = np.ones(len(sizes), dtype=bool)
    while left.any():
        cost = noise.mean_absolute * ((load + sizes) ** (1 / power) - load ** (1 / power)) - losses
        best = int(np.argmin(np.where(left, cost, np.inf)))
        if cost[best] >= 0:
            break
        chosen.append(best)
        load += float(sizes[best])
        left[best] = False
        progress.worked(STEP * len(sizes))
        if progress.out_of_time():
            break
    return chosen


def merged_cliques(domain: Domain, pairs: Sequence[Marginal], most_cells: int) -> list[Marginal]:
    """Pairs that form a clique of few cells become one marginal, the largest cliques first (§4.2).

    A clique is merged if it shares at most two attributes with every one merged before; the pairs inside it are
    dropped.
    """
    neighbours: dict[str, set[str]] = {name: set() for pair in pairs for name in pair}
    for first, second in pairs:
        neighbours[first].add(second)
        neighbours[second].add(first)
    taken: list[Marginal] = []
    for clique in sorted(_cliques(domain, neighbours, most_cells), key=len, reverse=True):
        if all(len(set(clique) & set(other)) <= 2 for other in taken):
            taken.append(clique)
    inside = [set(clique) for clique in taken]
    return [*taken, *(pair for pair in pairs if not any(set(pair) <= clique for clique in inside))]


def _cliques(domain: Domain, neighbours: Mapping[str, set[str]], most_cells: int) -> list[Marginal]:
    """Cliques of three attributes and more with at most so many cells."""
    growing: list[Marginal] = [(name,) for name in domain.names if name in neighbours]
    index = {name: number for number, name in enumerate(domain.names)}
    after = {
        name: sorted((other for other in others if index[other] > index[name]), key=index.__getitem__)
        for name, others in neighbours.items()
    }
    found: list[Marginal] = []
    while growing and len(found) < MOST_CLIQUES:
        growing = [
            (*clique, name)
            for clique in growing
            for name in after[clique[-1]]
            if set(clique) <= neighbours[name]
            if domain.cells((*clique, name)) <= most_cells or len(clique) == 1
        ][:MOST_CLIQUES]
        found += [clique for clique in growing if len(clique) > 2]
    return found


def one_way_view(compression: Compression, measurement: Measurement) -> View:
    """A one-way measurement after merging: cells that were merged carry more noise, so the mean precision counts."""
    (name,) = measurement.query.attributes
    mapping = compression.recoding.maps.get(name)
    if mapping is None:
        return view(measurement)
    counts = np.bincount(mapping, weights=measurement.dense()).astype(np.float64)
    precision = len(counts) / len(mapping) / max(measurement.noise.variance, 1e-12)
    return View((name,), counts, precision)
