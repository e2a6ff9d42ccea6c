"""Who hangs on whom: the rows of linked tables that stay, and what each of them weighs.

A unit is a value of the root's key: the root rows with it, and every row that links to it, directly or through others.
Of root rows with one key the one with the smallest keyed hash stays; likewise of rows of a further table that has keys,
within a unit. A row whose link names no such row is left out, and so is one whose link names nothing. A row that hangs
on several units through a key that they share counts in each of them as if the others were not there.

Of the rows of one parent at most `max_per_parent` stay, on every level, before anything is counted: those with the
smallest hashes, or, where they have an order, one contiguous stretch of it whose start a keyed hash chooses. The hash
of a row is the MD5 of

    KEY|UNIT|VALUES

(Of one table whose persons are kept every row is a row of the root too; those of a person that hold the same are one.)
KEY is the secret key, UNIT the bytes that spell the unit (`hedgerow.private.identity`), VALUES the row's columns as
text with | between them, nothing where there is none; all in hexadecimal. Everything depends on the key and on the
unit's own rows, so adding or removing a unit changes nothing about another one.

In the view of a table a row weighs ⌊parts / n⌋, n being the rows of that table in its unit that stay. So a unit weighs
`parts` at most, and moves the counts of a view by no more than that, in L1 and so in L2.

Units of which rows are left out are counted too, for a first look; each weighs `parts`. A key that a child of the root
names and the root lacks is a unit as well, whose rows are orphans. Rows that name nothing, or no row of a table further
down, are in no unit, and in no count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import IntArray
from hedgerow.private.bounding import _first_of_equals, _order, _place_in_run
from hedgerow.private.identity import Spelling
from hedgerow.schema.links import Tables, beyond, duplicates_of, orphans_of

AT_A_TIME = 1 << 16
"""Rows whose values are held as text at a time."""


@dataclass(frozen=True, eq=False)
class Kept:
    """The rows of one table that stay, sorted by parent and order."""

    rows: IntArray
    """Their numbers in the table as it was read; of a row that hangs on several parents several times."""
    parent: IntArray
    """Which of the kept rows of the parent table each hangs on; of the root, nothing."""
    unit: IntArray
    first: npt.NDArray[np.bool_]
    """Whether it is the first of its parent."""
    left: IntArray
    """How many of the same parent come after it."""
    step: npt.NDArray[np.float64]
    """How many whole steps its order lies after that of the row before; NaN for the first, and where one has none."""
    weight: IntArray
    misfits: Mapping[str, int]
    """How many units have rows of this table that are left out, by why (`Tables.misfits`)."""


def kept_rows(
    tables: Tables, read: Mapping[str, pa.Table], orders: Mapping[str, npt.NDArray[np.float64]], key: bytes
) -> dict[str, Kept]:
    """The rows of each table that stay. `orders` has the number that each row of an ordered table stands at."""
    kept: dict[str, Kept] = {}
    keys: dict[str, pa.Array] = {}
    units = pa.array([], pa.binary())
    spellings = {name: Spelling() for name in tables.names}
    for name in tables.names:
        link, table = tables.links[name], read[name]
        misfits: dict[str, int] = {}
        if name == tables.root:
            names = _spelled(spellings[name], table, link.key)
            rows = np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False))
            coded = names.take(pa.array(rows)).dictionary_encode()
            units = coded.dictionary
            unit: IntArray = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            parent = np.zeros(len(rows), dtype=np.int64)
            bound = 1
        else:
            above = tables.parent(name)
            links = _spelled(spellings[above], table, link.link)
            if above == tables.root:
                misfits[orphans_of(name)] = _lacking(links, keys[above])
            rows, parent = _joined(links, keys[above])
            unit = kept[above].unit[parent]
            bound = link.max_per_parent
        kept_root = tables.kept and name == tables.root
        hashes = _hashes(table.drop_columns([link.key]) if kept_root else table, rows, units, unit, key)
        if kept_root:
            order = _order([unit, *hashes])
            alone = np.sort(order[_first_of_equals([unit[order], hashes[0][order], hashes[1][order]])])
            rows, parent, unit = rows[alone], parent[alone], unit[alone]
            hashes = (hashes[0][alone], hashes[1][alone])
        if name != tables.root and link.key is not None:
            own = _spelled(spellings[name], table, link.key)
            alone = _one_of_each(own, rows, unit, hashes)
            misfits[duplicates_of(name)] = len(np.unique(np.delete(unit, alone)))
            rows, parent, unit = rows[alone], parent[alone], unit[alone]
            hashes = (hashes[0][alone], hashes[1][alone])
        group = unit if name == tables.root else parent
        at = orders.get(name)
        begins = np.zeros(len(rows)) if at is None else np.nan_to_num(at[rows], nan=np.inf)
        order = _order([group, begins, *hashes])
        rows, parent, unit, group = rows[order], parent[order], unit[order], group[order]
        hashes = (hashes[0][order], hashes[1][order])
        stays = _stretch(group, bound, at is not None, units, unit, hashes, key)
        further = duplicates_of(name) if name == tables.root else beyond(name)
        misfits[further] = len(np.unique(unit[~stays]))
        rows, parent, unit, group = rows[stays], parent[stays], unit[stays], group[stays]
        del hashes, order, begins, stays
        first = _first_of_equals([group])
        place = _place_in_run(first)
        sizes = np.bincount(np.cumsum(first) - 1, minlength=0)[np.cumsum(first) - 1] if len(rows) else place
        step = np.full(len(rows), np.nan)
        if at is not None:
            step[1:] = np.diff(np.floor(at[rows]))
            step[first] = np.nan
        weight = tables.parts // np.maximum(1, np.bincount(unit, minlength=len(units)))[unit]
        kept[name] = Kept(rows, parent, unit, first, sizes - 1 - place, step, weight, misfits)
        if link.key is not None:
            keys[name] = _spelled(spellings[name], table, link.key).take(pa.array(rows))
    return kept


def _spelled(spelling: Spelling, table: pa.Table, column: str | None) -> pa.Array:
    """Ids as bytes; null where a row names nothing."""
    assert column is not None
    chunks = [spelling(chunk) for chunk in table.column(column).chunks]
    return pa.concat_arrays([pc.cast(chunk, pa.binary()) for chunk in chunks]) if chunks else pa.array([], pa.binary())


def _lacking(links: pa.Array, keys: pa.Array) -> int:
    """How many keys are named and not there."""
    named = pc.unique(links.drop_null())
    return len(named) - int(pc.sum(pc.is_in(named, value_set=keys)).as_py() or 0)


def _joined(links: pa.Array, keys: pa.Array) -> tuple[IntArray, IntArray]:
    """Rows whose link names a key, and the place of that key; a row once for each place that has its key."""
    coded = keys.dictionary_encode()
    places: IntArray = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    named: IntArray = np.asarray(
        pc.fill_null(pc.index_in(links, value_set=coded.dictionary, skip_nulls=True), -1).to_numpy(
            zero_copy_only=False
        ),
        dtype=np.int64,
    )
    order = np.argsort(places, kind="stable")
    begins, ends = (np.searchsorted(places[order], named, side=side) for side in ("left", "right"))
    found = np.where(named < 0, 0, ends - begins)
    rows = np.repeat(np.arange(len(named)), found)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(found) - found, found)
    return rows, order[begins[rows] + within]


def _one_of_each(
    names: pa.Array, rows: IntArray, unit: IntArray, hashes: tuple[npt.NDArray[np.uint64], ...]
) -> IntArray:
    """Of the rows of a unit with one key that with the smallest hash; rows without a key stay."""
    coded = names.take(pa.array(rows)).dictionary_encode()
    number: IntArray = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    nameless = number < 0
    number = np.where(nameless, len(coded.dictionary) + np.arange(len(number)), number)
    order = _order([unit, number, *hashes])
    return np.sort(order[_first_of_equals([unit[order], number[order]])])


def _stretch(
    group: IntArray,
    bound: int,
    ordered: bool,
    units: pa.Array,
    unit: IntArray,
    hashes: tuple[npt.NDArray[np.uint64], ...],
    key: bytes,
) -> npt.NDArray[np.bool_]:
    """Which of the sorted rows stay: at most `bound` of each group, contiguous, from the first on or, where they are in
    order, from where a keyed hash says."""
    first = _first_of_equals([group])
    number = np.cumsum(first) - 1
    place = _place_in_run(first)
    sizes = np.bincount(number) if len(group) else np.zeros(0, dtype=np.int64)
    begins = np.zeros(len(sizes), dtype=np.int64)
    if ordered:
        heads = np.flatnonzero(first)
        for crowded in np.flatnonzero(sizes > bound).tolist():
            # which parent it is, by what its rows are: the unit, and the least of their hashes
            members = slice(heads[crowded], heads[crowded] + sizes[crowded])
            least = min(zip(hashes[0][members].tolist(), hashes[1][members].tolist(), strict=True))
            said = f"{key.hex()}|{units[int(unit[heads[crowded]])].as_py().hex()}|{least[0]}|{least[1]}"
            drawn = int.from_bytes(hashlib.md5(said.encode(), usedforsecurity=False).digest(), "big")
            begins[crowded] = drawn % (int(sizes[crowded]) - bound + 1)
    stays: npt.NDArray[np.bool_] = (place >= begins[number]) & (place < begins[number] + bound)
    return stays


def _hashes(
    table: pa.Table, rows: IntArray, units: pa.Array, unit: IntArray, key: bytes
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The two halves of each row's hash, as numbers that compare like its bytes."""
    halves = np.empty((len(rows), 2), dtype=np.uint64)
    for begin in range(0, len(rows), AT_A_TIME):
        some, which = rows[begin : begin + AT_A_TIME], np.unique(unit[begin : begin + AT_A_TIME], return_inverse=True)
        texts = [_text(column.take(pa.array(some))) for column in table.columns]
        contents = zip(*texts, strict=True) if texts else iter([()] * len(some))
        spelled = [f"{key.hex()}|{name.hex()}|".encode() for name in units.take(pa.array(which[0])).to_pylist()]
        digests = bytearray()
        for number, values in zip(which[1].tolist(), contents, strict=True):
            said = spelled[number] + "|".join(values).encode().hex().encode()
            digests += hashlib.md5(said, usedforsecurity=False).digest()
        halves[begin : begin + len(some)] = np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 2)
    return halves[:, 0], halves[:, 1]


def _text(column: pa.ChunkedArray) -> list[str]:
    """Values as text, bytes in hexadecimal, which need not be text; nothing where there is none."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _text(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if "binary" in str(kind):
        return ["" if value is None else value.hex() for value in column.to_pylist()]
    texts: list[str] = pc.fill_null(pc.cast(column, pa.string()), "").to_pylist()
    return texts
