"""hedgerow example: made-up tables to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.samples import SAMPLES


def example(
    name: Annotated[str, typer.Argument(help=", ".join(SAMPLES))],
    out: Annotated[
        Path, typer.Option("-o", "--out", dir_okay=False, help=".csv, .parquet or .arrow file; its schema goes beside.")
    ],
    rows: Annotated[
        int | None, typer.Option(min=1, help="Default: as many as the table that it stands for had.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives another table.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist already.")] = False,
) -> None:
    """Write a sample table (made up, so public) and its schema."""
    from hedgerow.errors import OptionError, counted, listing, suggestion
    from hedgerow.release.files import TABLE_SUFFIXES, whole_file, write_table
    from hedgerow.run.outputs import check_outputs
    from hedgerow.samples import find

    if name not in SAMPLES:
        raise OptionError(
            "unknown-example", f'unknown example "{name}"; examples: {listing(SAMPLES)}.{suggestion(name, SAMPLES)}'
        )
    schema_path = out.with_suffix(".yaml")
    check_outputs([(out, TABLE_SUFFIXES), (schema_path, ())], {}, overwrite=overwrite)
    sample = find(name)
    with whole_file(schema_path, replace=overwrite) as partial:
        partial.write_text(sample.SCHEMA, encoding="utf-8")
    table = sample.generate(rows or sample.ROWS, seed)
    write_table(out, table.schema, [table], replace=overwrite)
    size = f"{counted(len(table), 'row')}, {counted(table.num_columns, 'column')}"
    print(f"{out}: {size} (made up, so public)\n{schema_path}: its schema")
