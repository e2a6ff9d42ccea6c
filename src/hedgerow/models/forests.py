"""Rows by leaf look-up: every attribute has a forest of random trees that tells it from the others.

Nothing here has a handle on data: the rows that walk through the trees are synthetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow import _count
from hedgerow.coded.domain import CodedTable, Codes, Counts, Domain, IntArray, Marginal
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.histograms import Histograms
from hedgerow.models.model import BLOCK_ROWS, FromMarginals, State, block_rng
from hedgerow.models.records import shares_of
from hedgerow.models.stored import Stored
from hedgerow.models.trees import RandomTree

ONE = 1 << 31
"""Distributions are written down in units of 2⁻³¹: drawing from them is arithmetic of whole numbers."""
MOST_SWEEPS = 1_000
MOST_NODES = (1 << 31) - 1
GOLDEN = 0x9E3779B9
"""2³² divided by the golden ratio: multiples of it fill a circle evenly, whichever stretch of them is taken."""

Whole = npt.NDArray[np.uint32]
"""Whole numbers of units."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The trees of one attribute, as one tree whose root is a coin that picks one of them.

    Drawing a label from the weighted mean of several leaves' distributions is drawing from one leaf, picked by weight.
    """

    label: str
    picks: Whole
    """How likely each tree is picked, in units of 2⁻³¹."""
    split: npt.NDArray[np.int32]
    child: IntArray
    leaves: Whole
    """The distribution of the label in each leaf, in units of 2⁻³¹."""

    @classmethod
    def of(
        cls, domain: Domain, trees: Sequence[RandomTree], distributions: Sequence[Counts], weights: Counts
    ) -> Forest:
        """Node 0 picks a tree, nodes 1 … m are the trees' roots, the rest of each tree follows."""
        label = trees[0].query.label
        assert label is not None
        indices = {name: index for index, name in enumerate(_others(domain, label))}
        roots, rests, leaves, nodes = [(np.array([len(indices)]), np.array([1]))], [], 0, 1 + len(trees)
        for query in (tree.query for tree in trees):
            asked = np.array([*(indices[name] for name in query.splits_on), -1])  # a leaf's −1 stays −1
            split, child = asked[query.split], query.child + np.where(query.split >= 0, nodes - 1, leaves)
            roots.append((split[:1], child[:1]))
            rests.append((split[1:], child[1:]))
            leaves += query.leaves
            nodes += len(query.split) - 1
        splits, children = (np.concatenate(parts) for parts in zip(*roots, *rests, strict=True))
        whole = np.concatenate([in_units(distribution) for distribution in distributions])
        return cls(label, in_units(weights[None, :])[0], splits.astype(np.int32), children, whole)

    def attributes(self, domain: Domain) -> Marginal:
        """What the trees may split on, numbered as in `split`."""
        return _others(domain, self.label)

    def plan(self, domain: Domain) -> _count.Tree:
        """The structure as the kernel walks it; the columns are those of `attributes`, then the picks.

        The kernel trusts codes, and the codes that it will see come from here: the shape is checked.
        """
        if self.leaves.shape[1] != domain[self.label].size:
            raise HedgerowError(
                "bad-forest", f'the leaves of "{self.label}" have another number of labels than the attribute.'
            )
        sizes = [*domain.shape(self.attributes(domain)), len(self.picks)]
        return _count.Tree(list(range(len(sizes))), sizes, self.split, self.child, len(self.leaves), None, 1)

    def pick(self, rows: int, rng: np.random.Generator) -> Whole:
        """The tree that each row walks through."""
        ends = np.cumsum(self.picks, dtype=np.uint32)[:-1]
        return np.searchsorted(ends, rng.integers(0, ONE, rows, dtype=np.uint32), side="right").astype(np.uint32)

    def calibrated(self, reached: Whole, target: Counts) -> Whole:
        """Distribution functions of the leaves, weighted label by label so that the rows' labels come out as `target`.

        One round of raking. It keeps single columns as they were measured, and the sweeps from drifting: what noise
        does to nearly certain leaves would add up from draw to draw. The sums are of whole numbers below 2⁵³, so they
        are exact in any order.
        """
        expected = np.bincount(reached, minlength=len(self.leaves)).astype(np.float64) @ self.leaves.astype(np.float64)
        ratio = np.divide(target, expected, out=np.zeros_like(expected), where=expected > 0)
        ends = np.cumsum(self.leaves * ratio, axis=1)
        plain = np.cumsum(self.leaves, axis=1, dtype=np.float64)  # a leaf whose every label is excluded stays as it is
        return _thresholds(np.where(ends[:, -1:] > 0, ends, plain))


def _others(domain: Domain, label: str) -> Marginal:
    return tuple(attribute.name for attribute in domain if attribute.name != label and attribute.size > 1)


def _thresholds(ends: Counts) -> Whole:
    """Distribution functions in units; what has no weight gets no unit."""
    thresholds: Whole = np.rint(np.minimum(ends / ends[:, -1:], 1.0) * ONE).astype(np.uint32)
    return thresholds


def in_units(distribution: Counts) -> Whole:
    """Distributions in units that sum to one exactly."""
    return np.diff(_thresholds(np.cumsum(distribution, axis=1)), prepend=np.uint32(0), axis=1)


class RandomTrees(FromMarginals):
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
        return self.total * shares_of(self._sample, self.domain, marginal)

    @cached_property
    def _sample(self) -> CodedTable:
        return self.draw(BLOCK_ROWS, block_rng(0, 0))

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        table = self.start.draw(rows, rng)
        for _ in range(self.sweeps):
            for forest, plan in zip(self.forests, self._plans, strict=True):
                columns = [table[name] for name in forest.attributes(self.domain)]
                reached = _count.find_leaves([*columns, forest.pick(rows, rng)], rows, plan)
                thresholds = forest.calibrated(reached, self.start.marginal((forest.label,)))
                drawn = look_up(thresholds, reached, even_uniforms(reached, rng))
                table[forest.label] = drawn.astype(self.domain[forest.label].dtype)
        return table

    def state(self) -> State:
        start = self.start.state()
        arrays: dict[str, npt.NDArray[Any]] = {f"start.{name}": array for name, array in start.arrays.items()}
        for number, forest in enumerate(self.forests):
            arrays |= {
                f"picks{number}": forest.picks,
                f"split{number}": forest.split,
                f"child{number}": forest.child,
                f"leaves{number}": forest.leaves,
            }
        labels = [forest.label for forest in self.forests]
        return State(self.kind, {"start": start.values, "labels": labels, "sweeps": self.sweeps}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> RandomTrees:
        inside = stored.held("start", Histograms.kind)
        start = Histograms.from_state(domain, inside)
        inside.finish()
        labels, sweeps = stored.names("labels", domain), stored.whole("sweeps", 1, MOST_SWEEPS)
        forests = [_forest(domain, stored, label, number, sweeps) for number, label in enumerate(labels)]
        return cls(start, forests, sweeps)


def _forest(domain: Domain, stored: Stored, label: str, number: int, sweeps: int) -> Forest:
    """A forest of a state. The kernel walks it without looking where it steps, so every step is checked here."""
    labels = domain[label].size
    picks = stored.integers(f"picks{number}", (None,), 0, ONE, np.uint32)
    sizes: IntArray = np.array([*domain.shape(_others(domain, label)), len(picks)], dtype=np.int64)
    split = stored.integers(f"split{number}", (None,), -1, len(sizes) - 1, np.int32)
    child = stored.integers(f"child{number}", (len(split),), 0, MOST_NODES)
    leaves = stored.integers(f"leaves{number}", (None, labels), 0, ONE, np.uint32)
    if len(split) > MOST_NODES or int(picks.sum(dtype=np.uint64)) != ONE:
        raise ReleaseError(
            "model-forest-weights",
            f'the trees of "{label}" in the release are too many, or picked with no chance in all.',
        )
    if (leaves.sum(axis=1, dtype=np.uint64) != ONE).any():
        raise ReleaseError("model-leaf", f'a leaf of "{label}" in the release is no distribution.')
    inner = split >= 0
    wide = np.where(inner, sizes[split], 0)
    if (child[~inner] >= len(leaves)).any():
        raise ReleaseError("model-leaves", f'a tree of "{label}" in the release has leaves that are not there.')
    if (inner & ((child <= np.arange(len(split))) | (child + wide > len(split)))).any():
        raise ReleaseError("model-children", f'a tree of "{label}" in the release has children that are not there.')
    depth = _depth(stored, child, wide, len(sizes))
    stored.take(
        memory=24 * len(split) + 56 * leaves.size,
        steps=int(wide.sum()) + sweeps * 10 * leaves.size,
        rows=sweeps * (depth + len(sizes) + 40),
    )
    return Forest(label, picks, split, child, leaves)


def _depth(stored: Stored, child: IntArray, wide: IntArray, most: int) -> int:
    """How many questions lead to the deepest leaf; each attribute, and the choice of a tree, is asked at most once."""
    at = np.zeros(1, dtype=np.int64)
    for depth in range(most + 1):
        at = at[wide[at] > 0]
        if not len(at):
            return depth
        stored.take(steps=8 * len(child))
        begun = np.zeros(len(child) + 1, dtype=np.int64)
        np.add.at(begun, child[at], 1)
        np.add.at(begun, child[at] + wide[at], -1)
        at = np.flatnonzero(np.cumsum(begun)[:-1])
    raise ReleaseError(
        "model-tree-depth", "a tree of the release asks more questions in a row than there are attributes."
    )


def even_uniforms(reached: Whole, rng: np.random.Generator) -> Whole:
    """One uniform number below 2³¹ per row, spread evenly over the rows of any leaf and of neighbouring leaves.

    Every row's number is uniform; together they are multiples of the golden ratio in the order of the leaves, with
    rows of one leaf in random order. Label counts then come out closer to their expectations than by separate draws.
    """
    rows = len(reached)
    keys = reached.astype(np.uint64) << np.uint64(32) | rng.integers(0, 1 << 32, rows, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")  # of two that are equal the first, on every platform
    steps = np.arange(rows, dtype=np.uint64) * GOLDEN + rng.integers(0, 1 << 32, dtype=np.uint64)
    even = np.empty(rows, dtype=np.uint32)
    even[order] = (steps & np.uint64(0xFFFFFFFF)) >> np.uint64(1)
    return even


def look_up(thresholds: Whole, reached: Whole, uniforms: Whole) -> Codes:
    """The label of each row: how many thresholds of its leaf its number has reached, by binary search in all at once.

    The last threshold is 2³¹, which no number reaches.
    """
    labels = thresholds.shape[1]
    flat = thresholds.reshape(-1)
    begin = reached.astype(np.int64) * labels - 1
    label = np.zeros(len(reached), dtype=np.uint32)
    step = (1 << labels.bit_length()) >> 1
    while step:
        ahead = np.minimum(label + np.uint32(step), np.uint32(labels))
        label = np.where(flat[begin + ahead] <= uniforms, ahead, label)
        step >>= 1
    return label
