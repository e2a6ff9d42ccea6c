"""Replay: run a method on two neighbouring tables with the same answers, and see whether anything differs.

Every noisy answer of a run passes through one object (`hedgerow.private.mechanisms`). A Recorder in its place keeps
the exact answers beside the noisy ones; a Replayer hands the same noisy answers to a run on a neighbour. Whatever the
method does must then be the same, because all that it knows is the same: the calls, their scales and shapes, and the
release down to the last byte. And the exact answers of the two tables must lie within the sensitivity that was charged.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.budget.accounting import Charge
from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.private.mechanisms import Mechanisms, Randomizer
from hedgerow.release.bundle import Release


class Violation(AssertionError):
    """A law that a private method must keep was broken. Says which, never a value from a row."""


@dataclass(frozen=True, eq=False)
class Call:
    """One passage through the door: what was asked (public), the exact answer, and what was let out."""

    asked: tuple[Any, ...]
    exact: Mapping[Any, int]
    """Counts that are not zero, by cell (or by value, or by index)."""
    answer: Any


class Recorder:
    """Draws as usual and keeps every call."""

    def __init__(self, inner: Randomizer | None = None):
        self._inner = inner or Mechanisms()
        self.calls: list[Call] = []

    @property
    def guaranteed(self) -> bool:
        return self._inner.guaranteed

    def noisy_counts(self, exact: Exact[ExactCounts], cells: int, noise: Noise) -> IntArray:
        answer = self._inner.noisy_counts(exact, cells, noise)
        self._keep(("counts", cells, noise), exact, answer)
        return answer

    def survivors(
        self, exact: Exact[ExactCounts], cells: int, noise: Noise, threshold: float
    ) -> tuple[IntArray, IntArray]:
        answer = self._inner.survivors(exact, cells, noise, threshold)
        self._keep(("survivors", cells, noise, threshold), exact, answer)
        return answer

    def choose(self, scores: Exact[IntArray], rate: Fraction) -> int:
        answer = self._inner.choose(scores, rate)
        self._keep(("choose", len(scores.opened()), rate), scores, answer)
        return answer

    def discover(self, counts: Exact[Mapping[str, int]], noise: Noise, threshold: int) -> tuple[str, ...]:
        answer = self._inner.discover(counts, noise, threshold)
        self._keep(("discover", noise, threshold), counts, answer)
        return answer

    def _keep(self, asked: tuple[Any, ...], exact: Exact[Any], answer: Any) -> None:
        self.calls.append(Call(asked, _occupied(exact.opened()), answer))


class Replayer(Recorder):
    """Hands out recorded answers, and refuses a call that the recorded run did not make."""

    def __init__(self, recorded: Sequence[Call], guaranteed: bool):
        super().__init__(_Refusing())
        self._recorded = list(recorded)
        self._guaranteed = guaranteed

    @property
    def guaranteed(self) -> bool:
        return self._guaranteed

    def noisy_counts(self, exact: Exact[ExactCounts], cells: int, noise: Noise) -> IntArray:
        return np.array(self._replay(("counts", cells, noise), exact))

    def survivors(
        self, exact: Exact[ExactCounts], cells: int, noise: Noise, threshold: float
    ) -> tuple[IntArray, IntArray]:
        kept, values = self._replay(("survivors", cells, noise, threshold), exact)
        return np.array(kept), np.array(values)

    def choose(self, scores: Exact[IntArray], rate: Fraction) -> int:
        return int(self._replay(("choose", len(scores.opened()), rate), scores))

    def discover(self, counts: Exact[Mapping[str, int]], noise: Noise, threshold: int) -> tuple[str, ...]:
        return tuple(self._replay(("discover", noise, threshold), counts))

    def _replay(self, asked: tuple[Any, ...], exact: Exact[Any]) -> Any:
        index = len(self.calls)
        if index >= len(self._recorded) or self._recorded[index].asked != asked:
            raise Violation(f"call {index + 1} differs between neighbours although every answer was the same.")
        answer = self._recorded[index].answer
        self._keep(asked, exact, answer)
        return answer


class _Refusing(Mechanisms):
    """A replayer draws nothing."""

    def _draw(self, noise: Noise, count: int) -> IntArray:
        raise Violation("a replayed run drew noise of its own.")


@dataclass(frozen=True)
class Replayed:
    """How far the exact answers of two neighbours were apart, as a part of what was charged for, charge by charge."""

    ratios: tuple[float, ...]
    recorded: tuple[Call, ...]
    release: Release


def replay(run: Callable[[Randomizer], Release], neighbour: Callable[[Randomizer], Release]) -> Replayed:
    """Record `run`, replay it on `neighbour`; both take the mechanisms to use and must share everything public.

    Raises Violation if a call, a scale, a shape or a byte of the release differs, or if a pair of exact answers is
    further apart than the sensitivity that was charged.
    """
    recorder = Recorder()
    release = run(recorder)
    replayer = Replayer(recorder.calls, recorder.guaranteed)
    other = neighbour(replayer)
    if len(replayer.calls) != len(recorder.calls):
        raise Violation("neighbours make a different number of calls although every answer was the same.")
    if _bytes(release) != _bytes(other):
        raise Violation("the releases of neighbours differ although every answer was the same.")
    ratios = tuple(_ratios(release.certificate.charges, recorder.calls, replayer.calls))
    for charge, ratio in zip(release.certificate.charges, ratios, strict=True):
        if ratio > 1 + 1e-9:
            raise Violation(
                f"a {charge.purpose} charge declares the sensitivity {charge.sensitivity:g}, "
                f"but neighbours differ by {ratio:.3g} times that."
            )
    return Replayed(ratios, tuple(recorder.calls), release)


def _ratios(charges: Sequence[Charge], first: Sequence[Call], second: Sequence[Call]) -> list[float]:
    ratios = []
    pairs = iter(zip(first, second, strict=True))
    for charge in charges:
        calls = len(charge.weights) if charge.purpose in ("measure", "look") else 1
        try:
            distances = [_difference(*next(pairs)) for _ in range(calls)]
        except StopIteration:
            raise Violation(f"a {charge.purpose} charge was made for calls that did not happen.") from None
        ratios.append(_moved(charge, distances) / charge.sensitivity)
    if next(pairs, None) is not None:
        raise Violation("noise was drawn that no charge pays for.")
    return ratios


def _moved(charge: Charge, differences: list[IntArray]) -> float:
    """The distance between neighbours in the norm in which the charge states its sensitivity."""
    if charge.purpose in ("measure", "look"):
        norm = "l1" if charge.mechanism == "laplace" else "l2"
        reaches = [query.get("reach", {}).get(norm, 1.0) for query in charge.queries]
        scaled = [
            weight / reach * np.abs(step)
            for weight, reach, step in zip(charge.weights, reaches, differences, strict=True)
        ]
    elif charge.purpose in ("discover", "confirm"):
        scaled = [np.abs(differences[0])]
    else:
        scaled = [charge.extra * np.abs(differences[0])]  # scores are whole numbers of the grid
    stacked = np.concatenate(scaled)
    if charge.mechanism == "exponential":
        return float(stacked.max(initial=0))
    return float(stacked.sum() if charge.mechanism == "laplace" else np.sqrt((stacked**2).sum()))


def _difference(first: Call, second: Call) -> IntArray:
    cells = first.exact.keys() | second.exact.keys()
    return np.array([first.exact.get(cell, 0) - second.exact.get(cell, 0) for cell in cells], dtype=np.int64)


def _occupied(counts: Any) -> Mapping[Any, int]:
    if isinstance(counts, SparseCounts):
        return dict(zip(counts.cells.tolist(), counts.counts.tolist(), strict=True))
    if isinstance(counts, Mapping):
        return dict(counts)
    cells = np.flatnonzero(counts)
    return dict(zip(cells.tolist(), np.asarray(counts)[cells].tolist(), strict=True))


def _bytes(release: Release) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replayed.release"
        release.save(path)
        return path.read_bytes()
