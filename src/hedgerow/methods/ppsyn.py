"""PPSyn, repaired: like AIM, but what is measured is a partition of a marginal, made from the model and not from data.

Zhang, Deng, Yin (2023), "Partition-based differentially private synthetic data generation", arXiv:2310.06371. The
write-up partitions exact counts, which is not private; everything here that decides on a partition, a candidate or a
budget is a function of noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import Noise
from hedgerow.curator import Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.blocks import FEWEST_BLOCKS, Family, offer_blocks
from hedgerow.methods.shared.ratio import ByRatio, Contributions
from hedgerow.methods.shared.rounds import Offer, Round, Rounds, Strategy, adapted, drawn_by_lot
from hedgerow.methods.shared.start import Start
from hedgerow.methods.shared.workloads import workload_of
from hedgerow.models.model import Model
from hedgerow.models.partitions import error_splits, mass_splits, sorted_merges
from hedgerow.progress import Progress

FAMILIES: Mapping[str, Family] = {
    "mass": mass_splits,
    "error": error_splits,
    "sorted": sorted_merges,
}
CONTRIBUTION = 0.3
"""What a marginal is taken to contribute before it is measured, as a part of the rows."""
MOST_ROUNDS_FACTOR = 4.0
"""By how much the planned number of rounds may be exceeded."""


@dataclass(frozen=True)
class PPSyn(Options, Strategy):
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
    selection: str = option(
        "rounds",
        "what a choice compares: distances at one budget a round, or distance per unit of each one's own budget",
        one_of=("rounds", "ratio"),
    )
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
            "A round has one budget by default; contribution per unit of budget, the paper's choice, is an option.",
            "The start, the merging of rare values and the weights of marginals are those of AIM here; the total is "
            "noisy.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        whole = curator.remaining
        workload = workload_of(curator, self.workload, self.target)
        start = Start.of(curator, self.one_ways, self.merge, progress)
        rounds = Rounds.after(start, workload, whole, progress)
        with progress.phase("partition, choose and measure marginals", 100):
            strategy = self if self.selection == "rounds" else self.by_ratio(start.curator, rounds)
            model = rounds.run(strategy, self.planned(start.curator, start.columns.total))
        return start.expand(model)

    def by_ratio(self, curator: Curator, rounds: Rounds) -> ByRatio:
        """The write-up's choice: contribution per unit of budget."""
        contributions = Contributions.bought(curator, rounds.model, list(rounds.wanted))
        return ByRatio(curator, contributions, FAMILIES[self.partition], self.eta, self.size, self.measuring)

    def tells(self, now: Round) -> bool:
        """Whether the noise allows the fewest blocks that tell something."""
        return self.blocks(now.noise, now.model.total) >= FEWEST_BLOCKS

    def consider(self, curator: Curator, wanted: Sequence[Marginal]) -> Sequence[Marginal]:
        return drawn_by_lot(curator, wanted)

    def propose(self, now: Round) -> Offer:
        """Partitions of every marginal that the model has room for; of a column where it has more cells than blocks."""
        count, megabytes = self.blocks(now.noise, now.model.total), self.size * now.used
        worth = [marginal for marginal in now.considered if len(marginal) > 1 or now.domain.cells(marginal) > count]
        marginals = now.fitting(worth, megabytes) if count >= FEWEST_BLOCKS else []
        return offer_blocks(now, marginals, count, megabytes, FAMILIES[self.partition])

    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        return adapted(budget, planned, moved)

    def blocks(self, noise: Noise, total: float) -> int:
        """So many blocks that their noise is the part η of what a marginal may contribute (the paper's Theorem 2)."""
        return int(self.eta * CONTRIBUTION * total / noise.mean_absolute)

    def planned(self, curator: Curator, total: float) -> Amount:
        """A round's budget: that of `rounds` per attribute, less where it would buy more blocks than pairs have cells.

        Twice the cells of a mean pair is what the best number of rounds left on public tables (adult, br2000).
        """
        domain = curator.domain
        even = curator.remaining.share(min(1.0, 1 / (self.rounds * len(domain))))
        if not even:
            return even
        pair = (sum(attribute.size for attribute in domain) / len(domain)) ** 2
        spare = (self.blocks(curator.noise(even.share(self.measuring))[0], total) / (2 * pair)) ** 2
        return even.share(1 / min(MOST_ROUNDS_FACTOR, max(1.0, spare)))
