"""Synthetic rows that look like real people. PRIVATE: exact functions of real rows.

A match is no breach by itself: whoever has common answers is matched by any good table, and a differentially private
one bounds what a match can tell. Many matches of rows that are unique in the real table deserve a look all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain, IntArray
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric, distance
from hedgerow.private.sources.coded import rows_of

LARGEST_ID = 1 << 62


@dataclass(frozen=True)
class ApparentMatches:
    """Real rows that seem to be found by some columns, and how far the synthetic row then tells the truth."""

    share: float
    """Of all real rows, those that are unique on the identifying columns and meet exactly one synthetic row there."""
    agreement: float | None
    """Over these, the mean share of the other attributes on which the two rows agree; None without any match."""


def unique_matches(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """The share of real rows that no other real row equals and that some synthetic row equals, on all attributes."""
    ours, theirs = row_numbers([real, synthetic], domain, domain.names)
    numbers, counts = np.unique(ours, return_counts=True)
    alone = numbers[counts == 1]
    return float(np.isin(alone, theirs).sum()) / len(ours)


def apparent_matches(
    real: CodedTable, synthetic: CodedTable, domain: Domain, identifiers: Sequence[str]
) -> ApparentMatches:
    """Who seems to be found by the `identifiers` (attributes that an outsider may know), and what is learnt of them.

    A real row is apparently matched if it is unique on the identifiers in the real table and exactly one synthetic row
    has the same ones. `agreement` is then the mean share of the remaining attributes on which both rows agree; compare
    it with what any two rows agree on before drawing conclusions.
    """
    ours, theirs = row_numbers([real, synthetic], domain, identifiers)
    pairs = _unique_indices(ours), _unique_indices(theirs)
    _, here, there = np.intersect1d(ours[pairs[0]], theirs[pairs[1]], assume_unique=True, return_indices=True)
    left, right = pairs[0][here], pairs[1][there]
    others = [name for name in domain.names if name not in identifiers]
    agreed = [float((real[name][left] == synthetic[name][right]).mean()) for name in others if len(left)]
    return ApparentMatches(len(left) / len(ours), float(np.mean(agreed)) if agreed else None)


def row_numbers(tables: Sequence[CodedTable], domain: Domain, attributes: Sequence[str]) -> list[IntArray]:
    """A number for every row, equal exactly where rows agree on all these attributes, across the tables too."""
    lengths = [rows_of(table) for table in tables]
    numbers: IntArray = np.zeros(sum(lengths), dtype=np.int64)
    largest = 1
    for name in attributes:
        if largest * domain[name].size > LARGEST_ID:
            numbers = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
            largest = int(numbers.max()) + 1
        numbers *= domain[name].size
        numbers += np.concatenate([table[name] for table in tables])
        largest *= domain[name].size
    return np.split(numbers, np.cumsum(lengths)[:-1])


def _unique_indices(numbers: IntArray) -> IntArray:
    """Where the numbers stand that occur once."""
    _, first, counts = np.unique(numbers, return_index=True, return_counts=True)
    alone: IntArray = first[counts == 1]
    return alone


UNIQUE_MATCHES = distance(
    "unique_matches",
    unique_matches,
    Figure(
        "unique matches",
        "real rows that are unique and that a synthetic row equals in every column",
        "percent",
        headline=True,
        about="risk",
    ),
)


def _apparent(comparison: Comparison) -> dict[str, float | None]:
    seen = apparent_matches(*comparison.tables, comparison.known)
    return {"apparent_matches": seen.share, "apparent_agreement": seen.agreement}


APPARENT_MATCHES = Metric(
    "apparent_matches",
    _apparent,
    {
        "apparent_matches": Figure(
            "apparent matches",
            "real rows that are unique on the identifiers and meet one synthetic row there",
            "percent",
            about="risk",
        ),
        "apparent_agreement": Figure(
            "their agreement",
            "other columns on which such a pair of rows agrees, on average",
            "percent",
            about="risk",
        ),
    },
    needs=("identifiers",),
)
