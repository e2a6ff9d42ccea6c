"""The lifetime ledger of a dataset: one append-only file that all releases of it share.

Each line is a JSON record that carries the SHA-256 of the line before it, so a change anywhere but in the last record
shows. The last record, and a copy rolled back to an earlier state, show against the certificates that name their
record (`hedgerow verify --ledger`). Whoever can write the file can rewrite all of it: it guards against mistakes, not
against its keeper.

A debit is written and forced to disk, under an exclusive lock, before the first count of its run; it is never taken
back, even if the run fails. Amounts add up exactly, as in the account of a run: the squared Gaussian-DP parameters of
all runs, and the δ that they spent directly, must stay within the (ε, δ) that the ledger was opened with. They must
speak of the same unit: guarantees per person and guarantees per row do not add up to anything.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from hedgerow.budget.accounting import covers, gdp_cost_of_pure, gdp_epsilon, whole
from hedgerow.budget.amounts import LARGEST_EPSILON, UNITS, Amount, Budget, Currency
from hedgerow.errors import BudgetError, OptionError

FORMAT = "hedgerow ledger 1"
MARK = b'"format": "hedgerow ledger'
"""Stands in the first line of every ledger, and in no other file of ours."""
ROW = ""
"""The unit of a table whose schema names no person."""


@dataclass(frozen=True)
class Entry:
    """A record of the ledger and the hash of its line."""

    number: int
    record: dict[str, Any]
    digest: str


class Ledger:
    """An open ledger file. Reading takes no lock; every append locks, reads again, checks, writes and syncs."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        first = self._read()[0]
        self._header, self.identity = first.record, first.digest

    @classmethod
    def create(cls, path: str | Path, dataset: str, budget: Budget) -> Ledger:
        """Open a new ledger for a dataset with a budget for its lifetime. An existing file is never overwritten."""
        if not dataset.strip():
            raise OptionError("a ledger needs the name of its dataset, as the schema declares it. Nothing was written.")
        record = {
            "format": FORMAT,
            "dataset": dataset,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "name": secrets.token_hex(16),  # so that no two ledgers are alike
        }
        line = _line(record, "")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise OptionError(f'"{path}" exists already. A ledger is never overwritten; nothing was changed.') from None
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise OptionError(f'the ledger "{path}" cannot be written ({reason}).') from None
        with os.fdopen(handle, "wb") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        return cls(path)

    @property
    def dataset(self) -> str:
        return str(self._header["dataset"])

    @property
    def budget(self) -> Budget:
        return Budget(self._header["epsilon"], self._header["delta"])

    def entries(self) -> list[Entry]:
        return self._read()

    def spent(self) -> Amount:
        """What all runs so far have been debited."""
        return self._spent(self._read())

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
                f'the ledger "{self.path}" belongs to the dataset "{self.dataset}", the schema declares "{dataset}".'
            )
        entries = self._read()
        self._refuse_other_unit(entries, unit)
        self._refuse_overspend(entries, budget, self._in_my_currency(whole(budget)))

    def debit(self, budget: Budget, amount: Amount, method: str, unit: str, journal: str | None = None) -> Entry:
        """Debit a whole run before it touches the data; returns the entry that the certificate names.

        A run whose journal was debited already, and which is being resumed, is not debited again.
        """
        owed = self._in_my_currency(amount)
        with self._locked() as (file, entries):
            for entry in entries:
                if journal is not None and entry.record.get("journal") == journal:
                    return entry
            self._refuse_other_unit(entries, unit)
            self._refuse_overspend(entries, budget, owed)
            record = {
                "debit": {"units": str(owed.units), "delta_units": str(owed.delta_units)},
                "epsilon": budget.epsilon,
                "delta": budget.delta,
                "method": method,
                "unit": unit,
                **({} if journal is None else {"journal": journal}),
            }
            return self._append(file, entries, record)

    def note(self, what: str) -> Entry:
        """Record that exact data were looked at; costs nothing, but whoever reads the ledger should know."""
        with self._locked() as (file, entries):
            return self._append(file, entries, {"looked": what})

    # ------------------------------------------------------------ the file

    def _in_my_currency(self, amount: Amount) -> Amount:
        mine = self.budget.currency
        if amount.currency is mine:
            return amount
        if mine is Currency.PURE:
            raise BudgetError(f'the ledger "{self.path}" allows pure ε only (its δ is 0). Hint: --delta 0.')
        epsilon = math.nextafter(amount.value, math.inf)
        return Amount(mine, math.ceil(Fraction(gdp_cost_of_pure(epsilon)) * UNITS))

    def _refuse_other_unit(self, entries: list[Entry], unit: str) -> None:
        before = {entry.record["unit"] for entry in entries if "debit" in entry.record} - {unit}
        if before:
            raise BudgetError(
                f'the releases of "{self.dataset}" so far are {_per(before.pop())}, this one would be {_per(unit)}: '
                "they do not add up. Hint: declare the same `person` in the schema."
            )

    def _refuse_overspend(self, entries: list[Entry], budget: Budget, owed: Amount) -> None:
        spent = self._spent(entries)
        if not covers(self.budget, spent + owed):
            left = self.remaining_epsilon(budget.delta)
            if left >= budget.epsilon:
                raise BudgetError(
                    f'the release would spend δ = {owed.delta:.3g} directly, which the ledger of "{self.dataset}" does '
                    f"not have left of its δ = {self.budget.delta:g}."
                )
            raise BudgetError(
                f'the release asks for ε = {budget.epsilon:g}; the ledger of "{self.dataset}" has '
                f"ε = {_down(left)} left at δ = {budget.delta:g} ({_up(budget.epsilon - left)} too little)."
            )

    def _spent(self, entries: list[Entry]) -> Amount:
        total = Amount(self.budget.currency, 0)
        for entry in entries:
            if "debit" in entry.record:
                debit = entry.record["debit"]
                total += Amount(total.currency, int(debit["units"]), int(debit["delta_units"]))
        return total

    @contextmanager
    def _locked(self) -> Iterator[tuple[Any, list[Entry]]]:
        try:
            with open(self.path, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file, self._parse(file.read())
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise BudgetError(f'the ledger "{self.path}" cannot be written ({reason}). Nothing was spent.') from None

    def _append(self, file: Any, entries: list[Entry], record: dict[str, Any]) -> Entry:
        record = record | {"time": datetime.now(UTC).isoformat(timespec="seconds")}
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 1))
        torn = file.read(1) != b"\n"
        line = _line(record, entries[-1].digest)
        # a torn line is closed so that it can never read as a record, even if only its newline was missing
        file.write((b"#torn\n" if torn else b"") + line)
        file.flush()
        os.fsync(file.fileno())
        return Entry(len(entries), record, hashlib.sha256(line).hexdigest())

    def _read(self) -> list[Entry]:
        try:
            data = self.path.read_bytes()
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise OptionError(
                f'the ledger "{self.path}" cannot be read ({reason}). Nothing was spent. '
                "Hint: hedgerow ledger create FILE --dataset NAME --epsilon E --delta D"
            ) from None
        return self._parse(data)

    def _parse(self, data: bytes) -> list[Entry]:
        """The chain of records. A line that a kill cut short was never synced, so nothing was drawn on it."""
        lines = data.splitlines(keepends=True)
        if not lines or MARK not in lines[0]:
            raise BudgetError(f'"{self.path}" is not a Hedgerow ledger. Nothing was written to it.')
        entries: list[Entry] = []
        for line in lines:
            try:
                record = json.loads(line) if line.endswith(b"\n") else None
            except ValueError:
                record = None
            if record is None and (line.endswith(b"#torn\n") or not line.endswith(b"\n")):
                continue
            if not isinstance(record, dict) or record.pop("after", None) != (entries[-1].digest if entries else ""):
                raise BudgetError(
                    f'the ledger "{self.path}" was altered: record {len(entries)} does not follow from the one '
                    "before it. Nothing was written to it."
                )
            entries.append(Entry(len(entries), record, hashlib.sha256(line).hexdigest()))
        if not entries or entries[0].record.get("format") != FORMAT:
            raise BudgetError(f'"{self.path}" is not a ledger that this version can read. Nothing was written to it.')
        return entries


def confirm_entry(path: str | Path, named: Mapping[str, Any] | None) -> str:
    """That a ledger still holds the record that a certificate names; BudgetError if it does not."""
    if named is None:
        raise BudgetError("the certificate names no ledger.")
    ledger = Ledger(path)
    if ledger.dataset != named["dataset"] or all(entry.digest != named["hash"] for entry in ledger.entries()):
        raise BudgetError(
            f'the ledger "{path}" lacks the record that the certificate names: it was altered or rolled back.'
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


def _line(record: dict[str, Any], after: str) -> bytes:
    return json.dumps({"after": after, **record}, ensure_ascii=False).encode() + b"\n"


def _down(value: float) -> str:
    return f"{max(0.0, value - 5e-7):.6f}".rstrip("0").rstrip(".")


def _up(value: float) -> str:
    return f"{value + 5e-7:.6f}".rstrip("0").rstrip(".")
