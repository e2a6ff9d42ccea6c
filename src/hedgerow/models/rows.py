"""Counts of public or synthetic rows: what queries answer on a table that nobody has to protect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from hedgerow import _count
from hedgerow.coded.domain import CodedTable, Counts
from hedgerow.coded.query import MarginalQuery


class Recounted(Protocol):
    """Rows that answer queries about some attributes (`hedgerow.curator.Answers`)."""

    @property
    def names(self) -> frozenset[str]:
        """The attributes that they can be asked about."""
        ...

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        """One flat vector of scaled counts per query, in order."""
        ...


class CountedRows:
    """Rows that stand for `total` people: answers are their counts, scaled to it (`hedgerow.curator.Answers`)."""

    def __init__(self, table: CodedTable, total: float):
        self._columns = list(table.values())
        self._numbers = {name: number for number, name in enumerate(table)}
        self._rows = len(self._columns[0])
        self._scale = total / max(1, self._rows)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._numbers)

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        """One flat vector of scaled counts per query, in order."""
        return map(self._answer, queries)

    def _answer(self, query: MarginalQuery) -> Counts:
        columns = list(self._columns)
        numbers = []
        for name, join in zip(query.attributes, query.joins, strict=True):
            if join is not None:
                columns.append(join.codes([self._columns[self._numbers[member]] for member in join.members]))
            numbers.append(self._numbers[name] if join is None else len(columns) - 1)
        plan = _count.Marginal(numbers, query.shape, query.levels, query.blocks)
        (counted,) = _count.count(columns, self._rows, [plan], query.cells, 1)
        answer: Counts = self._scale * np.asarray(counted, dtype=np.float64)
        return answer
