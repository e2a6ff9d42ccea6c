"""Attributes that are nearly functions of each other, found by noisy answers and joined step by step.

Moments of one call, names of one place, a code and its category: together they have far fewer combinations than cells.
Noisy scores of all pairs say which of them could be such (one charge). The most promising two are measured together;
where few combinations hold nearly all rows they become one attribute, whose codes are those combinations and one for
the rest, and the next two may be of what was joined already. Everything is decided from noisy answers, so the joined
domain is public. A measured pair that was not joined stays a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Domain, IntArray, Marginal, Workload
from hedgerow.coded.joining import Join, Joining
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.shared.columns import Columns
from hedgerow.models.denoising import Column
from hedgerow.models.graphical.terms import LEAST_STD
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.joined import Joined, domain_of, joined_name
from hedgerow.models.model import Model
from hedgerow.progress import Progress

SCORING_SHARE = 0.01
"""The part of the budget that scores pairs."""
MOST_PRICE = 1 / 60
"""The part of it that measures two attributes together, at most: what a pick costs on a table of 30 columns."""
PRECISION = 0.5
"""Pairs are scored where noise moves their number of alternatives by no more than this."""
LEAST_CODES = 4.0
"""Attributes of fewer codes take no room in a model. Codes count by how common they are: e to the entropy."""
LEAST_DISTANCE = 0.5
"""Total variation distance from independence, at least."""
MOST_ALTERNATIVES = 2.0
"""A code of the one goes with so many of the other, at most. 1 is a function."""
MOST_OCCUPIED = 0.25
"""The part of the cells that may hold rows, at most: what has more is no smaller for being joined."""
ROWS_A_CODE = 16.0
"""Rows per code, at least: where there are fewer, chance alone leaves few alternatives."""
MOST_REST = 0.15
"""The part of the rows that a join may leave to its last code."""
FALSE_SHARE = 0.01
"""Expected part of the combinations kept that hold no rows, but noise."""
NEAR = 0.5
"""So many standard deviations of it lie at a threshold."""
CLEARLY = 2.0
"""Standard deviations at which two counts are not the same."""
STEPS = 50
"""Conjugate gradients that bring combinations in line with columns, at most."""
CLOSE = 1e-16
"""They end where the squared residual is this part of what it was."""
LEAST_PART = 0.1
"""A combination keeps so much of its noisy count, at least: it was found to be there."""
MOST_CELLS = 1 << 20
"""Two attributes of more cells are not measured together."""
MOST_PAIRS = 5_000
"""Pairs that are scored; of more, those of the widest columns."""
DEEPEST = 4
"""Models of the rest inside each other; deeper ones are read column by column."""


@dataclass(frozen=True, eq=False)
class Group:
    """One attribute, or several that were joined: lines of their codes, the rows in each, the noise of that.

    One that was joined has a last count for all other combinations, and a model of them.
    """

    members: Marginal
    lines: IntArray
    counts: Counts
    std: float
    rest: Model | None = None
    depth: int = 0
    """How many models of the rest lie inside each other."""

    @property
    def name(self) -> str:
        return joined_name(self.members)

    @property
    def is_joined(self) -> bool:
        return self.rest is not None

    def join(self, domain: Domain) -> Join:
        return Join(dict(zip(self.members, domain.shape(self.members), strict=True)), self.lines)


@dataclass(frozen=True, eq=False)
class Joins:
    """What was joined, and what that makes of columns, workloads and models."""

    joining: Joining
    columns: Columns
    """Of the joined domain."""
    rest: Mapping[str, Model]
    """Of the combinations that a join does not list."""
    measured: list[Measurement]
    """Pairs of the joined domain that were measured and not joined."""

    def workload(self, workload: Workload) -> Workload:
        """The marginals that hold those of a workload, with the sum of their weights."""
        weights: dict[Marginal, float] = {}
        for marginal, weight in workload.weights.items():
            holding = self.joining.marginal(marginal)
            weights[holding] = weights.get(holding, 0.0) + weight
        return Workload(weights)

    def expand(self, model: Model) -> Model:
        """The model in the original domain."""
        return Joined(model, self.joining, self.rest) if self.joining.joins else model


def find_joins(curator: Curator, columns: Columns, pick: Amount, progress: Progress) -> Joins:
    """Join what is nearly a function. Looking at two together costs what a pick costs, or less where picks are few."""
    price = min(pick, curator.remaining.share(MOST_PRICE), key=lambda amount: amount.units)
    group_of = {name: _alone(name, column) for name, column in columns.of.items()}
    refused: dict[frozenset[str], Measurement] = {}
    for pair in promising(curator, columns):
        first, second = (group_of[name] for name in pair)
        tried = any(frozenset((a, b)) in refused for a in first.members for b in second.members)
        if first is second or tried or len(first.counts) * len(second.counts) > MOST_CELLS:
            continue
        if not price or curator.remaining.units < 2 * price.units or progress.out_of_time():
            break
        measurement = measured_together(curator, first, second, price)
        joined = combined(curator.domain, first, second, measurement, columns.total)
        if joined is None:
            refused[frozenset((first.members[0], second.members[0]))] = measurement
        else:
            group_of |= dict.fromkeys(joined.members, joined)
    return _read(columns, list(dict.fromkeys(group_of.values())), list(refused.values()))


def no_joins(columns: Columns) -> Joins:
    """Every column by itself."""
    return _read(columns, [_alone(name, column) for name, column in columns.of.items()], [])


def promising(curator: Curator, columns: Columns) -> list[Marginal]:
    """Pairs of which a code of the one may go with few of the other, those of the fewest first.

    Let T be the total variation distance of a pair from independence, and k = 1/Σp² of the narrower one. Where k codes
    are equally common and each of the wider one goes with a of them, T = 1 − a/k, so a = k·(1 − T).
    """
    width = {name: float(c.counts.sum() ** 2 / (c.counts**2).sum()) for name, c in columns.of.items()}
    spend = curator.remaining.share(SCORING_SHARE)
    pairs = _tellable(curator, columns, width, spend) if spend else []
    if not pairs:
        return []
    candidates = [Candidate(MarginalQuery(curator.domain, pair)) for pair in pairs]
    alone = columns.model(Recoding(curator.domain, {}))
    scores = curator.score(candidates, against=alone, spend=spend)
    found = {}
    for pair, score in zip(pairs, scores, strict=True):
        narrower = min(width[name] for name in pair)
        distance = score / (2 * columns.total)
        if distance >= LEAST_DISTANCE and narrower * (1 - distance) <= MOST_ALTERNATIVES:
            found[pair] = narrower * (1 - distance)
    return sorted(found, key=lambda pair: found[pair])


def _tellable(curator: Curator, columns: Columns, width: dict[str, float], spend: Amount) -> list[Marginal]:
    """The pairs that could be joined, as many of the narrowest ones as noise on their scores allows to tell."""
    wide = [
        name
        for name in curator.domain.names
        if _perplexity(columns.of[name].counts) >= LEAST_CODES and columns.total >= ROWS_A_CODE * width[name]
    ]
    narrower: dict[Marginal, float] = {
        (a, b): min(width[a], width[b])
        for index, a in enumerate(wide)
        for b in wide[index + 1 :]
        if curator.domain.cells((a, b)) <= MOST_CELLS
    }
    pairs = sorted(narrower, key=lambda pair: narrower[pair])[-MOST_PAIRS:]
    alone = curator.noise(spend)[0].scale if pairs else 0.0
    while pairs:
        noise = curator.noise(spend, [1.0] * len(pairs))[0].scale
        if noise / (2 * columns.total) * narrower[pairs[-1]] <= PRECISION:
            break
        if alone / (2 * columns.total) * narrower[pairs[0]] > PRECISION:
            return []
        pairs = pairs[: len(pairs) * 9 // 10]
    return pairs


def _perplexity(counts: Counts) -> float:
    shares = counts[counts > 0] / counts.sum()
    return math.exp(-float((shares * np.log(shares)).sum()))


def measured_together(curator: Curator, first: Group, second: Group, spend: Amount) -> Measurement:
    """The counts of every two codes."""
    joins = {group.name: group.join(curator.domain) for group in (first, second) if group.is_joined}
    together = curator.recode(Joining(curator.domain, joins))
    pair = together.domain.marginal((first.name, second.name))
    return together.measure([MarginalQuery(together.domain, pair)], spend=spend)[0]


def combined(domain: Domain, first: Group, second: Group, measurement: Measurement, total: float) -> Group | None:
    """Two groups as one, if few combinations of their codes hold nearly all rows."""
    query = measurement.query
    assert isinstance(query, MarginalQuery)
    left, right = (first, second) if query.attributes[0] == first.name else (second, first)
    counts = measurement.dense().reshape(query.shape)
    inside = counts[: len(left.lines), : len(right.lines)]
    one, other = np.unravel_index(_occupied(inside.reshape(-1), measurement.noise), inside.shape)
    kept = inside[one, other]
    held = float(kept.sum()) - _chosen_for_noise(inside, kept, measurement.std)
    members = (*left.members, *right.members)
    in_order = domain.marginal(members)
    widths = [len(np.unique(codes)) for codes in (one, other)]
    few = len(kept) <= min(MOST_ALTERNATIVES * max(widths), MOST_OCCUPIED * widths[0] * widths[1])
    if not few or joined_name(in_order) in domain or held < (1 - MOST_REST) * total:
        return None
    lines = np.concatenate([left.lines[one], right.lines[other]], axis=1)
    lines = lines[:, [members.index(name) for name in in_order]]
    order = _alike_together(lines)
    rest = max(1.0, total - held)
    elsewhere = [_left(group, codes, kept, rest, measurement.std) for group, codes in ((left, one), (right, other))]
    known = [
        (codes, group.counts - out, group.std)
        for group, codes, out in zip((left, right), (one, other), elsewhere, strict=True)
    ]
    kept = reconciled(kept, measurement.std, known)
    std = 1 / math.sqrt(sum(1 / max(each, LEAST_STD) ** 2 for each in (measurement.std, left.std, right.std)))
    counts = np.append(kept[order], rest)
    counts *= total / counts.sum()
    depth = 1 + max(left.depth, right.depth) if max(left.depth, right.depth) < DEEPEST else 1
    return Group(in_order, lines[order], counts, std, _apart(domain, (left, right), elsewhere, depth), depth)


def _chosen_for_noise(counts: Counts, kept: Counts, std: float) -> float:
    """How much of the counts that were kept is noise, in expectation, because the largest were kept.

    With Gaussian noise that is σ² times how densely noisy counts lie where keeping begins, whatever the true ones are:
    the mean of z·1(c + z > t) is σ² times the density of c + z at t.
    """
    near = np.abs(counts - kept.min(initial=math.inf)) <= std * NEAR
    return std * float(near.sum()) / (2 * NEAR)


def _left(group: Group, codes: IntArray, kept: Counts, rest: float, std: float) -> Counts:
    """What combinations that are kept leave of a group's counts, `rest` rows in all.

    A code that holds clearly more than its combinations has what is left of it. The others leave the same part each,
    and as much of their own difference as noise does not explain.
    """
    lines = np.bincount(codes, minlength=len(group.counts))
    own = group.counts - np.bincount(codes, weights=kept, minlength=len(group.counts))
    variance = std**2 * lines + group.std**2
    clearly = own - rest / group.counts.sum() * group.counts > CLEARLY * np.sqrt(variance)
    others = ~clearly
    part = max(0.0, rest - float(own[clearly].sum())) / max(1.0, float(group.counts[others].sum()))
    even = part * group.counts
    apart = (own - even)[others]
    told = max(0.0, 1 - float(variance[others].sum()) / max(1e-9, float((apart**2).sum())))
    left: Counts = np.maximum(0.0, np.where(clearly, own, even + told * (own - even)))
    return left if left.sum() > 0 else group.counts


def reconciled(noisy: Counts, std: float, known: Sequence[tuple[IntArray, Counts, float]]) -> Counts:
    """Counts in line with what is known of their sums: min Σ(x − noisy)²/σ² + Σ(sums of x − known)²/σ², each its own σ.

    `known` says for each count which sum it belongs to. By conjugate gradients; nothing loses nearly all it had.
    """
    observed = [(np.arange(len(noisy)), noisy, std), *known]

    def weighed(values: Counts) -> Counts:
        total = np.zeros_like(values)
        for codes, counts, deviation in observed:
            sums = np.bincount(codes, weights=values, minlength=len(counts))
            total += sums[codes] / max(deviation, LEAST_STD) ** 2
        return total

    found = noisy.copy()
    residual = -weighed(found)
    for codes, counts, deviation in observed:
        residual += counts[codes] / max(deviation, LEAST_STD) ** 2
    direction, begun = residual.copy(), float(residual @ residual)
    for _ in range(STEPS):
        size, along = float(residual @ residual), weighed(direction)
        if not size > CLOSE * begun:
            break
        length = size / float(direction @ along)
        found += length * direction
        residual -= length * along
        direction = residual + float(residual @ residual) / size * direction
    return np.maximum(found, LEAST_PART * noisy)


def _alone(name: str, column: Column) -> Group:
    return Group((name,), np.arange(len(column.counts)).reshape(-1, 1), column.counts, column.std)


def _apart(domain: Domain, groups: Sequence[Group], counts: Sequence[Counts], depth: int) -> Model:
    """A model of two groups that know nothing of each other; at depth 1, of all their members."""
    joining = Joining(
        domain_of(domain, domain.marginal(name for group in groups for name in group.members)),
        {group.name: group.join(domain) for group in groups if group.is_joined},
    )
    parts = [Part((group.name,), weights) for group, weights in zip(groups, counts, strict=True)]
    apart = Histograms(joining.target(), parts, max(1.0, float(counts[0].sum())))
    if not joining.joins:
        return apart
    model = Joined(apart, joining, {group.name: group.rest for group in groups if group.rest})
    if depth > 1:
        return model
    members = model.domain.names
    return Histograms(model.domain, [Part((name,), model.marginal((name,))) for name in members], model.total)


def _occupied(counts: Counts, noise: Noise) -> IntArray:
    """The largest counts, as many as keep few empty cells among them, in expectation (Benjamini, Hochberg 1995)."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > noise.scale]  # the part that noise explains of smaller ones is always too large
    scaled = counts[order] / noise.scale
    if noise.kind == "gaussian":
        chance = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in scaled.tolist()])
    else:
        chance = 0.5 * np.exp(-scaled)
    allowed = np.flatnonzero(chance * len(counts) <= FALSE_SHARE * np.arange(1, len(order) + 1))
    return np.sort(order[: int(allowed[-1]) + 1]) if len(allowed) else order[:0]


def _alike_together(lines: IntArray) -> IntArray:
    """An order in which neighbours are alike: by the member of the fewest codes first."""
    codes = [len(np.unique(column)) for column in lines.T]
    by_width = sorted(range(len(codes)), key=lambda member: codes[member])
    return np.lexsort([lines[:, member] for member in reversed(by_width)])


def _read(columns: Columns, groups: Sequence[Group], refused: Sequence[Measurement]) -> Joins:
    """The joined domain, and what was measured in it."""
    domain = columns.domain
    joined = [group for group in groups if group.is_joined]
    joining = Joining(domain, {group.name: group.join(domain) for group in joined})
    target = joining.target()
    found = {group.name: Column(group.counts, group.std) for group in groups}
    return Joins(
        joining,
        Columns(target, {name: found[name] for name in target.names}, columns.total),
        {group.name: group.rest for group in joined if group.rest},
        [
            replace(measurement, query=MarginalQuery(target, measurement.query.attributes))
            for measurement in refused
            if all(name in target for name in measurement.query.attributes)
        ],
    )
