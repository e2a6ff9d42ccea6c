"""A folder of parts holds the rows of one draw, whoever wrote them and however often they were stopped."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.budget.amounts import Budget
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.progress import Progress
from hedgerow.release import parts
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


@pytest.mark.parametrize("workers", [1, 2])
def test_the_rows_are_those_of_one_draw(release, whole, tmp_path, workers):
    assert write(release, tmp_path / "f", workers) == (ROWS, 3)
    assert read(tmp_path / "f").equals(whole)


def test_a_draw_that_was_stopped_goes_on(release, whole, tmp_path, monkeypatch):
    real = parts.write_table
    written = []

    def failing(path, *words):
        if len(written) == 1:
            path.with_name(f".{path.name}.0.part").write_text("half")
            raise KeyboardInterrupt
        written.append(path)
        return real(path, *words)

    monkeypatch.setattr(parts, "write_table", failing)
    with pytest.raises(KeyboardInterrupt):
        write(release, tmp_path / "f")
    monkeypatch.undo()
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
