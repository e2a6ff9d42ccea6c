"""The books of one run: check, subtract, and only then let the caller touch the data."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hedgerow.budget.accounting import Charge
from hedgerow.budget.amounts import DELTA_UNITS, Amount
from hedgerow.errors import BudgetError, HedgerowError


class Account:
    """A filter: charges may be chosen after the answers before them, as long as their sum stays within the whole.

    `open_books` runs before the first charge is granted; the first look is taken there, and a lifetime ledger debits
    the rest of the run, so that a run that is refused before it asks anything costs nothing, and one that is killed
    afterwards is paid.
    `kept` is set aside for what comes after the method, which has no way to spend it.
    `note` hears of every charge that is granted. `exchanging` tells, from what was spent, the whole of a run that
    began in ε once what is left of it has become μ².
    """

    def __init__(
        self,
        whole: Amount,
        open_books: Callable[[], None] = lambda: None,
        note: Callable[[Charge], None] = lambda charge: None,
        exchanging: Callable[[Amount], Amount] | None = None,
        kept: Amount | None = None,
    ):
        self.whole = whole
        self.kept = Amount(whole.currency, 0) if kept is None else kept
        self.spent = Amount(whole.currency, 0)
        self.charges: list[Charge] = []
        self._open_books = open_books
        self._note = note
        self._exchanging = exchanging
        self._lock = threading.Lock()

    @property
    def remaining(self) -> Amount:
        return self.whole - self.spent - self.kept

    def exchanged(self, spend: Amount | None = None) -> Amount:
        """What would be left in μ², were `spend` of the direct ε spent first and the rest exchanged."""
        if self._exchanging is None or not self.remaining.is_direct:
            return self.remaining
        spent = self.spent + self.kept if spend is None else self.spent + self.kept + spend
        return self._exchanging(spent) - spent

    def exchange(self) -> None:
        """Turn what is left of direct ε into μ², once and for all; nothing where there is none."""
        with self._lock:
            if self._exchanging is not None and self.remaining.is_direct:
                self.whole = self._exchanging(self.spent + self.kept)

    def freed(self) -> Amount:
        """All that is left, with what was kept for after the method; direct ε among it is exchanged."""
        self.kept = Amount(self.whole.currency, 0)
        self.exchange()
        return self.remaining.share(1)

    def standing(self) -> str:
        """What an error may say of the budget, at this moment."""
        return "What was charged before stays charged." if self.charges else "Nothing was spent."

    def debit(self, charge: Charge) -> None:
        """Grant a charge or refuse it. A granted charge stays, whatever happens next."""
        with self._lock:
            self._debit(charge)

    def _debit(self, charge: Charge) -> None:
        if not charge.cost() <= charge.amount:
            raise HedgerowError("charge-exceeds-price", f"a {charge.purpose} charge costs more than it declares.")
        if not charge.amount <= self.remaining:
            raise self._refusal(charge)
        if not self.charges:
            self._open_books()
        self.spent += charge.amount
        self.charges.append(charge)
        self._note(charge)

    def _refusal(self, charge: Charge) -> BudgetError:
        asked, left, whole = charge.amount, self.remaining, self.whole
        if asked.epsilon_units > left.epsilon_units:
            return BudgetError(
                "budget-exceeded",
                f"a {charge.purpose} charge asks for ε = {float(asked.exact_epsilon):.4g} directly; "
                f"{float(left.exact_epsilon):.4g} remains. It was not answered.",
            )
        attributes = charge.queries[0].get("attributes") if len(charge.queries) == 1 else None
        what = charge.purpose + (f" of {' × '.join(attributes) or 'the total'}" if attributes is not None else "")
        if asked.units > left.units:
            of = max(1, whole.units)  # a run that began in ε and has not exchanged it has no μ² at all
            parts = (asked.units / of, left.units / of, (asked.units - left.units) / of)
            return BudgetError(
                "budget-exceeded",
                f"{what} asks for {parts[0]:.4g} of the budget; {parts[1]:.4g} remains "
                f"({parts[2]:.4g} too little). It was not answered.",
            )
        return BudgetError(
            "discovery-exceeds-delta",
            f"{what} asks for δ = {asked.delta:.3g}; "
            f"{left.delta_units / DELTA_UNITS:.3g} was set aside for discoveries and remains. It was not answered.",
        )
