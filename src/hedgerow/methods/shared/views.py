"""Measured marginals as views that can be made consistent: noise shared for the least error, public priors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import Counts, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Curator
from hedgerow.models.consistency import View


def share_power(noise: Noise) -> float:
    """Weights cells^(1/3) give the least sum of absolute Gaussian errors (ρ ∝ cells^(2/3)), cells^(1/2) of Laplace."""
    return 1 / 3 if noise.kind == "gaussian" else 1 / 2


def measure(curator: Curator, marginals: Sequence[Marginal], spend: Amount) -> list[View]:
    """All of them for one amount, with the weights of the least total error."""
    queries = [MarginalQuery(curator.domain, marginal) for marginal in marginals]
    power = share_power(curator.noise(spend)[0])
    measured = curator.measure(queries, spend=spend, weights=[query.cells**power for query in queries])
    return [view(measurement) for measurement in measured]


def view(measurement: Measurement) -> View:
    """A measured marginal with the precision of its cells."""
    query = measurement.query
    assert isinstance(query, MarginalQuery)
    return View(query.attributes, measurement.dense().reshape(query.shape), 1 / max(measurement.noise.variance, 1e-12))


def pooled(views: Sequence[View]) -> list[View]:
    """One view per marginal: those of the same marginal are averaged by precision."""
    groups: dict[Marginal, list[View]] = {}
    for each in views:
        groups.setdefault(each.marginal, []).append(each)
    return [
        View(
            marginal,
            np.average([each.counts for each in group], axis=0, weights=[each.weight for each in group]),
            sum(each.weight for each in group),
        )
        for marginal, group in groups.items()
    ]


def shrunk(measured: View, prior: Counts) -> View:
    """The measured counts, drawn towards prior ones by as much as noise could explain of their difference.

    The positive-part James–Stein estimate: its expected squared error is below that of the measured counts wherever
    the prior lies, and far below where the prior is good.
    """
    apart = measured.counts - prior
    return replace(measured, counts=prior + kept_part(apart, 1 / measured.weight) * apart)


def kept_part(apart: Counts, variance: float) -> float:
    """How much of a noisy difference is no noise, by James and Stein's estimate."""
    explained = max(0, apart.size - 2) * variance
    return max(0.0, 1 - explained / max(float((apart**2).sum()), 1e-12))
