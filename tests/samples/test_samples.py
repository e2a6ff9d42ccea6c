"""The personnel sample follows the table that it was made from."""

import numpy as np
import pyarrow.compute as pc
import pytest

import hedgerow as hr
from hedgerow.samples import opm


@pytest.fixture(scope="module")
def table():
    return opm.generate(200_000)


def shares(column):
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(column).to_pylist()}
    return {value: count / len(column) for value, count in sorted(counts.items())}


def test_the_same_seed_gives_the_same_table():
    assert opm.generate(1000, seed=4).equals(opm.generate(1000, seed=4))
    assert not opm.generate(1000, seed=4).equals(opm.generate(1000, seed=5))


def test_overall_shares(table):
    race = shares(table["race"])
    assert list(race.values()) == pytest.approx([0.0403, 0.08545, 0.32425, 0.12425, 0.42575], abs=0.005)
    assert shares(table["sex"])["F"] == pytest.approx(0.485, abs=0.005)
    agency = shares(table["agency"])
    assert agency["AAAA"] == pytest.approx(1 / 20, abs=0.003)
    assert agency["CCCC"] == pytest.approx(1 / 30, abs=0.003)
    assert agency["HHHH"] == pytest.approx(5 / 24, abs=0.005)


def test_thirty_of_sixty_four_agency_occupation_cells_are_populated(table):
    assert len(table.group_by(["agency", "occupation"]).aggregate([])) == 30


def test_ages_start_at_the_label_of_the_race(table):
    for number, race in enumerate("ABCDE"):
        ages = sorted(set(table.filter(pc.equal(table["race"], race))["age"].to_pylist()))
        assert ages == [str(22 + 5 * (number + step)) for step in range(5)]


def test_women_become_more_and_education_twelve_never_occurs(table):
    year, women = np.asarray(table["year"]), np.asarray(pc.equal(table["sex"], "F"))
    assert women[year == 1988].mean() == pytest.approx(0.45, abs=0.03)
    assert women[year == 2011].mean() == pytest.approx(0.52, abs=0.03)
    assert "12" not in set(table["education"].to_pylist())


def test_pay_rises_with_year_age_and_education_and_is_lower_for_women(table):
    pay = np.log(np.asarray(table["pay"], dtype=float))
    for column in ("year", "age", "education"):
        assert np.corrcoef(pay, np.asarray(table[column]).astype(float))[0, 1] > 0.1
    women = np.asarray(pc.equal(table["sex"], "F"))
    assert pay[women].mean() < pay[~women].mean()


def test_the_schema_declares_every_value(table):
    encoding = hr.Schema.parse(opm.SCHEMA).encoding()
    assert not any(outside.any() for outside in encoding.outside(table.combine_chunks()).values())
