"""What a long piece of work tells its user, and what the user allows it.

`Progress` is handed to every method. Time is read only here, every decision that depends on it goes through
`out_of_time`, and the time that the private side takes does not count: how long a count takes depends on the rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Limits:
    """What the user allows: bytes of memory, and seconds for the public phases (None: no limit)."""

    memory: int = 4 << 30
    seconds: float | None = None


class Progress:
    """Says nothing; the command line has a subclass that draws bars."""

    def __init__(self, limits: Limits | None = None):
        self.limits = limits or Limits()
        self.ended_early = False
        """Whether a method was told that its time is up."""
        self.decide: Callable[[bool], bool] = lambda late: late
        """Hears every such decision, and may hand out that of a run which is being resumed."""
        self._counted = 0.0
        self._counting_since: float | None = time.monotonic()

    @contextmanager
    def phase(self, name: str, steps: int | None = None) -> Iterator[Progress]:
        """A named stretch of work of `steps` steps (None: unknown)."""
        yield self

    def step(self, count: int = 1) -> None:
        """`count` steps of the current phase are done."""

    def out_of_time(self) -> bool:
        """Whether the public work has used up its time."""
        running = 0.0 if self._counting_since is None else time.monotonic() - self._counting_since
        late = self.limits.seconds is not None and self.decide(self._counted + running > self.limits.seconds)
        self.ended_early = self.ended_early or late
        return late

    @contextmanager
    def private(self) -> Iterator[None]:
        """A stretch whose time does not count."""
        yield from self._clock(running=False)

    @contextmanager
    def public(self) -> Iterator[None]:
        """A stretch of public work inside a private one: its time counts."""
        yield from self._clock(running=True)

    def _clock(self, running: bool) -> Iterator[None]:
        before = self._counting_since is not None
        self._switch(running)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, running: bool) -> None:
        now = time.monotonic()
        if self._counting_since is not None:
            self._counted += now - self._counting_since
        self._counting_since = now if running else None


def peak_rss_mb() -> float:
    """The most memory that this process has held, for the operator.

    Where the system says so; getrusage also counts what a parent held before the process was born.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return round(int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024, 1)
    import resource

    return round(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1
    )
