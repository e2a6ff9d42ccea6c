"""Forecasts beside outcomes: fits the constants of hedgerow.run.forecast, and writes docs/studies/plan.md.

    python -m bench.plan --releases FOLDER reads outcomes of `hedge` off the releases that bench.coverage made
    python -m bench.plan                   fits to all tables and prints the constants
    python -m bench.plan --page            writes the page: each table by what the others say

Outcomes of coded tables come from bench/quality.json, whose runs measure no quality of their own. Distances are over
the cells of the release, as its own quality is.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.declared import MOST_ROWS, declared, few
from bench.process import ROOT, in_a_process, needed
from bench.tables import at_hand
from hedgerow.run.forecast import SPREAD, Law, Laws, Table, expected, method_mu, table_of

RESULTS = ROOT / "bench" / "plan.json"
CODED = ROOT / "bench" / "quality.json"
PAGE = ROOT / "docs" / "studies" / "plan.md"
CODED_TABLES = ("adult", "br2000", "loans", "nltcs", "titanic")
TABLES = ("adult-raw", "bank", "ma2019", "acs-temporal")
EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTA = 1e-9
Cell = tuple[str, float, int, tuple[float, ...]]
"""A table, ε, rows, and the distances of columns, pairs and triples."""


def read(name: str, paths: list[str]) -> dict[str, Any]:
    """Mean distances of some releases of the default method, over their own cells."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.private.evaluate.marginals import marginal_distances

    rows, _ = few(name)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    found = []
    for path in paths:
        release = hr.Release.load(path)
        encoding = release.encoding
        real, made = encoding.encode(table), encoding.read_back(release.sample())
        far = {f"tvd{k}": float(marginal_distances(real, made, encoding.domain, k, most=400).mean()) for k in (1, 2, 3)}
        found.append({**far, "rows": len(rows)})
    return {"outcomes": found}


def outcomes() -> list[Cell]:
    """Everything that was run, means where there are several."""
    found: dict[tuple[str, float], list[dict[str, float]]] = {}
    for key, runs in json.loads(CODED.read_text()).items():
        name, method, epsilon = key.split("|")
        if method == "hedge" and name in CODED_TABLES:
            found[name, float(epsilon)] = runs
    for key, runs in json.loads(RESULTS.read_text()).items():
        name, epsilon = key.split("|")
        if name in TABLES:
            found[name, float(epsilon)] = runs
    count = {name: len(declared(name)[0]) for name in {name for name, _ in found}}
    return [
        (name, epsilon, int(runs[0].get("rows", count[name])), _means(runs))
        for (name, epsilon), runs in sorted(found.items())
    ]


def _means(runs: list[dict[str, float]]) -> tuple[float, ...]:
    return tuple(sum(run[f"tvd{degree}"] for run in runs) / len(runs) for degree in (1, 2, 3))


def fitted(cells: list[Cell]) -> Laws:
    """The constants: least squares of logarithms, each table weighing the same."""
    from scipy.optimize import least_squares

    count = Counter(name for name, *_ in cells)
    weights = np.array([[1 / math.sqrt(count[name])] for name, *_ in cells])
    tables = [before(name, epsilon, rows) for name, epsilon, rows, _ in cells]
    truth = np.log([far for *_, far in cells])

    def missed(x: Any) -> Any:
        laws = _laws(x)
        return (weights * (truth - np.log([expected(table, mu, laws) for table, mu in tables]))).ravel()

    return _laws(least_squares(missed, [0.5, 5.0, 0.8, -3.5, 2.0, 7.0, 0.5, -2.5, 0.5, 1.3]).x)


def _laws(x: Any) -> Laws:
    """The constants, all of which are positive, from what is fitted."""
    columns, pairs = (
        Law(math.exp(scale), math.exp(bend), width, math.exp(detail)) for scale, bend, width, detail in (x[:4], x[4:8])
    )
    return Laws(columns, pairs, math.exp(x[8]), math.exp(x[9]))


@cache
def before(name: str, epsilon: float, rows: int) -> tuple[Table, float]:
    """What is known of a table, and μ for the method, before it is seen."""
    import hedgerow as hr

    schema = declared(name)[1]
    mu = method_mu(schema, hr.Budget(epsilon, DELTA), 0.05 if name in TABLES else 0.0)
    return table_of(schema, rows, mu), mu


def page() -> str:
    """The page: every cell, its forecast by constants that were fitted to the other tables, and its outcome."""
    cells = outcomes()
    lines, right = [], np.zeros(4, dtype=int)
    for left_out in dict.fromkeys(name for name, *_ in cells):
        laws = fitted([each for each in cells if each[0] != left_out])
        for name, epsilon, rows, far in cells:
            if name != left_out:
                continue
            table, mu = before(name, epsilon, rows)
            columns, pairs, triples = expected(table, mu, laws)
            low, high = triples / math.sqrt(SPREAD), min(1.0, triples * math.sqrt(SPREAD))
            right += [1, _near(columns, far[0]), _near(pairs, far[1]), low <= far[2] <= high]
            lines.append(
                f"| {name} | {epsilon:g} | {columns:.4f} / {far[0]:.4f} | {pairs:.4f} / {far[1]:.4f} | "
                f"{low:.3f} – {high:.3f} / {far[2]:.4f} |"
            )
    count, one, two, three = right.tolist()
    said = (
        f"Of {count} cells, columns came out within a factor 2 of their forecast in {100 * one / count:.0f} %, pairs "
        f"in {100 * two / count:.0f} %, triples inside their range (a factor {SPREAD:g} wide) in "
        f"{100 * three / count:.0f} %."
    )
    return HEAD + "\n".join([said, "", *TABLE, *lines]) + "\n"


def _near(told: float, came: float) -> bool:
    return 0.5 <= told / came <= 2


HEAD = f"""# Forecasts beside outcomes

[`hedgerow plan`](../use/plan.md) foretells errors without a table. Here is what it says beside what came out: mean
total variation distances of columns, pairs and triples at δ = {DELTA:g}, forecast / outcome. The forecasts of each
table are by constants that were fitted to all the other tables; those in the package are fitted to all. The form
of the law was chosen with a look at all of them. `acs-temporal` is a sample of {MOST_ROWS:,} rows. `adult-raw`, `bank`
and `ma2019` are declared by types and bounds, and cut privately. Written by `python -m bench.plan --page`.

"""
TABLE = ("| table | ε | columns | pairs | triples |", "|---|---|---|---|---|")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--releases", type=Path, help="a folder of releases, as bench.coverage makes them")
    asked.add_argument("--tables", default=",".join(TABLES))
    asked.add_argument("--page", action="store_true")
    given = asked.parse_args()
    if given.releases is not None:
        results = json.loads(RESULTS.read_text())
        for name in at_hand(*given.tables.split(",")):
            for epsilon in EPSILONS:
                paths = sorted(map(str, given.releases.glob(f"{name}-{epsilon:g}-*.release")))
                if paths:
                    found = needed(in_a_process("bench.plan", "read", name, paths))["outcomes"]
                    results[f"{name}|{epsilon:g}"] = found
                    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    if given.page:
        PAGE.write_text(page(), encoding="utf-8")
    elif given.releases is None:
        print(fitted(outcomes()))


if __name__ == "__main__":
    main()
