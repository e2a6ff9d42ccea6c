"""MST as published: a third of the budget each for columns, the choice of a tree, and the pairs of the tree.

McKenna, Miklau, Sheldon (2021), "Winning the NIST Contest: A scalable and general approach to differentially private
synthetic data", Journal of Privacy and Confidentiality 11(3), Algorithms 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.mst import MST as OURS
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.compression import compress
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.progress import Progress

THIRD = Fraction(1, 3)


@dataclass(frozen=True)
class MST(Options):
    """A tree of pairs, as published."""

    merge: float = options.merge()

    accounting: ClassVar[str] = "zcdp"
    about: ClassVar[About] = replace(
        OURS.about,
        name="mst:paper",
        title="Maximum spanning tree, as published",
        departures=("Noise is drawn on whole counts.",),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        columns = [MarginalQuery(curator.domain, (name,)) for name in curator.domain.names]
        alone = len(columns) == 1
        third = curator.remaining.share(THIRD)
        with progress.phase("measure every column"):
            one_ways = curator.measure(columns, spend=curator.remaining if alone else third)
        compression = compress(curator.domain, one_ways, self.merge)
        merged = curator.recode(compression.recoding)
        measured = compression.reexpress(one_ways)
        model = fit(merged.domain, measured, limits=progress.limits)
        if not alone:
            with progress.phase("choose and measure pairs"):
                measured += merged.measure(self.tree(merged, model, third), spend=curator.remaining)
            with progress.phase("fit"):
                model = fit(merged.domain, measured, start=model, limits=progress.limits)
        return compression.expand(model)

    def tree(self, curator: Curator, model: GraphicalModel, spend: Amount) -> list[MarginalQuery]:
        """Kruskal's algorithm with the exponential mechanism, on distances from independent columns."""
        domain = curator.domain
        pairs = [MarginalQuery(domain, pair) for pair in combinations(domain.names, 2)]
        pool = curator.pool([Candidate(pair) for pair in pairs], against=model)
        ends = np.array([[domain.index(name) for name in pair.attributes] for pair in pairs])
        component = np.arange(len(domain))
        chosen: list[MarginalQuery] = []
        while len(left := np.flatnonzero(component[ends[:, 0]] != component[ends[:, 1]])):
            index = pool.select(left, spend=spend.share(Fraction(1, len(domain) - 1)))
            chosen.append(pairs[index])
            first, second = component[ends[index]]
            component[component == second] = first
        return chosen
