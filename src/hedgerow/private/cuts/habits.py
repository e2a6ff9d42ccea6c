"""Which last digits a column favours, as far as noisy counts can see. Post-processing of one more level of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts
from hedgerow.private.cuts.growing import Node
from hedgerow.schema.cells import Ranked
from hedgerow.schema.endings import REST, Endings
from hedgerow.schema.leaves import Leaf

ROUNDS = 40
MOST = 1e9
"""How likely an ending may be, at most."""
STANDS_OUT = 4.0
"""An ending is named when its count is off by so many standard deviations …"""
WORTH = 0.002
"""… and by this part of the rows: among millions of them whatever is odd about leaves would look like a habit."""


def habit(root: Node, cells: Sequence[Sequence[Leaf]], endings: Endings) -> Mapping[str, float]:
    """How likely each ending is inside the ranges of a line; empty where nothing stands out.

    `root` holds the counts of all endings. Leaves of one step are known by themselves, so they are taken off first; the
    others would hold each ending as often as there are steps with it.
    """
    counts = np.array([part.count for part in root.parts])
    variance = np.array([part.variance for part in root.parts])
    leaves = [leaf for cell in cells for leaf in cell]
    single = [leaf for leaf in leaves if leaf.first == leaf.last]
    for leaf, place in zip(single, endings.places(np.array([float(leaf.first) for leaf in single])), strict=True):
        if place == place:
            counts[int(place)] -= leaf.weight
            variance[int(place)] += root.parts[0].variance
    wide = [leaf for leaf in leaves if leaf.first < leaf.last]
    if not wide:
        return {}
    held = np.array([float(leaf.weight) for leaf in wide])
    steps = _steps(endings, wide)
    expected = steps @ (held / np.array([leaf.last - leaf.first + 1 for leaf in wide]))
    off = np.abs(counts - expected)
    named = (off > STANDS_OUT * np.sqrt(variance)) & (off > WORTH * held.sum()) & (expected > 0)
    if not named.any():
        return {}
    if endings.few:
        named, counts = expected > 0, np.where(occurring(root, endings), counts, 0.0)
    wanted = np.maximum(np.append(counts[named], held.sum() - counts[named].sum()), 0.0)
    likely = _fitted(np.vstack([steps[named], steps[~named].sum(axis=0)]), held, wanted)
    chosen = [name for name, stands in zip(endings.names, named, strict=True) if stands]
    return {name: float(f"{each:.4g}") for name, each in zip([*chosen, REST], likely.tolist(), strict=True)}


def occurring(root: Node, endings: Endings) -> npt.NDArray[np.bool_]:
    """Which endings occur at all, where they are so few that each of them would be seen."""
    return np.array([not endings.few or part.count > STANDS_OUT * np.sqrt(part.variance) for part in root.parts])


def kept(root: Node, cells: Sequence[Sequence[Leaf]], endings: Endings) -> list[list[Leaf]]:
    """The cells without leaves in which no step has an ending that occurs: noise alone put rows there.

    Their weight goes to the leaf before them, or to the first that stays.
    """
    leaves = [leaf for cell in cells for leaf in cell]
    nameless = np.isnan(endings.places(np.array([float(leaf.first) for leaf in leaves])))
    occurs = iter((nameless | (_steps(endings, leaves)[occurring(root, endings)].sum(axis=0) > 0)).tolist())
    found: list[list[Leaf]] = []
    owed = 0
    for cell in cells:
        stay: list[Leaf] = []
        for leaf in cell:
            if next(occurs):
                stay.append(leaf._replace(weight=leaf.weight + owed))
                owed = 0
            elif stay or found:
                last = stay or found[-1]
                last[-1] = last[-1]._replace(weight=last[-1].weight + leaf.weight)
            else:
                owed += leaf.weight
        if stay:
            found.append(stay)
    return found or [list(cell) for cell in cells]


def _steps(endings: Endings, leaves: Sequence[Leaf]) -> npt.NDArray[np.float64]:
    """How many steps of each leaf have each ending."""
    mirrored = np.array([leaf.last < 0 for leaf in leaves])
    first = np.array([leaf.first for leaf in leaves], dtype=np.int64)
    last = np.array([leaf.last for leaf in leaves], dtype=np.int64)
    low, high = np.where(mirrored, -last, first), np.where(mirrored, -first, last)
    return np.array([Ranked(*endings.residues(name), low, high, ()).count for name in endings.names], dtype=np.float64)


def _fitted(steps: Counts, held: Counts, wanted: Counts) -> Counts:
    """How likely each ending must be for all leaves together to hold each as often as it was counted.

    A narrow leaf may hold steps of one ending alone, whatever the habit; so this is fitted, by scaling in turn.
    """
    likely = np.ones(len(steps))
    for _ in range(ROUNDS):
        weight = steps * likely[:, None]
        made = (weight / np.maximum(weight.sum(axis=0), 1e-300)) @ held
        likely = np.clip(likely * np.where(made > 0, wanted / np.maximum(made, 1e-300), 1.0), 0.0, MOST)
    return likely
