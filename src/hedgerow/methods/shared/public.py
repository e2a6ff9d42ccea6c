"""What a public table tells: which attributes belong together, and what is believed before anything is measured.

A table given with `--public` is the user's word that it was not made from the private rows. All that is learnt from it
is then as public as the schema, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from hedgerow import _count
from hedgerow.coded.domain import CodedTable, Codes, Counts, Domain, IntArray, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.records import shares_of
from hedgerow.models.rows import CountedRows

TRUST_SHARE = 0.02
"""The part of the budget that asks how far public pairs are from the private ones."""
MOST_UNSURE = 0.25
"""Distances are asked for where their noise is at most this part of the rows."""
_AT_ONCE = 32
"""Marginals that share one scan of the rows."""
_DENSE = 1 << 18
"""Marginals of up to so many cells are counted in an array, wider ones by their occupied cells."""


class Relations:
    """How attributes of a public table depend on each other, beyond what chance shows in as many rows.

    In few rows any two wide attributes look related. So each figure is taken a second time on shuffled rows, where
    the relation is gone and the chance is not, and the difference counts.
    """

    def __init__(self, domain: Domain, table: CodedTable, rng: np.random.Generator):
        self.names = domain.names
        self._rng = rng
        self._rows = {name: _ranked(table[name], domain[name].dtype) for name in self.names}
        self._sizes = {name: int(codes.max()) + 1 for name, codes in self._rows.items()}

    def cells(self, marginal: Marginal) -> int:
        """How many cells the codes that occur span."""
        return math.prod(self._sizes[name] for name in marginal)

    def entropies(self) -> dict[str, float]:
        """Of every attribute by itself, in nats."""
        return dict(zip(self.names, self._entropies(self._rows, [(name,) for name in self.names]), strict=True))

    def information(self, most_cells: float = math.inf) -> dict[Marginal, float]:
        """Mutual information of every pair that has fewer than `most_cells` cells, in nats.

        It is the entropy of the pair once the rows of each attribute are shuffled by themselves, less that of the pair.
        """
        shuffled = {name: self._rng.permutation(codes) for name, codes in self._rows.items()}
        pairs = [pair for pair in combinations(self.names, 2) if self.cells(pair) < most_cells]
        both = zip(pairs, self._entropies(shuffled, pairs), self._entropies(self._rows, pairs), strict=True)
        return {pair: loose - tied for pair, loose, tied in both}

    def missed(self, centre: str, first: str, second: str) -> float:
        """The L1 distance between P(centre, first, second) and P(centre, first)·P(centre, second) / P(centre).

        That is how wrong a tree is that knows the two pairs only. The shuffled rows swap `second` among rows of
        equal `centre`.
        """
        shuffled = dict(self._rows)
        order = np.argsort(self._rows[centre], kind="stable")
        swapped = np.lexsort((self._rng.random(len(order)), self._rows[centre]))
        shuffled[second] = np.empty_like(self._rows[second])
        shuffled[second][order] = self._rows[second][swapped]
        return self._apart(self._rows, centre, first, second) - self._apart(shuffled, centre, first, second)

    def _apart(self, rows: Mapping[str, Codes], centre: str, first: str, second: str) -> float:
        """Σ|p − q| over all cells = 1 + Σ over the occupied ones of (|p − q| − q), as q sums to one."""
        marginals: list[Marginal] = [(centre, first, second), (centre, first), (centre, second), (centre,)]
        (cells, joint), *parts = self._occupied(rows, marginals)
        left, right = self._sizes[first], self._sizes[second]
        index = cells // (left * right)
        inside = (index * left + cells // right % left, index * right + cells % right, index)
        with_first, with_second, alone = (
            counts[np.searchsorted(known, wanted)] for (known, counts), wanted in zip(parts, inside, strict=True)
        )
        p = joint / len(rows[centre])
        q = with_first * with_second / alone / len(rows[centre])
        return float(1 + (np.abs(p - q) - q).sum())

    def _entropies(self, rows: Mapping[str, Codes], marginals: Sequence[Marginal]) -> Iterator[float]:
        for _, counts in self._occupied(rows, marginals):
            shares: Counts = counts / counts.sum()
            yield float(-(shares * np.log(shares)).sum())

    def _occupied(
        self, rows: Mapping[str, Codes], marginals: Sequence[Marginal]
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """The cells that occur and their counts, marginal by marginal; cells are numbered in the order of the names."""
        index = {name: number for number, name in enumerate(self.names)}
        columns, length = [rows[name] for name in self.names], len(next(iter(rows.values())))
        for start in range(0, len(marginals), _AT_ONCE):
            queries = [
                _count.Marginal([index[n] for n in names], [self._sizes[n] for n in names], [None] * len(names), None)
                for names in marginals[start : start + _AT_ONCE]
            ]
            for answer in _count.count(columns, length, queries, _DENSE, 1):
                if isinstance(answer, tuple):
                    yield answer
                else:
                    cells = np.flatnonzero(answer)
                    yield cells, answer[cells]


class Forest(NamedTuple):
    """Pairs without a circle, and the attributes of each tree that they form."""

    pairs: list[Marginal]
    trees: list[Marginal]


def forest(
    trees: Iterable[Marginal],
    strengths: Mapping[Marginal, float],
    fits: Callable[[frozenset[str]], bool] = lambda tree: True,
) -> Forest:
    """Join trees by the strongest pairs first (Kruskal), as long as what they form fits."""
    tree_of: dict[str, frozenset[str]] = {}
    for tree in trees:
        tree_of |= dict.fromkeys(tree, frozenset(tree))
    pairs = []
    for pair in sorted(strengths, key=lambda pair: -strengths[pair]):
        first, second = (tree_of[name] for name in pair)
        joined = first | second
        if first != second and fits(joined):
            tree_of |= dict.fromkeys(joined, joined)
            pairs.append(pair)
    grown = dict.fromkeys(tree_of.values())
    return Forest(pairs, [tuple(name for name in tree_of if name in tree) for tree in grown])


def public_columns(domain: Domain, table: CodedTable) -> dict[str, Counts]:
    """The shares of each column in public rows."""
    return {name: shares_of(table, domain, (name,)) for name in domain.names}


def public_pairs(curator: Curator, table: CodedTable, alone: GraphicalModel, megabytes: float) -> list[Measurement]:
    """A tree of the pairs that depend most on each other in public rows, as far as they are like the private ones.

    To take a pair from public rows or to measure it is a choice by expected error (Fuentes, Mullins, McKenna, Miklau,
    Sheldon 2024). Noisy distances of the private pairs from the public ones, and from independent columns, tell which
    pairs are nearer than none, and how far each is to be believed: a public pair counts as a measurement with noise of
    that size. Where the budget cannot tell, they are taken at the user's word. No pair takes more than its part of the
    megabytes, so that the tree leaves room for what is measured.
    """
    domain, total = curator.domain, alone.total
    most = megabytes * 2**20 / 8 / len(domain)
    relations = Relations(domain, table, curator.rng).information()
    strong = {pair: value for pair, value in relations.items() if value > 0 and domain.cells(pair) <= most}
    pairs = forest([(name,) for name in domain.names], strong).pairs
    if not pairs:
        return []
    public = CountedRows(table, total)
    queries = [MarginalQuery(domain, pair) for pair in pairs]
    rows = len(next(iter(table.values())))
    errors = {query: total / math.sqrt(rows * query.cells) for query in queries}  # of a mean cell, by chance alone
    spend = curator.remaining.share(TRUST_SHARE / 2)
    unsure = curator.noise(spend, [1.0] * len(pairs))[0].mean_absolute if spend else math.inf
    if unsure <= MOST_UNSURE * total:
        candidates = [Candidate(query) for query in queries]
        far, farther = (curator.score(candidates, against=each, spend=spend) for each in (public, alone))
        errors = {
            query: max(errors[query], math.sqrt(math.pi / 2) * max(apart, unsure) / query.cells)
            for query, apart, without in zip(queries, far, farther, strict=True)
            if apart < without
        }
    answers = zip(errors.items(), public.answers(list(errors)), strict=True)
    return [
        Measurement(query, np.rint(counts).astype(np.int64), Noise("gaussian", error))
        for (query, error), counts in answers
    ]


def _ranked(codes: Codes, dtype: np.dtype[Any]) -> Codes:
    """Codes numbered anew, without those that do not occur."""
    return np.unique(codes, return_inverse=True)[1].astype(dtype)
