"""The tables of the study of random decision trees, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hedgerow.budget.accounting import stack_noise, whole
from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import Counts, Domain
from hedgerow.methods.rdt import RDT
from hedgerow.methods.shared.start import TOTAL_SHARE
from hedgerow.models.trees import expected_leaves
from hedgerow.samples.opm import ROWS
from reproduce.rdt_findings import Results, findings
from reproduce.rdt_runs import DOMAIN, EPSILONS, HEIGHTS, ORDER, SCHEMA, TRIPLES, Original, pay_runs

PROCEDURES = {
    "printed, noise on proportions": "printed P",
    "printed, noise on frequencies": "printed F",
    "`rdt`": "private",
    "`rdt`, clip, single values, alike": "private clip",
}


def report(original: Original, results: Results, changes: Counts) -> str:
    """Every table under its heading."""
    checked = [
        [each.figure, each.expected, each.whose, "held" if each.held else "**not held**", each.number]
        for each in findings(original, results, changes)
    ]
    parts = {
        "Findings": table(["figure", "what it should show", "whose", "", "number"], checked),
        "Loss by height and ε": losses(results),
        "Loss beyond smoothing": relation(results),
        "Figures 6–15": figures(results),
        "Sensitivity": distances(results, ["printed P e1 h5", *starting(results, "study printed P")]),
        "Order": orders(results),
        "Choices": distances(results, ["private e1 h5", *starting(results, "study private")]),
        "Other methods": others(results),
        "CPU seconds": times(results),
        "A number": pay(results),
    }
    return "\n\n".join(f"## {head}\n\n{text}" for head, text in parts.items()) + "\n"


def losses(results: Results) -> str:
    """Mean distance over all triples."""

    def line(epsilon: str, what: str, key: str) -> list[str]:
        found = [results.get(f"{key} h{height}") for height in HEIGHTS]
        return [epsilon, what, *("" if one is None else f"{one['tvd3']:.3f}" for one in found)]

    lines = [line("no noise", "printed", "printed none"), line("no noise", "`rdt`", "private none")]
    for epsilon in EPSILONS:
        lines += [line(f"{epsilon:g}", what, f"{key} e{epsilon:g}") for what, key in PROCEDURES.items()]
    lines = [one for one in lines if any(one[2:])]
    return table(["ε", "procedure", *(f"height {height}" for height in HEIGHTS)], lines)


def relation(results: Results) -> str:
    """What noise adds to the loss without noise, as a power of ρ = expected absolute noise of a tree's cells / rows."""
    lines = []
    for what, key, smooth in (
        ("printed, noise on frequencies", "printed F", "printed none"),
        ("`rdt`", "private", "private none"),
    ):
        points = [
            (noise_share(key, epsilon, height), results[f"{key} e{epsilon:g} h{height}"]["tvd3"] - floor)
            for height in HEIGHTS
            for floor in [results[f"{smooth} h{height}"]["tvd3"]]
            for epsilon in EPSILONS
        ]
        share, added = np.log(np.array([point for point in points if point[1] > 0])).T
        power, factor = np.polyfit(share, added, 1)
        explained = np.corrcoef(share, added)[0, 1] ** 2
        fitted = f"{np.exp(factor):.3f} · ρ^{power:.2f}"
        span = f"{np.exp(share.min()):.2g} … {np.exp(share.max()):.2g}"
        lines.append([what, fitted, f"{explained:.2f}", f"{len(share)} of {len(points)}", span])
    return table(["procedure", "added loss", "R² (logarithms)", "points above 0", "ρ"], lines)


def noise_share(key: str, epsilon: float, height: int) -> float:
    if key == "printed F":
        return mean_cells(DOMAIN, height, 0) / epsilon / ROWS
    method = RDT(trees=5)
    spend = whole(Budget(epsilon)).share((1 - TOTAL_SHARE) * (1 - method.columns))
    noise = stack_noise(spend, [1.0] * (method.trees * len(DOMAIN)), 1)[0].mean_absolute
    return noise * mean_cells(SCHEMA.encoding().domain, height, method.ranges) / ROWS


def mean_cells(domain: Domain, height: int, ranges: int) -> float:
    return float(np.mean([a.size * expected_leaves(domain, a.name, height, ranges) for a in domain]))


def figures(results: Results) -> str:
    """Distance from the original, and rows in combinations that it does not have."""
    names = ("printed P e1 h5", "printed F e1 h5", "private e1 h5")
    lines = [
        [what, *(f"{results[name]['figures'][what]:.3f} ({results[name]['unseen'][what]:.1%})" for name in names)]
        for what in TRIPLES
    ]
    return table(["distance (unseen combinations)", *names], lines)


def orders(results: Results) -> str:
    """Mean distance of the triples with each attribute."""
    names = ["printed F e1 h5", *starting(results, "study printed F order"), "private e1 h5"]
    names += starting(results, "study private order")
    lines = [[name, *(f"{results[name]['attributes'][a]:.3f}" for a in ORDER)] for name in names]
    return table(["run", *ORDER], lines)


def others(results: Results) -> str:
    lines = [
        [
            name.removeprefix("other "),
            f"{results[name]['tvd3']:.4f}",
            f"{results[name]['unseen']['education within agency and occupation']:.2%}",
            f"{sum(results[name]['cpu_s'].values()):.1f}",
        ]
        for name in starting(results, "other")
    ]
    return table(["method", "3-way distance", "rows in combinations that no one has", "CPU s"], lines)


def times(results: Results) -> str:
    steps = ("grow", "count", "noise", "draw")
    lines = [
        [
            str(height),
            *(f"{results[f'printed F e1 h{height}']['cpu_s'][step]:.2f}" for step in steps),
            f"{results[f'private e1 h{height}']['cpu_s']['whole']:.1f}",
        ]
        for height in HEIGHTS
    ]
    return table(["height", *(f"printed: {step}" for step in steps), "`rdt`, whole"], lines)


def pay(results: Results) -> str:
    lines = [
        [
            str(run.bins),
            str(run.method.ranges),
            f"{results[run.name]['tvd3']:.3f}",
            f"{results[run.name]['mean_pay']:.1%}",
        ]
        for run in pay_runs()
    ]
    head = ["bins of pay", "`ranges`", "3-way distance with pay", "error of mean pay by sex and education"]
    return table(head, lines)


def distances(results: Results, names: Sequence[str]) -> str:
    return table(["run", "3-way distance"], [[name, f"{results[name]['tvd3']:.4f}"] for name in names])


def starting(results: Results, words: str) -> list[str]:
    return [name for name in results if name.startswith(words)]


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
