"""hedgerow studio: a guided page on this machine, from a table to a published folder."""

from __future__ import annotations

import ipaddress
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
    listen: Annotated[
        str, typer.Option(help="The address to listen at. Others than this machine's own need --host-name.")
    ] = "127.0.0.1",
    host_name: Annotated[
        list[str] | None,
        typer.Option(help="A name, with its port, by which your browser reaches the studio; repeat for several."),
    ] = None,
    idle: Annotated[str, typer.Option(help="End when nobody was there for so long, for example 30m or 8h.")] = "60m",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open nothing.")] = False,
) -> None:
    """Go from a table to a published folder on a page in your browser.

    Every step shows the command that does the same. The page is on this machine alone, unless --listen says
    otherwise (in a container). The printed address lets one browser in, once; Ctrl-C ends the studio.

    Examples:
        hedgerow studio people.csv
        hedgerow studio people.csv -s people.yaml --ledger people.ledger --no-browser
    """
    from hedgerow.studio.project import Project
    from hedgerow.studio.server import Serving, check_door, opener, refuse_without_extra

    refuse_without_extra()
    wait = seconds(idle)
    names = host_name or []
    check_door(listen, names)
    serving = Serving(Project(table, project, schema, ledger), port, wait, listen, names)
    where = "on this machine alone" if ipaddress.ip_address(listen).is_loopback else f"at {listen}"
    print(f"The studio is open, {where}. One browser can enter, once:\n\n  {serving.gate.address}\n")
    if not ipaddress.ip_address(listen).is_loopback:
        print(f"hint: what passes is not encrypted; let nobody listen on the way to {listen}.", file=sys.stderr)
    print("Ctrl-C ends it; what was saved is kept, and a run that was stopped goes on when you come back.", flush=True)
    try:
        serving.run(opener() if not no_browser and sys.stdout.isatty() else None)
    except KeyboardInterrupt:
        print("the studio has ended; what was saved is kept.", file=sys.stderr)
