"""Models and rows that match totals which are known exactly.

A model is raked: P'(row) ∝ P(row) · Π factors, one for each table of totals, which is the distribution nearest to the
model (in relative entropy) among those with these totals. Rows of a draw are then moved to where the totals want them:
as few as whole numbers demand. A moved row is drawn again given the columns that the totals hold, so that every row is
one of the model's, given those columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, IntArray, Marginal
from hedgerow.models import conditioning
from hedgerow.models.conditioning import Factor, TooRareError
from hedgerow.models.model import Model

ROUNDS = 200
"""Rounds of raking at most."""
NEAR = 1e-9
"""The L1 distance of shares at which it ends."""

Totals: TypeAlias = Sequence[tuple[Marginal, IntArray]]
"""Counts over attributes, in the order of a junction tree, all with the same sum."""


def raked(model: Model, totals: Totals) -> Model:
    """The model nearest to this one that has the totals; the same where it cannot hold them as factors."""
    factors = {marginal: np.ones(counts.shape) for marginal, counts in totals}
    found = conditioning.Given(model, 1.0)
    for _ in range(ROUNDS):
        apart = 0.0
        for marginal, counts in totals:
            wanted: Counts = counts / counts.sum()
            have = found.model.marginal(marginal) / found.model.total
            apart = max(apart, float(np.abs(have - wanted).sum()))
            factor = factors[marginal] * np.divide(wanted, have, out=np.ones_like(have), where=have > 0)
            factors[marginal] = factor / factor.max()
            found = conditioning.given(model, [Factor(*each) for each in factors.items()])
            if found.left or not found.possible:
                return model
        if apart < NEAR:
            break
    return found.model


def matched(model: Model, totals: Totals, rng: np.random.Generator) -> CodedTable:
    """Rows of the model, as many as the totals count, that match them all."""
    table = model.draw(int(totals[0][1].sum()), rng)
    settled: list[str] = []
    for marginal, counts in totals:
        moved, codes = _moves(table, marginal, [name for name in marginal if name in settled], counts, rng)
        for name, code in codes.items():
            table[name][moved] = code
        settled += [name for name in marginal if name not in settled]
        _redraw(model, table, moved, settled, rng)
    return table


def _moves(
    table: CodedTable, marginal: Marginal, shared: Sequence[str], counts: IntArray, rng: np.random.Generator
) -> tuple[IntArray, dict[str, IntArray]]:
    """Rows that are too many in their cell, and cells that lack some: as many, wherever the shared attributes agree."""
    cells = np.ravel_multi_index([table[name] for name in marginal], counts.shape)
    order = rng.permutation(len(cells))
    by_cell = order[np.argsort(cells[order], kind="stable")]
    have = np.bincount(cells, minlength=counts.size)
    rank = np.arange(len(cells)) - np.repeat(np.cumsum(have) - have, have)
    surplus = by_cell[rank >= counts.reshape(-1)[cells[by_cell]]]
    lacking = np.repeat(np.arange(counts.size), np.maximum(counts.reshape(-1) - have, 0))
    rng.shuffle(lacking)
    axes = [marginal.index(name) for name in shared]

    def group(numbers: IntArray) -> IntArray:
        codes = np.unravel_index(numbers, counts.shape)
        found: IntArray = np.zeros(len(numbers), dtype=np.int64)
        for axis in axes:
            found = found * counts.shape[axis] + codes[axis]
        return found

    moved = surplus[np.argsort(group(cells[surplus]), kind="stable")]
    into = lacking[np.argsort(group(lacking), kind="stable")]
    return moved, dict(zip(marginal, np.unravel_index(into, counts.shape), strict=True))


def _redraw(model: Model, table: CodedTable, rows: IntArray, settled: Sequence[str], rng: np.random.Generator) -> None:
    """Draw rows again given what is settled; those to which the model gives no mass keep the rest of what they had."""
    while len(rows):
        fixed: CodedTable = {name: table[name][rows] for name in settled}
        try:
            drawn = conditioning.completed(model, fixed, {}, len(rows), rng)
        except TooRareError as problem:
            rows = np.delete(rows, problem.rows)
            continue
        for name in table:
            table[name][rows] = drawn[name]
        return


def split(totals: Totals, sizes: Sequence[int], number: int, rng: np.random.Generator) -> Totals:
    """The part of the totals that a block of a draw matches: rows of every cell, dealt to the blocks by lot.

    All blocks together have the totals. Every block deals the blocks before it, too: they share one generator.
    """
    left = [(marginal, counts.copy()) for marginal, counts in totals]
    for size in sizes[: number + 1]:
        dealt: list[tuple[Marginal, IntArray]] = []
        for marginal, counts in left:
            dealt.append((marginal, _dealt(counts, marginal, dealt, size, rng)))
        for (_, counts), (_, part) in zip(left, dealt, strict=True):
            counts -= part
    return dealt


def _dealt(counts: IntArray, marginal: Marginal, before: Totals, size: int, rng: np.random.Generator) -> IntArray:
    """So many rows of a table, by lot; of each cell that it shares with one before it, as many as that was dealt."""
    shared: tuple[str, ...] = ()
    wanted: IntArray = np.array(size)
    for other, part in before:
        common = tuple(name for name in marginal if name in other)
        if len(common) > len(shared):
            shared = common
            wanted = part.sum(axis=tuple(axis for axis, name in enumerate(other) if name not in common))
            wanted = wanted.transpose([[n for n in other if n in common].index(name) for name in common])
    axes = [marginal.index(name) for name in shared]
    lines = np.moveaxis(counts, axes, range(len(axes))).reshape(wanted.size, -1)
    drawn = np.stack(
        [
            rng.multivariate_hypergeometric(line, int(rows), method="marginals")
            for line, rows in zip(lines, wanted.reshape(-1), strict=True)
        ]
    )
    shape = [counts.shape[axis] for axis in (*axes, *(a for a in range(counts.ndim) if a not in axes))]
    return np.moveaxis(drawn.reshape(shape), range(len(axes)), axes)
