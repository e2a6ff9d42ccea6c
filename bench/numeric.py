"""Ten million rows of numbers that are cut privately, from every place a table may live: CPU seconds and memory.

    python -m bench numeric                 all places, each cut privately and given bins (HEDGEROW_SCALE=1e6 for fewer)
    python -m bench.numeric DuckDB Spark    some of them

20 columns of two decimals, heavy-tailed, some of them zero. Every run is the command of a user, `hedgerow synth -m mst
--max-memory 1G`, a million rows out included; its processes, those of Spark and of the PostgreSQL server are watched
from outside. The table is made in pieces in a temporary folder (about 2 GB, and as much again in each database) and
removed.
"""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.engines import ONE_CORE, family, seconds_of
from bench.pages import refill
from bench.process import ONE_THREAD, ROOT, in_a_process, needed

ROWS = 10_000_000
COLUMNS = 20
PIECE = 1_000_000
BINS = 80
PLACES = ("Parquet files", "DuckDB", "PostgreSQL", "Spark")
CELLS = ("given bins", "cut privately")
ROWS_OUT = 1_000_000
LOOK = 0.5
"""Seconds between two looks at what the processes hold."""


def piece(number: int, rows: int) -> Any:
    """Rows of the table: every column leans on the one before it; a tenth is zero."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(number)
    before, columns = rng.standard_normal(rows), {}
    for index in range(COLUMNS):
        before = 0.7 * before + 0.714 * rng.standard_normal(rows)
        worth = np.round(1000 * np.exp(1.3 * before), 2)
        columns[f"c{index}"] = np.where(rng.random(rows) < 0.1, 0.0, worth.clip(0, 9_999_999))
    return pa.table(columns)


def write(folder: str, rows: int) -> dict[str, float]:
    """The table as Parquet files."""
    import pyarrow.parquet as pq

    Path(folder, "table").mkdir()
    for number in range(-(-rows // PIECE)):
        some = piece(number, min(PIECE, rows - number * PIECE))
        pq.write_table(some, f"{folder}/table/{number:04}.parquet", use_dictionary=False, compression="lz4")
    return {}


def schema(cells: str) -> str:
    """Bounds and decimals; with bins that somebody chose who knows how such numbers lie."""
    import numpy as np

    bins = ""
    if cells == "given bins":
        made = np.sort(np.concatenate([piece(0, 100_000)[0].to_numpy(), [0.01, 1e5, 1e6]]))
        edges = np.unique(np.round(np.quantile(made[made > 0], np.linspace(0, 1, BINS)[1:-1]), 2))
        bins = f", bins: {edges.tolist()}"
    line = f"{{type: number, min: 0, max: 10000000, decimals: 2{bins}}}"
    return "columns:\n" + "".join(f"  c{index}: {line}\n" for index in range(COLUMNS))


@contextmanager
def table_in(place: str, folder: str) -> Iterator[tuple[str, Callable[[], set[int]]]]:
    """The table's name there, and which processes serve it that the command does not start itself."""
    if place == "PostgreSQL":
        server: Any = importlib.import_module("tests.support.databases").PostgresServer()
        try:
            first = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
            load(server, folder)
            yield server.url("numbers"), lambda: family(root=first)
        finally:
            server.close()
        return
    if place == "DuckDB":
        import duckdb

        with duckdb.connect(f"{folder}/table.db") as connection:
            connection.execute(f"create table numbers as select * from '{folder}/table/*.parquet'")
        yield f"duckdb://{folder}/table.db/numbers", set
        Path(folder, "table.db").unlink()
    else:
        yield f"{folder}/table" if place == "Parquet files" else f"spark://{folder}/table", set


def load(server: Any, folder: str) -> None:
    """The Parquet files into a table of a PostgreSQL server."""
    import io

    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    with server.connect() as connection, connection.cursor() as cursor:
        columns = ", ".join(f"c{index} double precision" for index in range(COLUMNS))
        cursor.execute(f"create unlogged table numbers ({columns})")
        with cursor.copy("copy numbers from stdin (format csv)") as copy:
            for file in sorted(Path(folder, "table").iterdir()):
                for batch in pq.ParquetFile(file).iter_batches(1 << 17):
                    text = io.BytesIO()
                    csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
                    copy.write(text.getvalue())


def watched(table: str, cells: str, folder: str, served: Callable[[], set[int]]) -> dict[str, Any]:
    """One run of the command: CPU seconds and the most memory that it, and that all processes together, have held."""
    Path(folder, "schema.yaml").write_text(schema(cells), encoding="utf-8")
    out = Path(folder, "out.parquet")
    command = [sys.executable, "-m", "hedgerow", "synth", table, "-s", f"{folder}/schema.yaml", "-e", "1"]
    command += ["--delta", "1e-6", "-m", "mst", "--max-memory", "1G", "-o", str(out), "-q", "--overwrite"]
    command += ["--rows", str(ROWS_OUT)]
    spark = {"PYSPARK_SUBMIT_ARGS": f"{ONE_CORE} pyspark-shell", "PYSPARK_PYTHON": sys.executable}
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    serving = seconds_of(served())
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **ONE_THREAD, **spark}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as run:
        seen, most, own = 0.0, 0.0, 0.0
        while run.poll() is None:
            ours = family(root=run.pid)
            seen = max(seen, seconds_of(ours))
            most = max(most, sum(map(proportional_mb, ours | served())))
            own = max(own, high_water_mb(run.pid))
            time.sleep(LOOK)
        assert run.stderr is not None
        said = run.stderr.read().decode().strip()
    if run.returncode:
        raise RuntimeError(said.splitlines()[-1] if said else f"exit {run.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    out.unlink()
    return {"cpu_s": max(seen, ended) + seconds_of(served()) - serving, "own_mb": own, "all_mb": most}


def proportional_mb(process: int) -> float:
    """What a process holds; of what several share, its part."""
    with suppress(OSError, IndexError, ValueError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
        return int(lines.split("\nPss:")[1].split()[0]) / 1024
    return 0.0


def high_water_mb(process: int) -> float:
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{process}/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024
    return 0.0


def run(places: tuple[str, ...] = PLACES) -> list[dict[str, Any]]:
    """Every place, given bins and cut privately; written into docs/use/scale.md where it is the whole size."""
    rows = int(float(os.environ.get("HEDGEROW_SCALE", ROWS)))
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        needed(in_a_process("bench.numeric", "write", folder, rows))
        for place in places:
            with table_in(place, folder) as (table, served):
                found = {cells: watched(table, cells, folder, served) for cells in CELLS}
            given, cut = (found[cells] for cells in CELLS)
            line = {
                "what": place,
                "rows": rows,
                **{f"{key} {cells}": found[cells][key] for cells in CELLS for key in cut},
            }
            lines.append(line | {"more": cut["cpu_s"] / given["cpu_s"] - 1})
            print(lines[-1], file=sys.stderr, flush=True)
            if rows == ROWS:
                refill("use/scale.md", "numeric", {place: _line(lines[-1])})
    return lines


def _line(line: dict[str, Any]) -> str:
    figures = [f"{line[f'{key} {cells}']:,.0f}" for key in ("cpu_s", "own_mb", "all_mb") for cells in CELLS]
    return f"| {line['what']} | " + " | ".join([*figures, f"{line['more']:+.0%}"]) + " |"


if __name__ == "__main__":
    run(tuple(sys.argv[1:]) or PLACES)
