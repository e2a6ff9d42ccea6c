"""The vault: the only implementation of Curator that holds data. Charge, then count, then draw."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hedgerow.budget.accounting import (
    STEPS_PER_SENSITIVITY,
    Charge,
    choice_epsilon,
    noise_kind,
    reached,
    stack_noise,
    stack_scale,
)
from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import CodedTable, Domain, IntArray, Marginal
from hedgerow.coded.joining import Joining
from hedgerow.coded.measurement import Answer, Measurement, Noise, Threshold
from hedgerow.coded.query import InteractionQuery, MarginalQuery, Measurable, total_query
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import Against, Answers, Candidate, Curator, Independence, Pool, RecodedCurator
from hedgerow.errors import HedgerowError, LimitError
from hedgerow.private.account import Account
from hedgerow.private.engines.engine import Engine
from hedgerow.private.exact import Exact, ExactCounts, combined, summed
from hedgerow.private.mechanisms import Randomizer
from hedgerow.private.remembering import Remembering
from hedgerow.private.scores import Scale, grid_scores, nearness
from hedgerow.progress import Progress

MEASURING, SCORING, CHOOSING, CELL = 500_000, 80_000, 200, 20
"""Work of a measured query and of what is made of it, of a candidate and its score, of one in a choice, of a cell."""


class Vault:
    """A prepared engine behind an account and the mechanisms.

    Sensitivities: a stack of queries with weights w moves by at most θ√Σw² in L2 and θΣw in L1, because a person
    has at most θ rows and a row reaches at most one cell of each query (`hedgerow.coded.query`). What combines
    counts is moved by its `reach` instead of 1, so it gets as many times the noise, and moves the stack by as much.
    """

    def __init__(
        self,
        engine: Engine,
        domain: Domain,
        rows_per_person: int,
        account: Account,
        mechanisms: Randomizer,
        rng: np.random.Generator,
        columns: Mapping[str, Marginal] | None = None,
        progress: Progress | None = None,
        public: CodedTable | None = None,
        epsilon: float = math.nan,
        rows: int | None = None,
    ):
        self.domain = domain
        self.rows = rows
        self.epsilon = epsilon
        self.public = public
        self.columns = columns if columns is not None else {name: (name,) for name in domain.names}
        self.rows_per_person = rows_per_person
        self.rng = rng
        self.answers: list[Answer] = []
        """One per charge of the account, in order."""
        self.exposed: str | None = None
        """Why the run has no guarantee: set where exact counts were looked at (`hedgerow.private.unsafe`)."""
        self._engine = engine
        self._account = account
        self._mechanisms = mechanisms
        self._progress = progress or Progress()
        self._remembered = Remembering(engine, self._progress.limits.memory // 8)

    @property
    def remaining(self) -> Amount:
        return self._account.remaining

    def exchanged(self, spend: Amount | None = None) -> Amount:
        return self._account.exchanged(spend)

    def exchange(self) -> None:
        self._account.exchange()

    def noise(self, spend: Amount, weights: Sequence[float] = (1.0,)) -> list[Noise]:
        return stack_noise(spend, weights, self.rows_per_person)

    def measure(
        self,
        queries: Sequence[Measurable],
        *,
        spend: Amount,
        weights: Sequence[float] | None = None,
        keep: Sequence[Threshold] | None = None,
    ) -> list[Measurement]:
        weights = _positive(weights if weights is not None else [1.0] * len(queries), len(queries))
        if keep is None:
            self._refuse_large(queries)
        elif len(keep) != len(queries):
            raise HedgerowError(
                "bad-thresholds", f"{len(queries)} queries need {len(queries)} thresholds, got {len(keep)}."
            )
        elif any(isinstance(query, InteractionQuery) for query in queries):
            raise HedgerowError("bad-thresholds", "a combination of counts has no cells that a threshold could keep.")
        noises = [
            reached(noise, query)
            for noise, query in zip(stack_noise(spend, weights, self.rows_per_person), queries, strict=True)
        ]
        scale = stack_scale(spend, weights, self.rows_per_person)
        asked = tuple(query.description for query in queries)
        self._account.debit(Charge(noises[0].kind, "measure", self.rows_per_person, weights, scale, spend, asked))
        thresholds = keep if keep is not None else [None] * len(queries)
        self._progress.worked(sum(MEASURING + CELL * query.cells for query in queries))
        counted = [query.counted if isinstance(query, InteractionQuery) else query for query in queries]
        answers = zip(queries, self._engine.count(counted), noises, thresholds, strict=True)
        measured = [self._answer(query, exact, noise, least) for query, exact, noise, least in answers]
        self.answers.append(Answer(measurements=tuple(measured)))
        return measured

    def _refuse_large(self, queries: Sequence[Measurable]) -> None:
        """Noisy counts of every cell must fit in memory; refused before anything is charged."""
        needed = 8 * sum(query.cells for query in queries)
        allowed = self._progress.limits.memory
        if needed > allowed:
            widest = max(queries, key=lambda query: query.cells)
            raise LimitError(
                "counts-too-large",
                f"noisy counts of {len(queries)} marginals need {needed >> 20:,} MB; {allowed >> 20:,} MB are "
                f"allowed. The widest is {' × '.join(widest.attributes)} with {widest.cells:,} cells. They "
                "were not counted. Hint: declare bins or fewer values, or raise --max-memory.",
            )

    def _answer(
        self, query: Measurable, exact: Exact[ExactCounts], noise: Noise, threshold: Threshold | None
    ) -> Measurement:
        if isinstance(query, InteractionQuery):
            exact = combined(exact, query)
        if threshold is None:
            return Measurement(query, self._mechanisms.noisy_counts(exact, query.cells, noise), noise)
        least = threshold.scales * noise.scale
        kept, values = self._mechanisms.survivors(exact, query.cells, noise, least)
        return Measurement(query, values, noise, kept)

    def confirm(
        self, query: MarginalQuery, sums: Sequence[IntArray], described: tuple[dict[str, Any], ...], *, spend: Amount
    ) -> tuple[int, ...]:
        """Noisy sums over the rows, of public whole numbers for every cell of a query: one row reaches one cell, so it
        moves a sum by at most the largest of its numbers.
        """
        weights = tuple(float(np.abs(values).max()) for values in sums)
        scale = stack_scale(spend, weights, self.rows_per_person)
        noise = Noise(noise_kind(spend), scale)
        self._account.debit(Charge(noise.kind, "confirm", self.rows_per_person, weights, scale, spend, described))
        (exact,) = self._engine.count([query])
        noisy = tuple(self._mechanisms.noisy_counts(summed(exact, sums), len(sums), noise).tolist())
        self.answers.append(Answer(scores=noisy))
        return noisy

    def total(self, *, spend: Amount) -> Measurement:
        return self.measure([total_query(self.domain)], spend=spend)[0]

    def select(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> Candidate:
        return candidates[self.pool(candidates, against=against).select(spend=spend)]

    def pool(self, candidates: Sequence[Candidate], *, against: Against) -> Pool:
        return VaultPool(self, candidates, against)

    def _choose(self, pool: VaultPool, among: IntArray, spend: Amount) -> int:
        epsilon = choice_epsilon(spend)
        largest = (max(pool.scale.steps),)
        charge = Charge(
            "exponential", "select", self.rows_per_person, largest, epsilon, spend, pool.summary(among), pool.scale.grid
        )
        self._account.debit(charge)
        rate = Fraction(epsilon) / (2 * Fraction(charge.sensitivity)) * Fraction(pool.scale.grid)
        if pool.scores is None:
            self._scored(pool.candidates)
            pool.scores = grid_scores(self._remembered, pool.candidates, pool.against, pool.scale.grid)
        self._progress.worked(CHOOSING * len(among))
        index = self._mechanisms.choose(Exact(pool.scores.opened()[among]), rate)
        chosen = int(among[index])
        self.answers.append(Answer(chosen=pool.candidates[chosen].query.description))
        return chosen

    def score(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> list[float]:
        return self._scores("score", candidates, _summary(candidates), against, spend)

    def quality(self, candidates: Sequence[Candidate], *, against: Answers, spend: Amount) -> list[float]:
        """Noisy scores of what a method has made, for readers: the certificate names every one of them."""
        described = tuple(candidate.query.description for candidate in candidates)
        return self._scores("quality", candidates, described, against, spend)

    def _scores(
        self,
        purpose: str,
        candidates: Sequence[Candidate],
        described: tuple[dict[str, Any], ...],
        against: Against,
        spend: Amount,
    ) -> list[float]:
        scale = self._scale(candidates, against)
        spread = stack_scale(spend, scale.steps, self.rows_per_person, scale.grid)
        noise = Noise(noise_kind(spend), math.nextafter(spread / scale.grid, math.inf))
        charge = Charge(noise.kind, purpose, self.rows_per_person, scale.steps, spread, spend, described, scale.grid)
        self._account.debit(charge)
        self._scored(candidates)
        exact = grid_scores(self._engine, candidates, against, scale.grid)
        noisy = self._mechanisms.noisy_counts(exact, len(candidates), noise)
        scores = tuple(float(value) * scale.grid for value in noisy)
        self.answers.append(Answer(scores=scores))
        return list(scores)

    def nearest(
        self, rivals: Sequence[Answers], queries: Sequence[MarginalQuery], names: Sequence[str], *, spend: Amount
    ) -> int:
        epsilon = choice_epsilon(spend)
        grid = self.rows_per_person / STEPS_PER_SENSITIVITY
        asked = {**_summary([Candidate(query) for query in queries])[0], "candidates": len(rivals), "of": list(names)}
        charge = Charge("exponential", "select", self.rows_per_person, (1.0,), epsilon, spend, (asked,), grid)
        self._account.debit(charge)
        self._scored([Candidate(query) for query in queries])
        rate = Fraction(epsilon) / (2 * Fraction(charge.sensitivity)) * Fraction(grid)
        chosen = self._mechanisms.choose(nearness(self._remembered, queries, rivals, grid), rate)
        self.answers.append(Answer(chosen={"method": names[chosen]}))
        return chosen

    def _scale(self, candidates: Sequence[Candidate], against: Against) -> Scale:
        _positive([candidate.weight for candidate in candidates], len(candidates))
        if isinstance(against, Independence) and any(
            (c.label not in c.query.attributes if c.label else len(c.query.shape) != 2) or c.query.blocks is not None
            for c in candidates
        ):
            raise HedgerowError("not-a-pair", "independence is a score of plain pairs, or of a label and the others.")
        return Scale.of(candidates, against, self.rows_per_person)

    def _scored(self, candidates: Sequence[Candidate]) -> None:
        """The work of scoring, as far as it does not depend on the rows."""
        self._progress.worked(sum(SCORING + CELL * candidate.query.cells for candidate in candidates))

    def recode(self, recoding: Recoding | Joining) -> Curator:
        return RecodedCurator(self, recoding)


class VaultPool:
    """The scores are counted when the first choice has been charged, and stay sealed.

    Every choice is charged whole: that the scores are old does not make it cheaper.
    """

    def __init__(self, vault: Vault, candidates: Sequence[Candidate], against: Against):
        self.candidates = tuple(candidates)
        self.against = against
        self.scale = vault._scale(candidates, against)
        self.scores: Exact[IntArray] | None = None
        self._vault = vault
        (self._summary,) = _summary(candidates)

    def select(self, among: IntArray | None = None, *, spend: Amount) -> int:
        indices = np.arange(len(self.candidates)) if among is None else np.array(among, dtype=np.int64, ndmin=1)
        if not len(indices) or indices.min() < 0 or indices.max() >= len(self.candidates):
            raise HedgerowError("nothing-to-choose", "a choice needs at least one of the pool's candidates.")
        return self._vault._choose(self, indices, spend)

    def summary(self, among: IntArray) -> tuple[dict[str, Any], ...]:
        """What the certificate says of the candidates: how many of which list, and a digest of which."""
        if len(among) == len(self.candidates):
            return (self._summary,)
        which = hashlib.sha256(np.ascontiguousarray(among, dtype="<i8").tobytes()).hexdigest()[:32]
        return ({**self._summary, "candidates": len(among), "among": which},)


def _positive(weights: Sequence[float], count: int) -> tuple[float, ...]:
    if count == 0:
        raise HedgerowError("nothing-asked", "nothing was asked; a charge needs at least one query.")
    if len(weights) != count or not all(math.isfinite(weight) and weight > 0 for weight in weights):
        raise HedgerowError("bad-weights", f"{count} queries need {count} positive weights.")
    return tuple(weights)


def _summary(candidates: Sequence[Candidate]) -> tuple[dict[str, Any], ...]:
    """What the certificate says of a list of candidates: how many, and a digest of which."""
    asked = [[c.query.description, c.weight, c.penalty, *([c.label] if c.label else [])] for c in candidates]
    digest = hashlib.sha256(json.dumps(asked).encode())
    return ({"candidates": len(candidates), "digest": digest.hexdigest()[:32]},)
