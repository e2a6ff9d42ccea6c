"""Hedge: measure at the resolution that the budget can pay for, and believe it no more than its noise allows.

A select–measure–generate loop like AIM (McKenna, Mullins, Sheldon, Miklau 2022), with six changes. Single columns are
denoised and their rare codes merged before anything else; marginals are measured in blocks of like mass, so many that
noise does not drown them; the fit stays near independent columns where the answers are mostly noise; several marginals
are measured a round where many are planned; where a model over everything at once is small, all of the workload is
measured in one go; and where the budget is large, pairs that no model can hold are measured last and given to its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import Candidate, Curator
from hedgerow.errors import OptionError
from hedgerow.methods.method import About
from hedgerow.methods.privsyn import trade_off
from hedgerow.methods.shared.columns import Columns
from hedgerow.methods.shared.coverings import covering, pairs_of
from hedgerow.methods.shared.public import Relations, forest
from hedgerow.methods.shared.rounds import considered, contribution, next_budget, offers, within
from hedgerow.methods.shared.start import measure_one_ways, start
from hedgerow.methods.shared.views import measure, shrunk
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.models.consistency import View, consistent
from hedgerow.models.graphical.estimation import fit, fit_near
from hedgerow.models.graphical.junction import size
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.models.records import Adjusted, Target, shares_of
from hedgerow.progress import Limits, Progress

LEAST_SHARE = 0.05
"""The single columns' part of the budget, at least."""
NARROW = 16
"""Where columns have fewer codes than this on average, more picks are planned, up to `MORE` times as many."""
MORE = 4.0
FEWEST = 4
"""A marginal in fewer blocks tells nothing of a relation: the least pair has 2 × 2 cells."""
LOOKS = 64
"""Rounds that are planned at most; where there are more picks, a round makes several."""
FEWEST_LOOKS = 16
LOOKED_AT = 250_000
"""Marginals that all rounds together look at, about: where each has many, there are fewer rounds, but not fewest."""
WORTH = 0.5
"""Views, and pairs beyond the model, are measured where their expected noise is at most this part of the rows."""
BEYOND = 0.35
"""The part of the budget for pairs that the model cannot hold."""
SCORING = 0.1
"""What of that finds them."""
SHARP = 0.005
"""They are looked for where the scores' noise is at most this part of the rows."""
MOST_PAIRS = 5_000
"""More pairs, or marginals that views would have to hold, are not looked at all at once."""
CERTAIN = 1e6
"""The weight of columns, when pairs are made to agree with them: they are not to move."""


@dataclass(frozen=True)
class Hedge:
    """Several resolutions, adaptive, shrunk."""

    workload: str = field(default="3", metadata={"help": "marginals that matter: a degree, or a file"})
    target: str = field(default="", metadata={"help": "a column whose marginals weigh more"})
    picks: float = field(
        default=2.0, metadata={"help": "planned marginals per attribute; up to four times as many on narrow domains"}
    )
    measuring: float = field(default=0.9, metadata={"help": "part of a pick's budget that measures, the rest chooses"})
    noise: float = field(default=0.25, metadata={"help": "expected noise of a marginal as a part of the rows, at most"})
    size: float = field(default=4.0, metadata={"help": "largest model in MB, reached as the budget is spent"})

    accounting: Literal["gdp", "zcdp"] = field(
        default="gdp", metadata={"help": "gdp, or zcdp for the published budget (comparisons only)"}
    )

    about: ClassVar[About] = About(
        name="hedge",
        title="Hedged measurements",
        summary="Measures marginals at the resolution that the budget can pay for, and shrinks what is mostly noise.",
        argument=(
            "Merged codes, blocks, candidates, budgets and the number of picks are made from earlier noisy answers and "
            "public quantities. A row lies in one block of a partition, so its counts move by at most θ and so does "
            "their L1 distance from the model, on which the exponential mechanism chooses; every pick is charged "
            "whole, and the filter on Σμ² allows budgets to depend on answers."
        ),
        paper=(
            "Ours; after McKenna, Mullins, Sheldon, Miklau (2022), AIM, PVLDB 15(11), and Zhang, Deng, Yin (2023), "
            "PPSyn, arXiv:2310.06371; rows are adjusted as in Zhang et al. (2021), PrivSyn, USENIX Security."
        ),
    )

    def __post_init__(self) -> None:
        if not (self.picks > 0 and 0 < self.measuring < 1 and self.noise > 0):
            raise OptionError("hedge: picks and noise must be above 0, measuring between 0 and 1. Nothing was read.")

    def run(self, curator: Curator, progress: Progress) -> Model:
        whole = curator.remaining
        workload = workload_of(curator, self.workload, self.target)
        with progress.phase("measure every column"):
            begun = start(curator, LEAST_SHARE)
            columns = Columns.known_from(curator.domain, begun.one_ways, begun.total)
        recoding = self.coarsening(curator, columns)
        coarse = curator.recode(recoding)
        measured = columns.measurements(recoding)
        prior = first_model(coarse, columns, recoding, self.size / 4, progress.limits)
        wanted = {m: weight for m, weight in closure(workload, coarse.domain).items() if len(m) > 1}
        views = self.views(coarse, workload.weights, columns.total)
        if views:
            with progress.phase("measure everything at once"):
                measured += coarse.measure([MarginalQuery(coarse.domain, v) for v in views], spend=coarse.remaining)
                model: Model = fit_near(prior, measured, limits=progress.limits)
        else:
            model = self.grown(coarse, whole, Fit(prior, prior, measured, progress.limits), wanted, progress)
        return columns.expand(model, recoding)

    def grown(
        self, curator: Curator, whole: Amount, fitted: Fit, wanted: Mapping[Marginal, float], progress: Progress
    ) -> Model:
        """Measure round by round what fits into the model, then what does not; if nothing stands out, go on."""
        pairs = [marginal for marginal in wanted if len(marginal) == 2]
        reserved = curator.remaining.share(BEYOND)
        if not self.sees(curator, reserved, pairs, fitted.model.total):
            reserved = curator.remaining.share(0)
        with progress.phase("choose and measure marginals", 100):
            self.spend(curator, whole, reserved, fitted, wanted, progress)
        if curator.remaining and not progress.out_of_time():
            with progress.phase("measure pairs beyond the model"):
                targets = beyond(curator, fitted.model, pairs)
            if targets:
                return Adjusted(fitted.model, targets)
        if curator.remaining:
            self.spend(curator, whole, whole.share(0), fitted, wanted, progress)
        return fitted.model

    def spend(
        self,
        curator: Curator,
        whole: Amount,
        reserved: Amount,
        fitted: Fit,
        wanted: Mapping[Marginal, float],
        progress: Progress,
    ) -> None:
        """Rounds until no more is left than what is reserved."""
        least = budget = self.planned(curator)
        while curator.remaining.units > reserved.units:
            free = curator.remaining - reserved
            budget = self.affordable(curator, free, budget, fitted.model.total)
            offered = considered(curator, list(wanted))
            looks = min(LOOKS, max(FEWEST_LOOKS, LOOKED_AT // max(1, len(offered))))
            many = max(1, free.units // (looks * budget.units))  # picks a round, so that `looks` rounds spend it
            if progress.out_of_time() or free.units < 2 * many * budget.units:
                budget = Amount(free.currency, free.units // many)  # the last round spends everything
            used = 1 - curator.remaining.units / whole.units
            answers = self.round(curator, free, budget, many, fitted.model, wanted, offered, used)
            before = fitted.model
            fitted.learn(answers or measure_one_ways(curator, free), rough=curator.remaining.units > reserved.units)
            if answers:
                moved = float(np.mean([contribution(answer, before, fitted.model) for answer in answers]))
                budget = next_budget(budget, least, moved)
            progress.step(100 * many * budget.units // whole.units)

    def coarsening(self, curator: Curator, columns: Columns) -> Recoding:
        """Merge what a pair with the least other column could not tell apart anyway."""
        planned = self.planned(curator)
        if not planned:
            return Recoding(curator.domain, {})
        return columns.coarsening(max(2.0, self.blocks(curator, planned, columns.total) / 2))

    def planned(self, curator: Curator) -> Amount:
        """A pick's budget, were all to cost the same: many narrow marginals, or few wide ones."""
        domain = curator.domain
        mean = sum(attribute.size for attribute in domain) / len(domain)
        picks = self.picks * len(domain) * min(MORE, max(1.0, NARROW / mean))
        return curator.remaining.share(min(1.0, 1 / picks))

    def blocks(self, curator: Curator, budget: Amount, total: float) -> int:
        """In how many blocks a pick for this budget is measured."""
        return int(self.noise * total / curator.noise(budget.share(self.measuring))[0].mean_absolute)

    def affordable(self, curator: Curator, free: Amount, budget: Amount, total: float) -> Amount:
        """A pick's budget, doubled until its noise allows the fewest blocks that tell something."""
        while budget and budget <= free and self.blocks(curator, budget, total) < FEWEST:
            budget = budget + budget
        return budget if budget and budget <= free else free

    def sees(self, curator: Curator, reserved: Amount, pairs: Sequence[Marginal], total: float) -> bool:
        """Whether the noise on the scores of all pairs is small enough to tell the wrong ones from the right."""
        if not reserved or not 0 < len(pairs) <= MOST_PAIRS:
            return False
        return curator.noise(reserved.share(SCORING), [1.0] * len(pairs))[0].scale <= SHARP * total

    def views(self, curator: Curator, workload: Mapping[Marginal, float], total: float) -> list[Marginal]:
        """Marginals that hold the workload, where one model can hold them all and noise does not drown them."""
        domain, most = curator.domain, self.size * 2**20
        if not curator.remaining or len(workload) > MOST_PAIRS or size(domain, pairs_of(workload)) > most:
            return []
        found = covering(domain, workload)
        if size(domain, found) > most:
            return []
        noise = curator.noise(curator.remaining, [1.0] * len(found))[0].mean_absolute
        return found if noise * max(map(domain.cells, found)) <= WORTH * total else []

    def round(
        self,
        curator: Curator,
        free: Amount,
        budget: Amount,
        many: int,
        model: GraphicalModel,
        wanted: Mapping[Marginal, float],
        offered: Sequence[Marginal],
        used: float,
    ) -> list[Measurement]:
        """Choose so many marginals, each for `budget`, and measure their blocks; none where none is worth its noise."""
        domain, measuring = curator.domain, budget.share(self.measuring)
        blocks = self.blocks(curator, budget, model.total)
        most = self.size * used
        marginals = within(domain, model.cliques, offered, most)
        if not marginals:  # the schedule leaves no room yet
            most = self.size
            marginals = within(domain, model.cliques, offered, most)
        if blocks < FEWEST or not marginals:
            return []
        candidates, known = offers(domain, model, wanted, marginals, blocks, curator.noise(measuring)[0])
        pool = curator.pool(candidates, against=known)
        chosen: list[MarginalQuery] = []
        while marginals and len(chosen) < many:
            open_to = set(marginals)
            among = np.flatnonzero([candidate.query.attributes in open_to for candidate in candidates])
            chosen.append(candidates[pool.select(among, spend=budget - measuring)].query)
            taken = [query.attributes for query in chosen]
            left = [marginal for marginal in marginals if marginal not in taken]
            marginals = within(domain, [*model.cliques, *taken], left, most) if len(chosen) < many else []
        picked = free - Amount(free.currency, len(chosen) * (budget - measuring).units)
        spend = Amount(free.currency, len(chosen) * measuring.units)
        return curator.measure(chosen, spend=picked if (picked - spend).units < budget.units // 2 else spend)


@dataclass
class Fit:
    """A model that learns measurement by measurement, and never strays from its prior further than they say."""

    prior: GraphicalModel
    model: GraphicalModel
    measured: list[Measurement]
    limits: Limits

    def learn(self, answers: Sequence[Measurement], rough: bool) -> None:
        self.measured += answers
        self.model = fit_near(self.prior, self.measured, limits=self.limits, rough=rough)


def beyond(curator: Curator, model: GraphicalModel, pairs: Sequence[Marginal]) -> list[Target]:
    """Pairs that the model gets wrong, measured with all that is left, and what it knows itself: targets for its rows.

    Which pairs is PrivSyn's trade-off (Zhang et al. 2021) between the noise of measuring a pair and what it would be
    wrong by otherwise. What noise could explain of an answer's distance from the model is taken off.
    """
    domain = curator.domain
    scoring = curator.remaining.share(SCORING)
    noise = curator.noise(curator.remaining - scoring)[0]
    worth = [pair for pair in pairs if noise.mean_absolute * domain.cells(pair) <= WORTH * model.total]
    if not worth:
        return []
    scores = curator.score([Candidate(MarginalQuery(domain, pair)) for pair in worth], against=model, spend=scoring)
    cells = np.array([domain.cells(pair) for pair in worth], dtype=np.float64)
    kept = trade_off(np.clip(scores, 0.0, 2 * model.total), cells, noise)
    if not kept:
        return []
    measured = measure(curator, [worth[place] for place in kept], curator.remaining)
    views = [shrunk(view, model.marginal(view.marginal)) for view in measured]
    alone = [View((name,), model.marginal((name,)), CERTAIN) for name in domain.names]
    agreed = [view for view in consistent([*views, *alone], model.total) if len(view.marginal) > 1]
    held = [(clique, model.marginal(clique)) for clique in model.cliques if len(clique) > 1]
    return [Target.of(marginal, counts) for marginal, counts in [*((v.marginal, v.counts) for v in agreed), *held]]


def first_model(
    curator: Curator, columns: Columns, recoding: Recoding, megabytes: float, limits: Limits
) -> GraphicalModel:
    """What is believed before relations are measured: independent columns, or a tree of the public table's pairs."""
    if curator.public is None:
        return columns.model(recoding)
    domain = curator.domain
    tree = public_pairs(domain, curator.public, columns.total, megabytes, curator.coins)
    return fit(domain, [*columns.measurements(recoding), *tree], total=columns.total, limits=limits)


def public_pairs(
    domain: Domain, table: CodedTable, total: float, megabytes: float, coins: np.random.Generator
) -> list[Measurement]:
    """A tree of the pairs that depend most on each other in public rows, scaled to the private total.

    No pair takes more than its part of the megabytes, so that the tree leaves room for what is measured.
    """
    rows = len(next(iter(table.values())))
    most = megabytes * 2**20 / 8 / len(domain)
    relations = Relations(domain, table, coins).information()
    strong = {pair: value for pair, value in relations.items() if value > 0 and domain.cells(pair) <= most}
    pairs = forest([(name,) for name in domain.names], strong).pairs
    found = []
    for pair in pairs:
        query = MarginalQuery(domain, pair)
        counts = total * shares_of(table, domain, pair).reshape(-1)
        error = total * np.sqrt(1 / (rows * query.cells))  # of a mean cell, were the rows drawn from the same people
        found.append(Measurement(query, np.rint(counts).astype(np.int64), Noise("gaussian", float(error))))
    return found
