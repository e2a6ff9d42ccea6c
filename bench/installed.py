"""What an installation weighs: `PYTHON bench/installed.py`, by the interpreter of an environment with hedgerow.

Megabytes (10⁶ bytes) of every file that pip has written, compiled ones included, by distribution, and processor time
of importing what Hedgerow imports of it. pip itself is not counted: it was there before.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

IMPORTED = {
    "cryptography": "cryptography.hazmat.primitives.ciphers",
    "hedgerow": "hedgerow",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "pydantic": "pydantic",
    "PyYAML": "yaml",
    "rich": "rich.console",
    "scipy": "scipy.special",
    "sqlglot": "sqlglot",
    "typer": "typer",
}
RUNS = 5


def closure(name: str) -> set[str]:
    """The distributions that a plain installation of one needs, itself included."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        this = re.split(r"[ ;<>=!~\[(]", waiting.pop(), maxsplit=1)[0]
        key = re.sub(r"[-_.]+", "-", this).lower()
        try:
            wanted = importlib.metadata.requires(this) or []
        except importlib.metadata.PackageNotFoundError:  # for another system or Python
            continue
        if key not in found:
            found.add(key)
            waiting += [each for each in wanted if "extra ==" not in each]
    return found


def megabytes(distribution: importlib.metadata.Distribution) -> float:
    """Of the files that its record lists and that are there."""
    files = (Path(str(distribution.locate_file(each))) for each in distribution.files or ())
    return sum(path.lstat().st_size for path in files if path.is_file()) / 1e6


def cpu_ms(module: str) -> float:
    """The least processor time of several imports, beyond that of an empty interpreter."""

    def least(code: str) -> float:
        times = []
        for _ in range(RUNS):
            before = os.times()
            subprocess.run([sys.executable, "-c", code], check=True)
            after = os.times()
            times.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return min(times)

    return 1000 * (least(f"import {module}") - least(""))


def main() -> None:
    needed = closure("hedgerow")
    rows = []
    for each in importlib.metadata.distributions():
        name = each.metadata["Name"]
        if re.sub(r"[-_.]+", "-", name).lower() in needed:
            took = f"{cpu_ms(IMPORTED[name]):.0f}" if name in IMPORTED else ""
            rows.append((megabytes(each), name, each.version, took))
    for size, name, version, took in sorted(rows, reverse=True):
        print(f"{size:7.1f} MB  {took:>5}{' ms' if took else '   '}  {name} {version}")
    print(f"{sum(row[0] for row in rows):7.1f} MB  all {len(rows)}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
