"""The files that a public forge reads: they parse, may do little, pin what they run, and agree with the project."""

import re
import tomllib

import pytest
import yaml

import hedgerow
from repository import ROOT

FORGE = ROOT / ".github"
OTHERS = [ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff", *(ROOT / "packaging").rglob("*.yaml")]
FILES = sorted([*FORGE.rglob("*.yml"), *OTHERS])
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = re.compile(r"[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}")


class NoTwice(yaml.SafeLoader):
    """YAML in which no key stands twice."""


def _mapping(loader, node, deep=False):
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key stands twice: {keys}"
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


NoTwice.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(path):
    return yaml.load(path.read_text(encoding="utf-8"), NoTwice)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_they_parse(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_little_runs_what_is_pinned_and_ends(path):
    flow = read(path)
    assert flow["permissions"] == {"contents": "read"}
    for job in flow["jobs"].values():
        assert job["timeout-minutes"] <= 300
        assert not re.search("latest", str(job["runs-on"]))
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            if "uses" in step:
                assert PINNED.fullmatch(step["uses"])
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            assert "${{ github.event" not in step.get("run", "")  # a title of an issue is no code
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"# v\d+\.\d+\.\d+$", line), f"say which version is pinned: {line}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_calls_is_there(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for words in re.findall(r"run: (?:.*&& )?make ([a-z-]+)", path.read_text(encoding="utf-8")):
        assert words in targets
    for lock in re.findall(r"requirements/[\w.]+", path.read_text(encoding="utf-8")):
        assert (ROOT / lock).exists()
    for folder in re.findall(r"(?<![\w/-])tests/[\w./]+", path.read_text(encoding="utf-8")):
        assert (ROOT / folder).exists()


def test_forms_of_issues_have_what_a_forge_asks_of_them():
    for path in FORGE.glob("ISSUE_TEMPLATE/*.yml"):
        form = read(path)
        if path.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= form.keys()
        ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
        assert len(ids) == len(set(ids))
    flaw = FORGE / "ISSUE_TEMPLATE" / "privacy-flaw.yml"
    assert "Do not describe the flaw here" in flaw.read_text(encoding="utf-8")


def test_recipe_and_project_ask_for_the_same_packages():
    recipe = read(ROOT / "packaging" / "conda" / "recipe.yaml")
    wanted = {re.sub(r"[ \s]", "", each) for each in recipe["requirements"]["run"]}
    assert wanted == {*PROJECT["project"]["dependencies"], "python" + PROJECT["project"]["requires-python"]}
    assert recipe["about"]["summary"] == PROJECT["project"]["description"]


def test_the_version_stands_in_one_place():
    said = re.compile(re.escape(hedgerow.__version__))
    assert "version" in PROJECT["project"]["dynamic"]
    assert not said.search((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert not said.search((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert f"## {hedgerow.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_lock_names_where_packages_come_from():
    for lock in (ROOT / "requirements").glob("*.lock"):
        assert "://" not in lock.read_text(encoding="utf-8")
