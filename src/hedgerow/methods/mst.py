"""MST: one-way marginals, a maximum spanning tree of pairs chosen privately, the pairs of the tree.

McKenna, Miklau, Sheldon (2021), "Winning the NIST Contest: A scalable and general approach to differentially private
synthetic data", Journal of Privacy and Confidentiality 11(3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.start import Start
from hedgerow.methods.shared.workloads import MOST_MARGINALS, some_pairs
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.progress import Progress

LEAST_SHARE = 1 / 3
"""The one-way marginals' part of the budget, as in the paper; more where they need it."""
LEAST_IMPURITY = 0.25
"""Columns that vary less than this weigh as if they varied this much: a weight is paid for in noise."""

PAIR = 150_000
"""Work of a pair that is scored and chosen among."""


@dataclass(frozen=True)
class MST(Options):
    """A tree of pairs."""

    merge: float = options.merge()
    choosing: float = option(0.3, "part of what the columns leave that chooses pairs", above=0, below=1)
    worth: float = options.worth(0.25, "pairs")
    accounting: str = options.accounting()

    relations: ClassVar[int] = 1
    about: ClassVar[About] = About(
        name="mst",
        title="Maximum spanning tree",
        summary="Every column, and the pairs of columns along a tree that is chosen for how strongly they are related.",
        argument=(
            "The total, the one-way counts and the pairs of the tree are measured with integer noise; each edge of the "
            "tree is chosen by the exponential mechanism on the L1 distance between the pair's counts and those of "
            "independent columns, which one person moves by at most θ. Fitting and drawing are post-processing."
        ),
        paper=(
            "McKenna, Miklau, Sheldon (2021), Winning the NIST Contest, J. Privacy and Confidentiality 11(3); "
            "arXiv:2108.04978."
        ),
        departures=(
            "The budget is kept in μ² (Gaussian DP), which needs less noise than zCDP; 1 % of it buys the total.",
            "The one-way marginals get at least a third, as in the paper, and more where the domain, the noise and the "
            "noisy total say so; 30 % of the rest chooses, and wide pairs get less noise.",
            "Single columns are denoised before they are fitted, and merged values are spread as they say.",
            "Scores are divided by how much the two columns vary, for a tree closer to that of mutual information.",
            "Pairs whose noise would exceed what they can tell are not candidates, so the tree may be a forest; if "
            "none is left, everything goes to the one-way marginals.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        start = Start.of(curator, LEAST_SHARE, self.merge, progress)
        model = start.model
        if curator.remaining:
            with progress.phase("choose and measure pairs"):
                more = self.tree(start.curator, model, progress)
                more = more or start.measure_again(curator.remaining)  # nothing is worth a pair
            with progress.phase("fit"):
                measured = [*start.measured, *more]
                model = fit(model.domain, measured, total=model.total, start=model, limits=progress.limits)
        return start.expand(model)

    def tree(self, curator: Curator, model: GraphicalModel, progress: Progress) -> list[Measurement]:
        """Choose pairs by Kruskal's algorithm with the exponential mechanism, then measure them."""
        domain = curator.domain
        selection = curator.remaining.share(self.choosing)
        edges = len(domain) - 1
        candidates = self.worthwhile(curator, curator.remaining - selection, edges, model, progress)
        if not candidates:
            return []
        pool = curator.pool(candidates, against=model)
        ends = np.array([[domain.index(name) for name in candidate.query.attributes] for candidate in candidates])
        component = np.arange(len(domain))
        chosen: list[MarginalQuery] = []
        while len(left := np.flatnonzero(component[ends[:, 0]] != component[ends[:, 1]])):
            index = pool.select(left, spend=selection.share(1 / edges))
            chosen.append(candidates[index].query)
            first, second = component[ends[index]]
            component[component == second] = first
            progress.step()
            if progress.out_of_time():
                break  # a forest will do
        weights = [query.cells ** (1 / 3) for query in chosen]  # the least sum of absolute errors
        return curator.measure(chosen, spend=curator.remaining, weights=weights)

    def worthwhile(
        self, curator: Curator, spend: Amount, edges: int, model: GraphicalModel, progress: Progress
    ) -> list[Candidate]:
        """Pairs that are not all noise: expected absolute noise at most `worth` of the rows.

        Where there are more than can be scored in the time allowed, lots decide which are looked at.

        A pair weighs more when its columns vary little, so that the order of the scores is closer to that of mutual
        information, which gives the tree that is nearest to the table (Chow, Liu 1968).
        """
        if edges < 1:
            return []
        noise = curator.noise(spend, [1.0] * edges)[0].mean_absolute
        varies = {name: max(LEAST_IMPURITY, impurity(model.marginal((name,)))) for name in curator.domain.names}
        most = progress.affords(MOST_MARGINALS, PAIR, edges)
        queries = (MarginalQuery(curator.domain, pair) for pair in some_pairs(curator, most))
        return [
            Candidate(
                query,
                weight=LEAST_IMPURITY / math.sqrt(math.prod(varies[name] for name in query.attributes)),
            )
            for query in queries
            if noise * query.cells <= self.worth * model.total
        ]


def impurity(counts: Counts) -> float:
    """The probability that two rows differ in a column."""
    shares = counts / counts.sum()
    return float(1 - (shares**2).sum())
