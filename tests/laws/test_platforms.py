"""Other systems: what can be shown of them on this one. What cannot is named in docs/use/platforms.md."""

import ast
import json
import multiprocessing
import os
import subprocess
import sys

import pytest
import yaml

from forked import write_inputs
from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.private.ledger import ROW, Ledger
from hedgerow.publish.publisher import draft
from repository import ROOT

WINDOWS = ROOT / "tests" / "support" / "windows.py"
SMALL = Budget(0.01, 1e-10)
DEBITS = 8


def windows(*words, cwd=ROOT, lines=()):
    return subprocess.run(
        [sys.executable, str(WINDOWS), *words],
        cwd=cwd,
        input="\n".join(map(json.dumps, lines)),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_every_module_is_imported_where_the_calls_of_posix_are_missing():
    done = windows("import")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300


def test_the_way_from_a_table_to_a_published_folder_asks_for_nothing_that_windows_lacks(tmp_path):
    write_inputs(tmp_path)
    answers = yaml.safe_load(draft()) | {"title": "T", "publisher": "P", "contact": "C", "description": "D"}
    (tmp_path / "publisher.yaml").write_text(yaml.safe_dump(answers), encoding="utf-8")
    synth = [
        "synth",
        "t.parquet",
        "-s",
        "s.yaml",
        "-e",
        "1",
        "--ledger",
        "l.ledger",
        "--overwrite",
        "--method",
        "independent",
    ]
    few = ["--metrics", "tvd1,tvd2"]
    commands = [
        ["ledger", "create", "l.ledger", "--dataset", "people", "--epsilon", "9"],
        [*synth, "--overwrite", "-o", "out.csv", "--report", "r.html"],
        [*synth, "--overwrite", "-o", "out.csv", "--report", "r.html", "--seed", "1"],
        ["verify", "out.release", "--ledger", "l.ledger"],
        ["sample", "out.release", "--rows", "70", "-o", "more.arrow"],
        ["sample", "out.release", "--rows", "140000", "-o", "parts/", "--workers", "2"],
        ["ask", "out.release", "SELECT COUNT(*) FROM people"],
        ["evaluate", "t.parquet", "out.csv", "-s", "s.yaml", "--report", "e.html", *few],
        ["compare", "t.parquet", "-s", "s.yaml", "--methods", "independent", "-e", "1", "-o", "grid", *few],
        ["ledger", "show", "l.ledger"],
    ]
    done = windows(cwd=tmp_path, lines=commands)
    codes = [line for line in done.stderr.splitlines() if line.isdigit()]
    assert codes == ["0"] * len(commands), done.stderr
    assert not list(tmp_path.rglob("*.part"))
    assert b"\r" not in (tmp_path / "l.ledger").read_bytes() + (tmp_path / "out.csv").read_bytes()
    assert Ledger(tmp_path / "l.ledger").spent() == whole(Budget(1.0, 1e-9)) + whole(Budget(1.0, 1e-9))
    cells = json.loads((tmp_path / "grid" / "manifest.json").read_text(encoding="utf-8"))
    assert cells


def _as_0_1_did(path):
    """How versions before this one locked a ledger, in their own words."""
    import fcntl

    def opened(ledger):
        while True:
            descriptor = os.open(ledger.path, os.O_RDWR)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                if os.path.samestat(os.fstat(descriptor), os.stat(ledger.path)):
                    return descriptor
            except FileNotFoundError:
                pass
            os.close(descriptor)

    Ledger._open = opened
    _debit(path)


def _debit(path):
    for _ in range(DEBITS):
        Ledger(path).debit(SMALL, whole(SMALL), "independent", ROW)


def test_this_version_and_those_before_write_to_one_ledger_in_turn(tmp_path):
    path = tmp_path / "people.ledger"
    Ledger.create(path, "people", Budget(4.0, 1e-6))
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=each, args=(path,)) for each in (_as_0_1_did, _debit, _as_0_1_did, _debit)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0] * 4
    assert len(list(Ledger(path).entries())) == 1 + 4 * DEBITS
    assert Ledger(path).spent().units == 4 * DEBITS * whole(SMALL).units


@pytest.mark.parametrize("holder", ["flock of 0.1", "a lock of Windows"])
def test_a_lock_that_another_holds_is_waited_for(tmp_path, holder):
    """The other one says when it lets go; until then nothing is written."""
    path = tmp_path / "people.ledger"
    Ledger.create(path, "people", Budget(4.0, 1e-6))
    played = "import sys; sys.path.insert(0, sys.argv[2]); import windows; windows.pretend()\n"
    held = (
        "import os, sys, fcntl\nd = os.open(sys.argv[1], os.O_RDWR); fcntl.flock(d, fcntl.LOCK_EX)\n"
        if holder == "flock of 0.1"
        else f"{played}from pathlib import Path\nfrom hedgerow.release.locks import lock, opened\nimport os\n"
        "d = opened(Path(sys.argv[1]), os.O_RDWR); lock(d)\n"
    )
    other = (
        f"{held}print('held', flush=True); sys.stdin.readline(); print(os.fstat(d).st_size, flush=True); os.close(d)"
    )
    ours = "from hedgerow.private.ledger import *\nimport sys, os\n"
    writes = "Ledger(sys.argv[1]).note('x')\n"
    mine = ours + writes if holder == "flock of 0.1" else played + ours + writes
    size = path.stat().st_size
    words = [str(path), str(WINDOWS.parent)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen([sys.executable, "-c", other, *words], **pipes) as first:
        assert first.stdout.readline() == "held\n"
        with subprocess.Popen([sys.executable, "-c", f"print('begun', flush=True)\n{mine}", *words], **pipes) as second:
            assert second.stdout.readline() == "begun\n"
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(3)  # it would have written by now, on a machine of any but the slowest kind
            print("go", file=first.stdin, flush=True)
            assert int(first.stdout.readline()) == size
            assert second.wait() == 0
    assert path.stat().st_size > size


CALLS = {"open", "read_text", "write_text", "run", "Popen", "fdopen", "NamedTemporaryFile"}


def _strange(call):
    """What is wrong with a call that reads or writes text, or nothing."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    said = {word.arg: word.value for word in call.keywords}
    if name in ("run", "Popen"):
        return "text without encoding" if {"text", "universal_newlines"} & said.keys() else ""
    if name == "write_text":
        return "" if {"encoding", "newline"} <= said.keys() else "write_text without encoding and newline"
    if name == "read_text":
        return "" if "encoding" in said or call.args else "read_text without encoding"
    if name == "open" and isinstance(call.func, ast.Name):
        mode = call.args[1] if len(call.args) > 1 else said.get("mode")
        if isinstance(mode, ast.Constant) and "b" in mode.value:
            return ""
        return "" if {"encoding", "newline"} <= said.keys() else "open without encoding and newline"
    return ""


def test_every_text_has_an_encoding_and_every_written_one_its_line_ends():
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (wrong := _strange(node)):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {wrong}")
    assert not found
