"""Databases that tests put tables into. What is not installed is skipped, and named."""

import glob
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NUMBERS = itertools.count()


class DuckDBFiles:
    """A file for each table."""

    def __init__(self, folder):
        pytest.importorskip("ibis", reason="hedgerow[engines] is not installed")
        self.driver = pytest.importorskip("duckdb", reason="DuckDB is not installed")
        self.folder = folder

    def install(self, table):
        file = self.folder / f"{next(NUMBERS)}.db"
        with self.driver.connect(str(file)) as connection:
            connection.register("given", table)
            connection.execute("create table people as select * from given")
        return f"duckdb://{file}/people"


SPARK_ON_ONE_CORE = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",  # tiny work is not worth compiling well
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def spark_or_skip():
    """`pyspark.sql`, where Spark can run."""
    pytest.importorskip("ibis", reason="hedgerow[engines] is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    return pytest.importorskip("pyspark.sql", reason="PySpark is not installed")


class SparkFolders:
    """A folder of Parquet files for each table, and one session on one core."""

    def __init__(self, folder):
        sql = spark_or_skip()
        builder = sql.SparkSession.builder.config("spark.local.dir", str(folder))
        for key, value in SPARK_ON_ONE_CORE.items():
            builder = builder.config(key, value)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run what the tests run
        self.session = builder.getOrCreate()
        self.folder = folder

    def install(self, table):
        path = self.folder / f"{next(NUMBERS)}.parquet"
        pq.write_table(table, path)
        return f"spark://{path}"

    def close(self):
        self.session.stop()


class PostgresServer:
    """A cluster of its own in a folder for temporary files, reached by a socket there; a table for each table."""

    def __init__(self):
        pytest.importorskip("ibis", reason="hedgerow[engines] is not installed")
        self.driver = pytest.importorskip("psycopg", reason="psycopg is not installed")
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [os.path.dirname(shutil.which("initdb") or "")]
        if not found[-1]:
            pytest.skip("the PostgreSQL server is not installed")
        self.programs = Path(found[-1])
        self.folder = Path(tempfile.mkdtemp(prefix="hr-pg-", dir="/tmp"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", self.folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        listening = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off"
        self._run("pg_ctl", "-D", self.folder / "data", "-o", listening, "-l", self.folder / "log", "-w", "start")
        self.host = str(self.folder).replace("/", "%2F")

    def _run(self, program, *words):
        user = {"user": "postgres"} if os.getuid() == 0 else {}
        command = [self.programs / program, *map(str, words)]
        plain = {
            name: value for name, value in os.environ.items() if name != "LD_PRELOAD"
        }  # a server needs no sanitizer
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", timeout=60, env=plain, **user)

    def connect(self, user="postgres"):
        return self.driver.connect(host=str(self.folder), user=user, dbname="postgres", autocommit=True)

    def install(self, table):
        name = f"people{next(NUMBERS)}"
        columns = ", ".join(f'"{field.name}" {_postgres_type(field.type)}' for field in table.schema)
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"create table {name} ({columns})")
            with cursor.copy(f"copy {name} from stdin") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
        return self.url(name)

    def url(self, name, user="postgres"):
        return f"postgres://{user}@{self.host}/postgres/{name}"

    def close(self):
        self._run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def _postgres_type(kind):
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "double precision"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    return "timestamp" if pa.types.is_timestamp(kind) else "text"
