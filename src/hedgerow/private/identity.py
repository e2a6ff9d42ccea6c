"""Who is who: the ids of a person column, spelled by value. One spelling for a person, one person for a spelling.

θ rows are kept of whoever is told apart here. A person with two spellings would keep 2θ rows; of two persons with one
spelling, either could move the other's rows. So an id is spelled by what it is, never by the type that holds it:

| a column of …                                 | two ids are one person if …                   | spelling         |
|-----------------------------------------------|-----------------------------------------------|------------------|
| text, bytes                                   | their bytes are equal (text in UTF-8)         | those bytes      |
| whole numbers, decimals, whole floating-point | the numbers are equal: 7, 7.0, 7.00; −0 and 0 | 7, -7, 7.25      |
| days, moments without a time zone             | they are one point of the calendar; a day is  | seconds of 1970, |
|                                               | its midnight                                  | nine decimals    |
| moments with a time zone                      | they are one instant, in whatever zones       | the same, in UTC |
| UUIDs                                         | they are equal                                | their text       |
| bytes of a fixed length                       | they are equal                                | those bytes      |

Text is what is written: "7", "7.0" and "007" in a CSV file are three texts, "Ann" and "ann" two. A column of a database
whose collation holds such texts equal is refused: its keeper would count one person, and we two. Null, NaN and text of
nothing but spaces name nobody.

Ids of different lines of the table cannot be compared ("7" and 7; a local time and an instant), so a column that holds
both in different files is refused. So is a type that is not in the table, booleans among them, and a floating-point
number with a fraction, which is another number in every width. The engines in databases spell alike in SQL, or refuse
(`hedgerow.private.engines.sql.database`). All of this happens before anything is spent.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import TableError

TEXT = "text or bytes"
NUMBERS = "numbers"
CALENDAR = "days or moments without a time zone"
INSTANTS = "moments with a time zone"
UUIDS = "UUIDs"
FIXED = "bytes of a fixed length"

_DAY = 86_400
_NANO = 1_000_000_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": _NANO}
_EPOCH = datetime.datetime(1970, 1, 1)
_INTEGERS = 2.0**63


class Spelling:
    """Spells one column, batch by batch; ids of all batches can be compared, or it refuses."""

    def __init__(self) -> None:
        self._kind: str | None = None

    def __call__(self, column: pa.Array) -> pa.Array:
        """The bytes that spell each row's person; null where a row names nobody."""
        kind = _kind(column.type)
        if kind is not None:
            self._kind = self._kind or kind
            if kind != self._kind:
                raise mixed(self._kind, kind)
        names = _spelled(column)
        return names if kind in (NUMBERS, CALENDAR, INSTANTS) else _without_blanks(names)


def spelled_objects(values: Iterable[Any], kinds: list[str] | None = None) -> pa.Array:
    """The same for Python objects, each of a type of its own; None where there is none.

    `kinds` is what the values before these were compared by, and grows.
    """
    kinds = [] if kinds is None else kinds
    names: list[bytes | None] = []
    for value in values:
        name = None
        if value is not None:
            kind, name = _of_object(value)
            if kind not in kinds:
                kinds.append(kind)
            if len(kinds) > 1:
                raise mixed(*kinds)
        names.append(name)
    return _without_blanks(pa.array(names, pa.binary()))


def mixed(one: str, other: str) -> TableError:
    return TableError(
        "mixed-person-types",
        f"the column that names a person holds {one} in one place and {other} in another; whether two of them are one "
        "person cannot be told. Hint: give the column one type everywhere.",
    )


def unnamable(kind: object) -> TableError:
    return TableError(
        "person-type",
        f'the column that names a person has the type "{kind}"; it must hold text, bytes, numbers, dates or moments.',
    )


def not_whole() -> TableError:
    return TableError(
        "person-not-whole",
        "the column that names a person holds floating-point numbers that are not whole; rounding makes them other "
        "numbers elsewhere. Hint: give ids as text, whole numbers or decimals.",
    )


def _kind(kind: pa.DataType) -> str | None:
    """The line of the table above that a type belongs to; None for nulls, which go with any."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return UUIDS
        if _kind(kind.storage_type) in (TEXT, FIXED):
            return f"values of {kind.extension_name}"  # what they are compared with is known to their makers alone
        raise unnamable(kind)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return _kind(kind.value_type)
    if types.is_fixed_size_binary(kind):
        return FIXED
    if "binary" in str(kind) or "string" in str(kind):
        return TEXT
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBERS
    if types.is_date(kind) or types.is_timestamp(kind):
        return INSTANTS if types.is_timestamp(kind) and kind.tz else CALENDAR
    if types.is_null(kind):
        return None
    raise unnamable(kind)


def _spelled(column: pa.Array) -> pa.Array:
    kind = column.type
    types = pa.types
    if isinstance(column, pa.ExtensionArray):
        if kind.extension_name == "arrow.uuid":
            return _each(column.storage, lambda value: str(uuid.UUID(bytes=value)).encode())
        return _spelled(column.storage)
    if types.is_dictionary(kind):
        return pc.take(_spelled(column.dictionary), column.indices)
    if types.is_run_end_encoded(kind):
        return _spelled(pc.run_end_decode(column))
    if types.is_floating(kind):
        return _of_floats(column)
    if types.is_decimal(kind) and kind.scale != 0:
        return _each(column, _of_decimal)
    if types.is_integer(kind) or types.is_decimal(kind):
        return pc.cast(pc.cast(column, pa.string()), pa.binary())
    if types.is_date32(kind):
        return _of_ticks(pc.multiply(pc.cast(column.view(pa.int32()), pa.int64()), _DAY), 1)
    if types.is_date64(kind):
        return _of_ticks(column.view(pa.int64()), 1_000)
    if types.is_timestamp(kind):
        return _of_ticks(column.view(pa.int64()), _PER_SECOND[kind.unit])
    return pc.cast(column, pa.binary())


def _without_blanks(names: pa.Array) -> pa.Array:
    """Spaces alone are how a table of fixed widths writes nothing."""
    return pc.if_else(pc.match_substring_regex(names, "^ *$"), None, names)


def _each(column: pa.Array, spell: Callable[[Any], bytes]) -> pa.Array:
    return pa.array([None if value is None else spell(value) for value in column.to_pylist()], pa.binary())


def _of_decimal(value: Decimal) -> bytes:
    """All digits, and none behind the point that says nothing."""
    text = format(value, "f") if value else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def _of_floats(column: pa.Array) -> pa.Array:
    """Exactly the number that each one is; beyond 2⁶³ digit by digit."""
    values = np.asarray(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    nobody = np.isnan(values)
    if not (nobody | (np.isfinite(values) & (np.floor(values) == values))).all():
        raise not_whole()
    large = np.abs(values) >= _INTEGERS
    names = pc.cast(pa.array(np.where(nobody | large, 0, values).astype(np.int64), mask=nobody), pa.string())
    if large.any():
        exact = pa.array([str(int(value)) for value in values[large].tolist()])
        names = pc.replace_with_mask(names, pa.array(large), exact)
    return pc.cast(names, pa.binary())


def _of_ticks(ticks: pa.Array, per_second: int) -> pa.Array:
    """Seconds, rounded down, and nanoseconds: the same text in every unit."""
    none = np.asarray(pc.is_null(ticks).to_numpy(zero_copy_only=False))
    whole, rest = np.divmod(pc.fill_null(ticks, 0).to_numpy(zero_copy_only=False), per_second)
    seconds = pc.cast(pa.array(whole, mask=none), pa.string())
    nanoseconds = pc.utf8_slice_codeunits(pc.cast(pa.array(rest * (_NANO // per_second) + _NANO), pa.string()), 1)
    return pc.cast(pc.binary_join_element_wise(seconds, nanoseconds, "."), pa.binary())


def _of_object(value: Any) -> tuple[str, bytes]:
    if isinstance(value, str):
        return TEXT, value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray):
        return TEXT, bytes(value)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return NUMBERS, str(int(value)).encode()
    if isinstance(value, Decimal) and value.is_finite():
        return NUMBERS, _of_decimal(value)
    if isinstance(value, float | np.floating):
        if not np.isfinite(value) or value != int(value):
            raise not_whole()
        return NUMBERS, str(int(value)).encode()
    if isinstance(value, datetime.datetime):
        zone = value.utcoffset()
        since = value.replace(tzinfo=None) - (zone or datetime.timedelta()) - _EPOCH
        nanoseconds = since.microseconds * 1_000 + getattr(since, "nanoseconds", 0)
        return (CALENDAR if zone is None else INSTANTS), _of_moment(since.days * _DAY + since.seconds, nanoseconds)
    if isinstance(value, datetime.date):
        return CALENDAR, _of_moment((value - _EPOCH.date()).days * _DAY, 0)
    if isinstance(value, uuid.UUID):
        return UUIDS, str(value).encode()
    raise unnamable(type(value).__name__)


def _of_moment(seconds: int, nanoseconds: int) -> bytes:
    return f"{seconds}.{nanoseconds:09}".encode()
