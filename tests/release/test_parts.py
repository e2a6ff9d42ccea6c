"""A folder of parts holds the rows of one draw, whoever wrote them and however often they were stopped."""

import json
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.progress import Progress
from hedgerow.release import parts
from hedgerow.release.linked import BLOCK_UNITS
from hedgerow.release.parts import write_parts
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

ROWS = 2 * BLOCK_ROWS + 5


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "r.release"
    schema = Schema.parse("columns: {a: {type: code, size: 5}}")
    synthesize(pa.table({"a": [0, 1, 4] * 20}), schema, Budget(1.0, 1e-9), "independent").save(path)
    return path


@pytest.fixture(scope="module")
def whole(release):
    return parts.Release.load(release).sample(ROWS, seed=3)


def write(release, folder, workers=1, seed=3, rows=ROWS):
    return write_parts(release, folder, rows, seed, workers, Progress(), blocks_per_part=1)


def read(folder):
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])


@contextmanager
def stopped(monkeypatch, after):
    """Ctrl-C when so many files are begun, in the midst of the next one."""
    real = parts.table_writer
    written = []

    def failing(path, *words):
        if len(written) == after:
            path.with_name(f".{path.name}.0.part").write_text("half")
            raise KeyboardInterrupt
        written.append(path)
        return real(path, *words)

    with monkeypatch.context() as patch:
        patch.setattr(parts, "table_writer", failing)
        yield


@pytest.mark.parametrize("workers", [1, 2])
def test_the_rows_are_those_of_one_draw(release, whole, tmp_path, workers):
    assert write(release, tmp_path / "f", workers) == (ROWS, 3)
    assert read(tmp_path / "f").equals(whole)


def test_a_draw_that_was_stopped_goes_on(release, whole, tmp_path, monkeypatch):
    with stopped(monkeypatch, 1), pytest.raises(KeyboardInterrupt):
        write(release, tmp_path / "f")
    assert write(release, tmp_path / "f") == (ROWS, 2)
    assert read(tmp_path / "f").equals(whole)
    assert sorted(path.name for path in (tmp_path / "f").iterdir())[0] == "manifest.json"
    assert write(release, tmp_path / "f") == (ROWS, 0)


def test_another_draw_is_not_mixed_in(release, tmp_path):
    write(release, tmp_path / "f", rows=10)
    with refused("another-draw", "its seed"):
        write(release, tmp_path / "f", rows=10, seed=4)
    with refused("another-draw", "its rows"):
        write(release, tmp_path / "f", rows=11)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("x")
    with refused("folder-not-empty"):
        write(release, tmp_path / "other")
    (tmp_path / "file").write_text("x")
    with refused("cannot-write"):
        write(release, tmp_path / "file")


def test_from_the_command_line(hedgerow, release, tmp_path):
    done = hedgerow("sample", release, "--rows", "1e3", "-o", "rows/")
    assert done.code == 0, done.err
    assert "1,000 synthetic rows; 1 part written now" in done.out
    assert json.loads((tmp_path / "rows" / "manifest.json").read_text())["rows"] == 1000
    assert hedgerow("sample", release, "--rows", "1e3", "-o", "rows/").code == 0
    assert hedgerow("sample", release, "--rows", "many", "-o", "rows/").code == 2


SHOPS = """
tables:
  shops: {key: id, columns: {region: {type: code, size: 4}}}
  sales: {key: sale, parent: shops, link: shop, max_per_parent: 2, columns: {kind: {type: code, size: 3}}}
"""
UNITS = 2 * BLOCK_UNITS + 5


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "linked.release"
    tables = {
        "shops": pa.table({"id": range(60), "region": [0, 1, 2, 3, 0, 1] * 10}),
        "sales": pa.table({"sale": range(40), "shop": [each // 2 for each in range(40)], "kind": [0, 1, 1, 2] * 10}),
    }
    synthesize(tables, Schema.parse(SHOPS), Budget(5.0, 1e-9), "independent", quality=0.0).save(path)
    return path


@pytest.fixture(scope="module")
def families(linked):
    return parts.Release.load(linked).sample(UNITS, seed=3)


def read_all(folder):
    return {name: read(folder / name) for name in ("shops", "sales")}


@pytest.mark.parametrize("workers", [1, 2])
def test_linked_tables_are_parts_of_a_folder_each(linked, families, tmp_path, workers):
    assert write(linked, tmp_path / "f", workers, rows=UNITS) == (UNITS, 3)
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == ["manifest.json", "sales", "shops"]
    found = read_all(tmp_path / "f")
    assert found == families
    assert len(found["shops"]) == UNITS
    assert len(set(found["sales"]["sale"].to_pylist())) == len(found["sales"])


def test_linked_tables_that_were_stopped_go_on(linked, families, tmp_path, monkeypatch):
    """Where a part lacks one of its files, all of them are written again, byte for byte."""
    with stopped(monkeypatch, 3), pytest.raises(KeyboardInterrupt):
        write(linked, tmp_path / "f", rows=UNITS)
    assert write(linked, tmp_path / "f", rows=UNITS) == (UNITS, 2)
    lost = tmp_path / "f" / "sales" / "part-000001.parquet"
    held = {path: path.read_bytes() for path in (tmp_path / "f").rglob("*.parquet")}
    lost.unlink()
    assert write(linked, tmp_path / "f", rows=UNITS) == (UNITS, 1)
    assert {path: path.read_bytes() for path in (tmp_path / "f").rglob("*.parquet")} == held
    assert read_all(tmp_path / "f") == families
    assert not list((tmp_path / "f").rglob(".*"))
