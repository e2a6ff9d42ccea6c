"""Methods side by side on one table or several. PRIVATE: every run is compared with the real rows.

The package can be called: `hr.compare(plan, out)` is `compare_tables`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from hedgerow.compare.grid import Grid, compare
from hedgerow.compare.plan import Cell, ForeignTable, Plan
from hedgerow.compare.study import Results, Study, compare_tables

__all__ = ["Cell", "ForeignTable", "Grid", "Plan", "Results", "Study", "compare", "compare_tables"]


class _Called(ModuleType):
    """A folder has the name that a function should have, too."""

    def __call__(self, *given: Any, **named: Any) -> Results:
        return compare_tables(*given, **named)


sys.modules[__name__].__class__ = _Called
