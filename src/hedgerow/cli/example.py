"""hedgerow example and hedgerow demo: made-up tables to try things on."""

from __future__ import annotations

from pathlib import Path

from hedgerow.cli.outputs import check_outputs
from hedgerow.cli.synth import Request, run
from hedgerow.errors import OptionError, listing, suggestion
from hedgerow.methods import DEFAULT
from hedgerow.progress import Limits
from hedgerow.release.files import TABLE_SUFFIXES, whole_file, write_table, writing
from hedgerow.samples import SAMPLES, find


def write_example(name: str, out: Path, rows: int | None, seed: int, overwrite: bool) -> None:
    """A sample table, and its schema beside it (same name, .yaml)."""
    if name not in SAMPLES:
        raise OptionError(f'unknown example "{name}"; examples: {listing(SAMPLES)}.{suggestion(name, SAMPLES)}')
    schema_path = out.with_suffix(".yaml")
    check_outputs([(out, TABLE_SUFFIXES), (schema_path, ())], {}, overwrite=overwrite)
    sample = find(name)
    with whole_file(schema_path, replace=overwrite) as partial:
        partial.write_text(sample.SCHEMA, encoding="utf-8")
    table = sample.generate(rows or sample.ROWS, seed)
    write_table(out, table.schema, [table], replace=overwrite)
    print(f"{out}: {len(table):,} rows, {table.num_columns} columns (made up, so public)\n{schema_path}: its schema")


def run_demo(folder: Path, rows: int, overwrite: bool) -> None:
    """From nothing to a synthetic table, showing each step as it would be typed.

    A folder that a demo filled is filled again; files of any other origin are left alone.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    private, schema, out = folder / "private.parquet", folder / "private.yaml", folder / "synthetic.parquet"
    page, bundle = folder / "synthetic.html", folder / "synthetic.release"
    overwrite = overwrite or _is_sample(schema)
    check_outputs([(path, ()) for path in (private, schema, out, bundle, page)], {}, overwrite=overwrite)
    print(f"$ hedgerow example opm -o {private} --rows {rows}")
    write_example("opm", private, rows, seed=0, overwrite=overwrite)
    print(f"\n$ hedgerow synth {private} -s {schema} -e 1 -o {out} --report {page}")
    run(
        Request(
            table=str(private),
            schema=str(schema),
            epsilon=1.0,
            delta=1e-9,
            method=DEFAULT,
            options={},
            out=out,
            rows=None,
            release=None,
            report=page,
            ledger=None,
            sign=None,
            limits=Limits(),
            seed=0,
            unsafe_noise_seed=None,
            json=False,
            quiet=False,
            overwrite=overwrite,
        )
    )


def _is_sample(schema: Path) -> bool:
    """Whether a schema is the one of our sample, as its first line says."""
    first = find("opm").SCHEMA.splitlines()[0]
    return schema.is_file() and schema.read_bytes().startswith(first.encode())
