"""What is asked about the quality of a release: the distances of its rows from the private table, in one stack.

Every attribute, every pair, the wider marginals of a declared workload, and every attribute within declared subgroups:
each is a score ‖d − p‖₁ against public counts p, which one person moves by at most θ (`hedgerow.private.scores`). The
kinds get equal parts of what is spent, shared evenly inside each. The mean of k scores of a kind has 1/√k of their
noise, which is, with Gaussian noise, just what asking for that mean alone would have cost: so single pairs are asked
for even where only their mean can be told from noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeVar

import numpy as np

from hedgerow.coded.domain import Counts, Domain, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.private.engines.engine import Engine
from hedgerow.private.exact import SparseCounts
from hedgerow.private.scores import LARGEST_IN_STEPS
from hedgerow.schema.links import Tables, before, rows_of

T = TypeVar("T")
MOST_CELLS = 1 << 22
"""Marginals of more cells are left out: their counts would have to stand in memory."""
MOST_PAIRS = 5_000
"""Where there are more, so many of them by lot; likewise of columns within subgroups."""
MOST_ROWS = LARGEST_IN_STEPS / (1 << 11)
"""Beyond this estimate of the rows, for each that a person may have, their scores could not be exact."""


def distances_of(
    domain: Domain, workload: Iterable[Marginal], seed: int, within: Iterable[MarginalQuery] = ()
) -> list[Candidate]:
    """The queries whose distances are to be measured, with their weights; public like all that they follow from."""
    columns = [(name,) for name in domain.names]
    wider = [marginal for marginal in dict.fromkeys(workload) if len(marginal) > 2]
    kinds = [_marginals(domain, kind) for kind in (columns, _some(list(combinations(domain.names, 2)), seed), wider)]
    kinds.append([query for query in _some(list(within), seed) if math.prod(query.shape) <= MOST_CELLS])
    return _weighted(kinds)


def linked_distances(domain: Domain, tables: Tables, columns: Mapping[str, Marginal], seed: int) -> list[Candidate]:
    """The same of linked tables: columns, how many rows hang on a row among them; pairs of one table; pairs across a
    link; and every column with what it was in the row before.
    """
    numbers = {rows_of(tables.parent(name), name) for name in tables.names[1:]}
    aside = tables.generated(columns) - numbers
    own: dict[str, list[str]] = {name: [] for name in tables.names}
    steps: list[Marginal] = []
    for column, attributes in columns.items():
        if column not in aside:
            own[column.partition(".")[0]] += attributes
        if before(column) in columns:
            steps += zip(attributes, columns[before(column)], strict=True)
    alone = [(name,) for names in own.values() for name in names]
    inside = [pair for names in own.values() for pair in combinations(names, 2)]
    lines = [(above, name) for name in tables.names[1:] for above in tables.line(name)[:-1]]
    across = [pair for above, name in lines for pair in product(own[above], own[name])]
    return _weighted([_marginals(domain, _some(kind, seed)) for kind in (alone, inside, across, steps)])


def _marginals(domain: Domain, asked: Iterable[Marginal]) -> list[MarginalQuery]:
    sorted_ = (domain.marginal(marginal) for marginal in asked)
    return [MarginalQuery(domain, marginal) for marginal in sorted_ if domain.cells(marginal) <= MOST_CELLS]


def _weighted(kinds: Sequence[Sequence[MarginalQuery]]) -> list[Candidate]:
    return [Candidate(query, 1 / math.sqrt(len(kind))) for kind in kinds for query in kind]


class CountedTables:
    """Linked tables that stand for others: answers are what their rows weigh, scaled (`hedgerow.curator.Answers`)."""

    def __init__(self, engine: Engine, scale: float):
        self._engine, self._scale = engine, scale

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        """One flat vector of scaled weights per query, in order."""
        for query, exact in zip(queries, self._engine.count(queries), strict=True):
            found = exact.opened()
            if isinstance(found, SparseCounts):
                weights = np.zeros(query.cells)
                weights[found.cells] = found.counts
            else:
                weights = found.astype(np.float64)
            yield self._scale * weights


def _some(asked: Sequence[T], seed: int) -> Sequence[T]:
    """All of them, or as many as there may be, by lot."""
    if len(asked) <= MOST_PAIRS:
        return asked
    lots = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, len(asked)])))
    return [asked[lot] for lot in np.sort(lots.choice(len(asked), MOST_PAIRS, replace=False)).tolist()]
