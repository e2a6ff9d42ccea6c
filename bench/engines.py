"""One table in four places: CPU seconds to get ready and for each marginal, as multiples of the embedded engine's.

The made-up table of `bench.counting` (10 M × 20, a quarter of its columns as text; HEDGEROW_SCALE=1e6 for fewer rows)
as Parquet files and as a DuckDB file. Every place is a process of its own; the CPU seconds of Spark's Java process
count too, and so do those of all threads. Needs hedgerow[engines] and, for Spark, Java; what is missing is left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROWS = 10_000_000
MARGINALS = 32
PLACES = ("embedded", "DuckDB, read here", "DuckDB, in place", "Spark, in place")
GENEROUS = 4 << 30


def write(folder: Path, rows: int) -> None:
    """The table as Parquet, and as a DuckDB file made from it."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq
    from bench.counting import generate

    domain, columns = generate(rows)
    arrays: dict[str, Any] = {}
    for place, name in enumerate(domain.names):
        codes = pa.array(columns[name].astype("int32"))
        arrays[name] = codes
        if place % 4 == 0:
            words = pa.array([f"value {code}" for code in range(domain[name].size)])
            arrays[name] = pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())
    (folder / "table").mkdir()
    pq.write_table(pa.table(arrays), folder / "table" / "rows.parquet", row_group_size=1 << 20)
    with duckdb.connect(str(folder / "table.db")) as connection:
        connection.execute(f"create table people as select * from '{folder}/table/rows.parquet'")


def schema() -> Any:
    """Texts as categories, numbers as codes."""
    from bench.counting import GENERATED_SIZES

    from hedgerow.schema import Schema

    lines = ["columns:"]
    for place, size in enumerate(GENERATED_SIZES):
        if place % 4 == 0:
            lines.append(f"  x{place}: {{type: category, values: {[f'value {code}' for code in range(size)]}}}")
        else:
            lines.append(f"  x{place}: {{type: code, size: {size}}}")
    return Schema.parse("\n".join(lines))


def measure(place: str, folder: Path) -> dict[str, float]:
    """One place: CPU seconds to encode, and milliseconds for each of some pairs and triples."""
    from hedgerow.engines import open_engine
    from hedgerow.query import MarginalQuery

    table = {"embedded": str(folder / "table"), "Spark, in place": f"spark://{folder}/table"}
    begin = _seconds()
    engine: Any
    if place.endswith("in place"):
        from hedgerow.engines.sql.engine import SqlEngine
        from hedgerow.engines.sql.location import open_database

        url = table.get(place, f"duckdb://{folder}/table.db/people")
        engine = SqlEngine(open_database(url, GENEROUS), memory=0)
    else:
        engine = open_engine(table.get(place, f"duckdb://{folder}/table.db/people"), memory=GENEROUS)
    encoding = schema().encoding()
    engine.prepare(encoding)
    figures = {"prepare": _seconds() - begin}
    for degree, name in ((2, "pair"), (3, "triple")):
        marginals = list(encoding.domain.marginals(degree))
        queries = [MarginalQuery(encoding.domain, m) for m in marginals[:: len(marginals) // MARGINALS][:MARGINALS]]
        begin = _seconds()
        for _ in engine.count(queries):
            pass
        figures[name] = 1e3 * (_seconds() - begin) / len(queries)
    return figures


def _seconds() -> float:
    """CPU seconds of this process and of those that it started (Spark's)."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def run() -> list[dict[str, Any]]:
    """One line per place; the embedded engine is the unit."""
    if importlib.util.find_spec("ibis") is None:
        print("hedgerow[engines] is not installed: nothing to compare (make .venv/ready-engines)")
        return []
    rows = int(float(os.environ.get("HEDGEROW_SCALE", ROWS)))
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        _process("write", name, str(rows))
        for place in PLACES:
            if place.startswith("Spark") and not (shutil.which("java") and importlib.util.find_spec("pyspark")):
                print("Spark is left out: it needs Java and pyspark")
                continue
            figures = _process("measure", place, name)
            first = lines[0] if lines else None
            lines.append(
                {
                    "what": f"{place}, {rows:,} × 20",
                    "prepare_cpu_s": figures["prepare"],
                    "cpu_ms_per_pair": figures["pair"],
                    "cpu_ms_per_triple": figures["triple"],
                    "ratio_prepare": figures["prepare"] / first["prepare_cpu_s"] if first else 1.0,
                    "ratio_pair": figures["pair"] / first["cpu_ms_per_pair"] if first else 1.0,
                    "ratio_triple": figures["triple"] / first["cpu_ms_per_triple"] if first else 1.0,
                }
            )
    return lines


def _process(*words: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.engines", *words],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _work(task: str, *words: str) -> dict[str, float]:
    if task == "write":
        write(Path(words[0]), int(words[1]))
        return {}
    return measure(words[0], Path(words[1]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_work(*sys.argv[1:])))
    else:
        for line in run():
            print(json.dumps(line, ensure_ascii=False))
