"""A run that is stopped goes on where it was, with the answers that it paid for."""

import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.budget.amounts import Budget
from hedgerow.errors import BudgetError
from hedgerow.methods import build
from hedgerow.private.journal import Claim, Journal, Record, _records
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Limits, Progress
from hedgerow.run import synthesize
from hedgerow.samples import opm
from hedgerow.schema import Schema
from refusals import refused

ROWS = opm.generate(400)
SCHEMA = Schema.parse(opm.SCHEMA)
BUDGET = Budget(1.0, 1e-9)
RUN = {"seed": 1}


class Stop(BaseException):
    """A power cut."""


@pytest.fixture
def cut_after(monkeypatch):
    """Let so many noisy answers through, then fail."""

    def arrange(answers):
        left = [answers]
        for name in ("noisy_counts", "choose"):
            real = getattr(Mechanisms, name)

            def passing(self, *words, real=real):
                if not left[0]:
                    raise Stop
                left[0] -= 1
                return real(self, *words)

            monkeypatch.setattr(Mechanisms, name, passing)

    yield arrange
    monkeypatch.undo()


def values(release):
    return [m.values.tolist() for answer in release.answers for m in answer.measurements]


@pytest.mark.parametrize("method", ["aim", "mst"])
@pytest.mark.parametrize("answers", [0, 1, 5, 9, 11])
def test_it_goes_on_with_the_same_answers_and_one_debit(tmp_path, cut_after, monkeypatch, method, answers):
    books = Ledger.create(tmp_path / "l", "opm", Budget(1.0, 1e-9))
    given = {"ledger": books.path, "journal": tmp_path / "j"}
    cut_after(answers)
    with pytest.raises(Stop):
        synthesize(ROWS, SCHEMA, BUDGET, build(method), **given)
    monkeypatch.undo()
    kept = [record for record in _read(tmp_path / "j") if record.arrays]
    with refused("ledger-exhausted"):  # the budget is spent: a second run cannot be paid
        synthesize(ROWS, SCHEMA, BUDGET, build(method), ledger=books.path)
    release = synthesize(ROWS, SCHEMA, BUDGET, build(method), **given, resume=True)
    assert values(release)[: len(kept)] == [record.arrays[0].tolist() for record in kept]
    assert release.certificate.spent == release.certificate.whole
    debits = [entry for entry in books.entries() if "debit" in entry.record]
    assert [entry.record["method"] for entry in debits] == ["look", method]
    assert [release.certificate.ledger[part] for part in ("look", "hash")] == [entry.digest for entry in debits]


def test_a_whole_run_resumed_is_the_same_run(tmp_path):
    first = synthesize(ROWS, SCHEMA, BUDGET, build("mst"), journal=tmp_path / "j")
    again = synthesize(ROWS, SCHEMA, BUDGET, build("mst"), journal=tmp_path / "j", resume=True)
    first.save(tmp_path / "first")
    again.save(tmp_path / "again")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


def test_the_turns_that_time_took_are_taken_again(tmp_path):
    hurried = Progress(Limits(seconds=1e-9))
    first = synthesize(ROWS, SCHEMA, BUDGET, build("aim"), journal=tmp_path / "j", progress=hurried)
    leisurely = Progress(Limits(seconds=1e9))
    again = synthesize(ROWS, SCHEMA, BUDGET, build("aim"), journal=tmp_path / "j", progress=leisurely, resume=True)
    assert values(again) == values(first)


def test_another_run_does_not_take_its_answers(tmp_path):
    synthesize(ROWS, SCHEMA, BUDGET, build("mst"), journal=tmp_path / "j")
    given = {"journal": tmp_path / "j"}
    with refused("another-run", "its budget is not"):
        synthesize(ROWS, SCHEMA, Budget(2.0, 1e-9), build("mst"), **given, resume=True)
    with refused("another-run", "its method is not"):
        synthesize(ROWS, SCHEMA, BUDGET, build("aim"), **given, resume=True)
    with refused("another-run", "its seed is not"):
        synthesize(ROWS, SCHEMA, BUDGET, build("mst"), **given, resume=True, seed=1)
    with refused("unfinished-run"):
        synthesize(ROWS, SCHEMA, BUDGET, build("mst"), **given)
    with refused("nothing-to-resume"):
        synthesize(ROWS, SCHEMA, BUDGET, build("mst"), journal=tmp_path / "none", resume=True)


def test_a_run_goes_on_with_the_ledger_that_it_began_with(tmp_path, cut_after, monkeypatch):
    books = {"ledger": Ledger.create(tmp_path / "l", "opm", Budget(4.0, 1e-9)).path}
    other = {"ledger": Ledger.create(tmp_path / "other", "opm", Budget(4.0, 1e-9)).path}
    for name, began, goes_on in (("paid", books, {}), ("elsewhere", books, other), ("free", {}, books)):
        given = {"journal": tmp_path / name}
        cut_after(3)
        with pytest.raises(Stop):
            synthesize(ROWS, SCHEMA, BUDGET, build("mst"), **given, **began)
        monkeypatch.undo()
        with refused("another-run", "its ledger is not"):
            synthesize(ROWS, SCHEMA, BUDGET, build("mst"), **given, **goes_on, resume=True)
        release = synthesize(ROWS, SCHEMA, BUDGET, build("mst"), **given, **began, resume=True)
        assert (release.certificate.ledger is not None) == bool(began)


def test_a_refused_run_leaves_no_journal(tmp_path, monkeypatch):
    books = Ledger.create(tmp_path / "l", "opm", Budget(1.0, 1e-9))
    monkeypatch.setattr(Ledger, "check", lambda *words: None)  # as if another run were quicker
    synthesize(ROWS, SCHEMA, BUDGET, build("independent"), ledger=books.path)
    with refused("ledger-exhausted"):
        synthesize(ROWS, SCHEMA, BUDGET, build("independent"), ledger=books.path, journal=tmp_path / "j")
    assert not (tmp_path / "j").exists()


def _read(path):
    return _records(path.read_bytes())[1]


def _written(path, count):
    journal = Journal(path, RUN)
    for number in range(count):
        journal.keep(["counts", number], lambda n=number: Record((), n, (np.arange(n + 1),)))
    journal.close()
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_journal_cut_anywhere_gives_back_its_whole_records(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("journal")
    whole = _written(folder / "j", 4)
    end = data.draw(st.integers(0, len(whole)))
    damaged = bytearray(whole[:end])
    if damaged and data.draw(st.booleans()):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1
    (folder / "j").write_bytes(bytes(damaged))
    try:
        journal = Journal(folder / "j", RUN, resume=True)
    except BudgetError:
        return  # not even its header is whole
    seen = [journal.keep(["counts", n], lambda: Record((), "new")).value for n in range(4)]
    known = seen.index("new") if "new" in seen else 4
    assert seen == [*range(known), *["new"] * (4 - known)]
    journal.close()
    if bytes(damaged) == whole:
        assert known == 4


def test_two_processes_do_not_share_one(tmp_path):
    first = Journal(tmp_path / "j", RUN)
    first.keep(["x"], lambda: Record((), 1))
    with refused("run-in-progress"):
        Journal(tmp_path / "j", RUN, resume=True)
    first.close()


KILLED = """
import os, signal, sys
from hedgerow.private.mechanisms import Mechanisms
import hedgerow.release.bundle, hedgerow.release.files
left = [int(sys.argv[1])]
for name in ("noisy_counts", "choose"):
    def dying(self, *words, real=getattr(Mechanisms, name)):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return real(self, *words)
    setattr(Mechanisms, name, dying)
if left[0] == 99:
    hedgerow.release.bundle.Release.save = lambda *words, **named: os.kill(os.getpid(), signal.SIGKILL)
from hedgerow.cli import main
sys.argv[1:] = sys.argv[2:]
main()
"""


@pytest.mark.parametrize("answers", [0, 1, 9, 99])
def test_kill_9_loses_nothing_that_was_paid(hedgerow, tmp_path, answers):
    pq.write_table(ROWS, tmp_path / "t.parquet")
    (tmp_path / "s.yaml").write_text(opm.SCHEMA)
    assert hedgerow("ledger", "create", "l", "--dataset", "opm", "--epsilon", "1", "--delta", "1e-9").code == 0
    words = ["synth", "t.parquet", "-s", "s.yaml", "-e", "1", "-m", "mst", "-o", "out.csv", "--ledger", "l", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(answers), *words], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["l", "out.release.journal", "s.yaml", "t.parquet"]
    again = hedgerow(*words)  # the ledger is too small for a second run: what helps is said all the same
    assert (again.code, again.refusal) == (2, "unfinished-run")
    assert "--resume" in again.err
    for voiding in ([], ["--resume"]):  # nor does a run that pays nothing take away what was paid
        assert hedgerow(*words[:-3], "--unsafe-noise-seed", "1", *voiding).code == 2
    resumed = hedgerow(*words, "--resume")
    assert resumed.code == 0, resumed.err
    assert "whether the table is the same was not checked" in resumed.err
    assert hedgerow("verify", "out.release", "--ledger", "l").code == 0
    assert "out.release.journal" not in os.listdir(tmp_path)
    assert len([entry for entry in Ledger(tmp_path / "l").entries() if "debit" in entry.record]) == 2  # look, and rest


def test_a_header_that_was_cut_short_is_no_payment_and_one_that_was_damaged_may_be(tmp_path):
    """Every cut through the header, and every flipped bit of a whole one."""
    header = _header(tmp_path / "j")
    for end in range(len(header)):
        (tmp_path / "j").write_bytes(header[:end])
        with Claim(tmp_path / "j") as claim:
            assert not claim.begun
    for offset in range(len(header)):
        flipped = bytearray(header)
        flipped[offset] ^= 1 << offset % 8
        (tmp_path / "j").write_bytes(flipped)
        with Claim(tmp_path / "j") as claim:
            assert claim.begun
        with refused("journal-damaged"):
            Journal(tmp_path / "j", RUN, resume=True)


def _header(path):
    """What a journal holds that was begun, before anything was paid."""
    journal = Journal(path, RUN)
    journal.begin()
    written = path.read_bytes()
    journal.close()
    assert not path.exists()
    return written
