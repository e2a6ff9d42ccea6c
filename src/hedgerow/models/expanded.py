"""A model of a merged domain, read in the original one: merged codes are spread over what they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.recoding import Recoding
from hedgerow.errors import ReleaseError
from hedgerow.models.conditioning import Factor, Given, completed, given
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
        return self._spread(self.model.draw(rows, rng), {}, rng)

    def given(self, factors: Sequence[Factor]) -> Given:
        """A factor of one attribute changes how its merged codes are spread; of a wider one the model inside takes up
        the largest weight of the codes that share a merged one, and what lies below that is left."""
        fill, inside, left = dict(self.fill), [], []
        for factor in factors:
            if len(factor.marginal) == 1 and factor.marginal[0] in self.recoding.maps:
                (name,) = factor.marginal
                mapping, spread = self.recoding.maps[name], fill[name] * factor.weights
                kept: Counts = np.bincount(mapping, weights=spread).astype(np.float64)
                fill[name] = np.divide(spread, kept[mapping], out=fill[name].copy(), where=kept[mapping] > 0)
                inside.append(Factor((name,), np.minimum(kept, 1.0)))
                continue
            largest = self._largest(factor)
            bound = self._read(largest)
            if not np.array_equal(bound.weights, factor.weights):
                below = np.divide(
                    factor.weights, bound.weights, out=np.zeros_like(bound.weights), where=bound.weights > 0
                )
                left.append(Factor(factor.marginal, below))
            inside.append(largest)
        found = given(self.model, inside)
        left += [self._read(factor) for factor in found.left]
        return Given(Expanded(found.model, self.recoding, fill), found.share, left)

    def _largest(self, factor: Factor) -> Factor:
        """The factor over merged codes."""
        weights = factor.weights
        for axis, name in enumerate(factor.marginal):
            if name in self.recoding.maps:
                mapping = self.recoding.maps[name]
                lines = np.moveaxis(weights, axis, 0)
                merged = np.zeros((int(mapping.max()) + 1, *lines.shape[1:]))
                np.maximum.at(merged, mapping, lines)
                weights = np.moveaxis(merged, 0, axis)
        return Factor(factor.marginal, np.ascontiguousarray(weights))

    def _read(self, factor: Factor) -> Factor:
        """A factor over merged codes, read in the original ones."""
        weights = factor.weights
        for axis, name in enumerate(factor.marginal):
            if name in self.recoding.maps:
                weights = np.take(weights, self.recoding.maps[name], axis=axis)
        return Factor(factor.marginal, weights)

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        maps = self.recoding.maps
        target = self.recoding.target()
        rows = len(next(iter(fixed.values())))
        merged: CodedTable = {
            name: maps[name][codes].astype(target[name].dtype) if name in maps else codes
            for name, codes in fixed.items()
        }
        return self._spread(completed(self.model, merged, {}, rows, rng), fixed, rng)

    def _spread(self, merged: CodedTable, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """Rows of merged codes in original ones: those that are fixed, and for the others what they stand for."""
        table: CodedTable = {}
        for name in self.domain.names:
            if name in fixed:
                table[name] = fixed[name].astype(self.domain[name].dtype)
                continue
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
