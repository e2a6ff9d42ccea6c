"""Coded rows in memory and on disk: the same rows, the same counts, and nothing left behind."""

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.audit import check_engine
from hedgerow.coded.domain import Domain
from hedgerow.private.engines import arrow, storage
from hedgerow.private.engines.storage import StoredColumns
from hedgerow.private.sources.source import open_source
from refusals import refused

DOMAIN = Domain.of({"a": 3, "b": 300, "c": 70_000})


def batch(rows, seed):
    rng = np.random.default_rng(seed)
    return {each.name: rng.integers(0, each.size, rows).astype(each.dtype) for each in DOMAIN}


def filled(sizes, memory):
    columns = StoredColumns(DOMAIN, memory)
    for number, rows in enumerate(sizes):
        columns.append(batch(rows, number), rows)
    return columns


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=6), memory=st.integers(0, 1500), block=st.integers(1, 60))
def test_rows_come_back_as_they_went_in(sizes, memory, block):
    expected = {name: [code for n, rows in enumerate(sizes) for code in batch(rows, n)[name]] for name in DOMAIN.names}
    before, storage.BLOCK_ROWS = storage.BLOCK_ROWS, block
    try:
        columns = filled(sizes, memory)
        assert columns.on_disk == (sum(sizes) * 7 > memory)
        for index, name in enumerate(DOMAIN.names):
            read = [code for codes, _ in columns.blocks([index]) for code in codes[index]]
            assert read == expected[name]
            assert columns.views()[index].tolist() == expected[name]
        keep = np.arange(sum(sizes)) % 3 == 0
        kept = columns.kept(keep)
        assert kept.views()[1].tolist() == expected["b"][::3]
    finally:
        storage.BLOCK_ROWS = before


def test_counts_on_disk_are_those_in_memory(monkeypatch):
    """Blocks of seven rows, so that every answer is a sum of many."""
    monkeypatch.setattr(storage, "BLOCK_ROWS", 7)
    check_engine(lambda table, encoding: arrow.ArrowEngine(open_source(table), memory=0))


def test_files_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    columns = filled([100, 100], 0)
    assert columns.on_disk
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_said_before_anything_is_spent(monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", lambda *words, **named: Full())
    with refused("no-disk-space", "no space left on device"):
        filled([10], 0)


def test_a_file_that_ends_early_is_an_error_and_no_wait_without_end(monkeypatch):
    columns = filled([50], 0)
    monkeypatch.setattr(os, "preadv", lambda *words: 0)
    with refused("spill-damaged"):
        list(columns.blocks([0, 1, 2]))


def test_codes_outside_their_size_are_refused():
    columns = StoredColumns(DOMAIN, 0)
    strange = batch(5, 0) | {"a": np.full(5, 3, dtype=np.uint8)}
    with refused("bad-codes", '"a"', "0 … 2"):
        columns.append(strange, 5)
