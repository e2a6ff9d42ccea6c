"""The write-up's Δ(f) for each attribute, and what it would save: a table of docs/studies/rdt.md. NOT PRIVATE.

    python -m reproduce.rdt_sensitivity

Section 6 of the write-up suggests a Δ(f) for each attribute; captions 9, 11, 13 and 15 give .025 for noise on
frequencies, where the text and figure 5 have 1. Both are tried here on the made-up personnel table.
"""

from __future__ import annotations

import argparse

import numpy as np

import hedgerow as hr
from hedgerow.coded.domain import CodedTable, Domain
from hedgerow.models.trees import grow
from hedgerow.private.evaluate import marginal_distances
from hedgerow.samples import opm
from reproduce.printed_trees import PrintedTrees, leaf_counts, reached, removal_changes

ATTRIBUTES = ("year", "agency", "occupation", "education", "age", "sex", "race")
HEIGHT, TREES = 5, 5
UPPER = 0.999
"""The "upper region" of what is seen: the share of rows whose change is no larger."""


def personnel(rows: int) -> tuple[Domain, CodedTable]:
    """The table without pay, coded."""
    whole = hr.Schema.parse(opm.SCHEMA)
    declared = whole.to_dict()
    declared["columns"] = {name: declared["columns"][name] for name in whole.columns if name in ATTRIBUTES}
    encoding = hr.Schema.from_dict(declared).encoding()
    return encoding.domain, encoding.encode(opm.generate(rows).select(list(encoding.columns)))


def changes(domain: Domain, rows: CodedTable, label: str, rng: np.random.Generator) -> list[float]:
    """The upper region and the largest of Δ(f), row by row, over an ensemble for one attribute."""
    found = []
    for _ in range(TREES):
        tree = grow(domain, label, HEIGHT, rng)
        leaves = reached(tree, rows)
        found.append(removal_changes(leaf_counts(tree, leaves, rows), leaves, rows[label]))
    seen = np.concatenate(found)
    return [float(np.quantile(seen, UPPER)), float((seen > 0.025).mean()), float(seen.max())]


def distance(domain: Domain, rows: CodedTable, method: PrintedTrees) -> float:
    made = method.synthesise(rows, domain, np.random.default_rng(1)).rows
    return float(marginal_distances(rows, made, domain, 3).mean())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--rows", type=int, default=opm.ROWS)
    domain, rows = personnel(asked.parse_args().rows)
    rng = np.random.default_rng(0)
    print("| attribute | Δ(f) of 99.9 % of the rows | rows above .025 | the largest | noise against Δ = .025 |")
    print("|---|---|---|---|---|")
    for label in ATTRIBUTES:
        upper, above, largest = changes(domain, rows, label, rng)
        print(f"| {label} | {upper:.4f} | {100 * above:.2f} % | {largest:g} | × {upper / 0.025:.2f} |", flush=True)
    for stage, sensitivity in (("frequencies", 1.0), ("frequencies", 0.025), ("none", 1.0)):
        method = PrintedTrees(stage, sensitivity, 1.0, TREES, HEIGHT, ATTRIBUTES)  # type: ignore[arg-type]
        print(f"{stage}, Δ = {sensitivity:g}: {distance(domain, rows, method):.4f}", flush=True)


if __name__ == "__main__":
    main()
