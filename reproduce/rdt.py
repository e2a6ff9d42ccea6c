"""The random-decision-trees write-up seen again: figures, findings, questions; and the private method beside it.

    python -m reproduce.rdt

Everything is made from 1,000,000 rows of `hedgerow example opm`, the write-up's own sample table, so nothing here is
private. Figures go to docs/pictures/rdt, tables to out/rdt/report.md. Runs are kept in out/rdt/results.json, so that
the work can be done piece by piece; `--only WORD` takes the runs whose name holds the word and stops there.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hedgerow.samples import opm
from reproduce.rdt_figures import changes, draw_all
from reproduce.rdt_report import report
from reproduce.rdt_runs import Original, PayRun, Run, pay_runs, runs

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "rdt"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rows", type=int, default=opm.ROWS)
    asked.add_argument("--folder", type=Path, default=Path("out/rdt"))
    asked.add_argument("--only", default="", help="runs whose name holds this")
    asked.add_argument("--pictures", type=Path, default=PICTURES)
    given = asked.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    given.pictures.mkdir(parents=True, exist_ok=True)
    original = Original(given.rows)
    results = made(original, given.folder / "results.json", given.only)
    if not given.only:
        draw_all(original, results, given.pictures)
        text = report(original, results, changes(original))
        (given.folder / "report.md").write_text(text, encoding="utf-8")
        print(text)


def made(original: Original, kept: Path, only: str) -> dict[str, Any]:
    """What every run came to; those not yet kept are run now."""
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    asked: list[Run | PayRun] = [*runs(), *pay_runs()]
    for run in asked:
        if only in run.name and run.name not in results:
            results[run.name] = run.measure(original)
            kept.write_text(json.dumps(results, indent=1))
            seconds = sum(results[run.name]["cpu_s"].values())
            print(f"{run.name}: {results[run.name]['tvd3']:.4f}, {seconds:.1f} CPU s", file=sys.stderr)
    return results


if __name__ == "__main__":
    main()
