"""What is drawn from releases, as digests: run it with other versions or on another computer, and compare.

    python -m bench.redraw tests/support/corpus/releases-0.1/*.release > here.txt
    NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL" python -m bench.redraw … | diff here.txt -
    OPENBLAS_CORETYPE=Prescott python -m bench.redraw … | diff here.txt -
    GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F python -m bench.redraw … | diff here.txt -

The file stands by itself, so that an environment with nothing but Hedgerow can run it too: python bench/redraw.py ….
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from hedgerow.release.bundle import Release

ROWS, SEED = 5_000, 5


def digest(path: str) -> str:
    """Of the rows of every table, value by value."""
    drawn = Release.load(path).sample(ROWS, SEED)
    found = hashlib.sha256()
    for table in drawn.values() if isinstance(drawn, dict) else [drawn]:
        for column in table.columns:
            found.update(repr(column.to_pylist()).encode())
    return found.hexdigest()


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(Path(each).name, digest(each))
