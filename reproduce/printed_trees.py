"""The random-decision-trees procedure as printed. NOT PRIVATE: it is here so that its figures can be seen again.

Its sensitivity is read off the rows, its trees are not counted as parts of the budget, its noise is cut off at a
private value, and every synthetic row is made from a true one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hedgerow import _count
from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray
from hedgerow.coded.query import TreeQuery
from hedgerow.curator import PRINTED, Curator
from hedgerow.methods.method import About
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.trees import RandomTree, grow
from hedgerow.private.unsafe import exact_rows
from hedgerow.progress import Progress

Leaves = npt.NDArray[np.uint32]
ROWS_AT_ONCE = 1 << 14


@dataclass(eq=False)
class Synthesised:
    """What a run made: its rows, the structures that it used, and the CPU seconds of each step."""

    rows: CodedTable
    trees: dict[str, list[TreeQuery]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        begin = time.process_time()
        yield
        self.seconds[step] = self.seconds.get(step, 0.0) + time.process_time() - begin


@dataclass(frozen=True)
class PrintedTrees:
    """Ensembles of random trees, fitted to the true rows and looked up by the true rows.

    `stage` says where Laplace noise of scale sensitivity/epsilon goes: on leaf frequencies, on the proportions that
    they give, or nowhere.
    """

    stage: Literal["none", "frequencies", "proportions"] = "frequencies"
    sensitivity: float = 1.0
    epsilon: float = 1.0
    trees: int = 5
    height: int = 5
    order: tuple[str, ...] = ()

    about: ClassVar[About] = About(
        name="printed-trees",
        title="Random decision trees as printed",
        summary="The write-up's own procedure, for its figures.",
        argument="None: it walks true rows.",
        paper="Duke University Synthetic Data Project (2018).",
        void=PRINTED,
    )

    def run(self, curator: Curator, progress: Progress) -> Histograms:
        """The empirical distribution of the synthetic rows."""
        domain = curator.domain
        made = self.synthesise(exact_rows(curator), domain, curator.rng).rows
        codes = [made[name].astype(np.int64) for name in domain.names]
        cells, counts = np.unique(np.ravel_multi_index(codes, domain.shape(domain.names)), return_counts=True)
        if not len(cells):
            return Histograms(domain, [Part((a.name,), np.ones(a.size)) for a in domain], 1.0)
        return Histograms(domain, [Part(domain.names, counts.astype(np.float64), cells)], float(counts.sum()))

    def synthesise(self, rows: CodedTable, domain: Domain, rng: np.random.Generator) -> Synthesised:
        """Replace one column after another; later trees are fitted to the columns already replaced."""
        made = Synthesised(dict(rows))
        for label in self.order or domain.names:
            with made.timed("grow"):
                trees = [grow(domain, label, self.height, rng) for _ in range(self.trees)]
            with made.timed("count"):
                leaves = [reached(tree, made.rows) for tree in trees]
                counts = [leaf_counts(tree, leaf, made.rows) for tree, leaf in zip(trees, leaves, strict=True)]
            with made.timed("noise"):
                weights = [self.perturbed(count, rng) for count in counts]
            with made.timed("draw"):
                made.rows[label] = drawn(weights, leaves, rng).astype(domain[label].dtype)
            made.trees[label] = [tree.query for tree in trees]
        return made

    def perturbed(self, counts: Counts, rng: np.random.Generator) -> Counts:
        """Leaf weights. A leaf whose counts are all 0 after rounding says nothing."""
        scale = self.sensitivity / self.epsilon
        if self.stage == "frequencies":
            counts = np.maximum(np.rint(counts + rng.laplace(0.0, scale, counts.shape)), 0.0)
        proportions: Counts = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
        if self.stage == "proportions":
            proportions = proportions + truncated_laplace(proportions, scale, rng)
        return proportions


def reached(tree: RandomTree, rows: CodedTable) -> Leaves:
    """The leaf of every row."""
    query = tree.query
    columns = [rows[name] for name in query.splits_on]
    sizes = list(query.split_sizes)
    plan = _count.Tree(list(range(len(sizes))), sizes, query.split, query.child, query.leaves, None, 1)
    return _count.find_leaves(columns, len(columns[0]), plan)


def leaf_counts(tree: RandomTree, leaves: Leaves, rows: CodedTable) -> Counts:
    """Exact counts of (leaf, label)."""
    query = tree.query
    assert query.label is not None
    cells = leaves.astype(np.int64) * query.label_size + rows[query.label]
    return np.bincount(cells, minlength=query.cells).astype(np.float64).reshape(query.shape)


def truncated_laplace(proportions: Counts, scale: float, rng: np.random.Generator) -> Counts:
    """Laplace noise on the condition that it is at least −proportion, by inversion."""
    lowest = 0.5 * np.exp(-proportions / scale)
    level = lowest + (1 - lowest) * rng.random(proportions.shape)
    with np.errstate(divide="ignore"):
        noise: Counts = scale * np.where(level < 0.5, np.log(2 * level), -np.log(2 * (1 - level)))
    return np.maximum(noise, -proportions)


def drawn(weights: Sequence[Counts], leaves: Sequence[Leaves], rng: np.random.Generator) -> IntArray:
    """One label per row from the sum of its leaves' weights; uniform where no leaf says anything."""
    rows = len(leaves[0])
    labels = np.empty(rows, dtype=np.int64)
    for first in range(0, rows, ROWS_AT_ONCE):
        here = slice(first, first + ROWS_AT_ONCE)
        ends = sum(weight[leaf[here]] for weight, leaf in zip(weights, leaves, strict=True))
        assert isinstance(ends, np.ndarray)
        ends[ends.sum(axis=1) <= 0] = 1.0
        np.cumsum(ends, axis=1, out=ends)
        coin = rng.random(len(ends))[:, None] * ends[:, -1:]
        labels[here] = np.minimum((coin >= ends).sum(axis=1), ends.shape[1] - 1)
    return labels


def removal_changes(counts: Counts, leaves: Leaves, labels: npt.NDArray[np.unsignedinteger]) -> Counts:
    """How far each row's own leaf proportion moves when that row is taken away: the write-up's Δ(f), row by row.

    (1 − p)/(m − 1) for a leaf of m rows; 1 where the row was alone.
    """
    rows = counts.sum(axis=1)[leaves]
    share = counts[leaves, labels] / rows
    return np.where(rows > 1, (1 - share) / np.maximum(rows - 1, 1), 1.0)
