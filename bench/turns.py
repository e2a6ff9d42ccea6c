"""CPU seconds of several pieces of work, taken in turn so that a busy machine slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable


def least_seconds(*works: Callable[[], object], rounds: int) -> list[float]:
    """The least of each over the rounds."""
    seconds = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            begin = time.process_time()
            work()
            seconds[index] = min(seconds[index], time.process_time() - begin)
    return seconds
