"""hedgerow evaluate: figures that compare a synthetic table with the private one. PRIVATE."""

from __future__ import annotations

import json
from pathlib import Path

from hedgerow.cli.ledger import say_what_is_torn
from hedgerow.cli.outputs import PAGE, check_outputs
from hedgerow.cli.progress import TerminalProgress
from hedgerow.private.evaluate import evaluate
from hedgerow.private.evaluate.figures import named
from hedgerow.progress import Limits, peak_rss_mb

PRIVATE = (
    "PRIVATE: computed from real rows, without noise. Do not publish it; a method or an ε that is chosen by it is "
    "not covered by the guarantee."
)


def run(
    real: str,
    synthetic: str,
    schema: Path,
    metrics: str | None,
    target: str | None,
    identifiers: str | None,
    ledger: Path | None,
    page: Path | None,
    overwrite: bool,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare, and say it in words, as one JSON object, or as a page."""
    if page is not None:
        inputs: dict[str, str | Path | None] = {
            "private table": real,
            "synthetic table": synthetic,
            "schema": schema,
            "ledger": ledger,
        }
        check_outputs([(page, PAGE)], inputs, overwrite=overwrite)
    say_what_is_torn(ledger)
    progress = TerminalProgress(Limits(), quiet)
    report = evaluate(
        real,
        synthetic,
        schema,
        metrics=None if metrics is None else words(metrics),
        target=target,
        identifiers=words(identifiers or ""),
        seed=seed,
        ledger=ledger,
        report=page,
        progress=progress,
    )
    if as_json:
        print(json.dumps(report | {"phases": progress.phases, "peak_rss_mb": peak_rss_mb()}))
        return
    print(PRIVATE)
    rows = report["rows"]
    print(f"{rows['real']:,} real rows, {rows['synthetic']:,} synthetic rows, {report['columns']} columns")
    for name, figure in named(report).items():
        print(f"{name:18} {figure.text(report[name]):>8}  {figure.meaning}{figure.sampled(report['attributes'])}")
    if page is not None:
        print(f"{page}: the page. PRIVATE too, and readable by you alone")


def words(text: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in text.split(",") if word.strip()]
