"""Fill in the grid and write docs/studies/raw.md.

    HEDGEROW_PEERS=/path/to/environments python -m bench.raw --tables bank,prices --runs 3

Every table is released cut privately, as anybody would, and given cuts that only who knows the rows can choose (real
quantiles and tail cuts, single values of 1.5 % of the rows and more); then by the peers that are at hand. What is
compared are values, not codes. Results are kept in results.json; `--again` replaces them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.process import ROOT, in_a_process
from bench.raw.figures import DETECTED, HEAVY
from bench.raw.runs import PATIENCE, at_hand
from bench.raw.tables import MADE_UP, PUBLIC
from bench.tables import at_hand as tables_at_hand

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "studies" / "raw.md"
CELLS = {
    "private": "cut privately",
    "oracle": "given cuts",
    "codes": "cut privately, real codes",
    "dpmm": "dpmm",
    "smartnoise": "SmartNoise",
    "sdv": "SDV, no privacy",
}
PEERS = ("dpmm", "smartnoise", "sdv")
FIGURES = {
    "ks": ("KS", 4),
    "mean_error": ("mean error", 3),
    "mean_error_heavy": ("heavy tails", 3),
    "common": ("common values", 3),
    "beyond": ("digits", 3),
    "hour": ("hours", 3),
    "dayofweek": ("weekdays", 3),
    "auc": ("AUC", 3),
    "cpu_s": ("CPU s", 1),
    "runs": ("runs", 0),
}

VERSION = (
    "Lines *cut privately* and *given cuts* are of one version, but for a last rule (a decade that was clear",
    "enough to be split stays held), for which trips, land and the payroll were run again; those of real codes",
    "are of the version before.",
)

Results = dict[str, list[dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.raw")
    parser.add_argument("--tables", default=",".join([*PUBLIC, *MADE_UP]))
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--epsilons", default="1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    asked = arguments.tables.split(",")
    there = {*tables_at_hand(*(name for name in asked if name in PUBLIC)), *MADE_UP}
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for table in (name for name in asked if name in there):
        for epsilon in map(float, arguments.epsilons.split(",")):
            for cells in arguments.cells.split(","):
                if cells in PEERS and not at_hand(cells):
                    print(f"left out, because not in $HEDGEROW_PEERS: {cells}", file=sys.stderr)
                    continue
                done = fill(results, f"{table}|{cells}|{epsilon:g}", arguments.runs, arguments.again)
                print(table, cells, epsilon, summary(done), file=sys.stderr, flush=True)
    PAGE.write_text(page(results), encoding="utf-8")


def fill(results: Results, key: str, runs: int, again: bool) -> list[dict[str, Any]]:
    """The runs of one cell of the grid, those that are missing done now; each is kept as soon as it has ended."""
    table, cells, epsilon = key.split("|")
    done = results[key] = [] if again else [run for run in results.get(key, []) if "failed" not in run]
    while len(done) < runs:
        done.append(in_a_process("bench.raw.runs", "measure", table, cells, float(epsilon)))
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return done


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians of the runs that ended."""
    ended = [run for run in runs if "failed" not in run]
    if not ended:
        return {"failed": runs[0]["failed"]}
    return {key: round(statistics.median(run[key] for run in ended), 4) for key in ended[0]} | {"runs": len(ended)}


def page(results: Results) -> str:
    """docs/studies/raw.md."""
    heads = ["table", "ε", "cells", *(head for head, _ in FIGURES.values())]
    lines = [
        "# Raw tables",
        "",
        "Tables as people have them, declared by types, generous bounds and decimals, without a look at the rows (how:",
        "`bench/raw/`); `hedge`, δ = 1e-6, medians of the runs given. *Cut privately* is what anybody gets; *given",
        "cuts* is the same run with cells that only somebody who knows the rows can choose: 50 real quantiles and tail",
        "cuts, and values that 1.5 % of the rows hold. Written by `python -m bench.raw`.",
        "",
        "KS: mean Kolmogorov distance of numeric columns. Mean error: of the worst column, in standard deviations of",
        f"it, apart for columns whose kurtosis is above {HEAVY}. Common values: total variation over the five",
        "commonest values and the rest, of the worst column. Digits: the share of values with more of them than",
        "declared, of the worst column. Hours, weekdays: total variation of the profile, of the worst column. AUC: a",
        f"boosted classifier that tells real rows from synthetic ones ({DETECTED:,} of each, or as many as there are;",
        "three folds); .5 is a guess.",
        "",
        "adult-raw, bank and creditcard are public tables. The others are made up in `bench/raw/tables.py`, of kinds",
        "that people have: prices and measures (54,000 × 10), web sessions (12,000 × 18), land sales (40,000 × 17),",
        "trips with times and money (6,400 × 14), incidents with heavy-tailed costs (10,000 × 14). All of them were",
        "looked at while the constants of the cuts were chosen. Six more, in `bench/raw/further.py`, were made when",
        "they had been: hospital stays (25,000 × 9), sensor readings (30,000 × 9), a payroll (10,000 × 12), meters",
        "(40,000 × 10), survey incomes (10,000 × 11), what a service logged (60,000 × 9). Some of these had a say",
        "later: rules for noise far from all rows, for the ends of declared lines, for what joined columns keep and",
        "for decades beyond empty ones were made when lines of land, payroll and trips had shown what was wrong.",
        "",
        "Peers get the same rows, in environments of their own: dpmm 0.1.9's MST with PrivTree bins, smartnoise-synth",
        "1.0.8's MST, which finds bounds by itself for a fifth of ε, and SDV 2.0.0's GaussianCopula, without any",
        f"privacy; each is given {PATIENCE} CPU minutes a table. What has no line here was not run.",
        "",
        "*Real codes*: the rows as they are, coded in cells that were bought and read back, so that nothing but the",
        "cells errs; what a line has beyond that is the model's. Where a table is small, a value of 1 or 2 % of the",
        "rows is hidden by the noise of one count, and only who knows the rows can give it a cell. That is what is",
        "left of the common values of trips and payroll: four tips of 1.7 to 1.8 % are 109 to 116 of 6,400 rows, five",
        "taxes of 1.4 to 1.6 % are 136 to 162 of 10,000, and a count of a level of trips has a noise of 63. A toll of",
        "3 % (196 rows) is seen by what is counted again, but not in every run: where it is lost, its mean is off by",
        ".178.",
        "",
        *VERSION,
        "",
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
    ]
    order = {cells: place for place, cells in enumerate(CELLS)}
    for key in sorted(results, key=lambda key: (key.split("|")[0], float(key.split("|")[2]), order[key.split("|")[1]])):
        table, cells, epsilon = key.split("|")
        found = summary(results[key])
        figures = (
            [found["failed"].removeprefix("RuntimeError: "), *[""] * (len(FIGURES) - 1)]
            if "failed" in found
            else [f"{found[name]:.{digits}f}" if name in found else "–" for name, (_, digits) in FIGURES.items()]
        )
        lines.append("| " + " | ".join([table, epsilon, CELLS[cells], *figures]) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
