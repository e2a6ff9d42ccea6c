"""Somebody else's program as a method: a command that reads the table and writes a synthetic one.

    python theirs.py {table} {schema} {epsilon} {delta} {seed} {out}.parquet

What it promises is its maker's word: it holds the rows, and nothing here charges or checks it.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hedgerow.compare.origin import digest_of
from hedgerow.errors import HedgerowError, OptionError

FIELDS = ("table", "schema", "epsilon", "delta", "seed", "out")


def words_of(command: str) -> list[str]:
    """The command as a shell would split it; one that reads no table or writes none is refused."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words or not all(f"{{{field}}}" in command for field in ("table", "out")):
        raise OptionError(
            "bad-program",
            f'"{command}" is no command that reads {{table}} and writes {{out}}.csv or {{out}}.parquet; it may also '
            "name {schema}, {epsilon}, {delta} and {seed}.",
        )
    return words


def files_of(command: str) -> Mapping[str, str]:
    """The files that the command names, by their digests: another program makes another cell."""
    return {word: digest_of(Path(word)) for word in words_of(command) if Path(word).is_file()}


@contextmanager
def made_by(name: str, command: str, given: Mapping[str, object]) -> Iterator[str]:
    """Run it; the table that it wrote, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as folder:
        values = {**given, "out": str(Path(folder) / "made")}
        words = words_of(command)
        for field in FIELDS:
            words = [word.replace(f"{{{field}}}", str(values[field])) for word in words]
        try:
            ended = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        except OSError as problem:
            reason = (problem.strerror or "refused").lower()
            raise HedgerowError("program-failed", f'the program "{name}" could not be started ({reason}).') from None
        written = sorted(Path(folder).glob("made*"))
        if ended or len(written) != 1:
            what = f"ended with exit code {ended}" if ended else "wrote no table, or several"
            raise HedgerowError(
                "program-failed",
                f'the program "{name}" {what}. Hint: run its command by hand; what it says is not kept.',
            )
        yield str(written[0])
