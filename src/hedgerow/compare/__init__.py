"""Methods side by side on one table. PRIVATE: every run is compared with the real rows."""

from __future__ import annotations

from hedgerow.compare.grid import Grid, compare
from hedgerow.compare.plan import Cell, ForeignTable, Plan

__all__ = ["Cell", "ForeignTable", "Grid", "Plan", "compare"]
