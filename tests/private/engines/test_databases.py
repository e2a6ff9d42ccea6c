"""A table in a database is counted like one in a file, and nothing is said, spent or left behind when that fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from databases import SPARK_ON_ONE_CORE, spark_or_skip
from hedgerow import methods
from hedgerow.audit import check_engine
from hedgerow.audit.engine import SCHEMA, odd_table, sample_queries, sample_table
from hedgerow.audit.method import SCHEMA as AUDITED
from hedgerow.audit.method import pairs
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.private.discovery import Cutting
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.sql.location import open_database
from hedgerow.private.engines.sql.spill import SpillFolder
from hedgerow.private.exact import SparseCounts
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import UnsafeSeededStream
from hedgerow.private.sources.coded import coded_rows, with_columns_of
from hedgerow.private.sources.source import open_source
from hedgerow.progress import Progress
from hedgerow.run import Run
from hedgerow.schema import Schema
from refusals import refused

KEY = b"a key for tests"
IN_PLACE, HERE = True, False
"""Whether rows stay where they are, or come here."""


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def database(request):
    return request.getfixturevalue(request.param)


def opened(answers):
    """Exact answers as plain values."""
    counts = [answer.opened() for answer in answers]
    return [(c.cells.tolist(), c.counts.tolist()) if isinstance(c, SparseCounts) else c.tolist() for c in counts]


def counted(table, encoding, queries, stay=HERE):
    engine = open_engine(table, bounding_key=KEY, stay=stay)
    engine.prepare(encoding)
    return opened(engine.count(queries))


SLOW_SPARK = pytest.param("spark", marks=pytest.mark.engines)


@pytest.mark.parametrize("stay", [HERE, IN_PLACE])
@pytest.mark.parametrize("name", ["duckdb", "postgres", SLOW_SPARK])
def test_every_database_keeps_every_law(request, name, stay):
    database = request.getfixturevalue(name)
    check_engine(lambda table, encoding: open_engine(database.install(table), stay=stay))


@pytest.mark.parametrize("name", ["duckdb", "postgres", SLOW_SPARK])
def test_every_database_keeps_the_rows_that_the_embedded_engine_keeps(request, name):
    """Persons by text and by number, beyond θ, without a name, with names that a collation would hold equal."""
    database = request.getfixturevalue(name)
    rng = np.random.default_rng(2)
    names = ["ann", "Ann", "ANN", "é", "e\u0301", "", None, "x|1", "x"]
    person = [names[index] for index in rng.integers(0, len(names), 200)]
    number = [None if value == 9 else int(value) for value in rng.integers(0, 10, 200)]
    ages = rng.integers(0, 4, 200)
    table = pa.table({"person": pa.array(person), "number": pa.array(number, pa.int64()), "age": ages})
    url = database.install(table)
    for unit in ("person", "number"):
        other = "number" if unit == "person" else "person"
        declared = f"person: {unit}\nmax_rows_per_person: 3\nignore: [{other}]\n"
        encoding = Schema.parse(declared + "columns: {age: {type: integer, min: 0, max: 9}}").encoding()
        queries = [MarginalQuery(encoding.domain, ("age",))]
        there = counted(url, encoding, queries, IN_PLACE)
        assert there == counted(table, encoding, queries)
        assert sum(there[0]) < 40


def released(method, table, stay, schema=AUDITED):
    """What a method measures and draws under given noise."""
    engine = open_engine(table, bounding_key=KEY, stay=stay)
    run = Run(Schema.parse(schema), hr.Budget(1.0, 1e-9), methods.build(method), 0, Progress())
    release = run.release(engine, Mechanisms(UnsafeSeededStream(3)))
    return release.certificate.to_json(), release.sample(rows=50, seed=1)


def check_method_on(database, method):
    table = next(pair.table for pair in pairs(6) if pair.kind == "null")
    url = database.install(table)
    here = released(method, table, HERE)
    assert released(method, url, IN_PLACE) == here


def test_a_method_runs_unchanged_on_every_database(database):
    check_method_on(database, "independent")


WAITING = """
person: id
max_rows_per_person: 2
columns:
  cost: {type: number, min: -10, max: 1000000, decimals: 2, missing: true}
  visits: {type: integer, min: 0, max: 100000}
  born: {type: date, min: 1900-01-01, max: 2029-12-31}
  seen: {type: datetime, min: 2020-01-01, max: 2020-12-31, step: minute, other: true}
"""


def test_numbers_and_dates_are_cut_alike_on_every_database(database):
    rng = np.random.default_rng(4)
    rows = 400
    seen = np.datetime64("2020-03-01T08:00:00") + (rng.integers(0, 60 * 24 * 30, rows) * 60).astype("timedelta64[s]")
    table = pa.table(
        {
            "id": [f"p{number // 3}" for number in range(rows)],
            "cost": pa.array([None if coin < 0.2 else round(coin * 500, 2) for coin in rng.random(rows)]),
            "visits": rng.poisson(3, rows),
            "born": pa.array((np.datetime64("1960-01-01") + rng.integers(0, 9000, rows)).astype("datetime64[D]")),
            "seen": pa.array(seen),
        }
    )
    here = released("independent", table, HERE, WAITING)
    url = database.install(table)
    for stay in (HERE, IN_PLACE):
        assert released("independent", url, stay, WAITING) == here


RULED = """
person: id
max_rows_per_person: 2
max_misfits: 1
columns:
  age: {type: integer, min: 0, max: 99}
  status: {type: category, values: [N, married, single]}
  tip: {type: number, min: 0, max: 500, decimals: 2}
  zone: {type: category, values: [a, b, c]}
  density: {type: number, min: 0, max: 90, decimals: 1}
derive: {twice: tip * 2}
rules:
  - {when: age < 15, then: status = 'N'}
  - twice <= 100
  - {columns: [zone, density], lookup: [[a, 1.5], [b, 20], [c, 80]]}
"""


@pytest.mark.parametrize("name", ["duckdb", "postgres", SLOW_SPARK])
def test_rules_are_kept_alike_on_every_database(request, name):
    """Rows that break them are recoded and counted in place as they are here: the same certificate, the same rows."""
    rng = np.random.default_rng(5)
    rows = 150
    table = pa.table(
        {
            "id": [f"p{number // 3}" for number in range(rows)],
            "age": rng.integers(0, 100, rows),
            "status": rng.choice(["N", "married", "single"], rows),
            "tip": np.round(rng.gamma(1, 30, rows), 2),
            "zone": rng.choice(["a", "b", "c"], rows),
            "density": rng.choice([1.5, 20.0, 80.0, 3.3], rows),
        }
    )
    here = released("mst", table, HERE, RULED)
    assert released("mst", request.getfixturevalue(name).install(table), IN_PLACE, RULED) == here
    assert not Schema.parse(RULED).kept_rules.broken(here[1]).any()


@pytest.mark.engines
@pytest.mark.parametrize("method", methods.names())
def test_every_method_runs_unchanged_on_every_database(database, method):
    check_method_on(database, method)


@pytest.mark.parametrize("name", ["duckdb", "postgres", SLOW_SPARK])
def test_a_table_without_rows_is_released_like_any_other(request, name):
    table = next(pairs(6)).table.slice(0, 0)
    url = request.getfixturevalue(name).install(table)
    here = released("independent", table, HERE)
    assert here[1].num_rows == 50
    for stay in (HERE, IN_PLACE):
        assert released("independent", url, stay) == here


def test_money_is_read_as_numbers(postgres):
    """In place and here, with and without a sign, up to the ends of the type."""
    with postgres.connect() as connection:
        connection.execute("create table wages (wage money, rate numeric(19, 4))")
        connection.execute(
            "insert into wages values ('$1,234.56', 1.5), ('-$12.00', 'NaN'), (null, null), (99.99, -3),"
            "('$92,233,720,368,547,758.07', 123456789012345.6789)"
        )
    url = postgres.url("wages")
    rows = pa.Table.from_batches(list(open_source(url).batches(["wage", "rate"])))
    assert [None if wage is None else str(wage) for wage in rows["wage"].to_pylist()] == [
        *("1234.5600", "-12.0000", None, "99.9900", "92233720368547758.0700"),
    ]
    assert [None if rate is None else float(rate) for rate in rows["rate"].to_pylist()] == [
        *(1.5, None, None, -3.0, 123456789012345.6789),
    ]
    encoding = Schema.parse("""
columns:
  wage: {type: number, min: 0, max: 2000, bins: [100, 1234.56, 1234.57], missing: true, other: true}
  rate: {type: number, min: -5, max: 5, bins: [0], missing: true, other: true}
""").encoding()
    queries = [MarginalQuery(encoding.domain, (name,)) for name in ("wage", "rate")]
    expected = [[1, 0, 1, 0, 1, 2], [1, 1, 2, 1]]
    assert counted(url, encoding, queries) == expected
    assert counted(url, encoding, queries, IN_PLACE) == expected


def test_a_collation_that_holds_texts_equal_changes_nothing(duckdb, postgres):
    """Otherwise a row's code could follow from another person's spelling."""
    table = pa.table({"grade": ["low", "LOW", "Low", "high"] * 5})
    encoding = Schema.parse("columns: {grade: {type: category, values: [low, high], other: true}}").encoding()
    queries = [MarginalQuery(encoding.domain, ("grade",))]
    expected = counted(table, encoding, queries)
    url = postgres.install(table)
    name = url.rpartition("/")[2]
    with postgres.connect() as connection:
        connection.execute("create collation blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        connection.execute(f"alter table {name} alter grade type text collate blind")
    assert counted(url, encoding, queries, IN_PLACE) == expected
    url = duckdb.install(table)
    with duckdb.driver.connect(url.removeprefix("duckdb://").removesuffix("/people")) as connection:
        connection.execute("alter table people alter grade type varchar collate nocase")
    assert counted(url, encoding, queries, IN_PLACE) == expected


def test_what_only_a_server_holds_is_read_like_anything_else(postgres):
    """Days at infinity clip to the bounds; numbers without a scale, enumerations and UUIDs have a reading too."""
    name = "special"
    with postgres.connect() as connection:
        connection.execute("create type mood as enum ('calm', 'wild')")
        connection.execute(
            f"create table {name} (born date, seen timestamptz, size numeric, price numeric(5,2), mood mood, id uuid)"
        )
        connection.execute(
            f"insert into {name} values ('infinity', '-infinity', 'NaN', 'NaN', 'calm', gen_random_uuid()), "
            "('4713-01-01 BC', '2020-01-01 01:00+01', 2.5, 1.50, 'wild', gen_random_uuid()), "
            "(null, null, null, null, null, gen_random_uuid())"
        )
    schema = Schema.parse(
        "person: id\ncolumns:\n  born: {type: date, min: 2000-01-01, max: 2000-03-31, step: month, missing: true}\n"
        "  seen: {type: datetime, min: 2020-01-01, max: 2020-01-02, step: hour, missing: true}\n"
        "  size: {type: number, min: 0, max: 4, bins: 4, missing: true}\n"
        "  price: {type: category, values: ['1.50'], missing: true}\n"
        "  mood: {type: category, values: [calm, wild], missing: true}\n"
    )
    encoding = schema.encoding()
    queries = [MarginalQuery(encoding.domain, (name,)) for name in encoding.domain.names]
    for stay in (HERE, IN_PLACE):
        born, seen, size, price, mood = counted(postgres.url(name), encoding, queries, stay)
        assert born == [1, 0, 1, 1]
        assert seen[0] == 2
        assert seen[-1] == 1
        assert size == [0, 0, 1, 0, 2]
        assert price == [1, 2, 0]
        assert mood == [1, 1, 1, 0]


def test_a_table_that_changes_after_it_was_prepared_changes_nothing(postgres):
    table = sample_table(300)
    url = postgres.install(table)
    encoding = Schema.parse(
        "ignore: [grade, hours, flag, site, place, item]\ncolumns: {age: {type: integer, min: 0, max: 119}}"
    ).encoding()
    queries = [MarginalQuery(encoding.domain, ("age",))]
    engine = open_engine(url, stay=IN_PLACE)
    engine.prepare(encoding)
    before = opened(engine.count(queries))
    with postgres.connect() as connection:
        connection.execute(f"drop table {url.rpartition('/')[2]}")
    assert opened(engine.count(queries)) == before == counted(table, encoding, queries)


PEOPLE = "dataset: people\ncolumns:\n  grade: {type: category, values: [low, high]}\n  site: {type: code, size: 4}\n"
CANARY = "canary-7f3a"


def people(rows=200):
    rng = np.random.default_rng(0)
    grades = rng.choice(["low", "high", CANARY], rows).tolist()
    return pa.table({"grade": grades, "site": rng.integers(0, 4, rows)})


def test_a_connection_that_breaks_is_one_sentence_and_the_charge_stays(postgres, tmp_path, monkeypatch):
    url = postgres.install(people())
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    engine = open_engine(url, stay=IN_PLACE)
    monkeypatch.setattr("hedgerow.run.request.open_engine", lambda *_, **__: engine)
    count, asked = engine.count, []

    def breaks(queries):
        asked.append(queries)
        with postgres.connect() as connection:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                "and backend_type = 'client backend'"
            )
        return count(queries)

    monkeypatch.setattr(engine, "count", breaks)
    with refused("database-failed") as error:
        hr.synthesize(url, Schema.parse(PEOPLE), hr.Budget(1.0, 1e-9), "independent", ledger=ledger)
    assert "the server cannot be reached, refused the login, or ended the connection" in str(error.value)
    assert "stays charged" in str(error.value)
    assert error.value.__suppress_context__
    assert asked
    assert len(Ledger(ledger).entries()) == 2  # what it was opened with, and the charge


COSTS = "dataset: people\ncolumns: {cost: {type: number, min: 0, max: 1000000, decimals: 2}}\n"


def costs(rows=300):
    return pa.table({"cost": np.round(np.random.default_rng(1).gamma(2, 500, rows), 2)})


def test_all_passes_over_a_table_on_a_server_see_one_moment(postgres):
    url = postgres.install(costs())
    schema = Schema.parse(COSTS)
    engine = open_engine(url)
    engine.prepare(Cutting(schema).encoding())
    with postgres.connect() as connection:
        connection.execute(f"insert into {url.rpartition('/')[2]} values (1), (2)")
    final = schema.with_stand_ins().encoding()
    for rows in (300, 302):  # the last pass ends it: whoever looks again sees what is there then
        engine.prepare(final)
        assert opened(engine.count([total_query(final.domain)])) == [[rows]]


def test_nobody_writes_to_a_duckdb_file_between_passes(duckdb):
    url = duckdb.install(costs())
    engine = open_engine(url)
    engine.prepare(Cutting(Schema.parse(COSTS)).encoding())
    file = url.removeprefix("duckdb://").removesuffix("/people")
    code = f"import duckdb; duckdb.connect({file!r}).execute('delete from people')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode
    assert "lock" in done.stderr


def test_a_server_that_goes_away_between_passes_is_one_sentence_and_the_run_goes_on_without_paying_again(
    postgres, tmp_path, monkeypatch
):
    from hedgerow.private.engines.sql.postgres import PostgreSQL

    url = postgres.install(costs())
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    stream, passes = PostgreSQL.stream, []

    def breaks(database, question):
        passes.append(question)
        if len(passes) == 2:
            with postgres.connect() as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                    "and backend_type = 'client backend'"
                )
        return stream(database, question)

    monkeypatch.setattr(PostgreSQL, "stream", breaks)
    asked = {"ledger": ledger, "journal": tmp_path / "paid"}
    with refused("database-failed") as error:
        hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **asked)
    assert "the server cannot be reached, refused the login, or ended the connection" in str(error.value)
    assert "stays charged" in str(error.value)
    paid = Ledger(ledger).entries()
    assert len(paid) == 3  # what it was opened with, the look, the rest
    release = hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **asked, resume=True)
    assert release.certificate.void is None
    assert Ledger(ledger).entries() == paid


def test_a_server_that_goes_away_before_anything_is_charged_costs_nothing(postgres, tmp_path, monkeypatch):
    url = postgres.install(costs())
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    engine = open_engine(url)
    engine._database._server = "host=/nowhere"
    monkeypatch.setattr("hedgerow.run.request.open_engine", lambda *_, **__: engine)
    with refused("database-failed", "cannot be reached") as error:
        hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", ledger=ledger)
    assert "stays charged" not in str(error.value)
    assert "/nowhere" not in str(error.value)
    assert len(Ledger(ledger).entries()) == 1


class Listening(Progress):
    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, text):
        self.said.append(text)


def test_a_run_says_where_rows_are_counted(duckdb):
    url = duckdb.install(costs())
    for stay, words in ((HERE, "read and counted here"), (IN_PLACE, "rows stay in DuckDB")):
        heard = Listening()
        hr.synthesize(url, Schema.parse(COSTS), hr.Budget(9.0), "independent", stay=stay, progress=heard)
        assert len(heard.said) == 1
        assert words in heard.said[0]


def test_rows_that_are_in_no_database_have_nowhere_to_stay():
    with refused("nowhere-to-stay"):
        hr.synthesize(people(), Schema.parse(PEOPLE), hr.Budget(9.0), "independent", stay=True)


def test_what_a_database_refuses_is_said_without_its_words(postgres, duckdb):
    url = postgres.install(people())
    name = url.rpartition("/")[2]
    with postgres.connect() as connection:
        connection.execute("create role stranger login")
        connection.execute("create role reader login")
        connection.execute(f"grant select on {name} to reader")
        connection.execute("revoke temporary on database postgres from public")
    encoding = Schema.parse(PEOPLE).encoding()
    with refused("database-failed", "permission denied"):
        open_engine(postgres.url(name, "stranger")).prepare(encoding)
    open_engine(postgres.url(name, "reader")).prepare(encoding)  # rows that come here need no temporary table
    with refused("database-failed", "TEMPORARY"):
        open_engine(postgres.url(name, "reader"), stay=IN_PLACE).prepare(encoding)
    for missing in (postgres.url("nowhere"), duckdb.install(people()).replace("/people", "/nowhere")):
        with refused("database-failed", "no such table"):
            open_engine(missing)
    with refused("database-failed", "cannot be reached") as error:
        open_engine("postgres://someone@127.0.0.1:1/people/people")
    assert "someone" not in str(error.value)


def test_rows_that_appear_while_the_table_is_read_are_noticed(duckdb, monkeypatch):
    """Where a database has no snapshots: a value without a code must not be lost in silence."""
    from hedgerow.private.engines.sql import coding

    url = duckdb.install(people())
    made = coding._code_map
    monkeypatch.setattr(
        coding, "_code_map", lambda database, values, *rest: made(database, values.filter(values.v1 > 0), *rest)
    )
    with refused("table-changed") as error:
        open_engine(url, stay=IN_PLACE).prepare(Schema.parse(PEOPLE).encoding())
    assert CANARY not in str(error.value)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("duckdb://people", ("bad-table-name",)),
        ("duckdb://nowhere.db/people", ("no-such-table", '"nowhere.db"')),
        ("postgres://host/people", ("bad-table-name",)),
        ("mysql://host/people", ("unknown-engine", '"mysql://"')),
        ("postgres://me:geheim@host/people/people", ("credentials-in-url",)),
        ("postgres://host/people/people?password=geheim", ("credentials-in-url",)),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_and_secrets_are_not_repeated(url, complaint):
    pytest.importorskip("ibis")
    with refused(*complaint) as error:
        open_source(url)
    assert "geheim" not in str(error.value)


def test_a_database_without_its_packages_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "hedgerow.private.engines.sql.duckdb", None)
    with refused("missing-package", '"hedgerow[engines]"'):
        open_database("duckdb://people.db/people")


def test_a_column_that_no_kind_holds_is_named(duckdb):
    with refused("column-type", '"lists"'):
        open_engine(duckdb.install(pa.table({"lists": [[1, 2]]})))


def test_persons_that_a_database_cannot_spell_are_bounded_here_or_refused(duckdb):
    url = duckdb.install(pa.table({"id": [1.0, 1.0, 2.0], "age": [1, 2, 3]}))
    encoding = Schema.parse("person: id\ncolumns: {age: {type: integer, min: 0, max: 9}}").encoding()
    assert sum(counted(url, encoding, [MarginalQuery(encoding.domain, ("age",))])[0]) == 2
    with refused("person-type"):
        counted(url, encoding, [], IN_PLACE)


def test_ids_that_are_not_text_of_any_encoding_stay_apart_in_spark(spark, tmp_path):
    """Spark tells such texts apart, although its encode() makes one sign of what is not UTF-8."""
    ids = pa.array([b"\xff", b"\xfe", b"\xff", None, b"  ", b"\xef\xbf\xbd"], pa.binary()).view(pa.string())
    table = pa.table({"id": ids, "row": range(6), "grade": ids})
    encoding = Schema.parse(
        "person: id\ncolumns:\n  row: {type: code, size: 6}\n  grade: {type: category, values: [low], other: true}"
    ).encoding()
    queries = [MarginalQuery(encoding.domain, ("row",)), MarginalQuery(encoding.domain, ("grade",))]
    rows, grades = counted(spark.install(table), encoding, queries, IN_PLACE)
    assert (rows[1], rows[5], rows[0] + rows[2], rows[3] + rows[4]) == (1, 1, 1, 0)
    assert grades == [0, 3]


def test_between_tasks_a_worker_of_spark_looks_for_garbage_in_little(spark):
    """Spark does so after each task: among all that was imported it takes longer than most tasks."""
    database = open_database(spark.install(people()))

    def looked_through(part, batches):
        import gc

        for _ in batches:
            found = [len(gc.get_objects()), gc.get_freeze_count()]
            yield pa.RecordBatch.from_arrays([pa.array([each]) for each in found], names=["held", "frozen"])

    columns = pa.schema([("held", pa.int64()), ("frozen", pa.int64())])
    found = database.collected(database.mapped(database.rows(["site"])[0], looked_through, columns)).to_pylist()
    assert all(each["held"] < each["frozen"] // 4 for each in found)


@pytest.mark.parametrize(
    "log", [f"_delta_log/{0:020}.json", "metadata/v1.metadata.json", ".hoodie/hoodie.properties", "_spark_metadata/0"]
)
def test_spark_reads_no_table_of_a_lake_as_plain_files(spark, tmp_path, log):
    """Rows that were replaced or deleted lie in its files; its catalogue knows which count."""
    for folder in ("plain", "lake", "lake/age=30", "lake/data"):
        (tmp_path / folder).mkdir(exist_ok=True)
        pq.write_table(pa.table({"age": [1, 2]}), tmp_path / folder / "part.parquet")
    (tmp_path / "lake" / log).parent.mkdir()
    (tmp_path / "lake" / log).write_text("")
    for table in ("lake", "lake/", "lake/age=30", "lake/data", "lake/part.parquet"):
        with refused("rows-that-count", "spark://SCHEMA.TABLE"):
            open_database(f"spark://{tmp_path}/{table}")
    assert open_database(f"spark://{tmp_path}/plain").header() == ("age",)


def test_the_commands_take_urls_and_pages_that_compare_read_them_too(duckdb, hedgerow, tmp_path):
    url = duckdb.install(people())
    (tmp_path / "people.yaml").write_text(PEOPLE)
    done = hedgerow("synth", url, "-s", "people.yaml", "-e", 1, "-m", "independent", "-o", "out.parquet", "-q")
    assert done.code == 0, done.err
    assert CANARY not in done.err + done.out
    encoding = Schema.parse(PEOPLE).encoding()
    there, here = (
        coded_rows(with_columns_of(encoding, open_source(table), "real"), encoding, "real") for table in (url, people())
    )
    assert {name: np.bincount(codes).tolist() for name, codes in there.items()} == {
        name: np.bincount(codes).tolist() for name, codes in here.items()
    }


HOLDING = """
import sys
from hedgerow.private.engines import open_engine
from hedgerow.schema import Schema
engine = open_engine(sys.argv[1], stay=True)
engine.prepare(Schema.parse(sys.argv[2]).encoding())
print("ready", flush=True)
sys.stdin.read()
"""


def holding(url, folder, schema=PEOPLE):
    """A process that holds a table's coded rows until its input ends; all that it leaves is in the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, url, schema],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process):
    """Kill it with all that it started (Java too), without a chance to tidy up."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_killed_run_leaves_no_table_on_the_server(postgres, tmp_path):
    ours = "select count(*) from pg_class where relname like 'hedgerow\\_%'"
    process = holding(postgres.install(people()), tmp_path)
    with postgres.connect() as connection:
        assert connection.execute(ours).fetchone() == (1,)
        kill(process)
        for _ in range(100):  # the server notices that its client is gone
            if connection.execute(ours).fetchone() == (0,):
                break
            time.sleep(0.1)
        assert connection.execute(ours).fetchone() == (0,)


def test_a_killed_run_leaves_no_file_after_the_next_start(duckdb, tmp_path, monkeypatch):
    url = duckdb.install(people())
    process = holding(url, tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    other = SpillFolder("hedgerow-duckdb-")
    assert folder.exists()  # its process lives
    kill(process)
    (folder / "rows").write_text(CANARY)
    engine = open_engine(url)
    assert not folder.exists()
    assert other.path.exists()
    del engine
    other.close()
    assert not other.path.exists()


@pytest.mark.engines
def test_a_killed_run_leaves_no_block_of_rows_after_the_next_start_of_spark(tmp_path, monkeypatch):
    spark_or_skip()
    settings = " ".join(f"--conf {key}={value}" for key, value in SPARK_ON_ONE_CORE.items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
    table, left = tmp_path / "people.parquet", tmp_path / "left"
    pq.write_table(people(), table)
    left.mkdir()
    process = holding(f"spark://{table}", left)
    (folder,) = left.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    kill(process)
    assert list(folder.glob("blockmgr-*"))  # Spark's own, which nobody tidied up
    process = holding(f"spark://{table}", left)
    assert not folder.exists()
    process.communicate()
    assert process.returncode == 0
    assert not list(left.iterdir())


@pytest.mark.parametrize("said", ["", "spark.io.encryption.enabled=false"])
def test_rows_that_a_session_of_ours_puts_on_disk_cannot_be_read(tmp_path, monkeypatch, said):
    """Unless somebody says that they need not be: the same search finds them then."""
    spark_or_skip()
    plain = {"spark.shuffle.compress": "false", "spark.sql.shuffle.partitions": "2"}
    settings = [f"{key}={value}" for key, value in {**SPARK_ON_ONE_CORE, **plain}.items()]
    words = " ".join(f"--conf {each}" for each in (*settings, said) if each)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")
    table, left = tmp_path / "people.parquet", tmp_path / "left"
    pq.write_table(people().append_column("id", [[f"{CANARY}-{row}" for row in range(200)]]), table)
    left.mkdir()
    process = holding(f"spark://{table}", left, f"person: id\n{PEOPLE}")
    kill(process)
    held = [path.read_bytes() for path in left.rglob("blockmgr-*/**/*") if path.is_file()]
    assert sum(map(len, held)) > 200 * len(CANARY)
    assert any(CANARY.encode() in each for each in held) == bool(said)


@pytest.mark.engines
def test_workers_draw_the_rows_of_the_release(spark):
    rows = BLOCK_ROWS + 5
    schema = Schema.parse(
        "columns:\n  grade: {type: category, values: [low, high], missing: true}\n"
        "  seen: {type: datetime, min: 2020-01-01, max: 2020-01-02, step: hour}\n"
        "  key: {type: id}\n  number: {type: id, pattern: '#'}\n  who: {type: fake, what: name}\n"
    )
    table = pa.table({"grade": ["low", None], "seen": ["2020-01-01", "2020-01-02"]})
    release = hr.synthesize(table, schema, hr.Budget(1.0, 1e-9), "independent")
    drawn = release.to_spark(spark.session, rows, seed=3)
    assert drawn.rdd.getNumPartitions() == 2
    assert drawn.toArrow().cast(release.encoding.arrow_schema).equals(release.sample(rows, seed=3))
    assert release.to_spark(spark.session, 0).count() == 0


@pytest.mark.engines
def test_workers_draw_linked_tables(spark):
    schema = Schema.parse(
        "tables:\n  shops: {key: id, columns: {open: {type: date, min: 2020-01-01, max: 2020-12-31}}}\n"
        "  sales: {parent: shops, link: shop, order: day, max_per_parent: 2, "
        "columns: {day: {type: date, min: 2020-01-01, max: 2020-12-31}}}\n"
    )
    shops = {"id": range(40), "open": ["2020-02-03", "2020-05-06"] * 20}
    sales = {"shop": [each // 2 for each in range(40)], "day": ["2020-07-08"] * 40}
    release = hr.synthesize(
        {"shops": pa.table(shops), "sales": pa.table(sales)}, schema, hr.Budget(5.0, 1e-9), "independent", quality=0.0
    )
    rows = release.block_rows + 5
    wanted = release.sample(rows, seed=3)
    drawn = release.to_spark(spark.session, rows, seed=3)
    assert list(drawn) == ["shops", "sales"]
    for name, frame in drawn.items():
        assert frame.rdd.getNumPartitions() == 2
        assert frame.toArrow().cast(wanted[name].schema).equals(wanted[name])


@pytest.mark.engines
def test_workers_draw_rows_that_are_exchanged(spark):
    """A model that its pairs do not fit: rows of a block are brought closer to them where they are drawn."""
    rng = np.random.default_rng(0)
    before, columns = rng.integers(0, 4, 20_000), {}
    for name in ("a", "b", "c", "d", "e"):
        before = columns[name] = np.where(rng.random(20_000) < 0.5, before, rng.integers(0, 4, 20_000))
    schema = Schema.parse("columns: {" + ", ".join(f"{name}: {{type: code, size: 4}}" for name in columns) + "}")
    release = hr.synthesize(pa.table(columns), schema, hr.Budget(20.0, 1e-9), methods.build("hedge", {"size": 0.0001}))
    assert release.model.kind in ("adjusted", "evened")
    drawn = release.to_spark(spark.session, BLOCK_ROWS + 5, seed=3)
    assert drawn.toArrow().cast(release.encoding.arrow_schema).equals(release.sample(BLOCK_ROWS + 5, seed=3))


def test_the_file_of_a_database_is_not_written_to(duckdb):
    url = duckdb.install(odd_table(100))
    file = Path(url.removeprefix("duckdb://").removesuffix("/people"))
    before = file.read_bytes()
    engine = open_engine(url, stay=IN_PLACE)
    encoding = Schema.parse("ignore: [size, wage, name, left, right, born, seen]\ncolumns: {well: {type: boolean}}")
    engine.prepare(encoding.encoding())
    del engine
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir() if path.name.startswith(file.name)] == [file.name]


def test_two_tables_of_one_file_can_be_open_at_once(duckdb):
    """A private and a public table, or a real and a synthetic one."""
    url = duckdb.install(people())
    file = url.removeprefix("duckdb://").removesuffix("/people")
    with duckdb.driver.connect(file) as connection:
        connection.execute("create schema other")
        connection.execute("create table other.public as select * from people limit 7")
    encoding = Schema.parse(PEOPLE).encoding()
    both = [open_engine(url, stay=IN_PLACE), open_engine(f"duckdb://{file}/other.public")]
    for engine, rows in zip(both, (200, 7), strict=True):
        engine.prepare(encoding)
        assert opened(engine.count([total_query(encoding.domain)])) == [[rows]]


def test_a_marginal_wider_than_a_number_is_counted_through_its_levels(duckdb):
    table = sample_table(200)
    names = ["place", "item", "other", "last"]
    table = pa.table(dict(zip(names, [table["place"], table["item"], table["place"], table["item"]], strict=True)))
    schema = "columns: {" + ", ".join(f"{name}: {{type: code, size: 70000}}" for name in names) + "}"
    domain = Schema.parse(schema).encoding().domain
    levels = {name: np.arange(domain[name].size) % 5 for name in names}
    queries = [MarginalQuery(domain, tuple(names), levels=levels), MarginalQuery(domain, ("place",))]
    encoding = Schema.parse(schema).encoding()
    assert counted(duckdb.install(table), encoding, queries, IN_PLACE) == counted(table, encoding, queries)


def test_queries_of_all_kinds_are_answered_in_their_order(duckdb, monkeypatch):
    encoding = Schema.parse(SCHEMA).encoding()
    table = sample_table(100)
    url = duckdb.install(table)
    monkeypatch.setattr("hedgerow.private.engines.sql.duckdb.DuckDB.at_once", 3)
    queries = list(sample_queries(encoding.domain))[::-1]
    assert counted(url, encoding, queries, IN_PLACE) == counted(table, encoding, queries)
