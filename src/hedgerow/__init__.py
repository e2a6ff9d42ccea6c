"""Hedgerow: turn a private table into a synthetic one that anyone may read, under differential privacy.

>>> import hedgerow as hr
>>> schema = hr.Schema.load("people.yaml")
>>> release = hr.synthesize("people.csv", schema, hr.Budget(epsilon=1, delta=1e-9))
>>> release.table()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hedgerow.budget.amounts import Budget
from hedgerow.errors import HedgerowError
from hedgerow.progress import Limits

if TYPE_CHECKING:
    from hedgerow import methods
    from hedgerow.compare import compare_tables as compare
    from hedgerow.models.fitted import Fitted, fit
    from hedgerow.models.graphical.noisy import noisy
    from hedgerow.release.bundle import Release
    from hedgerow.run import confirm, synthesize
    from hedgerow.schema import Schema

__version__ = "0.2.0"
__all__ = [
    "Budget",
    "Fitted",
    "HedgerowError",
    "Limits",
    "Release",
    "Schema",
    "__version__",
    "compare",
    "confirm",
    "fit",
    "methods",
    "noisy",
    "synthesize",
]

_LAZY = {
    "Fitted": ("hedgerow.models.fitted", "Fitted"),
    "Release": ("hedgerow.release.bundle", "Release"),
    "Schema": ("hedgerow.schema", "Schema"),
    "confirm": ("hedgerow.run", "confirm"),
    "fit": ("hedgerow.models.fitted", "fit"),
    "noisy": ("hedgerow.models.graphical.noisy", "noisy"),
    "synthesize": ("hedgerow.run", "synthesize"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Heavy parts are imported when first used: `import hedgerow` stays light."""
    if name in ("compare", "methods"):
        return importlib.import_module(f"hedgerow.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'hedgerow' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    return getattr(importlib.import_module(module), attribute)
