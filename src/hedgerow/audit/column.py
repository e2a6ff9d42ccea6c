"""`check_column`: the laws that every kind of column must keep, for our own and for those made elsewhere."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import io
import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.audit.replay import Violation
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import SchemaError
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.engine import Engine
from hedgerow.private.exact import SparseCounts
from hedgerow.schema import Schema
from hedgerow.schema.column import Column, Encoded

CANARY = "canary-4711-überall"
"""A value that no declaration holds, and that must turn up nowhere."""
ODD_TEXTS = (
    "", " ", "nan", "NaN", "inf", "-inf", "Infinity", "1e999", "-1e-999", "9" * 400,
    "+5", ".", "1.", ".5", "0x10", "1_0",
    "٣", "½", "NO", "no", "true", "06001", "6001", "-8", "NA", "other", "😀", "e\u0301",
    "\u0000", "\u2028", "'; --", "=cmd()",
    "2000-02-29", "1900-02-29", "2023-02-30", "0001-01-01", "9999-12-31", "2020-01-01T00:00:00Z", "2020-12-31T23:59:60",
    "2019-12-31T23:30:00-05:00", "0001-01-01T00:00:00+14:00", "2020-06-15 12:30", "24:00", "20200101", CANARY,
)  # fmt: skip
ODD_VALUES: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.int64(), (0, 1, -1, 39, 2**63 - 1, -(2**63), 6001)),
    (pa.uint64(), (0, 1, 39, 2**64 - 1)),
    (pa.int8(), (0, 1, -8, 39)),
    (pa.float64(), (0.0, -0.0, 39.0, 39.5, math.inf, -math.inf, math.nan, 1e300, 5e-324, -8.0)),
    (pa.float32(), (0.0, 0.1, 39.0, math.inf, math.nan)),
    (pa.bool_(), (True, False)),
    (pa.decimal128(20, 2), (Decimal("39.00"), Decimal("-8.00"), Decimal("123456789012345.67"))),
    (pa.date32(), (datetime.date(2000, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    (pa.date64(), (datetime.date(2000, 2, 29), datetime.date(1969, 12, 31))),
    (pa.timestamp("s"), (datetime.datetime(2000, 2, 29, 23, 59, 59), datetime.datetime(1, 1, 1))),
    (pa.timestamp("ns"), (datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),)),
    (pa.timestamp("us", "America/New_York"), (datetime.datetime(2019, 12, 31, 23, 30, tzinfo=datetime.UTC),)),
    (pa.timestamp("ms", "Nowhere/Land"), (datetime.datetime(2020, 1, 1),)),
    (pa.time32("s"), (datetime.time(12, 0),)),
    (pa.duration("s"), (datetime.timedelta(days=1),)),
    (pa.binary(), (b"39", b"\xff\xfe", b"")),
    (pa.large_string(), ("39", "yes", "")),
    (pa.string_view(), ("39", "yes", "")),
    (pa.dictionary(pa.int8(), pa.string()), ("39", "NA", "yes", "")),
    (pa.dictionary(pa.int32(), pa.int64()), (39, -8, 2**62)),
    (pa.list_(pa.int64()), ([1], [])),
    (pa.struct([("a", pa.int64())]), ({"a": 1},)),
    (pa.null(), ()),
)
DRAWS = 64
"""How often every cell is drawn from."""


def check_column(column: Column, inside: Any, outside: Any = ()) -> None:
    """Raise Violation unless a declared column keeps every law.

    `inside` holds some values that the declaration holds, `outside` some that it does not (Arrow arrays or lists). Its
    size follows from the declaration; every value has a cell, of its own row alone, and none raises; declared values
    come back from their cell, what is not declared goes where the layout says; files and databases give the same
    codes; the declaration reads back from YAML and from plain values; and no value turns up in anything it says.
    """
    held, strange = _array(inside), _array(outside)
    _check_layout(column)
    with _silence():
        _check_declared(column, held, strange)
        for array in (held, strange, *odd_arrays()):
            stays_in_its_cell(column, array, seed=0)
            coded_by_itself(column, array)
        _check_cells(column)
        _check_as_text(column, held)
    _check_declaration(column)
    _check_engines(column, held)
    _check_engines(column, pa.array(ODD_TEXTS[:-1], pa.string()))


def odd_arrays() -> Iterator[pa.Array]:
    """What a table may hold against all declarations: texts that are nearly numbers, far days, infinities, lists."""
    yield pa.array([*ODD_TEXTS, None], pa.string())
    for kind, values in ODD_VALUES:
        yield pa.array([*values, None], kind)
        yield pa.array([], kind)


def stays_in_its_cell(column: Column, array: pa.Array, seed: int) -> None:
    """Codes lie inside, and what comes back lies in the cell it came from."""
    codes, outside = _encoded(column, array)
    for attribute, code in zip(column.attributes("x"), codes, strict=True):
        _hold(len(code) == len(array), "there is one code for each value")
        _hold(bool(((code >= 0) & (code < attribute.size)).all()), "every value has a cell")
    _hold(len(outside) == len(array), "every value is declared or is not")
    decoded = _decoded(column, codes, seed)
    again, still_outside = _encoded(column, decoded)
    layout = column.layout
    kept, hidden = codes[0] < layout.values, codes[0] == layout.hidden
    for before, after in zip(codes, again, strict=True):
        _hold(bool((before[kept] == after[kept]).all()), "a declared value comes back from its own cell")
    _hold(bool((again[0][hidden] < layout.values).all()), "a hidden cell comes back as a declared value")
    _hold(not still_outside[kept | hidden].any(), "whatever comes back as a value is declared")
    null = np.asarray(decoded.is_null())
    same = again[0] == codes[0]
    _hold(bool((same | null)[~kept & ~hidden].all()), "a mark comes back as itself, or as null where the type lacks it")
    if not column.missing and not column.other:
        _hold(decoded.null_count == 0, "nulls come back only where they are declared")


def coded_by_itself(column: Column, array: pa.Array) -> None:
    """A row's code must not depend on the other rows, or a neighbour would move more than one row."""
    together, outside = _encoded(column, array)
    for index in range(len(array)):
        alone, misfit = _encoded(column, array.slice(index, 1))
        same = [code[0] for code in alone] == [code[index] for code in together] and misfit[0] == outside[index]
        _hold(same, "the code of a value depends on nothing but the value")


def _check_layout(column: Column) -> None:
    """Own cells, special values, marks, the other-cell, the hidden cell, in this order; labels for all of them."""
    layout, attributes = column.layout, column.attributes("x")
    _hold(attributes[0].name == "x", "the first attribute has the column's name")
    _hold(attributes[0].size == layout.size, "the first attribute has as many codes as the layout has cells")
    _hold(layout.marks == column.marks, "every mark of a missing value has a cell")
    ends = [layout.values + len(layout.marks)]
    for cell in (layout.other, layout.hidden):
        if cell is not None and cell >= layout.values:
            _hold(cell == ends[-1], "the other-cell and the hidden cell follow the marks")
            ends.append(cell + 1)
    _hold(layout.size == ends[-1], "every code of the layout stands for something")
    _hold(attributes[0].hidden == (layout.hidden is not None), "the attribute says whether its last code is hidden")
    sizes = [attribute.size for attribute in attributes]
    _hold([len(labels) for labels in column.labels()] == sizes, "every code has a label")
    _hold(isinstance(column.arrow_type, pa.DataType), "the column says which Arrow type comes back")


def _check_declared(column: Column, inside: pa.Array, outside: pa.Array) -> None:
    """Declared values have cells of their own; the others, and nulls, go where the layout says."""
    layout = column.layout
    codes, misfit = _encoded(column, inside)
    _hold(bool((codes[0] < layout.values).all()) and not misfit.any(), "a value that is declared has a declared cell")
    codes, misfit = _encoded(column, outside)
    _hold(bool(misfit.all()), "a value that is not declared is told from those that are")
    if layout.other is not None:
        _hold(bool((codes[0] == layout.other).all()), "what is not declared goes to the other-cell where there is one")
    else:
        elsewhere = (codes[0] < layout.values) | (codes[0] == layout.hidden)
        _hold(bool(elsewhere.all()), "what is not declared goes to a declared or to the hidden cell")
    codes, misfit = _encoded(column, pa.nulls(3, column.arrow_type))
    null = 0 if layout.null is None else layout.null
    _hold(bool((codes[0] == null).all()), "nulls go to their mark, else to the other-cell, else to the hidden cell")
    _hold(bool((misfit == (layout.mark("") is None)).all()), "a null is declared where its mark is")


def _check_cells(column: Column) -> None:
    """Every cell can be drawn from, the same way under the same seed, and what it holds is its own."""
    layout, attributes = column.layout, column.attributes("x")
    cells = np.repeat(np.arange(min(layout.size, 1 << 12)), DRAWS)
    rng = np.random.default_rng(1)
    codes = [cells, *(rng.integers(0, attribute.size, len(cells)) for attribute in attributes[1:])]
    narrow = [code.astype(attribute.dtype) for code, attribute in zip(codes, attributes, strict=True)]
    first, second = (_decoded(column, narrow, seed=2) for _ in range(2))
    _hold(first.equals(second), "the same seed draws the same values")
    again = _encoded(column, first).codes[0]
    own = cells < layout.values
    _hold(bool((again[own] == cells[own]).all()), "a value that is drawn from a cell lies in it")


def _check_as_text(column: Column, inside: pa.Array) -> None:
    """A table that was written as CSV reads back as the same codes."""
    codes = _encoded(column, inside).codes
    decoded = _decoded(column, codes, seed=3)
    again = _encoded(column, decoded.cast(pa.string())).codes[0]
    _hold(bool((again == codes[0]).all()), "a value that is written as text reads back as itself")


def _check_declaration(column: Column) -> None:
    schema = Schema(columns={"x": column})
    try:
        _hold(Schema.from_dict(schema.to_dict()) == schema, "the declaration reads back from plain values")
        _hold(Schema.parse(schema.to_yaml()) == schema, "the declaration reads back from YAML")
    except SchemaError as problem:
        raise Violation(f"the declaration does not read back: {problem}") from None
    said = " ".join([schema.to_yaml(), repr(column), *(label for labels in column.labels() for label in labels)])
    _hold(CANARY not in said, "nothing of a row turns up in what a column says")


def _check_engines(column: Column, array: pa.Array) -> None:
    """Every engine at hand counts the column as its own codes say."""
    encoding = Schema(columns={"x": column}).encoding()
    table = pa.table({"x": array})
    codes = _encoded(column, array).codes
    queries = [MarginalQuery(encoding.domain, (attribute.name,)) for attribute in encoding.domain]
    with tempfile.TemporaryDirectory() as folder:
        for engine in _engines(table, Path(folder)):
            engine.prepare(encoding)
            for query, exact, code in zip(queries, engine.count(queries), codes, strict=True):
                counted = exact.opened()
                if isinstance(counted, SparseCounts):
                    dense = np.zeros(query.cells, dtype=np.int64)
                    dense[counted.cells] = counted.counts
                    counted = dense
                law = f"{type(engine).__name__} gives a column the codes that its kind gives it"
                _hold(np.array_equal(counted, np.bincount(code, minlength=query.cells)), law)


def _engines(table: pa.Table, folder: Path) -> Iterator[Engine]:
    """The embedded engine, and a database where one is installed and can hold the type."""
    yield open_engine(table)
    if importlib.util.find_spec("duckdb") is None or importlib.util.find_spec("ibis") is None:
        return
    import duckdb

    with duckdb.connect(str(folder / "column.db")) as connection:
        connection.register("given", table)
        connection.execute("create table given_rows as select * from given")
    yield open_engine(f"duckdb://{folder}/column.db/given_rows")


def _encoded(column: Column, array: pa.Array) -> Encoded:
    try:
        return column.encode(array)
    except Exception as problem:
        what = f"{type(problem).__name__} was raised on an array of {array.type}"
        raise Violation(f"this column breaks a law: a column never raises on a value ({what}).") from None


def _decoded(column: Column, codes: Sequence[Any], seed: int) -> pa.Array:
    decoded = column.decode(codes, np.random.default_rng(seed))
    _hold(len(decoded) == len(codes[0]), "one value comes back for each code")
    return decoded.cast(column.arrow_type)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing may be printed or warned about while values are looked at: it could quote one."""
    printed = io.StringIO()
    quiet = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed)
    with warnings.catch_warnings(record=True) as warned, quiet[0], quiet[1]:
        warnings.simplefilter("always")
        yield
    _hold(not printed.getvalue() and not warned, "a column says nothing while it looks at values")


def _array(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(list(values))


def _hold(kept: bool, law: str) -> None:
    if not kept:
        raise Violation(f"this column breaks a law: {law}.")
