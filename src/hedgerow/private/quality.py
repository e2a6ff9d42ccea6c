"""What is asked about the quality of a release: the distances of its rows from the private table, in one stack.

Every attribute, every pair, and the wider marginals of a declared workload: each is a score ‖d − p‖₁ against public
counts p, which one person moves by at most θ (`hedgerow.private.scores`). The three kinds get equal parts of what is
spent, shared evenly inside each. The mean of k scores of a kind has 1/√k of their noise, which is, with Gaussian noise,
just what asking for that mean alone would have cost: so single pairs are asked for even where only their mean can be
told from noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from hedgerow.coded.domain import Domain, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.private.scores import LARGEST_IN_STEPS

MOST_CELLS = 1 << 22
"""Marginals of more cells are left out: their counts would have to stand in memory."""
MOST_PAIRS = 5_000
"""Where there are more, so many of them by lot."""
MOST_ROWS = LARGEST_IN_STEPS / (1 << 11)
"""Beyond this estimate of the rows their scores could not be exact."""


def distances_of(domain: Domain, workload: Iterable[Marginal], seed: int) -> list[Candidate]:
    """The marginals whose distances are to be measured, with their weights; public like all that they follow from."""
    columns = [(name,) for name in domain.names]
    wider = [marginal for marginal in dict.fromkeys(workload) if len(marginal) > 2]
    kinds = [
        [marginal for marginal in kind if domain.cells(marginal) <= MOST_CELLS]
        for kind in (columns, _pairs(domain, seed), wider)
    ]
    return [Candidate(MarginalQuery(domain, marginal), 1 / math.sqrt(len(kind))) for kind in kinds for marginal in kind]


def _pairs(domain: Domain, seed: int) -> Sequence[Marginal]:
    """All pairs, or some of them by lot."""
    pairs = list(combinations(domain.names, 2))
    if len(pairs) <= MOST_PAIRS:
        return pairs
    lots = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, len(pairs)])))
    return [pairs[lot] for lot in np.sort(lots.choice(len(pairs), MOST_PAIRS, replace=False)).tolist()]
