"""The page that compares a synthetic table with the real one. PRIVATE: what is handed in comes from real rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from hedgerow.coded.domain import Counts
from hedgerow.errors import counted, listing
from hedgerow.markup import Content, Markup, joined, tag
from hedgerow.pages.charts import MADE, REAL, Bar, heat_map, key, rows_of_bars
from hedgerow.pages.distributions import Distribution
from hedgerow.pages.shell import contents, folded, private_page, section, table, tabs
from hedgerow.pages.values import (
    NumberView,
    Pictured,
    WordsView,
    detector_part,
    left_out_part,
    numbers_part,
    pictures_part,
    words_part,
)

PICTURES_AT_ONCE = 12
MOST_MAPPED = 100
MOST_CORRELATED = 40
MOST_LISTED = 200


@dataclass(frozen=True)
class FigureView:
    """A headline number, in words."""

    name: str
    title: str
    text: str
    meaning: str
    headline: bool


@dataclass(frozen=True, eq=False)
class CorrelationView:
    """One coefficient over some attributes, before and after."""

    title: str
    meaning: str
    attributes: Sequence[str]
    real: Counts
    synthetic: Counts


@dataclass(frozen=True, eq=False)
class EvaluationView:
    """All that the page shows, worked out already."""

    name: str
    rows: Mapping[str, int]
    columns: int
    figures: Sequence[FigureView]
    distributions: Sequence[tuple[Distribution, float]]
    """In the schema's order, each attribute's histogram and the distance of the two tables there."""
    attributes: Sequence[str]
    pairs: Mapping[tuple[int, int], float]
    """Distances of cross tables by the indices (row, column ≤ row) of their attributes."""
    worst: Mapping[int, Sequence[tuple[tuple[str, ...], float]]]
    """By degree, the marginals that are furthest apart."""
    correlations: Sequence[CorrelationView]
    missing: Sequence[tuple[str, float, float]]
    """Column, share missing in the real and in the synthetic table, where a column has missing values."""
    target: str | None = None
    learnt: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By machine, the share of real rows misclassified after training on synthetic and on real rows."""
    majority: float | None = None
    never_read: Sequence[str] = ()
    """Columns that are invented, or left out, and so not compared."""
    cut_by_rows: Sequence[str] = ()
    """Columns whose cells were read off the real rows, because the schema has none for them."""
    words: Sequence[WordsView] = ()
    numbers: Sequence[NumberView] = ()
    """In the schema's order, what readers compute from each column of numbers or dates."""
    spikes: Sequence[Pictured] = ()
    rhythms: Sequence[Pictured] = ()
    alone: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    """By column, how often a machine tells rows apart that sees this column alone; also in words."""
    together: str = ""
    """The same for all columns, as text."""
    left_out: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By column, the shares of real and of synthetic values that the schema does not hold."""


def evaluation_page(view: EvaluationView) -> str:
    """The whole page."""
    parts: list[tuple[str, str, Content]] = [("figures", "In a few figures", _figures(view))]
    if view.words:
        parts.append(("words", "In words", words_part(view.words)))
    parts.append(("columns", "Column by column", _columns(view)))
    parts += _values(view)
    parts += [
        ("pairs", "Pair by pair", _pairs(view)),
        ("worst", "Where it is worst", _worst(view)),
        ("correlations", "What goes together", _correlations(view)),
    ]
    if view.learnt:
        parts.append(("prediction", f"Predicting {view.target}", _prediction(view)))
    parts.append(("missing", "Missing values", _missing(view)))
    if view.left_out:
        parts.append(("left-out", "Left out", left_out_part(view.left_out)))
    parts.append(("glossary", "Glossary", _glossary()))
    return private_page(
        f"evaluation of {view.name}",
        tag("h1", f"How close is the synthetic {view.name} to the real one?"),
        tag(
            "p",
            f"{counted(view.rows['real'], 'real row')} beside {counted(view.rows['synthetic'], 'synthetic row')}, "
            f"{counted(view.columns, 'column')}. Everything here is computed from real rows without noise. Keep it as "
            "you keep the table; a method or an ε that is chosen by it is not covered by the guarantee.",
        ),
        tag("p", f"Not compared, because they are invented or left out: {listing(view.never_read)}.")
        if view.never_read
        else "",
        tag(
            "p",
            f"Where cells are compared, those of {listing(view.cut_by_rows)} are ranges that hold alike many real "
            "rows, and values that many hold: the schema has none, because a run buys them.",
        )
        if view.cut_by_rows
        else "",
        contents((name, title) for name, title, _ in parts),
        [section(name, title, content) for name, title, content in parts],
    )


def _values(view: EvaluationView) -> list[tuple[str, str, Content]]:
    """What there is to say of values as they stand."""
    parts: list[tuple[str, str, Content]] = []
    if view.numbers:
        parts.append(("numbers", "Means and the like", numbers_part(view.numbers)))
    if view.spikes:
        said = (
            "Numbers and dates that many real rows share: the five commonest, and all others together. Columns without "
            "a value that one real row in fifty has are not shown."
        )
        spikes = pictures_part(view.spikes, said, lambda far: f"{100 * far:.2f} % of the values differ")
        parts.append(("spikes", "Common values", spikes))
    if view.rhythms:
        said = "On which day of the week, and at which hour of the day, the moments of a column lie."
        rhythms = pictures_part(view.rhythms, said, lambda far: f"{100 * far:.2f} % of the rows differ")
        parts.append(("rhythms", "Weekdays and hours", rhythms))
    if view.alone:
        parts.append(("detector", "What gives it away", detector_part(view.alone, view.together)))
    return parts


def _figures(view: EvaluationView) -> Markup:
    tiles = [
        tag(
            "div",
            tag("span", each.title, class_="name"),
            tag("b", each.text),
            tag("span", each.meaning),
            class_="tile",
            data_figure=each.name,
        )
        for each in view.figures
        if each.headline
    ]
    rows = [[each.title, tag("code", each.name), each.text, each.meaning] for each in view.figures]
    return joined(
        tag("div", tiles, class_="tiles"),
        folded("All figures", table(["figure", "name", "value", "in plain words"], rows, figures=(2,))),
    )


def _columns(view: EvaluationView) -> Markup:
    ordered = sorted(view.distributions, key=lambda pair: -pair[1])
    figures = [
        tag(
            "figure",
            tag("figcaption", tag("b", shown.name), f" · {100 * distance:.2f} % of the rows differ"),
            shown.picture([REAL, MADE]),
        )
        for shown, distance in ordered
    ]
    first, rest = figures[:PICTURES_AT_ONCE], figures[PICTURES_AT_ONCE:]
    return joined(
        tag(
            "p",
            "Shares of rows, the columns with the largest difference first. Hover for the numbers. Where one bar would "
            "hold most rows, bars are of unlike width: compare grey with blue, the outline is not the column's shape.",
        ),
        key((REAL, "real"), (MADE, "synthetic")),
        tag("div", first, class_="grid"),
        folded(f"{len(rest)} more columns", tag("div", rest, class_="grid")) if rest else "",
        folded(
            "The same as a table, in the schema's order",
            table(
                ["column", "distance", "bars"],
                [[shown.name, f"{distance:.4f}", f"{len(shown.labels):,}"] for shown, distance in view.distributions],
                figures=(1, 2),
            ),
        ),
    )


def _pairs(view: EvaluationView) -> Markup:
    if len(view.attributes) < 2:
        return tag("p", "The table has one column.")
    most = max(view.pairs.values())
    tips = {
        (i, j): (
            f"{view.attributes[i]}: {100 * value:.2f} % of the rows differ"
            if i == j
            else f"{view.attributes[j]} × {view.attributes[i]}: {100 * value:.2f} % of the rows differ"
        )
        for (i, j), value in view.pairs.items()
    }
    cut = (
        f" Only the {MOST_MAPPED} attributes that differ most by themselves."
        if len(view.attributes) >= MOST_MAPPED
        else ""
    )
    return joined(
        tag(
            "p",
            "Every cross table of two columns: the share of rows that would have to move to another cell to make the "
            "two tables equal. The diagonal is the column by itself. Hover, touch, or tab to the map and use the arrow "
            "keys." + cut,
        ),
        tag(
            "figure",
            tag("figcaption", f"Pale: equal. Strongest: {100 * most:.1f} % of the rows differ."),
            tag("div", heat_map(view.attributes, view.pairs, tips, "Distance of every pair", most=most), class_="wide"),
        ),
        _listed(
            ["pair", "distance"],
            {(view.attributes[j], view.attributes[i]): [value] for (i, j), value in view.pairs.items() if i != j},
        ),
    )


def _listed(header: Sequence[str], pairs: Mapping[tuple[str, str], Sequence[float]]) -> Markup:
    """Pairs as a table, the largest last figure first: what a map shows, for readers who cannot see it."""
    ordered = sorted(pairs.items(), key=lambda pair: -abs(pair[1][-1]))[:MOST_LISTED]
    rows = [[" × ".join(names), *(f"{value:.4f}" for value in values)] for names, values in ordered]
    cut = f"The {MOST_LISTED} largest of {len(pairs):,}" if len(pairs) > MOST_LISTED else ""
    return folded("The same as a table", table(header, rows, figures=range(1, len(header)), caption=cut))


def _worst(view: EvaluationView) -> Markup:
    kinds = {1: "single columns", 2: "pairs", 3: "triples"}
    return tag(
        "div",
        [
            table(
                [kinds[degree], "distance"],
                [[" × ".join(names), f"{distance:.4f}"] for names, distance in found],
                figures=(1,),
            )
            for degree, found in view.worst.items()
        ],
        class_="grid",
    )


def _correlations(view: EvaluationView) -> Content:
    if not view.correlations:
        return tag("p", "The table has one column, so nothing can go together.")
    return [joined(tag("h3", each.title), _correlation(each)) for each in view.correlations]


def _correlation(view: CorrelationView) -> Markup:
    """Before, after and the difference, of at most 40 attributes: those whose coefficients moved most."""
    moved = np.abs(view.synthetic - view.real)
    kept = np.sort(np.argsort(-moved.max(axis=1), kind="stable")[:MOST_CORRELATED])
    names = [view.attributes[index] for index in kept]
    cut = f" The {len(kept)} columns that moved most." if len(kept) < len(view.attributes) else ""

    def picture(matrix: Counts, what: str) -> Markup:
        inside = matrix[np.ix_(kept, kept)]
        cells = [(i, j) for i in range(len(kept)) for j in range(i)]
        values = {(i, j): float(inside[i, j]) for i, j in cells}
        tips = {
            (i, j): (
                f"{names[j]} and {names[i]}\nreal {view.real[kept[i], kept[j]]:.3f}, "
                f"synthetic {view.synthetic[kept[i], kept[j]]:.3f}"
            )
            for i, j in cells
        }
        most = max(map(abs, values.values()))
        said = tag("figcaption", f"{view.title}, {what}. Strongest: {most:.3f}. Blue: below 0.")
        return tag("figure", said, tag("div", heat_map(names, values, tips, view.title, most=most), class_="wide"))

    panels = [
        ("before: real", picture(view.real, "real table")),
        ("after: synthetic", picture(view.synthetic, "synthetic table")),
        ("difference", picture(view.synthetic - view.real, "synthetic less real")),
    ]
    values = {
        (names[j], names[i]): [
            float(view.real[kept[i], kept[j]]),
            float(view.synthetic[kept[i], kept[j]]),
            float(view.synthetic[kept[i], kept[j]] - view.real[kept[i], kept[j]]),
        ]
        for i in range(len(kept))
        for j in range(i)
    }
    listed = _listed(["pair", "real", "synthetic", "difference"], values)
    return joined(tag("p", view.meaning + cut), tabs(panels), listed)


def _prediction(view: EvaluationView) -> Markup:
    bars = []
    for machine, wrong in view.learnt.items():
        said = f"{machine}\nafter synthetic rows: {100 * wrong['synthetic']:.1f} % wrong\nafter real rows: "
        bars.append(Bar(machine, (wrong["real"], wrong["synthetic"]), f"{said}{100 * wrong['real']:.1f} % wrong"))
    assert view.majority is not None
    bars.append(
        Bar("always the most frequent", (view.majority, 0.0), f"without learning: {100 * view.majority:.1f} % wrong")
    )
    rows = [[name, f"{100 * w['synthetic']:.1f} %", f"{100 * w['real']:.1f} %"] for name, w in view.learnt.items()]
    rows.append(["always the most frequent class", "–", f"{100 * view.majority:.1f} %"])
    return joined(
        tag(
            "p",
            f"A machine learns to guess {view.target} from the other columns and is tested on a fifth of the real "
            "rows. Shorter is better; the two bars should be of equal length.",
        ),
        key((REAL, "wrong after training on real rows"), (MADE, "wrong after training on synthetic rows")),
        tag(
            "figure", rows_of_bars(bars, [REAL, MADE], f"Share of real rows whose {view.target} was guessed wrong", 560)
        ),
        table(["machine", "wrong after synthetic rows", "wrong after real rows"], rows, figures=(1, 2)),
    )


def _missing(view: EvaluationView) -> Markup:
    if not view.missing:
        return tag("p", "The schema declares no missing values.")
    rows = [
        [name, f"{100 * real:.2f} %", f"{100 * synthetic:.2f} %", f"{100 * (synthetic - real):+.2f}"]
        for name, real, synthetic in view.missing
    ]
    header = ["column", "missing, real", "missing, synthetic", "difference (points)"]
    return table(header, rows, figures=(1, 2, 3))


GLOSSARY = {
    "distance": (
        "Total variation distance: cross-tabulate some columns in both tables as shares of the rows; the distance "
        "is half the sum of the absolute differences. It is the share of rows that would have to move to another "
        "cell to make the two equal. 0: equal. 1: nothing in common."
    ),
    "marginal": ("The cross table of some columns: a histogram for one, a two-way table for two, and so on."),
    "floor": (
        "No table is at 0: two samples of the same people differ too. Differences below those of a random sample "
        "do not matter."
    ),
    "told apart": (
        "A machine is trained to tell real from synthetic rows. If it does no better than a coin (50 %), the "
        "synthetic rows look real. pMSE says the same as a number between 0 and 0.25."
    ),
    "unique match": (
        "A real row that is the only one of its kind and that a synthetic row equals. Some are to be expected by "
        "chance; under differential privacy a match does not tell whether that person took part."
    ),
    "as good as a sample": (
        "A random sample of so many real rows would be as far from the whole table as the synthetic table is, on "
        "pairs of columns."
    ),
    "correlation": (
        "Pearson's r: how well a straight line fits two ordered columns, −1 to 1. Kendall's τ: how often two "
        "columns put two rows into the same order, −1 to 1. Spearman's ρ: how well a straight line fits their ranks, "
        "−1 to 1. Cramér's V: how well one column tells the other, ordered or not, 0 to 1."
    ),
    "standard deviation": (
        "How far values typically lie from their mean. An error of a mean of 5 % of a standard deviation is hardly "
        "seen; one of 100 % is as large as the usual distance between two people."
    ),
    "Kolmogorov and Wasserstein distance": (
        "Kolmogorov: cut a column at any number; the shares of rows below it differ by at most so much. Wasserstein: "
        "how far a value has to be moved, on average, to make the two columns alike."
    ),
    "bootstrap": "As many rows as there are, drawn with replacement: how far chance alone would move a figure.",
}


def _glossary() -> Markup:
    return tag("dl", [joined(tag("dt", word), tag("dd", meaning)) for word, meaning in GLOSSARY.items()])
