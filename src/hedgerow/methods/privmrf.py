"""PrivMRF: a graph of related attributes, and a Markov random field on marginals of its cliques, refined in steps.

Cai, Lei, Wei, Xiao (2021), "Data synthesis via differentially private Markov random fields", PVLDB 14(11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Domain, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import INDEPENDENCE, Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.parents import some_maximal_parents, useful_cells
from hedgerow.methods.shared.start import TOTAL_SHARE
from hedgerow.methods.shared.workloads import some_pairs
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import maximal, plan, sizes_with
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.progress import Progress

MOST_PAIRS = 20_000
"""Pairs that are scored; where there are more, lots decide."""
PAIR, SCORED = 150_000, 300_000
"""Work of a pair that is scored and joins the graph or not, and of a marginal that a step scores."""
MOST_PARENTS = 200
"""Sets of parents that are weighed for an attribute of a clique."""
SCORED_A_STEP, FEWEST = 400, 20
"""Marginals whose distances a step buys, by lot; and however little time is left."""
MOST_STEPS = 8
WIDEST = 6
"""Attributes of a marginal that is measured."""

Correlations = Mapping[frozenset[str], float]
"""For pairs: the noisy total variation distance from independence."""


@dataclass(frozen=True)
class PrivMRF(Options):
    """A Markov random field whose graph comes first."""

    graph: float = option(0.1, "part of the budget that scores pairs, for the graph", above=0, below=0.5)
    choosing: float = option(0.1, "part of the budget that chooses further marginals", above=0, below=0.5)
    theta: float = option(6.0, "rows of a mean cell as a multiple of its noise, at the least", above=0)
    further: float = option(0.8, "marginals that are chosen after the first ones, per attribute", at_least=0)
    size: float = options.size(4.0, when="")

    about: ClassVar[About] = About(
        name="privmrf",
        title="PrivMRF",
        summary="A graph of related columns, then marginals of its cliques: first by correlation, then by error.",
        argument=(
            "The scores of pairs (their distance from independence) move by at most 4θ each, the scores of marginals "
            "(their L1 distance from the model) by at most θ, and both are noised as stacks; the marginals are "
            "measured with integer noise. Which pairs, cliques and marginals are asked about follows from noisy "
            "answers and public lots; the filter on Σμ² allows for that. Fitting and drawing are post-processing."
        ),
        paper=(
            "Cai, Lei, Wei, Xiao (2021), Data synthesis via differentially private Markov random fields, "
            "PVLDB 14(11), 2190–2202."
        ),
        departures=(
            "Correlations are scored in counts, with a sensitivity that needs no number of rows; the authors' program "
            "divides by a noisy number of rows, and takes the sensitivity from that.",
            "The budget is kept in μ² (Gaussian DP).",
            "The graph takes edges in the order of their noisy scores while the model stays below 4 MB; the authors' "
            "program searches for the best next edge and allows 400 MB.",
            "Hierarchies of attributes are left out: the authors' were made by hand for one table.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain, whole = curator.domain, curator.remaining
        count = curator.total(spend=whole.share(TOTAL_SHARE))
        total = max(1.0, count.total)
        with progress.phase("choose the graph"):
            correlations = self.correlations(curator, whole.share(self.graph), total, progress)
            cliques = self.cliques(domain, correlations, progress)
        choosing = whole.share(self.choosing)
        planned = len(domain) + round(self.further * len(domain))
        each = (curator.remaining - choosing).share(Fraction(1, planned))
        cells = useful_cells(total, curator.noise(each)[0], self.theta)
        first = initial(curator, cliques, correlations, cells)
        candidates = further(domain, cliques, set(first), cells) if planned > len(domain) else {}
        with progress.phase("measure the first marginals"):
            queries = [MarginalQuery(domain, marginal) for marginal in first]
            spend = Amount(each.currency, len(first) * each.units) if candidates else curator.remaining
            measured = curator.measure(queries, spend=spend)
            model = fit(domain, [count, *measured], limits=progress.limits)
        with progress.phase("choose and measure further marginals"):
            more = min(planned - len(domain), len(candidates))
            return self.refined(curator, model, [count, *measured], candidates, more, choosing, progress)

    def correlations(self, curator: Curator, spend: Amount, total: float, progress: Progress) -> Correlations:
        """Every pair's noisy distance from independence, as a part of the rows."""
        pairs = some_pairs(curator, progress.affords(MOST_PAIRS, PAIR, len(curator.domain)))
        if not pairs:
            return {}
        candidates = [Candidate(MarginalQuery(curator.domain, pair)) for pair in pairs]
        scores = curator.score(candidates, against=INDEPENDENCE, spend=spend)
        return {frozenset(pair): score / (2 * total) for pair, score in zip(pairs, scores, strict=True)}

    def cliques(self, domain: Domain, correlations: Correlations, progress: Progress) -> list[Marginal]:
        """The cliques of a graph of the strongest correlations that a model of the allowed size can hold."""
        edges: list[Marginal] = []
        for pair, score in sorted(correlations.items(), key=lambda item: -item[1]):
            if score <= 0 or progress.out_of_time():
                break
            progress.worked(PAIR)
            edge = domain.marginal(pair)
            if sizes_with(domain, edges, [edge])[0] <= self.size * 2**20:
                edges.append(edge)
        tree = plan(domain, edges)
        return maximal(tree.layout.marginal(bucket.scope) for bucket in tree.buckets)

    def refined(
        self,
        curator: Curator,
        model: GraphicalModel,
        measured: list[Measurement],
        candidates: Mapping[Marginal, float],
        more: int,
        choosing: Amount,
        progress: Progress,
    ) -> GraphicalModel:
        """In each step the distances of some marginals from the model are bought, and the furthest are measured."""
        left = dict(candidates)
        steps = min(MOST_STEPS, max(1, len(curator.domain) // 2), more)
        measuring = curator.remaining - choosing if more else curator.remaining
        for step in range(steps):
            last = step == steps - 1 or progress.out_of_time()
            asked = drawn(curator, left, progress.affords(SCORED_A_STEP, SCORED, FEWEST))
            queries = [MarginalQuery(curator.domain, marginal) for marginal in asked]
            share = choosing.share(Fraction(1, steps))
            distances = curator.score([Candidate(query) for query in queries], against=model, spend=share)
            count = -(-more * (step + 1) // steps) - -(-more * step // steps)
            furthest = sorted(range(len(asked)), key=lambda index: -distances[index])[:count]
            spend = curator.remaining if last else measuring.share(Fraction(len(furthest), more))
            measured += curator.measure([queries[index] for index in furthest], spend=spend)
            model = fit(curator.domain, measured, total=model.total, start=model, limits=progress.limits)
            for index in furthest:
                del left[asked[index]]
            if last or not left:
                break
        return model


def initial(curator: Curator, cliques: Sequence[Marginal], correlations: Correlations, cells: float) -> list[Marginal]:
    """For each attribute its best family in a network inside a clique; alone where none has few enough cells."""
    domain = curator.domain
    best: dict[str, tuple[float, Marginal]] = {}
    for clique in cliques:
        for label, marginal, score in families(curator, clique, correlations, cells):
            best[label] = max(best.get(label, (-math.inf, ())), (score, marginal))
    chosen = maximal(marginal for _, marginal in best.values())
    covered = {name for marginal in chosen for name in marginal}
    return [*chosen, *((name,) for name in domain.names if name not in covered)]


def families(
    curator: Curator, clique: Marginal, correlations: Correlations, cells: float
) -> list[tuple[str, Marginal, float]]:
    """PrivBayes' greedy network on one clique, by noisy correlations alone: nothing is asked."""
    domain = curator.domain
    names = [clique[lot] for lot in curator.rng.permutation(len(clique))]
    before, left = names[:1], names[1:]
    found: list[tuple[str, Marginal, float]] = []
    while left:
        rivals = [
            (merit(label, parents, correlations), label, parents)
            for label in left
            for parents in parent_sets(domain, before, cells / domain[label].size)
        ]
        if not rivals:
            break
        score, label, parents = max(rivals)
        found.append((label, domain.marginal([label, *parents]), score))
        before.append(label)
        left.remove(label)
    return found


def parent_sets(domain: Domain, names: Sequence[str], cells: float) -> list[Marginal]:
    """The maximal sets of parents that are not empty."""
    sets = some_maximal_parents(domain, names, cells, False, MOST_PARENTS)
    return [tuple(name for name, _ in parents) for parents in sets[:MOST_PARENTS] if 0 < len(parents) < WIDEST]


def merit(label: str, parents: Marginal, correlations: Correlations) -> float:
    """Correlated with the label, and little with each other: the merit of correlation-based feature selection."""
    told = sum(correlations.get(frozenset((label, parent)), 0.0) for parent in parents)
    shared = sum(correlations.get(frozenset(pair), 0.0) for pair in combinations(parents, 2))
    return told / math.sqrt(max(1.0, len(parents) + shared))


def further(
    domain: Domain, cliques: Sequence[Marginal], measured: set[Marginal], cells: float
) -> dict[Marginal, float]:
    """Parts of cliques that could be measured too, weighing |clique|² in all for each clique."""
    weights: dict[Marginal, float] = {}
    for clique in cliques:
        parts = [
            part
            for length in range(1, min(WIDEST, len(clique)) + 1)
            for part in combinations(clique, length)
            if (length == 1 or domain.cells(part) <= cells) and part not in measured
        ]
        for part in parts:
            weights[part] = weights.get(part, 0.0) + len(clique) ** 2 / len(parts)
    return weights


def drawn(curator: Curator, weights: Mapping[Marginal, float], most: int) -> list[Marginal]:
    """All of the marginals, or so many by lot."""
    marginals = list(weights)
    if len(marginals) <= most:
        return marginals
    shares = np.array(list(weights.values()))
    lots = curator.rng.choice(len(marginals), size=most, replace=False, p=shares / shares.sum())
    return [marginals[lot] for lot in sorted(lots.tolist())]
