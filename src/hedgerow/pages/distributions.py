"""One column's distribution as a picture that fits: few values by name, many in their order, the rest summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.coded.domain import Counts
from hedgerow.markup import Markup
from hedgerow.pages.charts import Bar, columns_of_bars, rows_of_bars

EMPTY = "(empty)"
"""A value of no letters, which is not the same as a missing one."""
MOST_NAMED = 14
MOST_COLUMNS = 48
MOST_CODES = 100_000
"""An attribute with more codes is not drawn: nobody could tell its values apart."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Values of several series over the codes of an attribute.

    `ordered` is the number of codes, the first ones, that are in order. `spread` is the standard deviation of one value
    of the first series, where it is noisy. `unit` says what a value is: "share" of the rows, or "rows".
    """

    name: str
    labels: Sequence[str]
    series: Sequence[tuple[str, Counts]]
    ordered: int = 0
    spread: float | None = None
    unit: str = "share"

    def picture(self, fills: Sequence[str]) -> Markup:
        """Named bars for up to 14 values, otherwise a histogram (ordered) or the most frequent values (unordered)."""
        if len(self._shown()) <= MOST_NAMED:
            bars = self._bars([[index] for index in self._shown()])
            return rows_of_bars(bars, fills, self._read_out(bars))
        if self.ordered > MOST_NAMED:
            bars = self._bars(self._runs())
            return columns_of_bars(bars, fills, self._read_out(bars), min(self.ordered, MOST_COLUMNS))
        bars = self._bars(self._frequent())
        return rows_of_bars(bars, fills, self._read_out(bars))

    def _read_out(self, bars: Sequence[Bar]) -> str:
        """The picture for readers who cannot see it: every bar's values."""
        what = " and ".join(name for name, _ in self.series)
        said = "; ".join(f"{bar.label}: {' and '.join(map(self.said, bar.heights))}" for bar in bars)
        return f"{self.name}, {what}. {said}"

    def _shown(self) -> list[int]:
        """Codes that occur somewhere, and every ordered one: a gap among them is worth seeing."""
        occurs = np.any([values != 0 for _, values in self.series], axis=0)
        return [index for index in range(len(self.labels)) if occurs[index] or index < self.ordered]

    def _runs(self) -> list[list[int]]:
        """Neighbours merged into at most 48 columns, and the unordered codes one by one."""
        runs = np.array_split(np.arange(self.ordered), min(self.ordered, MOST_COLUMNS))
        return [*(run.tolist() for run in runs), *([index] for index in self._shown() if index >= self.ordered)]

    def _frequent(self) -> list[list[int]]:
        """The values that are frequent in any series, in their order, and one bar for all others."""
        heights = np.max([values for _, values in self.series], axis=0)
        order = np.argsort(-heights, kind="stable")
        kept = sorted(order[: MOST_NAMED - 2].tolist())
        return [*([index] for index in kept), sorted(order[MOST_NAMED - 2 :].tolist())]

    def _bars(self, groups: Sequence[Sequence[int]]) -> list[Bar]:
        return [self._bar(group) for group in groups]

    def _bar(self, group: Sequence[int]) -> Bar:
        heights = tuple(float(values[list(group)].sum()) for _, values in self.series)
        whisker = None if self.spread is None else 2 * self.spread * len(group) ** 0.5
        label = self._label(group)
        said = [f"{name}: {self.said(height)}" for (name, _), height in zip(self.series, heights, strict=True)]
        if whisker is not None:
            said[0] += f" ± {self.said(whisker)}"
        return Bar(label, heights, "\n".join([f"{self.name} = {label}", *said]), whisker)

    def _label(self, group: Sequence[int]) -> str:
        if len(group) == 1:
            return self.labels[group[0]] or EMPTY
        if group[-1] >= self.ordered or group[-1] - group[0] >= len(group):
            return f"{len(group)} other values"
        first, last = self.labels[group[0]], self.labels[group[-1]]
        return f"{first.split(' – ')[0]} – {last.split(' – ')[-1]}"

    def said(self, value: float) -> str:
        """A value with its unit."""
        return f"{100 * value:.2f} %" if self.unit == "share" else f"{value:,.0f} {self.unit}"
