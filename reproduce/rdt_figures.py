"""Figures 1–15 of the random-decision-trees write-up, as SVG, with the private method in the same panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.coded.domain import CodedTable, Counts, Marginal
from hedgerow.methods.rdt import RDT
from hedgerow.models.trees import grow
from reproduce.charts import Panel, histogram, lines, steps
from reproduce.printed_trees import PrintedTrees, leaf_counts, reached, removal_changes
from reproduce.rdt_runs import DOMAIN, EPSILONS, HEIGHTS, LABELS, ORDER, TRIPLES, Original, printed, shares

SHORT = {"year": "FY"}
AGE = ("sex", "race", "age")


def age_alone(original: Original, height: int) -> CodedTable:
    """Figures 1 and 2: the age column alone is drawn anew, without noise."""
    method = PrintedTrees("none", height=height, order=("age",))
    return method.synthesise(original.rows, DOMAIN, np.random.default_rng(0)).rows


def changes(original: Original) -> Counts:
    """Figure 3: how far taking a row away moves its own leaf proportion, for all rows and five trees of age."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(5):
        tree = grow(DOMAIN, "age", 5, rng)
        leaves = reached(tree, original.rows)
        found.append(removal_changes(leaf_counts(tree, leaves, original.rows), leaves, original.rows["age"]))
    return np.concatenate(found)


def draw_all(original: Original, results: Mapping[str, Any], folder: Path) -> None:
    """Write every figure."""
    for number, height in ((1, 5), (2, 7)):
        title = f"Figure {number}. Age within sex and race; trees of height {height}, no noise, only age drawn anew"
        tables = [original.rows, age_alone(original, height)]
        _write(folder, number, within(title, AGE, ["original", "synthetic"], tables))
    _write(folder, 3, figure3(changes(original)))
    for number, what, key in (
        (4, "Laplace noise on proportions, sensitivity .025", "printed P"),
        (5, "Laplace noise on frequencies, sensitivity 1", "printed F"),
        (16, "the private method at the same ε", "private"),
    ):
        name = f"Figure {number}" if number < 16 else "Beside figures 4 and 5"
        title = f"{name}. Mean squared error of node-path shares by tree height: {what}"
        _write(folder, number, errors(title, key, results))
    rng = np.random.default_rng
    proportions = printed("proportions", 1.0, 5, 0.025).synthesise(original.rows, DOMAIN, rng(0)).rows
    frequencies = printed("frequencies", 1.0, 5).synthesise(original.rows, DOMAIN, rng(0)).rows
    private = original.private(RDT(trees=5, height=5, order=ORDER), 1.0)
    for pair, (what, triple) in enumerate(TRIPLES.items()):
        for odd, (stage, made) in enumerate((("proportions, .025", proportions), ("frequencies, 1", frequencies))):
            number = 6 + 2 * pair + odd
            names = ["original", f"printed (noise on {stage}), no guarantee", "private rdt, ε = 1"]
            title = f"Figure {number}. {what[0].upper()}{what[1:]}; five trees of height 5, ε = 1"
            _write(folder, number, within(title, triple, names, [original.rows, made, private]))


def within(title: str, triple: Marginal, names: Sequence[str], tables: Sequence[CodedTable]) -> str:
    """Bars of the last attribute, a panel for each combination of the first two."""
    counted = [shares(rows, triple) for rows in tables]
    first, second = (LABELS[name] for name in triple[:2])
    panels = [
        Panel(f"{first[one]}-{second[two]}", [count[one, two].tolist() for count in counted])
        for one, two in product(range(len(first)), range(len(second)))
    ]
    bars, across = LABELS[triple[2]], len(second)
    width, height = (72, 46) if across == 8 else (144, 90)
    title = f"{title} (bars: {bars[0]} … {bars[-1]})"
    return steps(title, names, panels, across, (width // len(bars) * len(bars), height))


def errors(title: str, key: str, results: Mapping[str, Any]) -> str:
    """A panel for each attribute in the order of synthesis, a line for each ε."""
    panels = [
        Panel(
            f"{place}. {SHORT.get(name, name)}",
            [[results[f"{key} e{e:g} h{h}"]["paths"][name] for h in HEIGHTS] for e in EPSILONS],
        )
        for place, name in enumerate(ORDER, start=1)
    ]
    return lines(title, [f"ε = {e:g}" for e in EPSILONS], panels, [str(h) for h in HEIGHTS], 7, (96, 120))


def figure3(found: Counts) -> str:
    edges = np.logspace(-6, 0, 61)
    counts, _ = np.histogram(np.clip(found, edges[0], 1.0), edges)
    marks = [(0.025, "Δ = .025"), (0.05, "Δ = .05"), (1.0, "the true bound, 1")]
    title = "Figure 3. Change of a row's leaf proportion when the row is removed; age, five trees of height 5"
    return histogram(title, counts.tolist(), edges.tolist(), marks, (600, 160))


def _write(folder: Path, number: int, text: str) -> None:
    name = f"figure-{number:02}.svg" if number < 16 else "figure-04-05-private.svg"
    (folder / name).write_text(text, encoding="utf-8")
