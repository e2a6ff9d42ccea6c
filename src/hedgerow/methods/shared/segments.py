"""How segments differ from the whole: which ways is learnt from a public table, how far is measured.

Places are alike in that they differ in a few ways: rich and poor, young and old. How much and in which directions they
do is what other places tell, those of a public table. Each segment of the private table is then known from few noisy
counts: the best linear prediction (Henderson 1975) of all of its columns from those that were measured, with the public
segments' covariance as the prior one. Noise that no such direction explains is not followed, and where the public
segments hardly differ, nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator
from hedgerow.methods.shared.views import shrunk, view
from hedgerow.methods.shared.workloads import by_lot, stood_for
from hedgerow.models.histograms import systematic
from hedgerow.models.model import Model
from hedgerow.models.tilted import LARGEST_TILT, POOL, Tilted
from hedgerow.progress import Progress

MOST_DIRECTIONS = 60
"""Ways in which segments may differ."""
LEAST_GAIN = 0.01
"""A column is asked for if it lowers the expected error by this part of it."""
COUNTING_SHARE = 0.05
"""Of what segments get, for their numbers of rows."""
LEAST_SHARE = 1e-9
"""Of the rows: what a code of a segment has at least."""
CHOOSING_SHARE = 0.02
"""Of the same, for the choice between rows with segments and without."""
MOST_UNSURE = 0.005
"""Nothing is chosen where the noise on a count would be more than this part of the rows."""
MOST_GOALS = 500
"""Pairs that the search for a segment's rows looks at, by lot where there are more."""
MOST_LOOKED = 50
"""Pairs that the choice looks at, by lot where there are more."""
WEIGHED, SOLVED = 100, 20
"""Work of a code of a row in weighing rows, and of an entry of what predicts a segment."""
SWEEPS = 6
LARGEST_STEP = np.log(5.0)
"""Sweeps in which rows are weighed until they have a segment's columns, and the largest step of one."""


@dataclass(frozen=True, eq=False)
class Differences:
    """How the codes of one attribute, say places, differ in the columns beside it, in public rows."""

    name: str
    places: IntArray
    """Where each of the other attributes begins in a line of all their codes, and where the last ends."""
    directions: Counts
    """The ways in which they differ: a line for each code of the others, a column for each way."""
    variances: Counts

    @classmethod
    def among(cls, rows: CodedTable, domain: Domain, name: str, inner: Domain) -> Differences:
        """The principal directions, less what chance shows in as many rows."""
        groups = rows[name].astype(np.int64)
        each = np.bincount(groups, minlength=domain[name].size).astype(np.float64)
        lines = columns_of(rows, inner, groups, domain[name].size)
        there = each > 0
        apart = lines[there] / each[there, None] - lines.sum(axis=0) / each.sum()
        apart *= np.sqrt(each[there] / each.sum())[:, None]
        _, scales, ways = np.linalg.svd(apart, full_matrices=False)
        ways = ways[:MOST_DIRECTIONS]
        chance = np.array([score.var() for score in _scores(rows, inner, ways)]) * there.sum() / each.sum()
        variances = scales[: len(ways)] ** 2 - chance
        told = variances > 1e-3 * max(float(variances.max(initial=0.0)), 1e-12)
        return cls(name, places_of(inner), ways[told].T, variances[told])

    def predicted(self, measured: Counts, chosen: Sequence[int], std: float, rows: Counts, whole: Counts) -> Counts:
        """The shares of all columns, a line for each segment, from noisy counts of those chosen."""
        cells = self._cells(chosen)
        found = np.empty((len(rows), len(whole)))
        for number, count in enumerate(np.maximum(rows, 1.0)):
            precision = self._precision(chosen, std, count, whole)
            weighed = self.directions[cells] / self._variance(cells, std, count, whole)[:, None]
            apart = weighed.T @ (measured[number] / count - whole[cells])
            found[number] = whole + self.directions @ np.linalg.solve(precision, apart)
        return found

    def _cells(self, chosen: Sequence[int]) -> IntArray:
        parts = [np.arange(self.places[each], self.places[each + 1]) for each in chosen]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _variance(self, cells: IntArray, std: float, rows: float, whole: Counts) -> Counts:
        """Of measured shares about those of the people that the rows were drawn from: noise, and chance."""
        variance: Counts = (std / rows) ** 2 + np.maximum(whole[cells], 1 / rows) / rows
        return variance

    def _precision(self, chosen: Sequence[int], std: float, rows: float, whole: Counts) -> Counts:
        """Of what is known of the ways in which one segment differs."""
        cells = self._cells(chosen)
        ways = self.directions[cells]
        known: Counts = np.diag(1 / self.variances) + (ways / self._variance(cells, std, rows, whole)[:, None]).T @ ways
        return known

    def wrong(self, chosen: Sequence[int], std: float, rows: float, whole: Counts) -> float:
        """What all columns of a mean segment are expected to be wrong by, up to a factor, if these are asked."""
        precision = self._precision(chosen, std, rows, whole)
        spread = np.linalg.solve(precision, self.directions.T) if len(precision) else self.directions.T
        return float(np.sqrt(np.maximum((self.directions * spread.T).sum(axis=1), 0.0)).sum())


@dataclass(frozen=True, eq=False)
class Segmented:
    """What was learnt of the segments: how many rows each has, and the columns of those that differ."""

    segments: Marginal
    counts: Counts
    columns: Mapping[str, Counts]
    """For an attribute of the segments, a line of shares for each of its codes."""


def with_segments(curator: Curator, public: CodedTable, segments: Marginal, model: Model, progress: Progress) -> Model:
    """Rows segment by segment, of the public table or of the model, or the model as it is: a private choice.

    The nearest is likeliest, in pairs of columns within segments. Where that would be decided by noise, or no time is
    left, public rows are taken at the user's word.
    """
    domain = curator.domain
    inner = Domain(attribute for attribute in domain if attribute.name not in segments)
    choosing = curator.remaining.share(CHOOSING_SHARE)
    if progress.out_of_time() or curator.noise(choosing)[0].mean_absolute > MOST_UNSURE * model.total:
        choosing = curator.remaining.share(0)
    with progress.phase("measure the segments"):
        alone = {name: model.marginal((name,)) for name in domain.names}
        learnt = measure_segments(curator, public, segments, alone, curator.remaining - choosing, progress)
    whole = np.concatenate([alone[name] / alone[name].sum() for name in inner.names])
    goals = by_lot(curator, list(combinations(inner.names, min(2, len(inner)))), MOST_GOALS)
    wanted = dict(zip(goals, stood_for(curator.columns, goals), strict=True))

    def made_of(rows: CodedTable) -> Tilted:
        pool = weighed(rows, inner, whole, POOL, curator.rng)
        tilts = {name: tilts_of(pool, inner, lines, progress) for name, lines in learnt.columns.items()}
        return Tilted(domain, segments, learnt.counts, pool, tilts, wanted)

    with progress.phase("make rows of segments"):
        if not choosing:
            return made_of(public)
        rivals = [made_of(public), made_of(model.draw(POOL, curator.rng)), model]
        looked = by_lot(curator, goals, MOST_LOOKED)
        queries = [MarginalQuery(domain, domain.marginal((outer, *goal))) for outer in segments for goal in looked]
        return rivals[curator.nearest(rivals, queries, ("public rows", "model rows", "model"), spend=choosing)]


def tilts_of(pool: CodedTable, inner: Domain, lines: Counts, progress: Progress) -> Counts:
    """A tilt of the pool's rows for each segment; none for those that the time does not suffice for."""
    tilts = np.zeros_like(lines)
    work = WEIGHED * SWEEPS * len(inner) * len(next(iter(pool.values())))
    for number, line in enumerate(lines):
        if progress.out_of_time():
            break
        progress.worked(work)
        tilts[number] = raked(pool, inner, line)
    return tilts


def measure_segments(
    curator: Curator,
    public: CodedTable,
    segments: Marginal,
    alone: Mapping[str, Counts],
    spend: Amount,
    progress: Progress,
) -> Segmented:
    """Count the segments, and ask of each what public segments say is worth it. `alone` are all rows' columns.

    Noisy numbers of rows are drawn to those of attributes that know nothing of each other. Where nothing is worth
    asking, they get what it would have cost.
    """
    domain = curator.domain
    inner = Domain(attribute for attribute in domain if attribute.name not in segments)
    whole = np.concatenate([alone[name] / alone[name].sum() for name in inner.names])
    total = float(alone[segments[0]].sum())
    differences = [Differences.among(public, domain, name, inner) for name in segments]
    rows = [total / domain[name].size for name in segments]
    counting = spend.share(COUNTING_SHARE)
    asked = design(differences, rows, whole, curator.noise(spend - counting)[0].scale, progress)
    (counted,) = curator.measure([MarginalQuery(domain, segments)], spend=counting if asked else spend)
    prior = total * reduce(np.multiply.outer, [alone[name] / alone[name].sum() for name in segments])
    counts = np.maximum(shrunk(view(counted), prior).counts, 0.0)
    if counts.sum() < 1:
        counts = prior
    if not asked:
        return Segmented(segments, counts, {})
    queries = [MarginalQuery(domain, domain.marginal((segments[axis], inner.names[each]))) for axis, each in asked]
    answers = curator.measure(queries, spend=spend - counting)
    columns = {}
    for axis, name in enumerate(segments):
        chosen = [each for other, each in asked if other == axis]
        found = [answer for (other, _), answer in zip(asked, answers, strict=True) if other == axis]
        if chosen:
            lines = [_lines(view(answer).counts, answer.query.attributes, name) for answer in found]
            each = counts.sum(axis=tuple(other for other in range(len(segments)) if other != axis))
            columns[name] = differences[axis].predicted(
                np.concatenate(lines, axis=1), chosen, found[0].std, each, whole
            )
    return Segmented(segments, counts, columns)


def design(
    differences: Sequence[Differences], rows: Sequence[float], whole: Counts, noise: float, progress: Progress
) -> list[tuple[int, int]]:
    """Which columns are asked of which segments, as numbers of both, the most telling first.

    Each lowers what all are expected to be wrong by, though with k of them the noise is √k times that of one. The
    search ends with the time.
    """

    def wrong(asked: Sequence[tuple[int, int]]) -> float:
        std = noise * math.sqrt(max(1, len(asked)))
        return sum(
            each.wrong([column for other, column in asked if other == axis], std, rows[axis], whole)
            for axis, each in enumerate(differences)
            if len(each.variances)
        )

    left = [(axis, each) for axis, among in enumerate(differences) for each in range(len(among.places) - 1)]
    left = [(axis, each) for axis, each in left if len(differences[axis].variances)]
    chosen: list[tuple[int, int]] = []
    least = wrong([])
    work = SOLVED * sum(len(each.variances) * each.directions.size for each in differences)
    while left and not progress.out_of_time():
        progress.worked(work * len(left))
        found = [wrong([*chosen, each]) for each in left]
        best = int(np.argmin(found))
        if found[best] > least * (1 - LEAST_GAIN):
            break
        least = found[best]
        chosen.append(left.pop(best))
    return chosen


def weighed(rows: CodedTable, inner: Domain, whole: Counts, count: int, rng: np.random.Generator) -> CodedTable:
    """So many of the rows, the more often the more they are wanted, so that they have the columns of the whole."""
    tilt = raked(rows, inner, whole)
    weights = np.exp(sum(tilt[each] for each in _cells(rows, inner)))
    chosen = np.repeat(np.arange(len(weights)), systematic(weights, count, rng))
    return {name: rows[name][chosen] for name in inner.names}


def raked(rows: CodedTable, inner: Domain, wanted: Counts) -> Counts:
    """How much more rows with each code are wanted, as logarithms, so that the rows have the wanted columns.

    One column after the other is given what it lacks (Deming, Stephan 1940).
    """
    starts, codes = places_of(inner), _cells(rows, inner)
    tilt, weights = np.zeros(int(starts[-1])), np.ones(len(codes[0]))
    for _ in range(SWEEPS):
        for each, start, end in zip(codes, starts[:-1], starts[1:], strict=True):
            goal = np.maximum(wanted[start:end], LEAST_SHARE)
            held = np.bincount(each - start, weights=weights, minlength=end - start)
            there = held > 0
            step = np.zeros(len(goal))
            step[there] = np.log(goal[there] / goal.sum() * (held.sum() / held[there]))
            step = np.clip(step, -LARGEST_STEP, LARGEST_STEP)
            tilt[start:end] += step
            weights *= np.exp(step)[each - start]
    return np.clip(tilt, -LARGEST_TILT, LARGEST_TILT)


def columns_of(rows: CodedTable, inner: Domain, groups: IntArray, count: int) -> Counts:
    """Counts of all codes of all attributes side by side, a line for each group."""
    parts = [
        np.bincount(groups * attribute.size + rows[attribute.name], minlength=count * attribute.size)
        for attribute in inner
    ]
    lines = [part.reshape(count, attribute.size) for part, attribute in zip(parts, inner, strict=True)]
    return np.concatenate(lines, axis=1).astype(np.float64)


def places_of(inner: Domain) -> IntArray:
    """Where each attribute's codes begin in such a line, and where the last ends."""
    return np.concatenate([[0], np.cumsum([attribute.size for attribute in inner])]).astype(np.int64)


def _scores(rows: CodedTable, inner: Domain, ways: Counts) -> Iterator[Counts]:
    """Of every row in each direction."""
    codes = _cells(rows, inner)
    for way in ways:
        yield np.sum([way[each] for each in codes], axis=0)


def _lines(counts: Counts, marginal: Marginal, name: str) -> Counts:
    """A pair with a line for each code of one of its two attributes."""
    return counts if marginal[0] == name else counts.T


def _cells(rows: CodedTable, inner: Domain) -> list[IntArray]:
    """Each attribute's codes as places in such a line."""
    starts = places_of(inner)
    return [start + rows[attribute.name].astype(np.int64) for attribute, start in zip(inner, starts, strict=False)]
