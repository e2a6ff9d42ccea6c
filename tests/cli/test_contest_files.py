"""From the contests' kinds of files to scores, by commands alone: raw codes in and out. All files are made up."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from hedgerow.release.files import write_table

ROWS = 3_000
CITIES = {"510": "Ohio", "530": "Ohio", "1710": "Nevada", "5390": "Nevada", "7000": "Nevada"}
SPECIFICATION = {
    "SEX": {"type": "enum", "maxval": 2},
    "AGE": {"type": "enum", "maxval": 99},
    "RACE": {"type": "enum", "maxval": 9},
    "RACED": {"type": "enum", "maxval": 999},
    "CITY": {"type": "enum", "maxval": 9999},
    "SEA": {"type": "enum", "count": 60},
    "MARST": {"type": "enum", "max": 6, "min": 0},
    "INCWAGE": {"type": "enum", "maxval": 999998},
    "FARM": {"type": "enum", "maxval": 2},
}
CODEBOOK = """\
Description:\t1940 extract, made up for a test

  Variable      Columns     Len
  SEX           P   1       1
  AGE           P   2-4     3
  RACE          P   5       1
  RACED         P   6-8     3
  CITY          H   9-12    4
  INCWAGE       P  13-18    6

SEX\t\tSex
1\t\tMale
2\t\tFemale

RACE\t\tRace [general version]
1\t\tWhite
2\t\tBlack/African American
4\t\tChinese

RACED\t\tRace [detailed version]
100\t\tWhite
200\t\tBlack/African American
400\t\tChinese

INCWAGE\t\tWage and salary income
 INCWAGE is a 6-digit numeric variable.

NOTSELECTED\t\tA variable that is not in the extract
7\t\tSeven
"""


def census():
    rng = np.random.default_rng(0)
    race = rng.choice([1, 2, 4], ROWS, p=[0.7, 0.2, 0.1])
    city = rng.choice([1710, 5390], ROWS, p=[0.3, 0.7])
    sex = rng.integers(1, 3, ROWS)
    wage = np.where(rng.random(ROWS) < 0.3, 999_998, 100 * rng.integers(0, 20, ROWS) + 200 * (sex == 1))
    return pa.table(
        {
            "SEX": sex, "AGE": rng.integers(0, 90, ROWS), "RACE": race, "RACED": 100 * race, "CITY": city,
            "SEA": rng.choice([3, 17], ROWS), "MARST": rng.integers(1, 7, ROWS), "INCWAGE": wage,
            "FARM": rng.integers(1, 3, ROWS),
        }
    )  # fmt: skip


@pytest.fixture
def hedgerow(server, tmp_path):
    """Commands in a folder of their own, without the start of an interpreter."""
    return lambda *words: server.run(list(words), tmp_path)


@pytest.fixture
def colorado(tmp_path):
    """Three files of the 2018 contest's kind, and a table of raw codes with nine of the 98 fields."""
    pa.csv.write_csv(census(), tmp_path / "colorado.csv")
    (tmp_path / "colorado-specs.json").write_text(json.dumps(SPECIFICATION))
    (tmp_path / "codebook.cbk").write_text(CODEBOOK)
    (tmp_path / "cities.json").write_text(json.dumps(CITIES))
    return tmp_path


def drafted(hedgerow):
    sources = [word for file in ("colorado-specs.json", "codebook.cbk", "cities.json") for word in ("--from", file)]
    done = hedgerow("schema", "draft", "colorado.csv", *sources, "-o", "colorado.yaml")
    assert done.code == 0, done.err
    assert "9 of 9 complete" in done.out


def read(path):
    return {name: np.asarray(column) for name, column in zip(*_csv(path), strict=True)}


def _csv(path):
    table = pa.csv.read_csv(path)
    return table.column_names, table.columns


def test_2018_match3_from_files_to_scores(hedgerow, colorado):
    drafted(hedgerow)
    declared = (colorado / "colorado.yaml").read_text()
    assert "RACE: {type: category, values: ['1', '2', '4', '9'], dtype: integer" in declared  # maxval is a code too
    done = hedgerow(
        "synth", "colorado.csv", "-s", "colorado.yaml", "-s", "preset:census1940-match3", "-m", "match3",
        "-e", "8,1,0.3", "--set", "support=CITY:cities.json", "-o", "made.csv", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "89 of its columns are not there" in done.err
    assert "bins, heaps and special values of INCWAGE are the preset's" in done.err
    assert "marginals:" in done.err
    for epsilon in ("8", "1", "0.3"):
        made = read(colorado / f"made-{epsilon}.csv")
        assert set(made["RACE"]) <= {1, 2, 4, 9}
        assert set(made["CITY"]) <= {int(city) for city in CITIES} | {9999}
        assert made["INCWAGE"].max() == 999_998
        assert set(made["SEX"]) == {1, 2}
    assert set(read(colorado / "made-8.csv")["CITY"]) >= {1710, 5390}
    scored = hedgerow(
        "evaluate", "colorado.csv", "made-8.csv", "-s", "colorado.yaml", "-s", "preset:census1940-match3",
        "--metrics", "nist2018,nist2020", "--json", "-q",
    )  # fmt: skip
    assert scored.code == 0, scored.err
    report = json.loads(scored.out)
    assert 700_000 < report["nist2018"] <= 1_000_000
    assert report["nist2018"] == pytest.approx(
        (report["nist2018_marginals"] + report["nist2018_conjunctions"] + report["nist2018_income"]) / 3
    )
    assert report["nist2020"] is None  # no places and years here


def test_2018_field_groups_from_files_to_scores(hedgerow, colorado):
    drafted(hedgerow)
    done = hedgerow(
        "synth", "colorado.csv", "-s", "colorado.yaml", "-s", "preset:census1940-field-groups", "-m", "field-groups",
        "-e", "8", "--delta", "0", "--rows", "2000", "-o", "made.csv", "--quality", "0", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "groups: 7 of 39 are left, 3 of them with fewer columns." in done.err
    verified = hedgerow("verify", "made.release", "--json")
    charges = json.loads(verified.out)["certificate"]["charges"][1:]  # after the look
    assert len(charges) == 1  # --rows was given, so the total costs nothing
    assert len(charges[0]["queries"]) == 7
    assert charges[0]["scale"] == pytest.approx(7 / 8 / 0.98)  # groups / ε, of which the look took 2 %
    made = read(colorado / "made.csv")
    assert len(made["RACE"]) == 2000
    assert (made["RACED"] == 100 * made["RACE"]).mean() > 0.99  # one group
    scored = hedgerow("evaluate", "colorado.csv", "made.csv", "-s", "made.release", "--metrics", "nist2018", "-q")
    assert scored.code == 0, scored.err
    assert "nist2018_income" in scored.out


PARAMETERS = {
    "runs": [{"epsilon": e, "delta": 3e-11, "max_records": 9000, "max_records_per_individual": 7} for e in (0.1, 10)],
    "schema": {
        "PUMA": {"dtype": "str", "values": ["36-04001", "36-04002", "42-00101"]},
        "YEAR": {"dtype": "uint32", "values": [2012, 2013]},
        "SEX": {"dtype": "uint8", "values": [1, 2]},
        "MARST": {"dtype": "uint8", "values": [1, 2, 3, 4, 5, 6]},
        "AGE": {"dtype": "int", "min": 0, "max": 95},
        "POVERTY": {"dtype": "int", "min": 0, "max": 501},
        "HCOVANY": {"dtype": "uint8", "values": [1, 2]},
        "HCOVPRIV": {"dtype": "uint8", "values": [1, 2]},
        "HINSEMP": {"dtype": "uint8", "values": [1, 2]},
        "sim_individual_id": {"dtype": "int"},
    },
}


def survey(seed, places):
    rng = np.random.default_rng(seed)
    rows = 6 * 400
    private = rng.integers(1, 3, rows)
    return pa.table(
        {
            "PUMA": rng.choice(places, rows), "YEAR": rng.choice([2012, 2013], rows).astype(np.uint32),
            "SEX": rng.integers(1, 3, rows), "MARST": rng.integers(1, 7, rows), "AGE": rng.integers(0, 96, rows),
            "POVERTY": rng.integers(0, 502, rows), "HCOVANY": np.full(rows, 2), "HCOVPRIV": private,
            "HINSEMP": np.where(private == 1, 1, rng.integers(1, 3, rows)), "sim_individual_id": np.arange(rows) // 2,
        }
    )  # fmt: skip


def test_2020_dpsyn_from_files_to_scores(hedgerow, tmp_path):
    places = PARAMETERS["schema"]["PUMA"]["values"]
    for name, table in (("private", survey(0, places)), ("public", survey(1, ["17-00100", "17-00200"]))):
        write_table(tmp_path / f"{name}.parquet", table.schema, [table])
    (tmp_path / "parameters.json").write_text(json.dumps(PARAMETERS))
    alone = hedgerow("synth", "private.parquet", "-s", "preset:acs", "-m", "dpsyn", "-e", "1", "-o", "x.csv")
    assert alone.code == 2
    assert "the preset acs leaves PUMA to you" in alone.err
    done = hedgerow(
        "synth", "private.parquet", "-s", "parameters.json", "-s", "preset:acs", "-m", "dpsyn", "--public",
        "public.parquet", "-o", "made.parquet", "-q",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "bins, heaps and special values of AGE, POVERTY are the preset's" in done.err
    assert "HCOVANY × HCOVPRIV × HINSEMP × HINSCAID × HINSCARE became HCOVANY × HCOVPRIV × HINSEMP" in done.err
    made = pa.parquet.read_table(tmp_path / "made-10.parquet")
    assert set(made["PUMA"].to_pylist()) == set(places)  # the user's own
    assert pa.types.is_integer(made.schema.field("YEAR").type)  # as the file's dtype says
    assert pa.types.is_string(made.schema.field("PUMA").type)
    held = {tuple(row.values()) for row in made.select(["HCOVANY", "HCOVPRIV", "HINSEMP"]).to_pylist()}
    assert held <= {(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2)}  # no impossible insurance
    assert made["POVERTY"].to_numpy().min() >= 0
    for epsilon in ("0.1", "10"):
        scored = hedgerow(
            "evaluate", "private.parquet", f"made-{epsilon}.parquet", "-s", "parameters.json", "-s", "preset:acs",
            "--metrics", "nist2020", "--json", "-q",
        )  # fmt: skip
        assert scored.code == 0, scored.err
        assert 400 < json.loads(scored.out)["nist2020"] <= 1000


def test_raw_codes_under_a_preset_of_other_codes_are_loud(hedgerow, tmp_path):
    """Raw cities are none of the preset's nine: they used to become one of them in silence."""
    hedgerow("example", "census1940", "-o", "census.parquet", "--rows", "5000")
    table = pa.parquet.read_table(tmp_path / "census.parquet")
    raw = pa.array(np.where(np.arange(5000) < 4141, 5390, 0))
    table = table.set_column(table.schema.get_field_index("CITY"), "CITY", raw)
    write_table(tmp_path / "raw.parquet", table.schema, [table])
    done = hedgerow(
        "synth", "raw.parquet", "-s", "preset:census1940-match3", "-m", "independent", "-e", "8", "-o", "made.parquet"
    )
    assert done.code == 0, done.err
    assert "% of the rows hold a value of CITY that the schema does not declare" in done.err
    cities = pa.parquet.read_table(tmp_path / "made.parquet")["CITY"]
    assert 0.7 < cities.null_count / len(cities) < 0.95


def test_a_preset_of_ones_own_is_shown_edited_and_used(hedgerow, colorado):
    drafted(hedgerow)
    shown = hedgerow("preset", "show", "census1940-match3", "-s", "colorado.yaml", "-o", "mine.yaml")
    assert shown.code == 0, shown.err
    text = (colorado / "mine.yaml").read_text()
    assert "SEX, CITY, INCWAGE" in text
    assert "{0: 8" in text.replace("'", "")  # a weight by ε
    (colorado / "mine.yaml").write_text(text.replace("exempt: [", "merge: 5\n    exempt: ["))
    done = hedgerow("synth", "colorado.csv", "-s", "mine.yaml", "-m", "match3", "-e", "1", "-o", "made.csv", "-q")
    assert done.code == 0, done.err
    certificate = json.loads(hedgerow("verify", "made.release", "--json").out)["certificate"]
    assert certificate["method"]["options"]["merge"] == 5.0
    marginals = certificate["method"]["options"]["marginals"]
    assert next(each for each in marginals if each[0] == ["SEX", "CITY", "INCWAGE"])[1] == 6.0  # between 0.3 and 4
    whole = hedgerow("preset", "show", "census1940-match3", "-o", "whole.yaml")
    assert whole.code == 0
    assert "# 97 pairs that form a tree" in (colorado / "whole.yaml").read_text()
    assert hedgerow("preset", "show", "nothing").code == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("-e", "1,x"), "takes a number, or several"),
        (("-e", "1,1"), "the same ε twice"),
        (("-e", "1", "-s", "colorado.yaml"), "is no preset"),
        (("-e", "1", "-s", "preset:acs"), "the group ABSENT × LOOKING is left out"),
    ],
)
def test_what_does_not_go_together_is_said(hedgerow, colorado, words, complaint):
    drafted(hedgerow)
    done = hedgerow("synth", "colorado.csv", "-s", "colorado.yaml", *words, "-o", "x.csv", "-m", "mst", "--dry-run")
    assert complaint in done.err
