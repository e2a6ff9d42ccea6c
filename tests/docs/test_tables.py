"""What is found by looking into a folder, and the tables of the pages that list it."""

import importlib
import pkgutil
import re
from dataclasses import is_dataclass

import pytest

import hedgerow.private.evaluate as folder
from hedgerow import audit, methods
from hedgerow.private.evaluate import METRICS, Metric, find
from hedgerow.private.evaluate.evaluation import compared_metrics
from repository import ROOT

DOCS = ROOT / "docs"


def first_column(page, heading):
    """What stands in `code` in the first column of the table under a heading."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(heading)
    table = re.search(r"^\|---.*\n((?:\|.*\n)+)", rest, re.M)[1]
    return [name for line in table.splitlines() for name in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_every_method_is_found_by_its_file_and_listed_with_its_page():
    assert list(methods.names()) == sorted(methods.names())
    for name in methods.names():
        kind = methods.find(name)
        assert is_dataclass(kind)
        assert kind.about.name == name
        assert getattr(methods, kind.__name__) is kind
    assert sorted(first_column("understand/methods/index.md", "# Methods")) == list(methods.names())
    index = (DOCS / "understand" / "methods" / "index.md").read_text(encoding="utf-8")
    for name in methods.names():
        assert f"| [`{name}`]({name}.md)" in index
    assert {path.stem for path in (DOCS / "understand" / "methods").glob("*.md")} == {"index", *methods.names()}
    for name in methods.published():
        assert methods.find(name).about.name == name
        assert name.partition(":")[0] in methods.names()
    assert sorted(first_column("understand/methods/index.md", "## As published")) == sorted(methods.published())
    with pytest.raises(AttributeError):
        _ = methods.Nothing


def test_every_metric_is_found_in_the_text_of_its_file_and_its_figures_are_listed():
    modules = [
        importlib.import_module(f"{folder.__name__}.{each.name}") for each in pkgutil.iter_modules(folder.__path__)
    ]
    constants = (each for module in modules for each in vars(module).items() if not each[0].startswith("_"))
    held = {value.name: value for _, value in constants if isinstance(value, Metric)}
    assert held.keys() == set(METRICS), 'a metric of ours is a constant: NAME = Metric("name", …), or distance(…)'
    assert all(find(name) is held[name] for name in METRICS)
    figures = {figure for metric in held.values() for figure in metric.figures}
    tables = ("## What each figure means", "### Values as they stand")
    assert sorted(name for each in tables for name in first_column("use/evaluate.md", each)) == sorted(figures)


def test_every_database_is_found_by_its_file_and_listed():
    for needed in ("ibis", "duckdb", "psycopg", "pymysql", "pyspark"):
        pytest.importorskip(needed)
    from hedgerow.private.engines.sql import location
    from hedgerow.private.engines.sql.database import Database
    from hedgerow.private.engines.sql.rows import RowsOnly

    found = location._databases()
    kinds = {getattr(importlib.import_module(module), kind) for module, kind in found.values()}
    assert kinds == {*Database.__subclasses__(), *RowsOnly.__subclasses__()}
    listed = {url.partition("://")[0] for url in first_column("use/scale.md", "# ") if "://" in url}
    assert listed == found.keys() - location._ALSO.keys()


def test_what_a_comparison_computes_is_said_by_the_metrics():
    usual = ["tvd1", "tvd2", "tvd3", "k_marginal", "range3", "conjunctions", "subsample", "means", "ks"]
    assert compared_metrics(None) == usual
    assert compared_metrics("sex") == [*usual, "svm", "boosting"]


def rows(page, heading):
    """The rows of the table under a heading, by their first cell."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(heading)
    table = re.search(r"^\|---.*\n((?:\|.*\n)+)", rest, re.M)[1]
    return {cells[1].strip(): cells[2] for cells in (line.split("|") for line in table.splitlines())}


def defined(name, text):
    """Whether the text of a file defines a class, a function, or `Class.method`."""
    kind, _, called = name.rpartition(".")
    body = re.search(rf"^class {kind}\b.*?(?=^\S|\Z)", text, re.M | re.S) if kind else [text]
    return body is not None and re.search(rf"^\s*(?:def|class) {called}\b", body[0], re.M) is not None


@pytest.mark.parametrize(
    ("page", "heading", "folders"),
    [
        ("understand/architecture.md", "## Where is …?", [ROOT / "src" / "hedgerow", ROOT]),
        ("understand/threats.md", "| tests, in `tests/` |", [ROOT / "tests"]),
    ],
)
def test_what_a_table_names_is_there(page, heading, folders):
    """Every path in `code` is that of a file, and every name in `code` is defined in a file of its row."""
    for what, said in rows(page, heading).items():
        words = re.findall(r"`([^`]+)`", said)
        paths = [word for word in words if "/" in word]
        files = [folder / path for path in paths for folder in folders if (folder / path).is_file()]
        assert len(files) == len(paths) > 0, (what, paths)
        texts = [file.read_text(encoding="utf-8") for file in files]
        for name in set(words) - set(paths):
            assert any(defined(name, text) for text in texts), (what, name)


def test_every_threat_has_a_test():
    threats = rows("understand/threats.md", "| what could leak | what holds |")
    assert list(threats) == list(rows("understand/threats.md", "| tests, in `tests/` |"))


def test_every_folder_of_the_package_has_its_place_in_the_architecture():
    """Also what lies beside the folders; and no folder that is gone."""
    page = (DOCS / "understand" / "architecture.md").read_text(encoding="utf-8")
    layers = page.partition("## What stands on what")[2]
    package = ROOT / "src" / "hedgerow"
    held = {f"{path.name}/" for path in package.iterdir() if (path / "__init__.py").exists()}
    held |= {path.name for path in package.glob("*.py") if not path.name.startswith("__")}
    assert held == set(re.findall(r"`(\w+/|\w+\.py)`", layers))


def test_every_suite_of_checks_is_listed_with_the_page_of_what_it_checks():
    page = (DOCS / "extend" / "checks.md").read_text(encoding="utf-8")
    for suite in (name for name in audit.__all__ if name.startswith("check_")):
        assert re.search(rf"^\| `{suite}\(.*\]\({suite.removeprefix('check_')}\.md\)", page, re.M), suite
