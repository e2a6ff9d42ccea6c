"""Where columns were cut: the cells that a discovery bought, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hedgerow.errors import counted
from hedgerow.markup import Markup, joined, tag
from hedgerow.pages.shell import folded, table

if TYPE_CHECKING:
    from hedgerow.release.bundle import Release


def cut_columns(release: Release) -> list[str]:
    """The columns that were cut."""
    columns = release.schema.columns
    return [name for name in release.schema.discovered if getattr(columns[name], "leaves", None)]


def cuts(release: Release) -> Markup:
    """For every column that was cut, its cells: values that stand alone, and ranges."""
    rows = []
    for name in cut_columns(release):
        for attribute in release.encoding.attributes_of(name):
            labels = release.encoding.labels(attribute)[: release.encoding.ordered(attribute)]
            if labels:
                rows.append([attribute, f"{len(labels):,}", " · ".join(labels)])
    return joined(
        tag(
            "p",
            "These columns were declared by their bounds alone. Where their rows lie was bought with part of the "
            "budget: single values that many rows hold, and ranges that hold alike many. Inside a range, values follow "
            "the slope of the ranges beside it.",
        ),
        folded(
            f"The cells of {counted(len(rows), 'column')}", table(["column", "cells", "cut where"], rows, figures=(1,))
        ),
    )
