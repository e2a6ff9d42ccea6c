"""Published distances beside the true ones, and what measuring them costs: docs/studies/distances.md.

    python -m bench.distances --tables bank --epsilons .3,1,3,10 --folder /tmp/releases
    python -m bench.distances --tables br2000 --epsilons 1 --runs 5 --folder /tmp/releases --cost

Releases are those that `bench.coverage --make` keeps in a folder. Every distance that a release publishes is computed
anew from the real rows; `--cost` makes as many releases that measure none and compares mean 3-way distances. Results
are kept in bench/distances.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.coverage import DELTA
from bench.declared import few
from bench.process import ROOT, in_a_process, needed
from bench.tables import at_hand

RESULTS = ROOT / "bench" / "distances.json"
PAGE = ROOT / "docs" / "studies" / "distances.md"
LEVEL, REACH = 0.9, 1.6448536269514722
"""Noise is within so many standard deviations with that probability."""
KINDS = ("columns", "pairs", "mean of pairs", "worst pair")


def beside(name: str, paths: list[str]) -> dict[str, Any]:
    """How often the published distances of some releases are within their stated noise of the true ones."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.coded.query import MarginalQuery
    from hedgerow.models.rows import CountedRows

    rows, _ = few(name)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    found = {kind: [0, 0, 0] for kind in KINDS}
    noises = []
    for path in paths:
        release = hr.Release.load(path)
        encoding, total, quality = release.encoding, release.model.total, release.quality
        assert quality is not None
        real = CountedRows(encoding.encode(table), len(rows))
        made = CountedRows(release.written(**release.certificate.drawn), total)  # type: ignore[arg-type]
        truths: dict[str, list[float]] = {}
        for kind, published in (("columns", quality.columns), ("pairs", quality.pairs)):
            queries = [MarginalQuery(encoding.domain, each.attributes) for each in published]
            counted = zip(real.answers(queries), made.answers(queries), strict=True)
            truths[kind] = [float(np.abs(private - public).sum()) / 2 / total for private, public in counted]
            for each, truth in zip(published, truths[kind], strict=True):
                _count(found[kind], each, truth)
        assert quality.mean_pair is not None
        assert quality.worst_pair is not None
        _count(found["mean of pairs"], quality.mean_pair, float(np.mean(truths["pairs"])))
        _count(found["worst pair"], quality.worst_pair, max(truths["pairs"]))
        noises.append(float(np.median([each.std for each in quality.pairs])))
    return {"releases": len(paths), "found": found, "noise": float(np.mean(noises)), "pair": np.mean(truths["pairs"])}


def _count(held: list[int], published: Any, truth: float) -> None:
    """One more distance: asked, within its noise, below its upper bound."""
    held[0] += 1
    held[1] += abs(published.value - truth) <= REACH * published.std
    held[2] += truth <= published.upper


def made(name: str, epsilon: float, quality: float, runs: int) -> dict[str, Any]:
    """Mean 3-way distances of some releases that spend so much on their own quality."""
    import pyarrow as pa

    import hedgerow as hr
    from hedgerow.private.evaluate.marginals import marginal_distances

    rows, schema = few(name)
    table = pa.Table.from_pandas(rows, preserve_index=False)
    far = []
    for _ in range(runs):
        release = hr.synthesize(table, schema, hr.Budget(epsilon, DELTA), quality=quality)
        encoding = release.encoding
        drawn = encoding.read_back(release.sample())
        far.append(float(marginal_distances(encoding.encode(table), drawn, encoding.domain, 3, most=400).mean()))
    return {"tvd3": far}


def run() -> list[dict[str, Any]]:
    """Compare what is there, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.distances")
    parser.add_argument("--tables", default="nltcs,br2000,bank")
    parser.add_argument("--epsilons", default=".3,1,3,10")
    parser.add_argument("--folder", default="/tmp/hedgerow-coverage")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cost", action="store_true", help="what measuring costs, instead")
    arguments = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = []
    for name in at_hand(*arguments.tables.split(",")):
        for epsilon in map(float, arguments.epsilons.split(",")):
            key = f"{name}|{epsilon:g}"
            if arguments.cost:
                both = [
                    needed(in_a_process("bench.distances", "made", name, epsilon, quality, arguments.runs))["tvd3"]
                    for quality in (0.0, 0.05)
                ]
                results[f"{key}|cost"] = {"without": both[0], "with": both[1]}
            else:
                paths = sorted(map(str, Path(arguments.folder).glob(f"{name}-{epsilon:g}-*.release")))
                if not paths:
                    continue
                results[key] = needed(in_a_process("bench.distances", "beside", name, paths))
            rows.append({"table": name, "epsilon": epsilon})
            print(key, results.get(key), results.get(f"{key}|cost"), file=sys.stderr, flush=True)
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    PAGE.write_text(page(results), encoding="utf-8")
    return rows


def page(results: dict[str, Any]) -> str:
    """docs/studies/distances.md."""
    lines = [
        "# Are published distances right?",
        "",
        "A run measures [how far its rows are from the private ones](../use/quality-of-a-release.md), with noise",
        f"that it states. Here is how often a published distance was within {REACH:.3g} of its standard deviations of",
        f"the true one ({100 * LEVEL:.0f} % are to be), and how often the truth was below the stated upper bound",
        f"({100 * LEVEL:.0f} % are to be; of the worst pair at least). δ = {DELTA:g}, 5 % of the budget. Written by",
        "`python -m bench.distances`.",
        "",
        "| table | ε | releases | noise of a pair | " + " | ".join(KINDS) + " |",
        "|---|---|---|---|---|---|---|---|",
    ]
    sums: dict[str, np.ndarray] = {}
    order = sorted(results, key=lambda key: (key.split("|")[0], float(key.split("|")[1])))
    for key in order:
        about = results[key]
        if key.endswith("|cost"):
            continue
        name, epsilon = key.split("|")
        cells = []
        for kind in KINDS:
            held = about["found"][kind]
            sums[kind] = sums.get(kind, np.zeros(3, dtype=int)) + np.array(held)
            cells.append(_said(held, bound_alone=kind == "worst pair"))
        lines.append(
            f"| {name} | {epsilon} | {about['releases']} | ± {100 * about['noise']:.2f} % | {' | '.join(cells)} |"
        )
    if sums:
        cells = [_said(held.tolist(), bound_alone=kind == "worst pair") for kind, held in sums.items()]
        lines.append(f"| all | | | | {' | '.join(cells)} |")
    lines += [
        "",
        "A cell gives: within the noise / below the upper bound, of how many.",
        "",
        "## What measuring costs",
        "",
        "Mean 3-way distance of releases that measure nothing and of releases that spend 5 % on it.",
        "",
        "| table | ε | runs of each | without | with | more by |",
        "|---|---|---|---|---|---|",
    ]
    for key in order:
        about = results[key]
        if key.endswith("|cost"):
            name, epsilon, _ = key.split("|")
            off, on = np.array(about["without"]), np.array(about["with"])
            more = on.mean() / off.mean() - 1
            error = math.hypot(*(each.std(ddof=1) / math.sqrt(len(each)) for each in (off, on))) / off.mean()
            lines.append(
                f"| {name} | {epsilon} | {len(off)} | {off.mean():.4f} | {on.mean():.4f} | "
                f"{100 * more:+.1f} % ± {100 * error:.1f} % |"
            )
    return "\n".join([*lines, "", "±: one standard error, from the runs.", ""])


def _said(held: list[int], bound_alone: bool) -> str:
    asked, within, below = held
    inside = "" if bound_alone else f"{100 * within / asked:.0f} % / "
    return f"{inside}{100 * below / asked:.0f} % of {asked:,}"


if __name__ == "__main__":
    run()
