"""Every command that writes, on a disk that is full, a name that is too long, a folder that is closed or gone.

The disks are real: small file systems in memory, mounted for a moment, which takes a superuser on Linux.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forked import write_inputs
from hedgerow.budget.amounts import Budget
from hedgerow.private.journal import Journal, Record
from hedgerow.private.ledger import Ledger
from hedgerow.release import disk as calls
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from paying import BUDGET, debits_of, next_command, synth_words, where_synth_is
from refusals import code_in, refused


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    pq.write_table(pa.table({f"column {n}": [1] for n in range(400)}), folder / "wide.parquet")
    table, schema = pa.table({"a": [*range(50)] * 100}), Schema.parse("columns: {a: {type: code, size: 50}}")
    synthesize(table, schema, BUDGET, "independent").save(folder / "r.release")
    return folder


class Disk:
    """A file system of so many pages of memory."""

    def __init__(self, folder):
        self.folder = folder

    def resize(self, pages):
        subprocess.run(["mount", "-o", f"remount,size={pages * 4096}", self.folder], check=True, capture_output=True)


@contextlib.contextmanager
def mounted(folder, pages):
    folder.mkdir(exist_ok=True)
    options = ["mount", "-t", "tmpfs", "-o", f"size={pages * 4096},nr_inodes=200,mode=755", "hedgerow-test"]
    try:
        subprocess.run([*options, folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def assert_told(done, disk):
    """One clear sentence that names the file, and no half of one."""
    assert done.code == 2, done
    last = done.err.splitlines()[-1]
    assert done.refusal in ("cannot-write", "file-failed", "no-disk-space"), done.err
    assert re.search(r'"[^"]+".*\(no space left on device\)', last), done.err
    assert "Traceback" not in done.err
    assert not list(disk.folder.rglob(".*.part"))


MORE = [pytest.param(pages, marks=pytest.mark.audit) for pages in (3, 5, 6, 9, 16, 24)]


@pytest.mark.parametrize("pages", [2, 4, 12, *MORE])
def test_a_run_on_a_full_disk_keeps_what_it_paid_for_and_goes_on(server, inputs, tmp_path, pages):
    """Everything lies on the disk: ledger, journal, release, rows and page; it ends at another one each time."""
    page = ("--report", "page.html", "--rows", "30000")
    with mounted(tmp_path / "disk", pages) as disk:
        Ledger.create(disk.folder / "l", "people", Budget(9.0, 1e-8))
        before = (disk.folder / "l").read_bytes()
        done = server.run(synth_words(inputs, *page), disk.folder)
        assert_told(done, disk)
        where = where_synth_is(disk.folder, *page)
        if where == "nothing begun":
            assert (disk.folder / "l").read_bytes() == before
        else:
            assert Ledger(disk.folder / "l").spent()
        disk.resize(4000)
        while (command := next_command(inputs, disk.folder, *page)) is not None:
            done = server.run(command[1], disk.folder)
            assert done.code == 0, done.err
        where_synth_is(disk.folder, *page)
        assert [debit["method"] for debit in debits_of(disk.folder)] == ["look", "mst"]


def test_a_ledger_on_a_full_disk_is_as_it_was(tmp_path):
    """A record that does not fit is taken back whole, and nothing was spent."""
    with mounted(tmp_path / "disk", 1) as disk:
        ledger = Ledger.create(disk.folder / "l", "people", Budget(9.0, 1e-8))
        with contextlib.suppress(BaseException):
            while True:
                before = ledger.path.read_bytes()
                ledger.note("evaluate")
        assert ledger.path.read_bytes() == before
        assert len(before) > 3500


WRITING = {
    "sample to a file": (["sample", "{inputs}/r.release", "-o", "rows.csv", "--rows", "20000", "-q"], 2),
    "sample to a table": (["sample", "{inputs}/r.release", "-o", "rows.parquet", "--rows", "60000", "-q"], 2),
    "sample to a folder": (["sample", "{inputs}/r.release", "-o", "rows", "--rows", "60000", "-q"], 2),
    "example": (["example", "opm", "-o", "t.csv", "--rows", "2000"], 2),
    "demo": (["demo", "-o", "demo", "--rows", "3000"], 1),
    "evaluate": (
        ["evaluate", *["{inputs}/t.parquet"] * 2, "-s", "{inputs}/s.yaml", "--metrics", "tvd1", "--report", "p.html"],
        2,
    ),
    "schema draft": (["schema", "draft", "{inputs}/wide.parquet", "-o", "s.yaml"], 1),
    "schema check": (["schema", "check", "{inputs}/t.parquet", "-s", "{inputs}/s.yaml", "--private", "p.html"], 0),
    "ledger create": (["ledger", "create", "l", "--dataset", "people", "--epsilon", "4"], 0),
}
"""What is typed, and how many pages of 4 KB are too few for it."""


@pytest.mark.parametrize("kind", WRITING)
def test_a_full_disk_is_told_with_the_name_of_the_file(server, inputs, tmp_path, kind):
    words, pages = WRITING[kind]
    words = [word.format(inputs=inputs) for word in words]
    with mounted(tmp_path / "disk", pages + 1) as disk:
        filler = disk.folder / "filler"
        filler.write_bytes(b"x" * 4096)  # one page is taken
        assert_told(server.run(words, disk.folder), disk)
        filler.unlink()
        disk.resize(4000)
        shutil.rmtree(disk.folder / "demo", ignore_errors=True)
        done = server.run([*words, *["--overwrite"] * (kind == "example")], disk.folder)
        assert done.code == 0, done.err


@pytest.mark.parametrize("name", ["x" * 240, "x" * 248, "x" * 252, "é" * 124, "x" * 300, "x/" * 2100 + "x"])
def test_a_name_that_is_too_long_is_refused_before_anything_is_read(server, inputs, tmp_path, name):
    """What is written beside a file has no name that is too long where the file's own is not."""
    Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    words = synth_words(inputs)
    words[words.index("out.csv")] = f"{name}.csv"
    done = server.run([*words, "--release", "r"], tmp_path)
    fits = len(os.fsencode(name)) <= 251
    assert done.code == (0 if fits else 2), done.err
    assert fits or (done.refusal == "cannot-write" and f'"{name}.csv"' in done.err)
    assert bool(Ledger(tmp_path / "l").spent()) == fits
    if not fits:
        done = server.run(words, tmp_path)
        assert (done.code, done.refusal) == (2, "cannot-write")
        for other in (
            ["sample", inputs / "r.release", "-o", f"{name}.csv"],
            ["sample", inputs / "r.release", "-o", name + 4 * "x"],
            ["example", "opm", "-o", f"{name}.csv"],
            ["ledger", "create", f"{name}.csv", "--dataset", "d", "--epsilon", "1"],
            ["schema", "draft", inputs / "t.parquet", "-o", f"{name}.csv"],
        ):
            done = server.run(other, tmp_path)
            assert (done.code, done.refusal) == (2, "cannot-write")
            assert re.search(r'"x[^"]*" .*\(file name too long\)', done.err), done.err
    assert not [path for path in os.listdir(tmp_path) if path.endswith((".part", ".journal"))]


def test_the_journal_of_a_long_name_is_named(server, inputs, tmp_path):
    Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    done = server.run([*synth_words(inputs), "--release", "x" * 250], tmp_path)
    assert (done.code, done.refusal) == (2, "cannot-write")
    assert re.search(r'"x+\.journal".*\(file name too long\)', done.err)
    assert not Ledger(tmp_path / "l").spent()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to a superuser")
def test_a_folder_that_is_closed_is_named(server, inputs, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    done = server.run(["sample", inputs / "r.release", "-o", "closed/rows.csv"], tmp_path)
    assert done.refusal == "cannot-write"
    assert '"closed/rows.csv"' in done.err
    assert "(permission denied)" in done.err


def test_a_disk_that_takes_no_writes_is_named(server, inputs, tmp_path):
    with mounted(tmp_path / "disk", 1000) as disk:
        Ledger.create(disk.folder / "l", "people", Budget(9.0, 1e-8))
        subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
        done = server.run(synth_words(inputs), disk.folder)
        assert (done.code, done.refusal) == (2, "cannot-write")
        assert re.search(r'"out\.release\.journal".* \(read-only file system\)', done.err)
        outside = [*synth_words(inputs)]
        outside[outside.index("l")] = disk.folder / "l"
        done = server.run(outside, tmp_path)
        assert (done.code, done.refusal) == (2, "cannot-write")
        assert re.search(r'".*/l" .*\(read-only file system\)\. Nothing was spent', done.err)
        assert sorted(os.listdir(tmp_path)) == ["disk"]


def test_a_folder_that_goes_away_meanwhile_is_named(server, inputs, tmp_path):
    """Before the debit nothing is spent; after it the debit stays, and it is said which file is lacking."""
    work = tmp_path / "work"
    work.mkdir()
    Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    words = synth_words(inputs)
    words[words.index("l")] = tmp_path / "l"
    words[words.index("out.csv")] = work / "out.csv"
    going = "import shutil\nfrom hedgerow.run.request import Checked\nreal = Checked.release\n"
    going += f"Checked.release = lambda *w, **n: (real(*w, **n), shutil.rmtree({str(work)!r}))[0]"
    done = server.run(words, tmp_path, going)
    assert (done.code, done.refusal) == (2, "cannot-write")
    assert f'"{work}/out.release"' in done.err


# ------------------------------------------------------------ writes that are cut short


class ShortWrites:
    """A disk that takes a few bytes at a time, without an error, as one that is nearly full does."""

    def __init__(self, monkeypatch, most):
        self._real, self._most = os.write, most
        monkeypatch.setattr(calls.os, "write", self)

    def __call__(self, descriptor, data):
        return self._real(descriptor, bytes(data[: self._most]))


def test_a_journal_that_is_written_in_pieces_is_whole(tmp_path, monkeypatch):
    ShortWrites(monkeypatch, 7)
    journal = Journal(tmp_path / "j", {"seed": 1})
    for number in range(3):
        journal.keep(["counts", number], lambda n=number: Record((), n, (pa.array([n]).to_numpy(),)))
    journal.close()
    again = Journal(tmp_path / "j", {"seed": 1}, resume=True)
    values = [again.keep(["counts", number], lambda: Record((), "new")).value for number in range(3)]
    again.close()
    assert values == [0, 1, 2]


def test_a_ledger_that_is_written_in_pieces_is_whole(tmp_path, monkeypatch):
    ShortWrites(monkeypatch, 7)
    ledger = Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    ledger.note("evaluate")
    assert len(ledger.entries()) == 2
    assert ledger.torn() == []


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_journal_that_cannot_be_written_is_named_and_keeps_its_records(tmp_path, monkeypatch, call):
    journal = Journal(tmp_path / "j", {"seed": 1})
    journal.keep(["counts", 0], lambda: Record((), "paid"))
    before = (tmp_path / "j").read_bytes()
    real = getattr(os, call)

    def full(descriptor, *rest):
        if rest:
            real(descriptor, bytes(rest[0][:5]))
        raise OSError(28, "")

    with monkeypatch.context() as patch:
        patch.setattr(calls.os, call, full)
        with refused("cannot-write", 'j"', "(no space left on device)"):
            journal.keep(["counts", 1], lambda: Record((), "never seen"))
    journal.close()
    assert (tmp_path / "j").read_bytes() == before
    again = Journal(tmp_path / "j", {"seed": 1}, resume=True)
    assert again.keep(["counts", 0], lambda: Record((), "new")).value == "paid"
    again.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_printing_to_a_full_disk_is_told(tmp_path, unbuffered):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    Ledger.create(tmp_path / "l", "people", Budget(9.0, 1e-8))
    full = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [sys.executable, "-c", "from hedgerow.cli import main; main()", "ledger", "show", "l"],
        cwd=tmp_path,
        stdout=full,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
    )
    os.close(full)
    assert done.returncode == 2
    assert code_in(done.stderr) == "file-failed"
    assert re.fullmatch(r"hedgerow .*printed.*\(no space left on device\).*\n", done.stderr)
