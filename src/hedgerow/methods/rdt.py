"""Random decision trees: noisy leaf counts of random trees, and synthetic rows that look up their leaves.

Duke University Synthetic Data Project (2018), "Generation of Differentially Private Synthetic Data: Utility of Random
Decision Trees". Its own procedure is not private; this is the same idea with a guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.curator import Curator
from hedgerow.errors import LimitError, OptionError
from hedgerow.methods.method import About
from hedgerow.methods.option import Options, option
from hedgerow.methods.shared.documents import attributes_of, read_names
from hedgerow.methods.shared.start import TOTAL_SHARE, measure_one_ways
from hedgerow.models.forests import MOST_SWEEPS, Forest, RandomTrees
from hedgerow.models.histograms import Histograms, Part, project_to_simplex
from hedgerow.models.model import Model
from hedgerow.models.trees import RandomTree, clipped_leaves, expected_leaves, grow, shrunk_leaves, told
from hedgerow.progress import Progress

# tuned on the made-up personnel table and on br2000: the defaults of trees, emphasis, ranges, sweeps and columns
LEAVES = {"shrink": shrunk_leaves, "clip": clipped_leaves}
TREE = 600_000
"""Work of a tree: planting, measuring and weighing it."""
Planted = Mapping[str, Sequence[RandomTree]]
"""The trees of each attribute. They do not depend on the order in which attributes are drawn."""


@dataclass(frozen=True)
class RDT(Options):
    """Ensembles of random trees, one for each attribute."""

    trees: int = option(20, "trees for each attribute", at_least=1)
    height: int = option(0, "levels of a tree, the leaves among them; 0: the most that the noise allows", at_least=0)
    order: tuple[str, ...] = option(
        (),
        "columns to draw first, as year,agency; the others follow in the schema's order",
        read=lambda value: read_names(value, "order"),
    )
    sweeps: int = option(2, "how often every attribute is drawn anew", at_least=1, at_most=MOST_SWEEPS)
    noise: str = option(
        "shrink",
        "shrink: a noisy leaf leans on its parent; clip: negative counts become 0, as printed",
        one_of=tuple(LEAVES),
    )
    emphasis: float = option(8.0, "trees weigh by this power of how much they tell; 0: alike, as printed", at_least=0)
    ranges: int = option(5, "branches of an ordered attribute with more values; 0: one for each value", at_least=0)
    columns: float = option(0.1, "part of the budget that measures each column by itself", above=0, below=1)

    about: ClassVar[About] = About(
        name="rdt",
        title="Random decision trees",
        summary="Trees that ask random questions about the other columns; rows take their values from the leaves.",
        argument=(
            "The trees are drawn from the declared domain alone. A row reaches one cell of each tree, so the leaf "
            "counts of all trees are one stack of queries with integer noise, measured once. Rows start as independent "
            "columns from noisy counts; only synthetic rows walk through the trees, so the rest is post-processing."
        ),
        paper=(
            "Duke University Synthetic Data Project (2018), Generation of Differentially Private Synthetic Data: "
            "Utility of Random Decision Trees; Jagannathan, Pillaipakkamnatt, Wright (2012), A Practical "
            "Differentially Private Random Decision Tree Classifier, Transactions on Data Privacy 5, 273–295."
        ),
        departures=(
            "The write-up is not private: its sensitivity is read off the rows, its trees and attributes are not "
            "counted as parts of the budget, its noise is cut off at a private value, and each synthetic row is made "
            "from a true row.",
            "Noise is added to counts, never to proportions. A leaf keeps what noise does not explain of its departure "
            "from its parent; the write-up uses noisy leaves as they are.",
            "Trees weigh by how much they tell; the write-up averages them evenly. Single columns are held at their "
            "own noisy counts.",
            "The height follows from the domain, the noise and the noisy number of rows.",
            "Ordered attributes split into five ranges at random places, not into single values.",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranges == 1:
            raise OptionError("bad-option", "ranges must be 0, or at least 2: one branch splits nothing.")

    def run(self, curator: Curator, progress: Progress) -> Model:
        labels = self.labels(curator)
        planted = self.plant(curator, labels, self.height, progress)  # a tree too large costs nothing
        with progress.phase("measure every column"):
            count = curator.total(spend=curator.remaining.share(TOTAL_SHARE))
            if self.height == 0:
                planted = self.tallest(curator, labels, count.total, progress)
            spend = curator.remaining.share(self.columns) if planted else curator.remaining
            one_ways = measure_one_ways(curator, spend)
        start = independent(curator.domain, one_ways, estimated_total([count, *one_ways]))
        if not planted:
            return start
        with progress.phase("measure the leaves"):
            queries = [tree.query for trees in planted.values() for tree in trees]
            measured = iter(curator.measure(queries, spend=curator.remaining))
        with progress.phase("weigh the trees"):
            forests = {
                label: self.forest(curator.domain, trees, list(islice(measured, len(trees))), start.marginal((label,)))
                for label, trees in planted.items()
            }
        return RandomTrees(start, [forests[label] for label in labels], self.sweeps)

    def labels(self, curator: Curator) -> Marginal:
        """The attributes in the order in which they are drawn; those with a single value need no tree."""
        domain = curator.domain
        named = [name for column in self.order for name in attributes_of((column,), domain, curator.columns, "order")]
        return tuple(name for name in dict.fromkeys([*named, *domain.names]) if domain[name].size > 1)

    def plant(self, curator: Curator, labels: Marginal, height: int, progress: Progress) -> Planted:
        """As many trees for each attribute as the time allows; none where nothing would be split."""
        if height < 2 or len(labels) < 2:
            return {}
        planted: dict[str, list[RandomTree]] = {}
        left = progress.limits.memory
        trees = progress.affords(self.trees, TREE * len(labels), 1)
        progress.worked(TREE * len(labels) * trees)
        for label in curator.domain.marginal(labels):
            planted[label] = []
            for _ in range(trees):
                tree = grow(curator.domain, label, height, curator.rng, ranges=self.ranges, memory=left)
                planted[label].append(tree)
                left -= tree.bytes
        return planted

    def tallest(self, curator: Curator, labels: Marginal, rows: float, progress: Progress) -> Planted:
        """Trees as tall as the noise allows, or less where they would not fit the memory."""
        for height in range(self.affordable(curator, labels, rows), 1, -1):
            try:
                return self.plant(curator, labels, height, progress)
            except LimitError:
                continue
        return {}

    def forest(
        self, domain: Domain, trees: Sequence[RandomTree], measured: Sequence[Measurement], root: Counts
    ) -> Forest:
        """The leaves of an attribute's trees, and how much each tree has to say."""
        leaves = [LEAVES[self.noise](tree, one, root) for tree, one in zip(trees, measured, strict=True)]
        weights = np.array([told(one, leaf, root) for one, leaf in zip(measured, leaves, strict=True)]) ** self.emphasis
        return Forest.of(domain, trees, leaves, weights if weights.sum() > 0 else np.ones(len(trees)))

    def affordable(self, curator: Curator, labels: Marginal, rows: float) -> int:
        """The largest height at which the expected absolute noise on all cells of a tree is at most the number of rows.

        Beyond that a tree holds more noise than rows. On the made-up personnel table (10,000 and 100,000 rows, ε = 1
        and 10) and on br2000 this came within one level of the best height.
        """
        spend = curator.remaining.share(1 - self.columns)
        noise = curator.noise(spend, [1.0] * max(1, self.trees * len(labels)))[0].mean_absolute
        most = rows / max(1.0, noise)
        height = 1
        while height < len(labels) and self.cells(curator.domain, labels, height + 1) <= most:
            height += 1
        return height

    def cells(self, domain: Domain, labels: Marginal, height: int) -> float:
        """The mean number of cells of a tree."""
        alike = {(domain[name].size, bool(domain[name].ordered)): name for name in labels}
        leaves = {kind: expected_leaves(domain, name, height, self.ranges) for kind, name in alike.items()}
        sizes = [domain[name].size * leaves[domain[name].size, bool(domain[name].ordered)] for name in labels]
        return sum(sizes) / len(sizes)


def independent(domain: Domain, one_ways: Sequence[Measurement], total: float) -> Histograms:
    """Columns by themselves: noisy counts, brought to the nearest that are not negative and sum to the total."""
    counts: list[Counts] = [project_to_simplex(one_way.values.astype(np.float64), total) for one_way in one_ways]
    return Histograms(domain, [Part((name,), c) for name, c in zip(domain.names, counts, strict=True)], total)
