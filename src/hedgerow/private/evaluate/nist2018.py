"""The scores of Match 3 of NIST's 2018 challenge. PRIVATE: exact functions of real rows.

Three scores of at most a million each: the densities of random triples of columns, the shares of rows that meet random
conditions on many columns, and the inequality and the pay gap of every city. A file may hold some of the columns only.
All columns are whole-number codes between 0 and a largest code that is public (`largest_codes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import CodedTable, Domain, IntArray
from hedgerow.errors import SchemaError, TableError
from hedgerow.private.evaluate.marginals import distances
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.schema import Schema
    from hedgerow.schema.column import Column

MILLION = 1_000_000
TRIPLES = 100
TESTS = 300
COLUMN_SHARE = 0.1
LEAST_SHARE = 1e-6
UNKNOWN_WAGE = 999_998

Columns = Mapping[str, IntArray]
"""Codes as the tables hold them; −1 where nothing stands."""


@dataclass(frozen=True)
class Scores:
    """The three scores and their mean, each between 0 and 1,000,000."""

    marginals: float
    conjunctions: float
    income: float

    @property
    def mean(self) -> float:
        return (self.marginals + self.conjunctions + self.income) / 3


def score(real: pa.Table, synthetic: pa.Table, largest: Mapping[str, int], seed: int = 0) -> Scores:
    """All three scores; the seed chooses triples, rows and conditions, so equal seeds judge alike."""
    truth, made = columns_of(real), columns_of(synthetic)
    lacking = [name for name in largest if name not in truth]
    if lacking or not real.num_rows or not synthetic.num_rows:
        raise TableError("missing-column", "a score needs every column of the real table, and rows in both tables.")
    rng = np.random.default_rng(seed)
    return Scores(
        marginal_score(truth, made, largest, random_triples(list(largest), rng)),
        conjunction_score(truth, made, random_tests(truth, largest, rng), largest),
        income_score(truth, made),
    )


def columns_of(table: pa.Table) -> Columns:
    """The columns of a table as whole numbers, −1 for nulls and for what is no whole number."""
    return {name: _whole(table[name]) for name in table.column_names}


def _whole(column: pa.ChunkedArray) -> IntArray:
    from hedgerow.schema.arrays import numbers, plain

    parts = [numbers(plain(chunk)).values for chunk in column.chunks]
    line = np.concatenate(parts) if parts else np.zeros(0)
    whole = np.isfinite(line) & (line == np.floor(line)) & (np.abs(line) < 2**53)
    return np.where(whole, line, -1).astype(np.int64)


def largest_codes(schema: Schema) -> dict[str, int]:
    """The largest code that a schema declares for each column: what the contest's specification called maxval."""
    found = {name: largest_code(column) for name, column in schema.columns.items()}
    for name, largest in found.items():
        if largest is None:
            raise SchemaError("score-needs-codes", f'the 2018 scores need whole-number codes; "{name}" has others.')
    return {name: largest for name, largest in found.items() if largest is not None}


def largest_code(column: Column) -> int | None:
    """The largest code of a column; None where its values are no whole numbers of at least 0."""
    from hedgerow.schema.listed import Category
    from hedgerow.schema.numeric import Code, Integer

    if isinstance(column, Code):
        return column.size - 1
    if isinstance(column, Integer):
        return max((column.max, *column.special))
    if isinstance(column, Category) and column.dtype == "integer":
        return max(map(int, column.listed))
    return None


# score 1: densities of three columns


def random_triples(names: Sequence[str], rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Triples of distinct columns, never with the last one: the contest's generator left it out."""
    return [tuple(names[index] for index in rng.choice(len(names) - 1, 3, replace=False)) for _ in range(TRIPLES)]


def marginal_score(
    truth: Columns, made: Columns, largest: Mapping[str, int], triples: Sequence[tuple[str, ...]]
) -> float:
    """A million · mean of 1 − ½ Σ|p − q|; a triple with a column that the synthetic table lacks counts 0."""
    names = [name for name in largest if name in made and any(name in triple for triple in triples)]
    codes = {name: _ranks(truth[name], made[name], largest[name]) for name in names}
    domain = Domain.of({name: size for name, (_, _, size) in codes.items()})
    real: CodedTable = {name: ours.astype(domain[name].dtype) for name, (ours, _, _) in codes.items()}
    synthetic: CodedTable = {name: theirs.astype(domain[name].dtype) for name, (_, theirs, _) in codes.items()}
    whole = [domain.marginal(triple) for triple in triples if set(triple) <= set(names)]
    shares = 1 - distances(real, synthetic, domain, whole) if whole else np.zeros(0)
    return MILLION * float(shares.sum()) / len(triples)


def _ranks(ours: IntArray, theirs: IntArray, largest: int) -> tuple[IntArray, IntArray, int]:
    """Both columns numbered by the codes that occur; 0 is the cell of everything out of range."""
    inside = [np.where((values < 0) | (values > largest), -1, values) for values in (ours, theirs)]
    known = np.unique(np.concatenate([[-1], *(np.unique(values) for values in inside)]))
    return np.searchsorted(known, inside[0]), np.searchsorted(known, inside[1]), len(known)


# score 2: conjunctions of many columns

Test = Mapping[str, frozenset[int]]
"""Allowed codes by column: a row passes if all of these columns hold one of theirs."""


def random_tests(truth: Columns, largest: Mapping[str, int], rng: np.random.Generator) -> list[Test]:
    """Conditions around up to 300 real rows: each column takes part with probability 0.1."""
    rows = len(next(iter(truth.values())))
    bases = np.unique(rng.integers(0, rows, TESTS))
    tests: list[Test] = []
    for base in bases:
        chosen = [name for name in largest if rng.random() < COLUMN_SHARE]
        tests.append({name: allowed_codes(int(truth[name][base]), largest[name], rng) for name in chosen})
    return tests


def allowed_codes(base: int, largest: int, rng: np.random.Generator) -> frozenset[int]:
    """The base row's code and uniform codes beside it, until one comes up twice."""
    allowed = {base}
    while (code := int(rng.integers(0, largest + 1))) not in allowed:
        allowed.add(code)
    return frozenset(allowed)


def conjunction_score(truth: Columns, made: Columns, tests: Sequence[Test], largest: Mapping[str, int]) -> float:
    """A million · (1 − root mean square of ln share − ln true share, in units of ln 1000), at least 0.

    A column that the synthetic table lacks is no condition there.
    """
    errors = [
        math.log(max(_share(made, test, largest), LEAST_SHARE)) - math.log(_share(truth, test, largest))
        for test in tests
    ]
    off = math.sqrt(sum(error**2 for error in errors) / len(errors))
    return MILLION * max(0.0, 1 - off / math.log(1000))


def _share(columns: Columns, test: Test, largest: Mapping[str, int]) -> float:
    """The share of rows that pass. The true one is positive, because the base row passes."""
    count = len(next(iter(columns.values())))
    rows: IntArray | None = None
    for name, allowed in test.items():
        if name in columns:
            values = columns[name] if rows is None else columns[name][rows]
            passing = np.flatnonzero(_allowed(values, allowed, largest[name]))
            rows = passing if rows is None else rows[passing]
    return 1.0 if rows is None else len(rows) / count


def _allowed(values: IntArray, allowed: frozenset[int], largest: int) -> npt.NDArray[np.bool_]:
    table = np.zeros(largest + 2, dtype=bool)
    table[[code for code in allowed if 0 <= code <= largest]] = True
    return table[np.where((values < 0) | (values > largest), largest + 1, values)]


# score 3: income by city


def income_score(truth: Columns, made: Columns) -> float:
    """Half a million each for the cities' Gini index and for their rank by pay gap; a city that is absent counts 0."""
    if not {"CITY", "SEX", "INCWAGE"} <= made.keys():
        return 0.0
    real, synthetic = _cities(truth), _cities(made)
    ginis = [1 - abs(real[city][0] - synthetic[city][0]) if city in synthetic else 0.0 for city in real]
    ours, theirs = _places_by_gap(real), _places_by_gap(synthetic)
    apart = max(1, len(real) - 1)
    places = [max(0.0, 1 - abs(ours[city] - theirs[city]) / apart) if city in theirs else 0.0 for city in real]
    return MILLION / 2 * (_root_mean_square(ginis) + _root_mean_square(places))


def gini(wages: IntArray) -> float:
    """1 − 2 · Σ over k of the wages of the k lowest / (N · all wages); 0 where nobody earns."""
    lowest = np.cumsum(np.sort(wages), dtype=np.float64)
    return 1 - 2 * float(lowest.sum()) / (len(wages) * float(lowest[-1])) if lowest[-1] > 0 else 0.0


def pay_gap(wages: IntArray, sexes: IntArray) -> float:
    """Mean wage of sex 1 less that of sex 2; 0 for a sex that is absent."""
    means = [float(wages[sexes == sex].mean()) if (sexes == sex).any() else 0.0 for sex in (1, 2)]
    return means[0] - means[1]


def _cities(columns: Columns) -> dict[int, tuple[float, float]]:
    """Gini index and pay gap of every city with a known wage."""
    known = (columns["INCWAGE"] < UNKNOWN_WAGE) & (columns["INCWAGE"] >= 0)
    city, sex, wage = (columns[name][known] for name in ("CITY", "SEX", "INCWAGE"))
    order = np.argsort(city, kind="stable")
    names, starts = np.unique(city[order], return_index=True)
    parts = np.split(order, starts[1:])
    return {
        int(name): (gini(wage[part]), pay_gap(wage[part], sex[part])) for name, part in zip(names, parts, strict=True)
    }


def _places_by_gap(cities: Mapping[int, tuple[float, float]]) -> dict[int, int]:
    """Each city's place when the largest pay gap comes first."""
    ordered = sorted(cities, key=lambda city: -cities[city][1])
    return {city: index for index, city in enumerate(ordered)}


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(sum(value**2 for value in values) / len(values)) if values else 0.0


# as a metric

NEEDED = ("CITY", "SEX", "INCWAGE")


def _scores(comparison: Comparison) -> dict[str, float | None]:
    """The scores of two tables of the contest's kind, and nothing for others."""
    largest = {name: largest_code(column) for name, column in comparison.encoding.declared.items()}
    whole = {name: code for name, code in largest.items() if code is not None and code >= 0}
    if len(whole) < 4 or len(whole) < len(largest) or not set(NEEDED) <= whole.keys():
        return dict.fromkeys(NIST2018.figures)
    real, synthetic = comparison.rows()
    found = score(real.select(list(whole)), synthetic.select(list(whole)), whole, comparison.seed)
    return {
        "nist2018": found.mean,
        "nist2018_marginals": found.marginals,
        "nist2018_conjunctions": found.conjunctions,
        "nist2018_income": found.income,
    }


_OF = "of NIST's 2018 challenge, Match 3 (of 1,000,000)"
NIST2018 = Metric(
    "nist2018",
    _scores,
    {
        "nist2018": Figure(
            "2018 score", f"mean score {_OF}; for whole-number codes with CITY, SEX, INCWAGE", "score", best="high"
        ),
        "nist2018_marginals": Figure("2018, triples", f"the score of random triples {_OF}", "score", best="high"),
        "nist2018_conjunctions": Figure(
            "2018, conjunctions", f"the score of many conditions {_OF}", "score", best="high"
        ),
        "nist2018_income": Figure("2018, income", f"the score of income by city {_OF}", "score", best="high"),
    },
    needs=("to be named",),
    draws=True,
)
