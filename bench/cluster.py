"""What counting on a cluster costs, and what it would cost where nobody has counted yet.

    python -m bench.cluster points     one session, tables of several sizes: CPU seconds to get ready and to count
    python -m bench.cluster workers    one and two workers of their own: where CPU seconds go, and how busy each was;
                                       beside it one and two plain processes that count the same
    python -m bench.cluster large      100 million rows from Spark, with the peak memory of every process
    python -m bench.cluster rows_out   rows drawn here and by Spark's workers
    python -m bench.cluster disk       what it costs that what Spark puts on disk is encrypted

What was measured is kept in build/cluster.json, from which the sections of docs/use/scale.md are written. The model has
a price for each task (with its part of the job), for each row with and without its columns, for each marginal of a row,
and for each cell that a task hands on; the prices are fitted to the points (no price is below 0), and their spread is
that of fits to points that were drawn again.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.engines import family, seconds_of
from bench.pages import fill
from bench.process import ROOT, in_a_process, needed

KEPT = ROOT / "build" / "cluster.json"
SIZES = (
    (500_000, 20, 10),
    (2_000_000, 20, 10),
    (4_000_000, 20, 10),
    (1_000_000, 40, 10),
    (2_000_000, 10, 10),
    (1_000_000, 20, 40),
)
"""Rows, columns, values of each."""
PAIRS = (4, 16, 45, 190)
UNTIL_WARM = 40
"""Jobs after which Java compiles little more."""
LARGE = 100_000_000
EVERYTHING = ("points", "workers", "large", "rows_out", "disk")
WORKED_ROWS = 96 << 18
WORKED_VALUES = 5
WORKED_TASKS = 16
WARMING, WARM = 2, 2
"""Rounds of one and of two workers after the first that nobody counts, and those that are counted."""
ROWS_PER_TASK = 10_000_000
FITS = 2000
TIMES = 3
PLAIN = "--driver-memory 1g --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1"


def schema_of(columns: int, values: int) -> Any:
    from hedgerow.schema import Schema

    return Schema.parse("columns:\n" + "".join(f"  c{i}: {{type: code, size: {values}}}\n" for i in range(columns)))


def write(folder: str, rows: int, columns: int, values: int) -> None:
    """Every column half a copy of the one before it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    Path(folder).mkdir()
    names = [f"c{index}" for index in range(columns)]
    with pq.ParquetWriter(f"{folder}/rows.parquet", pa.schema([(name, pa.int32()) for name in names])) as writer:
        for begin in range(0, rows, 1 << 18):
            some = min(1 << 18, rows - begin)
            before = rng.integers(0, values, some, dtype=np.int32)
            table = {}
            for name in names:
                fresh = rng.integers(0, values, some, dtype=np.int32)
                before = np.where(rng.integers(0, 2, some, dtype=np.uint8) == 0, before, fresh)
                table[name] = before
            writer.write_table(pa.table(table))


def opened(folder: str, arguments: str) -> Any:
    from hedgerow.private.engines.cluster.engine import ClusterEngine
    from hedgerow.private.engines.sql.location import open_database

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{arguments} {PLAIN} pyspark-shell"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    database: Any = open_database(f"spark://{folder}")
    return ClusterEngine(database, stay=True)


def points() -> dict[str, Any]:
    """Points of the model: what was asked, and the CPU seconds of all processes."""
    found: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        for number, size in enumerate((SIZES[0], *SIZES)):  # the first one warms up, and is measured again
            rows, columns, values = size
            table = f"{folder}/{number}"
            write(table, rows, columns, values)
            engine = opened(table, "--master local[1]")
            encoding = schema_of(columns, values).encoding()
            begin = seconds_of(family())
            engine.prepare(encoding)
            spent = seconds_of(family()) - begin
            for _ in range(UNTIL_WARM if number == 0 else 0):
                counted(engine, queries_of(encoding.domain, PAIRS[0]))
            tasks = engine._counting._tasks
            known = {"rows": rows, "columns": columns, "tasks": tasks, "warming": float(number == 0)}
            found.append(known | {"kind": 0, "pairs": 0, "cells": 0, "touched": 0, "cpu_s": spent})
            for pairs in (each for each in PAIRS if each <= columns * (columns - 1) // 2):
                queries = queries_of(encoding.domain, pairs)
                times = []
                for _ in range(TIMES):
                    begin = seconds_of(family())
                    counted(engine, queries)
                    times.append(seconds_of(family()) - begin)
                spent = statistics.median(times)
                touched = len({name for query in queries for name in query.attributes})
                cells = sum(query.cells for query in queries)
                asked = {"kind": 1, "pairs": pairs, "cells": cells, "touched": touched}
                found.append(known | asked | {"cpu_s": spent})
    return {"points": [point for point in found if not point.pop("warming")]}


def queries_of(domain: Any, pairs: int) -> list[Any]:
    from hedgerow.coded.query import MarginalQuery

    every = list(domain.marginals(2))
    return [MarginalQuery(domain, pair) for pair in every[:: len(every) // pairs][:pairs]]


def workers(number: int, rows: int = WORKED_ROWS) -> dict[str, Any]:
    """CPU seconds of every part by step, in the first round and in warm ones, and what Spark says of each worker."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write(f"{folder}/table", rows, 20, WORKED_VALUES)
        part = -(-Path(f"{folder}/table/rows.parquet").stat().st_size // WORKED_TASKS)
        several = f"--conf spark.sql.files.maxPartitionBytes={part}"  # as many tasks for one worker as for two
        engine = opened(f"{folder}/table", f"--master local-cluster[{number},1,1536] {several}")
        encoding = schema_of(20, WORKED_VALUES).encoding()
        queries = worked(encoding.domain)
        rounds = []
        for _ in range(1 + WARMING + WARM):
            spent = {}
            for step, job in (
                ("ready", lambda: engine.prepare(encoding)),
                ("count", lambda: counted(engine, queries)),
            ):
                before = _parts(engine)
                job()
                spent[step] = _between(before, _parts(engine))
            rounds.append(spent)
        warm = {step: _summed([each[step] for each in rounds[1 + WARMING :]]) for step in ("ready", "count")}
        return {"rows": rows, "tasks": engine._counting._tasks, "first": rounds[0], "warm": warm}


def worked(domain: Any) -> list[Any]:
    """All pairs and triples."""
    from hedgerow.coded.query import MarginalQuery

    return [MarginalQuery(domain, each) for degree in (2, 3) for each in domain.marginals(degree)]


def counted(engine: Any, queries: list[Any]) -> None:
    for _ in engine.count(queries):
        pass


def _parts(engine: Any) -> dict[str, Any]:
    """Seconds so far: CPU of this process and of the driver's Java, of each worker's Java and Python; of its tasks."""
    executors = sorted(family("CoarseGrainedExecutorBackend"))
    each = {str(number): seconds_of(family(root=pid)) for number, pid in enumerate(executors)}
    java = {str(number): seconds_of({pid}) for number, pid in enumerate(executors)}
    own = seconds_of({os.getpid()})
    told = engine._database._session.sparkContext._jsc.sc().statusStore().executorList(True)
    summaries = [told.apply(number) for number in range(told.size())]
    busy = {one.id(): one.totalDuration() / 1000 for one in summaries if one.id() != "driver"}
    return {
        "here": {"0": own},
        "driver": {"0": seconds_of(family()) - own - sum(each.values())},
        "java": java,
        "python": {number: spent - java[number] for number, spent in each.items()},
        "busy": busy,
        "wall": {"0": time.monotonic()},
    }


def _between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[float]]:
    return {name: [each - before[name].get(key, 0.0) for key, each in after[name].items()] for name in after}


def _summed(rounds: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    return {name: [sum(each) for each in zip(*(one[name] for one in rounds), strict=True)] for name in rounds[0]}


def alone(processes: int, rows: int = WORKED_ROWS) -> dict[str, Any]:
    """Plain processes side by side, each with all the rows: what one takes, and what two of them get done."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write(f"{folder}/table", rows, 20, WORKED_VALUES)
        call = f"from bench.cluster import *; print(json.dumps(one_alone({folder + '/table'!r})))"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        begun = [
            subprocess.Popen(
                [sys.executable, "-c", call], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            for _ in range(processes)
        ]
        for each in begun:  # all are ready before one of them counts
            assert each.stdout is not None
            each.stdout.readline()
        for each in begun:
            assert each.stdin is not None
            each.stdin.write(b"go\n")
            each.stdin.flush()
        return {"each": [json.loads(each.communicate()[0]) for each in begun]}


def one_alone(table: str) -> dict[str, float]:
    """CPU seconds to get ready and to count, and the time that passed while it counted."""
    from hedgerow.private.engines import open_engine

    engine: Any = open_engine(table, memory=12 << 30)  # codes stay in memory
    encoding = schema_of(20, WORKED_VALUES).encoding()
    begin = time.process_time()
    engine.prepare(encoding)
    ready = time.process_time() - begin
    queries = worked(encoding.domain)
    counted(engine, queries[:20])
    print("ready", flush=True)
    sys.stdin.readline()
    began, begin = time.monotonic(), time.process_time()
    counted(engine, queries)
    return {"ready": ready, "count": time.process_time() - begin, "wall": time.monotonic() - began}


def large(rows: int = LARGE) -> dict[str, Any]:
    """A whole run of mst; coded rows stay on the workers."""
    import hedgerow as hr
    from bench.scale import schema_text, sizes, write_rows

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write_rows(f"{folder}/table", rows)
        begin = seconds_of(family())
        engine = opened(f"{folder}/table", "--master local[1]")
        peaks: dict[str, float] = {}
        count = engine.count

        def watched(queries: Any) -> Any:
            _note(peaks)
            answers = count(queries)
            _note(peaks)
            return answers

        engine.count = watched
        hr.synthesize(engine, hr.Schema.parse(schema_text(sizes())), hr.Budget(1.0, 1e-9), "mst")
        _note(peaks)
        return {"rows": rows, "cpu_s": seconds_of(family()) - begin, **peaks}


def rows_out(rows: int = 2 << 20) -> dict[str, Any]:
    """CPU microseconds a row, drawn here and by Spark's workers, of a model and of one whose rows are exchanged."""
    import hedgerow as hr

    found: dict[str, Any] = {"rows": rows}
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write(f"{folder}/table", 300_000, 8, 8)
        session = opened(f"{folder}/table", "--master local[1]")._database._session
        for method, epsilon in (("mst", 1.0), ("hedge", 20.0)):
            built = hr.methods.build(method, {"size": 0.0001} if method == "hedge" else {})  # which pairs do not fit
            release = hr.synthesize(f"{folder}/table", schema_of(8, 8), hr.Budget(epsilon, 1e-9), built, quality=0)
            exchanged = release.model.kind in ("adjusted", "evened")
            release.to_spark(session, 1000).write.format("noop").mode("overwrite").save()  # so that both are warm
            release.sample(1000)
            begin = seconds_of(family())
            for number in range(rows >> 20):
                for _ in release.block(1 << 20, 0, number):
                    pass
            here = seconds_of(family()) - begin
            begin = seconds_of(family())
            release.to_spark(session, rows).write.format("noop").mode("overwrite").save()
            there = seconds_of(family()) - begin
            what = f"{method} at ε = {epsilon:g}" + (", rows exchanged" if exchanged else "")
            found[what] = [1e6 * here / rows, 1e6 * there / rows]
    return found


def disk(encrypted: bool, rows: int = 4_000_000) -> dict[str, float]:
    """CPU seconds to bring rows of persons together, which go to disk on their way, and to count blocks on disk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hedgerow.schema import Schema

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        write(f"{folder}/table", rows, 20, 10)
        ids = np.random.default_rng(1).integers(0, rows // 2, rows)
        table = pq.read_table(f"{folder}/table").append_column("id", pa.array(ids))
        pq.write_table(table, f"{folder}/table/rows.parquet", row_group_size=1 << 18)
        little = "--conf spark.memory.fraction=0.05 --conf spark.sql.shuffle.partitions=4"
        said = f"--conf spark.io.encryption.enabled={str(encrypted).lower()}"
        engine = opened(f"{folder}/table", f"--master local[1] {little} {said}")
        columns = "".join(f"  c{i}: {{type: code, size: 10}}\n" for i in range(20))
        encoding = Schema.parse(f"person: id\nmax_rows_per_person: 2\ncolumns:\n{columns}").encoding()
        queries = queries_of(encoding.domain, 45)
        found: dict[str, list[float]] = {"ready": [], "count": []}
        for _ in range(1 + TIMES):
            for step, job in (("ready", lambda: engine.prepare(encoding)), ("count", lambda: counted(engine, queries))):
                begin = seconds_of(family())
                job()
                found[step].append(seconds_of(family()) - begin)
        return {step: statistics.median(spent[1:]) for step, spent in found.items()}


def _note(peaks: dict[str, float]) -> None:
    """The most memory that each kind of process has held so far."""
    for process in family():
        with suppress(OSError, IndexError):
            status = Path(f"/proc/{process}/status").read_text()
            line = Path(f"/proc/{process}/cmdline").read_text()
            java = "SparkSubmit" in line or "java" in line.split("\0")[0]
            kind = "here" if process == os.getpid() else "java" if java else "python"
            peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
            peaks[f"peak_mb_{kind}"] = max(peaks.get(f"peak_mb_{kind}", 0.0), peak)


# ------------------------------------------------------------ the model


Prices = npt.NDArray[np.float64]
READY = ("task", "row", "value")
COUNT = ("task", "row and column", "row and pair", "cell of a task")


def _amounts(point: Mapping[str, float]) -> list[float]:
    rows, tasks = point["rows"], point["tasks"]
    if point["kind"] == 0:
        return [tasks, rows, rows * point["columns"]]
    return [tasks, rows * point["touched"], rows * point["pairs"], tasks * point["cells"]]


def fitted(points: list[dict[str, float]]) -> Prices:
    """Prices of the amounts: least squares of relative errors, none below 0."""
    from scipy.optimize import nnls

    amounts = np.array([_amounts(point) for point in points])
    spent = np.array([point["cpu_s"] for point in points])
    scale = amounts.max(axis=0)
    prices, _ = nnls(amounts / scale / spent[:, None], np.ones(len(points)))
    result: Prices = prices / scale
    return result


def predicted(points: list[dict[str, float]], asked: Mapping[str, float]) -> tuple[float, float, float]:
    """CPU seconds, and the middle nine tenths of what fits to points drawn again say, times their own errors."""
    rng = np.random.default_rng(0)
    amounts = np.array(_amounts(asked))
    best = float(amounts @ fitted(points))
    said = []
    for _ in range(FITS):
        drawn = [points[index] for index in rng.integers(0, len(points), len(points))]
        left = [point for point in points if not any(point is each for each in drawn)]
        prices = fitted(drawn)
        if not left:
            continue
        point = left[rng.integers(0, len(left))]
        off = point["cpu_s"] / max(1e-9, float(np.array(_amounts(point)) @ prices))
        said.append(float(amounts @ prices) * off)
    low, high = np.quantile(said, [0.05, 0.95])
    return best, float(low), float(high)


def plans(found: dict[str, Any]) -> list[dict[str, Any]]:
    """mst on tables that nobody counted here: every pair is scored, and as many as columns are measured."""
    ready = [point for point in found["points"] if point["kind"] == 0]
    count = [point for point in found["points"] if point["kind"] == 1]
    plans = []
    for rows, columns in ((10**9, 100), (10**10, 50)):
        tasks = rows // ROWS_PER_TASK
        pairs = columns * (columns - 1) // 2 + 2 * columns
        size = {
            "rows": rows,
            "columns": columns,
            "tasks": tasks,
            "touched": columns,
            "pairs": pairs,
            "cells": 400 * pairs,
        }
        plans.append(
            {
                "rows": rows,
                "columns": columns,
                "ready_h": [each / 3600 for each in predicted(ready, size | {"kind": 0})],
                "count_h": [each / 3600 for each in predicted(count, size | {"kind": 1})],
                "codes_gb": rows * columns / 1e9,
                "here_mb": 8 * size["cells"] * min(tasks, 16) / 1e6,
                "between_gb": 8 * size["cells"] * tasks / 1e9,
            }
        )
    return plans


def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return found


def run(wanted: tuple[str, ...] = EVERYTHING) -> list[dict[str, Any]]:
    """Measure what is asked for and write the page."""
    found = kept()
    KEPT.parent.mkdir(exist_ok=True)
    for what in wanted:
        if what == "workers":
            for name in ("workers", "alone"):
                found[name] = [needed(in_a_process("bench.cluster", name, number)) for number in (1, 2)]
        elif what == "disk":
            found[what] = [needed(in_a_process("bench.cluster", what, encrypted)) for encrypted in (False, True)]
        else:
            found |= {what: needed(in_a_process("bench.cluster", what))}
        if what == "points":
            found["points"] = found["points"]["points"]
        KEPT.write_text(json.dumps(found, indent=1))
    write_page(found)
    return [{"what": what, **(each if isinstance(each, dict) else {"found": each})} for what, each in found.items()]


def write_page(found: dict[str, Any]) -> None:
    """The sections of docs/use/scale.md that follow from what was measured."""
    if "points" in found:
        fill("use/scale.md", "cluster", _model_section(found))
    if "workers" in found:
        fill("use/scale.md", "workers", _workers_section(found))
    if "large" in found:
        fill("use/scale.md", "large", _large_section(found["large"]))
    if "disk" in found:
        fill("use/scale.md", "disk", _disk_section(found["disk"]))
    if "rows_out" in found:
        fill("use/scale.md", "rows out", _rows_section(found["rows_out"]))


def _workers_section(found: dict[str, Any]) -> str:
    pair, plain = found["workers"], [each["each"] for each in found["alone"]]
    lines = [
        "| CPU s | driver | busiest worker: Java | its Python | longest way | our code | busy, s | passed, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    faster: dict[tuple[str, str], float] = {}
    for step, told in (("ready", "ready"), ("count", "all pairs and triples")):
        for when, rounds in (("first", 1), ("warm", WARM)):
            ways = []
            for number, one in enumerate(pair):
                spent = {name: [each / rounds for each in values] for name, values in one[when][step].items()}
                driver = spent["here"][0] + spent["driver"][0]
                java, python = max(zip(spent["java"], spent["python"], strict=True), key=sum)
                ways.append((driver + java + python, java + python))
                ours = plain[0][0][step] / (number + 1)
                cells = [
                    driver,
                    java,
                    python,
                    ways[-1][0],
                    ours,
                    max(spent["busy"]),
                    spent["wall"][0],
                ]
                figures = " | ".join(f"{cell:.2g}" if cell < 10 else f"{cell:.0f}" for cell in cells)
                lines.append(f"| {told}, {when}, {number + 1} worker{'s' * number} | {figures} |")
            faster[when, step], faster[f"{when} workers", step] = (one / two for one, two in zip(*ways, strict=True))
    ready, count = ({when: each for (when, its), each in faster.items() if its == step} for step in ("ready", "count"))
    once, twice = plain[0][0], plain[1]
    more = max(each["count"] for each in twice) / once["count"]
    got = sum(once["wall"] / each["wall"] for each in twice)
    return "\n\n".join(
        (
            f"{pair[0]['rows']:,} rows × 20 columns in {pair[0]['tasks']} tasks, worker processes of their own with a "
            f"core each; *first* is the first\nround of a session, *warm* the mean of {WARM} rounds after "
            f"{WARMING + 1} others. *Our code* is what the embedded engine takes for the same\nrows, divided by the "
            "number of workers; *busy* is what Spark says of the busiest worker's tasks, *passed* what a clock\nsays, "
            "while other programs used this machine's two cores as well.",
            "\n".join(lines),
            f"By CPU seconds on the longest way (all of the driver, then the busiest worker) two workers are "
            f"{ready['warm']:.2f} times as fast\nas one to be ready and {count['warm']:.2f} times to count, once warm; "
            f"in the first round {ready['first']:.2f} and {count['first']:.2f}, when every Java compiles\nfor itself. "
            f"Of the workers alone, warm: {ready['warm workers']:.2f} and {count['warm workers']:.2f}.",
            f"The machine itself: of two plain processes that count the same rows side by side, without Spark, each "
            f"takes {more:.2f} times\nthe CPU seconds of one alone; a clock says that they got {got:.2f} times as much "
            "done.",
        )
    )


def _large_section(large: dict[str, Any]) -> str:
    return (
        f"`mst` on {large['rows']:,} rows × 20 columns from Spark on one core of this machine (`spark.driver.memory` "
        f"1 GB, `--max-memory` 4 GB,\ncoded rows there): {large['cpu_s']:.0f} CPU seconds of all processes, start "
        f"included; at most {large['peak_mb_here']:,.0f} MB here,\n{large['peak_mb_java']:,.0f} MB in Java and "
        f"{large['peak_mb_python']:,.0f} MB in a worker's Python."
    )


def _disk_section(found: list[dict[str, float]]) -> str:
    plain, hidden = found
    return (
        f"Of 4,000,000 rows × 20 columns of persons with two rows each: {plain['ready']:.1f} CPU seconds without "
        f"encryption and\n{hidden['ready']:.1f} with it to bring them together and code them; to count 45 pairs, most "
        f"blocks on disk, {plain['count']:.2f} and {hidden['count']:.2f}\n(Spark on one core, medians of {TIMES})."
    )


def _rows_section(found: dict[str, Any]) -> str:
    drawn = {what: spent for what, spent in found.items() if what != "rows"}
    lines = ["| rows out, 8 columns | here, CPU µs a row | `to_spark`, all processes | × |", "|---|---|---|---|"]
    lines += [f"| {what} | {here:.2f} | {there:.2f} | {there / here:.2f} |" for what, (here, there) in drawn.items()]
    return "\n".join(lines)


def _model_section(found: dict[str, Any]) -> str:
    ready = [point for point in found["points"] if point["kind"] == 0]
    count = [point for point in found["points"] if point["kind"] == 1]
    lines = ["| | price | | price |", "|---|---|---|---|"]
    tiny = {"row", "value", "row and column", "row and pair", "cell of a task"}
    priced = [
        [
            f"{what} {name}",
            f"{price * 1e9:.3g} ns" if name in tiny else f"{price * 1e3:.3g} ms",
        ]
        for what, names, points in (("ready, a", READY, ready), ("count, a", COUNT, count))
        for name, price in zip(names, fitted(points), strict=True)
    ]
    half = -(-len(priced) // 2)
    for left, (name, price) in enumerate(priced[:half]):
        right = priced[left + half] if left + half < len(priced) else ["", ""]
        lines.append(f"| {name} | {price} | {right[0]} | {right[1]} |")
    off = max(
        abs(point["cpu_s"] / float(np.array(_amounts(point)) @ fitted(points)) - 1)
        for points in (ready, count)
        for point in points
    )
    known: dict[str, float] = {"rows": 1e7, "columns": 20, "tasks": 1, "touched": 20, "pairs": 190, "cells": 190 * 100}
    one, _, _ = predicted(ready, known | {"kind": 0})
    two, _, _ = predicted(count, known | {"kind": 1})
    parts = [
        f"Prices in CPU time of all processes, fitted to {len(ready)} and {len(count)} measured points (500,000 to "
        f"4,000,000 rows, 10 to 40\ncolumns, {PAIRS[0]} to {PAIRS[-1]} pairs, one worker); the point that fits worst "
        f"is off by {100 * off:.0f} %. Counts are medians of {TIMES}, after {UNTIL_WARM} jobs that\nwarmed Java; "
        "to get ready grew cheaper from point to point, as Java compiled. The table of 10,000,000 × 20 above is none "
        f"of\nthem; for it they foretell {one:.0f} CPU seconds to be ready, and {1e3 * two / 190:.1f} ms for each of "
        "all 190 pairs.",
        "\n".join(lines),
        "| `mst`, 20 values a column | ready, CPU h | all pairs, CPU h | codes | to here | between workers |",
    ]
    table = [parts.pop(), "|---|---|---|---|---|---|"]
    for plan in plans(found):
        one, two = plan["ready_h"], plan["count_h"]
        table.append(
            f"| {plan['rows']:.0e} × {plan['columns']} | {one[0]:.1f} ({one[1]:.1f} to {one[2]:.1f}) | {two[0]:.2f} "
            f"({two[1]:.2f} to {two[2]:.2f}) | {plan['codes_gb']:,.0f} GB | {plan['here_mb']:,.0f} MB | "
            f"{plan['between_gb']:,.1f} GB |".replace("1e+09", "10⁹").replace("1e+10", "10¹⁰")
        )
    parts.append("\n".join(table))
    return "\n\n".join(parts)


if __name__ == "__main__":
    run(tuple(sys.argv[1:]) or EVERYTHING)
