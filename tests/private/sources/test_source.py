"""Every way into a table gives the same rows; every bad input gives one clear sentence that quotes no row."""

import datetime
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hedgerow.private.sources import source as source_module
from hedgerow.private.sources.source import open_source
from refusals import refused

CANARY = "canary-4711"
ROWS = 70_000  # more than one batch
TABLE = pa.table(
    {
        "name": pa.array([f"n{row % 97}" if row % 10 else None for row in range(ROWS)]),
        "age": pa.array(np.arange(ROWS) % 90),
        "income>50K": pa.array(np.arange(ROWS) / 4),
    }
)


def as_text(table):
    columns = {
        name: ["" if value is None else str(value) for value in table[name].to_pylist()] for name in table.column_names
    }
    return pa.table(columns)


def read(source, columns):
    batches = list(source.batches(columns))
    assert max(batch.num_rows for batch in batches) <= source_module.BATCH_ROWS
    return pa.Table.from_batches(batches)


def read_everything(path):
    source = open_source(path)
    return list(source.batches(source.header()))


def as_csv(path):
    pd.DataFrame(as_text(TABLE).to_pydict()).to_csv(path, index=False)
    return path


def as_csv_gz(path):
    text = as_csv(path.with_suffix("")).read_bytes()
    path.write_bytes(gzip.compress(text[: len(text) // 2]) + gzip.compress(text[len(text) // 2 :]))
    return path


def as_parquet(path):
    pq.write_table(TABLE, path, row_group_size=30_000)
    return path


def as_folder(path):
    (path / "part=2").mkdir(parents=True)
    (path / "_temporary").mkdir()
    pq.write_table(TABLE.slice(0, 10), path / "a.parquet")
    pq.write_table(TABLE.slice(10).select([2, 0, 1]), path / "part=2" / "b.parquet")
    pq.write_table(TABLE, path / "_temporary" / "c.parquet")
    (path / "_SUCCESS").touch()
    return path


def as_arrow(path):
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return path


def as_arrow_stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return path


def as_feather(path):
    pyarrow.feather.write_feather(TABLE, path, compression="zstd")
    return path


FILES = {
    "t.csv": as_csv,
    "t.CSV": as_csv,
    "t.csv.gz": as_csv_gz,
    "t.parquet": as_parquet,
    "folder": as_folder,
    "t.arrow": as_arrow,
    "s.arrow": as_arrow_stream,
    "t.feather": as_feather,
}
IN_MEMORY = {
    "pyarrow table": lambda: TABLE,
    "pyarrow batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "pandas": lambda: TABLE.to_pandas(),
    "pandas with arrow types": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(TABLE),
    "reader": lambda: TABLE.to_reader(),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_a_file_gives_its_names_and_its_rows_again_and_again(name, as_path, tmp_path):
    source = open_source(as_path(FILES[name](tmp_path / name)))
    assert source.header() == tuple(TABLE.column_names)
    expected = as_text(TABLE) if "csv" in name.lower() else TABLE
    for columns in (["income>50K", "name"], ["age"]):
        assert read(source, columns).to_pydict() == expected.select(columns).to_pydict()


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_table_in_memory_gives_its_names_and_its_rows(name):
    source = open_source(IN_MEMORY[name]())
    assert source.header() == tuple(TABLE.column_names)
    columns = ["income>50K", "name"]
    assert read(source, columns).to_pydict() == TABLE.select(columns).to_pydict()
    if name == "reader":
        with refused("read-once"):
            next(source.batches(columns))
    else:
        assert read(source, ["age"]).to_pydict() == TABLE.select(["age"]).to_pydict()


def test_polars_and_pandas_types_arrive_as_arrow_types():
    day = datetime.date(2020, 2, 29)
    frame = pl.DataFrame({"c": pl.Series(["a", None, "b"], dtype=pl.Categorical), "d": [day, None, day]})
    assert read(open_source(frame), ["c", "d"]).to_pydict() == {"c": ["a", None, "b"], "d": [day, None, day]}
    frame = pd.DataFrame(
        {
            "c": pd.Categorical(["a", None, "b"]),
            "d": pd.to_datetime(["2020-02-29", None, "2020-03-01"]),
            "f": [1.5, np.nan, 2.0],
            "i": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    rows = read(open_source(frame), ["c", "f", "i"]).to_pydict()
    assert rows == {"c": ["a", None, "b"], "f": [1.5, None, 2.0], "i": [1, None, 3]}
    assert pa.types.is_timestamp(read(open_source(frame), ["d"]).schema.field("d").type)


@pytest.mark.parametrize("odd", ["x", 2.5, None, datetime.date(2020, 1, 1), b"\xff", [1]])
def test_a_pandas_column_of_objects_is_text_whatever_one_odd_cell_holds(odd):
    frame = pd.DataFrame({"a": pd.Series([1, 2, odd], dtype=object)})
    table = read(open_source(frame), ["a"])
    assert table.schema.field("a").type == pa.string()
    assert table["a"].to_pylist() == ["1", "2", None if odd is None else str(odd)]


def test_a_csv_is_text_and_one_odd_cell_changes_no_other(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffcode,"the ""name""",n\n06001,NO,\n1e6,"a, b\nc",NaN\n007,,null\n', encoding="utf-8")
    source = open_source(path)
    assert source.header() == ("code", 'the "name"', "n")
    assert read(source, list(source.header())).to_pydict() == {
        "code": ["06001", "1e6", "007"],
        'the "name"': ["NO", "a, b\nc", ""],
        "n": ["", "NaN", "null"],
    }


def test_a_csv_of_one_column_keeps_its_blank_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n\n2\n")
    assert read(open_source(path), ["a"])["a"].to_pylist() == ["1", "", "2"]


def test_windows_and_old_mac_line_ends_and_leading_blank_lines_are_understood(tmp_path):
    for text in ("a,b\r\n1,2\r\n", "a,b\r1,2\r", "\n\na,b\n1,2"):
        path = tmp_path / "t.csv"
        path.write_bytes(text.encode())
        source = open_source(path)
        assert source.header() == ("a", "b")
        assert read(source, ["b"])["b"].to_pylist() == ["2"]


def bad(name, content=None):
    def write(folder):
        if content is not None:
            (folder / name).write_bytes(content)
        return folder / name

    return write


def empty_folder(folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "notes.txt").write_text(CANARY)
    return folder / "parts"


def unequal_folder(folder):
    (folder / "parts").mkdir()
    pq.write_table(pa.table({"a": [CANARY]}), folder / "parts" / "1.parquet")
    pq.write_table(pa.table({"b": [CANARY]}), folder / "parts" / "2.parquet")
    return folder / "parts"


def twice_in_parquet(folder):
    pq.write_table(pa.Table.from_arrays([pa.array([CANARY])] * 2, [CANARY] * 2), folder / "t.parquet")
    return folder / "t.parquet"


def truncated(kind, bytes_left):
    def write(folder):
        table = pa.table({"a": [f"{CANARY}-{row}" for row in range(5000)]})
        path = folder / f"t.{kind}"
        if kind == "parquet":
            pq.write_table(table, path)
        elif kind == "csv.gz":
            path.write_bytes(gzip.compress(b"a\n" + b"\n".join(value.encode() for value in table["a"].to_pylist())))
        else:
            pyarrow.feather.write_feather(table, path)
        path.write_bytes(path.read_bytes()[:bytes_left])
        return path

    return write


def damaged_parquet(folder):
    """The metadata are whole, the pages are not."""
    path = folder / "t.parquet"
    pq.write_table(pa.table({"a": [f"{CANARY}-{row}" for row in range(5000)]}), path)
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\xff" * 1996
    path.write_bytes(data)
    return path


ROW = CANARY.encode()
BAD = {
    "missing file": (bad("none.csv"), ("no-such-table",)),
    "empty file": (bad("t.csv", b""), ("empty-file",)),
    "empty parquet": (bad("t.parquet", b""), ("empty-file",)),
    "blank file": (bad("t.csv", b"\n\n"), ("no-header",)),
    "duplicate names": (bad("t.csv", ROW + b",b," + ROW + b"\n1,2,3\n"), ("duplicate-column", "columns 1 and 3")),
    "duplicate names in parquet": (twice_in_parquet, ("duplicate-column", "columns 1 and 2")),
    "ragged line": (bad("t.csv", b"a,b\n1,2\n" + ROW + b"\n"), ("ragged-row", "row 3")),
    "latin-1": (bad("t.csv", b"a,b\n1,\xe9" + ROW + b"\n"), ("wrong-encoding", "UTF-8")),
    "latin-1 header": (bad("t.csv", b"\xe9,b\n1," + ROW + b"\n"), ("wrong-encoding", "UTF-8")),
    "utf-16": (bad("t.csv", ("a,b\n1," + CANARY).encode("utf-16")), ("wrong-encoding", "UTF-8")),
    "utf-16 without mark": (bad("t.csv", ("a,b\n1," + CANARY).encode("utf-16-le")), ("wrong-encoding", "UTF-8")),
    "not gzip": (bad("t.csv.gz", b"a,b\n1," + ROW), ("unreadable-table",)),
    "truncated gzip": (truncated("csv.gz", 900), ("unreadable-table",)),
    "truncated parquet": (truncated("parquet", 5000), ("unreadable-table",)),
    "damaged parquet": (damaged_parquet, ("unreadable-table",)),
    "not parquet": (bad("t.parquet", b"a,b\n1," + ROW), ("unreadable-table",)),
    "truncated arrow": (truncated("feather", 2000), ("unreadable-table",)),
    "not arrow": (bad("t.arrow", b"a,b\n1," + ROW), ("unreadable-table",)),
    "unknown suffix": (bad("t.docx", ROW), ("unknown-table-kind",)),
    "packed parquet": (bad("t.parquet.gz", ROW), ("unknown-table-kind",)),
    "not zstd": (bad("t.csv.zst", b"a,b\n1," + ROW), ("unreadable-table",)),
    "not a workbook": (bad("t.xlsx", ROW), ("unreadable-table",)),
    "not SPSS": (bad("t.sav", ROW), ("unreadable-table",)),
    "not Stata": (bad("t.dta", ROW), ("unreadable-table",)),
    "another delimiter": (bad("t.csv", b"a;" + ROW + b"\n1;2\n"), ("wrong-delimiter", '";"', "delimiter=semicolon")),
    "folder without parquet": (empty_folder, ("no-parquet",)),
    "folder of unequal files": (unequal_folder, ("files-differ", '"1.parquet"', '"2.parquet"')),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence_that_names_the_file_and_quotes_no_row(kind, tmp_path):
    make, words = BAD[kind]
    path = make(tmp_path)
    with refused(*words) as caught:
        read_everything(path)
    message = str(caught.value)
    assert CANARY not in message
    assert "\n" not in message
    assert str(path) in message
    assert caught.value.exit_code == 2
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("thing", [42, {"a": [1]}, np.zeros(3), None])
def test_something_that_is_no_table_is_refused_with_what_would_be_one(thing):
    with refused("unknown-table-kind"):
        open_source(thing)


def test_a_url_without_an_engine_is_refused():
    with refused("unknown-engine", '"gopher://"'):
        open_source("gopher://secret@host/table")


def test_an_unknown_column_is_named_with_the_nearest_one(tmp_path):
    for make in (lambda: open_source(as_parquet(tmp_path / "t.parquet")), lambda: open_source(TABLE.to_pandas())):
        with refused("missing-column", '"agee"', "income>50K", 'Did you mean "age"'):
            next(make().batches(["agee", "name", "income>50K"]))
        with refused("missing-column") as caught:
            next(make().batches(["agee", "name"]))
        assert "income" not in str(caught.value)


def test_a_pandas_column_that_arrow_cannot_hold_is_named_and_not_quoted():
    frame = pd.DataFrame({"z": [1 + 2j]})
    with refused("column-type", '"z"') as caught:
        next(open_source(frame).batches(["z"]))
    assert "2j" not in str(caught.value)


def test_no_row_is_read_for_the_header(tmp_path):
    """Rows that cannot be read do not keep the names from being read."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n\xff\xff,2,3\n")
    assert open_source(path).header() == ("a", "b")
    assert open_source(damaged_parquet(tmp_path)).header() == ("a",)
