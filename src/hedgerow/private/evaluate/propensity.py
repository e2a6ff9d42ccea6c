"""Can a machine tell synthetic rows from real ones? PRIVATE: it learns from real rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Domain
from hedgerow.private.evaluate.classifier import boosting_machine, feature_codes, one_thread
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.sources.coded import rows_of

MOST_ROWS = 20_000
"""Rows that are taken from each table."""


@dataclass(frozen=True)
class Propensity:
    """pMSE, and the share of rows that the machine assigns to the right table."""

    pmse: float
    detected: float


def propensity(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> Propensity:
    """The propensity mean squared error (Snoke, Raab, Nowok, Dibben, Slavkovic 2018), out of sample.

    As many real as synthetic rows (at most 20,000 each) are mixed; a gradient-boosting machine learns on one half to
    tell them apart and says of each row of the other half with which probability p it is synthetic, and the other way
    round. pMSE = mean (p − ½)²: 0 where the machine cannot tell anything, ¼ where it always knows. `detected` is the
    share of rows for which it guesses right (a p of ½ is half a guess); ½ is what a coin does.
    """
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, MOST_ROWS])))
    each = min(rows_of(real), rows_of(synthetic), MOST_ROWS)
    drawn = [(table, rng.permutation(rows_of(table))[:each]) for table in (real, synthetic)]
    codes = np.concatenate([feature_codes(table, domain.names, rows) for table, rows in drawn])
    made_up = np.repeat([False, True], each)
    half = np.tile(np.arange(each) % 2, 2)  # both halves hold as many rows of either table
    said: Counts = np.full(2 * each, 0.5)
    for asked in (0, 1) if each > 1 else ():
        machine = boosting_machine(domain, domain.names)
        with one_thread():
            machine.fit(codes[half != asked], made_up[half != asked])
            said[half == asked] = machine.predict_proba(codes[half == asked])[:, 1]
    right = np.where(said == 0.5, 0.5, (said > 0.5) == made_up)
    return Propensity(pmse(said), float(right.mean()))


def pmse(probabilities: Counts) -> float:
    """Mean (p − ½)² over equally many rows of both tables."""
    return float(((probabilities - 0.5) ** 2).mean())


def _told_apart(comparison: Comparison) -> dict[str, float]:
    told = propensity(*comparison.tables, comparison.seed)
    return {"pmse": told.pmse, "detected": told.detected}


PMSE = Metric(
    "pmse",
    _told_apart,
    {
        "pmse": Figure("pMSE", "propensity score; 0 no machine can tell the tables apart, 0.25 always"),
        "detected": Figure(
            "told apart",
            "rows for which a machine guesses right whether they are real; 50 % is a coin",
            "percent",
            headline=True,
        ),
    },
    needs=("scikit-learn",),
    draws=True,
)
