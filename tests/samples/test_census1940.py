"""The census sample has the shape of the contest's table, and its relations."""

import json

import numpy as np
import pyarrow.compute as pc
import pytest

import hedgerow as hr
from hedgerow.samples import census1940
from hedgerow.schema import presets


@pytest.fixture(scope="module")
def table():
    return census1940.generate(60_000, seed=1)


def mutual_information(first, second):
    joint = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    total = joint[1].sum()
    ones = [dict(zip(*np.unique(column, return_counts=True), strict=True)) for column in (first, second)]
    expected = np.array([ones[0][a] * ones[1][b] / total for a, b in joint[0].T])
    return float((joint[1] / total * np.log(joint[1] / expected)).sum())


def test_the_same_seed_gives_the_same_table():
    assert census1940.generate(500, seed=4).equals(census1940.generate(500, seed=4))
    assert not census1940.generate(500, seed=4).equals(census1940.generate(500, seed=5))


def test_one_table_fits_both_codings(table):
    for name in ("census1940-field-groups", "census1940-match3"):
        encoding = presets.load(name).schema.encoding()
        outside = encoding.outside(table.combine_chunks())
        assert [column for column, misfits in outside.items() if misfits.any()] == []


def test_the_schema_beside_the_table_is_that_of_the_winner():
    assert hr.Schema.parse(census1940.SCHEMA) == presets.load("census1940-match3").schema


def test_sizes_are_those_that_the_winner_published(real_table):
    published = json.loads(real_table("census1940-domain.json").read_text())
    wage = {"INCWAGE": published.pop("INCWAGE_A"), "INCWAGE:heap": published.pop("INCWAGE_B")}
    schema = presets.load("census1940-match3").schema
    domain = schema.encoding().domain
    assert set(domain.names) == {*published, *wage, "VALUEH:heap"}
    for name, size in {**published, **wage}.items():
        column = schema.columns.get(name)
        layout = None if column is None else column.layout
        beyond = 0 if layout is None or (layout.hidden is None and layout.other is None) else 1  # what no list holds
        assert domain[name].size == size + beyond, name


def test_the_tree_holds_every_column_once_and_companions_come_first():
    grown = [name for name, _ in census1940.growth()]
    assert sorted([*grown, "CITY"]) == sorted(census1940.SIZES)
    order = list(dict.fromkeys(["CITY", "SEX", "INCWAGE", *grown]))  # these three are made together
    assert all(order.index(other) < order.index(name) for name, other in census1940.COMPANIONS.items())


def test_neighbours_in_the_tree_are_related_and_strangers_hardly(table):
    rng = np.random.default_rng(0)
    edges = [("AGE", "EMPSTATD"), ("OCC", "IND"), ("SUPDIST", "COUNTY"), ("BPLD", "BPL"), ("UIND", "UOCC")]
    for first, second in edges:
        one, other = np.asarray(table[first]), np.asarray(table[second])
        by_chance = mutual_information(one, rng.permutation(other))
        assert mutual_information(one, other) > 5 * by_chance


def test_wages_are_round_and_depend_on_city_and_sex(table):
    wage, sex, city = (np.asarray(table[name]) for name in ("INCWAGE", "SEX", "CITY"))
    paid = (wage > 0) & (wage < census1940.MISSING_WAGE)
    assert wage[paid].max() <= 5000
    assert (wage[paid] % 100 == 0).mean() > 0.4
    assert (wage[paid] % 10 == 0).mean() > 0.8
    assert (sorted(set(sex)), sorted(set(city))) == ([1, 2], list(range(9)))
    gaps = [
        wage[paid & (city == c) & (sex == 1)].mean() - wage[paid & (city == c) & (sex == 2)].mean() for c in range(9)
    ]
    assert min(gaps) > 50
    assert max(gaps) > 3 * min(gaps)


def test_most_people_were_not_asked_the_sample_questions(table):
    for name in ("MTONGUE", "VETSTAT", "UOCC", "CHBORN"):
        assert 0.03 < pc.mean(pc.not_equal(table[name], 0).cast("int8")).as_py() < 0.07
