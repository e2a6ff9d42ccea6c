"""The two rooms that are private: exact figures of real rows, each on a page of its own that is marked red.

Nothing of them is on any other page. The command that counts is noted in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.errors import OptionError
from hedgerow.studio.app import Form, Step, Studio, framed


@dataclass(frozen=True)
class Room:
    """What is looked at there, by which command, and where the command writes its page."""

    path: str
    title: str
    told: str
    button: str
    page: Callable[[Studio], Path]
    words: Callable[[Studio], list[str]]

    def show(self, studio: Studio, form: Form) -> Any:
        job = studio.job if studio.job is not None and studio.job.name == self.path else None
        runs = job is not None and job.runs
        return studio.page(
            "private",
            self.path.split("/")[1],
            room=self,
            runs=runs,
            at_work=runs,
            said=job.said if job is not None else None,
            back=self.path,
            refused=job.said.refusal or "It was stopped." if job is not None and job.failed else None,
            page=self.page(studio).exists(),
            ledger=studio.project.ledger.exists(),
            command=self.words(studio),
            kind="private",
        )

    def enter(self, studio: Studio, form: Form) -> Any:
        """Begin to look; the command replaces the page of an earlier look."""
        words = self.words(studio)
        if not form["agreed"]:
            raise OptionError("not-agreed", "nobody looked: say first that you know what is shown there.")
        studio.start(self.path, words, studio.project.folder / ".private.log")
        return studio.go(self.path)

    @property
    def steps(self) -> list[Step]:
        return [
            Step(self.path, self.show, self.enter, stale=True),
            Step(f"{self.path}/page", lambda studio, form: framed(self.page(studio))),
        ]
