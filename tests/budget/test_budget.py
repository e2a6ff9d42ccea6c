"""Amounts are exact: parts never exceed the whole, and currencies do not mix."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.budget.accounting import whole, zcdp_rho
from hedgerow.budget.amounts import UNITS, Amount, Budget, Currency
from refusals import refused

currencies = st.sampled_from(Currency)
amounts = st.builds(Amount, currencies, st.integers(0, 100 * UNITS))
weights = st.lists(st.floats(0, 1e6), min_size=1, max_size=20).filter(lambda parts: sum(parts) > 0)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, -math.inf])
def test_an_epsilon_that_promises_nothing_is_refused(epsilon: float) -> None:
    with refused("bad-epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, math.nan, math.inf])
def test_a_delta_that_promises_nothing_is_refused(delta: float) -> None:
    with refused("bad-delta"):
        Budget(1, delta)


def test_delta_decides_the_currency() -> None:
    assert Budget(1).currency is Currency.GDP
    assert Budget(1, 0).currency is Currency.PURE


@given(amount=amounts, weights=weights)
def test_a_split_adds_up_exactly_and_keeps_proportion(amount: Amount, weights: list[float]) -> None:
    parts = amount.split(weights)
    assert sum(part.units for part in parts) == amount.units
    whole = sum(map(Fraction, weights))
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part.units - amount.units * Fraction(weight) / whole) <= len(weights)


@given(amount=amounts, fraction=st.floats(0, 1))
def test_a_share_never_exceeds_its_part(amount: Amount, fraction: float) -> None:
    share = amount.share(fraction)
    assert amount.units * Fraction(fraction) - 1 < share.units <= amount.units * Fraction(fraction)
    assert (amount - share) + share == amount


@given(amount=amounts, pieces=st.lists(st.floats(0, 0.2), max_size=5))
def test_shares_taken_one_by_one_leave_the_rest(amount: Amount, pieces: list[float]) -> None:
    left = amount
    for piece in pieces:
        left -= amount.share(piece)
    assert left.units == amount.units - sum(amount.share(piece).units for piece in pieces)


@given(value=st.floats(0, 1e9), currency=currencies)
def test_an_amount_never_exceeds_the_number_it_came_from(value: float, currency: Currency) -> None:
    amount = Amount.of(currency, value)
    assert Fraction(value) - Fraction(1, UNITS) < amount.exact <= Fraction(value)


def test_direct_delta_is_added_compared_and_not_shared() -> None:
    amount = Amount.of(Currency.GDP, 1.0, 1e-10)
    assert (amount + amount).delta == pytest.approx(2e-10)
    assert not amount <= Amount.of(Currency.GDP, 2.0)
    assert amount.share(0.5).delta_units == 0
    assert sum(part.delta_units for part in amount.split([1, 1])) == 0
    assert Amount(Currency.GDP, 0, 1)
    assert not Amount(Currency.GDP, 0)


def test_currencies_do_not_mix() -> None:
    gaussian, pure = Amount(Currency.GDP, 5), Amount(Currency.PURE, 5)
    for mix in (lambda: gaussian + pure, lambda: gaussian - pure, lambda: gaussian <= pure):
        with refused("mixed-currencies"):
            mix()


def test_nothing_is_taken_beyond_what_is_there() -> None:
    with refused("budget-exceeded", "μ² = 2", "μ² = 1"):
        Amount.of(Currency.GDP, 1) - Amount.of(Currency.GDP, 2)
    with refused("negative-amount"):
        Amount(Currency.GDP, -1)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan])
def test_a_share_lies_between_nothing_and_all(fraction: float) -> None:
    with refused("bad-share"):
        Amount(Currency.PURE, UNITS).share(fraction)


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1], [1, math.nan], [1, math.inf]])
def test_a_split_needs_proper_weights(weights: list[float]) -> None:
    with refused("bad-split"):
        Amount(Currency.PURE, UNITS).split(weights)


@given(mu=st.floats(1e-3, 20), delta=st.sampled_from([1e-12, 1e-9, 1e-5]))
def test_a_budget_in_mu_buys_that_mu(mu: float, delta: float) -> None:
    bought = math.sqrt(whole(Budget(mu=mu, delta=delta)).value)
    assert bought == pytest.approx(mu, rel=1e-6)


@given(rho=st.floats(1e-4, 10), delta=st.sampled_from([1e-12, 1e-9, 1e-5]))
def test_a_budget_in_rho_is_the_epsilon_that_follows_from_it(rho: float, delta: float) -> None:
    budget = Budget(rho=rho, delta=delta)
    assert budget == Budget(budget.epsilon, delta)
    assert zcdp_rho(budget.epsilon, delta) == pytest.approx(rho, rel=1e-6)


@pytest.mark.parametrize(
    ("code", "stated"),
    [
        ("budget-twice", {"epsilon": 1, "mu": 1}),
        ("budget-twice", {"rho": 1, "mu": 1}),
        ("bad-budget", {"rho": 0}),
        ("bad-budget", {"mu": math.nan}),
        ("bad-budget", {"mu": 1, "delta": 0}),
        ("bad-epsilon", {}),
    ],
)
def test_a_budget_is_stated_once(code: str, stated: dict[str, float]) -> None:
    with refused(code):
        Budget(**stated)
