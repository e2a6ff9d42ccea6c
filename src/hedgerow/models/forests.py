"""Rows by leaf look-up: every attribute has a forest of random trees that tells it from the others.

Nothing here has a handle on data: the rows that walk through the trees are synthetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow import _count
from hedgerow.domain import CodedTable, Codes, Counts, Domain, IntArray, Marginal
from hedgerow.errors import HedgerowError
from hedgerow.models.histograms import Histograms
from hedgerow.models.model import BLOCK_ROWS, State, block_coins
from hedgerow.models.trees import RandomTree
from hedgerow.query import MarginalQuery

ONE = 1 << 31
"""Distributions are written down in units of 2⁻³¹, so that the same coins draw the same rows on every machine."""
GOLDEN = 0x9E3779B9
"""2³² divided by the golden ratio: multiples of it fill a circle evenly, whichever stretch of them is taken."""

Thresholds = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of one attribute, as one tree whose root is a coin that picks one of them.

    Drawing a label from the mean of several leaves' distributions is drawing from one leaf that is picked at random.
    """

    label: str
    trees: int
    split: npt.NDArray[np.int32]
    child: IntArray
    thresholds: Thresholds
    """For each leaf, the distribution function without its last value, in units of 2⁻³¹."""

    @classmethod
    def of(cls, trees: Sequence[RandomTree], distributions: Sequence[Counts]) -> Forest:
        """Node 0 picks a tree, nodes 1 … m are the trees' roots, the rest of each tree follows."""
        queries = [tree.query for tree in trees]
        label = queries[0].label
        assert label is not None
        split = [np.array([len(queries[0].splits_on)]), *(tree.split[:1] for tree in queries)]
        roots, rests, leaves, nodes = [], [], 0, 1 + len(queries)
        for tree in queries:
            moved = tree.child + np.where(tree.split >= 0, nodes - 1, leaves)
            roots.append(moved[:1])
            rests.append(moved[1:])
            split.append(tree.split[1:])
            leaves += tree.leaves
            nodes += len(tree.split) - 1
        thresholds = np.concatenate([_thresholds(distribution) for distribution in distributions])
        child = np.concatenate([np.array([1]), *roots, *rests])
        return cls(label, len(trees), np.concatenate(split).astype(np.int32), child, thresholds)

    def attributes(self, domain: Domain) -> Marginal:
        """What the trees may split on."""
        return tuple(a.name for a in domain if a.name != self.label and a.size > 1)

    def plan(self, domain: Domain) -> _count.Tree:
        """The structure as the kernel walks it; the columns are those of `attributes`, then the picks.

        The kernel trusts codes, and the codes that it will see come from here: the shape is checked.
        """
        if self.thresholds.shape[1] != domain[self.label].size - 1:
            raise HedgerowError(f'the leaves of "{self.label}" have another number of labels than the attribute.')
        sizes = [*domain.shape(self.attributes(domain)), self.trees]
        return _count.Tree(list(range(len(sizes))), sizes, self.split, self.child, len(self.thresholds), None, 1)


def _thresholds(distribution: Counts) -> Thresholds:
    """Distribution functions in whole units; what has no weight gets no unit."""
    ends = np.cumsum(distribution, axis=1)
    thresholds: Thresholds = np.rint(np.minimum(ends[:, :-1] / ends[:, -1:], 1.0) * ONE).astype(np.uint32)
    return thresholds


class RandomTrees:
    """Rows that start as independent columns; then attribute by attribute, sweep by sweep, each row looks up its leaf.

    The model is the distribution of the rows that come out. It has no closed form, so its marginals are counted in a
    fixed sample of 2²⁰ rows.
    """

    kind = "trees"

    def __init__(self, start: Histograms, forests: Sequence[Forest], sweeps: int):
        self.start = start
        self.forests = tuple(forests)
        self.sweeps = sweeps
        self._plans = [forest.plan(start.domain) for forest in self.forests]

    @property
    def domain(self) -> Domain:
        return self.start.domain

    @property
    def total(self) -> float:
        return self.start.total

    def marginal(self, marginal: Marginal) -> Counts:
        shape = self.domain.shape(marginal)
        cell = np.zeros(BLOCK_ROWS, dtype=np.int64)
        for name, size in zip(marginal, shape, strict=True):
            cell = cell * size + self._sample[name]
        share = np.bincount(cell, minlength=math.prod(shape)) / BLOCK_ROWS
        return self.total * share.reshape(shape)

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (query.aggregate(self.marginal(query.attributes)) for query in queries)

    @cached_property
    def _sample(self) -> CodedTable:
        return self.draw(BLOCK_ROWS, block_coins(0, 0))

    def draw(self, rows: int, coins: np.random.Generator) -> CodedTable:
        table = self.start.draw(rows, coins)
        for _ in range(self.sweeps):
            for forest, plan in zip(self.forests, self._plans, strict=True):
                picks = coins.integers(0, forest.trees, rows, dtype=np.uint32)
                columns = [table[name] for name in forest.attributes(self.domain)]
                leaves = _count.find_leaves([*columns, picks], rows, plan)
                drawn = look_up(forest.thresholds, leaves, even_coins(leaves, coins))
                table[forest.label] = drawn.astype(self.domain[forest.label].dtype)
        return table

    def state(self) -> State:
        start = self.start.state()
        arrays: dict[str, npt.NDArray[Any]] = {f"start.{name}": array for name, array in start.arrays.items()}
        for number, forest in enumerate(self.forests):
            arrays |= {
                f"split{number}": forest.split,
                f"child{number}": forest.child,
                f"thresholds{number}": forest.thresholds,
            }
        forests = [{"label": forest.label, "trees": forest.trees} for forest in self.forests]
        return State(self.kind, {"start": start.values, "forests": forests, "sweeps": self.sweeps}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, state: State) -> RandomTrees:
        values, arrays = state.values, state.arrays
        begin = {name[6:]: array for name, array in arrays.items() if name.startswith("start.")}
        forests = [
            Forest(
                about["label"],
                about["trees"],
                arrays[f"split{number}"],
                arrays[f"child{number}"],
                arrays[f"thresholds{number}"],
            )
            for number, about in enumerate(values["forests"])
        ]
        return cls(
            Histograms.from_state(domain, State("histograms", values["start"], begin)), forests, values["sweeps"]
        )


def even_coins(leaves: npt.NDArray[np.uint32], coins: np.random.Generator) -> npt.NDArray[np.uint32]:
    """One uniform number below 2³¹ per row, spread evenly over the rows of any leaf and of neighbouring leaves.

    Every row's number is uniform; together they are multiples of the golden ratio in the order of the leaves, with
    rows of one leaf in random order. Label counts then come out closer to their expectations than by separate coins.
    """
    rows = len(leaves)
    keys = leaves.astype(np.uint64) << np.uint64(32) | coins.integers(0, 1 << 32, rows, dtype=np.uint64)
    order = np.argsort(keys)
    steps = np.arange(rows, dtype=np.uint64) * GOLDEN + coins.integers(0, 1 << 32, dtype=np.uint64)
    even = np.empty(rows, dtype=np.uint32)
    even[order] = (steps & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
    return even


def look_up(thresholds: Thresholds, leaves: npt.NDArray[np.uint32], coins: npt.NDArray[np.uint32]) -> Codes:
    """The label of each row: how many thresholds of its leaf its coin has reached, by binary search in all at once."""
    width = thresholds.shape[1]
    flat = thresholds.reshape(-1)
    begin = leaves.astype(np.int64) * width - 1
    label = np.zeros(len(leaves), dtype=np.uint32)
    step = (1 << width.bit_length()) >> 1
    while step:
        ahead = label + np.uint32(step)
        reached = flat[begin + np.minimum(ahead, width)] <= coins if width else np.zeros(0, dtype=bool)
        label = np.where(reached & (ahead <= width), ahead, label)
        step >>= 1
    return label
