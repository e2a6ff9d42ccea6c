"""Exact counts of many queries over narrow columns of codes (kernels/count.cpp).

Columns are C-contiguous uint8, uint16 or uint32 arrays of `rows` codes each; queries name them by place. Every code
must be below the size that a query declares for it: `hedgerow.private.engines.arrow` checks that once, when it encodes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Codes, IntArray

class Marginal:
    """Row-major cells over `shape`, codes seen through `levels`, cells folded through `blocks` (−1: nowhere)."""

    def __init__(
        self,
        places: Sequence[int],
        shape: Sequence[int],
        levels: Sequence[IntArray | None],
        blocks: IntArray | None,
    ) -> None: ...

class Tree:
    """Leaf · label size + label; `split` and `child` as in `hedgerow.coded.query.TreeQuery`."""

    def __init__(
        self,
        places: Sequence[int],
        sizes: Sequence[int],
        split: npt.NDArray[np.int32],
        child: IntArray,
        leaves: int,
        label: int | None,
        label_size: int,
    ) -> None: ...

def count(
    columns: Sequence[Codes], rows: int, queries: Sequence[Marginal | Tree], dense_cells: int, threads: int
) -> list[IntArray | tuple[IntArray, IntArray]]:
    """One answer per query: all counts up to `dense_cells` cells, else occupied cells in order and their counts."""

def find_leaves(columns: Sequence[Codes], rows: int, tree: Tree) -> npt.NDArray[np.uint32]:
    """The leaf that each row reaches."""
