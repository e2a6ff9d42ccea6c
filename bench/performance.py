"""How the cost of the model engine grows, and the page docs/studies/performance.md, with the tables of `bench.costs`.

`python -m bench.performance` measures everything (a quarter of an hour, most of it the peer's), `python -m
bench.performance adult-tree@15 cells` only what is named. Rows are kept in build/performance.json, and the page is
written from all that are there.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import costs, model
from bench.model import ROOT, Row, Table, apart, measure, timed
from hedgerow.coded.domain import Domain
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.junction import plan, size
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.progress import Limits

KEPT = ROOT / "build" / "performance.json"
PAGE = ROOT / "docs" / "studies" / "performance.md"


def random_table(domain: Domain, rows: int) -> Table:
    """Each attribute a noisy copy of the one before it."""
    rng = np.random.default_rng(0)
    table: Table = {}
    before = rng.integers(0, 1 << 20, rows)
    for attribute in domain:
        fresh = rng.integers(0, 1 << 20, rows)
        before = np.where(rng.random(rows) < 0.5, before, fresh)
        table[attribute.name] = before * attribute.size >> 20
    return table


def grow_rows(rows: int) -> Row:
    domain = Domain.of({f"x{index}": 20 for index in range(14)})
    structure = plan(domain, itertools.pairwise(domain.names))
    drawn_from = GraphicalModel(structure, np.random.default_rng(0).normal(size=structure.leaf_cells), 1.0)
    return {"rows": f"{rows:,}"} | cost(lambda: drawn_from.draw(rows, np.random.default_rng(0)))


def grow_cliques(number: int) -> Row:
    domain = Domain.of({f"x{index:02}": 10 for index in range(50)})
    windows = [window for start in range(47) for window in itertools.combinations(domain.names[start : start + 4], 3)]
    chosen = np.random.default_rng(0).permutation(sorted(set(windows)))[:number]
    cliques = [domain.marginal(str(name) for name in clique) for clique in chosen]
    measurements = measure(domain, random_table(domain, 50_000), cliques, 15.0)
    tree = size(domain, cliques) / 1e6
    return {"cliques": number, "junction tree MB": tree} | cost(lambda: fit(domain, measurements))


def grow_cells(cells: int) -> Row:
    side = round(math.sqrt(cells / 10))
    domain = Domain.of({"a": side, "b": side, "c": side, "group": 10})
    cliques = [("a", "b", "group"), ("b", "c", "group")]
    measurements = measure(domain, random_table(domain, 50_000), cliques, 15.0)
    asked = f"{domain.cells(cliques[0]):,}"
    return {"cells per clique": asked} | cost(lambda: fit(domain, measurements, limits=Limits(memory=6 << 30)))


def cost(work: Callable[[], Any]) -> Row:
    """CPU seconds, and by how much memory was higher at its peak than before."""
    ctypes.CDLL(None).malloc_trim(0)  # give back what earlier work has freed
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    seconds, _ = timed(work)
    return {"CPU s": seconds, "peak MB": (_memory("VmHWM") - before) / 1024}


def _memory(key: str) -> int:
    """A line of this process's status, in kB."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key)]
    return int(line.split()[1])


GROWTH: dict[str, tuple[str, Callable[[int], Row], Sequence[int]]] = {
    "rows-out": (
        "Rows drawn (14 attributes of 20 values, a chain)",
        grow_rows,
        [10**power for power in range(4, 8)],
    ),
    "cliques": (
        "Cliques fitted (triples of neighbours among 50 attributes of 10 values, 50,000 rows, σ = 15)",
        grow_cliques,
        [10, 20, 40, 80],
    ),
    "cells": (
        "Cells per clique (two overlapping triples, 50,000 rows, σ = 15)",
        grow_cells,
        [10**power for power in range(3, 8)],
    ),
}


def markdown(rows: Sequence[Row]) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [keys, ["---"] * len(keys), *([_text(row.get(key)) for key in keys] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else value
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def page(kept: dict[str, list[Row]]) -> str:
    compared = [
        *(name for name in model.COMPARISONS if name in kept),
        *(sorted(set(kept) - {*model.COMPARISONS, *GROWTH})),
    ]
    explained = (model.__doc__ or "").split("\n\n")[1]
    parts = [
        "# Performance",
        "Written by `python -m bench.performance` and `python -m bench.costs`. CPU seconds on one thread. Tables\n"
        "larger than memory, and databases: [where the table lives](../use/scale.md).",
        *costs.sections(),
        "## The model engine beside mbi 2.0.0",
        explained,
    ]
    for kind in (
        ("rows",),
        ("triples",),
        [name for name in compared if ":" in name],
        [name for name in compared if "@" in name],
    ):
        parts += [markdown([row for name in kind for row in kept[name]])] if set(kind) & set(compared) else []
    parts += ["Below, peak memory is what the work added to that of the process before it."]
    for name, (title, _, _) in GROWTH.items():
        parts += [f"## {title}", markdown(kept[name])] if name in kept else []
    return "\n\n".join(parts) + "\n"


def keep(name: str, rows: list[Row]) -> None:
    """Remember the rows of one benchmark, and write the page again."""
    kept = _kept() | {name: rows}
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False))
    write_page()


def write_page() -> None:
    """docs/studies/performance.md from all that was measured so far."""
    PAGE.write_text(page(_kept()))


def _kept() -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def main() -> None:
    for name in sys.argv[1:] or (*model.COMPARISONS, *GROWTH):
        keep(name, apart(*GROWTH[name][1:]) if name in GROWTH else model.run([name]))


if __name__ == "__main__":
    main()
