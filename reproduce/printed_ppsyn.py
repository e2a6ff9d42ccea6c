"""PPSyn as printed (Zhang, Deng, Yin 2023, Algorithms 1–4), gaps filled. NOT PRIVATE: it partitions exact counts.

Its releases carry no guarantee, say so in every file, and no ledger takes them. It is here to reproduce the write-up's
figures beside those of the private method `ppsyn`. One-way marginals get ρ_i ∝ c_i^(2/3) of a tenth of the budget, the
model the exact number of rows, a block's count is spread evenly over its cells, all as printed. Where the write-up
leaves a gap, or cannot be followed:

- the error of a merge is by how much it raises the reconstruction error; a budget is infinite where that error reaches
  η·Contr; any block may be cut along the dimension whose turn it is;
- the exponential mechanism's sensitivity is taken to be that of Contr/ρ_w with ρ_w fixed;
- candidates that need more than is left are dropped, and the last round spends all of it;
- T, which has no value in the write-up, is 50 and also the largest number of rounds: the last one spends the rest;
- "a predetermined maximum" on what is chosen is AIM's limit on the model's size, of 4 MB where AIM's own is 80;
- a spread measurement goes into the fit with the noise of its block, as the write-up's equation 6 has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, IntArray, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.curator import PRINTED, Candidate, Curator
from hedgerow.methods.method import About
from hedgerow.methods.shared.rounds import fitting, rough_calls
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.models.graphical.estimation import MOST_CALLS, fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.models.partitions import Partitions, error_splits, sorted_merges
from hedgerow.private.unsafe import exact_counts
from hedgerow.progress import Progress


@dataclass(frozen=True)
class Printed:
    """Algorithm 1."""

    marginals: tuple[Marginal, ...]
    eta: float = 0.7
    rounds: int = 50
    size: float = 4.0

    accounting: ClassVar[str] = "zcdp"
    about: ClassVar[About] = About(
        name="ppsyn-printed",
        title="Partition-based synthesis as printed",
        summary="Partitions exact counts; for reproducing figures only.",
        argument="There is none: partitions and budgets are functions of exact counts.",
        paper="Zhang, Deng, Yin (2023), arXiv:2310.06371.",
        void=PRINTED,
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain, whole = curator.domain, curator.remaining
        [[rows]] = exact_counts(curator, [total_query(domain)])
        counts = exact_counts(curator, [MarginalQuery(domain, marginal) for marginal in self.marginals])
        marginals = {
            marginal: Exposed(count.reshape(domain.shape(marginal)).astype(np.float64))
            for marginal, count in zip(self.marginals, counts, strict=True)
        }
        measured = measure_one_ways(curator, whole.share(0.1), [each.size ** (1 / 3) for each in domain])
        model = fit(domain, measured, total=float(rows), limits=progress.limits)
        choosing = whole.share(0.1 / self.rounds)
        for number in range(self.rounds):
            used = 1 - curator.remaining.units / whole.units
            allowed = fitting(domain, model.cliques, list(marginals), self.size * max(used, 0.1))
            last = number == self.rounds - 1 or progress.out_of_time()
            measured.append(self.select({m: marginals[m] for m in allowed}, model, curator, choosing, last))
            calls = rough_calls(model) if curator.remaining else MOST_CALLS
            model = fit(domain, measured, total=model.total, start=model, limits=progress.limits, most_calls=calls)
            if not curator.remaining:
                break
        return model

    def select(
        self, marginals: dict[Marginal, Exposed], model: GraphicalModel, curator: Curator, choosing: Amount, last: bool
    ) -> Measurement:
        """Algorithm 2, then the measurement of what it chose, each block's count spread evenly over its cells."""
        left = curator.remaining - choosing
        found = {
            marginal: exposed.cheapest(self.eta, model.marginal(marginal)) for marginal, exposed in marginals.items()
        }
        affordable = {m: (blocks, rho) for m, (blocks, rho) in found.items() if rho <= left.value}
        last = last or not affordable
        candidates = [
            Candidate(MarginalQuery(curator.domain, marginal), weight=1 / rho)
            for marginal, (_, rho) in (affordable or {m: (b, 1.0) for m, (b, _) in found.items()}).items()
        ]
        chosen = curator.select(candidates, against=model, spend=choosing)
        blocks, rho = found[chosen.query.attributes]
        spend = left if last else Amount.of(left.currency, rho)
        if left.units - spend.units < 2 * choosing.units:
            spend = left
        of_cell = marginals[chosen.query.attributes].partitions.blocks(blocks)
        query = MarginalQuery(curator.domain, chosen.query.attributes, blocks=of_cell)
        answer = curator.measure([query], spend=spend)[0]
        spread = (answer.values / np.bincount(of_cell))[of_cell]
        return Measurement(chosen.query, cast(IntArray, spread), answer.noise)


class Exposed:
    """A marginal's exact counts and their partitions, which do not depend on the model."""

    def __init__(self, counts: Counts):
        self.counts = counts
        self.partitions: Partitions = sorted_merges(counts) if counts.ndim == 1 else error_splits(counts)
        self.errors = self.partitions.errors

    def cheapest(self, eta: float, estimate: Counts) -> tuple[int, float]:
        """The stopping point of Algorithms 3 (one attribute) and 4: so many blocks, and the ρ that they need."""
        budgets = required(self.errors, eta * float(np.abs(self.counts - estimate).sum()))
        blocks = merged_until(budgets) if self.counts.ndim == 1 else split_until(budgets)
        return blocks, float(budgets[blocks - 1])


def required(errors: Counts, allowed: float) -> Counts:
    """ρ by the number of blocks: |P|²/(π·(allowed − reconstruction error)²), infinite where no room is left."""
    blocks = np.arange(1, len(errors) + 1)
    room = np.maximum(allowed - errors, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(room > 0, blocks**2 / (np.pi * room**2), np.inf)


def merged_until(budgets: Counts) -> int:
    """Algorithm 3: from single cells on, merge while the budget does not rise."""
    rises: IntArray = np.flatnonzero(budgets[:-1] > budgets[1:])
    return int(rises[-1]) + 2 if len(rises) else 1


def split_until(budgets: Counts) -> int:
    """Algorithm 4: from one block on, split until there is room for noise and the budget rises."""
    rises: IntArray = np.flatnonzero((budgets[1:] > budgets[:-1]) & np.isfinite(budgets[:-1]))
    return int(rises[0]) + 1 if len(rises) else len(budgets)
