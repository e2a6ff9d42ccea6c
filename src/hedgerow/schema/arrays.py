"""Arrow arrays of any type, as numbers, moments or text. Nothing here raises on an odd value.

Each function maps a value by itself: what becomes of one row never depends on another row, which is what keeps
the encoding of a table stable when a person is added or removed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import IntArray

BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.float64]
CodeArray: TypeAlias = npt.NDArray[np.integer[Any]]
"""Codes as wide as they happen to be."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
_EPOCH = datetime.datetime(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


class Reading(NamedTuple):
    """Numbers, NaN where there is none; `empty` tells what was left blank from what cannot be read."""

    values: FloatArray
    empty: BoolArray


def numbers(array: pa.Array) -> Reading:
    """Numbers of any Arrow type, or text that spells one: "39", 39 and 39.0 are the same."""
    return _read(array, _numbers_of_text, _numbers_of_typed)


def moments(array: pa.Array) -> Reading:
    """Seconds since 1970 of dates, timestamps or ISO text; a moment with a time zone is taken in UTC."""
    return _read(array, _moments_of_text, _moments_of_typed)


def texts(array: pa.Array) -> pa.Array:
    """Every value as text, null where there is none: integral numbers without a point, dates in ISO form."""
    array = plain(array)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return pc.take(texts(array.dictionary), array.indices)
    if is_text(kind):
        return array
    if pa.types.is_floating(kind):
        return _text_of_floats(_floats(array))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_timestamp(kind):
        return pc.cast(array.view(pa.timestamp(kind.unit)), pa.string())  # without its zone: in UTC
    if pa.types.is_date(kind):
        return pc.cast(array, pa.string())
    return pa.nulls(len(array), pa.string())


def plain(array: pa.Array) -> pa.Array:
    """One contiguous array without extension type, run-length encoding, views or bytes that are meant as text."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_string_view(array.type):
        return pc.cast(array, pa.large_string())
    return _text_of_binary(array) if _is_binary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def nulls(array: pa.Array) -> BoolArray:
    """Where the array is null."""
    if array.null_count == 0:
        return np.zeros(len(array), dtype=bool)
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=bool)


def by_distinct(array: pa.Array, read: Callable[[pa.Array], Reading]) -> Reading:
    """Read each distinct value once. `read` must map values one by one, so this changes nothing but the time."""
    coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return _take(read(coded.dictionary), coded.indices)


def _read(array: pa.Array, of_text: Callable[..., Reading], of_typed: Callable[..., FloatArray | None]) -> Reading:
    array = plain(array)
    kind = array.type
    if pa.types.is_dictionary(kind):
        return by_distinct(array, lambda values: _read(values, of_text, of_typed))
    if is_text(kind):
        return of_text(array)
    values = of_typed(array)
    if values is None:  # a type that cannot hold what was asked for
        return Reading(np.full(len(array), np.nan), nulls(array))
    empty = np.isnan(values) if pa.types.is_floating(kind) else nulls(array)
    return Reading(values, empty)


def _take(reading: Reading, indices: pa.Array) -> Reading:
    missing = nulls(indices)
    taken = np.asarray(pc.fill_null(indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    if not len(reading.values):
        return Reading(np.full(len(taken), np.nan), np.ones(len(taken), dtype=bool))
    values, empty = reading.values[taken], reading.empty[taken]
    values[missing] = np.nan
    empty[missing] = True
    return Reading(values, empty)


def _floats(array: pa.Array) -> FloatArray:
    """A numeric array as float64; integers beyond 2⁵³ are rounded, far outside any bound that may be declared."""
    floats = pc.cast(array, pa.float64(), safe=False)
    values: FloatArray = np.array(floats.to_numpy(zero_copy_only=False), dtype=np.float64)
    return values


def _numbers_of_typed(array: pa.Array) -> FloatArray | None:
    if pa.types.is_boolean(array.type):
        return _floats(pc.cast(array, pa.uint8()))
    return _floats(array) if is_number(array.type) else None


def _numbers_of_text(array: pa.Array) -> Reading:
    try:
        values = _floats(pc.cast(array, pa.float64()))
    except pa.ArrowInvalid:  # some text is not a number as it stands: look at each one
        trimmed = pc.utf8_trim_whitespace(array)
        spelled = pc.match_substring_regex(trimmed, _NUMBER)
        values = _floats(pc.cast(pc.if_else(spelled, trimmed, None), pa.float64()))
    return Reading(values, _blank(array, values))


def _blank(array: pa.Array, values: FloatArray) -> BoolArray:
    """Of the texts without a value, those that say nothing: null, spaces, or the word nan."""
    empty = np.isnan(values)
    if empty.any():
        indices = np.flatnonzero(empty)
        trimmed = pc.utf8_lower(pc.utf8_trim_whitespace(pc.take(array, pa.array(indices))))
        says_nothing = pc.fill_null(pc.is_in(trimmed, pa.array(["", "nan"], trimmed.type)), False)
        empty[indices] = np.asarray(says_nothing.to_numpy(zero_copy_only=False)) | nulls(trimmed)
    return empty


def _moments_of_typed(array: pa.Array) -> FloatArray | None:
    kind = array.type
    if pa.types.is_date32(kind):
        return _whole_seconds(array.view(pa.int32()), 1) * _DAY
    if pa.types.is_date64(kind):
        return _whole_seconds(array.view(pa.int64()), 1_000)
    if pa.types.is_timestamp(kind):
        return _whole_seconds(array.view(pa.int64()), _PER_SECOND[kind.unit])
    return None


def _whole_seconds(ticks: pa.Array, per_second: int) -> FloatArray:
    """Ticks divided exactly, rounded down; NaN where null."""
    whole = pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False) // per_second
    values: FloatArray = whole.astype(np.float64)
    values[nulls(ticks)] = np.nan
    return values


def _moments_of_text(array: pa.Array) -> Reading:
    return by_distinct(array, _moments_of_distinct)


def _moments_of_distinct(array: pa.Array) -> Reading:
    values = np.array([moment(text) for text in array.to_pylist()], dtype=np.float64)
    return Reading(values, _blank(array, values))


def moment(text: str | None) -> float:
    """Seconds since 1970 of an ISO date or date-time; NaN if the text is neither."""
    try:
        read = datetime.datetime.fromisoformat((text or "").strip())
        if read.tzinfo is not None:
            read = read.astimezone(datetime.UTC).replace(tzinfo=None)
        return (read.replace(microsecond=0) - _EPOCH).total_seconds()
    except (ValueError, OverflowError):
        return float("nan")


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def _text_of_binary(array: pa.Array) -> pa.Array:
    """UTF-8 bytes as text; bytes that are not UTF-8 are kept apart as a mark that no declaration holds."""
    try:
        return pc.cast(pc.cast(array, pa.binary()), pa.string())
    except pa.ArrowInvalid:
        return pa.array([_utf8(value) for value in array.to_pylist()], pa.string())


def _utf8(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", errors="replace")


def _text_of_floats(values: FloatArray) -> pa.Array:
    """39.0 is "39"; NaN is null."""
    text = pc.cast(pa.array(values), pa.string())
    whole = np.isfinite(values) & (np.abs(values) < 2.0**53)
    whole[whole] = values[whole] == np.floor(values[whole])
    integers: IntArray = np.where(whole, values, 0).astype(np.int64)
    spelled: Any = pc.if_else(pa.array(whole), pc.cast(pa.array(integers), pa.string()), text)
    return pc.if_else(pa.array(np.isnan(values)), None, spelled)
