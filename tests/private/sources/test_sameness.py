"""The private table is not taken for a public one, under whatever name it comes back."""

import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.private.sources.sameness import same_table
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

TABLE = pa.table({"a": [0, 1]})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder table, a file beside it, links to both; the working directory is the one that holds them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts" / "2020").mkdir(parents=True)
    (tmp_path / "others").mkdir()
    (tmp_path / "all").mkdir()
    for name in ("parts/a.parquet", "parts/2020/b.parquet", "others/a.parquet", "t.parquet", "public.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    for name in ("t.duckdb", "public.duckdb"):
        (tmp_path / name).write_bytes(b"any")
    (tmp_path / "parts" / "notes.csv").write_text("a\n1\n")
    (tmp_path / "soft.parquet").symlink_to("t.parquet")
    (tmp_path / "soft").symlink_to("parts")
    (tmp_path / "soft.duckdb").symlink_to("t.duckdb")
    os.link("t.parquet", "hard.parquet")
    os.link("t.duckdb", "hard.duckdb")
    os.link("t.parquet", "all/c.parquet")
    return tmp_path


SAME = [
    ("t.parquet", "t.parquet"),
    ("./t.parquet", "t.parquet"),
    ("{here}/t.parquet", "t.parquet"),
    ("parts/../t.parquet", "t.parquet"),
    ("soft.parquet", "t.parquet"),
    ("hard.parquet", "t.parquet"),
    ("all", "t.parquet"),
    ("t.parquet", "all"),
    ("parts/a.parquet", "parts"),
    ("parts/2020/b.parquet", "./parts/"),
    ("parts/2020", "parts"),
    ("parts", "parts/2020"),
    ("parts/notes.csv", "parts"),
    ("soft/a.parquet", "parts"),
    ("parts", "soft"),
    ("spark://./parts", "parts"),
    ("parts/a.parquet", "spark://{here}/parts"),
    ("spark://file:{here}/parts/", "spark://{here}/parts"),
    ("spark://s3/bucket/t/", "spark://s3/bucket/t"),
    ("spark://db.people", "spark://people"),
    ("spark://People", "spark://spark_catalog.db.people"),
    ("duckdb://./t.duckdb/t", "duckdb://t.duckdb/t"),
    ("duckdb://{here}/t.duckdb/t", "duckdb://t.duckdb/t"),
    ("duckdb://soft.duckdb/t", "duckdb://t.duckdb/t"),
    ("duckdb://hard.duckdb/main.t", "duckdb://t.duckdb/t"),
    ("duckdb://t.duckdb/main.t", "duckdb://t.duckdb/t"),
    ("duckdb://t.duckdb/T", "duckdb://t.duckdb/main.t"),
    ("DuckDB://t.duckdb/t", "duckdb://t.duckdb/t"),
    ("duckdb://gone.duckdb/t", "duckdb://./gone.duckdb/t"),
    ("postgresql://h/d/t", "postgres://h/d/t"),
    ("postgres://ann@h/d/t", "postgres://bob@h/d/t"),
    ("postgres://h:5432/d/t", "postgres://h/d/t"),
    ("postgres://h/d/public.t", "postgres://h/d/t"),
    ("postgres://H/d/%74", "postgres://h/d/t"),
    ("postgres:///d/t", "postgres://localhost/d/t"),
    ("postgres://127.0.0.1/d/t", "postgres://localhost/d/t"),
    ("postgres://[::1]:5432/d/t", "postgres://127.0.0.1/d/t"),
    ("postgres://%2Fvar%2Frun%2Fpostgresql/d/t", "postgres:///d/t"),
]
DIFFERENT = [
    ("public.parquet", "t.parquet"),
    ("others", "parts"),
    ("others/a.parquet", "parts"),
    ("t.parquet", "parts"),
    ("public.parquet", "all"),
    ("none.parquet", "t.parquet"),
    ("spark://others", "parts"),
    ("spark://a.people", "spark://b.people"),
    ("spark://s3/bucket/t", "spark://s3/bucket/u"),
    ("duckdb://t.duckdb/u", "duckdb://t.duckdb/t"),
    ("duckdb://t.duckdb/open.t", "duckdb://t.duckdb/t"),
    ("duckdb://public.duckdb/t", "duckdb://t.duckdb/t"),
    ("duckdb://t.duckdb/t", "postgres://t.duckdb/t"),
    ("postgres://h/d/u", "postgres://h/d/t"),
    ("postgres://h/e/t", "postgres://h/d/t"),
    ("postgres://h:5433/d/t", "postgres://h/d/t"),
    ("postgres://h/d/open.t", "postgres://h/d/private.t"),
    ("postgres://192.0.2.1/d/t", "postgres://192.0.2.2/d/t"),
    ("public.parquet", "postgres://h/d/t"),
]


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No server is asked for, and no name: hosts are what they are called, and this machine."""
    import socket

    known = {"localhost": ["127.0.0.1", "::1"], "127.0.0.1": ["127.0.0.1"], "::1": ["::1"]}
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, port: [(0, 0, 0, "", (each,)) for each in known.get(host, [])]
    )
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("public", "table"), SAME)
def test_another_spelling_of_the_private_table_is_the_private_table(folder, public, table):
    assert same_table(public.format(here=folder), table.format(here=folder))


@pytest.mark.parametrize(("public", "table"), DIFFERENT)
def test_another_table_is_another(folder, public, table):
    assert not same_table(public, table)


def test_names_and_addresses_of_one_server_are_one(monkeypatch):
    import socket

    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port: [(0, 0, 0, "", ("192.0.2.7", 0))])
    assert same_table("postgres://db/d/t", "postgres://db.example.org/d/t")
    monkeypatch.setenv("PGHOST", "db")
    monkeypatch.setenv("PGPORT", "6000")
    assert same_table("postgres:///d/t", "postgres://192.0.2.7:6000/d/t")


@pytest.mark.parametrize("make", [lambda: TABLE, lambda: TABLE.to_pandas(), lambda: TABLE.to_batches()[0]])
def test_the_same_object_is_the_same_table(make):
    table = make()
    assert same_table(table, table)
    assert not same_table(table, pd.DataFrame({"a": [0, 1]}))
    assert not same_table("t.parquet", table)


def test_a_part_of_the_private_table_is_refused_before_anything_is_read(folder):
    with refused("private-as-public"):
        synthesize("parts", Schema.from_dict({"a": 2}), Budget(1.0), public="soft/2020/b.parquet")
