"""The figures of an evaluation by name: what each means in plain words, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hedgerow.private.evaluate.marginals import MOST_MARGINALS


@dataclass(frozen=True)
class Figure:
    """One number of the report."""

    title: str
    meaning: str
    unit: Literal["share", "percent", "score", "square", "factor"] = "share"
    degree: int = 0
    """Of which degree the marginals are that it is a mean over."""
    headline: bool = False
    best: Literal["low", "high", ""] = "low"
    """Which values are good; "" where neither end is."""

    def text(self, value: float | None) -> str:
        """The value as people read it."""
        if value is None:
            return "–"
        match self.unit:
            case "percent":
                return f"{100 * value:.1f} %"
            case "score":
                return f"{value:.1f}"
            case "square":
                return f"{value:.2e}"
            case "factor":
                return f"× {math.exp(value):.2f}"
            case _:
                return f"{value:.4f}"

    def sampled(self, attributes: int) -> str:
        """Said where a sample of the marginals stands for all."""
        marginals = math.comb(attributes, min(self.degree, attributes))
        return f" (a sample of {MOST_MARGINALS:,} of {marginals:,})" if marginals > MOST_MARGINALS else ""


FIGURES: Mapping[str, Figure] = {
    "tvd1": Figure(
        "single columns", "mean distance of one-way marginals; 0 the same, 1 nothing in common", degree=1, headline=True
    ),
    "tvd2": Figure("pairs", "mean distance of two-way marginals", degree=2, headline=True),
    "tvd3": Figure("triples", "mean distance of three-way marginals", degree=3, headline=True),
    "worst": Figure("worst triple", "largest distance of a three-way marginal", degree=3),
    "k_marginal": Figure("k-marginal", "NIST's score on pairs; 1000 is perfect", "score", degree=2, best="high"),
    "range3": Figure("ranges, 3", "mean squared error of range queries on 3 attributes", "square"),
    "range5": Figure("ranges, 5", "mean squared error of range queries on 5 attributes", "square"),
    "conjunctions": Figure(
        "conjunctions", "shares of rows that meet 4 to 8 conditions are typically off by this factor", "factor"
    ),
    "pearson": Figure("Pearson's r", "mean difference of Pearson's correlations of ordered columns"),
    "kendall": Figure("Kendall's τ", "mean difference of Kendall's rank correlations of ordered columns"),
    "cramers_v": Figure("Cramér's V", "mean difference of Cramér's V over all pairs"),
    "subsample": Figure(
        "sample",
        "as good on pairs as a random sample of this share of the real rows",
        "percent",
        headline=True,
        best="high",
    ),
    "pmse": Figure("pMSE", "propensity score; 0 no machine can tell the tables apart, 0.25 always"),
    "detected": Figure(
        "told apart",
        "rows for which a machine guesses right whether they are real; 50 % is a coin",
        "percent",
        headline=True,
    ),
    "unique_matches": Figure(
        "unique matches",
        "real rows that are unique and that a synthetic row equals in every column",
        "percent",
        headline=True,
    ),
    "apparent_matches": Figure(
        "apparent matches", "real rows that are unique on the identifiers and meet one synthetic row there", "percent"
    ),
    "apparent_agreement": Figure(
        "their agreement", "other columns on which such a pair of rows agrees, on average", "percent"
    ),
    "svm": Figure("linear classifier", "real rows misclassified by a linear machine after training on synthetic rows"),
    "svm_real": Figure("… on real rows", "the same after training on real rows"),
    "boosting": Figure("boosted trees", "real rows misclassified by boosted trees after training on synthetic rows"),
    "boosting_real": Figure("… on real rows", "the same after training on real rows"),
    "majority": Figure("majority", "the same for always answering the most frequent class"),
}


def named(report: Mapping[str, Any]) -> dict[str, Figure]:
    """The figures that a report holds, in order."""
    return {name: figure for name, figure in FIGURES.items() if name in report}
