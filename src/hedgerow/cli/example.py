"""hedgerow example: made-up tables to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.ends import say_next
from hedgerow.cli.options import Quiet
from hedgerow.cli.progress import waiting
from hedgerow.samples import LINKED, SAMPLES


def example(
    name: Annotated[str, typer.Argument(help=", ".join(SAMPLES))],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help=".csv, .parquet or .arrow file, or a folder for linked tables; the schema goes beside."
        ),
    ],
    rows: Annotated[
        int | None, typer.Option(min=1, help="Default: as many as the table that it stands for had.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another table.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write a sample table (made up, so public) and its schema.

    Examples:
        hedgerow example opm -o people.csv --rows 5000
        hedgerow example visits -o clinic
    """
    from hedgerow.errors import OptionError, counted, listing, suggestion
    from hedgerow.release.files import TABLE_SUFFIXES, named_after, whole_file, write_table, writing
    from hedgerow.run.outputs import check_outputs
    from hedgerow.samples import find

    if name not in SAMPLES:
        raise OptionError(
            "unknown-example", f'unknown example "{name}"; examples: {listing(SAMPLES)}.{suggestion(name, SAMPLES)}'
        )
    schema_path = named_after(out, ".yaml")
    sample = find(name)
    with waiting("make up rows", quiet):
        made = sample.generate(rows or sample.ROWS, seed)
    tables = {out: made}
    if name in LINKED:
        if out.suffix:
            raise OptionError("output-not-a-folder", f'"{name}" is linked tables; name a folder for them, not "{out}".')
        with writing(out):
            out.mkdir(exist_ok=True)
        tables = {out / f"{each}.csv": table for each, table in made.items()}
    check_outputs([*((path, TABLE_SUFFIXES) for path in tables), (schema_path, ())], {}, overwrite=overwrite)
    with whole_file(schema_path, replace=overwrite) as partial:
        partial.write_text(sample.SCHEMA, encoding="utf-8", newline="\n")
    for path, table in tables.items():
        write_table(path, table.schema, [table], replace=overwrite)
        print(f"{path}: {counted(len(table), 'row')}, {counted(table.num_columns, 'column')} (made up, so public)")
    print(f"{schema_path}: {'their' if name in LINKED else 'its'} schema")
    drawn = "synthetic" if name in LINKED else f"synthetic{out.suffix}"
    say_next(quiet, "synth", out, "-s", schema_path, "-e", 1, "-o", drawn)
