"""Queries: public maps from a coded row to at most one cell, and whole-number combinations of such counts.

That a row reaches at most one cell is what makes the sensitivity of a query θ, the number of rows that one
person may have: a person moves the counts by a non-negative vector of L1 norm at most θ, so L2 ≤ θ too.
`MarginalQuery` and `TreeQuery` cannot express anything else, so no caller has to check it. An `InteractionQuery`
combines the cells of a marginal, so a row moves it by the combination of its own cell: its `reach` says how far that
can be, and an answer counts in units of it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts, Domain, IntArray, Marginal
from hedgerow.coded.joining import Join
from hedgerow.errors import HedgerowError

Norm = Literal["l1", "l2"]
LARGEST_ENTRY = 1 << 31
"""Of a combination of counts: times the rows of any table it stays a whole number of 64 bits."""


class MarginalQuery:
    """Counts over a marginal, optionally coarsened and then aggregated.

    Where an attribute is a join (`joins`), its code is made from those of its members, which the domain has. A row's
    codes are then mapped attribute by attribute (`levels`, e.g. a merged domain or a nested coarsening), the resulting
    cell is numbered in row-major order over `shape` (the last attribute runs fastest), and that number may be mapped to
    a block (`blocks`, e.g. a partition; −1: the row counts nowhere).
    """

    def __init__(
        self,
        domain: Domain,
        marginal: Marginal,
        *,
        levels: Mapping[str, npt.ArrayLike] | None = None,
        blocks: npt.ArrayLike | None = None,
        joins: Mapping[str, Join] | None = None,
    ):
        self.attributes: Marginal = marginal
        joined = joins or {}
        self.joins: tuple[Join | None, ...] = tuple(map(joined.get, marginal))
        held = [joined[name].members if name in joined else (name,) for name in marginal] if joined else []
        first = tuple(names[0] for names in held) if joined else marginal
        self.reads: Marginal = tuple(name for names in held for name in names) if joined else marginal
        """The attributes of the rows that the query looks at: its own, and the members of joins."""
        if domain.marginal(first) != first or len(set(self.reads)) != len(self.reads):
            raise HedgerowError("bad-marginal", f"the attributes of {marginal} must be distinct and in domain order.")
        self.base_shape = _shape_of_joins(domain, marginal, joined) if joined else domain.shape(marginal)
        self.sizes = dict(zip(self.reads, domain.shape(self.reads) if joined else self.base_shape, strict=True))
        """The attributes that this query reads, with their sizes."""
        given = dict(levels or {})
        if not set(given) <= set(marginal):
            raise HedgerowError("bad-levels", f"levels are given for attributes outside {marginal}.")
        self.levels: tuple[IntArray | None, ...] = tuple(
            _map(given[name], size, lowest=0) if name in given else None
            for name, size in zip(marginal, self.base_shape, strict=True)
        )
        self.shape: tuple[int, ...] = tuple(
            size if level is None else int(level.max()) + 1
            for size, level in zip(self.base_shape, self.levels, strict=True)
        )
        self.blocks: IntArray | None = None
        if blocks is not None:
            self.blocks = _map(blocks, math.prod(self.shape), lowest=-1)

    @property
    def cells(self) -> int:
        return math.prod(self.shape) if self.blocks is None else int(self.blocks.max()) + 1

    def reach(self, norm: Norm) -> float:
        """How far one row can move the answer."""
        return 1.0

    def aggregate(self, counts: npt.ArrayLike) -> Counts:
        """The answer that follows from full counts over the marginal (e.g. a model's), as a flat vector."""
        answer = np.asarray(counts, dtype=np.float64).reshape(self.base_shape)
        for axis, level in enumerate(self.levels):
            if level is not None:
                answer = _sum_by(np.moveaxis(answer, axis, 0), level, self.shape[axis])
                answer = np.moveaxis(answer, 0, axis)
        answer = np.ascontiguousarray(answer).reshape(-1)
        if self.blocks is not None:
            inside = self.blocks >= 0
            sums = np.zeros(self.cells)
            np.add.at(sums, self.blocks[inside], answer[inside])
            answer = sums
        return answer

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the certificate says of this query: attributes, cells, and a digest of any aggregation."""
        about: dict[str, Any] = {"attributes": list(self.reads), "cells": self.cells}
        maps = [*self.levels, self.blocks]
        joins = [join for join in self.joins if join is not None]
        if joins or any(mapping is not None for mapping in maps):
            digest = hashlib.sha256()
            for join in joins:
                digest.update(join.digest)
            for mapping in maps:
                digest.update(b"-" if mapping is None else mapping.astype("<i8").tobytes())
            about["aggregation"] = digest.hexdigest()[:32]
        return about

    def __repr__(self) -> str:
        aggregated = ", aggregated" if "aggregation" in self.description else ""
        return f"MarginalQuery({' × '.join(self.reads) or 'total'}{aggregated})"


class TreeQuery:
    """Counts of (leaf, label) for a public tree over the attributes: a row reaches exactly one leaf.

    Node i splits on attribute number `split[i]` of `attributes`; its child for code c is node `child[i] + c`.
    A leaf has `split[i] == -1` and `child[i]` is its number. Nodes may share their children, and leaves a number: that
    is how a range of codes becomes one branch. The cell is leaf · label size + label code; without a label it is the
    leaf.
    """

    def __init__(
        self,
        domain: Domain,
        attributes: Marginal,
        split: npt.ArrayLike,
        child: npt.ArrayLike,
        label: str | None = None,
    ):
        self.split: npt.NDArray[np.int32] = np.array(split, dtype=np.int32)  # copies that no caller can change
        self.child: IntArray = np.array(child, dtype=np.int64)
        self.split.flags.writeable = self.child.flags.writeable = False
        self.label = label
        self.label_size = 1 if label is None else domain[label].size
        self.splits_on = attributes
        self.split_sizes = domain.shape(attributes)
        self.attributes: Marginal = domain.marginal([*attributes, *([label] if label else [])])
        self.sizes = dict(zip(self.attributes, domain.shape(self.attributes), strict=True))
        leaves = np.unique(self.child[self.split < 0])
        self.leaves = len(leaves)
        if not np.array_equal(leaves, np.arange(self.leaves)):
            raise HedgerowError("bad-tree", "the leaves of a tree must be numbered 0, 1, 2, …")
        self._check_children()

    def _check_children(self) -> None:
        """Every child of every inner node exists and comes after its parent, so each walk ends in a leaf."""
        inner = np.flatnonzero(self.split >= 0)
        if inner.size:
            sizes = np.asarray(self.split_sizes)[self.split[inner]]
            first = self.child[inner]
            if (first <= inner).any() or (first > len(self.split) - sizes).any():  # a sum could wrap
                raise HedgerowError("bad-tree", "a tree's children must come after their parent and inside the tree.")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.leaves, self.label_size)

    @property
    def cells(self) -> int:
        return self.leaves * self.label_size

    def reach(self, norm: Norm) -> float:
        """How far one row can move the answer."""
        return 1.0

    @cached_property
    def description(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.split.astype("<i4").tobytes() + self.child.astype("<i8").tobytes())
        return {
            "attributes": list(self.attributes),
            "label": self.label,
            "cells": self.cells,
            "tree": digest.hexdigest()[:32],
        }

    def __repr__(self) -> str:
        return f"TreeQuery({' × '.join(self.splits_on)} → {self.label}, {self.leaves} leaves)"


class InteractionQuery:
    """(M₁ ⊗ … ⊗ M_k) · counts over a marginal, where M_i is a matrix of whole numbers for the i-th attribute.

    Differences between values of every attribute are what a marginal tells beyond smaller ones: its *interaction*.
    Where no matrix is given it is size·I − 1: each value's count, times the size, less the sum of all. The answer's
    cells are numbered in row-major order over the rows of the matrices.
    """

    def __init__(self, domain: Domain, marginal: Marginal, matrices: Mapping[str, npt.ArrayLike] | None = None):
        self.counted = MarginalQuery(domain, marginal)
        """What has to be counted for it."""
        self.attributes = self.reads = marginal
        self.sizes = self.counted.sizes
        given = matrices or {}
        if not set(given) <= set(marginal) or not marginal or min(self.sizes.values()) < 2:
            raise HedgerowError(
                "bad-combination",
                f"an interaction of {marginal} needs attributes of two values and more, and matrices for those alone.",
            )
        self.matrices: tuple[IntArray | None, ...] = tuple(
            _whole_matrix(given[name], size) if name in given else None for name, size in self.sizes.items()
        )
        """None: size·I − 1."""
        largest = math.prod(
            size - 1 if matrix is None else int(np.abs(matrix).max())
            for matrix, size in zip(self.matrices, self.sizes.values(), strict=True)
        )
        if largest > LARGEST_ENTRY:
            raise HedgerowError("bad-combination", f"a combination of {marginal} multiplies counts by too much.")
        self.shape: tuple[int, ...] = tuple(
            size if matrix is None else len(matrix)
            for matrix, size in zip(self.matrices, self.sizes.values(), strict=True)
        )

    @property
    def cells(self) -> int:
        return math.prod(self.shape)

    def combined(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The answer that follows from counts over the marginal, flat; whole numbers stay whole."""
        answer = counts.reshape(self.counted.shape)
        for axis, matrix in enumerate(self.matrices):
            if matrix is None:
                answer = answer.shape[axis] * answer - answer.sum(axis=axis, keepdims=True)
            else:
                answer = np.moveaxis(np.tensordot(matrix, answer, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(answer).reshape(-1)

    def reach(self, norm: Norm) -> float:
        """How far one row can move the answer: the norm of the longest column, rounded up."""
        power = 1 if norm == "l1" else 2
        longest = math.prod(
            _longest(matrix, size, power) for matrix, size in zip(self.matrices, self.sizes.values(), strict=True)
        )
        found = float(longest) if norm == "l1" else math.sqrt(longest)
        while Fraction(found) ** power < longest:
            found = math.nextafter(found, math.inf)
        return found

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the certificate says of this query."""
        digest = hashlib.sha256()
        for matrix in self.matrices:
            digest.update(b"-" if matrix is None else matrix.astype("<i8").tobytes())
        reaches: tuple[Norm, Norm] = ("l1", "l2")
        return {
            "attributes": list(self.attributes),
            "cells": self.cells,
            "interaction": digest.hexdigest()[:32],
            "reach": {norm: self.reach(norm) for norm in reaches},
        }

    def __repr__(self) -> str:
        return f"InteractionQuery({' × '.join(self.attributes)}, {self.cells} cells)"


Query = MarginalQuery | TreeQuery
"""What a table can be counted for."""
Measurable = Query | InteractionQuery
"""What can be measured."""


def total_query(domain: Domain) -> MarginalQuery:
    """The query with one cell that every row reaches: the number of rows."""
    return MarginalQuery(domain, ())


def _shape_of_joins(domain: Domain, marginal: Marginal, joins: Mapping[str, Join]) -> tuple[int, ...]:
    for join in joins.values():
        if domain.shape(join.members) != tuple(join.sizes.values()):
            raise HedgerowError(
                "another-domain", f"the join of {' × '.join(join.members)} was made for another domain."
            )
    return tuple(joins[name].size if name in joins else domain[name].size for name in marginal)


def _longest(matrix: IntArray | None, size: int, power: int) -> int:
    """Σ |entry|^power of the longest column."""
    if matrix is None:
        return size * (size - 1) if power == 2 else 2 * (size - 1)
    columns: list[list[int]] = matrix.T.tolist()
    return max(sum(math.prod([abs(entry)] * power) for entry in column) for column in columns)


def _whole_matrix(values: npt.ArrayLike, size: int) -> IntArray:
    matrix: IntArray = np.array(values, dtype=np.int64)  # a copy that no caller can change
    if matrix.ndim != 2 or matrix.shape[1] != size or not matrix.shape[0] or not matrix.any():
        raise HedgerowError("bad-combination", f"a combination of {size} values needs {size} columns and some numbers.")
    matrix.flags.writeable = False
    return matrix


def _map(values: npt.ArrayLike, size: int, lowest: int) -> IntArray:
    mapping: IntArray = np.array(values, dtype=np.int64).reshape(-1)  # a copy that no caller can change
    if len(mapping) != size:
        raise HedgerowError("bad-cell-map", f"a map over {size} cells has {len(mapping)} entries.")
    if mapping.min() < lowest or mapping.max() < 0:
        raise HedgerowError("bad-cell-map", f"a map of cells has a target below {lowest}, or none at all.")
    mapping.flags.writeable = False
    return mapping


def _sum_by(values: Counts, level: IntArray, size: int) -> Counts:
    """Sum the slices along the first axis that share a level."""
    answer = np.zeros((size, *values.shape[1:]))
    np.add.at(answer, level, values)
    return answer
