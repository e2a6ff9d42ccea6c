"""Ordered codes at half, a quarter, an eighth of their resolution: a public taxonomy of any number or date."""

from __future__ import annotations

import numpy as np

from hedgerow.coded.domain import Attribute, IntArray


def heights(attribute: Attribute) -> int:
    """How many levels an attribute has, its own codes the first: each halves the ordered codes, while two are left."""
    return max(1, ((attribute.ordered or 1) - 1).bit_length())


def halved(attribute: Attribute, level: int) -> IntArray:
    """The code of every code after so many halvings. Those beyond the ordered ones (missing, other) stay apart."""
    ordered = attribute.ordered or 0
    coarse: IntArray = np.arange(ordered, dtype=np.int64) >> level
    beyond = np.arange(attribute.size - ordered, dtype=np.int64) + (int(coarse[-1]) + 1 if ordered else 0)
    return np.concatenate([coarse, beyond])


def size_at(attribute: Attribute, level: int) -> int:
    """How many codes are left."""
    ordered = attribute.ordered or 0
    return attribute.size - ordered + -(-ordered >> level)
