"""From a table to a release: declare → charge → count → add noise → model."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import __version__
from hedgerow.budget.accounting import guarantee, whole
from hedgerow.budget.amounts import Amount, Budget, Currency
from hedgerow.coded.measurement import Answer
from hedgerow.errors import HedgerowError, MisfitError, OptionError, standing
from hedgerow.methods import options, refuse_unreadable
from hedgerow.methods.method import Method
from hedgerow.private.account import Account
from hedgerow.private.discovery import Discoveries
from hedgerow.private.journal import Journal, Journaled
from hedgerow.private.ledger import ROW, Ledger
from hedgerow.private.look import look_share, refuse_misfits, take_a_look
from hedgerow.private.mechanisms import Mechanisms, Randomizer
from hedgerow.private.vault import Vault
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release
from hedgerow.release.certificate import ENDED_EARLY, PUBLIC, REHEARSAL, UNSAFE, Certificate, versions
from hedgerow.release.misfits import Misfits

if TYPE_CHECKING:
    from hedgerow.budget.accounting import Charge
    from hedgerow.coded.domain import CodedTable
    from hedgerow.private.engines.engine import Engine
    from hedgerow.schema import Encoding, Schema


@dataclass(frozen=True)
class Run:
    """Everything about a run that is public and fixed before it starts."""

    schema: Schema
    budget: Budget
    method: Method
    seed: int
    progress: Progress
    public: Any = None
    allow_misfits: tuple[str, ...] = ()

    def identity(self, ledger: Ledger | None) -> dict[str, Any]:
        """What decides which questions are asked, and who pays: a run is resumed only by itself."""
        return {
            "ledger": None if ledger is None else ledger.identity,
            "schema": self.schema.to_dict(),
            "budget": [self.budget.epsilon, self.budget.delta],
            "method": description(self.method),
            "seed": self.seed,
            "public table": self.public is not None,
            "version": __version__,
        }

    def release(
        self, engine: Engine, mechanisms: Randomizer, ledger: Ledger | None = None, journal: Journal | None = None
    ) -> Release:
        """Prepare the engine, let the method ask, and put together what came of it."""
        refuse_unreadable(self.method)
        discoveries = Discoveries.plan(self.schema, self.budget)
        amount = whole(self.budget, discoveries.direct_delta, self._currency(ledger))
        guarantee(amount, self.budget.delta)  # a budget that cannot be stated is refused before it is spent
        look = amount.share(look_share(self.schema))
        entry: dict[str, Any] = {}
        looking = self._account(look, "look", ledger, entry, journal)
        account = self._account(amount - look, "hash", ledger, entry, journal)
        if journal is not None:
            mechanisms = Journaled(mechanisms, journal)
            self.progress.work.allowed = journal.agreed(self.progress.work.allowed)
        answers: list[Answer] = []
        with standing(lambda: (looking if looking.charges else account).standing()):
            if look:
                answers.append(self._looked(engine, mechanisms, journal, looking))
            return self._made(engine, mechanisms, discoveries, looking.charges, account, answers, entry)

    def _looked(self, engine: Engine, mechanisms: Randomizer, journal: Journal | None, account: Account) -> Answer:
        """What fits nothing that is declared; the run ends here if that is too much."""
        with self.progress.phase("look for what does not fit"):
            answer = take_a_look(self.schema, engine, account, mechanisms)
        found = Misfits.of(answer.measurements)
        try:
            refuse_misfits(found, self.schema, account, self.budget.delta, self.allow_misfits)
        except MisfitError:
            if journal is not None:
                journal.settle()
            raise
        return answer

    def _made(
        self,
        engine: Engine,
        mechanisms: Randomizer,
        discoveries: Discoveries,
        looked: list[Charge],
        account: Account,
        answers: list[Answer],
        entry: dict[str, Any],
    ) -> Release:
        schema = self.schema
        if self.public is not None:
            schema = with_public_groups(schema, self.public)
        if discoveries.columns:
            if self.public is not None:
                public_rows(self.public, _stand_in(schema).encoding())  # nor may this one fail once something is paid
            with self.progress.phase("discover private domains"):
                engine.prepare(_stand_in(schema).encoding())  # a table that cannot be read shows before it is paid for
                schema = discoveries.buy(schema, engine, account, mechanisms, answers)
        encoding = schema.encoding()
        with self.progress.phase("read and encode"):
            engine.prepare(encoding)
        public = None if self.public is None else public_rows(self.public, encoding)
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(self.seed)))
        columns = {column: encoding.attributes_of(column) for column in encoding.columns}
        vault = Vault(
            engine,
            encoding.domain,
            encoding.rows_per_person,
            account,
            mechanisms,
            rng,
            columns,
            self.progress,
            public,
            self.budget.epsilon,
        )
        model = self.method.run(vault, self.progress)
        certificate = Certificate(
            budget=self.budget,
            whole=sum((charge.amount for charge in looked), account.whole),
            charges=(*looked, *account.charges),
            rows_per_person=encoding.rows_per_person,
            person=encoding.person is not None,
            method=description(self.method),
            dataset=schema.dataset,
            discovered=tuple(schema.discovered),
            ledger={key: entry[key] for key in ("dataset", "hash", "look") if key in entry} or None,
            void=vault.exposed if mechanisms.guaranteed else UNSAFE,
            notes=(*[PUBLIC] * (public is not None), *[ENDED_EARLY] * self.progress.ended_early),
            versions=versions(),
        )
        return Release(schema, model, certificate, [*answers, *vault.answers])

    def _currency(self, ledger: Ledger | None) -> Currency:
        """What the books are kept in; a method may offer the currency that it was published with."""
        if getattr(self.method, "accounting", "gdp") == "gdp" or self.budget.currency is Currency.PURE:
            return self.budget.currency
        if ledger is not None:
            raise OptionError("ledger-accounting", "a ledger adds up μ² or ε; accounting=zcdp is for comparisons.")
        return Currency.ZCDP

    def _account(
        self, amount: Amount, part: str, ledger: Ledger | None, entry: dict[str, Any], journal: Journal | None
    ) -> Account:
        """The books of a part of the run, which the ledger debits by itself before its first count."""

        def debit() -> None:
            if ledger is None:
                return
            own = Budget(guarantee(amount, self.budget.delta).epsilon, self.budget.delta)
            name = "look" if part == "look" else self.method.about.name
            with nullcontext() if journal is None else journal.paying(part) as nonce:
                written = ledger.debit(own, amount, name, self.schema.person or ROW, nonce)
            entry.update({"dataset": ledger.dataset, part: written.digest})

        return Account(amount, debit, journal.charge if journal is not None else lambda charge: None)


def with_public_groups(schema: Schema, public: Any) -> Schema:
    """The schema with every `allowed: public` group filled in by the combinations of the public table."""
    from hedgerow.private.sources.source import open_source

    for group in schema.public_groups:
        schema = schema.with_allowed_in(group, open_source(public).batches(schema.groups[group].columns))
    return schema


def public_rows(public: Any, encoding: Encoding) -> CodedTable:
    """The public table as codes."""
    from hedgerow.private.sources.coded import coded_rows, with_columns_of
    from hedgerow.private.sources.source import open_source

    return coded_rows(with_columns_of(encoding, open_source(public), "public"), encoding, "public")


def description(method: Method) -> dict[str, Any]:
    """What a certificate says of its method."""
    about = method.about
    return {
        "name": about.name,
        "title": about.title,
        "options": options(method),
        "argument": about.argument,
        "paper": about.paper,
        "departures": list(about.departures),
    }


def rehearse(run: Run, rows: int = 10_000) -> Release:
    """The same run on `rows` made-up rows, uniform over the declared domain: what would be asked, at what noise.

    The private table is not opened. A method that adapts to its answers may take other turns on the real one.
    """
    from hedgerow.private.engines import open_engine

    schema = run.schema if run.public is None else with_public_groups(run.schema, run.public)
    engine = open_engine(_made_up(schema, rows))
    try:
        release = replace(run, schema=schema, seed=0).release(engine, Mechanisms())
    except HedgerowError as problem:
        problem.standing = None  # what it spent is as made up as its rows
        raise
    release.certificate = replace(release.certificate, void=REHEARSAL)
    return release


def _made_up(schema: Schema, rows: int) -> Any:
    """Uniform rows of the schema."""
    import pyarrow as pa

    encoding = _stand_in(schema).encoding()
    rng = np.random.default_rng(0)
    codes = {a.name: rng.integers(0, a.size, rows).astype(a.dtype) for a in encoding.domain}
    table = encoding.decode(codes, rng)
    return table if schema.person is None else table.append_column(schema.person, pa.array(np.arange(rows)))


def _stand_in(schema: Schema) -> Schema:
    """The schema with twenty values or bins wherever a domain is still to be discovered."""
    for column, kind in schema.discoveries:
        if kind == "values":
            schema = schema.with_values(column, [f"value {number}" for number in range(20)])
        else:
            about = schema.to_dict()["columns"][column]
            schema = schema.with_bins(column, np.linspace(about["min"], about["max"], 21)[1:-1].tolist())
    return schema
