"""Intervals: how far the error of an answer spreads, from noise, from the model's discrepancy, and by experience.

What the model may be wrong by is κ√V (`hedgerow.answers.discrepancy`), where V is the variance of the answer's
influence; and beside it, where errors of many cells are alike, a part of the distance itself. Where measurements hold
all of its columns together there is their noise too: a measurement tells the influence's mean in each of its cells,
with the noise of the cells, and leaves what varies inside cells to the model; several are put together by their
precisions. The model is fitted to all answers at once, so of this noise a part stays.

An answer that is a sum of cells of a measurement was told by it, with that noise and nothing else. So the model is
wrong by what it moved the answer away from what was told, which is known, and by the noise; κ√V is its quality's word
for the same error. All three are added.

The sum is multiplied by a factor: how much larger errors on real tables are than that. They have heavier tails than
Gaussian ones; Student's distribution with `TAILS` degrees of freedom fits them.

The constants were set by hand after quantiles of errors on four tables, `ALIKE` after two more; `python -m
bench.coverage --fit` says what each should be multiplied with. docs/studies/coverage.md says how often intervals then
hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from hedgerow.answers.basis import Basis, Grounds, cells_of, sums_cells
from hedgerow.answers.discrepancy import Discrepancy
from hedgerow.answers.rows import Rows
from hedgerow.answers.values import Estimate
from hedgerow.coded.domain import Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.schema.arrays import FloatArray

TAILS = 3
"""Degrees of freedom."""
STAYS = 0.1
"""The part of the measurements' noise, as a variance, that stays after the fit."""
ALIKE = 0.03
"""What an answer that no measurement tells is wrong by where errors of neighbouring cells are alike, in units of
κΣ√p√V: 2½ times the distance, times √V. Nothing where cells are few; the larger part where a pair has thousands."""
BEYOND = 4e-6
"""What κ² is more for three columns and more that were not measured together: pairs say nothing of it."""
TOGETHER, APART = {False: 0.76, True: 1.4}, {False: 1.25, True: 1.8}
"""Factors of answers whose columns were measured together, and of others; of each the second (True) is for answers
that values along a line make, means and quantiles, not numbers of rows alone: errors of neighbouring cells are alike,
which a sum along the line does not average out. A *modelled* answer is in between, as far as the distance of its
columns could be told from noise: what is measured because it is strong is also what a rough measurement gets wrong."""
TOLD = {False: 0.34, True: 0.5}
"""Those of *measured* answers, where noise, what the fit moved and the model's distance are added."""
TINY = 1e-300
FEWEST_ROWS = 2


class Spread:
    """The errors of a release's answers."""

    def __init__(self, grounds: Grounds, discrepancy: Discrepancy, total_std: float):
        self._grounds, self._discrepancy, self._total_std = grounds, discrepancy, total_std

    def interval(
        self, estimate: Estimate, basis: Basis, marginal: Marginal, rows: Rows, level: float, drawn: float = 0.0
    ) -> tuple[float, float]:
        """The ends of an interval that is to hold the truth with probability `level`; `drawn` is the variance of what
        else the answer owes to luck, such as that of a sample.
        """
        reach = float(student.ppf((1 + level) / 2, TAILS))
        quantile = estimate.quantile
        variance = self.variance(estimate.linear, estimate.along, basis, marginal, rows) + drawn
        if quantile is not None:
            half = reach * math.sqrt(variance)
            return quantile.at(max(0.0, quantile.level - half)), quantile.at(min(1.0, quantile.level + half))
        half = reach * math.hypot(math.sqrt(variance), estimate.by_total * self._total_std)
        return max(estimate.bounds[0], estimate.value - half), min(estimate.bounds[1], estimate.value + half)

    @property
    def worth(self) -> int:
        """Independent rows that tell as much as the release: a sample of so many is wrong by as much as it is.

        At 90 %, where what it tells of are numbers of rows that lean on pairs nobody measured.
        """
        scale = float(student.ppf(0.95, TAILS)) / float(norm.ppf(0.95))
        typical = self._discrepancy.typical
        variance = APART[False] ** 2 * typical.square + ALIKE**2 * typical.coherent
        return max(FEWEST_ROWS, int(1 / (scale**2 * variance)))

    def variance(self, influence: FloatArray, along: bool, basis: Basis, marginal: Marginal, rows: Rows) -> float:
        """The square of the scale of Σ influence · error of the share."""
        if not marginal:
            return 0.0
        square, coherent, told = self._discrepancy.of(marginal)
        if basis == "assumed" and len(marginal) > 2:
            square += BEYOND
        variance = variance_of(rows.weights, influence)
        if not along:  # where the model has no row at all there may be a few
            variance += square * float(np.abs(influence).max()) ** 2
        asked = self._grounds.about(marginal)
        told_by = [each for each in (_told(one, marginal, rows, influence) for one in asked) if each is not None]
        if basis == "measured" and told_by:
            moved, noise = _together(told_by)
            return TOLD[along] ** 2 * (square * variance + noise + moved**2)
        alone = [_alone(each, marginal, rows, influence, square) for each in asked]
        precision = sum(1 / max(each, TINY) for each in alone if each is not None)
        noise = STAYS / precision if precision else 0.0
        together = 0.0 if basis == "assumed" else told
        factor = together * TOGETHER[along] + (1 - together) * APART[along]
        return factor**2 * (square * variance + noise) + ALIKE**2 * coherent * variance


def variance_of(weights: FloatArray, influence: FloatArray) -> float:
    """The variance of the influence among the rows."""
    mean = float(weights @ influence)
    return max(0.0, float(weights @ influence**2) - mean**2)


class Told(NamedTuple):
    """How far what a measurement says of an answer is from what the model says, and the variance of its noise."""

    moved: float
    noise: float


def _told(measurement: Measurement, marginal: Marginal, rows: Rows, influence: FloatArray) -> Told | None:
    """What one measurement says, where the answer is a sum of its cells."""
    found = cells_of(measurement, marginal, rows)
    if found is None or not sums_cells(found[0], influence):
        return None
    cells, others = found
    values = _over(measurement, marginal)
    held = np.bincount(cells, weights=rows.weights, minlength=len(values))
    means = np.zeros(len(values))
    means[cells] = influence
    noise = others * float(means @ means) * measurement.noise.variance / rows.total**2
    return Told(float(means @ (values / rows.total - held)), noise)


def _over(measurement: Measurement, marginal: Marginal) -> FloatArray:
    """The noisy counts over the attributes of a marginal alone."""
    query, values = measurement.query, measurement.dense()
    assert isinstance(query, MarginalQuery)
    if query.blocks is not None:
        return values
    own = [
        set(marginal).issuperset((name,) if join is None else join.members)
        for name, join in zip(query.attributes, query.joins, strict=True)
    ]
    over: FloatArray = values.reshape(query.shape).sum(axis=tuple(axis for axis, held in enumerate(own) if not held))
    return over.reshape(-1)


def _together(told: Sequence[Told]) -> Told:
    """Several measurements' word, by their precisions."""
    precisions = np.array([1 / max(each.noise, TINY) for each in told])
    moved = float(precisions @ [each.moved for each in told] / precisions.sum())
    return Told(moved, float(1 / precisions.sum()))


def _alone(
    measurement: Measurement, marginal: Marginal, rows: Rows, influence: FloatArray, inside: float
) -> float | None:
    """The variance of an answer from one measurement alone: its noise, and `inside` for each unit that cells hide."""
    found = cells_of(measurement, marginal, rows)
    if found is None:
        return None
    cells, others = found
    held = np.bincount(cells, weights=rows.weights)
    sums = np.bincount(cells, weights=rows.weights * influence)
    means = np.divide(sums, held, out=np.zeros_like(sums), where=held > 0)
    noise = others * float(means @ means) * measurement.noise.variance / rows.total**2
    between = float(held @ means**2) - float(held @ means) ** 2
    return noise + inside * max(0.0, variance_of(rows.weights, influence) - between)
