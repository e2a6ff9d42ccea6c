"""What each part of hedge is worth: the error on the field's tables with one thing changed at a time.

    python -m bench.ablation [RUNS]

Prints the table of docs/understand/methods/hedge.md. All variants see the same noise seeds; figures are mean
total variation distances over 3-way marginals, medians of the runs.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from bench.tables import DATA
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.methods import build, hedge
from hedgerow.methods.method import Method
from hedgerow.methods.shared import blocks, columns, coverings, joins
from hedgerow.models.denoising import Column
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.histograms import project_to_simplex

CASES = [
    *((table, epsilon) for table in ("adult", "br2000") for epsilon in (0.1, 1.0, 10.0)),
    ("nltcs", 0.1),
    ("nltcs", 1.0),
    ("titanic", 1.0),
]


def _raw(measurement: Any, attribute: Any, total: float) -> Column:
    return Column(project_to_simplex(measurement.dense(), total), measurement.std)


def _plain_fit(prior: Any, measured: Any, *, limits: Any, rough: bool = False) -> Any:
    return fit(prior.domain, measured, total=prior.total, limits=limits)


def _cells_only(domain: Any, marginal: Any, counts: Any, most: int, family: Any) -> Any:
    if counts.size <= most:
        yield MarginalQuery(domain, marginal), counts.reshape(-1)


def _unmerged(self: Any, finest: float) -> Recoding:
    return Recoding(self.domain, {})


VARIANTS: dict[str, Callable[[], Any]] = {
    "as it is": lambda: mock.patch.object(hedge, "MOST_PAIRS", hedge.MOST_PAIRS),
    "columns not denoised": lambda: mock.patch.object(columns, "denoised", _raw),
    "columns not joined": lambda: mock.patch.object(joins, "promising", return_value=[]),
    "rare codes merged wherever noise hides them": lambda: mock.patch.object(hedge, "ROOMY", 0),
    "rare codes not merged": lambda: mock.patch.object(columns.Columns, "coarsening", _unmerged),
    "fit to the end instead of near the columns": lambda: mock.patch.object(hedge, "fit_near", _plain_fit),
    "whole marginals only, no blocks": lambda: mock.patch.object(blocks, "resolutions", _cells_only),
    "blocks at one resolution": lambda: mock.patch.object(blocks, "LEAST_COARSE_BLOCKS", 1 << 60),
    "no views, no pairs beyond the model": lambda: mock.patch.object(hedge, "MOST_NOISE_SHARE", 0.0),
    "views no wider than the workload": lambda: mock.patch.object(coverings, "TIMES", (1,)),
    "no pairs beyond the model": lambda: mock.patch.object(hedge, "MOST_SCORE_NOISE", 0.0),
    "at most 10 rounds": lambda: mock.patch.object(hedge, "MOST_ROUNDS", 10),
}
OPTIONS = {"a model of 1 MB": {"size": 1.0}, "a model of 16 MB": {"size": 16.0}, "one pick per column": {"picks": 1.0}}


def error(table: str, epsilon: float, method: Method, seed: int) -> float:
    import hedgerow as hr
    from hedgerow.private.evaluate import marginal_distances
    from hedgerow.private.sources.source import open_source

    schema = hr.Schema.load(DATA / table / "domain.json")
    path = DATA / table / "data.parquet"
    release = hr.synthesize(
        path, schema, hr.Budget(epsilon, 1e-9), method, unsafe_noise_seed=seed, seed=seed, quality=0
    )
    encoding = schema.encoding()
    parts = [encoding.encode(batch) for batch in open_source(path).batches(encoding.columns)]
    real = {name: np.concatenate([part[name] for part in parts]) for name in encoding.domain.names}
    drawn = encoding.encode(release.sample().combine_chunks())
    return float(marginal_distances(real, drawn, encoding.domain, 3).mean())


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print("| | " + " | ".join(f"{table}, ε = {epsilon:g}" for table, epsilon in CASES) + " |")
    print("|---" * (len(CASES) + 1) + "|")
    for name in [*VARIANTS, *OPTIONS]:
        method = build("hedge", OPTIONS.get(name, {}))
        with VARIANTS.get(name, VARIANTS["as it is"])():
            found = [
                statistics.median(error(table, epsilon, method, seed) for seed in range(runs))
                for table, epsilon in CASES
            ]
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in found) + " |", flush=True)


if __name__ == "__main__":
    main()
