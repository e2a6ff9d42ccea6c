"""hedgerow schema: draft a declaration from public sources, and check it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.command import command, group
from hedgerow.cli.ends import say_next
from hedgerow.cli.options import AllowColumn, FileKeys, Quiet, file_keys
from hedgerow.cli.progress import waiting

app = group("What the publisher declares about a table.")


@command(app)
def draft(
    table: Annotated[str, typer.Argument(help="The table; only its header is read.")],
    out: Annotated[Path, typer.Option("--out", "-o", dir_okay=False, help="The schema file to write.")],
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            help="A public source: SPSS, Stata or SAS file, codebook .csv, IPUMS .cbk, Frictionless, CSVW, SDV or "
            "JSON Schema .json, a contest's specification or cities .json, .sql, module:Model, or public:TABLE. May be "
            "given several times; earlier ones win.",
        ),
    ] = None,
    file: FileKeys = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a schema with the names of a table's header.

    And with everything that public sources say; the rest is TODO, for you to fill in.

    Examples:
        hedgerow schema draft people.csv -o draft.yaml
        hedgerow schema draft people.csv -o filled.yaml --from codebook.csv
    """
    from hedgerow.errors import unread
    from hedgerow.private.sources.sameness import refuse_as_public
    from hedgerow.private.sources.source import dataset_name, header_of, open_source
    from hedgerow.release.files import whole_file
    from hedgerow.run.outputs import check_outputs
    from hedgerow.schema.draft import draft_schema
    from hedgerow.schema.draft.labels import LABELLED
    from hedgerow.schema.file import Cleaning, Written
    from hedgerow.schema.schema import declared_file

    named = {f'source "{source}"': source.removeprefix("public:") for source in sources or []}
    with unread():
        check_outputs([(out, ())], {"table": table, **named}, overwrite=overwrite)
        written = Written(declared_file(file_keys(file)))
        header = header_of(table, written)

    def public_batches(name: str) -> Iterator[Any]:
        refuse_as_public(name, table)
        names = open_source(name, written).header()
        everywhere = Written(written.file, dict.fromkeys(names, Cleaning(written.file.strip, written.file.decimal)))
        return open_source(name, everywhere).batches(names)

    made = draft_schema(
        header,
        sources or [],
        dataset=dataset_name(table),
        file=written.file,
        public_batches=public_batches,
    )
    with whole_file(out, replace=overwrite) as partial:
        partial.write_text(made.text, encoding="utf-8", newline="\n")
    print(f"{out}: {made.summary}")
    say_next(quiet, "schema", "check", table, "-s", out, why="once no TODO is left")
    if Path(table).suffix.lower() in LABELLED and table not in (sources or []):
        print(f"hint: --from {table} takes what its labels and formats say, too.", file=sys.stderr)


@command(app)
def check(
    schema: Annotated[list[str], typer.Option("--schema", "-s", help="The schema file; presets after it.")],
    table: Annotated[str | None, typer.Argument(help="A table; without --private only its header is read.")] = None,
    file: FileKeys = None,
    private: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Count misfits in the rows and write this PRIVATE page about them."),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that notes the look at exact data.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")] = False,
    allow_column: AllowColumn = None,
) -> None:
    """Check a schema by itself, or against a table.

    Against its header alone; with --private against its rows, which stays with those who may see them.

    Examples:
        hedgerow schema check -s people.yaml
        hedgerow schema check people.csv -s people.yaml
        hedgerow schema check people.csv -s people.yaml --private misfits.html --ledger people.ledger
    """
    from hedgerow.errors import OptionError, counted, unread
    from hedgerow.schema import Schema
    from hedgerow.schema.presets import find
    from hedgerow.schema.rules.words import explained

    if private is not None:
        from hedgerow.run.outputs import check_outputs

        with unread():
            if table is None:
                raise OptionError("missing-table", "--private counts misfits in a table's rows; name the table.")
            inputs: dict[str, str | Path | None] = {"private table": table, "schema": schema[0], "ledger": ledger}
            check_outputs([(private, ())], inputs, overwrite=overwrite)
    declared = Schema.load(schema[0] if len(schema) == 1 else tuple(schema), _other_than(table)).with_file(
        file_keys(file)
    )
    said = find(tuple(schema))
    for note in () if said is None else said.notes:
        print(note)
    declared.check_rules()
    for sentence in explained(declared):
        print(sentence)
    named = " ".join(schema)
    columns = counted(len(declared.columns) - len(declared.generated), "column")
    if table is None:
        print(f"{named}: {columns}, no fault found")
        return
    from hedgerow.private.sources.source import described, header_of, open_source

    with unread():
        if declared.linked is None:
            header = header_of(table, declared.written)
        else:
            from hedgerow.private.engines import open_tables

            header = open_tables(table, declared).header()
        declared.check_header(header, described(table))
        if private is not None:
            declared.unlinked("schema check --private")
    if private is None:
        print(f"{named}: {columns}, found in the header of {table}; no row was read")
        return
    from hedgerow.private.evaluate.misfits import write_misfits

    with unread():
        source = open_source(table, declared.written)
    if ledger is not None:
        from hedgerow.cli.ledger import say_what_is_torn
        from hedgerow.private.ledger import note_exact_access

        say_what_is_torn(ledger)
        note_exact_access(ledger, "schema check --private: misfits per column")
    with waiting("count misfits"):
        write_misfits(source, declared, private)
    print(f"{private}: PRIVATE page with exact counts of misfits; do not publish it")


def _other_than(table: str | None) -> Callable[[Path], None] | None:
    """What refuses a public table of the schema that is the private one, where there is one."""
    if table is None:
        return None
    from hedgerow.private.sources.sameness import refuse_as_public

    return lambda path: refuse_as_public(path, table)


@command(app, "json-schema")
def json_schema() -> None:
    """Print a JSON Schema of the format, for editors.

    Examples:
        hedgerow schema json-schema
    """
    import json

    from hedgerow.schema import Schema

    print(json.dumps(Schema.json_schema(), indent=2, ensure_ascii=False))
