"""Conditions: what they mean is what SQL means, on rows and on ranges; what cannot be read is refused by name."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.schema import Schema
from hedgerow.schema.conditions import parse_condition, parse_expression
from hedgerow.schema.conditions.values import Numbers, Truth
from refusals import refused

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "fare": {"type": "number", "min": -100, "max": 100, "decimals": 2, "missing": True},
            "tip": {"type": "number", "min": -100, "max": 100, "decimals": 1, "missing": True},
            "age": {"type": "integer", "min": -20, "max": 120, "missing": True},
            "born": {"type": "date", "min": "2019-01-01", "max": "2021-12-31", "step": "day", "missing": True},
            "died": {"type": "date", "min": "2019-01-01", "max": "2021-12-31", "step": "day", "missing": True},
            "seen": {"type": "datetime", "min": "2019-01-01", "max": "2021-12-31", "step": "second", "missing": True},
            "grade": {"type": "category", "values": ["a", "ab", "b", "7"], "missing": True},
            "paid": {"type": "boolean", "missing": True},
            "odd name": {"type": "integer", "min": 0, "max": 9},
        }
    }
)
COLUMNS = SCHEMA.columns
TYPES = {
    "fare": pa.float64(),
    "tip": pa.float64(),
    "age": pa.int64(),
    "born": pa.date32(),
    "died": pa.date32(),
    "seen": pa.timestamp("s"),
    "grade": pa.string(),
    "paid": pa.bool_(),
}


def _optional(strategy):
    return st.one_of(st.none(), strategy)


ROW = st.fixed_dictionaries(
    {
        "fare": _optional(st.integers(-300, 300).map(lambda cents: cents / 100)),
        "tip": _optional(st.integers(-30, 30).map(lambda tenths: tenths / 10)),
        "age": _optional(st.integers(-5, 20)),
        "born": _optional(st.dates(datetime.date(2019, 12, 20), datetime.date(2020, 3, 3))),
        "died": _optional(st.dates(datetime.date(2019, 12, 20), datetime.date(2020, 3, 3))),
        "seen": _optional(
            st.datetimes(datetime.datetime(2019, 12, 20), datetime.datetime(2020, 3, 3)).map(
                lambda moment: moment.replace(microsecond=0)
            )
        ),
        "grade": _optional(st.sampled_from(["a", "ab", "b", "7"])),
        "paid": _optional(st.booleans()),
    }
)
NUMBER = st.one_of(
    st.sampled_from(["fare", "tip", "age"]),
    st.integers(-4, 4).map(str),
    st.integers(-30, 30).map(lambda tenths: str(Decimal(tenths) / 10)),
    st.sampled_from(["EXTRACT(MONTH FROM born)", "year(seen)", "hour(seen)", "dayofweek(died)", "(died - born)"]),
    st.sampled_from(["date_diff('hour', born, seen)", "date_diff('day', seen, died)"]),
)
SUM = st.recursive(
    NUMBER,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
        st.tuples(inner, st.sampled_from(["2", "0.5", "-1", "1.2"])).map(lambda each: f"({each[0]} * {each[1]})"),
        inner.map(lambda each: f"({each} / 2)"),
        inner.map(lambda each: f"COALESCE({each}, 1)"),
    ),
    max_leaves=3,
)
SIGN = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
SIMPLE = st.one_of(
    st.tuples(SUM, SIGN, SUM).map(" ".join),
    SUM.map(lambda each: f"{each} IS NULL"),
    st.tuples(SUM, NUMBER, NUMBER).map(lambda each: f"{each[0]} BETWEEN {each[1]} AND {each[2]}"),
    st.sampled_from(["born", "died", "seen"]).flatmap(
        lambda name: st.tuples(st.just(name), SIGN, st.sampled_from(["born", "DATE '2020-01-01'", "seen"])).map(
            " ".join
        )
    ),
    st.sampled_from(
        [
            "grade LIKE 'a%'",
            "grade IN ('a', 'b')",
            "grade NOT IN ('a', NULL)",
            "grade = 'ab'",
            "grade <> 'ab'",
            "COALESCE(grade, 'b') = 'b'",
            "age IN (1, 2, NULL)",
            "fare IN (0.1, 0.25, -1)",
            "paid",
            "paid IS NOT TRUE",
            "paid IS FALSE",
            "paid = FALSE",
            "NULL",
            "seen - born <= INTERVAL '36 hours'",
            "seen + INTERVAL '1 day' < died",
            "seen + age * INTERVAL '12 hours' < died",
            "CAST(seen AS DATE) = born",
            "TRY_CAST(grade AS INTEGER) = 7",
        ]
    ),
)
CONDITION = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
        inner.map(lambda each: f"NOT ({each})"),
    ),
    max_leaves=5,
)


def _table(rows):
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()})


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=12), st.lists(CONDITION, min_size=1, max_size=4))
def test_what_a_condition_means_is_what_sql_means(rows, conditions):
    duckdb = pytest.importorskip("duckdb")
    table = _table(rows)
    with duckdb.connect() as database:
        database.execute("SET threads=1")
        database.register("arrow", table)
        database.execute(
            "CREATE TABLE t AS SELECT fare::DECIMAL(9, 2) fare, tip::DECIMAL(9, 1) tip, age, born, died, seen, grade, "
            "paid FROM arrow"
        )
        for text in conditions:
            condition = parse_condition(text, COLUMNS)
            assert parse_condition(str(condition), COLUMNS) == condition
            said = [row[0] for row in database.execute(f"SELECT ({text})::BOOLEAN FROM t").fetchall()]
            found = condition.truth(table)
            assert [
                True if t else False if f else None for t, f in zip(found.true, found.false, strict=True)
            ] == said, text
            assert (found.true.astype(int) + found.false + found.null == 1).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=6), CONDITION)
def test_a_range_may_be_whatever_one_of_its_rows_is(rows, text):
    """Rows taken together as one range: what is true of one of them may be true of the range."""
    condition = parse_condition(text, COLUMNS)
    known = {}
    for name, field in condition.fields.items():
        values = [row[name] for row in rows]
        if field.kind in ("text", "truth") or None in values:  # one value, or none, in each cell
            rows = [{**row, name: values[0]} for row in rows]
            known[name] = field.read(pa.array([values[0]], TYPES[name]))
        else:
            line = field.read(pa.array(values, TYPES[name]))
            known[name] = Numbers(np.array([line.low.min()]), np.array([line.low.max()]), line.unit)
    may = condition.evaluate(known, 1)
    truth = condition.truth(_table(rows))
    assert isinstance(may, Truth)
    for held, possible in ((truth.true, may.true), (truth.false, may.false), (truth.null, may.null)):
        assert possible[0] or not held.any(), text


def test_decimals_are_exact():
    rows = pa.table({"fare": [0.1, 0.29, None], "tip": [0.2, 0.1, 1.0], "age": pa.array([3, 1, 2])})
    assert parse_expression("fare + tip", COLUMNS).values(rows).to_pylist() == [0.3, 0.39, None]
    assert parse_condition("fare + tip = 0.3", COLUMNS).truth(rows).true.tolist() == [True, False, False]
    assert parse_expression("age / 3", COLUMNS).values(rows).to_pylist() == [1.0, 1 / 3, 2 / 3]
    assert parse_expression("age * 2 - 1", COLUMNS).values(rows).to_pylist() == [5, 1, 3]


def test_values_have_their_kinds():
    rows = pa.table({"born": pa.array([datetime.date(2020, 1, 31), None]), "age": pa.array([1, 2])})
    assert parse_expression("born", COLUMNS).values(rows).type == pa.date32()
    assert parse_expression("born + INTERVAL '1 day'", COLUMNS).values(rows).to_pylist() == [
        datetime.datetime(2020, 2, 1),
        None,
    ]
    assert parse_expression("age > 1", COLUMNS).values(rows).to_pylist() == [False, True]


def test_a_name_may_stand_for_an_expression():
    names = {**COLUMNS, "total": parse_expression("fare + tip", COLUMNS)}
    assert parse_condition("total > 3", names).columns == ("fare", "tip")


def test_names_are_found_as_sql_finds_them():
    assert parse_condition("AGE = 1", COLUMNS).columns == ("age",)
    assert parse_condition('"odd name" = 1', COLUMNS).columns == ("odd name",)
    with refused("unknown-column", '"aged" is not a column', 'Did you mean "age"?'):
        parse_condition("aged = 1", COLUMNS)
    with refused("unknown-column"):
        parse_condition('"AGE" = 1', COLUMNS)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("age = ", "bad-condition"),
        ("", "bad-condition"),
        ("age = 1; DROP TABLE t", "bad-condition"),
        ("(" * 400 + "age" + ")" * 400 + " = 1", "condition-too-deep"),
        ("age = 1 OR " * 3_000 + "age = 2", "condition-too-long"),
        ("NOT " * 50 + "paid", "condition-too-deep"),
        ("upper(grade) = 'A'", "unknown-operator"),
        ("age IN (SELECT 1)", "unknown-operator"),
        ("age", "not-a-condition"),
        ("fare * tip > 1", "kinds-differ"),
        ("fare / 0 > 1", "kinds-differ"),
        ("grade < 'b'", "kinds-differ"),
        ("grade LIKE '%b'", "kinds-differ"),
        ("born > '2020-02-30'", "kinds-differ"),
        ("age = 'old'", "kinds-differ"),
        ("born = age", "kinds-differ"),
        ("seen - born < INTERVAL '1 month'", "kinds-differ"),
    ],
)
def test_what_the_language_lacks_is_refused(text, code):
    with refused(code):
        parse_condition(text, COLUMNS)


def test_many_alternatives_are_read():
    many = " OR ".join(f"age = {number}" for number in range(1_000))
    assert len(parse_condition(many, COLUMNS).parts) == 1_000
