"""A model of linked tables: one of the root's rows, and for every other table a chain that draws its rows.

A chain draws the attributes of a row in turn, each given a few others: of the parent, of the row before, of the row
itself as far as it is drawn. What each of these says of it is a table of weights, and the weights are multiplied: a
log-linear model of the attribute alone, whatever the joint distribution of what it is given may be. So it takes as many
as there are relations to learn, at the cost of a table of two attributes each. No attribute is drawn in the light of
what is given of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Codes, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.model import Model, State
from hedgerow.models.stored import LARGEST, Stored

CELLS_AT_A_TIME = 1 << 22
"""Weights that are compared with what was drawn at a time."""
STRONGEST = 1e4
"""A logarithm of a weight lies between this and its negative."""


@dataclass(frozen=True, eq=False)
class Local:
    """One attribute given some others, in merged codes: logarithms of weights, which are added."""

    attribute: str
    given: Marginal
    alone: Counts
    """A weight for each code of the attribute."""
    factors: tuple[Counts, ...]
    """For each of the given attributes a weight for each of its codes and of the attribute's."""

    @property
    def size(self) -> int:
        return len(self.alone)

    def factor(self, name: str) -> Counts:
        return self.factors[self.given.index(name)]

    def logarithms(self, given: Mapping[str, IntArray], rows: int) -> Counts:
        """Of the weights of every code, for each row; of what is not given nothing is added."""
        found: Counts = np.tile(self.alone, (rows, 1))
        for name, factor in zip(self.given, self.factors, strict=True):
            if name in given:
                found += factor[given[name]]
        return found

    def draw(self, given: Mapping[str, IntArray], rows: int, rng: np.random.Generator) -> IntArray:
        """A merged code for each row."""
        chosen: IntArray = np.empty(rows, dtype=np.int64)
        for begin in range(0, rows, step := max(1, CELLS_AT_A_TIME // self.size)):
            part = slice(begin, min(begin + step, rows))
            held = {name: codes[part] for name, codes in given.items()}
            count = part.stop - part.start
            chosen[part] = pick(self.logarithms(held, count), rng.random(count))
        return chosen


def pick(logarithms: Counts, lots: Counts) -> IntArray:
    """For each line of logarithms of weights a place, by a lot from 0 to 1."""
    ends = np.cumsum(np.exp(logarithms - logarithms.max(axis=1, keepdims=True)), axis=1)
    places: IntArray = (ends <= (lots * ends[:, -1])[:, None]).sum(axis=1)
    last: IntArray = np.minimum(places, ends.shape[1] - 1)
    return last


class Chain:
    """The attributes of a table in the order of drawing, each given some others, all in merged codes.

    A merged code is spread over what it stands for by `fill`.
    """

    def __init__(self, domain: Domain, locals_: Sequence[Local], recoding: Recoding, fill: Mapping[str, Counts]):
        self.domain = domain
        self.locals = tuple(locals_)
        self.recoding = recoding
        self.fill = {name: fill[name] for name in recoding.maps}
        for local in self.locals:
            size = self._size(local.attribute)
            if local.alone.shape != (size,) or [each.shape for each in local.factors] != [
                (self._size(name), size) for name in local.given
            ]:
                raise HedgerowError("another-domain", "a chain must speak of merged codes of its domain.")

    def _size(self, name: str) -> int:
        mapping = self.recoding.maps.get(name)
        return self.domain[name].size if mapping is None else int(mapping.max()) + 1

    def draw(self, local: Local, known: CodedTable, rows: int, rng: np.random.Generator) -> Codes:
        """A code of the attribute for each row, given codes of the others."""
        merged = {name: self.merged(name, known[name]) for name in local.given}
        return self.spread(local.attribute, local.draw(merged, rows, rng), rng.random(rows))

    def merged(self, name: str, codes: Codes) -> IntArray:
        mapping = self.recoding.maps.get(name)
        found: IntArray = codes.astype(np.int64) if mapping is None else mapping[codes]
        return found

    def spread(self, name: str, merged: IntArray, lots: Counts) -> Codes:
        """One of the codes that each merged code stands for, by a lot from 0 to 1."""
        dtype = self.domain[name].dtype
        mapping = self.recoding.maps.get(name)
        if mapping is None:
            plain: Codes = merged.astype(dtype)
            return plain
        order = np.argsort(mapping, kind="stable")
        ends = np.cumsum(self.fill[name][order])
        starts = np.searchsorted(mapping[order], np.arange(int(mapping.max()) + 2))
        lows = np.append(0.0, ends)[starts]
        drawn = lows[merged] + lots * (lows[merged + 1] - lows[merged])
        places = np.clip(np.searchsorted(ends, drawn, side="right"), starts[merged], starts[merged + 1] - 1)
        spread: Codes = order[places].astype(dtype)
        return spread

    def state(self) -> State:
        values: dict[str, Any] = {
            "merged": list(self.recoding.maps),
            "drawn": [[local.attribute, *local.given] for local in self.locals],
        }
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, (name, mapping) in enumerate(self.recoding.maps.items()):
            arrays |= {f"map{number}": mapping, f"fill{number}": self.fill[name]}
        for number, local in enumerate(self.locals):
            arrays[f"alone{number}"] = local.alone
            arrays |= {f"factor{number}.{place}": factor for place, factor in enumerate(local.factors)}
        return State("chain", values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Chain:
        maps: dict[str, IntArray] = {}
        fill: dict[str, Counts] = {}
        for number, name in enumerate(stored.names("merged", domain)):
            size = domain[name].size
            maps[name] = stored.integers(f"map{number}", (size,), 0, size - 1)
            fill[name] = stored.floats(f"fill{number}", (size,), 0.0, LARGEST)
            if len(np.unique(maps[name])) != int(maps[name].max()) + 1:
                raise ReleaseError(
                    "model-empty-merge", f'the release merges codes of "{name}" into some that stand for nothing.'
                )
        recoding = Recoding(domain, maps)
        target = recoding.target()
        found = []
        for number, (attribute, *given) in enumerate(stored.lists_of_names("drawn", domain)):
            size = target[attribute].size
            cells = size * (1 + sum(target[name].size for name in given))
            stored.take(memory=8 * cells, steps=cells, rows=size * (3 + len(given)))
            alone = stored.floats(f"alone{number}", (size,), -STRONGEST, STRONGEST)
            factors = [
                stored.floats(f"factor{number}.{place}", (target[name].size, size), -STRONGEST, STRONGEST)
                for place, name in enumerate(given)
            ]
            found.append(Local(attribute, tuple(given), alone, tuple(factors)))
        stored.finish()
        return cls(domain, found, recoding, fill)


def _hold(name: str, state: State, values: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write down a state inside another one, as `Stored.held` reads it."""
    values[name] = {"kind": state.kind, "values": state.values}
    arrays |= {f"{name}.{key}": array for key, array in state.arrays.items()}


class LinkedModel:
    """`root` speaks of the root's attributes, `chains` of those of every other table."""

    kind = "linked"

    def __init__(self, domain: Domain, root: Model, chains: Mapping[str, Chain]):
        self._domain = domain
        self.root = root
        self.chains = dict(chains)

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def total(self) -> float:
        return self.root.total

    def marginal(self, marginal: Marginal) -> Counts:
        """Of the root's attributes; those of other tables follow from rows that are drawn."""
        if not set(marginal) <= set(self.root.domain.names):
            raise HedgerowError("no-such-marginal", "a model of linked tables answers for its root alone.")
        return self.root.marginal(marginal)

    def answers(self, queries: Sequence[MarginalQuery]) -> Iterator[Counts]:
        return (query.aggregate(self.marginal(query.attributes)) for query in queries)

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        """Rows of the root."""
        return self.root.draw(rows, rng)

    def state(self) -> State:
        values: dict[str, Any] = {"root": list(self.root.domain.names), "tables": list(self.chains)}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, chain in enumerate(self.chains.values()):
            values[f"attributes{number}"] = list(chain.domain.names)
            _hold(f"chain{number}", chain.state(), values, arrays)
        return self.root.state().held_by(self.kind, values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> LinkedModel:
        from hedgerow.models import read

        if stored.is_held:
            raise ReleaseError("model-held-links", "a model of linked tables cannot be a part of another model.")
        chains = {}
        for number, name in enumerate(stored.texts("tables")):
            view = Domain(domain[each] for each in stored.names(f"attributes{number}", domain))
            chains[name] = Chain.from_state(view, stored.held(f"chain{number}"))
        root = Domain(domain[name] for name in stored.names("root", domain))
        return cls(domain, read(root, stored.held()), chains)
