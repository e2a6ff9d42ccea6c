"""Spark: a table that lies on a cluster, or anywhere that Spark reads from."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, StorageLevel, TaskContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import broadcast
from pyspark.sql.functions import sum as add_up
from pyspark.sql.pandas.types import from_arrow_schema

from hedgerow import __version__
from hedgerow.private.engines.sql.database import Database, count
from hedgerow.private.engines.sql.spill import SpillFolder
from hedgerow.private.sources.lakes import ICEBERG, LOGS, parted, refuse_lake
from hedgerow.private.sources.source import BATCH_ROWS, wanted_columns

if TYPE_CHECKING:
    from hedgerow.private.engines.cluster.blocks import Work
    from hedgerow.private.engines.engine import Engine

warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")  # of what pyspark itself will do one day
_FEW = 1 << 17
_AS_WRITTEN = "UTF8_BINARY"
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS = {_BATCH: str(1 << 13), "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1)}
"""Rows on their way to a worker's Python: a bound on the bytes of a batch would be looked at for each of them."""
_BLOCKS = {
    **_ROWS,
    _BATCH: "32",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Rows that are blocks: each is large and there are few, so nothing is compiled for them or planned twice."""
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Spark(Database):
    """Where Spark runs, and with what rights, is said by its own configuration (spark-defaults.conf, SPARK_REMOTE)."""

    name = "Spark"
    streams = False
    form = "spark://[CATALOG.][SCHEMA.]TABLE, or with a slash in it spark://PATH of Parquet files"

    def _open(self, location: str, memory: int) -> tuple[Any, Any]:
        if not location:
            raise self._bad_location()
        session = SparkSession.getActiveSession() or _quiet_session()
        backend = ibis.pyspark.connect(session)
        self._session = session
        if "/" in location:
            refuse_lake(location, (log for each in parted(location) for log in LOGS if self._holds(each, log)))
            return backend, backend.read_parquet(location, table_name=self._next_name())
        schema, _, name = location.rpartition(".")
        return backend, backend.table(name, database=schema or None)

    def _holds(self, folder: str, log: str) -> bool:
        """Whether a folder of plain files has such a log: Spark itself passes over names that begin so."""
        inside = "[v0-9]*.metadata.json*" if LOGS[log] == ICEBERG else "*"
        try:
            _ = self._session.read.text(f"{folder.rstrip('/')}/{log}/{inside}").schema
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return False
            raise
        return True

    def engine(self, bounding_key: bytes | None, memory: int, stay: bool) -> Engine:
        from hedgerow.private.engines.cluster.engine import ClusterEngine

        return ClusterEngine(self, bounding_key=bounding_key, memory=memory, stay=stay)

    def exact(self, text: Any) -> Any:
        return text.cast("binary")  # as they lie there: encode() would put one sign for all that is not UTF-8

    def _compared_as_written(self, column: str) -> bool:
        """Not so under other collations than that of bytes, which Spark has from its version 4 on."""
        kind = self._session.sql(self._backend.compile(self._given.select(column))).schema[0].dataType
        return getattr(kind, "collation", _AS_WRITTEN) == _AS_WRITTEN

    def tally(self, table: Any, cells: Sequence[Any]) -> Any:
        """One scan: every row is repeated for each of its numbers."""
        return table.select(cell=ibis.array(list(cells)).unnest()).group_by("cell").agg(rows=count)

    def fetch(self, question: Any) -> Iterator[pa.RecordBatch]:
        with self.asking():
            found = self._session.sql(self._backend.compile(question)).toArrow()
            yield from found.cast(question.schema().to_pyarrow()).to_batches(max_chunksize=BATCH_ROWS)

    def hold(self, question: Any) -> Any:
        """Checkpointed: partitions that get lost are an error, not computed anew from a table that may have changed."""
        with self.asking():
            held = self._session.sql(self._backend.compile(question)).localCheckpoint(eager=True)
            return self._named(held, held.limit(_FEW + 1).count())

    def upload(self, columns: Mapping[str, Any]) -> Any:
        with self.asking():
            table = pa.table(dict(columns))
            return self._named(self._session.createDataFrame(table), len(table))

    def drop(self, held: Any) -> None:
        with self.asking():
            self._session.catalog.dropTempView(held.get_name())

    # ------------------------------------------------------------ our own code on the workers

    @cached_property
    def has_kernels(self) -> bool:
        """Whether workers have this version of this package, which a small job tells."""
        try:
            frame = self._session.range(0, 8, numPartitions=8).mapInArrow(_probing(), "version string")
            found = {row.version for row in frame.collect()}
        except PySparkException:  # no Python there, or another one, or no pyarrow
            return False
        return found == {__version__}

    @property
    def buckets(self) -> int:
        """Over how many buckets persons are spread: Spark's own setting says how many tasks a shuffle is for."""
        return 4 * int(self._session.conf.get("spark.sql.shuffle.partitions"))

    def rows(self, columns: Sequence[str], person: str | None = None) -> tuple[Any, pa.Schema]:
        """Columns of the table as a frame, with `person` spelled, and the types to read them as."""
        with self.asking():
            table = self.table if person is None else self.naming(person)
            wanted = table.select(*wanted_columns(columns, self.header(), self.what))
            return self._session.sql(self._backend.compile(wanted)), wanted.schema().to_pyarrow()

    def mapped(self, frame: Any, work: Work, columns: pa.Schema) -> Any:
        """A frame of what the work makes of each partition."""
        with self.asking():
            return frame.mapInArrow(_numbered(work), from_arrow_schema(columns))

    def shuffled(self, frame: Any, column: str, tasks: int | None = None) -> Any:
        """The frame with rows that agree in a column in one partition, of so many or of as many as Spark finds good."""
        with self.asking():
            return frame.repartition(column) if tasks is None else frame.repartition(tasks, column)

    def selected(self, frame: Any, columns: Sequence[str]) -> Any:
        """Some columns of a frame."""
        with self.asking():
            return frame.select(*columns)

    def between(self, frame: Any, column: str, first: int, last: int) -> Any:
        """Some rows of a frame."""
        with self.asking():
            return frame.filter(frame[column].between(first, last))

    def summed(self, frame: Any, most: int) -> pa.Table:
        """Values and how many people hold each, at most so many of them."""
        with self.asking():
            return self.collected(frame.groupBy("value", "fault").agg(add_up("people").alias("people")).limit(most))

    def dropped(self, frame: Any) -> None:
        """What was kept is gone."""
        frame.unpersist()

    def kept(self, frame: Any) -> Any:
        """The frame, whose rows stay on the workers once they were computed, on disk what memory has no room for."""
        with self.asking(), self._set(_ROWS):
            return frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)

    def collected(self, frame: Any) -> pa.Table:
        """The rows of a frame, here."""
        with self.asking(), self._set(_ROWS):
            found: pa.Table = frame.toArrow()
            return found

    def counted(self, frame: Any) -> pa.Table:
        """The rows of a frame that is made of blocks, here."""
        with self.asking(), self._set(_BLOCKS):
            found: pa.Table = frame.toArrow()
            return found

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        """The session's settings for what is planned meanwhile, where it lets them be set."""
        conf = self._session.conf
        before = {name: conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                with suppress(PySparkException):
                    conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                with suppress(PySparkException):
                    conf.unset(name) if old is None else conf.set(name, old)

    def _named(self, frame: Any, rows: int) -> Any:
        """Few rows are sent to every worker, so that the table that they are joined with stays where it is."""
        name = self._next_name()
        (broadcast(frame) if rows <= _FEW else frame).createOrReplaceTempView(name)
        return self._backend.table(name)

    def _reason(self, error: Exception) -> str | None:
        if isinstance(error, PySparkException):
            state = error.getSqlState() or ""
            if state == "42P01":
                return "the table or one of its columns is not there"
            return "Spark refused, or lost a worker that held rows"
        return "the session has ended" if isinstance(error, Py4JError | ConnectionError) else None


def _numbered(work: Work) -> Task:
    """The work as Spark calls it."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _settled()
        context = TaskContext.get()
        assert context is not None
        return work(context.partitionId(), batches)

    return run


@cache
def _settled() -> None:
    """Between two tasks Spark looks for garbage among all that Python holds: modules are none, once and for all."""
    gc.collect()
    gc.freeze()


def _probing() -> Task:
    """Written so that it needs nothing but pyarrow where it runs: a function inside another is sent as it is."""

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        try:
            from hedgerow import __version__, _count  # noqa: F401
            from hedgerow.private.engines.cluster import tasks  # noqa: F401
        except Exception:
            __version__ = ""
        for _ in batches:
            yield pyarrow.record_batch([pyarrow.array([__version__])], names=["version"])

    return probe


def _quiet_session() -> Any:
    """A session that says nothing: what Spark logs may quote rows.

    What it puts on this machine's disk goes to a folder of our own, unless its configuration names one: Spark's are
    open to everyone, and stay behind when Java is killed. There and on workers it is encrypted, with a key that is in
    memory alone, unless its configuration says otherwise.
    """
    builder = SparkSession.builder.appName("hedgerow")
    if "SPARK_REMOTE" not in os.environ:
        SparkContext._ensure_initialized()  # Java reads spark-defaults.conf, which comes first
        conf = SparkConf().setIfMissing("spark.local.dir", str(_spill().path))
        conf.setIfMissing("spark.io.encryption.enabled", "true")
        conf.set("spark.ui.showConsoleProgress", "false")  # which pyspark's own start turns on
        builder = builder.config(conf=conf)
        if (conf.get("spark.master") or "local").startswith("local") and not conf.contains("spark.pyspark.python"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of this machine run what we run
    session = builder.getOrCreate()
    if hasattr(session, "_jsc"):
        session.sparkContext.setLogLevel("OFF")
    return session


@cache
def _spill() -> SpillFolder:
    """One for the process, as the session is."""
    return SpillFolder("hedgerow-spark-")
