"""A published folder of linked tables: keys, links and bounds stand wherever a reader looks for them."""

import csv
import json
import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from hedgerow.budget.amounts import Budget
from hedgerow.coded.query import MarginalQuery
from hedgerow.pages.release import release_page
from hedgerow.private.engines.linked import open_tables
from hedgerow.private.quality import CountedTables
from hedgerow.publish import folder
from hedgerow.publish.documents import template
from hedgerow.publish.facts import facts_of
from hedgerow.publish.publication import Publication, made_with, tables_of
from hedgerow.publish.publisher import Publisher
from hedgerow.release.bundle import Release, Trust
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from hedgerow.schema.links import rows_of
from publishing import ANSWERS, sealed
from refusals import refused

SCHEMA = """
dataset: schools
tables:
  Class:
    key: id
    parent: our schools
    link: school
    max_per_parent: 3
    columns:
      kind: {type: category, values: [a, b], missing: true}
  our schools:
    key: _id
    columns:
      size: {type: category, values: [small, large]}
    ignore: [name]
  class:
    parent: Class
    link: of-class
    order: day
    max_per_parent: 4
    columns:
      day: {type: date, min: 2020-01-01, max: 2020-12-31, step: month}
      mark: {type: integer, min: 1, max: 6, bins: 6}
"""
FILES = {"our schools": "our-schools", "Class": "Class", "class": "class-2"}
UNITS = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release of three levels, with names that need care, and the folder of its publication."""
    home = tmp_path_factory.mktemp("linked")
    lots = np.random.default_rng(0)
    schools = pa.table({"_id": np.arange(UNITS), "size": ["small", "large"] * (UNITS // 2), "name": ["x"] * UNITS})
    above = lots.integers(0, UNITS, 2 * UNITS)
    classes = pa.table({"id": np.arange(len(above)), "school": above, "kind": ["a", "b", ""] * (len(above) // 3)})
    below = lots.integers(0, len(above), 4 * UNITS)
    days = np.datetime64("2020-01-01") + lots.integers(0, 360, len(below))
    marks = pa.table({"of-class": below, "day": days, "mark": lots.integers(1, 7, len(below))})
    tables = {"our schools": schools, "Class": classes, "class": marks}
    synthesize(tables, Schema.parse(SCHEMA), Budget(20.0, 1e-6), "independent").save(home / "s.release")
    folder.write(home / "folder", publication_of(home), home / "s.release")
    return home


def publication_of(home, rows=UNITS, seed=0):
    release = Release.load(home / "s.release")
    facts = Publisher.of(ANSWERS, "publisher.yaml")
    return Publication(release, "s.release", tables_of(release, "s", rows, seed), facts, None, made_with())


def rows_in(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made / "folder", tmp_path / "folder")


def test_the_folder_holds_all_tables_and_is_confirmed_whole(made):
    _, confirmed, _, doubt = folder.verify(made / "folder", Trust())
    assert doubt is None
    said = json.loads((made / "folder" / "publication.json").read_text())["tables"]
    assert [each["name"] for each in said] == list(FILES.values())
    for each in said:
        rows = rows_in(made / "folder" / f"{each['name']}.csv")
        assert len(rows) == each["rows"] == pq.read_metadata(made / "folder" / f"{each['name']}.parquet").num_rows
        assert any(f"{each['name']}.csv" in line and "drawn again" in line for line in confirmed)
    assert said[0]["rows"] == UNITS


def test_every_link_that_a_catalogue_names_fits(made):
    """Read with the metadata alone: no link leads nowhere, no key stands twice."""
    path = made / "folder"
    package = json.loads((path / "datapackage.json").read_text())
    web = {each["url"]: each["tableSchema"] for each in json.loads((path / "csvw.json").read_text())["tables"]}
    sets = {each["@id"]: each for each in json.loads((path / "croissant.json").read_text())["recordSet"]}
    held = {each["name"]: (each, rows_in(path / each["path"])) for each in package["resources"]}
    linked = 0
    for resource, rows in held.values():
        assert [field["name"] for field in resource["schema"]["fields"]] == list(rows[0])
        key = resource["schema"].get("primaryKey")
        if key is not None:
            assert len({row[key] for row in rows}) == len(rows)
        for foreign in resource["schema"].get("foreignKeys", []):
            linked += 1
            above, known = held[foreign["reference"]["resource"]]
            there = foreign["reference"]["fields"]
            assert {row[foreign["fields"]] for row in rows} <= {row[there] for row in known}
            (same,) = web[resource["path"]]["foreignKeys"]
            assert same["reference"]["resource"] == above["path"]
            names = {column.get("name"): column["titles"] for column in web[resource["path"]]["columns"]}
            assert names[same["columnReference"]] == foreign["fields"]
            records = sets[resource["path"].removesuffix(".csv")]["field"]
            (refers,) = [field["references"]["field"]["@id"] for field in records if "references" in field]
            assert refers in [field["@id"] for field in sets[above["path"].removesuffix(".csv")]["field"]]
            assert refers == sets[above["path"].removesuffix(".csv")]["key"]["@id"]
    assert linked == 2


def test_the_registry_is_told_what_a_unit_is(made):
    loss = yaml.safe_load((made / "folder" / "registry.yaml").read_text())["deployment"]["privacy_loss"]
    assert loss["privacy_unit"] == "A key of our schools, with all rows that link to it"
    assert len(str(loss["privacy_parameters"]["epsilon"])) < 12


def test_ddi_tells_the_files_apart_and_names_their_keys(made):
    root = ElementTree.parse(made / "folder" / "ddi.xml").getroot()
    space = {"d": "ddi:codebook:2_5"}
    variables = {each.get("ID"): each for each in root.findall("d:dataDscr/d:var", space)}
    keys = [each.get("keyvar") for each in root.iterfind("d:fileDscr/d:fileTxt/d:fileStrc/d:recGrp", space)]
    assert [variables[key].get("name") if key else None for key in keys] == ["_id", "id", None]
    files = [each.get("ID") for each in root.findall("d:fileDscr", space)]
    assert [variables[key].get("files") for key in keys if key] == files[:2]


def test_the_statement_says_what_a_unit_is(made):
    said = (made / "folder" / "statement.md").read_text()
    words = " ".join(said.split())
    assert "key of our schools (`_id`)" in words
    assert "at most 3 rows of Class" in words
    assert "at most 4 rows of class" in words
    assert "the **person**" not in said
    assert "our schools.name" in words  # left out
    entry = yaml.safe_load((made / "folder" / "registry.yaml").read_text())["deployment"]
    assert "differ by one unit" in entry["privacy_loss"]["privacy_unit_details"]


def test_an_exchanged_row_in_any_table_is_refused(made, copied):
    for name in FILES.values():
        table = pq.read_table(copied / f"{name}.parquet")
        pq.write_table(pa.concat_tables([table.slice(1), table.slice(0, 1)]), copied / f"{name}.parquet")
        data = json.loads((copied / "publication.json").read_bytes())
        held = Publication.from_json(data, Release.load(copied / "s.release"), "x")
        files = {each: folder._file(copied, each) for each in folder._data_names(held)}
        for each, text in folder.documents(held, files, {}).items():
            (copied / each).write_bytes(text)
        sealed(copied)
        with refused("rows-not-confirmed", name):
            folder.verify(copied, Trust())
        shutil.rmtree(copied)
        shutil.copytree(made / "folder", copied)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda tables: tables[:2], "publication-tables"),
        (lambda tables: [*tables, {"name": "more", "rows": 1, "seed": 0}], "publication-tables"),
        (lambda tables: [tables[0], tables[1], tables[1]], "publication-tables"),
        (lambda tables: [*tables[:2], {**tables[2], "rows": tables[2]["rows"] + 1}], "publication-documents"),
    ],
)
def test_other_tables_than_those_of_the_schema_are_refused(copied, change, code):
    data = json.loads((copied / "publication.json").read_bytes())
    (copied / "publication.json").write_text(json.dumps({**data, "tables": change(data["tables"])}))
    sealed(copied)
    with refused(code):
        folder.verify(copied, Trust())


def test_a_folder_that_is_no_draw_is_not_published(made, tmp_path):
    held = publication_of(made)
    given = tmp_path / "given"
    given.mkdir()
    for name, file in FILES.items():
        shutil.copy(made / "folder" / f"{file}.csv", given / f"{name}.csv")
    assert folder.as_many_rows(held, given).tables[0].rows == UNITS
    assert folder.write(tmp_path / "f", held, made / "s.release", given=given)
    lines = (given / "class.csv").read_text().splitlines(keepends=True)
    (given / "class.csv").write_text("".join([lines[0], *lines[2:], lines[1]]))
    with refused("not-a-draw", "class.csv"):
        folder.write(tmp_path / "g", held, made / "s.release", given=given)
    (given / "class.csv").unlink()
    with refused("no-such-table-file", "class"):
        folder.write(tmp_path / "g", held, made / "s.release", given=given)
    assert not (tmp_path / "g").exists()


def test_every_branch_of_every_template_has_its_facts(made):
    known = facts_of(publication_of(made))
    for name in ("statement.md", "README.md", "datasheet.md", "codebook.md", "registry.md"):
        asked = set(re.findall(r"^::(?:if|each) ([a-z_]+)$", template(name), re.M))
        inside = {key for value in known.values() if isinstance(value, list) for each in value for key in each}
        inside |= {key for each in known["tables"] for column in each["columns_of_table"] for key in column}
        assert asked <= known.keys() | inside | {"opened", "ledger_presence"}, name


def test_drawn_tables_are_weighed_as_private_ones_are(made):
    release = Release.load(made / "s.release")
    links = release.schema.linked
    engine = open_tables(release.sample(UNITS, 3), release.schema, bounding_key=b"")
    engine.prepare(release.encoding)
    recounted = release.recounted(UNITS, 3)
    assert rows_of("our schools", "Class") in recounted.names
    scale = release.model.total / (UNITS * links.parts)
    asked = [(name,) for name in sorted(recounted.names)] + [("class.day", "class.mark"), ()]
    queries = [MarginalQuery(release.encoding.domain, each) for each in asked]
    theirs = CountedTables(engine, scale).answers(queries)
    for mine, other in zip(recounted.answers(queries), theirs, strict=True):
        assert mine == pytest.approx(other)


def test_the_page_speaks_of_units(made):
    page = release_page(Release.load(made / "s.release"), UNITS)
    assert "60 made-up units" in page
    assert "row limit per person" not in page
    assert "our schools.rows(Class)" in page


def test_the_formats_own_validators_agree(made):
    """hedgerow[validators]"""
    frictionless = pytest.importorskip("frictionless")
    report = frictionless.validate(str(made / "folder" / "datapackage.json"))
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])
    croissant = pytest.importorskip("mlcroissant").Dataset(jsonld=str(made / "folder" / "croissant.json"))
    assert not croissant.metadata.ctx.issues.errors
    assert len(list(croissant.records(record_set="our-schools"))) == UNITS
    described = pytest.importorskip("csvw").CSVW(str(made / "folder" / "csvw.json"), validate=True)
    assert described.is_valid
    described.t.check_referential_integrity()


def test_publish_and_verify_on_the_command_line(made, tmp_path, server):
    (tmp_path / "publisher.yaml").write_text(yaml.safe_dump(ANSWERS))
    shutil.copy(made / "s.release", tmp_path)
    run = lambda *words: server.run(words, tmp_path)  # noqa: E731
    assert run("sample", "s.release", "-o", "drawn", "--rows", 40, "--seed", 2, "-q").code == 0
    done = run("publish", "s.release", "--table", "drawn", "--seed", 2, "-o", "out", "--zip", "-q")
    assert done.code == 0, done.err
    assert len(rows_in(tmp_path / "out" / "our-schools.csv")) == 40
    checked = run("verify", "out")
    assert checked.code == 0, checked.err
    assert run("publish", "s.release", "--table", "s.release", "-o", "b", "-q").refusal == "no-such-table-file"
    assert run("publish", "s.release", "--table", "drawn", "-o", "b", "-q").refusal == "not-a-draw"
    assert not (tmp_path / "b").exists()


def test_a_folder_of_no_rows_is_a_folder(made, tmp_path):
    held = publication_of(made, rows=0)
    folder.write(tmp_path / "f", replace(held), made / "s.release")
    assert folder.verify(tmp_path / "f", Trust())[3] is None


def test_persons_that_are_kept_are_published_as_one_table(tmp_path):
    """A table and its columns, the person's number among them; the unit is a person with all rows."""
    declared = {
        "person": "who",
        "max_rows_per_person": 4,
        "keep": "person",
        "person_columns": ["sex"],
        "columns": {"mark": {"type": "code", "size": 6}, "sex": {"type": "category", "values": ["f", "m"]}},
    }
    lots = np.random.default_rng(0)
    who = lots.integers(0, UNITS, 3 * UNITS)
    rows = pa.table({"who": who, "mark": lots.integers(0, 6, len(who)), "sex": np.array(["f", "m"])[who % 2]})
    synthesize(rows, Schema.from_dict(declared), Budget(20.0, 1e-6), "independent").save(tmp_path / "s.release")
    folder.write(tmp_path / "folder", publication_of(tmp_path), tmp_path / "s.release")
    with open(tmp_path / "folder" / "s.csv", encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["who", "mark", "sex"]
    assert len({line[0] for line in lines}) == UNITS
    fields = json.loads((tmp_path / "folder" / "datapackage.json").read_text(encoding="utf-8"))["resources"][0][
        "schema"
    ]
    assert [field["name"] for field in fields["fields"]] == header
    assert "a number for each person" in (tmp_path / "folder" / "codebook.md").read_text(encoding="utf-8").lower()
    _, confirmed, _, doubt = folder.verify(tmp_path / "folder", Trust())
    assert doubt is None
    assert any(f"{len(lines)} rows of s.csv" in said for said in confirmed)
    made = folder.as_many_rows(publication_of(tmp_path, rows=7), tmp_path / "folder" / "s.csv")
    assert made.tables[0].persons == UNITS
    folder.write(tmp_path / "again", made, tmp_path / "s.release", given=tmp_path / "folder" / "s.parquet")
