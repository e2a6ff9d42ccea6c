"""The scores of NIST's 2020 challenge (temporal map), sprints 2 and 3. PRIVATE: exact functions of real rows.

Both compare densities of few columns within each segment of a map over time (place × year, pickup area × shift).
Sprint 2 replaces a segment's distance by the worst where its number of rows is off by 250 or more. Sprint 3 adds the
density of journeys, and conjunctions on what each person did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import IntArray
from hedgerow.errors import TableError
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.schema import Schema
    from hedgerow.schema.column import Column

WORST = 2.0
"""The L1 distance of two densities that share nothing, and of one to an empty table."""
THOUSAND = 1000.0
PAIRS = 50
PENALTY = 250
TESTS = 50
TOLERANCES = (5, 50)

Columns = Mapping[str, IntArray]
"""The code of every row, column by column, as a schema bins them."""


def columns_of(table: pa.Table, schema: Schema) -> Columns:
    """Each column's own codes (the cells of its bins), whether or not the schema puts it in a group."""
    return coded_columns(table, schema.columns)


def coded_columns(table: pa.Table, declared: Mapping[str, Column]) -> Columns:
    lacking = [name for name in declared if name not in table.column_names]
    if lacking:
        raise TableError(
            "missing-column", f'the score needs every column that the schema declares; the table lacks "{lacking[0]}".'
        )
    whole = table.combine_chunks()
    coded = {}
    for name, column in declared.items():
        array = whole.column(name)
        codes = column.encode(array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()).codes
        coded[name] = np.asarray(codes[0], dtype=np.int64)
    return coded


def sprint2(
    real: pa.Table,
    synthetic: pa.Table,
    schema: Schema,
    segments: Sequence[str] = ("PUMA", "YEAR"),
    penalty: int | None = PENALTY,
    seed: int = 123_456,
) -> float:
    """The k-marginal score with the bias penalty, between 0 and 1000: 50 random pairs of the other columns."""
    others = [name for name in schema.columns if name not in segments]
    pairs = random_pairs(others, np.random.default_rng(seed))
    return k_marginal_score(columns_of(real, schema), columns_of(synthetic, schema), segments, pairs, penalty)


def random_pairs(names: Sequence[str], rng: np.random.Generator, count: int = PAIRS) -> list[tuple[str, ...]]:
    """`count` pairs of distinct columns; the same pair may come up twice."""
    return [tuple(names[index] for index in rng.choice(len(names), 2, replace=False)) for _ in range(count)]


def k_marginal_score(
    real: Columns,
    synthetic: Columns,
    segments: Sequence[str],
    marginals: Sequence[Sequence[str]],
    penalty: int | None = None,
) -> float:
    """1000 · (2 − mean distance) / 2 over the segments that have real rows.

    A segment's distance is the mean over the marginals of the L1 distance between its two densities, and the worst
    where it has no synthetic row, or where the numbers of rows differ by `penalty` or more.
    """
    ours, theirs, count = _numbered(real, synthetic, segments)
    rows = np.bincount(ours, minlength=count), np.bincount(theirs, minlength=count)
    there = rows[0] > 0
    distance = np.zeros(count)
    for marginal in marginals:
        distance += _density_distances((ours, theirs), rows, _numbered(real, synthetic, marginal))
    distance /= len(marginals)
    distance[rows[1] == 0] = WORST
    if penalty is not None:
        distance[np.abs(rows[0] - rows[1]) >= penalty] = WORST
    return THOUSAND * (WORST - float(distance[there].mean())) / WORST


def _density_distances(
    segment: tuple[IntArray, IntArray], rows: tuple[IntArray, IntArray], cells: tuple[IntArray, IntArray, int]
) -> npt.NDArray[np.float64]:
    """The L1 distance between the two densities of every segment (anything where a side is empty)."""
    *codes, width = cells
    densities = [
        np.bincount(own * width + cell, minlength=len(total) * width).reshape(-1, width) / np.maximum(total, 1)[:, None]
        for own, cell, total in zip(segment, codes, rows, strict=True)
    ]
    distances: npt.NDArray[np.float64] = np.abs(densities[0] - densities[1]).sum(axis=1)
    return distances


def _numbered(real: Columns, synthetic: Columns, names: Sequence[str]) -> tuple[IntArray, IntArray, int]:
    """The combinations of some columns in both tables, numbered by those that occur."""
    ours, theirs = (np.zeros(len(next(iter(columns.values()))), dtype=np.int64) for columns in (real, synthetic))
    count = 1
    for name in names:
        size = 1 + max((int(columns[name].max()) for columns in (real, synthetic) if len(columns[name])), default=0)
        seen = np.zeros(count * size, dtype=bool)
        ours, theirs = ours * size + real[name], theirs * size + synthetic[name]
        seen[ours] = seen[theirs] = True
        rank = np.cumsum(seen) - 1
        ours, theirs, count = rank[ours], rank[theirs], int(seen.sum())
    return ours, theirs, count


# ------------------------------------------------------------ sprint 3


def sprint3(
    real: pa.Table,
    synthetic: pa.Table,
    schema: Schema,
    person: str,
    *,
    area: str = "pickup_area",
    to: str = "dropoff_area",
    time: str = "shift",
    compared: Sequence[str] | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """The three scores of sprint 3, each between 0 and 1000, and their mean."""
    ours, theirs = columns_of(real, schema), columns_of(synthetic, schema)
    others = list(compared) if compared is not None else [name for name in ours if name not in (area, time)]
    sizes = _sizes(ours, theirs, (time, area))
    real_visits, made_visits = (
        visit_counts(_persons(table, person), [columns[time], columns[area]], sizes)
        for table, columns in ((real, ours), (synthetic, theirs))
    )
    scores = {
        "k-marginal": k_marginal_score(ours, theirs, (area, time), list(permutations(others, 2))),
        "journeys": k_marginal_score(ours, theirs, (), [(area, to)]),
        "conjunctions": conjunction_score(real_visits, made_visits, np.random.default_rng(seed)),
    }
    return scores | {"mean": sum(scores.values()) / len(scores)}


def visit_counts(persons: IntArray, columns: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """For each person, how many rows they have with each code of each column, side by side."""
    counted = int(persons.max()) + 1 if len(persons) else 0
    return np.concatenate(
        [
            np.bincount(persons * size + codes, minlength=counted * size).reshape(counted, size)
            for codes, size in zip(columns, sizes, strict=True)
        ],
        axis=1,
    )


def conjunction_score(real: IntArray, synthetic: IntArray, rng: np.random.Generator, tests: int = TESTS) -> float:
    """1000 · (1 − mean difference): the share of persons who are like a real one within random tolerances."""
    if not len(real) or not len(synthetic):
        return 0.0
    apart = []
    for _ in range(tests):
        base = real[rng.integers(0, len(real))]
        tolerance = rng.integers(TOLERANCES[0], TOLERANCES[1] + 1, len(base))
        shares = [float((np.abs(found - base) <= tolerance).all(axis=1).mean()) for found in (real, synthetic)]
        apart.append(abs(shares[0] - shares[1]))
    return THOUSAND * (1 - sum(apart) / len(apart))


def _persons(table: pa.Table, person: str) -> IntArray:
    """Persons as whole numbers from 0 on."""
    if person not in table.column_names:
        raise TableError("missing-column", f'the score needs the column "{person}", which names a person.')
    column = table[person].combine_chunks().dictionary_encode()
    indices = column.combine_chunks().indices if hasattr(column, "combine_chunks") else column.indices
    return np.asarray(indices, dtype=np.int64)


def _sizes(ours: Columns, theirs: Columns, names: Sequence[str]) -> list[int]:
    return [1 + max(int(columns[name].max()) for columns in (ours, theirs) if len(columns[name])) for name in names]


# ------------------------------------------------------------ as a metric


SEGMENTS = ("PUMA", "YEAR")


def _score(comparison: Comparison) -> dict[str, float | None]:
    """The score of sprint 2 for two tables with places and years, and nothing for others."""
    declared = comparison.encoding.declared
    others = [name for name in declared if name not in SEGMENTS]
    if not set(SEGMENTS) <= declared.keys() or len(others) < 2:
        return {"nist2020": None}
    real, synthetic = (coded_columns(rows, declared) for rows in comparison.rows())
    pairs = random_pairs(others, np.random.default_rng(123_456 + comparison.seed))
    return {"nist2020": k_marginal_score(real, synthetic, SEGMENTS, pairs, PENALTY)}


NIST2020 = Metric(
    "nist2020",
    _score,
    {
        "nist2020": Figure(
            "2020 score",
            "of sprint 2 of NIST's 2020 challenge (of 1,000); for tables with PUMA and YEAR",
            "score",
            best="high",
        )
    },
    needs=("to be named",),
    draws=True,
)
