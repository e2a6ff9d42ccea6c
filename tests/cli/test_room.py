"""Memory that the system refuses ends a command in one sentence: no abort, no traceback, no endless try."""

import errno
import os
import subprocess
import sys

import pytest

from hedgerow import cli
from hedgerow.cli import room
from refusals import code_in

COMMAND = [sys.executable, "-m", "hedgerow"]
limited = pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer needs all of the address space")


def under(megabytes, *words):
    shell = ["bash", "-c", f'ulimit -c 0 -v {megabytes << 10} && exec "$@"', "-", *COMMAND, *words]
    return subprocess.run(shell, capture_output=True, text=True, check=False)


@limited
@pytest.mark.parametrize("megabytes", [100, 250])
def test_too_small_an_address_space_is_said_before_anything_is_loaded(megabytes):
    """The second is where Arrow aborts while it is loaded."""
    done = under(megabytes, "methods")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert code_in(done.stderr) == "out-of-memory"
    assert f"ulimit, allows {megabytes} MB" in done.stderr
    assert "Nothing was read" in done.stderr


@limited
def test_a_command_can_be_explained_in_any_room():
    assert under(150, "--help").returncode == 0


def test_nothing_is_tried_where_nothing_is_limited(monkeypatch):
    monkeypatch.setattr(room, "limit", lambda: None)
    monkeypatch.setattr(subprocess, "run", None)
    assert room.suffices()


def wrapped(inner):
    """An error that another one hides."""
    try:
        try:
            raise inner
        except type(inner):
            raise KeyError("outer") from None
    except KeyError as outer:
        return outer


REFUSED = [
    MemoryError(),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    RuntimeError("can't start new thread"),
    ImportError("libx.so: failed to map segment from shared object"),
]


@pytest.mark.parametrize("problem", [*REFUSED, *map(wrapped, REFUSED)])
def test_memory_that_runs_out_is_one_sentence(problem, monkeypatch, capsys):
    def app(**named):
        raise problem

    monkeypatch.setattr("hedgerow.cli.app.app", app)
    monkeypatch.setattr(sys, "argv", ["hedgerow"])
    monkeypatch.setattr("signal.signal", lambda *words: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert code_in(said) == "out-of-memory"
    assert said.count("\n") == 1


@pytest.mark.parametrize("problem", [ValueError("memory"), ImportError("no module"), OSError(errno.ENOSPC, "full")])
def test_other_errors_are_not_taken_for_it(problem):
    assert not room.ran_out(problem)
