"""Certificates as older versions wrote them. They stay readable, and are checked by what they said then.

The first edition stated the ε of what a run had *spent*. A run that may stop by its answers is not covered by that: the
filter that allows adaptive charges bounds the whole amount that a run was given, and nothing less (a bound on what was
spent so far is an odometer, which Gaussian DP does not have). So its charges are verified, and the guarantee that
is stated of it is that of the whole. It also gave the number of its record in the ledger, which tells how many releases
there were before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hedgerow.budget.accounting import Guarantee, guarantee

if TYPE_CHECKING:
    from hedgerow.release.certificate import Certificate
    from hedgerow.schema import Schema

FIRST = "hedgerow certificate 1"
ENDED_EARLY = "The method was told that its time was up (--max-time) and took fewer rounds than it otherwise would."


def stated_in_first(certificate: Certificate) -> Guarantee | None:
    """The guarantee that the first edition stated: that of what was spent."""
    return None if certificate.void else guarantee(certificate.spent, certificate.budget.delta)


def first(certificate: Certificate, now: dict[str, Any]) -> dict[str, Any]:
    """What the first edition said where it differed from `now`."""
    given = stated_in_first(certificate)
    return now | {
        "format": FIRST,
        "guarantee": given and {"epsilon": given.epsilon, "delta": given.delta, "mu": given.mu},
        "statements": _statements(certificate, given),
    }


def schema_of(data: Any) -> Schema:
    """The schema of a release. Integers that wait to be cut are in none: they had a cell for each value."""
    from hedgerow.schema import Schema
    from hedgerow.schema.numeric import Integer

    schema = Schema.from_dict(data)
    waiting = {name: schema.columns[name] for name, _ in schema.discoveries}
    each = {name: column.with_a_cell_each() for name, column in waiting.items() if isinstance(column, Integer)}
    if not each:
        return schema
    declared = {name: getattr(schema, name) for name in Schema.model_fields}
    return Schema(**{**declared, "columns": {**schema.columns, **each}})


def _statements(certificate: Certificate, given: Guarantee | None) -> list[str]:
    """Word for word."""
    if given is None:
        return [f"There is NO privacy guarantee: {certificate.void}."]
    discovered = ", ".join(certificate.discovered)
    bought = f" (except that of {discovered}, which was discovered)" if discovered else ""
    said = [
        f"Adding or removing one {certificate.unit} changes the probability of any outcome by at most a factor "
        f"e^ε, up to δ: {given}.",
        f"The domain in the schema{bought} is asserted by the publisher not to depend on the private rows.",
    ]
    if certificate.person:
        said.append(
            f"A person counts with at most {certificate.rows_per_person} rows; further rows were left out before "
            "anything was counted, so people with many rows are under-represented. Rows that name no person count "
            "together as one person."
        )
    if certificate.ledger is None:
        said.append("The guarantee speaks of this release alone: no ledger adds it up with other releases.")
    else:
        said.append(f'It is entry {certificate.ledger["entry"]} of the ledger of "{certificate.ledger["dataset"]}".')
    said.append("The noise comes from AES-256 in counter mode, so the guarantee is computational to that extent.")
    return [*said, *certificate.notes]
