"""A public tree of one line, grown where noisy counts say that rows are.

A level counts the whole line: the parts of every block that was split before it, and once more what was not split. That
is a partition, so a row reaches one part and the level is one marginal query; what is counted again costs nothing, and
is the better known the longer others are looked into. A part is split when its noisy count is clear of the noise that
its own parts would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isinf, sqrt

import numpy as np

from hedgerow.coded.domain import Domain, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.schema.trees import Block, Tree

SPLIT = 4.0
"""A part is split when its noisy count is above so many standard deviations of the noise of one count …"""
DOUBT = 1.5
"""… and may be split yet while it is above so many of its own."""
MOST_LEVELS = 6
"""Beyond a decade and five digits nothing is looked for."""
MOST_RUNS = 1 << 17
"""Into so many runs a line is coded for one look, about."""


@dataclass(eq=False)
class Node:
    """A block, its noisy count with the variance of its noise, and its parts once they have been counted."""

    block: Block
    count: float = 0.0
    variance: float = float("inf")
    parts: list[Node] = field(default_factory=list)

    def counted(self, count: float, variance: float) -> None:
        """Take one more count of the block: all so far weigh as much as they are sure."""
        weight = 1.0 if isinf(self.variance) else self.variance / (self.variance + variance)
        self.count += weight * (count - self.count)
        self.variance = weight * variance


class Growing:
    """One line of a column while its tree is descended."""

    def __init__(self, attribute: str, tree: Tree):
        self.attribute = attribute
        self.tree = tree
        self.root = Node(Block(tree.low, tree.high, 0))
        self._levels = 0
        self._front: list[Node] = [self.root]
        """What fills the line, in its order."""
        self._split: list[Node] = [self.root]
        """Nodes of it whose parts are counted next …"""
        self._open: list[Node] = []
        """… and those that may be split yet, or turn out to hold nothing."""
        self._seen = 0
        """Levels that can be counted in the runs of the last look."""
        self._starts: IntArray = np.empty(0, dtype=np.int64)

    @property
    def levels_left(self) -> int:
        """How many levels may still be asked for."""
        return min(self.tree.levels, MOST_LEVELS) - self._levels if self._split or self._open else 0

    @property
    def in_sight(self) -> bool:
        """Whether the next level can be counted without another look."""
        return self._seen > 0

    def look(self) -> IntArray:
        """Where the runs of the next look begin: as fine as they can be without being too many."""
        for depth in range(self.levels_left, 0, -1):
            if depth == 1 or self._runs(depth) <= MOST_RUNS:
                break
        lows = [node.block.low for node in self._front]
        below = self._below(self._looked_into, depth - (self._levels == 0))
        self._starts = np.unique(np.concatenate([lows, *below]).astype(np.int64))
        self._seen = depth
        return self._starts

    def query(self, domain: Domain) -> MarginalQuery:
        """The line with everything split that is to be, as one query over the runs of the look."""
        for node in self._split:
            node.parts = [Node(part) for part in self._parts(node)]
        self._front = [part for node in self._front for part in node.parts or [node]]
        lows = np.array([node.block.low for node in self._front], dtype=np.int64)
        part = np.searchsorted(lows, self._starts, side="right") - 1
        elsewhere = np.full(domain[self.attribute].size - len(self._starts), -1)
        return MarginalQuery(domain, (self.attribute,), blocks=np.append(part, elsewhere))

    def answer(self, measured: Measurement) -> None:
        """Take the counts, and decide what is split next."""
        for node, count in zip(self._front, measured.dense().tolist(), strict=True):
            node.counted(count, measured.noise.variance)
        fresh = [part for node in self._split for part in node.parts if not part.block.single]
        open_ = [node for node in [*self._open, *fresh] if node.count > DOUBT * sqrt(node.variance)]
        least = SPLIT * measured.std
        self._split = [node for node in open_ if node.count > least]
        self._open = [node for node in open_ if node.count <= least]
        self._levels += 1
        self._seen -= 1

    def _parts(self, node: Node) -> list[Block]:
        return self.tree.top() if node is self.root else self.tree.parts(node.block)

    def _runs(self, depth: int) -> int:
        """About how many runs a look of that depth would have."""
        return sum(self.tree.runs(block, depth - (self._levels == 0)) for block in self._looked_into)

    @property
    def _looked_into(self) -> list[Block]:
        """What may be split in the levels to come."""
        return [node.block for node in [*self._split, *self._open]] if self._levels else self.tree.top()

    def _below(self, blocks: Sequence[Block], depth: int) -> list[IntArray]:
        if depth == 0:
            return [np.array([block.low for block in blocks], dtype=np.int64)]
        return [self.tree.starts(block, depth) for block in blocks]
