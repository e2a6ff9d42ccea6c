"""What compares with real rows: metrics, and misfits of a schema. Everything that comes from here is PRIVATE."""

from __future__ import annotations

from hedgerow.private.evaluate.evaluation import METRICS, evaluate
from hedgerow.private.evaluate.marginals import marginal_distances

__all__ = ["METRICS", "evaluate", "marginal_distances"]
