"""One question to the private rows: what is charged is what one person can move, and nothing is spent in vain."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.answers.figure import Asked, Figure
from hedgerow.audit.replay import replay
from hedgerow.coded.measurement import Noise
from hedgerow.errors import HedgerowError
from hedgerow.private.engines import open_engine
from hedgerow.private.ledger import Ledger
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.release.confirmation import read, verify
from hedgerow.run.confirming import Confirming
from refusals import refused

SCHEMA = hr.Schema.from_dict(
    {
        "dataset": "people",
        "person": "id",
        "max_rows_per_person": 2,
        "columns": {
            "sex": {"type": "category", "values": ["f", "m"], "missing": {"": "unknown"}},
            "age": {"type": "integer", "min": 0, "max": 99},
            "pay": {"type": "number", "min": -10, "max": 500, "decimals": 1, "bins": 20},
            "born": {"type": "date", "min": "1950-01-01", "max": "2020-12-31", "step": "year"},
        },
    }
)
BUDGET = hr.Budget(1.0, 1e-6)
PRECISE = hr.Budget(1e6, 0.5)


def rows_of(people, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, people)
    return pa.table(
        {
            "id": [f"p{number}" for number in range(people)],
            "sex": np.array(["f", "m", ""])[rng.integers(0, 3, people)].tolist(),
            "age": age,
            "pay": np.round(rng.normal(200, 200, people), 1),
            "born": (np.datetime64("1950-01-01") + rng.integers(0, 20_000, people)).astype("datetime64[D]"),
        }
    )


@pytest.fixture(scope="module")
def table():
    return rows_of(3_000)


@pytest.fixture(scope="module")
def release(table):
    return hr.synthesize(table, SCHEMA, BUDGET, "independent")


def asked(text, budget=BUDGET):
    return Confirming(SCHEMA, Figure.of(text, SCHEMA), budget)


QUESTIONS = {
    "SELECT COUNT(*) FROM t": lambda t: len(t),
    "SELECT COUNT(sex) FROM t": lambda t: (t.sex != "").sum(),
    "SELECT COUNT(*) FROM t WHERE age >= 18 AND sex = 'f'": lambda t: ((t.age >= 18) & (t.sex == "f")).sum(),
    "SELECT SHARE(age < 18) FROM t WHERE sex = 'm'": lambda t: (t[t.sex == "m"].age < 18).mean(),
    "SELECT SUM(age) FROM t": lambda t: t.age.sum(),
    "SELECT SUM(pay) FILTER (WHERE age > 50) FROM t": lambda t: t[t.age > 50].pay.clip(-10, 500).sum(),
    "SELECT AVG(pay) FROM t WHERE sex IS NOT NULL": lambda t: t[t.sex != ""].pay.clip(-10, 500).mean(),
    "SELECT AVG(age * 2 + 1) FROM t": lambda t: (2 * t.age + 1).mean(),
    "SELECT AVG(EXTRACT(YEAR FROM born)) FROM t": lambda t: t.born.map(lambda day: day.year).mean(),
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_without_noise_to_speak_of_it_is_the_figure_of_the_rows(text, table):
    made = asked(text, PRECISE).confirmation(open_engine(table), Mechanisms())
    (row,) = made.answers()[0].rows
    truth = QUESTIONS[text](table.to_pandas())
    assert row.basis == "confirmed"
    assert row.estimate == pytest.approx(truth, rel=1e-3)
    assert row.low - 1e-3 * abs(truth) <= truth <= row.high + 1e-3 * abs(truth)


def test_a_database_says_the_same(table, tmp_path):
    import duckdb

    connection = duckdb.connect(str(tmp_path / "x.duckdb"))
    connection.register("given", table)
    connection.execute("CREATE TABLE people AS SELECT * FROM given")
    connection.close()
    url = f"duckdb://{tmp_path / 'x.duckdb'}/people"
    for text in list(QUESTIONS)[:5]:
        here, there = (
            asked(text, PRECISE).confirmation(open_engine(place), Mechanisms()).answers()[0].rows[0].estimate
            for place in (table, url)
        )
        assert here == pytest.approx(there, abs=0.01 * max(1.0, abs(here)) / 100)


@pytest.mark.parametrize("budget", [BUDGET, hr.Budget(1.0, 0.0)])
@pytest.mark.parametrize("text", QUESTIONS)
def test_neighbours_give_the_same_confirmation_and_stay_within_what_was_charged(text, budget):
    rows = rows_of(40)
    person = pa.concat_tables([rows.slice(0, 1)] * 3)  # more rows than count
    person = person.set_column(0, "id", pa.array(["someone"] * 3)).set_column(3, "pay", pa.array([9e9] * 3))

    def on(table):
        key = b"the same key for both neighbours"
        return lambda mechanisms: asked(text, budget).confirmation(open_engine(table, bounding_key=key), mechanisms)

    replayed = replay(on(pa.concat_tables([rows, person])), on(rows))
    (ratio,) = replayed.ratios  # a Violation was raised if it is beyond 1
    assert ratio == pytest.approx(1) or text not in (
        "SELECT COUNT(*) FROM t",
        "SELECT AVG(pay) FROM t WHERE sex IS NOT NULL",
    )


@given(st.data())
def test_a_row_adds_no_more_than_is_charged_for(data):
    text = data.draw(st.sampled_from(list(QUESTIONS)))
    value = data.draw(st.one_of(st.floats(), st.none(), st.text(max_size=4)))
    row = {name: pa.array([value if value is None else str(value)], pa.string()) for name in SCHEMA.columns}
    figure = Figure.of(text, SCHEMA)
    (code,) = Asked(SCHEMA, figure).encode(pa.table(row))["asked"].tolist()
    assert all(0 <= code < len(sums) and abs(sums[code]) <= np.abs(sums).max() for sums in figure.sums)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("count", [3, 40, 2_000])
def test_intervals_hold_as_often_as_they_say(kind, count):
    """A mean of so many rows that noise of 20 drowns, blurs or spares; 4,000 draws, so 5 sigma are 2.4 %."""
    figure = Figure.of("SELECT AVG(age) FROM t", SCHEMA)
    above, all_ = 0.3 * 99 * count, 99 * count
    truth = 99 / 2 * (1 + 0.3)
    noise = Noise(kind, 99 * 20.0)
    rng = np.random.default_rng(1)
    draw = rng.normal if kind == "gaussian" else rng.laplace
    drawn = np.rint(draw(0, noise.scale, (4_000, 2))).astype(int) + np.array([int(above), int(all_)])
    held = 0
    for pair in drawn.tolist():
        _, low, high = figure.estimate(tuple(pair), noise, 0.9)
        assert 0 <= low <= high <= 99
        held += low <= truth <= high
    assert held / len(drawn) > 0.876
    assert kind == "laplace" or count < 2_000 or held / len(drawn) < 0.924


def test_the_ledger_is_debited_before_anything_is_counted_and_refuses_what_it_has_not(table, release, tmp_path):
    books = Ledger.create(tmp_path / "people.ledger", "people", hr.Budget(1.0, 1e-6))
    text = "SELECT COUNT(*) FROM t WHERE age < 18"
    made = hr.confirm(release, text, table, hr.Budget(0.4, 1e-9), ledger=books.path)
    assert made.certificate.ledger == {"dataset": "people", "hash": books.entries()[-1].digest}
    assert books.entries()[-1].record["method"] == "confirm"
    spent = books.spent()
    with refused("ledger-exhausted", "No row was read, nothing was spent"):
        hr.confirm(release, text, table, hr.Budget(2.0, 1e-9), ledger=books.path)
    (tmp_path / "other.csv").write_text("id,sex\n1,f\n")
    with refused("missing-column"):
        hr.confirm(release, text, tmp_path / "other.csv", hr.Budget(0.1, 1e-9), ledger=books.path)

    class Failing:
        def header(self):
            return tuple(table.column_names)

        def prepare(self, encoding):
            pass

        def people_per_value(self, schema, column):
            raise AssertionError

        def count(self, queries):
            assert books.spent() != spent  # it is on disk by now
            raise HedgerowError("other", "the table is gone.")

    with refused("other", "What was charged before stays charged."):
        hr.confirm(release, text, Failing(), hr.Budget(0.1, 1e-9), ledger=books.path)
    assert books.spent() != spent


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("bad-question", "SELEC COUNT(*)"),
        ("unknown-column", "SELECT SUM(salary) FROM t"),
        ("unknown-question", "SELECT MAX(age) FROM t"),
        ("cannot-confirm", "SELECT MEDIAN(age) FROM t"),
        ("cannot-confirm", "SELECT COUNT(*), SUM(age) FROM t"),
        ("cannot-confirm", "SELECT sex, COUNT(*) FROM t GROUP BY sex"),
        ("cannot-confirm", "SELECT COUNT(*) FROM t; SELECT SUM(age) FROM t"),
        ("cannot-confirm", "SELECT SUM(age) / COUNT(*) FROM t"),
        ("cannot-confirm", "SELECT SHARE(*) FROM t"),
        ("cannot-confirm", "SELECT SUM(CAST(sex AS DOUBLE)) FROM t"),
    ],
)
def test_what_cannot_be_bounded_is_refused_before_anything_is_read(code, text, release):
    with refused(code, "No row was read, nothing was spent"):
        hr.confirm(release, text, "nowhere.csv", BUDGET)


def test_it_reads_back_and_what_was_changed_shows(table, release, tmp_path):
    made = hr.confirm(release, "SELECT AVG(pay) FROM t WHERE sex = 'f'", table, BUDGET)
    made.save(tmp_path / "x.json")
    found, confirmed = verify(read(tmp_path / "x.json"))
    assert found.answers()[0].to_json() == made.answers()[0].to_json()
    assert any("guarantee" in line for line in confirmed)
    for change in (
        {"question": "SELECT AVG(age) FROM t"},
        {"sums": [1]},
        {"sums": [1.5, 2]},
        {"schema": {}},
        {"certificate": {**made.certificate.to_json(), "budget": {"epsilon": 0.5, "delta": 1e-6}}},
    ):
        with pytest.raises(HedgerowError):
            verify({**json.loads((tmp_path / "x.json").read_text()), **change})


def test_the_noise_is_that_of_the_bounds_and_the_budget(table):
    """θ = 2 rows that add up to 99 each: σ = 198/μ, where μ is that of (1, 1e-6)."""
    (charge,) = asked("SELECT SUM(age) FROM t").confirmation(open_engine(table), Mechanisms()).certificate.charges
    assert charge.sensitivity == 2 * 99
    assert math.isclose(charge.cost().value, charge.amount.value, rel_tol=1e-9)


def test_the_command_line_shows_both_keeps_it_and_takes_back_nothing(hedgerow, people):
    done = hedgerow("synth", "people.parquet", "-s", "people.yaml", "-e", 1, "-o", "out.csv", "-m", "independent")
    assert done.code == 0, done.err
    text = "SELECT SHARE(sex = 'F') FROM t"
    shown = hedgerow("ask", "out.release", text, "--confirm", "people.parquet", "-e", 1, "-o", "it.json")
    assert shown.code == 0, shown.err
    assert "confirmed" in shown.out
    assert "measured" in shown.out
    assert hedgerow("verify", "it.json").code == 0
    again = hedgerow("ask", "out.release", text, "--confirm", "people.parquet", "-e", 1, "-o", "it.json")
    assert again.refusal == "already-exists"
    alone = hedgerow("ask", "out.release", text, "--confirm", "people.parquet", "-e", 1, "--json")
    assert json.loads(alone.out)["answers"][0]["rows"][0]["basis"] == "confirmed"
    assert hedgerow("ask", "out.release", text, "-e", 1).refusal == "confirm-options"
    assert hedgerow("ask", "out.release", text, "--confirm", "people.parquet").refusal == "confirm-options"
    assert hedgerow("ask", "out.release", text, "--confirm", "nowhere.csv", "-e", 1).code == 2
    assert hedgerow("verify", "people.yaml").code == 2


def test_a_truth_that_is_written_as_a_code_is_asked_like_any_other():
    schema = hr.Schema.parse(
        "columns:\n  paid: {type: boolean, missing: true}\n  age: {type: integer, min: 0, max: 9}\n"
    )
    figure = Figure.of("SELECT COUNT(*) FROM t WHERE paid", schema)
    written = pa.array(["yes", "no", None, "1", "x"])
    for array in (written, written.dictionary_encode()):
        assert Asked(schema, figure).encode(pa.table({"paid": array}))["asked"].tolist() == [1, 0, 0, 1, 0]
