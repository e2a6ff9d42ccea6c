"""The schema file: text stays text, faults are named by line and key, and nothing depends on rows."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from hedgerow.errors import HedgerowError, InputError
from hedgerow.schema import Schema
from hedgerow.schema.leaves import Leaf
from hedgerow.schema.numeric import Number
from hedgerow.schema.schema import KINDS
from refusals import refused

HEAD = "dataset: people\ncolumns:\n"


def one(declaration: str) -> Any:
    return Schema.parse(f"{HEAD}  x: {declaration}\n").columns["x"]


def test_text_stays_text() -> None:
    column = one("{type: category, values: [US, NO, yes, 06001, 1e6, 1999-12-31, null, ~, 0x1F, 1_000, 'a b']}")
    assert column.values == ("US", "NO", "yes", "06001", "1e6", "1999-12-31", "null", "~", "0x1F", "1_000", "a b")


def test_numbers_and_dates_are_read_where_they_are_expected() -> None:
    assert one("{type: integer, min: -5, max: 1e6, bins: 1e2}").max == 1_000_000
    assert one("{type: number, min: 1e-3, max: 2.5E3, bins: [1, 2.5]}").min == 0.001
    assert one("{type: date, min: 1900-01-01, max: 2009-12-31, step: month}").layout.own == 1_320


def test_a_domain_file_is_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "people-domain.json"
    path.write_text('{"age": 85,\t"sex": 2, "columns": 3}')
    schema = Schema.load(path)
    assert {each.name: each.size for each in schema.encoding().domain} == {"age": 85, "sex": 2, "columns": 3}
    assert Schema.from_dict({"age": 85}) == Schema.parse("age: 85")


def test_codelists_are_shared_values() -> None:
    schema = Schema.parse("""
codelists: {yesno: [yes, no]}
columns:
  smoker: {codelist: yesno, source: "codebook.xlsx#Q12"}
  drinker: {codelist: yesno, missing: true}
""")
    assert [column["values"] for column in schema.to_dict()["columns"].values()] == [["yes", "no"]] * 2


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        ("{type: integer, min: 3, max: 1}", ("min-above-max", "line 3", "columns.x.min")),
        (
            "{type: integer, mni: 3, max: 9}",
            ("unknown-key", "line 3", "columns.x", '"mni"', 'Did you mean "min"'),
        ),
        ("{type: integer, min: 3}", ("missing-key", "columns.x", '"max"')),
        ("{type: integr, min: 3}", ("unknown-type", '"integr"', 'Did you mean "integer"')),
        ("{min: 3, max: 4}", ("missing-type", '"type"')),
        ("{type: integer, min: 0, max: 999, leaves: [[[5, 3, 1]]]}", ("bad-leaves", "order")),
        ("{type: integer, min: 0, max: 999, leaves: [[[3, 5, 1]], [[5, 9, 1]]]}", ("bad-leaves", "order")),
        ("{type: integer, min: 0, max: 999, leaves: [[[3, 1000, 1]]]}", ("bad-leaves", "order")),
        ("{type: integer, min: 0, max: 999, leaves: [[[3, 5, 0]]]}", ("bad-leaves", "weight")),
        ("{type: integer, min: 0, max: 999, leaves: [[]]}", ("bad-leaves", "at least one leaf")),
        ("{type: integer, min: 0, max: 999, leaves: [[[1, 2]]]}", ("bad-leaves", "[first, last, weight]")),
        ("{type: integer, min: 0, max: 999, leaves: [[1, 2]]}", ("bad-leaves", "[first, last, weight]")),
        ("{type: integer, min: 0, max: 999, leaves: 7}", ("bad-leaves", "list of cells")),
        ("{type: integer, min: 0, max: 999, leaves: [[[1, 2, 1]]], bins: 5}", ("bad-leaves", "neither bins")),
        ("{type: integer, min: 0, max: 999, leaves: [[[1, 1, 1]]], special: [1]}", ("bad-leaves", "of their own")),
        ("{type: integer, min: 0, max: 1, bins: private, special: [0, 1]}", ("nothing-to-cut",)),
        ("{type: integer, min: 0, max: 9, bins: 11}", ("bad-bins", "11", "10")),
        ("{type: integer, min: 0, max: 9, bins: 0}", ("bad-bins",)),
        ("{type: integer, min: 0, max: 9, bins: [3, 3]}", ("edges-must-grow",)),
        ("{type: integer, min: 0, max: 9, bins: [3, 12]}", ("edges-out-of-range",)),
        ("{type: integer, min: 0, max: 9, bins: [3.2, 3.8]}", ("empty-bin",)),
        ("{type: integer, min: 0, max: 9, bins: many}", ("bad-bins",)),
        ("{type: integer, min: 0, max: 9.5}", ("not-whole", "9.5")),
        ("{type: integer, min: 0, max: 1e30, bins: 3}", ("number-too-large",)),
        ("{type: integer, min: 0, max: nan}", ("not-a-number",)),
        ("{type: integer, min: 0, max: 99, bins: 5, heaps: [5, 10]}", ("heap-never-matches", "10")),
        ("{type: integer, min: 0, max: 99, bins: 5, heaps: [1]}", ("bad-heap",)),
        ("{type: integer, min: 0, max: 99, heaps: [10]}", ("heaps-without-bins",)),
        ("{type: integer, min: 0, max: 99, bins: 5, heaps: [9973, 9967]}", ("bad-heap",)),
        ("{type: integer, min: 0, max: 9, special: [77, 77]}", ("value-twice",)),
        ("{type: number, min: 0, max: 1, decimals: 16}", ("bad-decimals", "15")),
        ("{type: number, min: 0, max: 1e9, decimals: 9}", ("too-many-steps", "fewer `decimals`")),
        ("{type: number, min: 0, max: 1e300}", ("too-many-steps", "use `bins`")),
        ("{type: number, min: 0.2, max: 0.8, decimals: 0}", ("bad-decimals", "fewer than two")),
        ("{type: number, min: 0, max: 9, decimals: 0, bins: [2.1, 2.2]}", ("empty-bin",)),
        ("{type: number, min: 1, max: 1, bins: 3}", ("min-above-max",)),
        ("{type: number, min: 0, max: 1e999, bins: 3}", ("not-a-number",)),
        ("{type: category, values: []}", ("no-values",)),
        ("{type: category, values: [a, b, a]}", ("value-twice", '"a"')),
        ("{type: category, values: a}", ("not-a-list",)),
        ("{type: category, values: [a, ''], missing: true}", ("missing-is-a-value",)),
        ("{type: category, values: [a], missing: maybe}", ("bad-missing",)),
        ("{type: category, values: [a], ordered: 7}", ("not-true-or-false",)),
        ("{type: category}", ("missing-key", '"values"')),
        ("{type: date, min: 2000-01-01, max: 1999-01-01}", ("min-above-max", "2000-01-01", "1999-01-01")),
        ("{type: date, min: 2000-02-30, max: 2001-01-01}", ("not-a-date",)),
        ("{type: date, min: 0001-01-01, max: 1999-01-01, step: week}", ("too-many-steps", "10,000")),
        ("{type: date, min: 1900-01-01, max: 1999-01-01, format: '%d.%m.%y'}", ("bad-format", "1900-01-01")),
        ("{type: date, min: 1900-01-01, max: 1999-01-01, format: '%m/%Y'}", ("bad-format", "1900-01-02")),
        ("{type: date, min: 1900-01-01, max: 1999-01-01, format: '%Q'}", ("bad-format", '"%Q"')),
        ("{type: date, min: 1900-01-01, max: 1999-01-01, format: 'x%'}", ("bad-format",)),
        ("{type: datetime, min: 1990-01-01, max: 1999-01-01, format: '%d.%m.%Y'}", ("bad-format", "15:00:00")),
        ("{type: date, min: 1999-01-01, max: 1999-01-09, leaves: [[[1999-01-01, 1999-01-02, 1]]]}", ("bad-leaves",)),
        ("{type: date, min: 1900-01-01, max: 1999-01-09, leaves: [[[1899-01-01, 1999-01-02, 1]]]}", ("bad-leaves",)),
        (
            "{type: datetime, min: 1900-01-01, max: 1999-01-09, leaves: [[[1900-01-01, 1999-01-02, 1]]]}",
            ("bad-leaves",),
        ),
        (
            "{type: datetime, min: 1900-01-01, max: 1999-01-09, leaves: [[[1900-01-01, 1999-01-02, 1]]], "
            "times: [[['10:00', '9:00', 1]]]}",
            ("not-a-time",),
        ),
        ("{type: date, min: 1900-01-01, max: 1999-01-01, step: hour}", ("not-a-choice",)),
        ("{type: datetime, min: 2000-01-01T00:00+01:00, max: 2001-01-01}", ("time-zone",)),
        ("{type: integer, min: 0, max: 1e9, bins: 1e8}", ("bad-bins", "1,048,576")),
        ("{type: code, size: 0}", ("bad-code-size",)),
        ("{type: code, size: 1e9}", ("bad-code-size",)),
        ("{codelist: nope}", ("unknown-codelist", '"nope"')),
        ("TODO", ("todo-left", "columns.x")),
        ("{type: integer, min: TODO, max: TODO}", ("todo-left", "columns.x.min", "columns.x.max")),
        ("7", ("missing-type", "columns.x")),
    ],
)
def test_faults_are_named(declaration: str, said: tuple[str, ...]) -> None:
    with refused(*said) as caught:
        Schema.parse(f"{HEAD}  x: {declaration}\n", "people.yaml")
    assert str(caught.value).startswith("people.yaml, line 3: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ("not-a-schema",)),
        ("[a, b]", ("not-a-schema",)),
        ("dataset: x", ("missing-key", '"columns"')),
        ("columns: {}", ("no-columns",)),
        ("columns:\n  a: {type: boolean}\n  a: {type: boolean}", ("duplicate-key", "line 3", '"a"')),
        ("columns: {a: {type: boolean}\n", ("not-yaml", "line 2")),
        ("columns:\n  a: &a {type: boolean}\n  b: *a", ("yaml-alias",)),
        ("colums:\n  a: {type: boolean}", ("unknown-key", "line 1", '"colums"', 'Did you mean "columns"')),
        ("columns: {a: {type: boolean}}\nmax_rows_per_person: 3", ("row-bound-without-person", "line 2")),
        ("columns: {a: {type: boolean}}\nperson: p\nmax_rows_per_person: 0", ("bad-row-bound",)),
        ("columns: {a: {type: boolean}}\nperson: a", ("person-is-a-column",)),
        ("columns: {a: {type: boolean}}\nignore: [a]", ("ignored-and-declared", '"a"')),
        ("columns: {a: {type: boolean}}\nignore: TODO", ("todo-left",)),
        ("columns: {a: {type: boolean}}\ngroups: [{columns: [a, b], allowed: public}]", ("unknown-column", '"b"')),
        ("columns: {a: {type: boolean}}\ngroups: [{columns: [a], allowed: public}]", ("bad-group",)),
        (
            "columns: {a: {type: boolean}}\ngroups: [{columns: [a, a], alowed: public}]",
            ("unknown-key", 'Did you mean "allowed"'),
        ),
        ("'a:heap': {}\ncolumns: {}", ("unknown-key",)),
    ],
)
def test_faults_of_the_whole_are_named(text: str, said: tuple[str, ...]) -> None:
    with refused(*said):
        Schema.parse(text, "people.yaml")


def test_faults_of_groups_are_named() -> None:
    columns = "columns:\n  a: {type: category, values: [1, 2]}\n  b: {type: integer, min: 0, max: 3}\n"
    columns += "  c: {type: category, values: private}\ngroups:\n"
    for group, said in [
        ("{columns: [a, b], allowed: [[1, 9]]}", ("undeclared-value", '"9"', '"b"')),
        ("{columns: [a, b], allowed: [[1, 1], [1, 1]]}", ("combination-twice",)),
        ("{columns: [a, b], allowed: [[1]]}", ("bad-combinations",)),
        ("{columns: [a, b], allowed: []}", ("no-combination",)),
        ("{columns: [a, b], allowed: none}", ("bad-combinations",)),
        ("{columns: [a, c], allowed: public}", ("column-cannot-group",)),
    ]:
        with refused(*said, "line 6: groups.0"):
            Schema.parse(f"{columns}  - {group}\n")


def test_two_things_cannot_share_a_coded_name() -> None:
    wage = {"type": "integer", "min": 0, "max": 99, "bins": 5, "heaps": [10]}
    with refused("duplicate-attribute", "wage:heap"):
        Schema(columns={"wage": wage, "wage:heap": {"type": "boolean"}})


def test_faults_from_python_are_schema_errors_too() -> None:
    with refused("min-above-max", "columns.age.min"):
        Schema(columns={"age": {"type": "integer", "min": 9, "max": 1}})
    with refused("not-text"):
        Schema(columns={"age": {"type": "category", "values": [True]}})


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("no.yaml", None, "no-such-schema"), ("bad.yaml", b"\xff\xfe\xff", "not-utf8"), ("bad.json", b"{", "not-json")],
)
def test_files_that_cannot_be_read_are_named(tmp_path: Path, name: str, content: bytes | None, code: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with refused(code, name):
        Schema.load(path)
    with refused("cannot-read"):
        Schema.load(tmp_path)


def test_headers_are_compared_by_name_alone() -> None:
    schema = Schema.parse("person: id\nignore: [note]\ncolumns: {age: {type: boolean}, sex: {type: boolean}}")
    schema.check_header(["sex", "note", "id", "age"])
    with refused("missing-column", '"age"', 'Did you mean "agee"'):
        schema.check_header(["agee", "sex", "id"])
    with refused("missing-column", '"id"'):
        schema.check_header(["age", "sex"])
    with refused("undeclared-column", '"colour"'):
        schema.check_header(["age", "sex", "id", "colour"])
    with refused("duplicate-column", "columns 1 and 2"):
        schema.check_header(["age", "age", "sex", "id"])


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["HIV+", "34", "HIV+"], ("duplicate-column", "columns 1 and 3")),
        (["HIV+", "34", "Zaphod"], ("missing-column", "3 of the 3 columns")),
        (["HIV+", "sex", "Zaphod"], ("missing-column", "2 of the 3 columns")),
        (["agee", "sex", "Zaphod"], ("missing-column", "2 of the 3 columns")),
        (["age", "sex", "id", "HIV+", "Zaphod", "34"], ("undeclared-column", "3 of 6 columns")),
        (["age", "age", "HIV+", "HIV+"], ("duplicate-column", "columns 1 and 2")),
    ],
)
def test_a_header_that_may_be_a_row_is_never_quoted(row: list[str], said: tuple[str, ...]) -> None:
    """A file without a header line hands its first row over as names."""
    schema = Schema.parse("person: id\nignore: [note]\ncolumns: {age: {type: boolean}, sex: {type: boolean}}")
    with refused(*said) as caught:
        schema.check_header(row, 'the table "t.csv"')
    message = str(caught.value)
    assert 'the table "t.csv"' in message
    assert "header line" in message
    assert not any(word in message for word in ("HIV+", "34", "Zaphod", "agee"))


@given(st.lists(st.sampled_from(["age", "sex", "id", "note", "HIV+", "34", "Zaphod", "agee"]), min_size=1, max_size=9))
def test_a_name_is_quoted_only_if_it_is_declared_or_most_of_the_header_is(header: list[str]) -> None:
    schema = Schema.parse("person: id\nignore: [note]\ncolumns: {age: {type: boolean}, sex: {type: boolean}}")
    declared = {"age", "sex", "id", "note"}
    try:
        schema.check_header(header)
    except InputError as refused:
        shown = {name for name in header if f'"{name}"' in str(refused) or f" {name}," in str(refused)}
        assert shown <= declared or 2 * len(declared & set(header)) > len(header)
    else:
        assert {"age", "sex", "id"} <= set(header) <= declared


def test_discovered_domains_are_filled_in_and_marked() -> None:
    schema = Schema.parse("""
columns:
  city: {type: category, values: private, missing: {"?": unknown}}
  income: {type: number, min: 0, max: 100, bins: private}
  hours: {type: integer, min: 0, max: 99, bins: private, closed: right}
""")
    assert schema.discoveries == [("city", "values"), ("income", "cuts"), ("hours", "cuts")]
    assert schema.open_values("city", pa.array(["a", "?", "", None])).to_pylist() == ["a", None, None, None]
    with refused("undiscovered-domain", '"city"', '"income"', '"hours"'):
        schema.encoding()
    with refused("nothing-to-discover", "cuts"):
        schema.with_cuts({"city": {"": []}})
    cells = [[Leaf(0, 9, 5), Leaf(20, 20, 7)], [Leaf(50, 99, 1)]]
    done = schema.with_values("city", ["a", "b"]).with_cuts({"hours": {"": cells}})
    done = done.with_cuts({"income": {"": [[Leaf(0, 12_345, 1)], [Leaf(20_000, 1_000_000, 2)]]}})
    assert done.discovered == ["city", "income", "hours"]
    assert done.to_dict()["columns"]["hours"]["leaves"] == [[[0, 9, 5], [20, 20, 7]], [[50, 99, 1]]]
    assert Schema.parse(done.to_yaml()) == done
    sizes = {each.name: each.size for each in done.encoding().domain}
    assert sizes == {"city": 4, "income": 3, "hours": 3}  # a, b, ?, other; 2 cells and the hidden one each
    nothing = schema.with_stand_ins(1)
    assert {each.name: each.size for each in nothing.encoding().domain} == {"city": 3, "income": 2, "hours": 2}


@pytest.mark.parametrize(
    ("declaration", "waits"),
    [
        ("{type: integer, min: 1, max: 150}", False),
        ("{type: integer, min: 0, max: 150}", True),
        ("{type: integer, min: 0, max: 150, bins: 151}", False),
        ("{type: integer, min: -9e15, max: 9e15}", True),
        ("{type: integer, min: 0, max: 9, bins: private}", True),
        ("{type: integer, min: 0, max: 999, heaps: [10]}", True),
        ("{type: number, min: 0, max: 1e7, decimals: 2}", True),
        ("{type: number, min: 0, max: 1}", True),
        ("{type: number, min: 0, max: 1e7, decimals: 2, bins: 50}", False),
        ("{type: date, min: 2020-01-01, max: 2020-05-01}", False),
        ("{type: date, min: 2020-01-01, max: 2021-01-01}", True),
        ("{type: date, min: 1900-01-01, max: 2009-12-31, step: month}", False),
        ("{type: datetime, min: 2020-01-01, max: 2020-02-01, step: minute}", True),
        ("{type: datetime, min: 1000-01-01, max: 9999-12-31, step: second}", True),
        ("{type: datetime, min: 2020-01-01, max: 2020-01-05, step: hour}", False),
    ],
)
def test_numbers_without_bins_wait_to_be_cut_unless_they_are_few(declaration: str, waits: bool) -> None:
    schema = Schema.parse(f"columns: {{x: {declaration}}}")
    assert bool(schema.discoveries) is waits
    assert schema.with_stand_ins().encoding().domain["x"].size > 2


@pytest.mark.parametrize(
    ("declaration", "scale"),
    [
        ("min: 0, max: 10, decimals: 2", 100),
        ("min: 0, max: 1", 10**6),
        ("min: 0, max: 1000000", 1),
        ("min: 999999.5, max: 1000000.5", 10**6),
        ("min: 0, max: 1e-9", 10**15),
        ("min: 0, max: 1, bins: 10", None),
        ("min: 0, max: 1, bins: 10, decimals: 1", 10),
    ],
)
def test_a_number_lies_on_a_grid_unless_it_is_in_bins_without_decimals(declaration: str, scale: int | None) -> None:
    column = Schema.parse(f"columns: {{x: {{type: number, {declaration}}}}}").columns["x"]
    assert isinstance(column, Number)
    assert column.scale == scale


def test_the_json_schema_knows_every_key() -> None:
    described = Schema.json_schema()
    kinds = described["$defs"]
    for kind in KINDS.values():
        known = set(kind.model_fields) - {"discovered", "leaves", "times", "endings"}
        assert set(kinds[kind.__name__]["properties"]) == known
        assert "type" in kinds[kind.__name__]["required"]
    assert set(described["anyOf"][0]["properties"]) == {*Schema.model_fields, "codelists"}


@pytest.fixture
def run() -> Any:
    from hedgerow.cli.schema import app

    def call(*arguments: object) -> Any:
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        if isinstance(result.exception, HedgerowError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return call


def test_draft_and_check_by_command(tmp_path: Path, run: Any) -> None:
    table, book, out = tmp_path / "people.csv", tmp_path / "book.csv", tmp_path / "people.yaml"
    table.write_text("age,sex\nCANARY,CANARY\n")
    book.write_text("name,type,min,max,values\nage,integer,0,99,\nsex,category,,,f|m\n")
    assert "1 of 2 complete; 1 needs you, where it says TODO" in run(
        "draft", table, "-o", out, "--from", _only_age(book)
    )
    with refused("already-exists"):
        run("draft", table, "-o", out)
    assert "2 of 2 complete" in run("draft", table, "-o", out, "--from", book, "--overwrite")
    assert "CANARY" not in out.read_text()
    assert "2 columns, no fault found" in run("check", "-s", out)
    assert "no row was read" in run("check", "-s", out, table)


def _only_age(book: Path) -> Path:
    path = book.with_name("age.csv")
    path.write_text("\n".join(book.read_text().splitlines()[:2]))
    return path


def test_the_private_page_counts_misfits_and_quotes_none(tmp_path: Path, run: Any) -> None:
    schema, table, page = tmp_path / "s.yaml", tmp_path / "t.csv", tmp_path / "misfits.html"
    schema.write_text("""
columns:
  <script>: {type: integer, min: 0, max: 9}
  city: {type: category, values: private}
  sex: {type: category, values: [f, m], other: true}
  payer: {type: category, values: [f, m]}
groups: [{columns: [sex, payer], allowed: public}]
""")
    table.write_text("<script>,city,sex,payer\n5,CANARY,f,\n77,CANARY,CANARY,m\n,b,m,f\nCANARY,b,m,f\n")
    assert "PRIVATE" in run("check", "-s", schema, table, "--private", page)
    text = page.read_text()
    assert "PRIVATE" in text
    assert "Content-Security-Policy" in text
    assert "CANARY" not in text
    assert text.count("<script>") == 1  # our own, which the policy names by its hash
    cells = text.replace(' class="figure"', "")
    assert (
        "<td>&lt;script&gt;</td><td>4</td><td>1</td><td>1</td><td>1</td><td>blank: replaced by declared values; not "
        "readable: replaced by declared values; others: clipped to the bounds, fractions rounded down</td>" in cells
    )
    assert "<td>sex</td><td>4</td><td>0</td><td>0</td><td>1</td><td>others: kept as “other”</td>" in cells
    assert "<td>payer</td><td>4</td><td>1</td><td>0</td><td>0</td>" in cells
    assert "city" not in text
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    with refused("missing-table"):
        run("check", "-s", schema, "--private", page)
    with refused("cannot-write"):
        run("check", "-s", schema, table, "--private", tmp_path / "no" / "where.html")


def test_the_json_schema_is_printed(run: Any) -> None:
    assert json.loads(run("json-schema")) == Schema.json_schema()


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("", "second"),
        (", format: '%d.%m.%Y %H'", "hour"),
        (", format: '%d.%m.%Y %H:%M'", "minute"),
        (", format: '%Y%m%d%H%M%S'", "second"),
        (", format: '%d.%m.%Y %H:%M', step: hour", "hour"),
        (", format: '%d.%m.%Y %H:%M', step: day", "day"),
    ],
)
def test_moments_are_as_fine_as_their_format_writes_unless_a_step_is_given(said, step):
    schema = Schema.parse(f"columns: {{seen: {{type: datetime, min: 2020-01-01, max: 2020-12-31{said}}}}}")
    assert schema.columns["seen"].step == step
    assert Schema.from_dict(schema.to_dict()) == Schema.parse(schema.to_yaml()) == schema
