"""What the experiments of PPSyn's write-up came to: docs/studies/ppsyn.md and its figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import counted
from reproduce.charts import Panel, lines

METHODS = ("ppsyn", "ppsyn-printed", "aim", "mst", "privmrf")
NAMES = ("ppsyn (private)", "as printed (NOT PRIVATE)", "aim", "mst", "privmrf")
PRIVATE = ("ppsyn", "aim", "mst", "privmrf")
METRICS = {"workload": "workload error", "range3": "3-d ranges", "range5": "5-d ranges"}
FAMILIES = {
    "mass": "`mass`: boxes of like mass",
    "error": "`error`: Algorithm 4",
    "sorted": "`sorted`: Algorithm 3, on any marginal",
}
TABLES = ("adult", "br2000", "loans")
CHART = (200, 130)

Results = Sequence[tuple[Mapping[str, Any], Mapping[str, float]]]


def write_page(docs: Path, results: Results, budgets: Mapping[str, Sequence[float]]) -> None:
    """The page and its figures, as far as cells are there."""
    pictures = docs / "pictures" / "ppsyn"
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "required.svg").write_text(required_figure(budgets))
    body = [INTRODUCTION, "## Required budget (figure 2)\n", required_text(budgets)]
    for heading, name, figure in (
        ("Errors against ε (figures 3–5)", "errors", errors_figure(results)),
        ("η (figures 7 and 8)", "eta", eta_figure(results)),
        ("Degree of the workload (figure 9)", "degree", degree_figure(results)),
    ):
        body.append(f"## {heading}\n")
        if figure:
            (pictures / f"{name}.svg").write_text(figure)
            body.append(f"![{heading}](../pictures/ppsyn/{name}.svg)\n")
        body += {"errors": errors_tables, "eta": eta_table, "degree": degree_table}[name](results)
    body += ["## Families of partitions\n", *family_table(results)]
    body += [
        "## Support vector machine (figure 6)\n",
        *svm_table(results),
        "## Which claims hold\n",
        *claims(results),
        FINDINGS,
    ]
    (docs / "studies" / "ppsyn.md").write_text("\n".join(body).rstrip() + "\n")


INTRODUCTION = """# PPSyn's experiments, made private

The write-up (Zhang, Deng, Yin 2023, arXiv:2310.06371) partitions exact counts, so its method as printed is not private:
of two tables that differ by one row it merges different cells. [`ppsyn`](../understand/methods/ppsyn.md) is the
repaired method. Both are run here beside our `aim`, `mst` and [`privmrf`](../understand/methods/privmrf.md), the
write-up's three competitors.
"As printed" has **no privacy guarantee** at any ε: its figures show what exact counts are worth, not what can be had.

δ = 1e-9. Workload: the 3-way marginals of at most 10,000 cells (210 of them by lot where there are more), the same for
all methods. Workload error: (1/n·|W|) Σ ‖p − p̂‖₁. Range errors: mean squared error of the share of rows in random
ranges over 210 sets of three and 37 sets of five attributes, drawn with squared exponential weights, four ranges each.
Figures are medians over the runs given. Written by `python -m reproduce.ppsyn`, which goes on with what is missing of
its grid: further runs and folds, and the printed procedure at other η and in the classifier. `--full` makes more of it.
"""


FINDINGS = """What that comes to, on the runs counted above (where there is one run, small differences mean little):

- *PPSyn has the least workload error on adult and br2000.* Against `mst` the private method does at every ε. Against
  `aim` it does on adult from ε = 0.1 on, on br2000 at ε = 0.1 and 0.3. At ε = 0.05, where most of the budget goes to
  single columns, `aim` is ahead by about a hundredth of the error on both, less than the runs lie apart; at ε = 1 and
  2 it is ahead on br2000.
- *The lead is largest at small ε.* Not here: against `aim` it is largest on adult at ε = 0.1 and 0.3.
- *On loans PPSyn is ahead of AIM and MST.* Holds for the private method at ε = 0.3, 1 and 2; `aim` is ahead at 0.05,
  `mst` at 0.1 (one run). The printed procedure is behind both at every ε.
- *PPSyn is ahead of PrivMRF.* Holds for the private method in every cell of the workload error, and in most of the
  ranges. On adult and br2000 `privmrf` has less workload error than `mst` at ε = 1 and 2, more at 0.05 and 0.1; on
  loans it has more everywhere. It neither merges rare values nor denoises columns.
- *Range queries are answered better.* Holds for the private method in most cells, in three and in five dimensions.
- *η ≈ 0.7 is best.* The private method shows no trend in η on any of the three tables, in one run each, neither in
  workload error nor in ranges.
- *The error grows with the degree* holds for every method. So does, in one run, *the lead grows with it*: `aim` is
  ahead on 2- and 3-way marginals, the private method on 4- and 5-way ones, by more on the latter.
- *The required budget is U-shaped in the number of blocks* holds.
- Exact counts bring the printed procedure little: its workload error is above that of the private method in most cells,
  most of all on loans. It spreads a block's count evenly over its cells, keeps its books in zCDP, and does not merge
  rare values.
- *A classifier trained on PPSyn's rows errs least.* On the one fold that was run it does on br2000 at ε = 0.3 (at 0.1
  `privmrf` errs 0.0006 less); on adult `aim` errs less, and `mst` at ε = 0.1 and 0.3.
"""


def required_text(budgets: Mapping[str, Sequence[float]]) -> str:
    said = []
    for eta, curve in budgets.items():
        least = min(curve)
        said.append(f"{curve.index(least) + 1} blocks at η = {eta} (ρ = {least:.2g}; {curve[-1]:.2g} for every cell)")
    return (
        "The ρ that a partition of adult's hours-per-week needs for an error of η·Contr (Algorithm 3 on exact counts, "
        "against a uniform model) falls with the number of blocks and rises again where blocks become too coarse. "
        "The least: " + "; ".join(said) + ".\n\n![Required budget](../pictures/ppsyn/required.svg)\n"
    )


def required_figure(budgets: Mapping[str, Sequence[float]]) -> str:
    ticks = [1, 2, 4, 7, 10, 15, 20, 30, 45, 60, 80, 99]
    ceiling = 1e-2
    series = [[min(curve[tick - 1], ceiling) for tick in ticks] for curve in budgets.values()]
    names = [f"η = {eta}" for eta in budgets]
    return lines(
        "Required ρ by number of blocks", names, [Panel("hours-per-week", series)], list(map(str, ticks)), 1, (380, 170)
    )


def chosen(results: Results, **asked: Any) -> list[Mapping[str, float]]:
    return [found for cell, found in results if all(cell[name] == value for name, value in asked.items())]


def median(results: Results, metric: str, **asked: Any) -> float | None:
    values = [found[metric] for found in chosen(results, **asked) if metric in found]
    return statistics.median(values) if values else None


def epsilons(results: Results, table: str, methods: Sequence[str] = METHODS) -> list[float]:
    """Those at which all of these methods have run."""
    of_method = [{cell["epsilon"] for cell, _ in results if _is(cell, "errors", table, method)} for method in methods]
    return sorted(set.intersection(*of_method))


def _is(cell: Mapping[str, Any], study: str, table: str, method: str) -> bool:
    return bool(cell["study"] == study and cell["table"] == table and cell["method"] == method)


def errors_figure(results: Results) -> str | None:
    shared = [table for table in TABLES if epsilons(results, table)]
    if not shared:
        return None
    ticks = sorted(set.intersection(*(set(epsilons(results, table)) for table in shared)))
    panels = [
        Panel(
            f"{table}: {name}",
            [
                [median(results, metric, study="errors", table=table, method=m, epsilon=e) or 0 for e in ticks]
                for m in METHODS
            ],
        )
        for table in shared
        for metric, name in METRICS.items()
    ]
    return lines("Errors against ε", NAMES, panels, [f"{tick:g}" for tick in ticks], 3, CHART)


def errors_tables(results: Results) -> Iterable[str]:
    for table in TABLES:
        ticks = epsilons(results, table, PRIVATE)
        if not ticks:
            continue
        for metric, name in METRICS.items():
            yield f"**{table}, {name}**" + (" (× 10⁻⁴)" if metric != "workload" else "") + "\n"
            yield "| method | " + " | ".join(f"ε = {tick:g}" for tick in ticks) + " |"
            yield "|---" * (len(ticks) + 1) + "|"
            for method, label in zip(METHODS, NAMES, strict=True):
                asked = {"study": "errors", "table": table, "method": method}
                figures = []
                for tick in ticks:
                    value = median(results, metric, epsilon=tick, **asked)
                    count = len(chosen(results, epsilon=tick, **asked))
                    figures.append(_shown(metric, value) + (f" ({count})" if count else ""))
                yield f"| {label} | " + " | ".join(figures) + " |"
            yield ""
    yield "In brackets: runs.\n"


def eta_figure(results: Results) -> str | None:
    ticks = _values(results, "eta", "eta")
    panels = [
        Panel(
            f"{table}, {name}",
            [
                [median(results, metric, study="eta", table=table, method=m, eta=t) or 0 for t in ticks]
                for m in METHODS[:2]
                if _complete(results, table, m, ticks)
            ],
        )
        for table in TABLES
        for metric, name in list(METRICS.items())[:2]
        if ticks and _complete(results, table, METHODS[0], ticks)
    ]
    return lines("η at ε = 0.1", NAMES[:2], panels, [f"{tick:g}" for tick in ticks], 2, CHART) if panels else None


def eta_table(results: Results) -> Iterable[str]:
    ticks = _values(results, "eta", "eta")
    if not ticks:
        return
    runs = max(len(chosen(results, study="eta", table=t, method=METHODS[0], eta=ticks[0])) for t in TABLES)
    for metric, name in list(METRICS.items())[:2]:
        scale = "" if metric == "workload" else " (× 10⁻⁴)"
        yield f"**{name.capitalize()}**{scale} at ε = 0.1, {counted(runs, 'run')} each.\n"
        yield "| table | method | " + " | ".join(f"η = {tick:g}" for tick in ticks) + " |"
        yield "|---" * (len(ticks) + 2) + "|"
        for table in TABLES:
            for method, label in zip(METHODS[:2], NAMES, strict=False):
                if _complete(results, table, method, ticks):
                    values = [median(results, metric, study="eta", table=table, method=method, eta=t) for t in ticks]
                    yield f"| {table} | {label} | " + " | ".join(_shown(metric, value) for value in values) + " |"
        yield ""


def _complete(results: Results, table: str, method: str, ticks: Sequence[float]) -> bool:
    """Whether a method has run on a table at every η."""
    return all(chosen(results, study="eta", table=table, method=method, eta=tick) for tick in ticks)


def _shown(metric: str, value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}" if metric == "workload" else f"{1e4 * value:.3f}"


def degree_figure(results: Results) -> str | None:
    ticks = _values(results, "degree", "degree")
    if len(chosen(results, study="degree")) < len(METHODS) * max(1, len(ticks)):
        return None
    series = [[median(results, "workload", study="degree", method=m, degree=t) or 0 for t in ticks] for m in METHODS]
    return lines(
        "Workload error by degree, br2000, ε = 0.1",
        NAMES,
        [Panel("br2000", series)],
        list(map(str, ticks)),
        1,
        (300, 160),
    )


def degree_table(results: Results) -> Iterable[str]:
    ticks = _values(results, "degree", "degree")
    if not ticks:
        return
    yield "| method | " + " | ".join(f"{tick}-way" for tick in ticks) + " |"
    yield "|---" * (len(ticks) + 1) + "|"
    for method, label in zip(METHODS, NAMES, strict=True):
        values = [median(results, "workload", study="degree", method=method, degree=tick) for tick in ticks]
        yield f"| {label} | " + " | ".join("–" if v is None else f"{v:.4f}" for v in values) + " |"
    yield ""


def family_table(results: Results) -> Iterable[str]:
    yield "Workload error of the private method by how it partitions the model's marginals (`--set partition=…`).\n"
    cells = [(table, epsilon) for table in ("adult", "br2000") for epsilon in _values(results, "family", "epsilon")]
    if not cells:
        return
    yield "| partition | " + " | ".join(f"{table}, ε = {epsilon:g}" for table, epsilon in cells) + " |"
    yield "|---" * (len(cells) + 1) + "|"
    for family, label in FAMILIES.items():
        figures = []
        for table, epsilon in cells:
            asked = {"study": "errors" if family == "mass" else "family", "method": "ppsyn", "partition": family}
            value = median(results, "workload", table=table, epsilon=epsilon, **asked)
            count = len(chosen(results, table=table, epsilon=epsilon, **asked))
            figures.append("–" if value is None else f"{value:.4f} ({count})")
        yield f"| {label} | " + " | ".join(figures) + " |"
    yield ""


def svm_table(results: Results) -> Iterable[str]:
    yield (
        "Share of test rows misclassified (radial kernel, at most 5,000 training rows), mean of the folds given, of 5; "
        "the test fold takes no part in synthesis. Targets: `income>50K` of adult, `13` of br2000.\n"
    )
    cells = [(table, epsilon) for table in ("adult", "br2000") for epsilon in _values(results, "svm", "epsilon")]
    cells = [(table, epsilon) for table, epsilon in cells if _folds(results, table, epsilon)]
    if not cells:
        return
    heads = [
        f"{table}, ε = {epsilon:g} ({counted(len(_folds(results, table, epsilon)), 'fold')})"
        for table, epsilon in cells
    ]
    yield "| trained on | " + " | ".join(heads) + " |"
    yield "|---" * (len(cells) + 1) + "|"
    for method, label in zip(METHODS, NAMES, strict=True):
        if any(_is(cell, "svm", t, method) for t, _ in cells for cell, _ in results):
            yield f"| {label} | " + " | ".join(f"{_mean(results, 'svm', t, e, method):.4f}" for t, e in cells) + " |"
    for metric, label in (("svm_real", "real rows"), ("majority", "the most frequent class alone")):
        yield f"| {label} | " + " | ".join(f"{_mean(results, metric, t, e, 'mst'):.4f}" for t, e in cells) + " |"
    yield ""


def _folds(results: Results, table: str, epsilon: float) -> set[int]:
    """Those on which every private method has run."""
    done = [
        {cell["run"] for cell, _ in results if _is(cell, "svm", table, method) and cell["epsilon"] == epsilon}
        for method in PRIVATE
    ]
    return set.intersection(*done)


def _mean(results: Results, metric: str, table: str, epsilon: float, method: str) -> float:
    return statistics.mean(
        chosen(results, study="svm", table=table, epsilon=epsilon, method=method, run=fold)[0][metric]
        for fold in _folds(results, table, epsilon)
    )


def _values(results: Results, study: str, name: str) -> list[Any]:
    return sorted({cell[name] for cell, _ in results if cell["study"] == study})


def claims(results: Results) -> Iterable[str]:
    """Each of the write-up's claims, counted on the medians above."""
    yield "Counted on the medians above: in how many of the cells the method has the lower error.\n"
    yield "| claim | private `ppsyn` | as printed (NOT PRIVATE) |"
    yield "|---|---|---|"
    for metric, name in METRICS.items():
        for other in ("aim", "mst", "privmrf"):
            for tables in (("adult", "br2000"), ("loans",)):
                counted = [_wins(results, metric, method, other, tables) for method in METHODS[:2]]
                if any(epsilons(results, table, PRIVATE) for table in tables):
                    yield f"| {name} below `{other}` on {' and '.join(tables)} | {counted[0]} | {counted[1]} |"
    yield ""


def _wins(results: Results, metric: str, method: str, other: str, tables: Sequence[str]) -> str:
    def error(name: str, table: str, epsilon: float) -> float:
        return median(results, metric, study="errors", table=table, method=name, epsilon=epsilon) or 0.0

    cells = [(table, epsilon) for table in tables for epsilon in epsilons(results, table, (method, other))]
    won = sum(error(method, table, epsilon) < error(other, table, epsilon) for table, epsilon in cells)
    return f"{won} of {len(cells)}" if cells else "–"
