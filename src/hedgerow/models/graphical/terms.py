"""The least-squares problem that noisy marginals pose to a model: ½ Σ ‖answer − measured‖² / σ².

Everything is in units of the noise: a residual of 1 is one standard deviation. Measurements of the same marginal
are averaged first, each marginal lives on one leaf of the plan that contains it, and the part of the measurements
that no distribution could satisfy (they disagree on their overlaps) is set aside as a constant. What was measured of a
marginal is its cells, sums of cells over blocks, or any linear map of them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Counts, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.models.graphical.junction import Layout, Plan
from hedgerow.models.graphical.noisy import Noisy

LEAST_STD = 1e-3
"""Noise below this is treated as this: a count is a whole number, and weights must stay finite."""
SINGULAR = 1e-9
"""Of the largest singular value: a direction that a combination of counts does not tell."""
MOST_ROTATED, MOST_DENSE = 1024, 1 << 24
"""Queries or cells, and entries of the matrix, up to which linear queries are rotated: seconds, and some hundred MB."""


class Blocks:
    """Sums over blocks of cells. Cells that count nowhere map to one past the last block."""

    def __init__(self, blocks: IntArray, count: int):
        self._blocks = blocks
        self._count = count
        self.key: object = hashlib.blake2b(blocks.tobytes(), digest_size=16).digest()

    def sums(self, counts: Counts) -> Counts:
        sums: Counts = np.bincount(self._blocks, weights=counts, minlength=self._count).astype(np.float64)
        return sums[: self._count]

    def spread(self, multipliers: Counts) -> Counts:
        """The transpose of `sums`."""
        return np.append(multipliers, 0.0)[self._blocks]

    squared_sums = sums
    """Of weights that are 0 and 1, squared."""


class Linear:
    """A linear map of cells: a matrix, dense or sparse, with a row for each measured number."""

    def __init__(self, matrix: Any):
        self._matrix = matrix
        self._squares = matrix * matrix if isinstance(matrix, np.ndarray) else matrix.multiply(matrix).tocsr()
        self.key: object = object()

    def sums(self, counts: Counts) -> Counts:
        found: Counts = self._matrix @ counts
        return found

    def spread(self, multipliers: Counts) -> Counts:
        """The transpose of `sums`."""
        found: Counts = self._matrix.T @ multipliers
        return found

    def squared_sums(self, counts: Counts) -> Counts:
        """Σ weight² · count: what curves the dual along each measured number."""
        found: Counts = self._squares @ counts
        return found


class Interaction:
    """A matrix for each axis, applied one after the other; without one, counts less their mean along the axis."""

    def __init__(self, shape: tuple[int, ...], matrices: Sequence[Counts | None]):
        self._shape = shape
        self._matrices = list(matrices)
        self._squares = [
            (1 - 2 / size) * np.eye(size) + 1 / size**2 if matrix is None else matrix**2
            for matrix, size in zip(matrices, shape, strict=True)
        ]
        self.key: object = object()

    def sums(self, counts: Counts) -> Counts:
        return _along(counts.reshape(self._shape), self._matrices)

    def spread(self, multipliers: Counts) -> Counts:
        """The transpose of `sums`."""
        sizes = [
            size if matrix is None else len(matrix) for matrix, size in zip(self._matrices, self._shape, strict=True)
        ]
        turned = [None if matrix is None else matrix.T for matrix in self._matrices]
        return _along(multipliers.reshape(sizes), turned)

    def squared_sums(self, counts: Counts) -> Counts:
        """Σ weight² · count."""
        return _along(counts.reshape(self._shape), self._squares)


def _along(table: Counts, matrices: Sequence[Counts | None]) -> Counts:
    for axis, matrix in enumerate(matrices):
        if matrix is None:
            table = table - table.mean(axis=axis, keepdims=True)
        else:
            table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return np.ascontiguousarray(table).reshape(-1)


Key = tuple[tuple[int, ...], object]
Said = Mapping[Key, Counts]
"""What each term of a search adds to the potentials, cell by measured cell."""


@dataclass(frozen=True, eq=False)
class Term:
    """Measured values of one marginal, whose cells stand in the kernel's order; without a `map` every cell was."""

    axes: tuple[int, ...]
    values: Counts
    precision: float | Counts
    map: Blocks | Linear | Interaction | None = None
    constant: float = 0.0
    """What no counts could explain of the values, ½ Σ residual², set aside beforehand."""

    @property
    def key(self) -> Key:
        """What was measured: terms of one domain that measure the same have the same."""
        return self.axes, None if self.map is None else self.map.key


class Terms:
    """Measurements against the leaves of a plan, as the optimisers see them: flat vectors, one entry per cell."""

    def __init__(self, plan: Plan, measurements: Sequence[Measurement | Noisy]):
        terms = _combined([_term(plan.layout, measurement) for measurement in measurements])
        plain = [term for term in terms if term.map is None]
        self._mapped = [(term.map, len(term.values)) for term in terms if term.map is not None]
        ordered = [*plain, *(term for term in terms if term.map is not None)]
        self._keys = [term.key for term in ordered]
        self._ends = np.cumsum([len(term.values) for term in ordered]).tolist()
        layout = plan.layout
        self.plan = plan
        self._marginals = _model.Marginals(
            layout.sizes,
            plan.leaves,
            [(_home(plan, term), term.axes) for term in ordered],
            [float(term.precision) if term.map is None else 0.0 for term in ordered],
            _overlaps([term.axes for term in plain]),
        )
        self._marginal_cells = [layout.cells(term.axes) for term in ordered]
        self._plain_cells = sum(self._marginal_cells[: len(plain)])
        self._tail = np.zeros(sum(self._marginal_cells) - self._plain_cells)
        self.precision = _joined([np.full(len(term.values), term.precision) for term in ordered])
        measured = _joined([term.values * term.precision for term in ordered])
        self.target = self.projected(measured)
        apart = measured - self.target
        self.constant = 0.5 * inner(apart, apart) + sum(term.constant for term in ordered)

    def __len__(self) -> int:
        return len(self.precision)

    def answers(self, marginals: Counts) -> Counts:
        """What the measured queries would return on these leaf marginals (counts), in units of the noise."""
        cells = self._cells(marginals)
        if not self._mapped:
            cells *= self.precision
            return cells
        sums = [by.sums(counts) for (by, _), counts in zip(self._mapped, self._tails(cells), strict=True)]
        return _joined([cells[: self._plain_cells], *sums]) * self.precision

    def curvature(self, probabilities: Counts, total: float, answers: Counts) -> Counts:
        """Σ weight² · count of every measured number, in units of its noise: the answers, but for linear maps."""
        if all(isinstance(by, Blocks) for by, _ in self._mapped):
            return answers
        tails = zip(self._mapped, self._tails(self._cells(probabilities)), strict=True)
        sums = _joined([by.squared_sums(counts) for (by, _), counts in tails])
        return np.concatenate([answers[: self._plain_cells], total * sums * self.precision[self._plain_cells :]])

    def _cells(self, marginals: Counts) -> Counts:
        cells = np.empty(self._plain_cells + len(self._tail))
        self._marginals.gather(marginals, cells)
        return cells

    def potentials(self, base: Counts, multipliers: Counts, step: float) -> Counts:
        """`base` − step · (what the multipliers of the measured cells say of the leaves' cells)."""
        weighted = multipliers * (-step * self.precision)
        if self._mapped:
            parts = [weighted[: self._plain_cells]]
            start = self._plain_cells
            for by, count in self._mapped:
                parts.append(by.spread(weighted[start : start + count]))
                start += count
            weighted = _joined(parts)
        potentials = base.copy()
        self._marginals.scatter(weighted, potentials)
        return potentials

    def said(self, multipliers: Counts, step: float) -> Said:
        """What `potentials` adds for each term, for a search among more terms to begin with."""
        weighted = multipliers * (step * self.precision)
        return {key: weighted[start:end] for key, start, end in self._parts()}

    def multipliers(self, said: Said, step: float) -> Counts:
        """The multipliers by which `potentials` adds the same; 0 for terms of which nothing was said."""
        found = np.zeros(len(self))
        for key, start, end in self._parts():
            if key in said:
                found[start:end] = said[key]
        return self.projected(found / (step * self.precision))

    def _parts(self) -> Iterator[tuple[Key, int, int]]:
        return zip(self._keys, [0, *self._ends], self._ends, strict=False)

    def projected(self, values: Counts) -> Counts:
        """The nearest values that agree wherever plain marginals overlap (mapped ones are left alone)."""
        padded = np.concatenate([values[: self._plain_cells], self._tail])
        self._marginals.project(padded)
        padded = padded[: self._plain_cells]
        return np.concatenate([padded, values[self._plain_cells :]]) if self._mapped else padded

    def loss(self, answers: Counts) -> float:
        residual = answers - self.target
        return 0.5 * inner(residual, residual) + self.constant

    def gradient(self, answers: Counts) -> Counts:
        """Of the loss, by the answers."""
        return answers - self.target

    def scale(self, loss: float) -> float:
        """What a change of the loss is compared with: the loss, or a hundredth of a σ² per cell where that is more."""
        return max(loss, 0.01 * len(self))

    def _tails(self, cells: Counts) -> list[Counts]:
        ends = np.cumsum(self._marginal_cells)[-len(self._mapped) - 1 :].tolist()
        if len(ends) == len(self._mapped):
            ends = [0, *ends]
        return [cells[start:end] for start, end in itertools.pairwise(ends)]


def inner(left: Counts, right: Counts) -> float:
    """The inner product, on one thread (a threaded one costs more than it saves at these lengths)."""
    return float(np.einsum("i,i->", left, right))


def _joined(parts: Sequence[Counts]) -> Counts:
    return np.concatenate(parts) if parts else np.empty(0)


def _term(layout: Layout, measurement: Measurement | Noisy) -> Term:
    if isinstance(measurement, Noisy):
        return _noisy_term(layout, measurement)
    query = measurement.query
    if isinstance(query, InteractionQuery):
        return _interaction_term(layout, query, measurement)
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
    stored = np.ascontiguousarray(cells.transpose(order)).reshape(-1)
    return Term(axes, values, precision, Blocks(stored, len(values)))


def _noisy_term(layout: Layout, measured: Noisy) -> Term:
    axes = layout.axes(measured.columns)
    shape = layout.domain.shape(measured.columns)
    measured.refuse_other_shape(shape)
    order = np.argsort([layout.rank(name) for name in measured.columns])
    where = np.arange(measured.cells).reshape(shape).transpose(order).reshape(-1)
    precision = 1 / np.maximum(measured.std, LEAST_STD)
    if measured.matrix is None and precision.ndim == 0:
        return Term(axes, measured.values[where], float(precision))
    precision = np.broadcast_to(precision, measured.values.shape)
    matrix = measured.rows()[:, where].tocsr()
    if measured.matrix is None or min(matrix.shape) > MOST_ROTATED or math.prod(matrix.shape) > MOST_DENSE:
        return Term(axes, measured.values, precision, Linear(matrix))
    return _rotated(axes, matrix.toarray() * precision[:, None], measured.values * precision)


def _interaction_term(layout: Layout, query: InteractionQuery, measurement: Measurement) -> Term:
    """An interaction by orthogonal rows along every axis, of the same sum of squares but for a constant."""
    if any(layout.domain[name].size != size for name, size in query.sizes.items()):
        raise HedgerowError("another-domain", f"{query!r} was made for another domain than the model's.")
    order = np.argsort([layout.rank(name) for name in query.attributes])
    values = np.ascontiguousarray(measurement.dense().reshape(query.shape).transpose(order))
    matrices: list[Counts | None] = []
    scale = 1.0
    for axis, place in enumerate(order):
        matrix = query.matrices[place]
        if matrix is None:
            scale *= query.shape[place]
            values = values - values.mean(axis=axis, keepdims=True)
            matrices.append(None)
            continue
        left, singular, right = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
        kept = singular > SINGULAR * singular[0]
        scale *= singular[0]
        values = np.moveaxis(np.tensordot(left[:, kept].T, values, axes=(1, axis)), 0, axis)
        matrices.append(np.ascontiguousarray(singular[kept, None] / singular[0] * right[kept]))
    shape = tuple(query.counted.shape[place] for place in order)
    flat = np.ascontiguousarray(values).reshape(-1) / scale
    std = max(measurement.std / scale, LEAST_STD)
    return Term(layout.axes(query.attributes), flat, 1 / std, Interaction(shape, matrices))


def _rotated(axes: tuple[int, ...], matrix: Counts, values: Counts) -> Term:
    """The same least squares by orthogonal queries, no more of them than cells: the singular value decomposition.

    Prefixes and ranges are all but parallel; a search that scales each by itself hardly moves. Rotated, the sum of
    squares is the same, but for a constant, and the rows of the map are orthogonal.
    """
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    kept = singular > singular[0] * max(matrix.shape) * np.finfo(np.float64).eps
    left, right = left[:, kept], np.ascontiguousarray(singular[kept, None] * right[kept])
    rotated = left.T @ values
    apart = values - left @ rotated
    return Term(axes, rotated, np.ones(len(rotated)), Linear(right), 0.5 * inner(apart, apart))


def _combined(terms: Sequence[Term]) -> list[Term]:
    """Several measurements of the same marginal become their inverse-variance average."""
    same: dict[Key, list[Term]] = {}
    for term in terms:
        if term.axes:
            same.setdefault(term.key, []).append(term)
    return [_average(group) for group in same.values()]


def _average(terms: list[Term]) -> Term:
    if len(terms) == 1:
        return terms[0]
    squares = [float(term.precision) ** 2 for term in terms]  # a linear map is like no other, and never averaged
    values = sum((square * term.values for square, term in zip(squares, terms, strict=True)), np.zeros(1))
    return Term(terms[0].axes, values / sum(squares), math.sqrt(sum(squares)), terms[0].map)


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
