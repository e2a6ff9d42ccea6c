"""DPSyn: noisy counts of segments, marginals of everything else from public or private rows, rows per segment.

Li, Li, Wang (team DPSyn, Purdue), NIST's 2020 Differential Privacy Temporal Map Challenge, sprint 2.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from hedgerow.budget.amounts import Amount, Currency
from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared.documents import attributes_of, read_names
from hedgerow.methods.shared.views import measure, shrunk, view
from hedgerow.methods.shared.workloads import MOST_MARGINALS, stood_for
from hedgerow.models.consistency import View, consistent
from hedgerow.models.model import Model
from hedgerow.models.records import EXCHANGES, ITERATIONS, Records, Target, shares_of
from hedgerow.models.segments import Segments
from hedgerow.progress import Progress

POOL = 10_000
"""Rows of each source that the segments' rows are chosen from."""
PAIR = 3_500_000
"""Work of a pair that is measured, made to agree with others, and fitted by so many rows."""
UPDATED = 15
"""Work of a row and a target, each time that the row is updated."""
MOST_FOR_TOTAL = 0.1
MOST_FOR_SEGMENTS = 0.5
"""Parts of the budget that the row total and the segments take at most where the write-up has no say: in μ², and
where there is no public table to fall back on."""


class Regime(enum.Enum):
    """What is measured beside the segments."""

    PUBLIC = "public marginals only"
    ONE_WAY = "one-way marginals"
    TWO_WAY = "two-way marginals"


@dataclass(frozen=True)
class Thresholds:
    """The write-up's ε₀ … ε₃ and τ₁, τ₂: functions of ε, of θ rows per person and of the noisy number of rows."""

    rows_per_person: int

    @property
    def total(self) -> float:
        """ε₀, for the row total: noise of scale 1400."""
        return self.rows_per_person / 1400

    @property
    def low(self) -> float:
        """ε₁, the least for the segments: noise of scale 50."""
        return self.rows_per_person / 50

    @property
    def least(self) -> float:
        """ε₂: below it nothing but the segments is worth asking."""
        return self.rows_per_person / 35

    @property
    def high(self) -> float:
        """ε₃, the most for the segments: noise of scale 25."""
        return self.rows_per_person / 25

    def one_way(self, rows: float) -> float:
        """τ₁: what one-way marginals of so many rows need."""
        return 1500 * self.rows_per_person / max(rows, self.rows_per_person)

    def two_way(self, rows: float) -> float:
        """τ₂ = 6·τ₁."""
        return 6 * self.one_way(rows)

    def regime(self, epsilon: float, rows: float) -> Regime:
        """Which regime ε affords with so many rows."""
        spare = epsilon - self.total - self.low
        if epsilon < self.least or spare < self.one_way(rows):
            return Regime.PUBLIC
        return Regime.ONE_WAY if spare < self.two_way(rows) else Regime.TWO_WAY

    def for_segments(self, epsilon: float, rows: float) -> float:
        """y: what the segments get beside other marginals, at most ε₃ and at most half of what is left."""
        spare = epsilon - self.total - self.low
        needed = self.two_way(rows) if self.regime(epsilon, rows) is Regime.TWO_WAY else self.one_way(rows)
        return min(self.high, self.low + max(0.0, spare - needed) / 2)


@dataclass(frozen=True)
class DPSyn(Options):
    """A map over time: the same people's distribution everywhere, noisy counts for every place and year."""

    segments: tuple[str, ...] = option(
        (),
        "columns whose combinations are segments with noisy counts of their own, such as PUMA,YEAR",
        read=lambda value: read_names(value, "segments") if value else (),
    )
    floor: int = option(0, "raise smaller segments to this many rows", at_least=0)
    round: int = option(1, "round segments to multiples of this many rows", at_least=1)
    public_round: int = option(0, "the same where only the segments are measured; 0 means as otherwise", at_least=0)
    public_weight: float = option(
        0.01, "weight of public marginals beside measured ones when they are made to agree", at_least=0
    )
    shrink: bool = option(
        True, "draw noisy marginals towards public ones, and segments to their mean, as far as noise explains"
    )
    most_cells: int = option(1_000_000, "leave out pairs with more cells", at_least=0)

    about: ClassVar[About] = About(
        name="dpsyn",
        title="DPSyn",
        summary="Noisy counts of segments such as place × year; their rows from public rows or from noisy marginals.",
        argument=(
            "A noisy row total, noisy segment counts, and all one-way or all two-way marginals of the other columns: "
            "one person moves each by a non-negative vector of L1 norm at most θ, so a stack of k by at most θ√k "
            "(kθ for Laplace noise). Which of these are asked, and for how much, follows from ε, θ and the noisy "
            "total. A public table is the user's word; all that follows is post-processing. Floor and rounding bias "
            "the numbers of rows."
        ),
        paper=(
            "Li, Li, Wang (2020), DPSyn: Differentially private synthetic data publication, NIST Differential Privacy "
            "Temporal Map Challenge, sprint 2; Zhang et al. (2021), PrivSyn, USENIX Security."
        ),
        departures=(
            "At most max_rows_per_person rows of a person are counted, where the original assumed it.",
            "As in the original, Laplace noise on the total and the segments is paid for in ε and the rest of ε goes "
            "to Gaussian noise, here calibrated in Gaussian DP and for one-way marginals too; where μ² alone leaves "
            "more for the marginals, all is kept in μ². With δ = 0 all noise is Laplace.",
            "The total is at least θ in the thresholds. Without a public table the first regime is the second.",
            "Wide marginals get less noise; noisy marginals are drawn towards public ones, and noisy segments towards "
            "their mean, as far as noise explains the difference.",
            "The pool is the last state of the record update, started from one-way marginals and ended by exchanges, "
            "and holds public rows too: the search begins with those.",
            "Segments of equal size get rows of their own; the search swaps many rows at a time, on the L1 distance.",
        ),
    )

    begins_in_epsilon: ClassVar[bool] = True

    def run(self, curator: Curator, progress: Progress) -> Model:
        domain = curator.domain
        segments = attributes_of(self.segments, domain, curator.columns, "segments")
        inner = tuple(name for name in domain.names if name not in segments)
        public = public_rows(curator, inner)
        with progress.phase("measure the segments"):
            pairs = self.pairs(domain, inner, progress)
            self.settle_books(curator, bool(inner), public is not None)
            regime, count = self.plan(curator, inner, pairs, public is not None)
            spend = curator.remaining if regime is Regime.PUBLIC else self.for_segments(curator, count)
            counted = curator.measure([MarginalQuery(domain, segments)], spend=spend)[0]
            curator.exchange()
        counts = self.sizes(domain, counted, regime)
        with progress.phase(f"measure {regime.value}"):
            views = self.views(curator, regime, inner, pairs, public, max(1.0, counted.total), progress)
        targets = [Target.of(each.marginal, each.counts) for each in views]
        with progress.phase("make rows"):
            sources = self.sources(curator, regime, inner, public, targets, progress)
        pool = {name: np.concatenate([rows[name] for rows in sources]) for name in inner}
        first = len(sources[0][inner[0]]) if inner else 0
        weights = stood_for(curator.columns, [each.marginal for each in targets])
        return Segments(domain, segments, counts, pool, targets, weights, first)

    def settle_books(self, curator: Curator, has_inner: bool, has_public: bool) -> None:
        """Keep everything in μ² where that buys segments as good as printed and leaves more for the marginals.

        Otherwise the total and the segments are paid in ε, as printed: Laplace noise of one histogram is worth far
        less μ² than it costs ε. A decision from ε, δ and θ alone.
        """
        thresholds, left = Thresholds(curator.rows_per_person), curator.remaining
        if not left.is_direct or not has_inner or (has_public and curator.epsilon < thresholds.least):
            return
        wanted = thresholds.for_segments(curator.epsilon, math.inf)
        in_mu, in_epsilon = curator.exchanged(), curator.exchanged(priced(left, thresholds.total + wanted, 1.0))
        paid = priced(in_mu, wanted, 1.0)
        if paid <= in_mu.share(MOST_FOR_SEGMENTS) and in_epsilon.units < (in_mu - paid).units:
            curator.exchange()

    def plan(
        self, curator: Curator, inner: Marginal, pairs: Sequence[Marginal], has_public: bool
    ) -> tuple[Regime, float]:
        """The regime that ε, θ and the noisy number of rows allow, and that number."""
        thresholds = Thresholds(curator.rows_per_person)
        if not inner or (has_public and curator.epsilon < thresholds.least):
            return Regime.PUBLIC, 0.0
        spend = priced(curator.remaining, thresholds.total, MOST_FOR_TOTAL)  # the part is never met above ε₂
        rows = max(curator.total(spend=spend).total, float(curator.rows_per_person))
        regime = thresholds.regime(curator.epsilon, rows)
        if regime is Regime.PUBLIC and not has_public:
            regime = Regime.ONE_WAY
        if regime is Regime.TWO_WAY and not pairs:
            regime = Regime.ONE_WAY
        return regime, rows

    def for_segments(self, curator: Curator, rows: float) -> Amount:
        """y; where it is paid in ε and the thresholds allow for it, whatever part of the budget it is."""
        thresholds = Thresholds(curator.rows_per_person)
        as_printed = curator.remaining.is_direct and thresholds.regime(curator.epsilon, rows) is not Regime.PUBLIC
        most = 1.0 if as_printed else MOST_FOR_SEGMENTS
        return priced(curator.remaining, thresholds.for_segments(curator.epsilon, rows), most)

    def sizes(self, domain: Domain, counted: Measurement, regime: Regime) -> Counts:
        """Rows per segment: the noisy counts, rounded, none below the floor; one row at least in all.

        Where noise drowns the counts they are drawn towards their mean. Segments of undeclared places have a mean and
        a floor of 0, as no rows of their own are written for them.
        """
        noisy = view(counted)
        declared = np.ones(noisy.counts.shape, dtype=bool)
        for axis, name in enumerate(counted.query.attributes):
            if domain[name].hidden:
                np.moveaxis(declared, axis, 0)[-1] = False
        if self.shrink:
            noisy = shrunk(noisy, declared * float(noisy.counts[declared].mean()))
        unit = (self.public_round or self.round) if regime is Regime.PUBLIC else self.round
        sizes = np.maximum(np.rint(noisy.counts / unit) * unit, float(self.floor) * declared)
        return sizes if sizes.sum() >= 1 else np.ones_like(sizes)

    def views(
        self,
        curator: Curator,
        regime: Regime,
        inner: Marginal,
        pairs: Sequence[Marginal],
        public: CodedTable | None,
        total: float,
        progress: Progress,
    ) -> list[View]:
        """All one-way and two-way marginals that are known, made to agree: measured ones, and public ones beside them.

        A public marginal weighs `public_weight` of a measured one, and gives way to one of the same attributes.
        """
        domain = curator.domain
        ones: list[Marginal] = [(name,) for name in inner]
        asked: dict[Regime, Sequence[Marginal]] = {Regime.ONE_WAY: ones, Regime.TWO_WAY: pairs}
        measured = measure(curator, asked[regime], curator.remaining) if regime in asked else []
        known = {each.marginal: each for each in measured}
        if public is None:
            return consistent(measured, total, progress=progress)
        weight = self.public_weight * min((each.weight for each in measured), default=1.0)
        prior = {each: total * shares_of(public, domain, each) for each in [*ones, *pairs]}
        if self.shrink:
            known = {each: shrunk(found, prior[each]) for each, found in known.items()}
        beside = [View(each, counts, weight) for each, counts in prior.items() if each not in known]
        return consistent([*known.values(), *beside], total, progress=progress) if known else beside

    def pairs(self, domain: Domain, inner: Marginal, progress: Progress) -> list[Marginal]:
        """All pairs but the widest; none where they are too many, or more than the time allows to go through."""
        if comb(len(inner), 2) > progress.affords(MOST_MARGINALS, PAIR, 1):
            return []
        return [pair for pair in combinations(inner, 2) if domain.cells(pair) <= self.most_cells]

    def sources(
        self,
        curator: Curator,
        regime: Regime,
        inner: Marginal,
        public: CodedTable | None,
        targets: Sequence[Target],
        progress: Progress,
    ) -> list[CodedTable]:
        """Rows to choose from: a sample of the public ones, and rows that are updated until they fit the targets.

        Without time for all of it they are updated less often, and exchange less.
        """
        found = [] if public is None else [sampled(public, curator.rng)]
        if regime is not Regime.PUBLIC:
            domain = Domain(curator.domain[name] for name in inner)
            each = UPDATED * POOL * len(targets)
            iterations = progress.affords(ITERATIONS, each, 0)
            progress.worked(iterations * each)
            exchanges = progress.affords(EXCHANGES, each, 0)
            found.append(Records(domain, targets, POOL).made(POOL, curator.rng, iterations, exchanges))
        return found


def priced(left: Amount, epsilon: float, most: float) -> Amount:
    """What noise of the standard deviation √2·θ/ε costs (that of Laplace noise for ε), at most a part of what is left.

    A Gaussian of that deviation costs (θ/σ)² = ε²/2 of μ².
    """
    if left.is_direct:
        wanted = Amount.of(left.currency, 0, epsilon=epsilon)
    else:
        wanted = Amount.of(left.currency, epsilon if left.currency is Currency.PURE else epsilon**2 / 2)
    cap = left.share(most)
    return wanted if wanted <= cap else cap


def public_rows(curator: Curator, inner: Marginal) -> CodedTable | None:
    """The public rows without their segments; None where there are none."""
    rows = curator.public
    if rows is None or not inner or not len(rows[inner[0]]):
        return None
    return {name: rows[name] for name in inner}


def sampled(rows: CodedTable, rng: np.random.Generator) -> CodedTable:
    """At most as many of the rows as a pool takes, at random."""
    count = len(next(iter(rows.values())))
    chosen = rng.permutation(count)[:POOL]
    return {name: codes[chosen] for name, codes in rows.items()}
