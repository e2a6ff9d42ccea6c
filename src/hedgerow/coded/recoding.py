"""Public maps of codes onto fewer codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Attribute, CodedTable, Domain, IntArray, Marginal
from hedgerow.coded.query import MarginalQuery


@dataclass(frozen=True, eq=False)
class Recoding:
    """A public map of every attribute's codes onto fewer codes (attributes left out keep their codes)."""

    domain: Domain
    maps: Mapping[str, IntArray]

    def target(self) -> Domain:
        """The recoded domain. A merged attribute stays ordered only if the map keeps the order."""
        attributes = []
        for attribute in self.domain:
            mapping = self.maps.get(attribute.name)
            if mapping is None:
                attributes.append(attribute)
            else:
                attributes.append(Attribute(attribute.name, int(mapping.max()) + 1, _ordered(attribute, mapping)))
        return Domain(attributes, {marginal: self._merged(marginal) for marginal in self.domain.support})

    def _merged(self, marginal: Marginal) -> npt.NDArray[np.bool_]:
        """Which merged cells can occur: those that hold a cell that can."""
        possible = self.domain.support[marginal]
        for axis, name in enumerate(marginal):
            if name in self.maps:
                mapping = self.maps[name]
                merged = np.zeros((int(mapping.max()) + 1, *np.delete(possible.shape, axis)), dtype=bool)
                np.logical_or.at(merged, mapping, np.moveaxis(possible, axis, 0))
                possible = np.moveaxis(merged, 0, axis)
        return possible

    def rows(self, table: CodedTable) -> CodedTable:
        """Coded rows under the recoded domain."""
        target = self.target()
        return {
            name: self.maps[name][codes].astype(target[name].dtype) if name in self.maps else codes
            for name, codes in table.items()
        }

    def translated(self, query: MarginalQuery) -> MarginalQuery:
        """A query about the recoded domain, asked of the original one."""
        if self.maps.keys().isdisjoint(query.attributes):
            return query
        levels: dict[str, npt.ArrayLike] = {}
        for name, level in zip(query.attributes, query.levels, strict=True):
            mapping = self.maps.get(name)
            if mapping is not None:
                levels[name] = mapping if level is None else level[mapping]
            elif level is not None:
                levels[name] = level
        return MarginalQuery(self.domain, query.attributes, levels=levels, blocks=query.blocks)


def _ordered(attribute: Attribute, mapping: IntArray) -> int | None:
    """How many merged codes, the first ones, stand in order."""
    if not attribute.ordered:
        return attribute.ordered
    ordered, rest = mapping[: attribute.ordered], mapping[attribute.ordered :]
    kept = bool((np.diff(ordered) >= 0).all()) and not np.isin(rest, ordered).any() and ordered[0] == 0
    return int(ordered[-1]) + 1 if kept else 0
