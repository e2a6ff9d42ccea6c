"""The lines of a ledger: how a record is written down, and what is read back out of any file whatsoever.

A record is a line of JSON that begins with the hash of all that came since the record before it, and ends in its own.
So one flipped bit anywhere is refused, and so is a record that is unknown here, which might be a debit. What can happen
to an honest file is that its last line is cut short. Such a line is reported, kept, and closed by the next record; it
counts as spent if a debit can be read from it, although a debit is forced to disk before anything is drawn on it.

The first ledgers (`hedgerow ledger 1`) hold records without a hash of their own. They are read; from the first record
on that has one, all must, and through the chain it guards those before it as well. The second (`hedgerow ledger 2`) had
no periods, and a budget for the lifetime always.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

from hedgerow.budget.amounts import Budget
from hedgerow.errors import Fault, InputError

FORMAT = "hedgerow ledger 3"
FIRST, SECOND = "hedgerow ledger 1", "hedgerow ledger 2"
MARK = b'"format": "hedgerow ledger'
"""Stands in the first line of every ledger, and in no other file of ours."""
_TORN = b"#torn\n"
"""Closes a line that was cut short, so that it never reads as a record."""
_SEAL = re.compile(rb'(.*), "sha256": "([0-9a-f]{64})"\}\n', re.DOTALL)
_AFTER = re.compile(rb'\{"after": "([0-9a-f]{64})"')
_DEBIT = re.compile(
    rb'\{"after": "[0-9a-f]{64}"(?:, "journal": "([0-9a-f]{32})")?, '
    rb'"debit": \{"units": "([0-9]{1,99})", "delta_units": "([0-9]{1,99})"\}'
)


@dataclass(frozen=True)
class Entry:
    """A record of the ledger and the hash of its line."""

    number: int
    record: dict[str, Any]
    digest: str


@dataclass(frozen=True)
class Torn:
    """A line that was cut short, and what it was to debit as far as that can be read."""

    after: int
    units: int = 0
    delta_units: int = 0
    journal: str | None = None

    @classmethod
    def read(cls, data: bytes, after: int) -> Torn:
        found = _DEBIT.match(data)
        if found is None:
            return cls(after)
        journal, units, delta_units = found.groups()
        return cls(after, int(units), int(delta_units), None if journal is None else journal.decode())

    @property
    def said(self) -> str:
        counts = "the debit in it counts as spent" if self.units else "no debit can be read from it, so none is counted"
        return f"the line after record {self.after} was cut short; {counts}."


@dataclass
class Books:
    """All records of a ledger, and how the next one is joined on."""

    entries: list[Entry] = field(default_factory=list)
    torn: list[Torn] = field(default_factory=list)
    closing: bytes = b""
    """What is to be written before the next record, so that a line that was cut short is a line."""
    _last: bytes = b""
    _since: bytes = b""
    """The last record, and the lines that were cut short after it."""
    _sealed: bool = False
    _periods: set[str] = field(default_factory=set)

    @property
    def after(self) -> str:
        """What the next record names as the hash of what is before it."""
        return hashlib.sha256(self._last + self._since + self.closing).hexdigest() if self._last else ""

    @classmethod
    def parse(cls, data: bytes) -> Books:
        """Read a ledger; a Fault says what is wrong with it."""
        *lines, rest = data.split(b"\n")
        if MARK not in (lines or [rest])[0]:
            raise Fault("not-a-ledger", "is not a Hedgerow ledger.")
        books = cls()
        for each in lines:
            books._add(each + b"\n")
        if not books.entries:
            raise Fault("ledger-format", "is not a ledger that this version can read.")
        if rest:
            books._tear(rest)
            books._since, books.closing = books._since + rest, _TORN
        return books

    def _add(self, data: bytes) -> None:
        if data.endswith(_TORN) and self.entries:
            self._tear(data)
            self._since += data
            return
        number = len(self.entries)
        record = self._opened(data, number)
        self._check_chain(number, record.pop("after", None))
        _check_header(record) if number == 0 else _check(record, number)
        self._check_period(record, number)
        self._sealed = self._sealed or record.get("format") in (SECOND, FORMAT)
        self._last, self._since = data, b""
        self.entries.append(Entry(number, record, _digest(data)))

    def _check_period(self, record: dict[str, Any], number: int) -> None:
        """A period is opened once, and before anything is debited in it."""
        if "period" not in record:
            return
        if ("debit" in record) != (record["period"] in self._periods):
            raise _altered(number, "name a period in the order in which periods are opened and used")
        self._periods.add(record["period"])

    def _tear(self, data: bytes) -> None:
        found = _AFTER.match(data)
        if found is not None:
            self._check_chain(len(self.entries), found[1].decode())
        self.torn.append(Torn.read(data, len(self.entries) - 1))

    def _check_chain(self, number: int, after: Any) -> None:
        """The version before did not count lines that were cut short among what comes before a record."""
        if after != self.after and (self._sealed or after != _digest(self._last)):
            raise _altered(number, "follow from the one before it")

    def _opened(self, data: bytes, number: int) -> dict[str, Any]:
        """The record of a line, without its own hash, which must be right."""
        sealed = _SEAL.fullmatch(data)
        if sealed is not None:
            body, digest = sealed.groups()
            if hashlib.sha256(body).hexdigest() != digest.decode():
                raise _altered(number, "hold what was written")
            self._sealed, data = True, body + b"}"
        elif self._sealed:
            raise _altered(number, "end in its own hash")
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise _altered(number, "read as a record")
        return record


def line(record: dict[str, Any], after: str) -> bytes:
    """A record as it is written: after what it comes, what it says, its own hash."""
    body = json.dumps({"after": after, **record}, ensure_ascii=False).encode()[:-1]
    return body + f', "sha256": "{hashlib.sha256(body).hexdigest()}"}}\n'.encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""


def _altered(number: int, lacking: str) -> Fault:
    return Fault("ledger-altered", f"was altered: record {number} does not {lacking}.")


def _check_header(record: dict[str, Any]) -> None:
    if record.get("format") not in (FORMAT, SECOND, FIRST):
        raise Fault("ledger-format", "is not a ledger that this version can read.")
    if record.keys() != {"format", "dataset", "epsilon", "delta", "name"} or not _is_text(record, "dataset", "name"):
        raise _altered(0, "hold what a ledger begins with")
    if not _is_budget(record, lifetime=record["format"] != FORMAT):
        raise _altered(0, "hold a budget")


def _check(record: dict[str, Any], number: int) -> None:
    """Refuse a record that no version has written, and one that is unknown here: it might be a debit."""
    kind = record.keys() - ({"journal", "period"} if "debit" in record else set())
    if kind == {"looked", "time"}:
        good = _is_text(record, "looked", "time")
    elif kind == {"period", "epsilon", "delta", "disjoint", "time"}:
        good = _is_text(record, "period", "disjoint", "time") and _is_budget(record)
    elif kind == {"replaced", "by", "why", "time"}:
        good = _is_text(record, "replaced", "by", "why", "time")
    elif kind == {"debit", "epsilon", "delta", "method", "unit", "time"}:
        good = (
            _is_text(record, "method", "unit", "time", *record.keys() & {"journal", "period"})
            and _is_number(record["epsilon"])
            and _is_number(record["delta"])
            and isinstance(record["debit"], dict)
            and record["debit"].keys() == {"units", "delta_units"}
            and all(isinstance(held, str) and re.fullmatch("[0-9]{1,99}", held) for held in record["debit"].values())
        )
    else:
        raise Fault(
            "ledger-unknown-record",
            f"holds a record that this version does not know (record {number}), which might be a debit.",
        )
    if not good:
        raise _altered(number, "hold what a record of its kind holds")


def _is_text(record: dict[str, Any], *names: str) -> bool:
    return all(isinstance(record[name], str) for name in names)


def _is_budget(record: dict[str, Any], lifetime: bool = True) -> bool:
    """Whether it holds an ε and a δ; without a budget for the lifetime ε is left open."""
    if record["epsilon"] is None and not lifetime:
        return _is_number(record["delta"]) and 0 <= record["delta"] < 1
    try:
        Budget(record["epsilon"], record["delta"])
    except (InputError, TypeError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
