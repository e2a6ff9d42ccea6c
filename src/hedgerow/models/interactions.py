"""Tables put together from noisy interactions: what one residual adds to the next, and how far each count may be off.

The counts over a set of attributes are a sum of interactions of its subsets: of each subset what it tells beyond all
smaller ones, spread evenly over the other attributes (Xiao, He, Zhang, Kifer 2023, ResidualPlanner, §4). Interactions
of different subsets are orthogonal and their noises independent, so the tables that come of them agree with each
other exactly, and variances add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np

from hedgerow.coded.domain import Attribute, Counts, Domain, IntArray, Marginal
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.errors import HedgerowError, OptionError, listing, suggestion
from hedgerow.models.graphical.noisy import Noisy
from hedgerow.models.graphical.terms import LEAST_STD

KINDS = ("values", "prefixes", "ranges")
MOST_QUERIES = 1 << 20
"""Queries of one attribute: all ranges of some 1,400 values."""
SINGULAR = 1e-9
"""Of the largest singular value: a direction that a strategy does not ask about."""

Groups = tuple[tuple[str, tuple[int | str, ...]], ...]
"""Names, each with the values (or, once they are looked up, the codes) that it stands for."""


@dataclass(frozen=True)
class Asked:
    """What is wanted of one attribute: each value; all prefixes or ranges of its order; each value and some groups.

    Codes that stand in no order (missing, other) are asked for one by one.
    """

    kind: str = "values"
    groups: Groups = ()

    @classmethod
    def read(cls, given: Any, column: str) -> Asked:
        """A word; or groups, {north: [a, b]}, which may hold groups themselves; or what a certificate holds."""
        if isinstance(given, Asked):
            return given
        if isinstance(given, str) and given in KINDS:
            return cls(given)
        if isinstance(given, Mapping) and given:
            return cls("groups", tuple(_flattened(given, column)))
        listed = isinstance(given, list | tuple) and given
        if listed and all(isinstance(each, list | tuple) and len(each) == 2 for each in given):
            return cls("groups", tuple((str(name), tuple(values)) for name, values in given))
        near = suggestion(given, KINDS) if isinstance(given, str) else ""
        raise OptionError(
            "bad-ask",
            f'ask: "{column}" is asked for {listing(KINDS)}, or for groups of its values, not {given!r}.{near}',
        )

    def plain(self) -> Any:
        """As a certificate holds it."""
        return [[name, list(values)] for name, values in self.groups] if self.groups else self.kind

    def refuse_unfit(self, attribute: Attribute) -> None:
        """Refuse what an attribute cannot answer, before anything is spent."""
        if self.kind in ("prefixes", "ranges") and not attribute.ordered:
            raise OptionError("bad-ask", f'ask: "{attribute.name}" is in no order, so it has no {self.kind}.')
        for name, codes in self.groups:
            strange = [code for code in codes if not isinstance(code, int) or not 0 <= code < attribute.size]
            if strange or not codes or len(set(codes)) != len(codes):
                raise OptionError(
                    "bad-ask",
                    f'ask: the group "{name}" of "{attribute.name}" must hold values of that column, each once.',
                )
        if self.rows(attribute) > MOST_QUERIES:
            raise OptionError(
                "bad-ask", f'ask: "{attribute.name}" has {self.rows(attribute):,} {self.kind}; that is too many.'
            )

    def rows(self, attribute: Attribute) -> int:
        """How many queries there are."""
        line = attribute.ordered or 0
        return attribute.size + {"ranges": line * (line - 1) // 2, "groups": len(self.groups)}.get(self.kind, 0)

    def matrix(self, attribute: Attribute) -> Counts:
        """A row for each query, a column for each code."""
        size = attribute.size
        if self.kind == "values":
            return np.eye(size)
        if self.kind == "groups":
            held = np.zeros((len(self.groups), size))
            for number, (_, codes) in enumerate(self.groups):
                held[number, [int(code) for code in codes]] = 1
            return np.vstack([np.eye(size), held])
        found = np.zeros((self.rows(attribute), size))
        for number, (first, last) in enumerate(self.spans(attribute)):
            found[number, first : last + 1] = 1
        return found

    def spans(self, attribute: Attribute) -> Iterator[tuple[int, int]]:
        """The first and the last code of every prefix or range; what stands in no order follows, code by code."""
        line = attribute.ordered or 0
        for first in range(line if self.kind == "ranges" else min(1, line)):
            yield from ((first, last) for last in range(first, line))
        yield from ((code, code) for code in range(line, attribute.size))

    def labels(self, attribute: Attribute, codes: Sequence[str]) -> list[str]:
        """What each query is called, from what codes are called."""
        if self.kind == "values":
            return list(codes)
        if self.kind == "groups":
            return [*codes, *(name for name, _ in self.groups)]
        return [
            codes[last]
            if first == last and (first or self.kind == "ranges" or last >= (attribute.ordered or 0))
            else f"{codes[first]} to {codes[last]}"
            if first != last
            else codes[first]
            for first, last in self.spans(attribute)
        ]

    def gram(self, attribute: Attribute) -> Counts:
        """Wᵀ·W of the matrix W, without making it."""
        size, line = attribute.size, attribute.ordered or 0
        found = np.eye(size)
        if self.kind == "groups":
            held = self.matrix(attribute)[size:]
            return np.asarray(found + held.T @ held)
        if self.kind in ("prefixes", "ranges"):
            code = np.arange(line)
            later, earlier = np.maximum.outer(code, code), np.minimum.outer(code, code)
            found[:line, :line] = (line - later) * (1 if self.kind == "prefixes" else earlier + 1)
        return found


def _flattened(groups: Mapping[Any, Any], column: str) -> Iterator[tuple[str, tuple[int | str, ...]]]:
    """Groups that hold groups stand for all values below them."""
    for name, held in groups.items():
        if isinstance(held, Mapping) and held:
            inner = list(_flattened(held, column))
            direct = {str(each) for each in held}
            yield str(name), tuple(value for each, values in inner if each in direct for value in values)
            yield from inner
        elif isinstance(held, list | tuple) and held:
            yield str(name), tuple(held)
        else:
            raise OptionError("bad-ask", f'ask: the group "{name}" of "{column}" must list values, or hold groups.')


class Strategy:
    """How one attribute is asked about within interactions: a matrix of whole numbers whose rows sum to 0."""

    def __init__(self, size: int, matrix: IntArray | None = None):
        self.size = size
        self.matrix = matrix
        """None: size·I − 1, which is best where each value is wanted."""

    @cached_property
    def inverse(self) -> Counts:
        """The pseudo-inverse."""
        if self.matrix is None:
            return np.asarray((np.eye(self.size) - 1 / self.size) / self.size)
        return np.linalg.pinv(self.matrix.astype(np.float64), rcond=SINGULAR)

    @cached_property
    def covariance(self) -> Counts:
        """Of the counts' estimate, for noise of variance 1 on every row."""
        if self.matrix is None:
            return np.asarray((np.eye(self.size) - 1 / self.size) / self.size**2)
        return np.asarray(self.inverse @ self.inverse.T)

    def solved(self, answer: Counts, axis: int) -> Counts:
        """The least-squares counts along an axis, which sum to 0 there."""
        if self.matrix is None:
            return np.asarray((answer - answer.mean(axis=axis, keepdims=True)) / self.size)
        return np.moveaxis(np.tensordot(self.inverse, answer, axes=(1, axis)), 0, axis)


@dataclass(frozen=True, eq=False)
class CountTable:
    """Counts of a table, each with the standard deviation of its noise: an axis for each attribute."""

    attributes: Marginal
    values: Counts
    std: Counts


class Interactions:
    """Measured interactions by their attributes, `()` being the number of rows."""

    def __init__(self, domain: Domain, measurements: Sequence[Measurement]):
        self._domain = domain
        self.measured: dict[Marginal, Measurement] = {}
        for each in measurements:
            if isinstance(each.query, InteractionQuery) or not each.query.attributes:
                self.measured.setdefault(each.query.attributes, each)
        self._strategies = _strategies(self.measured.values())

    def __bool__(self) -> bool:
        return len(self.measured) > 1

    @property
    def widest(self) -> list[Marginal]:
        """The sets of attributes that are inside no other."""
        sets = [frozenset(each) for each in self.measured]
        return [marginal for marginal in self.measured if not any(set(marginal) < other for other in sets)]

    def holds(self, attributes: Marginal) -> bool:
        """Whether every interaction of these attributes was measured."""
        return all(part in self.measured for part in parts(self._domain, attributes))

    def table(self, attributes: Marginal, asked: Mapping[str, Asked] | None = None) -> CountTable:
        """The counts over some attributes, and what is asked of each of them."""
        if not self.holds(attributes):
            raise HedgerowError(
                "not-measured",
                f"the table {' × '.join(attributes)} was not measured; those that were: "
                f"{listing(' × '.join(each) or 'total' for each in self.widest)}.",
            )
        wanted = {name: (asked or {}).get(name, Asked()) for name in attributes}
        matrices = [wanted[name].matrix(self._domain[name]) for name in attributes]
        shape = tuple(self._domain[name].size for name in attributes)
        counts = np.zeros(shape)
        variance = np.zeros(tuple(len(matrix) for matrix in matrices))
        for part in parts(self._domain, attributes):
            measured = self.measured[part]
            solved = measured.values.astype(np.float64).reshape(measured.query.shape if part else ())
            for axis, name in enumerate(part):
                solved = self._strategies[name].solved(solved, axis)
            places = tuple(axis for axis, name in enumerate(attributes) if name not in part)
            counts += np.expand_dims(solved, places) / np.prod([shape[axis] for axis in places])
            spread = np.array(measured.noise.variance)
            for name, matrix in zip(attributes, matrices, strict=True):
                if name in part:
                    along = np.einsum("ij,jk,ik->i", matrix, self._strategies[name].covariance, matrix, optimize=True)
                else:
                    along = (matrix.sum(axis=1) / matrix.shape[1]) ** 2
                spread = np.multiply.outer(spread, along)
            variance += spread
        values = counts
        for axis, matrix in enumerate(matrices):
            if wanted[attributes[axis]].kind != "values":
                values = np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)
        return CountTable(attributes, values, np.sqrt(variance))


def in_counts(domain: Domain, measurements: Sequence[Measurement]) -> list[Measurement]:
    """Noisy answers for readers who know counts alone: interactions as the tables and columns that they come to.

    The noise on cells of such a table is not quite independent: sums of cells are less noisy than it says.
    """
    held = Interactions(domain, measurements)
    if not held:
        return list(measurements)
    kept = [each for each in measurements if not isinstance(each.query, InteractionQuery)]
    alone = [marginal for marginal in held.measured if len(marginal) == 1]
    for marginal in dict.fromkeys([*alone, *(each for each in held.widest if each)]):
        table = held.table(marginal)
        noise = Noise("gaussian", float(np.sqrt(np.mean(table.std**2))))
        values = np.rint(table.values).astype(np.int64).reshape(-1)
        kept.append(Measurement(MarginalQuery(domain, marginal), values, noise))
    return kept


def of_cliques(domain: Domain, cliques: Sequence[Marginal], measurements: Sequence[Measurement]) -> list[Noisy]:
    """What interactions of values tell of the cells of cliques, each of them of the first that holds its attributes.

    An interaction has as many independent numbers as contrasts, fewer than cells: it is turned into those by matrices
    of orthonormal rows, so the noise on them is independent too. A model then has a few cliques instead of many.
    """
    told: dict[Marginal, list[tuple[Counts, Counts, float]]] = {}
    for each in measurements:
        clique = next(clique for clique in cliques if set(each.query.attributes) <= set(clique))
        values: Counts = each.values.astype(np.float64).reshape(each.query.shape)
        scale = 1.0
        matrix: Counts = np.ones((1, 1))
        for name in clique:
            size = domain[name].size
            if name in each.query.attributes:
                axis = each.query.attributes.index(name)
                values = np.asarray(np.moveaxis(np.tensordot(_contrasts(size), values, axes=(1, axis)), 0, axis) / size)
                scale *= size
            beside: Counts = _contrasts(size) if name in each.query.attributes else np.ones((1, size))
            matrix = np.asarray(np.kron(matrix, beside))
        told.setdefault(clique, []).append((matrix, values.reshape(-1), max(each.std / scale, LEAST_STD)))
    return [
        Noisy(
            clique,
            np.concatenate([values for _, values, _ in parts]),
            np.concatenate([np.full(len(values), std) for _, values, std in parts]),
            np.concatenate([matrix for matrix, _, _ in parts]),
        )
        for clique, parts in told.items()
    ]


@cache
def _contrasts(size: int) -> Counts:
    """Orthonormal rows that sum to 0 (Helmert's), one fewer than values."""
    rows = np.tril(np.ones((size, size)), -1)[1:]
    rows[np.arange(size - 1), np.arange(1, size)] = -np.arange(1, size)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def parts(domain: Domain, attributes: Marginal) -> list[Marginal]:
    """The subsets of which an interaction can tell something: an attribute of one value tells nothing."""
    told = [name for name in attributes if domain[name].size > 1]
    return [part for length in range(len(told) + 1) for part in combinations(told, length)]


def _strategies(measured: Iterable[Measurement]) -> dict[str, Strategy]:
    found: dict[str, Strategy] = {}
    for each in measured:
        if isinstance(each.query, InteractionQuery):
            for (name, size), matrix in zip(each.query.sizes.items(), each.query.matrices, strict=True):
                found.setdefault(name, Strategy(size, matrix))
    return found
