"""hedgerow sample: rows from a release, into a file or into a folder of parts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.options import AllowColumn, AllowModel, ModelMemory, Quiet, count, size
from hedgerow.errors import counted


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
    workers: Annotated[int, typer.Option(min=1, help="Processes that fill a folder; the rows are the same.")] = 1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    quiet: Quiet = False,
    max_memory: ModelMemory = "8GB",
    allow_model: AllowModel = None,
    allow_column: AllowColumn = None,
) -> None:
    """Draw more rows from a release. Costs no privacy. Repeat the command to go on with a folder."""
    from hedgerow.cli.progress import TerminalProgress
    from hedgerow.progress import Limits
    from hedgerow.release.bundle import Release, Trust
    from hedgerow.release.files import TABLE_SUFFIXES, write_table
    from hedgerow.release.parts import write_parts
    from hedgerow.run.outputs import check_outputs

    trust = Trust(tuple(allow_model or ()), size(max_memory), tuple(allow_column or ()))
    wanted = None if rows is None else count(rows)
    progress = TerminalProgress(Limits(), quiet)
    if tables is not None:
        paths = [out.with_name(f"{out.stem}-{number + 1}{out.suffix}") for number in range(tables)]
        check_outputs([(path, TABLE_SUFFIXES) for path in paths], {"release": release}, overwrite=overwrite)
        loaded = Release.load(release, **trust._asdict())
        warning = " ".join(loaded.certificate.statements()) if loaded.certificate.void else None
        with progress.phase("draw tables", tables):
            for path, drawn in zip(paths, loaded.tables(tables, wanted, seed), strict=True):
                write_table(path, loaded.encoding.arrow_schema, [drawn], warning, replace=overwrite)
                progress.step()
        print(f"{paths[0]} … {paths[-1].name}: {counted(tables, 'table')}")
        return
    if not out.suffix or os.path.isdir(out):
        total, written = write_parts(release, out, wanted, seed, workers, progress, trust=trust)
        print(f"{out}: {counted(total, 'synthetic row')}; {counted(written, 'part')} written now")
        return
    check_outputs([(out, TABLE_SUFFIXES)], {"release": release}, overwrite=overwrite)
    loaded = Release.load(release, **trust._asdict())
    with progress.phase("draw rows"):
        warning = " ".join(loaded.certificate.statements()) if loaded.certificate.void else None
        drawn = loaded.batches(wanted, seed)
        written = write_table(out, loaded.encoding.arrow_schema, drawn, warning, replace=overwrite)
    print(f"{out}: {counted(written, 'synthetic row')}")
