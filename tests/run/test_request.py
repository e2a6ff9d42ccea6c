"""One way to a release: the same words mean the same on the command line, in Python and in a comparison."""

import sys
from dataclasses import replace

import pytest

import hedgerow as hr
from hedgerow.cli import main
from hedgerow.compare import Cell, Plan
from hedgerow.methods import build
from hedgerow.private.journal import Journal, Record
from hedgerow.private.ledger import Ledger
from hedgerow.run import Outputs, Request
from hedgerow.run import outputs as outputs_module
from hedgerow.run import request as request_module
from refusals import refused

BUDGET = hr.Budget(1.0, 1e-9)


@pytest.fixture
def synth(people, monkeypatch):
    """Run the command in this process."""

    def run(*words):
        monkeypatch.chdir(people)
        given = ("synth", "people.parquet", "-s", "people.yaml", "-e", "1", "-m", "mst", "-o", "out.csv", "-q", *words)
        monkeypatch.setattr(sys, "argv", ["hedgerow", *given])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code

    return run


def test_the_same_words_give_the_same_release(synth, people):
    assert synth("--set", "merge=2", "--unsafe-noise-seed", "3", "--seed", "5", "--quality", "0") == 0
    named = {"table": str(people / "people.parquet"), "schema": str(people / "people.yaml")}
    by_hand = build("mst", {"merge": "2"})
    python = hr.synthesize(*named.values(), BUDGET, by_hand, seed=5, unsafe_noise_seed=3, quality=0)
    plan = Plan(**named, methods=("mst",), epsilons=(1.0,), runs=1, metrics=("tvd1",))
    plan = replace(plan, options={"mst": {"merge": "2"}}, seed=3, unsafe_noise_seed=1)  # run 2 is seeded by 5 and 3
    compared = plan.request(Cell("method", "mst", 1.0, 2)).checked().release()
    for number, release in enumerate((python, compared)):
        release.save(people / f"{number}.release")
        assert (people / f"{number}.release").read_bytes() == (people / "out.release").read_bytes()


def test_everything_is_judged_once(synth, monkeypatch):
    calls = []

    def counted(real):
        def call(*words, **named):
            calls.append(real.__name__)
            return real(*words, **named)

        return call

    monkeypatch.setattr(outputs_module, "check_outputs", counted(outputs_module.check_outputs))
    monkeypatch.setattr(request_module, "build", counted(request_module.build))
    assert synth() == 0
    assert calls == ["check_outputs", "build"]


def test_options_are_never_dropped(people):
    given = Request(people / "people.parquet", people / "people.yaml", BUDGET, build("mst"), options={"merge": "2"})
    with refused("options-of-a-built-method"):
        given.checked()


def test_a_journal_lies_beside_the_release_unless_noise_is_seeded(people):
    files = Outputs(people / "out.csv", people / "x.release", rows=7)
    asked = Request(people / "people.parquet", people / "people.yaml", BUDGET, outputs=files)
    assert asked.paid_answers == people / "x.release.journal"
    assert files.sampling(5) == f"hedgerow sample {people}/x.release -o {people}/out.csv --rows 7 --seed 5"
    assert not files.is_done
    unsafe = Request(people / "people.parquet", people / "people.yaml", BUDGET, unsafe_noise_seed=1, outputs=files)
    assert unsafe.paid_answers is None


def test_nothing_is_opened_before_everything_is_judged(people):
    """The table does not exist: what is said is what comes first, and a rehearsal never asks for it."""
    Ledger.create(people / "l", "opm", hr.Budget(0.5, 1e-9))
    journal = Journal(people / "out.release.journal", {"seed": 1})
    journal.keep(["counts"], lambda: Record((), 1))
    journal.close()
    asked = {"table": "none.csv", "schema": people / "people.yaml", "budget": BUDGET, "method": "independent"}
    with refused("unfinished-run"):
        Request(**asked, outputs=Outputs(people / "out.csv", people / "out.release")).checked()
    with refused("ledger-exhausted"):
        Request(**asked, ledger=people / "l").checked()
    assert Request(**asked).checked().rehearsal(100).certificate.void
