"""Values of weighted rows: those of a table are what SQL says, and influences are their derivatives."""

import contextlib
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.answers.asking import estimates
from hedgerow.answers.question import read_questions
from hedgerow.answers.rows import Rows

SCHEMA = hr.Schema(
    columns={
        "sex": {"type": "category", "values": ["f", "m"]},
        "age": {"type": "integer", "min": 0, "max": 99},
        "pay": {"type": "number", "min": 0, "max": 10, "bins": 10, "missing": True},
    }
)
frames = st.lists(
    st.tuples(st.sampled_from("fm"), st.integers(0, 99), st.one_of(st.none(), st.integers(0, 40).map(lambda x: x / 4))),
    min_size=3,
    max_size=40,
).map(lambda rows: pd.DataFrame(rows, columns=["sex", "age", "pay"]).astype({"pay": float}))


def asked(text, rows):
    (question,) = read_questions(text, SCHEMA.columns)
    return [(found.group, found.named.name, found.estimate) for found in estimates(question, rows)]


def of_frame(frame):
    table = pa.table({"sex": list(frame.sex), "age": list(frame.age), "pay": pa.array(frame.pay, from_pandas=True)})
    return Rows.of_table(table)


@given(frames, st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_a_table_answers_as_pandas_does(frame, level):
    text = f"""SELECT sex, COUNT(*), COUNT(pay), SUM(age), AVG(age), STDDEV(age), VARIANCE(age),
               QUANTILE_DISC(age, {level}), SHARE(age > 40), SHARE(*),
               AVG(age) FILTER (WHERE age > 20) - 2 * AVG(age) / 4
               FROM t WHERE age < 90 GROUP BY sex ORDER BY sex DESC"""
    people = frame[frame.age < 90]
    if not len(people) or (people[people.age > 20].sex.nunique() < people.sex.nunique()):
        return
    expected = []
    for _, group in sorted(people.groupby("sex"), reverse=True):
        ranked = np.sort(group.age)
        expected += [
            *(len(group), group.pay.notna().sum(), group.age.sum(), group.age.mean()),
            *(group.age.std(ddof=0), group.age.var(ddof=0), ranked[max(0, math.ceil(level * len(ranked) - 1e-9) - 1)]),
            *((group.age > 40).mean(), len(group) / len(people)),
            group.age[group.age > 20].mean() - group.age.mean() / 2,
        ]
    found = [estimate.value for _, _, estimate in asked(text, of_frame(frame))]
    assert found == pytest.approx(expected)


@given(frames, st.randoms(use_true_random=False))
def test_influence_is_the_derivative_by_the_rows_shares(frame, random):
    values = ["COUNT(*)", "SUM(age)", "AVG(age)", "STDDEV(age)", "SHARE(age > 40)", "SHARE(*)", "AVG(age) / COUNT(*)"]
    if frame[frame.sex == "f"].age.nunique() > 1 and frame[frame.sex == "f"].index.size > 2:
        values.append("CORR(age, age + age)")
    else:
        return
    rows = of_frame(frame)
    text = f"SELECT {', '.join(values)} FROM t WHERE sex = 'f'"
    before = asked(text, rows)
    step = np.array([random.uniform(-1, 1) for _ in rows.weights])
    step -= step.mean()
    near = Rows(rows.table, rows.weights + 1e-7 * step * rows.weights.mean(), rows.total)
    for (_, name, old), (_, _, new) in zip(before, asked(text, near), strict=True):
        slope = (new.value - old.value) / 1e-7
        expected = float(old.influence @ step) * rows.weights.mean()
        scale = 1 + float(np.abs(old.influence).max())
        assert slope == pytest.approx(expected, abs=1e-4 * scale), name


def test_groups_are_sorted_and_cut_as_asked():
    frame = pd.DataFrame({"sex": list("ffm"), "age": [1, 2, 30], "pay": [1.0, 2.0, 3.0]})
    found = asked("SELECT sex, AVG(age) AS a FROM t GROUP BY sex ORDER BY a DESC LIMIT 1", of_frame(frame))
    assert [(group, name, estimate.value) for group, name, estimate in found] == [({"sex": "m"}, "a", 30.0)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELEC x", "unknown-question"),
        ("SELECT (", "bad-question"),
        (" ; ", "no-question"),
        ("SELECT * FROM t", "unknown-question"),
        ("SELECT sex FROM t", "unknown-question"),
        ("SELECT age, COUNT(*) FROM t", "unknown-question"),
        ("SELECT MAX(age) FROM t", "unknown-question"),
        ("SELECT AVG(sex) FROM t", "unknown-question"),
        ("SELECT AVG(agee) FROM t", "unknown-column"),
        ("SELECT COUNT(*) FROM t JOIN u ON t.a = u.a", "unknown-question"),
        ("SELECT COUNT(*) FROM t HAVING COUNT(*) > 1", "unknown-question"),
        ("SELECT COUNT(*) FROM t ORDER BY age", "unknown-question"),
        ("SELECT QUANTILE(age, 2) FROM t", "unknown-question"),
        ("SELECT AVG(age) FROM t WHERE age > 200", "nobody"),
        ("SELECT AVG(age) FILTER (WHERE sex = 'x') FROM t", "nobody"),
        ("SELECT COUNT(*) / (COUNT(*) - COUNT(*)) FROM t", "divided-by-zero"),
        ("SELECT CORR(age, age) FROM t WHERE age = 1", "no-variation"),
        ("DROP TABLE t", "unknown-question"),
        ("SELECT COUNT(*) FROM t LIMIT x", "unknown-question"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_sentence(text, code):
    frame = pd.DataFrame({"sex": list("ffm"), "age": [1, 2, 30], "pay": [1.0, 2.0, 3.0]})
    with pytest.raises(hr.HedgerowError) as refused:
        asked(text, of_frame(frame))
    assert refused.value.code == code
    assert "\n" not in str(refused.value)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text):
    for asked_text in (text, f"SELECT COUNT(*) FROM t WHERE {text}", f"SELECT {text} FROM t"):
        with contextlib.suppress(hr.HedgerowError):
            read_questions(asked_text, SCHEMA.columns)
