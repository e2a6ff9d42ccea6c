"""Progress on a terminal: a bar where someone is looking, one line per phase elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from hedgerow.cli.doubts import warn
from hedgerow.progress import Limits, Progress


def waiting(name: str, quiet: bool = False) -> AbstractContextManager[Progress]:
    """A stretch that may take a while and that says so to whoever watches, and to nobody else."""
    return TerminalProgress(Limits(), quiet or not sys.stderr.isatty()).phase(name)


class TerminalProgress(Progress):
    """Draws phases and times them for the operator (never for a release)."""

    def __init__(self, limits: Limits, quiet: bool):
        super().__init__(limits)
        self.phases: dict[str, dict[str, float]] = {}
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None

    @contextmanager
    def phase(self, name: str, steps: int | None = None) -> Iterator[Progress]:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            with self._drawn(name, steps):
                yield self
        finally:
            spent = self.phases.setdefault(name, {"wall_s": 0.0, "cpu_s": 0.0})
            spent["wall_s"] = round(spent["wall_s"] + time.perf_counter() - wall, 3)
            spent["cpu_s"] = round(spent["cpu_s"] + time.process_time() - cpu, 3)

    def warn(self, text: str) -> None:
        warn([text])

    def say(self, text: str) -> None:
        if not self._quiet:
            print(text, file=sys.stderr, flush=True)

    def step(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, count)

    @contextmanager
    def _drawn(self, name: str, steps: int | None) -> Iterator[None]:
        if self._quiet:
            yield
        elif not sys.stderr.isatty():
            print(f"{name} …", file=sys.stderr, flush=True)
            yield
        else:
            yield from self._on_terminal(name, steps)

    def _on_terminal(self, name: str, steps: int | None) -> Iterator[None]:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
            self._bar, self._task = bar, bar.add_task(name, total=steps)
            try:
                yield
            finally:
                self._bar = None
