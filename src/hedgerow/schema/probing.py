"""A look at where the rows of some columns lie, before those columns have cells of their own.

While a column waits to be cut, its values are places on one line or several (`Cuttable`). For a look each line is coded
into runs of steps that begin at given places. That is a public map of one value at a time, like any other encoding:
what is counted over it is charged like any other count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import Attribute, Domain, IntArray
from hedgerow.schema.arrays import CodeArray, FloatArray
from hedgerow.schema.cells import Sought
from hedgerow.schema.column import Encoded
from hedgerow.schema.encoding import Single
from hedgerow.schema.endings import Endings
from hedgerow.schema.fits import FITS, MISFIT, Looked
from hedgerow.schema.leaves import Leaf
from hedgerow.schema.trees import Placed, Tree

if TYPE_CHECKING:
    from hedgerow.schema.schema import Schema

Starts = Mapping[str, IntArray]
"""For each line of a column, by the suffix of its attribute's name, where its runs begin."""


class Cuttable(Protocol):
    """A column whose cells may be bought."""

    def trees(self) -> dict[str, Tree]:
        """The tree of every line, by the suffix of its attribute's name."""
        ...

    def places(self, array: pa.Array) -> Placed:
        """Where each value lies on every line."""
        ...

    def elsewhere(self) -> dict[str, list[int]]:
        """Steps of a line that have a cell of their own, by line."""
        ...

    def habits(self) -> tuple[str, Endings]:
        """The line whose steps end in one way or another, and how; asked where endings have a line of their own."""
        ...

    def cut(self, cells: Mapping[str, Sequence[Sequence[Leaf]]]) -> dict[str, Any]:
        """The keys of the declaration that say where the lines were cut."""
        ...


class Probing(Looked):
    """The encoding of a schema in which some columns are looked at in runs of steps.

    The last code of such an attribute stands for everything that does not lie on the line.
    """

    def __init__(self, schema: Schema, waiting: Mapping[str, Cuttable], starts: Mapping[str, Starts]):
        super().__init__(schema)
        looks = {name: _Look(name, waiting[name], runs, self.fits.get(name)) for name, runs in starts.items()}
        self.blocks = tuple(
            looks.get(block.columns[0], block) if isinstance(block, Single) else block for block in self.blocks
        )
        self.domain = Domain(attribute for block in self.blocks for attribute in block.attributes)
        self.mends = []  # columns that are looked at have no cells yet


class _Look:
    """One column in runs of steps, and beside them whether its value fits, where that is asked."""

    def __init__(self, name: str, column: Cuttable, starts: Starts, fit: str | None):
        self.columns = (name,)
        self._column = column
        self._runs = {suffix: Sought(begins) for suffix, begins in starts.items()}
        self._tells = fit is not None
        runs = (Attribute(f"{name}{suffix}", len(begins) + 1) for suffix, begins in starts.items())
        self.attributes = (*runs, *([] if fit is None else [Attribute(fit, 2, 0)]))
        self.names = tuple(attribute.name for attribute in self.attributes)

    def encode(self, batch: Any) -> Encoded:
        lines, outside = self._column.places(batch.column(self.columns[0]))
        codes = [_run_of(lines[suffix], runs) for suffix, runs in self._runs.items()]
        if self._tells:
            codes.append(np.where(outside, MISFIT, FITS))
        return Encoded(tuple(codes), outside)

    def decode(self, codes: list[CodeArray], rng: np.random.Generator) -> list[pa.Array]:
        raise NotImplementedError("a look is not read back")


def _run_of(places: FloatArray, runs: Sought) -> IntArray:
    """The run in which each place lies; the number after the last run for what lies on no line."""
    elsewhere = np.isnan(places)
    found = runs.of(np.where(elsewhere, float(runs.starts[0]), places))
    found[elsewhere] = len(runs.starts)
    return found
