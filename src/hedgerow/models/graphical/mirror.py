"""Entropic mirror descent: slow, and lowers the loss from wherever it starts.

The fallback for problems on which the dual search of `proximal` gets stuck. Each step moves the potentials against
the gradient of the loss; the step length grows while steps succeed and halves when one does not (Armijo).
"""

from __future__ import annotations

import math

import numpy as np

from hedgerow.models.graphical.proximal import Oracle
from hedgerow.models.graphical.terms import inner
from hedgerow.progress import Progress

WINDOW = 25
"""Accepted steps over which the loss must fall for the search to go on."""


def descend(oracle: Oracle, tolerance: float, most: int, progress: Progress) -> None:
    """Lower the loss from `oracle.best` until a window of steps gains less than `tolerance` of it."""
    terms = oracle.terms
    potentials = oracle.best
    _, answers = oracle(potentials)
    loss = terms.loss(answers)
    step = 1 / max(1.0, float((answers * terms.precision).max()))
    history = [loss]
    for _ in range(most):
        gradient = terms.gradient(answers)
        candidate = terms.potentials(potentials, gradient, step)
        log_partition, moved = oracle(candidate)
        after = terms.loss(moved) if math.isfinite(log_partition) else math.inf
        if loss - after >= 0.5 * inner(gradient, answers - moved) and after < loss:
            potentials, answers, loss = candidate, moved, after
            history.append(loss)
            step *= 1.5
        else:
            step *= 0.5
        stalled = len(history) > WINDOW and history[-WINDOW - 1] - loss <= tolerance * terms.scale(loss)
        if stalled or step < np.finfo(float).tiny or progress.out_of_time():
            return
