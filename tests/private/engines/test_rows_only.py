"""Databases that hand out rows and count nothing: the same laws, and every value is read by itself."""

import os
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import methods
from hedgerow.audit import check_engine
from hedgerow.audit.method import SCHEMA as AUDITED
from hedgerow.audit.method import pairs
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.private.discovery import Cutting
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.sql.rows import as_written
from hedgerow.private.exact import SparseCounts
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import UnsafeSeededStream
from hedgerow.progress import Progress
from hedgerow.run import Run
from hedgerow.schema import Schema
from refusals import refused

KEY = b"a key for tests"
CANARY = "canary-7f3a"


@pytest.fixture(params=["sqlite", "mariadb"])
def database(request):
    return request.getfixturevalue(request.param)


def opened(answers):
    counts = [answer.opened() for answer in answers]
    return [(c.cells.tolist(), c.counts.tolist()) if isinstance(c, SparseCounts) else c.tolist() for c in counts]


def counted(table, encoding):
    engine = open_engine(table, bounding_key=KEY)
    engine.prepare(encoding)
    return opened(engine.count([MarginalQuery(encoding.domain, (name,)) for name in encoding.domain.names]))


def released(method, table, schema=AUDITED):
    """What a method measures and draws under given noise."""
    run = Run(Schema.parse(schema), hr.Budget(1.0, 1e-9), methods.build(method), 0, Progress())
    release = run.release(open_engine(table, bounding_key=KEY), Mechanisms(UnsafeSeededStream(3)))
    return release.certificate.to_json(), release.sample(rows=50, seed=1)


def test_every_law_is_kept(database):
    check_engine(lambda table, encoding: open_engine(database.install(table)))


@pytest.mark.engines
@pytest.mark.parametrize("method", methods.names())
def test_every_method_runs_unchanged(database, method):
    table = next(pair.table for pair in pairs(6) if pair.kind == "null")
    assert released(method, database.install(table)) == released(method, table)


COSTS = """
dataset: people
person: id
max_rows_per_person: 2
columns:
  cost: {type: number, min: 0, max: 1000000, decimals: 2}
  seen: {type: datetime, min: 2020-01-01, max: 2020-12-31, step: minute}
"""


def costs(rows=300):
    rng = np.random.default_rng(1)
    seen = np.datetime64("2020-03-01T08:00:00") + (rng.integers(0, 60 * 24 * 30, rows) * 60).astype("timedelta64[s]")
    return pa.table(
        {
            "id": [f"p{row // 3}" for row in range(rows)],
            "cost": np.round(rng.gamma(2, 500, rows), 2),
            "seen": pa.array(seen),
        }
    )


def test_columns_are_cut_and_persons_bounded_as_they_are_here(database):
    assert released("mst", database.install(costs()), COSTS) == released("mst", costs(), COSTS)


@pytest.mark.parametrize("unit", ["name", "number", "price", "day"])
def test_persons_of_every_kind_are_the_persons_of_the_embedded_engine(mariadb, unit):
    rng = np.random.default_rng(2)
    names = ["ann", "Ann", "é", "e\u0301", "", None, "x|1", "x ", "x"]
    table = pa.table(
        {
            "name": [names[index] for index in rng.integers(0, len(names), 200)],
            "number": [None if value == 9 else int(value) for value in rng.integers(0, 10, 200)],
            "price": pa.array([Decimal(int(value)) / 2 for value in rng.integers(0, 10, 200)], pa.decimal128(5, 2)),
            "day": pa.array((np.datetime64("1960-01-01") + rng.integers(0, 9, 200)).astype("datetime64[D]")),
            "age": rng.integers(0, 4, 200),
        }
    )
    others = [name for name in table.column_names if name not in (unit, "age")]
    declared = f"person: {unit}\nmax_rows_per_person: 3\nignore: {others}\n"
    encoding = Schema.parse(declared + "columns: {age: {type: integer, min: 0, max: 9}}").encoding()
    found = counted(mariadb.install(table, {"price": "decimal(5,2)"}), encoding)
    assert found == counted(table, encoding)
    assert sum(found[0]) < 40


PEOPLE = "dataset: people\nperson: id\ncolumns: {age: {type: integer, min: 0, max: 9}}\n"


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_bin"])
def test_persons_that_the_server_holds_equal_are_refused(mariadb, collation):
    """The second ignores spaces at the end."""
    table = pa.table({"id": ["ann", "Ann", "ann "], "age": [1, 2, 3]})
    with refused("person-collation"):
        counted(mariadb.install(table, {"id": f"varchar(20) collate {collation}"}), Schema.parse(PEOPLE).encoding())


@pytest.mark.parametrize(("kind", "code"), [("json", "person-collation"), ("time", "person-type")])
def test_what_names_nobody_is_refused(mariadb, kind, code):
    table = pa.table({"id": ["10:00:00", "11:00:00"], "age": [1, 2]})
    if kind == "json":
        table = table.set_column(0, "id", pa.array(["1", "2"]))
    with refused(code):
        counted(mariadb.install(table, {"id": kind}), Schema.parse(PEOPLE).encoding())


@pytest.mark.parametrize("collation", ["nocase", "rtrim"])
def test_persons_that_sqlite_holds_equal_are_refused(sqlite, collation):
    table = pa.table({"id": ["ann", "Ann", "ann "], "age": [1, 2, 3]})
    url = sqlite.install(table, {"id": f"text collate {collation}"})
    with refused("person-collation"):
        counted(url, Schema.parse(PEOPLE).encoding())
    file = url.removeprefix("sqlite://").removesuffix("/people")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create view plain as select id || '' as id, age from people")
        connection.commit()
    assert sum(counted(f"sqlite://{file}/plain", Schema.parse(PEOPLE).encoding())[0]) == 3


def test_a_number_and_its_text_may_be_two_persons(sqlite, monkeypatch):
    """A column of SQLite may hold both, in whatever batch."""
    monkeypatch.setattr("hedgerow.private.engines.sql.sqlite.BATCH_ROWS", 2)
    url = sqlite.install(pa.table({"id": ["7", "8", "9"], "age": [1, 2, 3]}))
    with closing(sqlite3.connect(url.removeprefix("sqlite://").removesuffix("/people"))) as connection:
        connection.execute("insert into people values (7, 1)")
        connection.commit()
    with refused("mixed-person-types"):
        counted(url, Schema.parse(PEOPLE).encoding())


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary()))
def test_a_value_is_read_by_itself(values):
    assert as_written(values).to_pylist() == [as_written([value])[0].as_py() for value in values]


@given(st.lists(st.floats(allow_nan=False) | st.none(), max_size=9))
def test_numbers_are_read_as_those_of_a_file(values):
    """Whether they come as numbers or are read from their text here."""
    encoding = Schema.parse(
        "columns: {size: {type: number, min: 0, max: 10, bins: [2.5], missing: true, other: true}}"
    ).encoding()
    texts = encoding.encode(pa.record_batch({"size": as_written(values)}))
    numbers = encoding.encode(pa.record_batch({"size": pa.array(values, pa.float64())}))
    assert texts["size"].tolist() == numbers["size"].tolist()


def test_what_only_a_server_holds_is_read_like_anything_else(mariadb):
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        cursor.execute(
            "create table special (id bigint unsigned, `odd``name` enum('calm', 'wild'), flag bit(1), born date, "
            "seen timestamp null, price decimal(5,2), note blob)"
        )
        cursor.execute(
            "insert into special values (18446744073709551615, 'calm', 1, '0000-00-00', '2020-01-01 05:00', 1.5, "
            "x'61'), (1, 'wild', 0, '2000-02-01', null, 2, null)"
        )
    encoding = Schema.parse(
        "person: id\nmax_rows_per_person: 1\ncolumns:\n  odd`name: {type: category, values: [calm, wild]}\n"
        "  flag: {type: boolean}\n  born: {type: date, min: 2000-01-01, max: 2000-03-31, step: month, other: true}\n"
        "  seen: {type: datetime, min: 2020-01-01, max: 2020-01-02, step: hour, missing: true}\n"
        "  price: {type: category, values: ['1.50', '2.00']}\n  note: {type: category, values: [a], missing: true}\n"
    ).encoding()
    alike = pa.table(
        {
            "id": ["a", "b"],
            "odd`name": ["calm", "wild"],
            "flag": [True, False],
            "born": ["0000-00-00", "2000-02-01"],
            "seen": ["2020-01-01 05:00", None],
            "price": ["1.50", "2.00"],
            "note": ["a", None],
        }
    )
    assert counted(mariadb.url("special"), encoding) == counted(alike, encoding)


def test_all_passes_see_one_moment(mariadb, sqlite):
    schema = Schema.parse(COSTS)
    final = schema.with_stand_ins().encoding()
    for database in (mariadb, sqlite):
        url = database.install(costs())
        engine = open_engine(url)
        engine.prepare(Cutting(schema).encoding())
        more = "insert into {} values ('x', 1, '2020-01-01'), ('x', 2, '2020-01-01')"
        if database is mariadb:
            with mariadb.connect() as connection, connection.cursor() as cursor:
                cursor.execute(more.format(url.rpartition("/")[2]))
        else:
            file = url.removeprefix("sqlite://").removesuffix("/people")
            with closing(sqlite3.connect(file, timeout=0)) as connection:
                connection.execute(more.format("people"))
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    connection.commit()
        engine.prepare(final)
        assert opened(engine.count([total_query(final.domain)])) == [[200]]
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select count(*) from information_schema.innodb_trx")
        assert cursor.fetchone() == (0,)  # the last pass ended it


def test_a_server_that_goes_away_is_one_sentence_and_the_run_goes_on_without_paying_again(
    mariadb, tmp_path, monkeypatch
):
    from hedgerow.private.engines.sql.mariadb import MariaDB

    url = mariadb.install(costs())
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    read, passes = MariaDB._read, []

    def breaks(database, columns, person):
        passes.append(columns)
        if len(passes) == 2:
            with mariadb.connect() as connection, connection.cursor() as cursor:
                cursor.execute("select id from information_schema.processlist where id <> connection_id()")
                for (number,) in cursor.fetchall():
                    cursor.execute(f"kill {number}")
        return read(database, columns, person)

    monkeypatch.setattr(MariaDB, "_read", breaks)
    asked = {"ledger": ledger, "journal": tmp_path / "paid"}
    with refused("database-failed", "ended the connection", "stays charged") as error:
        hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **asked)
    assert error.value.__suppress_context__
    paid = Ledger(ledger).entries()
    assert len(paid) == 3  # what it was opened with, the look, the rest
    hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **asked, resume=True)
    assert Ledger(ledger).entries() == paid


def test_what_is_refused_is_said_in_our_words(mariadb, sqlite, tmp_path):
    table = pa.table({"grade": [CANARY], "age": [1]})
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create user stranger")
    with refused("database-failed", "no such table"):
        open_engine(mariadb.url("nowhere"))
    with refused("database-failed", "permission denied"):
        open_engine(mariadb.url("nowhere", "stranger"))
    with refused("database-failed", "refused the login") as error:
        open_engine(mariadb.url("nowhere", "nobody"))
    assert "nobody" not in str(error.value)
    with refused("database-failed", "cannot be reached") as error:
        open_engine("mariadb://someone@127.0.0.1:1/people/people")
    assert "someone" not in str(error.value)
    file = sqlite.install(table).removesuffix("/people")
    with refused("database-failed", "is not there"):
        open_engine(f"{file}/nowhere")
    (tmp_path / "odd.sqlite").write_text(CANARY * 500)
    with refused("database-failed", "damaged") as error:
        open_engine(f"sqlite://{tmp_path}/odd.sqlite/people")
    assert CANARY not in str(error.value)
    with refused("bad-table-name"):
        open_engine("sqlite://people")
    with refused("no-such-table"):
        open_engine("sqlite://nowhere.sqlite/people")
    with refused("bad-table-name"):
        open_engine("mariadb://host/people")


def test_rows_that_are_to_stay_are_not_read(sqlite):
    with refused("cannot-stay", "SQLite hands out rows"):
        open_engine(sqlite.install(costs()), stay=True)


def test_a_file_of_sqlite_is_not_written_to_and_odd_names_are_names(sqlite, hedgerow, tmp_path):
    url = sqlite.install(pa.table({'a "b"': [1, 2, 3] * 50, "select": ["x", "y", CANARY] * 50}))
    file = Path(url.removeprefix("sqlite://").removesuffix("/people"))
    before = file.read_bytes()
    (tmp_path / "people.yaml").write_text(
        "columns:\n  'a \"b\"': {type: integer, min: 0, max: 9}\n"
        "  select: {type: category, values: [x, y], other: true}\n"
    )
    done = hedgerow("synth", url, "-s", "people.yaml", "-e", 9, "-m", "independent", "-o", "out.csv")
    assert done.code == 0, done.err
    assert "read and counted here" in done.err
    assert CANARY not in done.err + done.out + (tmp_path / "out.csv").read_text()
    assert file.read_bytes() == before
    assert sorted(each for each in os.listdir(file.parent) if each.startswith(file.name)) == [file.name]
