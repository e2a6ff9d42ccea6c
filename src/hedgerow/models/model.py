"""What every model can do: answer marginals, draw rows, be written down. Models never see data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.coded.query import MarginalQuery

BLOCK_ROWS = 1 << 20
HELD = "model"
"""Under this name a model's state holds that of a model inside it."""


@dataclass(frozen=True)
class State:
    """A model written down: plain JSON values and plain arrays (no objects)."""

    kind: str
    values: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def held_by(self, kind: str, values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> State:
        """The state of a model that is made of this one and of its own values and arrays."""
        held = {f"{HELD}.{name}": array for name, array in self.arrays.items()}
        return State(kind, {HELD: {"kind": self.kind, "values": self.values}} | values, held | arrays)


class Model(Protocol):
    """A public distribution over the rows of a domain.

    One that is made elsewhere is written down under its own name, `package.module:Class`. Its class method
    `from_state(domain, stored)` makes it again from a `hedgerow.models.stored.Stored`, for readers who allow it.
    """

    kind: str
    """The name under which `hedgerow.models.load` finds this class; `package.module:Class` for one made elsewhere."""

    @property
    def domain(self) -> Domain: ...

    @property
    def total(self) -> float:
        """The estimated number of rows (noisy, at least 1)."""
        ...

    def marginal(self, marginal: Marginal) -> Counts:
        """Expected counts over a marginal, shaped by the attributes' sizes, summing to `total`."""
        ...

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        """Flat expected answers to the queries, in order, sharing work where it can."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        """`rows` rows in random order; a generator in the same state draws the same rows."""
        ...

    def state(self) -> State: ...


class FromMarginals(ABC):
    """A model that answers every query from the marginal of its attributes."""

    @abstractmethod
    def marginal(self, marginal: Marginal) -> Counts:
        """As `Model` has it."""

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (query.aggregate(self.marginal(query.attributes)) for query in queries)


def block_sizes(rows: int) -> Iterator[int]:
    """The sizes of the blocks in which `rows` rows are drawn."""
    for start in range(0, rows, BLOCK_ROWS):
        yield min(BLOCK_ROWS, rows - start)


def block_rng(seed: int, block: int) -> np.random.Generator:
    """The public generator of one block: it depends on the seed and the block's number alone."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, block])))
