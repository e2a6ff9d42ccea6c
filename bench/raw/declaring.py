"""What somebody says of a column who has not seen its values."""

from __future__ import annotations

from typing import Any

Declared = dict[str, dict[str, Any]]
Made = tuple[dict[str, Any], Declared]
"""The columns of a table that is made up, and what is said of some of them."""


def whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "min": low, "max": high}


def number(low: float, high: float, decimals: int) -> dict[str, Any]:
    return {"type": "number", "min": low, "max": high, "decimals": decimals}
