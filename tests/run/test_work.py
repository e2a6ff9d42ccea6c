"""A limit of time is a limit of work: measured before the table is opened, counted in public units, journaled."""

import re
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow import progress as progress_module
from hedgerow.audit.replay import Violation, replay
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods import build, names
from hedgerow.methods.shared.workloads import MOST_MARGINALS, by_lot, some_pairs
from hedgerow.models.consistency import View, agree, shared_sets
from hedgerow.models.graphical.estimation import fit
from hedgerow.private.engines import open_engine
from hedgerow.private.journal import _records
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Limits, Progress, Work
from hedgerow.run import Run, synthesize

COLUMNS = 5
SCHEMA = hr.Schema.from_dict({"columns": {f"c{i}": {"type": "code", "size": 3} for i in range(COLUMNS)}})
BUDGET = hr.Budget(3.0)
SOURCE = Path(progress_module.__file__).parent


def table(rows=400, columns=COLUMNS, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, rows)
    return pa.table(
        {f"c{i}": (hidden + (rng.random(rows) < 0.3) * rng.integers(0, 3, rows)) % 3 for i in range(columns)}
    )


def limited(units):
    return Progress(Limits(work=Work(units)))


def done(method, data, units=None, schema=SCHEMA):
    """The work that a run did, and its release."""
    progress = limited(units)
    release = Run(schema, BUDGET, build(method), 0, progress).release(open_engine(data), Mechanisms())
    return progress.work.done, release


# ---------------------------------------------------------------- no clock


def test_the_rate_is_measured_before_the_table_is_opened_and_no_clock_is_read_afterwards(monkeypatch):
    """What a clock says while rows are in memory depends on the rows: it may not decide anything."""
    events = []
    measure = progress_module.units_per_second
    monkeypatch.setattr(progress_module, "units_per_second", lambda: events.append("rate") or measure())

    class Watched:
        def __init__(self, inner):
            self.inner = inner

        def __arrow_c_stream__(self, requested_schema=None):
            events.append("table")
            monkeypatch.setattr(progress_module, "time", None)
            return self.inner.__arrow_c_stream__(requested_schema)

    synthesize(Watched(table()), SCHEMA, BUDGET, "aim", limits=Limits(seconds=0.05))
    assert events[:2] == ["rate", "table"]
    assert events.count("rate") == 1


def test_nothing_that_a_run_consists_of_knows_a_clock():
    """The command line times its phases for the operator, and a comparison its cells; neither decides by it."""
    clock = re.compile(r"^\s*(import time|from time import|from datetime import|import datetime)", re.MULTILINE)
    inside = [*SOURCE.glob("methods/**/*.py"), *SOURCE.glob("models/**/*.py"), *SOURCE.glob("coded/*.py")]
    inside += [*SOURCE.glob("run/*.py"), SOURCE / "curator.py", SOURCE / "private" / "vault.py"]
    assert len(inside) > 40
    assert not [path.name for path in inside if clock.search(path.read_text(encoding="utf-8"))]


def test_without_a_limit_nothing_is_measured(monkeypatch):
    monkeypatch.setattr(progress_module, "units_per_second", lambda: pytest.fail("measured"))
    assert not Progress(Limits()).out_of_time()


def test_seconds_become_work_at_the_rate_of_the_machine(monkeypatch):
    monkeypatch.setattr(progress_module, "units_per_second", lambda: 1e9)
    progress = Progress(Limits(seconds=2.5))
    assert progress.work.allowed == 2_500_000_000
    progress.worked(2_499_999_999)
    assert not progress.out_of_time()
    progress.worked(1)
    assert progress.out_of_time()
    assert progress.ended_early
    assert Progress(progress.limits).out_of_time()  # whoever is handed the limits shares what is left of them
    assert not Progress(Limits(seconds=2.5)).out_of_time()


def test_what_does_not_fit_is_left_out_but_never_all_of_it():
    assert Progress().affords(9, 1e9, 1) == 9
    progress = limited(1000)
    assert progress.affords(3, 100, 1) == 3
    assert not progress.ended_early
    assert progress.affords(30, 100, 1) == 10
    assert progress.ended_early
    progress.worked(5000)
    assert progress.affords(30, 100, 4) == 4


# ---------------------------------------------------------------- neighbours


def slow_on_the_neighbour(engine):
    class Slow:
        def __getattr__(self, name):
            return getattr(engine, name)

        def count(self, queries):
            for exact in engine.count(queries):
                time.sleep(0.0005)
                yield exact

    return Slow()


PARTS = [0.3, *(pytest.param(part, marks=pytest.mark.audit) for part in (0.0, 0.1, 0.5, 0.7, 0.9, 1.0))]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("method", names())
def test_a_limit_that_ends_a_run_early_ends_it_at_the_same_place_on_a_neighbour(method, part):
    """However long its counts take; with the same answers the two runs ask the same, and are one release."""
    rows = table()
    units = int(part * done(method, rows)[0])

    def run(mechanisms, data=rows, wrap=lambda engine: engine):
        engine = wrap(open_engine(data))
        return Run(SCHEMA, BUDGET, build(method), 0, limited(units)).release(engine, mechanisms)

    replayed = replay(run, lambda mechanisms: run(mechanisms, rows.slice(1), slow_on_the_neighbour))
    certificate = replayed.release.certificate
    assert certificate.spent == certificate.whole


def test_replay_notices_a_method_whose_turns_depend_on_how_long_counts_take():
    """The test above has teeth: by a clock that the neighbour's counts move further, other things are asked."""
    clock = [0]

    class ByTheClock(Progress):
        def out_of_time(self):
            return clock[0] > 5

    def slower(engine):
        class Slower:
            def __getattr__(self, name):
                return getattr(engine, name)

            def count(self, queries):
                clock[0] += 1
                return engine.count(queries)

        return Slower()

    def run(mechanisms, wrap=lambda engine: engine):
        return Run(SCHEMA, BUDGET, build("aim"), 0, ByTheClock()).release(wrap(open_engine(table())), mechanisms)

    with pytest.raises(Violation):
        replay(run, lambda mechanisms: run(mechanisms, slower))


def test_work_follows_from_public_quantities(tmp_path):
    """As many rows again, and the same answers: the same work."""
    rows = table()
    counted = []

    def run(mechanisms, data):
        progress = limited(None)
        made = Run(SCHEMA, BUDGET, build("aim"), 0, progress).release(open_engine(data), mechanisms)
        counted.append(progress.work.done)
        return made

    replay(lambda mechanisms: run(mechanisms, rows), lambda mechanisms: run(mechanisms, rows.slice(1)))
    assert counted[0] == counted[1] > 0


# ---------------------------------------------------------------- the journal keeps it, the release does not


def test_a_resumed_run_has_the_work_of_the_run_that_was_stopped(tmp_path, monkeypatch):
    whole, _ = done("aim", table())
    monkeypatch.setattr(progress_module, "units_per_second", lambda: 1.0)
    first = synthesize(table(), SCHEMA, BUDGET, "aim", journal=tmp_path / "j", limits=Limits(seconds=0.4 * whole))
    header, *_ = _records((tmp_path / "j").read_bytes())
    assert header.value["work"] == int(0.4 * whole)
    monkeypatch.setattr(progress_module, "units_per_second", lambda: 1e9)
    given = {"journal": tmp_path / "j", "resume": True}
    for limits in (Limits(seconds=1e6), Limits(seconds=1e-9), None):
        again = synthesize(table(), SCHEMA, BUDGET, "aim", limits=limits, **given)
        first.save(tmp_path / "first")
        again.save(tmp_path / "again")
        assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
    assert str(int(0.4 * whole)).encode() not in (tmp_path / "first").read_bytes()


# ---------------------------------------------------------------- limits hold inside a round


@pytest.mark.parametrize("method", names())
def test_a_run_without_time_does_little_more_than_it_must(method):
    """At the limit every method finishes the cheapest thing that is valid, and spends its whole budget on it."""
    enough, _ = done(method, table(columns=COLUMNS))
    least, release = done(method, table(columns=COLUMNS), units=0)
    assert least <= enough
    assert release.certificate.spent == release.certificate.whole
    assert release.sample(20).num_rows == 20


MANY = 700


LONGER = [pytest.param(method, marks=pytest.mark.audit) for method in ("aim", "ppsyn", "mwem", "privsyn")]


@pytest.mark.parametrize("method", ["hedge", "mst", *LONGER])
def test_no_round_goes_through_more_marginals_than_there_is_time_for(method):
    """700 columns have 244,650 pairs. A second's work may not become a minute's because it is all in one round."""
    schema = hr.Schema.from_dict({"columns": {f"c{i}": {"type": "code", "size": 2} for i in range(MANY)}})
    rng = np.random.default_rng(0)
    data = pa.table({f"c{i}": rng.integers(0, 2, 60) for i in range(MANY)})
    work, release = done(method, data, units=10**9, schema=schema)
    assert work < 6 * 10**9
    for charge in release.certificate.charges:
        assert sum(query.get("candidates", 1) for query in charge.queries) <= 20_000


def test_a_fit_shares_the_work_of_its_run():
    """Each fit used to have the whole time for itself."""
    domain = Domain.of({"a": 6, "b": 5, "c": 4})
    rng = np.random.default_rng(0)
    measured = [
        Measurement(MarginalQuery(domain, pair), rng.integers(0, 90, domain.cells(pair)), Noise("gaussian", 3.0))
        for pair in combinations(domain.names, 2)
    ]
    free = Progress()
    fit(domain, measured, limits=free.limits)
    spent = Progress(Limits(work=Work(1)))
    fit(domain, measured, limits=spent.limits)
    assert spent.ended_early
    assert spent.work.done < free.work.done / 3


# ---------------------------------------------------------------- what made planning slow


class Lots:
    def __init__(self, columns):
        self.domain = Domain.of({f"x{i}": 2 for i in range(columns)})
        self.rng = np.random.default_rng(0)


@pytest.mark.parametrize("columns", [2, 3, 17, 120])
def test_pairs_by_lot_are_pairs_each_once(columns):
    every = list(combinations(Lots(columns).domain.names, 2))
    assert some_pairs(Lots(columns)) == every
    for most in {1, len(every) // 2, len(every) - 1} - {0}:
        some = some_pairs(Lots(columns), most)
        assert len(set(some)) == len(some) == most
        assert set(some) <= set(every)
        assert set(by_lot(Lots(columns), every, most)) <= set(every)


def test_a_workload_of_very_many_columns_is_drawn_by_lot():
    assert len(some_pairs(Lots(2_000))) == MOST_MARGINALS
    drawn = np.zeros(6)
    for seed in range(600):
        lots = Lots(4)
        lots.rng = np.random.default_rng(seed)
        for pair in some_pairs(lots, 2):
            drawn[list(combinations(lots.domain.names, 2)).index(pair)] += 1
    assert abs(drawn - 200).max() < 6 * np.sqrt(200)


def test_views_agree_as_a_plain_search_for_what_they_share_says():
    rng = np.random.default_rng(3)
    for _ in range(40):
        marginals = [
            tuple(f"x{i}" for i in sorted(rng.choice(6, rng.integers(1, 4), replace=False)))
            for _ in range(rng.integers(1, 6))
        ]
        closed = {frozenset(marginal) for marginal in marginals}
        while more := {left & right for left in closed for right in closed} - closed:
            closed |= more
        plain = {each for each in closed if each and sum(each <= set(marginal) for marginal in marginals) > 1}
        assert set(map(frozenset, shared_sets(marginals))) == plain
        views = [View(m, rng.normal(10, 3, (2,) * len(m)), 1.0) for m in dict.fromkeys(marginals)]
        agreed = agree(views, 50.0)
        for left, right in combinations(agreed, 2):
            shared = tuple(name for name in left.marginal if name in right.marginal)
            assert np.allclose(left.onto(shared), right.onto(shared))


def test_time_is_a_limit_of_the_command_too(tmp_path, hedgerow):
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    run = hedgerow("synth", "t.parquet", "-s", "s.yaml", "-e", 3, "-m", "aim", "-o", "o.csv", "--max-time", "0.01s")
    assert run.code == 0, run.err
    assert "its time was up" in hedgerow("verify", "o.release").out
