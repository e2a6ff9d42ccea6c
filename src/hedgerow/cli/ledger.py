"""hedgerow ledger: open a lifetime budget, and see what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The lifetime budget of a dataset, shared by all releases of it.", no_args_is_help=True)


@app.command()
def create(
    file: Annotated[Path, typer.Argument(help="The ledger to create; an existing file is never overwritten.")],
    dataset: Annotated[str, typer.Option(help="The dataset's name, as its schema declares it.")],
    epsilon: Annotated[float, typer.Option(help="ε for the lifetime of the dataset.")],
    delta: Annotated[float, typer.Option(help="δ for the lifetime of the dataset; 0 allows pure ε only.")] = 1e-8,
) -> None:
    """Open a ledger for a dataset."""
    from hedgerow.budget.amounts import Budget
    from hedgerow.cli.doubts import warn
    from hedgerow.private.ledger import Ledger

    budget = Budget(epsilon, delta)
    warn(budget.doubts())
    ledger = Ledger.create(file, dataset, budget)
    print(f'{file}: ledger of "{ledger.dataset}", ε = {epsilon:g}, δ = {delta:g} for its lifetime')


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    delta: Annotated[float | None, typer.Option(help="The δ of the next release (default: the ledger's own).")] = None,
) -> None:
    """What the dataset has spent so far, and what is left."""
    from hedgerow.budget.amounts import Budget
    from hedgerow.private.ledger import Ledger, equivalent_epsilon

    ledger = Ledger(file)
    budget = ledger.budget
    print(f'ledger of "{ledger.dataset}": ε = {budget.epsilon:g}, δ = {budget.delta:g} for its lifetime')
    for entry in ledger.entries()[1:]:
        record = entry.record
        if "debit" in record:
            made = "a first look" if record["method"] == "look" else f"release by {record['method']}"
            what = f"{made}, ε = {record['epsilon']:g}, δ = {record['delta']:g}"
        else:
            what = f"looked at exact data: {record['looked']}"
        print(f"  {entry.number:4}  {record['time']}  {what}")
    for said in ledger.torn():
        print(f"   !  {said}")
    print(f"spent: ε = {equivalent_epsilon(ledger):.6g} at δ = {budget.delta:g}")
    asked = Budget(budget.epsilon, budget.delta if delta is None else delta)
    print(f"left:  ε = {ledger.remaining_epsilon(asked.delta):.6g} at δ = {asked.delta:g}, for one more release")


def say_what_is_torn(file: Path | None) -> None:
    """Point out, before a command that writes to a ledger closes it, a line that was cut short."""
    import sys

    from hedgerow.private.ledger import Ledger

    for said in [] if file is None else Ledger(file).torn():
        print(f'hedgerow: in the ledger "{file}" {said}', file=sys.stderr)
