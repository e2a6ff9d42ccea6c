"""Columns whose values are in order: integers, numbers, codes, dates. They share bounds, special values and marks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, CodeArray, FloatArray, Reading, is_text, plain, texts
from hedgerow.schema.cells import Cells, Steps
from hedgerow.schema.column import Column, Encoded, Layout
from hedgerow.schema.reading import LARGEST

WIDEST = 10_000
NARROW = 150
"""So many whole steps have a cell each; where there are more, and nothing else is said, the column is cut privately."""


class OrderedColumn(Column):
    """Values that read as numbers. What lies beyond the bounds goes to the other-cell, else is clipped."""

    @property
    @abstractmethod
    def cells(self) -> Cells:
        """The bins of the numbers."""

    @abstractmethod
    def read(self, array: pa.Array) -> Reading:
        """The number of every value, in the order of the values."""

    @abstractmethod
    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        """Numbers as values of the declared type."""

    @property
    def fate(self) -> str:
        return super().fate if self.layout.other is not None else "clipped to the bounds"

    @property
    def blank_fate(self) -> str:
        return "coded as 0" if self.layout.null is None else super().blank_fate

    @property
    def unread_fate(self) -> str:
        """What `encode` does with them: the other-cell, else where a null goes."""
        if self.layout.other is not None:
            return super().fate
        return "read as missing" if self.layout.mark("") is not None else self.blank_fate

    def blank(self, array: pa.Array) -> BoolArray:
        return self.read(plain(array)).empty

    def unread(self, array: pa.Array) -> BoolArray:
        numbers, empty = self.read(plain(array))
        return np.isnan(numbers) & ~empty

    @property
    def special_numbers(self) -> tuple[float, ...]:
        """Values that have a cell of their own."""
        return ()

    @cached_property
    def layout(self) -> Layout:
        return self._lay_out(len(self.cells), len(self.special_numbers), needs_hidden="" not in self.marks)

    @cached_property
    def mark_numbers(self) -> dict[str, float]:
        """The marks that are numbers themselves, such as -8; the others can only be text."""
        reading = self.read(pa.array(list(self.marks), pa.string()))
        return {
            mark: number for mark, number in zip(self.marks, reading.values.tolist(), strict=True) if number == number
        }

    def value_labels(self) -> list[str]:
        return [self.span_label(*span) for span in zip(*map(self._spelled, self.cells.spans), strict=True)] + [
            str(value) for value in self._spelled(np.array(self.special_numbers))
        ]

    def span_label(self, first: Any, last: Any) -> str:
        """A bin in words."""
        return f"{first}" if first == last else f"{first} – {last}"

    def _spelled(self, numbers: FloatArray | IntArray) -> list[Any]:
        values = self.to_arrow(numbers, np.zeros(len(numbers), dtype=bool)).to_pylist()
        return [f"{value:.6g}" if isinstance(value, float) else value for value in values]

    def encode(self, array: pa.Array) -> Encoded:
        return self._encoded(array)[0]

    def _encoded(self, array: pa.Array) -> tuple[Encoded, FloatArray]:
        """The codes, and the declared number that stands for each value."""
        array = plain(array)
        numbers, empty = self.read(array)
        unread = np.isnan(numbers)
        inside = self.cells.inside(numbers)
        settled = self.cells.settle(numbers)
        bounded = np.where(unread, self.cells.low, settled)
        codes = self.cells.cell(bounded)
        layout = self.layout
        if layout.other is not None:
            codes[~inside] = layout.other
        if unread.any():
            codes[unread if layout.other is None else empty] = layout.null or 0
            inside[empty] = layout.mark("") is not None
            self._text_marks(array, unread, codes, inside)
        for cell, value in self.single_numbers():
            exact = numbers == value
            codes[exact if layout.other is not None else exact | (settled == value)] = cell
            inside[exact] = True
        return Encoded((codes, *self._classes(bounded, codes)), ~inside), settled

    def settled(self, array: pa.Array) -> tuple[FloatArray, BoolArray]:
        """The number of every value that has a bin, NaN for the others; and which values are not declared."""
        (codes, outside), numbers = self._encoded(array)
        return np.where(codes[0] < self.layout.own, numbers, np.nan), outside

    def single_numbers(self) -> list[tuple[int, float]]:
        """Cells outside the bins that stand for one number: special values, then marks, which win over them."""
        special = [(self.layout.own + nth, value) for nth, value in enumerate(self.special_numbers)]
        marked = [(self.layout.values + self.marks.index(mark), value) for mark, value in self.mark_numbers.items()]
        return special + marked

    def _text_marks(self, array: pa.Array, unread: BoolArray, codes: IntArray, inside: BoolArray) -> None:
        """Marks that are no numbers, such as NA, among the values that could not be read."""
        words = [mark for mark in self.marks if mark and mark not in self.mark_numbers]
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not words or not is_text(kind):
            return
        indices = np.flatnonzero(unread)
        spelled = pc.utf8_trim_whitespace(texts(array.take(pa.array(indices))))
        found = pc.index_in(spelled, pa.array(words, spelled.type))
        word: IntArray = np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
        cells = np.array([self.layout.mark(mark) for mark in words], dtype=np.int64)
        codes[indices[word >= 0]] = cells[word[word >= 0]]
        inside[indices[word >= 0]] = True

    def _classes(self, bounded: FloatArray, codes: IntArray) -> tuple[IntArray, ...]:
        """Codes of further attributes; heaps have one."""
        return ()

    def write(self, codes: Sequence[CodeArray], rng: np.random.Generator) -> pa.Array:
        if self.cells.single:
            return pa.DictionaryArray.from_arrays(pa.array(codes[0]), self.one_by_one)
        cells = _whole(codes[0])
        numbers = self.cells.draw(self._own_cells(cells), _whole(codes[1]) if len(codes) > 1 else None, rng)
        return self._as_values(numbers, cells)

    @cached_property
    def one_by_one(self) -> pa.Array:
        """The value of every code, where none stands for more than one: nothing is drawn."""
        cells: IntArray = np.arange(self.layout.size)
        return self._as_values(self.cells.spans[0][self._own_cells(cells)], cells)

    def _own_cells(self, cells: IntArray) -> IntArray:
        """The bins among some cells; any bin for the others."""
        own = cells < self.layout.own
        return cells if own.all() else np.where(own, cells, 0)

    def _as_values(self, numbers: FloatArray | IntArray, cells: IntArray) -> pa.Array:
        """Numbers as values; in cells outside the bins, what those stand for."""
        null = cells >= self.layout.own
        for cell, value in self.single_numbers():
            if self.holds(value):
                here = cells == cell
                numbers[here] = value
                null[here] = False
        return self.to_arrow(numbers, null)

    def holds(self, number: float) -> bool:
        """Whether the declared type can hold this number; a mark that it cannot hold comes back as null."""
        return True

    @property
    def own_numbers(self) -> list[float]:
        """Numbers with a cell of their own outside the bins, which no draw from a bin may return."""
        return [number for number in (*self.special_numbers, *self.mark_numbers.values()) if self.holds(number)]

    @property
    def own_steps(self) -> list[int]:
        """Those that are whole, as far as they can lie in a bin."""
        return [int(number) for number in self.own_numbers if abs(number) <= LARGEST and number == int(number)]


class SteppedColumn(OrderedColumn):
    """Whole steps, cut into runs of integers."""

    @property
    @abstractmethod
    def cells(self) -> Steps: ...

    @property
    def fate(self) -> str:
        return super().fate if self.layout.other is not None else "clipped to the bounds, fractions rounded down"

    def holds(self, number: float) -> bool:
        return abs(number) <= LARGEST and number == int(number)


class HeapedColumn(SteppedColumn):
    """Runs of integers with a second attribute for the divisibility class, which keeps the habit of round numbers."""

    @property
    @abstractmethod
    def rules(self) -> tuple[int, ...]:
        """The divisors, the first that divides a number gives its class."""

    def attributes(self, name: str) -> tuple[Attribute, ...]:
        first = super().attributes(name)
        return (*first, Attribute(f"{name}:heap", len(self.rules) + 1, ordered=0)) if self.rules else first

    def labels(self) -> tuple[list[str], ...]:
        first = super().labels()
        return (*first, [*(f"divisible by {rule}" for rule in self.rules), "by none"]) if self.rules else first

    def _classes(self, bounded: FloatArray, codes: IntArray) -> tuple[IntArray, ...]:
        if not self.rules:
            return ()
        classes = self.cells.divisibility(bounded)
        classes[codes >= self.layout.own] = 0
        return (classes,)


def _whole(codes: CodeArray) -> IntArray:
    """Codes that can be counted on beyond their own width."""
    return codes.astype(np.int64, copy=False)


def declared_edges(bins: tuple[float, ...], low: Any, high: Any) -> list[float]:
    """All edges of a list of bins, the bounds included; refuses what is not a growing list between the bounds."""
    if any(right <= left for left, right in pairwise(bins)):
        raise Fault("edges-must-grow", "bins: the edges must grow")
    if bins and (bins[0] < low or bins[-1] > high):
        raise Fault("edges-out-of-range", f"bins: the edges must lie between min {low} and max {high}")
    return [low, *(edge for edge in bins if low < edge < high), high]
