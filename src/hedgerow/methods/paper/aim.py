"""AIM as published: one-way marginals, then rounds that choose, measure and anneal.

McKenna, Mullins, Sheldon, Miklau (2022), "AIM: An adaptive and iterative mechanism for differentially private
synthetic data", PVLDB 15(11), Algorithms 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.aim import AIM as OURS
from hedgerow.methods.method import About
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.rounds import Offer, Round, Rounds, Strategy, refit_from_last
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.model import Model
from hedgerow.progress import Progress


@dataclass(frozen=True)
class AIM(Options, Strategy):
    """Adaptive and iterative, as published."""

    workload: str = options.workload()
    target: str = options.target()
    rounds: float = options.rounds(16.0, "planned rounds per attribute, T = 16·d; annealing makes them fewer")
    measuring: float = options.measuring(0.9)
    size: float = options.size(80.0)

    accounting: ClassVar[str] = "zcdp"
    about: ClassVar[About] = replace(
        OURS.about,
        name="aim:paper",
        title="Adaptive and iterative mechanism, as published",
        departures=(
            "Noise is drawn on whole counts. Fits between rounds are rough, the last one is not.",
            "The model may be as large as the part of the budget spent before a round allows; in the paper the round's "
            "own counts too.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain, whole = curator.domain, curator.remaining
        wanted = closure(workload_of(curator, self.workload, self.target), domain)
        one_ways = [MarginalQuery(domain, marginal) for marginal in wanted if len(marginal) == 1]
        planned = whole.share(min(Fraction(1), 1 / (Fraction(self.rounds) * len(domain))))
        first = Amount(whole.currency, min(whole.units, len(one_ways) * planned.share(self.measuring).units))
        with progress.phase("measure every column"):
            measured = curator.measure(one_ways, spend=first)
            model = fit(domain, measured, limits=progress.limits)

        def again(spend: Amount) -> list[Measurement]:
            return curator.measure(one_ways, spend=spend)

        rounds = Rounds(curator, wanted, model, measured, refit_from_last(progress.limits), again, whole, progress)
        with progress.phase("choose and measure marginals", 100):
            return rounds.run(self, planned)

    def tells(self, now: Round) -> bool:
        return True

    def propose(self, now: Round) -> Offer:
        """Every marginal of the closure that leaves the model small: w_r · (‖M_r(D) − M_r(p̂)‖₁ − √(2/π)·σ·n_r)."""
        megabytes = self.size * now.used
        candidates = [
            Candidate(
                MarginalQuery(now.domain, marginal),
                now.wanted[marginal],
                now.noise.mean_absolute * now.domain.cells(marginal),
            )
            for marginal in now.fitting(now.considered, megabytes)
        ]
        return Offer(candidates, now.model, megabytes)

    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        """Annealing: σ halved and ε doubled, once an answer told no more than its noise (Algorithm 3)."""
        return Amount(budget.currency, 4 * budget.units) if moved <= 1 else budget
