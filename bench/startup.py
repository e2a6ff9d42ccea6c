"""How long it takes until something happens: `import hedgerow` beside `import numpy`, and `hedgerow --help`."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

RUNS = 7


def cpu_seconds(*command: str) -> float:
    """The least CPU time of several runs of a command, children included."""
    times = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def run() -> list[dict[str, Any]]:
    """CPU seconds beyond those of an empty interpreter."""
    empty = cpu_seconds(sys.executable, "-c", "")
    numpy = cpu_seconds(sys.executable, "-c", "import numpy") - empty
    hedgerow = cpu_seconds(sys.executable, "-c", "import hedgerow") - empty
    command = "from hedgerow.cli import main; main()"
    answer = cpu_seconds(sys.executable, "-c", command, "--help")
    return [
        {"what": "import hedgerow / import numpy", "cpu_s": hedgerow, "peer_cpu_s": numpy, "ratio": hedgerow / numpy},
        {"what": "hedgerow --help", "cpu_s": answer},
    ]


if __name__ == "__main__":
    for row in run():
        print(row)
