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
