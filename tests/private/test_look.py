"""The first look: what does not fit the declaration is counted with noise, is loud, and is paid for by itself."""

import contextlib
import json
import statistics

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from hedgerow.audit.replay import replay
from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.errors import HedgerowError
from hedgerow.methods.independent import Independent
from hedgerow.models.model import Model
from hedgerow.private.engines import open_engine
from hedgerow.private.evaluate.misfits import count_misfits
from hedgerow.private.journal import _records
from hedgerow.private.ledger import Ledger, confirm_entry
from hedgerow.private.look import misfit_queries
from hedgerow.progress import Limits, Progress
from hedgerow.release.bundle import verify
from hedgerow.release.misfits import FALSE_ALARM, Misfit, Misfits
from hedgerow.run import Run, synthesize
from hedgerow.schema import Schema
from hedgerow.schema.fits import Looked, can_misfit
from refusals import refused

BUDGET = Budget(1.0, 1e-6)
TAXIS = Schema.parse(
    """
dataset: taxis
columns:
  color: {type: category, values: [yelow, green]}
  miles: {type: number, min: 0, max: 100, bins: 5}
"""
)
ODD = Schema.parse(
    """
person: id
max_rows_per_person: 2
columns:
  wage:  {type: integer, min: 0, max: 999, bins: 10, special: [9998], heaps: [100, 10]}
  size:  {type: number, min: 0, max: 10, bins: 4, missing: true}
  grade: {type: category, values: [low, high], other: true}
  kind:  {type: category, values: [low, high]}
  born:  {type: date, min: 1990-01-01, max: 1999-12-31, step: year}
  seen:  {type: datetime, min: "2000-01-01 00:00:00", max: "2000-01-02 00:00:00", step: hour}
  well:  {type: boolean}
  code:  {type: code, size: 4}
"""
)


def trips(rows=20_000, yellow=0.975):
    color = np.where(np.arange(rows) < yellow * rows, "yellow", "green")
    return pa.table({"color": color, "miles": np.arange(rows) % 100 / 1.0})


def odd_rows(people=400):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.repeat(np.arange(people), 3),
            **{
                name: rng.choice(values, 3 * people)
                for name, values in {
                    "wage": ["5", "9998", "1001", "many", ""],
                    "size": ["1.5", "", "-3", "nan"],
                    "grade": ["low", "middling"],
                    "kind": ["low", "high", "lo", ""],
                    "born": ["1991-01-01", "01/02/1991", "2001-01-01"],
                    "seen": ["2000-01-01 05:00:00", "noon", "2000-01-03"],
                    "well": ["true", "false", "perhaps"],
                    "code": ["0", "3", "4", "-1"],
                }.items()
            },
        }
    )


def debits(path):
    return [entry.record["method"] for entry in Ledger(path).entries() if "debit" in entry.record]


def test_a_misspelt_value_stops_the_run_and_costs_the_look_alone(tmp_path):
    ledger, journal = tmp_path / "ledger", tmp_path / "j"
    Ledger.create(ledger, "taxis", Budget(3.0, 1e-5))
    with refused("misfits", '"color"', "--allow-misfits color", "stays charged") as told:
        synthesize(trips(), TAXIS, BUDGET, "independent", ledger=ledger, journal=journal)
    assert "yellow" not in str(told.value)
    assert told.value.exit_code == 3
    assert debits(ledger) == ["look"]
    assert not journal.exists()  # the run has ended
    made = synthesize(trips(), TAXIS, BUDGET, "independent", ledger=ledger, allow_misfits=["color"])
    assert debits(ledger) == ["look", "look", "independent"]
    assert [each.column for each in made.misfits.seen] == ["color"]
    assert made.misfits.seen[0].share == pytest.approx(0.975, abs=8 * made.misfits.noise)
    assert confirm_entry(ledger, made.certificate.ledger)


@pytest.mark.parametrize("at", ["look", "look answered", "rest"])
def test_a_run_that_is_stopped_at_its_look_goes_on_and_is_debited_twice_in_all(at, tmp_path, monkeypatch):
    ledger, journal = tmp_path / "ledger", tmp_path / "j"
    Ledger.create(ledger, "taxis", Budget(3.0, 1e-5))
    asked = (trips(yellow=0), TAXIS, BUDGET, "independent")
    real = Ledger.debit

    def stopped(self, budget, amount, method, *rest):
        if at == "look answered" and method != "look":
            raise KeyboardInterrupt
        written = real(self, budget, amount, method, *rest)
        if (at == "look") == (method == "look"):
            raise KeyboardInterrupt
        return written

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "debit", stopped)
        with pytest.raises(KeyboardInterrupt):
            synthesize(*asked, ledger=ledger, journal=journal)
    assert debits(ledger) == (["look", "independent"] if at == "rest" else ["look"])
    _, before, _ = _records(journal.read_bytes())
    made = synthesize(*asked, ledger=ledger, journal=journal, resume=True)
    assert debits(ledger) == ["look", "independent"]
    assert Ledger(ledger).spent() == whole(BUDGET) == made.certificate.whole
    kept = [int(record.arrays[0][0]) for record in before if record.arrays]
    assert kept == ([] if at == "look" else [int(each.values[0]) for each in made.answers[0].measurements])


def test_a_misfit_that_a_method_will_not_hear_of_stops_it_all_the_same(tmp_path):
    class Deaf(Independent):
        def run(self, curator, progress) -> Model:
            with contextlib.suppress(HedgerowError):
                curator.total(spend=curator.remaining.share(0.1))
            return super().run(curator, progress)

    Ledger.create(tmp_path / "ledger", "taxis", Budget(3.0, 1e-5))
    with refused("budget-exceeded"):
        synthesize(trips(), TAXIS, BUDGET, Deaf(), ledger=tmp_path / "ledger")
    assert debits(tmp_path / "ledger") == ["look"]


def test_the_look_is_part_of_the_whole_and_verifies(tmp_path):
    made = synthesize(trips(yellow=0), TAXIS, BUDGET, "independent")
    look, *rest = made.certificate.charges
    assert look.purpose == "look"
    assert all(charge.purpose != "look" for charge in rest)
    assert made.certificate.guarantee.epsilon <= BUDGET.epsilon
    assert made.certificate.spent == made.certificate.whole
    assert made.misfits.seen == []
    made.save(tmp_path / "r.release")
    found, _ = verify(tmp_path / "r.release")
    assert found.misfits == made.misfits


def test_a_run_that_begins_in_epsilon_pays_its_look_in_epsilon(tmp_path):
    made = synthesize(trips(yellow=0), TAXIS, BUDGET, "dpsyn")
    look, *rest = made.certificate.charges
    assert (look.purpose, look.mechanism, float(look.amount.exact_epsilon)) == ("look", "laplace", pytest.approx(0.02))
    assert made.certificate.whole.units  # what the method exchanged
    assert rest[-1].mechanism == "gaussian"
    assert made.certificate.spent == made.certificate.whole
    made.save(tmp_path / "r.release")
    assert verify(tmp_path / "r.release")[0].misfits == made.misfits


@pytest.mark.parametrize("method", ["aim", "dpsyn", "field-groups", "hedge", "match3", "mwem", "rdt"])
def test_what_a_method_refuses_costs_not_even_the_look(method, tmp_path):
    ledger, journal = tmp_path / "ledger", tmp_path / "j"
    Ledger.create(ledger, "taxis", Budget(3.0, 1e-5))
    tight = Limits(memory=1)
    with refused("counts-too-large", "Nothing was spent"):
        synthesize(trips(yellow=0), TAXIS, BUDGET, method, ledger=ledger, journal=journal, limits=tight)
    assert debits(ledger) == []
    assert not journal.exists()


def test_codes_alone_are_not_looked_at():
    schema = Schema.parse("columns: {a: {type: code, size: 3}}")
    assert not can_misfit(schema)
    made = synthesize(pa.table({"a": [7] * 100}), schema, BUDGET, "independent")
    assert made.misfits is None


def test_what_cannot_be_seen_is_said_and_stops_nothing():
    made = synthesize(trips(rows=20), TAXIS, BUDGET, "independent")
    assert not made.misfits.sees(TAXIS.max_misfits)
    assert synthesize(trips(), TAXIS, Budget(20.0, 1e-6), "independent", allow_misfits=["color"]).misfits.sees(0.2)


def test_more_can_be_allowed_by_the_schema_or_by_name():
    lenient = Schema.from_dict({**TAXIS.to_dict(), "max_misfits": 1})
    assert Schema.from_dict(lenient.to_dict()) == lenient
    assert synthesize(trips(), lenient, BUDGET, "independent").misfits.seen
    with refused("unknown-column", 'Did you mean "color"?'):
        synthesize(trips(), TAXIS, BUDGET, "independent", allow_misfits=["colour"])


@pytest.mark.parametrize("where", ["here", "duckdb"])
def test_every_kind_of_column_is_counted_as_its_encoder_says(where, tmp_path):
    table = odd_rows()
    if where == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        pytest.importorskip("ibis")
        path = tmp_path / "t.duckdb"
        with duckdb.connect(str(path)) as base:
            base.register("rows", table)
            base.execute("CREATE TABLE t AS SELECT * FROM rows")
        engine = open_engine(f"duckdb://{path}/t", stay=True)  # where it lies
    else:
        engine = open_engine(table)
    declared = {**ODD.to_dict(), "max_rows_per_person": 3}  # nobody has more: every row counts
    schema = Schema.from_dict({**declared, "groups": [{"columns": ["kind", "well"], "allowed": [["low", "true"]]}]})
    encoding = Looked(schema)
    engine.prepare(encoding)
    queries = misfit_queries(encoding.domain, encoding.fits)
    total, *counts = [int(np.asarray(answer.opened())[0]) for answer in engine.count(queries)]
    exact = {m.columns[0]: m.blank + m.unread + m.outside for m in count_misfits(table.to_batches(), ODD)}
    assert total == table.num_rows
    assert dict(zip(encoding.fits, counts, strict=True)) == {n: exact[n] for n in ODD.columns if n != "grade"}
    assert "grade" not in encoding.fits  # “other” holds everything
    plain = schema.encoding()
    batch = table.select(plain.columns)
    assert all(np.array_equal(codes, encoding.encode(batch)[name]) for name, codes in plain.encode(batch).items())


def test_a_column_named_like_the_one_that_tells_what_fits():
    declared = {"values": ["1"], "type": "category"}
    schema = Schema.from_dict({"columns": {"a fits": declared, "a": declared}})
    assert len(set(Looked(schema).domain.names)) == 4
    table = pa.table({"a fits": ["1"] * 900, "a": ["2"] * 900})
    made = synthesize(table, schema, BUDGET, "independent", allow_misfits=["a"])
    assert [each.share > 0.5 for each in made.misfits.columns] == [False, True]


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_neighbours_move_the_look_by_no_more_than_was_charged(delta):
    table = odd_rows(60)
    without = table.filter(pa.compute.not_equal(table["id"], 7))
    lenient = Schema.from_dict({**ODD.to_dict(), "max_misfits": 1})
    run = Run(lenient, Budget(1.0, delta), Independent(), 0, Progress())
    replayed = replay(
        lambda mechanisms: run.release(open_engine(table, bounding_key=b"k" * 16), mechanisms),
        lambda mechanisms: run.release(open_engine(without, bounding_key=b"k" * 16), mechanisms),
    )
    assert 0 < replayed.ratios[0] <= 1


def test_the_command_stops_with_its_own_code_and_says_what_it_cost(hedgerow, tmp_path):
    pacsv.write_csv(trips(), tmp_path / "t.csv")
    (tmp_path / "s.yaml").write_text(TAXIS.to_yaml(), encoding="utf-8")
    words = ("synth", "t.csv", "-s", "s.yaml", "-e", "1", "-m", "independent", "-o", "out.csv", "-q", "--json")
    stopped = hedgerow(*words)
    assert (stopped.code, stopped.out) == (3, "")
    assert "cost ε = 0." in stopped.err
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "s.yaml"}
    done = hedgerow(*words, "--allow-misfits", "color", "--report", "page.html")
    assert done.code == 0, done.err
    assert done.json["misfits"]["color"][0] == pytest.approx(0.975, abs=0.3)
    assert 'of the values of "color" fit nothing declared' in done.err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What did not fit the declaration" in page
    planned = hedgerow(*words, "--dry-run")
    assert json.loads(planned.out)["charges"][0]["purpose"] == "look"


@pytest.mark.parametrize("columns", [1, 17, 400])
def test_more_columns_are_not_more_false_alarms(columns):
    """Where everything fits, a share is noise; the chance that any of them is told is one in a thousand at most."""
    normal = statistics.NormalDist()
    barely = normal.inv_cdf(1 - 1.01 * FALSE_ALARM / columns)
    told = normal.inv_cdf(1 - 0.99 * FALSE_ALARM / columns)
    rest = [Misfit(f"c{i}", 0.0, 0.01) for i in range(columns - 1)]
    assert Misfits((*rest, Misfit("last", 0.01 * barely, 0.01))).seen == []
    assert [each.column for each in Misfits((*rest, Misfit("last", 0.01 * told, 0.01))).seen] == ["last"]
