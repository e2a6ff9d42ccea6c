"""What L-BFGS remembers of a search: its last steps and how each changed the gradient.

The two loops of the method (Nocedal 1980) are run on the inner products of the remembered vectors, so each direction
reads every vector twice instead of four times; at millions of cells memory traffic is the cost.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hedgerow import _model
from hedgerow.coded.domain import Counts

Narrow = npt.NDArray[np.float32]


class History:
    """At most `most` pairs of a step and a change of gradient, oldest first."""

    def __init__(self, most: int):
        self.most = most
        self._steps: list[Narrow] = []
        self._changes: list[Narrow] = []
        self._products: npt.NDArray[np.float64] = np.zeros((0, 0))  # step i · change j, for i ≤ j

    def remember(self, step: Counts, change: Counts) -> None:
        """Add a pair; the oldest goes when there are too many. A pair without curvature is not worth keeping."""
        narrow = step.astype(np.float32)
        [square] = _model.inner_products([narrow], step)
        row = _model.inner_products([*self._steps, narrow], change)
        if not row[-1] > 1e-12 * square:
            return
        count = len(self._steps) + 1
        products = np.zeros((count, count))
        products[:-1, :-1] = self._products
        products[:, -1] = row
        self._steps.append(narrow)
        self._changes.append(change.astype(np.float32))
        dropped = max(0, count - self.most)
        self._steps, self._changes = self._steps[dropped:], self._changes[dropped:]
        self._products = products[dropped:, dropped:]

    def rescale(self, growth: float) -> None:
        """See the same moves of the potentials as a stage does whose α is larger by `growth`.

        The multipliers moved less by that factor. The change of the gradient is the step itself plus what the
        answers changed by, and the answers do not know of α. Pairs are taken over one by one, so that memory does not
        hold all of them twice.
        """
        steps, changes = self._steps[::-1], self._changes[::-1]
        self._steps, self._changes, self._products = [], [], np.zeros((0, 0))
        while steps:
            step, change = steps.pop(), changes.pop()
            shorter = step.astype(np.float64) / growth
            self.remember(shorter, change.astype(np.float64) - step + shorter)

    def solve(self, gradient: Counts, diagonal: Counts) -> Counts:
        """The approximate inverse Hessian times the gradient, starting from the inverse of a diagonal.

        Blocks that overlap push the same way, so the diagonal alone understates the curvature several times over; the
        last pair says how much.
        """
        count = len(self._steps)
        inverse = 1 / diagonal
        if count:
            curvature = float(np.einsum("i,i,i->", self._changes[-1], self._changes[-1], inverse))
            inverse *= min(1.0, self._products[-1, -1] / curvature)
        result = gradient.copy()
        first = np.zeros(count)
        along = _model.inner_products(self._steps, gradient)
        for i in reversed(range(count)):
            first[i] = (along[i] - self._products[i, i + 1 :] @ first[i + 1 :]) / self._products[i, i]
        _model.add_combination((-first).tolist(), self._changes, result)
        result *= inverse
        second = np.zeros(count)
        along = _model.inner_products(self._changes, result)
        for i in range(count):
            second[i] = first[i] - (along[i] + self._products[:i, i] @ second[:i]) / self._products[i, i]
        _model.add_combination(second.tolist(), self._steps, result)
        return result
