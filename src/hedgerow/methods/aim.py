"""AIM: choose the marginal that the model gets most wrong, measure it, refit, until the budget is spent.

McKenna, Mullins, Sheldon, Miklau (2022), "AIM: An adaptive and iterative mechanism for differentially private
synthetic data", PVLDB 15(11).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.rounds import Offer, Round, Rounds, Strategy
from hedgerow.methods.shared.start import Start
from hedgerow.methods.shared.workloads import workload_of
from hedgerow.models.model import Model
from hedgerow.progress import Progress

LEAST_SHARE = 0.05
"""The one-way marginals' part of the budget: about what d of 16·d rounds are in the paper; more where they need it."""


@dataclass(frozen=True)
class AIM(Options, Strategy):
    """Adaptive and iterative."""

    workload: str = options.workload()
    target: str = options.target()
    rounds: float = options.rounds(16.0, "planned rounds per attribute; they become fewer as budgets grow")
    measuring: float = options.measuring(0.9)
    size: float = options.size(4.0)
    worth: float = options.worth(0.5, "marginals")
    merge: float = options.merge()
    accounting: str = options.accounting()

    about: ClassVar[About] = About(
        name="aim",
        title="Adaptive and iterative mechanism",
        summary="Measures, round by round, the marginals that the model so far gets most wrong.",
        argument=(
            "Each round chooses a marginal by the exponential mechanism on weight · (L1 distance from the model − "
            "expected noise), which one person moves by at most θ · weight, and measures it with integer noise. Which "
            "round spends how much depends on earlier noisy answers only; the filter on Σμ² allows for that."
        ),
        paper="McKenna, Mullins, Sheldon, Miklau (2022), AIM, PVLDB 15(11); arXiv:2201.12677.",
        departures=(
            "The budget is kept in μ² (Gaussian DP), which needs less noise than zCDP; 1 % of it buys the total.",
            "The share of the one-way marginals follows from the domain, the noise and the noisy total; values hidden "
            "by noise are merged, as in MST, and single columns are denoised.",
            "The model may grow to 4 MB (the paper: 80 MB), which costs little accuracy and a tenth of the time.",
            "Candidates whose expected noise exceeds what they could tell are dropped; a round that would have none "
            "gets more budget instead.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        whole = curator.remaining
        workload = workload_of(curator, self.workload, self.target)
        start = Start.of(curator, LEAST_SHARE, self.merge, progress)
        rounds = Rounds.after(start, workload, whole, progress)
        planned = curator.remaining.share(min(1.0, 1 / (self.rounds * len(curator.domain))))
        with progress.phase("choose and measure marginals", 100):
            model = rounds.run(self, planned)
        return start.expand(model)

    def tells(self, now: Round) -> bool:
        """Whether some pair is worth measuring."""
        cells = min((now.domain.cells(marginal) for marginal in now.wanted if len(marginal) > 1), default=1)
        return now.noise.mean_absolute * cells <= self.worth * now.model.total

    def propose(self, now: Round) -> Offer:
        """Marginals whose noise leaves something to learn and whose model would not outgrow its schedule."""
        noise = {marginal: now.noise.mean_absolute * now.domain.cells(marginal) for marginal in now.considered}
        worth = [marginal for marginal in now.considered if noise[marginal] <= self.worth * now.model.total]
        candidates = [
            Candidate(MarginalQuery(now.domain, marginal), now.wanted[marginal], noise[marginal])
            for marginal in now.fitting(worth, self.size * now.used)
        ]
        return Offer(candidates, now.model, self.size * now.used)

    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        """Half the standard deviation and twice the choice's ε, once an answer told no more than its noise."""
        return Amount(budget.currency, 4 * budget.units) if moved <= 1 else budget
