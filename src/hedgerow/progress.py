"""What a long piece of work tells its user, and what the user allows it.

`Progress` is handed to every method. Time is read only here, and every decision that depends on it goes through
`out_of_time`, so that it can be recorded and replayed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What the user allows: bytes of memory, and seconds for the public phases (None: no limit)."""

    memory: int = 4 << 30
    seconds: float | None = None


class Progress:
    """Says nothing and never runs out of time; the command line has a subclass that draws bars."""

    def __init__(self, limits: Limits | None = None):
        self.limits = limits or Limits()

    @contextmanager
    def phase(self, name: str, steps: int | None = None) -> Iterator[Progress]:
        """A named stretch of work of `steps` steps (None: unknown)."""
        yield self

    def step(self, count: int = 1) -> None:
        """`count` steps of the current phase are done."""

    def out_of_time(self) -> bool:
        """Whether the public phases have used up their time."""
        return False
