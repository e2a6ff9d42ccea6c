"""One cell in a process of its own: `python -m hedgerow.compare.cell ANSWER JOURNAL`, the plan and the cell on stdin.

A process of its own, so that time and memory are those of this run, and a crash is a row and not the end. It reads one
line and lives no longer than whoever holds the other end of its stdin: a comparison that is killed leaves nothing at
work behind it. What a run has paid for is in its journal, with which the next comparison goes on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.coded.domain import CodedTable
from hedgerow.compare.origin import package_digest
from hedgerow.compare.plan import Cell, ForeignTable, Plan
from hedgerow.compare.program import made_by
from hedgerow.errors import HedgerowError, OptionError, code_of, listing, place_of
from hedgerow.foreign import fault
from hedgerow.private.evaluate.samples import sample_of, sample_of_values
from hedgerow.private.sources.coded import rows_of, with_columns_of
from hedgerow.private.sources.source import open_source, open_synthetic
from hedgerow.progress import cpu_seconds_of_children, peak_rss_mb
from hedgerow.release.files import write_private

if TYPE_CHECKING:
    from hedgerow.private.evaluate import Metric
    from hedgerow.private.evaluate.raw import RawTable
    from hedgerow.private.sources.source import Source

FLOOR_SAMPLES = {"bootstrap": "bootstrap", "subsample": "tenth"}
"""Which sample of the real rows a floor is."""


def run_cell(plan: Plan, cell: Cell, journal: Path | None = None) -> dict[str, Any]:
    """Make (or read) the synthetic table, note what that took, and compare it with the real one."""
    from hedgerow.private.evaluate import find

    metrics = [find(name) for name in plan.metrics]
    wall, cpu = time.perf_counter(), time.process_time()
    made: Any = None
    with ExitStack() as held:
        if cell.kind == "method":
            made = plan.request(cell, journal).checked().release().sample(seed=plan.paired(cell.run)[0])
        elif cell.kind == "program":
            made = held.enter_context(made_by(cell.name, plan.programs[cell.name], plan.given(cell)))
            cpu -= cpu_seconds_of_children()
        took = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall, "peak_mb": peak_rss_mb()}
        return {**_judged(plan, cell, made, metrics), **(took if made is not None else {})}


def _judged(plan: Plan, cell: Cell, made: Any, metrics: Sequence[Metric]) -> dict[str, Any]:
    """The figures of a table beside the real one."""
    from hedgerow.private.evaluate import Comparison
    from hedgerow.private.evaluate.evaluation import figures_of, look_at_values, read_rows
    from hedgerow.private.evaluate.uncut import with_cells_of

    private = open_source(plan.table, plan.declared.written, memory=plan.max_memory)
    encoding = with_cells_of(plan.declared, private, plan.seed).encoding()

    def read(source: Source, what: str) -> tuple[CodedTable, RawTable | None]:
        return read_rows(with_columns_of(encoding, source, what), encoding, what, plan.seed, look_at_values(metrics))

    real, real_values = read(private, "real")
    if cell.kind == "floor":
        seed = plan.paired(cell.run)[0]
        synthetic = floor(cell.name, real, seed)
        values = None if real_values is None else sample_of_values(real_values, FLOOR_SAMPLES[cell.name], seed)
    else:
        synthetic, values = read(
            open_source(made) if cell.kind == "method" else open_synthetic(made or cell.file), "synthetic"
        )
    raw = None if real_values is None or values is None else (real_values, values)
    comparison = Comparison(encoding, real, synthetic, plan.seed, plan.target, raw_tables=raw)
    figures = figures_of(comparison, metrics)
    kept = {name: value for name, value in figures.items() if isinstance(value, float)}
    return {**kept, "rows": rows_of(synthetic)}


def floor(name: str, real: CodedTable, seed: int) -> CodedTable:
    """A sample of the real rows: what luck alone does to a table."""
    return sample_of(real, FLOOR_SAMPLES[name], seed)


def refuse_changed(plan: Plan, cell: Cell) -> None:
    """A cell says what makes it; code that was edited while the comparison ran would make something else."""
    now = plan.origin(package_digest(), cell.name if cell.kind in ("method", "program") else None, cell.epsilon)
    changed = [what for what in now if now[what] != cell.made[what]]
    if changed:
        raise OptionError(
            "method-changed",
            f"the {listing(changed)} of the method changed since the comparison began. "
            "Hint: start the comparison again.",
        )


def problem_of(error: BaseException) -> str:
    """Our own sentences as they are; of anything else the kind and the place alone, because words may quote rows."""
    if isinstance(error, HedgerowError):
        return str(error)
    said = fault(error).splitlines()[0]
    return place_of(error) if said.startswith("an error of ours") else said


def request(plan: Plan, cell: Cell) -> str:
    """What the process reads."""
    return json.dumps({"plan": asdict(plan), "cell": asdict(cell)})


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    plan = Plan(**{**asked["plan"], "tables": tuple(ForeignTable(**each) for each in asked["plan"]["tables"])})
    cell = Cell(**asked["cell"])
    try:
        refuse_changed(plan, cell)
        answer = run_cell(plan, cell, Path(sys.argv[2]))
    except Exception as error:
        answer = {"problem": problem_of(error), "code": code_of(error)}
    write_private(Path(sys.argv[1]), json.dumps(answer))


def _end_with_parent() -> None:
    """Nothing more is sent, so reading ends when the parent is gone; then this process and all that it started go."""
    os.read(sys.stdin.fileno(), 1)
    if sys.platform != "win32" and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
