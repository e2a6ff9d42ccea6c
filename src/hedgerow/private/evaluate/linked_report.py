"""From linked tables to their PRIVATE page: what the page shows is worked out here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.pages.distributions import Distribution
from hedgerow.pages.linked import FigureRow, LinkedView, TableView, linked_page
from hedgerow.private.evaluate.linked import FIGURES, Family, Member, Parts
from hedgerow.private.evaluate.views import histogram
from hedgerow.release.files import write_private

if TYPE_CHECKING:
    from hedgerow.schema import Schema


def write_report(
    path: Path, schema: Schema, answer: Mapping[str, Any], found: Mapping[str, Parts], families: tuple[Family, Family]
) -> None:
    """Write the page; only its owner can read it."""
    write_private(path, linked_page(view_of(schema, answer, found, families)))


def view_of(
    schema: Schema, answer: Mapping[str, Any], found: Mapping[str, Parts], families: tuple[Family, Family]
) -> LinkedView:
    """Everything that the page shows."""
    links = schema.linked
    assert links is not None
    tables = []
    for name in links.names:
        both = families[0][name], families[1][name]
        parent = links.links[name].parent
        counted = None
        if parent is not None:
            parents = len(families[0][parent].parent), len(families[1][parent].parent)
            counted = _children(both, parents, name, parent)
        misfits = [answer["misfits"][side][name] for side in ("real", "synthetic")]
        tables.append(
            TableView(
                name=name,
                rows={side: answer["rows"][side][name] for side in ("real", "synthetic")},
                figures=[_row(each, answer, name) for each in answer["tables"][name] if each in FIGURES],
                children=counted,
                distributions=_distributions(schema, name, both, found[name]["columns"]),
                parts={FIGURES[each].title: parts for each, parts in found[name].items() if len(parts) > 1},
                misfits=[(what, misfits[0][what], misfits[1][what]) for what in misfits[0]],
            )
        )
    return LinkedView(schema.dataset or "tables", tables)


def _row(figure: str, answer: Mapping[str, Any], table: str) -> FigureRow:
    about = FIGURES[figure]
    values = [answer[side][table][figure] for side in ("tables", "truncation", "bootstrap")]
    texts = [about.text(value) for value in values]
    return FigureRow(figure, about.title, texts[0], texts[1], texts[2], about.meaning)


def _children(both: tuple[Member, Member], parents: tuple[int, int], name: str, parent: str) -> Distribution:
    """How many rows a row of the parent has."""
    sizes = [np.bincount(each.parent, minlength=count) for each, count in zip(both, parents, strict=True)]
    most = max(int(size.max(initial=0)) for size in sizes) + 1
    shares = [np.bincount(size, minlength=most) / max(1, len(size)) for size in sizes]
    series = list(zip(("real", "synthetic"), shares, strict=True))
    return Distribution(f"rows of {name} per row of {parent}", [str(count) for count in range(most)], series, most)


def _distributions(
    schema: Schema, name: str, both: tuple[Member, Member], far: Mapping[str, float]
) -> list[tuple[Distribution, float]]:
    """Columns of numbers and dates by their values, categories by their names."""
    encoding = schema.table(name).with_stand_ins(1).encoding()
    found = []
    for column in encoding.declared:
        pair = both[0].values.columns[column], both[1].values.columns[column]
        if not all(len(each.present) for each in pair):
            continue
        if pair[0].kind != "category":
            found.append(histogram(column, pair))
            continue
        labels = encoding.labels(encoding.attributes_of(column)[0])
        shares = [
            np.bincount(each.present.astype(np.int64), minlength=len(labels)) / len(each.present) for each in pair
        ]
        shown = Distribution(column, labels, list(zip(("real", "synthetic"), shares, strict=True)))
        found.append((shown, far[column]))
    return found
