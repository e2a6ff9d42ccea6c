"""The field's tables: folders with data.parquet and domain.json each, under $HEDGEROW_DATA and nowhere else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

DATA = Path(os.environ.get("HEDGEROW_DATA", "HEDGEROW_DATA-is-not-set"))


def at_hand(*names: str) -> list[str]:
    """Those of the tables that are there; of the others, one line on stderr that they were left out."""
    missing = [name for name in names if not (DATA / name).is_dir()]
    if missing:
        print(f"left out, because not in $HEDGEROW_DATA: {', '.join(missing)}", file=sys.stderr)
    return [name for name in names if name not in missing]
