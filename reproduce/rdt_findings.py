"""What the write-up's figures should show, checked with numbers: held or not held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.coded.domain import Counts
from reproduce.rdt_figures import AGE, age_alone
from reproduce.rdt_runs import EPSILONS, HEIGHTS, ORDER, TRIPLES, Original, shares

Results = Mapping[str, Any]
PLACES = np.arange(len(ORDER))


OURS = ("peaks", "bars", "Δ is concentrated", "race is worst", "closer")
"""Beginnings and words of what we read into the figures; the rest the write-up says, in its text or its captions."""


@dataclass(frozen=True)
class Finding:
    """Something that a figure should show."""

    figure: str
    expected: str
    held: bool
    number: str

    @property
    def whose(self) -> str:
        """Whether the write-up says so, or we do: as we have it, it holds no pictures."""
        return "ours" if any(word in self.expected for word in OURS) else "its"


def findings(original: Original, results: Results, changes: Counts) -> Iterator[Finding]:
    yield from smoothing(original)
    quantiles = np.quantile(changes, [0.5, 0.99, 0.999])
    yield Finding(
        "3",
        "Δ is concentrated near 0, with a thin tail up to a few hundredths",
        bool(quantiles[0] < 0.001 and 0.01 < quantiles[2] < 0.05),
        f"median {quantiles[0]:.5f}, 99 % below {quantiles[1]:.3f}, 99.9 % below {quantiles[2]:.3f}",
    )
    yield Finding(
        "3",
        "the upper region, .025 or .05, bounds it",
        bool(changes.max() <= 0.05),
        f"{(changes > 0.025).mean():.2%} above .025, {(changes > 0.05).mean():.2%} above .05; the largest is "
        f"{changes.max():.2g}",
    )
    yield from errors("4", "printed P", results, falls=True)
    yield from errors("5", "printed F", results, falls=False)
    yield from triples(results)
    draw = results["printed F e1 h5"]["cpu_s"]
    yield Finding(
        "7 (section)",
        "under a minute for the look-up of one attribute (they: C, five trees of height 5)",
        (draw["count"] + draw["draw"]) / 7 < 60,
        f"{(draw['count'] + draw['draw']) / 7:.2f} CPU s an attribute",
    )


def smoothing(original: Original) -> Iterator[Finding]:
    """Figures 1 and 2: without noise, low trees smooth and full trees do not."""
    own = shares(original.rows, AGE)
    low, full = (shares(age_alone(original, height), AGE) for height in (5, 7))
    unseen = float(low[own == 0].sum())
    yield Finding("1", "mass where the original has none", unseen > 0, f"{unseen:.1%} of the rows")
    peaks = np.array([low[cell].max() / own[cell].max() for cell in np.ndindex(own.shape[:2])])
    lowered = f"to {peaks.mean():.0%} on average; lower in {(peaks < 1).sum()} of {len(peaks)} panels"
    yield Finding("1", "peaks are lowered", bool(peaks.mean() < 1 and (peaks < 1).mean() >= 0.8), lowered)
    yield Finding("2", "the same support", full[own == 0].sum() == 0, f"{full[own == 0].sum():.1%} of rows outside")
    distance = 0.5 * np.abs(full - own).sum()
    yield Finding("2", "bars match", distance < 0.01, f"total variation distance {distance:.4f}")


def errors(figure: str, key: str, results: Results, falls: bool) -> Iterator[Finding]:
    """Figures 4 and 5: mean squared error of node paths by height, ε and place in the order."""
    found = np.array(
        [[[results[f"{key} e{e:g} h{h}"]["paths"][name] for name in ORDER] for h in HEIGHTS] for e in EPSILONS]
    )
    lower = int((found[:, -1] < found[:, 0]).sum())
    yield Finding(
        figure,
        "the error falls with height",
        lower == found[:, 0].size,
        f"lower at height 7 than at 3 for {lower} of {found[:, 0].size} lines",
    )
    steady = float(((found[0] > found[1]) & (found[1] > found[2])).mean())
    ratio = float(np.median(found[0] / found[-1]))
    expected = "the error falls with ε" if falls else "no clear pattern in ε (a change of less than a tenth)"
    number = (
        f"at ε = {EPSILONS[0]:g} {ratio:.2f} times that at {EPSILONS[-1]:g} (median); falls steadily for {steady:.0%}"
    )
    yield Finding(figure, expected, steady > 0.9 if falls else ratio < 1.1, number)
    ranks = [rank_correlation(line) for line in found.reshape(-1, len(ORDER))]
    yield Finding(
        figure,
        "the error grows with the place in the order",
        bool(np.mean(ranks) > 0.5),
        f"rank correlation with the place: mean {np.mean(ranks):.2f}, {np.mean(np.array(ranks) > 0):.0%} positive",
    )
    at = found[1, HEIGHTS.index(5)]
    yield Finding(
        figure,
        "race is worst and FY is best (ε = 1, height 5)",
        ORDER[int(at.argmax())] == "race" and ORDER[int(at.argmin())] == "year",
        f"worst: {ORDER[int(at.argmax())]}, best: {ORDER[int(at.argmin())]}; race is {at[-1] / at[0]:.1f} times FY",
    )


def triples(results: Results) -> Iterator[Finding]:
    """Figures 6–15."""
    p, f = results["printed P e1 h5"], results["printed F e1 h5"]
    masses = [made["unseen"][what] for made in (p, f) for what in TRIPLES]
    empty = [mass for mass in masses if mass > 0]
    yield Finding(
        "6–15",
        "combinations that the original does not have get visible mass",
        min(p["unseen"]["age within sex and race"], f["unseen"]["age within sex and race"]) > 0.001,
        f"up to {max(empty):.1%} of the rows (noise on proportions), {max(f['unseen'].values()):.1%} (frequencies)",
    )
    closer = sum(f["figures"][what] < p["figures"][what] for what in TRIPLES)
    yield Finding("6–15", "noise on frequencies is closer than on proportions", closer == 5, f"in {closer} of 5 pairs")
    for stage, made in (("P", p), ("F", f)):
        late = min(made["figures"][what] for what in ("sex within agency and occupation", "age within sex and race"))
        early = max(made["figures"][what] for what in list(TRIPLES)[:3])
        yield Finding(
            "6–15",
            f"sex and age depart more than FY and education ({stage})",
            late > early,
            ", ".join(f"{what.split(' ')[0]} {value:.3f}" for what, value in made["figures"].items()),
        )


def rank_correlation(values: Counts) -> float:
    """Spearman's, with the places 1, 2, … (no ties in practice)."""
    return float(np.corrcoef(PLACES, np.argsort(np.argsort(values)))[0, 1])
