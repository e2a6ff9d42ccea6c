"""Hedge: measure at the resolution that the budget can pay for, and believe it no more than its noise allows.

A select–measure–generate loop like AIM (McKenna, Mullins, Sheldon, Miklau 2022), with eight changes. Single columns are
denoised, those that are nearly functions of each other joined, rare codes merged before anything else; marginals are
measured in blocks of like mass, so many that noise does not drown them; the fit stays near independent columns where
the answers are mostly noise; several marginals are measured a round where many are planned; where a model over
everything at once is small, all of the workload is measured in one go; where the budget is large, pairs that no
model can hold are measured last and given to its rows; and rows are evened until they have the model's own triples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Domain, Marginal
from hedgerow.coded.measurement import Noise
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import Curator, Part
from hedgerow.errors import OptionError
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared import options
from hedgerow.methods.shared.at_once import measured_at_once
from hedgerow.methods.shared.blocks import FEWEST_BLOCKS, offer_blocks
from hedgerow.methods.shared.columns import Columns, coarser
from hedgerow.methods.shared.coverings import pairs_of
from hedgerow.methods.shared.documents import attributes_of, read_names
from hedgerow.methods.shared.joins import find_joins, no_joins
from hedgerow.methods.shared.outside import can_tell_pairs, measure_outside
from hedgerow.methods.shared.public import public_columns, public_pairs
from hedgerow.methods.shared.rounds import Offer, Round, Rounds, Strategy, adapted, drawn_by_lot
from hedgerow.methods.shared.segments import with_segments
from hedgerow.methods.shared.start import first_measurements, measure_one_ways
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.models.evened import evened
from hedgerow.models.graphical.estimation import NearFits, fit
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.model import Model
from hedgerow.models.records import Adjusted
from hedgerow.progress import Limits, Progress

LEAST_SIZE, LARGEST_SIZE = 4.0, 32.0
TIMES_ALL_PAIRS = 5.0
"""The largest model in MB where `size` is 0: five times the cells of all pairs of the coarser columns, within these.
On loans (ε = 1) that is 23 MB, .153 in 43 CPU s where 4 MB has .155 in 27 s (3-way, one run each, same seed)."""
MEMORY_A_SIZE = 32.0
"""Memory that a model of this size and its fit take, at most, in sizes."""
ROOMY = 5_000
"""Cells of all pairs up to which merging codes, or joining columns, saves no room worth having."""
LEAST_SHARE = 0.05
"""The single columns' part of the budget, at least."""
FEW_CODES = 16
MOST_PICKS_FACTOR = 4.0
"""Where columns have fewer codes than this on average, more picks are planned, up to so many times as many."""
MOST_ROUNDS = 64
FEWEST_ROUNDS = 5
"""Rounds that would be planned, were all to make as many picks; where there are more picks, a round makes several."""
MARGINALS_IN_ALL = 30_000
"""Marginals that those rounds go through, about: where each has many, there are fewer rounds, down to the fewest.
On loans (ε = 1) 14 rounds come of it, for .1534 in 22 CPU s; four times as many marginals have .1527 in 43 s."""
LEARNT = 2
"""A round makes at most one pick for so many that were made before: the first ones teach most."""
OUTSIDE_SHARE = 0.35
"""The part of the budget for pairs that the model cannot hold."""
SEGMENTS_SHARE = 0.7
"""The part of the budget for segments, where there are some."""
SEGMENTS_TIME = 0.5
"""The part of a limited time that is kept for them."""


@dataclass(frozen=True)
class Hedge(Options, Strategy):
    """Several resolutions, adaptive, shrunk."""

    workload: str = options.workload()
    target: str = options.target()
    picks: float = options.rounds(
        2.0, "planned marginals per attribute; up to four times as many where columns have few codes"
    )
    measuring: float = options.measuring(0.9, of="a pick's")
    noise: float = option(
        0.25, "expected noise of a marginal as a part of the rows, at most: larger means more blocks", above=0
    )
    size: float = options.size(0.0, ", reached as the budget is spent; 0: 4 to 32, as the columns need")
    segments: tuple[str, ...] = option(
        (),
        "with a public table: columns such as PUMA,YEAR whose combinations are looked at one by one",
        read=lambda value: read_names(value, "segments") if value else (),
    )
    accounting: str = options.accounting()

    relations: ClassVar[int] = 12
    about: ClassVar[About] = About(
        name="hedge",
        title="Hedged measurements",
        summary="Measures marginals at the resolution that the budget can pay for, and shrinks what is mostly noise.",
        argument=(
            "Joined columns, merged codes, blocks, candidates and budgets are made from earlier noisy answers and "
            "public quantities. A row lies in one block of a partition, so its counts move by at most θ and so does "
            "their L1 distance from the model, on which the exponential mechanism chooses; every pick is charged "
            "whole, and the filter on Σμ² allows budgets to depend on answers."
        ),
        paper=(
            "Hedgerow; after McKenna, Mullins, Sheldon, Miklau (2022), AIM, PVLDB 15(11), and Zhang, Deng, Yin (2023), "
            "PPSyn, arXiv:2310.06371; rows are adjusted as in Zhang et al. (2021), PrivSyn, USENIX Security."
        ),
    )

    def run(self, curator: Curator, progress: Progress) -> Model:
        if not self.segments:
            return self.modelled(curator, progress)
        segments = attributes_of(self.segments, curator.domain, curator.columns, "segments")
        if curator.public is None or len(segments) == len(curator.domain):
            lacks = "no public table" if curator.public is None else "no column beside them"
            raise OptionError(
                "segments-need-public",
                "hedge learns from a public table how segments differ, in the columns beside them, and there is "
                f"{lacks}. Hint: give --public, or leave out segments.",
            )
        with progress.keeping(SEGMENTS_TIME):
            model = self.modelled(Part(curator, curator.remaining.share(SEGMENTS_SHARE)), progress)
        return with_segments(curator, curator.public, segments, model, progress)

    def modelled(self, curator: Curator, progress: Progress) -> Model:
        """One model of all rows."""
        whole = curator.remaining
        workload = workload_of(curator, self.workload, self.target)
        with progress.phase("measure every column"):
            first = first_measurements(curator, LEAST_SHARE)
            columns = Columns.known_from(curator.domain, first.one_ways, first.total)
            if curator.public is not None:
                columns = columns.towards(public_columns(curator.domain, curator.public), first.one_ways)
        with progress.phase("join what is nearly a function"):
            roomy = cells_of_pairs(curator.domain) <= ROOMY
            joins = no_joins(columns) if roomy else find_joins(curator, columns, self.planned(curator), progress)
            curator, columns, workload = curator.recode(joins.joining), joins.columns, joins.workload(workload)
        recoding = self.coarsening(curator, columns)
        coarse = curator.recode(recoding)
        measured = [*columns.measurements(recoding), *(coarser(each, recoding) for each in joins.measured)]
        sized = replace(self, size=self.megabytes(coarse.domain, progress.limits))
        prior = first_model(coarse, columns, recoding, sized.size / 4, progress.limits)
        model: GraphicalModel | Adjusted | None = None
        if not joins.joining.joins and not recoding.maps:
            with progress.phase("measure everything at once"):
                model = measured_at_once(coarse, workload, prior, measured, sized.size, progress.limits)
        if model is None:
            fits = NearFits(prior, progress.limits)
            rounds = Rounds(
                coarse,
                {m: weight for m, weight in closure(workload, coarse.domain).items() if len(m) > 1},
                prior,
                measured,
                lambda last, known, rough: fits.fit(known, rough=rough),
                otherwise=lambda spend: measure_one_ways(coarse, spend),
                whole=whole,
                progress=progress,
            )
            model = sized.grown(coarse, rounds, progress)
        drawn = evened(model, list(workload.weights), pairs_of(workload.weights))
        return joins.expand(columns.expand(drawn, recoding))

    def grown(self, curator: Curator, rounds: Rounds, progress: Progress) -> GraphicalModel | Adjusted:
        """Measure round by round what fits into the model, then what does not; if nothing stands out, go on."""
        pairs = [marginal for marginal in rounds.wanted if len(marginal) == 2]
        reserved = curator.remaining.share(OUTSIDE_SHARE)
        if not can_tell_pairs(curator, reserved, pairs, rounds.model.total):
            reserved = curator.remaining.share(0)
        with progress.phase("choose and measure marginals", 100):
            rounds.run(self, self.planned(curator), reserved)
        if curator.remaining and not progress.out_of_time():
            with progress.phase("measure pairs beyond the model"):
                targets = measure_outside(curator, rounds.model, pairs)
            if targets:
                return Adjusted(rounds.model, targets)
        return rounds.run(self, self.planned(curator))

    def tells(self, now: Round) -> bool:
        """Whether the noise allows the fewest blocks that tell something."""
        return self.blocks(now.noise, now.model.total) >= FEWEST_BLOCKS

    def consider(self, curator: Curator, wanted: Sequence[Marginal]) -> Sequence[Marginal]:
        return drawn_by_lot(curator, wanted)

    def picks_a_round(self, spent: Amount, free: Amount, budget: Amount, considered: int) -> int:
        """As many as spend all in the planned number of rounds; fewer first, while the model knows little."""
        rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, MARGINALS_IN_ALL // max(1, considered)))
        evenly = (spent + free).units // (rounds * budget.units)
        return max(1, min(evenly, spent.units // (LEARNT * budget.units)))

    def propose(self, now: Round) -> Offer:
        """Blocks of the marginals that the model has room for by its schedule, or at all."""
        blocks = self.blocks(now.noise, now.model.total)
        if blocks < FEWEST_BLOCKS:
            return Offer([], now.model, self.size)
        for megabytes in (self.size * now.used, self.size):
            marginals = now.fitting(now.considered, megabytes)
            if marginals:
                break
        return offer_blocks(now, marginals, blocks, megabytes)

    def next_budget(self, budget: Amount, planned: Amount, moved: float) -> Amount:
        return adapted(budget, planned, moved)

    def megabytes(self, domain: Domain, limits: Limits) -> float:
        """The largest model: room for all pairs of the coarse columns, several times over, within limits."""
        if self.size:
            return self.size
        most = min(LARGEST_SIZE, limits.memory / MEMORY_A_SIZE / 2**20)
        return min(most, max(LEAST_SIZE, TIMES_ALL_PAIRS * 8 * cells_of_pairs(domain) / 2**20))

    def planned(self, curator: Curator) -> Amount:
        """A pick's budget, were all to cost the same: many narrow marginals, or few wide ones."""
        domain = curator.domain
        mean = sum(attribute.size for attribute in domain) / len(domain)
        picks = self.picks * len(domain) * min(MOST_PICKS_FACTOR, max(1.0, FEW_CODES / mean))
        return curator.remaining.share(min(1.0, 1 / picks))

    def blocks(self, noise: Noise, total: float) -> int:
        """In how many blocks a marginal is measured with this noise."""
        return int(self.noise * total / noise.mean_absolute)

    def coarsening(self, curator: Curator, columns: Columns) -> Recoding:
        """Merge what a pair with the least other column could not tell apart anyway, if that saves room worth having.

        Noise is no reason: blocks see to that. Where all pairs are small, codes are merged less, or not at all.
        """
        planned = self.planned(curator)
        if not planned:
            return Recoding(curator.domain, {})
        noise = curator.noise(planned.share(self.measuring))[0]
        finest = max(2.0, self.blocks(noise, columns.total) / 2)
        recoding = columns.coarsening(finest)
        while recoding.maps:
            finest *= 2
            finer = columns.coarsening(finest)
            if cells_of_pairs(finer.target()) > ROOMY:
                break
            recoding = finer
        return recoding


def cells_of_pairs(domain: Domain) -> float:
    """The cells of all pairs together."""
    sizes = [float(attribute.size) for attribute in domain]
    return (sum(sizes) ** 2 - sum(size**2 for size in sizes)) / 2


def first_model(
    curator: Curator, columns: Columns, recoding: Recoding, megabytes: float, limits: Limits
) -> GraphicalModel:
    """What is believed before relations are measured: independent columns, or with them a tree of public pairs."""
    alone = columns.model(recoding)
    if curator.public is None:
        return alone
    tree = public_pairs(curator, curator.public, alone, megabytes)
    return fit(curator.domain, [*columns.measurements(recoding), *tree], total=columns.total, limits=limits)
