"""What ε means for what somebody believes of a person: arithmetic, for whoever has to choose one."""

from __future__ import annotations

import math


def believed(before: float, epsilon: float) -> float:
    """The most that a release at ε makes of a belief that was held before with probability `before` (δ aside).

    Odds move by a factor of at most e^ε.
    """
    odds = before / (1 - before) * math.exp(min(epsilon, 700.0))
    return odds / (1 + odds)
