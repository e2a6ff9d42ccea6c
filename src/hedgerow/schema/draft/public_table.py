"""A table that the user asserts is public: its values and bounds may be read off its rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import TableError
from hedgerow.schema.arrays import moments, numbers, plain, texts
from hedgerow.schema.draft.declaration import Declaration, Findings

MOST_VALUES = 1_000
FEW_VALUES = 50
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_CODE = r"^0\d"


def read_public_table(batches: Iterable[pa.RecordBatch]) -> Findings:
    """What the rows show: bounds of numbers and dates, the values of categories, whether anything is missing."""
    seen: dict[str, _Seen] = {}
    for batch in batches:
        for name in batch.schema.names:
            seen.setdefault(name, _Seen()).look(batch.column(name))
    if not seen:
        raise TableError("no-rows", "a public table without rows says nothing.")
    return {name: column.declaration() for name, column in seen.items()}


class _Seen:
    """What has been seen of one column so far."""

    def __init__(self) -> None:
        self.rows = 0
        self.empty = False
        self.kinds: set[str] = set()
        self.low, self.high = np.inf, -np.inf
        self.whole = True
        self.values: set[str] = set()

    def look(self, column: pa.Array) -> None:
        array = plain(column)
        said = pc.drop_null(texts(array))
        said = said.filter(pc.not_equal(said, ""))
        self.empty |= len(said) < len(array)
        if len(said):
            self.rows += len(said)
            kind = _kind(array, said)
            self.kinds.add(kind)
            if kind in ("number", "date", "datetime"):
                self._bound((numbers if kind == "number" else moments)(array).values)
            if len(self.values) <= MOST_VALUES:
                self.values.update(pc.unique(said).to_pylist())

    def _bound(self, line: np.ndarray[Any, Any]) -> None:
        line = line[np.isfinite(line)]
        if len(line):
            self.low, self.high = min(self.low, float(line.min())), max(self.high, float(line.max()))
            self.whole &= bool((line == np.floor(line)).all())

    def declaration(self) -> Declaration:
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "category"
        declaration: Declaration = {"missing": True} if self.empty else {}
        if not self.rows or (kind != "category" and kind != "boolean" and self.low > self.high):
            return declaration
        if kind == "boolean":
            return {"type": "boolean", **declaration}
        if kind == "category":
            return {"type": "category", **self._known_values(), **declaration}
        if kind == "number":
            if self.whole:
                return {"type": "integer", "min": int(self.low), "max": int(self.high), **declaration}
            return {"type": "number", "min": self.low, "max": self.high, **declaration}
        low, high = (str(np.datetime64(int(bound), "s")) for bound in (self.low, self.high))
        if kind == "date":
            return {"type": "date", "min": low[:10], "max": high[:10], **declaration}
        return {"type": "datetime", "min": low, "max": high, **declaration}

    def _known_values(self) -> Declaration:
        """The values, unless they are too many, or look like names: most of them stand once."""
        many = len(self.values) > MOST_VALUES
        names = len(self.values) > FEW_VALUES and 2 * len(self.values) > self.rows
        return {} if many or names else {"values": sorted(self.values)}


def _kind(array: pa.Array, said: pa.Array) -> str:
    """Types where the file has them; for text, numbers or dates if every value is one and none begins with a zero."""
    held = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_boolean(held):
        return "boolean"
    if pa.types.is_timestamp(held):
        return "datetime"
    if pa.types.is_date(held):
        return "date"
    if not np.isnan(numbers(said).values).any():
        coded = pc.any(pc.match_substring_regex(said, _CODE)).as_py()
        return "category" if coded else "number"
    if pc.all(pc.match_substring_regex(said, _DATE)).as_py() and not np.isnan(moments(said).values).any():
        return "date"
    return "category"
