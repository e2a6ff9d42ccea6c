"""Memory that the system does not give: said in one sentence, before the libraries below end the process without one.

Where the address space is limited (`ulimit -v`), numpy, scipy and Arrow abort while they are loaded, interrupt the
process or try for ever. So a child loads them first, under the same limits, and only where there is a limit.
"""

from __future__ import annotations

import errno
import subprocess
import sys

SECONDS = 6
"""Processor time after which a child that is still loading is taken for one that tries for ever: it takes 1 or 2."""

_LOAD = f"""
import resource
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
import hedgerow.run, scipy.special, pyarrow.csv, pyarrow.parquet, pyarrow.compute
import numpy, threading
room = numpy.ones(1 << 23)
threads = [threading.Thread(target=room.sum) for _ in range(4)]
[thread.start() for thread in threads]
"""


def limit() -> int | None:
    """Bytes of address space or data that this process may have, if there is a limit."""
    if sys.platform == "win32":
        return None
    else:
        import resource

        soft = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
        return min((bytes for bytes in soft if bytes != resource.RLIM_INFINITY), default=None)


def suffices() -> bool:
    """Whether what every command needs can be loaded at all. Costs nothing where nothing is limited."""
    if limit() is None:
        return True
    try:
        silent = subprocess.DEVNULL
        child = subprocess.run([sys.executable, "-c", _LOAD], stdout=silent, stderr=silent)
    except (OSError, MemoryError):
        return False
    return child.returncode == 0


def ran_out(problem: BaseException | None) -> bool:
    """Whether an exception, or what it came from, says that memory or threads were refused."""
    while problem is not None:
        if isinstance(problem, MemoryError) or getattr(problem, "errno", None) == errno.ENOMEM:
            return True
        said = str(problem).lower() if isinstance(problem, ImportError | OSError | RuntimeError) else ""
        if any(words in said for words in ("allocate memory", "failed to map", "start new thread", "bad_alloc")):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def sentence(started: bool) -> str:
    """What is said when memory is refused, before anything or on the way."""
    allowed = limit()
    limited = "" if allowed is None else f" (a limit of this shell, ulimit, allows {allowed >> 20:,} MB)"
    if not started:
        return f"there is too little memory to start{limited}. Nothing was read. Hint: ulimit -v unlimited"
    return (
        f"memory ran out{limited}. No half-written file was left, what was debited stays debited, and a release "
        "written before that is kept. Hint: free memory or raise the limit, then run the same command again."
    )
