"""Rows that are updated until their marginals match: a model for marginals too many for a graphical model.

Zhang et al. (2021), "PrivSyn: Differentially private data synthesis", USENIX Security, §5: the gradual update method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow import _records
from hedgerow.domain import CodedTable, Codes, Counts, Domain, Marginal
from hedgerow.errors import HedgerowError
from hedgerow.models.histograms import systematic
from hedgerow.models.model import State
from hedgerow.query import MarginalQuery

ITERATIONS = 61
DECAY = 0.84
STRIDE = 20
"""The step size is DECAY to the power ⌊iteration / STRIDE⌋, the schedule that the authors found best."""
EXCHANGES = 20
"""Partners tried afterwards for every row and attribute: two rows exchange values where all targets together gain."""
REFERENCE_ROWS = 1 << 16
"""Rows at most from which the model answers marginals."""


@dataclass(frozen=True, eq=False)
class Target:
    """The wanted distribution of a marginal: shares, shaped by its attributes."""

    marginal: Marginal
    shares: Counts

    @classmethod
    def of(cls, marginal: Marginal, counts: Counts) -> Target:
        """From non-negative counts."""
        return cls(marginal, counts / counts.sum())


class Records:
    """Every draw makes rows afresh: columns from the targets' one-way shares, gradual updates, exchanges.

    So any number of rows comes from the stored targets. The update settles one marginal at a time and disturbs the
    others; the exchanges look at all of them at once, and are what brings many overlapping targets together.
    """

    kind = "records"

    def __init__(self, domain: Domain, targets: Sequence[Target], total: float):
        for target in targets:
            if target.shares.shape != domain.shape(target.marginal):
                raise HedgerowError(f"the target of {' × '.join(target.marginal)} has another shape than its cells.")
            if target.shares.min() < 0 or not np.isclose(target.shares.sum(), 1.0):
                raise HedgerowError(f"the target of {' × '.join(target.marginal)} is no distribution.")
        self.domain = domain
        self.targets = tuple(targets)
        self.total = max(1.0, total)

    def draw(self, rows: int, coins: np.random.Generator) -> CodedTable:
        columns = {attribute.name: self._start(attribute.name, rows, coins) for attribute in self.domain}
        _records.update(
            list(columns.values()),
            [attribute.size for attribute in self.domain],
            *kernel_targets(self.domain, self.targets),
            ITERATIONS,
            DECAY,
            STRIDE,
            EXCHANGES,
            words(coins),
        )
        order = coins.permutation(rows)
        return {name: columns[name][order].astype(self.domain[name].dtype) for name in self.domain.names}

    def _start(self, name: str, rows: int, coins: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """A column by itself, from the smallest target that holds it; uniform where none does."""
        holding = [target for target in self.targets if name in target.marginal]
        shares = np.ones(self.domain[name].size)
        if holding:
            smallest = min(holding, key=lambda target: target.shares.size)
            others = tuple(axis for axis, other in enumerate(smallest.marginal) if other != name)
            shares = smallest.shares.sum(axis=others)
        codes = np.repeat(np.arange(len(shares), dtype=np.uint32), systematic(shares, rows, coins))
        coins.shuffle(codes)
        return codes

    @cached_property
    def _reference(self) -> CodedTable:
        """The rows that speak for the model, the same on every machine."""
        rows = int(min(REFERENCE_ROWS, max(1.0, round(self.total))))
        return self.draw(rows, np.random.Generator(np.random.Philox(np.random.SeedSequence(0))))

    def marginal(self, marginal: Marginal) -> Counts:
        return self.total * shares_of(self._reference, self.domain, marginal)

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (query.aggregate(self.marginal(query.attributes)) for query in queries)

    def state(self) -> State:
        values = {"total": self.total, "marginals": [list(target.marginal) for target in self.targets]}
        return State(self.kind, values, {f"shares{n}": target.shares for n, target in enumerate(self.targets)})

    @classmethod
    def from_state(cls, domain: Domain, state: State) -> Records:
        marginals = [tuple(marginal) for marginal in state.values["marginals"]]
        targets = [Target(marginal, state.arrays[f"shares{number}"]) for number, marginal in enumerate(marginals)]
        return cls(domain, targets, state.values["total"])


def shares_of(rows: Mapping[str, Codes], domain: Domain, marginal: Marginal) -> Counts:
    """The distribution of a marginal among rows, shaped by its attributes."""
    count = len(next(iter(rows.values())))
    cells = np.zeros(count, dtype=np.int64)
    for name in marginal:
        cells = cells * domain[name].size + rows[name]
    counted = np.bincount(cells, minlength=domain.cells(marginal)).reshape(domain.shape(marginal))
    shares: Counts = counted / count
    return shares


def kernel_targets(domain: Domain, targets: Sequence[Target]) -> tuple[list[list[int]], list[Counts]]:
    """Targets as the kernel takes them: places of attributes, and flat shares."""
    places = [[domain.place(name) for name in target.marginal] for target in targets]
    return places, [np.ascontiguousarray(target.shares, dtype=np.float64).reshape(-1) for target in targets]


def words(coins: np.random.Generator) -> list[int]:
    """Four words to start the kernel's own coins with."""
    drawn: list[int] = coins.integers(1, 2**64, size=4, dtype=np.uint64).tolist()
    return drawn
