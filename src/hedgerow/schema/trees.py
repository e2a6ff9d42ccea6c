"""Public trees over whole steps: what a private discovery descends, level by level, to see where rows are.

A tree follows from the declaration alone. A block is split into parts that lie in their order and fill it, so a row
lies in one part at most: the parts of one level are a partition, and counting it costs what counting one column costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from hedgerow.coded.domain import IntArray
from hedgerow.schema.arrays import BoolArray, FloatArray


class Block(NamedTuple):
    """A run of whole steps, both ends included, and what tells its tree how to split it."""

    low: int
    high: int
    rank: int

    @property
    def single(self) -> bool:
        return self.low == self.high


class Placed(NamedTuple):
    """Where values lie on each line, NaN where one has a cell of its own elsewhere; and which are not declared."""

    lines: dict[str, FloatArray]
    outside: BoolArray


class Tree(Protocol):
    """A way to split the steps from `low` to `high`."""

    low: int
    high: int
    rhythm: int
    """The remainders of steps by this are told by an attribute of their own; 1 where there is none."""

    @property
    def levels(self) -> int:
        """How often a block can be split until single steps are left, at most; the first time gives `top`."""
        ...

    def top(self) -> list[Block]:
        """The first partition."""
        ...

    def parts(self, block: Block) -> list[Block]:
        """What fills a block that is not a single step; one part alone, finer to split, where a bound cuts it."""
        ...

    def runs(self, block: Block, depth: int) -> int:
        """About how many `starts` there are."""
        ...

    def starts(self, block: Block, depth: int) -> IntArray:
        """Where the parts begin into which a block is split after `depth` times, or finer; the first is its own."""
        ...


class Decimal:
    """Sign and decade, then digit by digit; the round number at the head of a block is a part of its own.

    A decade costs what a decade costs, so bounds of ten millions are no worse than bounds of a hundred; and 0, 500 or
    2000, where people heap, show before anything is known of their surroundings.
    """

    rhythm = 1

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high

    @property
    def levels(self) -> int:
        return len(str(max(abs(self.low), abs(self.high)))) + 1

    def top(self) -> list[Block]:
        digits = range(1, self.levels)
        below = (Block(1 - 10**digit, -(10 ** (digit - 1)), digit - 1) for digit in reversed(digits))
        above = (Block(10 ** (digit - 1), 10**digit - 1, digit - 1) for digit in digits)
        blocks = self._within([*below, Block(0, 0, 0), *above])
        while len(blocks) == 1 and not blocks[0].single:
            blocks = self.parts(blocks[0])
        return blocks

    def parts(self, block: Block) -> list[Block]:
        if block.high < 0:
            mirrored = Decimal(-self.high, -self.low).parts(Block(-block.high, -block.low, block.rank))
            return [Block(-part.high, -part.low, part.rank) for part in reversed(mirrored)]
        width = 10**block.rank
        found: list[Block] = []
        for begin in range(block.low - block.low % width, block.high + 1, width):
            low, high = max(begin, block.low), min(begin + width - 1, block.high)
            if low == begin and low < high:
                found.append(Block(low, low, 0))
                low += 1
            found.append(Block(low, high, max(block.rank - 1, 0)))
        return found

    def runs(self, block: Block, depth: int) -> int:
        width = int(10 ** max(block.rank - depth + 1, 0))
        return (block.high - block.low + 1) // width * (2 if width > 1 else 1) + 1

    def starts(self, block: Block, depth: int) -> IntArray:
        width = 10 ** max(block.rank - depth + 1, 0)
        heads = np.arange(-(-block.low // width), block.high // width + 1, dtype=np.int64) * width
        starts = np.unique(np.concatenate([[block.low], heads, heads + 1]))
        return starts[starts <= block.high]

    def _within(self, blocks: Iterable[Block]) -> list[Block]:
        cut = (Block(max(block.low, self.low), min(block.high, self.high), block.rank) for block in blocks)
        return [block for block in cut if block.low <= block.high]


class Flat:
    """Single steps, all at once."""

    levels = 1
    rhythm = 1

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high

    def top(self) -> list[Block]:
        return [Block(step, step, 0) for step in range(self.low, self.high + 1)]

    def parts(self, block: Block) -> list[Block]:
        return [block]

    def runs(self, block: Block, depth: int) -> int:
        return 1

    def starts(self, block: Block, depth: int) -> IntArray:
        return np.array([block.low], dtype=np.int64)


class Ladder:
    """Runs of ever smaller widths, each a multiple of the next: hours, ten minutes, minutes.

    The first step of a run is a part of its own, like the round number at the head of a decade's block.
    """

    rhythm = 1

    def __init__(self, low: int, high: int, widths: tuple[int, ...]):
        self.low, self.high = low, high
        self._widths = widths

    @property
    def levels(self) -> int:
        return len(self._widths)

    def top(self) -> list[Block]:
        return self.parts(Block(self.low, self.high, 0))

    def parts(self, block: Block) -> list[Block]:
        width = self._widths[block.rank]
        found: list[Block] = []
        for begin in range(block.low - block.low % width, block.high + 1, width):
            low, high = max(begin, block.low), min(begin + width - 1, block.high)
            if low == begin and low < high and block.rank:
                found.append(Block(low, low, block.rank))
                low += 1
            found.append(Block(low, high, min(block.rank + 1, len(self._widths) - 1)))
        return found

    def runs(self, block: Block, depth: int) -> int:
        return (block.high - block.low + 1) // self._width(block, depth) * 2 + 1

    def starts(self, block: Block, depth: int) -> IntArray:
        width = self._width(block, depth)
        heads = np.arange(-(-block.low // width), block.high // width + 1, dtype=np.int64) * width
        starts = np.unique(np.concatenate([[block.low], heads, heads + 1]))
        return starts[starts <= block.high]

    def _width(self, block: Block, depth: int) -> int:
        return self._widths[min(block.rank + depth - 1, len(self._widths) - 1)]


class Calendar:
    """Days since 1970 by year, month and day."""

    levels = 3
    rhythm = 7

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high

    def top(self) -> list[Block]:
        return self.parts(Block(self.low, self.high, 0))

    def parts(self, block: Block) -> list[Block]:
        if block.rank == len(_TURNS):
            return [Block(day, day, block.rank) for day in range(block.low, block.high + 1)]
        begins = _turns(block, _TURNS[block.rank]).tolist()
        return [Block(begin, end - 1, block.rank + 1) for begin, end in pairwise([*begins, block.high + 1])]

    def runs(self, block: Block, depth: int) -> int:
        days = block.high - block.low + 1
        return days if block.rank + depth > len(_TURNS) else days // 28 + 1

    def starts(self, block: Block, depth: int) -> IntArray:
        if block.rank + depth > len(_TURNS):
            return np.arange(block.low, block.high + 1, dtype=np.int64)
        return _turns(block, _TURNS[block.rank + depth - 1])


_TURNS = ("Y", "M")
"""NumPy's units: into years, then into months; then into days."""


def _turns(block: Block, unit: str) -> IntArray:
    """The first day of a block, and those on which a year or a month begins."""
    first, last = (np.datetime64(day, "D").astype(f"datetime64[{unit}]") for day in (block.low, block.high))
    begins = np.arange(first, last + 1).astype("datetime64[D]").astype(np.int64)
    begins[0] = block.low
    return begins
