"""Conditions on few columns as structural zeros: combinations of codes of which no value is legal.

What remains possible is decided by ranges: a cell of numbers that a condition cuts through stays possible, and what is
drawn from it is drawn again until it obeys. All of it follows from the declaration, so it is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.coded.domain import Codes, Domain, IntArray, Marginal, Support
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.conditions.cells import judged
from hedgerow.schema.rules.kept import Kept

if TYPE_CHECKING:
    from hedgerow.schema.encoding import Block

MOST_CELLS = 1 << 16
"""Of a marginal with structural zeros: it becomes a clique of every model. Wider rules are kept by drawing again."""


def zeros(kept: Iterable[Kept], blocks: Sequence[Block], domain: Domain) -> tuple[Support, list[Mend]]:
    """The combinations of codes that can occur, by marginal; and where rows go that hold another one."""
    possible: dict[Marginal, BoolArray] = {}
    order: dict[Marginal, list[str]] = {}
    for each in kept:
        found = judged(each.condition, blocks, MOST_CELLS)
        if found is None:
            continue
        marginal, truth, untold = found
        legal = truth.true | truth.null | untold
        if not legal.all():
            possible[marginal] = possible[marginal] & legal if marginal in possible else legal
            named = [next(block for block in blocks if name in block.columns) for name in each.condition.columns]
            order.setdefault(marginal, list(dict.fromkeys(block.names[0] for block in named)))
    mends = [Mend.of(marginal, order[marginal], legal, domain) for marginal, legal in possible.items()]
    return _needed(possible, domain), mends


def _needed(possible: Mapping[Marginal, BoolArray], domain: Domain) -> Support:
    """The tables that do not follow from others, the wide ones dropped first: each is a clique of every model.

    a × c follows from a × b and b × c where no b that is declared goes with both: AGEP × INDP from AGEP × INDP_CAT,
    if a public table says of each industry in which category it is.
    """
    needed = dict(possible)
    pairs = [marginal for marginal in possible if len(marginal) == 2]
    for first, last in sorted(pairs, key=lambda pair: -possible[pair].size):
        for between in domain.names:
            before, after = _oriented(needed, first, between), _oriented(needed, between, last)
            if before is None or after is None:
                continue
            declared = domain[between].size - domain[between].hidden
            met = before[:, :declared].astype(np.float32) @ after[:declared].astype(np.float32) > 0
            if not (met & ~possible[first, last]).any():
                del needed[first, last]
                break
    return needed


def _oriented(tables: Mapping[Marginal, BoolArray], row: str, column: str) -> BoolArray | None:
    """The table of two attributes, if there is one, with the first of them down its side."""
    if (row, column) in tables:
        return tables[row, column]
    return tables[column, row].T if (column, row) in tables else None


@dataclass(frozen=True, eq=False)
class Mend:
    """Where rows go whose codes cannot occur together: a public map of one row at a time, so rows still count once.

    It changes one code, of the attribute that a rule names last if that is enough, to the nearest that is legal.
    """

    marginal: Marginal
    to: IntArray
    """For every cell of the marginal, the cell that it becomes."""
    shape: tuple[int, ...]

    @classmethod
    def of(cls, marginal: Marginal, order: Sequence[str], legal: BoolArray, domain: Domain) -> Mend:
        told = legal.copy()
        for axis, name in enumerate(marginal):
            if domain[name].hidden:
                np.moveaxis(told, axis, 0)[-1] = False  # what is not declared is nothing to become
        told = told if told.any() else legal
        to = np.arange(legal.size).reshape(legal.shape)
        left = ~legal
        for name in reversed(order):
            axis = marginal.index(name)
            nearest = _nearest(np.moveaxis(told, axis, -1))
            found = np.moveaxis(nearest, -1, axis)
            here = left & (found >= 0)
            step = math.prod(legal.shape[axis + 1 :])
            own = np.indices(legal.shape)[axis]
            to = np.where(here, to + (found - own) * step, to)
            left &= ~here
        to = np.where(left, int(np.flatnonzero(told.reshape(-1))[0]), to)
        return cls(marginal, to.reshape(-1), legal.shape)

    def __call__(self, coded: dict[str, Codes]) -> None:
        """Recode the rows of a batch."""
        cell = np.zeros(len(coded[self.marginal[0]]), dtype=np.int64)
        for name, size in zip(self.marginal, self.shape, strict=True):
            cell = cell * size + coded[name]
        to = self.to[cell]
        if (moved := np.flatnonzero(to != cell)).size:
            for name, codes in zip(self.marginal, np.unravel_index(to[moved], self.shape), strict=True):
                changed = coded[name].copy()
                changed[moved] = codes
                coded[name] = changed


def _nearest(legal: BoolArray) -> IntArray:
    """For every place of the last axis, the nearest place there that is legal; −1 where none is."""
    size = legal.shape[-1]
    place = np.broadcast_to(np.arange(size), legal.shape)
    below = np.maximum.accumulate(np.where(legal, place, -1), axis=-1)
    above = np.minimum.accumulate(np.where(legal, place, 2 * size)[..., ::-1], axis=-1)[..., ::-1]
    down = np.where(below < 0, 3 * size, place - below)
    up = np.where(above >= size, 3 * size, above - place)
    found: IntArray = np.where(down <= up, below, above)
    return np.where(np.minimum(down, up) >= 3 * size, -1, found)
