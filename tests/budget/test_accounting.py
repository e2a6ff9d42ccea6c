"""The claim never understates: every formula against an independent evaluation, every rounding outward."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hedgerow.budget.accounting import (
    Charge,
    choice_epsilon,
    covers,
    exponential_epsilon,
    gdp_cost_of_exponential,
    gdp_cost_of_pure,
    gdp_delta,
    gdp_epsilon,
    gdp_mu,
    guarantee,
    noise_kind,
    stack_noise,
    stack_scale,
    whole,
)
from hedgerow.budget.amounts import UNITS, Amount, Budget, Currency
from hedgerow.errors import BudgetError, HedgerowError
from refusals import refused

logarithmic = st.floats(-5, 1.5).map(lambda power: 10**power)
deltas = st.floats(-15, -1).map(lambda power: 10**power)
currencies = st.sampled_from(Currency)
spends = st.builds(lambda currency, value: Amount.of(currency, value), currencies, logarithmic)
stacks = st.lists(st.floats(0.01, 10), min_size=1, max_size=6)


def true_delta(mu: float, epsilon: float) -> Any:
    """δ(ε) of μ-GDP with enough digits that nothing cancels."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80 + int(epsilon)):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


# ---------------------------------------------------------------- Gaussian differential privacy


@given(mu=logarithmic, near=st.floats(-5, 30))
def test_delta_is_rounded_up_and_hardly(mu: float, near: float) -> None:
    epsilon = mu * (near + mu / 2)
    assume(0 <= epsilon <= 700)
    truth, claim = true_delta(mu, epsilon), gdp_delta(mu, epsilon)
    assert claim >= truth
    assert claim <= truth * (1 + 1e-10 + 1e-11 / mu) or claim < 1e-250


@given(epsilon=logarithmic, delta=deltas)
def test_mu_and_epsilon_are_inverse_up_to_outward_rounding(epsilon: float, delta: float) -> None:
    mu = gdp_mu(epsilon, delta)
    assert true_delta(mu, epsilon) <= delta
    assert true_delta(mu * (1 + 1e-9) + 1e-12, epsilon) > delta
    back = gdp_epsilon(mu, delta)
    assert back <= epsilon
    assert back == pytest.approx(epsilon, rel=1e-6, abs=1e-11)
    assert true_delta(mu, back) <= delta


def test_known_noise() -> None:
    """σ of one count at δ = 10⁻⁹: the classical √(2·ln(1.25/δ))/ε is larger by a factor 1/.84 at ε = 1."""
    sigma = 1 / gdp_mu(1.0, 1e-9)
    classical = math.sqrt(2 * math.log(1.25 / 1e-9))
    assert sigma / classical == pytest.approx(0.84, abs=0.01)


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan])
def test_gaussian_noise_needs_delta(delta: float) -> None:
    with refused("bad-delta"):
        gdp_mu(1.0, delta)
    if delta != 1:
        with refused("bad-delta"):
            gdp_epsilon(1.0, delta)


# ---------------------------------------------------------------- one mechanism


@given(epsilon=st.floats(-9, 1.7).map(lambda power: 10**power))
def test_costs_of_choices_and_of_pure_mechanisms(epsilon: float) -> None:
    """μ = 2·Φ⁻¹(1/(1+e^(−x))), with x = ε/2 for the exponential mechanism and x = ε for any ε-DP mechanism."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        for cost, exponent in ((gdp_cost_of_exponential(epsilon), epsilon / 2), (gdp_cost_of_pure(epsilon), epsilon)):
            truth = (2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(exponent) / 2))) ** 2
            assert truth <= cost <= truth * (1 + 1e-10)


@given(spend=st.floats(-20, 2).map(lambda power: 10**power))
def test_a_choice_buys_what_it_costs(spend: float) -> None:
    epsilon = exponential_epsilon(spend)
    cost = gdp_cost_of_exponential(epsilon)
    assert spend * (1 - 1e-9) <= cost <= spend


def test_a_small_choice_costs_two_over_pi_of_the_zcdp_rule() -> None:
    assert exponential_epsilon(1e-8) / 1e-4 == pytest.approx(math.sqrt(8 / math.pi), rel=1e-6)  # about 1.596


@given(spend=spends)
def test_a_bought_choice_is_within_its_amount(spend: Amount) -> None:
    epsilon = choice_epsilon(spend)
    cost = Charge("exponential", "select", 1, (1.0,), epsilon, spend).cost()
    assert cost <= spend
    assert cost.value >= spend.value * (1 - 1e-9)


@given(spend=spends, weights=stacks, rows=st.integers(1, 20), extra=st.sampled_from([0.0, 0.001]))
def test_a_stack_costs_its_amount_and_no_more(spend: Amount, weights: list[float], rows: int, extra: float) -> None:
    scale = stack_scale(spend, weights, rows, extra)
    mechanism = noise_kind(spend)
    charge = Charge(mechanism, "", rows, tuple(weights), scale, spend, extra=extra)
    assert charge.cost() <= spend
    assert charge.cost().value == pytest.approx(spend.value, rel=1e-12)
    steps = [rows * Fraction(weight) + Fraction(extra) for weight in weights]
    stated = Fraction(charge.sensitivity)
    if mechanism == "gaussian":
        assert 0 <= stated**2 / sum(step**2 for step in steps) - 1 < Fraction(1, 10**12)
    else:
        assert 0 <= stated / sum(steps) - 1 < Fraction(1, 10**12)
    for noise, weight in zip(stack_noise(spend, weights, rows, extra), weights, strict=True):
        assert noise.kind == mechanism
        assert Fraction(noise.scale) * Fraction(weight) >= Fraction(scale)
        assert noise.scale == pytest.approx(scale / weight, rel=1e-12)


@given(spend=spends, weights=stacks, rows=st.integers(1, 9))
def test_wrong_charges_cost_more_than_was_paid(spend: Amount, weights: list[float], rows: int) -> None:
    """Mutants: noise halved, θ forgotten when the noise was chosen, a query left out when the noise was chosen."""
    mechanism = noise_kind(spend)
    honest = Charge(mechanism, "", rows, tuple(weights), stack_scale(spend, weights, rows), spend)
    assert not replace(honest, scale=honest.scale / 2).cost() <= spend
    assert not replace(honest, scale=stack_scale(spend, weights, 1)).cost() <= spend or rows == 1
    assert not replace(honest, weights=(*weights, 1.0)).cost() <= spend


def test_costs_by_hand() -> None:
    gdp, pure = Amount(Currency.GDP, UNITS), Amount(Currency.PURE, UNITS)
    assert Charge("gaussian", "", 2, (3.0, 4.0), 5.0, gdp).cost().exact == 4  # (2·5/5)²
    assert Charge("laplace", "", 2, (3.0, 4.0), 7.0, pure).cost().exact == 2  # 2·7/7
    assert Charge("exponential", "", 2, (3.0,), 0.5, pure).cost().exact == Fraction(1, 2)
    assert Charge("discovery", "", 3, (1.0,), 2.0, replace(gdp, delta_units=9)).cost() == Amount(
        Currency.GDP, 3 * UNITS // 4, 9
    )
    with refused("gaussian-in-pure-epsilon"):
        Charge("gaussian", "", 1, (1.0,), 1.0, pure).cost()


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 0.0},
        {"scale": math.nan},
        {"scale": math.inf},
        {"weights": (1.0, -0.5)},
        {"weights": (0.0,)},
        {"weights": ()},
        {"rows_per_person": 0},
        {"extra": -1.0},
        {"extra": math.nan},
    ],
)
def test_a_charge_that_could_understate_is_refused(wrong: dict[str, Any]) -> None:
    honest = Charge("gaussian", "", 1, (1.0,), 1.0, Amount(Currency.GDP, UNITS))
    with refused("bad-charge"):
        replace(honest, **wrong)


@pytest.mark.parametrize("currency", Currency)
def test_nothing_buys_nothing(currency: Currency) -> None:
    nothing = Amount(currency, 0)
    with refused("no-share"):
        stack_scale(nothing, [1.0], 1)
    with refused("no-share"):
        choice_epsilon(nothing)


# ---------------------------------------------------------------- the whole


@given(epsilon=logarithmic, delta=st.one_of(st.just(0.0), deltas), fraction=st.floats(0, 1))
def test_the_whole_and_every_part_of_it_are_covered(epsilon: float, delta: float, fraction: float) -> None:
    budget = Budget(epsilon, delta)
    amount = whole(budget)
    assert covers(budget, amount)
    assert covers(budget, amount.share(fraction))
    assert covers(budget, amount - Amount(amount.currency, min(amount.units, 12345)))
    claim = guarantee(amount, delta)
    assert claim.epsilon <= epsilon
    assert claim.epsilon == pytest.approx(epsilon, rel=1e-6, abs=1e-11)
    assert not covers(budget, amount + amount.share(1e-6) + Amount.of(amount.currency, 1e-9))


@given(epsilon=logarithmic, delta=deltas, fraction=st.floats(0.01, 0.99))
def test_delta_set_aside_is_kept_out_of_the_noise(epsilon: float, delta: float, fraction: float) -> None:
    budget, aside = Budget(epsilon, delta), delta * fraction
    amount = whole(budget, aside)
    assert covers(budget, amount)
    assert true_delta(math.sqrt(amount.value), epsilon) + aside <= delta * (1 + 1e-15)
    assert amount.units <= whole(budget).units
    assert not covers(budget, replace(whole(budget), delta_units=amount.delta_units))


def test_a_discovery_is_refused_where_no_delta_is_left() -> None:
    for budget in (Budget(1, 0), Budget(1, 1e-9)):
        with refused("no-delta-left"):
            whole(budget, 1e-9)
    with refused("delta-not-covered"):
        guarantee(Amount.of(Currency.GDP, 1, 1e-9), 1e-9)


def test_pure_epsilon_is_exact() -> None:
    budget = Budget(0.1, 0)
    assert guarantee(whole(budget), 0).epsilon == 0.1
    assert str(guarantee(whole(budget), 0)) == "(0.1, 0)-differential privacy"
    assert not covers(budget, whole(budget) + Amount(Currency.PURE, 1 << 30))


# ---------------------------------------------------------------- an independent accountant


def two_point(epsilon: float, offset: float) -> Any:
    """The worst pair of a choice of range ε: two outcomes whose log-ratios are `offset` and `offset` − ε."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    lower = (1 - math.exp(offset - epsilon)) / (math.exp(offset) - math.exp(offset - epsilon))
    upper = lower * math.exp(offset)
    return pld.from_two_probability_mass_functions(
        {0: math.log(lower), 1: math.log1p(-lower)},
        {0: math.log(upper), 1: math.log1p(-upper)},
        symmetric=False,
        value_discretization_interval=1e-3,
    )


@pytest.mark.parametrize("offset", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("gaussians", "choices", "laplaces"),
    [
        ((0.3, 0.2), (0.2,) * 10, ()),
        ((0.5,), (1.0, 0.5, 0.25), (0.4,)),
        ((), (0.4,) * 20, ()),
        ((0.1,), (), (0.3,) * 4),
        ((2.0,), (3.0,), (1.0,)),
    ],
)
def test_the_claim_never_understates(
    gaussians: tuple[float, ...], choices: tuple[float, ...], laplaces: tuple[float, ...], offset: float
) -> None:
    """Mixes of Gaussians (by μ), exponential mechanisms and Laplace noise (by ε) against dp-accounting's PLD."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    nothing = Amount(Currency.GDP, 0)
    charges = [
        *(Charge("gaussian", "", 1, (1.0,), 1 / mu, nothing) for mu in gaussians),
        *(Charge("exponential", "", 1, (1.0,), epsilon, nothing) for epsilon in choices),
        *(Charge("laplace", "", 1, (1.0,), 1 / epsilon, nothing) for epsilon in laplaces),
    ]
    spent = sum((charge.cost() for charge in charges), nothing)
    losses = [
        *(pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3) for mu in gaussians),
        *(two_point(epsilon, offset * epsilon) for epsilon in choices),
        *(pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=1e-3) for epsilon in laplaces),
    ]
    together = losses[0]
    for loss in losses[1:]:
        together = together.compose(loss)
    rounding = 1e-3 * len(losses)  # the PLD rounds every loss up by at most one interval
    for delta in (1e-3, 1e-6, 1e-9):
        assert guarantee(spent, delta).epsilon >= together.get_epsilon_for_delta(delta) - rounding


def test_the_claim_is_tight_for_gaussians() -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    spent = Charge("gaussian", "", 1, (1.0,) * 4, 4.0, Amount(Currency.GDP, 0)).cost()
    loss = pld.from_gaussian_mechanism(4.0).self_compose(4)
    assert guarantee(spent, 1e-9).epsilon == pytest.approx(loss.get_epsilon_for_delta(1e-9), abs=2e-3)


def test_the_zcdp_rule_for_choices_would_understate() -> None:
    """ε = √(8ρ) would claim 2ρ of μ² for a choice, and the accountant sees through it: why our rule is another."""
    epsilon, rounds = 0.4, 20
    zcdp = Amount.of(Currency.GDP, rounds * 2 * epsilon**2 / 8)
    together = two_point(epsilon, epsilon / 2).self_compose(rounds)
    claims = [guarantee(zcdp, delta).epsilon for delta in (1e-1, 1e-2, 1e-3)]
    truths = [together.get_epsilon_for_delta(delta) for delta in (1e-1, 1e-2, 1e-3)]
    assert any(claim < truth - 1e-3 * rounds for claim, truth in zip(claims, truths, strict=True))


# ---------------------------------------------------------------- ε that is spent directly, beside μ²


@given(epsilon=logarithmic, delta=deltas, part=st.floats(0, 1))
def test_direct_epsilon_and_what_is_exchanged_for_mu_are_within_the_budget(
    epsilon: float, delta: float, part: float
) -> None:
    budget = Budget(epsilon, delta)
    spent = Fraction(epsilon) * Fraction(part)
    found = whole(budget, direct_epsilon=spent)
    assert covers(budget, found)
    assert found.exact_epsilon <= spent
    assert guarantee(found, delta).epsilon <= epsilon * (1 + 1e-9)
    if found.units and found.is_direct:
        more = replace(found, epsilon_units=found.epsilon_units + max(1, found.epsilon_units // 10**6))
        assert not covers(budget, replace(more, units=found.units + found.units // 10**6))


@given(direct=logarithmic, weights=stacks, rows=st.integers(1, 20))
def test_a_stack_paid_in_direct_epsilon_costs_it_and_no_more(direct: float, weights: list[float], rows: int) -> None:
    """Laplace noise of the scale that pure ε buys; its mutants cost more."""
    spend = Amount.of(Currency.GDP, 0, epsilon=direct)
    scale = stack_scale(spend, weights, rows)
    assert scale == stack_scale(Amount.of(Currency.PURE, direct), weights, rows)
    charge = Charge(noise_kind(spend), "", rows, tuple(weights), scale, spend)
    assert charge.mechanism == "laplace"
    assert charge.cost() <= spend
    assert not replace(charge, scale=scale / 2).cost() <= spend
    assert not replace(charge, weights=(*weights, 1.0)).cost() <= spend
    assert not replace(charge, mechanism="gaussian").cost() <= spend


def test_direct_epsilon_is_shared_split_and_refused() -> None:
    whole_amount = Amount.of(Currency.GDP, 0, epsilon=0.3)
    assert whole_amount.share(0.5).epsilon_units == whole_amount.epsilon_units // 2
    assert sum(whole_amount.split([1, 2, 4]), Amount(Currency.GDP, 0)) == whole_amount
    assert whole_amount
    with pytest.raises(BudgetError, match="remains"):
        whole_amount.share(0.5) - whole_amount
    with pytest.raises(BudgetError, match="not in both"):
        stack_scale(Amount.of(Currency.GDP, 1, epsilon=1), [1.0], 1)
    with pytest.raises(HedgerowError, match="beside μ² alone"):
        Amount.of(Currency.PURE, 1, epsilon=1)
    with pytest.raises(BudgetError, match="exceeds"):
        whole(Budget(1.0), direct_epsilon=2)
    with pytest.raises(BudgetError, match="some δ must be left"):
        whole(Budget(1.0, 0.0), direct_epsilon=1)


def test_exchanging_after_direct_spending_leaves_the_rest_of_epsilon() -> None:
    from hedgerow.private.account import Account

    budget = Budget(1.0, 1e-9)
    account = Account(
        whole(budget, direct_epsilon=1), exchanging=lambda spent: whole(budget, direct_epsilon=spent.exact_epsilon)
    )
    with pytest.raises(BudgetError, match="0 remains"):  # no μ² before anything was exchanged
        account.debit(Charge("gaussian", "measure", 1, (1.0,), 1.0, Amount.of(Currency.GDP, 1)))
    spend = Amount.of(Currency.GDP, 0, epsilon=0.25)
    expected = account.exchanged(spend)
    account.debit(Charge("laplace", "measure", 1, (1.0,), stack_scale(spend, [1.0], 1), spend))
    account.exchange()
    assert account.remaining == expected
    assert not account.remaining.is_direct
    assert account.remaining.value == pytest.approx(gdp_mu(0.75, 1e-9) ** 2)
    with pytest.raises(BudgetError, match=r"asks for ε = 0\.25 directly; 0 remains"):
        account.debit(Charge("laplace", "measure", 1, (1.0,), stack_scale(spend, [1.0], 1), spend))
    before = account.whole
    account.exchange()  # once and for all
    assert account.whole == before
