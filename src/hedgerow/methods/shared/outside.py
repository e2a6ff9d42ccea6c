"""Pairs that a model cannot hold, measured beside it and given to its rows.

A graphical model of limited size holds some relations. Where the budget is so large that the errors of all pairs can be
seen, a part of it finds the wrong ones by noisy scores and measures them; the rows then exchange values towards them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate, Curator
from hedgerow.methods.privsyn import trade_off
from hedgerow.methods.shared.views import measure, shrunk
from hedgerow.models.consistency import View, consistent
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.records import Target

SCORING_SHARE = 0.1
"""What of an amount finds the pairs that the rest of it measures."""
MOST_SCORE_NOISE = 0.005
"""They are looked for where the scores' noise is at most this part of the rows."""
MOST_NOISE_SHARE = 0.5
"""One is measured where its expected noise is at most this part of the rows."""
MOST_PAIRS = 5_000
"""Of more pairs none is looked at."""
FIXED_WEIGHT = 1e6
"""The weight of columns, when pairs are made to agree with them: they are not to move."""


def can_tell_pairs(curator: Curator, spend: Amount, pairs: Sequence[Marginal], total: float) -> bool:
    """Whether the noise on the scores of all pairs is small enough to tell the wrong ones from the right."""
    if not spend or not 0 < len(pairs) <= MOST_PAIRS:
        return False
    noise = curator.noise(spend.share(SCORING_SHARE), [1.0] * len(pairs))[0]
    return noise.scale <= MOST_SCORE_NOISE * total


def measure_outside(curator: Curator, model: GraphicalModel, pairs: Sequence[Marginal]) -> list[Target]:
    """Pairs that the model gets wrong, measured with all that is left, and what it knows itself: targets for its rows.

    Which pairs is PrivSyn's trade-off (Zhang et al. 2021) between the noise of measuring a pair and what it would be
    wrong by otherwise. What noise could explain of an answer's distance from the model is taken off.
    """
    domain = curator.domain
    scoring = curator.remaining.share(SCORING_SHARE)
    noise = curator.noise(curator.remaining - scoring)[0]
    worth = [pair for pair in pairs if noise.mean_absolute * domain.cells(pair) <= MOST_NOISE_SHARE * model.total]
    if not worth:
        return []
    scores = curator.score([Candidate(MarginalQuery(domain, pair)) for pair in worth], against=model, spend=scoring)
    cells = np.array([domain.cells(pair) for pair in worth], dtype=np.float64)
    kept = trade_off(np.clip(scores, 0.0, 2 * model.total), cells, noise)
    if not kept:
        return []
    measured = measure(curator, [worth[index] for index in kept], curator.remaining)
    views = [shrunk(view, model.marginal(view.marginal)) for view in measured]
    alone = [View((name,), model.marginal((name,)), FIXED_WEIGHT) for name in domain.names]
    agreed = [view for view in consistent([*views, *alone], model.total) if len(view.marginal) > 1]
    held = [(clique, model.marginal(clique)) for clique in model.cliques if len(clique) > 1]
    return [Target.of(marginal, counts) for marginal, counts in [*((v.marginal, v.counts) for v in agreed), *held]]
