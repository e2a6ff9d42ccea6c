"""Category and boolean columns: values that are named one by one."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BeforeValidator, model_validator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import CodeArray, is_number, numbers, plain, texts
from hedgerow.schema.column import Column, Encoded, Layout
from hedgerow.schema.reading import Truth, as_number, as_values, as_whole

OTHER = "other"
TRUTH = {"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1, "false": 0, "f": 0, "no": 0, "n": 0, "0": 0}


class ListedColumn(Column):
    """A column whose values are named. What is not named goes to the other-cell, else to the hidden cell."""

    @abstractmethod
    def find(self, array: pa.Array) -> IntArray:
        """The index of every value among the declared ones, −1 where it is not one of them."""

    @abstractmethod
    def spell(self) -> Sequence[Any]:
        """The declared values in order, as the output holds them."""

    def value_labels(self) -> list[str]:
        return [str(value) for value in self.spell()]

    def mark_value(self, mark: str) -> Any:
        """What a mark of a missing value is in the output."""
        return None

    def encode(self, array: pa.Array) -> Encoded:
        array = plain(array)
        layout = self.layout
        codes = self.find(array)
        unlisted = np.flatnonzero(codes < 0)
        if not len(unlisted):
            return Encoded((codes,), np.zeros(len(codes), dtype=bool))
        left = array.take(pa.array(unlisted))
        home = layout.other if layout.other is not None else layout.hidden
        assert home is not None  # one of the two always exists here
        found = _indices(pc.fill_null(texts(left), ""), self.marks)
        numeric = self._numeric_marks(left)
        found = np.where(found < 0, numeric, found)
        codes[unlisted] = np.where(found < 0, home, layout.values + found)
        outside = np.zeros(len(codes), dtype=bool)
        outside[unlisted] = found < 0
        return Encoded((codes,), outside)

    def _numeric_marks(self, array: pa.Array) -> IntArray:
        """Marks such as "-8" in a column that the table holds as numbers."""
        return _match_numbers(array, self.marks)

    def write(self, codes: Sequence[CodeArray], rng: np.random.Generator) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes[0]), self.one_by_one)

    @cached_property
    def one_by_one(self) -> pa.Array:
        """The value of every code."""
        values = [*self.spell(), *map(self.mark_value, self.marks)]
        if self.layout.other is not None and self.layout.other >= len(values):
            values.append(self.other_value)
        return pa.array(values, self.arrow_type)

    @property
    def other_value(self) -> Any:
        """What the other-cell is in the output."""
        return None


class Category(ListedColumn):
    """Values exactly as written, unordered unless declared otherwise; they come back as text, or as numbers."""

    type: Literal["category"] = "category"
    values: Annotated[Literal["private"] | tuple[str, ...], BeforeValidator(as_values)]
    ordered: Truth = False
    dtype: Literal["text", "integer", "number"] = "text"
    """What the values come back as: codes that are whole numbers in the table are whole numbers again."""
    discovered: Truth = False

    @property
    def arrow_type(self) -> pa.DataType:
        return {"text": pa.string(), "integer": pa.int64(), "number": pa.float64()}[self.dtype]

    @model_validator(mode="after")
    def _check(self) -> Category:
        if isinstance(self.values, str):
            return self
        if not self.values and not self.discovered:
            raise Fault("no-values", "values: the list is empty")
        twice = [value for value, count in Counter(self.values).items() if count > 1]
        if twice:
            raise Fault("value-twice", f'values: "{twice[0]}" stands twice')
        both = [mark for mark in self.marks if mark in self.values]
        if both:
            raise Fault("missing-is-a-value", f'missing: "{both[0]}" is also one of the values')
        self._check_dtype()
        return self

    def _check_dtype(self) -> None:
        if self.dtype == "text":
            return
        if self.other or self.discovered:
            raise Fault(
                "dtype-without-other",
                f"dtype: {self.dtype} values have no word for other; leave `other` out, or the dtype",
            )
        spelled = [self._number(value) for value in self.listed]
        strange = [value for value, number in zip(self.listed, spelled, strict=True) if number is None]
        if strange:
            raise Fault("dtype-misfit", f'dtype: "{strange[0]}" is no {self.dtype}')
        if len(set(spelled)) != len(spelled):
            raise Fault("value-twice", f"dtype: two of the values are the same {self.dtype}")

    def _number(self, value: str) -> int | float | None:
        try:
            return as_whole(value) if self.dtype == "integer" else float(as_number(value))
        except ValueError:
            return None

    @property
    def has_order(self) -> bool:
        return self.ordered

    @property
    def discovery(self) -> str | None:
        return "values" if self.values == "private" else None

    @property
    def listed(self) -> tuple[str, ...]:
        """The values known so far: none while they wait for discovery."""
        return () if isinstance(self.values, str) else self.values

    @cached_property
    def layout(self) -> Layout:
        other = self.listed.index(OTHER) if self.other and OTHER in self.listed else None
        return self._lay_out(len(self.listed), other=other, needs_hidden=True)

    def find(self, array: pa.Array) -> IntArray:
        if pa.types.is_dictionary(array.type):
            return _through_dictionary(array, self.find)
        if pa.types.is_boolean(array.type):
            return _match_truth(array, self.listed)
        if is_number(array.type):
            return _match_numbers(array, self.listed)
        spelled = texts(array)
        if "" in self.listed:
            spelled = pc.fill_null(spelled, "")
        return _indices(spelled, self.listed)

    def value_labels(self) -> list[str]:
        return list(self.listed)

    def spell(self) -> Sequence[Any]:
        return self.listed if self.dtype == "text" else [self._number(value) for value in self.listed]

    def mark_value(self, mark: str) -> Any:
        return (mark or None) if self.dtype == "text" else self._number(mark)

    @property
    def other_value(self) -> str:
        return OTHER

    def open_values(self, array: pa.Array) -> pa.Array:
        """Values as text for a private discovery; null where the value is missing or a mark."""
        spelled = texts(plain(array))
        marked = pc.is_in(spelled, pa.array([*self.marks, ""], spelled.type))
        return pc.if_else(marked, None, spelled)


class Boolean(ListedColumn):
    """True or false, however it is spelled: true/false, t/f, yes/no, y/n, 1/0, in any case."""

    arrow_type: ClassVar[pa.DataType] = pa.bool_()

    type: Literal["boolean"] = "boolean"

    @property
    def has_order(self) -> bool:
        return False

    @cached_property
    def layout(self) -> Layout:
        return self._lay_out(2, needs_hidden=True)

    def find(self, array: pa.Array) -> IntArray:
        if pa.types.is_dictionary(array.type):
            return _through_dictionary(array, self.find)
        if is_number(array.type) or pa.types.is_boolean(array.type):
            read = numbers(array).values
            return np.where(read == 1, 1, np.where(read == 0, 0, -1))
        word = _indices(pc.utf8_lower(pc.utf8_trim_whitespace(texts(array))), tuple(TRUTH))
        return np.array([*TRUTH.values(), -1], dtype=np.int64)[word]

    def spell(self) -> Sequence[bool]:
        return (False, True)


def _indices(spelled: pa.Array, values: Sequence[str]) -> IntArray:
    """The index of each text in a list, −1 where it is not in it."""
    found = pc.fill_null(pc.index_in(spelled, pa.array(list(values), spelled.type)), -1)
    return np.array(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _match_numbers(array: pa.Array, values: Sequence[str]) -> IntArray:
    """Numbers against values that spell one: 39 and 39.0 are "39", 6001 is "06001" unless "6001" is listed too."""
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not is_number(kind) or not values:
        return np.full(len(array), -1, dtype=np.int64)
    spelled = numbers(pa.array(list(values), pa.string())).values
    times = Counter(spelled[~np.isnan(spelled)].tolist())
    exact = {str(int(number)) for number in times if np.isfinite(number) and number == int(number)}
    known = [
        (number, index)
        for index, number in enumerate(spelled.tolist())
        if number == number and (times[number] == 1 or values[index] in exact)
    ]
    if not known:
        return np.full(len(array), -1, dtype=np.int64)
    known.sort()
    ladder = np.array([number for number, _ in known])
    indices = np.array([index for _, index in known], dtype=np.int64)
    read = numbers(array).values
    step = np.minimum(np.searchsorted(ladder, read), len(ladder) - 1)
    return np.where(ladder[step] == read, indices[step], -1)


def _match_truth(array: pa.Array, values: Sequence[str]) -> IntArray:
    """True and false against the only value of each sense: yes, Y, 1 …"""
    senses = [TRUTH.get(value.lower()) for value in values]
    index = [senses.index(sense) if senses.count(sense) == 1 else -1 for sense in (0, 1)]
    read = numbers(array).values
    return np.where(read == 1, index[1], np.where(read == 0, index[0], -1))


def _through_dictionary(array: pa.Array, find: Any) -> IntArray:
    """Look the dictionary's values up once."""
    of_value = np.append(find(plain(array.dictionary)), find(pa.nulls(1, array.type.value_type)))
    indices = pc.fill_null(array.indices.cast(pa.int64()), len(of_value) - 1)
    codes: IntArray = of_value[np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)]
    return codes
