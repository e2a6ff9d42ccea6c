"""MWEM+PGM: the multiplicative-weights exponential mechanism with a graphical model in place of the weights.

Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private data release"; the model
as in McKenna, Sheldon, Miklau (2019), "Graphical-model based estimation and inference for differential privacy".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.workloads import by_lot, workload_of
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import sizes_with
from hedgerow.models.model import Model
from hedgerow.progress import Progress

MARGINAL = 200_000
"""Work of a marginal that is sized and scored."""
FEWEST = 500
"""Marginals that a round looks at, however little time is left."""


@dataclass(frozen=True)
class MWEM(Options):
    """A fixed number of rounds, each on the marginal that is furthest off."""

    workload: str = options.workload("2")
    target: str = options.target()
    rounds: float = options.rounds(1.0, "rounds per attribute")
    measuring: float = options.measuring(0.9)
    size: float = options.size(25.0, when="")

    about: ClassVar[About] = About(
        name="mwem",
        title="MWEM with a graphical model",
        summary="A fixed number of rounds; each measures the marginal that the model gets most wrong.",
        argument=(
            "Every round chooses by the exponential mechanism on the L1 distance from the model, which one person "
            "moves by at most θ · weight, and measures with integer noise; the rest is post-processing."
        ),
        paper=("Hardt, Ligett, McSherry (2012), NeurIPS 25; McKenna, Sheldon, Miklau (2019), ICML, arXiv:1901.09136."),
        departures=("The number of rows is not known: 1 % of the budget buys a noisy total.",),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        wanted = workload_of(curator, self.workload, self.target).weights
        count = curator.total(spend=curator.remaining.share(0.01))
        model = fit(domain, [], total=count.total, limits=progress.limits)
        measured = []
        rounds = max(1, round(self.rounds * len(domain)))
        spends = curator.remaining.split([1.0] * rounds)
        with progress.phase("choose and measure marginals", rounds):
            for number, spend in enumerate(spends, start=1):
                if progress.out_of_time() or number == rounds:
                    spend = curator.remaining
                looked_at = by_lot(curator, list(wanted), progress.affords(len(wanted), MARGINAL, FEWEST))
                sizes = sizes_with(domain, model.cliques, looked_at)
                candidates = [
                    Candidate(MarginalQuery(domain, marginal), wanted[marginal])
                    for marginal, size in zip(looked_at, sizes, strict=True)
                    if size <= self.size * 2**20
                ]
                measuring = spend.share(self.measuring)
                chosen = curator.select(candidates, against=model, spend=spend - measuring)
                measured += curator.measure([chosen.query], spend=measuring)
                model = fit(domain, measured, total=model.total, start=model, limits=progress.limits)
                progress.step()
                if not curator.remaining:
                    break
        return model
