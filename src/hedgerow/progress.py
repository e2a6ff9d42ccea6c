"""What a long piece of work tells its user, and what the user allows it.

`Progress` is handed to every method. A limit of time is a limit of *work*: before the table is opened, a short piece of
work tells how much of it this machine does in a second, and from then on no clock is read for a decision. Whoever does
something long says how much it was, in units of about a nanosecond that follow from public quantities alone: cells,
candidates, columns. So where a run stops early is a function of the limit and of noisy answers. How long a count takes,
what memory the rows fill and what else the machine does cannot move it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations

UNITS_A_PIECE = 110_000
"""What a piece of the calibration counts as; about its nanoseconds on the machine where work was first measured."""
PIECES = 300


@dataclass
class Work:
    """How much work is allowed (None: no limit), and how much was done."""

    allowed: int | None = None
    done: int = 0
    ended_early: bool = False
    """Whether somebody was told that no work is left, and so did less."""

    def is_used_up(self) -> bool:
        used_up = self.allowed is not None and self.done >= self.allowed
        self.ended_early = self.ended_early or used_up
        return used_up


@dataclass(frozen=True)
class Limits:
    """What the user allows: bytes of memory, and seconds for what needs no data (None: no limit).

    A `Progress` turns the seconds into work, which all who are handed its limits share.
    """

    memory: int = 4 << 30
    seconds: float | None = None
    work: Work | None = field(default=None, compare=False, repr=False)


class Progress:
    """Says nothing; the command line has a subclass that draws bars."""

    def __init__(self, limits: Limits | None = None):
        limits = limits or Limits()
        self.work = limits.work or _allowed(limits.seconds)
        self.limits = replace(limits, work=self.work)

    @contextmanager
    def phase(self, name: str, steps: int | None = None) -> Iterator[Progress]:
        """A named stretch of work of `steps` steps (None: unknown)."""
        yield self

    def step(self, count: int = 1) -> None:
        """`count` steps of the current phase are done."""

    def warn(self, text: str) -> None:
        """Something that the user should hear while there is still time to stop. It must be public."""

    def say(self, text: str) -> None:
        """Something that the user may want to know. It must be public."""

    def worked(self, units: float) -> None:
        """So much work was done, or is about to be. The units must follow from public quantities."""
        self.work.done += int(units)

    def out_of_time(self) -> bool:
        """Whether the work that is allowed has been done."""
        return self.work.is_used_up()

    def affords(self, count: int, each: float, least: int) -> int:
        """How many of `count` pieces of so much work still fit; `least` of them do in any case."""
        if self.work.allowed is None:
            return count
        fitting = max(least, int((self.work.allowed - self.work.done) // each))
        self.work.ended_early = self.work.ended_early or fitting < count
        return min(count, fitting)

    @contextmanager
    def keeping(self, share: float) -> Iterator[None]:
        """A stretch of work that leaves this share of the work that is left to what follows it."""
        allowed = self.work.allowed
        if allowed is not None:
            self.work.allowed = allowed - int(share * max(0, allowed - self.work.done))
        try:
            yield
        finally:
            self.work.allowed = allowed

    @property
    def ended_early(self) -> bool:
        """Whether a method was told that its time is up."""
        return self.work.ended_early


def _allowed(seconds: float | None) -> Work:
    return Work(None if seconds is None else int(seconds * units_per_second()))


def units_per_second() -> float:
    """How fast this machine works: pieces of what methods do, in Python and in arrays, for about a twentieth second."""
    import numpy as np

    values = np.linspace(0.0, 1.0, 1 << 13)
    begin = time.perf_counter()
    for _ in range(PIECES):
        pairs = {pair: index for index, pair in enumerate(combinations(range(40), 2))}
        values = np.exp(values - float(values[len(pairs)]))
        values /= values.sum()
    return PIECES * UNITS_A_PIECE / (time.perf_counter() - begin)


def peak_rss_mb() -> float:
    """The most memory that this process has held, for the operator.

    Where the system says so, else not a number; getrusage also counts what a parent held before the process was born.
    """
    from pathlib import Path

    status = Path("/proc/self/status")
    if status.exists():
        return round(int(status.read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024, 1)
    if sys.platform == "win32":
        return math.nan
    else:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(most / (1 << 20 if sys.platform == "darwin" else 1 << 10), 1)


def cpu_seconds_of_children() -> float:
    """Of processes that this one started and that have ended; none are known on Windows."""
    if sys.platform == "win32":
        return 0.0
    else:
        import resource

        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime
