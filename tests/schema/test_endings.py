"""Last digits: every step but 0 has one ending, and a habit is kept inside the leaf that is asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.schema import Schema
from hedgerow.schema.endings import DIGITS, UNITS, Clock, Habit, ending_of, endings, residues_of
from hedgerow.schema.leaves import Leaf, Leaves
from refusals import refused


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1))
def test_an_ending_is_how_a_number_is_written(numbers: list[int]) -> None:
    names = endings(13)
    for number, place in zip(numbers, ending_of(np.array(numbers, dtype=float)).tolist(), strict=True):
        text = str(abs(number)).zfill(2)
        if number == 0:
            assert place != place
        elif not text.endswith("00"):
            assert names[int(place)] == text[-2:]
        else:
            zeros = len(text) - len(text.rstrip("0"))
            assert names[int(place)] == ("5" if text[-zeros - 1] == "5" else "") + "0" * zeros


@pytest.mark.parametrize("seconds", [1, 60, 3_600])
def test_a_time_ends_in_the_longest_unit_that_it_is_a_whole_number_of(seconds: int) -> None:
    clock = Clock(seconds)
    steps = np.arange(86_400 // seconds)
    for step, place in zip(steps.tolist(), clock.places(steps.astype(float)).tolist(), strict=True):
        held = [name for name in clock.names if step * seconds % UNITS[name] == 0]
        assert clock.names[int(place)] == held[0]
    assert np.isnan(clock.places(np.array([np.nan]))).all()
    for place, name in enumerate(clock.names):
        residues, period = clock.residues(name)
        assert (np.isin(steps % period, residues) == (clock.places(steps.astype(float)) == place)).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_habit_is_kept_inside_its_leaf(sign: int) -> None:
    ends = sorted((sign * 10_001, sign * 19_999))
    cells = [[Leaf(ends[0], ends[1], 5)]]
    likely = {"99": 30.0, "500": 100.0, "000": 0.0, "": 0.5}
    leaves = Leaves(cells, -(10**6), 10**6, likely=likely)
    drawn = np.abs(leaves.draw(np.zeros(40_000, np.int64), None, np.random.default_rng(0)))
    assert drawn.min() >= 10_001
    assert drawn.max() <= 19_999
    weights = {"99": 100 * 30.0, "500": 10 * 100.0, "000": 0.0}
    rest = (9_999 - 100 - 10 - 9) * 0.5
    whole = sum(weights.values()) + rest
    assert abs((drawn % 100 == 99).mean() - weights["99"] / whole) < 0.02
    assert abs((drawn % 1000 == 500).mean() - weights["500"] / whole) < 0.02
    assert (drawn % 1000 == 0).sum() == 0
    assert np.abs(np.quantile(drawn, [0.25, 0.5, 0.75]) - [12_500, 15_000, 17_500]).max() < 250, "and spread as before"


def test_a_leaf_without_the_endings_that_are_likely_is_drawn_all_the_same() -> None:
    leaves = Leaves([[Leaf(1, 9, 1)], [Leaf(20, 30, 1)]], 0, 100, likely={"99": 5.0, "": 0.0})
    drawn = leaves.draw(np.repeat([0, 1], 500), None, np.random.default_rng(0))
    assert set(drawn[:500].tolist()) == set(range(1, 10))
    assert set(drawn[500:].tolist()) == set(range(20, 31))


@pytest.mark.parametrize("bad", ["{9: 1}", "{'050': 1}", "{'99': -1}", "{'99': x}", "[1]", "{'5': 1}", "{'x0': 1}"])
def test_endings_that_are_none_are_refused(bad: str) -> None:
    declared = f"columns: {{x: {{type: integer, min: 0, max: 99999, leaves: [[[1, 9, 1]]], endings: {bad}}}}}"
    with refused("not-a-number" if "x}" in bad else "bad-endings"):
        Schema.parse(declared)


def test_prices_keep_their_cents() -> None:
    import hedgerow as hr

    rng = np.random.default_rng(0)
    price = np.floor(rng.gamma(3, 40, 20_000)) + rng.choice([0.99, 0.5, 0.0, 0.37], 20_000, p=[0.6, 0.2, 0.1, 0.1])
    schema = hr.Schema(columns={"price": {"type": "number", "min": 0, "max": 100_000, "decimals": 2}})
    made = np.array(
        hr.synthesize(pa.table({"price": price}), schema, hr.Budget(1.0, 1e-6), "independent").sample(20_000)["price"]
    )
    cents = np.rint(made * 100).astype(int) % 100
    assert abs((cents == 99).mean() - 0.6) < 0.08
    assert abs((cents == 50).mean() - 0.2) < 0.05
    assert np.array_equal(np.round(made, 2), made)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1), st.sets(st.sampled_from(endings(13))))
def test_a_step_has_a_named_ending_where_it_leaves_its_remainder(numbers: list[int], named: set[str]) -> None:
    steps = np.array([*numbers, *(number * 10_000 for number in numbers)], dtype=np.int64) % 10**13
    habit = Habit(dict.fromkeys(named, 1.0), DIGITS, np.array([1]), np.array([10**13]), [])
    expected = [
        any(step % period in residues for residues, period in map(residues_of, named)) for step in steps.tolist()
    ]
    assert habit._is_named(steps).tolist() == expected


@pytest.mark.parametrize(("step", "bad"), [("minute", "{1s: 1}"), ("second", "{'99': 1}"), ("hour", "{30m: 2}")])
def test_endings_of_times_are_whole_numbers_of_steps(step: str, bad: str) -> None:
    cut = "leaves: [[[2020-01-01, 2020-12-31, 1]]], times: [[['00:00', '23:00', 1]]]"
    with refused("bad-endings"):
        Schema.parse(
            f"columns: {{x: {{type: datetime, min: 2020-01-01, max: 2020-12-31, step: {step}, {cut}, endings: {bad}}}}}"
        )
