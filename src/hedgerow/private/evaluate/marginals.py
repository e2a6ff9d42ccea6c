"""How far apart two tables are, marginal by marginal. PRIVATE: exact functions of real rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.evaluate.metric import MOST_MARGINALS, Comparison, Figure, Metric, distance
from hedgerow.private.exact import ExactCounts, SparseCounts
from hedgerow.private.sources.coded import rows_of


def tvd1(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean total variation distance over the one-way marginals: the histograms of single attributes.

    The total variation distance of a marginal is ½ Σ |p − q| over its cells, where p and q are the shares of the
    real and of the synthetic rows in a cell: the largest difference that any statement about these attributes can
    have between the two tables. 0: the same shares everywhere. 1: no cell is occupied in both.
    """
    return _mean(marginal_distances(real, synthetic, domain, 1, seed=seed))


def tvd2(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean total variation distance (see `tvd1`) over the two-way marginals: the cross tables of two attributes."""
    return _mean(marginal_distances(real, synthetic, domain, 2, seed=seed))


def tvd3(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """Mean total variation distance (see `tvd1`) over the three-way marginals."""
    return _mean(marginal_distances(real, synthetic, domain, 3, seed=seed))


def k_marginal(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0, k: int = 2) -> float:
    """The k-marginal score of NIST's challenges: 1000 · (1 − mean over k-way marginals of ½ Σ |p − q|).

    1000 is perfect, 0 says that no marginal shares an occupied cell. Pairs (k = 2) are what SDNist scores by
    default; the 2018 challenge scored triples (times 1000). Without the contests' own binning, segments and
    penalties: those are other numbers.
    """
    return 1000 * (1 - _mean(marginal_distances(real, synthetic, domain, k, seed=seed)))


def marginal_distances(
    real: CodedTable, synthetic: CodedTable, domain: Domain, degree: int, *, seed: int = 0, most: int = MOST_MARGINALS
) -> Counts:
    """The total variation distance of each marginal that `chosen_marginals` gives, in that order."""
    return distances(real, synthetic, domain, chosen_marginals(domain, degree, seed, most))


def worst_marginals(
    real: CodedTable, synthetic: CodedTable, domain: Domain, degree: int, *, seed: int = 0, most: int = 10
) -> list[tuple[Marginal, float]]:
    """The marginals of `degree` attributes with the largest total variation distances, the largest first."""
    marginals = chosen_marginals(domain, degree, seed)
    far = distances(real, synthetic, domain, marginals)
    return [(marginals[index], float(far[index])) for index in np.argsort(-far, kind="stable")[:most]]


def distances(real: CodedTable, synthetic: CodedTable, domain: Domain, marginals: Sequence[Marginal]) -> Counts:
    """The total variation distance of each marginal: exactly 0 for equal shares, exactly 1 for disjoint ones.

    Wide marginals are counted on their occupied cells alone, so memory is that of the rows, never of the cells.
    """
    queries = [MarginalQuery(domain, marginal) for marginal in marginals]
    real_rows, synthetic_rows = rows_of(real), rows_of(synthetic)
    counted = zip(
        ArrowEngine.from_codes(domain, real).count(queries),
        ArrowEngine.from_codes(domain, synthetic).count(queries),
        strict=True,
    )
    return np.array([_distance(p.opened(), real_rows, q.opened(), synthetic_rows) for p, q in counted])


def chosen_marginals(domain: Domain, degree: int, seed: int, most: int = MOST_MARGINALS) -> list[Marginal]:
    """Every marginal of `degree` attributes (fewer where the domain has fewer), or a fixed sample of `most` of them.

    The sample depends on the domain and the seed alone, so all tables are judged by the same marginals.
    """
    degree = min(degree, len(domain))
    if math.comb(len(domain), degree) <= most:
        return list(domain.marginals(degree))
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, degree])))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(rng.choice(len(domain), degree, replace=False).tolist())))
    return [tuple(domain.names[index] for index in indices) for indices in sorted(chosen)]


def _mean(values: Counts) -> float:
    return float(values.mean())


def _distance(real: ExactCounts, real_rows: int, synthetic: ExactCounts, synthetic_rows: int) -> float:
    """½ Σ |p − q| = 1 − Σ min(p, q), in whole numbers over the common denominator (exact below 2⁶³)."""
    ours, theirs = _aligned(real, synthetic)
    common = int(np.minimum(ours * synthetic_rows, theirs * real_rows).sum())
    whole = real_rows * synthetic_rows
    return (whole - common) / whole


def _aligned(left: ExactCounts, right: ExactCounts) -> tuple[IntArray, IntArray]:
    """Counts of the same cells in the same order, among them every cell that both occupy."""
    if isinstance(left, SparseCounts):
        return left.counts, _counts_at(right, left.cells)
    if isinstance(right, SparseCounts):
        return left[right.cells], right.counts
    return left, right


def _counts_at(counts: ExactCounts, cells: IntArray) -> IntArray:
    if not isinstance(counts, SparseCounts):
        return counts[cells]
    indices = np.minimum(np.searchsorted(counts.cells, cells), len(counts.cells) - 1)
    return np.where(counts.cells[indices] == cells, counts.counts[indices], 0)


TVD1 = distance(
    "tvd1",
    tvd1,
    Figure(
        "single columns", "mean distance of one-way marginals; 0 the same, 1 nothing in common", degree=1, headline=True
    ),
    compared=True,
)
TVD2 = distance(
    "tvd2", tvd2, Figure("pairs", "mean distance of two-way marginals", degree=2, headline=True), compared=True
)
TVD3 = distance(
    "tvd3", tvd3, Figure("triples", "mean distance of three-way marginals", degree=3, headline=True), compared=True
)


def _worst(comparison: Comparison) -> dict[str, Any]:
    ((attributes, far),) = worst_marginals(*comparison.tables, 3, seed=comparison.seed, most=1)
    return {"worst": far, "worst_at": list(attributes)}


WORST = Metric("worst", _worst, {"worst": Figure("worst triple", "largest distance of a three-way marginal", degree=3)})
K_MARGINAL = distance(
    "k_marginal",
    k_marginal,
    Figure("k-marginal", "NIST's score on pairs; 1000 is perfect", "score", degree=2, best="high"),
    compared=True,
)
