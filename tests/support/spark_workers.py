"""What happens on a cluster of real worker processes. Each function is a process of its own, and prints JSON."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import hedgerow as hr
from databases import SPARK_ON_ONE_CORE
from hedgerow import methods
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import HedgerowError
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.cluster.engine import ClusterEngine
from hedgerow.private.engines.sql.location import open_database
from hedgerow.run import Request
from hedgerow.schema import Schema

KEY = b"a key for tests"
SCHEMA = """
dataset: people
person: id
max_rows_per_person: 2
columns:
  grade: {type: category, values: [low, high], other: true}
  site: {type: code, size: 4}
  age: {type: integer, min: 0, max: 99}
"""


def session(master):
    builder = SparkSession.builder
    for key, value in {**SPARK_ON_ONE_CORE, "spark.master": master, "spark.sql.shuffle.partitions": "4"}.items():
        builder = builder.config(key, value)
    told = {
        "spark.sql.files.maxPartitionBytes": "200k",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": os.environ["EVENTS"],
        "spark.sql.maxPlanStringLength": "1000000",
        "spark.sql.debug.maxToStringFields": "1000",
    }
    for key, value in told.items():
        builder = builder.config(key, value)
    talking = f"-Dlog4j2.configurationFile={os.environ['LOGGING']}"
    for where in ("driver", "executor"):
        usual = SPARK_ON_ONE_CORE["spark.driver.extraJavaOptions"]
        builder = builder.config(f"spark.{where}.extraJavaOptions", f"{usual} {talking}")
    return builder.getOrCreate()


def processes(word):
    """Those whose command line has the word, among all that this process started."""
    parents, found = {}, []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            if word in (stat.parent / "cmdline").read_text():
                found.append(int(stat.parent.name))
        except OSError:
            continue

    def ours(process):
        return process == os.getpid() or (process in parents and ours(parents[process]))

    return [process for process in found if ours(process)]


def counts(engine, schema, times=1):
    encoding = Schema.parse(schema).encoding()
    queries = [MarginalQuery(encoding.domain, marginal) for marginal in encoding.domain.marginals(2)] * times
    return [answer.opened().tolist() for answer in engine.count(queries)]


def there(table):
    return ClusterEngine(open_database(f"spark://{table}"), bounding_key=KEY, stay=True)


def killed(table, master):
    """A worker dies while it counts; then all of them, after the table was made another one."""
    spark = session(master)
    engine = there(table)
    encoding = Schema.parse(SCHEMA).encoding()
    engine.prepare(encoding)
    embedded = open_engine(table, bounding_key=KEY)
    embedded.prepare(encoding)
    expected = counts(embedded, SCHEMA)
    told = {"place": engine.place, "before": counts(engine, SCHEMA) == expected}
    found = []
    counting = threading.Thread(target=lambda: found.extend(counts(engine, SCHEMA, times=2000)))
    counting.start()
    tracker = spark.sparkContext.statusTracker()
    while not any(
        stage.numActiveTasks for each in tracker.getActiveStageIds() if (stage := tracker.getStageInfo(each))
    ):
        time.sleep(0.01)
    first, *_ = workers = processes("CoarseGrainedExecutorBackend")
    os.kill(first, signal.SIGKILL)
    counting.join()
    told |= {"workers": len(workers), "killed in a count": found == expected * 2000}
    rows = pq.read_table(table)
    pq.write_table(rows.set_column(2, "site", [[(code + 1) % 4 for code in rows["site"].to_pylist()]]), table)
    for worker in processes("CoarseGrainedExecutorBackend"):
        os.kill(worker, signal.SIGKILL)
    try:
        told["changed"] = counts(engine, SCHEMA) == expected
    except HedgerowError as problem:
        told |= {"changed": problem.code, "said": str(problem)}
    print(json.dumps(told))


def left(table):
    """The workers of a session that we start are killed when rows have gone over their disks; what lies there then."""
    there(table).prepare(Schema.parse(SCHEMA).encoding())
    workers = processes("CoarseGrainedExecutorBackend")
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    files = [path.read_bytes() for path in Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("shuffle_*") if path.is_file()]
    print(json.dumps({"workers": len(workers), "bytes": sum(map(len, files)), "ids": sum(map(ids_in, files))}))


def ids_in(content):
    return content.count(b"canary-7f3a-")


def lacking(table, master):
    """Workers without this package."""
    session(master)
    engine = there(table)
    encoding = Schema.parse(SCHEMA).encoding()
    engine.prepare(encoding)
    embedded = open_engine(table, bounding_key=KEY)
    embedded.prepare(encoding)
    print(json.dumps({"place": engine.place, "alike": counts(engine, SCHEMA) == counts(embedded, SCHEMA)}))


def ended(table, master, ledger, journal, resume):
    """Java is killed before the first count that is paid for; the next process goes on."""
    session(master)
    engine = there(table)
    count = engine.count

    def breaks(queries):
        for process in processes("SparkSubmit"):
            os.kill(process, signal.SIGKILL)
        return count(queries)

    if not resume:
        engine.count = breaks
    given = {"ledger": ledger, "journal": journal, "resume": resume}
    try:
        release = Request(engine, Schema.parse(SCHEMA), hr.Budget(1.0, 1e-9), methods.build("mst"), **given)
        print(json.dumps({"charges": len(release.checked().release().certificate.charges)}))
    except HedgerowError as problem:
        print(json.dumps({"code": problem.code, "said": str(problem)}))
