"""Tables of counts: every cell of some columns, with the interval that `ask` gives for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.answers.asking import discrepancy_of, total_std
from hedgerow.answers.basis import Basis, Grounds
from hedgerow.answers.rows import ModelRows
from hedgerow.answers.spread import Spread
from hedgerow.answers.values import Aggregate, Group
from hedgerow.coded.domain import IntArray, Marginal
from hedgerow.schema.arrays import FloatArray

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release

LEVEL = 0.9
"""How often an interval is to hold the truth; what `ask` takes where nobody says."""
COUNT = Aggregate("COUNT", ())


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table of counts, each a code of every attribute, in row-major order."""

    attributes: Marginal
    codes: IntArray
    """A line for each cell."""
    counts: FloatArray
    low: FloatArray
    high: FloatArray
    bases: tuple[Basis, ...]


class Tabulating:
    """A release whose counts are tabulated: as `hedgerow.answers.asking.Asking`, cell by cell."""

    def __init__(self, release: Release):
        self._rows = ModelRows(release.model, release.encoding)
        self._grounds = Grounds(release.encoding.domain, release.measurements)
        self._spread = Spread(self._grounds, discrepancy_of(release), total_std(release.measurements))

    def cells(self, columns: Sequence[str]) -> Cells:
        """Every cell that a row can be in, and how many rows the private table has there as far as can be told."""
        marginal = self._rows.attributes(columns)
        rows = self._rows.every_cell(marginal)
        asked = np.ones(len(rows.weights), dtype=bool)
        found = []
        for place in range(len(asked)):
            members = np.zeros(len(asked), dtype=bool)
            members[place] = True
            estimate = COUNT.of(Group(rows, members, asked))
            basis = self._grounds.basis(marginal, rows, estimate.influence)
            low, high = self._spread.interval(estimate, basis, marginal, rows, LEVEL, False)
            found.append((estimate.value, low, high, basis))
        counts, lows, highs, bases = zip(*found, strict=True)
        codes = np.stack([rows.codes[name] for name in marginal], axis=1).astype(np.int64)
        return Cells(marginal, codes, np.array(counts), np.array(lows), np.array(highs), bases)
