"""Made-up tables, public by construction: each module has ROWS, SCHEMA (YAML text) and generate(rows, seed)."""

from __future__ import annotations

import importlib
from typing import Any

SAMPLES = ("acs", "acs-public", "census1940", "opm")


def find(name: str) -> Any:
    """The module of a sample."""
    return importlib.import_module(f"hedgerow.samples.{name.replace('-', '_')}")
