"""Rounds: choose what the model gets most wrong, measure it, refit, until the budget is spent.

The loop of AIM, PPSyn and hedge is one: affordable → propose → choose → measure → refit → next budget. `Rounds` owns
budget, model and clock; a method is a `Strategy`, which says what it proposes and how it prices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Domain, Marginal, Workload
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Answers, Candidate, Curator
from hedgerow.methods.shared.start import Start
from hedgerow.methods.shared.workloads import by_lot, closure
from hedgerow.models.graphical.estimation import MOST_CALLS, fit
from hedgerow.models.graphical.junction import bounds_with, sizes_with
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.progress import Limits, Progress

ROUGH_CALLS = (25, 150)
"""Least and most oracle calls of a fit between rounds; the last one runs to the end."""
ROUGH_CELLS = 2e7
"""Cells that the oracle calls of such a fit may go through: large models get fewer calls."""
CELLS_A_ROUND = 4_000_000
"""Cells of all the marginals that one round considers; where there are more, lots decide, the small degrees first."""
MARGINALS_A_ROUND = 6_000
"""The same of their number."""
FEWEST_A_ROUND = 500
"""So many are considered however little time is left."""
LISTED, MARGINAL, PICKED = 2_000, 100_000, 1_000_000
"""Work of a marginal that matters, of one that a round considers, and of a pick."""

Refit = Callable[[GraphicalModel, Sequence[Measurement], bool], GraphicalModel]
"""The next model from the last one and all measurements; roughly, where more rounds follow."""


@dataclass(frozen=True, eq=False)
class Round:
    """What a method knows when it proposes. All of it is public."""

    domain: Domain
    model: GraphicalModel
    wanted: Mapping[Marginal, float]
    """The marginals that matter, with their weights."""
    considered: Sequence[Marginal]
    """Those of them that this round goes through."""
    noise: Noise
    """The noise that a measurement would carry."""
    used: float
    """The part of the whole budget that is spent."""
    spend: Amount
    """What a measurement would cost."""
    free: Amount
    """What all the rounds to come may spend."""

    def fitting(self, marginals: Sequence[Marginal], megabytes: float) -> list[Marginal]:
        """Those that the model holds already, or that leave it no larger than this."""
        within: set[Marginal] = set()
        if all(len(marginal) == 2 for marginal in marginals):  # of wide tables, where sizing each takes long
            bounds = bounds_with(self.model.plan, marginals)
            within.update(pair for pair, bound in zip(marginals, bounds, strict=True) if bound <= megabytes * 2**20)
        others = [marginal for marginal in marginals if marginal not in within]
        within.update(fitting(self.domain, self.model.cliques, others, megabytes))
        return [marginal for marginal in marginals if marginal in within]


@dataclass(frozen=True, eq=False)
class Offer:
    """Candidates of a round, what they are compared with, and how large the model may become with those chosen."""

    candidates: Sequence[Candidate]
    against: Answers
    megabytes: float
    costs: Sequence[Amount] | None = None
    """What measuring each candidate costs, where each has a price of its own; a round then makes one pick."""


class Strategy(ABC):
    """What a method brings to its rounds. A pick is one choice and its measurement."""

    measuring: float
    """The part of a pick's budget that measures; the rest chooses."""

    @abstractmethod
    def tells(self, now: Round) -> bool:
        """Whether an answer with this noise could tell anything. A pick's budget is doubled until one does."""

    @abstractmethod
    def propose(self, now: Round) -> Offer:
        """What could be measured; no candidates where none is worth its noise."""

    @abstractmethod
    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        """A pick's budget in the next round, where the last answers moved the model by so many times their noise."""

    def consider(self, curator: Curator, wanted: Sequence[Marginal]) -> Sequence[Marginal]:
        """The marginals that a round goes through."""
        return wanted

    def picks_a_round(self, spent: Amount, free: Amount, budget: Amount, considered: int) -> int:
        """How many picks a round makes, where these rounds have spent so much and may spend what is free."""
        return 1


@dataclass(eq=False)
class Rounds:
    """The rounds of one run: what is known so far, and how more is learnt."""

    curator: Curator
    wanted: Mapping[Marginal, float]
    model: GraphicalModel
    measured: list[Measurement]
    refit: Refit
    otherwise: Callable[[Amount], list[Measurement]]
    """Measures what is left to measure where no candidate is worth its noise."""
    whole: Amount
    progress: Progress

    @classmethod
    def after(cls, start: Start, workload: Workload, whole: Amount, progress: Progress) -> Rounds:
        """Rounds about a workload, on from what single columns told."""
        refit = refit_from_last(progress.limits)
        wanted = closure(workload, start.curator.domain)
        measured = list(start.measured)
        return cls(start.curator, wanted, start.model, measured, refit, start.measure_again, whole, progress)

    def run(self, strategy: Strategy, planned: Amount, reserved: Amount | None = None) -> GraphicalModel:
        """Rounds until no more is left than what is reserved; a pick's budget is planned, then follows the answers."""
        reserved = reserved or self.whole.share(0)
        budget, begun = planned, self.curator.remaining
        while self.curator.remaining.units > reserved.units:
            free = self.curator.remaining - reserved
            considered = self.in_time(strategy.consider(self.curator, list(self.wanted)), MARGINAL)
            self.progress.worked(LISTED * len(self.wanted) + MARGINAL * len(considered))
            budget = self.affordable(strategy, free, budget)
            picks = strategy.picks_a_round(begun - self.curator.remaining, free, budget, len(considered))
            if self.progress.out_of_time() or free.units < 2 * picks * budget.units:
                budget = Amount(free.currency, free.units // picks)  # the last round spends everything
            offer = strategy.propose(self.now(budget.share(strategy.measuring), free, considered))
            answers = self.measure(offer, budget, budget.share(strategy.measuring), free, picks)
            before = self.model
            self.learn(answers or self.otherwise(free), rough=self.curator.remaining.units > reserved.units)
            if answers:
                moved = float(np.mean([contribution(answer, before, self.model) for answer in answers]))
                budget = strategy.next_budget(budget, planned, moved)
            self.progress.step(100 * picks * budget.units // self.whole.units)
        return self.model

    def in_time(self, marginals: Sequence[Marginal], each: float) -> Sequence[Marginal]:
        """The marginals, or as many of them by lot as the time allows to go through."""
        return by_lot(self.curator, marginals, self.progress.affords(len(marginals), each, FEWEST_A_ROUND))

    def affordable(self, strategy: Strategy, free: Amount, budget: Amount) -> Amount:
        """A pick's budget, doubled until its noise leaves something to tell; all that is free where none does."""
        while budget and budget <= free and not strategy.tells(self.now(budget.share(strategy.measuring), free)):
            budget = budget + budget
        return budget if budget and budget <= free else free

    def now(self, spend: Amount, free: Amount, considered: Sequence[Marginal] = ()) -> Round:
        """A round that would measure for this amount."""
        used = 1 - self.curator.remaining.units / self.whole.units
        noise = self.curator.noise(spend)[0]
        return Round(self.curator.domain, self.model, self.wanted, considered, noise, used, spend, free)

    def measure(self, offer: Offer, budget: Amount, measuring: Amount, free: Amount, picks: int) -> list[Measurement]:
        """Choose so many candidates, each for its part of the budget, then measure them in one stack.

        What would be left of `free` goes to the measurements too, where it is less than half of another pick.
        """
        if not offer.candidates:
            return []
        before = self.curator.remaining
        chosen = self.choose(offer, budget - measuring, picks if offer.costs is None else 1)
        left = free - (before - self.curator.remaining)
        spend = Amount(free.currency, len(chosen) * measuring.units) if offer.costs is None else offer.costs[chosen[0]]
        queries = [offer.candidates[index].query for index in chosen]
        return self.curator.measure(queries, spend=left if (left - spend).units < budget.units // 2 else spend)

    def choose(self, offer: Offer, spend: Amount, picks: int) -> list[int]:
        """One candidate after the other, none of a marginal that was chosen before.

        All of them fit the model by themselves. One that does not beside those chosen before it is paid for and left:
        to size all that are left after every choice costs more than what that loses.
        """
        pool = self.curator.pool(offer.candidates, against=offer.against)
        marginals = [candidate.query.attributes for candidate in offer.candidates]
        left = np.ones(len(marginals), dtype=bool)
        chosen: list[int] = []
        for _ in range(picks):
            if not left.any():
                break
            index = pool.select(np.flatnonzero(left), spend=spend)
            left &= np.array([marginal != marginals[index] for marginal in marginals])
            cliques = [*self.model.cliques, *(marginals[number] for number in chosen)]
            self.progress.worked(PICKED)
            if not chosen or fitting(self.curator.domain, cliques, [marginals[index]], offer.megabytes):
                chosen.append(index)
        return chosen

    def learn(self, answers: Sequence[Measurement], rough: bool) -> None:
        self.measured += answers
        self.model = self.refit(self.model, self.measured, rough)


def refit_from_last(limits: Limits) -> Refit:
    """The fit of all measurements, begun at the last model."""

    def refit(last: GraphicalModel, measured: Sequence[Measurement], rough: bool) -> GraphicalModel:
        calls = rough_calls(last) if rough else MOST_CALLS
        return fit(last.domain, measured, total=last.total, start=last, limits=limits, most_calls=calls)

    return refit


def rough_calls(model: GraphicalModel) -> int:
    """How much effort a fit between rounds is worth."""
    return int(np.clip(ROUGH_CELLS / model.plan.work, *ROUGH_CALLS))


def fitting(
    domain: Domain, cliques: Sequence[Marginal], marginals: Sequence[Marginal], megabytes: float
) -> list[Marginal]:
    """The marginals that a model on these cliques holds already, or that leave it no larger than this."""
    sizes = sizes_with(domain, cliques, marginals)
    held = [set(clique) for clique in cliques]
    return [
        marginal
        for marginal, size in zip(marginals, sizes, strict=True)
        if size <= megabytes * 2**20 or any(clique >= set(marginal) for clique in held)
    ]


def drawn_by_lot(curator: Curator, marginals: Sequence[Marginal]) -> list[Marginal]:
    """All of the marginals, or a part by lot, small degrees first, that has few enough cells for one round."""
    cells = list(map(curator.domain.cells, marginals))
    if len(marginals) <= MARGINALS_A_ROUND and sum(cells) <= CELLS_A_ROUND:
        return list(marginals)
    lots = curator.rng.permutation(len(marginals)).tolist()
    room, least = CELLS_A_ROUND, min(cells)
    kept: list[Marginal] = []
    for lot in sorted(lots, key=lambda lot: len(marginals[lot])):
        if room < least or len(kept) == MARGINALS_A_ROUND:
            break
        if cells[lot] <= room:
            kept.append(marginals[lot])
            room -= cells[lot]
    return kept


def contribution(answer: Measurement, before: GraphicalModel, after: GraphicalModel) -> float:
    """How far the model moved on what was measured, in multiples of the noise that it was shown."""
    assert isinstance(answer.query, MarginalQuery)
    [old], [new] = before.answers([answer.query]), after.answers([answer.query])
    return float(np.abs(new - old).sum()) / (answer.noise.mean_absolute * answer.query.cells)


def adapted(budget: Amount, planned: Amount, moved: float) -> Amount:
    """More for a pick when the last ones hardly told more than their noise; less, but not below the plan, otherwise."""
    factor = min(4.0, max(0.5, 2 / max(moved, 1e-9)))
    return Amount(budget.currency, max(planned.units, int(budget.units * factor)))
