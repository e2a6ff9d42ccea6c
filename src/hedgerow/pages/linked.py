"""The page that compares linked tables with synthetic ones. PRIVATE: what is handed in comes from real rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedgerow.errors import counted
from hedgerow.markup import Content, Markup, joined, tag
from hedgerow.pages.charts import MADE, REAL, key
from hedgerow.pages.distributions import Distribution
from hedgerow.pages.shell import contents, folded, private_page, section, table

MOST_LISTED = 50


@dataclass(frozen=True)
class FigureRow:
    """A figure as text: of the synthetic tables, of the real rows within the bounds, of a bootstrap of units."""

    name: str
    title: str
    synthetic: str
    truncation: str
    bootstrap: str
    meaning: str


@dataclass(frozen=True, eq=False)
class TableView:
    """One of the tables."""

    name: str
    rows: Mapping[str, int]
    figures: Sequence[FigureRow]
    children: Distribution | None
    """How many of its rows a row of its parent has."""
    distributions: Sequence[tuple[Distribution, float]]
    parts: Mapping[str, Mapping[str, float]]
    """By the title of a figure, what it is the mean of."""
    misfits: Sequence[tuple[str, int, int]]
    """Orphans and duplicates: how many real and how many synthetic rows."""


@dataclass(frozen=True, eq=False)
class LinkedView:
    """All that the page shows, worked out already."""

    name: str
    tables: Sequence[TableView]


def linked_page(view: LinkedView) -> str:
    """The whole page."""
    parts: list[tuple[str, str, Content]] = [("figures", "In a few figures", _figures(view))]
    parts += [(f"table-{number}", each.name, _table(each)) for number, each in enumerate(view.tables, start=1)]
    parts.append(("glossary", "Glossary", _glossary()))
    return private_page(
        f"evaluation of {view.name}",
        tag("h1", f"How close are the synthetic {view.name} to the real ones?"),
        tag(
            "p",
            "Linked tables, compared one by one and across their links. Everything here is computed from real rows "
            "without noise. Keep it as you keep the tables; a method or an ε that is chosen by it is not covered by "
            "the guarantee.",
        ),
        contents((name, title) for name, title, _ in parts),
        [section(name, title, content) for name, title, content in parts],
    )


def _figures(view: LinkedView) -> Markup:
    rows = [
        [each.name, row.title, row.synthetic, row.truncation, row.bootstrap, row.meaning]
        for each in view.tables
        for row in each.figures
    ]
    broken = [[each.name, what, f"{real:,}", f"{made:,}"] for each in view.tables for what, real, made in each.misfits]
    return joined(
        table(["table", "figure", "synthetic", "bound alone", "bootstrap", "in plain words"], rows, figures=(2, 3, 4)),
        tag(
            "p",
            "“Bound alone”: the real rows within max_per_parent in the place of the synthetic ones; no release can be "
            "expected to come closer. “Bootstrap”: as many real units, drawn with replacement.",
            class_="soft",
        ),
        table(["table", "rows that fit nothing", "real", "synthetic"], broken, figures=(2, 3)),
    )


def _table(view: TableView) -> Markup:
    real, made = (counted(view.rows[side], f"{side} row") for side in ("real", "synthetic"))
    pictures = [] if view.children is None else [_picture(view.children, "")]
    pictures += [
        _picture(shown, f" · {100 * far:.2f} % of the rows differ")
        for shown, far in sorted(view.distributions, key=lambda pair: -pair[1])
    ]
    return joined(
        tag("p", f"{real} beside {made}."),
        key((REAL, "real"), (MADE, "synthetic")),
        tag("div", pictures, class_="grid"),
        [_parts(title, parts) for title, parts in view.parts.items()],
    )


def _picture(shown: Distribution, said: str) -> Markup:
    return tag("figure", tag("figcaption", tag("b", shown.name), said), shown.picture([REAL, MADE]))


def _parts(title: str, parts: Mapping[str, float]) -> Markup:
    worst = sorted(parts.items(), key=lambda part: -part[1])[:MOST_LISTED]
    cut = f"The {MOST_LISTED} largest of {len(parts):,}" if len(parts) > MOST_LISTED else ""
    rows = [[name, f"{far:.4f}"] for name, far in worst]
    return folded(f"{title}: where it is worst", table(["of", "distance"], rows, figures=(1,), caption=cut))


GLOSSARY = {
    "distance": (
        "Total variation distance: the share of rows that would have to move to another cell to make the two tables "
        "equal. Numbers and dates are cut at the deciles of the real table, categories are kept to the thirty "
        "commonest. 0: equal. 1: nothing in common."
    ),
    "parent × child": "A column of the parent beside one of its rows' own, over all rows of the child table.",
    "next row": (
        "A column beside the same column in the next row of the same parent: by the declared order, or where there is "
        "none, in an order drawn at random."
    ),
    "sums and spans": (
        "Of each parent that has rows: what a number adds up to over them, and how far the last lies from the first in "
        "their order. The Kolmogorov distance is the largest error of a share of parents below a number."
    ),
    "orphans and duplicates": (
        "Rows whose link names no row of the parent, and rows whose key another one has. They are not in the figures."
    ),
}


def _glossary() -> Markup:
    return tag("dl", [joined(tag("dt", word), tag("dd", meaning)) for word, meaning in GLOSSARY.items()])
