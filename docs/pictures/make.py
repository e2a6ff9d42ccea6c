"""Makes every picture of README and docs/ anew, and what the tutorial prints: `make pictures`. All from made-up tables.

Pictures of the studies are drawn by their benchmarks, and architecture.svg by hand.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

TUTORIAL = ROOT / "docs" / "use" / "tutorial.md"
COMMANDS = (
    "hedgerow demo",
    "hedgerow evaluate demo/private.parquet demo/synthetic.parquet -s demo/private.yaml --target sex "
    "--report demo/evaluation.html",
    "hedgerow example opm -o people.parquet --rows 10000",
    "hedgerow compare people.parquet -s people.yaml --methods aim,mst --epsilons .1,1,10 --runs 2 -o demo/comparison",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        tutorial()
        for line in COMMANDS:
            print(f"$ {line}", flush=True)
            subprocess.run([sys.executable, "-m", *line.split()], check=True, stdout=subprocess.DEVNULL)
        for drawing in (
            ["demo.py", "demo/private.parquet", "demo/synthetic.parquet"],
            ["pages.py", "demo"],
            ["studio.py"],
        ):
            subprocess.run([sys.executable, str(HERE / drawing[0]), *drawing[1:]], check=True)


def tutorial() -> None:
    """Runs the cells in order; what each printed goes below it, what was drawn into pictures/tutorial."""
    import blocks

    names: dict[str, object] = {"__name__": "__main__"}
    text = TUTORIAL.read_text(encoding="utf-8")
    for block in blocks.blocks(TUTORIAL):
        if block.language == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(block.text, block.where, "exec"), names)
            head = f"```python\n{block.text}```\n\n```text\n"
            before, found, after = text.partition(head)
            if found:
                text = f"{before}{head}{said.getvalue().rstrip()}\n{after[after.index('```') :]}"
        elif block.language == "sh":
            for line, _ in block.commands:
                print(f"$ {line}", flush=True)
                subprocess.run(f"{sys.executable} -m {line}", shell=True, check=True, stdout=subprocess.DEVNULL)
    TUTORIAL.write_text(text, encoding="utf-8")
    (HERE / "tutorial").mkdir(exist_ok=True)
    for drawn in ("plan.svg", "pay.svg"):
        shutil.copy(drawn, HERE / "tutorial" / drawn)


if __name__ == "__main__":
    main()
