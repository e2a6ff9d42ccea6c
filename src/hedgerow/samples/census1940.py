"""A made-up table in the shape of the 1940 census extract of NIST's 2018 challenge: 98 coded columns, one row a person.

The contest's table is not at hand, so its shape is rebuilt: the columns and their sizes, relations along the
97 pairs that the winner found to matter (and 17 of the triples), skewed values, questions that only one person in
twenty was asked, wages that people rounded, and wages that depend on city and sex together. The codes fit both preset
schemas. What a code means is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 661_967

# columns in the order of the contest's file, with how many codes each has; codes are 0, 1, 2, … unless listed below
SIZES: Mapping[str, int] = {
    "COUNTY": 63, "URBAN": 3, "METRO": 5, "METAREA": 3, "METAREAD": 3, "CITY": 9, "CITYPOP": 3225, "SIZEPL": 19,
    "URBPOP": 3225, "SEA": 6, "WARD": 6, "GQ": 7, "GQTYPE": 10, "GQTYPED": 92, "GQFUNDS": 13, "FARM": 3,
    "OWNERSHP": 3, "OWNERSHPD": 8, "RENT": 10000, "VALUEH": 30003, "ENUMDIST": 3021, "SUPDIST": 63, "SPLIT": 2,
    "SLREC": 2, "RESPONDT": 3, "FAMSIZE": 29, "NCHLT5": 10, "SEX": 2, "AGE": 130, "AGEMONTH": 15, "MARST": 6,
    "MARRNO": 10, "AGEMARR": 89, "CHBORN": 62, "RACE": 9, "RACED": 238, "HISPAN": 6, "HISPAND": 55, "BPL": 163,
    "BPLD": 536, "MBPL": 164, "MBPLD": 537, "FBPL": 165, "FBPLD": 539, "NATIVITY": 6, "CITIZEN": 6, "MTONGUE": 92,
    "MTONGUED": 489, "SPANNAME": 4, "HISPRULE": 9, "SCHOOL": 2, "HIGRADE": 25, "HIGRADED": 69, "EDUC": 13,
    "EDUCD": 44, "EMPSTAT": 4, "EMPSTATD": 15, "LABFORCE": 3, "OCC": 231, "OCC1950": 283, "IND": 136, "IND1950": 162,
    "CLASSWKR": 4, "CLASSWKRD": 17, "WKSWORK1": 53, "WKSWORK2": 7, "HRSWORK1": 99, "HRSWORK2": 9, "DURUNEMP": 1000,
    "UOCC": 231, "UOCC95": 279, "UIND": 136, "UCLASSWK": 8, "INCWAGE": 5002, "INCNONWG": 4, "OCCSCORE": 81,
    "SEI": 97, "PRESGL": 816, "ERSCOR50": 1002, "EDSCOR50": 1002, "NPBOSS50": 1002, "MIGRATE5": 7, "MIGRATE5D": 15,
    "MIGPLAC5": 199, "MIGMET5": 379, "MIGTYPE5": 6, "MIGCITY5": 1164, "MIGSEA5": 505, "SAMEPLAC": 4, "SAMESEA5": 6,
    "MIGCOUNTY": 385, "VETSTAT": 4, "VETSTATD": 10, "VET1940": 4, "VETWWI": 3, "VETPER": 8, "VETCHILD": 5,
    "SSENROLL": 3,
}  # fmt: skip

# the winner's tree: hub, then its neighbours (seed of every relation in the table)
TREE: Mapping[str, str] = {
    "OCC": "CLASSWKRD EDSCOR50 EMPSTATD ERSCOR50 INCWAGE IND NPBOSS50 OCC1950 PRESGL SEI",
    "AGE": "AGEMONTH EMPSTATD HIGRADED MARST MBPLD NCHLT5 RESPONDT SCHOOL",
    "CITYPOP": "CITY ENUMDIST FARM SIZEPL SUPDIST URBPOP WARD",
    "COUNTY": "METAREA METAREAD METRO MIGSEA5 SEA SUPDIST",
    "UOCC": "NATIVITY SSENROLL UIND UOCC95 VET1940",
    "INCWAGE": "CITY INCNONWG SEX WKSWORK1",
    "UIND": "MARRNO SLREC UCLASSWK VETPER",
    "EMPSTATD": "DURUNEMP EMPSTAT HRSWORK1 LABFORCE",
    "MIGSEA5": "MIGCITY5 MIGCOUNTY MIGMET5 MIGPLAC5",
    "GQ": "GQFUNDS OWNERSHPD SPLIT",
    "ENUMDIST": "GQTYPED RACED RENT",
    "OWNERSHP": "OWNERSHPD RENT VALUEH",
    "MBPLD": "BPLD FBPLD MBPL",
    "FBPLD": "FBPL HISPRULE NATIVITY",
    "MIGRATE5D": "MIGPLAC5 SAMEPLAC SAMESEA5",
    "VETSTAT": "VETPER VETSTATD VETWWI",
    "HISPRULE": "HISPAND SPANNAME",
    "BPLD": "BPL CITIZEN",
    "HIGRADED": "EDUCD HIGRADE",
    "URBPOP": "URBAN",
    "GQTYPED": "GQTYPE",
    "MARST": "FAMSIZE",
    "MARRNO": "CHBORN",
    "CHBORN": "AGEMARR",
    "RACED": "RACE",
    "HISPAND": "HISPAN",
    "NATIVITY": "MTONGUED",
    "MTONGUED": "MTONGUE",
    "HIGRADE": "EDUC",
    "OCC1950": "OCCSCORE",
    "IND": "IND1950",
    "CLASSWKRD": "CLASSWKR",
    "WKSWORK1": "WKSWORK2",
    "HRSWORK1": "HRSWORK2",
    "MIGPLAC5": "MIGRATE5",
    "MIGMET5": "MIGTYPE5",
    "VET1940": "VETCHILD",
}

# a second column that a column depends on beside its neighbour in the tree, from the winner's triples
COMPANIONS: Mapping[str, str] = {
    "MARST": "EMPSTATD", "HIGRADED": "EMPSTATD", "RESPONDT": "EMPSTATD", "NCHLT5": "MARST", "FAMSIZE": "AGE",
    "BPLD": "AGE", "AGE": "OCC", "HRSWORK1": "OCC", "IND": "INCWAGE", "CLASSWKRD": "INCWAGE", "EMPSTATD": "INCWAGE",
    "OCC": "SEX", "WKSWORK1": "OCC", "INCNONWG": "OCC", "MIGMET5": "COUNTY", "MIGCITY5": "COUNTY",
    "MIGCOUNTY": "COUNTY",
}  # fmt: skip
COMPANION_SHARE = 0.3

# coarser versions of their neighbour: a function of it
COARSER = (
    "BPL", "MBPL", "FBPL", "RACE", "HISPAN", "MTONGUE", "GQTYPE", "EMPSTAT", "CLASSWKR", "HIGRADE", "EDUC",
    "WKSWORK2", "HRSWORK2", "URBAN",
)  # fmt: skip

# asked of one person in twenty only; code 0 for everybody else
SAMPLE_LINE = (
    "MBPLD", "MBPL", "FBPLD", "FBPL", "NATIVITY", "MTONGUED", "MTONGUE", "UOCC", "UOCC95", "UIND", "UCLASSWK", "SLREC",
    "MARRNO", "CHBORN", "AGEMARR", "VETPER", "VETSTAT", "VETSTATD", "VETWWI", "VET1940", "VETCHILD", "SSENROLL",
)  # fmt: skip
SAMPLE_SHARE = 0.05

# how many codes occur at all, and how many of them usually go with one code of the neighbour; otherwise 40 and 4
USED = {"ENUMDIST": 1500, "OCC": 200, "BPLD": 120, "IND": 120, "URBPOP": 60, "CITYPOP": 60, "AGE": 100}
USUAL = {"ENUMDIST": 400, "AGE": 60, "OCC": 40, "RENT": 25, "VALUEH": 400, "BPLD": 8, "HRSWORK1": 8, "SEX": 2}
LOOSE = 0.08

CITY_SHARES = np.array([0.56, 0.21, 0.06, 0.05, 0.04, 0.03, 0.02, 0.016, 0.014])
MEN_EARN = np.array([700, 1250, 1000, 880, 1120, 790, 940, 1400, 640])
WOMEN_EARN_OF_THAT = np.array([0.76, 0.55, 0.62, 0.70, 0.48, 0.82, 0.66, 0.58, 0.74])
MISSING_WAGE = 999_998
ROUND_TO = (100, 50, 25, 20, 10, 5, 1)
ROUND_SHARES = (0.42, 0.16, 0.06, 0.14, 0.10, 0.07, 0.05)

Indices = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float64]


def generate(rows: int = ROWS, seed: int = 0) -> pa.Table:
    """`rows` rows of the census table; the same seed gives the same rows. Relations do not depend on the seed."""
    import pyarrow as pa

    relations = np.random.default_rng(1940)
    rng = np.random.default_rng(seed)
    indices: dict[str, Indices] = {}
    indices["CITY"] = _by_weight(CITY_SHARES, rows, rng)
    indices["SEX"] = rng.integers(0, 2, rows)
    wage = _wages(indices["CITY"], indices["SEX"], rng)
    indices["INCWAGE"] = np.where(wage == MISSING_WAGE, 51, np.minimum(wage // 100, 50))
    for name, neighbour in growth():
        if name not in indices:
            indices[name] = _grow(name, neighbour, indices, relations, rng)
    columns = {name: _values(name)[indices[name]] for name in SIZES if name != "INCWAGE"}
    columns["INCWAGE"] = wage
    return pa.table({name: pa.array(columns[name].astype(_dtype(columns[name]))) for name in SIZES})


def growth() -> list[tuple[str, str]]:
    """The columns in the order in which the tree grows from CITY, each with the neighbour that it grows from."""
    neighbours: dict[str, list[str]] = {name: [] for name in SIZES}
    for hub, names in TREE.items():
        for name in names.split():
            neighbours[hub].append(name)
            neighbours[name].append(hub)
    grown, done = [("CITY", "CITY")], {"CITY"}
    for name, _ in grown:
        fresh = [other for other in neighbours[name] if other not in done]
        done.update(fresh)
        grown += [(other, name) for other in fresh]
    return grown[1:]


def _grow(
    name: str,
    neighbour: str,
    indices: Mapping[str, Indices],
    relations: np.random.Generator,
    rng: np.random.Generator,
) -> Indices:
    """The codes of one column, given those of its neighbour in the tree (and of its companion, if it has one)."""
    parent = indices[neighbour]
    if name in COARSER:
        return parent * SIZES[name] // SIZES[neighbour]
    asked = name in SAMPLE_LINE
    weights = _weights(name, relations)
    grown = _usual(name, neighbour, weights, parent, relations, rng)
    if name in COMPANIONS:
        other = COMPANIONS[name]
        theirs = _usual(name, other, weights, indices[other], relations, rng)
        grown = np.where(rng.random(len(parent)) < COMPANION_SHARE, theirs, grown)
    loose = rng.random(len(parent)) < LOOSE
    grown[loose] = _by_weight(weights, int(loose.sum()), rng)
    if asked and neighbour in SAMPLE_LINE:
        grown[parent == 0] = 0
    elif asked:
        grown[rng.random(len(parent)) >= SAMPLE_SHARE] = 0
    if name == "VALUEH":
        grown[parent != 1] = SIZES[name] - 1  # only owners have a house
    return grown


def _usual(
    name: str, given: str, weights: Weights, parent: Indices, relations: np.random.Generator, rng: np.random.Generator
) -> Indices:
    """For each code of `given` a short list of usual codes, drawn by weight; earlier ones are likelier."""
    length = USUAL.get(name, 4)
    lists = _by_weight(weights, _codes(given) * length, relations).reshape(-1, length)
    likely: Weights = np.arange(1.0, length + 1) ** (-0.6 if length > 8 else -1.5)
    rank = _by_weight(likely, len(parent), rng)
    return lists[parent, rank]


def _codes(name: str) -> int:
    """How many codes a column has for those that depend on it."""
    return 52 if name == "INCWAGE" else SIZES[name]


def _weights(name: str, relations: np.random.Generator) -> Weights:
    """How common each code is by itself: a few are, most are not."""
    size = SIZES[name]
    codes = np.arange(size)
    weights = np.zeros(size)
    if name == "AGE":
        weights[:100] = np.clip(1.0 - np.arange(100) / 95, 0.005, None) ** 0.8
    elif name == "RENT":
        weights[:200] = np.exp(-codes[:200] / 25) * np.where(codes[:200] % 5 == 0, 8.0, 1.0)
    elif name == "VALUEH":
        price = codes[100:20_001]
        weights[price] = np.exp(-price / 3000) * np.where(price % 500 == 0, 200.0, np.where(price % 100 == 0, 30.0, 0))
        weights[price[price % 100 != 0]] = 0.002
    else:
        used = min(size, USED.get(name, 40))
        ranked = np.concatenate([[0], 1 + relations.permutation(size - 1)])[:used]
        weights[ranked] = np.arange(1.0, used + 1) ** (-0.3 if used > 1000 else -1.1)
        if name in SAMPLE_LINE and size > 2:
            weights[0] = 0.0  # those who were asked gave an answer
        elif name == "SLREC":
            weights[:] = (0.0, 1.0)
    return weights


def _wages(city: Indices, sex: Indices, rng: np.random.Generator) -> Indices:
    """Dollars a year, rounded as people do: nothing for many, unknown for some, at most 5,000."""
    rows = len(city)
    typical = MEN_EARN[city] * np.where(sex == 0, 1.0, WOMEN_EARN_OF_THAT[city])
    exact = typical * np.exp(rng.normal(0.0, 0.35 + 0.04 * city, rows))
    unit = np.array(ROUND_TO)[_by_weight(np.array(ROUND_SHARES), rows, rng)]
    wage: Indices = np.clip((np.rint(exact / unit) * unit).astype(np.int64), 1, 5000)
    wage[rng.random(rows) < np.where(sex == 0, 0.40, 0.70)] = 0
    wage[rng.random(rows) < 0.22 + 0.01 * city] = MISSING_WAGE
    return wage


def _values(name: str) -> Indices:
    """What the codes of a column are in the table."""
    listed: dict[str, Any] = {
        "SUPDIST": np.arange(10, 631, 10),
        "SEX": (1, 2),
        "SCHOOL": (1, 2),
        "VALUEH": (*range(30_001), 9_999_998, 9_999_999),
        "ERSCOR50": (*range(1001), 9999),
        "EDSCOR50": (*range(1001), 9999),
        "NPBOSS50": (*range(1001), 9999),
        "MIGSEA5": (*range(1, 503), 990, 991, 997),
        "MIGMET5": (*range(0, 7541, 20), 9999),
        "MIGCOUNTY": (*range(0, 3821, 10), 9997, 9999),
    }
    return np.asarray(listed.get(name, np.arange(SIZES[name])), dtype=np.int64)


def _by_weight(weights: Weights, count: int, rng: np.random.Generator) -> Indices:
    ends = np.cumsum(weights)
    drawn: Indices = np.searchsorted(ends, rng.random(count) * ends[-1], side="right")
    return drawn


def _dtype(values: Indices) -> npt.DTypeLike:
    return np.int16 if len(values) == 0 or values.max() < 1 << 15 else np.int32


def __getattr__(name: str) -> Any:
    """SCHEMA: the declaration of the winner's preset, as a file of its own."""
    if name == "SCHEMA":
        from hedgerow.schema.presets import load

        return "# Schema of the made-up census table (hedgerow example census1940).\n" + (
            load("census1940-match3").schema.to_yaml()
        )
    raise AttributeError(name)
