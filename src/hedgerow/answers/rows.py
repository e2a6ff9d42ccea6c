"""A model as weighted rows: every cell of some attributes with its share, and values drawn inside the cells.

Where the attributes that a question speaks of have few cells together, their shares are the model's own, exactly; a
value inside a cell is drawn several times, so that a condition that cuts through a cell takes its fraction. Where there
are too many cells, rows of one large fixed draw stand for the model. Either way a question is evaluated as it would be
on a table, with weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.answers.values import as_numbers
from hedgerow.coded.domain import CodedTable, Counts, Marginal
from hedgerow.models.model import block_rng
from hedgerow.schema.arrays import BoolArray, FloatArray, nulls
from hedgerow.schema.conditions import Condition, Expression

if TYPE_CHECKING:
    from hedgerow.models.model import Model
    from hedgerow.schema import Encoding

CELLS = 1 << 17
"""Cells at most whose shares are computed; beyond, rows are drawn."""
DRAWN = 1 << 18
"""Rows of the draw."""
MOST_DRAWS = 64
"""Values drawn inside a cell."""
SEED = 0


class Rows:
    """A table whose rows have weights that add up to 1, and stand for `total` rows."""

    def __init__(self, table: pa.Table, weights: FloatArray, total: float, codes: CodedTable | None = None):
        self.table = table
        self.weights = weights
        self.total = total
        self.codes = codes or {}
        self._truths: dict[str, BoolArray] = {}
        self._numbers: dict[str, FloatArray] = {}

    @classmethod
    def of_table(cls, table: pa.Table) -> Rows:
        """Rows that weigh the same: a table itself, asked as a model is."""
        count = table.num_rows
        return cls(table, np.full(count, 1 / max(1, count)), float(count))

    def share(self, members: BoolArray) -> float:
        """The weight of some rows together."""
        return float(self.weights @ members)

    def truth(self, condition: Condition) -> BoolArray:
        """Which rows make a condition true."""
        said = str(condition)
        if said not in self._truths:
            self._truths[said] = condition.truth(self.table).true
        return self._truths[said]

    def numbers(self, expression: Expression) -> FloatArray:
        """The values of an expression, NaN where it is NULL."""
        said = str(expression)
        if said not in self._numbers:
            self._numbers[said] = as_numbers(expression, self)
        return self._numbers[said]

    def null(self, expression: Expression) -> BoolArray:
        """Where an expression is NULL."""
        if expression.kind == "number":
            return np.isnan(self.numbers(expression))
        return nulls(expression.values(self.table))


class ModelRows:
    """Weighted rows of a model for any columns; the draw is made once, and the last question's rows are kept."""

    def __init__(self, model: Model, encoding: Encoding):
        self._model, self._encoding = model, encoding
        self._known: dict[tuple[str, ...], Rows] = {}

    def attributes(self, columns: Sequence[str]) -> Marginal:
        """The attributes that hold some columns."""
        names = [name for column in columns for name in self._encoding.attributes_of(column)]
        return self._encoding.domain.marginal(names)

    def of(self, columns: Sequence[str]) -> Rows:
        """Rows that hold these columns."""
        key = tuple(sorted(columns))
        if key not in self._known:
            marginal = self.attributes(columns)
            exact = self._encoding.domain.cells(marginal) <= CELLS
            codes, weights = self._cells(marginal) if exact else self._drawn(marginal)
            self._known = {key: Rows(decoded(self._encoding, codes, key), weights, self._model.total, codes)}
        return self._known[key]

    def every_cell(self, marginal: Marginal) -> Rows:
        """A row for each cell that a row can be in, whether the model has any there or not; without values."""
        shares = self._declared(self._model.marginal(marginal), marginal)
        hidden = [block.attributes[0] for block in self._encoding.blocks if block.attributes[0].hidden]
        seen = [
            np.arange(self._encoding.domain[name].size - any(each.name == name for each in hidden)) for name in marginal
        ]
        places = [place.reshape(-1) for place in np.meshgrid(*seen, indexing="ij")]
        weights = shares[tuple(places)]
        domain = self._encoding.domain
        codes = {name: place.astype(domain[name].dtype) for name, place in zip(marginal, places, strict=True)}
        return Rows(pa.table({"": pa.nulls(len(weights))}), weights / weights.sum(), self._model.total, codes)

    def _cells(self, marginal: Marginal) -> tuple[CodedTable, FloatArray]:
        """Every cell that holds anything, so often as its values shall be drawn."""
        shares = self._declared(self._model.marginal(marginal), marginal)
        held = np.flatnonzero(shares.reshape(-1) > 0)
        draws = 1 if self._single(marginal) else int(min(MOST_DRAWS, max(1, DRAWN // max(1, len(held)))))
        places = np.unravel_index(np.repeat(held, draws), shares.shape) if marginal else ()
        domain = self._encoding.domain
        codes = {name: place.astype(domain[name].dtype) for name, place in zip(marginal, places, strict=True)}
        weights = np.repeat(shares.reshape(-1)[held], draws)
        return codes, weights / weights.sum()

    def _declared(self, counts: Counts, marginal: Marginal) -> Counts:
        """Counts in which rows without a declared value have one: as in a draw, that of another row."""
        encoding, shares = self._encoding, np.asarray(counts, dtype=np.float64)
        for block in encoding.blocks:
            first = block.attributes[0]
            if first.hidden and first.name in marginal:
                held = first.size - 1 if len(block.columns) > 1 else encoding.declared[block.columns[0]].layout.values
                axes = [marginal.index(name) for name in block.names]
                flat = np.moveaxis(shares, axes, range(len(axes))).reshape(first.size, -1, *_others(shares, axes))
                donors = flat[:held].sum(axis=tuple(range(2, flat.ndim)))
                if donors.sum() > 0:
                    lost = flat[-1].sum(axis=0)
                    flat = flat.copy()
                    flat[-1] = 0.0
                    flat[:held] += np.multiply.outer(donors / donors.sum(), lost)
                    whole = [shares.shape[axis] for axis in axes]
                    shares = np.moveaxis(flat.reshape(*whole, *_others(shares, axes)), range(len(axes)), axes)
        return shares

    def _single(self, marginal: Marginal) -> bool:
        """Whether every code stands for one value."""
        columns = {name for attribute in marginal for name in self._encoding.columns_of(attribute)}
        declared = (self._encoding.declared[name] for name in columns)
        return all(getattr(column, "cells", None) is None or column.cells.single for column in declared)  # type: ignore[attr-defined]

    def _drawn(self, marginal: Marginal) -> tuple[CodedTable, FloatArray]:
        codes = {name: self._draw[name] for name in marginal}
        return codes, np.full(DRAWN, 1 / DRAWN)

    @cached_property
    def _draw(self) -> CodedTable:
        return self._model.draw(DRAWN, block_rng(SEED, 0))


def decoded(encoding: Encoding, codes: CodedTable, columns: Sequence[str]) -> pa.Table:
    """Values of some columns, drawn inside the cells that codes stand for."""
    rng = block_rng(SEED, 1)
    arrays: dict[str, pa.Array] = {}
    for block in encoding.blocks:
        if set(block.columns) & set(columns):
            found = block.decode([codes[name] for name in block.names], rng)
            arrays |= zip(block.columns, found, strict=True)
    unfolded = {
        name: array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        for name, array in arrays.items()
    }
    return pa.table(unfolded) if unfolded else pa.table({"": pa.nulls(1)})


def _others(shares: Counts, axes: Sequence[int]) -> list[int]:
    return [size for axis, size in enumerate(shares.shape) if axis not in axes]
