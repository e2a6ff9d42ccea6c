from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
) -> None: ...

class Selection:
    def __init__(
        self,
        columns: Sequence[npt.NDArray[np.uint32]],
        sizes: Sequence[int],
        marginals: Sequence[Sequence[int]],
        shares: Sequence[npt.NDArray[np.float64]],
        weights: Sequence[float],
    ) -> None: ...
    def choose(
        self, chosen: npt.NDArray[np.int64], first: int, candidates: int, sweeps: int, words: Sequence[int]
    ) -> None: ...
