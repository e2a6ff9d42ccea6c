"""The tables that the study of random decision trees compares: the printed procedure, the private method, others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hedgerow as hr
from hedgerow.coded.domain import CodedTable, Counts, Domain, Marginal
from hedgerow.methods.field_groups import FieldGroups
from hedgerow.methods.rdt import RDT
from hedgerow.models.trees import RandomTree, grow
from hedgerow.samples import opm
from reproduce.printed_trees import PrintedTrees, leaf_counts, reached

LABELS: Mapping[str, Sequence[Any]] = {
    "year": opm.YEARS.tolist(),
    "sex": opm.SEXES,
    "race": opm.RACES,
    "age": [str(age) for age in opm.AGES],
    "agency": opm.AGENCIES,
    "occupation": opm.OCCUPATIONS,
    "education": [str(level) for level in opm.EDUCATIONS],
}
DOMAIN = Domain.of({name: len(labels) for name, labels in LABELS.items()})
ORDERED = ("year", "age", "education")
SCHEMA = hr.Schema.from_dict(
    {
        "columns": {
            name: {"type": "integer", "min": 0, "max": len(labels) - 1}
            if name in ORDERED
            else {"type": "code", "size": len(labels)}
            for name, labels in LABELS.items()
        }
    }
)
"""The seven attributes as codes: reading and writing labels a hundred times would take longer than the study."""
ORDER = ("year", "agency", "occupation", "education", "age", "sex", "race")
HEIGHTS = (3, 4, 5, 6, 7)
EPSILONS = (0.25, 1.0, 4.0)
WITHOUT_NOISE = 1e5
"""An ε at which the noise rounds to 0."""
PATH_TREES = 3
SEEDS = 2
PAY_CLASS = 5_000
TRIPLES: Mapping[str, Marginal] = {
    "FY within agency and occupation": ("agency", "occupation", "year"),
    "FY within sex and race": ("sex", "race", "year"),
    "education within agency and occupation": ("agency", "occupation", "education"),
    "sex within agency and occupation": ("agency", "occupation", "sex"),
    "age within sex and race": ("sex", "race", "age"),
}
"""Figures 6–15: the last attribute's bars in a panel for each combination of the first two."""


def coded(table: pa.Table) -> CodedTable:
    """Codes by index among the labels."""
    return {
        name: np.asarray(pc.index_in(table[name].cast(pa.string()), pa.array([str(label) for label in labels]))).astype(
            DOMAIN[name].dtype
        )
        for name, labels in LABELS.items()
    }


def shares(rows: CodedTable, marginal: Marginal) -> Counts:
    """The part of the rows in each cell of a marginal, its axes in the order named."""
    cell = np.zeros(len(rows[marginal[0]]), dtype=np.int64)
    for name in marginal:
        cell = cell * DOMAIN[name].size + rows[name]
    return np.bincount(cell, minlength=DOMAIN.cells(marginal)).reshape(DOMAIN.shape(marginal)) / len(cell)


@dataclass
class Original:
    """The write-up's D₀ and how far another table is from it."""

    rows_wanted: int
    known_paths: dict[tuple[str, int], list[tuple[RandomTree, Counts]]] = field(default_factory=dict)

    @cached_property
    def table(self) -> pa.Table:
        return opm.generate(self.rows_wanted)

    @cached_property
    def rows(self) -> CodedTable:
        return coded(self.table)

    @cached_property
    def triples(self) -> dict[Marginal, Counts]:
        return {triple: shares(self.rows, triple) for triple in combinations(DOMAIN.names, 3)}

    def private(self, method: Any, epsilon: float, seed: int = 0) -> CodedTable:
        """Rows of a release. The noise is seeded, so that the figures come out the same; the table is public."""
        table = pa.table(self.rows)
        release = hr.synthesize(table, SCHEMA, hr.Budget(epsilon), method, seed=seed, unsafe_noise_seed=seed)
        made = release.sample()
        return {name: np.asarray(made[name]).astype(DOMAIN[name].dtype) for name in DOMAIN.names}

    def compare(self, rows: CodedTable, height: int) -> dict[str, Any]:
        """Distances of all triples and of node paths, and the rows in combinations that D₀ does not have."""
        distance = {
            triple: 0.5 * float(np.abs(shares(rows, triple) - own).sum()) for triple, own in self.triples.items()
        }
        about = {name: [d for triple, d in distance.items() if name in triple] for name in ORDER}
        drawn = {what: (shares(self.rows, triple), shares(rows, triple)) for what, triple in TRIPLES.items()}
        return {
            "tvd3": float(np.mean(list(distance.values()))),
            "attributes": {name: float(np.mean(found)) for name, found in about.items()},
            "paths": {name: self.path_error(rows, name, height) for name in ORDER},
            "figures": {what: 0.5 * float(np.abs(ours - own).sum()) for what, (own, ours) in drawn.items()},
            "unseen": {what: float(ours[own == 0].sum()) for what, (own, ours) in drawn.items()},
        }

    def path_error(self, rows: CodedTable, label: str, height: int) -> float:
        """Mean squared difference of the parts of the rows in (node path, label) cells.

        The trees are the same for every table, so that tables can be compared.
        """
        differences = [own - paths(tree, rows) for tree, own in self.own_paths(label, height)]
        return float(np.mean([(difference**2).mean() for difference in differences]))

    def own_paths(self, label: str, height: int) -> list[tuple[RandomTree, Counts]]:
        if (label, height) not in self.known_paths:
            rng = np.random.default_rng([height, DOMAIN.index(label)])
            trees = [grow(DOMAIN, label, height, rng) for _ in range(PATH_TREES)]
            self.known_paths[label, height] = [(tree, paths(tree, self.rows)) for tree in trees]
        return self.known_paths[label, height]


def paths(tree: RandomTree, rows: CodedTable) -> Counts:
    """The part of the rows in each (node path, label) cell."""
    return leaf_counts(tree, reached(tree, rows), rows) / len(rows["year"])


@dataclass(frozen=True)
class Run:
    """One synthetic table."""

    name: str
    method: Any
    epsilon: float
    height: int = 5

    def measure(self, original: Original) -> dict[str, Any]:
        """How far it is from the original, and the CPU seconds of its steps; for `rdt` the mean of several runs.

        Which questions its trees happen to ask matters more there, because it listens to the trees that tell most.
        """
        tables = [self.table(original, seed) for seed in range(SEEDS if isinstance(self.method, RDT) else 1)]
        return _mean([{**original.compare(rows, self.height), "cpu_s": seconds} for rows, seconds in tables])

    def table(self, original: Original, seed: int) -> tuple[CodedTable, dict[str, float]]:
        if isinstance(self.method, PrintedTrees):
            made = self.method.synthesise(original.rows, DOMAIN, np.random.default_rng(seed))
            return made.rows, made.seconds
        begin = time.process_time()
        rows = original.private(self.method, self.epsilon, seed)
        return rows, {"whole": time.process_time() - begin}


def _mean(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each entry of alike mappings, which may hold mappings."""
    return {
        key: _mean([one[key] for one in found])
        if isinstance(value, dict)
        else float(np.mean([one[key] for one in found]))
        for key, value in found[0].items()
    }


def printed(stage: Any, epsilon: float, height: int, sensitivity: float = 1.0, order: Marginal = ORDER) -> PrintedTrees:
    return PrintedTrees(stage, sensitivity, epsilon, 5, height, order)


def runs() -> Iterator[Run]:
    """Every synthetic table that the figures and the tables need."""
    for height in HEIGHTS:
        yield Run(f"printed none h{height}", printed("none", 1.0, height), 1.0, height)
        yield Run(f"private none h{height}", RDT(trees=5, height=height, order=ORDER), WITHOUT_NOISE, height)
        for epsilon in EPSILONS:
            yield Run(f"printed F e{epsilon:g} h{height}", printed("frequencies", epsilon, height), epsilon, height)
            proportions = printed("proportions", epsilon, height, 0.025)
            yield Run(f"printed P e{epsilon:g} h{height}", proportions, epsilon, height)
            yield Run(f"private e{epsilon:g} h{height}", RDT(trees=5, height=height, order=ORDER), epsilon, height)
            if height in (3, 5) and epsilon == 1:
                clipped = RDT(trees=5, height=height, order=ORDER, noise="clip", ranges=0, emphasis=0)
                yield Run(f"private clip e{epsilon:g} h{height}", clipped, epsilon, height)
    yield Run("study printed P .05 e1 h5", printed("proportions", 1.0, 5, 0.05), 1.0)
    yield Run("study printed P 1 e1 h5", printed("proportions", 1.0, 5, 1.0), 1.0)
    for what, order in (("reversed", ORDER[::-1]), ("race first", ("race", "sex", "age", *ORDER[:4]))):
        yield Run(f"study printed F order {what}", printed("frequencies", 1.0, 5, order=order), 1.0)
        yield Run(f"study private order {what}", RDT(trees=5, height=5, order=order), 1.0)
    for sweeps in (1, 4):
        yield Run(f"study private sweeps {sweeps}", RDT(trees=5, height=5, order=ORDER, sweeps=sweeps), 1.0)
    yield Run("study private ranges 0", RDT(trees=5, height=5, order=ORDER, ranges=0), 1.0)
    yield Run("study private emphasis 0", RDT(trees=5, height=5, order=ORDER, emphasis=0), 1.0)
    for trees in (1, 20):
        yield Run(f"study private trees {trees}", RDT(trees=trees, height=5, order=ORDER), 1.0)
    for epsilon in EPSILONS:
        yield Run(f"other rdt e{epsilon:g}", RDT(order=ORDER), epsilon)
        yield Run(f"other field-groups, one group e{epsilon:g}", FieldGroups(groups=(tuple(LABELS),)), epsilon)
        for method in ("independent", "mst", "aim"):
            yield Run(f"other {method} e{epsilon:g}", method, epsilon)


@dataclass(frozen=True)
class PayRun:
    """A table with pay, a number: how finely it is binned, and whether trees ask for ranges or for single bins."""

    name: str
    method: RDT
    bins: int
    epsilon: float = 1.0

    def measure(self, original: Original) -> dict[str, Any]:
        """Distances of all triples with pay (in classes of 5,000), and of mean pay by sex and education."""
        return _mean([self.once(original, seed) for seed in range(SEEDS)])

    def once(self, original: Original, seed: int) -> dict[str, Any]:
        schema = hr.Schema.parse(opm.SCHEMA.replace("bins: 50", f"bins: {self.bins}"))
        budget = hr.Budget(self.epsilon)
        begin = time.process_time()
        release = hr.synthesize(original.table, schema, budget, self.method, seed=seed, unsafe_noise_seed=seed)
        made = release.sample()
        seconds = time.process_time() - begin
        real, synthetic = (
            {**coded(table), "pay": (np.asarray(table["pay"]) // PAY_CLASS).astype(np.uint32)}
            for table in (original.table, made)
        )
        distances = [
            0.5 * float(np.abs(_pay_shares(real, pair) - _pay_shares(synthetic, pair)).sum())
            for pair in combinations(DOMAIN.names, 2)
        ]
        means = [
            _mean_pay(rows, np.asarray(table["pay"])) for rows, table in ((real, original.table), (synthetic, made))
        ]
        return {
            "tvd3": float(np.mean(distances)),
            "mean_pay": float(np.nanmean(np.abs(means[1] / means[0] - 1))),
            "cpu_s": {"whole": seconds},
        }


def pay_runs() -> Iterator[PayRun]:
    for bins, ranges in ((50, 0), (50, 5), (200, 0), (200, 5)):
        yield PayRun(f"pay bins {bins} ranges {ranges}", RDT(ranges=ranges), bins)


def _pay_shares(rows: CodedTable, pair: Marginal) -> Counts:
    """Parts of the rows by a pair and the class of pay."""
    classes = 200_000 // PAY_CLASS
    first, second = DOMAIN.shape(pair)
    cell = (rows[pair[0]].astype(np.int64) * second + rows[pair[1]]) * classes + rows["pay"]
    return np.bincount(cell, minlength=first * second * classes) / len(cell)


def _mean_pay(rows: CodedTable, pay: Any) -> Counts:
    """Mean pay by sex and education (no one has the lowest)."""
    cell = rows["sex"].astype(np.int64) * DOMAIN["education"].size + rows["education"]
    count = np.bincount(cell, minlength=10)
    return np.where(count > 0, np.bincount(cell, weights=pay, minlength=10) / np.maximum(count, 1), np.nan)
