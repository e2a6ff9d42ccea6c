"""A specification, an IPUMS codebook and a file of cities as sources of a draft; presets applied to other tables."""

import json

import pytest

from hedgerow.errors import OptionError, SchemaError
from hedgerow.methods.shared.support import codes_of, read_families
from hedgerow.schema import Schema, presets
from hedgerow.schema.draft import draft_schema
from hedgerow.schema.draft.ipums import read_ipums
from hedgerow.schema.draft.specs import cities_column, families_in

HEADER = ["SEX", "PAY", "CITY"]
SPECIFICATION = {"SEX": {"type": "enum", "maxval": 9}, "PAY": {"type": "float", "min": 0, "max": 1.5, "optional": True}}
CODEBOOK = "SEX\t\tSex\n1\t\tMale\n02\t\tFemale\n\nPAY\t\tPay\n PAY is a number\n"


@pytest.fixture
def write(tmp_path):
    def written(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return written


def drafted(sources, header=HEADER):
    return Schema.parse(draft_schema(header, sources).text)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_list_of_codes_says_more_than_a_range_whichever_comes_first(write, order):
    files = [write("specs.json", SPECIFICATION), write("book.cbk", CODEBOOK), write("c.json", {"5": "A", "7": "B"})]
    schema = drafted([files[place] for place in order])
    assert schema.columns["SEX"].listed == ("1", "2", "9")  # the end of the range is a code too
    assert (schema.columns["SEX"].dtype, schema.columns["CITY"].listed) == ("integer", ("5", "7"))
    assert (schema.columns["PAY"].min, schema.columns["PAY"].max, schema.columns["PAY"].missing) == (0, 1.5, True)


@pytest.mark.parametrize(
    ("about", "bounds"),
    [
        ({"type": "enum", "maxval": 3}, (0, 3)),
        ({"type": "enum", "count": 3}, (0, 2)),
        ({"type": "integer", "min": 2, "max": 5}, (2, 5)),
    ],
)
def test_the_ways_to_state_a_range(write, about, bounds):
    column = drafted([write("specs.json", {"a": about})], ["a"]).columns["a"]
    assert (column.min, column.max) == bounds


@pytest.mark.parametrize("about", [{"type": "enum"}, {"type": "gold", "max": 3}, {"type": "enum", "min": 5, "max": 3}])
def test_a_specification_that_says_too_little_is_refused(write, about):
    with pytest.raises(OptionError, match="Nothing was written"):
        draft_schema(["a"], [write("specs.json", {"a": about})])


@pytest.mark.parametrize(
    "data",
    [
        {"5": "A", "7": "A", "9": "B"},
        {"A": [5, 7], "B": [9]},
        [{"code": 5, "state": "A"}, {"code": 7, "state": "A"}, {"code": 9, "state": "B"}],
        {"TOWN": {"5": "A", "7": "A", "9": "B"}},
    ],
)
def test_the_ways_to_list_cities(data):
    assert families_in(data) == {"5": "A", "7": "A", "9": "B"}
    assert cities_column(data) == ("TOWN" if "TOWN" in data else "CITY")


def test_what_is_no_codebook_is_refused(write, tmp_path):
    write("empty.cbk", "nothing\n")
    with pytest.raises(OptionError, match="no variable with codes"):
        read_ipums(tmp_path / "empty.cbk")


def test_families_of_values_become_families_of_codes(write):
    schema = Schema.parse("columns: {CITY: {type: category, values: [9, 5, 7], dtype: integer}}")
    families = read_families(f"CITY:{write('cities.json', {'5': 'A', '7': 'A', '9': 'B', '11': 'C'})}")
    assert codes_of(families, schema) == (("CITY", ((1, "A"), (2, "A"), (0, "B"))),)
    with pytest.raises(OptionError, match="must be JSON"):
        read_families(f"CITY:{write('bad.json', [1, 2])}")
    with pytest.raises(OptionError, match="none of the values"):
        codes_of((("CITY", (("13", "A"),)),), schema)


@pytest.mark.parametrize(
    ("declared", "complaint"),
    [
        ("{type: category, values: [a, 1], dtype: integer}", '"a" is no integer'),
        ("{type: category, values: [1, 01], dtype: integer}", "the same integer"),
        ("{type: category, values: [1, 2], dtype: integer, other: true}", "no word for other"),
    ],
)
def test_numbers_that_cannot_come_back_are_refused(declared, complaint):
    with pytest.raises(SchemaError, match=complaint):
        Schema.parse(f"columns: {{a: {declared}}}")


def test_a_preset_gives_its_edges_between_the_tables_own_bounds(write):
    own = write(
        "own.yaml", "columns: {POVERTY: {type: integer, min: 0, max: 45}, AGE: {type: integer, min: 0, max: 9}}"
    )
    column = Schema.load((own, "preset:acs")).columns["POVERTY"]
    assert (column.min, column.max, column.bins, column.special) == (0, 45, (20, 40), (0,))
    assert Schema.load((own, "preset:acs")).columns["AGE"].bins is None  # no edge lies between its bounds


def test_bins_that_were_listed_stay(write):
    own = write("own.yaml", "columns: {POVERTY: {type: integer, min: 0, max: 45, bins: [7]}}")
    assert Schema.load((own, "preset:acs")).columns["POVERTY"].bins == (7,)


def test_groups_say_what_they_do_not_hold(write):
    own = write(
        "own.yaml", "columns: {SEX: {type: category, values: [1, 2, 9]}, MARST: {type: category, values: [1, 2]}}"
    )
    found = presets.find((own, "preset:acs"))
    assert [len(group["allowed"]) for group in found.declared["groups"]] == [4]
    said = " ".join(found.notes)
    assert "8 combinations of SEX × MARST hold undeclared values" in said
    assert "no combination of SEX × MARST holds SEX = 9" in said
    assert "names no person, so a row is one" in said


def test_a_preset_of_other_columns_is_refused(write):
    with pytest.raises(SchemaError, match="of no column that"):
        Schema.load((write("own.yaml", "columns: {x: {type: code, size: 2}}"), "preset:acs"))


def test_a_preset_written_out_is_the_same_preset(tmp_path):
    for name in presets.names():
        (tmp_path / "mine.yaml").write_text(presets.load(name).to_yaml())
        mine = presets.find(tmp_path / "mine.yaml")
        assert (mine.declared, mine.methods) == (presets.load(name).declared, presets.load(name).methods)
