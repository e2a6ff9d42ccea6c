"""Whether a row can obey all rules, decided over the declared domain alone, before anything is spent.

Every column is taken in pieces: its values one by one, or runs of numbers that begin where some rule tells them apart.
A rule then is a table over pieces: some combinations surely obey it, some surely break it. Pieces are thinned out by
the rules (arc consistency), and one column after the other is decided. Where pieces are too wide to tell, those in
question are halved. A combination that surely obeys every rule is a legal row; if none is even possible, there is none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hedgerow.errors import SchemaError
from hedgerow.schema.arrays import BoolArray
from hedgerow.schema.conditions.cells import length, taken
from hedgerow.schema.conditions.language import Field, as_arrow
from hedgerow.schema.conditions.values import DAY, Numbers, Values
from hedgerow.schema.ordered import OrderedColumn
from hedgerow.schema.rules.boundaries import boundaries
from hedgerow.schema.rules.kept import Kept, Rules
from hedgerow.schema.rules.pieces import pieces_of

MOST_COMBINATIONS = 1 << 21
"""Of the pieces of one rule's columns."""
MOST_STEPS = 20_000
"""Columns decided, and decisions taken back, in one search."""
MOST_HALVINGS = 60


def satisfied(rules: Rules) -> pa.Table:
    """One legal row of the columns that rules speak of; SchemaError where there is none, or where it cannot be told."""
    kept = list(rules.kept)
    fields = {name: field for each in kept for name, field in each.condition.fields.items()}
    starts = {name: set(boundaries(rules.conditions, name)) for name in fields}
    perhaps: dict[str, int] | None = None
    for _ in range(MOST_HALVINGS):
        pieces = _pieces(fields, starts)
        tables = [_Table.of(each, pieces) for each in kept]
        sure = _search(tables, pieces, sure=True)
        if sure is not None:
            return _row(fields, pieces, sure)
        perhaps = _search(tables, pieces, sure=False)
        if perhaps is None:
            raise _clash(kept, tables, pieces)
        if not _halved(tables, pieces, perhaps, starts):
            break
    assert perhaps is not None
    named = "; ".join(map(str, _doubtful(kept, tables, perhaps)))
    raise SchemaError("undecided-rules", f"whether a row can obey all rules cannot be decided because of {named}.")


@dataclass(frozen=True, eq=False)
class _Table:
    """A rule over pieces of its columns: which combinations may obey it, and which surely do."""

    kept: Kept
    columns: tuple[str, ...]
    may: BoolArray
    must: BoolArray

    @classmethod
    def of(cls, kept: Kept, pieces: Mapping[str, Values]) -> _Table:
        columns = kept.condition.columns
        shape = tuple(length(pieces[name]) for name in columns)
        size = math.prod(shape)
        if size > MOST_COMBINATIONS:
            raise SchemaError(
                "huge-rule",
                f"{kept} speaks of {size:,} combinations of values; at most {MOST_COMBINATIONS:,} can be gone "
                "through. Hint: fewer columns in one rule, or fewer values.",
            )
        places = np.unravel_index(np.arange(size), shape)
        known = {name: taken(pieces[name], place) for name, place in zip(columns, places, strict=True)}
        truth = kept.condition.evaluate(known, size)
        return cls(kept, columns, (truth.true | truth.null).reshape(shape), (~truth.false).reshape(shape))


def _pieces(fields: Mapping[str, Field], starts: Mapping[str, set[int]]) -> dict[str, Values]:
    found = {}
    for name, field in fields.items():
        values = pieces_of(field, sorted(starts[name]))
        if values is None:
            raise SchemaError("undecided-rules", f'the kind of the column "{name}" does not say what it may hold.')
        found[name] = values
    return found


def _search(tables: Sequence[_Table], pieces: Mapping[str, Values], sure: bool) -> dict[str, int] | None:
    """A piece of every column, so that every rule is (surely, or perhaps) obeyed; None where there is none."""
    relations = [(table.columns, table.must if sure else table.may) for table in tables]
    left = {name: np.ones(length(values), dtype=bool) for name, values in pieces.items()}
    steps = itertools.count()

    def decided(left: dict[str, BoolArray]) -> dict[str, int] | None:
        if next(steps) > MOST_STEPS:
            raise SchemaError(
                "huge-rules", "the rules are too many, or too entangled, to decide whether a row can obey."
            )
        thinned = _thinned(relations, left)
        if thinned is None:
            return None
        open_columns = [name for name, pieces in thinned.items() if pieces.sum() > 1]
        if not open_columns:
            return {name: int(pieces.argmax()) for name, pieces in thinned.items()}
        name = min(open_columns, key=lambda each: int(thinned[each].sum()))
        for piece in np.flatnonzero(thinned[name]):
            only = np.zeros_like(thinned[name])
            only[piece] = True
            found = decided({**thinned, name: only})
            if found is not None:
                return found
        return None

    return decided(left)


def _thinned(
    relations: Sequence[tuple[tuple[str, ...], npt.NDArray[np.bool_]]], left: dict[str, BoolArray]
) -> dict[str, BoolArray] | None:
    """The pieces that every rule by itself leaves possible, until no rule takes any more; None where none is left."""
    left = dict(left)
    changed = True
    while changed:
        changed = False
        for columns, table in relations:
            held = table
            for axis, name in enumerate(columns):
                held = held & left[name].reshape([-1 if other == axis else 1 for other in range(len(columns))])
            if not held.any():
                return None
            for axis, name in enumerate(columns):
                possible = np.asarray(held.any(axis=tuple(other for other in range(len(columns)) if other != axis)))
                if (possible != left[name]).any():
                    left[name] = possible
                    changed = True
    return left


def _clash(kept: Sequence[Kept], tables: Sequence[_Table], pieces: Mapping[str, Values]) -> SchemaError:
    """The error that names a smallest set of rules that no row can obey together."""

    def clashes(some: Sequence[_Table]) -> bool:
        return _search(some, pieces, sure=False) is None

    found: Sequence[_Table] = next(
        (some for size in (1, 2) for some in itertools.combinations(tables, size) if clashes(some)), ()
    )
    if not found:
        found = list(tables)
        for table in tables:
            rest = [other for other in found if other is not table]
            if clashes(rest):
                found = rest
    named = " and ".join(str(table.kept) for table in found)
    if len(found) == 1:
        return SchemaError("unsatisfiable-rule", f"no row of the declared columns can obey {named}.")
    return SchemaError("rules-clash", f"no row can obey all of these: {named}.")


def _halved(
    tables: Sequence[_Table], pieces: Mapping[str, Values], perhaps: Mapping[str, int], starts: Mapping[str, set[int]]
) -> bool:
    """Cut the pieces in two that a rule is not sure of; False where none can be."""
    cut = False
    for table in tables:
        if table.must[tuple(perhaps[name] for name in table.columns)]:
            continue
        for name in table.columns:
            values, place = pieces[name], perhaps[name]
            if isinstance(values, Numbers) and values.unit is not None and values.low[place] < values.high[place]:
                middle = math.floor((values.low[place] + values.high[place]) / 2) + 1
                cut |= middle not in starts[name]
                starts[name].add(middle)
    return cut


def _doubtful(kept: Sequence[Kept], tables: Sequence[_Table], perhaps: Mapping[str, int]) -> list[Kept]:
    return [table.kept for table in tables if not table.must[tuple(perhaps[name] for name in table.columns)]]


def _row(fields: Mapping[str, Field], pieces: Mapping[str, Values], places: Mapping[str, int]) -> pa.Table:
    """The first value of each piece."""
    arrays = {}
    for name, field in fields.items():
        values = taken(pieces[name], np.array([places[name]]))
        if isinstance(values, Numbers) and isinstance(field.column, OrderedColumn):
            line = values.low / (DAY if field.kind == "date" else 1)
            arrays[name] = field.column.to_arrow(np.where(values.null, 0, line), values.null)
        else:
            arrays[name] = as_arrow(values, field.kind).cast(field.column.arrow_type)
    return pa.table(arrays)
