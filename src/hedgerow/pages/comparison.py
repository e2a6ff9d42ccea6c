"""The page of a comparison: error against ε, time against error, the best method for each ε. PRIVATE."""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedgerow.errors import counted
from hedgerow.markup import Content, Markup, joined, tag
from hedgerow.pages.charts import Spread, curves, scatter
from hedgerow.pages.shell import contents, folded, private_page, section, table, tabs

Row = Mapping[str, Any]
MAIN = ("tvd3", "tvd2", "tvd1")
"""The figure by which methods are ranked: the first of these that there is, otherwise the first of all."""


@dataclass(frozen=True)
class MetricView:
    """A figure that the rows hold; `best` says which values are good: "low", "high" or neither."""

    name: str
    title: str
    meaning: str
    best: str


def comparison_page(rows: Sequence[Row], metrics: Sequence[MetricView], manifest: Mapping[str, Any]) -> str:
    """The whole page."""
    done = [row for row in rows if row["status"] == "done"]
    parts: list[tuple[str, str, Content]] = []
    if done and metrics:
        main = main_metric(metrics)
        ordered = [main, *(metric for metric in metrics if metric != main)]
        parts = [
            ("error", "Error against ε", tabs([(each.title, _error(done, each)) for each in ordered])),
            ("best", "The best method for each ε", _best(done, main)),
            ("time", "Time against error", _time(done, main)),
            ("effort", "Time and memory", _effort(rows)),
        ]
    parts += [
        ("failed", "What failed", _failed(rows)),
        ("rows", "All runs", folded(counted(len(rows), "run"), _all(rows, metrics))),
        ("manifest", "How it was made", _manifest(manifest)),
    ]
    count = len({row["name"] for row in rows if row["kind"] in ("method", "program")})
    return private_page(
        "comparison of methods",
        tag("h1", "Methods side by side"),
        tag(
            "p",
            f"{counted(count, 'method')}, {counted(len(rows), 'run')}, each compared with the real rows. "
            "Keep it as you keep the table. Choosing a method or an ε by it is not covered by the guarantee of any "
            "release: choose on public or made-up tables, or count the choice as a risk of your own.",
        ),
        contents((name, title) for name, title, _ in parts),
        [section(name, title, content) for name, title, content in parts],
    )


def main_metric(metrics: Sequence[MetricView]) -> MetricView:
    """The figure by which methods are ranked."""
    known = {metric.name: metric for metric in metrics}
    return next((known[name] for name in MAIN if name in known), metrics[0])


def best_methods(rows: Iterable[Row], metric: MetricView) -> dict[float, list[tuple[str, float]]]:
    """By ε, methods and foreign tables with their median figure, the best first."""
    groups = _grouped([row for row in rows if row["epsilon"] is not None and row.get(metric.name) is not None])
    ranked: dict[float, list[tuple[str, float]]] = {}
    for (name, epsilon), runs in groups.items():
        ranked.setdefault(epsilon, []).append((name, _median(runs, metric.name)))
    sign = -1 if metric.best == "high" else 1
    return {epsilon: sorted(ranked[epsilon], key=lambda each: sign * each[1]) for epsilon in sorted(ranked)}


def _grouped(rows: Iterable[Row]) -> dict[tuple[str, Any], list[Row]]:
    groups: dict[tuple[str, Any], list[Row]] = {}
    for row in rows:
        groups.setdefault((_name(row), row["epsilon"]), []).append(row)
    return groups


def _name(row: Row) -> str:
    """A method with options is another method."""
    return row["name"] if row["options"] in ("{}", "") else f"{row['name']} {row['options']}"


def _names(rows: Iterable[Row]) -> list[str]:
    """All that has an ε, in one order, so that a name has the same colour in every picture."""
    return sorted({_name(row) for row in rows if row["epsilon"] is not None})


def _median(runs: Iterable[Row], name: str) -> float:
    return float(statistics.median(run[name] for run in runs))


def _error(rows: Sequence[Row], metric: MetricView) -> Markup:
    held = [row for row in rows if row.get(metric.name) is not None]
    series: dict[str, list[Spread]] = {}
    for (name, epsilon), runs in _grouped(row for row in held if row["epsilon"] is not None).items():
        values = [run[metric.name] for run in runs]
        low, middle, high = min(values), statistics.median(values), max(values)
        spread = f"{low:.4g} to {high:.4g} over {len(values)} runs" if len(values) > 1 else "1 run"
        tip = f"{name}, ε = {epsilon:g}\n{metric.title}: {middle:.4g}\n{spread}"
        series.setdefault(name, []).append(Spread(epsilon, middle, low, high, tip))
    series = {name: sorted(series.get(name, []), key=lambda point: point.x) for name in _names(rows)}
    floors = _grouped(row for row in held if row["epsilon"] is None)
    levels = {name: _median(runs, metric.name) for (name, _), runs in floors.items()}
    lines = [
        [name, f"{point.x:g}", f"{point.middle:.4g}", f"{point.low:.4g} – {point.high:.4g}"]
        for name, points in series.items()
        for point in points
    ]
    lines += [[name, "–", f"{level:.4g}", ""] for name, level in levels.items()]
    good = {"low": "Lower is better.", "high": "Higher is better."}.get(metric.best, "")
    return joined(
        tag("p", f"{metric.meaning}. {good} Dots: the median of the runs; bars: from the lowest to the highest."),
        tag("p", "Dashed: samples of the real rows themselves (bootstrap; a tenth of the rows).", class_="soft small"),
        tag(
            "div",
            curves(series, levels, f"{metric.title} against ε", "ε", f"{metric.title} ({metric.name})"),
            class_="wide",
        ),
        folded(
            "The same as a table",
            table(["method", "ε", "median", "lowest – highest"], lines, figures=(1, 2, 3)),
        ),
    )


def _best(rows: Sequence[Row], metric: MetricView) -> Markup:
    lines = []
    for epsilon, ranked in best_methods(rows, metric).items():
        names = " · ".join(f"{name} {value:.4g}" for name, value in ranked)
        lines.append([f"{epsilon:g}", tag("b", ranked[0][0]), f"{ranked[0][1]:.4g}", names])
    return joined(
        tag("p", f"By the median of {metric.title} ({metric.meaning})."),
        table(["ε", "best", metric.title, "all, the best first"], lines, figures=(0, 2)),
    )


def _time(rows: Sequence[Row], metric: MetricView) -> Markup:
    series: dict[str, list[tuple[float, float, str]]] = {}
    measured = [row for row in rows if row.get("cpu_s") is not None and row.get(metric.name) is not None]
    for (name, epsilon), runs in _grouped(measured).items():
        seconds, error = _median(runs, "cpu_s"), _median(runs, metric.name)
        tip = f"{name}, ε = {epsilon:g}\n{seconds:.2f} CPU s\n{metric.title}: {error:.4g}"
        series.setdefault(name, []).append((seconds, error, tip))
    if not series:
        return tag("p", "No run of a method ended, so there is no time to show.")
    coloured = {name: series.get(name, []) for name in _names(rows)}
    picture = scatter(coloured, "Time against error", "CPU seconds of a run", f"{metric.title} ({metric.name})")
    return joined(
        tag("p", "One dot for each method and ε, medians of the runs. Down and to the left is better."),
        tag("div", picture, class_="wide"),
    )


def _effort(rows: Sequence[Row]) -> Markup:
    lines = []
    run = [row for row in rows if row["kind"] in ("method", "program")]
    for name in sorted({_name(row) for row in run}):
        runs = [row for row in run if _name(row) == name]
        done = [run for run in runs if run["status"] == "done"]
        figures = ["–", "–", "–"]
        if done:
            figures = [
                f"{_median(done, 'cpu_s'):.2f} s",
                f"{_median(done, 'wall_s'):.2f} s",
                f"{max(run['peak_mb'] for run in done):,.0f} MB",
            ]
        lines.append([name, *figures, f"{len(done)} of {len(runs)}"])
    header = ["method", "CPU time (median)", "wall time (median)", "most memory", "runs that ended well"]
    return table(header, lines, figures=(1, 2, 3, 4))


def _failed(rows: Sequence[Row]) -> Markup:
    lines = [
        [_name(row), _said(row["epsilon"]), str(row["run"] + 1), row["status"], row["problem"]]
        for row in rows
        if row["status"] != "done"
    ]
    if not lines:
        return tag("p", "Nothing: every run ended well.")
    return table(["method", "ε", "run", "what", "why"], lines, figures=(1, 2))


def _all(rows: Sequence[Row], metrics: Sequence[MetricView]) -> Markup:
    header = ["kind", "name", "ε", "run", "status", *(metric.title for metric in metrics), "CPU s", "MB"]
    keys = ["kind", "name", "epsilon", "run", "status", *(metric.name for metric in metrics), "cpu_s", "peak_mb"]
    lines = [[_said(row.get(key)) for key in keys] for row in rows]
    return table(header, lines, figures=range(2, len(header)))


def _said(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _manifest(manifest: Mapping[str, Any]) -> Markup:
    judged = [[name, str(value)] for name, value in manifest["judged"].items()]
    made = [[name, version] for name, version in manifest["versions"].items()]
    commands = [tag("pre", shlex.join(command)) for command in manifest["commands"] if command]
    return joined(
        tag("p", "The command, or the commands that filled in this grid one after the other:") if commands else "",
        commands,
        table(["judged by", ""], judged),
        table(["made with", "version"], made),
    )
