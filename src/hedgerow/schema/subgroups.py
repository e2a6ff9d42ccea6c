"""Declared subgroups: the rows of each value of some columns, regions for example, whose quality is told by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hedgerow.coded.query import MarginalQuery
from hedgerow.schema.arrays import BoolArray

if TYPE_CHECKING:
    from hedgerow.coded.domain import Domain
    from hedgerow.schema.encoding import Encoding
    from hedgerow.schema.schema import Schema

MOST = 500
"""Subgroups of a schema."""


class Subgroup(NamedTuple):
    """The rows in which a column has one declared value: some codes of the attribute that holds it."""

    column: str
    value: str
    attribute: str
    codes: BoolArray

    def query(self, domain: Domain, other: str) -> MarginalQuery:
        """The counts of another attribute among the rows of the subgroup; all other rows count nowhere."""
        marginal = domain.marginal((self.attribute, other))
        cells = np.indices(domain.shape(marginal))
        own, others = (cells[marginal.index(name)].reshape(-1) for name in (self.attribute, other))
        return MarginalQuery(domain, marginal, blocks=np.where(self.codes[own], others, -1))


def subgroups(schema: Schema, encoding: Encoding) -> Iterator[Subgroup]:
    """Every declared value of every column that `subgroups` names."""
    for column in schema.subgroups:
        block = next(block for block in encoding.blocks if column in block.columns)
        held = block.codes_of(column)
        codes = np.append(held, np.full(block.attributes[0].size - len(held), -1))
        declared = schema.columns[column]
        for code, value in enumerate(declared.value_labels()):
            yield Subgroup(column, value, block.names[0], codes == code)


def subgroup_queries(schema: Schema, encoding: Encoding) -> Iterator[tuple[Subgroup, MarginalQuery]]:
    """Every other attribute within every subgroup."""
    for subgroup in subgroups(schema, encoding):
        for other in encoding.domain.names:
            if other != subgroup.attribute:
                yield subgroup, subgroup.query(encoding.domain, other)
