"""How far the model is from the private table, per unit of what a question could tell apart.

A question's answer is a sum over cells of influence · error of the cell's share. Were the errors of cells independent,
with variances in proportion to the cells' shares p, κ²·p, then an answer whose influence has the variance V among the
rows would be wrong by κ√V: as of a sample of 1/κ² rows. And the total variation distance would be √(2/π)/2 · κ Σ√p. So
a measured distance tells κ, and κ tells what a question about the same columns can be wrong by. Errors of neighbouring
cells are not independent: where a model knows nothing of a relation, whole corners of the pair are too full and others
too empty, and a question about a corner is wrong by a part of the distance itself, however many cells there are. So
κΣ√p, which is in proportion to the distance, is told beside κ; how much of each an answer is wrong by are factors that
were fitted on tables (`hedgerow.answers.spread`).

Distances are noisy, so those of one release are taken together: a pair's κ is drawn towards the mean of all pairs, the
more so the noisier it is, and what stays unknown of it counts as if it were there (normal prior, moments by DerSimonian
and Laird 1986).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np

from hedgerow.coded.domain import CodedTable, Domain, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.schema.arrays import FloatArray

PER_DISTANCE = 2 * math.sqrt(math.pi / 2)
"""κ = this · distance / Σ√p."""
ENOUGH = 400
"""Pairs from which the mean is taken, at most."""
ROUNDS = 50
GUESS, POWER = 1.3, 0.6
"""Without measured distances; on releases of five of the six tables of docs/studies/coverage.md the root mean square of
κ came out within a factor 2 of this, on nltcs, whose measurements overlap, three to five times smaller."""


class Distance(Protocol):
    """A noisy total variation distance of some attributes (`hedgerow.release.quality`)."""

    @property
    def attributes(self) -> Marginal: ...
    @property
    def value(self) -> float: ...
    @property
    def std(self) -> float: ...


class Kappa(NamedTuple):
    """E κ²; E (κΣ√p)²; and how much of this comes from the columns' own distance: 0 if that drowned in noise."""

    square: float
    coherent: float
    told: float


@dataclass(frozen=True)
class Typical:
    """What is believed of κ before a distance is looked at: mean, standard deviation, and the error of the mean."""

    mean: float
    std: float
    error: float

    def given(self, observed: float, noise: float) -> tuple[float, float]:
        """E κ² after an observation with noise, and how much of it comes from the observation."""
        variance = self.std**2
        trust = variance / (variance + noise**2)
        believed = max(0.0, self.mean + trust * (observed - self.mean))
        return believed**2 + trust * noise**2 + ((1 - trust) * self.error) ** 2, trust

    @property
    def unseen(self) -> float:
        """E κ² where nothing was observed."""
        return self.mean**2 + self.std**2 + self.error**2


class Discrepancy:
    """κ² of every column and pair."""

    def __init__(
        self, domain: Domain, distances: Sequence[Distance], draw: Callable[[Marginal], CodedTable], guess: Typical
    ):
        self._domain, self._draw, self._guess = domain, draw, guess
        self._distances = {distance.attributes: distance for distance in distances}
        self._roots: dict[Marginal, float] = {}
        self._typical: dict[int, Typical] = {}

    def of(self, marginal: Marginal) -> Kappa:
        """The mean over the pairs of a marginal's attributes; its own if it is one column."""
        parts: list[Marginal] = [*combinations(marginal, 2)] or [marginal]
        known = [self._of(part) for part in parts]
        return Kappa(*np.mean(known, axis=0).tolist())

    @property
    def typical(self) -> Kappa:
        """That of a pair of which nothing else is known."""
        square = self._known(2).unseen
        pairs = [*combinations([attribute.name for attribute in self._domain], 2)]
        roots = [self._root(pair) for pair in pairs[:: max(1, len(pairs) // ENOUGH)]]
        return Kappa(square, square * float(np.mean(np.square(roots))) if roots else 0.0, 0.0)

    def _of(self, part: Marginal) -> Kappa:
        typical, root = self._known(len(part)), self._root(part)
        distance = self._distances.get(part)
        scale = PER_DISTANCE / root
        square, told = (
            (typical.unseen, 0.0) if distance is None else typical.given(scale * distance.value, scale * distance.std)
        )
        return Kappa(square, square * root**2, told)

    def _known(self, degree: int) -> Typical:
        if degree not in self._typical:
            alike = [distance for marginal, distance in self._distances.items() if len(marginal) == degree]
            some = alike[:: max(1, len(alike) // ENOUGH)]
            scales = np.array([PER_DISTANCE / self._root(distance.attributes) for distance in some])
            observed = scales * np.array([distance.value for distance in some])
            noise = scales * np.array([distance.std for distance in some])
            self._typical[degree] = typical(observed, noise) if len(some) > 1 else self._guess
        return self._typical[degree]

    def _root(self, marginal: Marginal) -> float:
        """Σ√p over the cells that hold any of the rows that are drawn."""
        if marginal not in self._roots:
            table = self._draw(marginal)
            cells = np.zeros(len(next(iter(table.values()))), dtype=np.int64)
            for name in marginal:
                cells = cells * self._domain[name].size + table[name]
            counts = np.unique(cells, return_counts=True)[1]
            self._roots[marginal] = float(np.sqrt(counts / counts.sum()).sum())
        return self._roots[marginal]


def typical(observed: FloatArray, noise: FloatArray) -> Typical:
    """The mean and the spread of what noisy observations truly are, by weighted moments."""
    spread = float(observed.var())
    for _ in range(ROUNDS):
        weight = 1 / (noise**2 + spread + 1e-300)
        mean = float((weight * observed).sum() / weight.sum())
        excess = (weight**2 * ((observed - mean) ** 2 - noise**2)).sum() / (weight**2).sum()
        before, spread = spread, max(0.0, float(excess))
        if abs(spread - before) <= 1e-6 * mean**2:
            break
    return Typical(max(0.0, mean), math.sqrt(spread), float(1 / math.sqrt(weight.sum())))


def guess(measurements: Sequence[Measurement], total: float) -> Typical:
    """κ where no distance was measured, from the noise of the measurements that hold more than one column.

    By experience with releases of `hedge` (docs/studies/coverage.md): the mean is `GUESS` times a power of the noise of
    a measurement, σ√cells, in units of √rows.
    """
    wide = [each for each in measurements if len(each.query.sizes) > 1] or list(measurements)
    noise = np.median([each.std * math.sqrt(each.query.cells / total) for each in wide]) if wide else 1.0
    mean = GUESS * float(noise) ** POWER / math.sqrt(total)
    return Typical(mean, mean / 2, mean / 2)
