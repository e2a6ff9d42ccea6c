"""Independent histograms: each part is a distribution over its own attributes, parts know nothing of each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.conditioning import Factor, Given, TooRareError, combinations, only
from hedgerow.models.model import FromMarginals, State
from hedgerow.models.stored import MOST_CELLS, Stored


@dataclass(frozen=True, eq=False)
class Part:
    """Weights of a marginal's cells: of every cell in row-major order, or of the listed `cells` alone."""

    marginal: Marginal
    weights: Counts
    cells: IntArray | None = None

    def codes(self, domain: Domain) -> dict[str, IntArray]:
        """The codes of each weight's cell."""
        cells = np.arange(len(self.weights)) if self.cells is None else self.cells
        return dict(zip(self.marginal, np.unravel_index(cells, domain.shape(self.marginal)), strict=True))


class Histograms(FromMarginals):
    """The product of disjoint histograms that together cover the domain."""

    kind = "histograms"

    def __init__(self, domain: Domain, parts: Sequence[Part], total: float):
        covered = [name for part in parts for name in part.marginal]
        if sorted(covered) != sorted(domain.names):
            raise HedgerowError(
                "histogram-parts", "the parts of a histogram model must cover each attribute exactly once."
            )
        for part in parts:
            cells = domain.cells(part.marginal) if part.cells is None else len(part.cells)
            if len(part.weights) != cells:
                what = " × ".join(part.marginal)
                raise HedgerowError(
                    "histogram-length", f"the histogram of {what} has {len(part.weights)} weights for {cells} cells."
                )
            if part.weights.size == 0 or part.weights.min() < 0 or part.weights.sum() <= 0:
                raise HedgerowError(
                    "histogram-mass", f"the histogram of {' × '.join(part.marginal)} has no mass, or negative mass."
                )
        self.domain = domain
        self.parts = tuple(parts)
        self.total = max(1.0, total)

    def marginal(self, marginal: Marginal) -> Counts:
        density = np.ones(())
        axes: list[str] = []
        for part in self.parts:
            wanted = tuple(name for name in part.marginal if name in marginal)
            if wanted:
                density = np.multiply.outer(density, self._density(part, wanted))
                axes += wanted
        return self.total * np.transpose(density, [axes.index(name) for name in marginal])

    def _density(self, part: Part, wanted: Marginal) -> Counts:
        shape = self.domain.shape(part.marginal)
        weights = part.weights / part.weights.sum()
        keep = [index for index, name in enumerate(part.marginal) if name in wanted]
        codes = part.codes(self.domain)
        kept_shape = tuple(shape[index] for index in keep)
        flat = np.ravel_multi_index([codes[part.marginal[index]] for index in keep], kept_shape)
        density = np.zeros(math.prod(kept_shape))
        np.add.at(density, flat, weights)
        return density.reshape(kept_shape)

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        table: CodedTable = {}
        for part in self.parts:
            drawn = np.repeat(np.arange(len(part.weights)), systematic(part.weights, rows, rng))
            rng.shuffle(drawn)
            cells = drawn if part.cells is None else part.cells[drawn]
            codes = np.unravel_index(cells, self.domain.shape(part.marginal))
            for name, code in zip(part.marginal, codes, strict=True):
                table[name] = code.astype(self.domain[name].dtype)
        return {name: table[name] for name in self.domain.names}

    def given(self, factors: Sequence[Factor]) -> Given:
        """A factor inside a part changes its weights; one that spans several parts is left."""
        parts, share = list(self.parts), 1.0
        left = []
        for factor in factors:
            home = next((n for n, part in enumerate(parts) if set(factor.marginal) <= set(part.marginal)), None)
            if home is None:
                left.append(factor)
                continue
            part = parts[home]
            weights = part.weights * factor.of(part.codes(self.domain))
            share *= float(weights.sum() / part.weights.sum())
            if not share:
                return Given(self, 0.0)
            parts[home] = replace(part, weights=weights)
        return Given(Histograms(self.domain, parts, self.total), share, left)

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """Part by part: what is fixed in one says nothing about another."""
        rows = len(next(iter(fixed.values())))
        table: CodedTable = {}
        for part in self.parts:
            alone = Histograms(Domain(self.domain[name] for name in part.marginal), [part], self.total)
            here = {name: fixed[name] for name in part.marginal if name in fixed}
            if not here:
                table |= alone.draw(rows, rng)
                continue
            table |= {name: np.zeros(rows, dtype=self.domain[name].dtype) for name in part.marginal}
            for codes, where in combinations(here):
                found = alone.given([only(alone.domain, name, code) for name, code in codes.items()])
                if not found.possible:
                    raise TooRareError(where)
                for name, drawn in found.model.draw(len(where), rng).items():
                    table[name][where] = drawn
        return {name: table[name] for name in self.domain.names}

    def state(self) -> State:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, part in enumerate(self.parts):
            arrays[f"weights{number}"] = part.weights
            if part.cells is not None:
                arrays[f"cells{number}"] = part.cells
        values = {"total": self.total, "marginals": [list(part.marginal) for part in self.parts]}
        return State(self.kind, values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Histograms:
        parts = [_part(domain, stored, *each) for each in enumerate(stored.marginals("marginals", domain))]
        return cls(domain, parts, stored.total())


def _part(domain: Domain, stored: Stored, number: int, marginal: Marginal) -> Part:
    shape, every = stored.shape(domain, marginal), domain.cells(marginal)
    cells: IntArray | None = None
    if stored.has(f"cells{number}"):
        if every > MOST_CELLS:
            raise ReleaseError(
                "model-histogram-cells", f"a histogram of the release is over more than {MOST_CELLS:,} cells."
            )
        cells = stored.integers(f"cells{number}", (None,), 0, every - 1)
    listed = every if cells is None else len(cells)
    stored.take(memory=8 * listed * (len(shape) + 8), steps=20 * listed * (len(shape) + 1), rows=4 * len(shape))
    return Part(marginal, stored.weights(f"weights{number}", (listed,)), cells)


def systematic(weights: Counts, rows: int, rng: np.random.Generator) -> IntArray:
    """How many of `rows` rows each cell gets: its expectation rounded up or down, with the right mean.

    One uniform offset for all cells (systematic sampling): far less variance than independent draws.
    """
    ends = np.cumsum(weights)
    ends *= rows / ends[-1]
    ends[-1] = rows
    steps = np.floor(ends + rng.random())
    steps[-1] = rows
    return np.diff(steps, prepend=0.0).astype(np.int64)


def project_to_simplex(values: Counts, total: float) -> Counts:
    """The nearest non-negative vector (in L2) that sums to `total`."""
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(descending > excess)[-1]
    nearest: Counts = np.maximum(values - excess[last], 0.0)
    return nearest
