"""Text that looks like a formula is harmless in a CSV file, and itself again once the file is read."""

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.private.sources.source import open_source, open_synthetic
from hedgerow.release.files import write_table
from hedgerow.schema.spreadsheets import guarded, guarded_name, unguarded, unguarded_name

TEXTS = st.lists(st.text(st.sampled_from("'=+-@ \t\uff1dax1.e"), max_size=5), min_size=1, max_size=20)


@given(TEXTS)
def test_guarded_text_reads_back(values):
    table = pa.table({"v": values})
    kept = guarded(table)
    [batch] = kept.to_batches()
    assert unguarded(batch).column("v").to_pylist() == values
    for before, after in zip(values, kept["v"].to_pylist(), strict=True):
        assert after in (before, f"'{before}")
        assert after.strip()[:1] not in ("=", "@", "\uff1d", "+", "-") or re.fullmatch(r"[+-]?[\d.e+-]+", after)
        assert unguarded_name(guarded_name(before)) == before


def test_a_written_file_is_read_as_it_was(tmp_path):
    values = ["+ve", "-ve", "+", "-", "'+ve", "''=x", "'plain", "-8", "+2", "@x", ""]
    table = pa.table({"=SUM(A1)": values, "v": ["x"] * len(values)})
    write_table(tmp_path / "t.csv", table.schema, [table])
    assert '\n"\'+ve"' in (tmp_path / "t.csv").read_text()
    assert open_source(tmp_path / "t.csv").header() == ("'=SUM(A1)", "v")  # a private table is read as it is written
    source = open_synthetic(tmp_path / "t.csv")
    assert source.header() == ("=SUM(A1)", "v")
    assert pa.Table.from_batches(source.batches(["v", "=SUM(A1)"])).to_pydict() == {
        "v": ["x"] * len(values),
        "=SUM(A1)": values,
    }


def test_missing_text_stays_missing():
    table = pa.table({"v": pa.array([None, "=x", None], pa.string())})
    [batch] = guarded(table).to_batches()
    assert unguarded(batch).column("v").to_pylist() == [None, "=x", None]
