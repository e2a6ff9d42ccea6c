"""One question put to the private rows: check, charge, count, add noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.answers.figure import ASKED, Asked, Figure
from hedgerow.budget.accounting import guarantee, whole
from hedgerow.budget.amounts import Budget
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import OptionError, standing, unread
from hedgerow.private.account import Account
from hedgerow.private.engines import open_engine
from hedgerow.private.ledger import ROW, Ledger
from hedgerow.private.mechanisms import Mechanisms, Randomizer
from hedgerow.private.sources.source import described
from hedgerow.private.vault import Vault
from hedgerow.progress import Limits
from hedgerow.release.certificate import UNSAFE, Certificate, versions
from hedgerow.release.confirmation import Confirmation, asked

if TYPE_CHECKING:
    from hedgerow.private.engines.engine import Engine
    from hedgerow.release.bundle import Release
    from hedgerow.schema import Schema

METHOD: Mapping[str, Any] = {
    "name": "confirm",
    "title": "One question to the private rows",
    "options": {},
    "argument": (
        "A row adds a bounded whole number to each sum, a person at most θ rows; Gaussian noise (Laplace for δ = 0) is "
        "scaled to the largest change of all sums together. Quotients and intervals are post-processing."
    ),
    "paper": "Dwork, McSherry, Nissim, Smith: Calibrating noise to sensitivity in private data analysis, TCC 2006",
    "departures": [],
}


def confirm(
    release: Release,
    question: str,
    table: Any,
    budget: Budget,
    *,
    ledger: str | Path | None = None,
    period: str | None = None,
    file: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
) -> Confirmation:
    """Ask the private table itself what a release can only assume: one COUNT, SHARE, SUM or AVG, with WHERE.

    The answer is noisy and costs `budget`, which adds to what the release cost; a ledger is debited before anything is
    counted, and stays debited whatever happens afterwards. The schema is the release's own: it says who a person is,
    how many rows of one count, and what bounds numbers have. What has no bound is refused before anything is read, and
    so is a release without a guarantee: what it found stands in its schema, which the answer is published with.
    """
    schema = release.schema.with_file(file or {})
    with unread():
        if release.certificate.void:
            raise OptionError(
                "confirm-without-guarantee",
                f"the release has no guarantee ({release.certificate.void}), and its schema may hold what it found: an "
                "answer with a certificate would publish that too. Hint: ask with a release that was paid for.",
            )
        if schema.linked is not None:
            raise OptionError(
                "not-of-linked-tables",
                "private rows of linked tables cannot be asked yet. Hint: the release itself answers questions.",
            )
        confirming = Confirming(schema, Figure.of(question, schema), budget)
        books = None if ledger is None else Ledger(ledger, period)
        if books is not None:
            books.check(schema.dataset, budget, schema.person or ROW)
        engine = open_engine(table, schema.written, memory=(limits or Limits()).memory)
        schema.check_header(engine.header(), described(table))
        return confirming.confirmation(engine, Mechanisms(), books)


@dataclass(frozen=True)
class Confirming:
    """Everything public about one question."""

    schema: Schema
    figure: Figure
    budget: Budget

    def confirmation(self, engine: Engine, mechanisms: Randomizer, ledger: Ledger | None = None) -> Confirmation:
        """Charge, count and draw."""
        schema, amount = self.schema, whole(self.budget)
        guarantee(amount, self.budget.delta)  # a budget that cannot be stated is refused before it is spent
        named: dict[str, Any] = {}

        def open_books() -> None:
            if ledger is not None:
                entry = ledger.debit(self.budget, amount, METHOD["name"], schema.person or ROW)
                named.update(dataset=ledger.dataset, hash=entry.digest)

        account = Account(amount, open_books)
        encoding = Asked(schema, self.figure)
        with standing(account.standing):
            engine.prepare(encoding)  # a table that cannot be read shows before it is paid for
            vault = Vault(
                engine, encoding.domain, encoding.rows_per_person, account, mechanisms, np.random.default_rng(0)
            )
            query = MarginalQuery(encoding.domain, (ASKED,))
            sums = vault.confirm(query, self.figure.sums, asked(self.figure), spend=amount)
        certificate = Certificate(
            budget=self.budget,
            whole=amount,
            charges=tuple(account.charges),
            rows_per_person=encoding.rows_per_person,
            person=encoding.person is not None,
            method=METHOD,
            dataset=schema.dataset,
            discovered=tuple(schema.discovered),
            ledger=named or None,
            void=None if mechanisms.guaranteed else UNSAFE,
            versions=versions(),
        )
        return Confirmation(schema, self.figure.question.text, sums, certificate)
