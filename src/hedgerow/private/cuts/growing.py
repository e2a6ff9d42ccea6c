"""A public tree of one line, grown where noisy counts say that rows are.

A level counts the whole line: the parts of every block that was split before it, and once more what was not split. That
is a partition, so a row reaches one part and the level is one marginal query; what is counted again costs nothing, and
is the better known the longer others are looked into. A part is split when its noisy count is clear of the noise that
its own parts would have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hedgerow.coded.domain import Counts, Domain, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.schema.trees import Block, Blocks, Tree, counted_out, in_order

SPLIT = 4.0
"""A part is split when its noisy count is above so many standard deviations of the noise of one count …"""
DOUBT = 1.5
"""… and may be split yet while it is above so many of its own."""
FINEST = 300
"""What holds less than one in so many rows is fine enough, however many they are: a third of a cell."""
MOST_LEVELS = 6
"""Beyond a decade and five digits nothing is looked for."""
MOST_RUNS = 1 << 17
"""Into so many runs a line is coded for one look, about."""


@dataclass(eq=False)
class Node:
    """A block, its noisy count with the variance of its noise, and its parts where it was split."""

    block: Block
    count: float = 0.0
    variance: float = float("inf")
    parts: list[Node] = field(default_factory=list)


class Growing:
    """One line of a column while its tree is descended.

    Nodes are numbered, and what is known of them stands in columns: among millions of rows they are very many.
    """

    def __init__(self, attribute: str, tree: Tree):
        self.attribute = attribute
        self.tree = tree
        self._blocks = Blocks.of([Block(tree.low, tree.high, 0)])
        self._count: Counts = np.zeros(1)
        self._variance: Counts = np.full(1, np.inf)
        self._parts: list[tuple[IntArray, IntArray, IntArray]] = []
        """Level by level: the nodes that were split, the first part of each, and how many it has."""
        self._levels = 0
        self._front: IntArray = np.zeros(1, dtype=np.int64)
        """The nodes that fill the line, in its order."""
        self._split = self._front
        """Those of them whose parts are counted next …"""
        self._open: IntArray = np.empty(0, dtype=np.int64)
        """… and those that may be split yet, or turn out to hold nothing."""
        self._fresh = self._open
        """What the last split made."""
        self._seen = 0
        """Levels that can be counted in the runs of the last look."""
        self._starts: IntArray = np.empty(0, dtype=np.int64)

    @property
    def levels_left(self) -> int:
        """How many levels may still be asked for."""
        return min(self.tree.levels, MOST_LEVELS) - self._levels if len(self._split) or len(self._open) else 0

    @property
    def in_sight(self) -> bool:
        """Whether the next level can be counted without another look."""
        return self._seen > 0

    @property
    def root(self) -> Node:
        """The tree as it stands."""
        counted = zip(self._blocks.listed(), self._count.tolist(), self._variance.tolist(), strict=True)
        nodes = [Node(*each) for each in counted]
        for level in self._parts:
            for node, first, size in zip(*(column.tolist() for column in level), strict=True):
                nodes[node].parts = nodes[first : first + size]
        return nodes[0]

    def look(self) -> IntArray:
        """Where the runs of the next look begin: as fine as they can be without being too many."""
        blocks = self._looked_into
        first = self._levels == 0
        for depth in range(self.levels_left, 0, -1):
            if depth == 1 or self.tree.runs(blocks, depth - first) <= MOST_RUNS:
                break
        below = self.tree.starts(blocks, depth - first) if depth > first else blocks.low
        self._starts = in_order(self._blocks.low[self._front], below)
        self._seen = depth
        return self._starts

    def query(self, domain: Domain) -> MarginalQuery:
        """The line with everything split that is to be, as one query over the runs of the look."""
        self._fresh = self._grown() if len(self._split) else self._split
        part = np.searchsorted(self._blocks.low[self._front], self._starts, side="right") - 1
        elsewhere = np.full(domain[self.attribute].size - len(self._starts), -1)
        return MarginalQuery(domain, (self.attribute,), blocks=np.append(part, elsewhere))

    def answer(self, measured: Measurement) -> None:
        """Take the counts, and decide what is split next: of a node all so far weigh as much as they are sure."""
        variance = self._variance[self._front]
        known = np.isfinite(variance)
        weight = np.ones(len(variance))
        weight[known] = variance[known] / (variance[known] + measured.noise.variance)
        self._count[self._front] += weight * (measured.dense() - self._count[self._front])
        self._variance[self._front] = weight * measured.noise.variance
        nodes = np.concatenate([self._open, self._fresh[~self._blocks.single[self._fresh]]])
        nodes = nodes[self._count[nodes] > DOUBT * np.sqrt(self._variance[nodes])]
        clear = self._count[nodes] > SPLIT * measured.std
        fine = self._count[self._front].sum() / FINEST
        large = self._count[nodes] > fine
        may_be = self._count[nodes] + SPLIT * np.sqrt(self._variance[nodes]) > fine
        self._split, self._open = nodes[clear & large], nodes[~clear & may_be]
        self._levels += 1
        self._seen -= 1

    def _grown(self) -> IntArray:
        """Split what is to be split; the new nodes."""
        if self._levels:
            parts, sizes = self.tree.parts(self._blocks.take(self._split))
        else:
            parts = self.tree.top()
            sizes = np.array([len(parts.low)])
        nodes = len(self._count)
        first = nodes + np.cumsum(sizes) - sizes
        self._parts.append((self._split, first, sizes))
        begins, size = np.arange(nodes), np.ones(nodes, dtype=np.int64)
        begins[self._split], size[self._split] = first, sizes
        owner, nth = counted_out(size[self._front])
        self._front = begins[self._front][owner] + nth
        self._blocks = self._blocks.and_then(parts)
        self._count = np.append(self._count, np.zeros(len(parts.low)))
        self._variance = np.append(self._variance, np.full(len(parts.low), np.inf))
        return np.arange(nodes, len(self._count))

    @property
    def _looked_into(self) -> Blocks:
        """What may be split in the levels to come."""
        return self._blocks.take(np.concatenate([self._split, self._open])) if self._levels else self.tree.top()
