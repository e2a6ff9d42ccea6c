"""Elimination orders, junction trees, and what a clique set costs before anything is allocated.

A graphical model on cliques is summed out one attribute at a time. Eliminating x multiplies every table that
mentions x and sums x away; the attributes involved are a clique of the junction tree, the table that remains is the
message to the next. The product itself is never stored (the kernel sums while it multiplies), so memory is the
cliques and the messages, and the junction tree's cells are the time of one pass. Where a bucket multiplies many
leaves, narrow groups of them are joined first, so that few tables meet in its widest loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hedgerow import _model
from hedgerow.coded.domain import Domain, Marginal

ATTEMPTS = 12
"""Elimination orders that are tried for a plan; the one with the least work is kept."""

FEW, NARROWER = 3, 8
"""A bucket of more than a few tables multiplies leaves beforehand where their product has 8 times fewer cells:
the fastest of a few values on 84 triples of br2000."""


class Layout:
    """The order in which the kernel stores axes: small attributes first, so that rows are long.

    Attributes are known by their rank in this order; a table's axes are its sorted ranks.
    """

    def __init__(self, domain: Domain):
        self.domain = domain
        indices = sorted(range(len(domain)), key=lambda index: (domain.attributes[index].size, index))
        self.places: tuple[int, ...] = tuple(indices)
        self.names: tuple[str, ...] = tuple(domain.attributes[index].name for index in indices)
        self.sizes: tuple[int, ...] = tuple(domain.attributes[index].size for index in indices)
        self._rank = {name: rank for rank, name in enumerate(self.names)}

    def axes(self, marginal: Iterable[str]) -> tuple[int, ...]:
        """The sorted ranks of a marginal's attributes."""
        return tuple(sorted(map(self.rank, marginal)))

    def rank(self, name: str) -> int:
        if name not in self._rank:
            self.domain.index(name)  # names an unknown attribute in its error
        return self._rank[name]

    def marginal(self, axes: Iterable[int]) -> Marginal:
        return self.domain.marginal(self.names[axis] for axis in axes)

    def shape(self, axes: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[axis] for axis in axes)

    def cells(self, axes: Iterable[int]) -> int:
        return math.prod(self.shape(axes))

    def stored(self, table: npt.NDArray[np.float64], marginal: Marginal) -> npt.NDArray[np.float64]:
        """A table in domain order as the kernel stores it, flat."""
        order = np.argsort([self._rank[name] for name in marginal])
        shaped = table.reshape(self.domain.shape(marginal))
        return np.ascontiguousarray(shaped.transpose(order)).reshape(-1)

    def shown(self, table: npt.NDArray[np.float64], axes: Sequence[int]) -> npt.NDArray[np.float64]:
        """A stored table with its axes in domain order."""
        order = sorted(range(len(axes)), key=lambda number: self.places[axes[number]])
        shaped = table.reshape(self.shape(axes)).transpose(order)
        return np.ascontiguousarray(shaped).reshape(shaped.shape)  # NumPy makes a line of a single number


@dataclass(frozen=True)
class Join:
    """Leaves that are multiplied once, before the bucket that needs them all: a narrow product, computed cheaply."""

    leaves: tuple[int, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Bucket:
    """One step of an elimination: the tables (by number) that mention an attribute, and what is left without it."""

    attribute: int
    inputs: tuple[int, ...]
    scope: tuple[int, ...]
    message: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """How a model on these leaves is computed.

    Leaves are tables 0 …, bucket b sends table `len(leaves) + b`, and the joins follow.
    """

    layout: Layout
    leaves: tuple[tuple[int, ...], ...]
    buckets: tuple[Bucket, ...]
    joins: tuple[Join, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The attributes as they are eliminated."""
        return tuple(self.layout.names[bucket.attribute] for bucket in self.buckets)

    @property
    def cliques(self) -> list[Marginal]:
        """The leaves as marginals."""
        return [self.layout.marginal(leaf) for leaf in self.leaves]

    @cached_property
    def leaf_places(self) -> tuple[slice, ...]:
        """Where each leaf lies in the flat vector of all leaves."""
        ends = np.cumsum([self.layout.cells(leaf) for leaf in self.leaves]).tolist()
        return tuple(slice(start, end) for start, end in zip([0, *ends], ends, strict=False))

    @cached_property
    def leaf_cells(self) -> int:
        return sum(map(self.layout.cells, self.leaves))

    @cached_property
    def inner_cells(self) -> int:
        """Cells of the messages and joins."""
        return sum(self.layout.cells(step.message) for step in self.buckets) + sum(
            self.layout.cells(join.axes) for join in self.joins
        )

    @cached_property
    def work(self) -> int:
        """Cells that one pass goes through."""
        return sum(self.layout.cells(bucket.scope) for bucket in self.buckets)

    @cached_property
    def bytes(self) -> int:
        """Memory of a calibrated model: potentials, their exponentials, marginals, two tables per message or join."""
        return 8 * (3 * self.leaf_cells + 2 * self.inner_cells)

    @cached_property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The axes of every table, by its number."""
        messages = (bucket.message for bucket in self.buckets)
        return (*self.leaves, *messages, *(join.axes for join in self.joins))

    @cached_property
    def beside(self) -> list[list[int]]:
        """For each bucket those that it sends its message to, or gets one from."""
        found: list[list[int]] = [[] for _ in self.buckets]
        for number, bucket in enumerate(self.buckets):
            for table in bucket.inputs:
                if 0 <= table - len(self.leaves) < len(self.buckets):
                    found[number].append(table - len(self.leaves))
                    found[table - len(self.leaves)].append(number)
        return found

    def home(self, axes: Iterable[int]) -> int | None:
        """The smallest leaf that contains the axes, if one does."""
        wanted = set(axes)
        near = min((self._leaves_with[axis] for axis in wanted), key=len) if wanted else range(len(self.leaves))
        inside = [number for number in near if wanted <= set(self.leaves[number])]
        return min(inside, key=lambda number: self.layout.cells(self.leaves[number]), default=None)

    def add(self, axes: tuple[int, ...], values: npt.NDArray[np.float64], into: npt.NDArray[np.float64]) -> None:
        """Add a table to the smallest leaf that contains its axes; without one it says nothing here."""
        home = self.home(axes)
        if home is not None:
            alone = _model.Marginals(self.layout.sizes, self.leaves, [(home, axes)], [0.0], [])
            alone.scatter(np.ascontiguousarray(values), into)

    @cached_property
    def _leaves_with(self) -> list[list[int]]:
        return numbers_by_axis(self.leaves, len(self.layout.sizes))

    def network(self) -> _model.Network:
        """Allocate it."""
        return _model.Network(
            self.layout.sizes,
            self.leaves,
            [(bucket.inputs, bucket.message) for bucket in self.buckets],
            [(join.leaves, join.axes) for join in self.joins],
        )


def plan(domain: Domain, cliques: Iterable[Marginal], order: Sequence[str] | None = None) -> Plan:
    """The cheapest of several eliminations, or the given one. Attributes in no clique get a leaf of their own."""
    layout = Layout(domain)
    leaves = [layout.axes(clique) for clique in maximal(cliques)]
    covered = {axis for leaf in leaves for axis in leaf}
    leaves += [(axis,) for axis in range(len(domain)) if axis not in covered]
    if order is None:
        ranks = _model.elimination_order(layout.sizes, leaves, (), ATTEMPTS)
    else:
        ranks = [layout.rank(name) for name in order]
    tables: dict[int, tuple[int, ...]] = dict(enumerate(leaves))
    having = numbers_by_axis(leaves, len(domain))
    buckets: list[Bucket] = []
    joins: list[Join] = []
    for attribute in ranks:
        inputs = [number for number in having[attribute] if number in tables]
        own = inputs
        scope = tuple(sorted({axis for number in inputs for axis in tables[number]}))
        message = tuple(axis for axis in scope if axis != attribute)
        if len(inputs) > FEW:
            widest = layout.cells(scope) // NARROWER
            for join in _joins(layout, {number: tables[number] for number in inputs if number < len(leaves)}, widest):
                inputs = [number for number in inputs if number not in join.leaves]
                inputs.append(len(leaves) + len(ranks) + len(joins))
                joins.append(join)
        for number in own:
            del tables[number]
        tables[len(leaves) + len(buckets)] = message
        for axis in message:
            having[axis].append(len(leaves) + len(buckets))
        buckets.append(Bucket(attribute, tuple(inputs), scope, message))
    return Plan(layout, tuple(leaves), tuple(buckets), tuple(joins))


def _joins(layout: Layout, leaves: dict[int, tuple[int, ...]], widest: int) -> list[Join]:
    """Products of two or more leaves with at most `widest` cells: wide leaves first, each where it adds least."""
    groups: list[tuple[set[int], list[int]]] = []
    for number in sorted(leaves, key=lambda number: -layout.cells(leaves[number])):
        own = set(leaves[number])
        cells = [layout.cells(axes | own) for axes, _ in groups]
        best = min(range(len(groups)), key=cells.__getitem__, default=None)
        if best is None or cells[best] > widest:
            groups.append((own, [number]))
        else:
            groups[best][0].update(own)
            groups[best][1].append(number)
    return [Join(tuple(sorted(members)), tuple(sorted(axes))) for axes, members in groups if len(members) > 1]


def maximal(cliques: Iterable[Marginal]) -> list[Marginal]:
    """The cliques that lie in no other, each once, in the order of their first appearance; `()` is left out."""
    distinct = {frozenset(clique): clique for clique in reversed(list(cliques)) if clique}
    by_size = sorted(distinct, key=len, reverse=True)
    kept: dict[str, list[frozenset[str]]] = {}
    chosen: set[frozenset[str]] = set()
    for members in by_size:
        near = min((kept.setdefault(name, []) for name in members), key=len)
        if not any(members <= other for other in near):
            chosen.add(members)
            for name in members:
                kept[name].append(members)
    return [clique for members, clique in reversed(distinct.items()) if members in chosen]


def numbers_by_axis(tables: Sequence[tuple[int, ...]], count: int) -> list[list[int]]:
    """For each of so many axes, the numbers of the tables that have it."""
    having: list[list[int]] = [[] for _ in range(count)]
    for number, table in enumerate(tables):
        for axis in table:
            having[axis].append(number)
    return having


def size(domain: Domain, cliques: Iterable[Marginal]) -> float:
    """Bytes of the junction tree's tables, 8 per cell: the literature's "model size". Nothing is allocated.

    The engine itself never stores those tables (see `Plan.bytes`); they are what one pass of inference goes through.
    """
    layout = Layout(domain)
    [cells] = _model.junction_cells(layout.sizes, [layout.axes(clique) for clique in cliques], [()])
    return 8.0 * round(cells) if math.isfinite(cells) else math.inf  # hundreds of columns may meet


def bounds_with(structure: Plan, pairs: Sequence[Marginal]) -> npt.NDArray[np.float64]:
    """Bytes that the junction tree of a plan's cliques need not exceed with each pair added in turn, quickly.

    A tree of the plan's buckets holds a pair once one of its attributes is carried to the nearest bucket of the other.
    """
    layout = structure.layout
    cells = [layout.cells(bucket.scope) for bucket in structure.buckets]
    beside = structure.beside
    own = [
        size if not any(set(bucket.scope) <= set(structure.buckets[other].scope) for other in beside[number]) else 0
        for number, (size, bucket) in enumerate(zip(cells, structure.buckets, strict=True))
    ]
    having = numbers_by_axis([bucket.scope for bucket in structure.buckets], len(layout.sizes))
    ways: dict[int, dict[int, int]] = {}

    def way(start: int, goal: int) -> float:
        """Cells that carrying one attribute to the other adds."""
        if start not in ways:
            found = dict.fromkeys(having[start], 0)
            waiting = list(found)
            while waiting:
                number = waiting.pop()
                for other in beside[number]:
                    if other not in found:
                        found[other] = found[number] + cells[other] * (layout.sizes[start] - 1)
                        waiting.append(other)
            ways[start] = found
        apart = layout.sizes[start] * layout.sizes[goal]
        return min((ways[start].get(number, apart) for number in having[goal]), default=apart)

    axes = [layout.axes(pair) for pair in pairs]
    return 8.0 * (sum(own) + np.array([min(way(first, second), way(second, first)) for first, second in axes]))


def sizes_with(domain: Domain, cliques: Iterable[Marginal], candidates: Sequence[Marginal]) -> npt.NDArray[np.float64]:
    """`size` of the clique set with each candidate added in turn, for thousands of candidates at once."""
    layout = Layout(domain)
    cells = _model.junction_cells(
        layout.sizes, [layout.axes(clique) for clique in cliques], [layout.axes(clique) for clique in candidates]
    )
    return 8 * np.asarray(cells)
