"""Which noise is best for a fixed workload: strategies for single attributes, shares for interactions.

Xiao, He, Zhang, Kifer (2023), ResidualPlanner, gives shares in closed form where each table is asked for value by
value; its extension ResidualPlanner+ gives attributes strategies of their own, for prefixes and ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hedgerow.coded.domain import Counts, Domain, IntArray, Marginal
from hedgerow.coded.query import LARGEST_ENTRY, InteractionQuery, Measurable, Norm, total_query
from hedgerow.models.interactions import Asked, Strategy, parts

GAP = 1e-8
"""A strategy, or shares, are taken once they are certainly within this part of the best."""
MOST_STEPS = 2000
FINEST = 1 << 16
"""Steps in which a strategy's largest entry is written down; fewer where several such attributes share a table."""


class Best(NamedTuple):
    """A strategy's Gram matrix X of unit diagonal or less, its error tr(G·X⁺), and a bound that none can be below."""

    gram: Counts
    error: float
    bound: float


def best_gram(wanted: Counts) -> Best:
    """Minimise tr(G·X⁺) over positive semi-definite X whose diagonal is at most 1: the optimal Gaussian mechanism.

    Its dual is to maximise (tr (D^½·G·D^½)^½)² over diagonals D of trace 1, and X = D^−½·(D^½·G·D^½)^½·D^−½ belongs to
    the best D. That has unit diagonal, up to scale, which is what the iteration goes for; where it is not there yet,
    dual and primal values say how far it is.
    """
    share = np.full(len(wanted), 1 / len(wanted))
    best = Best(wanted, np.inf, 0.0)
    for _ in range(MOST_STEPS):
        half = np.sqrt(share)
        root = _root(half[:, None] * wanted * half)
        trace = float(np.trace(root))
        inverse = np.divide(1.0, half, out=np.zeros_like(half), where=half > 0)
        gram = inverse[:, None] * root * inverse
        longest = float(np.diagonal(gram).max())
        error, bound = longest * trace, max(best.bound, trace**2)  # tr(G·X⁺) = tr((D^½·G·D^½)^½)
        best = Best(gram / longest, error, bound) if error < best.error else best._replace(bound=bound)
        if best.error <= (1 + GAP) * best.bound:
            break
        share = np.diagonal(root) / trace
    return best


def _root(matrix: Counts) -> Counts:
    """The square root of a positive semi-definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def strategy(asked: Asked, gram: Counts, finest: int) -> Strategy:
    """The best strategy for what interactions must tell of an attribute, in whole numbers of at most `finest`."""
    size = len(gram)
    if asked.kind == "values":
        return Strategy(size)
    centre = np.eye(size) - 1 / size
    root = _root(best_gram(centre @ gram @ centre).gram)
    matrix: IntArray = np.rint(root * ((finest - size) / np.abs(root).max())).astype(np.int64)
    matrix[np.diag_indices(size)] -= matrix.sum(axis=1)  # rows sum to 0: what they tell is no number of rows
    return Strategy(size, matrix)


@dataclass(frozen=True, eq=False)
class FixedWorkload:
    """Tables that are wanted, each with its weight, and what is asked of each attribute."""

    domain: Domain
    tables: Mapping[Marginal, float]
    asked: Mapping[str, Asked]

    @cached_property
    def strategies(self) -> dict[str, Strategy]:
        """For each attribute."""
        special = {name for name, asked in self.asked.items() if asked.kind != "values"}
        found = {}
        for name in dict.fromkeys(name for table in self.tables for name in table):
            shared = [sum(other in special for other in table) for table in self.tables if name in table]
            beside = max(
                math.prod(self.domain[other].size for other in table if other not in special)
                for table in self.tables
                if name in table
            )
            finest = int(min(FINEST, (LARGEST_ENTRY / beside) ** (1 / max(1, *shared))))
            asked = self.asked.get(name, Asked())
            found[name] = strategy(asked, asked.gram(self.domain[name]), finest)
        return found

    @cached_property
    def interactions(self) -> list[Marginal]:
        """All that the tables are made of, smaller ones first."""
        found = {part for table in self.tables for part in parts(self.domain, table)}
        return sorted(found, key=lambda part: (len(part), [self.domain.index(name) for name in part]))

    def query(self, part: Marginal) -> Measurable:
        """How an interaction is asked for."""
        if not part:
            return total_query(self.domain)
        matrices = {name: self.strategies[name].matrix for name in part}
        return InteractionQuery(
            self.domain, part, {name: matrix for name, matrix in matrices.items() if matrix is not None}
        )

    def queries(self, table: Marginal) -> int:
        """How many counts a table has."""
        return math.prod(self.asked.get(name, Asked()).rows(self.domain[name]) for name in table)

    def errors(self, norm: Norm) -> dict[Marginal, dict[Marginal, float]]:
        """For each table what an interaction's noise adds to the sum of its counts' variances.

        For noise of variance 1 in units of how far a row can move the interaction.
        """
        within, beside = {}, {}
        for name, chosen in self.strategies.items():
            attribute = self.domain[name]
            gram = self.asked.get(name, Asked()).gram(attribute)
            within[name] = float(np.sum(gram * chosen.covariance))
            beside[name] = float(gram.sum()) / attribute.size**2
        reach = {part: self.query(part).reach(norm) ** 2 for part in self.interactions}
        return {
            table: {
                part: reach[part] * math.prod((within if name in part else beside)[name] for name in table)
                for part in parts(self.domain, table)
            }
            for table in self.tables
        }

    def deviations(self, norm: Norm, variance: Mapping[Marginal, float]) -> dict[Marginal, float]:
        """The mean standard deviation of each table's counts, where interactions have noise of these variances."""
        return {
            table: math.sqrt(sum(error * variance[part] for part, error in errors.items()) / self.queries(table))
            for table, errors in self.errors(norm).items()
        }

    def weights(self, norm: Norm, objective: str) -> list[float]:
        """How heavily each interaction is measured: the noise of one is in inverse proportion.

        `sum` makes the weighted sum of all counts' variances least; that is ResidualPlanner's closed form. `largest`
        makes the largest weighted mean variance of a table least: the same for prices of tables that are searched for.
        """
        errors = self.errors(norm)
        if objective == "sum":
            return _shares(self._summed(errors, self.tables), norm)[0]
        scaled = {table: weight / self.queries(table) for table, weight in self.tables.items()}
        price = dict.fromkeys(self.tables, 1 / len(self.tables))
        best: tuple[float, list[float]] = (math.inf, [])
        bound = 0.0
        for _ in range(MOST_STEPS):
            found, value = _shares(
                self._summed(errors, {table: price[table] * scaled[table] for table in self.tables}), norm
            )
            noise = dict(zip(self.interactions, (1 / weight**2 for weight in found), strict=True))
            mean = {
                table: scaled[table] * sum(error * noise[part] for part, error in errors[table].items())
                for table in self.tables
            }
            best, bound = min(best, (max(mean.values()), found)), max(bound, value)
            if best[0] <= (1 + GAP) * bound:
                break
            price = {table: price[table] * mean[table] / value for table in self.tables}
        return best[1]

    def _summed(
        self, errors: Mapping[Marginal, Mapping[Marginal, float]], prices: Mapping[Marginal, float]
    ) -> list[float]:
        """For each interaction what its noise adds to the priced sum over all tables."""
        total = dict.fromkeys(self.interactions, 0.0)
        for table, price in prices.items():
            for part, error in errors[table].items():
                total[part] += price * error
        return [total[part] for part in self.interactions]


def _shares(errors: Sequence[float], norm: Norm) -> tuple[list[float], float]:
    """Weights w that make Σ error/w² least, and that least, where Σw² = 1 (Gaussian noise) or Σw = 1 (Laplace)."""
    if norm == "l2":
        whole = sum(math.sqrt(error) for error in errors)
        return [math.sqrt(math.sqrt(error) / whole) for error in errors], whole**2
    whole = sum(error ** (1 / 3) for error in errors)
    return [error ** (1 / 3) / whole for error in errors], whole**3
