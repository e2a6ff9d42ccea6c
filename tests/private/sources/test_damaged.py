"""A damaged table is refused in one sentence, or read; it never ends the process, and nothing is spent on it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from hedgerow.private.engines import open_engine
from hedgerow.private.sources.source import open_source
from hedgerow.schema import Schema
from refusals import refused
from repository import ROOT

CANARY = "canary-4711"
SCHEMA = "dataset: d\ncolumns: {a: {type: category, values: [x, y], other: true}}\n"
PROGRAM = ROOT / "tests" / "support" / "damaging.py"


def read_damaged(seed, cases, folder, *which):
    command = [sys.executable, PROGRAM, str(seed), str(cases), folder, *which]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_damaged_table_ends_the_process(tmp_path):
    """Flipped bits, sizes, stretches and ends, in every format: 17 of 65 Arrow files once died by a signal."""
    done = read_damaged(1, 400, tmp_path)
    assert done.returncode == 0, done.stdout[-50:] + done.stderr[-2000:]
    assert int(done.stdout.split()[-2]) > 200


@pytest.mark.parametrize("cases", [6, pytest.param(600, marks=pytest.mark.audit)])
def test_no_damaged_file_of_another_maker_ends_the_process(cases, tmp_path):
    """Workbooks, SPSS, Stata: their readers may die of it, but apart."""
    for package in ("openpyxl", "python_calamine", "pyreadstat"):
        pytest.importorskip(package)
    done = read_damaged(3, cases, tmp_path, "apart")
    assert done.returncode == 0, done.stdout[-50:] + done.stderr[-2000:]


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(2, 12))
def test_no_damaged_table_of_many_ends_the_process(seed, tmp_path):
    done = read_damaged(seed, 5_000, tmp_path)
    assert done.returncode == 0, done.stdout[-50:] + done.stderr[-2000:]


def beyond_its_dictionary(values, index=7):
    return pa.DictionaryArray.from_arrays(pa.array([0, index, 1], pa.int32()), pa.array(values), safe=False)


def beyond_its_buffer():
    offsets = np.array([0, 5, 1 << 29, 11], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(CANARY.encode())])


def of_other_bytes():
    offsets = np.array([0, 1, 2, 3], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xffb")])


ARRAYS = {
    "an index beyond the dictionary": (lambda: beyond_its_dictionary([CANARY, "y"]), "damaged-column"),
    "an index before the dictionary": (lambda: beyond_its_dictionary([CANARY, "y"], -5), "damaged-column"),
    "an offset beyond the buffer": (beyond_its_buffer, "damaged-column"),
    "text that is not UTF-8": (of_other_bytes, "not-utf8"),
    "a dictionary that is not UTF-8": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), of_other_bytes(), safe=False),
        "not-utf8",
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        lambda table: pd.DataFrame({"a": pd.Series(pd.arrays.ArrowExtensionArray(table["a"]))}),
    ],
    ids=["table", "batch", "reader", "pandas"],
)
def test_a_table_in_memory_is_looked_at_in_full(kind, wrapped):
    make, words = ARRAYS[kind]
    with refused(words) as caught:
        open_engine(wrapped(pa.table({"a": make()}))).prepare(Schema.parse(SCHEMA).encoding())
    assert CANARY not in str(caught.value)
    assert 'the column "a" of the' in str(caught.value)


def test_text_that_utf8_cannot_write_is_refused_in_a_frame():
    frame = pd.DataFrame({"a": pd.Series(["\ud800", CANARY], dtype=object)})
    with refused("unreadable-table") as caught:
        list(open_source(frame).batches(["a"]))
    assert CANARY not in str(caught.value)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("kind", "write"), [("an index beyond the dictionary", write_file), ("an offset beyond the buffer", write_stream)]
)
def test_the_command_blames_the_file_and_pays_nothing(kind, write, tmp_path, hedgerow):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    write(pa.table({"a": ARRAYS[kind][0]()}), str(tmp_path / "t.arrow"))
    hedgerow("ledger", "create", "d.ledger", "--dataset", "d", "--epsilon", 2)
    before = (tmp_path / "d.ledger").read_bytes()
    done = hedgerow("synth", "t.arrow", "-s", "s.yaml", "-e", 1, "-o", "o.csv", "--ledger", "d.ledger", "--quiet")
    assert (done.code, done.refusal) == (2, "damaged-column")
    assert done.err.count("\n") == 1
    assert 'the column "a" of the table "t.arrow"' in done.err
    assert done.err.endswith("Nothing was spent.\n")
    assert (tmp_path / "d.ledger").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.ledger", "s.yaml", "t.arrow"]


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path):
    """Parquet's readers do not look; what we do with text later would fail on it."""
    pq.write_table(pa.table({"a": of_other_bytes()}), tmp_path / "t.parquet")
    with refused("not-utf8", '"a"'):
        list(open_source(tmp_path / "t.parquet").batches(["a"]))


def test_parquet_pages_that_carry_a_checksum_are_held_to_it(tmp_path):
    """One flipped bit in an uncompressed page would otherwise be read as another value."""
    table = pa.table({"a": [f"{CANARY}-{row}" for row in range(500)]})
    pq.write_table(table, tmp_path / "t.parquet", write_page_checksum=True, compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    content[content.index(b"-250") + 1] ^= 1
    (tmp_path / "t.parquet").write_bytes(content)
    with refused("unreadable-table"):
        list(open_source(tmp_path / "t.parquet").batches(["a"]))


def test_a_file_that_is_shortened_while_it_is_read_is_refused(tmp_path):
    """A file mapped into memory would end the process here (SIGBUS)."""
    path = tmp_path / "t.arrow"
    table = pa.table({"a": np.arange(1 << 18)})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1 << 16)
    batches = open_source(path).batches(["a"])
    next(batches)
    with path.open("r+b") as file:
        file.truncate(1 << 19)
    with refused("unreadable-table"):
        list(batches)


def test_a_size_that_no_memory_has_is_the_fault_of_the_file(tmp_path):
    """The length of a compressed buffer stands in front of it, and is believed before it is unpacked."""
    path = tmp_path / "t.feather"
    values = pa.array(np.zeros(30_000, dtype=np.int64))
    pyarrow.feather.write_feather(pa.table({"a": values}), path, compression="zstd")
    content = path.read_bytes()
    length = (240_000).to_bytes(8, "little")
    assert length in content
    path.write_bytes(content.replace(length, (1 << 60).to_bytes(8, "little")))
    with refused("unreadable-table"):
        list(open_source(path).batches(["a"]))


@pytest.mark.parametrize("content", [b"a\nx\x00y\n", b"a\n\x00\n", b'a\n"\x00"\n'])
def test_a_nul_in_a_csv_is_a_value_like_any_other(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    (found,) = open_source(tmp_path / "t.csv").batches(["a"])
    assert found["a"].to_pylist() == [content[2:-1].decode().strip('"')]
    open_engine(tmp_path / "t.csv").prepare(Schema.parse(SCHEMA).encoding())


def test_nothing_stands_behind_a_null(tmp_path):
    """Arrow validates no view there, and its casts follow it all the same: one in 80,000 damaged files died of that."""
    views = np.zeros((3, 4), dtype=np.int32)
    views[:, 0] = [-(2**31), 1, 2**30]
    views[1:, 1] = [ord("x"), 7]
    array = pa.Array.from_buffers(pa.string_view(), 3, [pa.py_buffer(b"\x02"), pa.py_buffer(views)])
    for given in (array, array[1:], pa.DictionaryArray.from_arrays(pa.array([1, 0, 2]), array)):
        (batch,) = open_source(pa.table({"a": given})).batches(["a"])
        (column,) = batch.columns
        held = column.dictionary if pa.types.is_dictionary(column.type) else column
        behind = np.frombuffer(held.buffers()[1], dtype=np.int32).reshape(-1, 4)
        assert behind[held.offset :, 0].tolist() == [int(value.is_valid) for value in held]
        assert "x" in batch["a"].to_pylist()
