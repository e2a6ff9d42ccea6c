"""The scores of the 2018 challenge, worked by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.private.evaluate import nist2018
from hedgerow.schema import Schema
from refusals import refused

LARGEST = {"CITY": 3, "SEX": 2, "INCWAGE": 999_998, "AGE": 9, "LAST": 1}


def table(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "CITY": rng.integers(0, 4, rows),
            "SEX": rng.integers(1, 3, rows),
            "INCWAGE": np.where(rng.random(rows) < 0.2, 999_998, 100 * rng.integers(0, 20, rows)),
            "AGE": rng.integers(0, 10, rows),
            "LAST": rng.integers(0, 2, rows),
        }
    )


def arrays(**columns):
    return {name: np.array(values) for name, values in columns.items()}


def test_a_table_scores_a_million_against_itself():
    scores = nist2018.score(table(), table(), LARGEST)
    assert (scores.marginals, scores.conjunctions, scores.income) == pytest.approx((1e6, 1e6, 1e6))
    assert scores.mean == pytest.approx(1e6)


def test_the_mean_is_that_of_the_three():
    assert nist2018.Scores(600_000, 300_000, 900_000).mean == 600_000


def test_equal_seeds_judge_alike_and_another_seed_asks_elsewhere():
    made = table(seed=1)
    assert nist2018.score(table(), made, LARGEST, seed=3) == nist2018.score(table(), made, LARGEST, seed=3)
    assert nist2018.score(table(), made, LARGEST, seed=3) != nist2018.score(table(), made, LARGEST, seed=4)


# score 1


def test_triples_are_distinct_and_never_hold_the_last_column():
    triples = nist2018.random_triples(list(LARGEST), np.random.default_rng(0))
    assert len(triples) == 100
    assert all(len(set(triple)) == 3 and "LAST" not in triple for triple in triples)
    assert {name for triple in triples for name in triple} == set(LARGEST) - {"LAST"}


def test_densities_by_hand():
    # cells of (a, b, c): truth ½ at 000, ½ at 111; synthetic ¼ at 000, ¾ at 001: they share ¼
    truth = arrays(a=[0, 1], b=[0, 1], c=[0, 1])
    made = arrays(a=[0, 0, 0, 0], b=[0, 0, 0, 0], c=[0, 1, 1, 1])
    largest = {"a": 1, "b": 1, "c": 1}
    assert nist2018.marginal_score(truth, made, largest, [("a", "b", "c")]) == pytest.approx(250_000)


def test_out_of_range_and_missing_share_one_cell():
    truth = arrays(a=[5, -1], b=[0, 0], c=[0, 0])
    made = arrays(a=[-1, 99], b=[0, 0], c=[0, 0])
    largest = {"a": 3, "b": 1, "c": 1}
    assert nist2018.marginal_score(truth, made, largest, [("a", "b", "c")]) == pytest.approx(1e6)


def test_a_triple_with_an_absent_column_counts_nothing():
    truth = arrays(a=[0], b=[0], c=[0], d=[0])
    made = arrays(a=[0], b=[0], c=[0])
    largest = dict.fromkeys("abcd", 1)
    assert nist2018.marginal_score(truth, made, largest, [("a", "b", "c"), ("b", "c", "d")]) == pytest.approx(500_000)
    assert nist2018.marginal_score(truth, arrays(a=[0]), largest, [("b", "c", "d")]) == 0


# score 2


@given(base=st.integers(0, 20), seed=st.integers(0, 2**32 - 1))
def test_allowed_codes_hold_the_base_and_stay_in_range(base, seed):
    allowed = nist2018.allowed_codes(base, 20, np.random.default_rng(seed))
    assert base in allowed
    assert all(0 <= code <= 20 for code in allowed)


def test_codes_are_added_until_one_repeats():
    class Coins:
        drawn = iter([3, 5, 7, 5, 9])

        def integers(self, low, high):
            assert (low, high) == (0, 11)
            return next(self.drawn)

    assert nist2018.allowed_codes(2, 10, Coins()) == {2, 3, 5, 7}
    Coins.drawn = iter([2])
    assert nist2018.allowed_codes(2, 10, Coins()) == {2}


def test_conjunctions_by_hand():
    truth = arrays(a=[0, 0, 1, 1], b=[0, 1, 0, 1])
    made = arrays(a=[0, 1, 1, 1], b=[0, 0, 0, 0])
    largest = {"a": 1, "b": 1}
    tests = [{"a": frozenset({0})}, {"a": frozenset({1}), "b": frozenset({1})}]
    # true shares ½ and ¼, synthetic ¼ and 0 (counted as 1e-6)
    errors = [math.log(0.25) - math.log(0.5), math.log(1e-6) - math.log(0.25)]
    wanted = 1e6 * (1 - math.sqrt(sum(error**2 for error in errors) / 2) / math.log(1000))
    assert nist2018.conjunction_score(truth, made, tests, largest) == pytest.approx(max(0, wanted))
    assert wanted < 0
    assert nist2018.conjunction_score(truth, made, tests[:1], largest) == pytest.approx(
        1e6 * (1 - math.log(2) / math.log(1000))
    )


def test_an_absent_column_is_no_condition():
    truth, made = arrays(a=[0, 1], b=[0, 1]), arrays(a=[0, 1])
    tests = [{"a": frozenset({0}), "b": frozenset({0})}]
    assert nist2018.conjunction_score(truth, made, tests, {"a": 1, "b": 1}) == pytest.approx(1e6)


def test_base_rows_pass_their_own_tests_and_a_tenth_of_the_columns_takes_part():
    rng = np.random.default_rng(0)
    truth = {f"c{n}": rng.integers(0, 30, 5000) for n in range(50)}
    largest = dict.fromkeys(truth, 29)
    tests = nist2018.random_tests(truth, largest, rng)
    assert 270 < len(tests) <= 300  # duplicates merge
    assert all(nist2018._share(truth, test, largest) > 0 for test in tests)
    assert np.mean([len(test) for test in tests]) == pytest.approx(5, abs=1)


# score 3


def test_gini_by_hand():
    # wages 0, 100, 300: the k lowest have 0, 100, 400; 1 − 2·500 / (3·400) = 1/6
    assert nist2018.gini(np.array([300, 0, 100])) == pytest.approx(1 / 6)
    assert nist2018.gini(np.array([0, 0])) == 0


def test_pay_gap_by_hand():
    assert nist2018.pay_gap(np.array([100, 300, 50]), np.array([1, 1, 2])) == 150
    assert nist2018.pay_gap(np.array([100]), np.array([2])) == -100


def test_income_by_hand():
    # three cities with gaps 300, 200, 100; unknown wages and their city do not count
    truth = arrays(CITY=[0, 0, 1, 1, 2, 2, 3], SEX=[1, 2] * 3 + [1], INCWAGE=[400, 100, 300, 100, 200, 100, 999_998])
    # the synthetic table swaps cities 0 and 1 and has no known wage in city 2
    made = arrays(CITY=[1, 1, 0, 0, 2], SEX=[1, 2, 1, 2, 1], INCWAGE=[400, 100, 300, 100, 999_998])

    def index(low, high):
        return 1 - 2 * (low + low + high) / (2 * (low + high))

    apart = abs(index(100, 400) - index(100, 300))
    ginis = math.sqrt((2 * (1 - apart) ** 2 + 0) / 3)
    places = math.sqrt((2 * (1 - 1 / 2) ** 2 + 0) / 3)
    assert nist2018.income_score(truth, made) == pytest.approx(5e5 * (ginis + places))


def test_no_income_columns_no_income_score():
    assert nist2018.income_score(nist2018.columns_of(table()), arrays(CITY=[0])) == 0


def test_nulls_are_out_of_range():
    nulls = pa.table({"CITY": pa.array([None, 1], pa.int32())})
    assert nist2018.columns_of(nulls)["CITY"].tolist() == [-1, 1]


# what is refused


def test_the_real_table_must_be_whole_and_both_must_have_rows():
    with refused("missing-column"):
        nist2018.score(table().drop_columns(["AGE"]), table(), LARGEST)
    with refused("missing-column"):
        nist2018.score(table(), table(0), LARGEST)


def test_largest_codes_come_from_the_schema():
    schema = Schema.parse(
        "columns:\n  a: {type: code, size: 7}\n  b: {type: integer, min: 1, max: 2}\n"
        "  c: {type: integer, min: 0, max: 50, special: [99]}\n"
    )
    assert nist2018.largest_codes(schema) == {"a": 6, "b": 2, "c": 99}
    with refused("score-needs-codes", '"a"'):
        nist2018.largest_codes(Schema.parse("columns:\n  a: {type: category, values: [x]}\n"))
