"""Counts of queries over coded rows that come block by block, by the compiled kernel, wherever the rows are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from hedgerow import _count
from hedgerow.coded.domain import Codes, Domain, IntArray
from hedgerow.coded.joining import Join
from hedgerow.coded.query import MarginalQuery, Query

CELLS_AT_ONCE = 1 << 18
"""Of queries that share a scan: their counts stay in cache."""
Answer: TypeAlias = IntArray | tuple[IntArray, IntArray]
"""Dense counts, or the occupied cells in order and their counts."""


class Tally:
    """Counts of some queries that share a scan; those of blocks add up.

    `touched` are the columns that the queries look at, the others may hold anything. The codes of `joins` stand behind
    the columns of the domain.
    """

    def __init__(self, domain: Domain, queries: Sequence[Query], dense: int):
        joins = {join.digest: join for query in queries for join in _joins(query)}
        places = {digest: len(domain) + number for number, digest in enumerate(joins)}
        self.joins: tuple[Join, ...] = tuple(joins.values())
        self.touched = sorted({domain.index(name) for query in queries for name in attributes_of(query)})
        self.answers: list[Answer] = []
        self._plans = [plan(query, domain, places) for query in queries]
        self._dense = dense

    def add(self, columns: Sequence[Codes], rows: int, threads: int = 1) -> None:
        """Further rows: queries of at most so many cells as are to be dense are counted cell by cell."""
        counted = _count.count(columns, rows, self._plans, self._dense, threads)
        self.answers = [added(*pair) for pair in zip(self.answers, counted, strict=True)] if self.answers else counted


def batched(queries: Sequence[Query], dense: int, most: int) -> Iterator[list[Query]]:
    """Consecutive queries whose dense counts together have at most so many cells, or one larger query."""
    batch: list[Query] = []
    cells = 0
    for query in queries:
        size = min(math.prod(query.shape), dense)
        if batch and cells + size > most:
            yield batch
            batch, cells = [], 0
        batch.append(query)
        cells += size
    if batch:
        yield batch


def added(first: Answer, second: Answer) -> Answer:
    """Counts of two sets of rows together."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        cells, index = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
        counts: IntArray = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, index, np.concatenate([first[1], second[1]]))
        return cells, counts
    assert isinstance(first, np.ndarray)
    first += second
    return first


def attributes_of(query: Query) -> tuple[str, ...]:
    """The attributes that a query looks at."""
    if isinstance(query, MarginalQuery):
        return query.reads
    return query.splits_on if query.label is None else (*query.splits_on, query.label)


def _joins(query: Query) -> list[Join]:
    return [join for join in query.joins if join is not None] if isinstance(query, MarginalQuery) else []


def plan(query: Query, domain: Domain, joined: Mapping[bytes, int]) -> _count.Marginal | _count.Tree:
    """A query as the kernel takes it; `joined` says where the codes of joins stand."""
    if isinstance(query, MarginalQuery):
        indices = [
            domain.index(name) if join is None else joined[join.digest]
            for name, join in zip(query.attributes, query.joins, strict=True)
        ]
        return _count.Marginal(indices, query.shape, query.levels, query.blocks)
    indices = [domain.index(name) for name in query.splits_on]
    label = None if query.label is None else domain.index(query.label)
    return _count.Tree(indices, query.split_sizes, query.split, query.child, query.leaves, label, query.label_size)
