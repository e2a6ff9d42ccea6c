"""Made-up tables, public by construction: each module has ROWS, SCHEMA (YAML text) and generate(rows, seed).

Of linked tables (`LINKED`) `generate` makes a table for each name, so many rows of the root.
"""

from __future__ import annotations

import importlib
from typing import Any

SAMPLES = ("acs", "acs-public", "census1940", "households", "opm", "visits")
LINKED = ("households", "visits")


def find(name: str) -> Any:
    """The module of a sample."""
    return importlib.import_module(f"hedgerow.samples.{name.replace('-', '_')}")
