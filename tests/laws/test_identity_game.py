"""The distinguishing game against ids: nobody leaks more than was promised, whatever names them and wherever they are.

Two attacks. *Split*: the canary has more than θ rows under ids that are spelled in two ways; whoever counts them as two
persons counts 2θ rows. *Merged*: the canary's many rows come under an id that is easily taken for a bystander's;
whoever counts the two as one pushes the bystander's rows out and lets the canary's in.
"""

import datetime as dt
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.audit.game import CANARY, ROWS, Side, play, reached_by
from hedgerow.methods.independent import Independent
from hedgerow.private.engines import open_engine

pytestmark = pytest.mark.audit

RUNS = 2000
"""On either side: enough to certify half of the promise, and more than all of it where twice the rows are counted."""
IN_PLACE, HERE = True, False
BYSTANDER = {"a": 0, "b": 1, "c": 0}
MANY = 25 * ROWS


class Once:
    """An engine that prepares once and counts each query once: what it would count again is the same."""

    def __init__(self, engine):
        self.engine, self.prepared, self.known = engine, False, {}

    def header(self):
        return self.engine.header()

    def prepare(self, encoding):
        if not self.prepared:
            self.engine.prepare(encoding)
        self.prepared = True

    def count(self, queries):
        for query in queries:
            named = str(query.description)
            if named not in self.known:
                self.known[named] = next(self.engine.count([query]))
            yield self.known[named]


def rows(ids, codes):
    return pa.table({"id": ids, **{name: pa.array([code] * len(ids), pa.int64()) for name, code in codes.items()}})


def game(absent, present, expected, stay=HERE):
    """Play with the two tables; `expected` is how the canary would move the counts if the attack worked."""
    engines = [Once(open_engine(table, stay=stay)) for table in (absent, present)]
    before = [(BYSTANDER, ROWS)]
    sides = [
        Side(lambda: engines[0], reached_by(before)),
        Side(lambda: engines[1], reached_by([*before, *expected])),
    ]
    return play(Independent(), RUNS, sides=sides)


SPLIT = [(CANARY, ROWS)]
MERGED = [(CANARY, ROWS), (BYSTANDER, -ROWS)]


def report(verdict, name):
    print(f"{name}: promised {verdict.claim:.2f}, certified {verdict.bound:.2f}")
    assert verdict.kept


FOLDERS = {
    "text and bytes": (pa.string(), "canary", pa.binary(), b"canary", "bystander"),
    "whole and floating": (pa.int64(), 2**60, pa.float64(), 2.0**60, 1),
    "whole and decimal": (pa.int64(), 7, pa.decimal128(9, 2), Decimal("7.00"), 1),
    "day and moment": (pa.date32(), 18_000, pa.timestamp("us"), 18_000 * 86_400 * 10**6, 1),
    "thousandths and millionths": (pa.timestamp("ms"), 7, pa.timestamp("us"), 7000, 1),
    "two zones": (pa.timestamp("us", "UTC"), 7, pa.timestamp("us", "Asia/Tokyo"), 7, 1),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_one_person_in_two_types(tmp_path, name):
    first, one, second, other, bystander = FOLDERS[name]
    absent, present = tmp_path / "absent", tmp_path / "present"
    tables = [rows(pa.array([bystander] * ROWS, first), BYSTANDER), rows(pa.array([one] * ROWS, first), CANARY)]
    for folder in (absent, present):
        folder.mkdir()
        pq.write_table(tables[0], folder / "0.parquet")
    pq.write_table(tables[1], present / "1.parquet")
    pq.write_table(rows(pa.array([other] * ROWS, second), CANARY), present / "2.parquet")
    verdict = game(absent, present, SPLIT)
    report(verdict, name)
    assert verdict.bound > 0.4 * verdict.claim  # the game sees the rows that do count


def test_one_person_in_two_objects():
    def frame(ids, codes):
        ids = pd.Series(ids, dtype=object)
        return pd.DataFrame({"id": ids, **{name: [code] * len(ids) for name, code in codes.items()}})

    absent = frame([1] * ROWS, BYSTANDER)
    present = pd.concat([absent, frame([7, 7.0] * ROWS, CANARY)], ignore_index=True)
    verdict = game(absent, present, SPLIT)
    report(verdict, "objects 7 and 7.0")
    assert verdict.bound > 0.4 * verdict.claim


def test_two_moments_of_one_day():
    noon = pa.array([dt.datetime(2020, 1, 1, 12)], pa.timestamp("ms")).view(pa.int64())[0].as_py()
    absent = rows(pa.array([noon] * ROWS, pa.int64()).view(pa.date64()), BYSTANDER)
    present = pa.concat_tables([absent, rows(pa.array([noon + 1] * MANY, pa.int64()).view(pa.date64()), CANARY)])
    report(game(absent, present, MERGED), "date64")


def nameless():
    """The canary has its θ rows, and many more without an id."""
    absent = rows(pa.array([1] * ROWS, pa.int64()), BYSTANDER)
    present = [absent, rows(pa.array([2] * ROWS, pa.int64()), CANARY), rows(pa.nulls(MANY, pa.int64()), CANARY)]
    return absent, pa.concat_tables(present)


def test_rows_without_an_id():
    verdict = game(*nameless(), SPLIT)
    report(verdict, "no id, embedded")
    assert verdict.bound > 0.4 * verdict.claim


@pytest.mark.parametrize("stay", [HERE, IN_PLACE], ids=["here", "in place"])
@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_rows_without_an_id_in_a_database(request, engine, stay):
    database = request.getfixturevalue(engine)
    verdict = game(*map(database.install, nameless()), SPLIT, stay)
    report(verdict, f"no id, {engine}")
    assert verdict.bound > 0.4 * verdict.claim


@pytest.mark.parametrize("stay", [HERE, IN_PLACE], ids=["here", "in place"])
def test_numbers_beyond_floating_point_in_postgres(postgres, stay):
    absent = rows(pa.array([2**53] * ROWS, pa.int64()), BYSTANDER)
    present = pa.concat_tables([absent, rows(pa.array([2**53 + 1] * MANY, pa.int64()), CANARY)])
    urls = [postgres.install(table) for table in (absent, present)]
    with postgres.connect() as connection:
        for url in urls:
            connection.execute(f"alter table {url.rpartition('/')[2]} alter id type numeric")
    report(game(*urls, MERGED, stay), "numeric")


@pytest.mark.parametrize("stay", [HERE, IN_PLACE], ids=["here", "in place"])
def test_texts_that_are_no_utf8_in_spark(spark, stay):
    def texts(name, count):
        return pa.array([name] * count, pa.binary()).view(pa.string())

    absent = rows(texts(b"\xff", ROWS), BYSTANDER)
    present = pa.concat_tables([absent, rows(texts(b"\xfe", MANY), CANARY)])
    report(game(spark.install(absent), spark.install(present), MERGED, stay), "not UTF-8")
