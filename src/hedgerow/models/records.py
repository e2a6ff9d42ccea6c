"""Rows that are updated until their marginals match: a model for marginals too many for a graphical model.

Zhang et al. (2021), "PrivSyn: Differentially private data synthesis", USENIX Security, §5: the gradual update method.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow import _records
from hedgerow.coded.domain import CodedTable, Codes, Counts, Domain, Marginal
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.conditioning import Factor, Given, completed, given
from hedgerow.models.histograms import systematic
from hedgerow.models.model import FromMarginals, Model, State
from hedgerow.models.stored import Stored

ITERATIONS = 61
DECAY = 0.84
STRIDE = 20
"""The step size is DECAY to the power ⌊iteration / STRIDE⌋, the schedule that the authors found best."""
EXCHANGES = 20
"""Partners tried afterwards for every row and attribute: two rows exchange values where all targets together gain."""
SLICE = 1 << 16
FEWEST_EXCHANGES = 5
"""Rows of a model are adjusted in slices that stay in the processor's caches; where there are many slices, exchanges
are fewer."""
RARE = 1 / 64
"""Of rows that are a smaller share than this, exchanges are given up: most of what they need would be thrown away."""
REFERENCE_ROWS = 1 << 16
"""Rows at most from which the model answers marginals."""
MOST_TARGET_CELLS = 1 << 31
"""Cells of all targets together: the kernel numbers them in 32 bits."""


@dataclass(frozen=True, eq=False)
class Target:
    """The wanted distribution of a marginal: shares, shaped by its attributes."""

    marginal: Marginal
    shares: Counts

    @classmethod
    def of(cls, marginal: Marginal, counts: Counts) -> Target:
        """From non-negative counts."""
        return cls(marginal, counts / counts.sum())


class FromRows(FromMarginals):
    """Marginals of rows that are drawn once."""

    @property
    @abstractmethod
    def domain(self) -> Domain: ...

    @property
    @abstractmethod
    def total(self) -> float: ...

    @abstractmethod
    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable: ...

    @cached_property
    def _reference(self) -> CodedTable:
        """The rows that speak for the model, the same each time they are drawn."""
        rows = int(min(REFERENCE_ROWS, max(1.0, round(self.total))))
        return self.draw(rows, np.random.Generator(np.random.Philox(np.random.SeedSequence(0))))

    def marginal(self, marginal: Marginal) -> Counts:
        return self.total * shares_of(self._reference, self.domain, marginal)


class Records(FromRows):
    """Every draw makes rows afresh: columns from the targets' one-way shares, gradual updates, exchanges.

    So any number of rows comes from the stored targets. The update settles one marginal at a time and disturbs the
    others; the exchanges look at all of them at once, and are what brings many overlapping targets together.
    """

    kind = "records"
    exchanges = EXCHANGES

    def __init__(self, domain: Domain, targets: Sequence[Target], total: float):
        _check(domain, targets)
        self._domain = domain
        self.targets = tuple(targets)
        self._total = max(1.0, total)

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def total(self) -> float:
        return self._total

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        return self.made(rows, rng, ITERATIONS, self.exchanges)

    def made(self, rows: int, rng: np.random.Generator, iterations: int, exchanges: int) -> CodedTable:
        """Rows after so many updates and exchanges; without any, columns by themselves."""
        columns = {attribute.name: self._start(attribute.name, rows, rng) for attribute in self.domain}
        updated(columns, self.domain, self.targets, iterations, exchanges, rng)
        order = rng.permutation(rows)
        return {name: columns[name][order].astype(self.domain[name].dtype) for name in self.domain.names}

    def _start(self, name: str, rows: int, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """A column by itself, from the smallest target that holds it; uniform where none does."""
        holding = [target for target in self.targets if name in target.marginal]
        shares = np.ones(self.domain[name].size)
        if holding:
            smallest = min(holding, key=lambda target: target.shares.size)
            others = tuple(axis for axis, other in enumerate(smallest.marginal) if other != name)
            shares = smallest.shares.sum(axis=others)
        codes = np.repeat(np.arange(len(shares), dtype=np.uint32), systematic(shares, rows, rng))
        rng.shuffle(codes)
        return codes

    def state(self) -> State:
        values = {"total": self.total, "marginals": [list(target.marginal) for target in self.targets]}
        return State(self.kind, values, _arrays(self.targets))

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Records:
        targets = read_targets(domain, stored)
        held = sum(len(target.marginal) for target in targets)
        cells = sum(target.shares.size for target in targets)
        codes = sum(attribute.size for attribute in domain)
        # every iteration counts every target twice and shares out its cells by bisection
        stored.take(memory=16 * codes, steps=20 * codes + 120 * ITERATIONS * cells, rows=6 * ITERATIONS * held)
        stored.take(rows=cls.exchanges * (len(domain) + 4 * held))
        return cls(domain, targets, stored.total())


class Updated(Records):
    """The gradual update alone, as PrivSyn has it."""

    kind = "updated"
    exchanges = 0


class Adjusted(FromRows):
    """Rows of another model, after exchanges of single values that bring them closer to targets it does not hold.

    An exchange leaves every column as it was. The targets should hold what the model itself knows of relations, too:
    exchanges care for nothing else.
    """

    kind = "adjusted"

    def __init__(self, model: Model, targets: Sequence[Target]):
        _check(model.domain, targets)
        self.model = model
        self.targets = tuple(targets)

    @property
    def domain(self) -> Domain:
        return self.model.domain

    @property
    def total(self) -> float:
        return self.model.total

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        drawn = self.model.draw(rows, rng)
        exchanges = max(FEWEST_EXCHANGES, EXCHANGES * SLICE // max(SLICE, rows))
        for begin in range(0, rows, SLICE):
            part = {name: drawn[name][begin : begin + SLICE].astype(np.uint32) for name in self.domain.names}
            updated(part, self.domain, self.targets, 0, exchanges, rng)
            for name, codes in part.items():
                drawn[name][begin : begin + SLICE] = codes
        return drawn

    def given(self, factors: Sequence[Factor]) -> Given:
        """Rows are exchanged with all others, so what is asked for is chosen among them afterwards; unless it is rare:
        then it comes from the model inside, as that was before the exchanges."""
        inside = given(self.model, factors)
        return inside if inside.share < RARE else Given(self, 1.0, list(factors))

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """By the model inside: rows whose values are given cannot exchange them."""
        return completed(self.model, fixed, {}, len(next(iter(fixed.values()))), rng)

    def state(self) -> State:
        values = {"marginals": [list(target.marginal) for target in self.targets]}
        return self.model.state().held_by(self.kind, values, _arrays(self.targets))

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Adjusted:
        from hedgerow.models import read

        targets = read_targets(domain, stored)
        held = sum(len(target.marginal) for target in targets)
        stored.take(rows=EXCHANGES * (len(domain) + 4 * held))
        return cls(read(domain, stored.held()), targets)


Columns = dict[str, np.ndarray[tuple[int], np.dtype[np.uint32]]]


def updated(
    columns: Columns,
    domain: Domain,
    targets: Sequence[Target],
    iterations: int,
    exchanges: int,
    rng: np.random.Generator,
) -> None:
    """Bring rows closer to the targets, in place: so many gradual updates, then exchanges."""
    _records.update(
        [columns[name] for name in domain.names],
        [attribute.size for attribute in domain],
        *kernel_targets(domain, targets),
        iterations,
        DECAY,
        STRIDE,
        exchanges,
        words(rng),
    )


def _check(domain: Domain, targets: Sequence[Target]) -> None:
    for target in targets:
        if target.shares.shape != domain.shape(target.marginal):
            raise HedgerowError(
                "bad-target", f"the target of {' × '.join(target.marginal)} has another shape than its cells."
            )
        if target.shares.min() < 0 or not np.isclose(target.shares.sum(), 1.0):
            raise HedgerowError("bad-target", f"the target of {' × '.join(target.marginal)} is no distribution.")


def _arrays(targets: Sequence[Target]) -> dict[str, npt.NDArray[Any]]:
    return {f"shares{number}": target.shares for number, target in enumerate(targets)}


def read_targets(domain: Domain, stored: Stored) -> list[Target]:
    """The targets that a state holds."""
    marginals = stored.marginals("marginals", domain)
    targets = [Target(each, stored.shares(f"shares{number}", domain, each)) for number, each in enumerate(marginals)]
    cells = sum(target.shares.size for target in targets)
    if cells > MOST_TARGET_CELLS:
        raise ReleaseError(
            "model-target-cells", f"the targets of the release have more than {MOST_TARGET_CELLS:,} cells."
        )
    stored.take(memory=48 * cells, steps=20 * cells)
    return targets


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
    """Targets as the kernel takes them: indices of attributes, and flat shares."""
    indices = [[domain.index(name) for name in target.marginal] for target in targets]
    return indices, [np.ascontiguousarray(target.shares, dtype=np.float64).reshape(-1) for target in targets]


def words(rng: np.random.Generator) -> list[int]:
    """Four words to start the kernel's own generator with."""
    drawn: list[int] = rng.integers(1, 2**64, size=4, dtype=np.uint64).tolist()
    return drawn
