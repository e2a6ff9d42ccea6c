"""A model of a merged domain, read in the original one: merged codes are spread over what they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.models.histograms import systematic
from hedgerow.models.model import Model, State


class Expanded:
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
                shape = [-1 if place == axis else 1 for place in range(len(marginal))]
                counts = counts * self.fill[name].reshape(shape)
        return counts

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (query.aggregate(self.marginal(query.attributes)) for query in queries)

    def draw(self, rows: int, coins: np.random.Generator) -> CodedTable:
        merged = self.model.draw(rows, coins)
        table: CodedTable = {}
        for name in self.domain.names:
            codes = merged[name].astype(np.int64)
            if name in self.recoding.maps:
                codes = self._expand(name, self.recoding.maps[name], codes, coins)
            table[name] = codes.astype(self.domain[name].dtype)
        return table

    def _expand(self, name: str, mapping: IntArray, merged: IntArray, coins: np.random.Generator) -> IntArray:
        """Original codes for merged ones; each merged code's rows are shared out by systematic rounding."""
        order = np.argsort(mapping, kind="stable")
        starts = np.searchsorted(mapping[order], np.arange(int(mapping.max()) + 2))
        codes = order[starts[merged]]
        for code in np.flatnonzero(np.diff(starts) > 1):
            originals = order[starts[code] : starts[code + 1]]
            places = np.flatnonzero(merged == code)
            drawn = np.repeat(originals, systematic(self.fill[name][originals], len(places), coins))
            coins.shuffle(drawn)
            codes[places] = drawn
        return codes

    def state(self) -> State:
        arrays: dict[str, npt.NDArray[Any]] = {
            f"map{number}": mapping for number, mapping in enumerate(self.recoding.maps.values())
        }
        arrays |= {f"fill{number}": self.fill[name] for number, name in enumerate(self.recoding.maps)}
        return self.model.state().held_by(self.kind, {"attributes": list(self.recoding.maps)}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, state: State) -> Expanded:
        from hedgerow.models import load

        names = state.values["attributes"]
        recoding = Recoding(domain, {name: state.arrays[f"map{number}"] for number, name in enumerate(names)})
        fill = {name: state.arrays[f"fill{number}"] for number, name in enumerate(names)}
        return cls(load(recoding.target(), state.held()), recoding, fill)


def _within(weights: Counts, mapping: IntArray) -> Counts:
    """Weights normalised to sum to 1 over the codes that share a merged code (uniform where they sum to 0)."""
    groups = int(mapping.max()) + 1
    sizes = np.bincount(mapping, minlength=groups)
    sums = np.bincount(mapping, weights=weights, minlength=groups)
    spread = np.where(sums[mapping] > 0, weights, 1.0)
    return spread / np.where(sums > 0, sums, sizes)[mapping]
