"""The lifetime ledger of a dataset: one append-only file that all releases of it share.

Each line is a JSON record that carries the SHA-256 of the line before it and its own, so a change to any of them shows.
A copy rolled back to an earlier state shows against the certificates that name their record (`hedgerow verify
--ledger`). Whoever can write the file can rewrite all of it: it guards against mistakes, not against its keeper.

A debit is written and forced to disk, under an exclusive lock, before the first count of its run; it is never taken
back, even if the run fails. Amounts add up exactly, as in the account of a run: the squared Gaussian-DP parameters of
all runs, and the δ that they spent directly, must stay within the (ε, δ) that the ledger was opened with. They must
speak of the same unit: guarantees per person and guarantees per row do not add up to anything.
"""

from __future__ import annotations

import fcntl
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

from hedgerow.budget.accounting import covers, gdp_cost_of_pure, gdp_epsilon, whole
from hedgerow.budget.amounts import LARGEST_EPSILON, UNITS, Amount, Budget, Currency
from hedgerow.errors import BudgetError, Fault, InputError, OptionError
from hedgerow.private.books import FORMAT, Books, Entry, line
from hedgerow.release.disk import exists, is_at, reason, write_through
from hedgerow.release.files import clear_unfinished, whole_file

ROW = ""
"""The unit of a table whose schema names no person."""


class Ledger:
    """An open ledger file. Reading takes no lock; every append locks, reads again, checks, writes and syncs."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        first = self._read().entries[0]
        self._header, self.identity = first.record, first.digest

    @classmethod
    def create(cls, path: str | Path, dataset: str, budget: Budget) -> Ledger:
        """Open a new ledger for a dataset with a budget for its lifetime. An existing file is never overwritten."""
        if not dataset.strip():
            raise OptionError(
                "missing-dataset",
                "a ledger needs the name of its dataset, as the schema declares it. Nothing was written.",
            )
        record = {
            "format": FORMAT,
            "dataset": dataset,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
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
    def budget(self) -> Budget:
        return Budget(self._header["epsilon"], self._header["delta"])

    def entries(self) -> list[Entry]:
        return self._read().entries

    def torn(self) -> list[str]:
        """What is to be said of lines that were cut short."""
        return [each.said for each in self._read().torn]

    def spent(self) -> Amount:
        """What all runs so far have been debited."""
        return self._spent(self._read())

    def statement(self) -> dict[str, Any]:
        """What may be published of it, as plain values: how many releases there were, and what they come to."""
        debits = [entry.record for entry in self.entries() if "debit" in entry.record]
        return {
            "dataset": self.dataset,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "spent": equivalent_epsilon(self),
            "releases": sum(record["method"] != "look" for record in debits),
        }

    def remaining_epsilon(self, delta: float) -> float:
        """The largest ε of one more release at this δ (0 where none fits), for display."""
        spent = self.spent()

        def fits(epsilon: float) -> bool:
            return covers(self.budget, spent + self._in_my_currency(whole(Budget(epsilon, delta))))

        low, high = 0.0, self.budget.epsilon
        while high < LARGEST_EPSILON and fits(high):
            low, high = high, min(LARGEST_EPSILON, 2 * high)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def check(self, dataset: str | None, budget: Budget, unit: str) -> None:
        """Refuse, before anything is read, a run that the ledger could not pay for."""
        if dataset is not None and dataset != self.dataset:
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
            }
            return self._append(descriptor, books, record)

    def note(self, what: str) -> Entry:
        """Record that exact data were looked at; costs nothing, but whoever reads the ledger should know."""
        with self._locked() as (descriptor, books):
            return self._append(descriptor, books, {"looked": what})

    # ------------------------------------------------------------ the file

    def _in_my_currency(self, amount: Amount) -> Amount:
        mine = self.budget.currency
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
        spent = self._spent(books, journal)
        if not covers(self.budget, spent + owed):
            left = self.remaining_epsilon(budget.delta)
            if left >= budget.epsilon:
                raise BudgetError(
                    "ledger-exhausted",
                    f'the release would spend δ = {owed.delta:.3g} directly, which the ledger of "{self.dataset}" does '
                    f"not have left of its δ = {self.budget.delta:g}.",
                )
            raise BudgetError(
                "ledger-exhausted",
                f'the release asks for ε = {budget.epsilon:g}; the ledger of "{self.dataset}" has '
                f"ε = {_down(left)} left at δ = {budget.delta:g} ({_up(budget.epsilon - left)} too little).",
            )

    def _spent(self, books: Books, resumed: str | None = None) -> Amount:
        """The sum of all debits; a line that was cut short counts unless the run whose it was is debited elsewhere."""
        kind = self.budget.currency
        debits = [entry.record for entry in books.entries if "debit" in entry.record]
        known = {record.get("journal") for record in debits} | {resumed}
        torn = [each for each in books.torn if each.journal is None or each.journal not in known]
        units = sum(int(record["debit"]["units"]) for record in debits) + sum(each.units for each in torn)
        direct = sum(int(record["debit"]["delta_units"]) for record in debits) + sum(each.delta_units for each in torn)
        return Amount(kind, units, direct)

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
            descriptor = os.open(self.path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
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
    """The ε that everything spent so far amounts to at the ledger's δ, for display."""
    spent = ledger.spent()
    if spent.currency is Currency.PURE:
        return spent.value
    left = ledger.budget.delta - spent.delta
    return gdp_epsilon(float(spent.exact) ** 0.5, left) if spent.units else 0.0


def _per(unit: str) -> str:
    return "per row" if unit == ROW else f'per person ("{unit}")'


def _down(value: float) -> str:
    return f"{max(0.0, value - 5e-7):.6f}".rstrip("0").rstrip(".")


def _up(value: float) -> str:
    return f"{value + 5e-7:.6f}".rstrip("0").rstrip(".")
