"""What a comparison comes to, as a paper prints it: means with intervals, paired differences, CSV, LaTeX, SVG. PRIVATE.

Run r of every method has the same seeds and is judged by the same marginals and queries, so runs are paired: the
difference of two methods is the mean of the runs' differences, and its interval is narrower than those of the two.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from hedgerow.pages.charts import Spread, curves, standing_alone
from hedgerow.pages.comparison import MetricView

Row = Mapping[str, Any]
CONFIDENCE = 0.95
HIDDEN = ("made", "versions")
"""Columns of the results that a spreadsheet has no use for; results.parquet and the manifest have them."""


@dataclass(frozen=True)
class Summary:
    """A figure of one method on one table at one ε: the mean of its runs, and how far from `against`."""

    table: str
    name: str
    epsilon: float | None
    metric: str
    runs: int
    mean: float
    low: float | None
    """The ends of the 95 % t-interval of the mean; None for a single run."""
    high: float | None
    against: str
    difference: float | None
    """The mean of (this − against) over the runs that both have."""
    difference_low: float | None
    difference_high: float | None


def summaries(rows: Iterable[Row], metrics: Sequence[str], against: str) -> list[Summary]:
    """One for each table, name, ε and figure, in the order of the rows."""
    groups: dict[tuple[str, str, float | None], dict[int, Row]] = {}
    for row in rows:
        if row["status"] == "done":
            groups.setdefault((row.get("table", ""), row["name"], row["epsilon"]), {})[row["run"]] = row
    found = []
    for (table, name, epsilon), runs in groups.items():
        others = groups.get((table, against, epsilon), {})
        for metric in metrics:
            values = [row[metric] for row in runs.values() if row.get(metric) is not None]
            if not values:
                continue
            apart = [
                row[metric] - others[run][metric]
                for run, row in runs.items()
                if name != against and run in others and None not in (row.get(metric), others[run].get(metric))
            ]
            mean, low, high = interval(values)
            middle, below, above = interval(apart) if apart else (None, None, None)
            found.append(
                Summary(table, name, epsilon, metric, len(values), mean, low, high, against, middle, below, above)
            )
    return found


def interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The mean, and the ends of Student's 95 % interval where there are two values or more."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None, None
    from scipy.special import stdtrit

    reach = float(stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2)) * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def summary_csv(found: Sequence[Summary]) -> str:
    return _csv([field.name for field in fields(Summary)], map(asdict, found))


def results_csv(rows: Sequence[Row]) -> str:
    names = [name for name in dict.fromkeys(key for row in rows for key in row) if name not in HIDDEN]
    return _csv(names, rows)


def _csv(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def latex(found: Sequence[Summary], metric: MetricView) -> str:
    """A tabular of one figure: a line for each method, a column for each table and ε, the best in bold.

    ± is half of the 95 % interval. It needs the package booktabs.
    """
    held = [each for each in found if each.metric == metric.name and each.epsilon is not None]
    tables = list(dict.fromkeys(each.table for each in held))
    columns = sorted({(each.table, each.epsilon or 0.0) for each in held}, key=lambda at: (tables.index(at[0]), at[1]))
    names = list(dict.fromkeys(each.name for each in held))
    cells = {(each.name, each.table, each.epsilon): each for each in held}
    pick = {"low": min, "high": max}.get(metric.best)
    best = {
        column: pick(each.mean for each in held if (each.table, each.epsilon) == column) if pick else None
        for column in columns
    }
    lines = [
        f"% {metric.title}: {metric.meaning}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}}}",
        "\\toprule",
        " & ".join(["", *(_escaped(table) for table, _ in columns)]) + " \\\\",
        " & ".join(["", *(f"$\\varepsilon = {epsilon:g}$" for _, epsilon in columns)]) + " \\\\",
        "\\midrule",
    ]
    for name in names:
        said = [_figure(cells.get((name, *column)), best[column]) for column in columns]
        lines.append(" & ".join([_escaped(name), *said]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def _figure(each: Summary | None, best: float | None) -> str:
    if each is None:
        return "--"
    reach = "" if each.high is None else f" \\pm {each.high - each.mean:.4f}"
    number = f"\\mathbf{{{each.mean:.4f}}}" if each.mean == best else f"{each.mean:.4f}"
    return f"${number}{reach}$"


def _escaped(text: str) -> str:
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    return "".join(special.get(letter) or (f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def svg(found: Sequence[Summary], metric: MetricView) -> str:
    """Error against ε with 95 % intervals, a panel for each table, under one another."""
    panels = []
    for table in dict.fromkeys(each.table for each in found):
        held = [each for each in found if each.metric == metric.name and each.table == table]
        series: dict[str, list[Spread]] = {}
        for each in sorted(held, key=lambda each: each.epsilon or 0.0):
            if each.epsilon is not None:
                ends = (each.mean if each.low is None else each.low, each.mean if each.high is None else each.high)
                tip = f"{each.name}, ε = {each.epsilon:g}: {each.mean:.4g}, {each.runs} runs"
                series.setdefault(each.name, []).append(Spread(each.epsilon, each.mean, *ends, tip))
        levels = {each.name: each.mean for each in held if each.epsilon is None}
        said = f"{table}: {metric.title}" if table else metric.title
        if series:
            panels.append(curves(series, levels, said, "ε", said))
    return standing_alone(panels)
