"""Attributes that are nearly functions of each other, read as one: common combinations, and one code for the rest.

Ten moments of one call, or the seven names of one place, have as many cells together as all their codes multiplied, and
rows in a few hundred of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Attribute, CodedTable, Codes, Domain, IntArray, Marginal, Support
from hedgerow.errors import HedgerowError

if TYPE_CHECKING:
    from hedgerow.coded.query import MarginalQuery


MOST_CELLS = 1 << 18
"""Of a marginal of joined attributes that says what can occur."""


class Join:
    """A public map from the codes of several attributes to one: the number of their combination, or the last code.

    `combinations` has one line for each combination that is listed, and one column for each member. All the others
    share the code one past the last line. So a row has exactly one code.
    """

    def __init__(self, sizes: Mapping[str, int], combinations: IntArray):
        self.sizes = dict(sizes)
        self.members: Marginal = tuple(self.sizes)
        self.combinations: IntArray = np.array(combinations, dtype=np.int64)  # a copy that no caller can change
        self.combinations.flags.writeable = False
        whole = len(self.members) > 1 and self.combinations.ndim == 2 and len(self.combinations)
        if not whole or self.combinations.shape[1] != len(self.members):
            raise HedgerowError("bad-join", "a join lists combinations of at least two attributes.")
        highest = np.array(list(self.sizes.values()))
        if self.combinations.min() < 0 or (self.combinations >= highest).any():
            raise HedgerowError("bad-join", "a join lists combinations with codes that its attributes do not have.")
        if len(self._steps[-1][1]) != len(self.combinations):
            raise HedgerowError("bad-join", "a join lists a combination twice.")

    @property
    def size(self) -> int:
        """How many codes there are, that of all other combinations included."""
        return len(self.combinations) + 1

    @cached_property
    def digest(self) -> bytes:
        """What tells this join from others."""
        about = hashlib.sha256(repr(self.sizes).encode())
        about.update(self.combinations.astype("<i8").tobytes())
        return about.digest()

    @cached_property
    def _steps(self) -> list[tuple[int, IntArray]]:
        """Member by member: its size, and the beginnings of combinations that are listed, in order.

        A beginning is numbered as beginning so far · size + code; a row's number is looked up step by step, so that
        numbers stay small however many members there are.
        """
        steps = []
        number: IntArray = np.zeros(len(self.combinations), dtype=np.int64)
        for column, size in zip(self.combinations.T, self.sizes.values(), strict=True):
            begun, number = np.unique(number * size + column, return_inverse=True)
            steps.append((size, begun.astype(np.int64)))
        return steps

    @cached_property
    def _line(self) -> IntArray:
        """The line of each combination in ascending order, and the code of all others."""
        return np.append(np.lexsort(self.combinations.T[::-1]), len(self.combinations)).astype(np.int64)

    def codes(self, columns: Sequence[Codes | IntArray]) -> Codes:
        """The code of every row, from its members' columns in order."""
        number: IntArray = np.zeros(len(columns[0]), dtype=np.int64)
        lost = np.zeros(len(number), dtype=bool)
        for column, (size, begun) in zip(columns, self._steps, strict=True):
            key = number * size + column
            number = np.minimum(np.searchsorted(begun, key), len(begun) - 1)
            lost |= begun[number] != key
        number[lost] = len(self.combinations)
        joined: Codes = self._line[number].astype(Attribute("", self.size).dtype)
        return joined


@dataclass(frozen=True, eq=False)
class Joining:
    """A domain in which some attributes are read as one; a join stands where the first of its members stood."""

    domain: Domain
    joins: Mapping[str, Join]

    def __post_init__(self) -> None:
        inside = [member for join in self.joins.values() for member in join.members]
        if len(set(inside)) != len(inside) or not self.joins.keys().isdisjoint(self.domain.names):
            raise HedgerowError("bad-join", "an attribute is joined twice, or a join has the name of an attribute.")
        for join in self.joins.values():
            if self.domain.marginal(join.members) != join.members:
                raise HedgerowError("bad-join", "the members of a join must be distinct and in domain order.")

    def target(self) -> Domain:
        """The domain with the joined attributes, whose codes stand in the order of their lines."""
        return self._target

    @cached_property
    def _target(self) -> Domain:
        first = {join.members[0]: (name, join) for name, join in self.joins.items()}
        inside = {member for join in self.joins.values() for member in join.members}
        attributes = []
        for attribute in self.domain:
            if attribute.name in first:
                name, join = first[attribute.name]
                attributes.append(Attribute(name, join.size, join.size - 1))
            elif attribute.name not in inside:
                attributes.append(attribute)
        return Domain(attributes, self._support(Domain(attributes)))

    def _support(self, target: Domain) -> Support:
        """What can occur in the joined domain: a combination that is listed as its members say, all others anything."""
        holding = {member: name for name, join in self.joins.items() for member in join.members}
        found: dict[Marginal, npt.NDArray[np.bool_]] = {}
        for marginal, possible in self.domain.support.items():
            joined = target.marginal({holding.get(name, name) for name in marginal})
            shape = target.shape(joined)
            if math.prod(shape) > MOST_CELLS:
                continue
            code_of = dict(zip(joined, np.indices(shape), strict=True))
            untold = np.zeros(shape, dtype=bool)
            codes = []
            for name in marginal:
                code = code_of[holding.get(name, name)]
                if name in holding:
                    join = self.joins[holding[name]]
                    untold |= code == join.size - 1
                    code = np.append(join.combinations[:, join.members.index(name)], 0)[code]
                codes.append(code)
            allowed = possible[tuple(codes)] | untold
            found[joined] = found[joined] & allowed if joined in found else allowed
        return found

    def rows(self, table: CodedTable) -> CodedTable:
        """Coded rows under the joined domain."""
        return {
            name: self.joins[name].codes([table[member] for member in self.joins[name].members])
            if name in self.joins
            else table[name]
            for name in self.target().names
        }

    def marginal(self, marginal: Marginal) -> Marginal:
        """What a marginal of the original attributes is part of."""
        return self._target.marginal({self._holding.get(name, name) for name in marginal})

    @cached_property
    def _holding(self) -> dict[str, str]:
        return {member: name for name, join in self.joins.items() for member in join.members}

    def translated(self, query: MarginalQuery) -> MarginalQuery:
        """A query about the joined domain, asked of the original one."""
        from hedgerow.coded.query import MarginalQuery

        joins = {name: self.joins[name] for name in query.attributes if name in self.joins}
        if not joins:
            return query
        levels = {name: level for name, level in zip(query.attributes, query.levels, strict=True) if level is not None}
        return MarginalQuery(self.domain, query.attributes, levels=levels, blocks=query.blocks, joins=joins)
