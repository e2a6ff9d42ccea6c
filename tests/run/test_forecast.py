"""A plan opens no table: laws of forecasts, what the command says, and forecasts beside outcomes that were measured."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.progress import Progress
from hedgerow.run.forecast import Table, advice, alternatives, cost_of_choice, expected, forecast, foretold
from hedgerow.run.precedents import PRECEDENTS
from refusals import refused
from repository import ROOT

SCHEMA = """
dataset: people
person: id
max_rows_per_person: 3
columns:
  age: {type: integer, min: 0, max: 115}
  sex: {type: category, values: [f, m]}
  job: {type: code, size: 300}
  city: {type: category, values: private}
"""
TABLES = st.builds(
    lambda sizes, rows, theta: Table(tuple(map(str, range(len(sizes)))), tuple(sizes), rows, theta),
    st.lists(st.integers(2, 300), min_size=1, max_size=30),
    st.integers(1, 10**7),
    st.integers(1, 20),
)


@given(TABLES, st.floats(0.01, 5))
def test_more_budget_more_rows_and_fewer_rows_per_person_are_never_worse(table, mu):
    errors = np.array(expected(table, mu))
    assert (errors > 0).all()
    assert (errors <= 1).all()
    assert (expected(table, 2 * mu) <= errors).all()
    assert (expected(replace(table, rows=2 * table.rows), mu) <= errors).all()
    assert (expected(replace(table, rows_per_person=table.rows_per_person + 1), mu) >= errors).all()


@given(TABLES, st.floats(0.01, 5))
def test_a_forecast_is_whole_and_its_range_a_factor_of_three(table, mu):
    told = foretold(table, mu, 1.0)
    low, high = told.triples
    assert 0 < low < high <= 1
    assert high / low <= 3 * (1 + 1e-9)
    pairs, triples = math.comb(len(table.sizes), 2), math.comb(len(table.sizes), 3)
    assert 0 <= told.relations <= pairs + triples
    assert set(told.too_wide) <= set(table.names)


@given(st.lists(st.integers(1, 50), min_size=3, max_size=7))
def test_free_cells_are_those_of_all_marginals(sizes):
    from itertools import combinations

    table = Table(tuple(map(str, range(len(sizes)))), tuple(sizes), 10)
    for degree in (1, 2, 3):
        cells = [math.prod(max(1, size - 1) for size in each) for each in combinations(sizes, degree)]
        assert table.free(degree) == pytest.approx(np.mean(cells))
    kept = table.without_widest(2)
    assert sorted(kept.sizes) == sorted(sizes)[:-2]


def test_alternatives_and_the_cost_of_a_choice():
    schema = hr.Schema.parse(SCHEMA)
    told = forecast(schema, hr.Budget(1.0), 6000)
    others = alternatives(schema, hr.Budget(1.0), 6000)
    assert all(each.pairs < told.pairs for each in others.values())
    assert 0 < cost_of_choice(schema, hr.Budget(1.0), 6000, 2) < cost_of_choice(schema, hr.Budget(1.0), 6000, 3) < 1
    assert advice([told], others).endswith("%.")


def test_measured_outcomes_are_near_their_forecasts():
    """Outcomes of public tables that were run before (bench/plan.json), by the sizes of coded ones."""
    sizes = {"nltcs": (2,) * 16, "br2000": (2, 7, 22, 10, 16, 2, 2, 2, 2, 4, 16, 2, 16, 2)}
    found = json.loads((ROOT / "bench/plan.json").read_text())
    seen = 0
    for key, runs in found.items():
        name, epsilon = key.split("|")
        if name not in sizes:
            continue
        schema = hr.Schema.from_dict({f"x{number}": size for number, size in enumerate(sizes[name])})
        told = forecast(schema, hr.Budget(float(epsilon)), int(runs[0]["rows"]), 0.0)
        assert 0.4 < told.columns / runs[0]["tvd1"] < 2.5
        assert 0.4 < told.pairs / runs[0]["tvd2"] < 2.5
        seen += 1
    assert seen == 8


def test_the_command_says_what_to_expect_and_draws_it(hedgerow, tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    asked = ("plan", "-s", "s.yaml", "--rows", 6000, "-e", "0.5,4", "-m", "hedge,mst")
    done = hedgerow(*asked, "--picture", "p.svg")
    assert done.code == 0, done.err
    assert "no table was opened" in done.out
    assert "too wide" in done.out
    assert "A choice among 2 methods" in done.out
    assert all(f"{each.epsilon:g}: {each.release}" in done.out for each in PRECEDENTS)
    drawn = (tmp_path / "p.svg").read_text()
    assert drawn.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert hedgerow(*asked, "--picture", "p.svg").code == 2
    told = hedgerow(*asked, "--json").json
    assert [each["epsilon"] for each in told["forecasts"]] == [0.5, 4.0]
    assert set(told) == {"rows", "delta", "forecasts", "advice", "choice", "precedents"}
    assert all(each["source"] for each in told["precedents"])


def test_a_plan_for_laplace_noise_is_refused():
    with refused("plan-needs-delta"):
        forecast(hr.Schema.parse(SCHEMA), hr.Budget(1.0, 0.0), 6000)


class Listening(Progress):
    def __init__(self):
        super().__init__()
        self.heard = []

    def warn(self, text):
        self.heard.append(text)


@pytest.mark.parametrize(("rows", "warned"), [(60, True), (60_000, False)])
def test_a_run_warns_after_its_look_where_most_would_be_noise(rows, warned):
    schema = hr.Schema.parse(
        "columns: {a: {type: category, values: [x, y]}, b: {type: integer, min: 0, max: 999, bins: 300}}"
    )
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.choice(["x", "y"], rows), "b": rng.integers(0, 1000, rows)})
    progress = Listening()
    hr.synthesize(table, schema, hr.Budget(0.3), "independent", progress=progress, unsafe_noise_seed=2)
    assert bool(progress.heard) is warned
