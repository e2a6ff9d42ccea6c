"""The contest's parameters.json is a schema, and says which releases are wanted."""

import json

import numpy as np
import pyarrow as pa
import pytest

from hedgerow.release.files import write_table
from hedgerow.schema import Schema
from hedgerow.schema.contest import runs
from refusals import refused

PARAMETERS = {
    "runs": [
        {"epsilon": 0.1, "delta": 3.45e-11, "max_records": 200, "max_records_per_individual": 7},
        {"epsilon": 10, "delta": 3.45e-11, "max_records": 50, "max_records_per_individual": 7},
    ],
    "schema": {
        "PUMA": {"dtype": "str", "values": ["17-001", "17-002"]},
        "YEAR": {"dtype": "uint32", "values": [2012, 2013]},
        "AGE": {"dtype": "int", "min": 0, "max": 95},
        "INCTOT": {"dtype": "int", "min": -10000, "max": 1000000},
        "HOURS": {"dtype": "float", "min": 0, "max": 10, "bins": [2, 5]},
        "sim_individual_id": {"dtype": "int"},
    },
}


@pytest.fixture
def parameters(tmp_path):
    def write(**changes):
        path = tmp_path / "parameters.json"
        path.write_text(json.dumps(PARAMETERS | changes))
        return path

    return write


def test_a_parameters_file_is_a_schema(parameters):
    schema = Schema.load(parameters())
    assert (schema.person, schema.max_rows_per_person) == ("sim_individual_id", 7)
    sizes = {attribute.name: attribute.size - attribute.hidden for attribute in schema.encoding().domain}
    assert sizes == {"PUMA": 2, "YEAR": 2, "AGE": 96, "INCTOT": 100, "HOURS": 3}
    assert schema.columns["YEAR"].encode(pa.array([2013, 2012])).codes[0].tolist() == [1, 0]
    assert Schema.from_dict(schema.to_dict()) == schema


def test_its_runs(parameters, tmp_path):
    found = runs(parameters())
    assert [(run.epsilon, run.delta, run.most_rows) for run in found] == [(0.1, 3.45e-11, 200), (10.0, 3.45e-11, 50)]
    (tmp_path / "domain.json").write_text('{"a": 3}')
    assert runs(tmp_path / "domain.json") == runs("preset:acs") == []


def column(**about):
    return {"schema": {"A": {"dtype": "int", "values": [1]}, "B": about}}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (column(values=[1]), ("column-incomplete", "schema.B")),
        (column(dtype="int", min=0), ("range-incomplete", "schema.B")),
        (column(dtype="int", min=0, max="many"), ("not-whole",)),
        (column(dtype="int", value=[1]), ("unknown-key", "schema.B", '"value"')),
        ({"schema": {"A": {"dtype": "int"}, "B": {"dtype": "int"}}}, ("two-persons", '"A"')),
        ({"runs": [{"epsilon": 1, "delta": 0, "max_records_per_individual": n} for n in (1, 2)]}, ("runs-differ",)),
        (
            {"runs": [{"epsilon": 1, "delta": 0, "max_records_per_individual": "x"}]},
            ("bad-run",),
        ),
    ],
)
def test_bad_files_are_refused(parameters, changes, complaint):
    with refused(*complaint):
        Schema.load(parameters(**changes))


def test_a_run_needs_its_numbers(parameters):
    with refused("bad-run", "runs.0"):
        runs(parameters(runs=[{"epsilon": 1}]))


def test_the_command_line_makes_every_run(hedgerow, parameters, tmp_path):
    parameters()
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "PUMA": rng.choice(["17-001", "17-002"], 20_000),
            "YEAR": rng.integers(2012, 2014, 20_000),
            "AGE": rng.integers(0, 96, 20_000),
            "INCTOT": rng.integers(0, 90_000, 20_000),
            "HOURS": rng.random(20_000) * 10,
            "sim_individual_id": np.arange(20_000) // 2,
        }
    )
    write_table(tmp_path / "private.parquet", table.schema, [table])
    done = hedgerow(
        "synth", "private.parquet", "-s", "parameters.json", "-m", "dpsyn", "--set", "segments=PUMA,YEAR",
        "-o", "made.csv", "--json", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    reports = [json.loads(line) for line in done.out.splitlines()]
    assert [report["out"] for report in reports] == ["made-0.1.csv", "made-10.csv"]
    assert [report["epsilon"] for report in reports] == [0.1, 10.0]
    assert reports[1]["rows"] == 50  # max_records
    assert (tmp_path / "made-0.1.release").exists()


def test_without_runs_an_epsilon_is_needed():
    from hedgerow.cli.runs import wanted

    with refused("missing-epsilon"):
        wanted("preset:acs", None, 1e-9)
    assert [each.named(None) for each in wanted("preset:acs", "2", 0.0)] == [None]
