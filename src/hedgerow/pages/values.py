"""Parts of the evaluation page about values as they stand: in words, in numbers, their spikes and rhythms. PRIVATE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hedgerow.markup import Markup, joined, tag
from hedgerow.pages.charts import MADE, REAL, key
from hedgerow.pages.distributions import Distribution
from hedgerow.pages.shell import folded, table

ROWS_AT_ONCE = 15
PICTURES_AT_ONCE = 6
LEVELS = ("5 %", "25 %", "50 %", "75 %", "95 %")
Pictured = tuple[Distribution, float]
"""A picture, and the distance of the two tables in it."""


@dataclass(frozen=True)
class WordsView:
    """A figure as a sentence, with the same figure for samples of the real rows."""

    sentence: str
    verdict: str
    worst: str
    """The column where it is worst, if it has one."""
    text: str
    samples: Mapping[str, str]


@dataclass(frozen=True)
class NumberView:
    """What readers compute from a column: (real, synthetic) as text."""

    name: str
    mean: tuple[str, str]
    deviation: tuple[str, str]
    quantiles: Sequence[tuple[str, str]]
    total: tuple[str, str] | None
    off: float
    """By how many standard deviations the mean is off."""
    kolmogorov: float


def words_part(views: Sequence[WordsView]) -> Markup:
    """Sentences, and how good each is beside samples of the real rows."""
    samples = list(dict.fromkeys(name for view in views for name in view.samples))
    rows = [
        [view.sentence, view.verdict, view.worst, view.text, *(view.samples.get(name, "–") for name in samples)]
        for view in views
    ]
    return joined(
        tag(
            "p",
            "On average over the columns. A sample of real rows differs from the real table too: beside each stands "
            "what a tenth and a half of the real rows, and as many rows drawn with replacement (a bootstrap), come to.",
        ),
        table(
            ["in words", "how close is that?", "worst column", "synthetic", *samples],
            rows,
            figures=range(3, 4 + len(samples)),
        ),
    )


def numbers_part(views: Sequence[NumberView]) -> Markup:
    """Means and the like, the worst columns first; all of them, in the schema's order, behind a click."""
    worst = sorted(views, key=lambda view: -max(view.off, view.kolmogorov))
    first, rest = worst[:ROWS_AT_ONCE], worst[ROWS_AT_ONCE:]
    return joined(
        tag(
            "p",
            "Real → synthetic, the column that is furthest off first. “Off”: the difference of the means in standard "
            "deviations of the real column. “Largest gap”: cut the column at any number; the shares of rows below it "
            "differ by at most so much (Kolmogorov distance).",
        ),
        _numbers(first),
        folded(f"{len(rest)} more columns", _numbers(rest)) if rest else "",
        folded("Quantiles and sums, in the schema's order", _quantiles(views)),
    )


def _numbers(views: Sequence[NumberView]) -> Markup:
    rows = [
        [
            view.name,
            _arrow(view.mean),
            f"{view.off:.3f}" if view.off < 1e6 else f"{view.off:.2e}",
            _arrow(view.deviation),
            _arrow(view.quantiles[len(view.quantiles) // 2]),
            f"{100 * view.kolmogorov:.1f} %",
        ]
        for view in views
    ]
    header = ["column", "mean", "off", "standard deviation", "median", "largest gap"]
    return table(header, rows, figures=range(1, 6))


def _quantiles(views: Sequence[NumberView]) -> Markup:
    rows = [
        [view.name, *map(_arrow, view.quantiles), "–" if view.total is None else _arrow(view.total)] for view in views
    ]
    caption = "The share of rows at or below; sums as if both tables had as many rows as the real one"
    return table(["column", *LEVELS, "sum"], rows, figures=range(1, 7), caption=caption)


def _arrow(pair: tuple[str, str]) -> str:
    return f"{pair[0]} → {pair[1]}"


def pictures_part(
    pictures: Sequence[Pictured], said: str, caption: Callable[[float], str], at_once: int = PICTURES_AT_ONCE
) -> Markup:
    """Pictures of real beside synthetic shares, those that differ most first."""
    ordered = sorted(pictures, key=lambda pair: -pair[1])
    figures = [
        tag("figure", tag("figcaption", tag("b", shown.name), f" · {caption(far)}"), shown.picture([REAL, MADE]))
        for shown, far in ordered
    ]
    rest = figures[at_once:]
    return joined(
        tag("p", said),
        key((REAL, "real"), (MADE, "synthetic")),
        tag("div", figures[:at_once], class_="grid"),
        folded(f"{len(rest)} more", tag("div", rest, class_="grid")) if rest else "",
    )


def detector_part(alone: Mapping[str, tuple[float, str]], together: str) -> Markup:
    """Which columns give the synthetic rows away by themselves, the clearest first."""
    ordered = sorted(alone.items(), key=lambda pair: -pair[1][0])
    rows = [[name, f"{100 * area:.1f} %", words] for name, (area, words) in ordered]
    header = ["column", "found from it alone", "in words"]
    rest = rows[ROWS_AT_ONCE:]
    return joined(
        tag(
            "p",
            "A machine is shown a real and a synthetic row that it has not seen and says which is synthetic. With all "
            f"columns it is right {together} of the time; with one column alone, as follows. A coin is right 50 % of "
            "the time.",
        ),
        table(header, rows[:ROWS_AT_ONCE], figures=(1,)),
        folded(f"{len(rest)} more columns", table(header, rest, figures=(1,))) if rest else "",
    )


def left_out_part(shares: Mapping[str, Mapping[str, float]]) -> Markup:
    """Values that the schema does not hold, by column."""
    rows = [[name, *(f"{100 * share:.2f} %" for share in each.values())] for name, each in shares.items()]
    said = (
        "Values that do not fit the schema (text where a number is declared, beyond the bounds, not listed). They are "
        "left out of means, quantiles and the like."
    )
    return joined(tag("p", said), table(["column", "real", "synthetic"], rows, figures=(1, 2)))
