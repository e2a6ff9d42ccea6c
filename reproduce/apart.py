"""Where MST on private-pgm and `mst:paper` part: the same noisy answers, two searches for a model, two ways of drawing.

    HEDGEROW_DATA=data python -m reproduce.apart br2000 0.3 5
    HEDGEROW_DATA=data python -m reproduce.apart br2000 0.3 5 spread

Answers, and which values are merged, are those of `reproduce/peers.py`. From them a model is made by mbi (mirror
descent, 2,500 iterations) and by `hedgerow.fit`; from each rows are drawn by mbi and by us; merged values are spread as
mbi spreads them. Figures are tvd2 and tvd3 over all marginals of the original columns, and the loss of the models.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from typing import Any

import mbi
import numpy as np
import pyarrow.parquet as pq
from bench.tables import DATA

import hedgerow as hr
from hedgerow.models.expanded import Expanded
from reproduce import peers

Rows = dict[str, Any]


def error(real: Rows, made: Rows, sizes: dict[str, int], degree: int) -> float:
    """Mean total variation distance over all marginals of this degree."""
    found = []
    for marginal in combinations(sizes, degree):
        shape = [sizes[name] for name in marginal]
        both = [
            np.bincount(np.ravel_multi_index([rows[name] for name in marginal], shape), minlength=int(np.prod(shape)))
            for rows in (real, made)
        ]
        found.append(np.abs(both[0] / both[0].sum() - both[1] / both[1].sum()).sum() / 2)
    return float(np.mean(found))


def fitted(domain: mbi.Domain, known: list[Any]) -> hr.Fitted:
    """Our model of mbi's answers."""
    answers = []
    for each in known:
        weights = getattr(each.query, "weights", None)
        query = None if weights is None else np.diag(np.asarray(weights))
        answers.append(hr.noisy(each.clique, np.asarray(each.noisy_measurement), each.stddev, query=query))
    return hr.fit(dict(zip(domain.attributes, domain.shape, strict=True)), answers)


def loss(marginal: Any, known: list[Any]) -> float:
    """½ Σ ((answer − value) / std)²."""
    total = 0.0
    for each in known:
        weights = getattr(each.query, "weights", None)
        value = marginal(each.clique) * (1.0 if weights is None else np.asarray(weights))
        total += float((((value - np.asarray(each.noisy_measurement)) / each.stddev) ** 2).sum() / 2)
    return total


def spread(name: str, epsilon: float, runs: int) -> None:
    """Of `mst:paper`: what it is worth how merged values are spread, by our counts or row by row with a coin."""
    sizes = json.loads((DATA / name / "domain.json").read_text())
    table = pq.read_table(DATA / name / "data.parquet", columns=list(sizes))
    real = {column: table[column].to_numpy() for column in sizes}
    for seed in range(runs):
        release = hr.synthesize(table, str(DATA / name / "domain.json"), hr.Budget(epsilon), "mst:paper", quality=0)
        model, rows = release.model, release.estimated_rows
        ours = model.draw(rows, np.random.default_rng(seed))
        merged = model.recoding.maps if isinstance(model, Expanded) else {}
        inside = (model.model if isinstance(model, Expanded) else model).draw(rows, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        theirs: Rows = dict(inside)
        for column, mapping in merged.items():
            codes = inside[column]
            theirs[column] = np.zeros(len(codes), dtype=np.int64)
            for code in np.unique(codes):
                theirs[column][codes == code] = rng.choice(np.flatnonzero(mapping == code), (codes == code).sum())
        print(
            f"run {seed}: merged {len(merged)} columns; tvd3 {error(real, ours, sizes, 3):.4f} by our counts, "
            f"{error(real, theirs, sizes, 3):.4f} with a coin",
            flush=True,
        )


def main() -> None:
    if len(sys.argv) > 4:
        return spread(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
    return answers(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))


def answers(name: str, epsilon: float, runs: int) -> None:
    """The same answers, two models, two ways of drawing."""
    sizes = json.loads((DATA / name / "domain.json").read_text())
    table = pq.read_table(DATA / name / "data.parquet", columns=list(sizes))
    real = {column: table[column].to_numpy() for column in sizes}
    data = mbi.Dataset(real, mbi.Domain.fromdict(sizes))
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        np.random.seed(seed)  # noqa: NPY002 (mbi draws rows with it)
        small, known, merged = peers.mst_answers(data, peers.rho_of(epsilon, 1e-9), rng)
        theirs = peers.estimate(small, known, None, peers.LAST)
        ours = fitted(small, known)
        handed = ours.to_mbi()
        made = {
            "their model, their rows": theirs.synthetic_data(),
            "our model, their rows": handed.synthetic_data(),
            "our model, our rows": mbi.Dataset(ours.sample(seed=seed), small),
        }
        losses = [
            loss(lambda clique, model=theirs: np.asarray(model.project(clique).datavector()), known),
            loss(lambda clique, model=ours: model.marginal(clique).reshape(-1), known),
        ]
        print(
            f"seed {seed}: loss {losses[0]:.1f} (theirs) {losses[1]:.1f} (ours); "
            f"total {float(theirs.total):.0f} {ours.total:.0f}"
        )
        for what, rows in made.items():
            back = rows.decompress(merged).to_dict()
            print(
                f"  {what:26} tvd2 {error(real, back, sizes, 2):.4f} tvd3 {error(real, back, sizes, 3):.4f}", flush=True
            )


if __name__ == "__main__":
    main()
