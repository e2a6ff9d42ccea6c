"""PrivBayes: a Bayesian network chosen privately, family by family, and the noisy counts of its families.

Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), "PrivBayes: Private data release via Bayesian networks", ACM
Transactions on Database Systems 42(4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.measurement import estimated_total
from hedgerow.curator import INDEPENDENCE, Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared.parents import some_maximal_parents, useful_cells
from hedgerow.methods.shared.start import TOTAL_SHARE
from hedgerow.models.model import Model
from hedgerow.models.network import BayesianNetwork, Conditional, Family, Parents
from hedgerow.progress import Progress

MOST_FAMILIES = 2_000
"""Families that a step looks at; where there are more, lots decide which attributes may be parents."""
MOST_BEFORE = 40
"""Attributes, by lot, among which a step looks for parents."""
FAMILY = 200_000
"""Work of a family that is scored."""


@dataclass(frozen=True)
class PrivBayes(Options):
    """A network of attributes and their parents."""

    beta: float = option(0.3, "part of the budget that chooses the network", above=0, below=1)
    theta: float = option(4.0, "rows of a mean cell as a multiple of its noise, at the least", above=0)
    encoding: str = option(
        "hierarchical",
        "hierarchical: ordered parents may stand at half, a quarter … of their resolution; vanilla: as they are",
        one_of=("hierarchical", "vanilla"),
    )

    about: ClassVar[About] = About(
        name="privbayes",
        title="PrivBayes",
        summary="A network in which every column depends on a few before it, and the noisy counts of these families.",
        argument=(
            "Each family (a column and its parents) is chosen by the exponential mechanism on the L1 distance between "
            "its counts and those of a column independent of its parents, which one person moves by at most 4θ. How "
            "large families may be follows from the noisy total. All families are then measured in one stack with "
            "integer noise; clipping, normalising and drawing are post-processing."
        ),
        paper=(
            "Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), PrivBayes: Private data release via Bayesian "
            "networks, ACM TODS 42(4), article 25."
        ),
        departures=(
            "Neighbours differ by one person more or less, not by one exchanged: counts need half the noise. The "
            "number of rows is not known: 1 % of the budget buys a noisy total, and the size of families follows it.",
            "With δ > 0 the noise is Gaussian and the budget is kept in μ²; with δ = 0 it is Laplace, as in the paper.",
            "Of the paper's encodings two are offered. The taxonomy of an ordered column is halving its codes; a "
            "column of no order has none. Families are scored by the paper's R; its F needs columns of two values.",
            "A combination of parents that noise leaves empty takes the column's own distribution.",
            "Where a step has more than 2,000 families to look at, or 40 columns, lots decide which may be parents.",
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        count = curator.total(spend=curator.remaining.share(TOTAL_SHARE))
        with progress.phase("choose the network", len(domain)):
            families = self.network(curator, curator.remaining.share(self.beta), max(1.0, count.total), progress)
        with progress.phase("measure the families"):
            measured = curator.measure([family.query(domain) for family in families], spend=curator.remaining)
        conditionals = [
            Conditional.of(domain, family, answer.dense()) for family, answer in zip(families, measured, strict=True)
        ]
        return BayesianNetwork(domain, conditionals, estimated_total([count, *measured]))

    def network(self, curator: Curator, choosing: Amount, total: float, progress: Progress) -> list[Family]:
        """GreedyBayes (Algorithm 4): the first attribute by lot, then one family after the other."""
        names = [curator.domain.names[lot] for lot in curator.rng.permutation(len(curator.domain))]
        noise = curator.noise(curator.remaining - choosing, [1.0] * len(names))[0]
        cells = useful_cells(total, noise, self.theta)
        chosen, left = [Family(names[0])], names[1:]
        steps = len(left)
        while left:
            families = self.candidates(curator, [family.label for family in chosen], left, cells, progress)
            if progress.out_of_time() or not any(family.parents for family in families):
                return [*chosen, *map(Family, left)]  # nothing that tells more than its noise
            candidates = [Candidate(family.query(curator.domain), label=family.label) for family in families]
            pool = curator.pool(candidates, against=INDEPENDENCE)
            chosen.append(families[pool.select(spend=choosing.share(Fraction(1, steps)))])
            left.remove(chosen[-1].label)
            progress.step()
        return chosen

    def candidates(
        self, curator: Curator, before: Sequence[str], left: Sequence[str], cells: float, progress: Progress
    ) -> list[Family]:
        """Every attribute that is left, with each set of parents that leaves its counts useful."""
        domain = curator.domain
        most = max(1, progress.affords(MOST_FAMILIES, FAMILY, len(left)) // len(left))
        order = [before[lot] for lot in curator.rng.permutation(len(before))[:MOST_BEFORE]]
        found: dict[int, Sequence[Parents]] = {}
        families: list[Family] = []
        for label in left:
            size = domain[label].size
            if size not in found:
                coarse = self.encoding == "hierarchical"
                found[size] = some_maximal_parents(domain, order, cells / size, coarse, most) or [()]
            families += [Family(label, parents) for parents in found[size][:most]]
        return families
