"""Which last digits a column favours, as far as noisy counts can see. Post-processing of one more level of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hedgerow.coded.domain import Counts
from hedgerow.private.cuts.growing import Node
from hedgerow.schema.cells import Ranked
from hedgerow.schema.endings import REST, ending_of, endings, residues_of
from hedgerow.schema.leaves import Leaf

ROUNDS = 40
MOST = 1e9
"""How likely an ending may be, at most."""
STANDS_OUT = 4.0
"""An ending is named when its count is off by so many standard deviations."""


def habit(root: Node, cells: Sequence[Sequence[Leaf]]) -> Mapping[str, float]:
    """How likely each ending is inside the ranges of a column; empty where nothing stands out.

    `root` holds the counts of all endings. Leaves of one step are known by themselves, so they are taken off first; the
    others would hold each ending as often as there are steps with it.
    """
    names = endings(len(root.parts) // 2 - 47)
    counts = np.array([part.count for part in root.parts])
    variance = np.array([part.variance for part in root.parts])
    leaves = [leaf for cell in cells for leaf in cell]
    single = [leaf for leaf in leaves if leaf.first == leaf.last]
    for leaf, place in zip(single, ending_of(np.array([float(leaf.first) for leaf in single])), strict=True):
        if place == place:
            counts[int(place)] -= leaf.weight
            variance[int(place)] += root.parts[0].variance
    wide = [leaf for leaf in leaves if leaf.first < leaf.last]
    if not wide:
        return {}
    held = np.array([float(leaf.weight) for leaf in wide])
    steps = _steps(names, wide)
    expected = steps @ (held / np.array([leaf.last - leaf.first + 1 for leaf in wide]))
    named = (np.abs(counts - expected) > STANDS_OUT * np.sqrt(variance)) & (expected > 0)
    if not named.any():
        return {}
    wanted = np.maximum(np.append(counts[named], held.sum() - counts[named].sum()), 0.0)
    likely = _fitted(np.vstack([steps[named], steps[~named].sum(axis=0)]), held, wanted)
    chosen = [name for name, stands in zip(names, named, strict=True) if stands]
    return {name: float(f"{each:.4g}") for name, each in zip([*chosen, REST], likely.tolist(), strict=True)}


def _steps(names: Sequence[str], leaves: Sequence[Leaf]) -> npt.NDArray[np.float64]:
    """How many steps of each leaf have each ending."""
    mirrored = np.array([leaf.last < 0 for leaf in leaves])
    first = np.array([leaf.first for leaf in leaves], dtype=np.int64)
    last = np.array([leaf.last for leaf in leaves], dtype=np.int64)
    low, high = np.where(mirrored, -last, first), np.where(mirrored, -first, last)
    return np.array([Ranked(*residues_of(name), low, high, ()).count for name in names], dtype=np.float64)


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
