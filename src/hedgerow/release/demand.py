"""Rows on demand: those that meet a condition, or rows of a population, as often as their weights say.

A release is public, so asking it for rows of one kind costs nothing and tells nothing new. A condition is taken apart
at its ANDs. What each part says of codes is given to the model, which draws from what is left of its own mass; where a
part cuts through a cell, or the model cannot hold it, rows that do not meet it are drawn again as a whole. So rows
have the release's own distribution given the condition. A condition is met where it is TRUE: NULL is not enough.

Weights are met alike: the model draws each cell as often as its largest weight says, and a row then stays with its own
weight's part of that.
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
from hedgerow.schema.arrays import numbers, plain
from hedgerow.schema.conditions import parse_condition
from hedgerow.schema.conditions.cells import conjuncts, may_be_true
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.schema import Encoding
    from hedgerow.schema.weight import Weight

PILOT = 1 << 14
"""Rows that are drawn to see how many are rejected."""
MOST_REJECTED = 1 << 30
"""Rows that are drawn at most for those of one block, where the others do not meet the condition."""


class Demand:
    """Rows of a model that meet a condition, or as often as their weights say, or both."""

    def __init__(self, encoding: Encoding, model: Model, where: str | None, weight: Weight | None):
        self._encoding = encoding
        self._where = where
        self._condition = None if where is None else parse_condition(where, encoding.named)
        self._population = None if weight is None else Population(encoding, weight)
        worth: dict[Marginal, Counts] = {}
        for part in () if self._condition is None else conjuncts(self._condition):
            found = may_be_true(part, encoding)
            if found is not None:
                attributes, may = found
                worth[attributes] = worth[attributes] * may if attributes in worth else may.astype(np.float64)
        if self._population is not None:
            alone = (self._population.attribute,)
            worth[alone] = worth.get(alone, np.ones(1)) * self._population.bounds
        self._given = conditioning.given(model, [_factor(model, *each) for each in worth.items()])
        self._kept, self._tried = self._pilot()

    @property
    def share(self) -> float:
        """The part of the model's rows that meet the condition: exact where the model holds it, else from a draw."""
        return self._given.share * self._kept / self._tried

    @property
    def _said(self) -> str:
        """What is asked for, in words."""
        return "a weight above 0" if self._where is None else self._where

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
            if self._condition is not None:
                true = self._condition.truth(table).true
                table = table if true.all() else table.filter(pa.array(true))
            if self._encoding.rules:
                table = table.filter(pa.array(~self._encoding.rules.broken(table)))
            yield table if self._population is None else self._population.drawn(table, rng)

    def _pilot(self) -> tuple[int, int]:
        """How many rows of a fixed draw are kept; more are drawn until some are, or nobody would wait longer."""
        if not self._given.possible:
            raise OptionError(
                "where-no-mass",
                f"no row of this release can meet “{self._said}”: its share of the model is 0. Nothing was written. "
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
            f"the model gives (almost) no mass to “{self._said}”: a share {share} of its rows, too few to find "
            "them by drawing. Nothing was written. Hint: ask for a wider condition, or for fewer rows.",
        )


class Population:
    """Rows as often as their weights say; each then stands for one."""

    def __init__(self, encoding: Encoding, weight: Weight):
        self._name, self._most = weight.column, float(weight.max)
        self._column = encoding.declared[weight.column]
        assert isinstance(self._column, OrderedColumn)
        (self.attribute, *_) = encoding.attributes_of(weight.column)
        layout = self._column.layout
        bounds = np.append(self._column.cells.spans[1], np.zeros(layout.size - layout.own))
        scale = getattr(self._column, "scale", None) or 1
        self.bounds: Counts = np.minimum(bounds / scale / self._most, 1.0)
        """The largest weight of each cell, as a part of the largest of all; none where there is no weight."""

    def drawn(self, table: pa.Table, rng: np.random.Generator) -> pa.Table:
        """The rows that stay, of rows that were drawn as often as the bounds say."""
        column = plain(table.column(self._name))
        bound = self.bounds[self._column.encode(column).codes[0]]
        part = numbers(column).values / self._most
        stays = rng.random(len(table)) * bound < np.nan_to_num(part)
        one = pa.array(np.ones(int(stays.sum())), pa.float64()).cast(table.schema.field(self._name).type)
        kept = table.filter(pa.array(stays))
        return kept.set_column(kept.schema.get_field_index(self._name), table.schema.field(self._name), one)


def _factor(model: Model, attributes: Marginal, may: Counts) -> Factor:
    """Cells that may meet what is asked. What is not declared is replaced by other rows' values when it is written, so
    its cell meets it as often as they do."""
    weights: Counts = np.array(may, dtype=np.float64)
    for axis, name in enumerate(attributes):
        attribute = model.domain[name]
        if attribute.hidden:
            likely = model.marginal((name,))[:-1]
            lines = np.moveaxis(weights, axis, 0)
            lines[-1] = np.tensordot(likely / likely.sum(), lines[:-1], 1) if likely.sum() > 0 else 1.0
    return Factor(attributes, weights)
