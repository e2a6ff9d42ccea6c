"""The commands."""

from __future__ import annotations

from typing import Annotated

import typer

from hedgerow.cli.ask import ask
from hedgerow.cli.audit import audit
from hedgerow.cli.command import command, group
from hedgerow.cli.compare import compare
from hedgerow.cli.completion import completion
from hedgerow.cli.counts import counts
from hedgerow.cli.demo import demo
from hedgerow.cli.doctor import doctor
from hedgerow.cli.evaluate import evaluate
from hedgerow.cli.example import example
from hedgerow.cli.ledger import app as ledger
from hedgerow.cli.methods import methods
from hedgerow.cli.plan import plan
from hedgerow.cli.preset import app as preset
from hedgerow.cli.publish import publish
from hedgerow.cli.sample import sample
from hedgerow.cli.schema import app as schema
from hedgerow.cli.studio import studio
from hedgerow.cli.synth import synth
from hedgerow.cli.verify import verify

app = group("Turn a private table into a synthetic one that anyone may read, under differential privacy.")
app.add_typer(schema, name="schema")
app.add_typer(ledger, name="ledger")
app.add_typer(preset, name="preset")


def _version(wanted: bool) -> None:
    if wanted:
        from hedgerow.cli.build import lines

        print("\n".join(lines()))
        raise typer.Exit


@app.callback(
    epilog="Begin with: hedgerow demo, or hedgerow studio TABLE. Each command has examples: hedgerow COMMAND --help. "
    "What is installed, and what is missing for what: hedgerow doctor."
)
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and how it was built."),
    ] = False,
) -> None:
    """Turn a private table into a synthetic one that anyone may read, under differential privacy."""


for function in (
    *(studio, plan, synth, sample, ask, counts, verify, publish, evaluate, compare),
    *(methods, audit, example, demo, doctor, completion),
):
    command(app)(function)
