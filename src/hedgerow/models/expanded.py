"""A model of a merged domain, read in the original one: merged codes are spread over what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.recoding import Recoding
from hedgerow.errors import ReleaseError
from hedgerow.models.histograms import systematic
from hedgerow.models.model import FromMarginals, Model, State
from hedgerow.models.stored import LARGEST, Stored

NORMALISED = 1e-9
"""How far a sum of shares may lie from 1."""


class Expanded(FromMarginals):
    """`model` speaks of `recoding.target()`; this speaks of `recoding.domain`.

    `fill[name]` weighs the original codes of an attribute against the others that share their merged code.
    """

    kind = "expanded"

    def __init__(self, model: Model, recoding: Recoding, fill: Mapping[str, Counts]):
        self.model = model
        self.recoding = recoding
        self.fill = {name: _within(fill[name], mapping) for name, mapping in recoding.maps.items()}

    @property
    def domain(self) -> Domain:
        return self.recoding.domain

    @property
    def total(self) -> float:
        return self.model.total

    def marginal(self, marginal: Marginal) -> Counts:
        counts = self.model.marginal(marginal)
        for axis, name in enumerate(marginal):
            if name in self.recoding.maps:
                counts = np.take(counts, self.recoding.maps[name], axis=axis)
                shape = [-1 if index == axis else 1 for index in range(len(marginal))]
                counts = counts * self.fill[name].reshape(shape)
        return counts

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        merged = self.model.draw(rows, rng)
        table: CodedTable = {}
        for name in self.domain.names:
            codes = merged[name].astype(np.int64)
            if name in self.recoding.maps:
                codes = self._expand(name, self.recoding.maps[name], codes, rng)
            table[name] = codes.astype(self.domain[name].dtype)
        return table

    def _expand(self, name: str, mapping: IntArray, merged: IntArray, rng: np.random.Generator) -> IntArray:
        """Original codes for merged ones; each merged code's rows are shared out by systematic rounding."""
        order = np.argsort(mapping, kind="stable")
        starts = np.searchsorted(mapping[order], np.arange(int(mapping.max()) + 2))
        codes = order[starts[merged]]
        for code in np.flatnonzero(np.diff(starts) > 1):
            originals = order[starts[code] : starts[code + 1]]
            indices = np.flatnonzero(merged == code)
            drawn = np.repeat(originals, systematic(self.fill[name][originals], len(indices), rng))
            rng.shuffle(drawn)
            codes[indices] = drawn
        return codes

    def state(self) -> State:
        arrays: dict[str, npt.NDArray[Any]] = {
            f"map{number}": mapping for number, mapping in enumerate(self.recoding.maps.values())
        }
        arrays |= {f"fill{number}": self.fill[name] for number, name in enumerate(self.recoding.maps)}
        return self.model.state().held_by(self.kind, {"attributes": list(self.recoding.maps)}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Expanded:
        from hedgerow.models import read

        maps: dict[str, IntArray] = {}
        fill: dict[str, Counts] = {}
        for number, name in enumerate(stored.names("attributes", domain)):
            size = domain[name].size
            maps[name] = stored.integers(f"map{number}", (size,), 0, size - 1)
            fill[name] = stored.floats(f"fill{number}", (size,), 0.0, LARGEST)
            if len(np.unique(maps[name])) != int(maps[name].max()) + 1:
                raise ReleaseError(
                    "model-empty-merge", f'the release merges codes of "{name}" into some that stand for nothing.'
                )
            shared = int((np.bincount(maps[name]) > 1).sum())
            stored.take(memory=64 * size, steps=30 * size, rows=shared + 4, python=20 * shared)
        recoding = Recoding(domain, maps)
        return cls(read(recoding.target(), stored.held()), recoding, fill)


def _within(weights: Counts, mapping: IntArray) -> Counts:
    """Weights normalised to sum to 1 over the codes that share a merged code (uniform where they sum to 0).

    Weights that are so already stay as they are, to the last bit: a model that was read draws what was written.
    """
    groups = int(mapping.max()) + 1
    sizes = np.bincount(mapping, minlength=groups)
    sums = np.bincount(mapping, weights=weights, minlength=groups)
    spread = np.where(sums[mapping] > 0, weights, 1.0)
    whole = np.where(sums > 0, sums, sizes)
    whole[np.abs(whole - 1) < NORMALISED] = 1.0
    return spread / whole[mapping]
