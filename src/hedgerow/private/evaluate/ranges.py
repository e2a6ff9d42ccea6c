"""How well range queries are answered. PRIVATE: exact functions of real rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray
from hedgerow.private.evaluate.metric import Figure, distance
from hedgerow.private.sources.coded import rows_of

RangeQuery: TypeAlias = Mapping[str, range]
"""The rows whose code lies in the range, for every attribute that is named."""

ATTRIBUTE_SETS = 256
QUERIES_PER_SET = 4


def range3(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean of (p − q)² over 1,024 random range queries on 3 attributes.

    p and q are the shares of real and of synthetic rows inside the range. 256 sets of attributes are drawn with a
    probability ∝ the product of their weights, one squared exponential variable for each attribute (the skewed
    workload of AIM's experiments, which PPSyn's follow); each set gets 4 queries. An attribute's sub-interval of
    codes is uniform among all of them. Queries depend on the domain and the seed alone. Small numbers: the square
    root is a typical error of a share.
    """
    return range_error(real, synthetic, random_ranges(domain, 3, seed))


def range5(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean of (p − q)² over 1,024 random range queries on 5 attributes, drawn like those of `range3`."""
    return range_error(real, synthetic, random_ranges(domain, 5, seed))


def range_error(real: CodedTable, synthetic: CodedTable, queries: Sequence[RangeQuery]) -> float:
    """Mean squared difference between the shares of real and of synthetic rows inside each range."""
    return float(((_shares(real, queries) - _shares(synthetic, queries)) ** 2).mean())


def random_ranges(domain: Domain, attributes: int, seed: int, sets: int = ATTRIBUTE_SETS) -> list[RangeQuery]:
    """The queries of `range3` and `range5`, on all attributes where the domain has fewer."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, attributes])))
    weights = rng.standard_exponential(len(domain)) ** 2
    drawn = weighted_sets(weights, min(attributes, len(domain)), sets, rng)
    return [
        {domain.names[index]: _interval(domain.attributes[index].size, rng) for index in indices}
        for indices in drawn
        for _ in range(QUERIES_PER_SET)
    ]


def weighted_sets(weights: Counts, size: int, draws: int, rng: np.random.Generator) -> list[list[int]]:
    """Sets of `size` indices, each drawn with a probability ∝ the product of its weights.

    With symmetric[j, i] = the sum of such products over the sets of j among the first i indices, index i − 1 belongs
    to a set of j among the first i with probability weight · symmetric[j − 1, i − 1] / symmetric[j, i].
    """
    symmetric = np.zeros((size + 1, len(weights) + 1))
    symmetric[0] = 1
    for i, weight in enumerate(weights, start=1):
        symmetric[1:, i] = symmetric[1:, i - 1] + weight * symmetric[:-1, i - 1]

    def drawn() -> list[int]:
        indices: list[int] = []
        for i in range(len(weights), 0, -1):
            wanted = size - len(indices)
            if wanted and rng.random() * symmetric[wanted, i] < weights[i - 1] * symmetric[wanted - 1, i - 1]:
                indices.append(i - 1)
        return indices[::-1]

    return [drawn() for _ in range(draws)]


def _interval(size: int, rng: np.random.Generator) -> range:
    """Two different edges out of size + 1: every non-empty interval is equally likely."""
    first = int(rng.integers(size + 1))
    second = int(rng.integers(size))
    second += second >= first
    return range(min(first, second), max(first, second))


def _shares(table: CodedTable, queries: Sequence[RangeQuery]) -> Counts:
    rows = rows_of(table)
    inside: IntArray = np.array([_count(table, rows, query) for query in queries])
    return inside / rows


def _count(table: CodedTable, rows: int, query: RangeQuery) -> int:
    inside = np.ones(rows, dtype=bool)
    for name, interval in query.items():
        codes = table[name]
        inside &= (codes >= interval[0]) & (codes <= interval[-1])
    return int(np.count_nonzero(inside))


RANGE3 = distance(
    "range3",
    range3,
    Figure("ranges, 3", "mean squared error of range queries on 3 attributes", "square"),
    compared=True,
)
RANGE5 = distance(
    "range5", range5, Figure("ranges, 5", "mean squared error of range queries on 5 attributes", "square")
)
