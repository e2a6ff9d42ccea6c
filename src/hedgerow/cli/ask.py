"""hedgerow ask: figures from a release, each with an interval and with what it rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.options import AllowColumn, AllowModel, Delta, Json, ModelMemory, size
from hedgerow.cli.progress import waiting

if TYPE_CHECKING:
    from hedgerow.answers.asking import Answers
    from hedgerow.budget.amounts import Budget
    from hedgerow.release.bundle import Release


def ask(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    question: Annotated[str | None, typer.Argument(help="A SELECT; several are parted by semicolons.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="A file of questions, parted by semicolons.")] = None,
    level: Annotated[float, typer.Option(help="How often the intervals are to hold the truth.")] = 0.9,
    population: Annotated[
        bool, typer.Option("--population", help="Intervals for the people that the rows are a random sample of.")
    ] = False,
    minus: Annotated[
        Path | None, typer.Option(help="Another release: the answers are this one's less that one's.")
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(help="The private table, which is then asked one question itself: costs -e, and is noisy."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("-e", "--epsilon", help="What a question to the private table may cost.")
    ] = None,
    delta: Delta = 1e-9,
    ledger: Annotated[Path | None, typer.Option(help="With --confirm: the dataset's ledger, which is debited.")] = None,
    period: Annotated[
        str | None, typer.Option(help="The ledger's period to debit (default: the one that was opened last).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", dir_okay=False, help="With --confirm: a .json for the answer and its certificate."),
    ] = None,
    json_: Json = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Ask a release in SQL; every figure has an interval.

    One row for each group and value, with an interval for the private table's own figure. Costs no privacy, and reads
    no table. Aggregates: COUNT, SHARE(condition), SUM, AVG, MEDIAN, QUANTILE(x, 0.9), STDDEV, VARIANCE, CORR; WHERE,
    GROUP BY, ORDER BY, LIMIT, FILTER (WHERE …), and arithmetic between aggregates.

    With --confirm TABLE -e 0.1 one COUNT, SHARE, SUM or AVG is asked of the private rows themselves: charged, noisy,
    with a certificate of its own.

    Examples:
        hedgerow ask synthetic.release "SELECT sex, AVG(pay), COUNT(*) FROM people GROUP BY sex"
        hedgerow ask synthetic.release "SELECT SHARE(pay > 50000) FROM people" --population --json
        hedgerow ask synthetic.release "SELECT COUNT(*) FROM people" --confirm people.csv -e 0.1 --ledger people.ledger
    """
    from hedgerow.answers.asking import changes
    from hedgerow.budget.amounts import Budget
    from hedgerow.errors import OptionError
    from hedgerow.release.bundle import Release, Trust

    if (question is None) == (file is None):
        raise OptionError("no-question", "give one question, or a file of them with --file.")
    text = file.read_text(encoding="utf-8") if file is not None else question or ""
    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    loaded = Release.load(release, **trust._asdict())
    given = {"-e": epsilon, "--ledger": ledger, "--period": period, "--out": out}
    if confirm is not None:
        if minus is not None or population or epsilon is None:
            raise OptionError(
                "confirm-options", "--confirm TABLE needs -e, and goes with neither --minus nor --population."
            )
        _confirmed(loaded, text, level, confirm, Budget(epsilon, delta), ledger, period, out, size(max_memory), json_)
        return
    if idle := [name for name, value in given.items() if value is not None]:
        raise OptionError("confirm-options", f"{idle[0]} is for --confirm TABLE; a release is asked at no cost.")
    with waiting("answer"):
        if minus is None:
            answers = loaded.ask(text, level, population=population)
        else:
            answers = changes(loaded, Release.load(minus, **trust._asdict()), text, level, population=population)
    if json_:
        print(json.dumps(answers.to_json(), ensure_ascii=False))
    else:
        _show(answers, level)


def _confirmed(
    release: Release,
    question: str,
    level: float,
    table: str,
    budget: Budget,
    ledger: Path | None,
    period: str | None,
    out: Path | None,
    memory: int,
    json_: bool,
) -> None:
    """Ask the private rows; what the release says stands beside it."""
    from hedgerow.answers.asking import Answer, Answers
    from hedgerow.errors import OptionError
    from hedgerow.progress import Limits
    from hedgerow.run import confirm
    from hedgerow.run.outputs import check_outputs

    try:
        beside = release.ask(question, level)[0].rows
    except OptionError as problem:
        if problem.code != "nobody":  # of whom the private table may know
            raise
        beside = ()
    if out is not None:
        check_outputs([(out, (".json",))], {"private table": table, "ledger": ledger}, overwrite=False)
    with waiting("ask the private rows"):
        found = confirm(release, question, table, budget, ledger=ledger, period=period, limits=Limits(memory=memory))
    if out is not None:
        found.save(out, replace=False)
    answers = found.answers(level)
    if json_:
        print(json.dumps({**answers.to_json(), "certificate": found.certificate.to_json()}, ensure_ascii=False))
        return
    _show(Answers([Answer(answers[0].query, (*beside, *answers[0].rows))]), level)
    print(f"The private rows were asked: {found.certificate.guarantee}, beside what the release cost.")


def _show(answers: Answers, level: float) -> None:
    """A table for each question."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hedgerow.errors import visible

    console = Console(highlight=False)
    for answer in answers:
        console.print(Text(visible(answer.query)))
        groups = list(answer.rows[0].group) if answer.rows else []
        table = Table(box=None, pad_edge=False)
        for name in [*groups, "value"]:
            table.add_column(Text(visible(name)))
        for name in ("estimate", f"low ({100 * level:g} %)", "high"):
            table.add_column(name, justify="right")
        table.add_column("basis")
        for row in answer.rows:
            held = [visible("" if row.group[name] is None else str(row.group[name])) for name in groups]
            table.add_row(*(Text(cell) for cell in (*held, visible(row.value), *row.figures, row.basis)))
        console.print(table)
        console.print()
