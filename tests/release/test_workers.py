"""Processes that help a command end with it, however it ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

from hedgerow.errors import HedgerowError, InputError, OptionError
from hedgerow.release.workers import in_processes
from refusals import refused

PARENT = """
import sys
from test_workers import note_and_wait
from hedgerow.release.workers import in_processes
list(in_processes(note_and_wait, [(sys.argv[1],)] * 4, 2))
"""


def double(number):
    return 2 * number


def fail(kind):
    if kind == "refused":
        raise OptionError("sevenfold", "refused: seven")
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise KeyError("private words")


def note_and_wait(folder):
    with open(os.path.join(folder, str(os.getpid())), "w"):
        time.sleep(600)


def alive(pid):
    """Whether a process still runs; one that is dead and was not asked about does not."""
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids, seconds=60):
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, pids))


def test_every_job_is_answered():
    assert sorted(in_processes(double, [(n,) for n in range(7)], 2)) == [(n, 2 * n) for n in range(7)]


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("refused", OptionError, ("sevenfold", "refused: seven")),
        ("killed", InputError, ("worker-ended", "SIGKILL")),
        ("strange", HedgerowError, ("internal", "an error of ours, not of your input: KeyError at test_workers.py:")),
    ],
)
def test_a_job_that_fails_is_told(kind, error, said):
    with refused(*said) as told:
        list(in_processes(fail, [(kind,)], 2))
    assert type(told.value) is error


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc who lives")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_the_one_that_asked(tmp_path, end):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    paths = {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    parent = subprocess.Popen(command, env={**os.environ, **paths}, stderr=subprocess.DEVNULL, start_new_session=True)
    while len(os.listdir(tmp_path)) < 2 and parent.poll() is None:
        time.sleep(0.02)
    workers = [int(name) for name in os.listdir(tmp_path)]
    assert len(workers) == 2
    assert all(map(alive, workers))
    parent.send_signal(end)
    parent.wait()
    assert gone(workers)
