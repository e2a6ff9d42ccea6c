"""Groups: columns that are one thing, coded jointly, with the impossible combinations left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import CodeArray, texts
from hedgerow.schema.column import Column, Encoded, Layout, fill_hidden
from hedgerow.schema.reading import Text, as_text


def _as_allowed(value: Any) -> Any:
    if value == "public":
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(row, list | tuple) for row in value):
        raise Fault("bad-combinations", "must be a list of combinations such as [[1, 1], [2, 1]], or public")
    return tuple(tuple("" if item is None else as_text(item) for item in row) for row in value)


class Group(BaseModel):
    """The declaration: which columns, and which combinations of their values can occur."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: tuple[Text, ...]
    allowed: Annotated[Literal["public"] | tuple[tuple[str, ...], ...], BeforeValidator(_as_allowed)]
    source: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Group:
        if len(self.columns) < 2 or len(set(self.columns)) != len(self.columns):
            raise Fault("bad-group", "columns: a group needs at least two columns, each named once")
        if self.allowed == "public":
            return self
        if not self.allowed:
            raise Fault("no-combination", "allowed: the list is empty")
        if any(len(row) != len(self.columns) for row in self.allowed):
            raise Fault(
                "bad-combinations", f"allowed: every combination needs {len(self.columns)} values, one for each column"
            )
        return self

    @property
    def name(self) -> str:
        """The name of the joint attribute."""
        return "+".join(self.columns)


def combinations_in(
    columns: Sequence[Column], names: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> list[tuple[str | None, ...]]:
    """The combinations of declared values that occur in rows of a public table, as text; alike codes count once."""
    found: dict[tuple[int, ...], tuple[str | None, ...]] = {}
    for batch in batches:
        arrays = [batch.column(name) for name in names]
        encoded = [column.encode(array) for column, array in zip(columns, arrays, strict=True)]
        declared = ~np.any([each.outside for each in encoded], axis=0)
        codes = np.stack([each.codes[0] for each in encoded], axis=1)[declared]
        distinct, first = np.unique(codes, axis=0, return_index=True)
        rows = pa.array(np.flatnonzero(declared)[first])
        written = [texts(array).take(rows).to_pylist() for array in arrays]
        for combination, row in zip(map(tuple, distinct.tolist()), zip(*written, strict=True), strict=True):
            found.setdefault(combination, row)
    return [found[combination] for combination in sorted(found)]


class GroupEncoding:
    """One attribute for several columns: a code for each allowed combination, and a hidden cell for all others."""

    def __init__(self, group: Group, columns: Sequence[Column]):
        if isinstance(group.allowed, str):
            raise Fault("needs-public-table", "allowed: public waits for a public table")
        self._columns = tuple(columns)
        self.combinations = self._code(group)
        self._steps = self._ladder()
        size = len(self.combinations)
        self._layout = Layout(size, 0, (), None, size, size + 1)
        self.attribute = Attribute(group.name, self._layout.size, ordered=0, hidden=True)

    def _code(self, group: Group) -> IntArray:
        """The allowed combinations as codes of the columns, in the order they are listed."""
        coded = []
        for index, column in enumerate(self._columns):
            listed = [row[index] for row in group.allowed]
            codes, outside = column.encode(pa.array(listed, pa.string()))
            for value, lost in zip(listed, outside & (codes[0] != column.layout.other), strict=True):
                if lost:
                    raise Fault(
                        "undeclared-value", f'allowed: "{value}" is not a declared value of "{group.columns[index]}"'
                    )
            coded.append(codes[0])
        combinations = np.stack(coded, axis=1)
        if len(np.unique(combinations, axis=0)) != len(combinations):
            raise Fault("combination-twice", "allowed: a combination stands twice (after its values are coded)")
        return combinations

    def labels(self) -> list[str]:
        """Every combination in words."""
        said = [column.labels()[0] for column in self._columns]
        named = [" · ".join(said[index][code] for index, code in enumerate(row)) for row in self.combinations.tolist()]
        return [*named, "fits nothing declared"]

    def _ladder(self) -> list[tuple[int, IntArray, IntArray]]:
        """For each column: its size, the known (prefix, code) keys in order, and the number of the prefix they make.

        The last step's numbers are the combination's own.
        """
        prefix: IntArray = np.zeros(len(self.combinations), dtype=np.int64)
        steps = []
        for index, column in enumerate(self._columns):
            size = column.layout.size
            keys, which = np.unique(prefix * size + self.combinations[:, index], return_inverse=True)
            numbers: IntArray = np.arange(len(keys), dtype=np.int64)
            prefix = which.astype(np.int64)
            if index == len(self._columns) - 1:
                numbers = np.argsort(which).astype(np.int64)
            steps.append((size, keys, numbers))
        return steps

    def encode(self, arrays: Sequence[pa.Array]) -> Encoded:
        """The number of each row's combination; rows with another combination go to the hidden cell."""
        prefix: IntArray = np.zeros(len(arrays[0]), dtype=np.int64)
        for column, array, (size, keys, numbers) in zip(self._columns, arrays, self._steps, strict=True):
            key = prefix * size + column.encode(array).codes[0]
            step = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            prefix = np.where((prefix >= 0) & (keys[step] == key), numbers[step], -1)
        codes: IntArray = np.where(prefix < 0, len(self.combinations), prefix)
        return Encoded((codes,), prefix < 0)

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> list[pa.Array]:
        """One array for each column of the group."""
        (filled,) = fill_hidden([codes], self._layout, rng)
        rows = self.combinations[filled]
        return [column.write([rows[:, index]], rng) for index, column in enumerate(self._columns)]
