"""Several runs that want to make the same release: one makes it, the others are told, and it is paid for once."""

import os
import signal
import time

import pyarrow as pa
import pytest

from forked import write_inputs
from hedgerow.budget.amounts import Budget
from hedgerow.private.journal import Claim
from hedgerow.private.ledger import Ledger, confirm_entry
from hedgerow.release import disk
from hedgerow.release.bundle import Release, verify
from hedgerow.release.files import clear_unfinished, remove_unfinished, whole_file
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

ROWS = pa.table({"a": [0, 1, 1, 2] * 20})
SMALL = Schema.parse("columns: {a: {type: code, size: 3}}")
SYNTH = ("synth", "t.parquet", "-s", "s.yaml", "-e", "1", "-m", "mst", "-o", "out.csv", "--ledger", "l", "-q")


@pytest.fixture
def ready(tmp_path):
    write_inputs(tmp_path)
    Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    return tmp_path


def debits(folder):
    return [entry for entry in Ledger(folder / "l").entries() if entry.record.get("method", "look") != "look"]


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_one_of_three_identical_commands_pays_and_the_others_are_told(server, ready, more):
    """With --overwrite a command that comes after the first has ended pays for a release of its own."""
    running = [server.start([*SYNTH, *more], ready) for _ in range(3)]
    done = [each.wait() for each in running]
    made = [each for each in done if each.code == 0]
    assert len(made) == len(debits(ready))
    assert made
    assert more or len(made) == 1
    for each in done:
        if each.code:
            assert each.code == 2
            assert each.refusal in ("run-in-progress", "already-exists", "release-exists")
    release, _ = verify(ready / "out.release")
    confirm_entry(ready / "l", release.certificate.ledger)
    assert sorted(os.listdir(ready)) == ["l", "out.csv", "out.release", "s.yaml", "t.parquet"]


def test_a_run_that_was_killed_holds_nobody_up(server, ready):
    claim = Claim(ready / "out.release.journal")
    refused = server.run(SYNTH, ready)
    assert (refused.code, refused.refusal) == (2, "run-in-progress")
    assert '"out.release.journal"' in refused.err
    claim.close()
    stopped = server.start(SYNTH, ready, "import os, signal; os.fsync = lambda place: os.kill(os.getpid(), 9)")
    assert stopped.wait().code == -signal.SIGKILL
    assert server.run([*SYNTH, "--resume"], ready).code == 0
    assert len(debits(ready)) == 1


def test_the_lock_holds_until_the_rows_are_written(server, ready):
    """Also after the release is saved: with --overwrite another run would give it rows of another release."""
    slow = "import hedgerow.release.files as f, time\nreal = f.write_table\n"
    slow += "f.write_table = lambda *w, **n: (open('drawing', 'w').close(), time.sleep(600))"
    running = server.start(SYNTH, ready, slow)
    while not (ready / "drawing").exists():
        time.sleep(0.02)
    refused = server.run([*SYNTH, "--overwrite"], ready)
    assert (refused.code, refused.refusal) == (2, "run-in-progress")
    os.kill(running.pid, signal.SIGINT)
    assert "hedgerow sample out.release -o out.csv" in running.wait().err
    assert not (ready / "out.release.journal").exists()


def test_a_release_that_appears_meanwhile_is_left_alone(server, ready):
    """The answers stay paid, and the run goes on once the other file is out of the way."""
    other = "from hedgerow.run.request import Checked\nreal = Checked.release\n"
    other += "Checked.release = lambda *w, **n: (real(*w, **n), open('out.release', 'w').write('mine'))[0]"
    done = server.run(SYNTH, ready, other)
    assert (done.code, done.refusal) == (2, "already-exists")
    assert '"out.release"' in done.err
    assert (ready / "out.release").read_text() == "mine"
    assert server.run([*SYNTH, "--resume"], ready).code == 2
    assert (ready / "out.release").read_text() == "mine"
    (ready / "out.release").unlink()
    done = server.run([*SYNTH, "--resume"], ready)
    assert done.code == 0, done.err
    assert len(debits(ready)) == 1


def test_a_run_that_was_killed_just_after_it_was_saved_goes_on(server, ready):
    """Its release is there and the journal too: it is the same release, byte for byte."""
    dying = "import os\nfrom hedgerow.private.journal import Claim\n"
    dying += "Claim.settle = lambda claim: os.kill(os.getpid(), 9)"
    assert server.run(SYNTH, ready, dying).code == -signal.SIGKILL
    saved = (ready / "out.release").read_bytes()
    done = server.run([*SYNTH, "--resume"], ready)
    assert done.code == 0, done.err
    assert (ready / "out.release").read_bytes() == saved
    assert len(debits(ready)) == 1
    assert not (ready / "out.release.journal").exists()


def test_an_interrupt_right_after_the_debit_keeps_the_journal(server, ready):
    stopping = "from hedgerow.private.ledger import Ledger\nreal = Ledger.debit\n"
    stopping += "def debit(*words):\n    real(*words)\n    raise KeyboardInterrupt\nLedger.debit = debit"
    stopped = server.run(SYNTH, ready, stopping)
    assert stopped.code == 130
    assert "the same command with --resume goes on" in stopped.err
    assert server.run([*SYNTH, "--resume"], ready).code == 0
    assert len(debits(ready)) == 1


def test_a_journal_is_claimed_once_and_again_when_it_is_let_go(tmp_path):
    with Claim(tmp_path / "j") as claim:
        with refused("run-in-progress"):
            Claim(tmp_path / "j")
        with refused("run-in-progress"):
            synthesize(ROWS, SMALL, Budget(1.0), journal=tmp_path / "j")
        assert not claim.begun
    assert not (tmp_path / "j").exists()
    with refused("nothing-to-resume"):
        Claim(tmp_path / "j", create=False)
    with refused("cannot-write", "no such folder"):
        Claim(tmp_path / "none" / "j")


@pytest.mark.parametrize("lacking", [(), ("rename",), ("rename", "link")])
def test_a_file_is_published_without_replacing(tmp_path, monkeypatch, lacking):
    """Also where the file system cannot do it in one step, or has no second names for a file."""
    if "rename" in lacking:
        monkeypatch.setattr(disk, "_rename_new", lambda *words: False)
    if "link" in lacking:
        monkeypatch.setattr(disk.os, "link", lambda *words: (_ for _ in ()).throw(PermissionError(1, "no links")))
    path = tmp_path / "f"
    with whole_file(path, replace=False) as partial:
        partial.write_text("first")
    with refused("already-exists"), whole_file(path, replace=False) as partial:
        partial.write_text("second")
    with whole_file(path, replace=False) as partial:
        partial.write_text("first")  # the very same bytes: a run that was killed just after it wrote them
    assert path.read_text() == "first"
    with whole_file(path) as partial:
        partial.write_text("third")
    assert os.listdir(tmp_path) == ["f"]
    assert path.read_text() == "third"


def test_what_a_killed_command_left_is_cleared_and_what_is_being_written_is_not(tmp_path):
    path = tmp_path / "f[1].csv"
    left = tmp_path / ".f[1].csv.0123.part"
    left.write_text("half")
    with whole_file(path) as partial:
        partial.write_text("whole")
        clear_unfinished(path)
        assert not left.exists()
        assert partial.exists()
    assert os.listdir(tmp_path) == ["f[1].csv"]


def test_ctrl_c_while_tidying_up_leaves_nothing(tmp_path, monkeypatch):
    real, stopped = os.unlink, []

    def unlink(path, **named):
        if not stopped:
            stopped.append(path)
            raise KeyboardInterrupt
        real(path, **named)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(KeyboardInterrupt), whole_file(tmp_path / "f") as partial:
        (partial / "not a folder").write_text("half")
    assert [os.path.basename(path) for path in stopped] == os.listdir(tmp_path)
    remove_unfinished()
    assert os.listdir(tmp_path) == []


def test_a_release_is_saved_over_another_only_when_that_is_wanted(tmp_path):
    made = synthesize(ROWS, SMALL, Budget(1.0), "independent")
    made.save(tmp_path / "r")
    other = synthesize(ROWS, SMALL, Budget(1.0), "independent")
    with refused("already-exists"):
        other.save(tmp_path / "r", overwrite=False)
    other.save(tmp_path / "r")
    assert Release.load(tmp_path / "r").estimated_rows == other.estimated_rows


def test_ctrl_c_in_code_that_is_not_ours_is_ctrl_c(server, ready):
    """An import that is interrupted may end in an error of another kind."""
    odd = """
import os
from hedgerow.run.request import Checked
def broken(*words, **named):
    try:
        os.kill(os.getpid(), 2)
        [None for _ in range(1000)]
    except KeyboardInterrupt:
        raise SystemError
Checked.release = broken
"""
    done = server.run(SYNTH, ready, odd)
    assert done.code == 130
    assert done.refusal == "stopped"
