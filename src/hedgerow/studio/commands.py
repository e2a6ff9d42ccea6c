"""The words of every command that a step is. What is shown is what is run: there is no second way to do it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedgerow.studio.project import Project, Run

DELTA = 1e-9
"""What the commands take where none is given."""


def shown(words: Sequence[str]) -> str:
    """A command as one types it."""
    return shlex.join(["hedgerow", *words])


def draft(project: Project, out: Path, sources: Sequence[str] = (), *, overwrite: bool = False) -> list[str]:
    """A schema from the header and from public sources."""
    named = [word for source in sources for word in ("--from", source)]
    written = [f"--file={key}={value}" for key, value in pairs(project.notes.file)]
    return ["schema", "draft", project.table, "-o", str(out), *named, *written, *["--overwrite"] * overwrite]


def pairs(file: Mapping[str, object]) -> list[tuple[str, str]]:
    """How a file is written, as --file takes it."""
    listed = ((key, value if isinstance(value, list) else [value]) for key, value in file.items())
    return [(key, str(each)) for key, values in listed for each in values]


def check(project: Project) -> list[str]:
    return ["schema", "check", "-s", str(project.schema), project.table]


def misfits(project: Project) -> list[str]:
    """The private look at what does not fit."""
    page = ["--private", str(project.misfits), "--overwrite"]
    return [*check(project), *page, *_ledger(project)]


def ledger(project: Project, dataset: str, epsilon: float) -> list[str]:
    return ["ledger", "create", str(project.ledger), f"--dataset={dataset}", "--epsilon", f"{epsilon:g}"]


def plan(project: Project, epsilons: Sequence[float]) -> list[str]:
    rows = str(project.notes.rows or "ROWS")
    listed = ",".join(f"{epsilon:g}" for epsilon in epsilons)
    return ["plan", "-s", str(project.schema), "--rows", rows, "-e", listed, *_delta(project.notes.delta)]


def synth(project: Project, run: Run) -> list[str]:
    """The release, its rows and its page."""
    notes, linked = project.notes, project.is_linked
    return [
        *("synth", project.table, "-s", str(run.schema), "-e", f"{notes.epsilon:g}", *_delta(notes.delta)),
        *("-o", str(run.tables if linked else run.table), "--report", str(run.page), *_ledger(project)),
        *(f"--allow-misfits={column}" for column in notes.allow_misfits),
        *([] if project.noise_seed is None else ["--unsafe-noise-seed", str(project.noise_seed)]),
    ]


def ask(run: Run, question: str) -> list[str]:
    return ["ask", str(run.release), question]


def evaluate(project: Project, run: Run) -> list[str]:
    """The private comparison with the rows."""
    page = ["--report", str(run.evaluation), "--overwrite"]
    made = run.tables if project.is_linked else run.table
    return ["evaluate", project.table, str(made), "-s", str(run.release), *page, *_ledger(project)]


def publish(project: Project, run: Run) -> list[str]:
    made = run.tables if project.is_linked else run.table
    given = ["--table", str(made), "--publisher", str(project.publisher)]
    return ["publish", str(run.release), *given, "-o", str(run.published), *_ledger(project)]


def verify(made: Path) -> list[str]:
    return ["verify", str(made)]


def _delta(delta: float) -> list[str]:
    return [] if delta == DELTA else ["--delta", f"{delta:g}"]


def _ledger(project: Project) -> list[str]:
    return ["--ledger", str(project.ledger)] if project.ledger.exists() else []
