"""Exact counts that a run needs again: choosing round by round scores the same marginals against another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from hedgerow.coded.query import MarginalQuery, Query
from hedgerow.private.engines.engine import Engine
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts

Key: TypeAlias = tuple[tuple[str, ...], tuple[bytes | None, ...], tuple[bytes | None, ...]]


class Remembering:
    """Counts of a prepared engine; those of marginals are kept, sealed, up to so many bytes.

    The rows that an engine counts do not change after it was prepared, so an old count is the count.
    """

    def __init__(self, engine: Engine, memory: int):
        self._engine = engine
        self._room = memory
        self._kept: dict[Key, Exact[ExactCounts]] = {}

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order."""
        keys = [_key(query) for query in queries]
        known = [key is not None and key in self._kept for key in keys]
        counted = self._engine.count([query for query, old in zip(queries, known, strict=True) if not old])
        for key, old in zip(keys, known, strict=True):
            if old and key is not None:
                yield self._kept[key]
            else:
                exact = next(counted)
                self._keep(key, exact)
                yield exact

    def _keep(self, key: Key | None, exact: Exact[ExactCounts]) -> None:
        counts = exact.opened()
        size = counts.cells.nbytes + counts.counts.nbytes if isinstance(counts, SparseCounts) else counts.nbytes
        if key is not None and key not in self._kept and size <= self._room:
            self._room -= size
            self._kept[key] = exact


def _key(query: Query) -> Key | None:
    """What tells a marginal from others; partitions and trees are asked once, so they are not kept."""
    if not isinstance(query, MarginalQuery) or query.blocks is not None:
        return None
    levels = tuple(None if level is None else level.tobytes() for level in query.levels)
    return query.attributes, levels, tuple(None if join is None else join.digest for join in query.joins)
