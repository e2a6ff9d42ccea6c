"""Spark: a table that lies on a cluster, or anywhere that Spark reads from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import ibis
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import broadcast

from hedgerow.private.engines.sql.database import Database, count
from hedgerow.private.engines.sql.spill import SpillFolder
from hedgerow.private.sources.source import BATCH_ROWS

_FEW = 1 << 17


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
            return backend, backend.read_parquet(location, table_name=self._next_name())
        schema, _, name = location.rpartition(".")
        return backend, backend.table(name, database=schema or None)

    def exact(self, text: Any) -> Any:
        return text.cast("binary")  # as they lie there: encode() would put one sign for all that is not UTF-8

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


def _quiet_session() -> Any:
    """A session that says nothing: what Spark logs may quote rows.

    What it puts on this machine's disk goes to a folder of our own, unless its configuration names one: Spark's are
    open to everyone, and stay behind when Java is killed.
    """
    builder = SparkSession.builder.appName("hedgerow").config("spark.ui.showConsoleProgress", "false")
    if "SPARK_REMOTE" not in os.environ:
        SparkContext._ensure_initialized()  # Java reads spark-defaults.conf, which comes first
        builder = builder.config(conf=SparkConf().setIfMissing("spark.local.dir", str(_spill().path)))
    session = builder.getOrCreate()
    if hasattr(session, "_jsc"):
        session.sparkContext.setLogLevel("OFF")
    return session


@cache
def _spill() -> SpillFolder:
    """One for the process, as the session is."""
    return SpillFolder("hedgerow-spark-")
