"""What is asked for, judged once before a row is read, and carried out.

Presets, options, outputs, the public table, the ledger and the journal are resolved here and nowhere else, so the
command line, Python and comparisons mean the same by the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedgerow.budget.amounts import Budget
from hedgerow.errors import OptionError, SchemaError, listing, suggestion, unread
from hedgerow.methods import DEFAULT, build
from hedgerow.methods.choice import Choice
from hedgerow.methods.method import Method
from hedgerow.methods.shared.histories import refuse_unlinked
from hedgerow.private.discovery import SHARE_MOST, SHARE_OF_QUALITY, Allotment, Discoveries
from hedgerow.private.engines import open_engine, open_tables
from hedgerow.private.engines.engine import Engine
from hedgerow.private.journal import Claim, Journal, refuse_unfinished
from hedgerow.private.ledger import ROW, Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import UnsafeSeededStream
from hedgerow.private.sources.sameness import refuse_as_public
from hedgerow.private.sources.source import described
from hedgerow.progress import Limits, Progress
from hedgerow.release.bundle import Release
from hedgerow.run.outputs import Outputs, check_outputs
from hedgerow.run.prior import Prior
from hedgerow.run.run import Run, rehearse
from hedgerow.schema import Schema
from hedgerow.schema.fits import looked_at
from hedgerow.schema.presets import find


def synthesize(
    table: Any,
    schema: Schema | str | Path | Sequence[str | Path],
    budget: Budget,
    method: Method | str = DEFAULT,
    *,
    file: Mapping[str, Any] | None = None,
    public: Any = None,
    prior: str | Path | None = None,
    ledger: str | Path | None = None,
    period: str | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    unsafe_noise_seed: int | None = None,
    journal: str | Path | Claim | None = None,
    resume: bool = False,
    allow_misfits: Sequence[str] = (),
    rows: int | None = None,
    quality: float = SHARE_OF_QUALITY,
    stay: bool = False,
) -> Release:
    """Make a release of a private table.

    Nothing is spent unless everything could be checked beforehand. Where clearly more values of a column than the
    schema's `max_misfits` fit nothing declared, the run ends with a MisfitError after a small look, which stays paid
    for.

    Args:
        table: A path (CSV or other text, Parquet, Arrow, a folder of Parquet files, a workbook, a file of SPSS, Stata
            or SAS), the URL of a table in a database (duckdb://FILE/TABLE, postgres://HOST/DATABASE/TABLE,
            spark://TABLE), a pandas or polars frame, or anything with the Arrow C interface. Of linked tables a mapping
            from their names, or a folder.
        schema: What the columns may hold: a Schema, its file, or `preset:NAME`; of several names the first says what
            the columns hold, and presets after it give it structure.
        budget: (ε, δ) for this release.
        method: A method, or the name of one. A name means its defaults or, with the schema `preset:NAME`, the options
            that the preset holds for it at this ε.
        file: How the tables are written, for example {"delimiter": ";", "decimal": ","}; it wins over the schema's own
            `file`.
        public: A table with the same columns that the user asserts to be public: it fills in groups with `allowed:
            public`, and methods may learn from it.
        prior: The file of an earlier release. Its rows stand where a public table would, and values and cuts that it
            discovered are used again.
        ledger: The dataset's lifetime budget, debited before anything is counted.
        period: The ledger's period to debit; by default the one that was opened last.
        limits: Bytes of memory, and seconds for what needs no data.
        seed: Steers post-processing only. The privacy noise cannot be seeded.
        progress: What is told of the run while it goes on.
        unsafe_noise_seed: Seeds the noise, for tests and public benchmarks; voids the guarantee.
        journal: A file that keeps the paid answers as they come, for one run at a time. Remove it when the release is
            saved.
        resume: Whether answers in the journal are used instead of new ones.
        allow_misfits: Columns whose values need not fit what is declared.
        rows: How many rows will be drawn, where that is known beforehand (never the true number): a method that needs
            the number for nothing else then spends nothing on it.
        quality: The part of the budget that measures, when all else is done, how far the rows that are drawn by default
            are from the private ones (`Release.quality`); 0 leaves it to the method.
        stay: Whether the rows of a database are counted there and do not come here.

    Returns:
        The release: model, noisy answers and certificate. All of it may be published.
    """
    request = Request(
        table=table,
        schema=schema,
        budget=budget,
        method=method,
        file=file or {},
        public=public,
        prior=prior,
        ledger=ledger,
        period=period,
        limits=limits or Limits(),
        seed=seed,
        unsafe_noise_seed=unsafe_noise_seed,
        journal=journal,
        resume=resume,
        allow_misfits=tuple(allow_misfits),
        rows=rows,
        quality=quality,
        stay=stay,
    )
    return request.checked().release(progress)


@dataclass(frozen=True)
class Request:
    """Everything that a run is given, as it was given."""

    table: Any
    """A path, a URL, a frame, or anything with the Arrow C interface."""
    schema: Schema | str | Path | Sequence[str | Path]
    """What the columns may hold: the schema, its file, or `preset:NAME`, which holds options of methods too.

    Of several the first says what the columns hold; further ones are presets that give it structure.
    """
    budget: Budget
    method: Method | str = DEFAULT
    """A method, or the name of one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options for the method of that name; they win over those of a preset."""
    file: Mapping[str, Any] = field(default_factory=dict)
    """How the tables are written; it wins over what the schema says."""
    public: Any = None
    """A table of the same columns that is public, whatever the private rows are."""
    prior: str | Path | None = None
    """The file of an earlier release, say last year's, whose rows stand where a public table would."""
    ledger: str | Path | None = None
    """The lifetime budget of the dataset, which is debited before anything is counted."""
    period: str | None = None
    """The period of the ledger to debit; by default the one that was opened last, where there are any."""
    limits: Limits = field(default_factory=Limits)
    seed: int = 0
    """Steers post-processing only."""
    unsafe_noise_seed: int | None = None
    """For tests and public benchmarks: voids the guarantee."""
    journal: str | Path | Claim | None = None
    """Keeps the paid answers as they come; by default beside the release where there are outputs."""
    resume: bool = False
    """Whether to go on with the answers in the journal."""
    allow_misfits: tuple[str, ...] = ()
    """Columns whose values need not fit what is declared."""
    rows: int | None = None
    """How many rows will be drawn, where that is known beforehand: no budget then buys their number."""
    quality: float = SHARE_OF_QUALITY
    """The part of the budget that measures how far the drawn rows are from the private ones; 0 for none."""
    stay: bool = False
    """Whether the rows of a database must be counted there, and not come here."""
    outputs: Outputs | None = None
    """The files that will be written."""

    def checked(self) -> Checked:
        """Refuse what cannot be done, before a row is read or anything is spent."""
        with unread():
            return self._checked()

    def _checked(self) -> Checked:
        if not isinstance(self.budget, Budget):
            raise OptionError(
                "bad-budget",
                f"the budget must be a hedgerow.Budget(epsilon, delta), got {self.budget!r}.",
            )
        if not (isinstance(self.quality, int | float) and 0 <= self.quality <= SHARE_MOST):
            raise OptionError(
                "bad-quality-share",
                f"the part of the budget that measures quality must lie between 0 and {SHARE_MOST:g}, "
                f"got {self.quality!r}. Hint: {SHARE_OF_QUALITY:g} is the default, 0 measures none.",
            )
        if self.outputs is not None:
            self._check_outputs(self.outputs)
        if self.public is not None:
            refuse_as_public(self.public, self.table)
        if isinstance(self.method, str):
            method = chosen_method(self.schema, self.method, self.budget.epsilon, self.options)
        elif self.options:
            raise OptionError(
                "options-of-a-built-method",
                "options are for the name of a method; this one has its own already.",
            )
        else:
            method = self.method
        if isinstance(self.schema, Schema):
            schema = self.schema
            for path in schema.files:
                refuse_as_public(path, self.table)
        else:
            schema = Schema.load(self.schema, lambda path: refuse_as_public(path, self.table))
        schema = schema.with_file(self.file)
        _refuse_discovered(schema)
        prior = None if self.prior is None else self._prior(self.prior)
        if prior is not None:
            schema = schema.with_bought(prior.release.schema)
        for name, column in schema.invented.items():
            column.refuse_unready(name)
        for allowed in self.allow_misfits:
            if allowed not in (*schema.columns, *looked_at(schema)):
                raise OptionError(
                    "unknown-column",
                    f'misfits are allowed in "{allowed}", which is no column.{suggestion(allowed, schema.columns)}',
                )
        if schema.accept and self.outputs is not None:
            self._check_acceptance(self.outputs)
        if schema.linked is not None:
            self._check_linked(method, schema)
        if hasattr(method, "bound"):
            method = method.bound(schema)  # options in the table's own values
        books = None if self.ledger is None else self._opened(Ledger(self.ledger, self.period), schema, method)
        return Checked(self, schema, method, books, prior)

    def _prior(self, path: str | Path) -> Prior:
        if self.public is not None:
            raise OptionError(
                "prior-and-public", "an earlier release stands where a public table would: give --prior or --public."
            )
        return Prior.load(path)

    @property
    def paid_answers(self) -> Path | Claim | None:
        """Where the journal is, or the claim to it; a command keeps none where noise is seeded: nothing is paid."""
        if self.outputs is not None:
            return None if self.unsafe_noise_seed is not None else self._beside(self.outputs)
        return Path(self.journal) if isinstance(self.journal, str) else self.journal

    def _beside(self, outputs: Outputs) -> Path | Claim:
        """The journal of the release, or the claim to it that somebody holds for us."""
        return self.journal if isinstance(self.journal, Claim) else outputs.journal

    def _check_outputs(self, outputs: Outputs) -> None:
        journal = self._beside(outputs)
        if not self.resume:
            refuse_unfinished(journal)
        elif self.unsafe_noise_seed is not None:
            raise OptionError(
                "resume-without-payment",
                "--unsafe-noise-seed pays for nothing, so there is nothing to --resume.",
            )
        inputs = {
            "private table": self.table,
            "schema": self.schema,
            "public table": self.public,
            "earlier release": self.prior,
            "ledger": self.ledger,
            "key": outputs.key,
        }
        named = {what: given for what, given in inputs.items() if isinstance(given, str | Path)}
        if isinstance(self.schema, list | tuple):
            named |= {f"schema {number}": each for number, each in enumerate(self.schema, start=1)}
        begun = journal.begun if isinstance(journal, Claim) else self.resume and journal.exists()
        outputs.check(named, self.seed, void=self.unsafe_noise_seed is not None, resume=self.resume, begun=begun)

    def _check_acceptance(self, outputs: Outputs) -> None:
        """What the schema demands is measured, and a release that misses it has a place to stay."""
        if not self.quality:
            raise OptionError(
                "accept-needs-quality",
                "the schema says what it accepts, and --quality 0 measures nothing. Hint: leave out one of the two.",
            )
        check_outputs([(outputs.refused, ())], {}, overwrite=outputs.overwrite)

    def _check_linked(self, method: Method, schema: Schema) -> None:
        """What cannot be done with linked tables yet is refused, and not left out in silence."""
        refuse_unlinked(method)
        if self.outputs is not None and schema.several and not self.outputs.tables:
            raise OptionError(
                "output-not-a-folder", f'linked tables are written into a folder; "{self.outputs.table}" has an ending.'
            )
        given = {
            "--public": self.public,
            "--prior": self.prior,
            "--stay": self.stay or None,
        }
        for name, value in given.items():
            if value is not None:
                raise OptionError("not-with-tables", f"{name} cannot be used with linked tables yet; leave it out.")

    def _opened(self, books: Ledger, schema: Schema, method: Method) -> Ledger:
        """A ledger that can pay for the run."""
        if self.unsafe_noise_seed is not None:
            raise OptionError(
                "ledger-needs-guarantee",
                "a ledger takes no release without a guarantee (--unsafe-noise-seed).",
            )
        if method.about.void is not None:
            raise OptionError(
                "ledger-needs-guarantee",
                f"a ledger takes no release without a guarantee: {method.about.void}.",
            )
        if not self.resume:
            if self.paid_answers is not None:
                refuse_unfinished(self.paid_answers)  # what was paid for is more help than how little is left
            books.check(schema.dataset, self.budget, schema.person or ROW)
        return books


@dataclass(frozen=True)
class Checked:
    """A request that can be carried out, as far as can be told without a row."""

    request: Request
    schema: Schema
    method: Method
    ledger: Ledger | None
    prior: Prior | None = None

    def release(self, progress: Progress | None = None) -> Release:
        """Open the table, pay, and make the release."""
        with unread():  # once a run is under way its own books speak
            return self._made(progress)

    def _made(self, progress: Progress | None) -> Release:
        asked, table = self.request, self.request.table
        run = self._run(progress or Progress(asked.limits))  # a limit of time is one of work before a row is read
        if self.schema.discoveries and hasattr(table, "read_all"):
            table = table.read_all()  # a reader can be read once, a discovery needs several passes
        if self.schema.linked is None:
            memory = run.progress.limits.memory
            engine: Engine = open_engine(table, self.schema.written, memory=memory, stay=asked.stay)
            if place := getattr(engine, "place", None):
                run.progress.say(place)
        else:
            engine = open_tables(table, self.schema, memory=run.progress.limits.memory)
        self.schema.check_header(engine.header(), described(table))
        unsafe = asked.unsafe_noise_seed
        mechanisms = Mechanisms() if unsafe is None else Mechanisms(UnsafeSeededStream(unsafe))
        if asked.paid_answers is None:
            return run.release(engine, mechanisms, self.ledger)
        journal = Journal(asked.paid_answers, run.identity(self.ledger), resume=asked.resume)
        try:
            return run.release(engine, mechanisms, self.ledger, journal)
        finally:
            journal.close()

    @property
    def allotments(self) -> tuple[Allotment, ...]:
        """What is bought before the method starts, and for how much."""
        return Discoveries.plan(self.schema, self.request.budget, self.request.quality).allotments

    def rehearsal(self, rows: int, progress: Progress | None = None) -> Release:
        """What would be asked of as many made-up rows, at what noise; the table is not opened, nothing is spent."""
        with unread():
            self.schema.unlinked("--dry-run")
            return rehearse(self._run(progress or Progress(self.request.limits)), rows)

    def _run(self, progress: Progress) -> Run:
        asked = self.request
        rows = asked.rows if asked.outputs is None else asked.outputs.rows
        return Run(
            self.schema,
            asked.budget,
            self.method,
            asked.seed,
            progress,
            asked.public,
            rows,
            asked.allow_misfits,
            asked.quality,
            self.prior,
        )


def _refuse_discovered(schema: Schema) -> None:
    """What another release found is neither declared nor paid for here; a certificate would say that it was both."""
    if schema.discovered:
        raise SchemaError(
            "discovered-elsewhere",
            f"the schema is that of a release, which discovered the domain of {listing(schema.discovered)}: this run "
            "would neither declare it nor pay for it. Hint: give the schema as it was before, and the release as "
            "--prior, which uses its cuts again and says so.",
        )


def chosen_method(
    schema: Schema | str | Path | Sequence[str | Path],
    name: str,
    epsilon: float,
    given: Mapping[str, Any] | None = None,
) -> Method:
    """The method of that name, with the options that a preset holds for it at this ε and over them those given.

    Several names with commas between them are a private choice among those methods.
    """
    if "," in name:
        return Choice([chosen_method(schema, each.strip(), epsilon, given) for each in name.split(",")])
    preset = None if isinstance(schema, Schema) else find(schema)
    held = {} if preset is None else preset.options(name, epsilon)
    method: Method = build(name, {**held, **(given or {})})
    return method
