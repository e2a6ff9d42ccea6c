"""A ledger over years: caps hold, and what it says of somebody in several periods is right by another computation."""

import itertools
import json
import math
import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from hedgerow.budget.accounting import covers, whole
from hedgerow.budget.amounts import UNITS, Amount, Budget, Currency
from hedgerow.budget.presence import Period, Presence, group_guarantee
from hedgerow.errors import BudgetError
from hedgerow.private.books import line
from hedgerow.private.explaining import explained, exported, statement, together
from hedgerow.private.ledger import ROW, Ledger, equivalent_epsilon
from refusals import refused

RUN = Budget(0.5, 1e-9)


def debit(path, budget, period=None):
    return Ledger(path, period).debit(budget, whole(budget), "independent", ROW)


def epsilon_by_hand(squared_mu, delta):
    """ε of μ-GDP at δ from its definition, by a root finder."""
    mu = math.sqrt(squared_mu)
    if not mu:
        return 0.0

    def excess(epsilon):
        return (norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon + norm.logcdf(-epsilon / mu - mu / 2))) / delta - 1

    return brentq(excess, 0, 100, xtol=1e-12)


def lost_by_hand(path, present):
    """The most that anybody lost who is in `present` periods: every way to be in them, summed from the bare lines."""
    lines = [json.loads(each) for each in path.read_bytes().splitlines()]
    periods = {each["period"]: each["disjoint"] for each in lines if "period" in each and "debit" not in each}
    cost = dict.fromkeys([None, *periods], Fraction(0))
    for each in lines:
        if "debit" in each:
            cost[each.get("period")] += Fraction(int(each["debit"]["units"]), UNITS)
    worst = Fraction(0)
    for size in range(present + 1):
        for chosen in itertools.combinations(periods, size):
            named = [periods[name] for name in chosen if periods[name]]
            if len(named) == len(set(named)):  # nobody is in two periods that are asserted to be disjoint
                worst = max(worst, cost[None] + sum((cost[name] for name in chosen), Fraction(0)))
    return epsilon_by_hand(float(worst), lines[0]["delta"])


@pytest.mark.parametrize("disjoint", ["", "year of birth"])
def test_three_years_with_a_correction(tmp_path, disjoint):
    """The ledger's answer, the definition's, and dp-accounting's are one."""
    path = tmp_path / "l"
    Ledger.create(path, "people", None, 1e-8)
    made = {}
    for year, epsilon in (("2026", 1.0), ("2027", 1.5), ("2028", 1.5)):
        Ledger(path).open_period(year, Budget(2.0, 1e-8), disjoint)
        made[year] = debit(path, Budget(epsilon, 1e-9))
    corrected = debit(path, Budget(1.2, 1e-9), "2026")
    Ledger(path).replace(made["2026"].digest, corrected.digest, "A bound was wrong.")
    presence = Ledger(path).presence()
    for present in range(4):
        assert presence.lost(present).epsilon == pytest.approx(lost_by_hand(path, present), rel=1e-6)
    assert equivalent_epsilon(Ledger(path)) == presence.lost(presence.most).epsilon
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    runs = (1.0, 1.2) if disjoint else (1.0, 1.2, 1.5, 1.5)  # 2026, with its correction, is the dearest year
    composed = pld.identity()
    for epsilon in runs:
        spread = 1 / math.sqrt(whole(Budget(epsilon, 1e-9)).value)
        composed = composed.compose(pld.from_gaussian_mechanism(spread, value_discretization_interval=1e-4))
    assert presence.lost().epsilon == pytest.approx(composed.get_epsilon_for_delta(1e-8), rel=2e-3)
    said = list(explained(Ledger(path)))
    assert any("corrects record" in line and "Both stay spent" in line for line in said)
    assert any(disjoint in line for line in said if "asserts" in line) == bool(disjoint)
    assert presence.caps(2) == ((4.0, 2e-8) if not disjoint else (2.0, 1e-8))
    assert presence.caps(10)[0] == (20.0 if not disjoint else 2.0)


@settings(max_examples=25)
@given(data=st.data())
def test_any_periods_and_any_presence_by_brute_force(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("periods") / "l"
    Ledger.create(path, "people", None if data.draw(st.booleans()) else Budget(50.0, 1e-8))
    if Ledger(path).lifetime is not None and data.draw(st.booleans()):
        debit(path, RUN)
    names = []
    for number in range(data.draw(st.integers(1, 5))):
        names.append(str(number))
        Ledger(path).open_period(names[-1], Budget(5.0, 1e-8), data.draw(st.sampled_from(["", "", "a", "b"])))
        for _ in range(data.draw(st.integers(0, 2))):
            debit(path, Budget(data.draw(st.sampled_from([0.1, 0.4, 1.0])), 1e-9), data.draw(st.sampled_from(names)))
    presence = Ledger(path).presence()
    for present in range(len(names) + 1):
        assert presence.lost(present).epsilon == pytest.approx(lost_by_hand(path, present), rel=1e-6, abs=1e-9)
    assert presence.lost(presence.most) == presence.lost()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["", "a", "b"])), max_size=6))
def test_direct_delta_is_never_too_little(amounts):
    """Noise and direct δ may be dearest in different periods: no presence costs more than what is said."""
    periods = tuple(
        Period(str(number), RUN, disjoint, Amount(Currency.GDP, units, direct))
        for number, (units, direct, disjoint) in enumerate(amounts)
    )
    presence = Presence(Amount(Currency.GDP, 3, 1), periods, 1e-8)
    for size in range(len(periods) + 1):
        for chosen in itertools.combinations(periods, size):
            named = [each.disjoint for each in chosen if each.disjoint]
            if len(named) == len(set(named)):
                total = sum((each.spent for each in chosen), presence.always)
                assert total.units <= presence.worst(size).units <= presence.worst().units
                assert total.delta_units <= presence.worst(size).delta_units


def test_a_cap_is_fixed_when_a_period_is_opened_and_holds(tmp_path):
    path = tmp_path / "l"
    ledger = Ledger.create(path, "people", None)
    with refused("no-period", "Hint"):
        ledger.check("people", RUN, ROW)
    ledger.open_period("2026", Budget(1.0, 1e-8))
    for again in (Budget(9.0, 1e-8), Budget(1.0, 1e-8)):
        with refused("period-exists"):
            ledger.open_period("2026", again)
    with refused("period-delta"):
        ledger.open_period("2027", Budget(1.0, 0.0))
    with refused("bad-period-name"):
        ledger.open_period(" ", Budget(1.0, 1e-8))
    with refused("no-such-period", '"2062"', "2026"):
        Ledger(path, "2062")
    runs = 0
    while covers(Budget(1.0, 1e-8), Amount(Currency.GDP, (runs + 1) * whole(RUN).units)):
        debit(path, RUN)
        runs += 1
    with refused("ledger-exhausted", 'in the period "2026"'):
        debit(path, RUN)
    Ledger(path).open_period("2027", Budget(1.0, 1e-8))
    debit(path, RUN)  # replenished: for somebody in both it adds up
    with refused("ledger-exhausted"):
        debit(path, RUN, "2026")
    assert Ledger(path).presence().lost(2).epsilon > 1.0


@pytest.mark.parametrize("disjoint", ["", "year"])
def test_a_lifetime_bounds_whoever_it_costs_most(tmp_path, disjoint):
    path = tmp_path / "l"
    Ledger.create(path, "people", Budget(1.0, 1e-8))
    for year in ("2026", "2027"):
        Ledger(path).open_period(year, Budget(1.0, 1e-8), disjoint)
    rest = Budget(0.9, 1e-8)
    debit(path, rest, "2026")
    if disjoint:
        debit(path, rest, "2027")
        assert Ledger(path).spent().units == 2 * whole(rest).units
    else:
        with refused("ledger-exhausted"):
            debit(path, rest, "2027")
    assert covers(Budget(1.0, 1e-8), Ledger(path).presence().worst())


def test_ledgers_of_the_versions_before_get_periods_too(tmp_path):
    for number, edition in enumerate(("hedgerow ledger 1", "hedgerow ledger 2")):
        path = tmp_path / str(number)
        header = {"format": edition, "dataset": "people", "epsilon": 4.0, "delta": 1e-8, "name": "7" * 32}
        first = line(header, "") if number else json.dumps({"after": "", **header}).encode() + b"\n"
        path.write_bytes(first)
        debit(path, RUN)
        Ledger(path).open_period("2026", Budget(1.0, 1e-8))
        entry = debit(path, RUN)
        assert entry.record["period"] == "2026"
        presence = Ledger(path).presence()
        assert presence.always.units == whole(RUN).units == presence.periods[0].spent.units
        assert len(statement(Ledger(path), entry.digest)["presence"]) == 4


def test_a_debit_in_a_period_that_nobody_opened_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l", "people", Budget(4.0, 1e-8))
    entry = ledger.debit(RUN, whole(RUN), "independent", ROW)
    strange = {**entry.record, "period": "2026"}
    ledger.path.write_bytes(ledger.path.read_bytes() + line(strange, entry.digest))
    with refused("ledger-altered"):
        ledger.spent()


def test_a_torn_line_counts_in_every_period(tmp_path):
    path = tmp_path / "l"
    Ledger.create(path, "people", None)
    for year in ("2026", "2027"):
        Ledger(path).open_period(year, Budget(1.0, 1e-8))
    debit(path, RUN)
    path.write_bytes(path.read_bytes()[:-9])
    assert [each.spent.units for each in Ledger(path).presence().periods] == [whole(RUN).units] * 2


def test_a_correction_names_two_debits_of_the_ledger(tmp_path):
    path = tmp_path / "l"
    ledger = Ledger.create(path, "people", Budget(4.0, 1e-8))
    first, second = debit(path, RUN), debit(path, RUN)
    before = ledger.spent()
    for old, new in ((first.digest, "0" * 64), (first.digest, first.digest), (ledger.identity, second.digest)):
        with refused("replaces-unknown"):
            ledger.replace(old, new, "why")
    ledger.replace(first.digest, second.digest, "why")
    assert ledger.spent() == before


@pytest.mark.parametrize("size", [1, 2, 3])
def test_households(size):
    amount = whole(Budget(1.0, 1e-9))
    by_hand = epsilon_by_hand(size**2 * amount.value, 1e-9)
    assert group_guarantee(amount, 1e-9, size).epsilon == pytest.approx(by_hand, rel=1e-6)
    pure = group_guarantee(whole(Budget(1.0, 0.0)), 0.0, size)
    assert (pure.epsilon, pure.delta) == (pytest.approx(size), 0.0)
    direct = group_guarantee(amount + Amount(Currency.GDP, 0, 1), 1e-9, size)
    assert direct.epsilon == pytest.approx(size, rel=1e-6)
    assert direct.delta == pytest.approx(1e-9 * sum(math.e**step for step in range(size)), rel=1e-6)


def test_several_ledgers_about_the_same_people(tmp_path):
    for name, delta in (("a", 1e-8), ("b", 1e-8), ("c", 0.0)):
        Ledger.create(tmp_path / name, name, Budget(4.0, delta))
        debit(tmp_path / name, Budget(1.0, 1e-9 if delta else 0.0))
    ledgers = [Ledger(tmp_path / name) for name in "abc"]
    by_hand = epsilon_by_hand(2 * whole(Budget(1.0, 1e-9)).value, 2e-8)
    assert f"ε = {by_hand:.6g} at δ = 2e-08" in together(ledgers[:2])
    pure = 2 * norm.ppf(1 / (1 + math.exp(-1.0)))
    by_hand = epsilon_by_hand(whole(Budget(1.0, 1e-9)).value + pure**2, 1e-8)
    assert f"ε = {by_hand:.5g}"[:-1] in together([ledgers[0], ledgers[2]])
    assert "ε = 2 at δ = 0" in together([ledgers[2], ledgers[2]])


def test_what_auditors_get_adds_up(tmp_path):
    path = tmp_path / "l"
    Ledger.create(path, "people", Budget(4.0, 1e-8))
    debit(path, RUN)
    Ledger(path).open_period("2026", Budget(1.0, 1e-8), "year")
    Ledger(path).note("evaluate")
    debit(path, RUN)
    rows = list(exported(Ledger(path)))
    assert sum(int(row[7] or 0) for row in rows) == int(rows[-1][9]) == Ledger(path).spent().units
    assert [row[-1] for row in rows] == [entry.digest for entry in Ledger(path).entries()]


# ------------------------------------------------------------ kills, and several at once


def _open_and_spend(path, drawn):
    """Period after period, two debits in each."""
    small = Budget(0.02, 1e-12)
    while True:
        ledger = Ledger(path)
        ledger.open_period(str(len(ledger.entries())), Budget(0.05, 1e-8))
        for _ in range(2):
            ledger = Ledger(path)
            ledger.debit(small, whole(small), "independent", ROW)
            with open(drawn, "a") as file:
                file.write(f"{ledger.period}\n")  # the draw: only after the debit returned


def test_killed_at_random_moments_every_draw_has_its_debit_in_its_period(tmp_path):
    path, drawn, moments = tmp_path / "l", tmp_path / "drawn", random.Random(3)
    Ledger.create(path, "people", None).open_period("0", Budget(0.05, 1e-8))
    context = multiprocessing.get_context("fork")
    for _ in range(40):
        worker = context.Process(target=_open_and_spend, args=(path, drawn))
        before = path.stat().st_size
        worker.start()
        while path.stat().st_size == before:  # however slow the machine is, something is under way
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.01))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        draws = drawn.read_text().split() if drawn.exists() else []
        debits = [e.record["period"] for e in Ledger(path).entries() if "debit" in e.record]
        assert all(draws.count(name) <= debits.count(name) for name in set(draws))
        assert all(covers(each.budget, each.spent) for each in Ledger(path).presence().periods)
    assert len(Ledger(path).presence().periods) > 10


def _race(path, results):
    opened, paid = 0, 0
    for year in ("2026", "2027", "2028"):
        try:
            Ledger(path).open_period(year, Budget(0.7, 1e-8))
            opened += 1
        except BudgetError:
            pass
    for year in ("2026", "2027", "2028") * 4:
        try:
            debit(path, Budget(0.2, 1e-12), year)
            paid += 1
        except BudgetError:
            pass
    results.put((opened, paid))


def test_eight_at_once_open_each_period_once_and_hold_its_cap_exactly(tmp_path):
    path = tmp_path / "l"
    Ledger.create(path, "people", None)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_race, args=(path, results)) for _ in range(8)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    presence = Ledger(path).presence()
    assert sum(opened for opened, _ in found) == 3 == len(presence.periods)
    one, cap = whole(Budget(0.2, 1e-12)), Budget(0.7, 1e-8)
    assert sum(paid for _, paid in found) * one.units == Ledger(path).spent().units
    for period in presence.periods:
        assert covers(cap, period.spent)
        assert not covers(cap, period.spent + one)


# ------------------------------------------------------------ the commands


def test_periods_on_the_command_line(tmp_path, people, server):
    def hedgerow(*words):
        return server.run(words, tmp_path)

    def synth(out, *more):
        asked = ["-s", "people.yaml", "-e", "0.5", "-m", "independent", "--ledger", "l", "-q"]
        return hedgerow("synth", "people.parquet", *asked, "-o", out, *more)

    assert hedgerow("ledger", "create", "l", "--dataset", "opm").code == 0
    assert synth("a.csv").refusal == "no-period"
    assert hedgerow("ledger", "period", "l", "2026", "--epsilon", "1").code == 0
    assert hedgerow("ledger", "period", "l", "2027", "--epsilon", "1", "--disjoint", "year").code == 0
    assert synth("a.csv", "--period", "2026").code == 0
    assert synth("b.csv").code == 0
    assert synth("c.csv", "--period", "2028").refusal == "no-such-period"
    assert hedgerow("ledger", "replaces", "l", "b.release", "a.release", "--why", "wrong").code == 0
    shown = hedgerow("ledger", "show", "l", "--explain").out
    assert "nobody is in two of the periods 2027" in shown
    assert "in 10: as all so far" in shown
    assert hedgerow("ledger", "export", "l", "-o", "audit.csv").code == 0
    assert (tmp_path / "audit.csv").read_text().count("\n") == len(Ledger(tmp_path / "l").entries()) + 1
    assert hedgerow("ledger", "export", "l", "-o", "l").refusal == "output-is-input"
