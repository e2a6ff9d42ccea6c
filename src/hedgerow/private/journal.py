"""The paid answers of a run, on disk as they come, so that a run that was stopped can go on without paying twice.

A method is a function of its answers (the replay audit checks that). So a new process that is handed the answers of
the old one makes the same calls up to where the old one stopped; from there on it asks for itself. The file holds
noisy answers only, which the release will hold anyway. An answer that was drawn but not written was seen by nobody.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.errors import BudgetError
from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.private.mechanisms import Answering

FORMAT = "hedgerow journal 1"
MARK = b'"format": "hedgerow journal'
"""Stands near the beginning of every journal, and in no other file of ours."""
_LENGTH = 8
_DIGEST = 32


@dataclass(frozen=True, eq=False)
class Record:
    """What was asked, and the answer: a plain value and arrays."""

    asked: Sequence[Any]
    value: Any = None
    arrays: tuple[IntArray, ...] = ()


class Journal:
    """An append-only file that appears with the first charge. Each record reaches the disk before the run goes on.

    `run` is everything public that decides what a run asks; a journal of another run is refused.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], *, resume: bool = False):
        self.path = path
        self._run = _plain({"format": FORMAT, **run})
        self.nonce = secrets.token_hex(16)
        """Names the journal in the ledger, so that a debit is found again whatever happened after it."""
        self._work: int | None = None
        self._recorded: deque[Record] = deque()
        self._file: io.FileIO | None = None
        self._paid = resume
        if resume:
            self._resume()
        else:
            refuse_unfinished(path)

    def keep(self, asked: Sequence[Any], answer: Callable[[], Record]) -> Record:
        """The recorded answer while there is one; afterwards the answer itself, written down."""
        asked = _plain(list(asked))
        if self._recorded:
            record = self._recorded.popleft()
            if record.asked != asked:
                raise BudgetError(
                    f'the run asks for something else than the one whose answers are in "{self.path}". Was it made '
                    "with another version, or was the public table changed?"
                )
            return record
        self.begin()
        record = answer()
        self._append(Record(asked, record.value, record.arrays))
        self._paid = True
        return record

    def charge(self, charge: Charge) -> None:
        """Note a charge that was granted."""
        digest = hashlib.sha256(repr(charge).encode()).hexdigest()
        self.keep(["charge", charge.purpose, digest], lambda: Record(()))

    def agreed(self, work: int | None) -> int | None:
        """How much work the run may do: as it was when the run began, whatever a resumed one measures or asks for.

        What a run asks depends on it, as on its other options. It stays here: a release says nothing of a machine.
        """
        if self._file is None:
            self._work = work
        return self._work

    def close(self) -> None:
        """Let go of the file. It stays until its answers are in a release, or goes if nothing was paid."""
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self._paid:
                self.path.unlink(missing_ok=True)

    # ------------------------------------------------------------ the file

    def _resume(self) -> None:
        if not self.path.exists():
            raise BudgetError(
                f'there is nothing to resume: "{self.path}" does not exist. Nothing was read, nothing was spent.'
            )
        self._file = self._open()
        header, records, end = _records(self._file.readall())
        run = {} if header is None else header.value["run"]
        differing = [key for key in self._run if run.get(key) != self._run[key]]
        if header is None or differing:
            self.close()
            raise BudgetError(
                f'"{self.path}" belongs to another run: its {", ".join(differing)} is not the one given. '
                "Nothing was read. Hint: repeat the command that was stopped, with --resume."
            )
        self.nonce, self._work = header.value["nonce"], header.value["work"]
        self._recorded.extend(records)
        self._file.truncate(end)  # a record that was cut short was never used
        self._file.seek(end)

    def _open(self) -> io.FileIO:
        place = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(place)
            raise BudgetError(f'another run is writing to "{self.path}". Nothing was read.') from None
        return io.FileIO(place, "r+")

    def begin(self) -> None:
        """The header is on disk before anything is paid."""
        if self._file is None:
            self._file = self._open()
            self._append(Record(("journal",), {"run": self._run, "nonce": self.nonce, "work": self._work}))

    def _append(self, record: Record) -> None:
        assert self._file is not None
        data = _packed(record)
        self._file.write(len(data).to_bytes(_LENGTH, "big") + hashlib.sha256(data).digest() + data)
        os.fsync(self._file.fileno())


def refuse_unfinished(path: Path) -> None:
    """What was paid for is neither paid again nor thrown away in silence."""
    if path.exists():
        raise BudgetError(
            f'"{path}" holds the paid answers of a run that did not end. Nothing was read. Hint: --resume goes on with '
            "it without paying again; delete it to give up what was paid."
        )


class Journaled:
    """Answers that are written down before anyone sees them. Stands where `Mechanisms` stands."""

    def __init__(self, inner: Answering, journal: Journal):
        self._inner = inner
        self._journal = journal

    @property
    def guaranteed(self) -> bool:
        return self._inner.guaranteed

    def noisy_counts(self, exact: Exact[ExactCounts], cells: int, noise: Noise) -> IntArray:
        asked = ("counts", cells, noise.kind, noise.scale)
        (counts,) = self._journal.keep(
            asked, lambda: Record((), None, (self._inner.noisy_counts(exact, cells, noise),))
        ).arrays
        return counts

    def survivors(
        self, exact: Exact[ExactCounts], cells: int, noise: Noise, threshold: float
    ) -> tuple[IntArray, IntArray]:
        asked = ("survivors", cells, noise.kind, noise.scale, threshold)
        kept, values = self._journal.keep(
            asked, lambda: Record((), None, self._inner.survivors(exact, cells, noise, threshold))
        ).arrays
        return kept, values

    def choose(self, scores: Exact[IntArray], rate: Fraction) -> int:
        return int(
            self._journal.keep(("choose", str(rate)), lambda: Record((), self._inner.choose(scores, rate))).value
        )

    def discover(self, counts: Exact[Mapping[str, int]], noise: Noise, threshold: int) -> tuple[str, ...]:
        asked = ("discover", noise.kind, noise.scale, threshold)
        return tuple(
            self._journal.keep(asked, lambda: Record((), list(self._inner.discover(counts, noise, threshold)))).value
        )


def _plain(value: Any) -> Any:
    """As it reads back from JSON."""
    return json.loads(json.dumps(value))


def _packed(record: Record) -> bytes:
    """A line of JSON, and arrays in .npy format."""
    packed = io.BytesIO()
    head = {"asked": list(record.asked), "value": record.value, "arrays": len(record.arrays)}
    packed.write(json.dumps(head).encode() + b"\n")
    for array in record.arrays:
        np.lib.format.write_array(packed, np.ascontiguousarray(array), allow_pickle=False)
    return packed.getvalue()


def _unpacked(data: bytes) -> Record:
    packed = io.BytesIO(data)
    head = json.loads(packed.readline())
    arrays = tuple(np.lib.format.read_array(packed, allow_pickle=False) for _ in range(head["arrays"]))
    return Record(head["asked"], head["value"], arrays)


def _records(data: bytes) -> tuple[Record | None, list[Record], int]:
    """The header, the whole records after it, and where they end. What was cut short or damaged ends the list."""
    records, place = [], 0
    while place + _LENGTH + _DIGEST <= len(data):
        length = int.from_bytes(data[place : place + _LENGTH], "big")
        start = place + _LENGTH + _DIGEST
        body = data[start : start + length]
        if len(body) < length or hashlib.sha256(body).digest() != data[place + _LENGTH : start]:
            break
        records.append(_unpacked(body))
        place = start + length
    return (records[0], records[1:], place) if records else (None, [], 0)
