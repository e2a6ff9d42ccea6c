"""What is asked about the quality of a release: the distances of its rows from the private table, in one stack.

Every attribute, every pair, the wider marginals of a declared workload, and every attribute within declared subgroups:
each is a score ‖d − p‖₁ against public counts p, which one person moves by at most θ (`hedgerow.private.scores`). The
kinds get equal parts of what is spent, shared evenly inside each. The mean of k scores of a kind has 1/√k of their
noise, which is, with Gaussian noise, just what asking for that mean alone would have cost: so single pairs are asked
for even where only their mean can be told from noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from hedgerow.coded.domain import Domain, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.private.scores import LARGEST_IN_STEPS

T = TypeVar("T")
MOST_CELLS = 1 << 22
"""Marginals of more cells are left out: their counts would have to stand in memory."""
MOST_PAIRS = 5_000
"""Where there are more, so many of them by lot; likewise of columns within subgroups."""
MOST_ROWS = LARGEST_IN_STEPS / (1 << 11)
"""Beyond this estimate of the rows their scores could not be exact."""


def distances_of(
    domain: Domain, workload: Iterable[Marginal], seed: int, within: Iterable[MarginalQuery] = ()
) -> list[Candidate]:
    """The queries whose distances are to be measured, with their weights; public like all that they follow from."""
    columns = [(name,) for name in domain.names]
    wider = [marginal for marginal in dict.fromkeys(workload) if len(marginal) > 2]
    kinds = [
        [MarginalQuery(domain, marginal) for marginal in kind if domain.cells(marginal) <= MOST_CELLS]
        for kind in (columns, _some(list(combinations(domain.names, 2)), seed), wider)
    ]
    kinds.append([query for query in _some(list(within), seed) if math.prod(query.shape) <= MOST_CELLS])
    return [Candidate(query, 1 / math.sqrt(len(kind))) for kind in kinds for query in kind]


def _some(asked: Sequence[T], seed: int) -> Sequence[T]:
    """All of them, or as many as there may be, by lot."""
    if len(asked) <= MOST_PAIRS:
        return asked
    lots = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, len(asked)])))
    return [asked[lot] for lot in np.sort(lots.choice(len(asked), MOST_PAIRS, replace=False)).tolist()]
