"""hedgerow sample: rows from a release, into a file or into a folder of parts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedgerow.cli.options import AllowColumn, AllowModel, ModelMemory, Quiet, count, size
from hedgerow.errors import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from hedgerow.progress import Progress
    from hedgerow.release.bundle import Release, Trust


def sample(
    release: Annotated[Path, typer.Argument(help="A release file.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help=".csv, .parquet or .arrow file to write, or a folder of Parquet files.")
    ],
    rows: Annotated[str | None, typer.Option(help="For example 1e9. Default: the noisy estimate.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other rows.")] = 0,
    tables: Annotated[
        int | None,
        typer.Option(min=2, help="So many tables, OUT-1 …: what varies between them is what each may be wrong by."),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Rows that meet a condition as in SQL, drawn given it: \"age < 30 AND income = '>50K'\"."),
    ] = None,
    given: Annotated[
        Path | None,
        typer.Option(help="A public table of some columns: its rows come back completed, empty fields too."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that fill a folder; the rows are the same.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    quiet: Quiet = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Draw more rows from a release. Costs no privacy.

    Into a file, or into a folder of parts: the same command goes on with a folder that was begun. Linked tables always
    go into a folder, which has one of parts for each of them; --rows are those of the root. Of a table whose persons
    are kept --rows are persons, each with all rows.

    Examples:
        hedgerow sample synthetic.release --rows 100000 -o more.parquet
        hedgerow sample synthetic.release --rows 1000 --where "pay > 60000 AND sex = 'F'" -o women.csv
        hedgerow sample synthetic.release --tables 5 -o drawn.csv
    """
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.errors import OptionError
    from hedgerow.progress import Limits
    from hedgerow.release.bundle import Release, Trust
    from hedgerow.release.files import TABLE_SUFFIXES, write_table
    from hedgerow.release.linked import drawn_from
    from hedgerow.release.parts import write_parts
    from hedgerow.run.outputs import check_outputs

    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    wanted = None if rows is None else count(rows)
    progress = TerminalProgress(Limits(), quiet)
    into_folder = not out.suffix or os.path.isdir(out)
    what = drawn_from(release)
    if what == "unit" and (not into_folder or tables is not None or where is not None or given is not None):
        raise OptionError(
            "not-of-linked-tables",
            "linked tables are drawn into a folder, -o FOLDER, and take no --tables, --where or --given yet.",
        )
    if tables is not None:
        if into_folder or where is not None or given is not None:
            raise OptionError(
                "tables-with-others",
                "--tables draws whole tables into files that are numbered; it takes no folder, --where or --given.",
            )
        _tables(release, trust, out, tables, wanted, seed, overwrite, progress)
        return
    if given is not None and (into_folder or wanted is not None or where is not None):
        raise OptionError(
            "given-with-others", "--given completes the rows of a table, into one file; it takes no --rows or --where."
        )
    if into_folder:
        total, written = write_parts(release, out, wanted, seed, workers, progress, trust=trust, where=where)
        rows_too = " with their rows" if what == "person" else ""
        print(f"{out}: {counted(total, f'synthetic {what}')}{rows_too}; {counted(written, 'part')} written now")
        return
    inputs = {"release": release} | ({} if given is None else {"given table": given})
    check_outputs([(out, TABLE_SUFFIXES)], inputs, overwrite=overwrite)
    loaded = Release.load(release, **trust._asdict())
    with progress.phase("draw rows"):
        warning = " ".join(loaded.certificate.statements()) if loaded.certificate.void else None
        drawn = loaded.batches(wanted, seed, where) if given is None else loaded.completed(_read(given), seed)
        written = write_table(out, loaded.arrow_schema, drawn, warning, replace=overwrite)
    print(f"{out}: {counted(written, 'synthetic row')}{'' if where is None else _share(loaded, where)}")
    if given is not None:
        print("What was given comes back as it is: the guarantee does not cover it.")


def _tables(
    release: Path,
    trust: Trust,
    out: Path,
    count: int,
    rows: int | None,
    seed: int,
    overwrite: bool,
    progress: Progress,
) -> None:
    """Several tables, in files that are numbered."""
    from hedgerow.release.bundle import Release
    from hedgerow.release.files import TABLE_SUFFIXES, write_table
    from hedgerow.run.outputs import check_outputs

    paths = [out.with_name(f"{out.stem}-{number + 1}{out.suffix}") for number in range(count)]
    check_outputs([(path, TABLE_SUFFIXES) for path in paths], {"release": release}, overwrite=overwrite)
    loaded = Release.load(release, **trust._asdict())
    warning = " ".join(loaded.certificate.statements()) if loaded.certificate.void else None
    with progress.phase("draw tables", count):
        for path, drawn in zip(paths, loaded.tables(count, rows, seed), strict=True):
            write_table(path, loaded.encoding.arrow_schema, [drawn], warning, replace=overwrite)
            progress.step()
    print(f"{paths[0]} … {paths[-1].name}: {counted(count, 'table')}")


def _share(release: Release, where: str) -> str:
    """What the model says of a condition, in words."""
    share = release.share(where)
    said = (
        f"; the model expects {share:.2g} of all rows to meet the condition, {share * release.model.total:,.0f} in all"
    )
    if share * release.model.total < 1:
        said += ". That is less than one: these rows are the model's guess, not what was counted"
    return said


def _read(path: Path) -> pa.Table:
    import pyarrow as pa

    from hedgerow.private.sources.source import open_source

    source = open_source(path)
    return pa.Table.from_batches(list(source.batches(source.header())))
