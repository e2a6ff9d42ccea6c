"""What the methods share that choose and measure round by round on a growing graphical model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.domain import Domain, Marginal
from hedgerow.models.graphical import GraphicalModel
from hedgerow.models.junction import sizes_with

ROUGH = (25, 150)
"""Least and most oracle calls of a fit between rounds; the last one runs to the end."""
WORK = 2e7
"""Cells that the oracle calls of such a fit may go through: large models get fewer calls."""


def rough_calls(model: GraphicalModel) -> int:
    """How much effort a fit between rounds is worth."""
    return int(np.clip(WORK / model.plan.work, *ROUGH))


def within(domain: Domain, model: GraphicalModel, marginals: Sequence[Marginal], megabytes: float) -> list[Marginal]:
    """The marginals that the model holds already, or that would leave it no larger than this."""
    sizes = sizes_with(domain, model.cliques, marginals)
    held = [set(clique) for clique in model.cliques]
    return [
        marginal
        for marginal, size in zip(marginals, sizes, strict=True)
        if size <= megabytes * 2**20 or any(clique >= set(marginal) for clique in held)
    ]
