"""What each part of hedge is worth: the error on the field's tables with one thing changed at a time.

    python -m bench.ablation --runs 3 --cases adult:0.1,br2000:0.1 --variants "as it is,rows not evened"
    python -m bench.ablation --oracles --cases adult:0.1,br2000:0.1

Prints the tables of docs/understand/methods/hedge.md; without a choice all cases and variants. All variants see the
same noise seeds; figures are mean total variation distances over 3-way marginals, medians of the runs. The oracles are
runs that are given the answer: they have no guarantee, and show what a run loses where.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from bench.tables import DATA
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.methods import build, hedge
from hedgerow.methods.method import Method
from hedgerow.methods.shared import at_once, blocks, columns, joins, outside
from hedgerow.models import evened
from hedgerow.models.denoising import Column
from hedgerow.models.graphical.estimation import NearFits, fit, together
from hedgerow.models.histograms import project_to_simplex
from hedgerow.private import mechanisms, vault
from hedgerow.private.exact import combined

CASES = [
    *((table, epsilon) for table in ("adult", "br2000") for epsilon in (0.1, 1.0, 10.0)),
    ("nltcs", 0.1),
    ("nltcs", 1.0),
    ("titanic", 1.0),
]


def _raw(measurement: Any, attribute: Any, total: float) -> Column:
    return Column(project_to_simplex(measurement.dense(), total), measurement.std)


def _plain_fit(self: Any, measured: Any, *, rough: bool = False, support: Any = None, trace: Any = None) -> Any:
    return fit(self.prior.domain, measured, total=self.prior.total, limits=self.limits)


def _cells_only(domain: Any, marginal: Any, counts: Any, most: int, family: Any) -> Any:
    if counts.size <= most:
        yield MarginalQuery(domain, marginal), counts.reshape(-1)


def _unmerged(self: Any, finest: float) -> Recoding:
    return Recoding(self.domain, {})


VARIANTS: dict[str, Callable[[], Any]] = {
    "as it is": contextlib.nullcontext,
    "columns not denoised": lambda: mock.patch.object(columns, "denoised", _raw),
    "columns not joined": lambda: mock.patch.object(joins, "promising", return_value=[]),
    "rare codes merged wherever noise hides them": lambda: mock.patch.object(hedge, "ROOMY", 0),
    "rare codes not merged": lambda: mock.patch.object(columns.Columns, "coarsening", _unmerged),
    "fit to the end instead of near the columns": lambda: mock.patch.object(NearFits, "fit", _plain_fit),
    "whole marginals and no blocks": lambda: mock.patch.object(blocks, "resolutions", _cells_only),
    "blocks at one resolution": lambda: mock.patch.object(blocks, "LEAST_COARSE_BLOCKS", 1 << 60),
    "never everything at once": lambda: mock.patch.object(at_once, "MOST_NOISE_SHARE", 0.0),
    "no pairs beyond the model": lambda: mock.patch.object(outside, "MOST_SCORE_NOISE", 0.0),
    "at most 10 rounds": lambda: mock.patch.object(hedge, "MOST_ROUNDS", 10),
    "rows not evened": lambda: mock.patch.object(evened, "VISITS", 0),
}
OPTIONS = {"a model of 1 MB": {"size": 1.0}, "a model of 16 MB": {"size": 16.0}, "one pick per column": {"picks": 1.0}}


def _exact(query: Any, sealed: Any) -> Any:
    """What the vault holds behind a seal."""
    counts = np.zeros(query.cells, dtype=np.int64)
    mechanisms._add(counts, 0, (combined(sealed, query) if isinstance(query, InteractionQuery) else sealed).opened())
    return counts


def _told(whose: Callable[[Any], bool]) -> Any:
    """Exact counts where `whose` says so; the method believes that they carry the noise that was paid for."""
    drawn = vault.Vault._answer

    def answer(self: Any, query: Any, exact: Any, noise: Any, threshold: Any) -> Measurement:
        if not whose(query):
            return drawn(self, query, exact, noise, threshold)
        return Measurement(query, _exact(query, exact), noise)

    return mock.patch.object(vault.Vault, "_answer", answer)


def _told_what_is_empty() -> Any:
    """Every fit is told which cells of the marginals it sees hold no row; the noise of the others stays."""
    drawn, fitted = vault.Vault._answer, NearFits.fit
    occupied: dict[int, Any] = {}  # by the identity of an answer's values, which these hold alive

    def answer(self: Any, query: Any, exact: Any, noise: Any, threshold: Any) -> Measurement:
        answered = drawn(self, query, exact, noise, threshold)
        if isinstance(query, MarginalQuery):
            occupied[id(answered.values)] = (answered.values, _exact(query, exact) > 0)
        return answered

    def near(self: Any, measured: Any, *, rough: bool = False, support: Any = None, trace: Any = None) -> Any:
        told: dict[Any, Any] = {}
        for each in measured:
            if id(each.values) in occupied and len(each.query.attributes) > 1:
                query, possible = each.query, occupied[id(each.values)][1]
                possible = possible if query.blocks is None else possible[query.blocks]
                told[query.attributes] = told.get(query.attributes, True) & possible.reshape(query.shape)
        return fitted(self, measured, rough=rough, support=together(support or {}, told), trace=trace)

    return _several(mock.patch.object(vault.Vault, "_answer", answer), mock.patch.object(NearFits, "fit", near))


def _best(self: Any, scores: Any, rate: Any) -> int:
    return int(np.argmax(scores.opened()))


def _several(*patches: Any) -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    for patch in patches:
        stack.enter_context(patch)
    return stack


ORACLES: dict[str, Callable[[], Any]] = {
    "as it is": contextlib.nullcontext,
    "told the number of rows and the columns": lambda: _told(lambda query: len(query.attributes) < 2),
    "told what it measures of several columns": lambda: _told(lambda query: len(query.attributes) > 1),
    "told which cells of what it measures are empty": _told_what_is_empty,
    "told which candidate is best": lambda: mock.patch.object(mechanisms.Mechanisms, "choose", _best),
    "told all of this": lambda: _several(
        _told(lambda query: True), mock.patch.object(mechanisms.Mechanisms, "choose", _best)
    ),
}


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
    parser = argparse.ArgumentParser(prog="python -m bench.ablation")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cases", help="table:ε, with commas between them")
    parser.add_argument("--variants", help="their names, with commas between them")
    parser.add_argument("--oracles", action="store_true")
    arguments = parser.parse_args()
    cases = CASES
    if arguments.cases:
        cases = [(table, float(epsilon)) for table, epsilon in (case.split(":") for case in arguments.cases.split(","))]
    changes = ORACLES if arguments.oracles else VARIANTS
    names = list(changes) if arguments.oracles else [*VARIANTS, *OPTIONS]
    print("| | " + " | ".join(f"{table}, ε = {epsilon:g}" for table, epsilon in cases) + " |")
    print("|---" * (len(cases) + 1) + "|")
    for name in arguments.variants.split(",") if arguments.variants else names:
        method = build("hedge", OPTIONS.get(name, {}))
        found = []
        for table, epsilon in cases:
            with changes.get(name, contextlib.nullcontext)():
                found.append(statistics.median(error(table, epsilon, method, seed) for seed in range(arguments.runs)))
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in found) + " |", flush=True)


if __name__ == "__main__":
    main()
