"""The coded world: attributes whose values are 0 … size−1, and sets of them.

Everything below the schema speaks only of this world. Columns and attributes are not the same thing
(one column may become two attributes, several columns may become one); `hedgerow.schema` relates them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hedgerow.errors import OptionError, SchemaError, listing, suggestion

Marginal: TypeAlias = tuple[str, ...]
"""Attribute names in the order of their domain; `()` is the marginal with one cell, the total."""

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
CodedTable: TypeAlias = dict[str, Codes]
"""One narrow unsigned array per attribute, all of the same length."""

Counts: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]

Support: TypeAlias = Mapping[Marginal, npt.NDArray[np.bool_]]
"""For some marginals, which cells can occur at all, shaped by the attributes' sizes."""


@dataclass(frozen=True)
class Attribute:
    """A coded variable. The first `ordered` codes stand in their order, neighbours alike: numbers, days, grades.

    0: they are in no order; None: nobody said. Codes for missing and other values come after them.

    `hidden` says that the last code holds what was not declared; it is not written out, and needs no rows of its own.
    """

    name: str
    size: int
    ordered: int | None = None
    hidden: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SchemaError("no-values", f'attribute "{self.name}" has {self.size} values; it needs at least 1.')

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds every code."""
        return np.dtype(np.uint8 if self.size <= 1 << 8 else np.uint16 if self.size <= 1 << 16 else np.uint32)


class Domain:
    """An ordered set of attributes, and which combinations of their codes can occur at all, where somebody said."""

    def __init__(self, attributes: Iterable[Attribute], support: Support | None = None):
        self.attributes: tuple[Attribute, ...] = tuple(attributes)
        self.support: Support = support or {}
        """Public: for some marginals the cells that can occur; the others are structural zeros."""
        self._index = {attribute.name: index for index, attribute in enumerate(self.attributes)}
        self._sizes = {attribute.name: attribute.size for attribute in self.attributes}
        if len(self._index) != len(self.attributes):
            raise SchemaError("duplicate-attribute", "two attributes of a domain have the same name.")

    @classmethod
    def of(cls, sizes: Mapping[str, int]) -> Domain:
        """The domain of attributes with these sizes, of whose order nothing is known."""
        return cls(Attribute(name, size) for name, size in sizes.items())

    @property
    def names(self) -> Marginal:
        return tuple(self._index)

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """The position of an attribute."""
        try:
            return self._index[name]
        except KeyError:
            raise OptionError(
                "unknown-attribute",
                f'unknown attribute "{name}"; attributes: {listing(self._index)}.{suggestion(name, self._index)}',
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash(self.attributes)

    def __repr__(self) -> str:
        return f"Domain({listing(f'{a.name}: {a.size}' for a in self.attributes)})"

    def marginal(self, names: Iterable[str]) -> Marginal:
        """The names once each, in domain order."""
        return tuple(sorted(set(names), key=self.index))

    def shape(self, marginal: Sequence[str]) -> tuple[int, ...]:
        try:
            return tuple([self._sizes[name] for name in marginal])
        except KeyError:
            return tuple(self[name].size for name in marginal)  # says which is unknown

    def cells(self, marginal: Sequence[str]) -> int:
        """How many cells the marginal has, exactly (a Python integer, so it cannot overflow)."""
        return math.prod(self.shape(marginal))

    def kinds(self, name: str) -> IntArray:
        """Codes of an attribute that the support does not tell apart share a number."""
        found: IntArray = np.zeros(self[name].size, dtype=np.int64)
        for marginal, possible in self.support.items():
            if name in marginal:
                slices = np.moveaxis(possible, marginal.index(name), 0).reshape(len(found), -1)
                found = np.unique(np.column_stack([found, slices]), axis=0, return_inverse=True)[1].reshape(-1)
        return found

    def marginals(self, degree: int) -> Iterator[Marginal]:
        """Every marginal of exactly `degree` attributes, in domain order."""
        return itertools.combinations(self.names, degree)


@dataclass(frozen=True)
class Workload:
    """The marginals that matter to the user, each with a weight."""

    weights: Mapping[Marginal, float]

    def __post_init__(self) -> None:
        for marginal, weight in self.weights.items():
            if not (math.isfinite(weight) and weight > 0):
                raise OptionError(
                    "bad-weight", f"the weight of {' × '.join(marginal)} must be a positive number, got {weight}."
                )

    @classmethod
    def degree(cls, domain: Domain, degree: int) -> Workload:
        """Every marginal of `degree` attributes (fewer where the domain has fewer), weight 1."""
        return cls(dict.fromkeys(domain.marginals(min(degree, len(domain))), 1.0))
