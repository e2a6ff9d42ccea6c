"""From charges to a guarantee, and from a share of the budget to the noise that it buys.

With δ > 0 the books are kept in μ², the squared parameter of Gaussian differential privacy: Gaussians compose
exactly (Dong, Roth, Su 2019), and a filter on Σμ² stays valid when each charge is chosen after the answers before
it (Smith, Thakurta 2022). With δ = 0 the books are kept in ε, which adds up. A run with δ > 0 may begin in ε too, pay
for Laplace noise in it, and exchange what is left for μ² (`whole`). For comparisons with published methods the
books can be kept in ρ of zero-concentrated DP (Bun, Steinke 2016), whose filter is as simple (Feldman, Zrnic 2021).

Everything rounds outward: noise and costs up, the calibrated μ down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from hedgerow.budget.amounts import UNITS, Amount, Budget, Currency
from hedgerow.coded.measurement import Noise
from hedgerow.coded.query import Measurable
from hedgerow.errors import BudgetError

MARGIN = 1e-11
"""Relative slack for every transcendental function, far above their error and far below any use."""
ROUNDING = 1e-14
"""Absolute slack for a difference of terms of size one: many times the unit roundoff."""
SMALLEST_DELTA = 1e-300
"""Added to every δ, so that none is lost to underflow."""


# ---------------------------------------------------------------- Gaussian differential privacy


def gdp_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of μ-GDP, Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2), rounded up (Dong–Roth–Su 2019, Cor. 2.13).

    The two terms nearly cancel when μ is small, so their rounding is added on the scale of the first one.
    """
    from scipy.special import erfcx, log_ndtr, ndtr

    if mu == 0:
        return 0.0
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if near > 0:
        # e^ε·e^(−far²/2) = e^(−near²/2): with the common factor taken out neither term underflows or overflows
        common = 0.5 * math.exp(-(near**2) / 2)
        first, second = common * float(erfcx(near / math.sqrt(2))), common * float(erfcx(far / math.sqrt(2)))
    else:
        first, second = float(ndtr(-near)), math.exp(epsilon + float(log_ndtr(-far)))
    delta = max(0.0, first - second)
    return min(1.0, delta * (1 + MARGIN) + ROUNDING * (1 + epsilon) * first + SMALLEST_DELTA)


def gdp_mu(epsilon: float, delta: float) -> float:
    """The largest μ (rounded down) whose δ(ε) does not exceed δ."""
    if not 0 < delta < 1:
        raise BudgetError("bad-delta", f"Gaussian noise needs 0 < delta < 1, got {delta}.")
    low = _largest(lambda mu: gdp_delta(mu, epsilon) <= delta)
    # the second margin keeps the rounding of gdp_delta, ∝ 1/μ, from refusing what was calibrated here
    return max(0.0, low * (1 - MARGIN) - ROUNDING)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest ε (rounded up) at which μ-GDP gives (ε, δ)."""
    if not delta > SMALLEST_DELTA:
        raise BudgetError("bad-delta", f"Gaussian noise needs a delta above {SMALLEST_DELTA:g}, got {delta:g}.")
    if mu == 0:
        return 0.0
    return _smallest(lambda epsilon: gdp_delta(mu, epsilon) <= delta)


def gdp_cost_of_exponential(epsilon: float) -> float:
    """μ² of the exponential mechanism with probabilities ∝ exp(ε·u/(2Δ)), rounded up.

    Its trade-off curve is that of a choice with logit range ε/2 each way, which μ = 2·Φ⁻¹(1/(1+e^(−ε/2))) covers.
    """
    return float(_logistic_quantile(epsilon / 2)) ** 2 * (1 + MARGIN)


def gdp_cost_of_pure(epsilon: float) -> float:
    """μ² of any ε-DP mechanism: μ = 2·Φ⁻¹(1/(1+e^(−ε))), rounded up."""
    return float(_logistic_quantile(epsilon)) ** 2 * (1 + MARGIN)


def exponential_epsilon(spend: float) -> float:
    """The ε of the exponential mechanism that a share of μ² buys, rounded down: 2·ln(Φ(√s/2)/Φ(−√s/2))."""
    from scipy.special import log_ndtr

    half = math.sqrt(spend) / 2
    if half < 1:  # the same, without cancellation
        logit = 2 * math.atanh(math.erf(half / math.sqrt(2)))
    else:
        logit = float(log_ndtr(half) - log_ndtr(-half))
    return 2 * logit * (1 - 4 * MARGIN)


def _logistic_quantile(epsilon: float) -> float:
    """2·Φ⁻¹(1/(1+e^(−ε)))."""
    from scipy.special import erfinv, ndtri_exp

    if epsilon < 1:  # the same, without cancellation
        return 2 * math.sqrt(2) * float(erfinv(math.tanh(epsilon / 2)))
    return -2 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))


# ---------------------------------------------------------------- zero-concentrated differential privacy


def zcdp_delta(rho: float, epsilon: float) -> float:
    """δ(ε) of ρ-zCDP, inf over α > 1 of e^((α−1)(αρ−ε))·(1−1/α)^α/(α−1), rounded up (Canonne, Kamath, Steinke 2020).

    Every α gives a valid bound, so the search for the least one need not be exact.
    """
    if rho == 0:
        return 0.0
    low, high = 1.0 + 1e-9, 2.0

    def slope(order: float) -> float:
        return (2 * order - 1) * rho - epsilon + math.log1p(-1 / order)

    while slope(high) < 0:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    order = high
    logarithm = (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)
    return min(1.0, math.exp(min(0.0, logarithm + MARGIN * (1 + abs(logarithm)))) + SMALLEST_DELTA)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest ρ (rounded down) whose δ(ε) does not exceed δ."""
    return _largest(lambda rho: zcdp_delta(rho, epsilon) <= delta) * (1 - MARGIN)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest ε (rounded up) at which ρ-zCDP gives (ε, δ)."""
    return _smallest(lambda epsilon: zcdp_delta(rho, epsilon) <= delta) if rho else 0.0


def _largest(holds: Callable[[float], bool]) -> float:
    """The largest number for which something that holds at 0 and then ceases to hold still holds, rounded down."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _smallest(holds: Callable[[float], bool]) -> float:
    """The smallest number from which on something holds, rounded up."""
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# ---------------------------------------------------------------- charges

Mechanism = Literal["gaussian", "laplace", "exponential", "discovery"]


STEPS_PER_SENSITIVITY = 1024
"""Scores are rounded to this part of what one person moves the widest of them by, before they meet noise."""


@dataclass(frozen=True)
class Charge:
    """One access to the data, as the certificate lists it.

    `weights` are those of the stacked queries, or the largest weight of a score. `scale` is the noise's standard
    deviation or Laplace scale for weight 1, or the ε of an exponential mechanism. `extra` is what rounding
    real-valued scores onto a grid adds to the sensitivity. A discovery's `amount` includes the δ that it spends.
    """

    mechanism: Mechanism
    purpose: str
    rows_per_person: int
    weights: tuple[float, ...]
    scale: float
    amount: Amount
    queries: tuple[dict[str, Any], ...] = ()
    extra: float = 0.0

    def __post_init__(self) -> None:
        positive = [self.scale, self.rows_per_person, len(self.weights), *self.weights]
        if self.mechanism not in get_args(Mechanism):
            raise BudgetError("unknown-mechanism", f'unknown mechanism "{self.mechanism}".')
        if not (all(0 < number < math.inf for number in positive) and 0 <= self.extra < math.inf):
            raise BudgetError(
                "bad-charge", "a charge needs a positive scale, positive weights and at least one row per person."
            )

    @property
    def sensitivity(self) -> float:
        """L2 for Gaussian noise, L1 for Laplace, the range of one score for a choice; rounded up."""
        exact = self._squared_l2() if self.mechanism in ("gaussian", "discovery") else self._l1()
        return _root_up(exact) if self.mechanism in ("gaussian", "discovery") else _float_up(exact)

    def cost(self) -> Amount:
        """What this access costs at the noise that it states, rounded up; independent of `amount`."""
        currency = self.amount.currency
        if self.mechanism in ("gaussian", "discovery"):
            direct = self.amount.delta_units if self.mechanism == "discovery" else 0
            cost = _gaussian_cost(currency, self._squared_l2() / Fraction(self.scale) ** 2)
        elif self.mechanism == "exponential":
            direct, cost = 0, _choice_cost(currency, self.scale)
        elif self.amount.is_direct:
            return Amount(currency, 0, 0, math.ceil(self._l1() / Fraction(self.scale) * UNITS))
        else:
            direct, cost = 0, _pure_cost(currency, self._l1() / Fraction(self.scale))
        return Amount(currency, math.ceil(cost * UNITS), direct)

    def _squared_l2(self) -> Fraction:
        """θ²·Σw² for a stack; θ for a discovery, where a person is one unit in each of at most θ values."""
        if self.mechanism == "discovery":
            return Fraction(self.rows_per_person)
        return sum((count * step**2 for step, count in self._steps()), Fraction(0))

    def _l1(self) -> Fraction:
        return sum((count * step for step, count in self._steps()), Fraction(0))

    def _steps(self) -> list[tuple[Fraction, int]]:
        """By how much one person can move stacked queries (in L1, hence also in L2) or scores, and how many so far."""
        return [
            (self.rows_per_person * Fraction(weight) + Fraction(self.extra), count)
            for weight, count in Counter(self.weights).items()
        ]


def _gaussian_cost(currency: Currency, ratio: Fraction) -> Fraction:
    """Of Gaussian noise with (Δ/σ)² = ratio."""
    if currency is Currency.PURE:
        raise BudgetError("gaussian-in-pure-epsilon", "Gaussian noise cannot be paid in pure ε.")
    return ratio if currency is Currency.GDP else ratio / 2


def _choice_cost(currency: Currency, epsilon: float) -> Fraction:
    """Of an exponential mechanism: its ε; (2·Φ⁻¹(1/(1+e^(−ε/2))))² of μ²; ε²/8 of ρ (Cesar, Rogers 2021)."""
    if currency is Currency.PURE:
        return Fraction(epsilon)
    if currency is Currency.GDP:
        return Fraction(gdp_cost_of_exponential(epsilon))
    return Fraction(epsilon) ** 2 / 8


def _pure_cost(currency: Currency, epsilon: Fraction) -> Fraction:
    """Of any ε-DP mechanism: its ε; (2·Φ⁻¹(1/(1+e^(−ε))))² of μ²; ε²/2 of ρ."""
    if currency is Currency.PURE:
        return epsilon
    if currency is Currency.GDP:
        return Fraction(gdp_cost_of_pure(_float_up(epsilon)))
    return epsilon**2 / 2


def noise_kind(spend: Amount) -> Literal["gaussian", "laplace"]:
    """What counts are noised with: Gaussian where μ² or ρ pays for it, Laplace where ε does."""
    return "laplace" if spend.currency is Currency.PURE or spend.is_direct else "gaussian"


def stack_scale(spend: Amount, weights: Sequence[float], rows_per_person: int, extra: float = 0.0) -> float:
    """The least noise scale (for weight 1) at which a stack of these weights costs at most `spend`.

    Gaussian σ = √(Σ(θw+g)²/μ²) under μ² (with 2ρ for μ² under ρ), Laplace b = Σ(θw+g)/ε where ε pays.
    """
    if not (spend.units or spend.is_direct):
        raise BudgetError("no-share", "a measurement needs a share of the budget, got none.")
    if spend.units and spend.is_direct:
        raise BudgetError("paid-twice", "a measurement is paid for in μ² or in ε, not in both.")
    mechanism = noise_kind(spend)
    trial = Charge(mechanism, "", rows_per_person, tuple(weights), 1.0, spend, extra=extra)
    if mechanism == "gaussian":
        scale = _root_up(_gaussian_cost(spend.currency, trial._squared_l2()) / spend.exact)
    else:
        scale = _float_up(trial._l1() / (spend.exact_epsilon if spend.is_direct else spend.exact))
    while not replace(trial, scale=scale).cost() <= spend:
        scale = math.nextafter(scale, math.inf)
    return scale


def stack_noise(spend: Amount, weights: Sequence[float], rows_per_person: int, extra: float = 0.0) -> list[Noise]:
    """The noise on each query of a stack: the stack's scale divided by the query's weight, rounded up."""
    scale = stack_scale(spend, weights, rows_per_person, extra)
    kind = noise_kind(spend)
    noises = {weight: Noise(kind, _float_up(Fraction(scale) / Fraction(weight))) for weight in set(weights)}
    return [noises[weight] for weight in weights]


def reached(noise: Noise, query: Measurable) -> Noise:
    """A query's noise in its own units: noise on counts, times how far one row can move the answer; rounded up."""
    reach = query.reach("l2" if noise.kind == "gaussian" else "l1")
    return noise if reach == 1 else Noise(noise.kind, _float_up(Fraction(noise.scale) * Fraction(reach)))


def discovery_scale(amount: Amount, rows_per_person: int) -> float:
    """The least σ at which counts that a person moves by 1 in at most θ places cost the amount: √(θ/μ²)."""
    trial = Charge("discovery", "", rows_per_person, (1.0,), 1.0, amount)
    scale = _root_up(_gaussian_cost(amount.currency, Fraction(rows_per_person)) / amount.exact)
    while not replace(trial, scale=scale).cost() <= amount:
        scale = math.nextafter(scale, math.inf)
    return scale


def discovery_threshold(scale: float, amount: Amount, rows_per_person: int) -> int:
    """The noisy count that a value of one person reaches with probability at most δ/θ: ⌈1 + σ·Φ⁻¹(1 − δ/θ) + ½⌉."""
    from scipy.special import ndtri

    quantile = -float(ndtri(amount.delta / rows_per_person))
    return math.ceil(1 + scale * quantile * (1 + MARGIN) + 0.5)


def choice_epsilon(spend: Amount) -> float:
    """The ε of the exponential mechanism that an amount buys, rounded down."""
    if not spend.units:
        raise BudgetError("no-share", "a choice needs a share of the budget, got none.")
    if spend.currency is Currency.GDP:
        return exponential_epsilon(spend.value)
    if spend.currency is Currency.ZCDP:
        return math.sqrt(8 * spend.value) * (1 - MARGIN)
    return math.nextafter(spend.value, 0.0)


# ---------------------------------------------------------------- the whole


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy for adding or removing one person; μ where the books were kept in μ²."""

    epsilon: float
    delta: float
    mu: float | None

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-differential privacy"


def whole(
    budget: Budget,
    direct_delta: float | Fraction = 0,
    currency: Currency | None = None,
    direct_epsilon: float | Fraction = 0,
) -> Amount:
    """The budget in exact units. `direct_delta` is set aside for discoveries before μ or ρ is calibrated.

    `direct_epsilon` is paid in ε, and μ is calibrated at what is left of ε. That may be decided after the answers that
    ε bought: where they have cost ε′ for one outcome o, P(o) ≤ e^ε′·Q(o), and all that follows is (ε − ε′, δ)-private
    given o, so ∫ P(o)·min(1, e^(ε−ε′)·Q(S|o) + δ) ≤ e^ε·Q(S) + δ.
    """
    if direct_epsilon:
        return _with_direct_epsilon(budget, Fraction(direct_delta), Fraction(direct_epsilon))
    if budget.currency is Currency.PURE and not direct_delta:
        return Amount.of(Currency.PURE, Fraction(budget.epsilon))
    if not 0 <= direct_delta < budget.delta:
        raise BudgetError(
            "no-delta-left",
            f"discoveries ask for δ = {float(direct_delta):g} of {budget.delta:g}; some δ must be left for the noise.",
        )
    left = _float_down(Fraction(budget.delta) - Fraction(direct_delta))
    if currency is Currency.ZCDP:
        return Amount.of(Currency.ZCDP, zcdp_rho(budget.epsilon, left), Fraction(direct_delta))
    mu = gdp_mu(budget.epsilon, left)
    return Amount.of(Currency.GDP, Fraction(mu) ** 2, Fraction(direct_delta))


def _with_direct_epsilon(budget: Budget, direct_delta: Fraction, direct_epsilon: Fraction) -> Amount:
    if budget.currency is Currency.PURE or not 0 <= direct_delta < budget.delta:
        raise BudgetError("direct-epsilon", "direct ε stands beside μ², for which some δ must be left.")
    left = Fraction(budget.epsilon) - direct_epsilon
    if left < 0:
        raise BudgetError(
            "direct-epsilon", f"direct ε of {float(direct_epsilon):g} exceeds the budget's ε = {budget.epsilon:g}."
        )
    mu = gdp_mu(_float_down(left), _float_down(Fraction(budget.delta) - direct_delta)) if left else 0.0
    return Amount.of(Currency.GDP, Fraction(mu) ** 2, direct_delta, direct_epsilon)


def covers(budget: Budget, spent: Amount) -> bool:
    """Whether what was spent is within the budget's (ε, δ)."""
    if spent.is_direct:
        left = Fraction(budget.epsilon) - spent.exact_epsilon
        if left < 0:
            return False
        noise_delta = gdp_delta(_root_up(spent.exact), _float_down(left)) if spent.units else 0.0
        return Fraction(noise_delta) + spent.exact_delta <= Fraction(budget.delta)
    if spent.currency is Currency.PURE:
        return spent.exact <= Fraction(budget.epsilon) and not spent.delta_units
    if spent.currency is Currency.ZCDP:
        noise_delta = zcdp_delta(_float_up(spent.exact), budget.epsilon)
    else:
        noise_delta = gdp_delta(_root_up(spent.exact), budget.epsilon)
    return Fraction(noise_delta) + spent.exact_delta <= Fraction(budget.delta)


def guarantee(amount: Amount, delta: float) -> Guarantee:
    """The (ε, δ) of an amount at the δ that was asked for. A run promises that of its whole budget, spent or not."""
    if amount.currency is Currency.PURE:
        return Guarantee(_float_up(amount.exact), 0.0, None)
    left = _float_down(Fraction(delta) - amount.exact_delta)
    if left <= 0:
        raise BudgetError("delta-not-covered", f"δ = {delta:g} does not cover the δ that was spent directly.")
    if amount.currency is Currency.ZCDP:
        return Guarantee(zcdp_epsilon(_float_up(amount.exact), left), delta, None)
    mu = _root_up(amount.exact)
    if amount.is_direct:
        epsilon = Fraction(gdp_epsilon(mu, left) if amount.units else 0.0) + amount.exact_epsilon
        return Guarantee(_float_up(epsilon), delta, None)
    return Guarantee(gdp_epsilon(mu, left), delta, mu)


def _float_up(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _float_down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def _root_up(square: Fraction) -> float:
    root = math.sqrt(_float_up(square))
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
