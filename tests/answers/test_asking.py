"""A release that is asked: estimates are the model's, intervals behave, and what cannot be said is refused."""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.answers.asking import estimates
from hedgerow.answers.discrepancy import Typical, typical
from hedgerow.answers.question import read_questions
from hedgerow.answers.rows import Rows
from hedgerow.answers.spread import _together, _told
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery

SCHEMA = {
    "columns": {
        "sex": {"type": "category", "values": ["f", "m"]},
        "region": {"type": "category", "values": list("abcd")},
        "age": {"type": "integer", "min": 0, "max": 99, "bins": 20},
        "pay": {"type": "integer", "min": 0, "max": 999, "bins": 10},
    }
}


def rows_of(count, seed):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, count)
    age = rng.integers(0, 100, count)
    pay = np.clip(200 + 4 * age + 100 * sex + rng.normal(0, 60, count), 0, 999).astype(int)
    region = rng.choice(list("abcd"), count, p=[0.4, 0.3, 0.2, 0.1])
    return pa.table({"sex": np.array(["f", "m"])[sex].tolist(), "region": region.tolist(), "age": age, "pay": pay})


@pytest.fixture(scope="module")
def table():
    return rows_of(5_000, 0)


@pytest.fixture(scope="module")
def release(table):
    return hr.synthesize(table, hr.Schema.from_dict(SCHEMA), hr.Budget(3, 1e-6), "mst")


QUESTIONS = [
    "SELECT COUNT(*) FROM t",
    "SELECT sex, COUNT(*), AVG(pay), MEDIAN(pay), STDDEV(pay), SHARE(age < 33) FROM t WHERE age >= 18 GROUP BY sex",
    "SELECT CORR(age, pay), SUM(pay) FROM t WHERE region IN ('a', 'b')",
    "SELECT AVG(pay) FILTER (WHERE sex = 'm') - AVG(pay) FILTER (WHERE sex = 'f') AS gap FROM t",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_estimates_are_those_of_a_large_draw(release, text):
    drawn = Rows.of_table(release.sample(1 << 19, seed=3))
    (question,) = read_questions(text, release.encoding.declared)
    expected = [found.estimate for found in estimates(question, drawn)]
    found = release.ask(text)[0].rows
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        scale = release.model.total / drawn.total if row.value.startswith(("COUNT", "SUM")) else 1.0
        error = 6 * float(np.std(other.influence)) / np.sqrt(drawn.total) * scale
        assert row.estimate == pytest.approx(scale * other.value, abs=error + 0.01 * abs(row.estimate))


def test_intervals_hold_the_private_figures_as_often_as_they_say(release, table):
    text = "; ".join(QUESTIONS)
    real = Rows.of_table(table)
    truths = [
        found.estimate.value
        for question in read_questions(text, release.encoding.declared)
        for found in estimates(question, real)
    ]
    rows = [row for answer in release.ask(text, level=0.999) for row in answer.rows]
    assert all(row.low <= truth <= row.high for row, truth in zip(rows, truths, strict=True))


@settings(max_examples=12)
@given(st.sampled_from(QUESTIONS), st.floats(0.05, 0.99), st.floats(0.05, 0.99))
def test_intervals_grow_with_their_level_and_for_a_population(release, text, one, other):
    low, high = sorted((one, other))
    answers = [release.ask(text, low), release.ask(text, high), release.ask(text, high, population=True)]
    for narrow, wide, widest in zip(*(answer[0].rows for answer in answers), strict=True):
        assert widest.low <= wide.low <= narrow.low <= narrow.estimate <= narrow.high <= wide.high <= widest.high


def test_basis_tells_what_was_measured(release):
    assert release.ask("SELECT COUNT(*) FROM t")[0].rows[0].basis == "measured"
    assert release.ask("SELECT COUNT(*) FROM t WHERE sex = 'f'")[0].rows[0].basis == "measured"
    together = {frozenset(measurement.query.attributes) for measurement in release.measurements}
    conditions = {"sex": "sex = 'f'", "region": "region = 'a'", "age": "age < 50", "pay": "pay > 300"}
    for one, other in itertools.combinations(conditions, 2):
        (answer,) = release.ask(f"SELECT COUNT(*) FROM t WHERE {conditions[one]} AND {conditions[other]}")
        held = any({one, other} <= attributes for attributes in together)
        assert (answer.rows[0].basis != "assumed") == held


def test_a_release_without_measured_distances_is_answered_too(table):
    old = hr.synthesize(table, hr.Schema.from_dict(SCHEMA), hr.Budget(3, 1e-6), "mst", quality=0)
    assert old.quality is None
    (row,) = old.ask("SELECT COUNT(*) FROM t WHERE sex = 'f' AND region = 'a'")[0].rows
    assert row.low < row.estimate < row.high


@pytest.mark.parametrize(
    ("text", "level", "code"),
    [
        ("SELECT COUNT(*) FROM t WHERE sex = 'x'", 0.9, "nobody"),
        ("SELECT sex, AVG(pay) FROM t WHERE age > 500 GROUP BY sex", 0.9, "nobody"),
        ("SELECT AVG(pay) FILTER (WHERE sex = 'x') FROM t", 0.9, "nobody"),
        ("SELECT 1 / COUNT(*) FILTER (WHERE sex = 'x') FROM t", 0.9, "divided-by-zero"),
        ("SELEC COUNT(*)", 0.9, "bad-question"),
        ("SELECT AVG(salary) FROM t", 0.9, "unknown-column"),
        ("SELECT * FROM t", 0.9, "unknown-question"),
        ("SELECT COUNT(*) FROM t", 1.5, "bad-level"),
        ("SELECT age, pay, region, COUNT(*) FROM t GROUP BY age, pay, region", 0.9, "too-many-groups"),
    ],
)
def test_what_cannot_be_said_is_refused(release, text, level, code):
    with pytest.raises(hr.HedgerowError) as refused:
        release.ask(text, level)
    assert refused.value.code == code


def test_groups_without_rows_are_not_listed(release):
    rows = release.ask("SELECT sex, COUNT(*) FROM t WHERE sex IN ('f', 'x') GROUP BY sex")[0].rows
    assert [row.group for row in rows] == [{"sex": "f"}]


def test_tables_vary_by_what_each_may_be_wrong_by(release):
    tables = list(release.tables(12, rows=4_000, seed=1))
    shares = [np.mean(np.array(each["sex"].to_pylist()) == "f") for each in tables]
    between = float(np.std(shares, ddof=1))
    expected = 0.5 * np.sqrt(1 / release._asking.worth + 1 / 4_000)
    assert 0.4 * expected < between < 2.2 * expected  # χ² with 11 degrees of freedom: beyond with less than 1e-6
    assert tables[0].schema == release.encoding.arrow_schema
    with pytest.raises(hr.HedgerowError) as refused:
        list(release.tables(1))
    assert refused.value.code == "too-few-tables"


@given(st.integers(0, 2**32), st.floats(0.5, 3.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_what_is_typical_is_found_behind_noise(seed, mean, spread, noise):
    rng = np.random.default_rng(seed)
    true = rng.normal(mean, spread, 2_000)
    found = typical(true + noise * rng.normal(size=2_000), np.full(2_000, noise + 1e-9))
    assert found.mean == pytest.approx(mean, abs=0.3)
    assert found.std == pytest.approx(spread, abs=0.35)


def test_what_drowns_in_noise_is_taken_for_typical():
    known = Typical(1.0, 0.1, 0.0)
    assert known.given(50.0, 1e9)[0] == pytest.approx(known.unseen)
    assert known.given(1.1, 1e-9)[0] == pytest.approx(1.1**2)


def test_the_command(hedgerow, release, tmp_path):
    release.save(tmp_path / "people.release")
    (tmp_path / "questions.sql").write_text("SELECT sex, COUNT(*) FROM t GROUP BY sex; SELECT AVG(pay) FROM t")
    done = hedgerow("ask", "people.release", "--file", "questions.sql", "--json")
    assert done.code == 0
    assert [len(answer["rows"]) for answer in done.json["answers"]] == [2, 1]
    first = done.json["answers"][0]["rows"][0]
    assert list(first) == ["group", "value", "estimate", "low", "high", "basis"]
    assert first["group"] == {"sex": "f"}
    assert done.json == json.loads(json.dumps(release.ask((tmp_path / "questions.sql").read_text()).to_json()))
    shown = hedgerow("ask", "people.release", "SELECT sex, COUNT(*) FROM t GROUP BY sex")
    assert "measured" in shown.out
    same = hedgerow("ask", "people.release", "SELECT COUNT(*) FROM t", "--minus", "people.release", "--json")
    (row,) = same.json["answers"][0]["rows"]
    assert row["estimate"] == 0
    assert row["low"] < 0 < row["high"]
    assert hedgerow("ask", "people.release", "SELECT MAX(age) FROM t").refusal == "unknown-question"
    assert hedgerow("ask", "people.release").refusal == "no-question"


def test_what_a_measurement_told_is_compared_with_what_the_model_says():
    """A pair was measured: a question about one of its columns is told by sums over the other."""
    domain = Domain.of({"a": 2, "b": 3})
    measured = Measurement(MarginalQuery(domain, ("a", "b")), np.array([10, 20, 30, 5, 15, 20]), Noise("gaussian", 4.0))
    rows = Rows(pa.table({"a": [0, 1]}), np.array([0.5, 0.5]), 100.0, {"a": np.array([0, 1])})
    found = _told(measured, ("a",), rows, 100.0 * np.array([1.0, 0.0]))
    assert found.moved == pytest.approx(60 - 50)
    assert found.noise == pytest.approx(3 * measured.noise.variance)
    assert _together([found, found]).noise == pytest.approx(found.noise / 2)
    assert _together([found, found._replace(moved=0.0)]).moved == pytest.approx(found.moved / 2)
    rough = MarginalQuery(domain, ("a",), levels={"a": [0, 0]})  # one cell for both values tells neither
    untold = Measurement(rough, np.array([100]), Noise("gaussian", 4.0))
    assert _told(untold, ("a",), rows, np.array([1.0, 0.0])) is None
