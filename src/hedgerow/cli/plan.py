"""hedgerow plan: what a release will be worth, before anything is opened or spent."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.doubts import warn
from hedgerow.cli.ends import say_next
from hedgerow.cli.options import AllowColumn, Delta, Json, Quiet, SchemaNames, words
from hedgerow.cli.progress import waiting
from hedgerow.errors import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hedgerow.run.forecast import Forecast


def plan(
    schema: SchemaNames,
    rows: Annotated[
        int, typer.Option(min=1, help="About how many rows there are. Publish no plan made with the true number.")
    ],
    epsilon: Annotated[str, typer.Option("-e", "--epsilon", help="One or more, for example 0.5,1,2,4.")] = "0.3,1,3,10",
    delta: Delta = 1e-9,
    method: Annotated[
        str | None, typer.Option("-m", "--method", help="Several, hedge,mst, to see what a choice among them costs.")
    ] = None,
    quality: Annotated[
        float | None, typer.Option(help="As for synth: part of the budget that measures quality.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(dir_okay=False, help="An .svg file to write: error against ε.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the picture if it exists.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
    allow_column: AllowColumn = None,
) -> None:
    """Foretell how good a release will be; no table is opened.

    The forecast is for the default method, and nothing is spent on it.

    Examples:
        hedgerow plan -s people.yaml --rows 30000 -e 0.3,1,3
        hedgerow plan -s people.yaml --rows 30000 -e 0.5,1,2,4 --picture plan.svg
    """
    from hedgerow.budget.amounts import Budget
    from hedgerow.cli.runs import wanted
    from hedgerow.errors import unread
    from hedgerow.private.discovery import SHARE_OF_QUALITY
    from hedgerow.run.forecast import advice, alternatives, cost_of_choice, forecast
    from hedgerow.run.outputs import check_outputs
    from hedgerow.run.precedents import PRECEDENTS
    from hedgerow.schema import Schema

    with unread(), waiting("forecast", quiet):
        if picture is not None:
            check_outputs([(picture, (".svg",))], {"schema": schema[0]}, overwrite=overwrite)
        declared = Schema.load(schema[0] if len(schema) == 1 else tuple(schema)).unlinked("plan")
        budgets = [Budget(each.epsilon, each.delta) for each in wanted(schema, epsilon, delta)]
        share = SHARE_OF_QUALITY if quality is None else quality
        told = [forecast(declared, budget, rows, share) for budget in budgets]
        others = {budget.epsilon: alternatives(declared, budget, rows, share) for budget in budgets}
        rivals = words(method or "")
        choice = cost_of_choice(declared, budgets[0], rows, len(rivals), share) if len(rivals) > 1 else None
        sentence = advice(told, others[max(others)])
        warn(doubt for budget in budgets for doubt in budget.doubts())
    if picture is not None:
        _draw(picture, told, overwrite)
    if json_:
        forecasts = [
            asdict(each) | {"alternatives": {name: asdict(other) for name, other in others[each.epsilon].items()}}
            for each in told
        ]
        said = {"rows": rows, "delta": delta, "forecasts": forecasts, "advice": sentence, "choice": choice}
        print(json.dumps(said | {"precedents": [each._asdict() for each in PRECEDENTS]}))
        return
    _print(told, others, rows, choice, len(rivals), sentence)
    named = [word for each in schema for word in ("-s", each)]
    say_next(quiet, "synth", "TABLE", *named, "-e", "EPSILON", "-o", "OUT", "--dry-run", why="opens no table either")


def _print(
    told: Sequence[Forecast],
    others: Mapping[float, Mapping[str, Forecast]],
    rows: int,
    choice: float | None,
    rivals: int,
    said: str,
) -> None:
    from hedgerow.errors import listing
    from hedgerow.run.precedents import PRECEDENTS

    print(f"Expected of about {rows:,} rows, by the default method; no table was opened, nothing was spent.")
    print("Columns, pairs and triples: the share of rows in wrong cells, on average over all of them.\n")
    print(f"  {'ε':>6}  {'columns':>9}  {'pairs':>9}  {'triples':>17}  relations")
    for each in told:
        low, high = each.triples
        singles = f"{each.epsilon:>6g}  {each.columns:>9.2%}  {each.pairs:>9.1%}"
        print(f"  {singles}  {low:>7.1%} – {high:>7.1%}  {each.relations:>9}")
    print()
    for each in told:
        for name, other in others[each.epsilon].items():
            if other.epsilon == each.epsilon or other.epsilon not in others:
                learnt = counted(other.relations, "relation")
                print(f"  ε = {each.epsilon:g}, {name}: pairs {other.pairs:.1%}, {learnt}")
    for each in told:
        if each.too_wide:
            print(f"  ε = {each.epsilon:g}, too wide for their noise: {listing(each.too_wide)}")
    if choice is not None:
        print(
            f"\nA choice among {rivals} methods leaves each a part of the budget: about {choice:.0%} more error of "
            "pairs. It pays where you expect them to differ by more."
        )
    print(f"\n{said}")
    print(
        "Forecasts of columns and pairs are right within a factor of 2 on most tables, no better: docs/studies/plan.md."
    )
    print("\nWhat others published synthetic rows at:")
    for precedent in PRECEDENTS:
        note = f" ({precedent.note})" if precedent.note else ""
        print(f"  ε = {precedent.epsilon:g}: {precedent.release}{note}. Source: {precedent.source}.")


def _draw(path: Path, told: Sequence[Forecast], overwrite: bool) -> None:
    from hedgerow.pages.shell import picture
    from hedgerow.release.files import whole_file
    from hedgerow.run.forecast import drawn

    with whole_file(path, replace=overwrite) as partial:
        partial.write_text(picture(drawn(told)), encoding="utf-8", newline="\n")
