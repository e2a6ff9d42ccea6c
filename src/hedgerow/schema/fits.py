"""Whether values fit what is declared, and rows obey the rules: the codes that a first look counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.coded.domain import Attribute, Domain
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.column import Column, Encoded
from hedgerow.schema.encoding import Block, Encoding, Single
from hedgerow.schema.numeric import Code

if TYPE_CHECKING:
    from hedgerow.coded.domain import IntArray
    from hedgerow.schema.rules import Kept
    from hedgerow.schema.schema import Schema

FITS, MISFIT = 0, 1


def can_misfit(schema: Schema) -> bool:
    """Whether there is anything to look for: a table of codes alone was coded by somebody who knew its cells."""
    coded = all(isinstance(column, Code) for column in schema.columns.values())
    return bool(looked_at(schema)) and (bool(schema.rules) or schema.linked is not None or not coded)


def looked_at(schema: Schema) -> tuple[str, ...]:
    """The columns that a value may misfit, then the rules, or how linked tables hang together. A column with an
    other-cell holds every value."""
    columns = tuple(
        name
        for name, column in schema.settled().columns.items()
        if column.layout.other is None and name not in schema.generated
    )
    return (*columns, *rules_by_name(schema), *_links(schema))


def _links(schema: Schema) -> tuple[str, ...]:
    """What units may misfit by: no column tells it, so it is looked at under its own name."""
    return () if schema.linked is None else tuple(schema.linked.misfits)


def rules_by_name(schema: Schema) -> dict[str, Kept]:
    """The rules under names that no column has."""
    found: dict[str, Kept] = {}
    for each in schema.kept_rules.kept:
        of = "" if schema.linked is None else f"{schema.linked.view(each.condition.columns)}."
        found[_unlike(f"{of}rule {each.number}", schema.columns)] = each
    return found


def fits(schema: Schema) -> Domain:
    """For each column that is looked at, whether its value fits, and for each rule, whether a row obeys it.

    Combinations of a group are not looked at.
    """
    return Domain(_fit(name) for name in looked_at(schema))


class Looked(Encoding):
    """The codes of a table and, beside them, whether each value fits: one pass over the rows serves both."""

    def __init__(self, schema: Schema):
        super().__init__(schema)
        self.fits: dict[str, str] = {}
        """For each column and each rule that is looked at, the attribute that says whether its value fits."""
        links = _links(schema)
        for column in looked_at(schema):
            name = column if column in links else f"{column} fits"
            self.fits[column] = _unlike(name, {*self.domain.names, *self.fits.values()})
        beside = [each for block in self.blocks for each in self._with_fits(block)]
        rules = rules_by_name(schema).items()
        obeyed = [_Obeys(each, self.fits[name]) for name, each in rules]
        self.blocks: tuple[Any, ...] = (*beside, *obeyed, *([_Hangs(links)] if links else []))
        self.domain = Domain(attribute for block in self.blocks for attribute in block.attributes)

    def _with_fits(self, block: Block) -> list[Block]:
        known = [(name, self._columns[name], self.fits[name]) for name in block.columns if name in self.fits]
        if len(block.columns) == 1:
            return [_Beside(*each) for each in known] or [block]
        return [block, *(_Fit(*each) for each in known)]


class _Fit(Single):
    """One column: does its value fit?"""

    def __init__(self, name: str, column: Column, fit: str):
        super().__init__(name, column)
        self.attributes, self.names = (_fit(fit),), (fit,)

    def encode(self, batch: Any) -> Encoded:
        outside = super().encode(batch).outside
        return Encoded((_told(outside),), outside)


class _Beside(Single):
    """One column: its codes, and does its value fit?"""

    def __init__(self, name: str, column: Column, fit: str):
        super().__init__(name, column)
        self.attributes, self.names = (*self.attributes, _fit(fit)), (*self.names, fit)

    def encode(self, batch: Any) -> Encoded:
        found = super().encode(batch)
        return Encoded((*found.codes, _told(found.outside)), found.outside)


class _Obeys:
    """The columns of one rule: does the row obey it? Its values are taken as they are read, each row by itself."""

    def __init__(self, kept: Kept, fit: str):
        self.columns = kept.condition.columns
        self.attributes, self.names = (_fit(fit),), (fit,)
        self._condition = kept.condition

    def encode(self, batch: Any) -> Encoded:
        broken = self._condition.truth(batch).false
        return Encoded((_told(broken),), broken)


class _Hangs:
    """Whether units hang together: the engine that holds them tells it, and no row."""

    def __init__(self, links: tuple[str, ...]):
        self.columns: tuple[str, ...] = ()
        self.attributes, self.names = tuple(_fit(name) for name in links), links


def _fit(name: str) -> Attribute:
    return Attribute(name, 2, 0)


def _told(outside: BoolArray) -> IntArray:
    return np.where(outside, MISFIT, FITS)


def _unlike(name: str, taken: Collection[str]) -> str:
    """A name that no attribute has."""
    while name in taken:
        name += "′"
    return name
