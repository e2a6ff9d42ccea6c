"""What an answer rests on: one measurement, one clique of the model, or an independence that nobody measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from hedgerow.answers.rows import Rows
from hedgerow.coded.domain import Domain, IntArray, Marginal
from hedgerow.coded.measurement import Measurement
from hedgerow.coded.query import MarginalQuery
from hedgerow.schema.arrays import FloatArray

ALIKE = 1e-9
"""Influences that differ by less, as a part of the largest, are the same."""

Basis: TypeAlias = Literal["measured", "modelled", "assumed", "confirmed"]


class Grounds:
    """The measurements of a release, as grounds for answers."""

    def __init__(self, domain: Domain, measurements: Sequence[Measurement]):
        self._measured = [
            (set(measurement.query.sizes), measurement)
            for measurement in measurements
            if all(name in domain for name in measurement.query.sizes)
        ]

    def about(self, marginal: Marginal) -> list[Measurement]:
        """The measurements that read all of these attributes together."""
        return [measurement for attributes, measurement in self._measured if attributes.issuperset(marginal)]

    def basis(self, marginal: Marginal, rows: Rows, influence: FloatArray) -> Basis:
        """*Measured* where the answer is a sum of cells of one measurement, *modelled* where one holds its columns."""
        together = self.about(marginal)
        if not together:
            return "assumed" if marginal else "measured"
        cells = (cells_of(measurement, marginal, rows) for measurement in together)
        return "measured" if any(each is not None and sums_cells(each[0], influence) for each in cells) else "modelled"


def cells_of(measurement: Measurement, marginal: Marginal, rows: Rows) -> tuple[IntArray, int] | None:
    """The cell of every row, and how many cells are added up for one because they differ in other attributes alone.

    None where a measurement's cells do not say what the rows of a marginal are: a block may mix what a question tells
    apart with what it does not ask about, so may a join, and what fell below a threshold is in no cell.
    """
    query = measurement.query
    if not isinstance(query, MarginalQuery) or measurement.kept is not None:
        return None
    if query.blocks is not None and set(query.sizes) != set(marginal):
        return None
    cells: IntArray = np.zeros(len(rows.weights), dtype=np.int64)
    others = 1
    for name, join, level, size in zip(query.attributes, query.joins, query.levels, query.shape, strict=True):
        members = (name,) if join is None else join.members
        asked = [member in marginal for member in members]
        if all(asked):
            columns = [rows.codes[member] for member in members]
            codes = (columns[0] if join is None else join.codes(columns)).astype(np.int64)
            cells = cells * size + (codes if level is None else level[codes])
        elif any(asked):
            return None
        else:
            others *= size
    if query.blocks is not None:
        cells = query.blocks[cells]
    return None if cells.min(initial=0) < 0 else (cells, others)


def sums_cells(cells: IntArray, influence: FloatArray) -> bool:
    """Whether no two rows of one cell differ in their influence."""
    order = np.argsort(cells, kind="stable")
    cells, sorted_influence = cells[order], influence[order]
    beginning = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    spread = np.maximum.reduceat(sorted_influence, beginning) - np.minimum.reduceat(sorted_influence, beginning)
    return bool(spread.max() <= ALIKE * float(np.abs(influence).max()))
