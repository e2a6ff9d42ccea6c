"""Scores of candidates on the data, and why one person moves them no further than is charged.

**Distance.** u = w·(‖q(D) − p‖₁ − penalty) with a public p. One person adds or removes at most θ rows, each in one
cell, so ‖q(D)‖ moves by at most θ in L1 and, by the triangle inequality, u by at most w·θ.

**Independence** (PrivSyn's InDif). u = w·‖M_ab − M_a×M_b/n‖₁ of two variables: two attributes, or one (the label) and
all others read as one. Removing one row moves M_ab by 1 and the product by at most 3 (Zhang et al., USENIX Security
2021, Lemma 1), so u by at most 4w; θ rows one after the other, 4wθ.

**Grid.** A score is rounded to a multiple of g = (largest step)/1024 before it meets noise, so that the noise is drawn
on integers; two rounded scores differ by at most g more than the scores do. Floating-point error in a score is far
below g, because public estimates and penalties are refused beyond 2⁴⁰ steps of the grid, and a difference of rounded
scores is a whole number of g, so the bound holds exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hedgerow.budget.accounting import STEPS_PER_SENSITIVITY
from hedgerow.coded.domain import Counts, IntArray
from hedgerow.coded.query import MarginalQuery, Query
from hedgerow.curator import Answers, Candidate, Independence
from hedgerow.errors import HedgerowError
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts

INDEPENDENCE_FACTOR = 4
LARGEST_IN_STEPS = 2.0**40


class Counting(Protocol):
    """An engine, or what remembers its counts."""

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]: ...


@dataclass(frozen=True)
class Scale:
    """The grid of a list of scores, from public quantities only."""

    steps: tuple[float, ...]
    """How far one row can move each score."""
    grid: float

    @classmethod
    def of(cls, candidates: Sequence[Candidate], against: Answers | Independence, rows_per_person: int) -> Scale:
        factor = INDEPENDENCE_FACTOR if isinstance(against, Independence) else 1
        steps = tuple(factor * candidate.weight for candidate in candidates)
        return cls(steps, rows_per_person * max(steps) / STEPS_PER_SENSITIVITY)


def grid_scores(
    engine: Counting, candidates: Sequence[Candidate], against: Answers | Independence, grid: float
) -> Exact[IntArray]:
    """The candidates' scores in whole numbers of `grid`."""
    queries = [candidate.query for candidate in candidates]
    for candidate in candidates:
        _refuse_large(abs(candidate.penalty), candidate, grid)
    counts = engine.count(queries)
    if isinstance(against, Independence):
        distances: Iterator[float] = map(_independence, candidates, counts)
    else:
        distances = _distances(counts, _checked(against.answers(queries), candidates, grid))
    scores = np.empty(len(candidates), dtype=np.int64)
    for index, (candidate, distance) in enumerate(zip(candidates, distances, strict=True)):
        scores[index] = round(candidate.weight * (distance - candidate.penalty) / grid)
    return Exact(scores)


def nearness(
    engine: Counting, queries: Sequence[MarginalQuery], rivals: Sequence[Answers], grid: float
) -> Exact[IntArray]:
    """How near each of several public answers is: −(mean of ‖q(D) − p‖₁ over the queries), in whole numbers of `grid`.

    One person moves every distance by at most θ, and so their mean.
    """
    candidates = [Candidate(query) for query in queries]
    scores = np.empty(len(rivals), dtype=np.int64)
    for index, rival in enumerate(rivals):
        distances = _distances(engine.count(queries), _checked(rival.answers(queries), candidates, grid))
        scores[index] = -round(math.fsum(distances) / len(queries) / grid)
    return Exact(scores)


def _distances(counts: Iterator[Exact[ExactCounts]], answers: Iterator[Counts]) -> Iterator[float]:
    for exact, expected in zip(counts, answers, strict=True):
        yield _distance(exact.opened(), expected)


def _checked(answers: Iterator[Counts], candidates: Sequence[Candidate], grid: float) -> Iterator[Counts]:
    """Plain vectors of the right length and size: nothing that broadcasts, overflows or overloads arithmetic."""
    for candidate, answer in zip(candidates, answers, strict=True):
        expected = np.array(answer, dtype=np.float64, subok=False)
        if expected.shape != (candidate.query.cells,):
            raise HedgerowError(
                "bad-estimate",
                f"an estimate of {candidate.query!r} has the shape {expected.shape}, not ({candidate.query.cells},).",
            )
        _refuse_large(float(np.abs(expected).sum()), candidate, grid)
        yield expected


def _refuse_large(size: float, candidate: Candidate, grid: float) -> None:
    if not size * candidate.weight < LARGEST_IN_STEPS * grid:
        raise HedgerowError(
            "inexact-score", f"a penalty or an estimate of {candidate.query!r} is too large for its score to be exact."
        )


def _distance(counts: ExactCounts, expected: Counts) -> float:
    """‖d − p‖₁; on sparse counts total(p) + Σ over occupied cells (|d − p| − p), for p ≥ 0."""
    if isinstance(counts, SparseCounts):
        at = expected[counts.cells]
        return float(np.abs(expected).sum() + (np.abs(counts.counts - at) - np.abs(at)).sum())
    return float(np.abs(counts - expected).sum())


def _independence(candidate: Candidate, exact: Exact[ExactCounts]) -> float:
    counts = exact.opened()
    if isinstance(counts, SparseCounts):
        cells, values = counts.cells, counts.counts
    else:
        cells = np.flatnonzero(counts)
        values = counts[cells]
    rows = int(values.sum())
    if rows == 0:
        return 0.0
    shape = candidate.query.shape
    axis = candidate.query.attributes.index(candidate.label) if candidate.label else 0
    after = math.prod(shape[axis + 1 :])
    own = cells // after % shape[axis]
    others = cells // (after * shape[axis]) * after + cells % after
    product = np.bincount(own, weights=values)[own] * np.bincount(others, weights=values)[others] / rows
    # cells without rows contribute their product, and all products sum to the number of rows
    return float(np.abs(values - product).sum() + rows - product.sum())
