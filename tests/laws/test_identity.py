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
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import TableError
from hedgerow.private.bounding import Holders
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.identity import Spelling
from hedgerow.private.ledger import Ledger
from hedgerow.schema import Schema
from refusals import refused

KEY = b"a key for tests"
IN_PLACE, HERE = True, False
"""Whether rows stay where they are, or come here."""
ROWS = 1 << 12
UTC = dt.UTC
BERLIN = dt.timezone(dt.timedelta(hours=1))


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


def kept(table, theta, stay=HERE, person="id"):
    return kept_by(open_engine(table, bounding_key=KEY, stay=stay), theta, person)


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


@pytest.mark.parametrize("examples", [100, pytest.param(4_000, marks=pytest.mark.audit)])
def test_ids_of_every_type_and_of_mixed_types_are_told_apart_by_value(examples):
    settings(max_examples=examples)(given(parts(), st.integers(1, 3))(check_types))()


def check_types(drawn, theta):
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
    with refused("mixed-person-types"):
        kept_by(engine, 1)


@pytest.mark.parametrize("examples", [25, pytest.param(1_000, marks=pytest.mark.audit)])
def test_the_files_of_a_folder_may_hold_ids_in_different_types(tmp_path_factory, examples):
    folders = st.just(tmp_path_factory)
    settings(max_examples=examples)(given(folders, parts(), st.integers(1, 3))(check_folder))()


def check_folder(tmp_path_factory, drawn, theta):
    folder = tmp_path_factory.mktemp("folder")
    values = []
    for kind, ids in drawn[1]:
        if pa.types.is_date64(kind):
            ids = [as_day(value) for value in ids]
        rows = pa.array(range(len(values), len(values) + len(ids)))
        try:
            pq.write_table(pa.table({"id": column(ids, kind), "row": rows}), folder / f"{len(values)}.parquet")
        except (pa.ArrowNotImplementedError, OSError):  # not a type of Parquet's
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
        return [
            int,
            float,
            np.int64,
            np.float64,
            np.float32,
            np.uint64,
            Decimal,
            lambda v: Decimal(v) * Decimal("1.00"),
        ]
    if name == "text":
        return [bytes, bytes.decode]
    if name == "calendar":
        return [pd.Timestamp, lambda v: v, lambda v: v.date() if v.time() == dt.time() else v]
    if name == "instants":
        return [pd.Timestamp, lambda v: v, lambda v: v.astimezone(BERLIN)]
    return [lambda v: v]


@pytest.mark.parametrize("examples", [100, pytest.param(5_000, marks=pytest.mark.audit)])
def test_objects_of_a_frame_are_told_apart_by_value(examples):
    names = st.sampled_from(["numbers", "text", "calendar", "instants", "uuids"])
    settings(max_examples=examples)(given(names, st.data(), st.integers(1, 3))(check_objects))()


def check_objects(name, data, theta):
    pool = [value for value in KINDS[name][0] if name != "numbers" or value == value]
    drawn = data.draw(st.lists(st.sampled_from([*pool, None]), max_size=20))
    ids = [None if v is None else as_object(v, data.draw(st.sampled_from(objects(name)))) for v in drawn]
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "row": range(len(ids))})
    check(kept(frame, theta), ids, theta)


# What went wrong before: each would have let a person move more than θ rows.

FOLDERS = {
    "text and bytes": [pa.array(["ann"] * 3), pa.array([b"ann"] * 3)],
    "whole and floating, far out": [pa.array([2**60, 2**60 + 1]), pa.array([2.0**60] * 2)],
    "whole and decimal": [pa.array([7] * 3), pa.array([Decimal("7.00")] * 3, pa.decimal128(5, 2))],
    "days and moments": [pa.array([18_000] * 3, pa.date32()), pa.array([18_000 * 86_400] * 3, pa.timestamp("s"))],
    "thousandths and millionths": [pa.array([5] * 3, pa.timestamp("ms")), pa.array([5000] * 3, pa.timestamp("us"))],
    "two time zones": [
        pa.array([5] * 3, pa.timestamp("us", "UTC")),
        pa.array([5] * 3, pa.timestamp("us", "Asia/Tokyo")),
    ],
}


def write_folder(folder, ids):
    """A Parquet file for each array of ids; the ids in order."""
    values = []
    for number, array in enumerate(ids):
        rows = pa.array(range(len(values), len(values) + len(array)))
        pq.write_table(pa.table({"id": array, "row": rows}), folder / f"{number}.parquet")
        values += array.to_pylist()
    return values


@pytest.mark.parametrize("name", FOLDERS)
def test_a_person_whose_id_has_two_types_is_one_person(tmp_path, name):
    values = write_folder(tmp_path, FOLDERS[name])
    check(kept(tmp_path, 2), values, 2)


def test_moments_of_a_date64_are_told_apart():
    ids = column([dt.datetime(2020, 1, 1, hour) for hour in range(24)], pa.date64())
    assert len(kept(pa.table({"id": ids, "row": range(24)}), 1)) == 24


def test_seven_is_seven_in_a_column_of_objects():
    frame = pd.DataFrame({"id": pd.Series([7, 7.0, Decimal("7.00"), np.float32(7)], dtype=object), "row": range(4)})
    assert len(kept(frame, 1)) == 1


def test_a_csv_holds_texts(tmp_path):
    """As they are written: what they mean is known to whoever wrote them. Blank ones name nobody."""
    ids = ["7", "7.0", "007", "7 ", "", "   ", '""']
    (tmp_path / "t.csv").write_text("id,row\n" + "".join(f"{name},{row}\n" for row, name in enumerate(ids)))
    assert kept(tmp_path / "t.csv", 1) == {0, 1, 2, 3}


@pytest.mark.parametrize("persons", [pa.array([None] * 9, pa.string()), pa.nulls(9), pa.array([NAN] * 9)])
def test_rows_that_name_nobody_are_never_counted(persons):
    assert kept(pa.table({"id": persons, "row": range(9)}), 3) == set()
    holders = Holders()
    holders.add(pa.array(["rare"] * 9), persons)
    assert not holders.per_value(3, KEY)


REFUSED = {
    "text in one file, numbers in another": [pa.array(["7"]), pa.array([7])],
    "moments with and without a zone": [pa.array([7], pa.timestamp("us")), pa.array([7], pa.timestamp("us", "UTC"))],
    "a day and an instant": [pa.array([7], pa.date32()), pa.array([7], pa.timestamp("us", "UTC"))],
    "a UUID and its text": [pa.array([bytes(16)], pa.uuid()), pa.array([str(uuid.UUID(int=0))])],
    "bytes of a fixed length and text": [pa.array([b"ab"], pa.binary(2)), pa.array(["ab"])],
    "booleans": [pa.array([True])],
    "times of day": [pa.array([7], pa.time32("s"))],
    "durations": [pa.array([7], pa.duration("s"))],
    "fractions of floating point": [pa.array([0.1])],
    "infinity": [pa.array([float("inf")])],
    "truth in an extension type": [pa.array([1], pa.bool8())],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_spelled_exactly_is_refused_before_anything_is_spent(tmp_path, name):
    folder = tmp_path / "people"
    folder.mkdir()
    for number, array in enumerate(REFUSED[name]):
        table = pa.table({"id": array, "row": [number], "city": ["x"]})
        if name == "durations" or "extension" in name:  # Parquet would write numbers
            folder = table
        else:
            pq.write_table(table, folder / f"{number}.parquet")
    assert_nothing_is_spent(folder, tmp_path / "people.ledger")


def assert_nothing_is_spent(table, ledger):
    """Neither when domains are declared, nor when one has to be bought."""
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    before = ledger.read_bytes()
    for values in ("[x]", "private"):
        columns = f"{{row: {{type: code, size: 9}}, city: {{type: category, values: {values}}}}}"
        declared = f"dataset: people\nperson: id\ncolumns: {columns}"
        with pytest.raises(TableError, match="Nothing was spent") as told:
            hr.synthesize(table, Schema.parse(declared), hr.Budget(1.0, 1e-9), "independent", ledger=ledger)
        assert told.value.code in ("mixed-person-types", "person-not-whole", "person-type")
        assert ledger.read_bytes() == before


@pytest.mark.parametrize("ids", [["7", 7], [7, True], [0.5, 1], [dt.date(2020, 1, 1), "2020-01-01"], [(1,), (2,)]])
def test_objects_that_cannot_be_compared_are_refused(tmp_path, ids):
    frame = pd.DataFrame({"id": pd.Series(ids, dtype=object), "row": range(2), "city": "x"})
    assert_nothing_is_spent(frame, tmp_path / "people.ledger")


def test_schema_check_shows_how_many_rows_name_nobody(hedgerow, tmp_path):
    rows = "".join(f"{name},{row}\n" for row, name in enumerate(["ann", "", "  ", "bob", ""]))
    (tmp_path / "t.csv").write_text("id,row\n" + rows)
    (tmp_path / "s.yaml").write_text("person: id\ncolumns: {row: {type: code, size: 9}}")
    done = hedgerow("schema", "check", "t.csv", "-s", "s.yaml", "--private", "page.html")
    assert done.code == 0, done.err
    assert "3 of 5 rows name no person" in (tmp_path / "page.html").read_text()
    assert "3" not in done.out + done.err


# Databases: the same rows as here, whether they come here or stay there.

TYPED = {
    "whole": (pa.int64(), "bigint"),
    "wide": (pa.decimal128(20, 0), "numeric"),
    "digits": (pa.decimal128(38, 0), "numeric(38,0)"),
    "places": (pa.decimal128(38, 10), "numeric(38,10)"),
    "free": (pa.decimal128(38, 10), "numeric"),
    "text": (pa.string(), "text"),
    "bytes": (pa.binary(), "bytea"),
    "day": (pa.date32(), "date"),
    "moment": (pa.timestamp("us"), "timestamp"),
    "instant": (pa.timestamp("us", "UTC"), "timestamptz"),
    "float": (pa.float64(), "double precision"),
}
HERE_ONLY = {"day", "moment", "instant", "float"}
"""What SQL does not spell: bounded here, refused there."""


def pool(kind):
    """Ids that a column of a type can hold in every database."""
    name = next((name for name, known in POOLS if known == kind), "numbers")
    ids = [value for value in KINDS[name][0] if holds(kind, value)]
    return [value for value in ids if b"\0" not in value] if kind == pa.string() else ids


def typed(names, rows=70):
    """Ids of each type, everyone several times, some rows without; and their values."""
    ids = {name: list(itertools.islice(itertools.cycle([*pool(TYPED[name][0]), None]), rows)) for name in names}
    arrays = {name: column(values, TYPED[name][0]) for name, values in ids.items()}
    return pa.table({**arrays, "row": pa.array(range(rows))}), ids


def check_database(url, table, ids, kinds=HERE_ONLY):
    for name, values in ids.items():
        expected = kept(table, 2, person=name)
        check(expected, values, 2)
        assert kept(url, 2, HERE, name) == expected
        if name in kinds:
            with refused("person-type"):
                kept(url, 2, IN_PLACE, name)
        else:
            assert kept(url, 2, IN_PLACE, name) == expected


def install_in_postgres(server, table, kinds):
    """A table of the given SQL types."""
    url = server.install(table.select(["row"]).slice(0, 0))
    name = url.rpartition("/")[2]
    with server.connect() as connection, connection.cursor() as cursor:
        for each, kind in kinds.items():
            cursor.execute(f'alter table {name} add column "{each}" {kind}')
        with cursor.copy(f"copy {name} (row, {', '.join(kinds)}) from stdin") as copy:
            for row in zip(table["row"].to_pylist(), *(table[each].to_pylist() for each in kinds), strict=True):
                copy.write_row(row)
    return url


def test_duckdb_keeps_the_same_rows(duckdb):
    table, ids = typed([name for name in TYPED if name != "free"])
    check_database(duckdb.install(table), table, ids)


def test_postgres_keeps_the_same_rows(postgres):
    table, ids = typed(TYPED)
    check_database(install_in_postgres(postgres, table, {name: sql for name, (_, sql) in TYPED.items()}), table, ids)


@pytest.mark.engines
def test_spark_keeps_the_same_rows(spark):
    table, ids = typed(name for name in TYPED if name != "free")
    check_database(spark.install(table), table, ids, kinds=())


def test_what_only_a_server_can_hold(postgres):
    """Ids that PostgreSQL tells apart stay apart, and those that it holds equal are one."""
    with postgres.connect() as connection:
        connection.execute("create extension if not exists citext")
        connection.execute(
            "create collation if not exists blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
        connection.execute("create type wing as enum ('east', 'west')")
        connection.execute(
            "create table odd (row int, free numeric, pad char(5), key uuid, wing wing, host inet, flag boolean, "
            "blind text collate blind, ci citext, far date, late timestamptz, odd time)"
        )
        lines = [
            ("9007199254740992", "ab", 1, "east", "10.0.0.1"),
            ("9007199254740993", "ab   ", 1, "east", "10.0.0.1/32"),
            ("9007199254740993.000", " ab", 2, "west", "10.0.0.2"),
            ("NaN", "", None, None, None),
            ("0.10", "a", 2, "west", "10.0.0.2"),
            ("0.1", None, 3, "west", "10.0.0.3"),
        ]
        for row, (free, pad, key, wing, host) in enumerate(lines):
            connection.execute(
                "insert into odd values (%s, %s::numeric, %s, %s, %s::wing, %s::inet, true, 'Ann', 'Ann', 'infinity', "
                "'-infinity', '12:00')",
                (row, free, pad, None if key is None else uuid.UUID(int=key), wing, host),
            )
    url = postgres.url("odd")
    expected = {"free": 3, "pad": 3, "key": 3, "wing": 2, "host": 3}
    for name, persons in expected.items():
        here = kept(url, 1, HERE, name)
        assert len(here) == persons
        assert kept(url, 1, IN_PLACE, name) == here
    for name, complaint in {
        "flag": "person-type",
        "odd": "person-type",
        "blind": "person-collation",
        "ci": "person-collation",
    }.items():
        with refused(complaint):
            kept(url, 1, HERE, name)
    for name in ("far", "late"):  # at infinity there is one day, and one moment before all others
        assert len(kept(url, 1, HERE, name)) == 1


def test_what_only_duckdb_can_hold(duckdb):
    url = duckdb.install(pa.table({"row": range(6)}))
    with duckdb.driver.connect(url.removeprefix("duckdb://").removesuffix("/people")) as connection:
        connection.execute(
            "create or replace table people as select row, (2::hugeint ** 100)::hugeint + row // 2 as huge, "
            "cast(case when row < 2 then '00000000-0000-0000-0000-000000000001' else uuid()::text end as uuid) as key, "
            "make_timestamp_ns(row // 2) as fine, case when row < 3 then 'Ann' else 'ann' end as name, "
            "(row // 2)::tinyint as tiny, row > 2 as flag from people"
        )
    for name, persons in {"huge": 3, "key": 5, "name": 2, "tiny": 3}.items():
        here = kept(url, 1, HERE, name)
        assert len(here) == persons
        assert kept(url, 1, IN_PLACE, name) == here
    assert len(kept(url, 1, HERE, "fine")) == 3
    with refused("person-type"):
        kept(url, 1, HERE, "flag")


@pytest.mark.parametrize("collation", ["nocase", "noaccent", "nfc", "de", "icu_noaccent", "C"])
@pytest.mark.parametrize("stay", [HERE, IN_PLACE])
def test_whom_duckdb_takes_for_one_is_never_two(duckdb, collation, stay):
    """Where a column's collation holds two ids equal, its keeper counts one person and we would count two."""
    names = {"Ann": "ann", "Zoé": "Zoe\u0301", "Max": "M\u00e1x"}
    url = duckdb.install(pa.table({"id": [*names, *names.values()], "row": range(6)}))
    with duckdb.driver.connect(url.removeprefix("duckdb://").removesuffix("/people")) as connection:
        connection.execute(f"alter table people alter id type varchar collate {collation}")
        connection.execute("create view seen as select id, row from people")
        (persons,) = connection.execute("select count(*) from (select id from people group by id)").fetchone()
        equal = connection.execute("select count(*) from people a join people b on a.id = b.id").fetchone()[0] > 6
    for place in (url, url.replace("/people", "/seen")):
        if equal:
            with refused("person-collation"):
                kept(place, 1, stay)
        else:
            assert len(kept(place, 1, stay)) == persons == 6


@pytest.mark.engines
def test_whom_spark_takes_for_one_is_never_two(spark):
    url = spark.install(pa.table({"id": ["Ann", "ann"], "row": [0, 1]}))
    place = url.removeprefix("spark://")
    for collation, equal in (("UTF8_LCASE", True), ("UNICODE_CI", True), ("UTF8_BINARY", False)):
        spark.session.sql(
            f"create or replace temp view whom as select collate(id, '{collation}') as id, row from parquet.`{place}`"
        )
        for stay in (HERE, IN_PLACE):
            if equal:
                with refused("person-collation"):
                    kept("spark://whom", 1, stay)
            else:
                assert len(kept("spark://whom", 1, stay)) == 2


def test_what_stays_in_a_database_is_refused_before_anything_is_spent(duckdb, tmp_path):
    url = duckdb.install(pa.table({"id": pa.array([7], pa.date32()), "row": [0], "city": ["x"]}))
    engine = open_engine(url, stay=IN_PLACE)
    assert_nothing_is_spent(engine, tmp_path / "people.ledger")


@pytest.mark.engines
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_spark_reads_is_told_apart_or_refused(spark, tmp_path, name, turned):
    """Which of the types Spark reads all files as is Spark's choice."""
    values = write_folder(tmp_path, FOLDERS[name][:: -1 if turned else 1])
    for stay in (HERE, IN_PLACE):
        try:
            stayed = kept(f"spark://{tmp_path}", 2, stay)
        except TableError:
            continue
        check(stayed, values, 2)


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_random_ids_of_every_type_in_every_database(request, engine):
    database = request.getfixturevalue(engine)

    @settings(max_examples=8 if engine == "spark" else 40)
    @given(
        st.sampled_from([name for name in TYPED if name != "free" or engine == "postgres"]),
        st.data(),
        st.integers(1, 3),
    )
    def law(name, data, theta):
        kind, sql = TYPED[name]
        ids = data.draw(st.lists(st.sampled_from([*pool(kind), None]), min_size=1, max_size=40))
        table = pa.table({name: column(ids, kind), "row": pa.array(range(len(ids)))})
        url = install_in_postgres(database, table, {name: sql}) if engine == "postgres" else database.install(table)
        expected = kept(table, theta, person=name)
        check(expected, ids, theta)
        for stay in (HERE, IN_PLACE)[: 1 if name in HERE_ONLY and engine != "spark" else 2]:
            assert kept(url, theta, stay, name) == expected

    law()
