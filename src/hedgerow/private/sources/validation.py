"""Arrow data from elsewhere, looked at in full before anything computes on it.

Arrow's own computations trust offsets, lengths and dictionary indices: one that points outside its buffer reads memory
that is not there, and the process dies. Whoever made the data is at fault then, and hears it before anything is spent.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import TableError


def validated(batch: pa.RecordBatch, what: str) -> pa.RecordBatch:
    """The batch, if each of its columns holds what its type promises.

    Columns are named because the schema declares them; what Arrow says may quote a value, so it is not passed on.
    """
    names = batch.schema.names
    return pa.RecordBatch.from_arrays([_checked(*each, what) for each in zip(names, batch.columns, strict=True)], names)


def _checked(name: str, array: pa.Array, what: str) -> pa.Array:
    # a date64 that holds a time of day is off its own standard, which hurts nobody: it is read as the moment it is
    looked_at = array.view(pa.timestamp("ms")) if pa.types.is_date64(array.type) else array
    try:
        looked_at.validate(full=True)
    except pa.ArrowException as problem:
        if "UTF8" in str(problem):
            raise TableError("not-utf8", f'the column "{name}" of {what} holds text that is not UTF-8.') from None
        raise TableError("damaged-column", f'the column "{name}" of {what} is damaged.') from None
    return _without_hidden_views(array)


def _without_hidden_views(array: pa.Array) -> pa.Array:
    """The same values, and nothing behind a null: Arrow does not validate the view there, but casts follow it."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, _without_hidden_views(array.storage))
    if pa.types.is_dictionary(kind) and _is_view(kind.value_type):
        values = _without_hidden_views(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
    if not _is_view(kind) or not array.null_count:
        return array
    validity, views, *texts = array.buffers()
    words = 2 * (array.offset + len(array))
    seen = np.frombuffer(views, dtype=np.uint64, count=words).reshape(-1, 2).copy()
    seen[array.offset :][np.asarray(pc.is_null(array))] = 0
    return pa.Array.from_buffers(
        kind, len(array), [validity, pa.py_buffer(seen), *texts], array.null_count, array.offset
    )


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))
