"""A Bayesian network: attribute after attribute is drawn given those before it that are its parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.coded.halving import halved, heights, size_at
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.models.forests import ONE, Whole, even_uniforms, in_units, look_up
from hedgerow.models.model import State
from hedgerow.models.records import FromRows
from hedgerow.models.stored import Stored

Parents = tuple[tuple[str, int], ...]
"""Attributes in domain order, each with how often its ordered codes are halved."""


@dataclass(frozen=True)
class Family:
    """An attribute and its parents: an attribute–parent pair of the literature."""

    label: str
    parents: Parents = ()

    def query(self, domain: Domain) -> MarginalQuery:
        """Their marginal."""
        levels = {name: halved(domain[name], level) for name, level in self.parents if level}
        names: Marginal = domain.marginal([self.label, *(name for name, _ in self.parents)])
        return MarginalQuery(domain, names, levels=levels)

    def by_parents(self, domain: Domain, counts: Counts) -> Counts:
        """Counts of the query with a line for each combination of parents, and a column for each code of the label."""
        query = self.query(domain)
        axis = query.attributes.index(self.label)
        return np.moveaxis(counts.reshape(query.shape), axis, -1).reshape(-1, query.shape[axis])

    def lines(self, domain: Domain) -> int:
        """How many combinations of parents there are."""
        return math.prod(size_at(domain[name], level) for name, level in self.parents)

    def line(self, domain: Domain, table: CodedTable, rows: int) -> IntArray:
        """The combination of parents of every row."""
        found: IntArray = np.zeros(rows, dtype=np.int64)
        for name, level in self.parents:
            found = found * size_at(domain[name], level) + halved(domain[name], level)[table[name]]
        return found


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of an attribute given its parents, in units of 2⁻³¹: drawing is arithmetic of whole numbers."""

    family: Family
    units: Whole
    """A line for each combination of parents; each adds up to one."""

    @classmethod
    def of(cls, domain: Domain, family: Family, counts: Counts) -> Conditional:
        """From noisy counts: negative ones are 0, and a line without any is the label's own distribution."""
        lines = np.maximum(family.by_parents(domain, counts), 0.0)
        own = lines.sum(axis=0, keepdims=True)
        own = own if own.sum() > 0 else np.ones_like(own)
        return cls(family, in_units(np.where(lines.sum(axis=1, keepdims=True) > 0, lines, own)))


class BayesianNetwork(FromRows):
    """Ancestral sampling. Where families overlap its marginals have no short form: they are counted in drawn rows."""

    kind = "network"

    def __init__(self, domain: Domain, conditionals: Sequence[Conditional], total: float):
        before: set[str] = set()
        for each in conditionals:
            family = each.family
            if not {name for name, _ in family.parents} <= before or family.label in before:
                raise HedgerowError("network-order", "an attribute of a network comes once, and after its parents.")
            before.add(family.label)
        if before != set(domain.names):
            raise HedgerowError("network-order", "a network needs a distribution for every attribute.")
        self._domain, self._total = domain, max(1.0, total)
        self.conditionals = tuple(conditionals)

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def total(self) -> float:
        return self._total

    def draw(self, rows: int, rng: np.random.Generator) -> CodedTable:
        table: CodedTable = {}
        for each in self.conditionals:
            line = each.family.line(self.domain, table, rows).astype(np.uint32)
            thresholds = np.cumsum(each.units, axis=1, dtype=np.uint32)
            drawn = look_up(thresholds, line, even_uniforms(line, rng))
            table[each.family.label] = drawn.astype(self.domain[each.family.label].dtype)
        return {name: table[name] for name in self.domain.names}

    def state(self) -> State:
        arrays: dict[str, npt.NDArray[Any]] = {}
        for number, each in enumerate(self.conditionals):
            arrays[f"units{number}"] = each.units
            if each.family.parents:
                parents = [(self.domain.index(name), level) for name, level in each.family.parents]
                arrays[f"parents{number}"] = np.array(parents, dtype=np.int64)
        labels = [each.family.label for each in self.conditionals]
        return State(self.kind, {"total": self.total, "labels": labels}, arrays)

    @classmethod
    def from_state(cls, domain: Domain, stored: Stored) -> BayesianNetwork:
        labels = stored.names("labels", domain)
        return cls(domain, [_conditional(domain, stored, *each) for each in enumerate(labels)], stored.total())


def _conditional(domain: Domain, stored: Stored, number: int, label: str) -> Conditional:
    parents: Parents = ()
    if stored.has(f"parents{number}"):
        listed = stored.integers(f"parents{number}", (None, 2), 0, max(len(domain) - 1, 64)).tolist()
        parents = tuple((domain.names[index], level) for index, level in listed if index < len(domain))
        inside = len(parents) == len(listed) and all(level < heights(domain[name]) for name, level in parents)
        if not inside or domain.marginal(name for name, _ in parents) != tuple(name for name, _ in parents):
            raise ReleaseError("model-parents", f'the parents of "{label}" in the release are not those of a network.')
    family = Family(label, parents)
    cells = family.lines(domain) * domain[label].size
    stored.take(memory=16 * cells, steps=8 * cells, rows=8 * len(parents) + 60)
    units = stored.integers(f"units{number}", (family.lines(domain), domain[label].size), 0, ONE, np.uint32)
    if (units.sum(axis=1, dtype=np.uint64) != ONE).any():
        raise ReleaseError("model-leaf", f'a line of "{label}" in the release is no distribution.')
    return Conditional(family, units)
