"""Random decision trees over a declared domain: their structures, and what noisy leaf counts say.

A structure needs the attributes and their sizes alone, so it is public and costs nothing (Jagannathan,
Pillaipakkamnatt, Wright 2012). Leaf counts come as measurements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Attribute, Counts, Domain, IntArray
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import TreeQuery
from hedgerow.errors import LimitError

CELL_BYTES = 32
"""Working memory for one (leaf, label) cell: its exact count, its noisy count and two distributions."""
NODE_BYTES = 64


@dataclass(frozen=True, eq=False)
class RandomTree:
    """A random structure as a query, and its levels from the root down.

    `firsts[level][node]` is the index, in the level below, of a node's first child; children lie side by side, and the
    last level holds the leaves.
    """

    query: TreeQuery
    firsts: tuple[IntArray, ...]

    @property
    def bytes(self) -> int:
        """Working memory that its counts, distributions and nodes take."""
        return CELL_BYTES * self.query.cells + NODE_BYTES * len(self.query.split)


def grow(
    domain: Domain,
    label: str,
    height: int,
    rng: np.random.Generator,
    *,
    ranges: int = 0,
    memory: int = 1 << 30,
) -> RandomTree:
    """A tree of `height` levels, the leaves among them, that tells `label` from the other attributes.

    Every node draws its own attribute, uniformly among those not yet used on its path. A node has one branch per code;
    with `ranges`, an ordered attribute of more codes than that has so many branches, cut at random places that the
    whole tree shares. Refused before a level is made that would not fit `memory` bytes.
    """
    others = [attribute for attribute in domain if attribute.name != label and attribute.size > 1]
    maps = [_branches(attribute, ranges, rng) for attribute in others]
    sizes = np.array([attribute.size for attribute in others], dtype=np.int64)
    widths = np.array([mapping[-1] + 1 for mapping in maps], dtype=np.int64)
    branch = np.concatenate([np.zeros(0, dtype=np.int64), *maps])
    codes_begin = np.cumsum(sizes) - sizes
    free = np.ones((1, len(others)), dtype=bool)
    at: IntArray = np.zeros(1, dtype=np.int64)  # the node that each entry of the level stands for
    split, child, firsts = [], [], []
    entries = 1
    for _ in range(min(height - 1, len(others))):
        chosen = _any_free(free, rng)
        _refuse_large(domain, label, height, int(widths[chosen].sum()), int(sizes[chosen].sum()), memory)
        first, begin = (np.cumsum(count) - count for count in (widths[chosen], sizes[chosen]))
        split.append(chosen[at])
        child.append(entries + begin[at])
        owner = np.repeat(np.arange(len(chosen)), sizes[chosen])
        code = np.arange(len(owner)) - begin[owner]
        at = first[owner] + branch[codes_begin[chosen[owner]] + code]  # codes of one range stand for one node
        entries += len(at)
        parent = np.repeat(np.arange(len(chosen)), widths[chosen])
        free = free[parent]
        free[np.arange(len(parent)), chosen[parent]] = False
        firsts.append(first)
    asked, questions = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *split]), return_inverse=True)
    names = tuple(others[index].name for index in asked)
    leaves = np.full(len(at), -1)
    query = TreeQuery(domain, names, np.concatenate([questions, leaves]), np.concatenate([*child, at]), label)
    return RandomTree(query, tuple(firsts))


def expected_leaves(domain: Domain, label: str, height: int, ranges: int = 0) -> float:
    """The mean number of leaves of such trees: of products over equally likely sets of `height − 1` attributes."""
    widths = [
        min(attribute.size, ranges) if ranges and attribute.ordered else attribute.size
        for attribute in domain
        if attribute.name != label and attribute.size > 1
    ]
    splits = min(height - 1, len(widths))
    products = [1.0] + [0.0] * splits  # mean products of 0, 1, … attributes: elementary symmetric means
    for count, width in enumerate(widths, start=1):
        for degree in range(min(count, splits), 0, -1):
            products[degree] += width * products[degree - 1]
    return products[splits] / math.comb(len(widths), splits)


def _branches(attribute: Attribute, ranges: int, rng: np.random.Generator) -> IntArray:
    """The branch of each code."""
    if not (ranges and attribute.ordered and attribute.size > ranges):
        return np.arange(attribute.size)
    cuts = np.zeros(attribute.size, dtype=np.int64)
    cuts[1 + rng.choice(attribute.size - 1, ranges - 1, replace=False)] = 1
    return np.cumsum(cuts)


def _any_free(free: npt.NDArray[np.bool_], rng: np.random.Generator) -> IntArray:
    """For each node, one of its free attributes, uniformly."""
    rank = rng.integers(0, free.sum(axis=1))
    chosen: IntArray = (np.cumsum(free, axis=1) > rank[:, None]).argmax(axis=1)
    return chosen


def _refuse_large(domain: Domain, label: str, height: int, nodes: int, entries: int, memory: int) -> None:
    needed = CELL_BYTES * nodes * domain[label].size + NODE_BYTES * entries
    if needed > memory:
        raise LimitError(
            "tree-too-large",
            f'a tree of height {height} for "{label}" needs {needed >> 20:,} MB at one of its levels; '
            f"{memory >> 20:,} MB are left for it. It was not grown. "
            "Hint: a smaller height, fewer trees, bins, or a larger --max-memory.",
        )


def clipped_leaves(tree: RandomTree, measurement: Measurement, root: Counts) -> Counts:
    """The label's distribution in each leaf as its noisy counts have it; an empty leaf says what the root says."""
    counts = np.maximum(measurement.values, 0).astype(np.float64).reshape(tree.query.shape)
    return _normalised(counts, root[None, :] / root.sum())


def shrunk_leaves(tree: RandomTree, measurement: Measurement, root: Counts) -> Counts:
    """The label's distribution in each leaf, as far as its noisy counts can tell.

    A node's counts are the sums of its leaves', so inner nodes are known too, at no further cost. Going down from the
    root, whose distribution is given, a node keeps of its departure from its parent the part that noise does not
    explain: the positive-part James–Stein rule. A leaf that is all noise says what its parent says.
    """
    counts = [measurement.values.astype(np.float64).reshape(tree.query.shape)]
    leaves = [np.ones(tree.query.leaves)]
    for first in reversed(tree.firsts):
        counts.insert(0, np.add.reduceat(counts[0], first, axis=0))
        leaves.insert(0, np.add.reduceat(leaves[0], first))
    distribution: Counts = root[None, :] / root.sum()
    for level, first in enumerate(tree.firsts, start=1):
        children = np.diff(first, append=len(counts[level]))
        guess = np.repeat(distribution, children, axis=0)
        distribution = _shrunk(guess, counts[level], measurement.noise.variance * leaves[level])
    return distribution


def _shrunk(guess: Counts, counts: Counts, variance: Counts) -> Counts:
    """Distributions between the guess and the counts.

    The departure r = c − (Σc)·q of pure noise has E‖r‖² = variance · (k − 2 + k‖q‖²) for k labels; the part
    1 − E‖r‖²/‖r‖² of it is kept, or none.
    """
    labels = counts.shape[1]
    rows = counts.sum(axis=1, keepdims=True)
    departure = counts - rows * guess
    noise = variance * (labels - 2 + labels * (guess**2).sum(axis=1))
    found = (departure**2).sum(axis=1)
    kept = np.maximum(found - noise, 0.0) / np.maximum(found, 1e-300)
    estimate = rows * guess + kept[:, None] * departure
    return _normalised(np.where(rows > 0, np.maximum(estimate, 0.0), 0.0), guess)


def _normalised(counts: Counts, otherwise: Counts) -> Counts:
    """Counts as distributions, line by line; a line without counts is taken from `otherwise`."""
    total = counts.sum(axis=1, keepdims=True)
    distribution: Counts = np.where(total > 0, counts / np.where(total > 0, total, 1.0), otherwise)
    return distribution


def told(measurement: Measurement, leaves: Counts, root: Counts) -> float:
    """How much a tree tells: the mean distance, over its rows, of the leaves' distributions from the root's."""
    rows = np.maximum(measurement.values.reshape(leaves.shape).sum(axis=1), 0)
    distance = 0.5 * np.abs(leaves - root / root.sum()).sum(axis=1)
    return float(rows @ distance / max(rows.sum(), 1))
