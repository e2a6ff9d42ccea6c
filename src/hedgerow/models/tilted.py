"""Rows segment by segment, where segments differ: one pool of rows, and for each segment how often a row is wanted.

A segment's rows follow P(row | segment) ∝ P(row) · Π exp(tilt of each of the row's codes). Few rows cannot follow that
evenly by chance, so they are searched for: those of a larger draw that together come closest to it in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hedgerow import _records
from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.histograms import systematic
from hedgerow.models.model import BLOCK_ROWS, State
from hedgerow.models.records import FromRows, Target, kernel_targets, shares_of, words
from hedgerow.models.segments import CANDIDATES, LEAST_CANDIDATES, MOST_WEIGHT, SWEEPS
from hedgerow.models.stored import MOST_ROWS, Stored

POOL = 10_000
"""Rows that a pool needs at most."""
LARGEST_TILT = 50.0
"""Rows are wanted at most so many times more or less often, as a logarithm."""
DRAWN = 8
LEAST_DRAWN, MOST_DRAWN = 1_000, 10_000
"""Rows of the pool that are drawn for each row that is searched for, and for all segments of one tilt together."""


class Tilted(FromRows):
    """How many rows each cell of `segments` has, rows to choose from, and how segments tilt towards some of them.

    `tilts[name]` has a line for each code of a segment's attribute, with a number for each code of the others, one
    attribute after the other in domain order. `goals` are the marginals that the search looks at, with weights.
    """

    kind = "tilted"

    def __init__(
        self,
        domain: Domain,
        segments: Marginal,
        counts: Counts,
        pool: CodedTable,
        tilts: Mapping[str, Counts],
        goals: Mapping[Marginal, float],
    ):
        self._domain = domain
        self.segments = segments
        self.counts = np.asarray(counts, dtype=np.float64)
        self.inner = Domain(attribute for attribute in domain if attribute.name not in segments)
        if self.counts.shape != domain.shape(segments) or self.counts.min() < 0 or not self.counts.sum() >= 0.5:
            raise HedgerowError("bad-segments", "segments need one count per cell, none below 0, and a row at least.")
        if tuple(pool) != self.inner.names or not all(len(codes) for codes in pool.values()):
            raise HedgerowError("bad-pool", "a pool needs rows of every attribute that is no segment, in domain order.")
        self.pool = pool
        self.tilts = dict(tilts)
        self.goals = dict(goals)

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def total(self) -> float:
        return max(1.0, float(self.counts.sum()))

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        sizes = systematic(self.counts.reshape(-1), rows, rng)
        cells = np.repeat(np.arange(len(sizes)), sizes)
        codes: dict[str, Any] = dict(
            zip(self.segments, np.unravel_index(cells, self.counts.shape), strict=True) if self.segments else ()
        )
        starts = np.concatenate([[0], np.cumsum(sizes)])
        chosen: IntArray = np.empty(rows, dtype=np.int64)
        for alike, weights in self._alike():
            wanted = alike[sizes[alike] > 0]
            found = self._searched(sizes[wanted].tolist(), weights, rng) if len(wanted) else []
            for cell, part in zip(wanted.tolist(), found, strict=True):
                chosen[starts[cell] : starts[cell + 1]] = part
        codes |= {name: self.pool[name][chosen] for name in self.inner.names}
        order = rng.permutation(rows)
        return {each.name: codes[each.name][order].astype(each.dtype) for each in self.domain}

    def _alike(self) -> Iterator[tuple[IntArray, Counts]]:
        """Cells of segments that share their tilts, and how often they want each row of the pool."""
        numbers = np.arange(self.counts.size).reshape(self.counts.shape)
        for codes in product(*(range(len(tilt)) for tilt in self.tilts.values())):
            at = dict(zip(self.tilts, codes, strict=True))
            cells = numbers[tuple(at.get(name, slice(None)) for name in self.segments)].reshape(-1)
            tilt = sum((self.tilts[name][code] for name, code in at.items()), start=np.zeros(self._places[-1]))
            yield cells, self.wanted(tilt)

    def wanted(self, tilt: Counts) -> Counts:
        """The weight of each row of the pool."""
        logarithm = np.zeros(len(self.pool[self.inner.names[0]]))
        for name, start in zip(self.inner.names, self._places, strict=False):
            logarithm += tilt[start + self.pool[name].astype(np.int64)]
        weights: Counts = np.exp(logarithm - logarithm.max())
        return weights

    @cached_property
    def _places(self) -> list[int]:
        """Where each attribute's codes begin in a tilt, and where the last ends."""
        return [0, *np.cumsum([attribute.size for attribute in self.inner]).tolist()]

    def _searched(self, sizes: list[int], weights: Counts, rng: np.random.Generator) -> list[IntArray]:
        """Rows of the pool for segments of these sizes: the best found among several times as many."""
        drawn = int(np.clip(DRAWN * max(sizes), LEAST_DRAWN, MOST_DRAWN))
        rows = np.repeat(np.arange(len(weights)), systematic(weights, drawn, rng))
        part = {name: self.pool[name][rows] for name in self.inner.names}
        targets = [Target(marginal, shares_of(part, self.inner, marginal)) for marginal in self.goals]
        columns = [part[name].astype(np.uint32) for name in self.inner.names]
        widths = [attribute.size for attribute in self.inner]
        search = _records.Selection(
            columns, widths, *kernel_targets(self.inner, targets), [float(each) for each in self.goals.values()]
        )
        found = []
        for size in sizes:
            times, rest = divmod(size, drawn // 2)  # of far more rows than are drawn, all are there several times
            picked: IntArray = np.empty(rest, dtype=np.int64)
            if rest:
                search.choose(picked, drawn, max(LEAST_CANDIDATES, CANDIDATES * rest), SWEEPS, words(rng))
            whole = np.repeat(np.arange(len(weights)), systematic(weights, size - rest, rng)) if times else rows[:0]
            found.append(rng.permutation(np.concatenate([whole, rows[picked]])))
        return found

    def state(self) -> State:
        values = {
            "segments": list(self.segments),
            "tilted": list(self.tilts),
            "goals": [list(goal) for goal in self.goals],
            "weights": list(self.goals.values()),
        }
        arrays = {"counts": self.counts.reshape(-1)} | {f"pool.{name}": codes for name, codes in self.pool.items()}
        return State(self.kind, values, arrays | {f"tilt.{name}": tilt for name, tilt in self.tilts.items()})

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Tilted:
        segments = stored.names("segments", domain)
        shape, cells = stored.shape(domain, segments), domain.cells(segments)
        counts = stored.weights("counts", (cells,)).reshape(shape)
        if not 0.5 <= counts.sum() <= MOST_ROWS:
            raise ReleaseError(
                "model-segment-rows", "the segments of the release have no rows, or more than can be counted."
            )
        inner = Domain(attribute for attribute in domain if attribute.name not in segments)
        tilted = stored.names("tilted", domain)
        if not len(inner) or not set(tilted) <= set(segments):
            raise ReleaseError("model-tilts", "the model of the release is damaged: it tilts what is no segment.")
        codes = sum(attribute.size for attribute in inner)
        tilts = {
            name: stored.floats(f"tilt.{name}", (domain[name].size, codes), -LARGEST_TILT, LARGEST_TILT)
            for name in tilted
        }
        pool: CodedTable = {}
        for attribute in inner:
            held = len(next(iter(pool.values()))) if pool else None
            pool[attribute.name] = stored.integers(
                f"pool.{attribute.name}", (held,), 0, attribute.size - 1, attribute.dtype
            )
        rows = len(next(iter(pool.values())))
        goals = stored.marginals("goals", inner)
        weights = stored.numbers("weights", len(goals), 0.0, MOST_WEIGHT)
        wide = sum(map(inner.cells, goals))
        searches, held = min(cells, BLOCK_ROWS), MOST_DRAWN * (len(goals) + len(inner))
        stored.take(memory=64 * cells + 16 * rows * len(inner) + 16 * (wide + held), steps=20 * cells)
        seen = (1 + CANDIDATES) * BLOCK_ROWS + LEAST_CANDIDATES * searches
        each = rows * (len(inner) + 4) + 20 * (wide + held)
        stored.take(steps=searches * each + SWEEPS * seen * (len(goals) + 20), python=20 * searches)
        return cls(domain, segments, counts, pool, tilts, dict(zip(goals, weights, strict=True)))
