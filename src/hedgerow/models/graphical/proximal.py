"""Proximal dual L-BFGS: the optimiser of `estimation.fit`.

A stage minimises loss(p) + (N/α)·KL(p ‖ p₀) over distributions p, where p₀ is the stage's start. Its dual has one
multiplier w per measured cell, p ∝ p₀·exp(−α Σ w/σ), and is smooth and strongly convex; at the optimum w is the
residual, and ½‖residual − w‖² is the duality gap, so a stage knows how far it is from done. The larger α, the closer
the stage comes to plain least squares; α grows from stage to stage (proximal-point method), and the search ends
when a stage no longer lowers the loss.

Two things make L-BFGS converge in tens of steps. Its starting matrix is the diagonal of the Hessian, 1 + α·count/σ²,
times what the last step says it understates. And the multipliers stay inside the space of vectors that agree on the
overlaps of the marginals: outside it the Hessian is the identity, which no diagonal could tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Counts
from hedgerow.models.graphical.lbfgs import History
from hedgerow.models.graphical.terms import Terms, inner
from hedgerow.progress import Progress

MEMORY = 12
"""Pairs that L-BFGS remembers where memory allows."""

GROWTH = 1.5
"""How much α grows from stage to stage: of 1 to 8, what needed the fewest calls on adult (σ = 300, 15, 1)."""

ROUGHLY = 0.01
"""The relative duality gap at which an early stage is good enough."""

MOST_GROWTH = 3.0
"""How much the mass of a leaf may grow in a step, to first order."""

CALL, TABLE, CELL = 100_000, 1_000, 10
"""Work of a call, of each table that it passes through, and of each cell."""


class Oracle:
    """Potentials in, answers out. Keeps the potentials with the lowest loss so far, and counts its calls.

    Every call's loss joins `trace`, where somebody wants to see how the search went.
    """

    def __init__(
        self,
        network: _model.Network,
        terms: Terms,
        total: float,
        progress: Progress | None = None,
        trace: list[float] | None = None,
    ):
        self.terms = terms
        self.trace = trace
        self.progress = progress or Progress()
        self.total = total
        self.calls = 0
        self.best_loss = math.inf
        self.best: Counts = np.empty(0)
        self.probabilities = np.empty(terms.plan.leaf_cells)
        self._network = network
        self._work = CALL + TABLE * len(terms.plan.tables) + CELL * (terms.plan.work + len(terms))

    def __call__(self, potentials: Counts) -> tuple[float, Counts]:
        """log Z, and the model's answers in units of the noise."""
        self.calls += 1
        self.progress.worked(self._work)
        log_partition = self._network.calibrate(potentials, self.probabilities)
        if not math.isfinite(log_partition):
            return math.inf, np.zeros(len(self.terms))
        answers = self.terms.answers(self.probabilities) * self.total
        loss = self.terms.loss(answers)
        if self.trace is not None:
            self.trace.append(loss)
        if loss < self.best_loss:
            self.best_loss, self.best = loss, potentials
        return log_partition, answers


@dataclass(frozen=True)
class Point:
    """A vector of multipliers, and everything that the dual says there."""

    multipliers: Counts
    potentials: Counts
    log_partition: float
    answers: Counts
    value: float
    gradient: Counts

    @property
    def gap(self) -> float:
        return 0.5 * inner(self.gradient, self.gradient)


class Stage:
    """One proximal problem."""

    def __init__(self, oracle: Oracle, base: Counts, alpha: float, history: History):
        self.oracle = oracle
        self.terms = oracle.terms
        self.base = base
        self.alpha = alpha
        self.history = history
        self.floor = np.maximum(self.terms.target, 0.0)

    def at(self, multipliers: Counts) -> Point:
        potentials = self.terms.potentials(self.base, multipliers, self.alpha)
        return self.point(multipliers, potentials, *self.oracle(potentials))

    def point(self, multipliers: Counts, potentials: Counts, log_partition: float, answers: Counts) -> Point:
        value = self.oracle.total / self.alpha * log_partition
        value += 0.5 * inner(multipliers, multipliers) + inner(multipliers, self.terms.target)
        gradient = multipliers + self.terms.target - answers
        return Point(multipliers, potentials, log_partition, answers, value, gradient)

    def direction(self, point: Point) -> Counts:
        """Minus the L-BFGS approximation of Hessian⁻¹ · gradient.

        Where fewer rows are than were measured, the diagonal takes the measured count: the cell is about to fill,
        and a step sized for an empty cell would overshoot e-fold.
        """
        curvature = self.terms.curvature(self.oracle.probabilities, self.oracle.total, point.answers)
        diagonal = np.maximum(curvature, self.floor)
        diagonal *= self.alpha * self.terms.precision
        diagonal += 1
        return -self.terms.projected(self.history.solve(point.gradient, diagonal))

    def advance(self, point: Point) -> Point | None:
        """The next point by backtracking, or None when no step lowers the dual any more."""
        direction = self.direction(point)
        slope = inner(direction, point.gradient)
        if not slope < 0:
            return None
        change = self.terms.potentials(np.zeros_like(point.potentials), direction, self.alpha)
        length = self._longest(change)
        while length > 1e-9:
            potentials = point.potentials + length * change
            after = self.point(point.multipliers + length * direction, potentials, *self.oracle(potentials))
            if after.value <= point.value + 1e-4 * length * slope + 1e-13 * abs(point.value):
                self.history.remember(after.multipliers - point.multipliers, after.gradient - point.gradient)
                return after
            excess = after.value - point.value - length * slope
            parabola = -slope * length / (2 * excess) if math.isfinite(excess) and excess > 0 else 0.1
            length *= min(0.5, max(0.1, parabola))
        return None

    def _longest(self, change: Counts) -> float:
        """A step at which no leaf's mass would grow more than threefold: beyond it the Hessian means little.

        `change` is what a whole step adds to the potentials. Only leaves with a cell that would grow so are looked at.
        """
        probabilities, places = self.oracle.probabilities, self.terms.plan.leaf_places
        starts = [index.start for index in places]
        means = np.add.reduceat(probabilities * change, starts)
        most = np.maximum.reduceat(change, starts) - means
        length = 1.0
        for leaf in np.flatnonzero(most > math.log(MOST_GROWTH)).tolist():
            shares, apart = probabilities[places[leaf]], change[places[leaf]] - means[leaf]
            while length > 1e-3 and inner(shares, np.exp(np.minimum(length * apart, 50.0))) > MOST_GROWTH:
                length *= 0.6
        return length


def minimise(
    oracle: Oracle, start: Counts, alpha: float, tolerance: float, most: int, memory: int, progress: Progress
) -> bool:
    """Lower the loss until a stage gains less than `tolerance` of it; the result is `oracle.best`.

    L-BFGS remembers `memory` pairs. False when it took more than `most` oracle calls, no step helped any more, or
    time ran out.
    """
    log_partition, answers = oracle(start)
    if not math.isfinite(log_partition):
        return False
    history = History(memory)
    loss = oracle.best_loss
    multipliers = np.zeros(len(oracle.terms))
    potentials, growth, finely = start, 1.0, False
    while True:
        stage = Stage(oracle, potentials, alpha, history)
        point = stage.point(np.zeros_like(multipliers), potentials, log_partition, answers)
        if multipliers.any():
            for share in (1.0, 1 / growth):
                point = min(point, stage.at(multipliers * share), key=lambda candidate: candidate.value)
            oracle(point.potentials)
        point, done = _solved(stage, point, 0.1 * tolerance if finely else ROUGHLY, most, progress)
        if not done:
            return False
        loss_now = oracle.terms.loss(point.answers)
        scale = oracle.terms.scale(loss_now)
        gained = abs(loss - loss_now)
        if finely and not gained > tolerance * scale:  # so too where a loss is no number
            return True
        finely = not gained > ROUGHLY * scale
        growth = GROWTH
        loss, multipliers, potentials = loss_now, point.multipliers, point.potentials
        log_partition, answers = point.log_partition, point.answers
        history.rescale(growth)
        alpha *= growth


def approach(
    oracle: Oracle,
    base: Counts,
    start: Counts,
    alpha: float,
    tolerance: float,
    most: int,
    memory: int,
    progress: Progress,
) -> Point:
    """One stage's solution, or the best point that so many calls led to. The search begins at the multipliers `start`,
    where the dual is lower there than at none.
    """
    stage = Stage(oracle, base, alpha, History(memory))
    point = stage.point(np.zeros_like(start), base, *oracle(base))
    if start.any():
        warm = stage.at(start)
        if warm.value <= point.value:
            point = warm
        else:
            oracle(base)
    return _solved(stage, point, tolerance, most, progress)[0]


def _solved(stage: Stage, point: Point, tolerance: float, most: int, progress: Progress) -> tuple[Point, bool]:
    """Advance until the duality gap is this share of the loss; whether it came to be."""
    terms = stage.terms
    while point.gap > tolerance * terms.scale(terms.loss(point.answers)):
        after = stage.advance(point)
        if after is None or stage.oracle.calls > most or progress.out_of_time():
            return point, False
        point = after
    return point, True
