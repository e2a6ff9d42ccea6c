"""The made-up federal personnel table of the random-decision-trees write-up: one row per employee and year.

Fiscal year, sex, race, age, agency, occupation, education and pay, with the dependencies that the write-up's table
lists: race depends on sex, age on race and sex, occupation on agency and sex, education on occupation. The write-up
says of pay only that it rises with year, age and education, is lower for women and is adjusted by race; the formula
for it is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1_000_000

YEARS = np.arange(1988, 2012)
SEXES = ["F", "M"]
RACES = ["A", "B", "C", "D", "E"]
AGES = np.arange(22, 63, 5)
AGENCIES = ["AAAA", "BBBB", "CCCC", "DDDD", "EEEE", "FFFF", "GGGG", "HHHH"]
OCCUPATIONS = [f"{number:04}" for number in range(1, 9)]
EDUCATIONS = np.array([12, 14, 16, 18, 20])

RACE_GIVEN_SEX = np.array([[0.03, 0.07, 0.35, 0.15, 0.40], [0.05, 0.10, 0.30, 0.10, 0.45]])
# five labels of age, starting at the label with the race's number; normalised, as neither pattern sums to 1
AGE_PATTERN = np.array([[0.11, 0.22, 0.33, 0.22, 0.11], [0.06, 0.22, 0.56, 0.11, 0.06]])
# of every row: 1/10 in the first two agencies, 1/15 in the next two, the rest in the last four
AGENCY_SHARES = np.array([1 / 20, 1 / 20, 1 / 30, 1 / 30] + [5 / 24] * 4)
# [sex][agency pair], over occupations 1 … 8; the last four agencies use 1 … 4 evenly
OCCUPATION_GIVEN = np.array(
    [
        [[0, 0, 0, 0, 0.2, 0.2, 0.4, 0.2], [0, 0, 0, 0, 0.6, 0.2, 0.2, 0], [0.25] * 4 + [0] * 4],
        [[0, 0, 0, 0, 0.2, 0.2, 0.2, 0.4], [0, 0, 0, 0, 0.2, 0.6, 0.2, 0], [0.25] * 4 + [0] * 4],
    ]
)
AGENCY_GROUP = np.array([0, 0, 1, 1, 2, 2, 2, 2])
EDUCATION_GIVEN_OCCUPATION = np.array(
    [
        [0, 0.60, 0.30, 0.10, 0],
        [0, 0.60, 0.30, 0.10, 0],
        [0, 0.20, 0.75, 0.05, 0],
        [0, 0.20, 0.75, 0.05, 0],
        [0, 0.25, 0.50, 0.20, 0.05],
        [0, 0.25, 0.50, 0.20, 0.05],
        [0, 0, 0.25, 0.65, 0.10],
        [0, 0, 0, 0.60, 0.40],
    ]
)

SCHEMA = """\
# Schema of the made-up personnel table (hedgerow example opm).
dataset: opm
columns:
  year:       {type: integer, min: 1988, max: 2011}
  sex:        {type: category, values: [F, M]}
  race:       {type: category, values: [A, B, C, D, E]}
  age:        {type: category, values: ["22", "27", "32", "37", "42", "47", "52", "57", "62"], ordered: true}
  agency:     {type: category, values: [AAAA, BBBB, CCCC, DDDD, EEEE, FFFF, GGGG, HHHH]}
  occupation: {type: category, values: ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008"]}
  education:  {type: category, values: ["12", "14", "16", "18", "20"], ordered: true}
  pay:        {type: integer, min: 0, max: 199999, bins: 50}
"""

Indices = npt.NDArray[np.int64]


def generate(rows: int = ROWS, seed: int = 0) -> pa.Table:
    """`rows` rows of the personnel table; the same seed gives the same rows."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    year = rng.integers(0, len(YEARS), rows)
    women = 0.45 + 0.07 * year / (len(YEARS) - 1)
    sex = (rng.random(rows) >= women).astype(np.int64)
    race = _draw(RACE_GIVEN_SEX, sex, rng)
    age = race + _draw(AGE_PATTERN, sex, rng)
    agency = _draw(AGENCY_SHARES[None, :], np.zeros(rows, dtype=np.int64), rng)
    pairs = OCCUPATION_GIVEN.reshape(-1, len(OCCUPATIONS))
    occupation = _draw(pairs, sex * OCCUPATION_GIVEN.shape[1] + AGENCY_GROUP[agency], rng)
    education = _draw(EDUCATION_GIVEN_OCCUPATION, occupation, rng)
    return pa.table(
        {
            "year": pa.array(YEARS[year].astype(np.int16)),
            "sex": _labels(SEXES, sex),
            "race": _labels(RACES, race),
            "age": _labels([str(label) for label in AGES], age),
            "agency": _labels(AGENCIES, agency),
            "occupation": _labels(OCCUPATIONS, occupation),
            "education": _labels([str(label) for label in EDUCATIONS], education),
            "pay": pa.array(_pay(year, sex, race, age, education, rng)),
        }
    )


def _pay(
    year: Indices, sex: Indices, race: Indices, age: Indices, education: Indices, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Dollars: 3 % more a year, 1.2 % a year of age, 8 % a year of education; 6 % less for women; ±2 % by race."""
    logarithm = (
        np.log(16_000)
        + 0.030 * year
        + 0.012 * (AGES[age] - 22)
        + 0.080 * (EDUCATIONS[education] - 12)
        - 0.060 * (sex == 0)
        + np.array([-0.02, -0.01, 0.0, 0.01, 0.02])[race]
        + rng.normal(0.0, 0.12, len(year))
    )
    dollars: npt.NDArray[np.int32] = np.clip(np.rint(np.exp(logarithm)), 0, 199_999).astype(np.int32)
    return dollars


def _draw(weights: npt.NDArray[np.float64], given: Indices, rng: np.random.Generator) -> Indices:
    """One index per row, by the weights in the row's own line of the table."""
    ends = np.cumsum(weights, axis=1)
    ends /= ends[:, -1:]
    drawn: Indices = (rng.random(len(given))[:, None] >= ends[given, :-1]).sum(axis=1)
    return drawn


def _labels(labels: list[str], indices: Indices) -> pa.Array:
    import pyarrow as pa

    return pa.array(labels).take(pa.array(indices))
