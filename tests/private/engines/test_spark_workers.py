"""Spark with worker processes of its own: killed ones, ones without our package, and what is left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from databases import SPARK_ON_ONE_CORE, spark_or_skip
from hedgerow.private.ledger import Ledger

pytestmark = pytest.mark.engines
SUPPORT = Path(__file__).parents[2] / "support"
CANARY = "canary-7f3a"
KEY = b"a key for tests"
EVERYTHING = """
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
logger.spark.name = org.apache.spark
logger.spark.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c: %m%n%ex
"""
WITHOUT = """
import sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hedgerow":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Lacking())
"""


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = 60_000
    columns = {
        "id": [f"{CANARY}-{number}" for number in rng.integers(0, rows // 2, rows)],
        "grade": rng.choice(["low", "high", CANARY], rows).tolist(),
        "site": rng.integers(0, 4, rows),
        "age": rng.integers(0, 100, rows),
    }
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=10_000)
    return path


@pytest.fixture
def spark_home(tmp_path):
    """Spark's programs under a folder of ours, so that what workers leave is there."""
    pyspark = Path(spark_or_skip().__file__).parents[1]
    home = tmp_path / "home"
    home.mkdir()
    for part in ("bin", "jars", "python", "sbin"):
        (home / part).symlink_to(pyspark / part)
    return home


def run(function, *words, home, **environment):
    left, events = home.parent / "left", home.parent / "events"
    for folder in (left, events):
        folder.mkdir(exist_ok=True)
    (home.parent / "logging.properties").write_text(EVERYTHING)
    known = {
        "EVENTS": events.as_uri(),
        "LOGGING": str(home.parent / "logging.properties"),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(left),
        "TMPDIR": str(left),
    }
    done = subprocess.run(
        [sys.executable, "-c", f"import spark_workers; spark_workers.{function}(*{words!r})"],
        env={**os.environ, **known, "PYTHONPATH": str(SUPPORT), **environment},
        cwd=home.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "INFO " in done.stderr
    assert CANARY not in done.stderr + done.stdout
    told = [path.read_text(errors="replace") for path in events.rglob("*") if path.is_file()]
    assert any("mapInArrow" in each or "MapInArrow" in each or function == "lacking" for each in told)
    assert not any(CANARY in each or KEY.hex() in each for each in told)
    if function != "ended":  # a killed Java leaves its blocks where somebody has told it to put them
        assert not [path for path in left.rglob("*") if path.is_file()]
    return json.loads(done.stdout.splitlines()[-1])


def test_killed_workers_change_no_count_and_leave_no_row(table, spark_home):
    told = run("killed", str(table), "local-cluster[2,1,1024]", home=spark_home)
    assert "have hedgerow" in told["place"]
    assert told["workers"] == 2
    assert told["before"]
    assert told["killed in a count"]
    assert told["changed"] in ("table-changed", "database-failed")
    logs = [path for path in (spark_home / "work").rglob("*") if path.is_file()]
    assert logs
    left = [*logs, *(path for path in (spark_home.parent / "left").rglob("*") if path.is_file())]
    assert not [path for path in left if CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize(("said", "readable"), [("", False), ("--conf spark.io.encryption.enabled=false", True)])
def test_what_killed_workers_of_our_session_leave_cannot_be_read(table, spark_home, said, readable):
    """Unless somebody says that they need not hide it: the same search finds every id then."""
    folder = spark_home.parent / "disks"
    folder.mkdir()
    settings = " ".join(f"--conf {key}={value}" for key, value in SPARK_ON_ONE_CORE.items() if key != "spark.master")
    plain = "--conf spark.shuffle.compress=false --conf spark.sql.shuffle.partitions=4"
    known = {
        "PYSPARK_SUBMIT_ARGS": f"--master local-cluster[2,1,1024] {settings} {plain} {said} pyspark-shell",
        "SPARK_HOME": str(spark_home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder),
        "PYTHONPATH": str(SUPPORT),
    }
    call = f"import spark_workers; spark_workers.left({str(table)!r})"
    done = subprocess.run(
        [sys.executable, "-c", call],
        env={**os.environ, **known},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["workers"] == 2
    assert told["bytes"] > 60_000 * len(CANARY)
    assert told["ids"] >= 60_000 if readable else told["ids"] == 0


def test_workers_without_this_package_count_by_sql(table, spark_home, tmp_path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(WITHOUT)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/without:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    told = run("lacking", str(table), "local[1]", home=spark_home, PYSPARK_PYTHON=str(python))
    assert "lack hedgerow" in told["place"]
    assert told["alike"]


def test_a_session_that_ends_in_a_count_is_one_sentence_and_the_charge_stays(table, spark_home, tmp_path):
    ledger = tmp_path / "people.ledger"
    Ledger.create(ledger, "people", hr.Budget(2.0, 1e-8))
    words = (str(table), "local[1]", str(ledger), str(tmp_path / "journal"))
    told = run("ended", *words, False, home=spark_home)
    assert told["code"] == "database-failed"
    assert "the session has ended" in told["said"]
    assert "stays charged" in told["said"]
    paid = len(Ledger(ledger).entries())
    assert paid > 1
    assert run("ended", *words, True, home=spark_home)["charges"]
    assert len(Ledger(ledger).entries()) == paid + 1  # the rest of the run, beside the look that was paid for
