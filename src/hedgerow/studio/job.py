"""A command that the studio has started: what it says, how it ends, and how it is stopped.

What a command says on stderr is public by the rule that all commands keep, and goes to a file, so that it can be read
after a studio was closed; what it prints is dropped, because an evaluation prints private figures.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hedgerow.release.locks import opened

_PHASE = " …"
_REFUSED = re.compile(r"hedgerow \[([a-z0-9-]+)\]: (.*)", re.S)
SECONDS = 20
"""How long a command that is stopped may take to tidy up."""
if sys.platform == "win32":
    STOP, NEW_GROUP = signal.CTRL_BREAK_EVENT, subprocess.CREATE_NEW_PROCESS_GROUP
else:
    STOP, NEW_GROUP = signal.SIGINT, 0


@dataclass(frozen=True)
class Output:
    """What a command has said so far."""

    phases: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Warnings and hints."""
    code: str | None = None
    """Of what it was refused for."""
    refusal: str = ""


def said(log: Path) -> Output:
    """What the log of a command holds."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Output()
    before, mark, after = text.partition("hedgerow [")
    refused = _REFUSED.match(mark + after)
    lines = before.splitlines()
    phases = [line.removesuffix(_PHASE) for line in lines if line.endswith(_PHASE)]
    notes = [line.partition(": ")[2] for line in lines if line.startswith(("warning: ", "hint: "))]
    if refused is None:
        return Output(phases, notes)
    return Output(phases, notes, refused[1], refused[2].strip())


class Job:
    """One command in a process of its own."""

    def __init__(self, name: str, words: Sequence[str], log: Path):
        self.name = name
        """The step that it belongs to."""
        self.words = list(words)
        self.log = log
        with open(opened(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hedgerow", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=written,
                start_new_session=True,  # Ctrl-C in the terminal is for the studio, which stops it
                creationflags=NEW_GROUP,
            )

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    @property
    def failed(self) -> bool:
        return not self.runs and self._process.returncode != 0

    @property
    def said(self) -> Output:
        return said(self.log)

    def ask_to_stop(self) -> None:
        """As Ctrl-C does: nothing half-written stays, and what was paid for can be gone on with."""
        if self.runs:
            self._process.send_signal(STOP)

    def stop(self) -> None:
        """Stop, and wait until it has."""
        self.ask_to_stop()
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        self._process.wait()
