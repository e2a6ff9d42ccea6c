from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

class Network:
    def __init__(
        self,
        sizes: Sequence[int],
        leaves: Sequence[Sequence[int]],
        buckets: Sequence[tuple[Sequence[int], Sequence[int]]],
    ) -> None: ...
    def calibrate(self, potentials: npt.NDArray[np.float64], marginals: npt.NDArray[np.float64]) -> float: ...
    def draw(
        self,
        columns: Sequence[npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]],
        words: Sequence[int],
        systematic: bool,
    ) -> None: ...
    def value(self, tensor: int, /) -> npt.NDArray[np.float64]: ...
    def ratio(self, message: int, /) -> npt.NDArray[np.float64]: ...
    @property
    def logarithms(self) -> bool: ...

class Blocks:
    def __init__(
        self,
        sizes: Sequence[int],
        leaves: Sequence[Sequence[int]],
        blocks: Sequence[tuple[int, Sequence[int]]],
        precisions: Sequence[float],
        overlaps: Sequence[Sequence[int]],
    ) -> None: ...
    def gather(self, marginals: npt.NDArray[np.float64], out: npt.NDArray[np.float64]) -> None: ...
    def scatter(self, values: npt.NDArray[np.float64], leaves: npt.NDArray[np.float64]) -> None: ...
    def project(self, values: npt.NDArray[np.float64]) -> None: ...

def inner_products(vectors: Sequence[npt.NDArray[np.float32]], with_: npt.NDArray[np.float64]) -> list[float]: ...
def add_combination(
    factors: Sequence[float], vectors: Sequence[npt.NDArray[np.float32]], to: npt.NDArray[np.float64]
) -> None: ...
def contract(
    sizes: Sequence[int],
    inputs: Sequence[npt.NDArray[np.float64]],
    axes: Sequence[Sequence[int]],
    kept: Sequence[int],
    out: npt.NDArray[np.float64],
    logarithms: bool,
) -> None: ...
def elimination_order(
    sizes: Sequence[float], cliques: Sequence[Sequence[int]], kept: Sequence[int], attempts: int
) -> list[int]: ...
def junction_cells(
    sizes: Sequence[float], cliques: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]
) -> list[float]: ...
