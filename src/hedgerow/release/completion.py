"""Partial rows completed: what a public table gives of each row stays as it is, the rest is drawn given it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import CodedTable, IntArray, Marginal
from hedgerow.errors import OptionError, counted, listing, suggestion
from hedgerow.models import conditioning
from hedgerow.models.conditioning import TooRareError
from hedgerow.models.model import BLOCK_ROWS, Model, block_rng
from hedgerow.schema.arrays import BoolArray, plain
from hedgerow.schema.ordered import OrderedColumn

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release
    from hedgerow.schema import Encoding
    from hedgerow.schema.encoding import Block


TRIES = 200
"""Times that a row is drawn which breaks a rule."""
_NONE = (np.zeros(1, dtype=bool), np.zeros((1, 1), dtype=bool))


class Piece(NamedTuple):
    """What is given of the columns that one block of attributes codes; in some rows nothing is.

    Where only some columns of a group are given, several codes agree with them: `several` lists the rows of which this
    is so, and `allowed` their codes.
    """

    attributes: Marginal
    codes: tuple[IntArray, ...]
    free: BoolArray
    several: BoolArray
    allowed: BoolArray


def completed(release: Release, given: pa.Table, seed: int) -> Iterator[pa.Table]:
    """The rows of `given`, whole, in blocks; block b depends only on the release, the rows given, the seed and b."""
    encoding = release.encoding
    _refuse_columns(encoding, given)
    for number, first in enumerate(range(0, len(given), BLOCK_ROWS)):
        block = given.slice(first, BLOCK_ROWS)
        pieces = [piece for each in encoding.blocks if (piece := _piece(encoding, each, block)) is not None]
        rng = block_rng(seed, number)
        codes = _drawn(release.model, pieces, len(block), rng, first)
        drawn = _with_given(encoding, encoding.decode(codes, rng, first), block)
        yield _obeying(release, drawn, block, rng, first) if encoding.rules else drawn


def _obeying(release: Release, drawn: pa.Table, given: pa.Table, rng: np.random.Generator, first: int) -> pa.Table:
    """The same rows; those that break a rule are drawn again given the same, until they obey."""
    encoding = release.encoding
    for _ in range(TRIES):
        again = np.flatnonzero(encoding.rules.broken(drawn))
        if not len(again):
            return drawn
        block = given.take(pa.array(again))
        pieces = [piece for each in encoding.blocks if (piece := _piece(encoding, each, block)) is not None]
        codes = _drawn(release.model, pieces, len(again), rng, first)
        other = _with_given(encoding, encoding.decode(codes, rng, first), block)
        place = np.arange(len(drawn))
        place[again] = len(drawn) + np.arange(len(again))
        drawn = pa.concat_tables([drawn, other]).take(pa.array(place))
    row = int(np.flatnonzero(encoding.rules.broken(drawn))[0]) + first + 1
    raise OptionError(
        "given-breaks-rules",
        f"what is given of some rows, such as row {row:,}, leaves the model (almost) no row that obeys the rules of "
        "the release. Nothing was written. Hint: give fewer of its columns.",
    )


def _piece(encoding: Encoding, block: Block, given: pa.Table) -> Piece | None:
    """Codes of what is given; refused where the declaration does not hold it."""
    held = [name for name in block.columns if name in given.column_names]
    if not held:
        return None
    free = {name: encoding.declared[name].blank(plain(given.column(name))) for name in held}
    for name in held:
        column = encoding.declared[name]
        codes, outside = column.encode(plain(given.column(name)))
        lost = int((outside & ~free[name] & (codes[0] != column.layout.other)).sum())
        if lost:
            raise OptionError(
                "given-undeclared",
                f'{counted(lost, "value")} given for "{name}" {"is" if lost == 1 else "are"} not declared, so nothing '
                "can be drawn given them. Nothing was written. Hint: leave them empty to have them drawn.",
            )
    if len(block.columns) > 1:
        return _part_of_group(encoding, block, given, free)
    return Piece(block.names, block.encode(given).codes, free[held[0]], *_NONE)


def _part_of_group(encoding: Encoding, block: Block, given: pa.Table, free: dict[str, BoolArray]) -> Piece:
    """A group given in all of its columns, or in some of them."""
    own = {name: encoding.declared[name].encode(plain(given.column(name))).codes[0] for name in free}
    said = np.stack([np.where(blank, -1, own[name]) for name, blank in free.items()], axis=1)
    distinct, which = np.unique(said, axis=0, return_inverse=True)
    listed = np.stack([block.codes_of(name) for name in free], axis=1)
    agree = np.all((distinct[:, None, :] == -1) | (distinct[:, None, :] == listed[None, :, :]), axis=2)
    which = which.reshape(-1)
    if not agree.any(axis=1).all():
        lost = int((~agree.any(axis=1)[which]).sum())
        raise OptionError(
            "given-undeclared",
            f"{counted(lost, 'combination')} given for {listing(free)} {'is' if lost == 1 else 'are'} not among those "
            "that the release allows. Nothing was written. Hint: leave them empty to have them drawn.",
        )
    nothing = np.all(said == -1, axis=1)
    allowed = np.append(agree, np.zeros((len(agree), 1), dtype=bool), axis=1)[which]  # never what is not declared
    return Piece(block.names, (agree.argmax(axis=1)[which],), nothing, allowed.sum(axis=1) > 1, allowed)


def _drawn(model: Model, pieces: list[Piece], rows: int, rng: np.random.Generator, first: int) -> CodedTable:
    """Rows that hold the pieces, drawn together where the same pieces are given."""
    table: CodedTable = {attribute.name: np.zeros(rows, dtype=attribute.dtype) for attribute in model.domain}
    how = np.stack([piece.free * 2 + (piece.several & ~piece.free) for piece in pieces], axis=1)
    for pattern in np.unique(how, axis=0):
        here = np.flatnonzero((how == pattern).all(axis=1))
        fixed: CodedTable = {
            name: codes[here].astype(model.domain[name].dtype)
            for piece, kind in zip(pieces, pattern, strict=True)
            if kind == 0
            for name, codes in zip(piece.attributes, piece.codes, strict=True)
        }
        narrowed = {
            piece.attributes[0]: piece.allowed[here] for piece, kind in zip(pieces, pattern, strict=True) if kind == 1
        }
        try:
            drawn = conditioning.completed(model, fixed, narrowed, len(here), rng)
        except TooRareError as problem:
            row = int(here[problem.rows].min()) + first + 1
            raise OptionError(
                "given-too-rare",
                f"the model gives (almost) no mass to what is given of {counted(len(problem.rows), 'row')}, such as "
                f"row {row:,}. Nothing was written. Hint: give fewer of its columns.",
            ) from None
        for name, codes in drawn.items():
            table[name][here] = codes
    return table


def _with_given(encoding: Encoding, drawn: pa.Table, given: pa.Table) -> pa.Table:
    """Numbers, dates and moments as they were given: a draw from their cell would be another one."""
    for name in given.column_names:
        column = encoding.declared[name]
        if isinstance(column, OrderedColumn):
            numbers, _ = column.settled(given.column(name))
            lacking = np.isnan(numbers) | column.blank(given.column(name))
            values = column.to_arrow(np.where(lacking, column.cells.low, numbers), np.zeros(len(numbers), dtype=bool))
            own = pc.if_else(pa.array(lacking), drawn.column(name), values.cast(column.arrow_type))
            drawn = drawn.set_column(drawn.schema.get_field_index(name), encoding.arrow_schema.field(name), own)
    return encoding.rederived(drawn)


def _refuse_columns(encoding: Encoding, given: pa.Table) -> None:
    known = encoding.columns
    for name in given.column_names:
        if given.column_names.count(name) > 1:
            raise OptionError("given-twice", f'the given table has two columns "{name}".')
        if name not in known:
            raise OptionError(
                "unknown-column",
                f'the given table has a column "{name}", which the release does not draw; columns: {listing(known)}.'
                f"{suggestion(name, known)}",
            )
    if not given.column_names:
        raise OptionError("nothing-given", f"the given table has no column; columns: {listing(known)}.")
