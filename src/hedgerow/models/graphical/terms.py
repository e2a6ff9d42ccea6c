"""The least-squares problem that noisy marginals pose to a model: ½ Σ ‖answer − measured‖² / σ².

Everything is in units of the noise: a residual of 1 is one standard deviation. Measurements of the same marginal
are averaged first, each marginal lives on one leaf of the plan that contains it, and the part of the measurements
that no distribution could satisfy (they disagree on their overlaps) is set aside as a constant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Counts, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.models.graphical.junction import Layout, Plan

LEAST_STD = 1e-3
"""Noise below this is treated as this: a count is a whole number, and weights must stay finite."""


@dataclass(frozen=True, eq=False)
class Term:
    """Measured values of one marginal, in the kernel's order; `cells` maps the marginal's cells to measured ones.

    Without `cells` every cell was measured. Cells that count nowhere map to one past the last measured cell.
    """

    axes: tuple[int, ...]
    values: Counts
    precision: float
    cells: IntArray | None = None


class Terms:
    """Measurements against the leaves of a plan, as the optimisers see them: flat vectors, one entry per cell."""

    def __init__(self, plan: Plan, measurements: Sequence[Measurement]):
        terms = _combined([_term(plan.layout, measurement) for measurement in measurements])
        plain = [term for term in terms if term.cells is None]
        self._aggregated = [term for term in terms if term.cells is not None]
        ordered = [*plain, *self._aggregated]
        layout = plan.layout
        self.plan = plan
        self._marginals = _model.Marginals(
            layout.sizes,
            plan.leaves,
            [(_home(plan, term), term.axes) for term in ordered],
            [0.0 if term.cells is not None else term.precision for term in ordered],
            _overlaps([term.axes for term in plain]),
        )
        self._marginal_cells = [layout.cells(term.axes) for term in ordered]
        self._plain_cells = sum(self._marginal_cells[: len(plain)])
        self._tail = np.zeros(sum(self._marginal_cells) - self._plain_cells)
        self.precision = _joined([np.full(len(term.values), term.precision) for term in ordered])
        measured = _joined([term.values * term.precision for term in ordered])
        self.target = self.projected(measured)
        apart = measured - self.target
        self.constant = 0.5 * inner(apart, apart)

    def __len__(self) -> int:
        return len(self.precision)

    def answers(self, marginals: Counts) -> Counts:
        """What the measured queries would return on these leaf marginals (counts), in units of the noise."""
        cells = np.empty(self._plain_cells + len(self._tail))
        self._marginals.gather(marginals, cells)
        if not self._aggregated:
            cells *= self.precision
            return cells
        parts = [cells[: self._plain_cells]]
        for term, counts in zip(self._aggregated, self._tails(cells), strict=True):
            assert term.cells is not None
            sums: Counts = np.bincount(term.cells, weights=counts, minlength=len(term.values)).astype(np.float64)
            parts.append(sums[: len(term.values)])
        return _joined(parts) * self.precision

    def potentials(self, base: Counts, multipliers: Counts, step: float) -> Counts:
        """`base` − step · (what the multipliers of the measured cells say of the leaves' cells)."""
        weighted = multipliers * (-step * self.precision)
        if self._aggregated:
            parts = [weighted[: self._plain_cells]]
            start = self._plain_cells
            for term in self._aggregated:
                assert term.cells is not None
                own = weighted[start : start + len(term.values)]
                parts.append(np.append(own, 0.0)[term.cells])
                start += len(term.values)
            weighted = _joined(parts)
        potentials = base.copy()
        self._marginals.scatter(weighted, potentials)
        return potentials

    def projected(self, values: Counts) -> Counts:
        """The nearest values that agree wherever plain marginals overlap (aggregated ones are left alone)."""
        padded = np.concatenate([values[: self._plain_cells], self._tail])
        self._marginals.project(padded)
        padded = padded[: self._plain_cells]
        return np.concatenate([padded, values[self._plain_cells :]]) if self._aggregated else padded

    def loss(self, answers: Counts) -> float:
        residual = answers - self.target
        return 0.5 * inner(residual, residual) + self.constant

    def scale(self, loss: float) -> float:
        """What a change of the loss is compared with: the loss, or a hundredth of a σ² per cell where that is more."""
        return max(loss, 0.01 * len(self))

    def _tails(self, cells: Counts) -> list[Counts]:
        ends = np.cumsum(self._marginal_cells)[-len(self._aggregated) - 1 :].tolist()
        if len(ends) == len(self._aggregated):
            ends = [0, *ends]
        return [cells[start:end] for start, end in itertools.pairwise(ends)]


def inner(left: Counts, right: Counts) -> float:
    """The inner product, on one thread (a threaded one costs more than it saves at these lengths)."""
    return float(np.einsum("i,i->", left, right))


def _joined(parts: Sequence[Counts]) -> Counts:
    return np.concatenate(parts) if parts else np.empty(0)


def _term(layout: Layout, measurement: Measurement) -> Term:
    query = measurement.query
    if not isinstance(query, MarginalQuery):
        raise HedgerowError(
            "not-a-marginal-query", f"a graphical model answers marginal queries; {query!r} is not one."
        )
    axes = layout.axes(query.attributes)
    if layout.domain.shape(query.attributes) != query.base_shape:
        raise HedgerowError("another-domain", f"{query!r} was made for another domain than the model's.")
    precision = 1 / max(measurement.std, LEAST_STD)
    values = measurement.dense()
    if query.blocks is None and all(level is None for level in query.levels):
        return Term(axes, layout.stored(values, query.attributes), precision)
    cells: IntArray = np.zeros(query.base_shape, dtype=np.int64)
    for axis, (size, level) in enumerate(zip(query.shape, query.levels, strict=True)):
        codes = np.arange(size) if level is None else level
        cells = cells * size + codes.reshape([-1 if index == axis else 1 for index in range(cells.ndim)])
    if query.blocks is not None:
        blocks = query.blocks[cells]
        cells = np.where(blocks < 0, query.cells, blocks)
    order = np.argsort([layout.rank(name) for name in query.attributes])
    return Term(axes, values, precision, np.ascontiguousarray(cells.transpose(order)).reshape(-1))


def _combined(terms: Sequence[Term]) -> list[Term]:
    """Several measurements of the same marginal become their inverse-variance average."""
    same: dict[tuple[tuple[int, ...], bytes | None], list[Term]] = {}
    for term in terms:
        if term.axes:
            same.setdefault((term.axes, None if term.cells is None else term.cells.tobytes()), []).append(term)
    return [_average(group) for group in same.values()]


def _average(terms: list[Term]) -> Term:
    if len(terms) == 1:
        return terms[0]
    squares = [term.precision**2 for term in terms]
    values = sum((square * term.values for square, term in zip(squares, terms, strict=True)), np.zeros(1))
    return Term(terms[0].axes, values / sum(squares), math.sqrt(sum(squares)), terms[0].cells)


def _home(plan: Plan, term: Term) -> int:
    home = plan.home(term.axes)
    if home is None:
        names = " × ".join(plan.layout.marginal(term.axes))
        raise HedgerowError("no-clique", f"no clique of the model contains the measured marginal {names}.")
    return home


def _overlaps(marginals: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every intersection of two or more of the marginals, smallest first."""
    found = _intersections([frozenset(axes) for axes in marginals])
    while True:
        more = _intersections(list(found)) - found
        if not more:
            return sorted((tuple(sorted(overlap)) for overlap in found), key=lambda axes: (len(axes), axes))
        found |= more


def _intersections(sets: Sequence[frozenset[int]]) -> set[frozenset[int]]:
    """Of every two; those that share nothing are not looked at one by one."""
    found: set[frozenset[int]] = set()
    having: dict[int, list[int]] = {}
    for index, own in enumerate(sets):
        near = {other for axis in own for other in having.get(axis, ())}
        found |= {own & sets[other] for other in near}
        if len(near) < index:
            found.add(frozenset())
        for axis in own:
            having.setdefault(axis, []).append(index)
    return found
