"""What somebody has lost who is in some of the periods of a ledger: arithmetic, no data.

A period has a cap of its own, which protects a person in that period. Nobody here knows who is in which, so periods add
up: for somebody who is in k of them the k dearest are added. Where a publisher asserts that nobody is in two of some
periods, because a public attribute tells them apart, the dearest of those stands for all (parallel composition).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hedgerow.budget.accounting import Guarantee, guarantee
from hedgerow.budget.amounts import Amount, Budget, Currency


@dataclass(frozen=True)
class Period:
    """A part of a ledger with a cap of its own, and what was debited in it."""

    name: str
    budget: Budget
    disjoint: str
    """The public attribute by which nobody is in two of the periods that name it; empty where periods add up."""
    spent: Amount


@dataclass(frozen=True)
class Presence:
    """The periods of a ledger, and what was debited before there were any, which counts for everybody."""

    always: Amount
    periods: tuple[Period, ...]
    delta: float
    """At which sums are read."""

    @property
    def most(self) -> int:
        """The largest number of periods that one person can be in, as far as is asserted."""
        return len(self._apart())

    def worst(self, present: int | None = None) -> Amount:
        """What was debited, at most, on somebody who is in so many of the periods (default: in all that one can be).

        Where the dearest in noise is not the dearest in direct δ, the largest of both are taken: never too little.
        """
        apart = self._apart()
        chosen = apart if present is None else apart[: max(0, present)]
        kind = self.always.currency
        spent = [_largest(kind, (period.spent for period in group)) for group in apart]
        units = sorted((each.units for each in spent), reverse=True)[: len(chosen)]
        direct = sorted((each.delta_units for each in spent), reverse=True)[: len(chosen)]
        return self.always + Amount(kind, sum(units), sum(direct))

    def lost(self, present: int | None = None) -> Guarantee:
        """The same as (ε, δ)."""
        return stated(self.worst(present), self.delta)

    def caps(self, present: int | None = None) -> tuple[float, float]:
        """(ε, δ) that the caps allow for somebody in so many periods: those of the periods, simply added up.

        More periods than were opened are taken to be like the last one: capped as it is, and as disjoint as it is.
        """
        before = stated(self.always, self.delta)
        apart = self._apart()
        budgets = [
            Budget(max(each.budget.epsilon for each in group), max(each.budget.delta for each in group))
            for group in apart
        ]
        budgets.sort(key=lambda each: (each.epsilon, each.delta), reverse=True)
        wanted = len(budgets) if present is None else present
        last = self.periods[-1]
        further = 0 if last.disjoint else max(0, wanted - len(budgets))
        counted = [*budgets[:wanted], *[last.budget] * further]
        first = (before.epsilon, before.delta) if self.always else (0.0, 0.0)
        # the dearest in ε and the dearest in δ may be different periods
        deltas = sorted((each.delta for each in (*budgets, *[last.budget] * further)), reverse=True)[: len(counted)]
        return first[0] + sum(each.epsilon for each in counted), first[1] + sum(deltas)

    def _apart(self) -> list[list[Period]]:
        """Periods in groups such that somebody can be in one of each."""
        groups: dict[str, list[Period]] = {}
        for number, period in enumerate(self.periods):
            groups.setdefault(period.disjoint or f"\n{number}", []).append(period)
        return list(groups.values())


def _largest(kind: Currency, amounts: Iterable[Amount]) -> Amount:
    found = list(amounts)
    return Amount(kind, max(each.units for each in found), max(each.delta_units for each in found))


def stated(amount: Amount, delta: float) -> Guarantee:
    """The (ε, δ) of an amount, at `delta` where that covers the δ that was spent directly, else at twice that."""
    if not amount:
        return Guarantee(0.0, 0.0, 0.0)
    if amount.currency is not Currency.PURE and amount.delta >= delta:
        delta = 2 * amount.delta
    return guarantee(amount, delta)


def group_guarantee(amount: Amount, delta: float, size: int) -> Guarantee:
    """The (ε, δ) of an amount for several persons who act as one, a household for example.

    μ-GDP for one is (size·μ)-GDP for a group (Dong, Roth, Su 2019, Thm 2.14). Where δ was spent directly, or ε, what
    (ε, δ) implies is stated: size·ε, and δ·(1 + e^ε + … + e^((size−1)ε)).
    """
    if amount.currency is Currency.GDP and not amount.delta_units and not amount.is_direct:
        return stated(Amount(amount.currency, amount.units * size**2), delta)
    one = stated(amount, delta)
    spread = sum(math.exp(min(700.0, step * one.epsilon)) for step in range(size))
    return Guarantee(size * one.epsilon, min(1.0, one.delta * spread), None)
