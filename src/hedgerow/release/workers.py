"""Work that several processes share, and that ends with the process which asked for it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from hedgerow.errors import INTERNAL, HedgerowError, InputError
from hedgerow.foreign import fault

_DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""


def in_processes(
    task: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], workers: int
) -> Generator[tuple[int, Any], None, None]:
    """What `task(*job)` gives for every job, with the number of the job, as they come; each process does several.

    Whatever stops this process, even kill -9, stops them too, at once.
    """
    context = get_context(
        "spawn"
    )  # a fresh process, not a fork: nothing of this one's threads or random state comes along
    started: dict[Any, Any] = {}
    waiting = list(reversed(list(enumerate(jobs))))
    try:
        for _ in range(min(workers, len(jobs))):
            ours, theirs = context.Pipe()
            started[ours] = process = context.Process(target=_work, args=(task, theirs), daemon=True)
            with _undisturbed():
                process.start()
            theirs.close()
            ours.send(waiting.pop())
        busy = set(started)
        while busy:
            ready: Any
            for ready in wait(list(busy)):
                answer = _answer(ready, started[ready])
                if waiting:
                    ready.send(waiting.pop())
                else:
                    busy.discard(ready)
                yield answer
    finally:
        for process in started.values():
            if process.pid is not None:
                process.kill()
                process.join()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait; a process that is born meanwhile never hears of Ctrl-C, which this one answers for all of them."""
    if sys.platform == "win32":  # there each of them turns a deaf ear by itself
        yield
    else:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(answers: Any, process: Any) -> tuple[int, Any]:
    """What became of a job; raises what it raised."""
    try:
        index, result, problem = answers.recv()
    except (EOFError, OSError):
        process.join()
        how = signal.Signals(-process.exitcode).name if process.exitcode < 0 else f"exit code {process.exitcode}"
        hint = " It may have run out of memory. Hint: fewer workers." if how == "SIGKILL" else ""
        raise InputError("worker-ended", f"a worker ended before its work was done ({how}).{hint}") from None
    if problem is not None:
        raise problem
    return index, result


def _work(task: Callable[..., Any], jobs: Connection) -> None:
    end_with_parent()
    if sys.platform == "win32":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    else:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with suppress(EOFError, OSError):
        while True:
            index, job = jobs.recv()
            jobs.send((index, *_outcome(task, job)))


def _outcome(task: Callable[..., Any], job: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    try:
        return task(*job), None
    except (HedgerowError, OSError) as problem:
        return None, problem
    except Exception as problem:  # of any other the kind and the place: it may be one that cannot be sent
        return None, HedgerowError(INTERNAL, fault(problem))


def end_with_parent() -> None:
    """Let this process be killed when the one that started it ends, in whatever way."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    parent = parent_process()
    if parent is not None:  # elsewhere, or where the parent was quicker
        threading.Thread(target=_end_after, args=(parent.sentinel,), daemon=True).start()


def _end_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
