"""The paid answers of a run, on disk as they come, so that a run that was stopped can go on without paying twice.

A method is a function of its answers (the replay audit checks that). So a new process that is handed the answers of
the old one makes the same calls up to where the old one stopped; from there on it asks for itself. The file holds
noisy answers only, which the release will hold anyway. An answer that was drawn but not written was seen by nobody.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.errors import BudgetError, OptionError
from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.private.mechanisms import Randomizer
from hedgerow.release.disk import is_at, reason, sync, write_through
from hedgerow.release.locks import lock, opened, read_at_start

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


class Claim:
    """The right to make one release: whoever holds it checks, pays, saves and lets go, and nobody else meanwhile.

    The journal itself is the lock, from before its first record until it is gone. The system lets go of it when its
    holder ends, even by kill -9: what stays is a journal to resume or, where nothing was paid, an empty file that
    stands in nobody's way.
    """

    def __init__(self, path: Path, *, create: bool = True):
        self.path = path
        self.held = self._take(create)
        """The open file."""
        self._closed = False

    @property
    def begun(self) -> bool:
        """Whether something in the journal may have been paid for."""
        wanted = _announced(read_at_start(self.held, _LENGTH))
        return not _is_void(read_at_start(self.held, min(wanted, os.fstat(self.held).st_size)))

    def settle(self) -> None:
        """What was paid for is in a release, on disk: nothing is left to resume."""
        os.ftruncate(self.held, 0)

    def close(self) -> None:
        """Let go; a journal that holds nothing goes too."""
        if self._closed:
            return
        self._closed = True
        empty = not os.fstat(self.held).st_size and is_at(self.held, self.path)
        if sys.platform == "win32":  # what is open there cannot be removed: not ours, nor what another has taken now
            os.close(self.held)
        if empty:
            with suppress(OSError):
                self.path.unlink()
        if sys.platform != "win32":
            os.close(self.held)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, create: bool) -> int:
        while True:
            try:
                descriptor = opened(self.path, os.O_RDWR | (os.O_CREAT if create else 0))
            except FileNotFoundError:
                if create:
                    raise self._unusable("no such folder") from None
                raise BudgetError(
                    "nothing-to-resume",
                    f'there is nothing to resume: "{self.path}" does not exist.',
                ) from None
            except OSError as problem:
                raise self._unusable(reason(problem)) from None
            try:
                lock(descriptor, wait=False)
            except BlockingIOError:
                os.close(descriptor)
                raise BudgetError(
                    "run-in-progress",
                    f'another run is at work here: it holds "{self.path}". '
                    "Hint: wait until it ends, or name another output.",
                ) from None
            except OSError as problem:
                os.close(descriptor)
                raise self._unusable(f"no lock: {reason(problem)}") from None
            if is_at(descriptor, self.path):
                return descriptor
            os.close(descriptor)  # its holder was just done with it

    def _unusable(self, why: str) -> OptionError:
        return OptionError(
            "cannot-write",
            f'"{self.path}", which keeps the paid answers of a run, cannot be written ({why}).',
        )


class Journal:
    """An append-only file whose header is on disk before anything is paid, and each record before the run goes on.

    `run` is everything public that decides what a run asks; a journal of another run is refused.
    """

    def __init__(self, place: Path | Claim, run: Mapping[str, Any], *, resume: bool = False):
        self._borrowed = isinstance(place, Claim)
        self._claim = place if isinstance(place, Claim) else Claim(place, create=not resume)
        self.path = self._claim.path
        self._run = _plain({"format": FORMAT, **run})
        self.nonce = secrets.token_hex(16)
        """Names the journal in the ledger, so that a debit is found again whatever happened after it."""
        self._work: int | None = None
        self._recorded: deque[Record] = deque()
        self._opened = self._paid = False
        try:
            if resume:
                self._resume()
            else:
                refuse_unfinished(self._claim)
        except BaseException:
            self.close()
            raise

    def keep(self, asked: Sequence[Any], answer: Callable[[], Record]) -> Record:
        """The recorded answer while there is one; afterwards the answer itself, written down."""
        asked = _plain(list(asked))
        if self._recorded:
            record = self._recorded.popleft()
            if record.asked != asked:
                raise BudgetError(
                    "run-differs",
                    f'the run asks for something else than the one whose answers are in "{self.path}". Was it made '
                    "with another version, or was the public table changed?",
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
        if not self._opened:
            self._work = work
        return self._work

    @contextmanager
    def paying(self, part: str) -> Iterator[str]:
        """While a ledger debits a part of the run, which is named to it. Only a refusal makes the journal one of
        nothing paid: a debit that is interrupted may stand.
        """
        self.begin()
        before, self._paid = self._paid, True
        try:
            yield nonce_of(self.nonce, part)
        except BudgetError:
            self._paid = before
            raise

    def settle(self) -> None:
        """The run has ended, and nothing is left to go on with."""
        self._opened = self._paid = False
        self._claim.settle()

    def close(self) -> None:
        """Let go of the file. It stays until its answers are in a release, or goes if nothing was paid."""
        if self._opened and not self._paid:
            self._claim.settle()
            self._opened = False
        if not self._borrowed:
            self._claim.close()

    # ------------------------------------------------------------ the file

    def _resume(self) -> None:
        if not self._claim.begun:
            return  # nothing was paid
        self._opened = self._paid = True
        header, records, end = _records(_contents(self._claim.held))
        if header is None:
            raise BudgetError(
                "journal-damaged",
                f'"{self.path}" is damaged at its beginning, so nothing can go on with it. '
                "Hint: delete it to give up what was paid; the ledger keeps the debit.",
            )
        run = header.value["run"]
        differing = [key for key in self._run if run.get(key) != self._run[key]]
        if differing:
            raise BudgetError(
                "another-run",
                f'"{self.path}" belongs to another run: its {", ".join(differing)} is not the one given. '
                "Hint: repeat the command that was stopped, with --resume.",
            )
        self.nonce, self._work = header.value["nonce"], header.value["work"]
        self._recorded.extend(records)
        os.ftruncate(self._claim.held, end)  # a record that was cut short was never used

    def begin(self) -> None:
        """The header is on disk before anything is paid."""
        if not self._opened:
            os.ftruncate(self._claim.held, 0)
            self._opened = True
            self._append(Record(("journal",), {"run": self._run, "nonce": self.nonce, "work": self._work}))
            sync(self.path.parent)

    def _append(self, record: Record) -> None:
        """Write a record, or leave the file as it was: half a record is none."""
        descriptor, data = self._claim.held, _packed(record)
        end = os.lseek(descriptor, 0, os.SEEK_END)
        try:
            write_through(descriptor, len(data).to_bytes(_LENGTH, "big") + hashlib.sha256(data).digest() + data)
        except OSError as problem:
            with suppress(OSError):
                os.ftruncate(descriptor, end)
            raise OptionError(
                "cannot-write",
                f'the journal "{self.path}" could not be written ({reason(problem)}); the run stops here.',
            ) from None


def nonce_of(run: str, part: str) -> str:
    """What names a part of a run in the ledger, made of what names the run."""
    return hashlib.sha256(f"{run} {part}".encode()).hexdigest()[: len(run)]


def refuse_unfinished(place: Path | Claim) -> None:
    """What was paid for is neither paid again nor thrown away in silence."""
    if isinstance(place, Path):
        if place.exists():
            with Claim(place) as claim:
                refuse_unfinished(claim)
    elif place.begun:
        raise BudgetError(
            "unfinished-run",
            f'"{place.path}" holds the paid answers of a run that did not end. Hint: --resume goes '
            "on with it without paying again; delete it to give up what was paid.",
        )


class Journaled:
    """Answers that are written down before anyone sees them. Stands where `Mechanisms` stands."""

    def __init__(self, inner: Randomizer, journal: Journal):
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


def _contents(descriptor: int) -> bytes:
    with io.FileIO(descriptor, closefd=False) as file:
        file.seek(0)
        return file.readall()


def _announced(data: bytes) -> int:
    """Where the header ends, as its beginning says; at most what can be read at once."""
    return min(_LENGTH + _DIGEST + int.from_bytes(data[:_LENGTH], "big"), 1 << 30)


def _is_void(data: bytes) -> bool:
    """Whether a journal ends before its header does, so that nothing was paid: the run waits for the header.

    A header that was damaged afterwards is not taken for one that was cut short: it ends in the only line feed that
    it holds.
    """
    return b"\n" not in data[_LENGTH + _DIGEST :] and len(data) != _announced(data)


def _records(data: bytes) -> tuple[Record | None, list[Record], int]:
    """The header, the whole records after it, and where they end. What was cut short or damaged ends the list."""
    records, offset = [], 0
    while offset + _LENGTH + _DIGEST <= len(data):
        length = int.from_bytes(data[offset : offset + _LENGTH], "big")
        start = offset + _LENGTH + _DIGEST
        body = data[start : start + length]
        if len(body) < length or hashlib.sha256(body).digest() != data[offset + _LENGTH : start]:
            break
        records.append(_unpacked(body))
        offset = start + length
    return (records[0], records[1:], offset) if records else (None, [], 0)
