"""Rows on demand: those that meet a condition, and partial rows completed.

A release is public, so asking it for rows of one kind costs nothing and tells nothing new. A condition is taken apart
at its ANDs. What each part says of codes is given to the model, which draws from what is left of its own mass; where a
part cuts through a cell, or the model cannot hold it, rows that do not meet it are drawn again as a whole. So rows
have the release's own distribution given the condition. A condition is met where it is TRUE: NULL is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import Counts, Marginal
from hedgerow.errors import OptionError
from hedgerow.models import conditioning
from hedgerow.models.conditioning import Factor, accepted, next_draw
from hedgerow.models.model import BLOCK_ROWS, Model, block_rng
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.conditions import parse_condition
from hedgerow.schema.conditions.cells import conjuncts, may_be_true

if TYPE_CHECKING:
    from hedgerow.schema import Encoding

PILOT = 1 << 14
"""Rows that are drawn to see how many are rejected."""
MOST_REJECTED = 1 << 30
"""Rows that are drawn at most for those of one block, where the others do not meet the condition."""


class Demand:
    """Rows of a model that meet a condition."""

    def __init__(self, encoding: Encoding, model: Model, where: str):
        self._encoding = encoding
        self._where = where
        self._condition = parse_condition(where, encoding.declared)
        possible: dict[Marginal, BoolArray] = {}
        for part in conjuncts(self._condition):
            found = may_be_true(part, encoding)
            if found is not None:
                attributes, may = found
                possible[attributes] = possible.get(attributes, True) & may
        self._given = conditioning.given(model, [_factor(model, *each) for each in possible.items()])
        self._kept, self._tried = self._pilot()

    @property
    def share(self) -> float:
        """The part of the model's rows that meet the condition: exact where the model holds it, else from a draw."""
        return self._given.share * self._kept / self._tried

    def rows(self, size: int, rng: np.random.Generator, first: int) -> Iterator[pa.Table]:
        """So many rows, some at a time; `first` numbers the first of them."""
        kept, drawn, done = self._kept, self._tried, 0
        while done < size:
            if (size - done) * drawn > kept * MOST_REJECTED:
                raise self._too_rare()
            count = next_draw(size - done, kept, drawn)
            drawn += count
            for table in self._met(count, rng):
                kept += len(table)
                table = table.slice(0, size - done)
                if len(table):
                    yield self._encoding.renumbered(table, first + done, rng)
                    done += len(table)

    def _met(self, count: int, rng: np.random.Generator) -> Iterator[pa.Table]:
        """Of so many drawn rows those that meet the condition."""
        codes = self._given.model.draw(count, rng)
        if self._given.left:
            chosen = accepted(codes, self._given.left, rng)
            codes = {name: each[chosen] for name, each in codes.items()}
        for table in self._encoding.decode_in_slices(codes, rng):
            true = self._condition.truth(table).true
            yield table if true.all() else table.filter(pa.array(true))

    def _pilot(self) -> tuple[int, int]:
        """How many rows of a fixed draw are kept; more are drawn until some are, or nobody would wait longer."""
        if not self._given.possible:
            raise OptionError(
                "where-no-mass",
                f"no row of this release can meet “{self._where}”: its share of the model is 0. Nothing was written. "
                "Hint: values are spelled as the release writes them, and text stands in single quotes.",
            )
        kept = tried = 0
        for number in range(1 + BLOCK_ROWS // PILOT):
            kept += sum(map(len, self._met(PILOT, block_rng(0, number))))
            tried += PILOT
            if kept:
                return kept, tried
        raise self._too_rare(tried)

    def _too_rare(self, tried: int | None = None) -> OptionError:
        share = f"of {self.share:.1g}" if tried is None else f"below {self._given.share / tried:.1g}"
        return OptionError(
            "where-too-rare",
            f"the model gives (almost) no mass to “{self._where}”: a share {share} of its rows, too few to find "
            "them by drawing. Nothing was written. Hint: ask for a wider condition, or for fewer rows.",
        )


def _factor(model: Model, attributes: Marginal, may: BoolArray) -> Factor:
    """Cells that may meet a condition. What is not declared is replaced by other rows' values when it is written, so
    its cell meets the condition as often as they do."""
    weights: Counts = may.astype(np.float64)
    for axis, name in enumerate(attributes):
        attribute = model.domain[name]
        if attribute.hidden:
            likely = model.marginal((name,))[:-1]
            lines = np.moveaxis(weights, axis, 0)
            lines[-1] = np.tensordot(likely / likely.sum(), lines[:-1], 1) if likely.sum() > 0 else 1.0
    return Factor(attributes, weights)
