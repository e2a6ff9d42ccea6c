"""Values that many rows share: zeros, top codes, list prices. PRIVATE: exact functions of real rows."""

from __future__ import annotations

import numpy as np

from hedgerow.private.evaluate.metric import Figure
from hedgerow.private.evaluate.raw import RawColumn
from hedgerow.private.evaluate.values import IN_ORDER, columnwise
from hedgerow.schema.arrays import FloatArray

COMMONEST = 5


def commonest(real: FloatArray, most: int = COMMONEST) -> FloatArray:
    """The values that occur most often, the commonest first; of equally common ones the smaller first."""
    values, counts = np.unique(real, return_counts=True)
    return values[np.argsort(-counts, kind="stable")[:most]]


def shares_of(values: FloatArray, among: FloatArray) -> FloatArray:
    """The share of some values (in order) that each of `among` has; 0 where there are none."""
    counts = np.searchsorted(values, among, side="right") - np.searchsorted(values, among, side="left")
    return counts / max(len(values), 1)


def spike_error(real: RawColumn, synthetic: RawColumn) -> float | None:
    """½ Σ |p − q| over the five commonest real values and all others together, among the values that there are."""
    if not len(real.present):
        return None
    if not len(synthetic.present):
        return 1.0
    five = commonest(real.present)
    off = shares_of(synthetic.present, five) - shares_of(real.present, five)
    return float(np.abs(np.append(off, off.sum())).sum()) / 2


SPIKES = columnwise(
    "spikes",
    spike_error,
    IN_ORDER,
    Figure(
        "spikes",
        "mean distance of the shares of the five commonest values of a column and of the rest",
        words="The shares of the commonest values of a column are off by {} together.",
    ),
)
