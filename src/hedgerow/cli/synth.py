"""hedgerow synth: check everything that can be checked, then spend, then write."""

from __future__ import annotations

import json
import os
import shlex
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hedgerow.budget.amounts import Budget
from hedgerow.cli.ledger import say_what_is_torn
from hedgerow.cli.outputs import PAGE, check_outputs
from hedgerow.cli.progress import TerminalProgress
from hedgerow.errors import OptionError, visible
from hedgerow.methods import build
from hedgerow.private.journal import Claim, refuse_unfinished
from hedgerow.private.sources.sameness import refuse_as_public
from hedgerow.progress import Limits, peak_rss_mb
from hedgerow.release.bundle import Release, check_key
from hedgerow.release.certificate import share_of_whole
from hedgerow.release.files import TABLE_SUFFIXES, check_writable, void_note, whole_file, write_table, writing
from hedgerow.run import rehearse, synthesize
from hedgerow.schema import Schema
from hedgerow.schema.presets import PREFIX, load


@dataclass(frozen=True)
class Request:
    """What the user typed, read but not yet judged."""

    table: str
    schema: str
    epsilon: float
    delta: float
    method: str
    options: dict[str, str]
    out: Path | None
    rows: int | None
    release: Path | None
    ledger: Path | None
    sign: Path | None
    limits: Limits
    seed: int
    unsafe_noise_seed: int | None
    json: bool
    quiet: bool
    overwrite: bool = False
    public: str | None = None
    report: Path | None = None
    resume: bool = False
    most_rows: int | None = None


def run(request: Request) -> None:
    """The whole way from a table to a release and its rows."""
    run_all([request])


def run_all(requests: Sequence[Request]) -> None:
    """One release after the other; what can be refused is refused before the first is paid for.

    Nobody else makes one of these releases from the first check until the last file is written.
    """
    several = len(requests) > 1
    left = [request for request in requests if not (several and request.resume and _is_done(request))]
    with ExitStack() as held:
        claimed = [(request, held.enter_context(_claim(request, several))) for request in left]
        for request, claim in claimed:
            _outputs(request, claim)
            Budget(request.epsilon, request.delta)
            build(request.method, _options(request))
        for request, claim in claimed:
            _run(replace(request, resume=claim.begun) if several else request, claim)


def _claim(request: Request, several: bool) -> Claim:
    """Of several releases that are resumed some may not have been begun."""
    bundle = _bundle(request)
    if request.resume and not several and not os.path.exists(_journal(bundle)):
        _refuse_release(request, bundle)
    return Claim(_journal(bundle), create=several or not request.resume)


def _is_done(request: Request) -> bool:
    """Whether a release of several was made before the command was stopped."""
    return zipfile.is_zipfile(_bundle(request)) and not _is_begun(_journal(_bundle(request)))


def _is_begun(journal: Path) -> bool:
    return os.path.exists(journal) and journal.stat().st_size > 0


def _bundle(request: Request) -> Path:
    return request.release or _named(request.out).with_suffix(".release")


def _journal(bundle: Path) -> Path:
    return bundle.with_name(bundle.name + ".journal")


def _named(out: Path | None) -> Path:
    if out is None:
        raise OptionError("-o/--out is missing: name the .csv, .parquet or .arrow file to write. Nothing was read.")
    return out


def _run(request: Request, claim: Claim) -> None:
    budget = Budget(request.epsilon, request.delta)
    method = build(request.method, _options(request))
    out, bundle = _outputs(request, claim)
    say_what_is_torn(request.ledger)
    progress = TerminalProgress(request.limits, request.quiet)
    with _paid_answers(claim):
        made = synthesize(
            request.table,
            request.schema,
            budget,
            method,
            public=request.public,
            ledger=request.ledger,
            seed=request.seed,
            progress=progress,
            unsafe_noise_seed=request.unsafe_noise_seed,
            journal=None if request.unsafe_noise_seed is not None else claim,
            resume=request.resume,
        )
        # the release comes first: a budget spent without it would be lost
        made.save(bundle, sign_with=request.sign, overwrite=request.overwrite)
    claim.settle()
    if request.resume:
        _hint("whether the table is the same was not checked; answers that were paid for before are used as they are.")
    with progress.phase("draw rows"), _paid_release(request, out, bundle), writing(out):
        warning = " ".join(made.certificate.statements()) if made.certificate.void else None
        drawn = made.batches(_rows_out(request, made), request.seed)
        rows = write_table(out, made.encoding.arrow_schema, drawn, warning, replace=request.overwrite)
    if request.report is not None:
        _write_page(request.report, made, rows, request, progress)
    report = {
        "method": request.method,
        "epsilon": request.epsilon,
        "delta": request.delta,
        "rows": rows,
        "columns": len(made.encoding.arrow_schema.names),
        "guarantee": made.certificate.to_json()["guarantee"],
        "out": str(out),
        "release": str(bundle),
        "report": None if request.report is None else str(request.report),
        "phases": progress.phases,
        "peak_rss_mb": peak_rss_mb(),
    }
    if request.json:
        print(json.dumps(report))
    else:
        _summary(request, report, made)


def _rows_out(request: Request, made: Release) -> int | None:
    """As many as were typed, or the noisy estimate, within what a contest allows."""
    if request.most_rows is None or request.rows is not None:
        return request.rows
    return min(made.estimated_rows, request.most_rows)


@contextmanager
def _paid_answers(claim: Claim) -> Iterator[None]:
    """Whatever stops a run: where its paid answers are."""
    before = claim.begun
    try:
        yield
    except BaseException:
        if claim.begun and not before:
            _hint(f'the answers that were paid for are in "{claim.path}"; the same command with --resume goes on.')
        raise


@contextmanager
def _paid_release(request: Request, out: Path, bundle: Path) -> Iterator[None]:
    """Whatever stops the rows: how to have them from the release."""
    try:
        yield
    except BaseException:
        _hint(f"the release is kept; {_sampling(request, out, bundle)} writes its rows without paying again.")
        raise


def _sampling(request: Request, out: Path, bundle: Path) -> str:
    """The command that draws the rows which this one asks for."""
    given = {"--rows": request.rows, "--seed": request.seed or None}
    options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return shlex.join(["hedgerow", "sample", str(bundle), "-o", str(out), *options])


def _write_page(path: Path, made: Release, rows: int, request: Request, progress: TerminalProgress) -> None:
    """The page of the release; nothing but the release goes into it."""
    from hedgerow.pages.release import release_page

    with progress.phase("draw the page"), whole_file(path, replace=request.overwrite) as partial:
        partial.write_text(release_page(made, rows, request.seed), encoding="utf-8")


def _options(request: Request) -> dict[str, Any]:
    """The options that a preset holds for the method, and over them those that were typed."""
    held = load(request.schema).options(request.method, request.epsilon) if request.schema.startswith(PREFIX) else {}
    return {**held, **request.options}


def _refuse_release(request: Request, bundle: Path) -> None:
    """A release that is there may have been paid for; only the run that made it goes on with it."""
    if zipfile.is_zipfile(bundle) and not request.overwrite:
        another = "" if request.resume else "; for another release name another --out or --release, or give --overwrite"
        raise OptionError(
            f'"{bundle}" exists already, a release that may have been paid for; nothing was read. Hint: '
            f"{_sampling(request, _named(request.out), bundle)} draws its rows without paying again{another}."
        )


def _outputs(request: Request, claim: Claim) -> tuple[Path, Path]:
    """Where the table and the release go, refused before anything is read if that cannot be."""
    out, bundle = _named(request.out), _bundle(request)
    if not request.resume:
        refuse_unfinished(claim)
    elif request.unsafe_noise_seed is not None:
        raise OptionError("--unsafe-noise-seed pays for nothing, so there is nothing to --resume. Nothing was read.")
    if not claim.begun:
        _refuse_release(request, bundle)
    pages = [] if request.report is None else [(request.report, PAGE)]
    inputs: dict[str, str | Path | None] = {
        "private table": request.table,
        "schema": request.schema,
        "public table": request.public,
        "ledger": request.ledger,
        "key": request.sign,
    }
    notes = [(void_note(out), ())] if request.unsafe_noise_seed is not None and out.suffix == ".csv" else []
    outputs = [(out, TABLE_SUFFIXES), *pages, *notes]
    if claim.begun:
        check_writable(bundle)  # it may be there: a run can be stopped just after it was saved
    else:
        outputs.append((bundle, ()))
    check_outputs(outputs, inputs, overwrite=request.overwrite)
    if request.sign is not None:
        check_key(request.sign)
    return out, bundle


def _summary(request: Request, report: dict[str, Any], made: Release) -> None:
    print(f"{report['out']}: {report['rows']:,} synthetic rows, {report['columns']} columns")
    print(f"{report['release']}: model and certificate; check it with: hedgerow verify {report['release']}")
    if request.report is not None:
        print(f"{request.report}: a page about it that may be published")
    for statement in made.certificate.statements()[:1]:
        print(statement)
    if request.ledger is None and not made.certificate.void:
        _hint("no --ledger was given, so nothing adds this release up with others of the same people.")
    if made.rows_are_noise and request.rows is None:
        _hint("the number of rows is mostly noise: it says nothing of how many there were. Choose one with --rows.")
    if mostly_noise(made):
        _hint("at this ε most of the counts are noise: expect little of the table. A larger ε, or fewer values, helps.")
    if request.rows is not None:
        _hint("--rows is published with the table; never type in the true number of private rows.")


def mostly_noise(made: Release) -> bool:
    """Whether the noise on single columns adds up to more than half of the rows, for most columns."""
    singles = [m for answer in made.answers for m in answer.measurements if len(m.query.attributes) == 1]
    parts = sorted(m.noise.mean_absolute * m.query.cells / made.model.total for m in singles)
    return bool(parts) and parts[len(parts) // 2] > 0.5


def _hint(text: str) -> None:
    print(f"hint: {visible(text)}", file=sys.stderr)


def dry(request: Request) -> None:
    """What would be asked, at what noise, memory and time, without opening the table."""
    if request.public is not None:
        refuse_as_public(request.public, request.table)
    budget = Budget(request.epsilon, request.delta)
    method = build(request.method, _options(request))
    schema = Schema.load(request.schema)
    progress = TerminalProgress(request.limits, request.quiet)
    rehearsed = rehearse(schema, budget, method, progress, request.public)
    certificate = rehearsed.certificate
    charges = [
        {
            "purpose": charge.purpose,
            "queries": len(charge.queries),
            "cells": sum(query.get("cells", 0) for query in charge.queries),
            "mechanism": charge.mechanism,
            "scale": charge.scale,
            "least_noise": charge.scale / max(charge.weights),
            "most_noise": charge.scale / min(charge.weights),
            "share": share_of_whole(charge, certificate.whole),
        }
        for charge in certificate.charges
    ]
    cpu = sum(phase["cpu_s"] for phase in progress.phases.values())
    if request.json:
        print(json.dumps({"charges": charges, "cpu_s": cpu, "peak_rss_mb": peak_rss_mb()}))
        return
    print(f"{request.method} at ε = {budget.epsilon:g}, δ = {budget.delta:g}: a rehearsal on made-up rows.")
    print(f"The table was not opened, nothing was spent. {cpu:.2f} CPU seconds, {peak_rss_mb():.0f} MB at most.")
    for charge in charges:
        noise = f"{charge['least_noise']:.3g}"
        if charge["most_noise"] > charge["least_noise"] * 1.001:
            noise += f" to {charge['most_noise']:.3g}"
        counted = f"{charge['queries']:,} queries, {charge['cells']:,} cells"
        what = counted if charge["cells"] else "an open category" if charge["purpose"] == "discover" else "a choice"
        print(
            f"  {charge['purpose']:9} {what}: {charge['mechanism']} noise {noise}, {charge['share']:.1%} of the budget"
        )
