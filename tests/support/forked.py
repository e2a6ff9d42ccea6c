"""Commands without the start of an interpreter: one process has everything imported and forks for each of them.

A command can be told to end itself at its n-th step, before it, after it, or in the middle of a write. A step is a call
that changes what is on disk: open, write, fsync, ftruncate, link, replace, unlink, mkdir.
"""

import atexit
import contextlib
import gc
import itertools
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from refusals import code_in

STEPS = ("open", "write", "fsync", "ftruncate", "link", "replace", "unlink", "mkdir")
TOKEN = "HEDGEROW_TEST_COMMAND"
"""A variable by which everything that a command started is found again."""
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
SCHEMA = """
dataset: people
columns:
  a: {type: code, size: 3}
  b: {type: code, size: 4}
  c: {type: integer, min: 0, max: 1}
"""


def write_inputs(folder):
    """A table that every method is soon done with, and its schema."""
    rng = np.random.default_rng(1)
    table = pa.table({name: rng.integers(0, size, 300) for name, size in (("a", 3), ("b", 4), ("c", 2))})
    pq.write_table(table, folder / "t.parquet")
    (folder / "s.yaml").write_text(SCHEMA)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def refusal(self):
        return code_in(self.err)


class Running:
    """A command at work."""

    def __init__(self, server, pid, token, folder):
        self._server, self.pid, self._token, self._folder = server, pid, token, folder

    def said(self, stream):
        """What it wrote so far."""
        return (self._folder / f"{self._token}.{stream}").read_text(errors="replace")

    def wait(self):
        code = self._server.ask({"wait": self.pid})
        return Done(code, self.said("out"), self.said("err"))

    def left(self, seconds=60):
        """The processes that it started and that still live, after a while to end in."""
        end = time.monotonic() + seconds
        while (found := self._living()) and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def _living(self):
        mark, found = f"{TOKEN}={self._token}\0".encode(), []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes() and "Z" not in (folder / "stat").read_text().split()[2]:
                    found.append(int(folder.name))
        return found


class Server:
    """The process that forks."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._tokens = (f"{os.getpid()}-{number}" for number in itertools.count())
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import forked; forked.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)},
        )

    def ask(self, about):
        self._process.stdin.write(json.dumps(about) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, words, folder, before=""):
        """Begin a command; `before` is code that runs in its process first, or all of it where there are no words."""
        token = next(self._tokens)
        for stream in ("out", "err"):
            (self._folder / f"{token}.{stream}").touch()
        asked = {"words": [str(word) for word in words], "folder": str(folder), "before": before, "token": token}
        return Running(self, self.ask({**asked, "log": str(self._folder)}), token, self._folder)

    def run(self, words, folder, before=""):
        return self.start(words, folder, before).wait()

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def serve():
    """Fork for every line that asks for a command; answer with its process, and with its exit code when asked."""
    _import_everything()
    gc.freeze()  # what is shared with the commands stays shared
    answers = os.dup(1)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                os.close(answers)
                _command(**asked)
        os.write(answers, f"{answer}\n".encode())


def _import_everything():
    import importlib
    import pkgutil

    import hedgerow

    skipped = (
        "hedgerow.__main__",
        "hedgerow.private.engines.sql",
        "hedgerow.release.spark_parts",
        "hedgerow.compare.cell",
    )
    for module in pkgutil.walk_packages(hedgerow.__path__, "hedgerow."):
        if not module.name.startswith(skipped):
            importlib.import_module(module.name)
    for name in (
        "cryptography.hazmat.primitives.ciphers.modes",
        "multiprocessing.popen_spawn_posix",
        "pyarrow.csv",
        "pyarrow.pandas_compat",
        "pyarrow.parquet",
        "scipy.special",
        "typer._adapters",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _command(words, folder, before, token, log):
    os.setsid()
    os.chdir(folder)
    os.environ[TOKEN] = token
    for number, path in ((0, os.devnull), (1, f"{log}/{token}.out"), (2, f"{log}/{token}.err")):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background work ignores it
    sys.argv = ["hedgerow", *words]
    random.seed()
    from hedgerow.cli import main

    try:
        exec(before, {})
        if words:
            main()
        sys.exit(0)
    except SystemExit as end:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)  # to take down all that was imported would take longer than the command


def end_at(step, moment, number):
    """Let this process be ended by a signal at its n-th step: "before", "after", or in the "middle" of a write."""
    taken = itertools.count(1)

    def watched(name, real):
        def call(*words, **named):
            if next(taken) != step:
                return real(*words, **named)
            if moment == "before":
                os.kill(os.getpid(), number)
            if moment == "middle" and name == "write" and stat.S_ISREG(os.fstat(words[0]).st_mode):
                real(words[0], bytes(words[1])[: len(words[1]) // 2])
                os.kill(os.getpid(), number)
            done = real(*words, **named)
            os.kill(os.getpid(), number)
            return done

        return call

    for name in STEPS:
        setattr(os, name, watched(name, getattr(os, name)))


def count_steps(path):
    """Write down, when the process ends, how many steps it took."""
    taken = []

    def watched(real):
        def call(*words, **named):
            taken.append(None)
            return real(*words, **named)

        return call

    atexit.register(lambda: Path(path).write_text(str(len(taken))))
    for name in STEPS:
        setattr(os, name, watched(getattr(os, name)))


def ending(step, moment, number):
    """The code that arranges it."""
    return f"import forked; forked.end_at({step}, {moment!r}, {int(number)})"
