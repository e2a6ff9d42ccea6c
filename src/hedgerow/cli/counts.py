"""hedgerow counts: the tables that were named beforehand, with their errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from hedgerow.cli.options import AllowColumn, AllowModel, Json, ModelMemory, size, words

Kind = Literal["csv", "parquet", "arrow"]


def counts(
    release: Annotated[Path, typer.Argument(help="A release of the method residual.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="A new folder for the tables, a file each.")],
    tables: Annotated[
        list[str] | None,
        typer.Option("--table", help="Columns of one table, age,sex; repeatable. Default: all that were named."),
    ] = None,
    kind: Annotated[Kind, typer.Option("--kind", help="What files to write.")] = "csv",
    json_: Json = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Write the tables that a release was asked for, with errors.

    Those of a fixed workload as they were measured: unbiased counts, consistent, each with its standard deviation.
    Costs no privacy, and reads no table.

    Examples:
        hedgerow counts named.release -o counts
        hedgerow counts named.release -o one --table sex,education --kind parquet
    """
    from hedgerow.release.bundle import Release, Trust
    from hedgerow.release.counts import named_tables, write_tables

    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    loaded = Release.load(release, **trust._asdict())
    loaded.schema.unlinked("counts")
    wanted = [tuple(words(each)) for each in tables] if tables else [tuple(each) for each in named_tables(loaded)]
    names = write_tables(loaded, wanted, out, f".{kind}")
    if json_:
        listed = [{"file": name, "columns": list(each)} for name, each in zip(names, wanted, strict=True)]
        print(json.dumps({"out": str(out), "tables": listed}, ensure_ascii=False))
        return
    for name, each in zip(names, wanted, strict=True):
        print(f"{out / name}: {' × '.join(each)}")
