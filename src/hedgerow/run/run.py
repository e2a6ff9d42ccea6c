"""From a table to a release: declare → charge → count → add noise → model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import __version__
from hedgerow.budget.accounting import guarantee, whole
from hedgerow.budget.amounts import Amount, Budget, Currency
from hedgerow.coded.measurement import Answer
from hedgerow.curator import Published
from hedgerow.errors import HedgerowError, MisfitError, OptionError, standing
from hedgerow.methods import options, refuse_unreadable
from hedgerow.methods.method import Method
from hedgerow.methods.shared import histories
from hedgerow.methods.shared.workloads import declared_workload
from hedgerow.models.matching import raked
from hedgerow.models.rows import CountedRows
from hedgerow.private.account import Account
from hedgerow.private.discovery import Discoveries
from hedgerow.private.engines.linked import open_tables
from hedgerow.private.journal import Journal, Journaled
from hedgerow.private.ledger import ROW, Ledger
from hedgerow.private.look import Look
from hedgerow.private.mechanisms import Mechanisms, Randomizer
from hedgerow.private.quality import MOST_ROWS, CountedTables, distances_of, linked_distances
from hedgerow.private.vault import Vault
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, release_of
from hedgerow.release.certificate import ENDED_EARLY, PUBLIC, REHEARSAL, RULES, UNSAFE, Certificate, versions
from hedgerow.schema.fits import Looked
from hedgerow.schema.subgroups import subgroup_queries

if TYPE_CHECKING:
    from hedgerow.coded.domain import CodedTable
    from hedgerow.private.engines.engine import Engine
    from hedgerow.run.prior import Prior
    from hedgerow.schema import Schema


@dataclass(frozen=True)
class Run:
    """Everything about a run that is public and fixed before it starts."""

    schema: Schema
    budget: Budget
    method: Method
    seed: int
    progress: Progress
    public: Any = None
    rows: int | None = None
    """How many rows were asked for: where nothing else needs it, no budget then buys their number."""
    allow_misfits: tuple[str, ...] = ()
    """Columns that a look does not stop the run for."""
    quality: float = 0.0
    """The part of the budget that measures, at the end, how far the drawn rows are from the private ones."""
    prior: Prior | None = None
    """An earlier release, whose rows stand where a public table would."""

    def identity(self, ledger: Ledger | None) -> dict[str, Any]:
        """What decides which questions are asked, and who pays: a run is resumed only by itself."""
        return {
            "ledger": None if ledger is None else ledger.identity,
            "schema": self.schema.to_dict(),
            "budget": [self.budget.epsilon, self.budget.delta],
            "method": description(self.method),
            "seed": self.seed,
            "public table": self.public is not None,
            "prior": None if self.prior is None else self.prior.digest,
            "rows": self.rows,
            "quality": self.quality,
            "version": __version__,
        }

    def release(
        self, engine: Engine, mechanisms: Randomizer, ledger: Ledger | None = None, journal: Journal | None = None
    ) -> Release:
        """Prepare the engine, let the method ask, and put together what came of it."""
        refuse_unreadable(self.method)
        self.schema.check_rules()
        discoveries = Discoveries.plan(self.schema, self.budget, self.quality)
        amount = self._whole(discoveries, ledger)
        guarantee(amount, self.budget.delta)  # a budget that cannot be stated is refused before it is spent
        looked = amount.share(discoveries.look_share)
        entry: dict[str, Any] = {}
        if journal is not None:
            mechanisms = Journaled(mechanisms, journal)
            self.progress.work.allowed = journal.agreed(self.progress.work.allowed)
        note = journal.charge if journal is not None else lambda charge: None
        debit_look = self._debit("look", looked, ledger, entry, journal)
        look = Look(self.schema, engine, Account(looked, debit_look, note), mechanisms)
        debit_rest = self._debit("hash", amount - looked, ledger, entry, journal)

        def open_books() -> None:
            look.take(self.budget.delta, self.allow_misfits)
            self._warn_of_noise(look)
            debit_rest()

        def exchanging(spent: Amount) -> Amount:
            return self._exchanged(spent + looked) - looked

        kept = amount.share(discoveries.quality_share)
        account = Account(amount - looked, open_books, note, exchanging, kept)
        with standing(lambda: (account if account.charges else look.account).standing()):
            try:
                return self._made(engine, mechanisms, discoveries, look, account, entry)
            except MisfitError:
                if journal is not None:
                    journal.settle()
                raise

    def _made(
        self,
        engine: Engine,
        mechanisms: Randomizer,
        discoveries: Discoveries,
        look: Look,
        account: Account,
        entry: dict[str, Any],
    ) -> Release:
        found: list[Answer] = []
        schema = self.schema
        believed = self.public if self.prior is None else self.prior.rows(schema)
        if self.public is not None:
            schema = with_public_groups(schema, self.public)
        if discoveries.bought:
            if believed is not None:  # nor may this one fail once something is paid
                public_rows(believed, schema.with_stand_ins())
            with self.progress.phase("discover private domains"):
                buying = discoveries.buying(schema, engine, account, mechanisms)
                look.prepare(buying.encoding())  # a table that cannot be read shows before it is paid for
                look.take(self.budget.delta, self.allow_misfits)
                schema = buying.bought(found)
        schema = schema.with_histories()
        encoding = schema.encoding()
        with self.progress.phase("read and encode"):
            look.prepare(Looked(schema) if look.due else encoding)
        public = None if believed is None else public_rows(believed, schema)
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
            self.rows if self.rows is not None or not schema.totals else schema.totals[0].rows,
        )
        totals = [(table.attributes, table.counts) for table in schema.published]
        if schema.linked is None:
            model = self.method.run(Published(vault, totals) if totals else vault, self.progress)
        else:
            model = histories.run(self.method, schema.linked, encoding, vault, self.progress)
        if totals:
            model = raked(model, totals)

        def made(drawn: Mapping[str, int] | None = None) -> Release:
            certificate = Certificate(
                budget=self.budget,
                whole=look.account.whole + account.whole,
                charges=(*look.account.charges, *account.charges),
                rows_per_person=encoding.rows_per_person,
                person=encoding.person is not None,
                tables=() if schema.linked is None else schema.linked.names,
                method=description(self.method),
                dataset=schema.dataset,
                discovered=tuple(schema.discovered),
                ledger={key: entry[key] for key in ("dataset", "hash", "look") if key in entry} or None,
                void=vault.exposed if mechanisms.guaranteed else UNSAFE,
                unprotected=schema.unprotected,
                notes=(
                    *[PUBLIC] * (self.public is not None),
                    *[RULES] * bool(schema.rules or schema.derive),
                    *[ENDED_EARLY] * self.progress.ended_early,
                ),
                versions=versions(),
                drawn=drawn,
                prior=None if self.prior is None else self.prior.to_json(),
            )
            return release_of(schema)(schema, model, certificate, [*look.answers, *found, *vault.answers])

        release = made()
        if not account.kept or model.total > MOST_ROWS * encoding.rows_per_person:
            return release
        with self.progress.phase("measure the quality"):
            return made(self._measure_quality(release, vault, account.freed()))

    def _warn_of_noise(self, look: Look) -> None:
        """Say, before the rest is spent, that a table of about so many rows would be mostly noise."""
        if not look.answers or self.schema.linked is not None or self.budget.currency is not Currency.GDP:
            return
        from hedgerow.run.forecast import forecast

        rows = max(1, round(look.answers[0].measurements[0].total))
        told = forecast(self.schema, self.budget, rows, self.quality)
        if told.is_noise:
            self.progress.warn(
                f"about {rows:,} rows (a noisy count) are few for ε = {self.budget.epsilon:g} and so many columns and "
                f"values: expect {100 * told.pairs:.0f} % of them in wrong cells of a pair of columns. hedgerow plan "
                "says what would help."
            )

    def _measure_quality(self, release: Release, vault: Vault, spend: Amount) -> dict[str, int]:
        """Measure how far the rows that are drawn by default are from the private ones; returns which rows they are."""
        if release.schema.linked is not None:
            return self._measure_linked(release, vault, spend)
        rows = release.estimated_rows if self.rows is None else self.rows
        drawn = CountedRows(release.written(rows, self.seed), release.model.total)
        workload = declared_workload(self.method, vault).weights
        within = [query for _, query in subgroup_queries(release.schema, release.encoding)]
        vault.quality(distances_of(vault.domain, workload, self.seed, within), against=drawn, spend=spend)
        return {"rows": rows, "seed": self.seed}

    def _measure_linked(self, release: Release, vault: Vault, spend: Amount) -> dict[str, int]:
        """The same of linked tables: those of the first block are read and weighed as the private ones were."""
        assert release.schema.linked is not None
        rows = release.estimated_rows if self.rows is None else max(1, self.rows)
        units = min(rows, release.block_rows)
        drawn = open_tables(release.sample(units, self.seed), release.schema, bounding_key=b"")
        drawn.prepare(release.encoding)
        asked = linked_distances(vault.domain, release.schema.linked, vault.columns, self.seed)
        scale = release.model.total / (units * release.schema.max_rows_per_person)
        vault.quality(asked, against=CountedTables(drawn, scale), spend=spend)
        return {"rows": rows, "seed": self.seed}

    def _whole(self, discoveries: Discoveries, ledger: Ledger | None) -> Amount:
        """All of the budget, in ε where the method begins so; a ledger adds up μ², and discoveries are paid in it."""
        currency = self._currency(ledger)
        begins = getattr(self.method, "begins_in_epsilon", False) and currency is Currency.GDP
        if begins and ledger is None and not discoveries.bought:
            return whole(self.budget, direct_epsilon=Fraction(self.budget.epsilon))
        return whole(self.budget, discoveries.direct_delta, currency)

    def _exchanged(self, spent: Amount) -> Amount:
        """The whole of a run that has spent so much ε, and exchanges the rest of it for μ²."""
        return whole(self.budget, currency=Currency.GDP, direct_epsilon=spent.exact_epsilon)

    def _currency(self, ledger: Ledger | None) -> Currency:
        """What the books are kept in; a method may offer the currency that it was published with."""
        if getattr(self.method, "accounting", "gdp") == "gdp" or self.budget.currency is Currency.PURE:
            return self.budget.currency
        if ledger is not None:
            raise OptionError("ledger-accounting", "a ledger adds up μ² or ε; accounting=zcdp is for comparisons.")
        return Currency.ZCDP

    def _debit(
        self, part: str, amount: Amount, ledger: Ledger | None, entry: dict[str, Any], journal: Journal | None
    ) -> Callable[[], None]:
        """What opens the books of a part of the run: the ledger debits it by itself, before its first count."""

        def debit() -> None:
            if ledger is None:
                return
            own = Budget(guarantee(amount, self.budget.delta).epsilon, self.budget.delta)
            name = "look" if part == "look" else self.method.about.name
            with nullcontext() if journal is None else journal.paying(part) as nonce:
                written = ledger.debit(own, amount, name, self.schema.person or ROW, nonce)
            entry.update({"dataset": ledger.dataset, part: written.digest})

        return debit


def with_public_groups(schema: Schema, public: Any) -> Schema:
    """The schema with every `allowed: public` group filled in by the combinations of the public table."""
    from hedgerow.private.sources.source import open_source

    for group in schema.public_groups:
        batches = open_source(public, schema.written).batches(schema.groups[group].columns)
        schema = schema.with_allowed_in(group, batches)
    return schema


def public_rows(public: Any, schema: Schema) -> CodedTable:
    """The public table as codes."""
    from hedgerow.private.sources.coded import coded_rows, with_columns_of
    from hedgerow.private.sources.source import open_source

    encoding = schema.encoding()
    source = open_source(public, schema.written)
    return coded_rows(with_columns_of(encoding, source, "public"), encoding, "public")


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


def rehearse(run: Run, rows: int) -> Release:
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

    encoding = schema.with_stand_ins().encoding()
    rng = np.random.default_rng(0)
    codes = {a.name: rng.integers(0, a.size, rows).astype(a.dtype) for a in encoding.domain}
    table = encoding.decode(codes, rng).select(encoding.columns)
    return table if schema.person is None else table.append_column(schema.person, pa.array(np.arange(rows)))
