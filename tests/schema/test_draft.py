"""A draft takes names from the header and domains from public sources; it never sees a private row."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hedgerow.schema import Schema
from hedgerow.schema.draft import draft_schema
from hedgerow.schema.draft.drafting import EXAMPLES
from hedgerow.schema.invented import INVENTED
from hedgerow.schema.kinds import KINDS
from refusals import refused


def drafted(text: str) -> dict[str, Any]:
    return Schema.parse(text).to_dict()["columns"]  # type: ignore[no-any-return]


def bare(columns: dict[str, Any]) -> dict[str, Any]:
    """Without the note of where each came from."""
    return {name: {key: value for key, value in each.items() if key != "source"} for name, each in columns.items()}


def test_a_header_alone_leaves_everything_to_do() -> None:
    draft = draft_schema(["age", "sex"], [], dataset="people")
    assert draft.summary == "0 of 2 complete; 2 need you, where it says TODO"
    with refused("todo-left", "columns.age", "columns.sex"):
        Schema.parse(draft.text)


def test_sixty_columns_with_a_codebook_need_no_typing(tmp_path: Path) -> None:
    lines = ["name,type,values,min,max,missing,ordered"]
    lines += [f"q{index},category,1=never|2=sometimes|3=often,,,-8=refused|-9=not asked,yes" for index in range(40)]
    lines += [f"n{index},integer,,0,{10 ** (index % 6)},yes," for index in range(15)]
    lines += ["income,number,,0,1e6,,", "born,date,,1900-01-01,2009-12-31,,", "ok,boolean,,,,,", "site,code,,,,,"]
    lines += ["class,category,<=50K|>50K,,,,"]
    book = tmp_path / "codebook.csv"
    book.write_text("\n".join(lines).replace("site,code,,,,,", "site,category,a;b,,,,"))
    header = [line.split(",")[0] for line in lines[1:]]
    draft = draft_schema(header, [str(book)])
    assert draft.summary == "60 of 60 complete"
    columns = drafted(draft.text)
    assert columns["q7"] == {
        "type": "category", "values": ["1", "2", "3"], "ordered": True, "source": "codebook.csv#q7",
        "missing": {"-8": "refused", "-9": "not asked"},
    }  # fmt: skip
    assert columns["class"]["values"] == ["<=50K", ">50K"]
    assert columns["n5"] == {
        "type": "integer", "min": 0, "max": 100000, "missing": True, "source": "codebook.csv#n5",
    }  # fmt: skip
    assert "step" not in columns["born"]


def test_a_codebook_may_have_one_line_for_each_value(tmp_path: Path) -> None:
    book = tmp_path / "values.csv"
    book.write_text("variable;code;label;missing\nsex;1;male;\nsex;2;female;\nsex;9;unknown;yes\n")
    columns = drafted(draft_schema(["sex"], [str(book)]).text)
    assert bare(columns) == {"sex": {"type": "category", "values": ["1", "2"], "missing": {"9": "unknown"}}}


@pytest.fixture
def labelled(tmp_path: Path) -> Any:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyreadstat")
    return pandas.DataFrame({"sex": [1.0, 2.0], "wage": [1.5, 2.5], "kids": [1.0, 97.0], "town": ["CANARY", "x"]})


def test_spss_labels_without_rows(tmp_path: Path, labelled: Any) -> None:
    import pyreadstat

    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(
        labelled, str(path),
        variable_value_labels={"sex": {1: "male", 2: "female"}, "kids": {97: "refused", 98: "unknown", 0: "none"}},
        missing_ranges={"kids": [97, {"lo": 98, "hi": 99}]},
        variable_measure={"sex": "nominal", "kids": "scale"},
        variable_format={"kids": "F8.0", "wage": "F8.2"},
    )  # fmt: skip
    draft = draft_schema(["sex", "wage", "kids", "town"], [str(path)])
    assert draft.summary == "1 of 4 complete; 3 need you, where it says TODO"
    assert "CANARY" not in draft.text
    finished = draft.text.replace("min: TODO, max: TODO", "min: 0, max: 20").replace("TODO", "[a, b]")
    columns = bare(drafted(finished))
    assert columns["sex"] == {"type": "category", "values": ["1", "2"], "missing": True}
    assert columns["kids"]["type"] == "integer"
    assert columns["kids"]["special"] == [0]
    assert columns["kids"]["missing"] == {"": "not recorded", "97": "refused", "98": "unknown"}
    assert columns["wage"]["type"] == "number"


def test_stata_labels(tmp_path: Path, labelled: Any) -> None:
    import pyreadstat

    path = tmp_path / "survey.dta"
    frame = labelled.astype({"sex": "int8", "kids": "int16"})
    pyreadstat.write_dta(frame, str(path), variable_value_labels={"sex": {1: "male", 2: "female"}})
    draft = draft_schema(["sex", "wage", "kids", "town"], [str(path)])
    assert draft.summary == "1 of 4 complete; 3 need you, where it says TODO"
    assert "CANARY" not in draft.text
    assert "kids: {type: integer" in draft.text
    assert "wage: {type: number" in draft.text


def test_a_damaged_statistics_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    path = tmp_path / "survey.sav"
    path.write_bytes(b"CANARY")
    with refused("cannot-read") as caught:
        draft_schema(["a"], [str(path)])
    assert "CANARY" not in str(caught.value)


def test_frictionless(tmp_path: Path) -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"required": True, "minimum": 0, "maximum": 115}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
        {"name": "born", "type": "date", "constraints": {"minimum": "1990-01-01", "maximum": "1999-12-31"}},
        {"name": "ok", "type": "boolean"},
        {"name": "pay", "type": "number"},
        {"name": "shape", "type": "geojson"},
    ]
    schema = {"fields": fields, "missingValues": ["", "NA"]}
    path = tmp_path / "datapackage.json"
    path.write_text(json.dumps({"resources": [{"name": "people", "schema": schema}]}))
    draft = draft_schema([field["name"] for field in fields], [str(path)])  # type: ignore[misc]
    assert draft.summary == "4 of 6 complete; 2 need you, where it says TODO"
    columns = drafted(
        draft.text.replace("type: TODO", "type: boolean").replace("min: TODO", "min: 0").replace("max: TODO", "max: 9")
    )
    assert bare(columns)["age"] == {"type": "integer", "min": 0, "max": 115}
    assert columns["sex"]["missing"] == {"": "missing", "NA": "missing"}


def test_csvw(tmp_path: Path) -> None:
    columns = [
        {"titles": "age", "datatype": {"base": "integer", "minimum": "0", "maximum": "115"}, "required": True},
        {"name": "sex", "datatype": {"base": "string", "format": "f|m"}, "null": "NA"},
        {"name": "seen", "datatype": {"base": "dateTime", "minimum": "2020-01-01", "maximum": "2020-12-31"}},
    ]
    path = tmp_path / "people.csv-metadata.json"
    path.write_text(json.dumps({"@context": "http://www.w3.org/ns/csvw", "tableSchema": {"columns": columns}}))
    draft = draft_schema(["age", "sex", "seen"], [str(path)])
    assert draft.summary == "3 of 3 complete"
    assert bare(drafted(draft.text))["sex"] == {
        "type": "category", "values": ["f", "m"], "missing": {"": "missing", "NA": "missing"},
    }  # fmt: skip


def test_a_sql_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.sql"
    path.write_text("""
        -- types of the registry
        CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s fine');
        CREATE TABLE IF NOT EXISTS registry.people (
            id bigint PRIMARY KEY,
            age smallint NOT NULL CHECK (age BETWEEN 0 AND 115),
            "Height cm" numeric(5,1) CHECK ("Height cm" > 0 AND "Height cm" <= 250),
            sex char(1) NOT NULL,
            mood mood,
            city varchar(40) DEFAULT 'a, b)',
            born date CHECK (born >= '1900-01-01' AND born <= '2009-12-31'),
            kids int,
            grade text,
            odd int CHECK (odd < 5 OR odd > 9),
            ok boolean,
            CONSTRAINT sex_known CHECK (sex IN ('f', 'm')),
            CHECK (kids IS NULL OR (0 <= kids AND kids < 30)),
            CHECK (grade = ANY (ARRAY['low'::text, 'high'::text]))
        );
    """)
    header = ["ID", "age", "Height cm", "sex", "mood", "city", "born", "kids", "grade", "odd", "ok"]
    draft = draft_schema(header, [str(path)])
    assert draft.summary == "8 of 11 complete; 3 need you, where it says TODO"
    text = draft.text.replace("values: TODO", "values: [a]").replace("min: TODO, max: TODO", "min: 0, max: 9")
    assert bare(drafted(text)) | {"ID": {}, "odd": {}, "city": {}} == {
        "ID": {}, "odd": {}, "city": {},
        "age": {"type": "integer", "min": 0, "max": 115},
        "Height cm": {"type": "number", "min": 0, "max": 250, "missing": True},
        "sex": {"type": "category", "values": ["f", "m"]},
        "mood": {"type": "category", "values": ["sad", "ok", "it's fine"], "missing": True},
        "born": {"type": "date", "min": "1900-01-01", "max": "2009-12-31", "missing": True},
        "kids": {"type": "integer", "min": 0, "max": 29, "missing": True},
        "grade": {"type": "category", "values": ["low", "high"], "missing": True},
        "ok": {"type": "boolean", "missing": True},
    }  # fmt: skip


def test_a_pydantic_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registry_model.py").write_text(
        "import datetime, enum\n"
        "from typing import Literal, Optional\n"
        "from pydantic import BaseModel, Field\n"
        "class Grade(enum.Enum):\n    low = 'low'\n    high = 'high'\n"
        "class Person(BaseModel):\n"
        "    age: int = Field(ge=0, lt=116)\n"
        "    sex: Literal['f', 'm']\n"
        "    grade: Optional[Grade] = None\n"
        "    pay: Optional[float] = Field(None, ge=0, le=1e5)\n"
        "    ok: bool\n"
        "    born: datetime.date\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    draft = draft_schema(["age", "sex", "grade", "pay", "ok", "born"], ["registry_model:Person"])
    sys.modules.pop("registry_model", None)
    assert draft.summary == "5 of 6 complete; 1 needs you, where it says TODO"
    columns = bare(drafted(draft.text.replace("TODO", "2000-01-01")))
    assert columns["age"] == {"type": "integer", "min": 0, "max": 115}
    assert columns["grade"] == {"type": "category", "values": ["low", "high"], "missing": True}
    assert columns["pay"] == {"type": "number", "min": 0, "max": 100000, "missing": True}


def test_a_public_table() -> None:
    table = pa.table(
        {
            "age": ["39", "50", ""],
            "fips": ["06001", "06003", "01001"],
            "pay": [1.5, 2.0, 3.25],
            "born": ["2000-02-29", "1999-01-01", "2001-12-31"],
            "city": ["b", "a", "b"],
            "ok": [True, False, None],
        }
    )

    def batches(name: str) -> Iterator[pa.RecordBatch]:
        assert name == "open.csv"
        yield from table.to_batches(max_chunksize=2)

    draft = draft_schema(table.column_names, ["public:open.csv"], public_batches=batches)
    assert draft.summary == "6 of 6 complete"
    assert bare(drafted(draft.text)) == {
        "age": {"type": "integer", "min": 39, "max": 50, "missing": True},
        "fips": {"type": "category", "values": ["01001", "06001", "06003"]},
        "pay": {"type": "number", "min": 1.5, "max": 3.25},
        "born": {"type": "date", "min": "1999-01-01", "max": "2001-12-31"},
        "city": {"type": "category", "values": ["a", "b"]},
        "ok": {"type": "boolean", "missing": True},
    }


def test_earlier_sources_win_and_later_ones_fill_gaps(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("name,type,min,values\nage,integer,18,\nsex,category,,f|m\n")
    second.write_text("name,type,min,max,values\nage,integer,0,99,\nsex,integer,1,2,\nx,category,,,a|b\n")
    columns = bare(drafted(draft_schema(["age", "sex", "x"], [str(first), str(second)]).text))
    assert columns == {
        "age": {"type": "integer", "min": 18, "max": 99},
        "sex": {"type": "category", "values": ["f", "m"]},
        "x": {"type": "category", "values": ["a", "b"]},
    }


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("nowhere.csv", "no-such-source"),
        ("no.such.module:Thing", "cannot-import"),
        ("json:NotAModel", "not-a-pydantic-model"),
    ],
)
def test_a_source_that_is_not_there_is_named(source: str, code: str) -> None:
    with refused(code, source, "Nothing was written"):
        draft_schema(["a"], [source])


def test_a_source_that_contradicts_itself_is_named(tmp_path: Path) -> None:
    book = tmp_path / "book.csv"
    book.write_text("name,type,min,max\nage,integer,9,1\n")
    with refused("min-above-max", "book.csv#age", "9", "1"):
        draft_schema(["age"], [str(book)])


def test_two_columns_of_one_name_are_refused() -> None:
    with refused("duplicate-column"):
        draft_schema(["a", "a"], [])


def test_a_draft_has_a_line_for_each_column_below_an_example_of_every_type() -> None:
    header = ["age", "name with spaces", "a: b", "#x", "", "Unnamed: 0"]
    values = [f"a long value {number}" for number in range(60)]
    draft = draft_schema(header, ["public:t"], public_batches=lambda _: [_rows(values)])
    lines = draft.text.partition("columns:\n")[2].splitlines()
    assert len(lines) == 4
    assert all(line.startswith("  ") for line in lines)
    assert lines[1:] == ["  name with spaces: TODO", "  'a: b': TODO", "  '#x': TODO"]
    assert "# 2 without a name: left out.\n" in draft.text
    assert draft_schema(["a", "b"], []).text.endswith("columns:\n  a: TODO\n  b: TODO\n")
    assert draft.columns == ("age", "name with spaces", "a: b", "#x")
    for kind in (*KINDS, *INVENTED):
        assert f"#   name: {{type: {kind}" in draft.text


def _rows(values: list[str]) -> Any:
    return pa.table({"age": values * 2}).combine_chunks().to_batches()[0]


@pytest.mark.parametrize("kind", [*KINDS, *INVENTED])
def test_the_example_of_a_type_is_a_declaration_of_it(kind: str) -> None:
    example, _ = EXAMPLES[kind]
    schema = Schema.parse(f"columns:\n  name: {example}\n  age: {{type: code, size: 2}}\n")
    assert schema.to_dict()["columns"]["name"]["type"] == kind


@pytest.mark.parametrize(
    "row",
    [
        ["39", " State-gov", " 77516", " Bachelors", " 13", "x", "y", "z"],
        ["58", "management", "2143", "yes"],
        ["CANARY", "2020-05-17", "x", "y"],
        ["CANARY", "17.05.2020 12:00", "x"],
        ["CANARY", "1,5"],
        ["-1", "0"],
    ],
)
def test_names_that_look_like_a_row_are_not_written_down(row: list[str]) -> None:
    with refused("no-header", "looks like a row. Nothing was written.") as caught:
        draft_schema(row, [])
    assert not any(value.strip() in str(caught.value) for value in row if len(value) > 3)


@pytest.mark.parametrize(
    "header", [["place", "2019", "2020", "2021"], ["0", "1", "2"], ["1", "2"], ["a", "b", "c", "d", "7"]]
)
def test_years_and_counted_columns_are_names(header: list[str]) -> None:
    assert draft_schema(header, []).columns == tuple(header)


def test_a_draft_takes_conditionals_of_json_schema(tmp_path: Path) -> None:
    path = tmp_path / "trips.json"
    path.write_text(
        json.dumps(
            {
                "properties": {
                    "pay": {"enum": ["cash", "card"]},
                    "tip": {"type": "integer", "minimum": 0, "maximum": 90},
                    "zone": {"type": "integer", "minimum": 1, "maximum": 9},
                },
                "required": ["tip"],
                "if": {"properties": {"pay": {"const": "cash"}}, "required": ["pay"]},
                "then": {"properties": {"tip": {"const": 0}}},
                "else": {"properties": {"tip": {"not": {"const": 1}}}},
                "allOf": [
                    {"if": {"properties": {"zone": {"maximum": 3}}}, "then": {"properties": {"tip": {"maximum": 50}}}}
                ],
            }
        )
    )
    rules = Schema.parse(draft_schema(["pay", "tip", "zone"], [str(path)]).text).rules
    assert [(rule.when, rule.then) for rule in rules] == [
        ("pay IS NOT NULL AND pay = 'cash'", "tip = 0"),
        ("NOT (pay IS NOT NULL AND pay = 'cash')", "NOT (tip = 1)"),
        ("zone IS NULL OR zone <= 3", "tip <= 50"),
    ]


def test_a_draft_takes_what_sdv_constrains(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    columns = {"low": "numerical", "high": "numerical", "kind": "categorical", "sort": "categorical"}
    constraints = [
        ("Inequality", {"low_column_name": "low", "high_column_name": "high"}),
        ("ScalarRange", {"column_name": "low", "low_value": 1, "high_value": 8, "strict_boundaries": True}),
        ("FixedCombinations", {"column_names": ["kind", "sort"]}),
        ("Elsewhere", {}),
    ]
    said = [{"constraint_class": name, "constraint_parameters": about} for name, about in constraints]
    about = {name: {"sdtype": kind, "computer_representation": "Int64"} for name, kind in columns.items()}
    path.write_text(json.dumps({"columns": about, "constraints": said, "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1"}))
    bounds = tmp_path / "bounds.csv"
    bounds.write_text("column,type,min,max,values\nlow,integer,0,9,\nhigh,integer,0,9,\n")
    text = draft_schema(list(columns), [str(bounds), str(path)]).text
    assert "{columns: [kind, sort], lookup: a public table of combinations} may become one of the `rules`." in text
    assert "the constraint Elsewhere may become" in text
    schema = Schema.parse(text.replace("values: TODO", "values: [a]"))
    assert [str(rule) for rule in schema.rules] == ["low <= high", "low > 1 AND low < 8"]


def test_a_draft_follows_foreign_keys(tmp_path: Path) -> None:
    path = tmp_path / "trips.sql"
    path.write_text(
        "CREATE TABLE geo.zones (zone int PRIMARY KEY CHECK (zone BETWEEN 1 AND 40), district text);\n"
        "CREATE TABLE trips (origin int REFERENCES geo.zones (zone), district text, zone int NOT NULL,\n"
        " FOREIGN KEY (zone, district) REFERENCES geo.zones (zone, district));"
    )
    text = draft_schema(["origin", "district"], [str(path)]).text
    assert "{columns: [zone, district], lookup: zones.csv}" in text
    schema = Schema.parse(text.replace("values: TODO", "values: [a]"))
    assert bare(schema.to_dict()["columns"])["origin"] == {"type": "integer", "min": 1, "max": 40, "missing": True}
