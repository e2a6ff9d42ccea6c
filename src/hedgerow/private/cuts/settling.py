"""From a grown tree to leaves and cells. All of this is post-processing of noisy counts.

Parts of a block that cannot be told apart share their rows evenly, so a block whose parts are noise stands in for them,
and nothing falls between leaves. What is clearly empty is left out. Decades are no like parts: there the outermost must
be beyond doubt, and rows thin out inside it. A tail ends where the noise says that it ends, or a handful of made-up
rows a decade too far out would ruin the mean.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hedgerow.private.cuts.growing import Node
from hedgerow.schema.leaves import Leaf, reaches_out

APART = 3.0
"""Neighbours whose densities differ by so many standard deviations are told apart."""
SPIKE = 3.0
"""A round number at the head of wider parts stands alone from so many on, by itself or with others alike."""
HELD = 1.0
"""What holds less than so many standard deviations is left to its neighbours …"""
OUTERMOST = 1.5
"""… and at the ends of a line, half a width away from what is held, less than so many, and …"""
STEEP = 1.5
"""… so many more whenever that distance doubles, as far as FAR."""
NEXT = 2.5
"""A decade beside one that holds rows beyond doubt, on the way from zero, needs so many …"""
FARTHER = 0.6
"""… so many more for every empty decade between the two, and …"""
FAR = 4.25
"""… no more than so many, wherever it lies."""
CELL = 2.0
"""A cell holds at least so many standard deviations of the counts that found it, and at least …"""
MOST_CELLS = 100
"""… this part of the rows."""

Ends = tuple[int, ...]
"""The first and the last step of a run; none of nothing."""

Found = tuple[int, int, float]
"""A leaf on its way: both ends, and how many rows it holds."""


def settle(root: Node, rhythm: int = 1) -> list[list[Leaf]]:
    """The cells of a line. With a `rhythm` what cannot be told apart is cut into runs of at least so many steps: which
    step of a week a day is, is an attribute of its own, and known better than how many rows a single day holds.
    """
    estimated = _Estimates(root)
    noise = max((math.sqrt(part.variance) for part in _parts(root)), default=0.0)
    least = max(CELL * noise, estimated.of[id(root)] / MOST_CELLS)
    walk = _Walk(estimated, least, rhythm)
    found = walk.decades(root) if _by_decades(root) else walk.block(root, (True, True), ())
    kept = [leaf for leaf in found if leaf[2] > 0] or [(root.block.low, root.block.high, 1.0)]
    return _merged(kept, least)


class _Estimates:
    """Counts that fit all levels best in least squares: every block is the sum of its parts (Hay et al. 2010)."""

    def __init__(self, root: Node):
        self._upward: dict[int, tuple[float, float]] = {}
        self.of: dict[int, float] = {}
        self._up(root)
        self._down(root, self._upward[id(root)][0])

    def clear(self, part: Node) -> float:
        """How many standard deviations lie between a block's count and nothing: by itself, or with its parts."""
        return max(part.count / math.sqrt(part.variance), self.of[id(part)] / math.sqrt(self._upward[id(part)][1]))

    def _up(self, node: Node) -> tuple[float, float]:
        """Each block's own count averaged with the sum of its parts, and the variance of that."""
        count, variance = node.count, node.variance
        if node.parts:
            below = [self._up(part) for part in node.parts]
            total, spread = sum(one for one, _ in below), sum(other for _, other in below)
            weight = 0.0 if math.isinf(variance) else spread / (spread + variance)
            count, variance = weight * count + (1 - weight) * total, spread * (1 - weight)
        self._upward[id(node)] = count, variance
        return count, variance

    def _down(self, node: Node, count: float) -> None:
        """What the sum of the parts lacks is shared out among them."""
        self.of[id(node)] = count
        if node.parts:
            below = [self._upward[id(part)] for part in node.parts]
            lacking, spread = count - sum(one for one, _ in below), sum(other for _, other in below)
            for part, (one, variance) in zip(node.parts, below, strict=True):
                self._down(part, one + (lacking * variance / spread if spread else 0.0))


@dataclass(frozen=True)
class _Even:
    """Parts side by side that cannot be told apart: each holds rows in proportion to its measure.

    One density is fitted to their counts in least squares: `dot` is the sum of measure times count, `square` that of
    squared measures. A single step weighs next to nothing in it beside its wide neighbour.
    """

    parts: tuple[tuple[Node, float], ...]
    """With the measure of each."""
    dot: float
    square: float
    variance: float
    """Of one count."""
    whole: float
    """Of what is left of the counts of all parts of the block, given that of the block."""

    @property
    def density(self) -> float:
        return self.dot / self.square

    @property
    def clear(self) -> float:
        """What is held, in standard deviations."""
        measure = sum(measure for _, measure in self.parts)
        known = (measure * self.variance) ** 2 / self.whole
        return self.dot / math.sqrt(max(self.square * self.variance - known, 1e-300))

    def apart(self, other: _Even) -> float:
        """How far two densities lie apart, in standard deviations."""
        return abs(self.density - other.density) / math.sqrt(self.variance * (1 / self.square + 1 / other.square))

    def joined(self, other: _Even) -> _Even:
        dot, square = self.dot + other.dot, self.square + other.square
        return _Even(self.parts + other.parts, dot, square, self.variance, self.whole)


class _Walk:
    """The leaves of a tree, block by block."""

    def __init__(self, estimated: _Estimates, least: float, rhythm: int):
        self._estimated = estimated
        self._count = estimated.of
        self._least = least
        self._rhythm = rhythm
        self._reach: dict[int, Ends] = {}

    def decades(self, root: Node) -> list[Found]:
        """The leaves below a root whose parts are decades."""
        held = self._held(root.parts)
        if not any(held):
            return [(root.block.low, root.block.high, self._count[id(root)])]
        first, last = held.index(True), len(held) - 1 - held[::-1].index(True)
        found: list[Found] = []
        for place, part in enumerate(root.parts):
            if held[place] and part.parts:
                beside = _hull(self._ends(other) for at, other in enumerate(root.parts) if held[at] and at != place)
                found += self.block(part, (place == first, place == last), beside, thins=True)
            elif first <= place <= last:
                found.append((part.block.low, part.block.high, self._count[id(part)]))
        return found

    def _held(self, decades: Sequence[Node]) -> list[bool]:
        """Which decades hold rows: from zero outwards, the next one needs less to be believed than a far one.

        As far from zero as rows lie beyond doubt on either side, a mistake does little harm to the mean.
        """
        clear = [self._estimated.clear(part) for part in decades]
        held = [value > FAR for value in clear]
        middle = min(range(len(decades)), key=lambda place: _magnitude(decades[place]))
        sides = [range(middle, len(decades)), range(middle, -1, -1)]
        for outwards in sides:
            empty = 0
            for place in outwards:
                held[place] = held[place] or clear[place] > min(FAR, NEXT + FARTHER * empty)
                empty = 0 if held[place] else empty + 1
        reach = max((_magnitude(part) for part, sure in zip(decades, held, strict=True) if sure), default=0)
        for outwards in sides:
            beyond = [place for place in outwards if not any(held[at] for at in outwards[outwards.index(place) :])]
            near = [place for place in beyond if _magnitude(decades[place]) <= reach]
            sums = [sum(clear[at] for at in near[:count]) / math.sqrt(count) for count in range(1, len(near) + 1)]
            if sums and max(sums) > NEXT:
                held[near[sums.index(max(sums))]] = True
        return held

    def block(self, node: Node, outer: tuple[bool, bool], beside: Ends, thins: bool = False) -> list[Found]:
        """The leaves of a block. `outer`: whether nothing that holds rows lies beyond it, left and right.

        `beside`: from where to where rows are held outside it. `thins`: whether rows thin out with the square of the
        distance from zero where nothing lies beyond.
        """
        thins = thins and (outer[0] if node.block.high < 0 else outer[1] and node.block.low > 0)
        mixed = not all(part.block.single for part in node.parts)
        heads = [part for part in node.parts if mixed and part.block.single]
        whole = node.variance + sum(part.variance for part in node.parts)
        spikes = {
            part.block.low: (even.density * measure, even.clear)
            for even in _told_apart([self._even(head, whole, thins) for head in heads])
            if even.clear > SPIKE
            for part, measure in even.parts
        }
        wide = [part for part in node.parts if not (mixed and part.block.single)]
        runs = self._trimmed(self._runs(wide, whole, thins), outer, beside)
        held = _hull([beside, self._reach_of(runs)])
        alone = {step: count for step, (count, clear) in spikes.items() if not runs or _stays(step, clear, held, outer)}
        found = [(step, step, count) for step, count in alone.items()]
        for place, run in enumerate(runs):
            if isinstance(run, Node):
                ends = (outer[0] and place == 0, outer[1] and place == len(runs) - 1)
                found += self.block(run, ends, _hull([beside, self._reach_of(runs[:place] + runs[place + 1 :])]))
            elif run.clear > HELD:
                found += self._leaves(run, {head.block.low for head in heads}, alone)
        return sorted(found) or [(node.block.low, node.block.high, self._count[id(node)])]

    def _leaves(self, run: _Even, heads: Collection[int], alone: Collection[int]) -> list[Found]:
        """A run cut between its parts, so that each leaf holds enough for a cell; with the heads that are not alone."""
        found: list[Found] = []
        for part, measure in run.parts:
            low, high, count = part.block.low, part.block.high, run.density * measure
            if high < 0:
                high += high + 1 in heads and high + 1 not in alone
            else:
                low -= low - 1 in heads and low - 1 not in alone
            if found and found[-1][1] + 1 == low and not self._fills_a_cell(found[-1]):
                found[-1] = (found[-1][0], high, found[-1][2] + count)
            else:
                found.append((low, high, count))
        return found

    def _fills_a_cell(self, leaf: Found) -> bool:
        return leaf[2] >= self._least and leaf[1] - leaf[0] + 1 >= self._rhythm

    def _trimmed(self, runs: list[_Even | Node], outer: tuple[bool, bool], beside: Ends) -> list[_Even | Node]:
        """The runs without those that are noise at an outer end: the farther away, the clearer one has to be.

        A run of noise moves the mean by its distance. So what is beyond doubt comes first; from there outwards each run
        is measured by how far its middle lies from that, in widths of what is held by then, here and outside the block.
        """
        clear = [self._count[id(run)] / math.sqrt(run.variance) if isinstance(run, Node) else run.clear for run in runs]
        if max(clear, default=0.0) <= OUTERMOST:
            return [run for run in runs if not any(outer)]
        sure = [place for place, each in enumerate(clear) if each >= min(FAR, max(clear))]
        first, last = sure[0], sure[-1]
        held = _hull([beside, self._ends(runs[first]), self._ends(runs[last])])
        for place in range(first - 1, -1, -1):
            if not outer[0] or clear[place] > _needed(self._ends(runs[place]), held):
                first, held = place, _hull([held, self._ends(runs[place])])
        for place in range(last + 1, len(runs)):
            if not outer[1] or clear[place] > _needed(self._ends(runs[place]), held):
                last, held = place, _hull([held, self._ends(runs[place])])
        return runs[first : last + 1]

    def _reach_of(self, runs: Sequence[_Even | Node]) -> Ends:
        """From where to where some runs reach, which stand in their order."""
        return (self._ends(runs[0])[0], self._ends(runs[-1])[1]) if runs else ()

    def _ends(self, run: _Even | Node) -> Ends:
        """From where to where a run reaches; of a block that was looked into, as far as rows lie there beyond doubt."""
        if isinstance(run, _Even):
            return run.parts[0][0].block.low, run.parts[-1][0].block.high
        if id(run) not in self._reach:
            clear = (part for part in run.parts if part.parts or self._count[id(part)] > FAR * math.sqrt(part.variance))
            self._reach[id(run)] = _hull(map(self._ends, clear)) or (run.block.low, run.block.high)
        return self._reach[id(run)]

    def _runs(self, parts: Iterable[Node], whole: float, thins: bool) -> list[_Even | Node]:
        """Parts that were looked into, and between them what can be told apart."""
        found: list[_Even | Node] = []
        run: list[_Even] = []
        for part in parts:
            if part.parts:
                found += [*_told_apart(run), part]
                run = []
            else:
                run.append(self._even(part, whole, thins))
        return [*found, *_told_apart(run)]

    def _even(self, part: Node, whole: float, thins: bool) -> _Even:
        measure = _measure(part, thins)
        return _Even(((part, measure),), measure * self._count[id(part)], measure**2, part.variance, whole)


def _told_apart(run: list[_Even]) -> list[_Even]:
    """Neighbours joined, those that are most alike first, until all can be told apart."""
    run = list(run)
    apart = [one.apart(other) for one, other in pairwise(run)]
    while apart and (least := min(apart)) < APART:
        place = apart.index(least)
        run[place : place + 2] = [run[place].joined(run[place + 1])]
        del apart[place]
        for beside in range(max(place - 1, 0), min(place + 1, len(apart))):
            apart[beside] = run[beside].apart(run[beside + 1])
    return run


def _stays(step: int, clear: float, held: Ends, outer: tuple[bool, bool]) -> bool:
    """Whether a round number may lie there: beyond what is held it has to be as clear as a run."""
    beyond = (outer[0] and step < held[0]) or (outer[1] and step > held[1])
    return not beyond or clear > _needed((step, step), held)


def _needed(beyond: Ends, held: Ends) -> float:
    """How many standard deviations make a run believed that lies beyond what is held."""
    middle, width = (beyond[0] + beyond[1]) / 2, held[1] - held[0] + 1
    away = max(held[0] - middle, middle - held[1]) / width
    return HELD if away <= 0.5 else min(FAR, OUTERMOST + STEEP * math.log2(2 * away))


def _hull(runs: Iterable[Ends]) -> Ends:
    """From the first step of some runs to the last; nothing where there are none."""
    known = [run for run in runs if run]
    return (min(run[0] for run in known), max(run[1] for run in known)) if known else ()


def _measure(node: Node, thins: bool) -> float:
    """How much of evenly spread rows a block would hold; of rows that thin out, in units of those at its near end."""
    low, high = sorted((abs(node.block.low), abs(node.block.high)))
    return 1 / low - 1 / (high + 1) if thins else float(high - low + 1)


def _by_decades(root: Node) -> bool:
    """Whether the parts of a root are decades, which differ in width, rather than alike."""
    widths = [part.block.high - part.block.low + 1 for part in root.parts if not part.block.single]
    return bool(widths) and max(widths) > 5 * min(widths)


def _magnitude(node: Node) -> int:
    return max(abs(node.block.low), abs(node.block.high))


def _merged(leaves: Sequence[Found], least: float) -> list[list[Leaf]]:
    """Neighbours that hold less than `least` share a cell, until it holds as much; heavier leaves stay alone.

    So do tails, of which a few rows more or less move the mean: how many they hold is asked once more, by the method.
    """
    cells: list[list[Leaf]] = []
    held = math.inf
    for place, (first, last, count) in enumerate(leaves):
        leaf = Leaf(first, last, max(1, round(count)))
        tail = place in (0, len(leaves) - 1) and reaches_out(first, last)
        if held < least and count < least and not tail:
            cells[-1].append(leaf)
            held += count
        else:
            cells.append([leaf])
            held = math.inf if tail else count
    return cells


def _parts(root: Node) -> Iterable[Node]:
    left = [*root.parts]
    while left:
        part = left.pop()
        yield part
        left += part.parts
