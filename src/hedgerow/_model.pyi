"""Graphical models: contraction, calibration, sampling, elimination orders, partitions (kernels/model).

Public side: it never sees rows. Attributes are known by their rank in the order of `sizes`, and the axes of a table are
ascending ranks; tables are flat and row-major. Whatever does not fit raises ValueError, TypeError or IndexError, sizes
that would wrap or take more than 2⁴⁰ cells among them; a table that the machine has no room for raises MemoryError.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

compiler: str
"""That built the kernel."""
commit: str
"""That it was built from; empty outside of a checkout."""

class Network:
    """A model laid out for elimination. Tables are numbered: leaves, then one message per bucket, then joins."""

    def __init__(
        self,
        sizes: Sequence[int],
        leaves: Sequence[Sequence[int]],
        buckets: Sequence[tuple[Sequence[int], Sequence[int]]],
        joins: Sequence[tuple[Sequence[int], Sequence[int]]],
    ) -> None:
        """Leaves by their axes; buckets and joins as (the tables that they multiply, the axes of what is left).

        Every attribute is summed out by one bucket, from tables that come before it; a join multiplies leaves.
        """

    def calibrate(self, potentials: npt.NDArray[np.float64], marginals: npt.NDArray[np.float64]) -> float:
        """Probabilities of every leaf's cells into `marginals`; returns log Z.

        −∞ where nothing has weight, or a potential is not a number; `marginals` is then left as it was.
        """

    def draw(
        self,
        columns: Sequence[npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]],
        words: Sequence[int],
        systematic: bool,
    ) -> None:
        """Fill one column per attribute with rows of the calibrated model; four words start the random numbers.

        `systematic`: counts follow the model as closely as whole rows can. Otherwise row by row, independently.
        """

    def value(self, tensor: int, /) -> npt.NDArray[np.float64]:
        """A view of a table, up to a factor, or of its logarithms. Changes with the next calibration."""

    def ratio(self, message: int, /) -> npt.NDArray[np.float64]:
        """A view of belief / message: what the rest of the model says of a message's cells. Of a join, its belief."""

    @property
    def logarithms(self) -> bool:
        """Whether the last calibration had to be done in logarithms."""

class Marginals:
    """Noisy marginals of a model's leaves, each with a precision, as least squares needs them."""

    def __init__(
        self,
        sizes: Sequence[int],
        leaves: Sequence[Sequence[int]],
        marginals: Sequence[tuple[int, Sequence[int]]],
        precisions: Sequence[float],
        overlaps: Sequence[Sequence[int]],
    ) -> None:
        """Marginals as (leaf, axes), with 1/σ each (0: takes no part in `project`).

        `overlaps` are their intersections, closed under intersection and sorted by number of axes.
        """

    def gather(self, leaves: npt.NDArray[np.float64], out: npt.NDArray[np.float64]) -> None:
        """The marginals' cells, summed from the cells of their leaves."""

    def scatter(self, values: npt.NDArray[np.float64], leaves: npt.NDArray[np.float64]) -> None:
        """Add every marginal's cells to those of its leaf: the transpose of `gather`."""

    def project(self, values: npt.NDArray[np.float64]) -> None:
        """Take weighted marginals to the nearest ones that agree wherever they overlap, in place."""

class Merges:
    """Ever coarser partitions into intervals, as the steps between them."""

    @property
    def boundaries(self) -> list[int]:
        """Step t removes the boundary after this cell."""

    @property
    def errors(self) -> list[float]:
        """The reconstruction error before each step, and after the last."""

class Splits:
    """Ever finer partitions into boxes, as the cuts between them."""

    @property
    def errors(self) -> list[float]:
        """The reconstruction error before each cut, and after the last."""

    def label(self, blocks: int, labels: npt.NDArray[np.int64]) -> None:
        """The block of every cell, in the partition of so many blocks."""

def merge_sequence(sorted: npt.NDArray[np.float64]) -> Merges:
    """From single cells, in ascending order of their counts, to one interval; what adds least error goes first."""

def split_sequence(counts: npt.NDArray[np.float64], shape: Sequence[int], most: int, by_mass: bool) -> Splits:
    """From one box to `most`: the cut with the heaviest lighter side, or that takes away most error, goes first."""

def inner_products(vectors: Sequence[npt.NDArray[np.float32]], with_: npt.NDArray[np.float64]) -> list[float]:
    """The inner product of each vector with another one, in one pass over memory."""

def add_combination(
    factors: Sequence[float], vectors: Sequence[npt.NDArray[np.float32]], to: npt.NDArray[np.float64]
) -> None:
    """to += Σ factor · vector, in one pass over memory."""

def contract(
    sizes: Sequence[int],
    inputs: Sequence[npt.NDArray[np.float64]],
    axes: Sequence[Sequence[int]],
    kept: Sequence[int],
    out: npt.NDArray[np.float64],
    logarithms: bool,
) -> None:
    """out[kept] = Σ over all other axes of Π inputs; with `logarithms`, of tables of logarithms."""

def elimination_order(
    sizes: Sequence[float], cliques: Sequence[Sequence[int]], kept: Sequence[int], attempts: int
) -> list[int]:
    """The attributes that are not kept, in the order of least work that so many greedy attempts find."""

def junction_cells(
    sizes: Sequence[float], cliques: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]
) -> list[float]:
    """Cells of the junction tree of the cliques with each candidate added by itself."""
