"""The certificate: every access to the data, what it cost, and the guarantee that follows.

It is made of public facts alone: no timings, no memory, no paths, no host, no hash of the input, no exact count.
"""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hedgerow.budget.accounting import (
    STEPS_PER_SENSITIVITY,
    Charge,
    Guarantee,
    covers,
    discovery_threshold,
    gdp_cost_of_exponential,
    guarantee,
    whole,
)
from hedgerow.budget.amounts import Amount, Budget, Currency
from hedgerow.coded.measurement import Answer, Measurement
from hedgerow.curator import PRINTED
from hedgerow.errors import HedgerowError, ReleaseError, counted
from hedgerow.markup import joined, listed, tag
from hedgerow.release import editions
from hedgerow.schema.fits import looked_at
from hedgerow.schema.subgroups import subgroup_queries

if TYPE_CHECKING:
    from hedgerow.schema import Schema

FORMAT = "hedgerow certificate 2"
UNSAFE = "noise drawn from a given seed: anyone who knows the seed can take the noise away"
REHEARSAL = "a rehearsal on made-up rows"
ENDED_EARLY = "The method was told that its time was up (--max-time) and did less than it otherwise would."
PUBLIC = "A public table was used; the publisher asserts that it does not depend on the private rows."
RULES = (
    "Every row obeys the rules of the schema, which the publisher asserts not to depend on the private rows. Private "
    "rows that break one are recoded, each by itself, and count like any other."
)
OPINION = 1e-3
"""By what part another accountant's ε may exceed ours: it rounds losses up."""
MOST_POINTS = 1 << 25
"""Of the grid that it rounds to."""
ACCESSES = {
    ("look", "gaussian"),
    ("look", "laplace"),
    ("measure", "gaussian"),
    ("measure", "laplace"),
    ("select", "exponential"),
    ("score", "gaussian"),
    ("score", "laplace"),
    ("discover", "discovery"),
    ("quality", "gaussian"),
    ("quality", "laplace"),
    ("confirm", "gaussian"),
    ("confirm", "laplace"),
}
"""What an access may be for, and by which mechanism."""
_LEDGER = {FORMAT: ("dataset", "hash"), editions.FIRST: ("dataset", "entry", "hash")}
"""How each edition names its record in the ledger. A number would tell how many releases there are."""


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
    discovered: tuple[str, ...] = ()
    ledger: Mapping[str, Any] | None = None
    void: str | None = None
    notes: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()
    """What is published beside the guarantee: the publisher's word, or properties of all rows together."""
    versions: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, int] | None = None
    """The rows and the seed of the draw whose distances from the private table were measured."""
    prior: Mapping[str, Any] | None = None
    """The earlier release that the run started from: the digest of its file and what it guarantees."""
    tables: tuple[str, ...] = ()
    """Linked tables, the root first; a unit is then a key of the root and all that hangs on it."""
    format: str = FORMAT

    @property
    def spent(self) -> Amount:
        """What the charges add up to: a fact about the run, not its guarantee."""
        return sum((charge.amount for charge in self.charges), Amount(self.whole.currency, 0))

    @property
    def guarantee(self) -> Guarantee | None:
        """(ε, δ) of the whole amount that the run was given, or None for a release that was voided.

        How much of it was spent may depend on the answers, and a filter bounds nothing but the whole. Where ε was
        spent directly, so may what was exchanged for μ²: then it is the budget itself.
        """
        if self.void:
            return None
        if self.whole.is_direct:
            return Guarantee(self.budget.epsilon, self.budget.delta, None)
        return guarantee(self.whole, self.budget.delta)

    @property
    def unit(self) -> str:
        return "unit" if self.tables else "person" if self.person else "row"

    def statements(self) -> list[str]:
        """What the guarantee covers, in words."""
        if self.void:
            return [f"There is NO privacy guarantee: {self.void}."]
        bought = f" (except that of {', '.join(self.discovered)}, which was discovered)" if self.discovered else ""
        said = [
            f"Adding or removing one {self.unit} changes the probability of any outcome by at most a factor "
            f"e^ε, up to δ: {self.guarantee}.",
            f"The domain in the schema{bought} is asserted by the publisher not to depend on the private rows.",
        ]
        if self.tables:
            root, *others = self.tables
            said.append(
                f"A unit is a key of {root}: the row of {root} that has it, and all rows of {', '.join(others)} that "
                "link to it, directly or through others. Rows beyond the bounds of the schema, further rows with the "
                "same key, and those that link to nothing were left out before anything was counted. In every question "
                f"the rows of one unit weigh {self.rows_per_person:,} parts together, at most; that is what it moves."
            )
        elif self.person:
            said.append(
                f"A person counts with at most {counted(self.rows_per_person, 'row')}; further rows were left out "
                "before anything was counted, so people with many rows are under-represented. Rows that name no person "
                "were left out too."
            )
        if self.ledger is None:
            said.append("The guarantee speaks of this release alone: no ledger adds it up with other releases.")
        else:
            said.append(f'It is debited in the ledger of "{self.ledger["dataset"]}".')
        said.append("The noise comes from AES-256 in counter mode, so the guarantee is computational to that extent.")
        if self.whole.is_direct:
            rest = " and the rest of ε, with δ, in μ²" if self.whole.units else ""
            said.append(
                f"Laplace noise was paid for in ε ({float(self.whole.exact_epsilon):.6g} of it){rest}; the two add up."
            )
        if self.spent != self.whole:
            said.append(
                "Not all of the budget was spent. The guarantee is that of the whole: when to stop may depend on the "
                "answers, so nothing less can be promised."
            )
        if self.format == editions.FIRST:
            said.append(
                f"The certificate is of the first edition and states {editions.stated_in_first(self)}, that of what "
                "was spent; the guarantee above is the one that holds."
            )
        if self.prior is not None:
            said.append(
                f"The run started from an earlier release (sha256 {self.prior['sha256']}), which promises "
                f"ε = {self.prior['epsilon']:g}, δ = {self.prior['delta']:g}. People in both tables pay for both: this "
                "guarantee speaks of what was asked now, and a ledger adds the two up."
            )
        said += [f"Unprotected: {quantity}." for quantity in self.unprotected]
        return [*said, *self.notes, *self.budget.doubts()]

    def _repr_html_(self) -> str:
        """For notebooks: what holds, and every access with its noise and its part of the budget."""
        counts = Counter((each.purpose, each.mechanism) for each in self.charges)
        parts = dict.fromkeys(counts, 0.0)
        for each in self.charges:
            parts[each.purpose, each.mechanism] += share_of_whole(each, self)
        rows = [(*kind, f"{number:,}", f"{parts[kind]:.1%}") for kind, number in counts.items()]
        said = tag("ul", *(tag("li", each) for each in self.statements()))
        return joined(said, listed(("accesses for", "mechanism", "how many", "of the budget"), rows))

    def to_json(self) -> dict[str, Any]:
        given = self.guarantee
        said = {
            "format": FORMAT,
            "dataset": self.dataset,
            "discovered": list(self.discovered),
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
        if self.tables:
            said["tables"] = list(self.tables)
        if self.unprotected:
            said["unprotected"] = list(self.unprotected)
        if self.drawn is not None:
            said["drawn"] = dict(self.drawn)
        if self.prior is not None:
            said["prior"] = dict(self.prior)
        return said if self.format == FORMAT else editions.first(self, said)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """Read a certificate. What can be recomputed is recomputed by `verify`, not believed."""
        edition = data.get("format")
        if edition not in (FORMAT, editions.FIRST):
            raise ReleaseError(
                "certificate-format", f'this certificate is not of the format "{FORMAT}", nor of an older one.'
            )
        currency = Currency(data["currency"])
        return cls(
            budget=Budget(float(data["budget"]["epsilon"]), float(data["budget"]["delta"])),
            whole=_amount_from_json(currency, data["whole"]),
            charges=tuple(_charge_from_json(currency, charge) for charge in data["charges"]),
            rows_per_person=int(data["rows_per_person"]),
            person=data["unit"] in ("person", "unit"),
            tables=tuple(data.get("tables", ())),
            method=data["method"],
            dataset=data["dataset"],
            discovered=tuple(data["discovered"]),
            ledger=data["ledger"] and _ledger_from_json(data["ledger"], edition),
            void=data["void"],
            notes=tuple(data["notes"]),
            unprotected=tuple(data.get("unprotected", ())),
            versions=data["versions"],
            drawn=None if "drawn" not in data else {name: int(data["drawn"][name]) for name in ("rows", "seed")},
            prior=None if "prior" not in data else _prior_from_json(data["prior"]),
            format=edition,
        )


def _prior_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """A digest of 64 hexadecimal digits and two numbers."""
    digest = str(data["sha256"])
    if len(digest) != 64 or set(digest) - set("0123456789abcdef") or set(data) != {"sha256", "epsilon", "delta"}:
        raise ReleaseError("certificate-prior", "the certificate names no earlier release that it could have used.")
    promised = Budget(float(data["epsilon"]), float(data["delta"]))
    return {"sha256": digest, "epsilon": promised.epsilon, "delta": promised.delta}


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


def check(stated: Mapping[str, Any], answers: Sequence[Answer], schema: Schema) -> list[str]:
    """Recompute everything that a certificate states; returns what was confirmed, raises ReleaseError otherwise.

    `answers` are those of each charge, in order, and `schema` is the release's own: all three must tell one story. What
    cannot be checked from a release is whether it is the work of Hedgerow at all: a certificate is its publisher's
    statement, and a signature says whose.
    """
    with recomputing():
        certificate = recomputed(stated)
        _check_schema(certificate, schema)
        _check_answers(certificate, answers, schema)
    count = len(certificate.charges)
    confirmed = [
        f"{count} {'charge' if count == 1 else 'charges'}: sensitivity, noise and cost agree",
        f"their sum is within the budget of (ε = {certificate.budget.epsilon:g}, δ = {certificate.budget.delta:g})",
        f"{sum(len(answer.measurements) for answer in answers)} noisy answers state the noise that was paid for",
    ]
    if certificate.guarantee:
        confirmed.append(f"the guarantee is that of the whole budget: {certificate.guarantee}")
        if certificate.format == editions.FIRST:
            old = editions.stated_in_first(certificate)
            confirmed.append(f"the certificate, of the first edition, states {old} for what was spent: do not quote it")
    else:
        confirmed.append(f"NO GUARANTEE: {certificate.void}")
    return confirmed


@contextmanager
def recomputing() -> Iterator[None]:
    """What cannot be read or recomputed does not verify."""
    try:
        yield
    except ReleaseError:
        raise
    except (HedgerowError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
        raise ReleaseError(
            "certificate-unreadable", f"the certificate cannot be read or recomputed ({type(problem).__name__})."
        ) from None


def recomputed(stated: Mapping[str, Any]) -> Certificate:
    """The certificate, if all that it states follows from its charges and its budget."""
    certificate = Certificate.from_json(stated)
    _check_text(stated)
    _check_charges(certificate)
    _check_totals(certificate, stated)
    return certificate


def _check_text(value: Any) -> None:
    """Nothing in a certificate may draw on a reader's terminal."""
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        for item in value:
            _check_text(item)
    if isinstance(value, str) and not value.isprintable():
        raise ReleaseError("certificate-control-characters", "the certificate holds control characters.")


def _check_schema(certificate: Certificate, schema: Schema) -> None:
    said = (certificate.person, certificate.rows_per_person, certificate.dataset, list(certificate.discovered))
    linked = () if schema.linked is None else schema.linked.names
    asked = (schema.person is not None, schema.max_rows_per_person, schema.dataset, schema.discovered)
    if said != asked or certificate.tables != linked:
        raise ReleaseError(
            "certificate-and-schema",
            "the certificate and the schema differ on the unit, the dataset or what was discovered.",
        )
    if certificate.unprotected != schema.unprotected:
        raise ReleaseError(
            "certificate-unprotected", "the certificate does not name what the schema takes as given, or names more."
        )
    known = certificate.void in (None, UNSAFE, REHEARSAL, PRINTED) and set(certificate.notes) <= {
        ENDED_EARLY,
        editions.ENDED_EARLY,
        PUBLIC,
        RULES,
    }
    if (RULES in certificate.notes) != bool(schema.rules or schema.derive):
        raise ReleaseError(
            "certificate-and-schema", "the certificate and the schema differ on whether there are rules."
        )
    if not known:
        raise ReleaseError("certificate-strange-note", "the certificate holds a note that Hedgerow does not write.")


def _check_charges(certificate: Certificate) -> None:
    if not certificate.charges:
        raise ReleaseError(
            "certificate-without-charges",
            "the certificate lists no access to the data, so nothing in the release can come from them.",
        )
    for number, charge in enumerate(certificate.charges, start=1):
        where = f"charge {number} ({charge.purpose})"
        if charge.rows_per_person != certificate.rows_per_person:
            raise ReleaseError(
                "charge-other-bound", f"{where} bounds a person's rows differently from the certificate."
            )
        if (charge.purpose, charge.mechanism) not in ACCESSES:
            raise ReleaseError("charge-unknown-access", f"{where} is no kind of access that Hedgerow makes.")
        grid = charge.rows_per_person * max(charge.weights) / STEPS_PER_SENSITIVITY
        if charge.extra != (grid if charge.purpose in ("select", "score", "quality") else 0.0):
            raise ReleaseError("charge-other-rounding", f"{where} states another rounding than Hedgerow makes.")
        if charge.purpose in ("look", "measure", "quality", "confirm") and len(charge.weights) != len(charge.queries):
            raise ReleaseError(
                "charge-weights", f"{where} lists {len(charge.queries)} queries but {len(charge.weights)} weights."
            )
        if not charge.cost() <= charge.amount:
            raise ReleaseError("charge-understated", f"{where} costs more than it states.")
        if charge.mechanism == "discovery":
            _check_discovery(where, charge)
        if charge.purpose == "look" and number > 1:
            raise ReleaseError("charge-late-look", f"{where} is not the first access, as a look is.")
        if charge.purpose == "quality" and number < len(certificate.charges):
            raise ReleaseError("charge-early-quality", f"{where} is not the last access, as that of quality is.")
        if charge.purpose == "confirm" and len(certificate.charges) > 1:
            raise ReleaseError("charge-confirms-more", f"{where} is not the only access, as one that confirms is.")
    if (certificate.drawn is not None) != (certificate.charges[-1].purpose == "quality"):
        raise ReleaseError(
            "certificate-and-draw", "the certificate names a draw that was not measured, or measured one unnamed."
        )
    if certificate.ledger is not None and ("look" in certificate.ledger) != (certificate.charges[0].purpose == "look"):
        raise ReleaseError(
            "certificate-and-ledger",
            "the certificate names a look in the ledger that it does not list, or lists one unnamed.",
        )


def _check_discovery(where: str, charge: Charge) -> None:
    """One column is one query of weight 1: a person holds at most θ values of it, but θ more of any other."""
    if len(charge.queries) != 1 or charge.weights != (1.0,) or charge.queries[0].keys() != {"column", "threshold"}:
        raise ReleaseError("charge-discovery", f"{where} discovers other than one column for its price.")
    least = discovery_threshold(charge.scale, charge.amount, charge.rows_per_person)
    threshold = charge.queries[0]["threshold"]
    if type(threshold) is not int or threshold < least:
        raise ReleaseError("charge-discovery-delta", f"{where} keeps values that its δ does not pay for.")


def _check_totals(certificate: Certificate, stated: Mapping[str, Any]) -> None:
    budget, spent = certificate.budget, certificate.spent
    currency = certificate.whole.currency
    if (currency is Currency.PURE) != (budget.currency is Currency.PURE):
        raise ReleaseError("certificate-currency", "the certificate's currency does not fit its budget.")
    allowed = whole(budget, certificate.whole.exact_delta, currency, certificate.whole.exact_epsilon)
    if not spent <= certificate.whole or not certificate.whole <= allowed:
        raise ReleaseError("certificate-overspent", "the charges add up to more than the budget.")
    if not covers(budget, certificate.whole):
        raise ReleaseError("certificate-whole-amount", "the whole amount is more than (ε, δ) allows.")
    # everything else that the certificate says follows from its parts, so it must say just that
    follows = certificate.to_json()
    for key in follows.keys() | stated.keys():
        if key not in follows or key not in stated or stated[key] != follows[key]:
            raise ReleaseError(
                "certificate-not-recomputed",
                f'the certificate\'s "{key}" does not follow from its charges and its budget.',
            )


def _check_answers(certificate: Certificate, answers: Sequence[Answer], schema: Schema) -> None:
    if len(answers) != len(certificate.charges):
        raise ReleaseError(
            "answers-not-listed", "the release holds answers that the certificate does not list, or lacks some."
        )
    encoding = schema.encoding()
    sizes = {attribute.name: attribute.size for attribute in encoding.domain}
    from hedgerow.schema.endings import ENDING

    column_of = {f"{column}{ENDING}": column for column in certificate.discovered}
    column_of |= {name: column for column in encoding.columns for name in encoding.attributes_of(column)}
    within = {query.description["aggregation"]: query.description for _, query in subgroup_queries(schema, encoding)}
    now = looked_at(schema)
    links = set() if schema.linked is None else set(schema.linked.misfits)
    before = tuple(name for name in now if name not in links)  # looks once left out how tables hang together
    looks = [((), *((name,) for name in each)) for each in (now, before)]
    bought: set[str] = set()
    for number, (charge, answer) in enumerate(zip(certificate.charges, answers, strict=True), start=1):
        expected = {
            "look": (len(charge.queries), False, 0),
            "measure": (len(charge.queries), False, 0),
            "select": (0, True, 0),
            "score": (0, False, len(charge.weights)),
            "quality": (0, False, len(charge.weights)),
            "discover": (0, False, 0),
            "confirm": (0, False, len(charge.weights)),
        }
        if (len(answer.measurements), answer.chosen is not None, len(answer.scores)) != expected[charge.purpose]:
            raise ReleaseError("charge-other-answer", f"charge {number} ({charge.purpose}) does not fit its answer.")
        if charge.purpose == "look" and tuple(m.query.attributes for m in answer.measurements) not in looks:
            raise ReleaseError("charge-other-columns", "the look asks about other columns than the schema's.")
        if charge.purpose == "quality" and any(
            query not in (_of_now(query, sizes), within.get(query.get("aggregation"))) for query in charge.queries
        ):
            raise ReleaseError(
                "charge-undeclared-attributes",
                f"charge {number} asks about attributes that the schema does not declare.",
            )
        if charge.purpose == "discover":
            bought |= {query["column"] for query in charge.queries}
        for measurement, query, weight in zip(answer.measurements, charge.queries, charge.weights, strict=False):
            _check_measurement(number, charge, measurement, query, weight)
            if charge.purpose == "look":
                continue
            columns = {column_of.get(name, "") for name in measurement.query.sizes}
            if any(sizes.get(name) != size for name, size in measurement.query.sizes.items()):
                # before a column was discovered, it had other cells
                if not columns <= set(certificate.discovered):
                    raise ReleaseError(
                        "charge-undeclared-attributes",
                        f"charge {number} asks about attributes that the schema does not declare.",
                    )
                bought |= columns
            elif "aggregation" in query:  # as many cells as it has now may be chance
                bought |= columns & set(certificate.discovered)
    if bought != set(certificate.discovered):
        raise ReleaseError("discoveries-not-paid", "the columns that were discovered are not those that were paid for.")


def _of_now(query: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """How a plain marginal of these attributes is described in the schema's domain."""
    names = query["attributes"]
    return {"attributes": list(names), "cells": math.prod(sizes[name] for name in names)}


def _check_measurement(
    number: int, charge: Charge, measurement: Measurement, query: Mapping[str, Any], weight: float
) -> None:
    if measurement.query.description != query:
        raise ReleaseError("charge-other-queries", f"charge {number} does not describe the queries that were answered.")
    if measurement.values.dtype != "int64":
        raise ReleaseError("charge-answers-not-whole", f"charge {number} has answers that are not whole numbers.")
    reach = measurement.query.reach("l2" if charge.mechanism == "gaussian" else "l1")
    same = math.isclose(measurement.noise.scale, charge.scale * reach / weight, rel_tol=1e-12)
    if measurement.noise.kind != charge.mechanism or not same:
        raise ReleaseError("charge-other-noise", f"charge {number} paid for other noise than its answers state.")


def second_opinion(certificate: Certificate) -> float | None:
    """ε by dp-accounting's privacy loss distributions, an independent accountant, at the certificate's δ.

    It knows Gaussian and Laplace noise. An exponential mechanism is handed over as the Gaussian that dominates it, or,
    for pure ε, as the worst mechanism of its ε; what was not spent is handed over as one more Gaussian, or one more ε,
    because the guarantee is that of the whole. Losses are rounded to a grid, once a charge; it is so fine that all of
    that stays below `OPINION`. None where books were kept in ρ and a choice was made: that is less than what the
    Gaussian would cost, so the two cannot agree; and none where so fine a grid would not fit into memory.
    """
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    given = certificate.spent.currency
    pure = given is Currency.PURE
    if given is Currency.ZCDP and any(charge.mechanism == "exponential" for charge in certificate.charges):
        return None
    rounded_up = 2 * len(certificate.charges) + 3 if pure else 10  # Gaussian losses are rounded up and down
    grid = OPINION * certificate.budget.epsilon / rounded_up
    if _width_of_losses(certificate.whole) > MOST_POINTS * grid:
        return None
    composed = pld.identity(value_discretization_interval=grid)
    kinds = Counter((charge.mechanism, charge.scale, charge.sensitivity) for charge in certificate.charges)
    for (mechanism, scale, sensitivity), count in kinds.items():
        if mechanism in ("gaussian", "discovery"):
            loss = pld.from_gaussian_mechanism(scale / sensitivity, value_discretization_interval=grid)
        elif mechanism == "laplace":
            loss = pld.from_laplace_mechanism(scale / sensitivity, value_discretization_interval=grid)
        elif pure:
            worst = common.DifferentialPrivacyParameters(scale, 0.0)
            loss = pld.from_privacy_parameters(worst, value_discretization_interval=grid)
        else:
            dominating = 1 / math.sqrt(gdp_cost_of_exponential(scale))
            loss = pld.from_gaussian_mechanism(dominating, value_discretization_interval=grid)
        composed = composed.compose(loss.self_compose(count) if count > 1 else loss)
    direct = float(certificate.whole.exact_epsilon - certificate.spent.exact_epsilon)
    if direct > 0:
        worst = common.DifferentialPrivacyParameters(direct, 0.0)
        composed = composed.compose(pld.from_privacy_parameters(worst, value_discretization_interval=grid))
    rest = certificate.whole.value - certificate.spent.value
    if rest > 0 and pure:
        worst = common.DifferentialPrivacyParameters(rest, 0.0)
        composed = composed.compose(pld.from_privacy_parameters(worst, value_discretization_interval=grid))
    elif rest > 0:
        spread = 1 / math.sqrt(rest if given is Currency.GDP else 2 * rest)
        composed = composed.compose(pld.from_gaussian_mechanism(spread, value_discretization_interval=grid))
    # its distributions are cut at a small mass, so pure ε is asked for at a δ that is next to nothing
    delta = certificate.budget.delta - certificate.whole.delta
    return float(composed.get_epsilon_for_delta(delta if delta > 0 else 1e-12))


def _width_of_losses(spent: Amount) -> float:
    """From the least to the greatest privacy loss that is worth looking at."""
    if spent.currency is Currency.PURE:
        return 2 * spent.value
    squared = spent.value if spent.currency is Currency.GDP else 2 * spent.value
    return squared + 20 * math.sqrt(squared) + 2 * float(spent.exact_epsilon)


# ---------------------------------------------------------------- plain values


def _amount_to_json(amount: Amount) -> dict[str, Any]:
    """Units as text, because they exceed what other readers of JSON hold exactly; the value for people."""
    said = {"units": str(amount.units), "delta_units": str(amount.delta_units), "value": amount.value}
    return said | ({"epsilon_units": str(amount.epsilon_units)} if amount.is_direct else {})


def _amount_from_json(currency: Currency, data: Mapping[str, Any]) -> Amount:
    return Amount(currency, int(data["units"]), int(data["delta_units"]), int(data.get("epsilon_units", 0)))


def _ledger_from_json(data: Mapping[str, Any], edition: str) -> dict[str, Any]:
    """How the ledger's records of the run, and of its look where there was one, are named."""
    named = _LEDGER[edition] + (("look",) if edition == FORMAT and "look" in data else ())
    return {name: data[name] for name in named}


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


def share_of_whole(charge: Charge, certificate: Certificate) -> float:
    """The part of the budget that a charge took, for display; of ε where some of it was spent directly."""
    amount, whole_amount = charge.amount, certificate.whole
    direct = float(whole_amount.exact_epsilon) / certificate.budget.epsilon
    if amount.is_direct:
        return float(amount.exact_epsilon) / certificate.budget.epsilon
    return (1 - direct) * float(Fraction(amount.units, whole_amount.units))
