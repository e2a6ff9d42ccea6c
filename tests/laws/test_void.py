"""What was found without a guarantee never comes back under one: every door by which a release meets private rows."""

import inspect
import json

import pyarrow as pa
import pytest

import hedgerow as hr
from refusals import refused

SCHEMA = (
    "dataset: people\ncolumns:\n  name: {type: category, values: private}\n  age: {type: integer, min: 0, max: 9999}\n"
)
PEOPLE = pa.table({"name": ["Ann", "Bob"] * 500, "age": [100, 2_000] * 500})
BUDGET = hr.Budget(20, 1e-6)


@pytest.fixture(scope="module")
def unsafe(tmp_path_factory):
    """A release whose schema holds what the rows told, with noise that anybody can take away."""
    path = tmp_path_factory.mktemp("void") / "unsafe.release"
    release = hr.synthesize(PEOPLE, hr.Schema.parse(SCHEMA), BUDGET, "independent", unsafe_noise_seed=1)
    assert release.schema.discovered == ["name", "age"]
    release.save(path)
    (path.parent / "schema.json").write_text(json.dumps(release.schema.to_dict()))
    return path


def made(**given):
    return hr.synthesize(PEOPLE, **{"schema": hr.Schema.parse(SCHEMA), **given}, budget=BUDGET, method="independent")


DOORS = {
    ("synthesize", "prior"): lambda path: made(prior=path),
    ("synthesize", "schema"): lambda path: made(schema=hr.Release.load(path).schema),
    ("synthesize", "schema as a file"): lambda path: made(schema=path.parent / "schema.json"),
    ("confirm", "release"): lambda path: hr.confirm(
        hr.Release.load(path), "SELECT COUNT(*) FROM t", PEOPLE, hr.Budget(1, 1e-6)
    ),
}


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_it_is_refused_before_a_row_is_read(unsafe, door):
    with pytest.raises(hr.HedgerowError, match="No row was read, nothing was spent") as error:
        DOORS[door](unsafe)
    assert error.value.code in ("prior-without-guarantee", "discovered-elsewhere", "confirm-without-guarantee")


def test_there_is_no_other_door():
    """Whatever takes private rows and something that an earlier run made stands above."""
    of_runs = {"release", "prior", "schema", "earlier", "answers", "model", "start"}
    found = set()
    for name in hr.__all__:
        one = getattr(hr, name)
        taken = set(inspect.signature(one).parameters) if inspect.isfunction(one) else set()
        if "table" in taken:
            found |= {(name, each) for each in taken & of_runs}
    assert found == {(name, taken) for name, taken in DOORS if " " not in taken}


def test_no_ledger_takes_it(hedgerow, tmp_path):
    hedgerow("ledger", "create", "l", "--dataset", "people", "--epsilon", 50)
    with refused("ledger-needs-guarantee"):
        made(ledger=tmp_path / "l", unsafe_noise_seed=1)
