"""Models given something: rows of one kind on demand, and partial rows completed.

What is given is a product of factors: P'(row) ∝ P(row) · Π weights. A factor of zeros and ones leaves out cells; one
of fractions draws their rows less often. A model takes up the factors that it can hold exactly (`given`); what is left
is kept to by rejection of whole rows, which is exact for every model, and slow where little of it is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Counts, Domain, IntArray, Marginal
from hedgerow.models.model import BLOCK_ROWS, Model

BoolArray: TypeAlias = npt.NDArray[np.bool_]

LEAST_DRAWN = 1 << 12
"""Rows that are drawn at a time where some are rejected, at least."""
MOST_REJECTED = 1 << 24
"""Rows that are drawn at most until those that are asked for are met."""


@dataclass(frozen=True, eq=False)
class Factor:
    """What a row is worth by the cell of a marginal that it lies in: weights from 0 to 1, shaped by the attributes."""

    marginal: Marginal
    weights: Counts

    def of(self, rows: Mapping[str, npt.NDArray[Any]]) -> Counts:
        """The weight of each row."""
        found: Counts = self.weights[tuple(rows[name] for name in self.marginal)]
        return found


@dataclass(frozen=True)
class Given:
    """A model that has taken up factors, the share of its mass that they left, and the factors that it could not."""

    model: Model
    share: float
    left: list[Factor] = field(default_factory=list)

    @property
    def possible(self) -> bool:
        return self.share > 0


class TooRareError(Exception):
    """Rows, by number, to which the model gives no mass, or so little that they are not found by drawing."""

    def __init__(self, rows: IntArray):
        super().__init__(f"{len(rows)} rows")
        self.rows = rows


class Conditional(Protocol):
    """What a model may offer beside `Model`."""

    def given(self, factors: Sequence[Factor]) -> Given:
        """P'(row) ∝ P(row) · Π weights, exactly, for the factors that are not left."""
        ...

    def completed(self, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
        """Whole rows, in order, that hold the fixed codes; the other attributes are drawn given them."""
        ...


def given(model: Model, factors: Sequence[Factor]) -> Given:
    """The model that has taken up what it can; one that holds nothing exactly leaves all of it."""
    taken = getattr(model, "given", None)
    return Given(model, 1.0, list(factors)) if taken is None or not factors else taken(factors)


def accepted(rows: CodedTable, factors: Sequence[Factor], rng: np.random.Generator) -> IntArray:
    """The rows that stay: each with the product of its weights as its chance."""
    first = next(iter(rows.values()))
    worth: Counts = np.ones(len(first))
    for factor in factors:
        worth *= factor.of(rows)
    sure = (worth == 0) | (worth == 1)
    return np.flatnonzero(worth > 0 if sure.all() else rng.random(len(worth)) < worth)


def next_draw(wanted: int, kept: int, drawn: int) -> int:
    """How many rows to draw so that about `wanted` more are kept, as far as the rows so far tell."""
    share = max(kept, 1) / drawn if drawn else 1.0
    return int(min(BLOCK_ROWS, max(LEAST_DRAWN, math.ceil(1.1 * wanted / share))))


def completed(
    model: Model, fixed: CodedTable, narrowed: Mapping[str, BoolArray], rows: int, rng: np.random.Generator
) -> CodedTable:
    """So many whole rows, in order, that hold the fixed codes, and of other attributes one of those that are allowed
    (`narrowed`, a line of all codes for each row); the rest is drawn from the model given them.

    Where the model has no way of its own to complete rows, rows are drawn until each of those that are asked for has
    met one that agrees with it: whole-row rejection for all of them at once.
    """
    if narrowed:
        return _one_by_one(model, fixed, narrowed, rows, rng)
    if not fixed:
        return model.draw(rows, rng)
    own = getattr(model, "completed", None)
    return _met(model, fixed, rng) if own is None else own(fixed, rng)


def _one_by_one(
    model: Model, fixed: CodedTable, narrowed: Mapping[str, BoolArray], rows: int, rng: np.random.Generator
) -> CodedTable:
    """Each combination of what is given by itself, as factors: the general way, and a slow one."""
    table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in model.domain}
    classes: CodedTable = dict(fixed)
    for name, allowed in narrowed.items():
        classes[name] = np.unique(allowed, axis=0, return_inverse=True)[1].reshape(-1).astype(np.uint32)
    for codes, where in combinations(classes):
        factors = [only(model.domain, name, codes[name]) for name in fixed]
        factors += [Factor((name,), allowed[where[0]].astype(np.float64)) for name, allowed in narrowed.items()]
        found = drawn(given(model, factors), len(where), rng)
        if found is None:
            raise TooRareError(where)
        for name in model.domain.names:
            table[name][where] = found[name]
    return table


def drawn(given: Given, rows: int, rng: np.random.Generator) -> CodedTable | None:
    """So many rows of a model that is given factors; None where it has none, or they are too rare to be found."""
    if not given.possible:
        return None
    if not given.left:
        return given.model.draw(rows, rng)
    chunks: list[CodedTable] = []
    kept = tried = 0
    while kept < rows:
        if tried > MOST_REJECTED:
            return None
        count = next_draw(rows - kept, kept, tried)
        pool = given.model.draw(count, rng)
        chosen = accepted(pool, given.left, rng)[: rows - kept]
        chunks.append({name: codes[chosen] for name, codes in pool.items()})
        kept, tried = kept + len(chosen), tried + count
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in given.model.domain.names}


def _met(model: Model, fixed: CodedTable, rng: np.random.Generator) -> CodedTable:
    """Each row gets the first drawn row, not yet taken, that agrees with what is fixed of it."""
    domain = model.domain
    rows = len(next(iter(fixed.values())))
    table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in domain}
    waiting: IntArray = np.arange(rows)
    drawn = 0
    while len(waiting):
        if drawn >= MOST_REJECTED:
            raise TooRareError(waiting)
        count = next_draw(len(waiting), rows - len(waiting), drawn)
        pool = model.draw(count, rng)
        drawn += count
        wanted = {name: codes[waiting] for name, codes in fixed.items()}
        asked, offered = _numbered(wanted, pool, fixed)
        met = _partners(asked, offered)
        for name in domain.names:
            table[name][waiting[met >= 0]] = pool[name][met[met >= 0]]
        waiting = waiting[met < 0]
    return table


def _numbered(wanted: CodedTable, pool: CodedTable, names: Mapping[str, object]) -> tuple[IntArray, IntArray]:
    """Both sets of rows by the number of their combination of codes, as far as anybody wants it; −1 where not."""
    asked = np.zeros(len(next(iter(wanted.values()))), dtype=np.int64)
    offered = np.zeros(len(next(iter(pool.values()))), dtype=np.int64)
    for name in names:
        width = int(max(wanted[name].max(), pool[name].max(initial=0))) + 1
        keys, asked = np.unique(asked * width + wanted[name], return_inverse=True)
        sought = np.where(offered < 0, -1, offered * width + pool[name])
        step = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        offered = np.where(keys[step] == sought, step, -1)
    return asked, offered


def _partners(asked: IntArray, offered: IntArray) -> IntArray:
    """For each row that is asked for, one of those offered in its cell, none of them twice; −1 where none is left."""
    rank, supply = _ranks(asked), _ranks(offered)
    most = int(max(rank.max(), supply.max(initial=0))) + 1
    keys = offered * most + supply
    order = np.argsort(keys)
    sought = asked * most + rank
    step = np.minimum(np.searchsorted(keys[order], sought), len(keys) - 1)
    return np.where(keys[order][step] == sought, order[step], -1)


def _ranks(cells: IntArray) -> IntArray:
    """For each row, how many before it lie in the same cell."""
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    begin = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(cells) else np.zeros(0, dtype=np.int64)
    ranks = np.empty(len(cells), dtype=np.int64)
    ranks[order] = np.arange(len(cells)) - np.repeat(begin, np.diff(np.append(begin, len(cells))))
    return ranks


def combinations(fixed: CodedTable) -> Iterator[tuple[dict[str, int], IntArray]]:
    """Each combination of codes that occurs, with the rows that have it."""
    names = list(fixed)
    stacked = np.stack([fixed[name].astype(np.int64) for name in names], axis=1)
    distinct, which = np.unique(stacked, axis=0, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1), minlength=len(distinct)))
    for codes, rows in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
        yield dict(zip(names, codes, strict=True)), rows


def only(domain: Domain, name: str, code: int) -> Factor:
    """Rows with one code of an attribute."""
    weights = np.zeros(domain[name].size)
    weights[code] = 1.0
    return Factor((name,), weights)
