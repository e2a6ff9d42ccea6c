"""Rows that are shaped to target marginals (kernels/records).

Public side: it never sees rows of a private table. A target is a marginal, by the numbers of its columns, and the share
of every cell. Whatever does not fit raises ValueError, TypeError or IndexError before a row is changed.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

compiler: str
"""That built the kernel."""
commit: str
"""That it was built from; empty outside of a checkout."""

def update(
    columns: Sequence[npt.NDArray[np.uint32]],
    sizes: Sequence[int],
    marginals: Sequence[Sequence[int]],
    shares: Sequence[npt.NDArray[np.float64]],
    iterations: int,
    decay: float,
    stride: int,
    exchanges: int,
    words: Sequence[int],
) -> None:
    """Bring rows closer to the targets, in place: gradual updates (Zhang et al. 2021), then exchanges.

    The step size is decay^⌊iteration / stride⌋; four words start the random numbers.
    """

class Selection:
    """A pool of rows from which some are chosen so that together they come close to the targets."""

    def __init__(
        self,
        columns: Sequence[npt.NDArray[np.uint32]],
        sizes: Sequence[int],
        marginals: Sequence[Sequence[int]],
        shares: Sequence[npt.NDArray[np.float64]],
        weights: Sequence[float],
    ) -> None:
        """The pool's columns, and targets with a weight each."""

    def choose(
        self, chosen: npt.NDArray[np.int64], first: int, candidates: int, sweeps: int, words: Sequence[int]
    ) -> None:
        """Fill `chosen` with numbers of distinct rows of the pool.

        The search begins with some of the `first` first rows and looks at `candidates` more of all the others; it ends
        after so many sweeps, or when none helps any more.
        """
