"""hedgerow studio: a guided page on this machine, from a table to a published folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.options import seconds


def studio(
    table: Annotated[str, typer.Argument(help="The private table: a file, a folder of linked tables, or a URL.")],
    project: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="The folder that everything is kept in (default: NAME.studio beside it)."),
    ] = None,
    schema: Annotated[
        Path | None, typer.Option("-s", "--schema", dir_okay=False, help="A schema that you have begun already.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(dir_okay=False, help="The dataset's ledger, where there is one already.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="A port of this machine (default: any free one).")] = 0,
    idle: Annotated[str, typer.Option(help="End when nobody was there for so long, for example 30m or 8h.")] = "60m",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open nothing.")] = False,
) -> None:
    """Go from a table to a published folder on a page in your browser.

    Every step shows the command that does the same. The page is on this machine alone. The printed address lets one
    browser in, once; Ctrl-C ends the studio.

    Examples:
        hedgerow studio people.csv
        hedgerow studio people.csv -s people.yaml --ledger people.ledger --no-browser
    """
    from hedgerow.studio.project import Project
    from hedgerow.studio.server import Serving, opener, refuse_without_extra

    refuse_without_extra()
    wait = seconds(idle)
    serving = Serving(Project(table, project, schema, ledger), port, wait)
    print(f"The studio is open, on this machine alone. One browser can enter, once:\n\n  {serving.gate.address}\n")
    print("Ctrl-C ends it; what was saved is kept, and a run that was stopped goes on when you come back.", flush=True)
    try:
        serving.run(opener() if not no_browser and sys.stdout.isatty() else None)
    except KeyboardInterrupt:
        print("the studio has ended; what was saved is kept.", file=sys.stderr)
