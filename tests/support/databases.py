"""Databases that tests put tables into. What is not installed is skipped, and named."""

import datetime
import glob
import itertools
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
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


class SQLiteFiles:
    """A file for each table. Days and moments are text there, and columns have no types."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, table, kinds=None):
        """`kinds` are what stands behind the names of columns, by name."""
        file = self.folder / f"{next(NUMBERS)}.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            quoted = {name: '"' + name.replace('"', '""') + '"' for name in table.column_names}
            columns = ", ".join(f"{written} {(kinds or {}).get(name, '')}" for name, written in quoted.items())
            connection.execute(f"create table people ({columns})")
            marks = ", ".join("?" * table.num_columns)
            rows = zip(*(map(_plain, column.to_pylist()) for column in table.columns), strict=True)
            connection.executemany(f"insert into people values ({marks})", rows)
            connection.commit()
        return f"sqlite://{file}/people"


def _plain(value):
    return value.isoformat() if isinstance(value, datetime.date) else value


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


class MariaServer:
    """One of our own in a folder for temporary files, reached by a socket there; a table for each table."""

    def __init__(self):
        self.driver = pytest.importorskip("pymysql", reason="PyMySQL is not installed")
        server, made = (shutil.which(name, path=PROGRAMS) for name in ("mariadbd", "mariadb-install-db"))
        if server is None or made is None:
            pytest.skip("the MariaDB server is not installed")
        self.folder = Path(tempfile.mkdtemp(prefix="hr-maria-", dir="/tmp"))
        user = ["--user=mysql"] if os.getuid() == 0 else []
        if os.getuid() == 0:
            shutil.chown(self.folder, "mysql")
        where = ["--no-defaults", f"--datadir={self.folder}/data", *user]
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/", "env": plain}
        subprocess.run([made, *where, "--auth-root-authentication-method=normal"], check=True, timeout=120, **quiet)
        self.socket = self.folder / "socket"
        small = ["--skip-networking", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
        self.process = subprocess.Popen([server, *where, f"--socket={self.socket}", *small], **quiet)
        for _ in range(300):
            try:
                self.connect("mysql").close()
                break
            except self.driver.MySQLError:
                time.sleep(0.1)
        with self.connect("mysql") as connection, connection.cursor() as cursor:
            cursor.execute("create database census")
            cursor.execute("delete from global_priv where user = ''")
            cursor.execute("flush privileges")

    def connect(self, database="census", user="root"):
        return self.driver.connect(unix_socket=str(self.socket), user=user, database=database, autocommit=True)

    def install(self, table, kinds=None):
        """`kinds` are the types of columns, by name, where they are not the usual ones."""
        name = f"people{next(NUMBERS)}"
        columns = [f"`{each.name}` {(kinds or {}).get(each.name, _maria_type(each.type))}" for each in table.schema]
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"create table {name} ({', '.join(columns)}) character set utf8mb4")
            rows = zip(*(map(_finite, column.to_pylist()) for column in table.columns), strict=True)
            cursor.executemany(f"insert into {name} values ({', '.join(['%s'] * table.num_columns)})", list(rows))
        return self.url(name)

    def url(self, name, user="root"):
        host = str(self.socket).replace("/", "%2F")
        return f"mariadb://{user}@{host}/census/{name}"

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


PROGRAMS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
"""Where servers are."""


def _finite(value):
    """MariaDB knows no other numbers: what is none is null there, and infinity the last number that there is."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(sys.float_info.max, value)
    return value


def _maria_type(kind):
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    return "datetime(6)" if pa.types.is_timestamp(kind) else "text collate utf8mb4_nopad_bin"
