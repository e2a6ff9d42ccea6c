"""Noisy marginals that overlap, made to agree and to have no negative counts. Post-processing only.

Two marginals that share attributes are two noisy views of the same counts. Averaging what they share and spreading the
correction evenly over the cells above it makes them agree, and because every view weighs by its precision, the average
is less noisy than any of them (Qardaji, Yang, Li 2014; Zhang et al. 2021, PrivSyn, §4.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.coded.domain import Counts, Marginal
from hedgerow.models.histograms import project_to_simplex
from hedgerow.progress import Progress

ROUNDS = 30
"""Rounds of agreement and non-negativity: each undoes a little of the other, less and less so."""
NEGLIGIBLE = 1e-3
"""Corrections that add up to fewer rows than this are not made."""
VIEW = 100_000
"""Work of a view, and of a set that views share, in a round."""


@dataclass(frozen=True, eq=False)
class View:
    """Counts over a marginal, shaped by its attributes. `weight` is the precision of one cell: 1 / variance."""

    marginal: Marginal
    counts: Counts
    weight: float = 1.0

    def onto(self, shared: Marginal) -> Counts:
        """The counts of some of the attributes, in the marginal's order."""
        counts: Counts = self.counts.sum(axis=tuple(self._others(shared)))
        return counts

    def above(self, shared: Marginal) -> int:
        """How many cells of the view stand above one cell of `shared`."""
        return math.prod(self.counts.shape[axis] for axis in self._others(shared))

    def moved(self, shared: Marginal, target: Counts) -> View:
        """The view whose counts of `shared` are `target`; every cell above one moves by the same."""
        correction = (target - self.onto(shared)) / self.above(shared)
        return replace(self, counts=self.counts + np.expand_dims(correction, tuple(self._others(shared))))

    def _others(self, shared: Marginal) -> list[int]:
        return [axis for axis, name in enumerate(self.marginal) if name not in shared]


NonNegative = Callable[[Counts], Counts]


def consistent(
    views: Sequence[View],
    total: float,
    non_negative: NonNegative | None = None,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> list[View]:
    """Views that agree on what they share, have no negative cell and sum to `total`.

    Agreement is exact when the last round finds no negative cell, and as close as `rounds` rounds bring it otherwise,
    or as many as the time allows.
    """
    progress = progress or Progress()
    clean = non_negative if non_negative is not None else norm_cut
    order = shared_sets([view.marginal for view in views])
    current = list(views)
    for _ in range(rounds):
        current = agree(current, total, order)
        if all(view.counts.min() >= 0 for view in current):
            break
        current = [replace(view, counts=clean(view.counts)) for view in current]
        progress.worked(VIEW * (len(views) + len(order)))
        if progress.out_of_time():
            break
    return [replace(view, counts=_scaled(view.counts, total)) for view in current]


def agree(views: Sequence[View], total: float, order: Iterable[Marginal] | None = None) -> list[View]:
    """One pass in dependency order, after which all views agree wherever they overlap.

    Smaller sets come first, and moving a view on a set leaves what is settled: the correction sums to nothing over any
    smaller set on which the views agree already, and the sets are closed under intersection.
    """
    current = [view.moved((), np.asarray(total)) for view in views]
    sets = [frozenset(view.marginal) for view in views]
    having = _by_name(sets)
    for shared in order if order is not None else shared_sets([view.marginal for view in views]):
        indices = [index for index in _nearest(having, shared) if sets[index].issuperset(shared)]
        projected = [current[index].onto(shared) for index in indices]
        weights = np.array([current[index].weight / current[index].above(shared) for index in indices])
        target = np.tensordot(weights / weights.sum(), np.stack(projected), axes=1)
        if sum(float(np.abs(target - counts).sum()) for counts in projected) > NEGLIGIBLE:
            for index in indices:
                current[index] = current[index].moved(shared, target)
    return current


def shared_sets(marginals: Sequence[Marginal]) -> list[Marginal]:
    """Every non-empty set of attributes that views can disagree on, smaller ones first.

    These are the marginals and all their intersections; those that a single view holds need no averaging.
    """
    order = {name: index for index, name in enumerate(dict.fromkeys(name for m in marginals for name in m))}
    views = [frozenset(marginal) for marginal in marginals]
    having = _by_name(views)
    found = set(views)
    fresh = found
    while fresh:
        near = ((left, {index for name in left for index in having[name]}) for left in fresh)
        fresh = {left & views[index] for left, indices in near for index in indices} - found
        found |= fresh
    several = (
        shared for shared in found if shared and sum(shared <= views[index] for index in _nearest(having, shared)) > 1
    )
    named = (tuple(sorted(shared, key=order.__getitem__)) for shared in several)
    return sorted(named, key=lambda shared: (len(shared), [order[name] for name in shared]))


def _by_name(sets: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    """Which sets have each name."""
    having: dict[str, list[int]] = {}
    for index, names in enumerate(sets):
        for name in names:
            having.setdefault(name, []).append(index)
    return having


def _nearest(having: Mapping[str, list[int]], names: Iterable[str]) -> list[int]:
    """Those that have the rarest of the names: all that have all of them are among these."""
    return min((having[name] for name in names), key=len)


def norm_sub(counts: Counts) -> Counts:
    """Negative cells become 0 and all others pay for it equally, again until none is negative; the total stays.

    That is the nearest non-negative vector (in L2) with the same total.
    """
    total = float(counts.sum())
    if total <= 0:
        return np.zeros_like(counts)
    return project_to_simplex(counts.reshape(-1), total).reshape(counts.shape)


def norm_cut(counts: Counts) -> Counts:
    """Negative cells become 0 and the smallest positive ones pay for it, in ascending order; the total stays.

    Small counts are mostly noise, so large ones keep what they have.
    """
    flat = np.maximum(counts.reshape(-1), 0.0)
    debt = float(flat.sum() - counts.sum())
    if debt <= 0:
        return flat.reshape(counts.shape)
    order = np.argsort(flat, kind="stable")
    ends = np.cumsum(flat[order])
    gone = int(np.searchsorted(ends, debt, side="right"))
    flat[order[:gone]] = 0.0
    if gone < len(flat):
        flat[order[gone]] = ends[gone] - debt
    return flat.reshape(counts.shape)


def _scaled(counts: Counts, total: float) -> Counts:
    """Non-negative counts that sum to the total; even ones where nothing is left."""
    positive = np.maximum(counts, 0.0)
    whole = float(positive.sum())
    if whole <= 0:
        return np.full(counts.shape, total / counts.size)
    scaled: Counts = positive * (total / whole)
    return scaled
