"""Contribution bounding: at most θ rows of every person stay, so that θ is enforced and never assumed.

Of a person with more than θ rows those with the θ smallest keyed hashes stay. The hash of a row is the MD5 of

    KEY|PERSON|CODE,CODE,…|DUPLICATE

KEY is the secret key in hexadecimal; PERSON the bytes that spell the person (`hedgerow.private.identity`), in
hexadecimal too; CODE the row's codes in domain order; DUPLICATE numbers a person's equal rows 0, 1, 2, … Digests are
compared as bytes, or as hexadecimal text, which gives the same order; hexadecimal is in lower case. Any engine that can
group and compute MD5 keeps the same rows under the same key; MD5 serves as a keyed shuffle here, nothing rests on its
being hard to collide.

Why this is stable: which rows of a person stay depends on the key and that person's own rows alone, so adding or
removing one person changes at most θ rows. Rows that name nobody are left out: they may be any number of one person's,
and together they are nobody's, so no θ would bound them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import Codes, IntArray
from hedgerow.private.identity import Spelling

BoolArray: TypeAlias = npt.NDArray[np.bool_]
PersonNumbers: TypeAlias = npt.NDArray[np.int32]
RowNumbers: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.int64]
"""As narrow as the last row of a batch lets them be."""

_PARTS = 64
_NARROW = 1 << 32
_TEXTS_AT_ONCE = 1 << 16


def fresh_key() -> bytes:
    """A secret key for one run."""
    return secrets.token_bytes(16)


class Persons:
    """The persons of a table, row by row, added batch by batch.

    They are kept in parts, every person in one, so that people are told apart and bounded one part at a time.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._spelled = Spelling()
        self._parts: list[list[tuple[RowNumbers, pa.Array]]] = [[] for _ in range(_PARTS)]

    def add(self, column: pa.Array) -> None:
        """Rows that name nobody are counted in `rows`, and are in no part."""
        names = self._spelled(column)
        rows = np.flatnonzero(names.is_valid().to_numpy(zero_copy_only=False)) + self.rows
        self.rows += len(names)
        names = names.drop_null()
        parts = _part_of(names)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=_PARTS))
        names = names.take(pa.array(order))
        numbers: RowNumbers = rows[order].astype(np.int64)
        if self.rows <= _NARROW:
            numbers = numbers.astype(np.uint32)
        for part, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if begin < end:
                self._parts[part].append((numbers[begin:end], names[begin:end]))

    def parts(self) -> Iterator[tuple[RowNumbers, PersonNumbers, pa.Array]]:
        """For each part: rows, the number of each row's person, and the spelling of each number."""
        for batches in self._parts:
            if batches:
                coded = pa.chunked_array([names for _, names in batches]).dictionary_encode()
                numbers = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])
                yield np.concatenate([rows for rows, _ in batches]), numbers, coded.chunks[-1].dictionary


class Holders:
    """Who holds which value of an open category, added batch by batch; each person and value once."""

    def __init__(self) -> None:
        self._spelled = Spelling()
        self._pairs: list[pa.Table] = []
        self._rows: Counter[str] = Counter()

    def add(self, values: pa.Array, persons: pa.Array | None) -> None:
        """`values` as text, null where missing; without persons every row is a person. Rows of nobody do not count."""
        if persons is None:
            counted = pc.value_counts(values.drop_null())
            self._rows.update(dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)))
            return
        pairs = pa.table({"person": self._spelled(persons), "value": pc.cast(values, pa.large_string())})
        self._pairs.append(pairs.drop_null().group_by(["person", "value"]).aggregate([]))

    def per_value(self, values_per_person: int, key: bytes) -> Mapping[str, int]:
        """The number of people for each value. Of a person with more values those with the smallest hashes count."""
        if not self._pairs:
            return self._rows
        pairs = pa.concat_tables(self._pairs).group_by(["person", "value"]).aggregate([])
        numbers = pairs["person"].combine_chunks().dictionary_encode().indices.to_numpy()
        crowded = np.flatnonzero((np.bincount(numbers) > values_per_person)[numbers])
        kept = np.ones(len(numbers), dtype=bool)
        kept[crowded] = False
        hashes = [
            hashlib.md5(f"{key.hex()}|{person.hex()}|{value}".encode(), usedforsecurity=False).digest()
            for person, value in zip(
                *(pairs[name].take(crowded).to_pylist() for name in ("person", "value")), strict=True
            )
        ]
        order = sorted(range(len(crowded)), key=lambda index: (numbers[crowded[index]], hashes[index]))
        ordered = crowded[np.array(order, dtype=np.int64)]
        kept[ordered[_place_in_run(_first_of_equals([numbers[ordered]])) < values_per_person]] = True
        return Counter(pairs["value"].filter(pa.array(kept)).to_pylist())


def kept_rows(persons: Persons, columns: Sequence[Codes], rows_per_person: int, key: bytes) -> BoolArray:
    """Which rows stay. `columns` are the codes of all attributes, in domain order."""
    kept = np.zeros(persons.rows, dtype=bool)
    for rows, numbers, names in persons.parts():
        in_question = (np.bincount(numbers) > rows_per_person)[numbers]
        kept[rows[~in_question]] = True
        rows, numbers = rows[in_question], numbers[in_question]
        kept[_smallest(rows, numbers, names, columns, rows_per_person, key)] = True
    return kept


def _part_of(names: pa.Array) -> npt.NDArray[np.uint8]:
    """A number below _PARTS that follows from each spelling: its length and last eight bytes, mixed."""
    _, offsets, data = names.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[names.offset : names.offset + len(names) + 1]
    letters = np.frombuffer(data or b"", dtype=np.uint8)
    begins, ends = ends[:-1], ends[1:]
    mixed = (ends - begins).astype(np.uint32)
    for back in range(1, 9):
        inside = ends - back >= begins
        mixed *= np.uint32(31)
        mixed[inside] += letters[ends[inside] - back]
    return (mixed * np.uint32(2_654_435_761) >> np.uint32(24)).astype(np.uint8) % np.uint8(_PARTS)


def _smallest(
    rows: RowNumbers,
    numbers: PersonNumbers,
    names: pa.Array,
    columns: Sequence[Codes],
    rows_per_person: int,
    key: bytes,
) -> RowNumbers:
    """Of these rows of whole persons, the `rows_per_person` with the smallest hashes of each."""
    order = _order([numbers, *(codes[rows] for codes in columns)])
    rows, numbers = rows[order], numbers[order]
    duplicates = _place_in_run(_first_of_equals([numbers, *(codes[rows] for codes in columns)]))
    order = _order([numbers, *_hashes(rows, numbers, names, columns, duplicates, key)])
    rows, numbers = rows[order], numbers[order]
    return rows[_place_in_run(_first_of_equals([numbers])) < rows_per_person]


def _order(keys: Sequence[npt.NDArray[Any]]) -> IntArray:
    """The order that sorts by the first key, then the second, and so on."""
    return np.lexsort(tuple(reversed(keys)))


def _first_of_equals(keys: Sequence[npt.NDArray[Any]]) -> BoolArray:
    """Where a sorted sequence differs from its predecessor."""
    first = np.zeros(len(keys[0]), dtype=bool)
    first[:1] = True
    for values in keys:
        first[1:] |= values[1:] != values[:-1]
    return first


def _place_in_run(first: BoolArray) -> IntArray:
    """0, 1, 2, … from each first one on."""
    indices = np.arange(len(first))
    return indices - np.maximum.accumulate(np.where(first, indices, 0))


def _hashes(
    rows: RowNumbers,
    numbers: PersonNumbers,
    names: pa.Array,
    columns: Sequence[Codes],
    duplicates: IntArray,
    key: bytes,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The two halves of each row's hash, as numbers that compare like its bytes."""
    digests = bytearray()
    spelled = pa.array([name.hex() for name in names.to_pylist()], pa.string())
    for begin in range(0, len(rows), _TEXTS_AT_ONCE):
        part = slice(begin, begin + _TEXTS_AT_ONCE)
        codes = [_spelled(column[rows[part]]) for column in columns]
        written = pc.binary_join_element_wise(
            pa.scalar(key.hex()),
            pc.take(spelled, pa.array(numbers[part])),
            pc.binary_join_element_wise(*codes, ","),
            _spelled(duplicates[part]),
            "|",
        )
        for text in pc.cast(written, pa.binary()).to_pylist():
            digests += hashlib.md5(text, usedforsecurity=False).digest()
    halves = np.frombuffer(bytes(digests), dtype=">u8").reshape(-1, 2).astype(np.uint64)
    return halves[:, 0], halves[:, 1]


def _spelled(integers: npt.NDArray[Any]) -> pa.Array:
    return pc.cast(pa.array(integers), pa.string())
