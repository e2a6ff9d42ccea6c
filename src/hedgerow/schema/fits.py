"""Whether values fit what is declared: the codes that a first look counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.coded.domain import Attribute, Domain
from hedgerow.schema.column import Column, Encoded
from hedgerow.schema.encoding import Encoding, Single
from hedgerow.schema.numeric import Code

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema

FITS, MISFIT = 0, 1


class Fits(Encoding):
    """A table as codes that say of each value whether a declared cell holds it (0) or none does (1).

    Columns with an other-cell hold every value. Combinations of a group are not looked at.
    """

    def __init__(self, schema: Schema):
        super().__init__(schema.settled())
        self._columns = {name: column for name, column in self._columns.items() if column.layout.other is None}
        self.blocks = tuple(_Fit(name, column) for name, column in self._columns.items())
        self.columns = tuple(self._columns)
        self.domain = Domain(attribute for block in self.blocks for attribute in block.attributes)


def can_misfit(schema: Schema) -> bool:
    """Whether there is anything to look for: a table of codes alone was coded by somebody who knew its cells."""
    columns = schema.settled().columns.values()
    return any(column.layout.other is None for column in columns) and not all(
        isinstance(column, Code) for column in columns
    )


class _Fit(Single):
    """One column: does its value fit?"""

    def __init__(self, name: str, column: Column):
        super().__init__(name, column)
        self.attributes, self.names = (Attribute(name, 2, 0),), (name,)

    def encode(self, batch: Any) -> Encoded:
        outside = super().encode(batch).outside
        return Encoded((np.where(outside, MISFIT, FITS),), outside)
