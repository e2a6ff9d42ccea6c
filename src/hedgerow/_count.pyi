"""Exact counts of many queries over narrow columns of codes (kernels/count).

Columns are C-contiguous uint8, uint16 or uint32 arrays of `rows` codes each; queries name them by their number. A code
that is not below the size that a query declares for it is refused, wherever it lies. Whatever does not fit (shapes,
types, sizes whose product is too large) raises ValueError, TypeError or IndexError before anything is counted.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Codes, IntArray

compiler: str
"""That built the kernel."""
commit: str
"""That it was built from; empty outside of a checkout."""

class Marginal:
    """Row-major cells over `shape`, codes seen through `levels`, cells folded through `blocks` (−1: nowhere)."""

    def __init__(
        self,
        attributes: Sequence[int],
        shape: Sequence[int],
        levels: Sequence[IntArray | None],
        blocks: IntArray | None,
    ) -> None:
        """Columns by number, a size for each, and a map (or None) for each from its codes to levels below that size."""

class Tree:
    """Leaf · label size + label; `split` and `child` as in `hedgerow.coded.query.TreeQuery`."""

    def __init__(
        self,
        attributes: Sequence[int],
        sizes: Sequence[int],
        split: npt.NDArray[np.int32],
        child: IntArray,
        leaves: int,
        label: int | None,
        label_size: int,
    ) -> None:
        """Columns by number with their sizes, the nodes, how many leaves, and the label's column if there is one."""

def count(
    columns: Sequence[Codes], rows: int, queries: Sequence[Marginal | Tree], dense_cells: int, threads: int
) -> list[IntArray | tuple[IntArray, IntArray]]:
    """One answer per query: all counts up to `dense_cells` cells, else occupied cells in order and their counts.

    The answers do not depend on `threads`; shares for which the system gives no thread are counted on this one.
    """

def find_leaves(columns: Sequence[Codes], rows: int, tree: Tree) -> npt.NDArray[np.uint32]:
    """The leaf that each row reaches."""
