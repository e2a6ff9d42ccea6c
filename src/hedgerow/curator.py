"""All that a method may ask of the data.

A method gets a Curator and nothing else: no rows, no exact counts, no row total. Every call states what it spends,
is charged before anything is counted, and returns noisy answers that carry their own noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hedgerow.budget.amounts import Amount
from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.joining import Joining
from hedgerow.coded.measurement import Measurement, Noise, Threshold
from hedgerow.coded.query import InteractionQuery, MarginalQuery, Measurable, TreeQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.errors import HedgerowError

PRINTED = "a procedure as printed, which looks at exact counts"
"""Why a run that looked behind the curator (`hedgerow.private.unsafe`) has no guarantee."""


ROUNDED = Noise("gaussian", 1.0)
"""How far a count that is known exactly may lie from the model's: a row."""


class Answers(Protocol):
    """Anything that can answer marginal queries without the data: a model, a public table, a constant."""

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        """One flat vector of expected counts per query, in order, computed as they are consumed."""
        ...


class Independence:
    """Compare with the product of the data's own marginals of two parts: the score is then PrivSyn's InDif.

    The parts are a candidate's `label` and its other attributes; of a pair either attribute is one.
    """


INDEPENDENCE = Independence()
Against = Answers | Independence


@dataclass(frozen=True, eq=False)
class Candidate:
    """Something that could be measured. Its score is weight · (L1 distance from the comparison − penalty)."""

    query: MarginalQuery
    weight: float = 1.0
    penalty: float = 0.0
    label: str = ""
    """The attribute that stands apart where independence is scored."""


class Pool(Protocol):
    """Candidates whose scores stay as they are while several are chosen, one after the other."""

    def select(self, among: IntArray | None = None, *, spend: Amount) -> int:
        """The index of one candidate, of those at the indices `among` (all if left out)."""
        ...


class Curator(Protocol):
    """The private side as a method sees it."""

    @property
    def domain(self) -> Domain:
        """The declared (or discovered, and charged for) coded domain."""
        ...

    @property
    def columns(self) -> Mapping[str, Marginal]:
        """The table's columns, each with the attributes that code it."""
        ...

    @property
    def public(self) -> CodedTable | None:
        """The rows of the table that the user asserts to be public, coded as the domain says; None without one."""
        ...

    @property
    def epsilon(self) -> float:
        """The ε that the run was given: write-ups state thresholds in it. What may be spent is `remaining`."""
        ...

    @property
    def rows(self) -> int | None:
        """How many rows were asked for; None where their number is to be estimated."""
        ...

    @property
    def remaining(self) -> Amount:
        """What this run may still spend."""
        ...

    def exchanged(self, spend: Amount | None = None) -> Amount:
        """What would be left in μ², were `spend` of direct ε spent first and the rest exchanged. Costs nothing."""
        ...

    def exchange(self) -> None:
        """Turn what is left of direct ε into μ². Only a method that `begins_in_epsilon` has any."""
        ...

    @property
    def rows_per_person(self) -> int:
        """θ: how many rows one person can have; every sensitivity is a multiple of it."""
        ...

    @property
    def rng(self) -> np.random.Generator:
        """Public randomness for post-processing (tree structures, record updates); independent of the data."""
        ...

    def noise(self, spend: Amount, weights: Sequence[float] = (1.0,)) -> list[Noise]:
        """The noise that `measure` would put on queries of these weights for this amount. Costs nothing."""
        ...

    def measure(
        self,
        queries: Sequence[Measurable],
        *,
        spend: Amount,
        weights: Sequence[float] | None = None,
        keep: Sequence[Threshold] | None = None,
    ) -> list[Measurement]:
        """Noisy counts of all the queries for one amount.

        A query of weight w gets noise ∝ 1/w. With `keep` (one threshold per query) every cell is noised in a
        bounded-memory stream and only the survivors come back.
        """
        ...

    def select(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> Candidate:
        """One candidate by the exponential mechanism: the further the data are from `against`, the likelier."""
        ...

    def pool(self, candidates: Sequence[Candidate], *, against: Against) -> Pool:
        """Candidates to select from several times against the same answers; each time is charged."""
        ...

    def score(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> list[float]:
        """Noisy scores of all the candidates for one amount."""
        ...

    def nearest(
        self, rivals: Sequence[Answers], queries: Sequence[MarginalQuery], names: Sequence[str], *, spend: Amount
    ) -> int:
        """The index of one of several public answers, by the exponential mechanism: the nearer to the data on average
        over the queries, the likelier.
        """
        ...

    def total(self, *, spend: Amount) -> Measurement:
        """The noisy number of rows."""
        ...

    def recode(self, recoding: Recoding | Joining) -> Curator:
        """The same data behind a domain of merged codes or joined attributes, e.g. learnt ones. Costs nothing."""
        ...


class RecodedCurator:
    """A curator whose queries speak of a recoded domain; they are translated, the data stay as they are."""

    def __init__(self, base: Curator, recoding: Recoding | Joining):
        if recoding.domain != base.domain:
            raise HedgerowError("another-domain", "a recoding must start from the curator's own domain.")
        self._base = base
        self._recoding = recoding
        self._domain = recoding.target()

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def columns(self) -> Mapping[str, Marginal]:
        return self._base.columns

    @property
    def public(self) -> CodedTable | None:
        rows = self._base.public
        return None if rows is None else self._recoding.rows(rows)

    @property
    def epsilon(self) -> float:
        return self._base.epsilon

    @property
    def rows(self) -> int | None:
        return self._base.rows

    @property
    def remaining(self) -> Amount:
        return self._base.remaining

    def exchanged(self, spend: Amount | None = None) -> Amount:
        return self._base.exchanged(spend)

    def exchange(self) -> None:
        self._base.exchange()

    @property
    def rows_per_person(self) -> int:
        return self._base.rows_per_person

    @property
    def rng(self) -> np.random.Generator:
        return self._base.rng

    def noise(self, spend: Amount, weights: Sequence[float] = (1.0,)) -> list[Noise]:
        return self._base.noise(spend, weights)

    def measure(
        self,
        queries: Sequence[Measurable],
        *,
        spend: Amount,
        weights: Sequence[float] | None = None,
        keep: Sequence[Threshold] | None = None,
    ) -> list[Measurement]:
        translated = [self._translate(query) for query in queries]
        measured = self._base.measure(translated, spend=spend, weights=weights, keep=keep)
        return [
            Measurement(query, answer.values, answer.noise, answer.kept)
            for query, answer in zip(queries, measured, strict=True)
        ]

    def select(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> Candidate:
        return candidates[self.pool(candidates, against=against).select(spend=spend)]

    def pool(self, candidates: Sequence[Candidate], *, against: Against) -> Pool:
        translated = [self._candidate(candidate) for candidate in candidates]
        return self._base.pool(translated, against=self._compared(against, translated, candidates))

    def score(self, candidates: Sequence[Candidate], *, against: Against, spend: Amount) -> list[float]:
        translated = [self._candidate(candidate) for candidate in candidates]
        return self._base.score(translated, against=self._compared(against, translated, candidates), spend=spend)

    def nearest(
        self, rivals: Sequence[Answers], queries: Sequence[MarginalQuery], names: Sequence[str], *, spend: Amount
    ) -> int:
        candidates = [Candidate(query) for query in queries]
        translated = [self._candidate(candidate) for candidate in candidates]
        moved = [self._answers(rival, translated, candidates) for rival in rivals]
        return self._base.nearest(moved, [each.query for each in translated], names, spend=spend)

    def total(self, *, spend: Amount) -> Measurement:
        return self._base.total(spend=spend)

    def recode(self, recoding: Recoding | Joining) -> Curator:
        return RecodedCurator(self, recoding)

    def _candidate(self, candidate: Candidate) -> Candidate:
        query = self._translate(candidate.query)
        assert isinstance(query, MarginalQuery)
        return replace(candidate, query=query)

    def _compared(self, against: Against, translated: Sequence[Candidate], candidates: Sequence[Candidate]) -> Against:
        return against if isinstance(against, Independence) else self._answers(against, translated, candidates)

    def _answers(self, against: Answers, translated: Sequence[Candidate], candidates: Sequence[Candidate]) -> Answers:
        """Answers to the translated queries are the answers to the queries they came from."""
        origin = {id(new.query): old.query for new, old in zip(translated, candidates, strict=True)}
        return _Translated(lambda queries: against.answers([origin[id(query)] for query in queries]))

    def _translate(self, query: Measurable) -> Measurable:
        if isinstance(query, InteractionQuery) and self._recoding.translated(query.counted) is query.counted:
            return query  # of attributes that stayed as they are
        if not isinstance(query, MarginalQuery):
            what = "a tree query" if isinstance(query, TreeQuery) else "a combination of counts"
            raise HedgerowError("tree-through-recoding", f"{what} cannot be asked through a recoding.")
        return self._recoding.translated(query)


class Part(RecodedCurator):
    """The same curator for somebody who may not spend all of it: `kept` is for others."""

    def __init__(self, base: Curator, kept: Amount):
        super().__init__(base, Recoding(base.domain, {}))
        self._kept = kept

    @property
    def remaining(self) -> Amount:
        return self._base.remaining - self._kept

    def exchanged(self, spend: Amount | None = None) -> Amount:
        return self.remaining

    def exchange(self) -> None:
        """There is no direct ε where a budget is shared."""

    def _translate(self, query: Measurable) -> Measurable:
        return query


class Scope(RecodedCurator):
    """The same curator for somebody who asks about some of the attributes alone."""

    def __init__(self, base: Curator, names: Marginal):
        super().__init__(base, Recoding(base.domain, {}))
        self._domain = Domain(base.domain[name] for name in base.domain.marginal(names))
        self._columns = {column: held for column, held in base.columns.items() if set(held) <= set(names)}

    @property
    def columns(self) -> Mapping[str, Marginal]:
        return self._columns

    @property
    def public(self) -> CodedTable | None:
        return None

    def _translate(self, query: Measurable) -> Measurable:
        return query


class Published(RecodedCurator):
    """The same curator where some marginals were published before: they are answered by the public tables, for nothing,
    and what they would have cost goes to the queries that they are asked with.

    Public tables may count other rows than the private ones, so what they tell is shares of the noisy number of rows.
    """

    def __init__(self, base: Curator, totals: Sequence[tuple[Marginal, IntArray]]):
        super().__init__(base, Recoding(base.domain, {}))
        self._totals = totals
        self._rows = float(totals[0][1].sum())

    def total(self, *, spend: Amount) -> Measurement:
        measured = self._base.total(spend=spend)
        self._rows = max(1.0, measured.total)
        return measured

    def measure(
        self,
        queries: Sequence[Measurable],
        *,
        spend: Amount,
        weights: Sequence[float] | None = None,
        keep: Sequence[Threshold] | None = None,
    ) -> list[Measurement]:
        if keep is not None:
            return self._base.measure(queries, spend=spend, weights=weights, keep=keep)
        told = [self._told(query) for query in queries]
        asked = [index for index, answer in enumerate(told) if answer is None]
        if asked:
            heavy = None if weights is None else [weights[index] for index in asked]
            measured = self._base.measure([queries[index] for index in asked], spend=spend, weights=heavy)
            for index, answer in zip(asked, measured, strict=True):
                told[index] = answer
        return [answer for answer in told if answer is not None]

    def _told(self, query: Measurable) -> Measurement | None:
        """The answer of a public table that holds the query's attributes."""
        if not isinstance(query, MarginalQuery) or not query.attributes:
            return None
        for marginal, counts in self._totals:
            if set(query.attributes) <= set(marginal):
                rest = tuple(axis for axis, name in enumerate(marginal) if name not in query.attributes)
                shares = counts.sum(axis=rest).reshape(-1) / counts.sum()
                return Measurement(query, np.rint(query.aggregate(self._rows * shares)).astype(np.int64), ROUNDED)
        return None

    def _translate(self, query: Measurable) -> Measurable:
        return query


@dataclass(frozen=True)
class _Translated:
    translate: Callable[[Sequence[MarginalQuery]], Iterator[Counts]]

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return self.translate(queries)
