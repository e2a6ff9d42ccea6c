"""How numbers are written: cents, halves, tens. PRIVATE: exact functions of real rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hedgerow.coded.domain import IntArray
from hedgerow.private.evaluate.metric import Comparison, Figure, Metric
from hedgerow.private.evaluate.raw import RawColumn
from hedgerow.private.evaluate.values import NUMBERS, columnwise
from hedgerow.schema.arrays import FloatArray

FINEST, ROUNDEST = 9, 6
"""Decimals that are told apart (more are one sort), and the highest power of ten that a number may be a multiple of."""
ZERO = 2 * (FINEST + ROUNDEST + 2)
"""The sort of 0, which is a multiple of everything."""
ROUNDING = 4 * np.finfo(np.float64).eps


def decimals(values: FloatArray) -> IntArray:
    """How many decimals each number needs; FINEST + 1 for more than FINEST."""
    return np.maximum(_last_digit(values)[0], 0)


def habits(values: FloatArray) -> IntArray:
    """The sort of each number: where its last digit stands that is not 0, and whether that is a 5."""
    place, digit = _last_digit(values)
    sort = 2 * (place + ROUNDEST) + (digit == 5)
    return np.where(values == 0, ZERO, sort)


def _last_digit(values: FloatArray) -> tuple[IntArray, IntArray]:
    """The last decimal that is not 0 (2: hundredths; −1: tens) and the digit there; FINEST + 1 and 0 beyond."""
    place = np.full(len(values), FINEST + 1, dtype=np.int64)
    digit = np.zeros(len(values), dtype=np.int64)
    with np.errstate(over="ignore"):
        for power in range(FINEST, -ROUNDEST - 1, -1):
            scaled = np.abs(values) * 10.0**power if power >= 0 else np.abs(values) / 10.0**-power
            whole = np.rint(scaled)
            fits = (place == power + 1) & np.isfinite(scaled) & (np.abs(scaled - whole) <= ROUNDING * scaled)
            place[fits] = power
            digit[fits] = np.fmod(whole[fits], 10).astype(np.int64)
    return place, digit


def digit_error(real: RawColumn, synthetic: RawColumn) -> float | None:
    """½ Σ |p − q| over the sorts of `habits`."""
    if not len(real.present):
        return None
    if not len(synthetic.present):
        return 1.0
    shares = [np.bincount(habits(each.present), minlength=ZERO + 1) / len(each.present) for each in (real, synthetic)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2


def finer(real: RawColumn, synthetic: RawColumn) -> float | None:
    """The share of synthetic values that have more decimals than any real one."""
    if not len(real.present) or not len(synthetic.present):
        return None
    return float((decimals(synthetic.present) > decimals(real.present).max()).mean())


_HABITS = columnwise(
    "digits",
    digit_error,
    NUMBERS,
    Figure(
        "digits",
        "mean distance of how numbers are written: the place of the last digit, and whether it is a 5",
        words="Numbers end as they should (cents, halves, tens) but for {} of the values.",
    ),
)
_FINER = columnwise(
    "digits_finer",
    finer,
    NUMBERS,
    Figure(
        "too many digits",
        "synthetic values with more decimals than any real value of their column",
        "percent",
        words="{} of the numbers have more decimals than any real one.",
    ),
)


def _digits(comparison: Comparison) -> dict[str, Any]:
    return {**_HABITS.compute(comparison), **_FINER.compute(comparison)}


DIGITS = Metric("digits", _digits, {**_HABITS.figures, **_FINER.figures}, needs=("values",), beside_samples=True)
