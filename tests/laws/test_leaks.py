"""What could leak around the mechanism (each test names the rule that it guards)."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow
import hedgerow as hr
from hedgerow.audit.replay import Recorder, Replayer, Violation
from hedgerow.methods.independent import Independent
from hedgerow.private.engines import open_engine
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release
from hedgerow.run import Run
from hedgerow.samples import opm
from refusals import refused

SOURCE = Path(hedgerow.__file__).parent
SCHEMA = hr.Schema.parse(opm.SCHEMA)


def recorded(table, recorder=None):
    recorder = recorder or Recorder()
    release = Run(SCHEMA, hr.Budget(1.0), Independent(), 0, Progress()).release(open_engine(table), recorder)
    return release, recorder


def saved(release, path):
    release.save(path)
    return path.read_bytes()


def test_row_order_permuted_rows_give_the_same_release_under_replay(tmp_path):
    table = opm.generate(3000)
    order = np.random.default_rng(0).permutation(3000)
    first, recorder = recorded(table)
    second, _ = recorded(table.take(order), Replayer(recorder.calls, recorder.guaranteed))
    assert saved(first, tmp_path / "a") == saved(second, tmp_path / "b")


def test_row_count_one_row_more_gives_the_same_number_of_rows_under_replay(tmp_path):
    table = opm.generate(3000)
    first, recorder = recorded(table)
    second, _ = recorded(table.slice(0, 2999), Replayer(recorder.calls, recorder.guaranteed))
    assert first.estimated_rows == second.estimated_rows
    assert first.sample().equals(second.sample())


def test_file_name_format_and_age_leave_no_trace(tmp_path):
    table = opm.generate(500)
    (tmp_path / "a").mkdir()
    pq.write_table(table, tmp_path / "a" / "first.parquet")
    with pa.ipc.new_file(str(tmp_path / "second.arrow"), table.schema) as writer:
        writer.write_table(table)
    os.utime(tmp_path / "second.arrow", (1, 1))
    first, recorder = recorded(tmp_path / "a" / "first.parquet")
    second, _ = recorded(tmp_path / "second.arrow", Replayer(recorder.calls, recorder.guaranteed))
    assert saved(first, tmp_path / "x") == saved(second, tmp_path / "y")


def test_output_rows_are_in_no_order_of_the_input():
    """The synthetic row i has nothing to do with the private row i, even when noise is next to nothing."""
    codes = np.arange(4000) % 2
    schema = hr.Schema.from_dict({"a": 2})
    made = hr.synthesize(pa.table({"a": codes}), schema, hr.Budget(1e4), "independent").sample(4000)["a"].to_numpy()
    assert abs(np.mean(made == codes) - 0.5) < 0.05


def test_post_processing_has_no_handle_on_the_data(tmp_path):
    """The table is poisoned after measuring: everything after that must not notice."""
    table = opm.generate(500)
    engine = open_engine(table)
    release = Run(SCHEMA, hr.Budget(1.0), Independent(), 0, Progress()).release(engine, Recorder())
    before = release.sample(300, seed=1)
    for column in engine._prepared.views():
        column.flags.writeable = True
        column[:] = 0
    del engine
    assert release.sample(300, seed=1).equals(before)
    release.save(tmp_path / "x.release")
    assert Release.load(tmp_path / "x.release").sample(300, seed=1).equals(before)


def test_a_replayed_run_that_draws_noise_of_its_own_is_caught():
    replayer = Replayer([], True)
    with pytest.raises(Violation):
        recorded(opm.generate(50), replayer)


def test_no_temporary_file_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    pq.write_table(opm.generate(2000), tmp_path / "t.parquet")
    (tmp_path / "t.yaml").write_text(opm.SCHEMA)
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
    arguments = ["synth", "t.parquet", "-s", "t.yaml", "-e", "1", "-o", "o.csv"]
    subprocess.run([*command, *arguments], cwd=tmp_path, check=True, capture_output=True)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.csv", "o.release", "t.parquet", "t.yaml", "tmp"]


def test_only_the_private_side_imports_the_counting_kernel_or_opens_exact_answers():
    """The import contracts see Python modules; the compiled kernel is guarded here."""
    allowed = {"private", "audit"}
    # they count the rows of the public table, or synthetic rows, or walk those through trees; none has other rows
    public_rows = [
        SOURCE / "methods" / "shared" / "public.py",
        *(SOURCE / "models" / f"{f}.py" for f in ("forests", "rows")),
        SOURCE / "cli" / "doctor.py",  # it counts codes that it makes itself
    ]
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in allowed or path in public_rows:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {node.module, *(alias.name for alias in node.names)}
                assert "_count" not in names, path
                assert "hedgerow._count" not in names, path
            if isinstance(node, ast.Attribute):
                assert node.attr != "opened", path


def test_nothing_that_unpickles_or_evaluates_is_used():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not {alias.name for alias in node.names} & {"pickle", "shelve", "marshal"}, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant), path
                assert node.value.value is False, path


def test_types_come_from_the_schema_one_odd_cell_changes_nothing(tmp_path):
    header, row = "a,b\n", "1,x\n"
    schema = hr.Schema.from_dict(
        {"columns": {"a": {"type": "integer", "min": 0, "max": 9}, "b": {"type": "category", "values": ["x", "y"]}}}
    )
    tables = []
    for name, odd in (("plain", "2,y\n"), ("odd", '"not a number",NA\n')):
        (tmp_path / f"{name}.csv").write_text(header + row * 500 + odd)
        tables.append(hr.synthesize(tmp_path / f"{name}.csv", schema, hr.Budget(1.0), "independent").sample(100))
    assert tables[0].schema == tables[1].schema


@pytest.mark.parametrize("kind", ["uuid", "view", "dictionary", "fixed", "large"])
def test_persons_with_binary_ids_stay_apart(kind):
    """Ids that differ only in bytes that no text holds must not become one person."""
    from hedgerow.private.bounding import Persons

    ids = [bytes([0x80 + number] * 16) for number in range(100)]
    array = pa.array(ids, pa.binary(16) if kind in ("uuid", "fixed") else pa.binary())
    if kind == "uuid":
        array = pa.ExtensionArray.from_storage(pa.uuid(), array)
    elif kind == "view":
        array = array.cast(pa.binary_view())
    elif kind == "dictionary":
        array = array.dictionary_encode()
    elif kind == "large":
        array = array.cast(pa.large_binary())
    persons = Persons()
    persons.add(array)
    assert sum(len(names) for _, _, names in persons.parts()) == 100


def test_a_person_column_that_cannot_be_spelled_is_refused():
    from hedgerow.private.bounding import Persons

    with refused("person-type"):
        Persons().add(pa.array([1, 2], pa.duration("s")))
