"""The same table however people keep it: delimiters, encodings, packed files, workbooks, statistical packages."""

import codecs
import csv
import datetime
import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines import open_engine
from hedgerow.private.evaluate.misfits import count_misfits
from hedgerow.private.sources import source as source_module
from hedgerow.private.sources.source import open_source
from hedgerow.schema import Schema
from hedgerow.schema.file import Cleaning, File, Written
from refusals import code_in, refused

CANARY = "canary-4711"
LIMITS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCHEMA = """
person: name
max_rows_per_person: 2
columns:
  town: {type: category, values: [Köln, Zürich, "a;b", ""], missing: {"?": unknown}}
  born: {type: date, min: 2000-01-01, max: 2003-12-31, step: month}
  paid: {type: number, min: -10, max: 2000, bins: 40, missing: {"n.a.": not asked, "": not said}}
  kids: {type: integer, min: 0, max: 20}
"""
ROWS = [
    (
        ["Ann", "Bö", "007", "7", "Zoë", "7.0"][row % 6],
        ["Köln", "Zürich", "a;b", "?"][row % 4],
        datetime.date(2000 + row % 4, 1 + row % 12, 3),
        None if row % 7 == 0 else round(row * 12.25 - 8, 2),
        row % 13,
    )
    for row in range(130)
]
NAMES = ["name", "town", "born", "paid", "kids"]


def plain(row):
    return [*row[:2], row[2].isoformat(), "n.a." if row[3] is None else f"{row[3]}", str(row[4])]


def typed(row):
    """As a format with types holds it: no text among numbers."""
    return [*row[:2], row[2].isoformat(), "" if row[3] is None else f"{row[3]}", str(row[4])]


def continental(row):
    """1.234,50 € — with a space that no line breaks at."""
    paid = "n.a." if row[3] is None else f"{row[3]:,.2f} €".translate(str.maketrans(",.", ".,")).replace(" ", "\u00a0")
    return [*row[:2], row[2].isoformat(), paid, f"{row[4]},0"]


def text(delimiter=",", encoding="utf-8", spell=plain, pack=lambda content: content):
    def write(path):
        written = io.StringIO()
        csv.writer(written, delimiter=delimiter).writerows([NAMES, *map(spell, ROWS)])
        path.write_bytes(pack(written.getvalue().encode(encoding)))

    return write


def packed(codec):
    def pack(content):
        with pa.BufferOutputStream() as out:
            with pa.CompressedOutputStream(out, codec) as stream:
                stream.write(content)
            return out.getvalue().to_pybytes()

    return pack


def workbook(path, rows=None, sheets=("data",)):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    for index, name in enumerate(sheets):
        sheet = book.active if index == 0 else book.create_sheet()
        sheet.title = name
        sheet.append([])
        for row in rows or [NAMES, *([*row[:3], "n.a." if row[3] is None else row[3], row[4]] for row in ROWS)]:
            sheet.append(row)
    book.save(path)


def frame():
    columns = zip(*ROWS, strict=True)
    return pd.DataFrame({name: list(values) for name, values in zip(NAMES, columns, strict=True)})


def spss(path):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(frame(), str(path))


def stata(path):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_dta(frame(), str(path))


def sas(path):
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_xport(frame(), str(path))


def with_index(path):
    frame().set_index(pd.Index([f"{CANARY}-{row}" for row in range(len(ROWS))])).to_parquet(path)


EURO = {"decimal": ",", "strip": ["€", " ", "."]}
AS_PEOPLE_HAVE_IT = {
    "t.csv": (text(), {}),
    "t.tsv": (text("\t"), {}),
    "t.txt": (text("\t"), {}),
    "semicolon.csv": (text(";", spell=continental), {"delimiter": ";", **EURO}),
    "pipe.txt": (text("|"), {"delimiter": "pipe"}),
    "latin.csv": (text(";", "latin-1"), {"delimiter": "semicolon", "encoding": "latin-1"}),
    "windows.csv": (text(";", "cp1252", continental), {"delimiter": ";", "encoding": "windows-1252", **EURO}),
    "utf16.txt": (text("\t", "utf-16"), {"encoding": "utf-16"}),
    "utf16le.tsv": (
        text("\t", "utf-16-le", pack=lambda content: codecs.BOM_UTF16_LE + content),
        {"encoding": "utf-16-le"},
    ),
    "t.csv.gz": (text(pack=gzip.compress), {}),
    "t.tsv.zst": (text("\t", pack=packed("zstd")), {}),
    "latin.txt.bz2": (text("\t", "latin-1", pack=packed("bz2")), {"encoding": "latin-1"}),
    "t.parquet": (with_index, {}),
    "t.xlsx": (workbook, {}),
    "t.sav": (spss, {}),
    "t.dta": (stata, {}),
    "t.xpt": (sas, {}),
}

TYPED = ("t.parquet", "t.sav", "t.dta", "t.xpt")


def counted(engine, schema):
    """Every marginal of one column, over the rows that are kept."""
    schema.check_header(engine.header())
    encoding = schema.encoding()
    engine.prepare(encoding)
    queries = [MarginalQuery(encoding.domain, (name,)) for name in encoding.domain.names]
    return [exact.opened().tolist() for exact in engine.count(queries)]


@pytest.mark.parametrize("name", AS_PEOPLE_HAVE_IT)
def test_the_same_rows_of_the_same_persons_are_kept_however_the_table_is_written(name, tmp_path):
    schema = Schema.parse(SCHEMA)
    key = b"a key of 16 byte"
    text(spell=typed if name in TYPED else plain)(tmp_path / "plain.csv")
    expected = counted(open_engine(tmp_path / "plain.csv", bounding_key=key), schema)
    assert sum(expected[0]) == 12
    write, file = AS_PEOPLE_HAVE_IT[name]
    write(tmp_path / name)
    declared = schema.with_file(file)
    found = counted(open_engine(tmp_path / name, declared.written, bounding_key=key), declared)
    assert found == expected


values = st.text(st.characters(codec="latin-1", exclude_characters="\0"), max_size=5)


@LIMITS
@given(
    st.lists(st.tuples(values, values), max_size=8),
    st.sampled_from([";", "\t", "|", ",", " "]),
    st.sampled_from(["utf-8", "latin-1", "utf-16", "utf-8-sig", "gb18030"]),
    st.sampled_from([("", bytes), (".gz", packed("gzip")), (".zst", packed("zstd"))]),
)
def test_what_was_written_is_read(tmp_path, rows, delimiter, encoding, how):
    """Whatever the fields hold, in whatever letters, packed or not."""
    rows = [(one, "x" + other) for one, other in rows]  # a line with nothing on it is no row
    ending, pack = how
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([("a", "b ü"), *rows])
    path = tmp_path / f"t.csv{ending}"
    path.write_bytes(pack(written.getvalue().encode("gb18030" if encoding == "gb18030" else encoding)))
    source = open_source(path, Written(File(delimiter=delimiter, encoding=encoding)))
    assert source.header() == ("a", "b ü")
    found = [row for batch in source.batches(["b ü", "a"]) for row in batch.to_pylist()]
    assert [(row["a"], row["b ü"]) for row in found] == rows


@LIMITS
@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 3),
    st.sampled_from([".", ","]),
    st.sampled_from(["", " ", "\u00a0", "'", "thousands"]),
    st.sampled_from(["", "€", "EUR ", " %"]),
    st.booleans(),
)
def test_signs_and_thousands_change_no_number(whole, digits, decimal, between, currency, before):
    value = whole / 10**digits
    other = "," if decimal == "." else "."
    separator = other if between == "thousands" else between
    spelled = f"{value:,.{digits}f}".replace(",", "\1").replace(".", decimal).replace("\1", separator)
    spelled = currency + spelled if before else spelled + currency
    cleaning = Cleaning(("€", "EUR", "%", " ", "'", other), decimal)
    array = pa.array([CANARY, spelled, None, "n.a.", ".", "-"])
    cleaned = cleaning(array)
    assert float(cleaned[1].as_py()) == value
    assert cleaned.to_pylist()[2:] == array.to_pylist()[2:]  # marks and nothing stay what they are
    assert cleaned[0].as_py() == CANARY
    for row in range(len(array)):
        assert cleaning(array.slice(row, 1))[0] == cleaned[row]
    coded = cleaning(array.dictionary_encode())
    assert coded.cast(pa.string()) == cleaned


def test_a_number_with_the_other_decimal_sign_is_no_number():
    """Better a misfit that is counted than 1.234 where 1234 was meant."""
    schema = Schema.parse("columns: {x: {type: number, min: 0, max: 2000, bins: 2}}")
    commas = schema.with_file({"decimal": ","})
    table = pa.table({"x": ["1.234", "1,5", "7"]})
    for declared, unread in ((schema, 1), (commas, 1), (commas.with_file({"strip": "."}), 0)):
        batches = open_source(table, declared.written).batches(["x"])
        assert count_misfits(batches, declared)[0].unread == unread


def test_values_of_a_category_are_left_alone_unless_the_column_says_so(tmp_path):
    schema = """
file: {decimal: ",", strip: [" "]}
columns:
  a: {type: category, values: ["1,5", New York]}
  b: {type: category, values: [x], strip: ["*"]}
"""
    (tmp_path / "t.tsv").write_text('a\tb\n1,5\tx*\n"New York"\t*x*\n')
    declared = Schema.parse(schema)
    batches = open_source(tmp_path / "t.tsv", declared.written).batches(["a", "b"])
    assert [misfits.outside + misfits.blank for misfits in count_misfits(batches, declared)] == [0, 0]


@pytest.mark.parametrize(
    ("file", "code", "where"),
    [
        ('{delimeter: ";"}', "unknown-key", 'file: unknown key "delimeter"'),
        ("{delimiter: ab}", "bad-delimiter", "file.delimiter: "),
        ('{delimiter: "\\""}', "bad-delimiter", "file.delimiter: "),
        ("{decimal: ;}", "bad-decimal", "file.decimal: "),
        ("{encoding: rot13}", "unknown-encoding", "file.encoding: "),
        ("{encoding: utf-7}", "unknown-encoding", "file.encoding: "),
        ("{strip: [.]}", "strips-decimal", 'file.strip: "."'),
        ('{strip: ["1"]}', "bad-strip", "file.strip: "),
        ("{strip: [[a]]}", "not-text", "file.strip: "),
        ("csv", "not-a-mapping", "file: "),
    ],
)
def test_a_file_that_is_declared_wrongly_is_refused_with_its_line(file, code, where):
    with refused(code, f"schema, line 1: {where}"):
        Schema.parse(f"file: {file}\ncolumns: {{x: {{type: number, min: 0, max: 1, bins: 2}}}}\n")


def test_what_is_said_of_a_file_reads_back():
    schema = Schema.parse(
        'file: {delimiter: tab, encoding: Latin-1, sheet: 2, strip: ["€", " "]}\n'
        "columns: {x: {type: integer, min: 0, max: 1, strip: '%'}}\n"
    )
    assert schema.to_dict()["file"] == {"delimiter": "\t", "encoding": "Latin-1", "sheet": "2", "strip": ["€", " "]}
    assert schema.to_dict()["columns"]["x"]["strip"] == ["%"]
    assert Schema.parse(schema.to_yaml()) == Schema.from_dict(schema.to_dict()) == schema
    assert schema.with_file({"sheet": "a"}).file.sheet == "a"
    assert schema.with_file({"sheet": "a"}).file.delimiter == "\t"


def test_a_column_without_a_name_need_not_be_declared(tmp_path):
    """What pandas and R write in front of the columns, and a delimiter too many behind them."""
    schema = Schema.parse("columns: {a: {type: code, size: 9}}")
    for content in (",a\n0,1\n", '"","a"\n"1",2\n', "a,,\n1,,\n", "Unnamed: 0,a\n0,1\n"):
        (tmp_path / "t.csv").write_text(content)
        source = open_source(tmp_path / "t.csv")
        schema.check_header(source.header())
        assert len(next(iter(source.batches(["a"])))) == 1
    (tmp_path / "t.csv").write_text(",a,\n1,2,3\n")
    with refused("duplicate-column"):
        list(open_source(tmp_path / "t.csv").batches(["", "a"]))


def test_strip_is_not_for_databases():
    schema = Schema.parse("columns: {x: {type: integer, min: 0, max: 9, strip: '%'}}")
    for opened in (open_engine, open_source):
        with refused("strip-in-database", '"x"'):
            opened("duckdb://none.db/t", schema.written)


# ------------------------------------------------------------ workbooks


def test_a_cell_is_text_by_itself(tmp_path):
    """Whatever its neighbours hold: 39 and 39.0 are one text, a date is a date."""
    when = datetime.datetime(2020, 1, 2, 3, 4, 5)
    rows = [["a", 2020, None], [39, when, "x"], [39.0, when.date(), None], [True, "007", 0.1], [], ["", None, "y"]]
    workbook(tmp_path / "t.xlsx", rows)
    source = open_source(tmp_path / "t.xlsx")
    assert source.header() == ("a", "2020", "")
    found = pa.Table.from_batches(source.batches(["2020", "a", ""])).to_pydict()
    assert found["a"] == ["39", "39", "true", ""]
    assert found["2020"] == ["2020-01-02T03:04:05", "2020-01-02", "007", ""]
    assert found[""] == ["x", "", "0.1", "y"]


def test_which_sheet_is_said_and_not_guessed(tmp_path):
    path = tmp_path / "t.xlsx"
    workbook(path, [["a"], [1]], [f"first {CANARY}", "second"])
    with refused("which-sheet") as caught:
        open_source(path)
    assert CANARY not in str(caught.value)
    for sheet in ("2", "second"):
        assert open_source(path, Written(File(sheet=sheet))).header() == ("a",)
    for sheet in ("3", "0", "third"):
        with refused("unknown-sheet", f'"{sheet}"') as caught:
            open_source(path, Written(File(sheet=sheet)))
        assert CANARY not in str(caught.value)


def book_of(rows):
    """A workbook as small as one can be, of a sheet's own XML."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    packages = "http://schemas.openxmlformats.org/package/2006"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{packages}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r" '
        f'Type="{kinds}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kinds}"><sheets><sheet name="s" sheetId="1" r:id="r"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{packages}/relationships"><Relationship Id="r" '
        f'Type="{kinds}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in members.items():
            book.writestr(name, content)
    return held.getvalue()


FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


@pytest.mark.parametrize("rows", [FAR, f"<row>{'<c><v>1</v></c>' * 100}</row>" * 40_000], ids=["far", "many"])
def test_a_workbook_that_unpacks_to_more_than_there_is_is_refused(rows, tmp_path):
    """Two cells at opposite corners ask for 400 GB; a megabyte of zip for half a gigabyte."""
    pytest.importorskip("python_calamine")
    path = tmp_path / "t.xlsx"
    path.write_bytes(book_of('<row r="1"><c r="A1"><v>1</v></c></row>'))
    assert open_source(path).header() == ("1",)
    path.write_bytes(book_of(rows))
    assert path.stat().st_size < 1 << 20
    with refused("table-too-large", "32 MB"):
        open_source(path, memory=1 << 26)


@pytest.mark.parametrize(("ending", "extra"), [("xlsx", "excel"), ("sav", "draft")])
def test_a_reader_that_is_not_installed_is_named_with_its_extra(ending, extra, tmp_path, monkeypatch):
    for module in ("python_calamine", "pyreadstat"):
        (tmp_path / f"{module}.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / f"t.{ending}").write_bytes(b"x")
    with refused("missing-package", f"hedgerow[{extra}]"):
        open_source(tmp_path / f"t.{ending}")


# ------------------------------------------------------------ statistical packages


def test_codes_and_letters_of_stata_stay_and_types_follow_from_what_the_file_says(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    table = pd.DataFrame({"a": [1.0, "a", 2.5], "b": [1.0, "b", 2.0], "s": ["x", "", "é"]})
    labels = {"a": {1: "one", "a": "refused"}}
    missing = {"a": ["a"], "b": ["b"]}
    pyreadstat.write_dta(table, str(tmp_path / "t.dta"), missing_user_values=missing, variable_value_labels=labels)
    found = pa.Table.from_batches(open_source(tmp_path / "t.dta").batches(["s", "b", "a"])).to_pydict()
    assert found == {"s": ["x", "", "é"], "b": [1.0, None, 2.0], "a": ["1", ".a", "2.5"]}


def test_codes_that_spss_declares_as_missing_stay(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    table = pd.DataFrame({"a": [1.0, -8.0, np.nan], "t": [datetime.datetime(2020, 1, 2, 3, 4, 5)] * 3})
    pyreadstat.write_sav(table, str(tmp_path / "t.sav"), missing_ranges={"a": [-8]})
    found = pa.Table.from_batches(open_source(tmp_path / "t.sav").batches(["a", "t"])).to_pydict()
    assert found == {"a": [1.0, -8.0, None], "t": ["2020-01-02T03:04:05"] * 3}


def test_a_large_file_comes_in_parts(tmp_path):
    """As many rows at a time as the memory allows; none is lost or comes twice."""
    pyreadstat = pytest.importorskip("pyreadstat")
    pyreadstat.write_sav(pd.DataFrame({"a": np.arange(20_000.0)}), str(tmp_path / "t.sav"))
    batches = list(open_source(tmp_path / "t.sav", memory=1 << 26).batches(["a"]))
    assert len(batches) == 2
    assert np.array_equal(np.concatenate([batch["a"].to_numpy() for batch in batches]), np.arange(20_000.0))


# ------------------------------------------------------------ packed files


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_packed_file_is_unpacked_piece_by_piece(codec, tmp_path, monkeypatch):
    """Arrow reads 32 blocks ahead at most, whatever the file unpacks to: 8 of these 64 MB."""
    monkeypatch.setattr(source_module, "_CSV_BLOCK", 1 << 18)
    path = tmp_path / f"t.csv{'.gz' if codec == 'gzip' else '.zst'}"
    path.write_bytes(packed(codec)(b"a,b\n" + (b"x" * 1000 + b",2\n") * (1 << 16)))
    assert path.stat().st_size < 1 << 20
    most = rows = 0
    before = pa.total_allocated_bytes()
    for batch in open_source(path).batches(["a", "b"]):
        most, rows = max(most, pa.total_allocated_bytes() - before), rows + batch.num_rows
    assert rows == 1 << 16
    assert most < 1 << 25


@pytest.mark.parametrize("cut", [100, 1000])
@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2"])
def test_a_packed_file_that_is_cut_short_or_goes_on_is_refused(codec, cut, tmp_path):
    rows = "".join(f"{row * 2654435761 % 99991},{row}\n" for row in range(5000))
    content = packed(codec)(f"a,b\n{rows}".encode())
    path = tmp_path / f"t.csv{ {'gzip': '.gz', 'zstd': '.zst', 'bz2': '.bz2'}[codec] }"
    for damaged in (content[: cut * 5], content + b"rubbish" * 3):
        path.write_bytes(damaged)
        with refused("unreadable-table", "t.csv"):
            list(open_source(path).batches(["a", "b"]))


@pytest.mark.parametrize(("above", "skip"), [("Sales of 2020\n", 1), ('"A "" title, of\n\n12"" pipes\n', 3), ("", 0)])
def test_lines_above_the_header_are_left_out_of_text(above, skip, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(above + "a,b\n1,2\n3,4\n", encoding="utf-8")
    source = open_source(path, Written(File(skip=skip)))
    assert source.header() == ("a", "b")
    assert [batch.to_pydict() for batch in source.batches(["b"])] == [{"b": ["2", "4"]}]


def test_lines_above_the_header_are_left_out_of_workbooks(tmp_path):
    path = tmp_path / "t.xlsx"
    workbook(path, [["Sales of 2020"], [], *([list("ab"), ["1", "2"]])])  # below an empty row
    source = open_source(path, Written(File(skip=3)))
    assert source.header() == ("a", "b")
    assert [batch.to_pydict() for batch in source.batches(["b"])] == [{"b": ["2"]}]


def test_a_title_above_the_header_is_not_drafted(hedgerow, tmp_path):
    workbook(tmp_path / "t.xlsx", [["Sales of 2020", None, None], list("abc"), list("123")])
    done = hedgerow("schema", "draft", "t.xlsx", "-o", "t.yaml")
    assert code_in(done.err) == "no-header"
    assert "Sales" not in done.err
    assert hedgerow("schema", "draft", "t.xlsx", "-o", "t.yaml", "--file", "skip=2").code == 0
    assert "skip: 2" in (tmp_path / "t.yaml").read_text(encoding="utf-8")


def test_more_lines_than_there_are_leave_no_header(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with refused("no-header"):
        open_source(tmp_path / "t.csv", Written(File(skip=9)))
    with refused("bad-skip"):
        Schema.parse("file: {skip: -1}\ncolumns: {x: {type: boolean}}")
