"""From noisy answers to a distribution: the graphical model that explains the measurements best.

`fit` minimises ½ Σ ‖answers(model) − measured‖² / σ² over all distributions with the estimated total. Among
distributions with the same marginals it returns the one of largest entropy given its cliques. Cells that cannot occur,
as the domain says, stay empty: what is learnt is conditional on that. `fit_near` does not follow the measurements all
the way, but stays near a model that was believed before. Both only ever see measurements, so everything here is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.coded.domain import Counts, Domain, Marginal, Support
from hedgerow.coded.measurement import Measurement, estimated_total
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.errors import HedgerowError, LimitError
from hedgerow.models.graphical import mirror, proximal
from hedgerow.models.graphical.junction import Plan, plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.graphical.noisy import Noisy
from hedgerow.models.graphical.terms import LEAST_STD, Said, Terms
from hedgerow.progress import Limits, Progress

TOLERANCE = 1e-4
"""The search ends when a whole stage lowers the loss by less than this share of it."""

CONFIDENCE = 0.8
"""How much of a start's potentials is kept: cells that it had emptied must be able to fill again. With all of them
kept, fits of adult one marginal at a time did not converge; four fifths needed the fewest calls."""

MOST_CALLS = 1000
"""Oracle calls after which the dual search gives up; mirror descent then goes on from the best point."""

TRUST = 3.0
"""How far `fit_near` follows the measurements: the prior lets a cell of expected count c stray by √(TRUST · σ · c)
rows. Of .3 to 30, what gave the least error on adult and br2000 at ε = .1 and 1; nltcs does not tell 3 from more."""

NEAR = 1e-3
"""The relative duality gap at which `fit_near` ends; rough fits end at `proximal.ROUGHLY`."""

VECTORS = 20
"""Vectors of one number per measured cell that a search holds at its peak, beside the pairs of L-BFGS."""

PLANNING = 100_000
"""Work of each attribute and each clique, before the search begins."""


def fit(
    domain: Domain,
    measurements: Sequence[Measurement | Noisy],
    *,
    total: float | None = None,
    start: GraphicalModel | None = None,
    support: Support | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    most_calls: int = MOST_CALLS,
    trace: list[float] | None = None,
) -> GraphicalModel:
    """The model of least weighted squared error.

    `total` is estimated from the measurements unless given. `start`, e.g. the model before one more marginal was
    measured, only shortens the search. `most_calls` below the default gives a rougher model sooner, which is enough
    between the rounds of an adaptive method. A clique set that does not fit `limits.memory` raises LimitError with its
    size before anything is allocated. The loss of every oracle call joins `trace`.
    """
    limits = limits or Limits()
    progress = progress or Progress(limits)
    if total is None:
        total = _total(measurements)
    if not math.isfinite(total):
        raise HedgerowError("bad-total", f"a model needs a total that is a number, not {total}.")
    count = max(1.0, total)
    support = together(domain.support, support or {})
    cliques = [_columns(domain, measurement) for measurement in measurements] + list(support)
    progress.worked(PLANNING * (len(domain) + len(cliques)))
    structure = plan(domain, cliques)
    pairs = _pairs_that_fit(structure, measurements, limits.memory)
    base = starting(structure, start, CONFIDENCE, support)
    terms = Terms(structure, measurements)
    if len(terms) == 0:
        return GraphicalModel(structure, base, count, limits.memory)
    oracle = proximal.Oracle(structure.network(), terms, count, progress, trace)
    alpha = math.exp(-float(np.log(terms.precision).mean()))
    converged = proximal.minimise(oracle, base, alpha, TOLERANCE, most_calls, pairs, progress)
    if not math.isfinite(oracle.best_loss):
        if np.isneginf(base).any():
            raise HedgerowError("nothing-possible", "the structural zeros exclude every row; nothing could be fitted.")
        raise HedgerowError(
            "cannot-fit", "the measurements are too far from any distribution to be fitted; nothing was."
        )
    if not converged and most_calls >= MOST_CALLS:
        mirror.descend(oracle, TOLERANCE, MOST_CALLS, progress)
    return GraphicalModel(structure, oracle.best, count, limits.memory)


def fit_near(
    prior: GraphicalModel,
    measurements: Sequence[Measurement | Noisy],
    *,
    limits: Limits | None = None,
    rough: bool = False,
    trust: float = TRUST,
    std: float | None = None,
    support: Support | None = None,
    trace: list[float] | None = None,
) -> GraphicalModel:
    """The model of least ½ Σ ‖answers − measured‖² / σ² + (N/α)·KL(model ‖ prior), with α = trust · σ (geometric mean).

    Noise in cells that hold few rows is not followed: there the prior, say independent columns, is the better guess.
    The total is the prior's. `rough` is enough between the rounds of an adaptive method. Where what was measured are
    combinations of counts, `std` says how noisy the cells are that they come to: α's σ.
    """
    fits = NearFits(prior, limits or Limits(), trust, std)
    return fits.fit(measurements, rough=rough, support=support, trace=trace)


@dataclass(eq=False)
class NearFits:
    """Fits near one prior, of ever more measurements: each search begins where the last one ended."""

    prior: GraphicalModel
    limits: Limits
    trust: float = TRUST
    std: float | None = None
    _said: Said = field(default_factory=dict)

    def fit(
        self,
        measurements: Sequence[Measurement | Noisy],
        *,
        rough: bool = False,
        support: Support | None = None,
        trace: list[float] | None = None,
    ) -> GraphicalModel:
        """`fit_near`."""
        prior, progress = self.prior, Progress(self.limits)
        measured = [_columns(prior.domain, measurement) for measurement in measurements]
        support = together(prior.domain.support, support or {})
        cliques = [*measured, *prior.cliques, *support]
        progress.worked(PLANNING * (len(prior.domain) + len(cliques)))
        structure = plan(prior.domain, cliques)
        pairs = _pairs_that_fit(structure, measurements, self.limits.memory)
        potentials = starting(structure, prior, 1.0, support)
        terms = Terms(structure, measurements)
        if len(terms):
            oracle = proximal.Oracle(structure.network(), terms, prior.total, progress, trace)
            alpha = self.trust * (self.std or math.exp(-float(np.log(terms.precision).mean())))
            gap = proximal.ROUGHLY if rough else NEAR
            start = terms.multipliers(self._said, alpha)
            point = proximal.approach(oracle, potentials, start, alpha, gap, MOST_CALLS, pairs, progress)
            self._said, potentials = terms.said(point.multipliers, alpha), point.potentials
        return GraphicalModel(structure, potentials, prior.total, self.limits.memory)


def loss(model: GraphicalModel, measurements: Sequence[Measurement]) -> float:
    """½ Σ ‖answers(model) − measured‖² / σ²: what `fit` minimises."""
    answers = model.answers([_marginal_query(measurement) for measurement in measurements])
    return 0.5 * sum(
        float(((answer - measurement.dense()) ** 2).sum()) / max(measurement.std, LEAST_STD) ** 2
        for answer, measurement in zip(answers, measurements, strict=True)
    )


def counts_every_row(measurement: Measurement) -> bool:
    """Whether its noisy counts add up to an estimate of the total: no row left out, no cell withheld."""
    query = measurement.query
    return (
        measurement.kept is None
        and not isinstance(query, InteractionQuery)
        and (not isinstance(query, MarginalQuery) or query.blocks is None or int(query.blocks.min()) >= 0)
    )


def _marginal_query(measurement: Measurement) -> MarginalQuery:
    if not isinstance(measurement.query, MarginalQuery):
        raise HedgerowError(
            "not-a-marginal-query", f"a graphical model answers marginal queries; {measurement.query!r} is not one."
        )
    return measurement.query


def _columns(domain: Domain, measurement: Measurement | Noisy) -> Marginal:
    """The attributes that a measurement is about, in domain order."""
    return domain.marginal(measurement.columns) if isinstance(measurement, Noisy) else measurement.query.attributes


def _total(measurements: Sequence[Measurement | Noisy]) -> float:
    """The inverse-variance mean of what measurements say of the number of rows; 1 where none tells."""
    complete = [each for each in measurements if not isinstance(each, Noisy) and counts_every_row(each)]
    told = [each.total for each in measurements if isinstance(each, Noisy) and each.total is not None]
    if not told:
        return estimated_total(complete) if complete else 1.0
    told += [(each.total, each.query.cells * each.noise.variance) for each in complete]
    precision = [1 / max(variance, 1e-12) for _, variance in told]
    return max(1.0, sum(rows * weight for (rows, _), weight in zip(told, precision, strict=True)) / sum(precision))


def _pairs_that_fit(structure: Plan, measurements: Sequence[Measurement | Noisy], memory: int) -> int:
    """How many L-BFGS pairs the memory allows; refuses when not even three fit beside the model."""
    numbers = [each.values.size if isinstance(each, Noisy) else each.query.cells for each in measurements]
    vector = 8 * sum(numbers)
    fixed = structure.bytes + 3 * 8 * structure.leaf_cells + VECTORS * vector
    pairs = (memory - fixed) // vector if vector else proximal.MEMORY
    if fixed > memory or pairs < 3:
        needed = fixed + 3 * vector
        raise LimitError(
            "model-too-large",
            f"a model on these {len(structure.leaves)} cliques takes {needed:,} bytes "
            f"({structure.leaf_cells:,} cells in cliques, {structure.inner_cells:,} between them); "
            f"{memory:,} bytes are allowed. Nothing was allocated. Measure smaller marginals or allow more memory.",
        )
    return min(pairs, proximal.MEMORY)


def together(first: Support, second: Support) -> Support:
    """What both say can occur."""
    both = {
        marginal: possible & np.reshape(second[marginal], possible.shape)
        for marginal, possible in first.items()
        if marginal in second
    }
    return {**first, **second, **both}


def starting(structure: Plan, start: GraphicalModel | None, share: float, support: Support) -> Counts:
    """Where a search starts: a share of the potentials of `start` where leaves contain them, −∞ at structural zeros."""
    layout = structure.layout
    base = np.zeros(structure.leaf_cells)
    if start is not None:
        if start.domain.names != layout.domain.names or start.plan.layout.sizes != layout.sizes:
            raise HedgerowError(
                "another-domain",
                "a search can start from a model of the same domain only; this one has another domain.",
            )
        for leaf, index in zip(start.plan.leaves, start.plan.leaf_places, strict=True):
            structure.add(leaf, share * start.potentials[index], base)
    for marginal, possible in support.items():
        if layout.domain.marginal(marginal) != marginal:
            raise HedgerowError("bad-marginal", f"the attributes of {marginal} must be distinct and in domain order.")
        if np.size(possible) != layout.domain.cells(marginal):
            raise HedgerowError("bad-zeros", f"the support of {' × '.join(marginal)} needs one entry per cell.")
        zeros = np.where(np.asarray(possible, dtype=bool), 0.0, -np.inf)
        structure.add(layout.axes(marginal), layout.stored(zeros, marginal), base)
    return base
