"""Marginals of a calibrated model, inside and outside its cliques, with shared work.

A marginal inside the scope of one bucket is summed down from it, the widest attribute first, and every table on the
way is remembered, so the marginals of one scope share all but the last, cheap sums. A marginal that spans several
scopes is computed by eliminating everything else from the smallest part of the tree that holds it; what the rest of
the tree says is already in the messages at the border. The intermediate tables are remembered by what went into
them, so queries that eliminate alike share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from hedgerow import _model
from hedgerow.coded.domain import Counts
from hedgerow.errors import LimitError
from hedgerow.models.graphical.junction import Plan, numbers_by_axis

EXACT_WORK = 1_000_000_000
"""Multiplications beyond which one exact marginal is not worth its time."""

ATTEMPTS = 4
"""Elimination orders that are tried for one marginal."""

NEAR, SMALL = 64, 1 << 16
"""A marginal is conditioned on a separator that makes it at most this many times wider, or this wide; these were the
fastest of a few values tried on models of adult and loans."""


REMEMBERED = 1 << 27
"""Bytes of tables that are remembered, at most. All triples of adult would be three times as much, and no faster."""


class TooLargeError(LimitError):
    """An exact marginal would take more memory or time than allowed."""


@dataclass(frozen=True)
class Table:
    """A table of an elimination, by its content: the attributes it still has, and what was multiplied and summed."""

    axes: int
    sources: int
    eliminated: int = 0


class Inference:
    """Answers about one calibrated model. Sets of attributes are bit masks of ranks, sets of tables of numbers.

    Tables are numbered as in the plan; `ratio_base` plus a message's number stands for its ratio: what the rest of
    the model says of the message's cells.
    """

    def __init__(self, plan: Plan, network: _model.Network, marginals: Counts, memory: int):
        self._plan = plan
        self._network = network
        self._marginals = marginals
        self._memory = memory
        self._leaves = [_mask(leaf) for leaf in plan.leaves]
        self._scopes = [_mask(bucket.scope) for bucket in plan.buckets]
        self._leaves_with = numbers_by_axis(plan.leaves, len(plan.layout.sizes))
        self._scopes_with = numbers_by_axis([bucket.scope for bucket in plan.buckets], len(plan.layout.sizes))
        self._ratio_base = len(plan.tables)
        self._summed: dict[int, Counts] = {}
        self._conditionals: dict[int, Counts] = {}
        self._eliminated: dict[Table, Counts] = {}
        self._held = 0
        self._cells_of: dict[int, int] = {}

    def probabilities(self, axes: tuple[int, ...]) -> Counts:
        """The flat table over sorted ranks; TooLargeError where that is not feasible."""
        wanted = _mask(axes)
        if not wanted:
            return np.ones(1)
        parts = list(dict.fromkeys(self._component_of[axis] & wanted for axis in axes))
        if len(parts) == 1:
            return self._table(wanted)
        return self._contract([(part, self._table(part)) for part in parts], wanted)

    def _table(self, wanted: int) -> Counts:
        """P(wanted) for attributes of one connected component."""
        if wanted in self._summed:
            return self._summed[wanted]
        leaf = self._smallest(self._leaves, self._leaves_with, wanted)
        if leaf is not None:
            table = self._marginals[self._plan.leaf_places[leaf]]
            return self._contract([(self._leaves[leaf], table)], wanted)
        bucket = self._smallest(self._scopes, self._scopes_with, wanted)
        if bucket is not None:
            return self._inside(bucket, wanted)
        first = min(self._bucket_of[attribute] for attribute in _axes(wanted))
        around = wanted | self._scopes[first]
        near = self._cells(around) <= max(NEAR * self._cells(wanted), SMALL)
        return self._conditioned(first, wanted) if near else self._spanning(wanted)

    def _conditioned(self, bucket: int, wanted: int) -> Counts:
        """Of the wanted attributes `bucket` eliminates the first: given its separator, it knows no other.

        P(wanted) = Σ P(first | separator) · P(the others, separator). In a tree the second factor is no wider than
        what is wanted, and each is remembered, so all triples of a tree cost one small contraction each.
        """
        first = 1 << self._plan.buckets[bucket].attribute
        others = wanted & ~first | self._scopes[bucket] & ~first
        return self._contract([(self._scopes[bucket], self._conditional(bucket)), (others, self._kept(others))], wanted)

    def _conditional(self, bucket: int) -> Counts:
        """P(attribute | separator) of a bucket, 0 where the separator's cell has no mass."""
        if bucket not in self._conditionals:
            scope = self._scopes[bucket]
            separator = scope & ~(1 << self._plan.buckets[bucket].attribute)
            joint, given = self._table(scope), self._table(separator)
            inverse = np.divide(1.0, given, out=np.zeros_like(given), where=given > np.finfo(np.float64).tiny)
            values = self._contract([(scope, joint), (separator, inverse)], scope)
            self._make_room(values)
            self._conditionals[bucket] = values
        return self._conditionals[bucket]

    def _kept(self, wanted: int) -> Counts:
        """The same table as `_table`, remembered for the next time."""
        if wanted not in self._summed:
            table = self._table(wanted)
            self._make_room(table)
            self._summed[wanted] = table
        return self._summed[wanted]

    def _inside(self, bucket: int, wanted: int) -> Counts:
        """A marginal of one scope: sum one attribute out of the next larger table, or out of the bucket itself."""
        missing = self._scopes[bucket] & ~wanted
        smallest = missing & -missing
        larger = wanted | smallest
        if missing != smallest and 8 * self._cells(larger) <= self._memory // 8:
            return self._contract([(larger, self._kept(larger))], wanted)
        return self._normalised([(table, self._stored(table)) for table in self._around([bucket])], wanted)

    def _spanning(self, wanted: int) -> Counts:
        """Eliminate everything but `wanted` from the part of the tree that holds it."""
        tables = self._relevant(wanted)
        order = self._order(tables, wanted)
        self._refuse_beyond_limits(tables, order, wanted)
        operands = [(table, self._stored(table)) for table in tables]
        for attribute in order:
            joined = [operand for operand in operands if operand[0].axes >> attribute & 1]
            result = _product([table for table, _ in joined], attribute)
            values = self._eliminated.get(result)
            if values is None:
                values = self._joined(joined, result.axes)
                self._make_room(values)
                self._eliminated[result] = values
            operands = [operand for operand in operands if not operand[0].axes >> attribute & 1]
            operands.append((result, values))
        return self._normalised(operands, wanted)

    def _relevant(self, wanted: int) -> list[Table]:
        """The tables of the smallest connected set of buckets that eliminates every wanted attribute."""
        paths = [self._path(self._bucket_of[attribute]) for attribute in _axes(wanted)]
        shared = set(paths[0]).intersection(*paths[1:])
        top = min(shared)  # buckets are numbered from the leaves up
        return self._around({bucket for path in paths for bucket in path if bucket <= top})

    def _around(self, buckets: Iterable[int]) -> list[Table]:
        """What connected buckets multiply: leaves and joins, messages from below, and the ratio above the last."""
        inner = sorted(buckets)
        leaves = len(self._plan.leaves)
        numbers = [number for bucket in inner for number in self._plan.buckets[bucket].inputs]
        numbers = [number for number in numbers if number < leaves or number - leaves not in inner]
        numbers.append(self._ratio_base + leaves + inner[-1])
        return [Table(self._axes_of(number), 1 << number) for number in numbers]

    def _order(self, tables: list[Table], wanted: int) -> list[int]:
        involved = 0
        for table in tables:
            involved |= table.axes
        sizes = self._plan.layout.sizes
        kept = [axis for axis in range(len(sizes)) if wanted >> axis & 1 or not involved >> axis & 1]
        return _model.elimination_order(sizes, [_axes(table.axes) for table in tables], kept, ATTEMPTS)

    def _refuse_beyond_limits(self, tables: list[Table], order: list[int], wanted: int) -> None:
        """Walk through the elimination without computing it."""
        scopes = [table.axes for table in tables]
        for attribute in order:
            joined = 0
            for scope in scopes:
                if scope >> attribute & 1:
                    joined |= scope
            self._refuse_large(joined, joined & ~(1 << attribute))
            scopes = [scope for scope in scopes if not scope >> attribute & 1]
            scopes.append(joined & ~(1 << attribute))
        self._refuse_large(wanted, wanted)

    def _refuse_large(self, involved: int, kept: int) -> None:
        work, size = self._cells(involved), 8 * self._cells(kept)
        if work > EXACT_WORK or size > self._memory // 4:
            names = " × ".join(self._plan.layout.marginal(_axes(kept)))
            raise TooLargeError(
                "marginal-too-large",
                f"the exact table {names} takes {work:.3g} multiplications and {size:.3g} bytes; "
                f"{EXACT_WORK:.3g} and {self._memory // 4:.3g} are allowed. It was not computed.",
            )

    def _contract(self, operands: list[tuple[int, Counts]], kept: int, logarithms: bool = False) -> Counts:
        """Σ Π over everything that is not kept."""
        involved = kept
        for axes, _ in operands:
            involved |= axes
        self._refuse_large(involved, kept)
        out = np.empty(self._cells(kept))
        _model.contract(
            self._plan.layout.sizes,
            [values for _, values in operands],
            [_axes(axes) for axes, _ in operands],
            _axes(kept),
            out,
            logarithms,
        )
        return out

    def _joined(self, operands: list[tuple[Table, Counts]], kept: int) -> Counts:
        """The same for tables of the network (logarithms where it keeps those), with the largest cell made 1.

        A factor common to all cells carries no information; without it a long elimination stays in range.
        """
        pairs = [(table.axes, values) for table, values in operands]
        values = self._contract(pairs, kept, self._network.logarithms)
        if self._network.logarithms:
            values -= values.max()
        else:
            values /= values.max()
        return values

    def _normalised(self, operands: list[tuple[Table, Counts]], wanted: int) -> Counts:
        values = self._joined(operands, wanted)
        if self._network.logarithms:
            np.exp(values, out=values)
        values /= values.sum()
        return values

    def _stored(self, table: Table) -> Counts:
        """A leaf, message or ratio of the network."""
        number = table.sources.bit_length() - 1
        if number >= self._ratio_base:
            return self._network.ratio(number - self._ratio_base)
        return self._network.value(number)

    def _make_room(self, values: Counts) -> None:
        """Forget the oldest tables until this one fits into what may be remembered, half of the memory at most."""
        self._held += values.nbytes
        room = min(REMEMBERED, self._memory // 2)
        forgettable: tuple[dict[Any, Counts], ...] = (self._eliminated, self._conditionals, self._summed)
        for tables in forgettable:
            while self._held > room and tables:
                self._held -= tables.pop(next(iter(tables))).nbytes

    def _path(self, bucket: int) -> list[int]:
        """The bucket and everything above it."""
        path = [bucket]
        while path[-1] in self._parent:
            path.append(self._parent[path[-1]])
        return path

    @cached_property
    def _bucket_of(self) -> dict[int, int]:
        return {bucket.attribute: number for number, bucket in enumerate(self._plan.buckets)}

    @cached_property
    def _parent(self) -> dict[int, int]:
        leaves = len(self._plan.leaves)
        return {
            number - leaves: above
            for above, bucket in enumerate(self._plan.buckets)
            for number in bucket.inputs
            if leaves <= number < leaves + len(self._plan.buckets)
        }

    @cached_property
    def _component_of(self) -> dict[int, int]:
        """For every attribute, the attributes of the connected part of the model that it is in."""
        roots = {bucket.attribute: self._path(number)[-1] for number, bucket in enumerate(self._plan.buckets)}
        found: dict[int, int] = {}
        for attribute, root in roots.items():
            found[root] = found.get(root, 0) | 1 << attribute
        return {attribute: found[root] for attribute, root in roots.items()}

    def _smallest(self, scopes: list[int], having: list[list[int]], wanted: int) -> int | None:
        """The scope of fewest cells that holds all that is wanted; `having` lists the scopes of every attribute."""
        first = (wanted & -wanted).bit_length() - 1
        inside = [number for number in having[first] if not wanted & ~scopes[number]]
        return min(inside, key=lambda number: self._cells(scopes[number])) if inside else None

    def _axes_of(self, number: int) -> int:
        return _mask(self._plan.tables[number % self._ratio_base])

    def _cells(self, mask: int) -> int:
        if mask not in self._cells_of:
            self._cells_of[mask] = self._plan.layout.cells(_axes(mask))
        return self._cells_of[mask]


def _product(tables: list[Table], attribute: int) -> Table:
    """What is left when an attribute is summed out of a product."""
    axes = sources = eliminated = 0
    for table in tables:
        axes |= table.axes
        sources |= table.sources
        eliminated |= table.eliminated
    return Table(axes & ~(1 << attribute), sources, eliminated | 1 << attribute)


def _mask(axes: Iterable[int]) -> int:
    return sum(1 << axis for axis in axes)


@lru_cache(maxsize=1 << 16)
def _axes(mask: int) -> tuple[int, ...]:
    axes = []
    while mask:
        lowest = mask & -mask
        axes.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(axes)
