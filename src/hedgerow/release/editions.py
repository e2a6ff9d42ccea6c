"""Certificates and schemas as older versions wrote them. They stay readable, and are checked by what they said then.

The first edition stated the ε of what a run had *spent*. A run that may stop by its answers is not covered by that: the
filter that allows adaptive charges bounds the whole amount that a run was given, and nothing less (a bound on what was
spent so far is an odometer, which Gaussian DP does not have). So its charges are verified, and the guarantee that
is stated of it is that of the whole. It also gave the number of its record in the ledger, which tells how many releases
there were before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """The schema of a release. None has a column that waits to be cut: integers, days and moments had a cell for each
    value, and moments were in whole hours where no step is written.
    """
    from hedgerow.schema import Schema
    from hedgerow.schema.calendar import CalendarColumn
    from hedgerow.schema.numeric import Integer

    stepped = _with_moments(data, lambda declared: {"step": "hour", **declared})
    schema = Schema.from_dict(stepped)
    waiting = {name: schema.columns[name] for name, _ in schema.discoveries}
    kinds = (Integer, CalendarColumn)
    each = {name: column.with_a_cell_each() for name, column in waiting.items() if isinstance(column, kinds)}
    if each:
        declared = {name: getattr(schema, name) for name in Schema.model_fields}
        schema = Schema(**{**declared, "columns": {**schema.columns, **each}})
    schema._hours_unsaid = stepped != data
    return schema


def written(schema: Schema) -> Any:
    """A schema as its release has it: word for word."""
    data = schema.to_dict()
    if not schema._hours_unsaid:
        return data
    return _with_moments(data, lambda declared: {k: v for k, v in declared.items() if (k, v) != ("step", "hour")})


def _with_moments(data: Any, change: Callable[[Any], Any]) -> Any:
    columns = data.get("columns") if isinstance(data, Mapping) else None
    if not isinstance(columns, Mapping):
        return data
    moments = {
        name: change(declared)
        for name, declared in columns.items()
        if isinstance(declared, Mapping) and declared.get("type") == "datetime"
    }
    return {**data, "columns": {**columns, **moments}} if moments else data


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
