"""hedgerow compare: methods × ε × runs, beside floors and tables made elsewhere. PRIVATE."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.budget.amounts import Budget
from hedgerow.cli.doubts import warn
from hedgerow.cli.evaluate import PRIVATE
from hedgerow.cli.options import Delta, FileKeys, Json, Quiet, file_keys, seconds, size, words
from hedgerow.errors import OptionError, unread

if TYPE_CHECKING:
    from hedgerow.compare import Plan, Results
    from hedgerow.compare.grid import Row


def compare(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="The private table; or a plan of several, in YAML or JSON.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the results; one that exists is gone on with.")],
    schema: Annotated[
        str | None, typer.Option("-s", "--schema", help="What the columns may hold: a file, or preset:NAME.")
    ] = None,
    file: FileKeys = None,
    methods: Annotated[
        str, typer.Option(help="Comma-separated, LABEL=METHOD too; package.module:Class for one made elsewhere.")
    ] = "hedge,aim,mst",
    programs: Annotated[
        list[str] | None,
        typer.Option("--program", help="NAME=COMMAND that reads {table} and writes {out}.csv or .parquet; repeatable."),
    ] = None,
    epsilons: Annotated[str, typer.Option("--epsilons", "-e", help="Comma-separated.")] = ".1,1,10",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each method at each ε.")] = 3,
    delta: Delta = 1e-9,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Method option, METHOD.option=value; repeatable.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="A synthetic table made elsewhere, NAME@ε=FILE; repeatable.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="As for evaluate; default those that are soon computed, and with --target the classifiers."),
    ] = None,
    public: Annotated[
        str | None, typer.Option(help="A public table of the same columns, for methods that use one.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column that svm and boosting predict.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="The dataset's ledger; every run is debited.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Run r uses seed + r, for every method.")] = 0,
    unsafe_noise_seed: Annotated[
        int | None, typer.Option(min=0, help="Public tables only: the same noise stream for every method.")
    ] = None,
    max_memory: Annotated[str, typer.Option(help="For the model of a run, for example 4GB.")] = "4GB",
    max_time: Annotated[str, typer.Option(help="After which a run is stopped, for example 10m.")] = "1h",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed or timed out.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """PRIVATE: run several methods, compare each with the real rows.

    Methods × ε × runs on the private table, or on the tables of a plan, beside floors and tables made elsewhere.

    Examples:
        hedgerow compare people.csv -s people.yaml --methods mst,independent -e 1 --runs 1 -o comparison
        hedgerow compare study.yaml -o study
    """
    from hedgerow.cli.ledger import say_what_is_torn
    from hedgerow.compare import ForeignTable, Plan, Study
    from hedgerow.compare import compare as compare_methods
    from hedgerow.compare.study import run_study
    from hedgerow.private.evaluate.evaluation import compared_metrics, settled_metrics

    def say(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    if Path(table).suffix in PLANS:
        with unread():
            _refuse_beside_a_plan(context)
            study = Study.load(table)
        found = run_study(study, out, jobs=jobs, retry=retry, command=tuple(sys.argv), say=say)
        _told(found, out, json_)
        return
    with unread():
        if schema is None:
            raise OptionError("no-schema", "a comparison needs -s/--schema: what the columns may hold.")
        labelled = [_labelled(each) for each in words(methods)]
        wanted = words(metrics) if metrics is not None else compared_metrics(target)
        plan = Plan(
            table=table,
            schema=schema,
            methods=tuple(label for label, _ in labelled),
            named={label: name for label, name in labelled if label != name},
            programs=dict(_program(each) for each in programs or []),
            epsilons=_numbers(epsilons),
            runs=runs,
            metrics=tuple(settled_metrics(wanted, target, ())),
            delta=delta,
            options=_options_by_method(set_ or []),
            file=file_keys(file),
            tables=tuple(ForeignTable.parse(each) for each in tables or []),
            public=public,
            target=target,
            ledger=None if ledger is None else str(ledger),
            seed=seed,
            unsafe_noise_seed=unsafe_noise_seed,
            max_memory=size(max_memory),
            max_seconds=seconds(max_time),
        )

    say_what_is_torn(ledger)
    if plan.ledger is None:
        say("hint: no --ledger was given; every run of a method is a release, and nothing adds them up.")
    warn(dict.fromkeys(doubt for epsilon in plan.epsilons for doubt in Budget(epsilon, plan.delta).doubts()))
    rows = compare_methods(plan, out, jobs=jobs, retry=retry, command=sys.argv, say=say)
    if json_:
        print(json.dumps({"private": True, "out": str(out), "rows": rows}))
        return
    _summary(plan, rows, out)


PLANS = (".yaml", ".yml", ".json")
BESIDE_A_PLAN = ("table", "out", "jobs", "retry", "json_", "quiet")


def _refuse_beside_a_plan(context: typer.Context) -> None:
    """What a plan says is not said twice."""
    typed = [
        name
        for name in context.params
        if name not in BESIDE_A_PLAN
        and (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    ]
    if typed:
        option = typed[0].rstrip("_").replace("_", "-")
        raise OptionError(
            "option-beside-plan",
            f"--{option} is a matter of the plan; beside a plan only --out, --jobs, --retry count.",
        )


def _told(found: Results, out: Path, json_: bool) -> None:
    """What a study came to."""
    if json_:
        summary = [asdict(each) for each in found.summary]
        print(json.dumps({"private": True, "out": str(out), "rows": found.rows, "summary": summary}))
        return
    print(PRIVATE)
    for each in found.summary:
        if found.metrics and each.metric == main_of(found) and each.epsilon is not None:
            spread = "" if each.high is None else f" ± {each.high - each.mean:.4f}"
            print(f"{each.table}  ε = {each.epsilon:<5g} {each.name:20} {each.metric} {each.mean:.4f}{spread}")
    failed = sum(row["status"] != "done" for row in found.rows)
    if failed:
        print(f"{failed} of {len(found.rows)} cells did not end well; the pages say why, --retry runs them again")
    print(f"{out}: results.csv, summary.csv, tables (.tex), figures (.svg), a page for each table. PRIVATE too")


def main_of(found: Results) -> str:
    from hedgerow.pages.comparison import main_metric

    return main_metric(found.metrics).name


def _labelled(text: str) -> tuple[str, str]:
    """LABEL=METHOD, or a method that is its own label."""
    label, equals, name = text.partition("=")
    return (label, name) if equals else (text, text)


def _program(text: str) -> tuple[str, str]:
    """NAME=COMMAND."""
    from hedgerow.compare.program import words_of

    name, equals, command = text.partition("=")
    if not (equals and name):
        raise OptionError("bad-program", f'--program takes NAME=COMMAND, got "{text}".')
    words_of(command)
    return name, command


def _summary(plan: Plan, rows: Sequence[Row], out: Path) -> None:
    """Which method did best."""
    from hedgerow.compare.grid import views_of
    from hedgerow.pages.comparison import best_methods, main_metric

    print(PRIVATE)
    done = [row for row in rows if row["status"] == "done"]
    views = views_of(plan, done)
    if views:
        main = main_metric(views)
        print(f"{main.name}: {main.meaning}")
        for epsilon, ranked in best_methods(done, main).items():
            print(f"ε = {epsilon:<5g} " + "   ".join(f"{name} {value:.4f}" for name, value in ranked))
        floors = {row["name"]: row[main.name] for row in done if row["kind"] == "floor" and main.name in row}
        print("floors    " + "   ".join(f"{name} {value:.4f}" for name, value in floors.items()))
    failed = len(rows) - len(done)
    if failed:
        print(f"{failed} of {len(rows)} cells did not end well; the page says why, --retry runs them again")
    print(f"{out / 'comparison.html'}: the page; {out / 'results.parquet'}: every run. PRIVATE too")


def _numbers(text: str) -> tuple[float, ...]:
    """.1,1,10"""
    try:
        values = tuple(float(word) for word in text.split(",") if word.strip())
        if not values or not all(0 < value < math.inf for value in values):
            raise ValueError
    except ValueError:
        raise OptionError("bad-epsilons", f'--epsilons takes numbers such as .1,1,10, got "{text}".') from None
    return values


def _options_by_method(pairs: list[str]) -> dict[str, dict[str, str]]:
    """--set METHOD.option=value, given several times."""
    given: dict[str, dict[str, str]] = {}
    for pair in pairs:
        left, equals, value = pair.partition("=")
        method, dot, option = left.rpartition(".")
        if not (equals and dot):
            raise OptionError(
                "bad-setting",
                f'--set takes METHOD.option=value, for example aim.rounds=8, got "{pair}".',
            )
        if option in given.setdefault(method, {}):
            raise OptionError("set-twice", f'--set gives "{left}" twice.')
        given[method][option] = value
    return given
