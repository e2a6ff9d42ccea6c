"""Higher-order conjunctions: how many rows meet several conditions at once. PRIVATE: exact functions of real rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Attribute, CodedTable, Counts, Domain
from hedgerow.private.evaluate.metric import Figure, distance
from hedgerow.private.sources.coded import rows_of

Conjunction: TypeAlias = Mapping[str, npt.NDArray[np.bool_]]
"""For every attribute that takes part, which of its codes pass."""

CONJUNCTIONS = 300
FEWEST, MOST = 4, 8
"""Attributes that take part in a conjunction."""
LEAST_SHARE = 1e-6


def conjunctions(real: CodedTable, synthetic: CodedTable, domain: Domain, seed: int = 0) -> float:
    """How far the shares of rows that meet 300 random conjunctions are apart: √mean (ln q − ln p)².

    p and q are the shares of real and of synthetic rows (at least 10⁻⁶) that pass. A conjunction is drawn around a
    random real row: 4 to 8 attributes, and for each a condition that this row meets. For an ordered attribute it is an
    interval of codes with uniform ends, otherwise the row's code and each other one with probability ½. So p > 0, and
    0.7 says that shares are typically off by a factor e^0.7 ≈ 2. NIST's 2018 contest scored conjunctions likewise.
    """
    return conjunction_error(real, synthetic, random_conjunctions(real, domain, seed))


def conjunction_error(real: CodedTable, synthetic: CodedTable, asked: Sequence[Conjunction]) -> float:
    """Root mean square of the difference of log shares."""
    off = np.log(np.maximum(_shares(synthetic, asked), LEAST_SHARE)) - np.log(_shares(real, asked))
    return math.sqrt(float((off**2).mean()))


def random_conjunctions(real: CodedTable, domain: Domain, seed: int) -> list[Conjunction]:
    """The conjunctions of `conjunctions`; they depend on the real table, the domain and the seed alone."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, MOST])))
    asked: list[Conjunction] = []
    for row in rng.integers(0, rows_of(real), CONJUNCTIONS):
        size = min(len(domain), int(rng.integers(FEWEST, MOST + 1)))
        indices = sorted(rng.choice(len(domain), size, replace=False).tolist())
        chosen = [domain.attributes[index] for index in indices]
        asked.append({each.name: _condition(each, int(real[each.name][row]), rng) for each in chosen})
    return asked


def _condition(attribute: Attribute, code: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    passing = rng.random(attribute.size) < 0.5
    if attribute.ordered:
        low, high = rng.integers(0, code + 1), rng.integers(code, attribute.size)
        passing = (np.arange(attribute.size) >= low) & (np.arange(attribute.size) <= high)
    passing[code] = True
    return passing


def _shares(table: CodedTable, asked: Sequence[Conjunction]) -> Counts:
    """Rows are narrowed down condition by condition, so most of the work is the first two."""
    rows = rows_of(table)
    passed = np.empty(len(asked))
    for number, conjunction in enumerate(asked):
        left: npt.NDArray[np.intp] | None = None
        for name, passing in conjunction.items():
            codes = table[name] if left is None else table[name][left]
            inside = np.flatnonzero(passing[codes])
            left = inside if left is None else left[inside]
        passed[number] = (rows if left is None else len(left)) / rows
    return passed


CONJUNCTION_ERROR = distance(
    "conjunctions",
    conjunctions,
    Figure("conjunctions", "shares of rows that meet 4 to 8 conditions are typically off by this factor", "factor"),
    draws=True,
    compared=True,
)
