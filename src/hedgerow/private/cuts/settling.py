"""From a grown tree to leaves and cells. All of this is post-processing of noisy counts.

A block whose parts are noise stands in for them. Parts that stand out are leaves, or are looked into; what lies between
them stands together as one leaf, or is left to the nearest ones where it is noise. The outermost parts must be beyond
doubt: a tail ends where the noise says that it ends, or a handful of made-up rows a decade too far out would ruin the
mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hedgerow.private.cuts.growing import Node
from hedgerow.schema.leaves import Leaf

ALONE = 2.5
"""A part of so many standard deviations is looked into by itself …"""
SPIKE = 3.0
"""… and a single step amid wider parts needs as many."""
BETWEEN = 1.0
"""What lies between such parts is a leaf above so many, else it belongs to the nearer neighbour."""
TAIL = 4.25
"""A block below the root that lies farther from zero than all others needs so many …"""
OUTERMOST = 2.5
"""… and the outermost ones on each side as far out as those, or inside a block, so many."""
CELL = 2.0
"""A cell holds at least so many standard deviations of the counts that found it, and at least …"""
MOST_CELLS = 100
"""… this part of the rows."""


def settle(root: Node) -> list[list[Leaf]]:
    """The cells of a line."""
    estimated = _Estimates(root)
    found: list[tuple[int, int, float]] = []
    _walk(root, estimated, (True, True), found)
    kept = [leaf for leaf in sorted(found) if leaf[2] > 0] or [(root.block.low, root.block.high, 1.0)]
    noise = max((math.sqrt(part.variance) for part in _parts(root)), default=0.0)
    return _merged(kept, max(CELL * noise, estimated.of[id(root)] / MOST_CELLS))


class _Estimates:
    """Counts that fit all levels best in least squares: every block is the sum of its parts (Hay et al. 2010)."""

    def __init__(self, root: Node):
        self._upward: dict[int, tuple[float, float]] = {}
        self.of: dict[int, float] = {}
        self._up(root)
        self._down(root, self._upward[id(root)][0])

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

    def spread(self, node: Node, parts: int) -> float:
        """The standard deviation of the sum of some parts of a node, whose whole is known too."""
        one, every = node.parts[0].variance, len(node.parts)
        together = 0.0 if math.isinf(node.variance) else (parts * one) ** 2 / (node.variance + every * one)
        return math.sqrt(max(parts * one - together, 0.0))


def _walk(node: Node, estimated: _Estimates, outer: tuple[bool, bool], found: list[tuple[int, int, float]]) -> None:
    """Add the leaves of a node. `outer`: whether nothing that stands out lies beyond it, left and right."""
    parts = node.parts
    counts = [estimated.of[id(part)] for part in parts]
    stands = _stand_out(node, counts, outer)
    if not any(stands):
        found.append((node.block.low, node.block.high, estimated.of[id(node)]))
        return
    first = stands.index(True)
    last = len(stands) - 1 - stands[::-1].index(True)
    place = 0
    while place < len(parts):
        if stands[place]:
            _walk(parts[place], estimated, (outer[0] and place == first, outer[1] and place == last), found)
            place += 1
            continue
        end = next((each for each in range(place, len(parts)) if stands[each]), len(parts))
        beyond = -1 if outer[0] and place < first else 1 if outer[1] and place > last else 0
        found += _run(node, estimated, range(place, end), beyond)
        place = end


def _stand_out(node: Node, counts: Sequence[float], outer: tuple[bool, bool]) -> list[bool]:
    """Which parts are looked into by themselves."""
    parts = node.parts
    singles = all(part.block.single for part in parts)
    least = [(SPIKE if part.block.single and not singles else ALONE) * _std(part) for part in parts]
    stands = [count > bar for count, bar in zip(counts, least, strict=True)]
    reach = _reach(node, counts)
    for side, order in ((-1, range(len(parts))), (1, range(len(parts) - 1, -1, -1))):
        for place in order if outer[side > 0] else ():
            if stands[place]:
                sure = OUTERMOST if _magnitude(parts[place]) <= reach else TAIL
                if not _is_tail(parts[place], side) or counts[place] > sure * _std(parts[place]):
                    break
                stands[place] = False
    return stands


def _reach(node: Node, counts: Sequence[float]) -> float:
    """How far from zero rows lie beyond doubt; inside a block, that is no question."""
    if not math.isinf(node.variance):
        return math.inf
    sure = (part for part, count in zip(node.parts, counts, strict=True) if count > TAIL * _std(part))
    return max(map(_magnitude, sure), default=0)


def _magnitude(node: Node) -> int:
    return max(abs(node.block.low), abs(node.block.high))


def _is_tail(node: Node, side: int) -> bool:
    """Whether a block lies on that side of zero: what is near zero is never far out."""
    return node.block.high < 0 if side < 0 else node.block.low > 0


def _run(node: Node, estimated: _Estimates, run: range, beyond: int) -> list[tuple[int, int, float]]:
    """Parts side by side that do not stand out, as one leaf, or as none where they are noise.

    Beyond the outermost part that stands out, the run ends where its sum from there on is clearest of its noise. Below
    the root, parts differ in width by decades: there each is a leaf of its own.
    """
    parts = [node.parts[place] for place in run]
    if beyond and _is_tail(parts[0] if beyond < 0 else parts[-1], beyond):
        reach = _reach(node, [estimated.of[id(part)] for part in node.parts])
        ordered = [part for part in (parts if beyond > 0 else parts[::-1]) if _magnitude(part) <= reach]
        parts = ordered[: _clearest(node, estimated, ordered)]
    elif sum(estimated.of[id(part)] for part in parts) <= BETWEEN * estimated.spread(node, len(parts)):
        return []
    if not parts:
        return []
    if math.isinf(node.variance):
        return [(part.block.low, part.block.high, estimated.of[id(part)]) for part in parts]
    total = sum(estimated.of[id(part)] for part in parts)
    return [(min(part.block.low for part in parts), max(part.block.high for part in parts), total)]


def _clearest(node: Node, estimated: _Estimates, parts: Sequence[Node]) -> int:
    """How many of these parts, from the first on, hold most in standard deviations; none where that is too little."""
    found, most, total = 0, OUTERMOST, 0.0
    for count, part in enumerate(parts, start=1):
        total += estimated.of[id(part)]
        clear = total / max(estimated.spread(node, count), 1e-9)
        if clear > most:
            found, most = count, clear
    return found


def _merged(leaves: Sequence[tuple[int, int, float]], least: float) -> list[list[Leaf]]:
    """Neighbours that hold less than `least` share a cell, until it holds as much; heavier leaves stay alone."""
    cells: list[list[Leaf]] = []
    held = math.inf
    for first, last, count in leaves:
        leaf = Leaf(first, last, max(1, round(count)))
        if held < least and count < least:
            cells[-1].append(leaf)
            held += count
        else:
            cells.append([leaf])
            held = count
    return cells


def _std(node: Node) -> float:
    return math.sqrt(node.variance)


def _parts(node: Node) -> Iterable[Node]:
    for part in node.parts:
        yield part
        yield from _parts(part)
