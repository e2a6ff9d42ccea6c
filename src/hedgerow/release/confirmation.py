"""A figure that the private rows themselves were asked for, once, with noise: the answer and its own certificate.

It stands beside a release and is not part of it: what it cost adds to what the release cost, in the ledger of both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.answers.asking import Answer, Answers, Row
from hedgerow.answers.figure import Figure
from hedgerow.budget.accounting import Charge
from hedgerow.coded.measurement import Noise
from hedgerow.errors import ReleaseError
from hedgerow.release.certificate import Certificate, recomputed, recomputing
from hedgerow.release.disk import reason
from hedgerow.release.files import whole_file
from hedgerow.schema import Schema

if TYPE_CHECKING:
    from os import PathLike

FORMAT = "hedgerow confirmation 1"
LARGEST = 1 << 26
"""Bytes that are read."""


@dataclass(frozen=True)
class Confirmation:
    """What was asked, the noisy sums that came, and what they cost."""

    schema: Schema
    question: str
    sums: tuple[int, ...]
    certificate: Certificate

    def answers(self, level: float = 0.9) -> Answers:
        """The figure with its interval, as `Release.ask` gives it; noise is all that it can be wrong by."""
        figure = Figure.of(self.question, self.schema)
        (charge,) = self.certificate.charges
        estimate, low, high = figure.estimate(self.sums, _noise(charge), level)
        row = Row({}, figure.name, estimate, low, high, "confirmed")
        return Answers([Answer(figure.question.text, (row,))])

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "question": self.question,
            "sums": list(self.sums),
            "schema": self.schema.to_dict(),
            "certificate": self.certificate.to_json(),
        }

    def save(self, path: str | PathLike[str], *, replace: bool = True) -> None:
        """Write it down, whole or not at all."""
        with whole_file(Path(path), replace=replace) as partial:
            partial.write_text(
                json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
            )


def read(path: Path) -> dict[str, Any]:
    """What a file holds; ReleaseError where that is no confirmation."""
    try:
        data = json.loads(path.read_bytes()[:LARGEST])
    except OSError as problem:
        raise ReleaseError("cannot-read", f'"{path}" cannot be read ({reason(problem)}).') from None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ReleaseError("not-a-confirmation", f'"{path}" is not an answer that hedgerow ask --confirm wrote.')
    return data


def verify(data: Mapping[str, Any]) -> tuple[Confirmation, list[str]]:
    """Recompute what a confirmation states; ReleaseError at the first thing that does not follow."""
    with recomputing():
        certificate = recomputed(data["certificate"])
        sums = tuple(data["sums"])
        found = Confirmation(Schema.from_dict(data["schema"]), str(data["question"]), sums, certificate)
        figure = Figure.of(found.question, found.schema)
        (charge,) = certificate.charges
        if charge.purpose != "confirm" or charge.weights != weights_of(figure) or charge.queries != asked(figure):
            raise ReleaseError("confirmation-other-charge", "the charge is not that of the question.")
        said = (certificate.person, certificate.rows_per_person, certificate.dataset)
        if said != (found.schema.person is not None, found.schema.max_rows_per_person, found.schema.dataset):
            raise ReleaseError(
                "certificate-and-schema", "the certificate and the schema differ on the unit or on the dataset."
            )
        if len(sums) != len(charge.weights) or not all(type(each) is int for each in sums):
            raise ReleaseError("confirmation-other-answer", "the answer does not fit the charge.")
    confirmed = [
        "one charge: sensitivity, noise and cost agree, and are those of the question",
        f"it is within the budget of (ε = {certificate.budget.epsilon:g}, δ = {certificate.budget.delta:g})",
    ]
    if certificate.void:
        return found, [*confirmed, f"NO GUARANTEE: {certificate.void}"]
    return found, [*confirmed, f"the guarantee is that of the whole budget: {certificate.guarantee}"]


def weights_of(figure: Figure) -> tuple[float, ...]:
    """By how many steps one row can move each sum."""
    return tuple(float(abs(values).max()) for values in figure.sums)


def asked(figure: Figure) -> tuple[dict[str, Any], ...]:
    """What the certificate says of each sum."""
    return tuple({"question": figure.question.text, "sum": number} for number in range(len(figure.sums)))


def _noise(charge: Charge) -> Noise:
    assert charge.mechanism in ("gaussian", "laplace")
    return Noise(charge.mechanism, charge.scale)
