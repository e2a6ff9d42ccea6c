"""Public trees over whole steps: what a private discovery descends, level by level, to see where rows are.

A tree follows from the declaration alone. A block is split into parts that lie in their order and fill it, so a row
lies in one part at most: the parts of one level are a partition, and counting it costs what counting one column costs.
"""

from __future__ import annotations

from collections.abc import Iterable
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


class Blocks(NamedTuple):
    """Many blocks as columns: a line with millions of rows is split into a hundred thousand of them."""

    low: IntArray
    high: IntArray
    rank: IntArray

    @classmethod
    def of(cls, blocks: Iterable[Block]) -> Blocks:
        return cls(*np.array([*blocks], dtype=np.int64).reshape(-1, 3).T)

    @property
    def single(self) -> BoolArray:
        alone: BoolArray = self.low == self.high
        return alone

    def listed(self) -> list[Block]:
        return [Block(*each) for each in zip(*(column.tolist() for column in self), strict=True)]

    def take(self, which: IntArray | BoolArray) -> Blocks:
        return Blocks(self.low[which], self.high[which], self.rank[which])

    def and_then(self, others: Blocks) -> Blocks:
        return Blocks(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


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

    def top(self) -> Blocks:
        """The first partition."""
        ...

    def parts(self, blocks: Blocks) -> tuple[Blocks, IntArray]:
        """What fills each block that is not a single step, one block after the other, and how many parts each has.

        One part alone, finer to split, where a bound cuts it.
        """
        ...

    def runs(self, blocks: Blocks, depth: int) -> int:
        """About how many `starts` there are."""
        ...

    def starts(self, blocks: Blocks, depth: int) -> IntArray:
        """Where the parts begin into which blocks are split after `depth` times, or finer; each begins with its own."""
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

    def top(self) -> Blocks:
        digits = range(1, self.levels)
        below = (Block(1 - 10**digit, -(10 ** (digit - 1)), digit - 1) for digit in reversed(digits))
        above = (Block(10 ** (digit - 1), 10**digit - 1, digit - 1) for digit in digits)
        blocks = Blocks.of(self._within([*below, Block(0, 0, 0), *above]))
        while len(blocks.low) == 1 and not blocks.single[0]:
            blocks, _ = self.parts(blocks)
        return blocks

    def parts(self, blocks: Blocks) -> tuple[Blocks, IntArray]:
        """Below zero as above it, mirrored."""
        below = blocks.high < 0
        low, high = np.where(below, -blocks.high, blocks.low), np.where(below, -blocks.low, blocks.high)
        cut, sizes = _cut(Blocks(low, high, blocks.rank), 10**blocks.rank, alone=np.ones_like(below))
        block, nth = counted_out(sizes)
        turned = below[block]
        cut = cut.take(np.where(turned, np.cumsum(sizes)[block] - 1 - nth, np.arange(len(nth))))
        rank = np.where(cut.rank > 0, 0, np.maximum(blocks.rank[block] - 1, 0))
        return Blocks(np.where(turned, -cut.high, cut.low), np.where(turned, -cut.low, cut.high), rank), sizes

    def runs(self, blocks: Blocks, depth: int) -> int:
        width = 10 ** np.maximum(blocks.rank - depth + 1, 0)
        return _runs(blocks, width, np.where(width > 1, 2, 1))

    def starts(self, blocks: Blocks, depth: int) -> IntArray:
        return _heads(blocks, 10 ** np.maximum(blocks.rank - depth + 1, 0))

    def _within(self, blocks: Iterable[Block]) -> list[Block]:
        cut = (Block(max(block.low, self.low), min(block.high, self.high), block.rank) for block in blocks)
        return [block for block in cut if block.low <= block.high]


class Flat:
    """Single steps, all at once."""

    levels = 1
    rhythm = 1

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high

    def top(self) -> Blocks:
        steps = np.arange(self.low, self.high + 1)
        return Blocks(steps, steps, np.zeros_like(steps))

    def parts(self, blocks: Blocks) -> tuple[Blocks, IntArray]:
        return blocks, np.ones_like(blocks.low)

    def runs(self, blocks: Blocks, depth: int) -> int:
        return len(blocks.low)

    def starts(self, blocks: Blocks, depth: int) -> IntArray:
        return blocks.low


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

    def top(self) -> Blocks:
        return self.parts(Blocks.of([Block(self.low, self.high, 0)]))[0]

    def parts(self, blocks: Blocks) -> tuple[Blocks, IntArray]:
        finest = len(self._widths) - 1
        cut, sizes = _cut(blocks, np.array(self._widths)[blocks.rank], alone=blocks.rank > 0)
        rank = np.repeat(blocks.rank, sizes)
        return Blocks(cut.low, cut.high, np.where(cut.rank > 0, rank, np.minimum(rank + 1, finest))), sizes

    def runs(self, blocks: Blocks, depth: int) -> int:
        return _runs(blocks, self._width(blocks, depth), 2)

    def starts(self, blocks: Blocks, depth: int) -> IntArray:
        return _heads(blocks, self._width(blocks, depth))

    def _width(self, blocks: Blocks, depth: int) -> IntArray:
        return np.array(self._widths)[np.minimum(blocks.rank + depth - 1, len(self._widths) - 1)]


class Calendar:
    """Days since 1970 by year, month and day."""

    levels = 3
    rhythm = 7

    def __init__(self, low: int, high: int):
        self.low, self.high = low, high

    def top(self) -> Blocks:
        return self.parts(Blocks.of([Block(self.low, self.high, 0)]))[0]

    def parts(self, blocks: Blocks) -> tuple[Blocks, IntArray]:
        lows, highs = zip(*map(self._split, blocks.listed()), strict=True)
        sizes = np.array([*map(len, lows)], dtype=np.int64)
        rank = np.repeat(np.minimum(blocks.rank + 1, len(_TURNS)), sizes)
        return Blocks(np.concatenate(lows), np.concatenate(highs), rank), sizes

    @staticmethod
    def _split(block: Block) -> tuple[IntArray, IntArray]:
        """The first and the last day of the years of a span, the months of a year, the days of a month."""
        if block.rank == len(_TURNS):
            days = np.arange(block.low, block.high + 1, dtype=np.int64)
            return days, days
        begins = _turns(block, _TURNS[block.rank])
        return begins, np.append(begins[1:] - 1, block.high)

    def runs(self, blocks: Blocks, depth: int) -> int:
        days = blocks.high - blocks.low + 1
        return int(np.where(blocks.rank + depth > len(_TURNS), days, days // 28 + 1).sum())

    def starts(self, blocks: Blocks, depth: int) -> IntArray:
        return np.unique(np.concatenate([self._starts(block, depth) for block in blocks.listed()]))

    @staticmethod
    def _starts(block: Block, depth: int) -> IntArray:
        if block.rank + depth > len(_TURNS):
            return np.arange(block.low, block.high + 1, dtype=np.int64)
        return _turns(block, _TURNS[block.rank + depth - 1])


_TURNS = ("Y", "M")
"""NumPy's units: into years, then into months; then into days."""


def _turns(block: Block, unit: str) -> IntArray:
    """The first day of a block, and those on which a year or a month begins."""
    first, last = (np.datetime64(day, "D").astype(f"datetime64[{unit}]") for day in (block.low, block.high))
    begins: IntArray = np.arange(first, last + 1).astype("datetime64[D]").astype(np.int64)
    begins[0] = block.low
    return begins


def _cut(blocks: Blocks, width: IntArray, alone: BoolArray) -> tuple[Blocks, IntArray]:
    """Blocks cut at the multiples of a width; where `alone` says so, a multiple is a part of its own, of rank 1.

    Second, into how many parts each block was cut.
    """
    first = blocks.low - blocks.low % width
    block, nth = counted_out((blocks.high - first) // width + 1)
    begin = first[block] + width[block] * nth
    low, high = np.maximum(begin, blocks.low[block]), np.minimum(begin + width[block] - 1, blocks.high[block])
    headed = (low == begin) & (low < high) & alone[block]
    run, nth = counted_out(1 + headed)
    head = headed[run] & (nth == 0)
    low = low[run] + (headed[run] & ~head)
    parts = Blocks(low, np.where(head, low, high[run]), head.astype(np.int64))
    return parts, np.bincount(block[run], minlength=len(first)).astype(np.int64)


def _runs(blocks: Blocks, width: IntArray, parts: IntArray | int) -> int:
    return int(((blocks.high - blocks.low + 1) // width * parts + 1).sum())


def _heads(blocks: Blocks, width: IntArray) -> IntArray:
    """The first steps of blocks, the multiples of their widths, and the steps after those."""
    first = -(-blocks.low // width)
    block, nth = counted_out(np.maximum(blocks.high // width - first + 1, 0))
    heads = (first[block] + nth) * width[block]
    after = (heads + 1)[heads < blocks.high[block]]
    return in_order(blocks.low, heads, after)


def in_order(*steps: IntArray) -> IntArray:
    """Each step of several lists once, ascending."""
    found: IntArray = np.sort(np.concatenate(steps))
    return found[np.diff(found, prepend=found[:1] - 1) > 0]


def counted_out(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """The number of each thing as often as it has members, and the numbers of those members."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
