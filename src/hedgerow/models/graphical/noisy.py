"""Noisy numbers that were made anywhere, for `hedgerow.fit`: a marginal, or any linear map of one.

What Hedgerow measures itself is a `Measurement`: whole numbers, and noise that it drew. A `Noisy` is what a researcher
brings: columns in any order, real numbers, one standard deviation or one for each, and a query matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts, Marginal
from hedgerow.coded.measurement import LARGEST, WIDEST
from hedgerow.errors import HedgerowError

UNBIASED = 1e-6
"""How far a combination of queries may be from counting every row once, and still be taken for an estimate of them."""


class Noisy:
    """`values` ≈ matrix · (counts over the columns), or the counts themselves, each with its standard deviation.

    The columns' order is that of the axes of `values`, and of the cells that the matrix multiplies (row-major: the last
    column runs fastest). Checked when it is made, but for the sizes of the columns, which `fit` knows.
    """

    def __init__(self, columns: Sequence[str], values: npt.ArrayLike, std: npt.ArrayLike, query: Any = None):
        self.columns: Marginal = (columns,) if isinstance(columns, str) else tuple(columns)
        if len(set(self.columns)) != len(self.columns):
            raise HedgerowError("bad-marginal", f"the columns of a noisy answer must be distinct, got {self.columns}.")
        given = np.asarray(values, dtype=np.float64)
        self._given_shape = given.shape
        self.values: Counts = given.reshape(-1)
        self.std: Counts = np.asarray(std, dtype=np.float64)
        if self.std.ndim:
            self.std = self.std.reshape(-1)
        self.matrix = None if query is None else _sparse(query)
        self._refuse_bad_numbers()

    def _refuse_bad_numbers(self) -> None:
        name = " × ".join(self.columns) or "the total"
        if not (np.abs(self.values) < LARGEST).all():
            raise HedgerowError("bad-noisy-counts", f"noisy counts of {name} must be finite, and below 2^63.")
        if not ((self.std > 0) & (self.std < WIDEST)).all():
            raise HedgerowError("bad-noise-scale", f"std of {name} must lie above 0 and below {WIDEST:g}.")
        if self.std.ndim and self.std.shape != self.values.shape:
            raise HedgerowError(
                "answer-length",
                f"{name} has {self.values.size:,} noisy numbers and {self.std.size:,} standard deviations: it needs "
                "one, or one for each.",
            )
        if self.matrix is not None:
            if self.matrix.shape[0] != self.values.size:
                raise HedgerowError(
                    "answer-length",
                    f"the query of {name} has {self.matrix.shape[0]:,} rows, one for each noisy number; there are "
                    f"{self.values.size:,}.",
                )
            if not np.isfinite(self.matrix.data).all():
                raise HedgerowError("bad-query", f"the query of {name} must be made of finite numbers.")

    def refuse_other_shape(self, shape: tuple[int, ...]) -> None:
        """The sizes of the columns are known to whoever fits; those of another domain are refused."""
        wrong = self.matrix is None and len(self._given_shape) > 1 and self._given_shape != shape
        if self.cells != math.prod(shape) or wrong:
            given = f"the shape {self._given_shape}" if self.matrix is None else f"a query of {self.cells:,} columns"
            raise HedgerowError(
                "answer-length",
                f"{' × '.join(self.columns) or 'the total'} has {math.prod(shape):,} cells, in the shape {shape}; what "
                f"was given has {given}.",
            )

    @property
    def cells(self) -> int:
        """The cells of the columns."""
        return self.values.size if self.matrix is None else int(self.matrix.shape[1])

    def rows(self) -> Any:
        """The matrix, the identity where every cell was measured."""
        import scipy.sparse

        return scipy.sparse.identity(self.values.size, format="csr") if self.matrix is None else self.matrix

    @cached_property
    def total(self) -> tuple[float, float] | None:
        """Its own estimate of the number of rows and that estimate's variance; None where it does not tell.

        The sum of all cells, or the least-squares combination of queries that counts every row once.
        """
        spread = np.broadcast_to(self.std, self.values.shape)
        if self.matrix is None:
            return float(self.values.sum()), float((spread**2).sum())
        import scipy.sparse.linalg

        weighted = scipy.sparse.diags(1 / spread) @ self.matrix
        ones = np.ones(self.matrix.shape[1])
        found = scipy.sparse.linalg.lsmr(weighted.T, ones, atol=1e-10, btol=1e-10, maxiter=4 * len(ones))[0]
        if np.abs(weighted.T @ found - ones).max() > UNBIASED:
            return None
        return float(found @ (self.values / spread)), float(found @ found)

    def __repr__(self) -> str:
        what = " × ".join(self.columns) or "total"
        noise = f"std={float(self.std):g}" if self.std.ndim == 0 else f"std={self.std.min():g} to {self.std.max():g}"
        asked = "" if self.matrix is None else f", {self.matrix.shape[0]:,} queries"
        return f"noisy({what}: {self.values.size:,} numbers{asked}, {noise})"


def noisy(columns: Sequence[str], values: npt.ArrayLike, std: npt.ArrayLike, query: Any = None) -> Noisy:
    """A noisy answer for `hedgerow.fit`: counts over `columns`, or `query` · counts, with the noise's `std`.

    Args:
        columns: The columns, in the order of the axes of `values`.
        values: An axis for each column, or flat (the last column runs fastest); with a query one number for each row
            of it.
        std: The standard deviation of the noise: one number, or one for each value.
        query: A matrix, dense or sparse, with a row for each value and a column for each cell.
    """
    return Noisy(columns, values, std, query)


def _sparse(query: Any) -> Any:
    import scipy.sparse

    matrix = scipy.sparse.csr_matrix(query, dtype=np.float64)
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise HedgerowError("bad-query", "a query needs at least one row, and a column for each cell.")
    return matrix
