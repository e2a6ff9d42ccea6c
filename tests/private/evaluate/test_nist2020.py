"""The scores of the 2020 challenge, worked by hand, and the made-up survey that they are tried on."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.private.evaluate import nist2020
from hedgerow.samples import acs, find
from refusals import refused


def arrays(**columns):
    return {name: np.array(values, dtype=np.int64) for name, values in columns.items()}


def test_a_density_by_hand():
    """Place 0: truth ½ ½, made 1 0: distance 1. Place 1: equal. Score 1000 · (2 − ½) / 2."""
    real = arrays(place=[0, 0, 1, 1], a=[0, 1, 0, 0], b=[0, 0, 1, 1])
    made = arrays(place=[0, 0, 0, 1], a=[0, 0, 0, 0], b=[0, 0, 0, 1])
    assert nist2020.k_marginal_score(real, made, ["place"], [("a", "b")]) == pytest.approx(750)
    assert nist2020.k_marginal_score(real, real, ["place"], [("a", "b")]) == pytest.approx(1000)


def test_the_score_is_the_mean_over_marginals():
    real = arrays(place=[0, 0], a=[0, 1], b=[0, 0])
    made = arrays(place=[0, 0], a=[0, 0], b=[0, 0])
    assert nist2020.k_marginal_score(real, made, ["place"], [("a",), ("b",)]) == pytest.approx(750)


def test_a_segment_without_synthetic_rows_is_the_worst():
    real = arrays(place=[0, 1], a=[0, 0])
    made = arrays(place=[0], a=[0])
    assert nist2020.k_marginal_score(real, made, ["place"], [("a",)]) == pytest.approx(500)


def test_segments_that_are_not_real_do_not_count():
    real, made = arrays(place=[0], a=[0]), arrays(place=[0, 5], a=[0, 3])
    assert nist2020.k_marginal_score(real, made, ["place"], [("a",)]) == pytest.approx(1000)


@pytest.mark.parametrize(("more", "score"), [(249, 1000.0), (250, 0.0)])
def test_the_penalty_begins_at_250_rows(more, score):
    real, made = arrays(place=[0] * 10, a=[0] * 10), arrays(place=[0] * (10 + more), a=[0] * (10 + more))
    assert nist2020.k_marginal_score(real, made, ["place"], [("a",)], penalty=250) == pytest.approx(score)
    assert nist2020.k_marginal_score(real, made, ["place"], [("a",)]) == pytest.approx(1000.0)


def test_pairs_are_distinct_columns_and_depend_on_the_seed_alone():
    names = list("abcdefg")
    pairs = nist2020.random_pairs(names, np.random.default_rng(5))
    assert len(pairs) == 50
    assert all(len(set(pair)) == 2 for pair in pairs)
    assert pairs == nist2020.random_pairs(names, np.random.default_rng(5))


def test_visits_and_conjunctions_by_hand():
    visits = nist2020.visit_counts(np.array([0, 0, 1]), [np.array([0, 1, 1]), np.array([2, 2, 0])], [2, 3])
    np.testing.assert_array_equal(visits, [[1, 1, 0, 0, 2], [0, 1, 1, 0, 0]])
    assert nist2020.conjunction_score(visits, visits, np.random.default_rng(0)) == pytest.approx(1000)
    # nobody in the other table is within 50 rows of anyone
    far = visits + 1000
    assert nist2020.conjunction_score(visits, far, np.random.default_rng(0)) == pytest.approx(0)


TAXIS = hr.Schema.parse("""
columns:
  pickup_area:  {type: code, size: 4}
  shift:        {type: code, size: 3}
  dropoff_area: {type: code, size: 4}
  fare:         {type: integer, min: 0, max: 99, bins: 10}
""").model_copy(update={"person": "taxi_id"})


def taxis(seed=0, rows=600):
    rng = np.random.default_rng(seed)
    area = rng.integers(0, 4, rows)
    return pa.table(
        {
            "taxi_id": [f"t{number}" for number in rng.integers(0, 30, rows)],
            "pickup_area": area,
            "shift": rng.integers(0, 3, rows),
            "dropoff_area": (area + rng.integers(0, 2, rows)) % 4,
            "fare": rng.integers(0, 100, rows),
        }
    )


def test_sprint_three_is_the_mean_of_three():
    same = nist2020.sprint3(taxis(), taxis(), TAXIS, "taxi_id")
    assert set(same.values()) == {1000.0}
    other = nist2020.sprint3(taxis(), taxis(1), TAXIS, "taxi_id")
    assert other["mean"] == pytest.approx(np.mean([other[part] for part in ("k-marginal", "journeys", "conjunctions")]))
    assert all(0 < score < 1000 for score in other.values())


def test_a_column_that_is_lacking_is_named():
    with refused("missing-column", '"fare"'):
        nist2020.sprint3(taxis().drop_columns(["fare"]), taxis(), TAXIS, "taxi_id")
    with refused("missing-column", '"driver"'):
        nist2020.sprint3(taxis(), taxis(), TAXIS, "driver")


# ------------------------------------------------------------ the made-up survey


@pytest.fixture(scope="module")
def survey():
    return acs.generate(20_000)


def test_the_same_seed_gives_the_same_survey():
    assert acs.generate(500, seed=4).equals(acs.generate(500, seed=4))
    assert not acs.generate(500, seed=4).equals(acs.generate(500, seed=5))


def test_people_have_at_most_one_record_a_year_and_seven_in_all(survey):
    person, year = np.asarray(survey[acs.PERSON]), np.asarray(survey["YEAR"])
    assert len(set(zip(person.tolist(), year.tolist(), strict=True))) == len(person)
    records = np.bincount(person)
    assert records.max() == 7
    assert records[records > 0].mean() > 5.5


def test_people_stay_who_they_are_and_age(survey):
    person, year, age = (np.asarray(survey[name]) for name in (acs.PERSON, "YEAR", "AGE"))
    for name in ("PUMA", "SEX", "RACE", "EDUC"):
        values = np.asarray(survey[name])
        assert len(set(zip(person.tolist(), values.tolist(), strict=True))) == len(np.unique(person))
    born = year - age
    assert len(set(zip(person.tolist(), born.tolist(), strict=True))) == len(np.unique(person))


def test_the_preset_declares_every_value_and_has_24_attributes(survey):
    schema = acs.schema()
    encoding = schema.encoding()
    assert not any(outside.any() for outside in encoding.outside(survey.combine_chunks()).values())
    assert len(encoding.domain) == 24
    assert schema.max_rows_per_person == 7
    sizes = {group.columns: len(group.allowed) for group in schema.groups}
    assert list(sizes.values()) == [12, 13, 28, 10, 13]
    bins = {name: encoding.domain[name].size - 1 for name in ("AGE", "INCTOT", "POVERTY", "HHWT", "DEPARTS")}
    assert bins == {"AGE": 18, "INCTOT": 22, "POVERTY": 27, "HHWT": 27, "DEPARTS": 97}  # and a hidden cell


def test_bins_are_closed_on_the_right():
    column = acs.schema().columns["AGE"]
    assert column.encode(pa.array([20, 21, 25, 26, 100, 101])).codes[0].tolist() == [0, 1, 1, 2, 16, 17]


def test_the_regions_share_no_place_and_differ_a_little(survey):
    public = find("acs-public").generate(20_000)
    assert not set(survey["PUMA"].to_pylist()) & set(public["PUMA"].to_pylist())
    schema = acs.schema()
    pairs = [("EDUC", "RACE"), ("AGE", "INCTOT"), ("CITIZEN", "SPEAKENG")]
    ours, theirs, again = (nist2020.columns_of(t, schema) for t in (survey, public, acs.generate(20_000, seed=1)))
    between = nist2020.k_marginal_score(ours, theirs, (), pairs)
    within = nist2020.k_marginal_score(ours, again, (), pairs)
    assert 800 < between < within - 10
