"""A model of linked tables: one of the root's rows, and for every other table a chain that draws its rows one by one.

A chain draws the attributes of a row in turn, each given a few others: of the parent, of the row before, of the row
itself as far as it is drawn. For each there is a small model of just these attributes, and what is drawn follows its
distribution given the others, exactly. No attribute is drawn in the light of what is given of another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Codes, Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.model import Model, State
from hedgerow.models.stored import LARGEST, Stored

MOST_LOCAL_CELLS = 1 << 22
"""Of the small model of one attribute."""
CELLS_AT_A_TIME = 1 << 22
"""Weights that are compared with what was drawn at a time."""


@dataclass(frozen=True, eq=False)
class Local:
    """One attribute given some others."""

    attribute: str
    given: Marginal
    model: Model
    """Of these attributes, in merged codes."""

    @cached_property
    def ends(self) -> Counts:
        """Cumulative weights of the attribute's codes, a line for each combination of the given ones."""
        names = self.model.domain.names
        weights = np.maximum(self.model.marginal(names), 0.0)
        weights = weights.transpose([names.index(name) for name in (*self.given, self.attribute)])
        lines = weights.reshape(-1, weights.shape[-1])
        lines = lines + 1e-12 * lines.sum() / lines.size  # what is impossible is drawn as if nothing were known
        ends: Counts = np.cumsum(lines, axis=1)
        return ends

    def draw(self, given: Mapping[str, IntArray], rows: int, rng: np.random.Generator) -> IntArray:
        """A merged code for each row."""
        index: IntArray = np.zeros(rows, dtype=np.int64)
        for name in self.given:
            index = index * self.model.domain[name].size + given[name]
        chosen: IntArray = np.empty(rows, dtype=np.int64)
        step = max(1, CELLS_AT_A_TIME // self.ends.shape[1])
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            ends = self.ends[index[part]]
            drawn = rng.random(len(ends)) * ends[:, -1]
            chosen[part] = np.minimum((ends <= drawn[:, None]).sum(axis=1), ends.shape[1] - 1)
        return chosen


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
            if set(local.model.domain.names) != {*local.given, local.attribute} or any(
                self._size(each.name) != each.size for each in local.model.domain
            ):
                raise HedgerowError("another-domain", "a chain must speak of merged codes of its domain.")

    def _size(self, name: str) -> int:
        mapping = self.recoding.maps.get(name)
        return self.domain[name].size if mapping is None else int(mapping.max()) + 1

    def draw(self, local: Local, known: CodedTable, rows: int, rng: np.random.Generator) -> Codes:
        """A code of the attribute for each row, given codes of the others."""
        merged = {name: self._merged(name, known[name]) for name in local.given}
        return self._spread(local.attribute, local.draw(merged, rows, rng), rng)

    def _merged(self, name: str, codes: Codes) -> IntArray:
        mapping = self.recoding.maps.get(name)
        found: IntArray = codes.astype(np.int64) if mapping is None else mapping[codes]
        return found

    def _spread(self, name: str, merged: IntArray, rng: np.random.Generator) -> Codes:
        dtype = self.domain[name].dtype
        mapping = self.recoding.maps.get(name)
        if mapping is None:
            plain: Codes = merged.astype(dtype)
            return plain
        order = np.argsort(mapping, kind="stable")
        ends = np.cumsum(self.fill[name][order])
        starts = np.searchsorted(mapping[order], np.arange(int(mapping.max()) + 2))
        lows = np.append(0.0, ends)[starts]
        drawn = lows[merged] + rng.random(len(merged)) * (lows[merged + 1] - lows[merged])
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
            _hold(f"local{number}", local.model.state(), values, arrays)
        return State("chain", values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Chain:
        from hedgerow.models import read

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
            held = Domain(target[name] for name in domain.marginal((attribute, *given)))
            cells = held.cells(held.names)
            if cells > MOST_LOCAL_CELLS:
                raise ReleaseError("model-local-cells", "a chain of the release has a table that is too large.")
            stored.take(memory=32 * cells, steps=20 * cells, rows=held[attribute].size)
            found.append(Local(attribute, tuple(given), read(held, stored.held(f"local{number}"))))
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
