"""The certificate: every access to the data, what it cost, and the guarantee that follows.

It is made of public facts alone: no timings, no memory, no paths, no host, no hash of the input, no exact count.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hedgerow.accounting import Charge, Guarantee, covers, discovery_threshold, guarantee, whole
from hedgerow.budget import Amount, Budget, Currency
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.measurement import Measurement, Noise

FORMAT = "hedgerow certificate 1"
UNSAFE = "noise drawn from a given seed: anyone who knows the seed can take the noise away"


@dataclass(frozen=True)
class Certificate:
    """What was promised and what was done. `void` says why there is no guarantee, where there is none."""

    budget: Budget
    whole: Amount
    charges: tuple[Charge, ...]
    rows_per_person: int
    person: bool
    method: Mapping[str, Any]
    dataset: str | None = None
    ledger: Mapping[str, Any] | None = None
    void: str | None = None
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def spent(self) -> Amount:
        return sum((charge.amount for charge in self.charges), Amount(self.whole.currency, 0))

    @property
    def guarantee(self) -> Guarantee | None:
        """(ε, δ) as the charges give it, or None for a release that was voided."""
        return None if self.void else guarantee(self.spent, self.budget.delta)

    @property
    def unit(self) -> str:
        return "person" if self.person else "row"

    def statements(self) -> list[str]:
        """What the guarantee covers, in words."""
        if self.void:
            return [f"There is NO privacy guarantee: {self.void}."]
        said = [
            f"Adding or removing one {self.unit} changes the probability of any outcome by at most a factor "
            f"e^ε, up to δ: {self.guarantee}.",
            "The domain in the schema is asserted by the publisher not to depend on the private rows.",
        ]
        if self.person:
            said.append(
                f"A person counts with at most {self.rows_per_person} rows; further rows were left out before "
                "anything was counted, so people with many rows are under-represented."
            )
        if self.ledger is None:
            said.append("The guarantee speaks of this release alone: no ledger adds it up with other releases.")
        else:
            said.append(f'It is entry {self.ledger["entry"]} of the ledger of "{self.ledger["dataset"]}".')
        said.append("The noise comes from AES-256 in counter mode, so the guarantee is computational to that extent.")
        return [*said, *self.notes]

    def to_json(self) -> dict[str, Any]:
        given = self.guarantee
        return {
            "format": FORMAT,
            "dataset": self.dataset,
            "unit": self.unit,
            "adjacency": f"add or remove one {self.unit}",
            "rows_per_person": self.rows_per_person,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "guarantee": given and {"epsilon": given.epsilon, "delta": given.delta, "mu": given.mu},
            "void": self.void,
            "currency": self.whole.currency.value,
            "whole": _amount_to_json(self.whole),
            "spent": _amount_to_json(self.spent),
            "ledger": self.ledger and dict(self.ledger),
            "method": dict(self.method),
            "statements": self.statements(),
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "charges": [_charge_to_json(charge) for charge in self.charges],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """Read a certificate. What can be recomputed is recomputed by `verify`, not believed."""
        if data.get("format") != FORMAT:
            raise ReleaseError(f'this certificate is not of the format "{FORMAT}".')
        currency = Currency(data["currency"])
        return cls(
            budget=Budget(float(data["budget"]["epsilon"]), float(data["budget"]["delta"])),
            whole=_amount_from_json(currency, data["whole"]),
            charges=tuple(_charge_from_json(currency, charge) for charge in data["charges"]),
            rows_per_person=int(data["rows_per_person"]),
            person=data["unit"] == "person",
            method=data["method"],
            dataset=data["dataset"],
            ledger=data["ledger"],
            void=data["void"],
            notes=tuple(data["notes"]),
            versions=data["versions"],
        )


def versions() -> dict[str, str]:
    import numpy
    import pyarrow
    import scipy

    from hedgerow import __version__

    return {
        "hedgerow": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "pyarrow": pyarrow.__version__,
    }


# ---------------------------------------------------------------- verification


def check(stated: Mapping[str, Any], measurements: Sequence[Sequence[Measurement]]) -> list[str]:
    """Recompute everything that a certificate states; returns what was confirmed, raises ReleaseError otherwise.

    `measurements` are the noisy answers of each charge, in order: their noise must be the noise that was charged.
    """
    try:
        certificate = Certificate.from_json(stated)
        _check_charges(certificate)
        _check_totals(certificate, stated)
        _check_measurements(certificate, measurements)
    except ReleaseError:
        raise
    except (HedgerowError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
        raise ReleaseError(f"the certificate cannot be read or recomputed ({type(problem).__name__}).") from None
    count = len(certificate.charges)
    confirmed = [
        f"{count} {'charge' if count == 1 else 'charges'}: sensitivity, noise and cost agree",
        f"their sum is within the budget of (ε = {certificate.budget.epsilon:g}, δ = {certificate.budget.delta:g})",
        f"{sum(map(len, measurements))} noisy answers carry the noise that was paid for",
    ]
    if certificate.guarantee:
        confirmed.append(f"the guarantee follows from the charges: {certificate.guarantee}")
    else:
        confirmed.append(f"NO GUARANTEE: {certificate.void}")
    return confirmed


def _check_charges(certificate: Certificate) -> None:
    for number, charge in enumerate(certificate.charges, start=1):
        where = f"charge {number} ({charge.purpose})"
        if charge.rows_per_person != certificate.rows_per_person:
            raise ReleaseError(f"{where} bounds a person's rows differently from the certificate.")
        if not (math.isfinite(charge.scale) and charge.scale > 0 and charge.extra >= 0):
            raise ReleaseError(f"{where} states an impossible noise.")
        if not charge.weights or not all(math.isfinite(weight) and weight > 0 for weight in charge.weights):
            raise ReleaseError(f"{where} states impossible weights.")
        if charge.purpose == "measure" and len(charge.weights) != len(charge.queries):
            raise ReleaseError(f"{where} lists {len(charge.queries)} queries but {len(charge.weights)} weights.")
        if not charge.cost() <= charge.amount:
            raise ReleaseError(f"{where} costs more than it states.")
        if charge.mechanism == "discovery":
            least = discovery_threshold(charge.scale, charge.amount, charge.rows_per_person)
            if any(query["threshold"] < least for query in charge.queries) or not charge.queries:
                raise ReleaseError(f"{where} keeps values that its δ does not pay for.")


def _check_totals(certificate: Certificate, stated: Mapping[str, Any]) -> None:
    budget, spent = certificate.budget, certificate.spent
    if certificate.whole.currency is not budget.currency:
        raise ReleaseError("the certificate's currency does not fit its budget.")
    if not spent <= certificate.whole or not certificate.whole <= whole(budget, certificate.whole.exact_delta):
        raise ReleaseError("the charges add up to more than the budget.")
    if not covers(budget, spent):
        raise ReleaseError("the charges add up to more than (ε, δ) allows.")
    # everything else that the certificate says follows from its parts, so it must say just that
    for key, value in certificate.to_json().items():
        if stated.get(key) != value:
            raise ReleaseError(f'the certificate\'s "{key}" does not follow from its charges.')


def _check_measurements(certificate: Certificate, measurements: Sequence[Sequence[Measurement]]) -> None:
    if len(measurements) != len(certificate.charges):
        raise ReleaseError("the release holds answers that the certificate does not list, or lacks some.")
    for number, (charge, answers) in enumerate(zip(certificate.charges, measurements, strict=True), start=1):
        if charge.purpose != "measure":
            continue
        if [answer.query.description for answer in answers] != list(charge.queries):
            raise ReleaseError(f"charge {number} does not describe the queries that were answered.")
        for answer, weight in zip(answers, charge.weights, strict=True):
            paid = Noise(answer.noise.kind, charge.scale / weight)
            if answer.noise.kind != charge.mechanism or not math.isclose(answer.noise.scale, paid.scale, rel_tol=1e-12):
                raise ReleaseError(f"charge {number} paid for other noise than its answers carry.")


def second_opinion(certificate: Certificate) -> float:
    """ε by dp-accounting's privacy loss distributions, an independent accountant, at the certificate's δ.

    It knows Gaussian and Laplace noise; an exponential mechanism is handed over as the Gaussian that dominates it.
    """
    from dp_accounting import DpEvent, GaussianDpEvent, LaplaceDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    for charge in certificate.charges:
        event: DpEvent
        if charge.mechanism in ("gaussian", "discovery"):
            event = GaussianDpEvent(charge.scale / charge.sensitivity)
        elif charge.mechanism == "laplace":
            event = LaplaceDpEvent(charge.scale / charge.sensitivity)
        else:
            event = GaussianDpEvent(1 / math.sqrt(float(charge.cost().exact)))
        accountant.compose(event)
    # its distributions are cut at a small mass, so pure ε is asked for at a δ that is next to nothing
    delta = certificate.budget.delta - certificate.spent.delta
    return float(accountant.get_epsilon(delta if delta > 0 else 1e-12))


# ---------------------------------------------------------------- plain values


def _amount_to_json(amount: Amount) -> dict[str, Any]:
    """Units as text, because they exceed what other readers of JSON hold exactly; the value for people."""
    return {"units": str(amount.units), "delta_units": str(amount.delta_units), "value": amount.value}


def _amount_from_json(currency: Currency, data: Mapping[str, Any]) -> Amount:
    return Amount(currency, int(data["units"]), int(data["delta_units"]))


def _charge_to_json(charge: Charge) -> dict[str, Any]:
    return {
        "purpose": charge.purpose,
        "mechanism": charge.mechanism,
        "rows_per_person": charge.rows_per_person,
        "sensitivity": charge.sensitivity,
        "scale": charge.scale,
        "extra": charge.extra,
        "amount": _amount_to_json(charge.amount),
        "weights": list(charge.weights),
        "queries": [dict(query) for query in charge.queries],
    }


def _charge_from_json(currency: Currency, data: Mapping[str, Any]) -> Charge:
    return Charge(
        mechanism=data["mechanism"],
        purpose=data["purpose"],
        rows_per_person=int(data["rows_per_person"]),
        weights=tuple(float(weight) for weight in data["weights"]),
        scale=float(data["scale"]),
        amount=_amount_from_json(currency, data["amount"]),
        queries=tuple(data["queries"]),
        extra=float(data["extra"]),
    )


def share_of_whole(charge: Charge, whole_amount: Amount) -> float:
    """The part of the budget that a charge took, for display."""
    return float(Fraction(charge.amount.units, whole_amount.units))
