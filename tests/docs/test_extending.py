"""The pages about extending Hedgerow do what they say: their files are written, their code and commands are run."""

import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from refusals import code_in
from repository import ROOT

PAGES = ROOT / "docs" / "extend"
BLOCK = re.compile(r"^```(\w*)(?: file=(\S+))?\n(.*?)^```$", re.M | re.S)
PEOPLE = """
columns:
  sex: {type: category, values: [F, M]}
  age: {type: integer, min: 0, max: 9}
  ill: {type: boolean}
"""


def blocks(page):
    """Language, file and text of every block of code."""
    return BLOCK.findall((PAGES / page).read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path):
    """Small private tables that the commands of the pages speak of."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 10, 500)
    people = {"sex": rng.choice(["F", "M"], 500), "age": age, "ill": rng.random(500) < age / 20}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(PEOPLE)
    with closing(sqlite3.connect(tmp_path / "people.sqlite")) as connection:
        connection.execute("CREATE TABLE people (sex, age, ill)")
        rows = zip(*(values.tolist() for values in people.values()), strict=True)
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        connection.commit()
    letters = {"code": rng.choice(["AB10", "YO1", "ZZ9"], 500), "sent": age}
    pyarrow.csv.write_csv(pa.table(letters), tmp_path / "letters.csv")
    return tmp_path


def run(folder, *words):
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )


COMMANDS = """
import sys
from hedgerow.cli import main
for line in {typed!r}:
    sys.argv = line
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def hedgerow(folder, *typed):
    """Commands in one process, until one fails."""
    return run(folder, "-c", COMMANDS.format(typed=[shlex.split(line) for line in typed]))


@pytest.mark.parametrize("page", ["method.md", "model.md", "column.md", "engine.md"])
def test_the_page_does_what_it_says(page, folder):
    for _, file, text in blocks(page):
        if file:
            (folder / file).write_text(text, encoding="utf-8")
    said = [text for language, file, text in blocks(page) if language == "python" and not file]
    typed = [line for language, _, text in blocks(page) if not language for line in text.splitlines()]
    assert all(line.startswith("hedgerow ") for line in typed)
    for done in (run(folder, "-c", "\n".join(said)), hedgerow(folder, *typed)):
        assert done.returncode == 0, done.stderr
    if "--allow-" in typed[-1]:
        refuses_without_the_users_word(folder)


def test_the_engine_does_what_its_page_says(folder):
    done = run(folder, "-c", "\n".join(text for _, _, text in blocks("library.md")))
    assert done.returncode == 0, done.stderr


def refuses_without_the_users_word(folder):
    """The release of the page, read by someone who allowed nothing: its module is not imported."""
    for module in ("mixture.py", "postcodes.py"):
        (folder / module).write_text("raise SystemExit('it was imported')")
    stranger = hedgerow(folder, "hedgerow verify synthetic.release")
    assert stranger.returncode == 2
    assert code_in(stranger.stderr) in ("model-not-allowed", "column-not-allowed")
    assert "--allow-" in stranger.stderr


def test_a_method_is_as_short_as_the_page_says():
    [text] = [text for _, file, text in blocks("method.md") if file == "pairs.py"]
    assert len(text[text.index("@dataclass") :].splitlines()) <= 30
