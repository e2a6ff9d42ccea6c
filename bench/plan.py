"""Forecasts beside outcomes: fits the constants of hedgerow.run.forecast, and writes docs/studies/plan.md.

    python -m bench.plan --run bank:1      adds an outcome of `hedge` to bench/plan.json
    python -m bench.plan                   fits to the calibration tables and prints the constants
    python -m bench.plan --page            writes the page with the constants that the package has

Outcomes of coded tables come from bench/quality.json; those of tables that are cut privately, and of the tables that
are only checked on, from runs of this script. Distances are over the cells of the release, as its own quality is.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.declared import MOST_ROWS, declared, few
from bench.process import ROOT

if TYPE_CHECKING:
    pass

RESULTS = ROOT / "bench" / "plan.json"
CODED = ROOT / "bench" / "quality.json"
PAGE = ROOT / "docs" / "studies" / "plan.md"
FITTED = ("adult", "br2000", "loans", "nltcs", "titanic", "adult-raw")
CHECKED = ("bank", "ma2019", "acs-temporal")
RAW = ("adult-raw", "bank")
DELTA = 1e-9


def outcome(name: str, epsilon: float) -> dict[str, float]:
    """Mean distances of one release of the default method, over its own cells."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.private.evaluate.marginals import marginal_distances

    rows, schema = few(name)
    release = hr.synthesize(rows, schema, hr.Budget(epsilon, DELTA))
    encoding = release.encoding
    real = encoding.encode(pa.Table.from_pandas(rows, preserve_index=False))
    made = encoding.read_back(release.sample())
    far = {f"tvd{k}": float(marginal_distances(real, made, encoding.domain, k, most=400).mean()) for k in (1, 2, 3)}
    return {**far, "rows": len(rows)}


def outcomes() -> list[tuple[str, float, int, tuple[float, ...]]]:
    """(table, ε, rows, distances) of everything that was run, means where there are several."""
    found: dict[tuple[str, float], list[dict[str, float]]] = {}
    for key, runs in json.loads(CODED.read_text()).items():
        name, method, epsilon = key.split("|")
        if method == "hedge" and name in FITTED:
            found[name, float(epsilon)] = runs
    for key, runs in json.loads(RESULTS.read_text()).items():
        name, epsilon = key.split("|")
        if name not in FITTED or name in RAW:
            found[name, float(epsilon)] = runs
    count = {name: len(declared(name)[0]) for name in {name for name, _ in found}}
    return [
        (name, epsilon, int(runs[0].get("rows", count[name])), _means(runs))
        for (name, epsilon), runs in sorted(found.items())
    ]


def _means(runs: list[dict[str, float]]) -> tuple[float, ...]:
    return tuple(sum(run[f"tvd{degree}"] for run in runs) / len(runs) for degree in (1, 2, 3))


def fit() -> None:
    """Least squares of logarithms, each calibration table weighing the same."""
    from scipy.optimize import least_squares

    import hedgerow as hr
    from hedgerow.run.forecast import method_mu, table_of

    cells = [each for each in outcomes() if each[0] in FITTED]
    schemas = {name: declared(name)[1] for name in FITTED}
    count = Counter(name for name, *_ in cells)
    weights = np.array([1 / math.sqrt(count[name]) for name, *_ in cells])
    for degree in (1, 2, 3):
        noise, width, detail, truth = [], [], [], []
        for name, epsilon, rows, far in cells:
            mu = method_mu(schemas[name], hr.Budget(epsilon, DELTA), 0.0)
            expected = table_of(schemas[name], rows, mu)
            noise.append(math.log(math.sqrt(len(expected.sizes)) / (mu * rows)))
            width.append(math.log(expected.cells(degree)))
            detail.append(0.0 if expected.is_held else math.sqrt(min(1.0, expected.cells(degree) / rows)))
            truth.append(math.log(far[degree - 1]))
        parts = [np.array(part) for part in (noise, width, detail, truth)]

        def missed(x: Any, parts: list[Any] = parts) -> Any:
            noise, width, detail, truth = parts
            return weights * (truth - np.log(np.exp(x[0] + x[1] * (noise + x[2] * width)) + np.exp(x[3]) * detail))

        found = least_squares(missed, [-1.0, 0.6, 0.5, -3.0]).x
        print(f"    Law({math.exp(found[0]):.4f}, {found[1]:.4f}, {found[2]:.4f}, {math.exp(found[3]):.4f}),")


def page() -> str:
    """The page: every cell, forecast and outcome, and how many forecasts were right."""
    import hedgerow as hr
    from hedgerow.run.forecast import forecast

    lines, right = [], {name: [0, 0, 0, 0] for name in ("fitted", "checked")}
    for name, epsilon, rows, far in outcomes():
        kind = "fitted" if name in FITTED else "checked"
        told = forecast(declared(name)[1], hr.Budget(epsilon, DELTA), rows, 0.0)
        low, high = told.triples
        hit = (_near(told.columns, far[0]), _near(told.pairs, far[1]), low <= far[2] <= high)
        right[kind] = [right[kind][0] + 1, *(a + b for a, b in zip(right[kind][1:], hit, strict=True))]
        lines.append(
            f"| {name} | {kind} | {epsilon:g} | {told.columns:.4f} / {far[0]:.4f} | {told.pairs:.4f} / {far[1]:.4f} | "
            f"{low:.3f} – {high:.3f} / {far[2]:.4f} |"
        )
    said = [
        f"- {kind} on: of {cells} cells columns within a factor 2 in {100 * one / cells:.0f} %, pairs in "
        f"{100 * two / cells:.0f} %, triples inside their range in {100 * three / cells:.0f} %"
        for kind, (cells, one, two, three) in right.items()
    ]
    return HEAD + "\n".join([*said, "", *TABLE, *lines]) + "\n"


def _near(told: float, came: float) -> bool:
    return 0.5 <= told / came <= 2


HEAD = f"""# Forecasts beside outcomes

[`hedgerow plan`](../use/plan.md) foretells errors without a table. Here is what it says beside what came out: mean
total variation distances of columns, pairs and triples at δ = {DELTA:g}, forecast / outcome. The constants were fitted
to {", ".join(FITTED)}; {", ".join(CHECKED)} took no part in that. `acs-temporal` is a sample of
{MOST_ROWS:,} rows. `adult-raw`, `bank` and `ma2019` are declared by types and bounds, and cut privately. Written by
`python -m bench.plan --page`.

"""
TABLE = ("| table | | ε | columns | pairs | triples |", "|---|---|---|---|---|---|")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--run", nargs="*", default=[], metavar="TABLE:EPSILON")
    asked.add_argument("--page", action="store_true")
    given = asked.parse_args()
    for each in given.run:
        name, epsilon = each.split(":")
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results.setdefault(f"{name}|{float(epsilon):g}", []).append(outcome(name, float(epsilon)))
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if given.page:
        PAGE.write_text(page(), encoding="utf-8")
    elif not given.run:
        fit()


if __name__ == "__main__":
    main()
