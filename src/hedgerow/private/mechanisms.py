"""The one door between exact answers and the world: every noisy answer of a run passes through one object.

An audit puts a recorder or a replayer with the same methods in its place, so nothing else may draw noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Protocol

import numpy as np

from hedgerow.coded.domain import IntArray
from hedgerow.coded.measurement import Noise
from hedgerow.errors import HedgerowError
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.private.noise import RandomBits, Stream, choose, gaussian, laplace

BLOCK_CELLS = 1 << 20
"""Cells at a time in `survivors`; a multiple of the noise's own block, so that both methods draw alike."""


class Randomizer(Protocol):
    """What turns exact answers into answers that may leave."""

    @property
    def guaranteed(self) -> bool:
        """Whether the answers are protected; False for seeded noise and for replayed answers."""
        ...

    def noisy_counts(self, exact: Exact[ExactCounts], cells: int, noise: Noise) -> IntArray:
        """The counts of all the cells, each with its own noise."""
        ...

    def survivors(
        self, exact: Exact[ExactCounts], cells: int, noise: Noise, threshold: float
    ) -> tuple[IntArray, IntArray]:
        """The numbers (ascending) and noisy counts of the cells whose noisy count is at least the threshold."""
        ...

    def choose(self, scores: Exact[IntArray], rate: Fraction) -> int:
        """The index of one score, drawn with probability ∝ e^(rate·score)."""
        ...

    def discover(self, counts: Exact[Mapping[str, int]], noise: Noise, threshold: int) -> tuple[str, ...]:
        """The values, sorted, whose noisy count is at least the threshold."""
        ...


class Mechanisms:
    """The real thing. Empty cells get noise like the others, whether the counts come dense or sparse."""

    def __init__(self, stream: RandomBits | None = None):
        self._stream = Stream() if stream is None else stream

    @property
    def guaranteed(self) -> bool:
        return self._stream.guaranteed

    def noisy_counts(self, exact: Exact[ExactCounts], cells: int, noise: Noise) -> IntArray:
        noisy = self._draw(noise, cells)
        _add(noisy, 0, _checked(exact.opened(), cells))
        return noisy

    def survivors(
        self, exact: Exact[ExactCounts], cells: int, noise: Noise, threshold: float
    ) -> tuple[IntArray, IntArray]:
        """In blocks: memory holds one block and the survivors, however many cells there are."""
        counts = _checked(exact.opened(), cells)
        kept, values = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for start, size in _blocks(cells):
            noisy = self._draw(noise, size)
            _add(noisy, start, counts)
            indices = np.flatnonzero(noisy >= threshold)
            kept.append(start + indices)
            values.append(noisy[indices])
        return np.concatenate(kept), np.concatenate(values)

    def choose(self, scores: Exact[IntArray], rate: Fraction) -> int:
        return choose(self._stream, scores.opened(), rate)

    def discover(self, counts: Exact[Mapping[str, int]], noise: Noise, threshold: int) -> tuple[str, ...]:
        """Only values that someone holds can pass: the δ of a discovery pays for that."""
        held = counts.opened()
        values = sorted(held)
        noisy = self._draw(noise, len(values)) + np.array([held[value] for value in values], dtype=np.int64)
        return tuple(value for value, count in zip(values, noisy, strict=True) if count >= threshold)

    def _draw(self, noise: Noise, count: int) -> IntArray:
        draw = gaussian if noise.kind == "gaussian" else laplace
        return draw(self._stream, noise.scale, count)


def _checked(counts: ExactCounts, cells: int) -> ExactCounts:
    """The counts, if they fit the number of cells. The message tells no count."""
    if isinstance(counts, SparseCounts):
        fits = not len(counts.cells) or (counts.cells[0] >= 0 and counts.cells[-1] < cells)
    else:
        fits = len(counts) == cells
    if not fits:
        raise HedgerowError(
            "engine-other-cells",
            f"an engine answered with other cells than the {cells} that were asked. Nothing was drawn.",
        )
    return counts


def _add(noisy: IntArray, start: int, counts: ExactCounts) -> None:
    """Add the counts of the cells from `start` on to a block of noise, in place."""
    if isinstance(counts, SparseCounts):
        first, last = np.searchsorted(counts.cells, [start, start + len(noisy)])
        noisy[counts.cells[first:last] - start] += counts.counts[first:last]
    else:
        noisy += counts[start : start + len(noisy)]


def _blocks(cells: int) -> Iterator[tuple[int, int]]:
    for start in range(0, cells, BLOCK_CELLS):
        yield start, min(BLOCK_CELLS, cells - start)
