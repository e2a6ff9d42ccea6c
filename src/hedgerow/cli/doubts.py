"""What is said on stderr of a guarantee that promises next to nothing, before anything is spent on it."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def warn(doubts: Iterable[str]) -> None:
    for doubt in doubts:
        print(f"warning: {doubt}", file=sys.stderr)
