"""PPSyn, repaired: like AIM, but what is measured is a partition of a marginal, made from the model and not from data.

Zhang, Deng, Yin (2023), "Partition-based differentially private synthetic data generation", arXiv:2310.06371. The
write-up partitions exact counts, which is not private; everything here that decides on a partition, a candidate or a
budget is a function of noisy answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.curator import Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.compression import compress
from hedgerow.methods.shared.rounds import considered, contribution, next_budget, offers, rough_calls, within
from hedgerow.methods.shared.start import measure_one_ways, start
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.models.graphical.estimation import MOST_CALLS, fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.models.partitions import Partitions, error_splits, mass_splits, sorted_merges
from hedgerow.progress import Progress

FAMILIES: Mapping[str, Callable[[Counts, int], Partitions]] = {
    "mass": mass_splits,
    "error": error_splits,
    "sorted": sorted_merges,
}
CONTRIBUTION = 0.3
"""What a marginal is taken to contribute before it is measured, as a part of the rows."""
FEWEST = 4
"""A partition into fewer blocks tells nothing of a relation: the least pair has 2 × 2 cells."""
MORE_ROUNDS = 4.0
"""By how much the planned number of rounds may be exceeded."""


@dataclass(frozen=True)
class PPSyn(Options):
    """Partitions of marginals."""

    workload: str = options.workload()
    target: str = options.target()
    eta: float = option(
        0.5, "noise of a measurement as a part of what it may contribute: larger means more blocks", above=0
    )
    rounds: float = options.rounds(1.0, "planned rounds per attribute; up to four times as many on narrow domains")
    one_ways: float = option(
        0.05, "least part of the budget for single columns; more where public quantities say so", at_least=0, at_most=1
    )
    measuring: float = options.measuring(0.85)
    partition: str = option("mass", "how marginals are partitioned", one_of=tuple(FAMILIES))
    size: float = options.size(4.0)
    merge: float = options.merge()
    accounting: str = options.accounting()

    about: ClassVar[About] = About(
        name="ppsyn",
        title="Partition-based synthesis",
        summary="Measures, round by round, partitions of the marginals that the model so far gets most wrong.",
        argument=(
            "Partitions, candidates and budgets are made from the model, that is from earlier noisy answers. A row "
            "lies in one block of a partition, so its counts move by at most θ and so does their L1 distance from the "
            "model, on which the exponential mechanism chooses; the filter on Σμ² allows budgets to depend on answers."
        ),
        paper="Zhang, Deng, Yin (2023), Partition-based differentially private synthetic data generation, "
        "arXiv:2310.06371.",
        departures=(
            "The paper's partitions, scores and budgets are functions of exact counts, which is not private; here all "
            "three come from the model.",
            "Blocks have like mass under the model; the paper's two algorithms are options.",
            "Sums of blocks are fitted directly; the paper spreads them evenly over their cells first.",
            "A marginal's contribution is read off its measurement and steers the next rounds' budget.",
            "The start, the merging of rare values and the weights of marginals are those of AIM here; the total is "
            "noisy.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        whole = curator.remaining
        workload = workload_of(curator, self.workload, self.target)
        with progress.phase("measure every column"):
            begun = start(curator, self.one_ways)
        compression = compress(curator.domain, begun.one_ways, self.merge)
        compressed = curator.recode(compression.recoding)
        wanted = {m: weight for m, weight in closure(workload, compressed.domain).items() if len(m) > 1}
        measured = compression.reexpress(begun.one_ways)
        model = fit(compressed.domain, measured, total=begun.total, limits=progress.limits)
        least = budget = self.planned(compressed, model.total)
        with progress.phase("partition, choose and measure marginals", 100):
            while curator.remaining:
                budget = self.affordable(compressed, budget, model.total)
                if progress.out_of_time() or curator.remaining.units < 2 * budget.units:
                    budget = curator.remaining  # the last round spends everything
                used = 1 - curator.remaining.units / whole.units
                answer = self.round(compressed, budget, model, wanted, used)
                measured += [answer] if answer else compression.reexpress(measure_one_ways(curator, curator.remaining))
                refitted = fit(
                    compressed.domain,
                    measured,
                    total=begun.total,
                    start=model,
                    limits=progress.limits,
                    most_calls=rough_calls(model) if curator.remaining else MOST_CALLS,
                )
                if answer:
                    budget = next_budget(budget, least, contribution(answer, model, refitted))
                model = refitted
                progress.step(100 * budget.units // whole.units)
        return compression.expand(model)

    def round(
        self, curator: Curator, budget: Amount, model: GraphicalModel, wanted: Mapping[Marginal, float], used: float
    ) -> Measurement | None:
        """Partition every marginal, choose one, measure its blocks; None where nothing is worth its noise."""
        measuring = budget.share(self.measuring)
        count = self.blocks(curator, measuring, model.total)
        marginals = within(curator.domain, model.cliques, considered(curator, list(wanted)), self.size * used)
        if count < FEWEST or not marginals:
            return None
        noise, family = curator.noise(measuring)[0], FAMILIES[self.partition]
        candidates, known = offers(curator.domain, model, wanted, marginals, count, noise, family)
        chosen = curator.select(candidates, against=known, spend=budget - measuring)
        return curator.measure([chosen.query], spend=measuring)[0]

    def blocks(self, curator: Curator, measuring: Amount, total: float) -> int:
        """So many blocks that their noise is the part η of what a marginal may contribute (the paper's Theorem 2)."""
        return int(self.eta * CONTRIBUTION * total / curator.noise(measuring)[0].mean_absolute)

    def planned(self, curator: Curator, total: float) -> Amount:
        """A round's budget: that of `rounds` per attribute, less where it would buy more blocks than pairs have cells.

        Twice the cells of a mean pair is what the best number of rounds left on public tables (adult, br2000).
        """
        domain = curator.domain
        even = curator.remaining.share(min(1.0, 1 / (self.rounds * len(domain))))
        if not even:
            return even
        pair = (sum(attribute.size for attribute in domain) / len(domain)) ** 2
        spare = (self.blocks(curator, even.share(self.measuring), total) / (2 * pair)) ** 2
        return even.share(1 / min(MORE_ROUNDS, max(1.0, spare)))

    def affordable(self, curator: Curator, budget: Amount, total: float) -> Amount:
        """The round's budget, doubled until its noise allows the fewest blocks that tell something."""
        while budget <= curator.remaining and self.blocks(curator, budget.share(self.measuring), total) < FEWEST:
            budget = budget + budget
        return budget if budget <= curator.remaining else curator.remaining
