"""The distinguishing game: how well can anyone tell whether one person took part, at most and in fact?

The method runs thousands of times on an empty table and on a table of one person alone, the worst pair there is. Who
plays knows everything but the noise: the statistic is the log-likelihood ratio of all noisy counts that were let out.
Half of the runs choose a threshold, the other half bound its errors from above (Clopper and Pearson 1934), and the two
bounds give a μ that the method certainly leaks (Dong, Roth, Su 2022: error rates α, β allow μ = Φ⁻¹(1 − α) − Φ⁻¹(β)).
A method that keeps its promise stays below its claim; a test that could see anything comes close to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hedgerow.audit.engine import reference_cells
from hedgerow.budget.accounting import gdp_epsilon
from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import CodedTable, Counts
from hedgerow.coded.query import InteractionQuery, Measurable
from hedgerow.methods.method import Method
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.engine import Engine
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release
from hedgerow.run import Run
from hedgerow.schema import Schema

MU = 2.0
"""The budget of the game: small enough to err, large enough to be told from half of it."""
RUNS = 4000
"""Runs on either side."""
FALSE_ALARM = 1e-7
"""How often a method that just keeps its promise may look as if it did not."""
ALIVE = 0.65
"""A game that certifies less than this part of the promise is blind. It certifies .70 to .83 (field-groups least)."""
ROWS = 2
SCHEMA = Schema.parse(f"""
person: id
max_rows_per_person: {ROWS}
columns:
  a: {{type: code, size: 2}}
  b: {{type: code, size: 2}}
  c: {{type: code, size: 3}}
""")
CANARY = {"a": 1, "b": 0, "c": 2}


@dataclass(frozen=True)
class Verdict:
    """What was promised, and what is certainly leaked."""

    claim: float
    bound: float
    runs: int

    @property
    def kept(self) -> bool:
        return self.bound <= self.claim

    @property
    def alive(self) -> bool:
        """Whether the game saw enough of the leak that was allowed: otherwise passing it means nothing."""
        return self.bound >= ALIVE * self.claim

    @property
    def enough(self) -> bool:
        """Whether a game of so many runs sees an honest method: of fewer, a small bound says nothing about it."""
        return self.runs >= RUNS


Expected = Callable[[Measurable], Mapping[int, int]]
"""What is expected to be counted in the cells of a query."""


@dataclass(frozen=True)
class Side:
    """A table that may be the one, behind an engine for each run, and what is expected to be counted of it."""

    engine: Callable[[], Engine]
    expected: Expected


def play(
    method: Method,
    runs: int = RUNS,
    on_run: Callable[[], None] = lambda: None,
    sides: Sequence[Side] | None = None,
    schema: Schema = SCHEMA,
) -> Verdict:
    """Play it with `runs` runs on either side, at μ = 2: nobody or the canary alone, unless other sides are given."""
    budget = Budget(gdp_epsilon(MU, 1e-9), 1e-9)
    claim = 0.0
    absent, present = sides if sides is not None else (_side(0), _side(1))
    both = []
    for side in (absent, present):
        seen = np.empty(runs)
        for number in range(runs):
            release = Run(schema, budget, method, number, Progress()).release(side.engine(), Mechanisms())
            seen[number] = log_likelihood_ratio(release, absent.expected, present.expected)
            assert release.guarantee is not None
            claim = max(claim, release.guarantee.mu)
            on_run()
        both.append(seen)
    return Verdict(claim, certified(both[0], both[1]), runs)


def _side(people: int) -> Side:
    """Nobody, or one person with as many rows as count, all alike."""
    rows = people * ROWS
    columns = {name: pa.array([code] * rows, pa.int64()) for name, code in CANARY.items()}
    table = pa.table({"id": pa.array(["canary"] * rows, pa.string()), **columns})
    return Side(lambda: open_engine(table), reached_by([(CANARY, rows)]))


def log_likelihood_ratio(release: Release, absent: Expected, present: Expected) -> float:
    """log P(counts | this is counted) − log P(counts | that is), for Gaussian noise.

    Choices, noisy scores and the look are left out: what they tell only makes the certified leak smaller than the true
    one.
    """
    ratio = 0.0
    for measurement in release.measurements:
        before, after = (side(measurement.query) for side in (absent, present))
        for cell in before.keys() | after.keys():
            if measurement.kept is None:
                value = float(measurement.values[cell])
            else:  # a cell that did not survive was small
                value = float(measurement.values[measurement.kept == cell].sum())
            less, more = before.get(cell, 0), after.get(cell, 0)
            ratio += (more - less) * (value - (more + less) / 2) / measurement.noise.scale**2
    return ratio


def reached_by(rows: Sequence[tuple[Mapping[str, int], int]]) -> Expected:
    """How many of some rows reach each cell: codes, and how often there is such a row."""

    def expected(query: Measurable) -> Mapping[int, int]:
        if isinstance(query, InteractionQuery):
            return combined(query, expected(query.counted))
        counts: Counter[int] = Counter()
        for codes, times in rows:
            row: CodedTable = {name: np.array([code], dtype=np.uint8) for name, code in codes.items()}
            cell = int(reference_cells(query, row)[0])
            if cell >= 0:
                counts[cell] += times
        return counts

    return expected


def combined(query: InteractionQuery, counts: Mapping[int, int]) -> dict[int, int]:
    """What combinations of these counts come to, where they are not zero."""
    held = np.zeros(query.counted.cells, dtype=np.int64)
    held[list(counts)] = list(counts.values())
    found = query.combined(held)
    return {cell: int(found[cell]) for cell in np.flatnonzero(found).tolist()}


def counted_by(engine: Engine) -> Expected:
    """What a prepared engine counts itself: an opponent knows what is done with the rows, right or wrong."""

    def expected(query: Measurable) -> Mapping[int, int]:
        if isinstance(query, InteractionQuery):
            return combined(query, expected(query.counted))
        (exact,) = engine.count([query])
        found = exact.opened()
        assert isinstance(found, np.ndarray)
        return {cell: int(found[cell]) for cell in np.flatnonzero(found).tolist()}

    return expected


def certified(absent: Counts, present: Counts, false_alarm: float = FALSE_ALARM) -> float:
    """A lower bound on μ that holds but for `false_alarm`, from the statistic's values on either side.

    The threshold is the one that would certify most on the first half of the values; the second half certifies.
    """
    half = len(absent) // 2
    candidates = np.unique(np.concatenate([absent[:half], present[:half]]))
    threshold = candidates[np.argmax(_bounds(absent[:half], present[:half], candidates, false_alarm))]
    return max(0.0, float(_bounds(absent[half:], present[half:], threshold, false_alarm)))


def _bounds(absent: Counts, present: Counts, thresholds: Counts, false_alarm: float) -> Counts:
    """What each threshold certifies: Clopper and Pearson's upper bounds on both errors, as a μ."""
    from scipy.special import ndtri
    from scipy.stats import beta

    wrong = len(absent) - np.searchsorted(np.sort(absent), thresholds, side="right")
    missed = np.searchsorted(np.sort(present), thresholds, side="right")
    with np.errstate(invalid="ignore"):  # all wrong: nothing bounds that error but 1
        alpha = np.where(wrong == len(absent), 1.0, beta.isf(false_alarm / 2, wrong + 1, len(absent) - wrong))
        miss = np.where(missed == len(present), 1.0, beta.isf(false_alarm / 2, missed + 1, len(present) - missed))
    bounds: Counts = ndtri(1 - alpha) - ndtri(miss)
    return bounds
