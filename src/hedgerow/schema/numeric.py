"""Integer, number and code columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, PrivateAttr, model_validator

from hedgerow.coded.domain import IntArray
from hedgerow.errors import Fault
from hedgerow.schema.arrays import BoolArray, FloatArray, Reading, numbers
from hedgerow.schema.cells import LONGEST_PERIOD, Cells, Intervals, Steps, equal_steps, steps_between
from hedgerow.schema.column import Layout
from hedgerow.schema.endings import ENDING, Digits, Likely, ending_of
from hedgerow.schema.leaves import Cut, Leaf, Leaves, check_leaves, drawable
from hedgerow.schema.ordered import NARROW, WIDEST, HeapedColumn, OrderedColumn, SteppedColumn, declared_edges
from hedgerow.schema.reading import LARGEST, Real, Truth, Whole, as_bins
from hedgerow.schema.trees import Decimal, Flat, Placed, Tree

Bins = Annotated[int | Literal["private"] | tuple[int | float, ...], BeforeValidator(as_bins)]
Closed = Literal["left", "right"]
MOST_BINS = 2**20
MOST_CODES = 2**24
MOST_STEPS = 10**15
"""Of a grid, from 0: so many can be told apart whichever way a number is written."""
MOST_DECIMALS = 15
MANY_DIGITS = 5
"""Last digits are looked at where a whole number of steps has at least so many digits."""
DIGITS = 6
"""Where `decimals` is left out, the range has at least 10^DIGITS steps."""


class Integer(HeapedColumn):
    """Whole numbers between two bounds: one cell each where they are few, in bins, or cut where rows turn out to be."""

    arrow_type: ClassVar[pa.DataType] = pa.int64()

    type: Literal["integer"] = "integer"
    min: Whole
    max: Whole
    bins: Bins | None = None
    closed: Closed = "left"
    special: tuple[Whole, ...] = ()
    heaps: tuple[Whole, ...] = ()
    leaves: Cut | None = None
    endings: Likely | None = None
    discovered: Truth = False
    _each: bool = PrivateAttr(False)

    def with_a_cell_each(self) -> Integer:
        """The same declaration as it was read before wide integers were cut: up to 10,000 values have a cell each."""
        column = Integer(**{name: getattr(self, name) for name in Integer.model_fields})
        if self.max - self.min < WIDEST:
            column._each = True
            vars(column).pop("cells", None)
            vars(column).pop("layout", None)
        return column

    @model_validator(mode="after")
    def _check(self) -> Integer:
        _check_bounds(self.min, self.max)
        _check_special(self.special)
        width = self.max - self.min + 1
        if isinstance(self.bins, int) and not 1 <= self.bins <= width:
            raise Fault("bad-bins", f"bins: {self.bins} bins do not fit {width:,} values")
        if isinstance(self.bins, int) and self.bins > MOST_BINS:
            raise Fault("bad-bins", f"bins: more than {MOST_BINS:,} bins")
        if isinstance(self.bins, tuple):
            starts = self._starts()
            if any(right <= left for left, right in zip(starts, [*starts[1:], self.max + 1], strict=True)):
                raise Fault("empty-bin", "bins: two edges have no whole number between them")
        self._check_heaps()
        if self.leaves is not None:
            _check_cut(self.bins, self.heaps)
            check_leaves(self._leaves(), self.min, self.max, self.own_steps)
        if self.discovery is not None:
            _check_uncut(self.min, self.max, self.own_steps)
        return self

    def _check_heaps(self) -> None:
        if self.heaps and self.bins is None and self.discovery is None:
            raise Fault("heaps-without-bins", "heaps: without `bins` every value has a cell of its own and needs none")
        for index, rule in enumerate(self.heaps):
            if rule < 2:
                raise Fault("bad-heap", f"heaps: {rule} is not a divisor; use whole numbers of at least 2")
            if any(rule % earlier == 0 for earlier in self.heaps[:index]):
                raise Fault(
                    "heap-never-matches",
                    f"heaps: {rule} can never match, an earlier divisor already does; put it first",
                )
        if self.heaps and math.lcm(*self.heaps) > LONGEST_PERIOD:
            raise Fault("bad-heap", f"heaps: the divisors' least common multiple is beyond {LONGEST_PERIOD:,}")

    @property
    def rules(self) -> tuple[int, ...]:
        return self.heaps

    @property
    def discovery(self) -> str | None:
        wide = self.bins is None and self.max - self.min >= NARROW and not self._each
        return "cuts" if self.leaves is None and (wide or self.bins == "private") else None

    @property
    def special_numbers(self) -> tuple[float, ...]:
        return tuple(map(float, self.special))

    @cached_property
    def cells(self) -> Steps:
        if self.leaves is not None:
            return Leaves(self._leaves(), self.min, self.max, self.own_steps, likely=self.endings)
        return Steps(self._starts(), self.max, self.heaps, self.own_steps)

    def _starts(self) -> list[int]:
        if isinstance(self.bins, tuple):
            return steps_between(declared_edges(self.bins, self.min, self.max), self.min, self.closed == "right")
        if isinstance(self.bins, int):
            return equal_steps(self.min, self.max, self.bins)
        return list(range(self.min, self.max + 1)) if self.discovery is None else [self.min]

    def _leaves(self) -> list[list[Leaf]]:
        return [[Leaf(_on_grid(a, 1), _on_grid(b, 1), weight) for a, b, weight in cell] for cell in self.leaves or ()]

    def trees(self) -> dict[str, Tree]:
        return _trees(Decimal(self.min, self.max))

    def habits(self) -> tuple[str, Digits]:
        return "", _digits(Decimal(self.min, self.max))

    def places(self, array: pa.Array) -> Placed:
        numbers, outside = self.settled(array)
        return Placed({"": numbers, ENDING: ending_of(numbers)}, outside)

    def elsewhere(self) -> dict[str, list[int]]:
        return {"": self.own_steps}

    def cut(self, cells: Mapping[str, Sequence[Sequence[Leaf]]]) -> dict[str, Any]:
        if not self.heaps:
            return {"bins": None, "leaves": cells[""]}
        return {"bins": _between(cells[""]), "closed": "left"}  # rows are drawn by divisibility there

    def read(self, array: pa.Array) -> Reading:
        return numbers(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), mask=null if null.any() else None)


class Number(OrderedColumn):
    """Real numbers between two bounds: on a decimal grid and cut where rows turn out to be, or in bins.

    With `decimals`, or without `bins`, a number is a whole number of steps of 10^−decimals: further digits are rounded,
    and none comes back. In bins and without `decimals` it lies on the continuum.
    """

    arrow_type: ClassVar[pa.DataType] = pa.float64()

    type: Literal["number"] = "number"
    min: Real
    max: Real
    decimals: Whole | None = None
    bins: Bins | None = None
    closed: Closed = "left"
    special: tuple[Real, ...] = ()
    leaves: Cut | None = None
    endings: Likely | None = None
    discovered: Truth = False

    @model_validator(mode="after")
    def _check(self) -> Number:
        _check_bounds(self.min, self.max)
        _check_special(self.special)
        if self.min == self.max:
            raise Fault("min-above-max", f"max: must be greater than min {self.min}")
        if self.decimals is not None and not 0 <= self.decimals <= MOST_DECIMALS:
            raise Fault("bad-decimals", f"decimals: must be between 0 and {MOST_DECIMALS}, got {self.decimals}")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MOST_BINS:
            raise Fault("bad-bins", f"bins: must be between 1 and {MOST_BINS:,}, got {self.bins}")
        if self.scale is None:
            if (np.diff(self._edges()) <= 0).any():
                raise Fault("bad-bins", "bins: too many for the range between min and max")
            return self
        self._check_grid(self.scale)
        if self.discovery is not None:
            _check_uncut(*self._bounds(self.scale), self.own_steps)
        if self.leaves is not None:
            _check_cut(self.bins)
            check_leaves(self._leaves(self.scale), *self._bounds(self.scale), self.own_steps)
        return self

    def _check_grid(self, scale: int) -> None:
        if max(abs(self.min), abs(self.max)) * scale > MOST_STEPS:
            hint = "fewer `decimals`, or `bins`" if self.decimals else "`bins` (a count or edges)"
            raise Fault(
                "too-many-steps",
                f"max: more than 10^15 steps of the last decimal from 0 cannot be told apart; use {hint}",
            )
        low, high = self._bounds(scale)
        if low >= high:
            raise Fault(
                "bad-decimals",
                f"decimals: fewer than two numbers with {self.decimals} decimals lie between min and max",
            )
        starts = self._starts(scale)
        if any(right <= left for left, right in zip(starts, [*starts[1:], high + 1], strict=True)):
            raise Fault("empty-bin", f"bins: two edges have no number with {self.decimals} decimals between them")

    @cached_property
    def scale(self) -> int | None:
        """Steps of the grid in one unit; None where the column is in bins on the continuum."""
        if self.decimals is not None:
            return int(10**self.decimals)
        if self.bins is not None and self.bins != "private":
            return None
        fine = DIGITS - math.floor(math.log10(self.max - self.min))
        room = math.floor(math.log10(MOST_STEPS / max(abs(self.min), abs(self.max))))
        return int(10 ** max(0, min(fine, room, MOST_DECIMALS)))

    @property
    def discovery(self) -> str | None:
        open_ = self.bins == "private" or (self.bins is None and not self._is_narrow)
        return "cuts" if self.leaves is None and open_ else None

    @property
    def _is_narrow(self) -> bool:
        """Whether few enough numbers have so many `decimals` between the bounds that each has a cell."""
        if self.decimals is None or self.scale is None:
            return False
        low, high = self._bounds(self.scale)
        return high - low < NARROW

    @property
    def special_numbers(self) -> tuple[float, ...]:
        if self.scale is None:
            return tuple(map(float, self.special))
        return tuple(float(_on_grid(value, self.scale)) for value in self.special)

    @cached_property
    def cells(self) -> Cells:
        if self.scale is None:
            return Intervals(self._edges(), self.closed == "right", self.own_numbers)
        low, high = self._bounds(self.scale)
        if self.leaves is not None:
            return Leaves(self._leaves(self.scale), low, high, self.own_steps, likely=self.endings)
        return Steps(self._starts(self.scale), high, avoid=self.own_steps)

    def _edges(self) -> FloatArray:
        """On the continuum."""
        if isinstance(self.bins, tuple):
            return np.array(declared_edges(self.bins, self.min, self.max), dtype=np.float64)
        count = self.bins if isinstance(self.bins, int) else 1
        share = np.arange(count + 1) / count
        return self.min * (1 - share) + self.max * share

    def _bounds(self, scale: int) -> tuple[int, int]:
        """The first and the last step of the grid; bounds between two steps lie inside."""
        low, high = _on_grid(self.min, scale), _on_grid(self.max, scale)
        return low + (low / scale < self.min), high - (high / scale > self.max)

    def _starts(self, scale: int) -> list[int]:
        low, high = self._bounds(scale)
        if isinstance(self.bins, int):
            return equal_steps(low, high, min(self.bins, high - low + 1))
        if not isinstance(self.bins, tuple):
            return list(range(low, high + 1)) if self.bins is None and self._is_narrow else [low]
        edges = [_on_grid(edge, scale) for edge in declared_edges(self.bins, self.min, self.max)]
        return steps_between(edges, low, self.closed == "right")

    def _leaves(self, scale: int) -> list[list[Leaf]]:
        return [
            [Leaf(_on_grid(first, scale), _on_grid(last, scale), weight) for first, last, weight in cell]
            for cell in self.leaves or ()
        ]

    def trees(self) -> dict[str, Tree]:
        assert self.scale is not None
        return _trees(Decimal(*self._bounds(self.scale)))

    def habits(self) -> tuple[str, Digits]:
        assert self.scale is not None
        return "", _digits(Decimal(*self._bounds(self.scale)))

    def places(self, array: pa.Array) -> Placed:
        numbers, outside = self.settled(array)
        return Placed({"": numbers, ENDING: ending_of(numbers)}, outside)

    def elsewhere(self) -> dict[str, list[int]]:
        return {"": self.own_steps}

    def cut(self, cells: Mapping[str, Sequence[Sequence[Leaf]]]) -> dict[str, Any]:
        assert self.scale is not None
        scale = self.scale
        leaves = [[(first / scale, last / scale, weight) for first, last, weight in cell] for cell in cells[""]]
        return {"bins": None, "leaves": leaves}

    @property
    def fate(self) -> str:
        rounded = "" if self.scale is None or self.layout.other is not None else ", further digits rounded"
        return super().fate + rounded

    def holds(self, place: float) -> bool:
        return self.scale is None or (abs(place) <= LARGEST and place == int(place))

    def read(self, array: pa.Array) -> Reading:
        found = numbers(array)
        if self.scale is None:
            return found
        with np.errstate(over="ignore"):
            return Reading(np.rint(found.values * self.scale), found.empty)

    def to_arrow(self, line: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        values = line.astype(np.float64, copy=False)
        return pa.array(values if self.scale is None else values / self.scale, mask=null if null.any() else None)

    def _spelled(self, line: FloatArray | IntArray) -> list[Any]:
        if self.scale is None:
            return super()._spelled(line)
        return [f"{value:.15g}" for value in self.to_arrow(line, np.zeros(len(line), dtype=bool)).to_pylist()]


class Code(SteppedColumn):
    """Already coded 0 … size−1, and exactly as wide as declared.

    A number that is no code is clipped, a null or text becomes code 0, so that the coded benchmark tables of the field
    keep their sizes; declare `missing` or `other` for a cell of its own.
    """

    arrow_type: ClassVar[pa.DataType] = pa.int64()

    type: Literal["code"] = "code"
    size: Whole
    ordered: Truth | None = None

    @model_validator(mode="after")
    def _check(self) -> Code:
        if not 1 <= self.size <= MOST_CODES:
            raise Fault("bad-code-size", f"size: must be between 1 and {MOST_CODES:,}, got {self.size}")
        return self

    @property
    def has_order(self) -> bool | None:
        return self.ordered

    @cached_property
    def layout(self) -> Layout:
        return self._lay_out(self.size, needs_hidden=False)

    @cached_property
    def cells(self) -> Steps:
        return Steps(np.arange(self.size), self.size - 1)

    def read(self, array: pa.Array) -> Reading:
        return numbers(array)

    def to_arrow(self, numbers: FloatArray | IntArray, null: BoolArray) -> pa.Array:
        return pa.array(numbers.astype(np.int64, copy=False), mask=null if null.any() else None)


def _digits(tree: Decimal) -> Digits:
    return Digits(tree.levels - 1)


def _trees(tree: Decimal) -> dict[str, Tree]:
    """The numbers, and where they have many digits their endings too."""
    return {"": tree, ENDING: Flat(0, len(_digits(tree).names) - 1)} if tree.levels > MANY_DIGITS else {"": tree}


def _check_cut(bins: Any, heaps: tuple[int, ...] = ()) -> None:
    if bins is not None or heaps:
        raise Fault("bad-leaves", "leaves: a column that was cut has neither bins nor heaps")


def _check_uncut(low: int, high: int, own: list[int]) -> None:
    if not drawable([[Leaf(low, high, 1)]], own):
        raise Fault(
            "nothing-to-cut", "special: every value between min and max has a cell of its own, so none is left to cut"
        )


def _on_grid(value: float, scale: int) -> int:
    """The step nearest to a value."""
    return value * scale if isinstance(value, int) else round(value * scale)


def _between(cells: Sequence[Sequence[Leaf]]) -> list[int]:
    """Where one cell ends and the next begins, halfway across what lies between."""
    return [(left[-1].last + right[0].first) // 2 + 1 for left, right in pairwise(cells)]


def _check_bounds(low: float, high: float) -> None:
    if low > high:
        raise Fault("min-above-max", f"min: {low} is greater than max {high}")


def _check_special(special: tuple[float, ...]) -> None:
    if len(set(special)) != len(special):
        raise Fault("value-twice", "special: a value stands twice")
