"""How strongly attributes go together, in one table and beside the other. PRIVATE: exact functions of real rows.

All coefficients come from the cross tables of pairs, so their cost is that of counting pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.evaluate.metric import Figure, Metric, distance
from hedgerow.private.exact import ExactCounts, SparseCounts

MOST_LEVELS = 128
"""Kendall's τ counts pairs of rows on at most so many levels; finer codes are merged with their neighbours."""

OrderedCodes = Mapping[str, int]
"""For each ordered attribute the number of its codes, the first ones, that are numbers or grades in their order.

The codes after them (missing, other) have no place in the order: rows that hold one are left out of that pair.
"""


@dataclass(frozen=True, eq=False)
class Correlations:
    """A symmetric matrix of coefficients over some attributes, 1 on the diagonal."""

    attributes: Marginal
    matrix: Counts


def pearson(table: CodedTable, domain: Domain, ordered: OrderedCodes) -> Correlations:
    """Pearson's r of every pair of ordered attributes: covariance of the codes over both standard deviations.

    A pair in which one attribute does not vary has no coefficient; it counts as 0, because nothing goes together.
    """

    def coefficient(pair: _Pair) -> float:
        rows = pair.counts.sum()
        x, y = (codes - (codes * pair.counts).sum() / rows for codes in (pair.x, pair.y))
        products = [float((left * right * pair.counts).sum()) for left, right in ((x, y), (x, x), (y, y))]
        return _ratio(*products)

    return _correlations(table, domain, tuple(ordered), coefficient, ordered)


def kendall(table: CodedTable, domain: Domain, ordered: OrderedCodes) -> Correlations:
    """Kendall's τ_b of every pair of ordered attributes.

    Among all pairs of rows: (those that both attributes put in the same order − those that they put in opposite
    orders) / √(pairs not tied in the first · pairs not tied in the second). 0 where one attribute does not vary.
    """

    def coefficient(pair: _Pair) -> float:
        counts = np.zeros((int(pair.x.max()) + 1, int(pair.y.max()) + 1))
        counts[pair.x, pair.y] = pair.counts
        beyond = np.zeros((counts.shape[0] + 1, counts.shape[1] + 1))  # how many rows lie above in both
        beyond[:-1, :-1] = counts[::-1, ::-1].cumsum(0).cumsum(1)[::-1, ::-1]
        above = beyond[1:, :1]  # how many lie above in the first, whatever the second
        concordant = (counts * beyond[1:, 1:]).sum()
        discordant = (counts * (above - beyond[1:, :-1])).sum()
        untied = [(counts.sum() ** 2 - (counts.sum(axis) ** 2).sum()) / 2 for axis in (1, 0)]
        return _ratio(float(concordant - discordant), *untied)

    return _correlations(table, domain, tuple(ordered), coefficient, ordered, MOST_LEVELS)


def cramers_v(table: CodedTable, domain: Domain) -> Correlations:
    """Cramér's V of every pair of attributes: √(χ² / (rows · (the smaller number of occupied values − 1))).

    χ² is that of the cross table against independence. 0: no relation. 1: one value tells the other. All codes take
    part, missing ones too. 0 where one attribute does not vary.
    """

    def coefficient(pair: _Pair) -> float:
        first, second = np.bincount(pair.x, pair.counts), np.bincount(pair.y, pair.counts)
        smaller = min(np.count_nonzero(first), np.count_nonzero(second))
        if smaller < 2:
            return 0.0
        squared = float((pair.counts**2 / (first[pair.x] * second[pair.y])).sum()) - 1  # χ² over the number of rows
        return float(np.sqrt(np.clip(squared / (smaller - 1), 0, 1)))

    return _correlations(table, domain, domain.names, coefficient)


def mean_difference(real: Correlations, synthetic: Correlations) -> float | None:
    """Mean absolute difference of the coefficients over all pairs; None where there is no pair."""
    above = np.triu_indices(len(real.attributes), 1)
    return float(np.abs(real.matrix - synthetic.matrix)[above].mean()) if len(above[0]) else None


def pearson_error(real: CodedTable, synthetic: CodedTable, domain: Domain, ordered: OrderedCodes) -> float | None:
    """Mean absolute difference of Pearson's r between the tables, over all pairs of ordered attributes."""
    return mean_difference(pearson(real, domain, ordered), pearson(synthetic, domain, ordered))


def kendall_error(real: CodedTable, synthetic: CodedTable, domain: Domain, ordered: OrderedCodes) -> float | None:
    """Mean absolute difference of Kendall's τ_b between the tables, over all pairs of ordered attributes."""
    return mean_difference(kendall(real, domain, ordered), kendall(synthetic, domain, ordered))


def cramers_v_error(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean absolute difference of Cramér's V between the tables, over all pairs; 0 for a table of one attribute."""
    return mean_difference(cramers_v(real, domain), cramers_v(synthetic, domain)) or 0.0


@dataclass(frozen=True, eq=False)
class _Pair:
    """The occupied cells of a cross table: both codes and the number of rows."""

    x: IntArray
    y: IntArray
    counts: Counts


_Coefficient = Callable[[_Pair], float]


def _correlations(
    table: CodedTable,
    domain: Domain,
    attributes: Marginal,
    coefficient: _Coefficient,
    ordered: OrderedCodes | None = None,
    levels: int | None = None,
) -> Correlations:
    matrix = np.eye(len(attributes))
    indices = list(itertools.combinations(range(len(attributes)), 2))
    marginals = [(attributes[i], attributes[j]) for i, j in indices]
    for (i, j), pair in zip(indices, _pairs(table, domain, marginals, ordered, levels), strict=True):
        matrix[i, j] = matrix[j, i] = coefficient(pair) if len(pair.counts) else 0.0
    return Correlations(attributes, matrix)


def _pairs(
    table: CodedTable, domain: Domain, marginals: Sequence[Marginal], ordered: OrderedCodes | None, most: int | None
) -> Iterator[_Pair]:
    merged = {name: _merged(domain[name].size, ordered[name], most) for name in ordered} if ordered and most else {}
    queries = [MarginalQuery(domain, pair, levels={x: merged[x] for x in pair if x in merged}) for pair in marginals]
    for query, answer in zip(queries, ArrowEngine.from_codes(domain, table).count(queries), strict=True):
        cells, counts = _occupied(answer.opened())
        x, y = np.divmod(cells, query.shape[1])
        if ordered is not None:
            ends = [int(merged[n][ordered[n] - 1]) + 1 if n in merged else ordered[n] for n in query.attributes]
            inside = (x < ends[0]) & (y < ends[1])
            x, y, counts = x[inside], y[inside], counts[inside]
        yield _Pair(x, y, counts.astype(np.float64))


def _merged(size: int, ordered: int, most: int) -> IntArray:
    """Codes in order in at most `most` runs of equal length; those after them as they are."""
    runs = min(ordered, most)
    return np.append(np.arange(ordered) * runs // max(ordered, 1), runs + np.arange(size - ordered)).astype(np.int64)


def _occupied(counts: ExactCounts) -> tuple[IntArray, IntArray]:
    if isinstance(counts, SparseCounts):
        return counts.cells, counts.counts
    cells: IntArray = np.flatnonzero(counts)
    return cells, counts[cells]


def _ratio(above: float, *below: float) -> float:
    """above / √(product of below), 0 where that is 0."""
    whole = float(np.prod(np.sqrt(below)))
    return float(np.clip(above / whole, -1, 1)) if whole > 0 else 0.0


PEARSON = Metric(
    "pearson",
    lambda c: {"pearson": pearson_error(*c.tables, c.ordered)},
    {"pearson": Figure("Pearson's r", "mean difference of Pearson's correlations of ordered columns")},
)
KENDALL = Metric(
    "kendall",
    lambda c: {"kendall": kendall_error(*c.tables, c.ordered)},
    {"kendall": Figure("Kendall's τ", "mean difference of Kendall's rank correlations of ordered columns")},
)
CRAMERS_V = distance("cramers_v", cramers_v_error, Figure("Cramér's V", "mean difference of Cramér's V over all pairs"))
