"""hedgerow ledger: open a lifetime budget, and see what is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.command import command, group
from hedgerow.cli.ends import say_next
from hedgerow.cli.options import Quiet

if TYPE_CHECKING:
    from hedgerow.private.ledger import Ledger

app = group("The lifetime budget of a dataset, shared by its releases.")


@command(app)
def create(
    file: Annotated[Path, typer.Argument(help="The ledger to create; an existing file is never overwritten.")],
    dataset: Annotated[str, typer.Option(help="The dataset's name, as its schema declares it.")],
    epsilon: Annotated[
        float | None, typer.Option(help="ε for the lifetime of a person; left out, periods alone have caps.")
    ] = None,
    delta: Annotated[float, typer.Option(help="δ for the lifetime of a person; 0 allows pure ε only.")] = 1e-8,
    quiet: Quiet = False,
) -> None:
    """Open a ledger for a dataset.

    Examples:
        hedgerow ledger create people.ledger --dataset opm --epsilon 4
        hedgerow ledger create yearly.ledger --dataset opm
    """
    from hedgerow.budget.amounts import Budget
    from hedgerow.cli.doubts import warn
    from hedgerow.private.ledger import Ledger

    lifetime = None if epsilon is None else Budget(epsilon, delta)
    warn((lifetime or Budget(1.0, delta)).doubts())
    ledger = Ledger.create(file, dataset, lifetime, delta)
    said = f"ε = {epsilon:g}, δ = {delta:g} for its lifetime" if lifetime else "no cap over all periods; open one next"
    print(f'{file}: ledger of "{ledger.dataset}", {said}')
    if lifetime:
        part = f"{lifetime.epsilon / 4:g}"
        say_next(quiet, "synth", "TABLE", "-s", "SCHEMA", "-e", part, "-o", "OUT", "--ledger", file)
    else:
        say_next(quiet, "ledger", "period", file, "NAME", "--epsilon", 1)


@command(app)
def period(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    name: Annotated[str, typer.Argument(help="The period, for example 2026.")],
    epsilon: Annotated[float, typer.Option(help="The cap of the period: ε for somebody in it. Fixed from now on.")],
    delta: Annotated[float | None, typer.Option(help="The cap's δ (default: the ledger's own).")] = None,
    disjoint: Annotated[
        str,
        typer.Option(help="A public attribute by which nobody is in two of the periods that name it: you assert that."),
    ] = "",
) -> None:
    """Open a period with a cap of its own.

    Later releases are debited in it.

    Examples:
        hedgerow ledger period yearly.ledger 2026 --epsilon 1
    """
    from hedgerow.budget.amounts import Budget
    from hedgerow.cli.doubts import warn
    from hedgerow.private.ledger import Ledger

    ledger = Ledger(file)
    budget = Budget(epsilon, ledger.delta if delta is None else delta)
    warn(budget.doubts())
    ledger.open_period(name, budget, disjoint)
    print(f'{file}: period "{name}" with ε = {budget.epsilon:g}, δ = {budget.delta:g}, fixed from now on')
    if disjoint:
        print(f'recorded as your assertion: nobody is in two of the periods that differ in "{disjoint}"')
    else:
        print("it adds up with the other periods for everybody who is in several: hedgerow ledger show --explain")


@command(app)
def replaces(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    new: Annotated[Path, typer.Argument(help="The release that corrects another one.")],
    old: Annotated[Path, typer.Argument(help="The release that is corrected.")],
    why: Annotated[str, typer.Option(help="What was wrong with it, for whoever reads the ledger.")],
) -> None:
    """Record that a release replaces another one.

    Both were paid for, and stay so.

    Examples:
        hedgerow ledger replaces people.ledger corrected.release synthetic.release --why "a misread column"
    """
    from hedgerow.errors import BudgetError
    from hedgerow.private.ledger import Ledger
    from hedgerow.release.bundle import Release

    named = [Release.load(each).certificate.ledger for each in (old, new)]
    if not all(named):
        raise BudgetError("no-ledger-named", "the certificate names no ledger.")
    replaced, by = (str(each["hash"]) for each in named if each is not None)
    entry = Ledger(file).replace(replaced, by, why)
    print(f"{file}: record {entry.number}; both releases stay spent")


@command(app)
def show(
    files: Annotated[list[Path], typer.Argument(help="A ledger, or several about overlapping people.")],
    delta: Annotated[float | None, typer.Option(help="The δ of the next release (default: the ledger's own).")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Why releases fit, and what somebody in several periods has lost.")
    ] = False,
) -> None:
    """Say what the dataset has spent so far, and what is left.

    Examples:
        hedgerow ledger show people.ledger
        hedgerow ledger show people.ledger --explain
    """
    from hedgerow.errors import visible
    from hedgerow.private.explaining import explained, together
    from hedgerow.private.ledger import Ledger

    ledgers = [Ledger(file) for file in files]
    for ledger in ledgers:
        _show(ledger, delta)
        for line in explained(ledger) if explain else ():
            print(visible(line))
    if len(ledgers) > 1:
        print(visible(together(ledgers)))


def _show(ledger: Ledger, delta: float | None) -> None:
    from hedgerow.budget.amounts import Budget
    from hedgerow.private.ledger import equivalent_epsilon

    lifetime = ledger.lifetime
    cap = (
        f"ε = {lifetime.epsilon:g}, δ = {lifetime.delta:g} for its lifetime" if lifetime else "no cap over all periods"
    )
    print(f'ledger of "{ledger.dataset}": {cap}')
    for entry in ledger.entries()[1:]:
        record = entry.record
        if "debit" in record:
            made = "a first look" if record["method"] == "look" else f"release by {record['method']}"
            where = f' in "{record["period"]}"' if "period" in record else ""
            what = f"{made}{where}, ε = {record['epsilon']:g}, δ = {record['delta']:g}"
        elif "looked" in record:
            what = f"looked at exact data: {record['looked']}"
        elif "replaced" in record:
            what = f"a correction: {record['why']}"
        else:
            what = f'period "{record["period"]}" opened, ε = {record["epsilon"]:g}, δ = {record["delta"]:g}'
        print(f"  {entry.number:4}  {record['time']}  {what}")
    for said in ledger.torn():
        print(f"   !  {said}")
    print(f"spent: ε = {equivalent_epsilon(ledger):.6g} at δ = {ledger.delta:g}")
    if ledger.period is None and lifetime is None:
        print("left:  nothing, until a period is opened")
        return
    asked = Budget(1.0, ledger.delta if delta is None else delta)
    where = f' in "{ledger.period}"' if ledger.period else ""
    left = ledger.remaining_epsilon(asked.delta)
    print(f"left:  ε = {left:.6g} at δ = {asked.delta:g}, for one more release{where}")


@command(app)
def export(
    file: Annotated[Path, typer.Argument(help="A ledger.")],
    out: Annotated[Path, typer.Option("-o", "--out", help=".csv file to write.")],
) -> None:
    """Write every record with its exact amount, for an auditor.

    And with the running sum.

    Examples:
        hedgerow ledger export people.ledger -o audit.csv
    """
    import csv

    from hedgerow.private.explaining import EXPORTED, exported
    from hedgerow.private.ledger import Ledger
    from hedgerow.release.files import whole_file
    from hedgerow.run.outputs import check_outputs

    check_outputs([(out, (".csv",))], {"ledger": file}, overwrite=False)
    ledger = Ledger(file)
    with whole_file(out, replace=False) as partial, open(partial, "w", encoding="utf-8", newline="") as written:
        csv.writer(written).writerows([EXPORTED, *exported(ledger)])
    print(f"{out}: {len(ledger.entries())} records; amounts in units of 2^-80 of {ledger.currency.value}")


def say_what_is_torn(file: Path | None) -> None:
    """Point out, before a command that writes to a ledger closes it, a line that was cut short."""
    import sys

    from hedgerow.private.ledger import Ledger

    for said in [] if file is None else Ledger(file).torn():
        print(f'hedgerow: in the ledger "{file}" {said}', file=sys.stderr)
