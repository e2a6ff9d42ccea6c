"""Presets are data: a schema and options that fit each other and the write-ups."""

import json
import re
from dataclasses import replace

import pytest

import hedgerow as hr
from hedgerow.compare import Plan
from hedgerow.methods import build, find
from hedgerow.run import chosen_method
from hedgerow.schema import Schema, presets
from refusals import code_in, refused


def test_every_preset_loads_and_its_options_fit_its_method():
    for name in presets.names():
        preset = presets.load(name)
        assert preset.methods
        for method in preset.methods:
            built = build(method, preset.options(method, 1.0))
            assert isinstance(built, find(method))


def test_a_preset_stands_in_for_a_schema_file():
    assert Schema.load("preset:census1940-match3") is presets.load("census1940-match3").schema


def test_an_unknown_preset_is_named_with_what_there_is():
    with refused("unknown-preset", 'Did you mean "census1940-match3"'):
        Schema.load("preset:census1940-match")


def test_another_method_takes_the_schema_alone():
    assert presets.load("census1940-match3").options("independent", 1.0) == {}


def test_the_groups_are_those_of_the_write_up():
    preset = presets.load("census1940-field-groups")
    groups = build("field-groups", preset.options("field-groups", 1.0)).groups
    assert len(groups) == 39
    assert sorted(name for group in groups for name in group) == sorted(preset.schema.columns)
    domain = preset.schema.encoding().domain
    cells = {" ".join(group): domain.cells(domain.marginal(group)) for group in groups}
    assert cells["SPLIT OWNERSHP GQ GQTYPE OWNERSHPD GQFUNDS GQTYPED"] == 4_018_560
    assert cells["UOCC95 UIND UOCC"] == 8_765_064
    assert cells["HIGRADE EDUC HIGRADED EDUCD"] == 986_700
    assert cells["VALUEH"] == 30_003 + 1  # a cell for what the list does not hold
    assert cells["INCWAGE"] == 5_002 + 1
    assert 20.9e6 < sum(cells.values()) < 21.2e6


def test_out_of_range_codes_are_counted_inside_the_list():
    import pyarrow as pa

    column = presets.load("census1940-field-groups").schema.columns["MIGCOUNTY"]
    codes = column.encode(pa.array([0, 10, 15, 8000, 9997, 9999, 123456])).codes[0].tolist()
    assert codes == [0, 1, 0, 800, 801, 802, 0]


SMALL = """
about: a preset for a small table
schema:
  columns:
    race: {type: code, size: 3}
    sex: {type: code, size: 2}
options:
  match3: {marginals: [[race, sex]]}
  mst: {merge: {0: 1, 2: 5}}
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A preset of our own, and a table for it."""
    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.setattr(presets, "_FOLDER", tmp_path)
    table = tmp_path / "small.csv"
    table.write_text("race,sex\n" + 50 * "1,1\n2,0\n")
    return str(table)


def test_a_preset_means_the_same_in_python_as_on_the_command_line(small):
    """Its options reach the method whose name is given; a method that was made by hand is taken as it is."""
    release = hr.synthesize(small, "preset:small", hr.Budget(1), "match3")
    measured = [m.query.attributes for answer in release.answers for m in answer.measurements]
    assert ("race", "sex") in measured
    assert [each.attributes for each in release.certificate.method["options"]["marginals"]] == [("race", "sex")]
    for epsilon, merge in ((1.0, 1.0), (2.0, 5.0)):
        made = hr.synthesize(small, "preset:small", hr.Budget(epsilon), "mst")
        assert made.certificate.method["options"]["merge"] == merge
    by_hand = hr.synthesize(small, "preset:small", hr.Budget(1), build("mst", {"merge": "3"}))
    assert by_hand.certificate.method["options"]["merge"] == 3


def test_a_preset_means_the_same_in_a_comparison(small):
    plan = Plan(small, "preset:small", ("mst",), (1.0, 2.0), 1, ("tvd1",))
    merged = {cell.epsilon: cell.made["options"]["merge"] for cell in plan.cells() if cell.name == "mst"}
    assert merged == {1.0: 1.0, 2.0: 5.0}
    typed = replace(plan, options={"mst": {"merge": "7"}})
    assert {cell.made["options"]["merge"] for cell in typed.cells() if cell.name == "mst"} == {7.0}


def test_typed_options_win_over_those_of_the_preset():
    chosen = chosen_method("preset:census1940-field-groups", "field-groups", 1.0, {"threshold": "1.5"})
    assert (len(chosen.groups), chosen.threshold) == (39, 1.5)
    assert chosen_method("people.yaml", "field-groups", 1.0, {"threshold": "1.5"}).groups == ()


def test_methods_lists_the_presets(capsys):
    from hedgerow.cli.methods import methods

    methods(None)
    printed = capsys.readouterr().out
    assert all(re.search(rf"^{name} ", printed, re.M) for name in presets.names())


def complaint(words, monkeypatch, capsys):
    """What the command says of an input that is at fault."""
    import sys

    from hedgerow.cli import main

    monkeypatch.setattr(sys, "argv", ["hedgerow", *map(str, words)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    return capsys.readouterr().err


def test_a_column_that_the_table_lacks_is_named(tmp_path, capsys, monkeypatch):
    table = tmp_path / "small.csv"
    table.write_text("COUNTY,AGE\n1,30\n")
    out = tmp_path / "out.csv"
    words = ["synth", table, "-s", "preset:census1940-field-groups", "-m", "field-groups", "-e", "1", "-o", out]
    said = complaint(words, monkeypatch, capsys)
    assert code_in(said) == "missing-column"
    assert '"URBAN"' in said
    assert not out.exists()


BROKEN = """
about: a preset with a slip of the pen
schema:
  dataset: small
  columns:
    race: {type: code, size: 3}
    raced: {type: code, size: 9}
options:
  field-groups: {groups: [[race, racd]]}
  match3: {marginals: [[race, racd]]}
"""


@pytest.mark.parametrize("method", ["field-groups", "match3"])
def test_an_unknown_column_in_a_preset_costs_nothing(method, tmp_path, capsys, monkeypatch):
    from hedgerow import Budget
    from hedgerow.private.ledger import Ledger

    (tmp_path / "broken.yaml").write_text(BROKEN)
    monkeypatch.setattr(presets, "_FOLDER", tmp_path)
    table, ledger, out = tmp_path / "small.csv", tmp_path / "small.ledger", tmp_path / "out.csv"
    table.write_text("race,raced\n1,3\n")
    Ledger.create(ledger, "small", Budget(2.0, 1e-8))
    words = ["synth", table, "-s", "preset:broken", "-m", method, "-e", "1", "-o", out, "--ledger", ledger]
    said = complaint(words, monkeypatch, capsys)
    assert code_in(said) == "unknown-column"
    assert re.search('"racd".*Did you mean "raced"', said, re.S)
    assert "Nothing was spent" in said
    assert len(Ledger(ledger).entries()) == 1  # the opening alone
    assert not out.exists()


def test_options_become_part_of_the_certificate_as_plain_values():
    from hedgerow.methods import options

    built = build("field-groups", presets.load("census1940-field-groups").options("field-groups", 1.0))
    assert len(json.loads(json.dumps(options(built)))["groups"]) == 39
