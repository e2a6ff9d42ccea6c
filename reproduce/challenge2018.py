"""Match 3 of NIST's 2018 challenge on the made-up census table: the table of docs/challenge2018.md.

    python reproduce/challenge2018.py --methods match3,field-groups --epsilons 8,1,0.3

Every run is a process of its own, through the command line. Results are kept in the folder, so that the table can be
filled in piece by piece; `--again` runs a cell anew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

METHODS = {
    "match3": ("census1940-match3", []),
    "field-groups": ("census1940-field-groups", ["--rows", "800000"]),
    "independent": ("census1940-match3", []),
    "mst": ("census1940-match3", ["--max-memory", "5GB"]),
    "aim": ("census1940-match3", ["--set", "workload=2", "--max-time", "20m", "--max-memory", "5GB"]),
}
EPSILONS = ("8", "1", "0.3")
CONTEST = {"match3": 902_307, "field-groups": 768_802}
COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]

Results = dict[str, dict[str, Any]]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--methods", default=",".join(METHODS))
    asked.add_argument("--epsilons", default=",".join(EPSILONS))
    asked.add_argument("--folder", type=Path, default=Path("out/challenge2018"))
    asked.add_argument("--again", action="store_true")
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    table = given.folder / "census1940.parquet"
    if not table.exists():
        subprocess.run([*COMMAND, "example", "census1940", "-o", str(table)], check=True)
    kept = given.folder / "results.json"
    results: Results = json.loads(kept.read_text()) if kept.exists() else {}
    for method in given.methods.split(","):
        for epsilon in given.epsilons.split(","):
            cell = f"{method} {epsilon}"
            if given.again or cell not in results:
                results[cell] = run(method, epsilon, table)
                kept.write_text(json.dumps(results, indent=1))
                print(cell, results[cell], file=sys.stderr, flush=True)
    print(page(results))


def run(method: str, epsilon: str, table: Path) -> dict[str, Any]:
    """One release and its scores."""
    preset, options = METHODS[method]
    out = table.with_name(f"{method}-{epsilon}.parquet")
    for old in (out, out.with_suffix(".release")):
        old.unlink(missing_ok=True)
    words = ["synth", str(table), "-s", f"preset:{preset}", "-m", method, "-e", epsilon, "-o", str(out), "--json", "-q"]
    done = subprocess.run([*COMMAND, *words, *options], check=True, stdout=subprocess.PIPE, text=True)
    report = json.loads(done.stdout)
    # in a process of its own: memory that this one had held would count as the next run's peak
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        scores = process.submit(judge, table, out).result()
    return {
        **scores,
        "cpu_s": round(sum(phase["cpu_s"] for phase in report["phases"].values())),
        "peak_mb": round(report["peak_rss_mb"]),
    }


def judge(table: Path, out: Path) -> dict[str, int]:
    """The three scores and their mean."""
    import pyarrow.parquet as pq

    from hedgerow import presets
    from hedgerow.evaluate.nist2018 import largest_codes, score

    largest = largest_codes(presets.load("census1940-field-groups").schema)
    scores = score(pq.read_table(table), pq.read_table(out), largest)
    return {
        "marginals": round(scores.marginals),
        "conjunctions": round(scores.conjunctions),
        "income": round(scores.income),
        "mean": round(scores.mean),
    }


def page(results: Results) -> str:
    """Markdown: a line for each run, and the contest's mean over the three ε."""
    lines = [
        "| method | ε | 3-marginals | conjunctions | income | mean | CPU s | peak MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        cells = {epsilon: results[f"{method} {epsilon}"] for epsilon in EPSILONS if f"{method} {epsilon}" in results}
        lines += [
            f"| `{method}` | {epsilon} | {cell['marginals']:,} | {cell['conjunctions']:,} | {cell['income']:,} | "
            f"{cell['mean']:,} | {cell['cpu_s']:,} | {cell['peak_mb']:,} |"
            for epsilon, cell in cells.items()
        ]
    lines += ["", "| method | mean over the three ε | in the contest, on its own table |", "|---|---|---|"]
    for method in METHODS:
        means = [results[f"{method} {epsilon}"]["mean"] for epsilon in EPSILONS if f"{method} {epsilon}" in results]
        if len(means) == len(EPSILONS):
            contest = f"{CONTEST[method]:,}" if method in CONTEST else ""
            lines.append(f"| `{method}` | {round(sum(means) / len(means)):,} | {contest} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
