"""hedgerow synth: check everything that can be checked, then spend, then write."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.doubts import warn
from hedgerow.cli.ends import say_next
from hedgerow.cli.options import (
    AllowColumn,
    Delta,
    FileKeys,
    Json,
    Quiet,
    SchemaNames,
    file_keys,
    seconds,
    settings,
    size,
)
from hedgerow.cli.runs import wanted
from hedgerow.errors import AcceptanceError, OptionError, counted, listing, unread, visible
from hedgerow.progress import Limits, peak_rss_mb

if TYPE_CHECKING:
    from hedgerow.budget.accounting import Charge
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.private.journal import Claim
    from hedgerow.release.bundle import Release
    from hedgerow.release.certificate import Certificate
    from hedgerow.run import Checked, Outputs, Request


def synth(
    table: Annotated[
        str,
        typer.Argument(
            help="CSV or other text, Parquet, Arrow, Excel, SPSS, Stata or SAS file, a folder of Parquet files or of "
            "linked tables, or a URL: duckdb://FILE/TABLE."
        ),
    ],
    schema: SchemaNames,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "-e",
            "--epsilon",
            help="Privacy budget; smaller is more private. 8,1,0.3 makes a release of each; a parameters.json has its "
            "own.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help=".csv, .parquet or .arrow file to write; a folder for linked tables."),
    ] = None,
    file: FileKeys = None,
    delta: Delta = 1e-9,
    method: Annotated[
        str | None,
        typer.Option("-m", "--method", help="See: hedgerow methods. Of several, hedge,mst, one is chosen privately."),
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Method option, option=value; repeatable.")] = None,
    workload: Annotated[
        str | None, typer.Option(help="Marginals that matter: a degree (1, 2, 3) or a file; for methods that ask.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="A column whose marginals matter more; for methods with a workload.")
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(help="A table of the same columns that is public, whatever the private rows are."),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="An earlier release, say last year's, to start from."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="Rows out (default: the noisy estimate). Do not type in the true number of rows."),
    ] = None,
    release: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Release file (default: beside the output).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(dir_okay=False, help="A page (.html) about the release; may be published.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Lifetime ledger of the dataset; refuses overspend.")] = None,
    period: Annotated[
        str | None, typer.Option(help="The ledger's period to debit (default: the one that was opened last).")
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Ed25519 private key (PEM) to sign the release with."),
    ] = None,
    max_memory: Annotated[str, typer.Option(help="For example 4GB.")] = "4GB",
    max_time: Annotated[
        str | None, typer.Option(help="For what a method computes, reading aside, for example 10m; it then ends early.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the post-processing stream only.")] = 0,
    unsafe_noise_seed: Annotated[
        int | None, typer.Option(min=0, help="Tests and public benchmarks only: voids the guarantee.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
    allow_misfits: Annotated[
        list[str] | None,
        typer.Option(help="A column whose values need not fit what is declared; the run then goes on; repeatable."),
    ] = None,
    quality: Annotated[
        float | None,
        typer.Option(
            help="Part of the budget that measures how far the synthetic table is from the private one (default 0.05)."
        ),
    ] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Count a database's rows where they are; they may not come here.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped, without paying again.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be asked, at what noise; the table is not opened.")
    ] = False,
    dry_run_rows: Annotated[
        int, typer.Option(min=1, help="Made-up rows for --dry-run: about as many as you think there are.")
    ] = 10_000,
    json_: Json = False,
    quiet: Quiet = False,
    allow_column: AllowColumn = None,
) -> None:
    """Make a synthetic table and its release from a private table.

    What can be refused is refused before a row is read; what is spent is debited before anything is counted. A run that
    was stopped goes on with --resume, and pays nothing twice.

    Examples:
        hedgerow synth people.csv -s people.yaml -e 1 -o synthetic.csv --dry-run
        hedgerow synth people.csv -s people.yaml -e 1 -o synthetic.csv --ledger people.ledger --report synthetic.html
        hedgerow synth people.csv -s people.yaml -e 0.3,1 -m mst -o grid.parquet
    """
    from hedgerow.budget.amounts import Budget
    from hedgerow.methods import DEFAULT
    from hedgerow.private.discovery import SHARE_OF_QUALITY
    from hedgerow.release.files import named_after
    from hedgerow.run import Outputs, Request
    from hedgerow.schema.presets import find

    declared: str | tuple[str, ...] = schema[0] if len(schema) == 1 else tuple(schema)
    short = {"workload": workload, "target": target}
    asked = [f"{option}={value}" for option, value in short.items() if value is not None]
    with unread():
        preset = find(declared)
        for note in () if preset is None else preset.notes:
            _hint(note)
        tables = _linked(declared, out)
        requests = [
            Request(
                table=table,
                schema=declared,
                budget=Budget(each.epsilon, each.delta),
                method=method or DEFAULT,
                options=settings([*(set_ or []), *asked]),
                file=file_keys(file),
                public=public,
                prior=prior,
                ledger=None if dry_run else ledger,
                period=period,
                limits=Limits(size(max_memory), None if max_time is None else seconds(max_time)),
                seed=seed,
                unsafe_noise_seed=unsafe_noise_seed,
                resume=resume and not dry_run,
                allow_misfits=tuple(allow_misfits or ()),
                quality=SHARE_OF_QUALITY if quality is None else quality,
                stay=stay,
                outputs=None
                if dry_run
                else Outputs(
                    table=_named(each.named(out)),
                    release=each.named(release) or named_after(_named(each.named(out)), ".release"),
                    page=each.named(report),
                    key=sign,
                    rows=rows,
                    most_rows=each.most_rows,
                    overwrite=overwrite,
                    tables=tables,
                ),
            )
            for each in wanted(schema, epsilon, delta)
        ]
    if dry_run:
        for request in requests:
            _rehearse(request, dry_run_rows, json_, quiet)
    else:
        make_all(requests, json_, quiet)


def _linked(schema: str | tuple[str, ...], out: Path | None) -> tuple[str, ...]:
    """The tables of a schema of several; they are written into a folder."""
    from hedgerow.schema import Schema

    return () if out is None or out.suffix else Schema.load(schema).several


def _named(out: Path | None) -> Path:
    if out is None:
        raise OptionError("missing-output", "-o/--out is missing: name the .csv, .parquet or .arrow file to write.")
    return out


def make_all(requests: Sequence[Request], as_json: bool, quiet: bool) -> None:
    """One release after the other; what can be refused is refused before the first is paid for.

    Nobody else makes one of these releases from the first check until the last file is written.
    """
    several = len(requests) > 1
    left = [request for request in requests if not (several and request.resume and _files(request).is_done)]
    with ExitStack() as held:
        with unread():
            claims = [held.enter_context(_claim(request, several)) for request in left]
        asked = [
            replace(request, journal=claim, resume=request.resume and (claim.begun or not several))
            for request, claim in zip(left, claims, strict=True)
        ]
        for request in asked:
            warn(request.budget.doubts())
        for made, (checked, claim) in enumerate(zip([request.checked() for request in asked], claims, strict=True)):
            with _paid_before(made):
                _make(checked, _files(checked.request), claim, as_json, quiet)


def _claim(request: Request, several: bool) -> Claim:
    """The right to make the release. Of several that are resumed some may not have been begun."""
    from hedgerow.private.journal import Claim

    files = _files(request)
    if request.resume and not several and not os.path.exists(files.journal):
        files.refuse_release(request.seed, resume=True)
    return Claim(files.journal, create=several or not request.resume)


def _files(request: Request) -> Outputs:
    assert request.outputs is not None
    return request.outputs


def _make(checked: Checked, files: Outputs, claim: Claim, as_json: bool, quiet: bool) -> None:
    """The whole way from a table to a release, its rows and its page."""
    from hedgerow.cli.ledger import say_what_is_torn
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.release.files import write_table, writing

    request = checked.request
    say_what_is_torn(None if request.ledger is None else Path(request.ledger))
    progress = TerminalProgress(request.limits, quiet)
    with _paid_answers(claim):
        made = checked.release(progress)
        # the release comes first: a budget spent without it would be lost
        place = files.refused if made.missed else files.release
        made.save(place, sign_with=files.key, overwrite=files.overwrite)
    claim.settle()
    if made.missed:
        raise AcceptanceError(
            "not-accepted",
            f"the release misses what its schema accepts ({listing(made.missed)}; what counts is the upper end of 90 % "
            f'certainty). No table was written. The release is kept as "{place}", and what it cost stays spent. Hint: '
            "hedgerow plan says what another ε, fewer columns or wider bins would give.",
        )
    if request.resume:
        _hint("whether the table is the same was not checked; answers that were paid for before are used as they are.")
    if files.tables:
        _make_tables(made, files, request, progress, as_json)
        if not as_json:
            _next(request, files, made, quiet)
        return
    with progress.phase("draw rows"), _paid_release(files.sampling(request.seed)), writing(files.table):
        warning = " ".join(made.certificate.statements()) if made.certificate.void else None
        drawn = made.batches(_rows_out(files, made), request.seed)
        rows = write_table(files.table, made.arrow_schema, drawn, warning, replace=files.overwrite)
    warn(made.doubts)
    warn(_unfitting(made, request.budget.epsilon))
    if files.page is not None:
        _write_page(files.page, made, rows if made.schema.linked is None else files.rows, request, progress)
    report = {
        "method": request.method,
        "epsilon": request.budget.epsilon,
        "delta": request.budget.delta,
        "rows": rows,
        "columns": len(made.arrow_schema.names),
        "guarantee": made.certificate.to_json()["guarantee"],
        "misfits": made.misfits and {each.column: [each.share, each.std] for each in made.misfits.columns},
        "out": str(files.table),
        "release": str(files.release),
        "report": None if files.page is None else str(files.page),
        "phases": progress.phases,
        "peak_rss_mb": peak_rss_mb(),
    }
    if as_json:
        print(json.dumps(report))
    else:
        _summary(request, files, report, made)
        _next(request, files, made, quiet)


def _make_tables(made: Release, files: Outputs, request: Request, progress: TerminalProgress, as_json: bool) -> None:
    """The rows of linked tables, and what there is to say of them."""
    from hedgerow.release.files import writing
    from hedgerow.release.linked import LinkedRelease, write_tables

    assert isinstance(made, LinkedRelease)
    with progress.phase("draw rows"), _paid_release(files.sampling(request.seed)), writing(files.table):
        rows = write_tables(files.table, made, files.rows, request.seed, replace=files.overwrite)
    warn(made.doubts)
    warn(_unfitting(made, request.budget.epsilon))
    if files.page is not None:
        _write_page(files.page, made, files.rows, request, progress)
    if as_json:
        report = {
            "method": request.method,
            "epsilon": request.budget.epsilon,
            "delta": request.budget.delta,
            "rows": rows,
            "guarantee": made.certificate.to_json()["guarantee"],
            "misfits": made.misfits and {each.column: [each.share, each.std] for each in made.misfits.columns},
            "out": str(files.table),
            "release": str(files.release),
            "report": None if files.page is None else str(files.page),
            "phases": progress.phases,
            "peak_rss_mb": peak_rss_mb(),
        }
        print(json.dumps(report))
        return
    for name, count in rows.items():
        print(f"{files.table / name}.csv: {counted(count, 'synthetic row')}")
    print(f"{files.release}: model and certificate; check it with: hedgerow verify {files.release}")
    if files.page is not None:
        print(f"{files.page}: a page about it that may be published")
    for statement in made.certificate.statements()[:1]:
        print(statement)
    if request.ledger is None and not made.certificate.void:
        _hint("no --ledger was given, so nothing adds this release up with others of the same people.")


def _unfitting(made: Release, epsilon: float) -> list[str]:
    """What does not fit the schema, as far as the look could see."""
    from hedgerow.schema.fits import rules_by_name

    found = made.misfits
    if found is None:
        return []
    rules = rules_by_name(made.schema)
    links = {} if made.schema.linked is None else made.schema.linked.misfits
    said = []
    for each in found.seen:
        if each.column in rules:
            fate = (
                "recoded, each by itself, to what it allows"
                if made.schema.linked is None
                else "learnt from as they are"
            )
            told = f"of the rows break {rules[each.column]}; they were {fate}."
        elif each.column in links:
            told = f"{links[each.column].what}; {links[each.column].fate}."
        else:
            told = f'of the values of "{each.column}" fit nothing declared; they are {_fate(made, each.column)}.'
        said.append(f"{each.said} {told}")
    if not found.sees(made.schema.max_misfits):
        said.append(
            f"whether more than {100 * made.schema.max_misfits:g} % of a column fits nothing declared cannot be seen "
            f"at ε = {epsilon:g}: the noise on such a share is ± {100 * found.noise:.0f} %."
        )
    return said


def _fate(made: Release, column: str) -> str:
    return made.schema.columns[column].fate


def _rows_out(files: Outputs, made: Release) -> int | None:
    """As many as were typed, or the noisy estimate, within what a contest allows."""
    if files.most_rows is None or files.rows is not None:
        return files.rows
    return min(made.expected_rows(), files.most_rows)


@contextmanager
def _paid_before(made: int) -> Iterator[None]:
    """Whatever stops one of several releases: those before it are paid for."""
    try:
        yield
    except BaseException:
        if made:
            _hint(f"releases made and paid for before this one: {made}; the same command with --resume makes the rest.")
        raise


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
def _paid_release(sampling: str) -> Iterator[None]:
    """Whatever stops the rows: the command that draws them from the release."""
    try:
        yield
    except BaseException:
        _hint(f"the release is kept; {sampling} writes its rows without paying again.")
        raise


def _write_page(path: Path, made: Release, rows: int | None, request: Request, progress: TerminalProgress) -> None:
    """The page of the release; nothing but the release goes into it."""
    from hedgerow.pages.release import release_page
    from hedgerow.release.files import whole_file

    with progress.phase("draw the page"), whole_file(path, replace=_files(request).overwrite) as partial:
        partial.write_text(release_page(made, rows, request.seed), encoding="utf-8", newline="\n")


def _summary(request: Request, files: Outputs, report: dict[str, Any], made: Release) -> None:
    print(f"{report['out']}: {counted(report['rows'], 'synthetic row')}, {counted(report['columns'], 'column')}")
    print(f"{report['release']}: model and certificate; check it with: hedgerow verify {report['release']}")
    if files.page is not None:
        print(f"{files.page}: a page about it that may be published")
    for statement in made.certificate.statements()[:1]:
        print(statement)
    if request.ledger is None and not made.certificate.void:
        _hint("no --ledger was given, so nothing adds this release up with others of the same people.")
    if made.rows_are_noise and files.rows is None:
        _hint("the number of rows is mostly noise: it says nothing of how many there were. Choose one with --rows.")
    if mostly_noise(made):
        _hint("at this ε most of the counts are noise: expect little of the table. A larger ε, or fewer values, helps.")
    if files.rows is not None:
        _hint("--rows is published with the table; never type in the true number of private rows.")


def _next(request: Request, files: Outputs, made: Release, quiet: bool) -> None:
    """How close is it, and how is it published."""
    names = request.schema if isinstance(request.schema, tuple) else (request.schema,)
    schema = [word for each in names for word in ("-s", each)]
    say_next(quiet, "evaluate", request.table, files.table, *schema, why="PRIVATE: compares with the real rows")
    if not made.certificate.void and not files.tables:
        say_next(quiet, "publish", files.release, "--table", files.table, "-o", "published")


def mostly_noise(made: Release) -> bool:
    """Whether the noise on single columns adds up to more than half of the rows, for most columns."""
    singles = [each for each in made.counted if len(each.query.attributes) == 1]
    parts = sorted(m.noise.mean_absolute * m.query.cells / made.model.total for m in singles)
    return bool(parts) and parts[len(parts) // 2] > 0.5


def _hint(text: str) -> None:
    print(f"hint: {visible(text)}", file=sys.stderr)


def _rehearse(request: Request, rows: int, as_json: bool, quiet: bool) -> None:
    """What would be asked, at what noise, memory and time, without opening the table."""
    from hedgerow.cli.progress import TerminalProgress

    warn(request.budget.doubts())
    progress = TerminalProgress(request.limits, quiet)
    checked = request.checked()
    certificate = checked.rehearsal(rows, progress).certificate
    steps = [_step(charge, certificate) for charge in certificate.charges]
    cpu = sum(phase["cpu_s"] for phase in progress.phases.values())
    if as_json:
        allotted = [asdict(allotment) for allotment in checked.allotments]
        print(
            json.dumps(
                {"rows": rows, "allotments": allotted, "charges": steps, "cpu_s": cpu, "peak_rss_mb": peak_rss_mb()}
            )
        )
        return
    budget = request.budget
    each = "" if checked.schema.person is None else ", each of another person"
    print(f"{request.method} at ε = {budget.epsilon:g}, δ = {budget.delta:g}: a rehearsal on made-up rows.")
    print(f"The table was not opened, nothing was spent. {cpu:.2f} CPU seconds, {peak_rss_mb():.0f} MB at most.")
    print(
        f"It had {counted(rows, 'such row')}{each}, every value as likely as any other. A method that goes by its "
        "noisy answers asks other questions of real rows."
    )
    for allotment in checked.allotments:
        print(f"  set aside {allotment}")
    for step in steps:
        print(f"  {step['purpose']:9} {_asked(step)}, {step['share']:.1%} of the budget")


def _step(charge: Charge, certificate: Certificate) -> dict[str, Any]:
    """A charge as a rehearsal tells it: with noise on counts or scores, or with the ε of a choice, which has none."""
    from hedgerow.release.certificate import share_of_whole

    step = {
        "purpose": charge.purpose,
        "queries": len(charge.queries),
        "cells": sum(query.get("cells", 0) for query in charge.queries),
        "candidates": sum(query.get("candidates", 0) for query in charge.queries),
        "mechanism": charge.mechanism,
        "scale": charge.scale,
        "share": share_of_whole(charge, certificate),
    }
    if charge.mechanism == "exponential":
        return step | {"epsilon": charge.scale}
    weights = (1.0,) if charge.purpose in ("score", "quality") else charge.weights  # all scores get the same noise
    return step | {"least_noise": charge.scale / max(weights), "most_noise": charge.scale / min(weights)}


def _asked(step: dict[str, Any]) -> str:
    candidates = counted(step["candidates"], "candidate")
    if "epsilon" in step:
        return f"a choice among {candidates} at ε = {step['epsilon']:.3g}"
    noise = f"{step['least_noise']:.3g}"
    if step["most_noise"] > step["least_noise"] * 1.001:
        noise += f" to {step['most_noise']:.3g}"
    if step["purpose"] == "quality":
        return f"{counted(step['queries'], 'distance')} from the synthetic table: {step['mechanism']} noise {noise}"
    what = f"{counted(step['queries'], 'query', 'queries')}, {counted(step['cells'], 'cell')}"
    if not step["cells"]:
        what = "an open category" if step["purpose"] == "discover" else f"scores of {candidates}"
    return f"{what}: {step['mechanism']} noise {noise}"
