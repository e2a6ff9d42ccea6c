"""hedgerow demo: from nothing to a synthetic table, showing each step as it would be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.ends import say_next
from hedgerow.cli.example import example


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write to.")] = Path("demo"),
    rows: Annotated[int, typer.Option(min=1, help="Rows of the made-up private table.")] = 100_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that no demo made.")] = False,
) -> None:
    """Go from nothing to a synthetic table, with sample data.

    Makes a table, a synthetic version of it, its release and its page, and shows each step as it would be typed. A
    folder that a demo filled is filled again; files of any other origin are left alone.

    Examples:
        hedgerow demo
        hedgerow demo -o small --rows 5000
    """
    from hedgerow.budget.amounts import Budget
    from hedgerow.cli.synth import make_all
    from hedgerow.release.files import writing
    from hedgerow.run import Outputs, Request
    from hedgerow.run.outputs import check_outputs

    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    private, schema, table = out / "private.parquet", out / "private.yaml", out / "synthetic.parquet"
    page, bundle = out / "synthetic.html", out / "synthetic.release"
    overwrite = overwrite or _is_sample(schema)
    check_outputs([(path, ()) for path in (private, schema, table, bundle, page)], {}, overwrite=overwrite)
    print(f"$ hedgerow example opm -o {private} --rows {rows}")
    example("opm", private, rows, seed=0, overwrite=overwrite, quiet=True)
    print(f"\n$ hedgerow synth {private} -s {schema} -e 1 -o {table} --report {page}")
    files = Outputs(table, bundle, page, overwrite=overwrite)
    make_all([Request(str(private), str(schema), Budget(1.0, 1e-9), outputs=files)], as_json=False, quiet=False)
    question = "SELECT sex, AVG(pay), COUNT(*) FROM people GROUP BY sex"
    say_next(False, "ask", bundle, question, why="costs nothing; intervals for the private figures")


def _is_sample(schema: Path) -> bool:
    """Whether a schema is the one of our sample, as its first line says."""
    from hedgerow.samples import find

    first = find("opm").SCHEMA.splitlines()[0]
    return schema.is_file() and schema.read_bytes().startswith(first.encode())
