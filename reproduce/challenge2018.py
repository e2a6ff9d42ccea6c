"""Match 3 of NIST's 2018 challenge on the made-up census table: the table of docs/studies/challenge2018.md.

    python -m reproduce.challenge2018 --methods match3,field-groups --epsilons 8,1,0.3

Every run is a process of its own, through the command line. Results are kept in the folder, so that the table can be
filled in piece by piece, also by several at once; `--again` runs a cell anew. CPU seconds and peak memory are those of
the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

METHODS = {
    "match3": ["-s", "preset:census1940-match3"],
    "match3 --delta 0": ["-s", "preset:census1940-match3", "--delta", "0"],
    "match3 --public": ["-s", "preset:census1940-match3", "--set", "marginals=public", "--public", "{public}"],
    "field-groups": ["-s", "preset:census1940-field-groups", "--rows", "800000"],
    "field-groups --delta 0": ["-s", "preset:census1940-field-groups", "--rows", "800000", "--delta", "0"],
    "field-groups --public": ["-s", "{schema}", "--public", "{public}", "--rows", "800000"],
    "independent": ["-s", "{schema}"],
    "hedge": ["-s", "{schema}", "--workload", "2", "--max-time", "10m", "--max-memory", "5GB"],
    "mst": ["-s", "{schema}", "--max-memory", "5GB"],
    "aim": ["-s", "{schema}", "--workload", "2", "--max-time", "20m", "--max-memory", "5GB"],
}
PUBLIC_ROWS = 100_000
PUBLIC_SEED = 7
EPSILONS = ("8", "1", "0.3")
CONTEST = {"match3": 902_307, "field-groups": 768_802}
COMMAND = [sys.executable, "-c", "from hedgerow.cli import main; main()"]

Results = dict[tuple[str, str], dict[str, Any]]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--methods", default=",".join(METHODS))
    asked.add_argument("--epsilons", default=",".join(EPSILONS))
    asked.add_argument("--folder", type=Path, default=Path("out/challenge2018"))
    asked.add_argument("--again", action="store_true")
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    table, public = given.folder / "census1940.parquet", given.folder / "public.parquet"
    if not table.exists():
        example(table)
    if not public.exists():
        example(public, "--rows", str(PUBLIC_ROWS), "--seed", str(PUBLIC_SEED))
    for method in given.methods.split(","):
        for epsilon in given.epsilons.split(","):
            kept = place(given.folder, method, epsilon).with_suffix(".json")
            if given.again or not kept.exists():
                kept.write_text(json.dumps(run(method, epsilon, table)))
                print(method, epsilon, kept.read_text(), file=sys.stderr, flush=True)
    cells = [
        (method, epsilon, place(given.folder, method, epsilon).with_suffix(".json"))
        for method in METHODS
        for epsilon in EPSILONS
    ]
    results = {(method, epsilon): json.loads(kept.read_text()) for method, epsilon, kept in cells if kept.exists()}
    print(page(results))


def place(folder: Path, method: str, epsilon: str) -> Path:
    """Where the rows of a run go; its release and its scores stand beside."""
    return folder / f"{method.replace(' --', '-')}-{epsilon.replace('.', '_')}.parquet"


def example(path: Path, *options: str) -> None:
    """The sample, and its schema beside it: the winner's coding without the winner's marginals."""
    subprocess.run([*COMMAND, "example", "census1940", "-o", str(path), *options], check=True)


def run(method: str, epsilon: str, table: Path) -> dict[str, Any]:
    """One release and its scores."""
    out = place(table.parent, method, epsilon)
    for old in (out, out.with_suffix(".release"), out.with_suffix(".release.journal")):
        old.unlink(missing_ok=True)
    places = {"schema": table.with_suffix(".yaml"), "public": table.with_name("public.parquet")}
    options = [option.format(**places) for option in METHODS[method]]
    words = ["synth", str(table), "-m", method.split()[0], "-e", epsilon, "-o", str(out), "-q"]
    cpu, peak = watched([*COMMAND, *words, *options])
    # in a process of its own: memory that this one had held would count as the next run's peak
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        scores = process.submit(judge, table, out).result()
    return {**scores, "cpu_s": round(cpu), "peak_mb": round(peak)}


def watched(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def judge(table: Path, out: Path) -> dict[str, int]:
    """The three scores and their mean."""
    import pyarrow.parquet as pq

    from hedgerow.private.evaluate.nist2018 import largest_codes, score
    from hedgerow.schema import presets

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
        cells = {epsilon: results[method, epsilon] for epsilon in EPSILONS if (method, epsilon) in results}
        lines += [
            f"| `{method}` | {epsilon} | {cell['marginals']:,} | {cell['conjunctions']:,} | {cell['income']:,} | "
            f"{cell['mean']:,} | {cell['cpu_s']:,} | {cell['peak_mb']:,} |"
            for epsilon, cell in cells.items()
        ]
    lines += ["", "| method | mean over the three ε | in the contest, on its own table |", "|---|---|---|"]
    for method in METHODS:
        means = [results[method, epsilon]["mean"] for epsilon in EPSILONS if (method, epsilon) in results]
        if len(means) == len(EPSILONS):
            contest = f"{CONTEST[method]:,}" if method in CONTEST else ""
            lines.append(f"| `{method}` | {round(sum(means) / len(means)):,} | {contest} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
