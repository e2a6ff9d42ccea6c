"""One way from a table to a release, for the command line, Python and comparisons: Request → checked → Release."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.run.confirming import confirm
    from hedgerow.run.outputs import Outputs
    from hedgerow.run.request import Checked, Request, chosen_method, synthesize
    from hedgerow.run.run import Run

__all__ = ["Checked", "Outputs", "Request", "Run", "chosen_method", "confirm", "synthesize"]

_PLACES = {
    "Checked": "request",
    "Outputs": "outputs",
    "Request": "request",
    "Run": "run",
    "chosen_method": "request",
    "confirm": "confirming",
    "synthesize": "request",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: commands that make no release start sooner."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
