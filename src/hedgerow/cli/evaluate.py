"""hedgerow evaluate: figures that compare a synthetic table with the private one. PRIVATE."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from hedgerow.cli.progress import TerminalProgress, peak_rss_mb
from hedgerow.evaluate import evaluate
from hedgerow.evaluate.marginals import MOST_MARGINALS
from hedgerow.progress import Limits

PRIVATE = (
    "PRIVATE: computed from real rows, without noise. Do not publish it; a method or an ε that is chosen by it is "
    "not covered by the guarantee."
)
MEANINGS = {
    "tvd1": "mean distance of one-way marginals; 0 the same, 1 nothing in common",
    "tvd2": "mean distance of two-way marginals",
    "tvd3": "mean distance of three-way marginals",
    "k_marginal": "NIST's score on pairs; 1000 is perfect",
    "range3": "mean squared error of range queries on 3 attributes",
    "range5": "mean squared error of range queries on 5 attributes",
    "svm": "share of real rows misclassified after training on synthetic rows",
    "svm_real": "the same after training on real rows",
    "svm_majority": "the same for always answering the most frequent class",
}
DEGREES = {"tvd1": 1, "tvd2": 2, "tvd3": 3, "k_marginal": 2}


def run(
    real: str,
    synthetic: str,
    schema: Path,
    metrics: str | None,
    target: str | None,
    ledger: Path | None,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare, and say it in words or as one JSON object."""
    progress = TerminalProgress(Limits(), quiet)
    report = evaluate(
        real,
        synthetic,
        schema,
        metrics=None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()],
        target=target,
        seed=seed,
        ledger=ledger,
        progress=progress,
    )
    if as_json:
        print(json.dumps(report | {"phases": progress.phases, "peak_rss_mb": peak_rss_mb()}))
        return
    print(PRIVATE)
    rows = report["rows"]
    print(f"{rows['real']:,} real rows, {rows['synthetic']:,} synthetic rows, {report['columns']} columns")
    for name, meaning in MEANINGS.items():
        if name in report:
            print(f"{name:12} {_figure(name, report[name]):>8}  {meaning}{_sampled(name, report)}")


def _figure(name: str, value: float) -> str:
    if name == "k_marginal":
        return f"{value:.1f}"
    return f"{value:.2e}" if name.startswith("range") else f"{value:.4f}"


def _sampled(name: str, report: dict[str, Any]) -> str:
    """Say so where a sample of the marginals stands for all."""
    attributes = report["attributes"]
    marginals = math.comb(attributes, min(DEGREES.get(name, 0), attributes))
    return f" (a sample of {MOST_MARGINALS:,} of {marginals:,})" if marginals > MOST_MARGINALS else ""
