"""Rows segment by segment, each segment a selection from one pool of rows that comes close to the wanted marginals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow import _records
from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.conditioning import Factor, Given
from hedgerow.models.histograms import systematic
from hedgerow.models.model import BLOCK_ROWS, FromMarginals, State
from hedgerow.models.records import Target, kernel_targets, read_targets, shares_of
from hedgerow.models.stored import MOST_ROWS, Stored

SWEEPS = 20
CANDIDATES = 4
"""Rows of the pool that are looked at for every row that is chosen."""
LEAST_CANDIDATES = 500
PART = 4
"""One selection takes at most 1/PART of the rows it may begin with; larger segments are made of several."""
MOST_POOL_ROWS = (1 << 31) - 1
MOST_WEIGHT = 1e9
"""Of a target: the kernel adds weights up in 32 bits."""


class Segments(FromMarginals):
    """How many rows each cell of `segments` has, and a pool from which each segment's rows are chosen.

    All segments share one distribution of the other attributes. Each is searched for by itself, so segments of equal
    size get different rows. A search begins with some of the `first` first rows of the pool (say, real ones of a public
    table) and takes others where they bring it closer.
    """

    kind = "segments"

    def __init__(
        self,
        domain: Domain,
        segments: Marginal,
        counts: Counts,
        pool: CodedTable,
        targets: Sequence[Target],
        weights: Sequence[float],
        first: int,
    ):
        self.domain = domain
        self.segments = segments
        self.counts = np.asarray(counts, dtype=np.float64)
        self.inner = Domain(attribute for attribute in domain if attribute.name not in segments)
        if self.counts.shape != domain.shape(segments) or self.counts.min() < 0 or not self.counts.sum() >= 0.5:
            raise HedgerowError("bad-segments", "segments need one count per cell, none below 0, and a row at least.")
        if tuple(pool) != self.inner.names or not all(len(codes) for codes in pool.values()):
            raise HedgerowError("bad-pool", "a pool needs rows of every attribute that is no segment, in domain order.")
        if not all(0 < first <= len(codes) for codes in pool.values()):
            raise HedgerowError("bad-pool", "a search must begin with some of the pool's rows.")
        self.pool = pool
        self.first = first
        self.targets = tuple(targets)
        self.weights = tuple(weights)

    @property
    def total(self) -> float:
        return max(1.0, float(self.counts.sum()))

    def marginal(self, marginal: Marginal) -> Counts:
        outside = tuple(name for name in marginal if name in self.segments)
        inside = tuple(name for name in marginal if name not in self.segments)
        summed = tuple(axis for axis, name in enumerate(self.segments) if name not in outside)
        shares = shares_of(self.pool, self.inner, inside) if inside else np.ones(())
        joint = np.multiply.outer(self.counts.sum(axis=summed), shares)
        return np.transpose(joint, [(*outside, *inside).index(name) for name in marginal])

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        sizes = systematic(self.counts.reshape(-1), rows, rng)
        order = rng.permutation(rows)
        cells = np.repeat(np.arange(len(sizes)), sizes)[order]
        indices = np.unravel_index(cells, self.counts.shape) if self.segments else ()
        codes: dict[str, Any] = dict(zip(self.segments, indices, strict=True))
        if len(self.inner):
            chosen = self._choose(sizes, rng)[order]
            codes |= {name: self.pool[name][chosen] for name in self.inner.names}
        return {attribute.name: codes[attribute.name].astype(attribute.dtype) for attribute in self.domain}

    def given(self, factors: Sequence[Factor]) -> Given:
        """A factor of segments changes their counts; what speaks of the pool's attributes is left."""
        counts, left = self.counts, []
        for factor in factors:
            if set(factor.marginal) <= set(self.segments):
                shape = [self.domain[name].size if name in factor.marginal else 1 for name in self.segments]
                order = [factor.marginal.index(name) for name in self.segments if name in factor.marginal]
                counts = counts * factor.weights.transpose(order).reshape(shape)
            else:
                left.append(factor)
        share = float(counts.sum() / self.counts.sum())
        if not share:
            return Given(self, 0.0, left)
        model = Segments(self.domain, self.segments, counts / share, self.pool, self.targets, self.weights, self.first)
        return Given(model, share, left)

    def _choose(self, sizes: IntArray, rng: np.random.Generator) -> IntArray:
        """Rows of the pool for every segment, one segment after the other."""
        most = max(1, self.first // PART)
        parts = [part for size in sizes.tolist() for part in _parts(size, most)]
        words = rng.integers(1, 2**64, size=(len(parts), 4), dtype=np.uint64).tolist()
        chosen: IntArray = np.empty(int(sizes.sum()), dtype=np.int64)
        done = 0
        for part, start in zip(parts, words, strict=True):
            candidates = max(LEAST_CANDIDATES, CANDIDATES * part)
            self._selection.choose(chosen[done : done + part], self.first, candidates, SWEEPS, start)
            done += part
        return chosen

    @cached_property
    def _selection(self) -> _records.Selection:
        columns = [self.pool[name].astype(np.uint32) for name in self.inner.names]
        sizes = [attribute.size for attribute in self.inner]
        return _records.Selection(columns, sizes, *kernel_targets(self.inner, self.targets), list(self.weights))

    def state(self) -> State:
        values = {
            "segments": list(self.segments),
            "marginals": [list(target.marginal) for target in self.targets],
            "weights": list(self.weights),
            "first": self.first,
        }
        arrays = {"counts": self.counts.reshape(-1)} | {f"pool.{name}": codes for name, codes in self.pool.items()}
        arrays |= {f"shares{number}": target.shares for number, target in enumerate(self.targets)}
        return State(self.kind, values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Segments:
        segments = stored.names("segments", domain)
        shape, cells = stored.shape(domain, segments), domain.cells(segments)
        counts = stored.weights("counts", (cells,)).reshape(shape)
        if not 0.5 <= counts.sum() <= MOST_ROWS:
            raise ReleaseError(
                "model-segment-rows", "the segments of the release have no rows, or more than can be counted."
            )
        inner = Domain(attribute for attribute in domain if attribute.name not in segments)
        pool: CodedTable = {}
        held: int | None = None
        for attribute in inner:
            pool[attribute.name] = stored.integers(
                f"pool.{attribute.name}", (held,), 0, attribute.size - 1, attribute.dtype
            )
            held = len(pool[attribute.name])
        rows = held or 0
        if rows > MOST_POOL_ROWS:
            raise ReleaseError("model-pool-rows", f"the pool of the release has more than {MOST_POOL_ROWS:,} rows.")
        first = stored.whole("first", 1 if rows else 0, rows)
        targets = read_targets(inner, stored)
        weights = stored.numbers("weights", len(targets), 0.0, MOST_WEIGHT)
        most = max(1, first // PART)
        searches = min(BLOCK_ROWS, cells + BLOCK_ROWS // most)
        seen = most + max(LEAST_CANDIDATES, CANDIDATES * most)
        wide = sum(target.shares.size for target in targets)
        each = rows + wide + SWEEPS * seen * (len(targets) + 20)
        stored.take(memory=64 * cells + 4 * rows * (len(targets) + len(inner) + 4), steps=20 * cells + rows)
        stored.take(steps=searches * each, python=20 * searches)
        return cls(domain, segments, counts, pool, targets, weights, first)


def _parts(size: int, most: int) -> list[int]:
    """The size in parts of at most `most`, as even as can be."""
    count = -(-size // most)
    return [size * (index + 1) // count - size * index // count for index in range(count)]
