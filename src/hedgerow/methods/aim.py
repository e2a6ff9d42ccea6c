"""AIM: choose the marginal that the model gets most wrong, measure it, refit, until the budget is spent.

McKenna, Mullins, Sheldon, Miklau (2022), "AIM: An adaptive and iterative mechanism for differentially private
synthetic data", PVLDB 15(11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options
from hedgerow.methods.shared import options
from hedgerow.methods.shared.columns import Columns
from hedgerow.methods.shared.compression import compress
from hedgerow.methods.shared.rounds import contribution, rough_calls, within
from hedgerow.methods.shared.start import measure_one_ways, start
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.models.graphical.estimation import MOST_CALLS, fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.progress import Progress

LEAST_SHARE = 0.05
"""The one-way marginals' part of the budget: about what d of 16·d rounds are in the paper; more where they need it."""


@dataclass(frozen=True)
class AIM(Options):
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
        with progress.phase("measure every column"):
            begun = start(curator, LEAST_SHARE)
        columns = Columns.known_from(curator.domain, begun.one_ways, begun.total)
        compression = compress(curator.domain, begun.one_ways, self.merge)
        compressed = curator.recode(compression.recoding)
        wanted = closure(workload, compressed.domain)
        measured = columns.measurements(compression.recoding)
        model = fit(compressed.domain, measured, total=begun.total, limits=progress.limits)
        budget = curator.remaining.share(min(1.0, 1 / (self.rounds * len(curator.domain))))
        with progress.phase("choose and measure marginals", 100):
            while curator.remaining:
                budget = self.affordable(compressed, budget, wanted, begun.total)
                if progress.out_of_time() or curator.remaining.units < 2 * budget.units:
                    budget = curator.remaining  # the last round spends everything
                used = 1 - curator.remaining.units / whole.units
                answer = self.round(compressed, budget, model, wanted, used)
                measured += [answer] if answer else compression.reexpress(measure_one_ways(curator, curator.remaining))
                calls = rough_calls(model) if curator.remaining else MOST_CALLS
                refitted = fit(
                    compressed.domain,
                    measured,
                    total=begun.total,
                    start=model,
                    limits=progress.limits,
                    most_calls=calls,
                )
                if answer and contribution(answer, model, refitted) <= 1:  # no more than its noise: buy less noise
                    budget = quadrupled(budget)
                model = refitted
                progress.step(100 * budget.units // whole.units)
        return columns.expand(model, compression.recoding)

    def round(
        self, curator: Curator, budget: Amount, model: GraphicalModel, wanted: Mapping[Marginal, float], used: float
    ) -> Measurement | None:
        """Choose and measure one marginal; None where none is worth its noise."""
        measuring = budget.share(self.measuring)
        candidates = self.candidates(curator, measuring, model, wanted, used)
        if not candidates:
            return None
        chosen = curator.select(candidates, against=model, spend=budget - measuring)
        return curator.measure([chosen.query], spend=measuring)[0]

    def candidates(
        self, curator: Curator, measuring: Amount, model: GraphicalModel, wanted: Mapping[Marginal, float], used: float
    ) -> list[Candidate]:
        """Marginals whose noise leaves something to learn and whose model would not outgrow its schedule."""
        domain = curator.domain
        noise = curator.noise(measuring)[0].mean_absolute
        worth = [m for m in wanted if noise * domain.cells(m) <= self.worth * model.total]
        return [
            Candidate(MarginalQuery(domain, marginal), wanted[marginal], noise * domain.cells(marginal))
            for marginal in within(domain, model.cliques, worth, self.size * used)
        ]

    def affordable(self, curator: Curator, budget: Amount, wanted: Mapping[Marginal, float], total: float) -> Amount:
        """The round's budget, doubled until its noise leaves some pair worth measuring."""
        cells = min((curator.domain.cells(m) for m in wanted if len(m) > 1), default=1)
        while budget <= curator.remaining:
            noise = curator.noise(budget.share(self.measuring))[0].mean_absolute
            if noise * cells <= self.worth * total:
                break
            budget = budget + budget
        return budget if budget <= curator.remaining else curator.remaining


def quadrupled(budget: Amount) -> Amount:
    """Half the standard deviation, twice the choice's ε."""
    return Amount(budget.currency, 4 * budget.units)
