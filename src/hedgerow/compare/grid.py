"""The grid: cells that are done are kept, the others run one after the other, whatever becomes of each.

The folder holds `cells/` (one small file for each finished cell, and the journal of one that is not), `manifest.json`,
`results.parquet`, `comparison.html`, and what a paper takes (`hedgerow.compare.summary`). Starting the same command
again goes on where it stopped, with what was paid for; more methods, ε or runs fill in more. One comparison at a time
fills a folder: another waits for it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from hedgerow.budget.amounts import Budget
from hedgerow.compare.cell import request
from hedgerow.compare.origin import is_current, package_digest
from hedgerow.compare.plan import Cell, Plan
from hedgerow.compare.summary import latex, results_csv, summaries, summary_csv, svg
from hedgerow.errors import OptionError, unread
from hedgerow.pages.comparison import MetricView, comparison_page
from hedgerow.private.evaluate import find
from hedgerow.private.evaluate.evaluation import shown_figures
from hedgerow.release.certificate import versions
from hedgerow.release.files import whole_file, write_private
from hedgerow.release.locks import FOLDER_LOCK, lock, opened_folder

FORMAT = "hedgerow comparison 1"
PARTIAL = ".*.part"
"""Files on their way to becoming whole."""
Row = dict[str, Any]
"""What came of a cell: name, ε, run, status, figures, time and memory."""


def compare(
    plan: Plan,
    folder: str | Path,
    *,
    jobs: int = 1,
    retry: bool = False,
    command: Sequence[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Fill in the grid and write its results; returns the rows of this plan. PRIVATE: compared with real rows.

    Everything that can be checked is checked before a row is read. Every run of a method is a release of its own:
    with a ledger, each is debited. `jobs` runs are at work at a time.
    """
    grid = Grid(plan, Path(folder))
    with ExitStack() as held:
        with unread():
            grid.held()
            _check(plan)
            held.enter_context(grid.open(command, say))
        rows = grid.fill(jobs, retry, say)
        grid.write(say)
    return rows


def _check(plan: Plan) -> None:
    """Refuse what cannot be compared, and let the ledger know of the look that comes."""
    from hedgerow.private.ledger import note_exact_access
    from hedgerow.private.sources.source import open_source, open_synthetic

    for epsilon in plan.epsilons:
        Budget(epsilon, plan.delta)
        for method in plan.methods:
            plan.method(method, epsilon)
    if plan.programs and plan.ledger is not None:
        raise OptionError(
            "program-and-ledger",
            f'the program "{next(iter(plan.programs))}" reads the table by itself, and no ledger could debit it. Hint: '
            "compare without a ledger, on a public table.",
        )
    strange = [name for name in plan.options if name not in plan.methods]
    if strange:
        raise OptionError("setting-without-method", f'--set names "{strange[0]}", which is not among the methods.')
    schema = plan.declared
    schema.with_stand_ins(1).encoding()
    schema.check_header(open_source(plan.table, schema.written, memory=plan.max_memory).header())
    for each in plan.tables:
        header = open_synthetic(each.file).header()
        lacking = [name for name in schema.columns if name not in header]
        if lacking:
            raise OptionError("missing-column", f'the table "{each.name}" lacks the column "{lacking[0]}".')
    if plan.ledger is not None:
        note_exact_access(plan.ledger, "compare")


class Grid:
    """A folder of results and the plan that fills it."""

    def __init__(self, plan: Plan, folder: Path):
        self.plan, self.folder = plan, folder
        self._cells = folder / "cells"
        self._children: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._manifest = folder / "manifest.json"

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of the plan."""
        return list(self.plan.cells())

    @contextmanager
    def open(self, command: Sequence[str], say: Callable[[str], None]) -> Iterator[None]:
        """Make the folder (for its owner alone), or go on with one that holds results of the same judge."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            self._lock = opened_folder(self.folder.resolve())
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise OptionError("cannot-write", f'"{self.folder}" cannot be written ({reason}).') from None
        try:
            self._wait(say)
            self._begin(command)
            yield
        finally:
            os.close(self._lock)

    def _wait(self, say: Callable[[str], None]) -> None:
        """One comparison at a time. Its cells hold the lock too: one that was killed is over when its cell is."""
        try:
            lock(self._lock, wait=False)
        except BlockingIOError:
            say(f'another comparison is at work in "{self.folder}"; this one goes on when it has ended')
            lock(self._lock)

    def _begin(self, command: Sequence[str]) -> None:
        """The manifest: the judge, the commands, and what makes each cell."""
        judged, before = self.plan.judged, self.held()
        commands: list[list[str]] = []
        if before is not None:
            differs = [key for key, value in judged.items() if before["judged"].get(key) != value]
            if differs:
                raise OptionError(
                    "another-comparison",
                    f'"{self.folder}" holds a comparison that differs in: {", ".join(differs)}. '
                    "Hint: name another -o/--out folder.",
                )
            commands = before["commands"]
        self._cells.mkdir(exist_ok=True)
        for leftover in (*self.folder.glob(PARTIAL), *self._cells.glob(PARTIAL)):
            leftover.unlink(missing_ok=True)  # a comparison that was killed was writing it
        about = {
            "format": FORMAT,
            "private": True,
            "judged": judged,
            "plan": asdict(self.plan),
            "versions": versions(),
            "commands": [*commands, list(command)] if list(command) not in commands else commands,
            "cells": {**(before or {}).get("cells", {}), **{cell.key: asdict(cell) for cell in self.cells}},
        }
        write_private(self._manifest, json.dumps(about, indent=1, ensure_ascii=False) + "\n")

    def held(self) -> dict[str, Any] | None:
        """What a comparison has noted in the folder; refused where the folder holds anything else."""
        about: dict[str, Any] | None = None
        with suppress(OSError, ValueError):
            about = json.loads(self._manifest.read_text(encoding="utf-8"))
        if isinstance(about, dict) and about.get("format") == FORMAT:
            return about
        if self.folder.exists() and not (self.folder.is_dir() and self._is_empty()):
            raise OptionError(
                "not-a-comparison",
                f'"{self.folder}" exists already and holds no comparison; it was not touched. '
                "Hint: name another -o/--out folder.",
            )
        return None

    def _is_empty(self) -> bool:
        """Nothing but what a comparison that was killed at its very beginning leaves."""
        left = {*self.folder.glob(PARTIAL), self._cells, self.folder / FOLDER_LOCK}
        return set(self.folder.iterdir()) <= left and not (self._cells.exists() and any(self._cells.iterdir()))

    def fill(self, jobs: int, retry: bool, say: Callable[[str], None]) -> list[Row]:
        """Run what is not done yet (with `retry`, also what failed), so many at a time."""
        cells = self.cells
        rows = {cell.key: row for cell in cells if (row := self._kept(cell)) is not None}
        if retry:
            rows = {key: row for key, row in rows.items() if row["status"] == "done"}
        waiting = [cell for cell in cells if cell.key not in rows]
        if len(waiting) < len(cells):
            say(f"{len(cells) - len(waiting)} of {len(cells)} cells are done already")
        took: dict[str, list[float]] = {}
        done = 0
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for cell, row, seconds in pool.map(self._timed, waiting):
                    done += 1
                    rows[cell.key] = row
                    took.setdefault(cell.name, []).append(seconds)
                    left = remaining_seconds(took, waiting[done:]) / jobs
                    say(f"{done}/{len(waiting)} {cell.title}: {_outcome(row)}{_left(left)}")
            except BaseException:
                self._stopped = True
                pool.shutdown(wait=False, cancel_futures=True)
                for child in list(self._children):
                    _end(child)
                raise
        return [rows[cell.key] for cell in cells]

    def _timed(self, cell: Cell) -> tuple[Cell, Row, float]:
        begin = time.monotonic()
        row = self._run(cell)
        if not self._stopped:  # otherwise it did not end by itself
            self._keep(cell, row)
        return cell, row, time.monotonic() - begin

    def _keep(self, cell: Cell, row: Row) -> None:
        """A cell that is done needs no journal; one that failed keeps what it paid for until it is tried again."""
        write_private(self._cells / f"{cell.key}.json", json.dumps(row, ensure_ascii=False))
        if row["status"] == "done":
            self._journal(cell).unlink(missing_ok=True)

    def _kept(self, cell: Cell) -> Row | None:
        file = self._cells / f"{cell.key}.json"
        row: Row | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        if row is not None and row["status"] == "done":
            self._journal(cell).unlink(missing_ok=True)
        return row

    def _journal(self, cell: Cell) -> Path:
        return self._cells / f"{cell.key}.journal"

    def rows(self) -> list[Row]:
        """What the code that stands here has made in this folder, for this plan and others: one row for each cell.

        What other code, or other options, made stays in `cells/`, and the manifest says what it was.
        """
        source = package_digest()
        found = [json.loads(file.read_text(encoding="utf-8")) for file in self._cells.glob("*.json")]
        current = [row for row in found if is_current(json.loads(row.get("made", "{}")), source)]
        shown = {_asked(row): row for row in sorted(current, key=lambda row: str(row["ended"]))}
        shown |= {_asked(row): row for cell in self.cells if (row := self._kept(cell)) is not None}
        return sorted(shown.values(), key=lambda row: (row["kind"], row["name"], row["epsilon"] or 0, row["run"]))

    def _run(self, cell: Cell) -> Row:
        """A cell in a process of its own; a crash, a refusal and a time-out are results too."""
        row: Row = {
            **asdict(cell),
            "options": json.dumps(cell.options, sort_keys=True),
            "made": json.dumps(cell.made, sort_keys=True, ensure_ascii=False),
            "versions": json.dumps(versions()),
            "status": "done",
            "problem": None,
            "code": None,
        }
        answer = self._cells / f".{cell.key}.answer.part"
        try:
            found = self._answer(cell, answer)
        finally:
            answer.unlink(missing_ok=True)
        return {**row, **found, "ended": datetime.now(UTC).isoformat()}

    def _answer(self, cell: Cell, answer: Path) -> Row:
        child = subprocess.Popen(
            [sys.executable, "-m", "hedgerow.compare.cell", str(answer), str(self._journal(cell))],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
            pass_fds=() if sys.platform == "win32" else (self._lock,),
        )
        assert child.stdin is not None
        self._children.add(child)
        try:
            with suppress(BrokenPipeError):  # it died at once; what of is said below
                child.stdin.write(request(self.plan, cell) + "\n")
                child.stdin.flush()
            child.wait(timeout=self.plan.max_seconds)
        except subprocess.TimeoutExpired:
            return {"status": "timed out", "problem": f"not done after {self.plan.max_seconds:g} s"}
        finally:
            _end(child)
            self._children.discard(child)
        if not answer.exists():
            return {"status": "failed", "problem": _death(child.returncode)}
        found: Row = json.loads(answer.read_text(encoding="utf-8"))
        return {**found, "status": "failed" if "problem" in found else "done"}

    def write(self, say: Callable[[str], None]) -> None:
        """results.parquet and comparison.html, of the cells that today's code made."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = self.rows()
        others = len(list(self._cells.glob("*.json"))) - len(rows)
        if others:
            say(f"{others} cells that other code or other options made stay in {self._cells} and are not shown")
        names = list(dict.fromkeys(key for row in rows for key in row))
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        with whole_file(self.folder / "results.parquet", mode=0o600) as partial:
            pq.write_table(table.replace_schema_metadata({"hedgerow": "PRIVATE: computed from real rows"}), partial)
        manifest = json.loads(self._manifest.read_text(encoding="utf-8"))
        views = views_of(self.plan, rows)
        write_private(self.folder / "comparison.html", comparison_page(rows, views, manifest))
        write_summaries(self.folder, rows, views, [*self.plan.methods, *self.plan.programs][0])


def write_summaries(folder: Path, rows: Sequence[Row], views: Sequence[MetricView], against: str) -> None:
    """results.csv, summary.csv, and for every figure a table in LaTeX and a picture."""
    found = summaries(rows, [view.name for view in views], against)
    write_private(folder / "results.csv", results_csv(rows))
    write_private(folder / "summary.csv", summary_csv(found))
    for view in views:
        write_private(folder / f"{view.name}.tex", latex(found, view))
        write_private(folder / f"{view.name}.svg", svg(found, view))


def views_of(plan: Plan, rows: Sequence[Row]) -> list[MetricView]:
    """What a page says of the figures that some row holds."""
    figures = shown_figures(find(name) for name in plan.metrics)
    held = {name: each for name, each in figures.items() if any(name in row for row in rows)}
    return [MetricView(name, each.title, each.meaning, each.best) for name, each in held.items()]


def _asked(row: Row) -> tuple[Any, ...]:
    """What was asked for, whoever made it."""
    return (row["kind"], row["name"], row["epsilon"], row["run"], row["options"], row["file"])


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
        name = signal.Signals(-code).name
        return f"ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _end(child: subprocess.Popen[str]) -> None:
    """A cell that is still at work is stopped with all that it started: its process group is its own.

    Windows has no such groups: what a program has started there goes on until it ends.
    """
    if child.poll() is None:
        if sys.platform == "win32":
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    if child.stdin is not None:
        with suppress(BrokenPipeError):
            child.stdin.close()
