"""hedgerow evaluate: figures that compare a synthetic table with the private one. PRIVATE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.options import AllowColumn, FileKeys, Json, Quiet, file_keys, words
from hedgerow.errors import counted, listing, unread, visible
from hedgerow.private.evaluate import METRICS

PRIVATE = (
    "PRIVATE: computed from real rows, without noise. Do not publish it; a method or an ε that is chosen by it is "
    "not covered by the guarantee."
)


def evaluate(
    real: Annotated[str, typer.Argument(help="The private table; a folder for linked tables.")],
    synthetic: Annotated[str, typer.Argument(help="The synthetic table; a folder for linked tables.")],
    schema: Annotated[
        list[str],
        typer.Option("-s", "--schema", help="The schema (presets after a file), or the release that holds it."),
    ],
    file: FileKeys = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated, default all: {', '.join(METRICS)}; package.module:Name for one made elsewhere."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column that classifiers predict; without it they are left out.")
    ] = None,
    identifiers: Annotated[
        str | None, typer.Option(help="Columns that an outsider may know, comma-separated: for apparent_matches.")
    ] = None,
    report: Annotated[Path | None, typer.Option(dir_okay=False, help="A page (.html) to write. PRIVATE.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that notes the look at exact data.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed asks the same queries.")] = 0,
    json_: Json = False,
    quiet: Quiet = False,
    allow_column: AllowColumn = None,
) -> None:
    """PRIVATE: compare a synthetic table with the real rows.

    Without noise and outside of every guarantee, so what comes out stays with those who may see the rows.

    Examples:
        hedgerow evaluate people.csv synthetic.csv -s people.yaml --metrics tvd1,tvd2,means
        hedgerow evaluate people.csv synthetic.csv -s synthetic.release --report evaluation.html
    """
    from hedgerow.cli.ledger import say_what_is_torn
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.private.evaluate.evaluation import evaluate as evaluate_tables
    from hedgerow.private.evaluate.evaluation import settled_metrics, shown_figures
    from hedgerow.private.evaluate.metric import percentage
    from hedgerow.private.evaluate.samples import verdict
    from hedgerow.progress import Limits, peak_rss_mb
    from hedgerow.run.outputs import PAGE, check_outputs

    with unread():
        if report is not None:
            inputs: dict[str, str | Path | None] = {
                "private table": real,
                "synthetic table": synthetic,
                "schema": schema[0],
                "ledger": ledger,
            }
            check_outputs([(report, PAGE)], inputs, overwrite=overwrite)
        say_what_is_torn(ledger)
        known = words(identifiers or "")
        named = None if metrics is None else words(metrics)
        chosen = settled_metrics(named, target, known)
    progress = TerminalProgress(Limits(), quiet)
    found = evaluate_tables(
        real,
        synthetic,
        schema[0] if len(schema) == 1 else tuple(schema),
        file=file_keys(file),
        metrics=named,
        target=target,
        identifiers=known,
        seed=seed,
        ledger=ledger,
        report=report,
        progress=progress,
    )
    if json_:
        print(json.dumps(found | {"phases": progress.phases, "peak_rss_mb": peak_rss_mb()}))
        return
    print(PRIVATE)
    if "tables" in found:
        _show_tables(found)
        _say_page(report)
        return
    rows = found["rows"]
    sides = f"{counted(rows['real'], 'real row')}, {counted(rows['synthetic'], 'synthetic row')}"
    print(f"{sides}, {counted(found['columns'], 'column')}")
    if "never_read" in found:
        print(visible(f"not compared, because they are invented or left out: {listing(found['never_read'])}"))
    if "cut_by_rows" in found:
        cells = f"codes of {listing(found['cut_by_rows'])} are compared in cells where the real rows lie"
        print(visible(f"{cells}; for those that a run bought: -s FILE.release"))
    for name, figure in shown_figures(chosen.values()).items():
        said = f"{figure.meaning}{figure.sampled(found['attributes'])}"
        samples = {sample: each.get(name) for sample, each in found.get("samples", {}).items()}
        close = found.get(f"{name}_verdict") or verdict(found[name], samples)
        print(f"{name:18} {figure.text(found[name]):>8}  {said}{f'; {close}' if close else ''}")
    for column, shares in found.get("left_out", {}).items():
        of_real, of_made = percentage(shares["real"]), percentage(shares["synthetic"])
        print(f'left out: {of_real} of the real and {of_made} of the synthetic values of "{column}" do not fit')
    _say_page(report)


def _say_page(report: Path | None) -> None:
    if report is not None:
        print(f"{report}: the page. PRIVATE too, and readable by you alone")


def _show_tables(found: dict[str, Any]) -> None:
    """The figures of linked tables, with what the bound alone and a bootstrap of units come to beside them."""
    from hedgerow.private.evaluate.linked import FIGURES

    for name, figures in found["tables"].items():
        real, made = (counted(found["rows"][side][name], f"{side} row") for side in ("real", "synthetic"))
        misfits = found["misfits"]["synthetic"][name]
        broken = ", ".join(f"{each} {what}" for what, each in misfits.items())
        print(visible(f"{name}: {real}, {made} ({broken})" if broken else f"{name}: {real}, {made}"))
        for figure, about in FIGURES.items():
            if figure in figures:
                texts = [about.text(found[side][name][figure]) for side in ("tables", "truncation", "bootstrap")]
                beside = f"bound alone {texts[1]}, bootstrap {texts[2]}"
                print(f"  {figure:14} {texts[0]:>8}  {about.meaning}; {beside}")
