"""A model of a domain with joined attributes, read in the original one: codes become what they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.joining import Join, Joining
from hedgerow.errors import HedgerowError
from hedgerow.models.conditioning import Factor, Given, TooRareError, combinations, completed, drawn, given, only
from hedgerow.models.model import FromMarginals, Model, State
from hedgerow.models.stored import Stored

SEPARATOR = " + "
"""Between the members in the name of a joined attribute."""


class Joined(FromMarginals):
    """`model` speaks of `joining.target()`; this speaks of `joining.domain`.

    The last code of a join stands for all combinations that are not listed; `rest` has a model of its members for each.
    """

    kind = "joined"

    def __init__(self, model: Model, joining: Joining, rest: Mapping[str, Model]):
        self.model = model
        self.joining = joining
        self.rest = {name: rest[name] for name in joining.joins}
        for name, join in joining.joins.items():
            if self.rest[name].domain.shape(join.members) != tuple(join.sizes.values()):
                raise HedgerowError("another-domain", "the rest of a join must be a model of its members.")

    @property
    def domain(self) -> Domain:
        return self.joining.domain

    @property
    def total(self) -> float:
        return self.model.total

    def marginal(self, marginal: Marginal) -> Counts:
        axes = self.joining.marginal(marginal)
        counts = self.model.marginal(axes)
        names: list[str] = []
        for axis in axes:
            join = self.joining.joins.get(axis)
            if join is None:
                names.append(axis)
                continue
            wanted = [member for member in join.members if member in marginal]
            place = len(names)
            counts = np.moveaxis(self._split(axis, wanted, np.moveaxis(counts, place, -1)), -1, place)
            counts = counts.reshape(*counts.shape[:place], *self.domain.shape(wanted), *counts.shape[place + 1 :])
            names += wanted
        ordered = counts.transpose([names.index(name) for name in marginal])
        return np.ascontiguousarray(ordered).reshape(ordered.shape)  # NumPy makes a line of a single number

    def _split(self, name: str, wanted: list[str], counts: Counts) -> Counts:
        """The last axis, of a join's codes, as one of the cells of some of its members."""
        join, rest = self.joining.joins[name], self.rest[name]
        cells: IntArray = np.zeros(len(join.combinations), dtype=np.int64)
        for member in wanted:
            cells = cells * join.sizes[member] + join.combinations[:, join.members.index(member)]
        flat = counts.reshape(-1, join.size).T
        split: Counts = np.outer(rest.marginal(tuple(wanted)).reshape(-1) / rest.total, flat[-1])
        np.add.at(split, cells, flat[:-1])
        return split.T.reshape(*counts.shape[:-1], len(split))

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        return self._apart(self.model.draw(rows, rng), rng)

    def given(self, factors: Sequence[Factor]) -> Given:
        """A factor of members of one join is one of its codes, the rest's worth being what the rest has of it; one that
        reaches across is left. Where the model inside leaves anything, all is left."""
        holding = {member: name for name, join in self.joining.joins.items() for member in join.members}
        rest, inside, left = dict(self.rest), [], []
        for factor in factors:
            names = {holding.get(name) for name in factor.marginal}
            if names == {None}:
                inside.append(factor)
                continue
            name = names.pop() if len(names) == 1 else None
            found = None if name is None else given(rest[name], [factor])
            if name is None or found is None or found.left:
                left.append(factor)
                continue
            join = self.joining.joins[name]
            listed = factor.of(dict(zip(join.members, join.combinations.T, strict=True)))
            rest[name] = found.model if found.possible else rest[name]
            inside.append(Factor((name,), np.append(listed, min(1.0, found.share))))
        taken = given(self.model, inside)
        if taken.left:
            return Given(self, 1.0, list(factors))
        return Given(Joined(taken.model, self.joining, rest), taken.share, left)

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """Where a join has a say, each combination of what is fixed by itself."""
        rows = len(next(iter(fixed.values())))
        if all(name in self.joining.target() for name in fixed):
            return self._apart(completed(self.model, fixed, {}, rows, rng), rng)
        table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in self.domain}
        for codes, where in combinations(fixed):
            found = drawn(given(self, [only(self.domain, name, code) for name, code in codes.items()]), len(where), rng)
            if found is None:
                raise TooRareError(where)
            for name, values in found.items():
                table[name][where] = values
        return table

    def _apart(self, drawn: CodedTable, rng: np.random.Generator) -> CodedTable:
        """Rows of joined codes in the original attributes."""
        table: CodedTable = {}
        for name, codes in drawn.items():
            join = self.joining.joins.get(name)
            if join is None:
                table[name] = codes
                continue
            last = len(join.combinations)
            others = np.flatnonzero(codes == last)
            listed = np.minimum(codes, last - 1)
            rest = self.rest[name].draw(len(others), rng)
            for member, column in zip(join.members, join.combinations.T, strict=True):
                table[member] = column[listed].astype(self.domain[member].dtype)
                table[member][others] = rest[member]
        return {name: table[name] for name in self.domain.names}

    def state(self) -> State:
        values: dict[str, Any] = {"joins": [list(join.members) for join in self.joining.joins.values()]}
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, (name, join) in enumerate(self.joining.joins.items()):
            arrays[f"combinations{number}"] = join.combinations
            rest = self.rest[name].state()
            values[f"rest{number}"] = {"kind": rest.kind, "values": rest.values}
            arrays |= {f"rest{number}.{key}": array for key, array in rest.arrays.items()}
        return self.model.state().held_by(self.kind, values, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> Joined:
        from hedgerow.models import read

        joins: dict[str, Join] = {}
        rest: dict[str, Model] = {}
        for number, members in enumerate(stored.marginals("joins", domain)):
            sizes = dict(zip(members, domain.shape(members), strict=True))
            lines = stored.integers(f"combinations{number}", (None, len(members)), 0, max(sizes.values()) - 1)
            stored.take(memory=64 * lines.size, steps=100 * lines.size, rows=4 * len(members))
            name = joined_name(members)
            joins[name] = Join(sizes, lines)
            rest[name] = read(domain_of(domain, members), stored.held(f"rest{number}"))
        joining = Joining(domain, joins)
        return cls(read(joining.target(), stored.held()), joining, rest)


def domain_of(domain: Domain, members: Marginal) -> Domain:
    """Some of the attributes of a domain."""
    return Domain(domain[name] for name in members)


def joined_name(members: Marginal) -> str:
    """What a joined attribute is called inside a model."""
    return SEPARATOR.join(members)
