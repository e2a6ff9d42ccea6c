"""One rule for every command that writes: a file that exists is left alone, and some are never written over."""

import json
import sys

import pytest

from hedgerow.cli import main
from hedgerow.private import journal, ledger
from hedgerow.run.outputs import check_outputs
from refusals import refused

MINE = "mine\n"


SYNTH = ("synth", "people.parquet", "-s", "people.yaml", "-e", "1", "-m", "independent", "-q")
EVALUATE = ("evaluate", "people.parquet", "people.parquet", "-s", "people.yaml", "--metrics", "tvd1", "-q")

WRITING = {
    "mine.csv": [*SYNTH, "-o", "mine.csv"],
    "mine.release": [*SYNTH, "-o", "mine.parquet"],
    "mine.model": [*SYNTH, "-o", "out.csv", "--release", "mine.model"],
    "page.html": [*SYNTH, "-o", "out.csv", "--report", "page.html"],
    "evaluation.html": [*EVALUATE, "--report", "evaluation.html"],
    "misfits.html": ["schema", "check", "people.parquet", "-s", "people.yaml", "--private", "misfits.html"],
    "draft.yaml": ["schema", "draft", "people.parquet", "-o", "draft.yaml"],
    "example.csv": ["example", "opm", "-o", "example.csv", "--rows", "9"],
    "example.yaml": ["example", "opm", "-o", "example.csv", "--rows", "9"],
    "audit.md": ["audit", "independent", "--pairs", "6", "--runs", "100", "-o", "audit.md"],
}


@pytest.mark.parametrize("name", WRITING)
def test_a_file_that_exists_is_left_alone(hedgerow, people, name):
    (people / name).write_text(MINE)
    before = sorted(people.iterdir())
    done = hedgerow(*WRITING[name])
    assert (done.code, done.refusal) == (2, "already-exists")
    assert f'"{name}"' in done.err
    assert "--overwrite" in done.err
    assert (people / name).read_text() == MINE
    assert sorted(people.iterdir()) == before
    if name in ("mine.csv", "evaluation.html", "misfits.html", "example.yaml"):
        again = hedgerow(*WRITING[name], "--overwrite")
        assert again.code == 0, again.err
        assert (people / name).read_text() != MINE


def test_sample_leaves_files_alone_too_but_goes_on_with_its_folder(hedgerow, people):
    assert hedgerow(*SYNTH, "-o", "out.csv").code == 0
    sample = ("sample", "out.release", "--rows", "20", "-q", "-o")
    refused = hedgerow(*sample, "out.csv")
    assert (refused.code, refused.refusal) == (2, "already-exists")
    assert '"out.csv"' in refused.err
    assert hedgerow(*sample, "out.csv", "--overwrite").code == 0
    assert len((people / "out.csv").read_text().splitlines()) == 21
    for _ in range(2):
        assert hedgerow(*sample, "folder").code == 0


def test_the_demo_can_be_repeated_but_replaces_nothing_of_ours(hedgerow, people):
    (people / "demo").mkdir()
    (people / "demo" / "private.parquet").write_text(MINE)
    refused = hedgerow("demo", "--rows", 300)
    assert refused.code == 2
    assert (people / "demo" / "private.parquet").read_text() == MINE
    (people / "demo" / "private.parquet").unlink()
    (people / "demo" / "synthetic.release").write_text(MINE)
    for _ in range(2):
        assert hedgerow("demo", "--rows", 300).code == 2
        assert (people / "demo" / "synthetic.release").read_text() == MINE
    (people / "demo" / "synthetic.release").unlink()
    for _ in range(2):
        done = hedgerow("demo", "--rows", 300)
        assert done.code == 0, done.err


def test_overwrite_never_replaces_a_ledger_a_journal_or_an_input(people):
    ledger.Ledger.create(people / "l", "opm", ledger.Budget(1.0, 1e-9))
    paid = journal.Journal(people / "j", {"seed": 1})
    paid.begin()
    for kept, what in (("l", "a ledger"), ("j", "a journal")):
        with refused("never-overwritten", what):
            check_outputs([(people / kept, ())], {}, overwrite=True)
    paid.close()
    for given in (people / "people.yaml", f"duckdb://{people / 'people.yaml'}/table"):
        with refused("output-is-input"):
            check_outputs([(people / "people.yaml", ())], {"input": given}, overwrite=True)
    check_outputs([(people / "people.yaml", ())], {"input": people / "people.parquet"}, overwrite=True)


@pytest.mark.parametrize("folder", [".", "..", "/"])
@pytest.mark.parametrize(
    ("command", "code"),
    [(SYNTH, "is-a-folder"), (("example", "opm"), "is-a-folder"), (("schema", "draft", "people.parquet"), "usage")],
)
def test_a_folder_is_no_file_to_write(hedgerow, people, command, code, folder):
    (people / "t.csv").mkdir()
    for given in (folder, "t.csv"):
        done = hedgerow(*command, "-o", given)
        assert (done.code, done.refusal) == (2, code)
        assert "is a folder" in done.err or "is a directory" in done.err


SEVERAL = ("synth", "t.csv", "-s", "parameters.json", "-m", "mst", "-o", "out.csv", "-q")


def several(people, *epsilons):
    wanted = [
        {"epsilon": epsilon, "delta": 1e-9, "max_records": 9, "max_records_per_individual": 1} for epsilon in epsilons
    ]
    columns = {name: {"dtype": "int", "values": [0, 1]} for name in ("a", "b")}
    (people / "parameters.json").write_text(json.dumps({"schema": columns, "runs": wanted}))
    (people / "t.csv").write_text("a,b\n" + 500 * "0,0\n1,1\n")


def test_several_releases_are_refused_before_the_first_is_paid(hedgerow, people):
    several(people, 1, 2)
    (people / "out-2.csv").write_text(MINE)
    refused = hedgerow(*SEVERAL)
    assert (refused.code, refused.refusal) == (2, "already-exists")
    assert '"out-2.csv"' in refused.err
    assert not (people / "out-1.release").exists()
    done = hedgerow(*SEVERAL, "--overwrite")
    assert done.code == 0, done.err
    assert (people / "out-1.release").exists()


def test_a_bad_budget_among_several_is_refused_before_the_first_is_paid(hedgerow, people):
    several(people, 1, 0)
    refused = hedgerow(*SEVERAL)
    assert (refused.code, refused.refusal) == (2, "bad-epsilon")
    assert not (people / "out-1.release").exists()


def test_several_releases_go_on_where_they_were_stopped(hedgerow, people, monkeypatch):
    several(people, 1, 2, 3)
    choices = iter([False, True])  # mst chooses once a run here; the second run is stopped at its choice

    def stopping(self, *words, real=journal.Journaled.choose):
        if next(choices):
            raise KeyboardInterrupt
        return real(self, *words)

    with monkeypatch.context() as patch:
        patch.chdir(people)
        patch.setattr(sys, "argv", ["hedgerow", *SEVERAL])
        patch.setattr(journal.Journaled, "choose", stopping)
        with pytest.raises(SystemExit):
            main()
    first = (people / "out-1.release").read_bytes()
    assert (people / "out-2.release.journal").exists()
    assert not (people / "out-3.release").exists()
    assert hedgerow(*SEVERAL).code == 2
    done = hedgerow(*SEVERAL, "--resume")
    assert done.code == 0, done.err
    assert (people / "out-1.release").read_bytes() == first
    for number in (2, 3):
        assert hedgerow("verify", f"out-{number}.release").code == 0
    assert not (people / "out-2.release.journal").exists()


def test_the_note_of_a_void_table_goes_with_the_table(hedgerow, people):
    note = people / "out.csv.NO-GUARANTEE.txt"
    note.write_text(MINE)
    void = (*SYNTH, "-o", "out.csv", "--unsafe-noise-seed", "1")
    assert hedgerow(*void).code == 2
    assert note.read_text() == MINE
    assert hedgerow(*void, "--overwrite").code == 0
    assert "NO privacy guarantee" in note.read_text()
    assert hedgerow(*SYNTH, "-o", "out.csv", "--overwrite").code == 0
    assert not note.exists()
