"""Counts of coded rows that a database holds: rows stay, counts travel."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import ibis
import numpy as np

from hedgerow.coded.domain import Domain, IntArray
from hedgerow.coded.query import MarginalQuery, Query, TreeQuery
from hedgerow.errors import TableError
from hedgerow.private.engines.arrow import MOST_CELLS, check_query, most_dense
from hedgerow.private.engines.sql.coding import UNKNOWN
from hedgerow.private.engines.sql.database import Database, count
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts

Occupied = tuple[IntArray, IntArray]
"""Cells that rows reach, in order, and how many rows do."""


class CountsInPlace:
    """Counts a table of codes; its column `c3` belongs to attribute number 3."""

    def __init__(self, database: Database, domain: Domain, table: Any):
        self._table = table
        self._database = database
        self._domain = domain
        lowest = {f"c{index}": table[f"c{index}"].min() for index in range(len(domain))}
        (found,) = database.fetch_all(table.agg(rows=count, **lowest)).to_pylist()
        if found["rows"] and min(found.values()) <= UNKNOWN:
            raise TableError(
                "table-changed",
                f"{database.what} was changed while it was read. "
                "Hint: run again, on a copy if it changes all the time.",
            )
        self._dense = most_dense(found["rows"])
        weakref.finalize(self, _forget, database, table).atexit = False  # a session that ends forgets by itself

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order, asked for in batches as they are consumed."""
        for query in queries:
            check_query(query, self._domain)
        return self._answers(queries)

    def _answers(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        for batch in _batches(queries, self._database.at_once):
            for query, occupied in zip(batch, self._occupied(batch), strict=True):
                yield Exact(_answer(occupied, query.cells, self._dense))

    def _occupied(self, batch: Sequence[Query]) -> Iterator[Occupied]:
        if isinstance(batch[0], TreeQuery):
            yield self._leaves(batch[0])
        elif _alone(batch[0]):
            yield self._wide(batch[0])
        else:
            yield from self._marginals([query for query in batch if isinstance(query, MarginalQuery)])

    def _marginals(self, queries: Sequence[MarginalQuery]) -> Iterator[Occupied]:
        """One statement: each query's cells are numbered on from the last one's."""
        starts = np.cumsum([0, *(math.prod(query.base_shape) for query in queries)])
        numbers = [self._number(query.attributes) + int(start) for query, start in zip(queries, starts, strict=False)]
        cells, counts = self._fetch(self._database.tally(self._table, numbers))
        bounds = np.searchsorted(cells, starts)
        for index, query in enumerate(queries):
            own = slice(bounds[index], bounds[index + 1])
            codes = np.unravel_index(cells[own] - starts[index], query.base_shape) if query.attributes else ()
            yield _aggregated(query, codes, counts[own])

    def _wide(self, query: MarginalQuery) -> Occupied:
        """A marginal whose cells have no number of 64 bits before they are joined or coarsened: by its codes."""
        columns = {name: f"c{self._domain.index(name)}" for name in query.reads}
        found = self._database.fetch_all(self._table.group_by(list(columns.values())).agg(rows=count))
        read = {name: found[column].to_numpy().astype(np.int64) for name, column in columns.items()}
        codes = [
            read[name] if join is None else join.codes([read[member] for member in join.members]).astype(np.int64)
            for name, join in zip(query.attributes, query.joins, strict=True)
        ]
        return _aggregated(query, codes, found["rows"].to_numpy())

    def _leaves(self, query: TreeQuery) -> Occupied:
        """A walk from the root: at every level a join with the tree tells where each row goes on."""
        tree = self._database.upload(
            {
                "node": np.arange(len(query.split), dtype=np.int64),
                "split": query.split.astype(np.int64),
                "child": query.child,
            }
        )
        codes = {name: f"c{self._domain.index(name)}" for name in query.attributes}
        walk = self._table.select(*codes.values(), at=ibis.literal(0, "int64"))
        for _ in range(_depth(query)):
            step = _beside(walk, tree)
            turns = [(step["split"] == number, step[codes[name]]) for number, name in enumerate(query.splits_on)]
            onward = step["child"] + ibis.cases(*turns, else_=0).cast("int64")
            walk = step.select(*codes.values(), at=ibis.ifelse(step["split"] < 0, step["at"], onward))
        ended = _beside(walk, tree)
        cell = ended["child"]
        if query.label is not None:
            cell = cell * query.label_size + ended[codes[query.label]].cast("int64")
        occupied = self._fetch(ended.select(cell=cell).group_by("cell").agg(rows=count))
        self._database.drop(tree)
        return occupied

    def _number(self, names: Sequence[str]) -> Any:
        """The number of a row's cell, the last attribute running fastest."""
        number: Any = ibis.literal(0, "int64")
        for name in names:
            attribute = self._domain[name]
            number = number * attribute.size + self._table[f"c{self._domain.index(name)}"].cast("int64")
        return number

    def _fetch(self, question: Any) -> Occupied:
        found = self._database.fetch_all(question)
        cells, counts = (found[name].to_numpy().astype(np.int64) for name in ("cell", "rows"))
        order = np.argsort(cells)
        return cells[order], counts[order]


def _forget(database: Database, table: Any) -> None:
    with suppress(Exception):
        database.drop(table)


def _beside(walk: Any, tree: Any) -> Any:
    """The rows of a walk beside the nodes that they have come to."""
    return walk.inner_join(tree, [("at", "node")]).select(*walk.columns, "split", "child")


def _batches(queries: Sequence[Query], most: int) -> Iterator[list[Query]]:
    """Consecutive marginals whose cells can be numbered together, or one query of another kind."""
    batch: list[Query] = []
    cells = 0
    for query in queries:
        size = MOST_CELLS if isinstance(query, TreeQuery) or _alone(query) else math.prod(query.base_shape)
        if batch and (cells + size > MOST_CELLS or len(batch) == most):
            yield batch
            batch, cells = [], 0
        batch.append(query)
        cells += size
    if batch:
        yield batch


def _alone(query: MarginalQuery) -> bool:
    return any(query.joins) or math.prod(query.base_shape) > MOST_CELLS


def _depth(query: TreeQuery) -> int:
    """Steps from the root to the farthest leaf; children stand after their parents."""
    depth: IntArray = np.zeros(len(query.split), dtype=np.int64)
    for node in np.flatnonzero(query.split >= 0):
        first = query.child[node]
        below = slice(first, first + query.split_sizes[query.split[node]])
        depth[below] = np.maximum(depth[below], depth[node] + 1)
    return int(depth.max())


def _aggregated(query: MarginalQuery, codes: Sequence[IntArray], counts: IntArray) -> Occupied:
    """Counts of base cells as counts of the query's own cells, which are coarser where it has levels or blocks."""
    cells: IntArray = np.zeros(len(counts), dtype=np.int64)
    for code, level, size in zip(codes, query.levels, query.shape, strict=True):
        cells = cells * size + (code if level is None else level[code])
    if query.blocks is not None:
        cells = query.blocks[cells]
        counts, cells = counts[cells >= 0], cells[cells >= 0]
    occupied, index = np.unique(cells, return_inverse=True)
    sums: IntArray = np.zeros(len(occupied), dtype=np.int64)
    np.add.at(sums, index, counts)
    return occupied, sums


def _answer(occupied: Occupied, cells: int, dense: int) -> ExactCounts:
    if cells > dense:
        return SparseCounts(*occupied)
    counts: IntArray = np.zeros(cells, dtype=np.int64)
    counts[occupied[0]] = occupied[1]
    return counts
