"""One cell in a process of its own: `python -m hedgerow.compare.cell RESULT` with the plan and the cell on stdin.

A process of its own, so that time and memory are those of this run, and a crash is a row and not the end.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.coded.domain import CodedTable
from hedgerow.compare.plan import Cell, ForeignTable, Plan
from hedgerow.errors import HedgerowError
from hedgerow.private.sources.coded import coded_rows, rows_of, with_columns_of
from hedgerow.private.sources.source import open_source, open_synthetic
from hedgerow.progress import peak_rss_mb

if TYPE_CHECKING:
    from hedgerow.schema import Encoding, Schema

SUBSAMPLE = 10
"""The floor "subsample" keeps one row in so many."""


def run_cell(plan: Plan, cell: Cell) -> dict[str, Any]:
    """Make (or read) the synthetic table, note what that took, and compare it with the real one."""
    from hedgerow.private.evaluate.evaluation import Comparison, figures_of
    from hedgerow.schema import Schema

    schema = Schema.load(plan.schema)
    encoding = schema.encoding()
    wall, cpu = time.perf_counter(), time.process_time()
    synthetic = _method(plan, cell, schema, encoding) if cell.kind == "method" else None
    took = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "peak_mb": peak_rss_mb()}
    real = coded_rows(with_columns_of(encoding, open_source(plan.table), "real"), encoding, "real")
    if cell.kind == "floor":
        synthetic = floor(cell.name, real, plan.paired(cell.run)[0])
    elif cell.kind == "table":
        assert cell.file is not None
        synthetic = coded_rows(with_columns_of(encoding, open_synthetic(cell.file), "synthetic"), encoding, "synthetic")
    assert synthetic is not None
    figures = figures_of(Comparison(encoding, real, synthetic, plan.seed, plan.target), plan.metrics)
    kept = {name: value for name, value in figures.items() if isinstance(value, float)}
    return {**kept, "rows": rows_of(synthetic), **(took if cell.kind == "method" else {})}


def floor(name: str, real: CodedTable, seed: int) -> CodedTable:
    """A sample of the real rows: what luck alone does to a table."""
    rows = rows_of(real)
    coins = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, rows])))
    if name == "bootstrap":
        kept = coins.integers(0, rows, rows)
    else:
        kept = coins.permutation(rows)[: max(1, rows // SUBSAMPLE)]
    return {attribute: codes[kept] for attribute, codes in real.items()}


def _method(plan: Plan, cell: Cell, schema: Schema, encoding: Encoding) -> CodedTable:
    import hedgerow as hr
    from hedgerow.methods import build
    from hedgerow.progress import Limits

    assert cell.epsilon is not None
    seed, unsafe = plan.paired(cell.run)
    release = hr.synthesize(
        plan.table,
        schema,
        hr.Budget(cell.epsilon, plan.delta),
        build(cell.name, cell.options),
        public=plan.public,
        ledger=plan.ledger,
        limits=Limits(plan.max_memory, None),
        seed=seed,
        unsafe_noise_seed=unsafe,
    )
    return encoding.encode(release.sample(seed=seed).combine_chunks())


def problem_of(error: BaseException) -> str:
    """Our own sentences as they are; of anything else the kind and the place alone, because words may quote rows."""
    if isinstance(error, HedgerowError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno} in {frame.name}"


def request(plan: Plan, cell: Cell) -> str:
    """What the process reads."""
    return json.dumps({"plan": asdict(plan), "cell": asdict(cell)})


def main() -> None:
    asked = json.loads(sys.stdin.read())
    plan = Plan(**{**asked["plan"], "tables": tuple(ForeignTable(**each) for each in asked["plan"]["tables"])})
    try:
        answer = run_cell(plan, Cell(**asked["cell"]))
    except Exception as error:
        answer = {"problem": problem_of(error)}
    Path(sys.argv[1]).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
