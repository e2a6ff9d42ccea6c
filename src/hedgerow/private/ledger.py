"""The lifetime ledger of a dataset: one append-only file that all releases of it share.

Each line is a JSON record that carries the SHA-256 of the line before it and its own, so a change to any of them shows.
A copy rolled back to an earlier state shows against the certificates that name their record (`hedgerow verify
--ledger`). Whoever can write the file can rewrite all of it: it guards against mistakes, not against its keeper.

A debit is written and forced to disk, under an exclusive lock, before the first count of its run; it is never taken
back, even if the run fails. Amounts add up exactly, as in the account of a run: the squared Gaussian-DP parameters of
all runs, and the δ that they spent directly, must stay within the (ε, δ) that the ledger was opened with. They must
speak of the same unit: guarantees per person and guarantees per row do not add up to anything.

Over years a ledger is kept in periods, each with a cap that is fixed when it is opened; `hedgerow.budget.presence` says
what they come to for somebody who is in several.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.budget.accounting import covers, gdp_cost_of_pure, whole
from hedgerow.budget.amounts import LARGEST_EPSILON, UNITS, Amount, Budget, Currency
from hedgerow.budget.presence import Period, Presence
from hedgerow.errors import BudgetError, Fault, InputError, OptionError, SchemaError, listing, suggestion
from hedgerow.private.books import FORMAT, Books, Entry, line
from hedgerow.release.disk import exists, is_at, reason, write_through
from hedgerow.release.files import clear_unfinished, whole_file
from hedgerow.release.locks import lock, opened

ROW = ""
"""The unit of a table whose schema names no person."""


class Ledger:
    """An open ledger file. Reading takes no lock; every append locks, reads again, checks, writes and syncs.

    Debits are made in a period, where there are any: in the one that is named, else in the one that was opened last.
    """

    def __init__(self, path: str | Path, period: str | None = None):
        self.path = Path(path)
        books = self._read()
        first = books.entries[0]
        self._header = first.record
        opened = [entry.record["period"] for entry in books.entries if _is_period(entry)]
        if period is not None and period not in opened:
            raise OptionError(
                "no-such-period",
                f'the ledger "{self.path}" has no period "{period}"; periods: {listing(opened) or "none"}.'
                f"{suggestion(period, opened)} Hint: hedgerow ledger period FILE NAME --epsilon E opens one.",
            )
        self.period: str | None = period or (opened[-1] if opened else None)
        self.identity = first.digest if self.period is None else f"{first.digest} {self.period}"

    @classmethod
    def create(cls, path: str | Path, dataset: str, lifetime: Budget | None, delta: float = 1e-8) -> Ledger:
        """Open a new ledger for a dataset with a budget for its lifetime. An existing file is never overwritten.

        Without `lifetime` nothing is promised over all periods, and every debit needs one; sums are read at `delta`.
        """
        if not dataset.strip():
            raise OptionError(
                "missing-dataset",
                "a ledger needs the name of its dataset, as the schema declares it. Nothing was written.",
            )
        record = {
            "format": FORMAT,
            "dataset": dataset,
            "epsilon": None if lifetime is None else lifetime.epsilon,
            "delta": delta if lifetime is None else lifetime.delta,
            "name": secrets.token_hex(16),  # so that no two ledgers are alike
        }
        path = Path(path)
        try:
            clear_unfinished(path)
            if exists(path):
                raise OptionError(
                    "already-exists", f'"{path}" exists already. A ledger is never overwritten; nothing was changed.'
                )
        except OSError as problem:
            raise OptionError("cannot-write", f'the ledger "{path}" cannot be written ({reason(problem)}).') from None
        with whole_file(path, replace=False, mode=0o644) as partial:
            partial.write_bytes(line(record, ""))
        return cls(path)

    @property
    def dataset(self) -> str:
        return str(self._header["dataset"])

    @property
    def lifetime(self) -> Budget | None:
        """What may be spent on one person over all periods; None where that was left open."""
        epsilon = self._header["epsilon"]
        return None if epsilon is None else Budget(epsilon, self.delta)

    @property
    def delta(self) -> float:
        """At which sums are read."""
        return float(self._header["delta"])

    @property
    def currency(self) -> Currency:
        return Currency.GDP if self.delta > 0 else Currency.PURE

    def entries(self) -> list[Entry]:
        return self._read().entries

    def torn(self) -> list[str]:
        """What is to be said of lines that were cut short."""
        return [each.said for each in self._read().torn]

    def spent(self) -> Amount:
        """What all runs so far have been debited, whoever they were about."""
        books = self._read()
        debits = (self.debited(entry) for entry in books.entries if "debit" in entry.record)
        return sum(debits, self._torn(books, None))

    def presence(self) -> Presence:
        """What all this comes to for somebody who is in some of the periods."""
        return self._presence(self._read())

    def open_period(self, name: str, budget: Budget, disjoint: str = "") -> Entry:
        """Open a period. Its cap is fixed from now on; `disjoint` is the publisher's assertion that nobody is in two of
        the periods that name the same public attribute.
        """
        if not name.strip() or not (name + disjoint).isprintable():
            raise OptionError("bad-period-name", "a period needs a name that can be seen, for example 2026.")
        if budget.currency is not self.currency:
            kind = "no δ" if self.currency is Currency.PURE else "a δ above 0"
            raise BudgetError("period-delta", f'a period of the ledger "{self.path}" needs {kind}, as the ledger has.')
        with self._locked() as (descriptor, books):
            if any(_is_period(entry) and entry.record["period"] == name for entry in books.entries):
                raise BudgetError(
                    "period-exists",
                    f'the period "{name}" was opened before, and its cap is fixed. Nothing was changed.',
                )
            cap = {"epsilon": budget.epsilon, "delta": budget.delta}
            return self._append(descriptor, books, {"period": name, **cap, "disjoint": disjoint})

    def replace(self, replaced: str, by: str, why: str) -> Entry:
        """Record that a release corrects another one: two records that certificates name. Both stay spent."""
        with self._locked() as (descriptor, books):
            held = {entry.digest for entry in books.entries if "debit" in entry.record}
            if not {replaced, by} <= held or replaced == by:
                raise BudgetError(
                    "replaces-unknown", f'the ledger "{self.path}" does not hold the two debits, one for each release.'
                )
            return self._append(descriptor, books, {"replaced": replaced, "by": by, "why": why})

    def remaining_epsilon(self, delta: float) -> float:
        """The largest ε of one more release at this δ (0 where none fits), for display."""
        books = self._read()

        def fits(epsilon: float) -> bool:
            return self._holds(books, self._in_my_currency(whole(Budget(epsilon, delta))))

        low, high = 0.0, 1.0
        while high < LARGEST_EPSILON and fits(high):
            low, high = high, min(LARGEST_EPSILON, 2 * high)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def check(self, dataset: str | None, budget: Budget, unit: str) -> None:
        """Refuse, before anything is read, a run that the ledger could not pay for."""
        if dataset is None:
            raise SchemaError(
                "missing-dataset",
                f'the schema does not name its dataset, the ledger is for "{self.dataset}". '
                f'Hint: add "dataset: {self.dataset}" to the schema.',
            )
        if dataset != self.dataset:
            raise BudgetError(
                "another-dataset",
                f'the ledger "{self.path}" belongs to the dataset "{self.dataset}", the schema declares "{dataset}".',
            )
        books = self._read()
        self._refuse_other_unit(books, unit)
        self._refuse_overspend(books, budget, self._in_my_currency(whole(budget)))

    def debit(self, budget: Budget, amount: Amount, method: str, unit: str, journal: str | None = None) -> Entry:
        """Debit a whole run before it touches the data; returns the entry that the certificate names.

        A run whose journal was debited already, and which is being resumed, is not debited again.
        """
        owed = self._in_my_currency(amount)
        with self._locked() as (descriptor, books):
            for entry in books.entries:
                if journal is not None and entry.record.get("journal") == journal:
                    return entry
            self._refuse_other_unit(books, unit)
            self._refuse_overspend(books, budget, owed, journal)
            record = {
                **({} if journal is None else {"journal": journal}),
                "debit": {"units": str(owed.units), "delta_units": str(owed.delta_units)},
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "method": method,
                "unit": unit,
                **({} if self.period is None else {"period": self.period}),
            }
            return self._append(descriptor, books, record)

    def note(self, what: str) -> Entry:
        """Record that exact data were looked at; costs nothing, but whoever reads the ledger should know."""
        with self._locked() as (descriptor, books):
            return self._append(descriptor, books, {"looked": what})

    # ------------------------------------------------------------ the file

    def _in_my_currency(self, amount: Amount) -> Amount:
        mine = self.currency
        if amount.currency is mine:
            return amount
        if mine is Currency.PURE:
            raise BudgetError(
                "ledger-pure-epsilon", f'the ledger "{self.path}" allows pure ε only (its δ is 0). Hint: --delta 0.'
            )
        epsilon = math.nextafter(amount.value, math.inf)
        return Amount(mine, math.ceil(Fraction(gdp_cost_of_pure(epsilon)) * UNITS))

    def _refuse_other_unit(self, books: Books, unit: str) -> None:
        before = {entry.record["unit"] for entry in books.entries if "debit" in entry.record} - {unit}
        if before:
            raise BudgetError(
                "mixed-units",
                f'the releases of "{self.dataset}" so far are {_per(before.pop())}, this one would be {_per(unit)}: '
                "they do not add up. Hint: declare the same `person` in the schema.",
            )

    def _refuse_overspend(self, books: Books, budget: Budget, owed: Amount, journal: str | None = None) -> None:
        if self.period is None and self.lifetime is None:
            raise BudgetError(
                "no-period",
                f'the ledger of "{self.dataset}" has no budget for its lifetime, and no period is open. '
                "Hint: hedgerow ledger period FILE NAME --epsilon E",
            )
        if self._holds(books, owed, journal):
            return
        left = self.remaining_epsilon(budget.delta)
        where = "" if self.period is None else f' in the period "{self.period}"'
        if left >= budget.epsilon:
            raise BudgetError(
                "ledger-exhausted",
                f'the release would spend δ = {owed.delta:.3g} directly, which the ledger of "{self.dataset}" does '
                f"not have left{where} of its δ = {self.delta:g}.",
            )
        raise BudgetError(
            "ledger-exhausted",
            f'the release asks for ε = {budget.epsilon:g}; the ledger of "{self.dataset}" has '
            f"ε = {_down(left)} left{where} at δ = {budget.delta:g} ({_up(budget.epsilon - left)} too little).",
        )

    def _holds(self, books: Books, owed: Amount, journal: str | None = None) -> bool:
        """Whether a debit stays within the cap of its period, and within the lifetime of whoever it costs most."""
        after = self._presence(books, journal, owed)
        cap = next((each for each in after.periods if each.name == self.period), None)
        if cap is not None and not covers(cap.budget, cap.spent):
            return False
        return self.lifetime is None or covers(self.lifetime, after.worst())

    def _presence(self, books: Books, resumed: str | None = None, owed: Amount | None = None) -> Presence:
        """What was debited in each period, with `owed` in the one that debits are made in.

        A line that was cut short counts in every period: which it was in may be what was lost.
        """
        nothing = Amount(self.currency, 0)
        owing = nothing if owed is None else owed
        torn = self._torn(books, resumed)
        spent = {None: nothing} | {entry.record["period"]: torn for entry in books.entries if _is_period(entry)}
        spent[self.period] += owing
        for entry in books.entries:
            if "debit" in entry.record:
                spent[entry.record.get("period")] += self.debited(entry)
        periods = tuple(
            Period(name, Budget(record["epsilon"], record["delta"]), record["disjoint"], spent[name])
            for record in (entry.record for entry in books.entries if _is_period(entry))
            for name in [record["period"]]
        )
        always = spent[None] if periods else spent[None] + torn
        return Presence(always, periods, self.delta)

    def debited(self, entry: Entry) -> Amount:
        """What a record debits."""
        debit = entry.record["debit"]
        return Amount(self.currency, int(debit["units"]), int(debit["delta_units"]))

    def _torn(self, books: Books, resumed: str | None) -> Amount:
        """What lines that were cut short count for, unless the run whose they were is debited elsewhere."""
        known = {entry.record.get("journal") for entry in books.entries if "debit" in entry.record} | {resumed}
        torn = [each for each in books.torn if each.journal is None or each.journal not in known]
        return Amount(self.currency, sum(each.units for each in torn), sum(each.delta_units for each in torn))

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, Books]]:
        try:
            descriptor = self._open()
        except OSError as problem:
            raise self._unwritable(problem) from None
        try:
            with open(descriptor, "rb", closefd=False) as file:
                books = self._parse(file.read())
            yield descriptor, books
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        """The file of that name, locked; not one that was moved away while we waited."""
        while True:
            descriptor = opened(self.path, os.O_RDWR)
            try:
                lock(descriptor)
                if is_at(descriptor, self.path):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def _append(self, descriptor: int, books: Books, record: dict[str, Any]) -> Entry:
        """Write a record and force it to disk, or leave the file as it was."""
        record = record | {"time": datetime.now(UTC).isoformat(timespec="seconds")}
        end = os.lseek(descriptor, 0, os.SEEK_END)
        written = line(record, books.after)
        try:
            write_through(descriptor, books.closing + written)
        except OSError as problem:
            try:
                os.ftruncate(descriptor, end)
                os.fsync(descriptor)
            except OSError:
                raise InputError(
                    "ledger-uncertain",
                    f'the ledger "{self.path}" could not be written ({reason(problem)}), nor put back as it was; '
                    "a debit may stand. Hint: hedgerow ledger show says what is spent.",
                ) from None
            raise self._unwritable(problem) from None
        return Entry(len(books.entries), record, hashlib.sha256(written).hexdigest())

    def _unwritable(self, problem: OSError) -> BudgetError:
        return BudgetError("cannot-write", f'the ledger "{self.path}" cannot be written ({reason(problem)}).')

    def _read(self) -> Books:
        try:
            data = self.path.read_bytes()
        except OSError as problem:
            raise OptionError(
                "no-ledger",
                f'the ledger "{self.path}" cannot be read ({reason(problem)}). '
                "Hint: hedgerow ledger create FILE --dataset NAME --epsilon E --delta D",
            ) from None
        return self._parse(data)

    def _parse(self, data: bytes) -> Books:
        try:
            return Books.parse(data)
        except Fault as problem:
            raise BudgetError(problem.code, f'"{self.path}" {problem} Nothing was written to it.') from None


def confirm_entry(path: str | Path, named: Mapping[str, Any] | None) -> str:
    """That a ledger still holds the record that a certificate names; BudgetError if it does not."""
    if named is None:
        raise BudgetError("no-ledger-named", "the certificate names no ledger.")
    ledger = Ledger(path)
    held = {entry.digest for entry in ledger.entries()}
    if ledger.dataset != named["dataset"] or not {named[key] for key in ("hash", "look") if key in named} <= held:
        raise BudgetError(
            "ledger-rolled-back",
            f'the ledger "{path}" lacks the record that the certificate names: it was altered or rolled back.',
        )
    return f'the ledger of "{ledger.dataset}" holds the record that the certificate names'


def note_exact_access(path: str | Path, what: str) -> None:
    """Leave a "looked at exact data" record in a ledger."""
    Ledger(path).note(what)


def equivalent_epsilon(ledger: Ledger) -> float:
    """The ε that all comes to at the ledger's δ for whoever it cost most, for display."""
    return ledger.presence().lost().epsilon


def _is_period(entry: Entry) -> bool:
    return "period" in entry.record and "debit" not in entry.record


def _per(unit: str) -> str:
    return "per row" if unit == ROW else f'per person ("{unit}")'


def _down(value: float) -> str:
    return f"{max(0.0, value - 5e-7):.6f}".rstrip("0").rstrip(".")


def _up(value: float) -> str:
    return f"{value + 5e-7:.6f}".rstrip("0").rstrip(".")
