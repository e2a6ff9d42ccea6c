"""Exact answers, sealed: no repr, no array interface, no pickle, no way out except through `opened`.

Only the private side imports this module (an import contract keeps it so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

import numpy as np

from hedgerow.coded.domain import IntArray
from hedgerow.coded.query import InteractionQuery

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class SparseCounts:
    """Counts of the occupied cells alone: sorted cell numbers, and how many rows reach each."""

    cells: IntArray
    counts: IntArray


ExactCounts = IntArray | SparseCounts
"""Dense int64 counts of every cell where that fits, otherwise sparse."""


class Exact(Generic[T]):
    """A value computed from private rows."""

    __slots__ = ("__value",)

    def __init__(self, value: T):
        self.__value = value

    def opened(self) -> T:
        """The value, for the code that is about to add noise to it."""
        return self.__value

    def __repr__(self) -> str:
        return "Exact(sealed)"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("exact answers stay on the private side; measure them instead.")

    __reduce__ = __reduce_ex__ = __getstate__ = __array__ = __iter__ = __len__ = _refuse
    __bool__ = __eq__ = __hash__ = __float__ = __int__ = __index__ = _refuse


def summed(counts: Exact[ExactCounts], sums: Sequence[IntArray]) -> Exact[IntArray]:
    """Σ value · count over all cells, for each of some values of the cells."""
    held = counts.opened()
    if isinstance(held, SparseCounts):
        return Exact(np.array([int(values[held.cells] @ held.counts) for values in sums], dtype=np.int64))
    return Exact(np.array([int(values @ held) for values in sums], dtype=np.int64))


def combined(counts: Exact[ExactCounts], query: InteractionQuery) -> Exact[IntArray]:
    """Whole-number combinations of counts, attribute by attribute."""
    held = counts.opened()
    if isinstance(held, SparseCounts):
        dense: IntArray = np.zeros(query.counted.cells, dtype=np.int64)
        dense[held.cells] = held.counts
        held = dense
    return Exact(query.combined(held))
