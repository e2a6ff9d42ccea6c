"""Checks that anyone can run: on our methods, models, engines, metrics and kinds of columns, and on their own."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.audit.column import check_column
    from hedgerow.audit.engine import check_engine
    from hedgerow.audit.method import check_method
    from hedgerow.audit.metric import check_metric
    from hedgerow.audit.model import check_model
    from hedgerow.audit.replay import Violation

__all__ = ["Violation", "check_column", "check_engine", "check_method", "check_metric", "check_model"]

_PLACES = {
    "Violation": "hedgerow.audit.replay",
    "check_column": "hedgerow.audit.column",
    "check_engine": "hedgerow.audit.engine",
    "check_method": "hedgerow.audit.method",
    "check_metric": "hedgerow.audit.metric",
    "check_model": "hedgerow.audit.model",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hedgerow.audit' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
