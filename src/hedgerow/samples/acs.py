"""A made-up table in the shape of sprint 2 of NIST's 2020 challenge: people with up to seven yearly survey records.

PUMA × YEAR is a map over time: 181 places, seven years. A person lives in one place, ages a year a year, and has a
record in some of the years, so `sim_individual_id` has up to seven rows. Places differ in who lives there and what they
earn. There are two regions with the same columns and related but different people, so that one can be private and the
other public (`hedgerow example acs`, `hedgerow example acs-public`). Codes are those of the contest; all relations are
made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.schema import Schema

ROWS = 1_033_968
PLACES = 181
YEARS = np.arange(2012, 2019)
PERSON = "sim_individual_id"

Values = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Region:
    """What tells one region from the other."""

    state: int
    seed: int
    wage: float
    newcomers: float
    """The share of people who were born abroad, on average."""

    def places(self) -> list[str]:
        """The names of the places, state and number."""
        return [f"{self.state:02}-{100 * (number + 1):05}" for number in range(PLACES)]


PRIVATE = Region(state=17, seed=2020, wage=10.35, newcomers=0.16)
PUBLIC = Region(state=39, seed=2021, wage=10.25, newcomers=0.09)

# who has which health insurance: any, private, from the employer, Medicaid, Medicare (1 no, 2 yes)
INSURANCE = np.array(
    [(1, 1, 1, 1, 1)]
    + [(2, 1, 1, caid, care) for caid in (1, 2) for care in (1, 2)]
    + [(2, 2, employer, caid, care) for employer in (1, 2) for caid in (1, 2) for care in (1, 2)]
)
# employment in detail, worked last year, worked last week
EMPLOYMENT = np.array(
    [(0, 0, 0)]
    + [(status, 3, week) for status in (10, 12, 14) for week in (1, 2, 3)]
    + [(15, 3, 1), (15, 3, 3)]
    + [(20, 1, 1), (20, 1, 2), (20, 1, 3), (20, 2, 1), (20, 2, 3), (20, 3, 1), (20, 3, 3)]
    + [(30, year, week) for year in (1, 2, 3) for week in (1, 2, 3)]
)
ABSENT_LOOKING = np.array([(0, 0)] + [(absent, looking) for absent in (1, 3, 4) for looking in (1, 2, 3)])
AVAILABLE_RECALL = np.array([(0, 0)] + [(available, recall) for available in (2, 3, 4, 5) for recall in (1, 2, 3)])


def generate(rows: int = ROWS, seed: int = 0, region: Region = PRIVATE) -> pa.Table:
    """`rows` records of the region; the same seed gives the same ones. What places are like does not depend on it."""
    import pyarrow as pa

    rng = np.random.default_rng([seed, region.state])
    person, year = _lives(rows, rng)
    people = _people(int(person.max()) + 1 if rows else 0, region, rng)
    mine = {name: values[person] for name, values in people.items()}
    columns = _records(year, mine, rng)
    columns["PUMA"] = np.array(region.places())[mine["place"]]
    columns[PERSON] = person
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS})


COLUMNS = (
    "PUMA", "YEAR", "HHWT", "GQ", "PERWT", "SEX", "AGE", "MARST", "RACE", "HISPAN", "CITIZEN", "SPEAKENG", "HCOVANY",
    "HCOVPRIV", "HINSEMP", "HINSCAID", "HINSCARE", "EDUC", "EMPSTAT", "EMPSTATD", "LABFORCE", "WRKLSTWK", "ABSENT",
    "LOOKING", "AVAILBLE", "WRKRECAL", "WORKEDYR", "INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN", "POVERTY",
    "DEPARTS", "ARRIVES", PERSON,
)  # fmt: skip


def _lives(rows: int, rng: np.random.Generator) -> tuple[Values, Values]:
    """For each record its person and year: most people have all seven years, none has a year twice."""
    persons = rows // 4 + 1
    there = rng.random((persons, len(YEARS))) < np.where(rng.random((persons, 1)) < 0.7, 1.0, 0.6)
    there[:, 0] |= ~there.any(axis=1)
    person, year = np.nonzero(there)
    return person[:rows], YEARS[year[:rows]]


def _people(count: int, region: Region, rng: np.random.Generator) -> dict[str, Any]:
    """What a person keeps: place, sex, year of birth, origin, language, education, and how well they do."""
    of_places = np.random.default_rng(region.seed)
    crowded = of_places.gamma(8.0, size=PLACES)
    rich = of_places.normal(0.0, 0.22, PLACES)
    abroad = np.clip(region.newcomers * np.exp(of_places.normal(0.0, 0.8, PLACES)), 0.01, 0.6)
    black = np.clip(0.13 * np.exp(of_places.normal(0.0, 1.0, PLACES)), 0.005, 0.8)
    old = of_places.normal(0.0, 4.0, PLACES)
    place = rng.choice(PLACES, count, p=crowded / crowded.sum())
    foreign = rng.random(count) < abroad[place]
    hispanic = rng.random(count) < np.where(foreign, 0.45, 0.07)
    race = np.where(rng.random(count) < black[place], 2, 1)
    race = np.where(foreign & ~hispanic & (rng.random(count) < 0.5), rng.choice([4, 5, 6], count), race)
    race = np.where(rng.random(count) < 0.06, rng.choice([3, 7, 8, 9], count, p=[0.1, 0.5, 0.3, 0.1]), race)
    ability = rng.normal(0.0, 1.0, count) + 2 * rich[place] - 0.3 * foreign
    return {
        "place": place,
        "sex": rng.integers(1, 3, count),
        "born": 2015 - np.clip(rng.normal(46.0 + old[place], 19.0, count), 16, 96).astype(np.int64),
        "race": race,
        "hispanic": np.where(hispanic, rng.choice([1, 2, 3, 4], count, p=[0.7, 0.1, 0.03, 0.17]), 0),
        "citizen": np.where(foreign, rng.choice([2, 3], count, p=[0.5, 0.5]), (rng.random(count) < 0.02).astype(int)),
        "english": np.where(foreign, rng.choice([1, 3, 4, 5, 6], count, p=[0.06, 0.14, 0.36, 0.22, 0.22]), 3),
        "schooling": np.clip(6.6 + 1.9 * ability + rng.normal(0.0, 1.2, count), 0, 11).astype(np.int64),
        "luck": ability * 0.25 + rich[place] + region.wage + rng.normal(0.0, 0.45, count),
        "group_quarters": np.where(rng.random(count) < 0.04, rng.choice([2, 3, 4, 5], count), 1),
        "weight": rng.gamma(4.0, 25.0, count) * (0.7 + crowded[place] / 16),
    }


def _records(year: Values, mine: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """What changes from year to year: age, family, work, income, insurance, the way to work."""
    rows = len(year)
    age = year - mine["born"]
    wed = np.clip((age - 20) / 25, 0.0, 0.72) * (0.75 + 0.05 * mine["schooling"] / 11)
    married = mine["luck"] % 1.0 < wed  # the same people from year to year
    single = rng.choice([3, 4, 6], rows, p=[0.05, 0.27, 0.68])
    marst = np.where(married, np.where(rng.random(rows) < 0.97, 1, 2), np.where(age > 72, 5, single))
    works = _chance(-0.4 + 0.16 * mine["schooling"] - 0.0035 * (age - 43) ** 2 + 0.35 * (mine["sex"] == 1), rng)
    job = _employment(works, age, rng)
    status = job[:, 0]
    employed = (status >= 10) & (status < 20)
    earned = np.where(works, np.exp(mine["luck"] + 0.07 * (mine["schooling"] - 7) + 0.04 * (year - 2015) / 3), 0.0)
    earned *= np.where(mine["sex"] == 2, 0.8, 1.0) * np.clip(0.45 + (age - 16) / 30, 0.3, 1.1) * employed
    wage = _rounded(earned * np.where(rng.random(rows) < 0.08, 0.0, 1.0), rng)
    invested = np.where(rng.random(rows) < 0.04 + 0.003 * np.clip(age - 30, 0, 50), rng.gamma(0.5, 12_000.0, rows), 0)
    welfare = np.where(~employed & (rng.random(rows) < 0.05), rng.gamma(2.0, 1_500.0, rows), 0.0)
    pension = np.where(age >= 62, rng.gamma(3.0, 7_000.0, rows), 0.0)
    total = _rounded(earned + invested + welfare + pension, rng)
    poverty = np.clip(total / 130 + np.where(married, 160, 40) + rng.normal(0, 25, rows), 1, 501).astype(np.int64)
    departs, arrives = _commute(employed & (rng.random(rows) < 0.94), rng)
    covered = INSURANCE[_insurance(age, employed, poverty, rng)]
    absent = ABSENT_LOOKING[np.where(employed | (age < 17), 0, _likely(rng, rows, [3, 1, 5, 2, 2, 30, 1, 1, 10]))]
    recall = AVAILABLE_RECALL[
        np.where(status == 20, _likely(rng, rows, [1, 2, 1, 1, 3, 2, 1, 2, 1, 2, 6, 40]), 0) * (age >= 17)
    ]
    weight = np.clip(mine["weight"] * np.exp(rng.normal(0.0, 0.2, rows)), 1, 600)
    columns = {
        "YEAR": year,
        "HHWT": weight.astype(np.int64),
        "GQ": mine["group_quarters"],
        "PERWT": np.clip(weight * np.exp(rng.normal(0.0, 0.15, rows)), 1, 600).astype(np.int64),
        "SEX": mine["sex"],
        "AGE": age,
        "MARST": marst,
        "RACE": mine["race"],
        "HISPAN": mine["hispanic"],
        "CITIZEN": mine["citizen"],
        "SPEAKENG": mine["english"],
        "EDUC": mine["schooling"],
        "EMPSTAT": np.select([status == 0, status == 20, status == 30], [0, 2, 3], 1),
        "LABFORCE": np.select([status == 0, status == 30], [0, 1], 2),
        "INCTOT": total,
        "INCWAGE": wage,
        "INCWELFR": _rounded(welfare, rng),
        "INCINVST": _rounded(invested, rng),
        "INCEARN": _rounded(earned, rng),
        "POVERTY": poverty,
        "DEPARTS": departs,
        "ARRIVES": arrives,
    }
    for names, values in (
        (("HCOVANY", "HCOVPRIV", "HINSEMP", "HINSCAID", "HINSCARE"), covered),
        (("EMPSTATD", "WORKEDYR", "WRKLSTWK"), job),
        (("ABSENT", "LOOKING"), absent),
        (("AVAILBLE", "WRKRECAL"), recall),
    ):
        columns |= {name: values[:, index] for index, name in enumerate(names)}
    return columns


def _employment(works: npt.NDArray[np.bool_], age: Values, rng: np.random.Generator) -> Values:
    """One of the 28 combinations for each record."""
    rows = len(age)
    at_work = _likely(rng, rows, [1, 86, 1, 2, 1, 1, 0.2, 1, 0.2, 0.1, 0.1])
    not_at_work = 11 + _likely(rng, rows, [1, 0.2, 1, 1, 1, 3, 3, 30, 1, 2, 8, 1, 1, 6, 1, 2])
    index = np.where(works, at_work, not_at_work)
    found: Values = EMPLOYMENT[np.where(age < 16, 0, index)]
    return found


def _insurance(age: Values, employed: npt.NDArray[np.bool_], poverty: Values, rng: np.random.Generator) -> Values:
    """The index of each record's combination in the list."""
    rows = len(age)
    private = _chance(-0.8 + 1.3 * employed + poverty / 260, rng)
    employer = private & _chance(0.4 + 1.1 * employed - 0.04 * np.clip(age - 60, 0, 30), rng)
    medicaid = _chance(-1.2 - poverty / 180 + 1.2 * ~private, rng)
    medicare = rng.random(rows) < np.where(age >= 65, 0.96, 0.03)
    any_cover = private | medicaid | medicare | (rng.random(rows) < 0.1)
    own = np.where(private, 5 + 4 * employer, 1) + 2 * medicaid + medicare
    found: Values = np.where(any_cover, own, 0)
    return found


def _commute(goes: npt.NDArray[np.bool_], rng: np.random.Generator) -> tuple[Values, Values]:
    """Minutes become hhmm; 0 for those who stay."""
    leave = np.clip(rng.normal(465, 70, len(goes)) + 400 * (rng.random(len(goes)) < 0.12), 1, 1370)
    there = np.clip(leave + rng.gamma(2.0, 13.0, len(goes)), 2, 1435)
    departs, arrives = (np.where(goes, _clock(np.rint(minute / 5) * 5), 0) for minute in (leave, there))
    return departs, arrives


def _clock(minutes: Reals) -> Values:
    whole = minutes.astype(np.int64)
    return whole // 60 * 100 + whole % 60


def _chance(logit: Reals, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    return rng.random(len(logit)) < 1 / (1 + np.exp(-logit))


def _likely(rng: np.random.Generator, rows: int, weights: list[float]) -> Values:
    """1, 2, 3, … by weight."""
    ends = np.cumsum(weights)
    drawn: Values = 1 + np.searchsorted(ends, rng.random(rows) * ends[-1], side="right")
    return drawn


def _rounded(amount: Reals, rng: np.random.Generator) -> Values:
    """Dollars, as people round them."""
    unit = np.where(rng.random(len(amount)) < 0.6, 1000, 100)
    dollars: Values = np.clip(np.rint(amount / unit) * unit, 0, 149_000).astype(np.int64)
    return dollars


def schema() -> Schema:
    """The declaration of the preset, with the places of the region that is private."""
    from hedgerow.schema import Schema
    from hedgerow.schema.presets import load

    declared = dict(load("acs").declared)
    places = {"type": "category", "values": PRIVATE.places()}
    return Schema.from_dict({**declared, "columns": {**declared["columns"], "PUMA": places}})


def __getattr__(name: str) -> Any:
    """SCHEMA: the declaration as a file of its own."""
    if name == "SCHEMA":
        return "# Schema of the made-up survey over seven years (hedgerow example acs).\n" + schema().to_yaml()
    raise AttributeError(name)
