"""What a ledger comes to, in numbers that can be followed by hand: for its keeper, for readers, for auditors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from hedgerow.budget.accounting import gdp_cost_of_pure, whole
from hedgerow.budget.amounts import Amount, Budget, Currency
from hedgerow.budget.presence import Presence, group_guarantee, stated
from hedgerow.errors import counted
from hedgerow.private.books import Entry
from hedgerow.private.ledger import Ledger

PRESENT = (1, 2, 5, 10)
"""Numbers of periods that somebody may be in, which are told beside all of them."""
HOUSEHOLDS = (2, 3, 4)
EXPORTED = (
    "record",
    "time",
    "what",
    "period",
    "unit",
    "epsilon",
    "delta",
    "units",
    "delta_units",
    "sum_of_units",
    "hash",
)
"""Units are 2⁻⁸⁰ of μ² (or of ε, where δ = 0), those of δ 2⁻¹⁶⁰: whole numbers, so that sums are exact."""
WHY = (
    "why parts are added and not ε: an ε at a δ stands for an amount of noise. Independent noise adds up in squares, "
    "as the sides of a right angle do, so the amounts are added, and their sum is read as an ε again."
)


def statement(ledger: Ledger, digest: str | None = None) -> dict[str, Any]:
    """What may be published of a ledger, as plain values; `digest` names the record of the release in question."""
    presence = ledger.presence()
    entries = ledger.entries()
    runs = [entry for entry in entries if "debit" in entry.record and entry.record["method"] != "look"]
    lifetime = ledger.lifetime
    return {
        "dataset": ledger.dataset,
        "epsilon": None if lifetime is None else lifetime.epsilon,
        "delta": ledger.delta,
        "spent": presence.lost().epsilon,
        "spent_delta": presence.lost().delta,
        "releases": len(runs),
        "period": next((entry.record.get("period") for entry in runs if entry.digest == digest), None),
        "periods": [
            {"name": each.name, "epsilon": each.budget.epsilon, "delta": each.budget.delta, "disjoint": each.disjoint}
            for each in presence.periods
        ],
        "presence": [
            {
                "present": present,
                "opened": present <= presence.most,
                "spent": [presence.lost(present).epsilon, presence.lost(present).delta],
                "caps": list(presence.caps(present)),
            }
            for present in _present(presence)
        ],
        "replaced": sum("replaced" in entry.record for entry in entries),
    }


def _present(presence: Presence) -> list[int]:
    """How many periods somebody may be in, as far as it is worth telling."""
    return sorted({*PRESENT, presence.most}) if presence.periods else []


def explained(ledger: Ledger) -> Iterator[str]:
    """Why releases fit, what periods come to, for persons and for households."""
    presence, lifetime = ledger.presence(), ledger.lifetime
    if lifetime is not None and any(each.disjoint for each in presence.periods):
        part = 100 * presence.worst().units / whole(lifetime).units
        yield f"the lifetime: {_said(lifetime.epsilon, lifetime.delta)}; whoever lost most used {part:.2f} % of it"
    elif lifetime is not None:
        yield from _fitting(ledger, lifetime, [e for e in ledger.entries() if "debit" in e.record], "the lifetime")
    for period in presence.periods:
        held = [
            entry for entry in ledger.entries() if "debit" in entry.record and entry.record.get("period") == period.name
        ]
        yield from _fitting(ledger, period.budget, held, f'the period "{period.name}"')
    if ledger.currency is Currency.GDP:
        yield WHY
    yield from _periods(presence)
    if lifetime is not None and presence.periods:
        yield f"and over all periods never more than {_said(lifetime.epsilon, lifetime.delta)}, by the lifetime's cap"
    for size in HOUSEHOLDS:
        given = group_guarantee(presence.worst(), ledger.delta, size)
        yield f"a household of {size} persons who are in everything: {_said(given.epsilon, given.delta)}"
    yield from _corrections(ledger.entries())


def _fitting(ledger: Ledger, cap: Budget, entries: Sequence[Entry], what: str) -> Iterator[str]:
    """Each debit as a part of what a cap allows: parts add up, ε does not."""
    if not entries:
        yield f"{what}: ε = {cap.epsilon:g} at δ = {cap.delta:g}; nothing was debited yet"
        return
    amounts = [ledger.debited(entry) for entry in entries]
    total = sum(amounts, Amount(ledger.currency, 0))
    allowed = whole(cap, min(total.exact_delta, Fraction(cap.delta) / 2) if total.delta_units else 0)
    parts = [100 * amount.units / allowed.units for amount in amounts]
    yield f"{what}: ε = {cap.epsilon:g} at δ = {cap.delta:g} allows {ledger.currency.value} = {allowed.value:.6g}"
    for entry, amount, part in zip(entries, amounts, parts, strict=True):
        record = entry.record
        yield (
            f"  record {entry.number:3}: ε = {record['epsilon']:<9.6g} at δ = {record['delta']:<7g} is "
            f"{ledger.currency.value} = {amount.value:.6g}, {part:.2f} % of that"
        )
    simply = sum(entry.record["epsilon"] for entry in entries)
    given = stated(total, cap.delta)
    said = _said(given.epsilon, given.delta)
    yield f"  together {sum(parts):.2f} %: {said} (ε by itself would add up to {simply:.6g})"


def _periods(presence: Presence) -> Iterator[str]:
    if not presence.periods:
        return
    for attribute in sorted({each.disjoint for each in presence.periods} - {""}):
        names = ", ".join(each.name for each in presence.periods if each.disjoint == attribute)
        yield f'the publisher asserts: nobody is in two of the periods {names}, by the public attribute "{attribute}"'
    yield "a cap protects a person in one period; somebody who is in several has lost more:"
    for present in _present(presence):
        lost, caps = presence.lost(present), presence.caps(present)
        who = f"all {present} that one can be in" if present == presence.most else f"{present}"
        more = "" if present <= presence.most else ", if further ones are opened like the last"
        so_far = f"{_said(lost.epsilon, lost.delta)} so far" if present <= presence.most else "as all so far"
        yield f"  in {who}: {so_far}; at most {_said(*caps)} by the caps{more}"


def _corrections(entries: Sequence[Entry]) -> Iterator[str]:
    numbers = {entry.digest: entry for entry in entries}
    for entry in entries:
        if "replaced" in entry.record:
            old, new = numbers[entry.record["replaced"]], numbers[entry.record["by"]]
            yield (
                f"record {new.number} (ε = {new.record['epsilon']:.6g}) corrects record {old.number} "
                f"(ε = {old.record['epsilon']:.6g}): {entry.record['why']} Both stay spent."
            )


def together(ledgers: Sequence[Ledger]) -> str:
    """Several ledgers about overlapping people: what it comes to for somebody who is in all of everything."""
    delta = sum(ledger.delta for ledger in ledgers)
    pure = all(ledger.currency is Currency.PURE for ledger in ledgers)
    kind = Currency.PURE if pure else Currency.GDP
    total = sum((_as(kind, ledger.presence().worst()) for ledger in ledgers), Amount(kind, 0))
    given = stated(total, delta)
    said = _said(given.epsilon, given.delta)
    return f"{counted(len(ledgers), 'ledger')} together, for somebody who is in all of them: {said}"


def _as(kind: Currency, amount: Amount) -> Amount:
    if amount.currency is kind:
        return amount
    return Amount.of(kind, Fraction(gdp_cost_of_pure(stated(amount, 0.0).epsilon)) if amount else Fraction(0))


def exported(ledger: Ledger) -> Iterator[list[str]]:
    """Every record as a row, with exact amounts and their running sum, for whoever checks the arithmetic."""
    units = 0
    for entry in ledger.entries():
        record = entry.record
        row = dict.fromkeys(EXPORTED, "") | {"record": str(entry.number), "time": record.get("time", "")}
        row |= {key: str(record[key]) for key in ("period", "unit", "epsilon", "delta") if key in record}
        row |= {"what": told(entry), "hash": entry.digest}
        if "debit" in record:
            amount = ledger.debited(entry)
            units += amount.units
            row |= {"units": str(amount.units), "delta_units": str(amount.delta_units), "sum_of_units": str(units)}
        yield [row[key] for key in EXPORTED]


def told(entry: Entry) -> str:
    record = entry.record
    if entry.number == 0:
        return f"ledger of {record['dataset']}"
    if "debit" in record:
        return record["method"] if record["method"] == "look" else f"release by {record['method']}"
    if "looked" in record:
        return f"looked at exact data: {record['looked']}"
    if "replaced" in record:
        return f"{record['by']} replaces {record['replaced']}: {record['why']}"
    return "period opened" + (f", disjoint by {record['disjoint']}" if record["disjoint"] else "")


def _said(epsilon: float, delta: float) -> str:
    return f"ε = {epsilon:.6g} at δ = {delta:.3g}"
