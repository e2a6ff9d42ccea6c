"""One table in four places: CPU seconds to get ready and for each marginal, as multiples of the embedded engine's.

The made-up table of `bench.counting` (10 M × 20, a quarter of its columns as text; HEDGEROW_SCALE=1e6 for fewer rows)
as Parquet files and as a DuckDB file. Every place is a process of its own; the CPU seconds of Spark's Java process
count too, and so do those of all threads. Needs hedgerow[engines] and, for Spark, Java; what is missing is left out.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.pages import fill, refill
from bench.process import in_a_process, needed

ROWS = 10_000_000
MARGINALS = 32
ROUNDS = 15
PLACES = ("embedded", "DuckDB, read here", "DuckDB, in place", "Spark, our kernels", "Spark, by SQL")
SLOW = "Spark, by SQL"
"""Asked once, first time and median."""
GENEROUS = 4 << 30
ONE_CORE = (
    "--master local[1] --driver-memory 4g --conf spark.sql.shuffle.partitions=8 --conf spark.ui.enabled=false "
    "--driver-java-options -XX:-UseDynamicNumberOfCompilerThreads"  # their time goes with threads that end
)


def write(folder: str, rows: int) -> dict[str, float]:
    """The table as Parquet, and as a DuckDB file made from it."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bench.counting import generate

    domain, columns = generate(rows)
    arrays: dict[str, Any] = {}
    for index, name in enumerate(domain.names):
        codes = pa.array(columns[name].astype("int32"))
        arrays[name] = codes
        if index % 4 == 0:
            words = pa.array([f"value {code}" for code in range(domain[name].size)])
            arrays[name] = pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())
    Path(folder, "table").mkdir()
    pq.write_table(pa.table(arrays), f"{folder}/table/rows.parquet", row_group_size=1 << 20)
    with duckdb.connect(f"{folder}/table.db") as connection:
        connection.execute(f"create table people as select * from '{folder}/table/rows.parquet'")
    return {}


def schema() -> Any:
    """Texts as categories, numbers as codes."""
    from bench.counting import GENERATED_SIZES
    from hedgerow.schema import Schema

    lines = ["columns:"]
    for index, size in enumerate(GENERATED_SIZES):
        if index % 4 == 0:
            lines.append(f"  x{index}: {{type: category, values: {[f'value {code}' for code in range(size)]}}}")
        else:
            lines.append(f"  x{index}: {{type: code, size: {size}}}")
    return Schema.parse("\n".join(lines))


def measure(place: str, folder: str) -> dict[str, float]:
    """One place: CPU seconds to encode, and milliseconds for each of some pairs and triples.

    Everything is asked `ROUNDS` times, each time of other marginals; the first time, when Java compiles, is told beside
    the median.
    """
    from hedgerow.coded.query import MarginalQuery, total_query

    begin = _seconds()
    engine = _engine(place, folder)
    started = _seconds()
    encoding = schema().encoding()
    engine.prepare(encoding)
    prepared = _seconds()
    spent: dict[str, list[float]] = {}
    compiled = [_compiling()]
    for number in range(1 if place == SLOW else ROUNDS):
        for name, degree in (("pair", 2), ("triple", 3)):
            every = list(encoding.domain.marginals(degree))
            some = every[number :: (len(every) - ROUNDS) // MARGINALS][:MARGINALS]
            spent.setdefault(name, []).append(_asked(engine, [MarginalQuery(encoding.domain, one) for one in some]))
            compiled.append(_compiling())
        pairs = [MarginalQuery(encoding.domain, pair) for pair in encoding.domain.marginals(2)]
        spent.setdefault("together", []).append(_asked(engine, pairs))
        spent.setdefault("total", []).append(_asked(engine, [total_query(encoding.domain)]))
    asked = {"pair": MARGINALS, "triple": MARGINALS, "together": len(pairs), "total": 1}
    return {
        "start": started - begin,
        "prepare": prepared - started,
        **{name: 1e3 * statistics.median(each) / asked[name] for name, each in spent.items()},
        "first": 1e3 * spent["pair"][0] / MARGINALS,
        "compiling": 1e3 * (compiled[1] - compiled[0]) / MARGINALS,
    }


def _compiling() -> float:
    """CPU seconds of the threads with which Java compiles, in all that this process started."""
    ticks = 0
    for process in family():
        for thread in Path(f"/proc/{process}/task").glob("*"):
            with suppress(OSError):
                name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(")")
                if name.startswith(("C1 Compiler", "C2 Compiler")):
                    ticks += sum(map(int, rest.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _asked(engine: Any, queries: list[Any]) -> float:
    """CPU seconds of some queries that are asked for together."""
    begin = _seconds()
    for _ in engine.count(queries):
        pass
    return _seconds() - begin


def _engine(place: str, folder: str) -> Any:
    from hedgerow.private.engines import open_engine
    from hedgerow.private.engines.sql.engine import SqlEngine
    from hedgerow.private.engines.sql.location import open_database

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{ONE_CORE} pyspark-shell"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if place == "embedded":
        return open_engine(f"{folder}/table", memory=GENEROUS)
    url = f"spark://{folder}/table" if place.startswith("Spark") else f"duckdb://{folder}/table.db/people"
    if place == SLOW:
        database: Any = open_database(url, GENEROUS)
        return SqlEngine(database, memory=GENEROUS, stay=True)
    return open_engine(url, memory=GENEROUS, stay=place != "DuckDB, read here")


def _seconds() -> float:
    """CPU seconds of this process and of all that it started: Spark's Java, its workers, and what they start."""
    return seconds_of(family())


def family(word: str | None = None, root: int | None = None) -> set[int]:
    """The processes that one has started (this one, unless another is given), and those that they started.

    With a word, only those that have it in their command line.
    """
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    ours = {os.getpid() if root is None else root}
    while more := {child for child, of in parents.items() if of in ours} - ours:
        ours |= more
    return ours if word is None else {each for each in ours if word in _command(each)}


def _command(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text()
    return ""


def seconds_of(processes: set[int]) -> float:
    """CPU seconds of some processes, and of those of their children that have ended."""
    ticks = 0
    for process in processes - {os.getpid()}:
        with suppress(OSError):
            ticks += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))
    own = time.process_time() if os.getpid() in processes else 0.0
    return own + ticks / os.sysconf("SC_CLK_TCK")


def run(places: tuple[str, ...] = PLACES) -> list[dict[str, Any]]:
    """One line per place; the embedded engine, which is always measured, is the unit."""
    if importlib.util.find_spec("ibis") is None:
        print("hedgerow[engines] is not installed: nothing to compare (make .venv/ready-engines)")
        return []
    rows = int(float(os.environ.get("HEDGEROW_SCALE", ROWS)))
    lines: list[dict[str, Any]] = []
    unit: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        needed(in_a_process("bench.engines", "write", folder, rows))
        for place in dict.fromkeys((PLACES[0], *places)):
            if place.startswith("Spark") and not (shutil.which("java") and importlib.util.find_spec("pyspark")):
                print("Spark is left out: it needs Java and pyspark")
                continue
            figures = needed(in_a_process("bench.engines", "measure", place, folder))
            compiled = figures.pop("compiling")
            unit = unit or dict(figures)
            lines.append(
                {
                    "what": place,
                    "rows": rows,
                    "start_cpu_s": figures.pop("start"),
                    "prepare_cpu_s": figures["prepare"],
                    "cpu_ms_per_pair": figures["pair"],
                    "cpu_ms_per_pair_first": figures.pop("first"),
                    "compiling_ms_per_pair_first": compiled,
                    "cpu_ms_per_triple": figures["triple"],
                    "cpu_ms_per_pair_of_all": figures["together"],
                    "cpu_ms_to_count_the_rows": figures.pop("total"),
                    **{f"ratio_{name}": figures[name] / unit[name] for name in figures},
                }
            )
            print(lines[-1], file=sys.stderr, flush=True)
    if rows == ROWS:
        refill("use/scale.md", "engines", {line["what"]: _line(line) for line in lines})
        said = [_first(line) for line in lines if line["compiling_ms_per_pair_first"]]
        fill("use/scale.md", "first", "\n".join(said)) if said else None
    return lines


def _first(line: dict[str, Any]) -> str:
    whole, compiled = (f"{line[f'{what}_ms_per_pair_first']:,.0f}" for what in ("cpu", "compiling"))
    return f"{line['what']}: of {whole} CPU ms that a pair takes the first time Java compiles for {compiled}."


def _line(line: dict[str, Any]) -> str:
    spent = (
        "start_cpu_s",
        "prepare_cpu_s",
        "cpu_ms_per_pair_first",
        "cpu_ms_per_pair",
        "cpu_ms_per_triple",
        "cpu_ms_per_pair_of_all",
    )
    ratios = ("ratio_prepare", "ratio_pair", "ratio_triple", "ratio_together")
    total = "" if line["cpu_ms_to_count_the_rows"] < 1 else f"{line['cpu_ms_to_count_the_rows']:,.0f}"
    figures = [f"{line[name]:,.2g}" if line[name] < 100 else f"{line[name]:,.0f}" for name in (*spent, *ratios)]
    return f"| {line['what']} | " + " | ".join([*figures, total]) + " |"


if __name__ == "__main__":
    run(tuple(sys.argv[1:]) or PLACES)
