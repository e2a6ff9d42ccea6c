"""What may be spent: a Budget in the words of the guarantee, and Amounts in exact units.

An Amount is a whole number of units of 2⁻⁸⁰ of its currency, so that sums are exact, shares never add up to
more than the whole, and "everything that is left" is a number and not an estimate.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from fractions import Fraction

from hedgerow.errors import BudgetError, HedgerowError

UNITS = 1 << 80
"""Units in one μ², or in one ε."""
DELTA_UNITS = 1 << 160
"""Units in a δ of one."""


LARGEST_EPSILON = 1e6
"""Beyond this there is no privacy to speak of."""
DOUBTFUL_EPSILON = 20.0
DOUBTFUL_DELTA = 1e-3
"""Beyond these a guarantee is stated, and promises next to nothing."""


class Currency(enum.Enum):
    """What the ledger of a run counts; fixed before the run."""

    GDP = "μ²"
    """Squared Gaussian-DP parameters, for δ > 0."""
    PURE = "ε"
    """Pure ε, for δ = 0."""
    ZCDP = "ρ"
    """Zero-concentrated DP, for comparisons with methods that were published with it; needs δ > 0 too."""


@dataclass(frozen=True)
class Budget:
    """(ε, δ) for one release. δ = 0 asks for pure differential privacy.

    Papers also state `rho` (zero-concentrated DP) or `mu` (Gaussian DP): the budget is then the least ε that follows
    from it at this δ, and is kept, stated and spent as that (ε, δ).
    """

    epsilon: float = math.nan
    delta: float = 1e-9
    rho: InitVar[float | None] = None
    mu: InitVar[float | None] = None

    def __post_init__(self, rho: float | None, mu: float | None) -> None:
        if rho is not None or mu is not None:
            object.__setattr__(self, "epsilon", self._implied(rho, mu))
        if not (isinstance(self.epsilon, int | float) and 0 < self.epsilon <= LARGEST_EPSILON):
            raise BudgetError(
                "bad-epsilon",
                f"epsilon must be a positive number of at most {LARGEST_EPSILON:g}, got {self.epsilon!r}. "
                "Hint: common choices lie between 0.1 and 10.",
            )
        if not (0 <= self.delta < 1):
            raise BudgetError(
                "bad-delta",
                f"delta must be at least 0 and below 1, got {self.delta}. "
                "Hint: keep it far below 1 divided by the number of people; the default is 1e-9.",
            )
        object.__setattr__(self, "epsilon", float(self.epsilon))  # a certificate spells 1 and 1.0 alike
        object.__setattr__(self, "delta", float(self.delta))

    def _implied(self, rho: float | None, mu: float | None) -> float:
        """The ε that ρ or μ promises at this δ, by the exact conversions of `hedgerow.budget.accounting`."""
        from hedgerow.budget.accounting import gdp_epsilon, zcdp_epsilon

        given = [value for value in (rho, mu) if value is not None]
        if len(given) > 1 or not math.isnan(self.epsilon):
            raise BudgetError("budget-twice", "a budget is stated once: as epsilon, as rho, or as mu.")
        if not 0 < given[0] < math.inf or not 0 < self.delta < 1:
            raise BudgetError(
                "bad-budget",
                f"rho and mu are positive numbers and need a delta above 0, got {given[0]!r} and {self.delta!r}.",
            )
        return gdp_epsilon(mu, self.delta) if mu is not None else zcdp_epsilon(given[0], self.delta)

    @property
    def currency(self) -> Currency:
        return Currency.GDP if self.delta > 0 else Currency.PURE

    def doubts(self) -> list[str]:
        """Why a guarantee of this size promises next to nothing; empty where it promises something."""
        said = []
        if self.epsilon > DOUBTFUL_EPSILON:
            said.append(
                f"ε = {self.epsilon:g} promises next to nothing: whoever was half sure that somebody is in the table "
                "may become all but certain. Common choices lie between 0.1 and 10."
            )
        if self.delta > DOUBTFUL_DELTA:
            said.append(
                f"δ = {self.delta:g} promises next to nothing: publishing rows as they are, each with a probability "
                f"of {self.delta:g}, would keep it. It should be far below 1 divided by the number of people."
            )
        return said


@dataclass(frozen=True)
class Amount:
    """An exact, non-negative part of a budget: units of its currency, and δ or ε that is spent directly.

    Direct ε stands beside μ²: it pays for Laplace noise, and what is not spent of it can be exchanged for μ²
    (`hedgerow.budget.accounting.whole`).
    """

    currency: Currency
    units: int
    delta_units: int = 0
    epsilon_units: int = 0

    def __post_init__(self) -> None:
        if self.units < 0 or self.delta_units < 0 or self.epsilon_units < 0:
            raise HedgerowError("negative-amount", "an amount cannot be negative.")
        if self.epsilon_units and self.currency is not Currency.GDP:
            raise HedgerowError("direct-epsilon", "direct ε stands beside μ² alone.")

    @classmethod
    def of(
        cls,
        currency: Currency,
        value: float | Fraction,
        delta: float | Fraction = 0,
        epsilon: float | Fraction = 0,
    ) -> Amount:
        """The largest amount that does not exceed `value`, with so much δ and ε that is spent directly."""
        direct = math.floor(Fraction(delta) * DELTA_UNITS), math.floor(Fraction(epsilon) * UNITS)
        return cls(currency, math.floor(Fraction(value) * UNITS), *direct)

    @property
    def exact(self) -> Fraction:
        return Fraction(self.units, UNITS)

    @property
    def value(self) -> float:
        """The amount as a float (nearest; for display and for planning, never for the books)."""
        return float(self.exact)

    @property
    def exact_delta(self) -> Fraction:
        return Fraction(self.delta_units, DELTA_UNITS)

    @property
    def delta(self) -> float:
        return float(self.exact_delta)

    @property
    def exact_epsilon(self) -> Fraction:
        """The ε that is spent directly."""
        return Fraction(self.epsilon_units, UNITS)

    @property
    def is_direct(self) -> bool:
        """Whether it is direct ε, which pays for Laplace noise."""
        return self.epsilon_units > 0

    def __add__(self, other: Amount) -> Amount:
        self._same(other)
        return Amount(
            self.currency,
            self.units + other.units,
            self.delta_units + other.delta_units,
            self.epsilon_units + other.epsilon_units,
        )

    def __sub__(self, other: Amount) -> Amount:
        self._same(other)
        if not other <= self:
            raise BudgetError("budget-exceeded", f"{other} is asked; {self} remains.")
        return Amount(
            self.currency,
            self.units - other.units,
            self.delta_units - other.delta_units,
            self.epsilon_units - other.epsilon_units,
        )

    def __le__(self, other: Amount) -> bool:
        self._same(other)
        return (
            self.units <= other.units
            and self.delta_units <= other.delta_units
            and self.epsilon_units <= other.epsilon_units
        )

    def __bool__(self) -> bool:
        return self.units > 0 or self.delta_units > 0 or self.epsilon_units > 0

    def share(self, fraction: float | Fraction) -> Amount:
        """A fraction of the units and of direct ε, rounded down. Direct δ belongs to what was declared."""
        if not 0 <= fraction <= 1:
            raise HedgerowError("bad-share", f"a share must lie between 0 and 1, got {fraction}.")
        part = Fraction(fraction)
        return Amount(self.currency, math.floor(part * self.units), 0, math.floor(part * self.epsilon_units))

    def split(self, weights: Sequence[float]) -> list[Amount]:
        """Parts in proportion to the weights that add up to the units exactly (the last takes the rest)."""
        if not (sum(weights) > 0 and all(0 <= weight < math.inf for weight in weights)):
            raise HedgerowError("bad-split", "a split needs weights of at least 0 that are not all 0.")
        whole = sum((Fraction(weight) for weight in weights), Fraction(0))
        parts = [self.share(Fraction(weight) / whole) for weight in weights[:-1]]
        rest = self.units - sum(part.units for part in parts)
        return [*parts, Amount(self.currency, rest, 0, self.epsilon_units - sum(part.epsilon_units for part in parts))]

    def _same(self, other: Amount) -> None:
        if self.currency is not other.currency:
            raise BudgetError(
                "mixed-currencies", f"amounts of {self.currency.value} and of {other.currency.value} do not mix."
            )

    def __str__(self) -> str:
        direct = f", δ = {self.delta:.3g}" if self.delta_units else ""
        direct += f", ε = {float(self.exact_epsilon):.6g}" if self.epsilon_units else ""
        return f"{self.currency.value} = {self.value:.6g}{direct}"

    def __repr__(self) -> str:
        return f"Amount({self})"
