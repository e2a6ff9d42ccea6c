"""The lifetime ledger: append-only, exact, and true after a kill."""

import errno
import hashlib
import json
import multiprocessing
import os
import random
import re
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forked import write_inputs
from hedgerow.budget.accounting import covers, whole
from hedgerow.budget.amounts import Budget, Currency
from hedgerow.errors import BudgetError
from hedgerow.private.books import Books, line
from hedgerow.private.ledger import ROW, Ledger, confirm_entry, equivalent_epsilon, note_exact_access
from refusals import refused

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
    with refused("ledger-exhausted", "asks for ε = 1;", "too little"):
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
    with refused("ledger-exhausted"):
        ledger.check("people", Budget(0.01, 1e-9), ROW)


@pytest.mark.parametrize("delta", [1e-8, 1e-9, 1e-6, 0.0])
def test_a_refusal_says_what_is_left_at_the_delta_that_was_asked_for(tmp_path, delta):
    ledger = Ledger.create(tmp_path / "l", "people", Budget(2.0, 1e-8 if delta else 0.0))
    run = Budget(1.5, delta)
    ledger.debit(run, whole(run), "independent", ROW)
    left = ledger.remaining_epsilon(delta)
    assert 0.4 < left < 1.5
    with refused("ledger-exhausted") as told:
        ledger.check("people", run, ROW)
    assert float(re.search(r"has ε = ([\d.]+) left", str(told.value))[1]) == pytest.approx(left, abs=1e-5)


def test_pure_ledgers_take_pure_runs_only_and_gaussian_ledgers_take_both(tmp_path, ledger):
    pure = Ledger.create(tmp_path / "pure.ledger", "people", Budget(2.0, 0.0))
    with refused("ledger-pure-epsilon"):
        pure.check("people", RUN, ROW)
    pure.debit(Budget(1.5, 0.0), whole(Budget(1.5, 0.0)), "independent", ROW)
    assert pure.remaining_epsilon(0.0) == pytest.approx(0.5)
    entry = ledger.debit(Budget(0.5, 0.0), whole(Budget(0.5, 0.0)), "independent", ROW)
    assert entry.number == 1
    assert ledger.spent().currency is Currency.GDP


def test_another_datasets_ledger_is_refused(ledger):
    with refused("another-dataset", '"people"', '"patients"'):
        ledger.check("patients", RUN, ROW)


def test_an_existing_file_is_never_overwritten(ledger, tmp_path):
    before = ledger.path.read_bytes()
    with refused("already-exists"):
        Ledger.create(ledger.path, "people", LIFETIME)
    assert ledger.path.read_bytes() == before
    with refused("no-ledger"):
        Ledger(tmp_path / "missing.ledger")
    with refused("missing-dataset"):
        Ledger.create(tmp_path / "nameless", " ", LIFETIME)
    assert not (tmp_path / "nameless").exists()


@pytest.mark.parametrize(
    "data", [b"", b"a,b\n1,2\n", b"columns: {a: {type: code}}\n", b"PK\x03\x04\n\x00", b'{"format": "other"}\n']
)
def test_a_file_of_another_kind_is_called_that(tmp_path, data):
    (tmp_path / "other").write_bytes(data)
    with refused("not-a-ledger"):
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
    with refused("ledger-altered"):
        Ledger(ledger.path)


def test_a_damaged_last_record_is_no_refund(ledger):
    """One flipped byte in the last debit must not make it vanish."""
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    data = bytearray(ledger.path.read_bytes())
    data[data.rindex(b"debit") - 1] ^= 1
    ledger.path.write_bytes(bytes(data))
    with refused("ledger-altered"):
        Ledger(ledger.path)


def test_a_rolled_back_or_edited_tail_shows_against_the_certificate(ledger):
    before = ledger.path.read_bytes()
    entry = ledger.debit(RUN, whole(RUN), "independent", ROW)
    named = {"dataset": "people", "entry": entry.number, "hash": entry.digest}
    assert "the record that the certificate names" in confirm_entry(ledger.path, named)
    edited = ledger.path.read_bytes().replace(str(whole(RUN).units).encode(), b"0")
    for data, said in ((before, "ledger-rolled-back"), (edited, "ledger-altered")):
        ledger.path.write_bytes(data)
        with refused(said):
            confirm_entry(ledger.path, named)
    with refused("no-ledger-named"):
        confirm_entry(ledger.path, None)


def test_guarantees_of_different_units_do_not_add_up(ledger):
    ledger.debit(RUN, whole(RUN), "independent", "person_id")
    with refused("mixed-units", '"person_id"'):
        ledger.check("people", RUN, ROW)
    with refused("mixed-units"):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.check("people", RUN, "person_id")


def test_a_pure_run_is_never_free_under_a_gaussian_ledger(ledger):
    tiny = Budget(5e-13, 0.0)
    ledger.debit(tiny, whole(tiny), "independent", ROW)
    assert ledger.spent().units > 0
    assert ledger.remaining_epsilon(0.0) > 0


@pytest.mark.parametrize("lost", [1, 5, 60])
def test_a_line_cut_short_is_reported_and_never_lowers_what_is_spent(ledger, lost):
    """A debit that was acted on and lost its end afterwards still counts, also when others come after it."""
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    before = ledger.path.read_bytes()
    assert ledger.torn() == []
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-lost])
    assert ledger.torn() == ["the line after record 1 was cut short; the debit in it counts as spent."]
    assert ledger.spent().units == 2 * whole(RUN).units
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert Ledger(ledger.path).spent().units == 3 * whole(RUN).units
    assert len(ledger.torn()) == 1
    assert len(ledger.entries()) == 3
    assert ledger.path.read_bytes().startswith(before)


def test_a_line_cut_short_before_its_debit_is_reported_all_the_same(ledger):
    end = len(ledger.path.read_bytes())
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[: end + 90])
    assert ledger.torn() == ["the line after record 0 was cut short; no debit can be read from it, so none is counted."]
    assert not ledger.spent()


def test_a_run_whose_debit_was_cut_short_is_debited_once(ledger):
    ledger.debit(RUN, whole(RUN), "independent", ROW, "1" * 32)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-1])
    assert ledger.spent().units == whole(RUN).units
    entry = ledger.debit(RUN, whole(RUN), "independent", ROW, "1" * 32)
    assert ledger.debit(RUN, whole(RUN), "independent", ROW, "1" * 32).digest == entry.digest
    assert ledger.spent().units == whole(RUN).units


def old_line(record, after):
    """As version 0.1.0 wrote it before records carried their own hash."""
    return json.dumps({"after": after, **record}).encode() + b"\n"


def old_ledger(path):
    """Two debits, and between them a line that was cut short."""
    units = {"units": str(whole(RUN).units), "delta_units": "0"}
    debit = {"debit": units, "epsilon": 1.0, "delta": 1e-9, "method": "mst", "unit": "", "time": "2026-01-01"}
    header = {"format": "hedgerow ledger 1", "dataset": "people", "epsilon": 4.0, "delta": 1e-8, "name": "7" * 32}
    lines = [old_line(header, "")]
    for _ in range(2):
        lines.append(old_line(debit, hashlib.sha256(lines[-1]).hexdigest()))
    path.write_bytes(lines[0] + lines[1] + b'{"after": "12#torn\n' + lines[2])
    return Ledger(path)


def test_a_ledger_of_the_version_before_goes_on_and_is_guarded_from_then_on(tmp_path):
    ledger = old_ledger(tmp_path / "l")
    assert ledger.spent().units == 2 * whole(RUN).units
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert ledger.spent().units == 3 * whole(RUN).units
    data = ledger.path.read_bytes()
    assert_no_flip_is_a_refund(data)
    after = hashlib.sha256(data.splitlines(keepends=True)[-1]).hexdigest()
    ledger.path.write_bytes(data + old_line({"looked": "evaluate", "time": "2026-01-02"}, after))
    with refused("ledger-altered"):
        ledger.spent()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"refund": "1", "time": "t"}, "ledger-unknown-record"),
        ({"looked": 7, "time": "t"}, "ledger-altered"),
        ({"debit": {"units": "-1", "delta_units": "0"}}, "ledger-unknown-record"),
    ],
)
def test_a_record_that_is_unknown_is_refused(ledger, record, said):
    """Whoever wrote it: it might be a debit."""
    ledger.path.write_bytes(ledger.path.read_bytes() + line(record, ledger.entries()[-1].digest))
    with refused(said):
        ledger.spent()


def spent_in(data):
    """What a ledger says is spent, and which of its lines are whole; None where it is refused."""
    try:
        books = Books.parse(data)
    except ValueError:
        return None
    seen = {entry.record.get("journal") for entry in books.entries} - {None}
    return sum(int(entry.record["debit"]["units"]) for entry in books.entries if "debit" in entry.record) + sum(
        each.units for each in books.torn if each.journal not in seen
    )


def assert_no_flip_is_a_refund(data):
    spent = spent_in(data)
    assert spent
    for offset in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[offset] ^= 1 << bit
            found = spent_in(bytes(flipped))
            assert found is None or found >= spent, (offset, bit)


@pytest.fixture(scope="module")
def well_used(tmp_path_factory):
    """A ledger with all that one can hold: debits with and without a journal, a look, a period, a correction, a
    line that was cut short.
    """
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "l", "people", LIFETIME)
    first = ledger.debit(RUN, whole(RUN), "independent", ROW, "a" * 32)
    ledger.open_period("2026", Budget(3.0, 1e-8), "year")
    ledger = Ledger(ledger.path)
    ledger.replace(first.digest, ledger.debit(RUN, whole(RUN), "independent", ROW).digest, "wrong")
    ledger.note("evaluate")
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-7])
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    return ledger.path.read_bytes()


def test_no_flipped_bit_lowers_what_is_spent(well_used):
    """Every bit of the file, one at a time."""
    assert_no_flip_is_a_refund(well_used)


@given(data=st.data())
def test_no_damage_lowers_what_is_spent_or_goes_without_a_word(well_used, tmp_path_factory, data):
    """Lines that are repeated, swapped or lost in the middle, bytes put in or changed: refused, or spent stays.

    An end that is missing cannot be seen in the file; what it still holds is counted.
    """
    lines = well_used.splitlines(keepends=True)
    indices = st.integers(0, len(lines) - 1)
    kind = data.draw(st.sampled_from(["repeat", "swap", "lose", "insert", "change", "cut"]))
    spent, damaged = spent_in(well_used), well_used
    first, second = data.draw(indices), data.draw(indices)
    if kind == "repeat":
        damaged = b"".join([*lines[: second + 1], lines[first], *lines[second + 1 :]])
    elif kind == "swap":
        lines[first], lines[second] = lines[second], lines[first]
        damaged = b"".join(lines)
    elif kind == "lose":
        del lines[data.draw(st.integers(0, len(lines) - 2))]
        damaged = b"".join(lines)
    elif kind == "insert":
        offset = data.draw(st.integers(0, len(well_used)))
        damaged = well_used[:offset] + data.draw(st.binary(min_size=1, max_size=9)) + well_used[offset:]
    elif kind == "change":
        changed = bytearray(well_used)
        changed[data.draw(st.integers(0, len(well_used) - 1))] ^= data.draw(st.integers(1, 255))
        damaged = bytes(changed)
    else:
        end = data.draw(st.integers(0, len(well_used)))
        damaged = well_used[:end]
        spent = spent_in(damaged[: damaged.rindex(b"\n") + 1]) if b"\n" in damaged else None
    path = tmp_path_factory.mktemp("damaged") / "l"
    path.write_bytes(damaged)
    if spent_in(damaged) is None:
        with pytest.raises(BudgetError) as told:
            Ledger(path)
        assert told.value.code in ("not-a-ledger", "ledger-format", "ledger-altered", "ledger-unknown-record")
    else:
        assert Ledger(path).spent().units >= spent


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_debit_that_cannot_be_written_is_none(ledger, monkeypatch, call, number):
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    before = ledger.path.read_bytes()
    failing_once(monkeypatch, call, number)
    with refused("cannot-write"):
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert ledger.path.read_bytes() == before
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert ledger.spent().units == 2 * whole(RUN).units


def failing_once(monkeypatch, call, number):
    """A disk that takes a part, and then nothing once."""
    real, failed = getattr(os, call), []

    def failing(descriptor, *rest):
        if not failed:
            failed.append(True)
            if rest:
                real(descriptor, rest[0][:10])
            raise OSError(number, "")
        return real(descriptor, *rest)

    monkeypatch.setattr(os, call, failing)


def test_a_debit_that_may_stand_is_not_called_none(ledger, monkeypatch):
    failing_once(monkeypatch, "write", errno.EIO)
    monkeypatch.setattr(os, "ftruncate", lambda *words: (_ for _ in ()).throw(OSError(errno.EIO, "")))
    with refused("ledger-uncertain") as told:
        ledger.debit(RUN, whole(RUN), "independent", ROW)
    assert not isinstance(told.value, BudgetError)


def test_show_tells_of_a_line_that_was_cut_short(hedgerow, tmp_path, ledger):
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-9])
    shown = hedgerow("ledger", "show", ledger.path)
    assert shown.code == 0, shown.err
    assert "the line after record 0 was cut short; the debit in it counts as spent." in shown.out
    assert "spent: ε = 0.92" in shown.out


def test_a_command_tells_of_a_line_that_was_cut_short_before_it_closes_it(server, tmp_path):
    write_inputs(tmp_path)
    ledger = Ledger.create(tmp_path / "l", "people", LIFETIME)
    ledger.debit(RUN, whole(RUN), "independent", ROW)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-9])
    words = ["synth", "t.parquet", "-s", "s.yaml", "-e", "1", "-m", "independent", "-o", "o.csv", "--ledger", "l"]
    done = server.run(words, tmp_path)
    assert done.code == 0, done.err
    assert 'in the ledger "l" the line after record 0 was cut short; the debit in it counts as spent.' in done.err
    assert ledger.spent().units == 2 * whole(RUN).units


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
    budget, run = Budget(1.0, 1e-8), Budget(0.1, 1e-12)
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
