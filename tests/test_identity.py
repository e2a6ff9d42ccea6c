"""One person is one person: ids are told apart by value, whatever type, file, frame or engine holds them."""

import datetime as dt
import itertools
import uuid
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from databases import DuckDBFiles, PostgresServer, SparkFolders
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import TableError
from hedgerow.private.bounding import Holders
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.identity import Spelling
from hedgerow.private.ledger import Ledger
from hedgerow.schema import Schema

KEY = b"a key for tests"
IN_PLACE, HERE = 0, 4 << 30
"""Memory that makes rows stay where they are, or come here."""
ROWS = 1 << 12
UTC = dt.UTC
BERLIN = dt.timezone(dt.timedelta(hours=1))


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory):
    return DuckDBFiles(tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    session = SparkFolders(tmp_path_factory.mktemp("spark"))
    yield session
    session.close()


# The reference: ids as Python values that compare like what they stand for.


def who(value):
    """Whom an id names: equal for one person, different for two, None for nobody."""
    if value is None or value != value:
        return None
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return value if value.strip(b" ") else None
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            return "instant", value.astimezone(UTC)
        return "calendar", value
    if isinstance(value, dt.date):
        return "calendar", dt.datetime.combine(value, dt.time())
    return value if isinstance(value, uuid.UUID) else Fraction(value)


def check(kept, values, theta):
    """The rows that were kept are those of a reference that compares ids as values; θ of everyone who has as many."""
    persons = [who(value) for value in values]
    had = Counter(person for person in persons if person is not None)
    stayed = Counter(persons[row] for row in kept)
    assert None not in stayed
    assert stayed == {person: min(theta, rows) for person, rows in had.items()}


def schema(theta, person="id"):
    return Schema.parse(
        f"person: {person}\nmax_rows_per_person: {theta}\ncolumns: {{row: {{type: code, size: {ROWS}}}}}"
    )


def kept_by(engine, theta, person="id"):
    """The rows that an engine keeps, by their numbers."""
    encoding = schema(theta, person).encoding()
    engine.prepare(encoding)
    counts = next(engine.count([MarginalQuery(encoding.domain, ("row",))])).opened()
    assert counts.max(initial=0) <= 1
    return frozenset(np.flatnonzero(counts).tolist())


def kept(table, theta, memory=HERE, person="id"):
    return kept_by(open_engine(table, bounding_key=KEY, memory=memory), theta, person)


class Batches:
    """A table whose batches may differ in the type of their ids, as the files of a folder may."""

    def __init__(self, columns):
        self.columns = columns

    def header(self):
        return ("id", "row")

    def batches(self, columns):
        first = 0
        for ids in self.columns:
            rows = pa.array(range(first, first + len(ids)), pa.int64())
            first += len(ids)
            yield pa.record_batch({"id": ids, "row": rows}).select(columns)


# Every type that a person column can have, by what its ids can be compared with.

NUMBERS = [0, 1, 7, -7, 100, 127, 2**24, 2**31, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**64 - 1, 10**25, -(10**25)]
NUMBERS += [Decimal("7.25"), Decimal("-0.5"), Decimal("1e-9"), Decimal("100.10")]
TEXTS = ["ann", "Ann", "é", "e\u0301", "x|1", "x", "7", "7.0", "007", "a ", " a", "\n", "0", "", " ", "   "]
BYTES = [*(text.encode() for text in TEXTS), b"\xff", b"\xfe", b"\xff\xfe", b"\xef\xbf\xbd", b"ann\0"]
CALENDAR = [
    dt.datetime(1970, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 500_000),
    dt.datetime(1969, 12, 31, 23, 59, 59),
    dt.datetime(2020, 2, 29),
    dt.datetime(2020, 2, 29, 12, 30),
    dt.datetime(2020, 2, 29, 12, 30, 0, 1),
    dt.datetime(2020, 2, 29, 12, 30, 0, 1_000),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31),
]
INSTANTS = [moment.replace(tzinfo=UTC) for moment in CALENDAR[:-2]] + [dt.datetime(2020, 2, 29, tzinfo=BERLIN)]
UNITS = ("s", "ms", "us", "ns")
KINDS = {
    "numbers": (
        NUMBERS,
        [
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
            *(pa.float16(), pa.float32(), pa.float64()),
            *(pa.decimal32(9, 2), pa.decimal64(18, 0), pa.decimal128(38, 0), pa.decimal128(38, 10)),
            *(pa.decimal256(70, 20), pa.decimal128(8, -2)),
        ],
    ),
    "text": (
        BYTES,
        [
            *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()),
            *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.binary())),
            pa.run_end_encoded(pa.int32(), pa.string()),
        ],
    ),
    "calendar": (CALENDAR, [pa.date32(), pa.date64(), *map(pa.timestamp, UNITS)]),
    "instants": (INSTANTS, [pa.timestamp(unit, zone) for unit in UNITS for zone in ("UTC", "Europe/Berlin", "+05:30")]),
    "uuids": ([uuid.UUID(int=number) for number in (0, 1, 2**127)], [pa.uuid()]),
    "bytes of a fixed length": ([b"ab", b"a\0", b"\xff\xff", b"  "], [pa.binary(2)]),
}
NAN = float("nan")


def column(values, kind):
    """An Arrow array of ids, none of them rounded; None where the type cannot hold them."""
    try:
        if pa.types.is_date64(kind):
            array = pa.array(values, pa.timestamp("ms")).view(pa.int64()).view(kind)  # date64 can hold a time of day
        elif pa.types.is_run_end_encoded(kind):
            array = pa.compute.run_end_encode(column(values, kind.value_type), kind.run_end_type)
        elif pa.types.is_dictionary(kind):
            array = column(values, kind.value_type).dictionary_encode().cast(kind)
        elif kind == pa.uuid():
            array = pa.array([value and value.bytes for value in values], pa.binary(16)).cast(kind)
        elif "string" in str(kind):
            array = pa.array([value and value.decode() for value in values], pa.string()).cast(kind)
        elif pa.types.is_floating(kind):
            array = pa.array([value if value is None else float(value) for value in values], kind)
        else:
            array = pa.array(values, kind)
    except (pa.ArrowInvalid, UnicodeDecodeError, OverflowError, AttributeError):
        return None
    return array


def holds(kind, value):
    """Whether a type holds an id exactly."""
    if pa.types.is_run_end_encoded(kind):
        return holds(kind.value_type, value)
    array = column([value], kind)
    if array is None or (pa.types.is_floating(kind) and value % 1):
        return False
    if pa.types.is_date64(kind):
        array = array.view(pa.int64()).view(pa.timestamp("ms"))
    try:
        return who(array.to_pylist()[0]) == who(value)
    except (ValueError, OverflowError):
        return False


POOLS = {
    (name, kind): [value for value in values if holds(kind, value)]
    for name, (values, kinds) in KINDS.items()
    for kind in kinds
}


@st.composite
def parts(draw, of=None):
    """The name of a kind, and parts of a table: a type of that kind and ids that it holds."""
    name = draw(st.sampled_from(list(KINDS))) if of is None else of
    found = []
    for kind in draw(st.lists(st.sampled_from(KINDS[name][1]), min_size=1, max_size=3)):
        nobody = [None, NAN] if pa.types.is_floating(kind) else [None]
        found.append((kind, draw(st.lists(st.sampled_from([*POOLS[name, kind], *nobody]), max_size=14))))
    return name, found


@given(parts(), st.integers(1, 3))
def test_ids_of_every_type_and_of_mixed_types_are_told_apart_by_value(drawn, theta):
    _, found = drawn
    values = [value for _, ids in found for value in ids]
    engine = ArrowEngine(Batches([column(ids, kind) for kind, ids in found]), bounding_key=KEY)
    check(kept_by(engine, theta), values, theta)


@given(parts(), st.data())
def test_whom_a_part_names_does_not_depend_on_its_type(drawn, data):
    """So any engine keeps the same rows under the same key, whichever of the types it reads."""
    name, found = drawn
    kind, ids = found[0]
    ids = [value for value in ids if value == value]
    able = [other for other in KINDS[name][1] if {*ids} <= {None, *POOLS[name, other]}]
    other = data.draw(st.sampled_from(able))
    assert Spelling()(column(ids, kind)).equals(Spelling()(column(ids, other)))


@given(parts(), st.data())
def test_a_slice_is_spelled_as_it_stands(drawn, data):
    kind, ids = drawn[1][0]
    begin = data.draw(st.integers(0, len(ids)))
    array = column(ids, kind)
    assert Spelling()(array.slice(begin)).equals(Spelling()(array).slice(begin))


@given(st.lists(parts(), min_size=2, max_size=2, unique_by=lambda drawn: drawn[0]))
def test_what_cannot_be_compared_is_refused(drawn):
    (_, first), (_, second) = drawn
    engine = ArrowEngine(Batches([column(ids, kind) for kind, ids in (*first, *second)]), bounding_key=KEY)
    with pytest.raises(TableError, match=r"in one place and .* in another; .* Nothing was spent"):
        kept_by(engine, 1)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts(), st.integers(1, 3))
def test_the_files_of_a_folder_may_hold_ids_in_different_types(tmp_path_factory, drawn, theta):
    folder = tmp_path_factory.mktemp("folder")
    values = []
    for kind, ids in drawn[1]:
        if pa.types.is_date64(kind):
            ids = [as_day(value) for value in ids]
        rows = pa.array(range(len(values), len(values) + len(ids)))
        try:
            pq.write_table(pa.table({"id": column(ids, kind), "row": rows}), folder / f"{len(values)}.parquet")
        except pa.ArrowNotImplementedError:  # not a type of Parquet's
            (folder / f"{len(values)}.parquet").unlink(missing_ok=True)
        else:
            values += ids
    if values:
        check(kept(folder, theta), values, theta)


def as_day(value):
    """Parquet has no date64: it keeps the day."""
    return None if value is None else dt.datetime.combine(value.date(), dt.time())


def as_object(value, make):
    """The same id as another Python object, where that can hold it."""
    try:
        made = make(value)
        whole = not isinstance(made, float | np.floating) or made == int(made)
        return made if whole and who(made) == who(value) else value
    except (TypeError, ValueError, OverflowError):
        return value


def objects(name):
    """How Python may hold an id of a kind."""
    if name == "numbers":
        return [int, float, np.int64, np.float64, np.float32, np.uint64, Decimal, lambda v: Decimal(v) * Decimal("1.00")]
    if name == "text":
        return [bytes, bytes.decode]
    if name == "calendar":
        return [pd.Timestamp, lambda v: v, lambda v: v.date() if v.time() == dt.time() else v]
    if name == "instants":
        return [pd.Timestamp, lambda v: v, lambda v: v.astimezone(BERLIN)]
    return [lambda v: v]


@given(st.sampled_from(["numbers", "text", "calendar", "instants", "uuids"]), st.data(), st.integers(1, 3))
def test_objects_of_a_frame_are_told_apart_by_value(name, data, theta):
    pool = [value for value in KINDS[name][0] if name != "numbers" or value == value]
    drawn = data.draw(st.lists(st.sampled_from([*pool, None]), max_size=20))
    ids = [None if v is None else as_object(v, data.draw(st.sampled_from(objects(name)))) for v in drawn]
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "row": range(len(ids))})
    check(kept(frame, theta), ids, theta)
