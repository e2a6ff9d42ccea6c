"""What tests share: a quick Hypothesis profile, a way to run the command line, and the real tables where present."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings

from databases import DuckDBFiles, MariaServer, PostgresServer, SparkFolders, SQLiteFiles
from forked import Server
from hedgerow.samples import opm
from refusals import code_in

settings.register_profile("quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")

REAL_TABLES = Path(os.environ.get("HEDGEROW_DATA", "HEDGEROW_DATA-is-not-set"))
"""Nothing outside the repository is looked for but in this folder."""


@pytest.fixture
def real_table():
    """The folder of a real table, or a skip where the real tables are not at hand."""

    def find(name):
        folder = REAL_TABLES / name
        if not folder.exists():
            pytest.skip(f"the real table {name} is not at hand: HEDGEROW_DATA names no folder that holds it")
        return folder

    return find


class Finished:
    """A command that has ended: exit code, stdout, stderr, stdout read as JSON, and the code of what it refused."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def refusal(self):
        return code_in(self.err)


@pytest.fixture
def hedgerow(tmp_path):
    """Run the command line in a folder of its own."""

    def run(*words, env=None, timeout=120):
        done = subprocess.run(
            [sys.executable, "-c", "from hedgerow.cli import main; main()", *map(str, words)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(env or {})},
            check=False,
        )
        return Finished(done)

    return run


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Runs commands without starting an interpreter for each."""
    made = Server(tmp_path_factory.mktemp("log"))
    yield made
    made.close()


@pytest.fixture
def people(tmp_path):
    """A private table and its schema."""
    pq.write_table(opm.generate(2000), tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    return tmp_path


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory):
    return DuckDBFiles(tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="module")
def postgres():
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    return SQLiteFiles(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="module")
def mariadb():
    server = MariaServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    session = SparkFolders(tmp_path_factory.mktemp("spark"))
    yield session
    session.close()
