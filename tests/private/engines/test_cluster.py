"""A cluster counts every row once, whatever is tried again or lost there, and gives what the embedded engine gives."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from clusters import OneProcess, OneProcessEngine
from hedgerow import methods
from hedgerow.audit import check_engine
from hedgerow.audit.engine import SCHEMA, sample_queries, sample_table
from hedgerow.audit.method import SCHEMA as AUDITED
from hedgerow.audit.method import pairs
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.cluster import blocks, engine, persons
from hedgerow.private.exact import SparseCounts
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import UnsafeSeededStream
from hedgerow.progress import Progress
from hedgerow.run import Request, Run
from hedgerow.schema import Schema
from refusals import refused

KEY = b"a key for tests"
THERE, HERE = 0, 4 << 30
"""Memory that makes coded rows stay where they are, or come here."""
CANARY = "canary-7f3a"
ENCODING = Schema.parse(SCHEMA).encoding()
QUERIES = list(sample_queries(ENCODING.domain))


def opened(answers):
    counts = [answer.opened() for answer in answers]
    return [(c.cells.tolist(), c.counts.tolist()) if isinstance(c, SparseCounts) else c.tolist() for c in counts]


def over(table, memory=THERE, parts=3):
    cluster = OneProcess(table, parts)
    return cluster, OneProcessEngine(cluster, bounding_key=KEY, memory=memory)


@pytest.mark.parametrize("memory", [THERE, HERE])
def test_a_cluster_keeps_every_law(memory):
    check_engine(lambda table, encoding: over(table, memory)[1])


def test_counts_of_many_tasks_are_added_in_a_tree(monkeypatch):
    """Small blocks, few of them together, and answers that are counted apart."""
    monkeypatch.setattr(engine, "_TOGETHER", 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 10)
    for name in ("engine", "tasks"):
        monkeypatch.setattr(f"hedgerow.private.engines.cluster.{name}.CELLS_AT_ONCE", 500)
    monkeypatch.setattr("hedgerow.private.engines.cluster.tasks.BATCH_ROWS", 50)
    table = sample_table(400)
    embedded, there = here(table), over(table, parts=9)[1]
    for each in (embedded, there):
        each.prepare(ENCODING)
    assert opened(there.count(QUERIES)) == opened(embedded.count(QUERIES))


def released(method, engine, schema=AUDITED):
    """What a method measures and draws under given noise."""
    run = Run(Schema.parse(schema), hr.Budget(1.0, 1e-9), methods.build(method), 0, Progress())
    release = run.release(engine, Mechanisms(UnsafeSeededStream(3)))
    return release.certificate.to_json(), release.sample(rows=50, seed=1)


def here(table):
    return open_engine(table, bounding_key=KEY, memory=HERE)


@pytest.mark.parametrize("method", ["mst", "hedge", "rdt"])
def test_a_method_runs_unchanged_on_a_cluster(method):
    table = next(pair.table for pair in pairs(6) if pair.kind == "null")
    assert released(method, over(table)[1]) == released(method, here(table))


BOUGHT = """
person: id
max_rows_per_person: 2
columns:
  cost: {type: number, min: -10, max: 1000000, decimals: 2, missing: true}
  seen: {type: datetime, min: 2020-01-01, max: 2020-12-31, step: minute, other: true}
  city: {type: category, values: private}
  grade: {type: category, values: [low, high]}
rules: [{when: cost < 5, then: grade = 'low'}]
"""


def test_looks_cuts_open_categories_and_rules_are_those_of_the_embedded_engine():
    rng = np.random.default_rng(4)
    rows = 600
    seen = np.datetime64("2020-03-01T08:00:00") + (rng.integers(0, 60 * 24 * 30, rows) * 60).astype("timedelta64[s]")
    table = pa.table(
        {
            "id": [f"p{number // 3}" if number % 7 else None for number in range(rows)],
            "cost": pa.array([None if coin < 0.2 else round(coin * 500, 2) for coin in rng.random(rows)]),
            "seen": pa.array(seen),
            "city": rng.choice(["Bonn", "Rome", "Oslo"], rows),
            "grade": rng.choice(["low", "high"], rows),
        }
    )
    schema = BOUGHT + "max_misfits: 1\n"
    assert released("mst", over(table)[1], schema) == released("mst", here(table), schema)


# ------------------------------------------------------------ once, whatever happens


PEOPLE = Schema.parse("person: id\nmax_rows_per_person: 2\ncolumns:\n  age: {type: integer, min: 0, max: 119}\n")


def test_what_is_lost_is_made_anew_and_counts_once():
    table = sample_table(2000)
    cluster, lossy = over(table)
    lossy.prepare(ENCODING)
    (kept,) = cluster.kept_frames
    before = opened(lossy.count(QUERIES))
    kept.lose()
    assert opened(lossy.count(QUERIES)) == before
    embedded = here(table)
    embedded.prepare(ENCODING)
    assert opened(embedded.count(QUERIES)) == before


def test_persons_that_are_lost_keep_the_same_rows():
    table = sample_table(2000)
    table = table.append_column("id", pa.array([f"p{row % 400}" for row in range(2000)]))
    cluster, lossy = over(table)
    lossy.prepare(PEOPLE.encoding())
    queries = [MarginalQuery(PEOPLE.encoding().domain, ("age",))]
    before = opened(lossy.count(queries))
    cluster.shuffled = lambda frame, column, tasks=None: pytest.fail("nothing is planned anew")
    cluster.kept_frames[0].lose()
    assert opened(lossy.count(queries)) == before
    assert sum(before[0]) == 800


def twice(frame):
    frame.parts.append(frame.parts[0])


def never(frame):
    del frame.parts[1]


def other_rows(frame):
    frame.parts[1] = frame.parts[2]


@pytest.mark.parametrize("happens", [twice, never, other_rows])
def test_a_block_that_counts_twice_or_never_or_is_another_is_noticed(happens):
    cluster, wrong = over(sample_table(900))
    wrong.prepare(ENCODING)
    happens(cluster.kept_frames[0])
    with refused("table-changed"):
        list(wrong.count(QUERIES[:3]))


def test_a_table_that_changes_changes_nothing_until_its_rows_are_lost():
    cluster, engine = over(sample_table(900))
    engine.prepare(ENCODING)
    before = opened(engine.count(QUERIES[:5]))
    cluster.table = sample_table(900, seed=1)
    assert opened(engine.count(QUERIES[:5])) == before
    cluster.kept_frames[0].lose()
    with refused("table-changed", "a worker that held rows was lost"):
        list(engine.count(QUERIES[:5]))


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 70_000)), max_size=40), st.randoms())
def test_a_digest_follows_from_the_rows_in_any_order(rows, random):
    def digest(rows):
        columns = [np.array([row[0] for row in rows], np.uint8), np.array([row[1] for row in rows], np.uint32)]
        return blocks.digest(columns, len(rows))

    mixed = rows[:]
    random.shuffle(mixed)
    assert digest(mixed) == digest(rows)
    assert digest([*rows, (1, 2)]) != digest(rows)
    if rows:
        (first, second), *rest = rows
        assert digest([((first + 1) % 256, second), *rest]) != digest(rows)


@given(st.lists(st.binary(min_size=1, max_size=90), min_size=1, max_size=60), st.integers(1, 9))
def test_everyone_has_one_bucket(names, buckets):
    found = persons.bucket_of(pa.array(names, pa.binary()), buckets)
    assert ((found >= 0) & (found < buckets)).all()
    by_name = dict(zip(names, found.tolist(), strict=True))
    assert [by_name[name] for name in names] == found.tolist()
    assert persons.bucket_of(pa.array(names[::-1], pa.binary()), buckets)[::-1].tolist() == found.tolist()
    sliced = pa.array([b"else", *names], pa.binary()).slice(1)
    assert persons.bucket_of(sliced, buckets).tolist() == found.tolist()


def test_buckets_are_about_as_full_as_each_other():
    """Names that end alike too."""
    names = pa.array([f"{number}@example.com" for number in range(40_000)], pa.binary())
    assert np.bincount(persons.bucket_of(names, 16)).max() < 3000


# ------------------------------------------------------------ what is said, what is spent, what is left


def test_a_fault_on_a_worker_says_no_value():
    """Nor is it raised there: what is raised on a worker stands in its log."""
    table = pa.table({"id": [1.0, 2.5, 3.0], "age": [1, 2, 3]})
    cluster, engine = over(table)
    frame, kinds = cluster.rows(["age", "id"])
    work = persons.spreading(PEOPLE.encoding(), kinds, 4)
    found = cluster.collected(cluster.mapped(frame, work, persons.SPREAD))
    assert found["fault"].drop_null().to_pylist()
    with refused("person-not-whole"):
        engine.prepare(PEOPLE.encoding())
    schema = Schema.parse("columns: {city: {type: category, values: private}}\nperson: id\n")
    with refused("person-not-whole"):
        over(table.append_column("city", pa.array(["a", "b", "c"])))[1].people_per_value(schema, "city")


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ValueError(CANARY), "database-failed"),
        (pa.ArrowInvalid(CANARY), "database-failed"),
        (MemoryError(), "database-failed"),
        (Odd(CANARY), "internal"),
    ],
)
def test_what_is_raised_on_a_worker_is_one_sentence(monkeypatch, raised, code):
    def encode(*_):
        raise raised

    monkeypatch.setattr("hedgerow.schema.encoding.Encoding.encode", encode)
    with refused(code) as error:
        over(sample_table(5))[1].prepare(ENCODING)
    assert CANARY not in str(error.value)


def test_what_was_paid_for_before_a_cluster_was_lost_is_gone_on_with(tmp_path, monkeypatch):
    schema = Schema.parse("dataset: people\n" + SCHEMA)
    table = sample_table(800)
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))

    def asked(resume):
        cluster, engine = over(table)
        monkeypatch.setattr("hedgerow.run.request.open_engine", lambda *_, **__: engine)
        given = {"ledger": ledger, "journal": str(tmp_path / "journal"), "resume": resume}
        misfits = tuple(schema.columns)
        request = Request(table, schema, hr.Budget(1.0, 1e-9), methods.build("mst"), allow_misfits=misfits, **given)
        return cluster, request.checked()

    cluster, checked = asked(resume=False)
    collected, jobs = cluster.collected, []

    def breaks(frame):
        jobs.append(frame)
        if len(jobs) == 4:
            cluster.table = sample_table(800, seed=1)
            cluster.kept_frames[0].lose()
        return collected(frame)

    cluster.collected = breaks
    with refused("table-changed", "stays charged"):
        checked.release()
    paid = len(Ledger(ledger).entries())
    release = asked(resume=True)[1].release()
    assert release.certificate.charges
    assert len(Ledger(ledger).entries()) == paid


def test_blocks_are_dropped_with_what_counts_them():
    cluster, engine = over(sample_table(300))
    engine.prepare(ENCODING)
    assert len(cluster.kept_frames) == 1
    engine.prepare(ENCODING)
    assert len(cluster.kept_frames) == 1
    engine._counting = None
    assert not cluster.kept_frames
    over(sample_table(300), HERE)[1].prepare(ENCODING)
    assert not cluster.kept_frames


def test_more_values_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(engine, "_VALUE_BYTES", 1 << 24)
    table = pa.table({"city": [f"c{row}" for row in range(9)]})
    with refused("too-many-values"):
        over(table)[1].people_per_value(Schema.parse("columns: {city: {type: category, values: private}}"), "city")
