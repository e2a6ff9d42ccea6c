"""One call of a benchmark in a process of its own, on one thread: nothing that came before warms it up or counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}


def in_a_process(module: str, function: str, *words: Any) -> dict[str, Any]:
    """What `module.function(*words)` returns, or why it failed. The words must read back from their repr."""
    call = f"import json; from {module} import *; print(json.dumps({function}({', '.join(map(repr, words))})))"
    done = subprocess.run(
        [sys.executable, "-c", call],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **ONE_THREAD},
        check=False,
    )
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def needed(found: dict[str, Any]) -> dict[str, Any]:
    """The same; a call that failed ends the benchmark."""
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found
