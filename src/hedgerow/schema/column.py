"""What every kind of column has in common.

A column's codes are laid out as: its own cells (bins or values), special values, marks for missing values, the
other-cell, the hidden cell. All of them follow from the declaration, so the size of a column never depends on rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, BeforeValidator, ConfigDict

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.schema.arrays import BoolArray, CodeArray, texts
from hedgerow.schema.file import Signs
from hedgerow.schema.reading import Text, Truth, as_missing

Missing = Annotated[bool | dict[str, str], BeforeValidator(as_missing)]


class Encoded(NamedTuple):
    """Codes, one array per attribute, and which values the declaration does not hold."""

    codes: tuple[IntArray, ...]
    outside: BoolArray


@dataclass(frozen=True)
class Layout:
    """Where each sort of cell stands among a column's codes."""

    own: int
    special: int
    marks: tuple[str, ...]
    other: int | None
    hidden: int | None
    size: int

    @property
    def values(self) -> int:
        """How many codes stand for declared values: own cells and special values come first."""
        return self.own + self.special

    def mark(self, mark: str) -> int | None:
        return self.values + self.marks.index(mark) if mark in self.marks else None

    @property
    def null(self) -> int | None:
        """Where nothing at all goes: its declared cell, else the other-cell, else the hidden cell."""
        return next((cell for cell in (self.mark(""), self.other, self.hidden) if cell is not None), None)


class Column(BaseModel, ABC):
    """One declared column. Each kind owns how values become codes and codes become values again."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    arrow_type: ClassVar[pa.DataType]

    missing: Missing = False
    other: Truth = False
    source: Text | None = None
    strip: Signs = ()

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The cells of this column."""

    def unsaid(self, key: str) -> Any:
        """What one of the keys is where nobody wrote it."""
        return type(self).model_fields[key].default

    @property
    def value_type(self) -> pa.DataType:
        """What the values are, however they are written: a date that comes back as text is a date."""
        return self.arrow_type

    @property
    def has_order(self) -> bool | None:
        """Whether neighbouring codes are alike; None where nobody said."""
        return True

    @property
    def fate(self) -> str:
        """What becomes of values that are not declared, in words."""
        return "kept as “other”" if self.layout.other is not None else "replaced by declared values"

    @property
    def blank_fate(self) -> str:
        """What becomes of a null where no `missing` is declared, in words."""
        return "replaced by declared values" if self.layout.null == self.layout.hidden else "kept as “other”"

    @property
    def unread_fate(self) -> str:
        """What becomes of what cannot be read as this kind of column, in words."""
        return self.fate

    def blank(self, array: pa.Array) -> BoolArray:
        """Which values say nothing at all."""
        return np.asarray(pc.fill_null(pc.equal(texts(array), ""), True).to_numpy(zero_copy_only=False), dtype=bool)

    def unread(self, array: pa.Array) -> BoolArray:
        """Which values say something that cannot be read as this kind of column: text where a number is declared."""
        return np.zeros(len(array), dtype=bool)

    @property
    def discovery(self) -> str | None:
        """What must be bought with budget before this column has a domain: "values", "cuts", or nothing."""
        return None

    @abstractmethod
    def value_labels(self) -> list[str]:
        """What the declared values stand for, in words: bins or values, then special values."""

    def labels(self) -> tuple[list[str], ...]:
        """What every code stands for, in words, for each attribute. It follows from the declaration alone."""
        layout = self.layout
        said = [*self.value_labels(), *(self._mark_label(mark) for mark in self.marks)]
        if layout.other == len(said):
            said.append("other")
        if layout.hidden is not None:
            said.append("fits nothing declared")
        return (said,)

    def _mark_label(self, mark: str) -> str:
        return self.missing[mark] if isinstance(self.missing, dict) else "missing"

    def attributes(self, name: str) -> tuple[Attribute, ...]:
        """The coded attributes of a column of this name."""
        ordered = None if self.has_order is None else self.layout.own * self.has_order
        return (Attribute(name, self.layout.size, ordered, self.layout.hidden is not None),)

    @abstractmethod
    def encode(self, array: pa.Array) -> Encoded:
        """Codes of an Arrow array of any type. Never raises, and maps each value by itself."""

    def decode(self, codes: Sequence[CodeArray], rng: np.random.Generator) -> pa.Array:
        """Values of the declared type; hidden cells are filled from the values of the other rows."""
        return self.write(fill_hidden(codes, self.layout, rng), rng)

    @abstractmethod
    def write(self, codes: Sequence[CodeArray], rng: np.random.Generator) -> pa.Array:
        """Values of the declared type; none of the codes is hidden.

        Where every code stands for one value, what comes back is the codes with the values as their dictionary: an
        eighth of the memory, and as fast as nothing at all.
        """

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The marks of missing values; "" stands for a null or an empty field."""
        if isinstance(self.missing, dict):
            return tuple(self.missing)
        return ("",) if self.missing else ()

    def _lay_out(self, own: int, special: int = 0, other: int | None = None, *, needs_hidden: bool) -> Layout:
        """`other`: a cell of its own already stands for everything else."""
        size = own + special + len(self.marks)
        if other is None and self.other:
            other, size = size, size + 1
        hidden = size if needs_hidden and other is None else None
        return Layout(own, special, self.marks, other, hidden, size + (hidden is not None))


def fill_hidden(codes: Sequence[CodeArray], layout: Layout, rng: np.random.Generator) -> list[CodeArray]:
    """Replace hidden cells by the codes of randomly chosen rows that hold a value; by any value where none does."""
    if layout.hidden is None:
        return list(codes)
    hidden = np.flatnonzero(codes[0] == layout.hidden)
    if not len(hidden):
        return list(codes)
    filled = [code.copy() for code in codes]
    donors = np.flatnonzero(codes[0] < layout.values)
    if len(donors):
        chosen = donors[rng.integers(0, len(donors), size=len(hidden))]
        for code in filled:
            code[hidden] = code[chosen]
    else:
        filled[0][hidden] = rng.integers(0, layout.values, size=len(hidden))
    return filled


def plain_value(value: Any) -> Any:
    """A field of a declaration as JSON holds it."""
    if isinstance(value, tuple | list):
        return [plain_value(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value
