"""The grid: cells that are done are kept, the others run one after the other, whatever becomes of each.

The folder holds `cells/` (one small file for each finished cell), `manifest.json`, `results.parquet` and
`comparison.html`. Starting the same command again goes on where it stopped; more methods, ε or runs fill in more.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedgerow.budget.amounts import Budget
from hedgerow.compare.cell import request
from hedgerow.compare.plan import Cell, Plan
from hedgerow.errors import OptionError, SchemaError
from hedgerow.methods import build
from hedgerow.pages.comparison import MetricView, comparison_page
from hedgerow.private.evaluate.figures import FIGURES
from hedgerow.release.certificate import versions
from hedgerow.release.files import whole_file, write_private

FORMAT = "hedgerow comparison 1"
Row = dict[str, Any]
"""What came of a cell: name, ε, run, status, figures, time and memory."""


def compare(
    plan: Plan,
    folder: str | Path,
    *,
    retry: bool = False,
    command: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Fill in the grid and write its results; returns the rows of this plan. PRIVATE: compared with real rows.

    Everything that can be checked is checked before a row is read. Every run of a method is a release of its own:
    with a ledger, each is debited.
    """
    grid = Grid(plan, Path(folder))
    grid.held()
    _check(plan)
    grid.open(command)
    rows = grid.fill(retry, say)
    grid.write()
    return rows


def _check(plan: Plan) -> None:
    from hedgerow.private.ledger import note_exact_access
    from hedgerow.private.sources.source import open_source, open_synthetic
    from hedgerow.schema import Schema

    for epsilon in plan.epsilons:
        Budget(epsilon, plan.delta)
    for method in plan.methods:
        build(method, plan.options.get(method))
    strange = [name for name in plan.options if name not in plan.methods]
    if strange:
        raise OptionError(f'--set names "{strange[0]}", which is not among the methods. Nothing was read.')
    schema = Schema.load(plan.schema)
    if schema.discoveries:
        raise SchemaError(
            "a comparison needs one domain for all runs, but the schema leaves some to be discovered. Nothing was "
            "read. Hint: settle them in the schema, or evaluate the runs one by one with their releases."
        )
    schema.encoding()
    schema.check_header(open_source(plan.table).header())
    for each in plan.tables:
        header = open_synthetic(each.file).header()
        lacking = [name for name in schema.columns if name not in header]
        if lacking:
            raise OptionError(f'the table "{each.name}" lacks the column "{lacking[0]}". No row was read.')
    if plan.ledger is not None:
        note_exact_access(plan.ledger, "compare")


class Grid:
    """A folder of results and the plan that fills it."""

    def __init__(self, plan: Plan, folder: Path):
        self.plan, self.folder = plan, folder
        self._cells = folder / "cells"
        self._manifest = folder / "manifest.json"

    def open(self, command: Sequence[str]) -> None:
        """Make the folder (for its owner alone), or go on with one that holds results of the same judge."""
        judged = self.plan.judged()
        commands: list[list[str]] = []
        before = self.held()
        if before is not None:
            differs = [key for key, value in judged.items() if before["judged"].get(key) != value]
            if differs:
                raise OptionError(
                    f'"{self.folder}" holds a comparison that differs in: {", ".join(differs)}. Nothing was read. '
                    "Hint: name another -o/--out folder."
                )
            commands = before["commands"]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise OptionError(f'"{self.folder}" cannot be written ({reason}). Nothing was read.') from None
        about = {
            "format": FORMAT,
            "private": True,
            "judged": judged,
            "plan": asdict(self.plan),
            "versions": versions(),
            "commands": [*commands, list(command)] if list(command) not in commands else commands,
        }
        with whole_file(self._manifest) as partial:
            write_private(partial, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
        self._cells.mkdir(exist_ok=True)

    def held(self) -> dict[str, Any] | None:
        """What a comparison has noted in the folder; refused where the folder holds anything else."""
        about: dict[str, Any] | None = None
        with suppress(OSError, ValueError):
            about = json.loads(self._manifest.read_text(encoding="utf-8"))
        if isinstance(about, dict) and about.get("format") == FORMAT:
            return about
        if self.folder.exists() and not (self.folder.is_dir() and not any(self.folder.iterdir())):
            raise OptionError(
                f'"{self.folder}" exists already and holds no comparison; it was not touched, and nothing was read. '
                "Hint: name another -o/--out folder."
            )
        return None

    def fill(self, retry: bool, say: Callable[[str], None]) -> list[Row]:
        """Run what is not done yet (with `retry`, also what failed)."""
        cells = list(self.plan.cells())
        rows = {cell.key: row for cell in cells if (row := self._kept(cell)) is not None}
        if retry:
            rows = {key: row for key, row in rows.items() if row["status"] == "done"}
        waiting = [cell for cell in cells if cell.key not in rows]
        if len(waiting) < len(cells):
            say(f"{len(cells) - len(waiting)} of {len(cells)} cells are done already")
        took: dict[str, list[float]] = {}
        for place, cell in enumerate(waiting):
            begin = time.monotonic()
            rows[cell.key] = self._run(cell)
            took.setdefault(cell.name, []).append(time.monotonic() - begin)
            with whole_file(self._cells / f"{cell.key}.json") as partial:
                write_private(partial, json.dumps(rows[cell.key], ensure_ascii=False))
            left = remaining_seconds(took, waiting[place + 1 :])
            say(f"{place + 1}/{len(waiting)} {cell.title}: {_outcome(rows[cell.key])}{_left(left)}")
        return [rows[cell.key] for cell in cells]

    def _kept(self, cell: Cell) -> Row | None:
        file = self._cells / f"{cell.key}.json"
        row: Row | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        return row

    def rows(self) -> list[Row]:
        """Everything in the folder, also what other plans have left there."""
        found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(self._cells.glob("*.json"))]
        return sorted(found, key=lambda row: (row["kind"], row["name"], row["epsilon"] or 0, row["run"]))

    def _run(self, cell: Cell) -> Row:
        """A cell in a process of its own; a crash, a refusal and a time-out are results too."""
        row: Row = {
            **asdict(cell),
            "options": json.dumps(cell.options, sort_keys=True),
            "status": "done",
            "problem": None,
        }
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "answer.json"
            child = subprocess.Popen(
                [sys.executable, "-m", "hedgerow.compare.cell", str(answer)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            try:
                child.communicate(request(self.plan, cell), timeout=self.plan.max_seconds)
            except subprocess.TimeoutExpired:
                return {**row, "status": "timed out", "problem": f"not done after {self.plan.max_seconds:g} s"}
            finally:
                _end(child)
            if not answer.exists():
                return {**row, "status": "failed", "problem": _death(child.returncode)}
            found = json.loads(answer.read_text(encoding="utf-8"))
        return {**row, **found, "status": "failed" if "problem" in found else "done"}

    def write(self) -> None:
        """results.parquet and comparison.html, from every cell in the folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = self.rows()
        names = list(dict.fromkeys(key for row in rows for key in row))
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        with whole_file(self.folder / "results.parquet") as partial:
            write_private(partial, "")
            pq.write_table(table.replace_schema_metadata({"hedgerow": "PRIVATE: computed from real rows"}), partial)
        manifest = json.loads(self._manifest.read_text(encoding="utf-8"))
        figures = {name: FIGURES[name] for name in FIGURES if any(name in row for row in rows)}
        views = [MetricView(name, each.title, each.meaning, each.best) for name, each in figures.items()]
        write_private(self.folder / "comparison.html", comparison_page(rows, views, manifest))


def remaining_seconds(took: dict[str, list[float]], waiting: Sequence[Cell]) -> float:
    """An estimate: each cell as long as those of its name so far, or as all so far where there was none."""
    everything = [seconds for each in took.values() for seconds in each]
    usual = sum(everything) / len(everything) if everything else 0.0
    return sum(sum(took[cell.name]) / len(took[cell.name]) if cell.name in took else usual for cell in waiting)


def _outcome(row: Row) -> str:
    if row["status"] != "done":
        return f"{row['status']}: {row['problem']}"
    return f"tvd3 {row['tvd3']:.4f}" if "tvd3" in row else "done"


def _left(seconds: float) -> str:
    if seconds < 1:
        return ""
    return f", about {seconds:.0f} s left" if seconds < 100 else f", about {seconds / 60:.0f} min left"


def _death(code: int) -> str:
    if code < 0:
        return f"ended by {signal.Signals(-code).name}" + (" (out of memory?)" if code == -signal.SIGKILL else "")
    return f"ended with exit code {code}"


def _end(child: subprocess.Popen[str]) -> None:
    """A cell that is still at work is stopped with all that it started: its process group is its own."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
