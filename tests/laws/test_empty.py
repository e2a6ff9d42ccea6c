"""A private table without rows runs like any other: refusing it would tell no rows from one for nothing.

So the debit, the counts with their noise and the number of rows come about as ever, whichever way the table is read.
The same in databases: `test_databases.py`.
"""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from hedgerow import methods
from hedgerow.budget.amounts import Budget
from hedgerow.cli.app import app
from hedgerow.private.evaluate.misfits import count_misfits
from hedgerow.private.ledger import Ledger
from hedgerow.private.sources.source import open_source
from hedgerow.release.bundle import verify
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

TEXT = """
dataset: d
person: id
max_rows_per_person: 2
columns:
  kind: {type: category, values: [a, b], missing: true}
  size: {type: integer, min: 0, max: 7}
  when: {type: date, min: 2020-01-01, max: 2020-03-31, step: month}
"""
SCHEMA = Schema.parse(TEXT)
EMPTY = pa.table(
    {
        "id": pa.array([], pa.string()),
        "kind": pa.array([], pa.string()),
        "size": pa.array([], pa.int64()),
        "when": pa.array([], pa.date32()),
    }
)


def csv_file(folder, content=b"id,kind,size,when\n"):
    (folder / "t.csv").write_bytes(content)
    return folder / "t.csv"


def parquet_file(folder):
    pq.write_table(EMPTY, folder / "t.parquet")
    return folder / "t.parquet"


def parquet_folder(folder):
    (folder / "parts").mkdir()
    for part in "ab":
        pq.write_table(EMPTY, folder / "parts" / f"{part}.parquet")
    return folder / "parts"


def arrow_file(folder):
    with pa.ipc.new_file(str(folder / "t.arrow"), EMPTY.schema):
        pass
    return folder / "t.arrow"


def arrow_stream(folder):
    with pa.ipc.new_stream(str(folder / "t.arrow"), EMPTY.schema) as writer:
        writer.write_table(EMPTY)
    return folder / "t.arrow"


WAYS = {
    "CSV": csv_file,
    "CSV without a line end": lambda folder: csv_file(folder, b"id,kind,size,when"),
    "Parquet": parquet_file,
    "folder": parquet_folder,
    "Arrow file": arrow_file,
    "Arrow stream": arrow_stream,
    "pyarrow": lambda folder: EMPTY,
    "reader": lambda folder: EMPTY.to_reader(),
    "pandas": lambda folder: EMPTY.to_pandas(),
    "pandas without types": lambda folder: pd.DataFrame(columns=EMPTY.column_names),
    "polars": lambda folder: pl.from_arrow(EMPTY),
}


def paid_like_any_other(release, ledger=None):
    assert release.certificate.spent == release.certificate.whole
    assert release.certificate.guarantee is not None
    assert release.estimated_rows >= 0
    assert release.sample(20).num_rows == 20
    if ledger is not None:
        assert ["debit" in entry.record for entry in Ledger(ledger).entries()] == [False, True, True]  # look, rest


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in(way, tmp_path):
    Ledger.create(tmp_path / "d.ledger", "d", Budget(2.0, 1e-8))
    table = WAYS[way](tmp_path)
    release = synthesize(table, SCHEMA, Budget(1.0, 1e-9), "independent", ledger=tmp_path / "d.ledger")
    paid_like_any_other(release, tmp_path / "d.ledger")


@pytest.mark.parametrize("method", methods.names())
def test_every_method_by_command(method, tmp_path):
    """What no rows and one row look like to whoever runs the command: files, exit code, what is paid, what is said."""
    said = {}
    for name, rows in (("none", ""), ("one", "p,a,3,2020-02-02\n")):
        (tmp_path / f"{name}.csv").write_text("id,kind,size,when\n" + rows)
        (tmp_path / "s.yaml").write_text(TEXT)
        ledger, out, bundle = (tmp_path / f"{name}{end}" for end in (".ledger", "-out.csv", "-out.release"))
        Ledger.create(ledger, "d", Budget(2.0, 1e-8))
        given = [tmp_path / f"{name}.csv", "-s", tmp_path / "s.yaml", "-m", method, "-e", 1, "-o", out]
        done = CliRunner().invoke(app, ["synth", *map(str, [*given, "--ledger", ledger, "--json", "--quiet"])])
        assert done.exit_code == 0, done.exception
        release, _ = verify(bundle)
        paid_like_any_other(release, ledger)
        report = json.loads(done.stdout)
        assert report["rows"] == len(out.read_text().splitlines()) - 1
        said[name] = (sorted(report), report["columns"], report["guarantee"])
    assert said["none"] == said["one"]


def test_domains_are_discovered_where_nobody_is():
    schema = Schema.parse("""
person: id
max_rows_per_person: 2
columns:
  kind: {type: category, values: private}
  size: {type: integer, min: 0, max: 700, bins: private}
""")
    release = synthesize(EMPTY.drop_columns(["when"]), schema, Budget(1.0, 1e-9), "independent")
    paid_like_any_other(release)


def test_the_page_of_misfits_has_its_columns():
    assert [(each.columns, each.rows) for each in count_misfits([], SCHEMA)] == [
        (("kind",), 0),
        (("size",), 0),
        (("when",), 0),
    ]


def test_a_public_table_without_rows_is_refused_before_anything_is_paid(tmp_path):
    ledger = Ledger.create(tmp_path / "d.ledger", "d", Budget(2.0, 1e-8))
    with refused("no-rows", "public table"):
        synthesize(parquet_file(tmp_path), SCHEMA, Budget(1.0), public=EMPTY, ledger=tmp_path / "d.ledger")
    assert len(ledger.entries()) == 1


def test_a_folder_without_files_and_a_file_without_a_header_have_no_columns_and_are_refused(tmp_path):
    (tmp_path / "parts").mkdir()
    for path, words in ((tmp_path / "parts", "no-parquet"), (csv_file(tmp_path, b""), "empty-file")):
        with refused(words):
            open_source(path)
