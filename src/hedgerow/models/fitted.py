"""The engine as a library: noisy answers in, a distribution out, NumPy on both sides.

>>> import hedgerow as hr
>>> m = hr.fit({"a": 4, "b": 5}, [hr.noisy(("b", "a"), y, std=50)])
>>> m.marginal(("b", "a")); m.given({"a": 2}); m.log_prob(rows); m.sample(1000, seed=0)

Here is nothing but the words that a researcher uses for what `models.graphical` does: columns in any order, labelled,
and arrays with an axis for each. Nothing here sees data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts, Domain, IntArray, Marginal, Support
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.markup import joined, listed, tag
from hedgerow.models.conditioning import Factor
from hedgerow.models.graphical import estimation, mirror, proximal
from hedgerow.models.graphical.junction import Plan, plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.graphical.noisy import Noisy
from hedgerow.models.graphical.terms import LEAST_STD, Terms
from hedgerow.models.model import State, block_rng
from hedgerow.models.stored import Allowance, Stored
from hedgerow.progress import Limits, Progress

Loss = Callable[[Mapping[Marginal, Counts]], tuple[float, Mapping[Marginal, Counts]]]
"""Marginals (expected counts) in; the loss, and its gradient by each of them, out."""

Measured = Measurement | Noisy
ROUNDS_OF_ABSOLUTE = 50
"""Reweighted least-squares fits, at most, on the way to least absolute errors …"""
ABSOLUTE_TOLERANCE = 1e-4
"""… which end when a fit lowers the loss by less than this share of it …"""
SMALL_RESIDUAL = 1e-2
"""… and take a residual below this many standard deviations for this many."""

LEAST_STRENGTH = 1e-4
"""Of a prior: below it the search for what it hardly holds back does not end well, above its inverse nothing moves."""


class Fitted:
    """A distribution over labelled columns, fitted to noisy answers.

    `total` is the estimated number of rows, `loss` what was minimised, at its end; `trace` holds the loss of every call
    of the oracle where it was asked for.
    """

    def __init__(self, model: GraphicalModel, loss: float = math.nan, trace: Sequence[float] = ()):
        self.model = model
        self.loss = float(loss)
        self.trace = tuple(trace)

    @property
    def domain(self) -> dict[str, int]:
        """The columns and how many values each has."""
        return {attribute.name: attribute.size for attribute in self.model.domain}

    @property
    def cliques(self) -> list[Marginal]:
        """The sets of columns that have a factor."""
        return self.model.cliques

    @property
    def total(self) -> float:
        return self.model.total

    def marginal(self, columns: Sequence[str]) -> Counts:
        """Expected counts, an axis for each of the columns, in their order."""
        asked = _names(columns)
        return _reordered(self.model.marginal(self.model.domain.marginal(asked)), self.model.domain, asked)

    def given(self, values: Mapping[str, int | npt.ArrayLike]) -> Fitted:
        """The distribution of rows whose columns hold one of these values (a code, several, or a mask of all).

        `total` is the expected number of such rows. Values that have no mass are refused.
        """
        masks = [(name, _mask(name, self.model.domain[name].size, wanted)) for name, wanted in values.items()]
        found = self.model.given([Factor((name,), mask.astype(np.float64)) for name, mask in masks])
        if not found.possible:
            raise HedgerowError("nothing-possible", f"no row of the model has {', '.join(values)} as asked.")
        assert isinstance(found.model, GraphicalModel)
        kept = found.model
        return Fitted(GraphicalModel(kept.plan, kept.potentials, found.share * self.total))

    def log_prob(self, rows: Mapping[str, npt.ArrayLike] | npt.ArrayLike) -> Counts:
        """The logarithm of every row's probability; rows are columns by name, or an array with a column for each."""
        codes = self._codes(rows)
        found = np.full(len(next(iter(codes.values()))), -self.model.log_partition)
        for clique, factor in self.factors().items():
            found += factor[tuple(codes[name] for name in clique)]
        return found

    def _codes(self, rows: Any) -> dict[str, IntArray]:
        names = self.model.domain.names
        if isinstance(rows, Mapping) or hasattr(rows, "columns"):
            lacking = [name for name in names if name not in rows]
            if lacking:
                raise HedgerowError("missing-columns", f"rows need every column of the model; {lacking} are not there.")
            given = [np.asarray(rows[name]) for name in names]
        else:
            table = np.atleast_2d(np.asarray(rows))
            if table.shape[1] != len(names):
                raise HedgerowError(
                    "missing-columns",
                    f"rows need {len(names)} columns, in the order {names}; these have {table.shape[1]}.",
                )
            given = list(table.T)
        codes = {name: np.atleast_1d(column).astype(np.int64) for name, column in zip(names, given, strict=True)}
        for name, column in codes.items():
            size = self.model.domain[name].size
            if column.size and (column.min() < 0 or column.max() >= size):
                raise HedgerowError("bad-code", f'codes of "{name}" run from 0 to {size - 1}.')
        return codes

    def sample(
        self, rows: int | None = None, seed: int = 0, *, independent: bool = False
    ) -> dict[str, npt.NDArray[Any]]:
        """Rows as columns of codes. `rows` is the rounded total if left out; the same seed draws the same rows.

        Counts follow the model as closely as whole rows can; with `independent` rows are drawn one by one instead.
        """
        count = max(1, round(self.total)) if rows is None else rows
        if count < 0:
            raise HedgerowError("bad-rows", f"a number of rows cannot be {count}.")
        draw = self.model.draw_independent if independent else self.model.draw
        return dict(draw(count, block_rng(seed, 0)))

    def factors(self) -> dict[Marginal, Counts]:
        """Log-potentials: the probability of a row is e^(their sum at its cells), normalised."""
        return {clique: self.model.potential(clique) for clique in self.cliques}

    def to_mbi(self) -> Any:
        """The same model as a `MarkovRandomField` of mbi (which must be installed)."""
        import mbi

        domain = mbi.Domain(list(self.domain), list(self.domain.values()))
        factors = {clique: mbi.Factor(domain.project(clique), factor) for clique, factor in self.factors().items()}
        counts = {clique: mbi.Factor(domain.project(clique), self.marginal(clique)) for clique in self.cliques}
        cliques = list(factors)
        return mbi.MarkovRandomField(
            potentials=mbi.CliqueVector(domain, cliques, factors),
            marginals=mbi.CliqueVector(domain, cliques, counts),
            total=self.total,
        )

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {size}" for name, size in self.domain.items())
        return f"Fitted({{{columns}}}, {len(self.cliques)} cliques, total={self.total:g}, loss={self.loss:g})"

    def _repr_html_(self) -> str:
        rows = ((" × ".join(clique), f"{factor.size:,}") for clique, factor in self.factors().items())
        about = f"{len(self.domain)} columns, {self.total:,.0f} rows, loss {self.loss:.4g}"
        return joined(tag("p", about), listed(("clique", "cells"), rows))

    def __getstate__(self) -> dict[str, Any]:
        sizes = [(attribute.name, attribute.size) for attribute in self.model.domain]
        return {"sizes": sizes, "state": self.model.state(), "loss": self.loss, "trace": self.trace}

    def __setstate__(self, held: Mapping[str, Any]) -> None:
        state: State = held["state"]
        domain = Domain.of(dict(held["sizes"]))
        self.model = GraphicalModel.from_state(domain, Stored(state, Allowance(Limits.memory)))
        self.loss, self.trace = held["loss"], held["trace"]


def fit(
    domain: Mapping[str, int],
    measurements: Sequence[Measured],
    *,
    zeros: Mapping[Sequence[str], npt.ArrayLike] | None = None,
    prior: Fitted | None = None,
    strength: float = 1.0,
    start: Fitted | None = None,
    total: float | None = None,
    loss: Literal["squares", "absolute"] | Loss = "squares",
    cliques: Sequence[Sequence[str]] = (),
    trace: bool = False,
    limits: Limits | None = None,
) -> Fitted:
    """The distribution of largest entropy among those that explain noisy answers best.

    Args:
        domain: The columns and their sizes.
        measurements: Noisy answers: `hedgerow.noisy`, or `Release.measurements`.
        zeros: Masks by sets of columns, true where no row can be (an axis for each column, in the order given).
        prior: A model to stay near: answers are followed only as far as their noise allows, and the total is the
            prior's.
        strength: How much more than by default the prior is believed.
        start: A model to begin the search from, which only shortens it.
        total: The number of rows; estimated from the answers unless given.
        loss: "squares" (½ Σ ((answer − value)/std)², the likelihood of Gaussian noise), "absolute"
            (Σ |answer − value|/std), or a function of the marginals of `cliques` that returns its value and gradients;
            then there are no measurements.
        cliques: The marginals that a loss of your own is a function of.
        trace: Whether the loss of every step is kept, as `trace`.
        limits: Bytes of memory; a model beyond them is refused with its size.
    """
    coded = Domain.of(domain)
    support = {
        coded.marginal(_names(columns)): ~_in_domain_order(mask, coded, _names(columns))
        for columns, mask in (zeros or {}).items()
    }
    seen: list[float] | None = [] if trace else None
    if prior is not None and start is not None:
        raise HedgerowError("prior-and-start", "a prior is where a search starts from; give one of prior and start.")
    if not LEAST_STRENGTH <= strength <= 1 / LEAST_STRENGTH:
        raise HedgerowError(
            "bad-strength",
            f"the strength of a prior lies between {LEAST_STRENGTH:g} and {1 / LEAST_STRENGTH:g}, not at {strength:g}. "
            "Hint: a prior that is not to count is a start.",
        )
    if callable(loss):
        if measurements or prior is not None:
            raise HedgerowError(
                "loss-and-measurements",
                "a loss of your own says all that the model is fitted to: give no measurements and no prior.",
            )
        orders = [_names(columns) for columns in cliques]
        return _descended(coded, orders, loss, support, total, start, seen, limits)

    def fitted(known: Sequence[Measured], near: GraphicalModel | None) -> GraphicalModel:
        if prior is not None:
            return estimation.fit_near(
                prior.model, known, limits=limits, support=support, trace=seen, trust=estimation.TRUST / strength
            )
        return estimation.fit(coded, known, total=total, start=near, support=support, limits=limits, trace=seen)

    first = None if start is None else start.model
    if loss == "squares":
        model = fitted(measurements, first)
        squares = [float((_residuals(model, each) ** 2).sum()) for each in measurements]
        return Fitted(model, sum(squares) / 2, seen or ())
    if loss != "absolute":
        raise HedgerowError("unknown-loss", f'a loss is "squares", "absolute" or a function, not {loss!r}.')
    return _least_absolute(measurements, fitted, first, seen)


def _least_absolute(
    measurements: Sequence[Measured],
    fitted: Callable[[Sequence[Measured], GraphicalModel | None], GraphicalModel],
    model: GraphicalModel | None,
    seen: list[float] | None,
) -> Fitted:
    """Σ |residual| by least squares whose weights are the last residuals' inverses (iteratively reweighted)."""
    noisy = [_noisy(each) for each in measurements]
    reweighted: list[Measured] = list(noisy)
    best = math.inf
    for _ in range(ROUNDS_OF_ABSOLUTE):
        model = fitted(reweighted, model)
        residuals = [np.abs(_residuals(model, each)) for each in noisy]
        now = float(sum(each.sum() for each in residuals))
        if best - now <= ABSOLUTE_TOLERANCE * now:
            break
        best = now
        reweighted = [
            Noisy(each.columns, each.values, each.std * np.sqrt(np.maximum(residual, SMALL_RESIDUAL)), each.matrix)
            for each, residual in zip(noisy, residuals, strict=True)
        ]
    assert model is not None
    return Fitted(model, min(best, now), seen or ())


class _Own(Terms):
    """Marginals of some cliques, and a loss of one's own of them."""

    def __init__(self, structure: Plan, orders: Sequence[Marginal], own: Loss):
        domain = structure.layout.domain
        self._own, self._orders, self._cliques = own, orders, [domain.marginal(order) for order in orders]
        super().__init__(structure, [Noisy(clique, np.zeros(domain.cells(clique)), 1.0) for clique in self._cliques])

    def _told(self, answers: Counts) -> tuple[float, Counts]:
        layout = self.plan.layout
        ends = np.cumsum([layout.domain.cells(clique) for clique in self._cliques])[:-1]
        shown = {
            order: _reordered(layout.shown(cells, layout.axes(clique)), layout.domain, order)
            for clique, order, cells in zip(self._cliques, self._orders, np.split(answers, ends), strict=True)
        }
        value, gradients = self._own(shown)
        flat = [
            layout.stored(_in_domain_order(gradients[order], layout.domain, order, np.float64).reshape(-1), clique)
            for clique, order in zip(self._cliques, self._orders, strict=True)
        ]
        return float(value), np.concatenate(flat)

    def loss(self, answers: Counts) -> float:
        return self._told(answers)[0]

    def gradient(self, answers: Counts) -> Counts:
        return self._told(answers)[1]

    def scale(self, loss: float) -> float:
        return max(abs(loss), np.finfo(np.float64).tiny)


def _descended(
    domain: Domain,
    orders: Sequence[Marginal],
    own: Loss,
    support: Support,
    total: float | None,
    start: Fitted | None,
    seen: list[float] | None,
    limits: Limits | None,
) -> Fitted:
    """Mirror descent on a loss of which nothing is known but its gradient."""
    cliques = [domain.marginal(order) for order in orders]
    if not cliques or len(set(cliques)) != len(cliques):
        raise HedgerowError(
            "bad-cliques", "a loss of your own needs cliques: the sets of columns it looks at, each once."
        )
    allowed = limits or Limits()
    progress = Progress(allowed)
    structure = plan(domain, [*cliques, *support])
    base = estimation.starting(structure, None if start is None else start.model, estimation.CONFIDENCE, support)
    count = 1.0 if total is None else float(total)
    oracle = proximal.Oracle(structure.network(), _Own(structure, orders, own), count, progress, seen)
    oracle(base)
    mirror.descend(oracle, estimation.TOLERANCE, estimation.MOST_CALLS, progress)
    return Fitted(GraphicalModel(structure, oracle.best, count, allowed.memory), oracle.best_loss, seen or ())


def _noisy(measured: Measured) -> Noisy:
    """A marginal of Hedgerow's own as one that anybody could have made."""
    if isinstance(measured, Noisy):
        return measured
    query = measured.query
    if not isinstance(query, MarginalQuery) or "aggregation" in query.description or measured.kept is not None:
        raise HedgerowError(
            "not-a-marginal-query", f"least absolute errors need whole marginals; {query!r} is not one."
        )
    return Noisy(query.attributes, measured.dense(), measured.std)


def _residuals(model: GraphicalModel, measured: Measured) -> Counts:
    """(answer − value) / std."""
    if not isinstance(measured, Noisy) and isinstance(measured.query, InteractionQuery):
        answer = measured.query.combined(model.marginal(measured.query.attributes))
        apart: Counts = (answer - measured.dense()) / max(measured.std, LEAST_STD)
        return apart
    if not isinstance(measured, Noisy):
        [answer] = model.answers([measured.query])  # type: ignore[list-item]
        return (answer - measured.dense()) / max(measured.std, LEAST_STD)
    counts = model.marginal(model.domain.marginal(measured.columns))
    answer = measured.rows() @ _reordered(counts, model.domain, measured.columns).reshape(-1)
    residuals: Counts = (answer - measured.values) / np.maximum(measured.std, LEAST_STD)
    return residuals


def _names(columns: Sequence[str]) -> Marginal:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _reordered(counts: Counts, domain: Domain, columns: Marginal) -> Counts:
    """Counts with axes in domain order, in the order of the columns."""
    held = domain.marginal(columns)
    if len(held) != len(columns):
        raise HedgerowError("bad-marginal", f"the columns of a marginal must be distinct, got {columns}.")
    return np.ascontiguousarray(
        np.transpose(counts.reshape(domain.shape(held)), [held.index(name) for name in columns])
    )


def _in_domain_order(values: npt.ArrayLike, domain: Domain, columns: Marginal, dtype: Any = bool) -> npt.NDArray[Any]:
    """The reverse: axes as the columns were given, in domain order."""
    held = domain.marginal(columns)
    shape = domain.shape(columns)
    given = np.asarray(values, dtype=dtype)
    if len(held) != len(columns) or given.size != math.prod(shape):
        raise HedgerowError(
            "bad-zeros", f"a table over {' × '.join(columns)} needs the shape {shape}, not {given.shape}."
        )
    return np.ascontiguousarray(np.transpose(given.reshape(shape), [columns.index(name) for name in held]))


def _mask(name: str, size: int, wanted: int | npt.ArrayLike) -> npt.NDArray[np.bool_]:
    given = np.asarray(wanted)
    if given.dtype == bool:
        if given.shape != (size,):
            raise HedgerowError("bad-code", f'a mask of "{name}" needs {size} entries, one for each value.')
        return given
    codes = np.atleast_1d(given)
    if codes.dtype.kind not in "iu" or not codes.size or codes.min() < 0 or codes.max() >= size:
        raise HedgerowError("bad-code", f'codes of "{name}" run from 0 to {size - 1}.')
    mask = np.zeros(size, dtype=bool)
    mask[codes] = True
    return mask
