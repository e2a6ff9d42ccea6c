"""Releases of linked tables that are asked: one table, or several along their keys, with rows weighed as they count."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr

SCHEMA = hr.Schema.parse("""
tables:
  houses:
    key: id
    columns:
      region: {type: category, values: [n, s]}
      rooms: {type: integer, min: 1, max: 4}
  persons:
    key: pid
    parent: houses
    link: house
    max_per_parent: 4
    columns:
      sex: {type: category, values: [f, m]}
      rooms: {type: code, size: 2}
  visits:
    parent: persons
    link: person
    order: day
    max_per_parent: 3
    columns:
      day: {type: integer, min: 0, max: 99}
      cost: {type: integer, min: 0, max: 9}
  cars:
    parent: houses
    link: house
    max_per_parent: 2
    columns:
      kind: {type: code, size: 2}
""")


def made(houses: int) -> dict[str, pa.Table]:
    """Houses in the south have more persons, and only men have visits."""
    rng = np.random.default_rng(1)
    south = rng.random(houses) < 0.4
    rooms = rng.integers(1, 5, houses)
    persons = np.where(south, 4, 1 + (rng.random(houses) < 0.5))
    house = np.repeat(np.arange(houses), persons)
    sex = rng.random(len(house)) < 0.5
    visits = np.where(sex, rng.integers(0, 4, len(house)), 0)
    person = np.repeat(np.arange(len(house)), visits)
    cost = np.clip(rng.integers(0, 6, len(person)) + 3 * south[house[person]], 0, 9)
    return {
        "houses": pa.table({"id": np.arange(houses), "region": np.where(south, "s", "n"), "rooms": rooms}),
        "persons": pa.table(
            {
                "pid": np.arange(len(house)),
                "house": house,
                "sex": np.where(sex, "m", "f"),
                "rooms": rng.integers(0, 2, len(house)),
            }
        ),
        "visits": pa.table({"person": person, "day": rng.integers(0, 100, len(person)), "cost": cost}),
        "cars": pa.table({"house": np.arange(houses), "kind": rng.integers(0, 2, houses)}),
    }


@pytest.fixture(scope="module")
def tables():
    return made(2_000)


@pytest.fixture(scope="module")
def release(tables):
    return hr.synthesize(tables, SCHEMA, hr.Budget(50, 1e-6), seed=1, unsafe_noise_seed=1)


QUESTIONS = {
    "SELECT COUNT(*) FROM houses": lambda h, p, v: len(h),
    "SELECT COUNT(*) FROM houses WHERE region = 's' AND rooms > 2": lambda h, p, v: (
        (h.region == "s") & (h.rooms > 2)
    ).sum(),
    "SELECT AVG(\"rows(persons)\") FROM houses WHERE region = 's'": lambda h, p, v: 4.0,
    "SELECT COUNT(*) FROM persons": lambda h, p, v: len(p),
    "SELECT SHARE(sex = 'm') FROM persons": lambda h, p, v: (p.sex == "m").mean(),
    "SELECT COUNT(*) FROM persons p JOIN houses h ON p.house = h.id WHERE h.region = 's'": lambda h, p, v: (
        p.house.map(h.set_index("id").region) == "s"
    ).sum(),
    "SELECT SHARE(region = 's') FROM houses JOIN persons ON houses.id = persons.house": lambda h, p, v: (
        p.house.map(h.set_index("id").region) == "s"
    ).mean(),
    "SELECT COUNT(*) FROM persons JOIN visits ON pid = person WHERE sex = 'm'": lambda h, p, v: len(v),
    "SELECT AVG(cost) FROM houses JOIN persons ON id = house JOIN visits ON pid = person WHERE region = 's'": (
        lambda h, p, v: v.cost[v.person.map(p.set_index("pid").house.map(h.set_index("id").region)) == "s"].mean()
    ),
    "SELECT AVG(day) FROM visits": lambda h, p, v: v.day.mean(),
}


@pytest.mark.parametrize("text", QUESTIONS)
def test_answers_are_about_rows_and_intervals_hold_the_tables_own(release, tables, text):
    """What is learnt is means over units, and houses of the south have more persons: a mean over them would be off."""
    truth = QUESTIONS[text](*(tables[name].to_pandas() for name in ("houses", "persons", "visits")))
    (row,) = release.ask(text, level=0.999)[0].rows
    assert row.estimate == pytest.approx(truth, rel=0.1)
    assert row.low <= truth <= row.high
    assert row.low < row.high


def test_groups_orders_and_names_are_those_that_were_written(release):
    joined = "houses h JOIN persons ON id = house JOIN visits ON pid = person"
    text = f"SELECT h.region, AVG(cost) AS paid, COUNT(*) FROM {joined} GROUP BY h.region ORDER BY COUNT(*) DESC"
    answer = release.ask(text)[0]
    assert [(row.group, row.value) for row in answer.rows] == [
        ({"h.region": "s"}, "paid"),
        ({"h.region": "s"}, "COUNT(*)"),
        ({"h.region": "n"}, "paid"),
        ({"h.region": "n"}, "COUNT(*)"),
    ]
    assert {row.basis for row in answer.rows} <= {"modelled", "assumed"}
    assert "JOIN" in answer.query
    again = release.ask(text, population=True)[0].rows
    assert all(wide.high - wide.low > row.high - row.low for wide, row in zip(again, answer.rows, strict=True))


REFUSED = {
    "SELECT COUNT(*) FROM flats": "unknown-question",
    "SELECT COUNT(*)": "unknown-question",
    "SELECT COUNT(*) FROM houses JOIN visits ON id = person": "unknown-question",
    "SELECT COUNT(*) FROM houses JOIN persons ON pid = house": "unknown-question",
    "SELECT COUNT(*) FROM houses JOIN persons ON id = house AND sex = 'm'": "unknown-question",
    "SELECT COUNT(*) FROM houses LEFT JOIN persons ON id = house": "unknown-question",
    "SELECT COUNT(*) FROM houses, persons": "unknown-question",
    "SELECT COUNT(*) FROM houses NATURAL JOIN persons": "unknown-question",
    "SELECT COUNT(*) FROM houses JOIN persons ON id = persons.house JOIN cars ON id = cars.house": "unknown-question",
    "SELECT COUNT(*) FROM houses JOIN houses ON id = id": "unknown-question",
    "SELECT AVG(rooms) FROM houses JOIN persons ON id = house": "unknown-question",
    "SELECT AVG(x.rooms) FROM houses": "unknown-question",
    "SELECT * FROM houses": "unknown-question",
    "SELECT AVG(cost) FROM houses": "unknown-column",
    "SELECT AVG(id) FROM houses": "unknown-column",
    'SELECT AVG("before(cost)") FROM visits': "unknown-column",
    "SELECT COUNT(*) FROM houses WHERE rooms > 9": "nobody",
    "DELETE FROM houses": "unknown-question",
    "SELECT": "unknown-question",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_said_is_refused_by_name(release, text):
    with pytest.raises(hr.HedgerowError) as told:
        release.ask(text)
    assert told.value.code == REFUSED[text]
