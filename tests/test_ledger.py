"""The lifetime ledger: append-only, exact, and true after a kill."""

import json
import multiprocessing
import os
import random
import re
import signal
import time

import pytest

from hedgerow.budget.accounting import covers, whole
from hedgerow.budget.amounts import Budget, Currency
from hedgerow.errors import BudgetError, OptionError
from hedgerow.private.ledger import ROW, Ledger, confirm_entry, equivalent_epsilon, note_exact_access

LIFETIME = Budget(4.0, 1e-8)
RUN = Budget(1.0, 1e-9)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "people.ledger", "people", LIFETIME)


def test_debits_add_up_exactly_until_the_next_would_not_fit(ledger):
    runs = 0
    while covers(LIFETIME, ledger.spent() + whole(RUN)):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
        runs += 1
    with pytest.raises(BudgetError, match=r"asks for ε = 1; .* left .* too little\)"):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert ledger.spent().units == runs * whole(RUN).units
    assert covers(LIFETIME, ledger.spent())
    assert not covers(LIFETIME, ledger.spent() + whole(RUN))
    # Gaussian composition: more than the four releases that adding up ε would allow
    assert runs > 4
    assert equivalent_epsilon(ledger) <= 4.0


def test_what_is_left_can_be_spent_and_not_more(ledger):
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    left = ledger.remaining_epsilon(1e-9)
    rest = Budget(left, 1e-9)
    ledger.debit(rest, whole(rest), "independent", ROW)
    assert ledger.remaining_epsilon(1e-9) < 1e-6 * left + 1e-6
    with pytest.raises(BudgetError):
        ledger.check("people", Budget(0.01, 1e-9), ROW)


@pytest.mark.parametrize("delta", [1e-8, 1e-9, 1e-6, 0.0])
def test_a_refusal_says_what_is_left_at_the_delta_that_was_asked_for(tmp_path, delta):
    ledger = Ledger.create(tmp_path / "l", "people", Budget(2.0, 1e-8 if delta else 0.0))
    run = Budget(1.5, delta)
    ledger.debit(run, whole(run), "independent", ROW)
    left = ledger.remaining_epsilon(delta)
    assert 0.4 < left < 1.5
    with pytest.raises(BudgetError) as refused:
        ledger.check("people", run, ROW)
    assert float(re.search(r"has ε = ([\d.]+) left", str(refused.value))[1]) == pytest.approx(left, abs=1e-5)


def test_pure_ledgers_take_pure_runs_only_and_gaussian_ledgers_take_both(tmp_path, ledger):
    pure = Ledger.create(tmp_path / "pure.ledger", "people", Budget(2.0, 0.0))
    with pytest.raises(BudgetError, match="pure ε only"):
        pure.check("people", RUN, ROW)
    pure.debit(Budget(1.5, 0.0), whole(Budget(1.5, 0.0)), "independent", ROW)
    assert pure.remaining_epsilon(0.0) == pytest.approx(0.5)
    entry = ledger.debit(Budget(0.5, 0.0), whole(Budget(0.5, 0.0)), "independent", ROW)
    assert entry.number == 1
    assert ledger.spent().currency is Currency.GDP


def test_another_datasets_ledger_is_refused(ledger):
    with pytest.raises(BudgetError, match='belongs to the dataset "people", the schema declares "patients"'):
        ledger.check("patients", RUN, ROW)


def test_an_existing_file_is_never_overwritten(ledger, tmp_path):
    before = ledger.path.read_bytes()
    with pytest.raises(OptionError, match="exists already"):
        Ledger.create(ledger.path, "people", LIFETIME)
    assert ledger.path.read_bytes() == before
    with pytest.raises(OptionError, match="cannot be read"):
        Ledger(tmp_path / "missing.ledger")
    with pytest.raises(OptionError, match="needs the name of its dataset"):
        Ledger.create(tmp_path / "nameless", " ", LIFETIME)
    assert not (tmp_path / "nameless").exists()


@pytest.mark.parametrize(
    "data", [b"", b"a,b\n1,2\n", b"columns: {a: {type: code}}\n", b"PK\x03\x04\n\x00", b'{"format": "other"}\n']
)
def test_a_file_of_another_kind_is_called_that(tmp_path, data):
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(BudgetError, match="is not a Hedgerow ledger"):
        Ledger(tmp_path / "other")


@pytest.mark.parametrize("change", ["edit", "drop", "swap"])
def test_an_altered_ledger_is_noticed(ledger, change):
    for _ in range(3):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    if change == "edit":
        record = json.loads(lines[1])
        record["debit"]["units"] = "1"
        lines[1] = json.dumps(record).encode() + b"\n"
    elif change == "drop":
        del lines[1]
    else:
        lines[1], lines[2] = lines[2], lines[1]
    ledger.path.write_bytes(b"".join(lines))
    with pytest.raises(BudgetError, match="was altered"):
        Ledger(ledger.path)


def test_a_damaged_last_record_is_no_refund(ledger):
    """One flipped byte in the last debit must not make it vanish."""
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    data = bytearray(ledger.path.read_bytes())
    data[data.rindex(b"debit") - 1] ^= 1
    ledger.path.write_bytes(bytes(data))
    with pytest.raises(BudgetError, match="was altered"):
        Ledger(ledger.path)


def test_a_rolled_back_or_edited_tail_shows_against_the_certificate(ledger):
    before = ledger.path.read_bytes()
    entry = ledger.debit(RUN, whole(RUN), "independent", ROW)
    named = {"dataset": "people", "entry": entry.number, "hash": entry.digest}
    assert "the record that the certificate names" in confirm_entry(ledger.path, named)
    edited = ledger.path.read_bytes().replace(str(whole(RUN).units).encode(), b"0")
    for data in (before, edited):
        ledger.path.write_bytes(data)
        with pytest.raises(BudgetError, match="rolled back"):
            confirm_entry(ledger.path, named)
    with pytest.raises(BudgetError, match="names no ledger"):
        confirm_entry(ledger.path, None)


def test_guarantees_of_different_units_do_not_add_up(ledger):
    ledger.debit(RUN, whole(RUN), "independent", "person_id")
    with pytest.raises(BudgetError, match=r'per person \("person_id"\), this one would be per row'):
        ledger.check("people", RUN, ROW)
    with pytest.raises(BudgetError, match="do not add up"):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.check("people", RUN, "person_id")


def test_a_pure_run_is_never_free_under_a_gaussian_ledger(ledger):
    tiny = Budget(5e-13, 0.0)
    ledger.debit(tiny, whole(tiny), "independent", ROW)
    assert ledger.spent().units > 0
    assert ledger.remaining_epsilon(0.0) > 0


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_line_cut_short_by_a_kill_is_no_record(ledger, cut):
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    whole_bytes = ledger.path.read_bytes()
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-cut])
    assert ledger.spent().units == whole(RUN).units
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert Ledger(ledger.path).spent().units == 2 * whole(RUN).units
    assert ledger.path.read_bytes().startswith(whole_bytes)


def test_looking_at_exact_data_leaves_a_record(ledger):
    note_exact_access(ledger.path, "evaluate")
    assert ledger.entries()[-1].record["looked"] == "evaluate"
    assert not ledger.spent()


def _spend_forever(path, drawn):
    ledger = Ledger(path)
    with open(drawn, "ab", buffering=0) as file:
        while True:
            try:
                ledger.debit(Budget(0.01, 1e-12), whole(Budget(0.01, 1e-12)), "independent", ROW)
            except BudgetError:
                return
            file.write(b"x")  # the draw: only after the debit returned


def test_killed_at_random_moments_no_draw_is_without_its_debit(tmp_path):
    """100 kills; the number of debits is never below the number of draws."""
    ledger = Ledger.create(tmp_path / "l", "people", Budget(50.0, 1e-8))
    drawn = tmp_path / "drawn"
    moments = random.Random(7)
    context = multiprocessing.get_context("fork")
    for _ in range(100):
        worker = context.Process(target=_spend_forever, args=(ledger.path, drawn))
        worker.start()
        time.sleep(moments.uniform(0.002, 0.03))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        debits = sum("debit" in entry.record for entry in Ledger(ledger.path).entries())
        draws = drawn.stat().st_size if drawn.exists() else 0
        assert draws <= debits
    assert debits > 0


def test_eight_writers_hold_the_budget_exactly(tmp_path):
    budget, run = Budget(1.0, 1e-8), Budget(0.05, 1e-12)
    ledger = Ledger.create(tmp_path / "l", "people", budget)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_spend_all, args=(ledger.path, run)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    spent = Ledger(ledger.path).spent()
    assert spent.units % whole(run).units == 0
    assert covers(budget, spent)
    assert not covers(budget, spent + whole(run))


def _spend_all(path, run):
    ledger = Ledger(path)
    try:
        while True:
            ledger.debit(run, whole(run), "independent", ROW)
    except BudgetError:
        pass
