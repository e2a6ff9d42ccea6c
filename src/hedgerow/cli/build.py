"""What this Hedgerow is made of: its version, its kernels, the commit, Python."""

from __future__ import annotations

import importlib
import platform
import subprocess
from pathlib import Path

from hedgerow import __version__

KERNELS = ("_count", "_model", "_records")


def commit() -> str:
    """What the checkout says that this package lies in, or what the kernels were built from; empty if neither."""
    root = Path(__file__).resolve().parents[3]
    if (root / ".git").exists() and (root / "src" / "hedgerow").is_dir():
        asked = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        try:
            return subprocess.run(asked, capture_output=True, encoding="utf-8", check=True).stdout.strip()
        except (OSError, ValueError, subprocess.CalledProcessError):
            pass
    try:
        return str(importlib.import_module("hedgerow._count").commit)
    except ImportError:
        return ""


def kernels() -> dict[str, str]:
    """Each kernel, with the compiler that built it; or why it cannot be loaded."""
    found = {}
    for name in KERNELS:
        try:
            found[name] = str(importlib.import_module(f"hedgerow.{name}").compiler)
        except ImportError as problem:
            found[name] = f"not loaded: {problem}"
    return found


def lines() -> list[str]:
    """What `--version` prints."""
    known = commit()
    by_compiler: dict[str, list[str]] = {}
    for name, compiler in kernels().items():
        by_compiler.setdefault(compiler, []).append(name)
    built = "; ".join(f"{', '.join(names)} ({compiler})" for compiler, names in by_compiler.items())
    return [
        f"hedgerow {__version__}",
        f"commit  {known or 'not known'}",
        f"kernels {built}",
        f"python  {platform.python_version()} ({platform.python_implementation()}, {platform.system()} "
        f"{platform.machine()})",
    ]
