"""A published folder: it follows from the release and the publisher's words, and any change to it shows."""

import csv
import hashlib
import html
import json
import re
import shutil
import socket
import zipfile
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.answers.cells import Tabulating
from hedgerow.budget.amounts import Budget
from hedgerow.errors import HedgerowError, ReleaseError, visible
from hedgerow.private.ledger import Ledger
from hedgerow.publish import counts, folder, sdmx
from hedgerow.publish.documents import template
from hedgerow.publish.facts import facts_of
from hedgerow.publish.markdown import escaped, page_body
from hedgerow.publish.publication import Publication, Table, made_with
from hedgerow.publish.publisher import QUESTIONS, SECTORS, Publisher, draft, load
from hedgerow.publish.template import filled
from hedgerow.release.bundle import Release, Trust
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from publishing import ANSWERS, sealed
from refusals import refused

SCHEMA = """
dataset: people
columns:
  kind: {type: category, values: ["=a", "-b", "c|d", "<script>", "it's"], missing: {"": nothing, "-8": refused}}
  flag: {type: boolean, missing: true}
  size: {type: integer, min: 0, max: 20, special: [99]}
  part: {type: number, min: 0, max: 1, bins: 4}
  day: {type: date, min: 2020-01-01, max: 2020-12-31, step: month}
  when: {type: datetime, min: 2020-01-01 00:00:00, max: 2020-01-03 23:59:59, step: hour}
  key: {type: id, pattern: "C-####"}
  note: {type: text}
"""
ROWS = 300


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release with many kinds of columns, and the folder of its publication, signed."""
    home = tmp_path_factory.mktemp("made")
    rows = pa.table(
        {
            "kind": ["=a", "-b", "c|d", "<script>", "-8", ""] * 50,
            "flag": ["true", "", "false"] * 100,
            "size": [3, 99, 20] * 100,
            "part": [0.1, 0.9, 0.4] * 100,
            "day": ["2020-02-03", "2020-12-31", "2020-07-01"] * 100,
            "when": ["2020-01-01 05:00:00", "2020-01-02 06:30:00", "2020-01-03 23:59:59"] * 100,
            "key": ["x"] * ROWS,
            "note": ["secret"] * ROWS,
        }
    )
    synthesize(rows, Schema.parse(SCHEMA), Budget(2.0, 1e-9), "independent").save(home / "people.release")
    key = Ed25519PrivateKey.generate()
    (home / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    publish(home, home / "folder", key=home / "key.pem")
    return home


def publication_of(home, rows=ROWS, seed=0, **answers):
    release = Release.load(home / "people.release")
    facts = Publisher.of({**ANSWERS, **answers}, "publisher.yaml")
    return Publication(release, "people.release", (Table("people", rows, seed),), facts, None, made_with())


def publish(home, out, key=None, translations=None, **more):
    return folder.write(out, publication_of(home, **more), home / "people.release", key=key, translations=translations)


@pytest.fixture
def copied(made, tmp_path):
    return shutil.copytree(made / "folder", tmp_path / "folder")


def test_a_folder_is_confirmed_whole(made):
    release, confirmed, signer, doubt = folder.verify(made / "folder", Trust())
    assert doubt is None
    assert signer
    assert release.guarantee.epsilon == pytest.approx(2.0)
    assert any("drawn again" in line for line in confirmed)
    assert any("to the letter" in line for line in confirmed)


def test_the_same_folder_comes_out_twice_and_names_no_place(made, tmp_path):
    publish(made, tmp_path / "again", key=made / "key.pem")
    for name in folder._names(made / "folder"):
        data = (tmp_path / "again" / name).read_bytes()
        assert data == (made / "folder" / name).read_bytes(), name
        for word in (str(made), str(tmp_path), socket.gethostname(), "secret"):
            assert word.encode() not in data or len(word) < 4, (name, word)


@pytest.mark.parametrize("name", [folder.SUMS, folder.SIGNATURE, folder.PUBLIC_KEY])
def test_any_byte_that_was_altered_is_refused_in_what_vouches_for_the_others(copied, name, monkeypatch):
    """Checksums also where nobody signed them. A line once could end in any sign that Python takes for the end of a
    line, and a key could hold spaces. Hashing is replaced here, because the other files are as they were.
    """
    digests = {each: folder._digest(copied / each) for each in folder._names(copied)}
    monkeypatch.setattr(folder, "_digest", lambda path: digests[path.relative_to(copied).as_posix()])
    if name == folder.SUMS:
        (copied / folder.SIGNATURE).unlink()
        (copied / folder.PUBLIC_KEY).unlink()
    folder._check_sums(copied)
    whole = (copied / name).read_bytes()
    others = [whole + b"\n", b"\n" + whole, whole + b" ", whole.rstrip(b"\n") + b"\r\n", whole[:-1], b""]
    for place in range(len(whole)):
        others += [bytes([*whole[:place], whole[place] ^ 1 << bit, *whole[place + 1 :]]) for bit in {0, place % 8}]
    for other in others:
        (copied / name).write_bytes(other)
        with pytest.raises(ReleaseError):
            folder._check_sums(copied)


def test_a_byte_that_was_altered_anywhere_is_refused(copied):
    """At both ends of every file, and at a place that chance chooses."""
    lots = np.random.default_rng(0)
    for name in folder._names(copied):
        whole = (copied / name).read_bytes()
        for place in {0, len(whole) - 1, int(lots.integers(len(whole)))}:
            altered = bytes([*whole[:place], whole[place] ^ int(lots.integers(1, 256)), *whole[place + 1 :]])
            (copied / name).write_bytes(altered)
            with pytest.raises(HedgerowError):
                folder.verify(copied, Trust())
        (copied / name).write_bytes(whole)
    assert folder.verify(copied, Trust())[3] is None


def test_what_lies_beside_or_is_missing_is_refused(copied):
    (copied / "more.csv").write_text("a\n1\n")
    with refused("publication-files", "more.csv"):
        folder.verify(copied, Trust())
    sealed(copied)
    with refused("publication-documents", "more.csv"):
        folder.verify(copied, Trust())
    (copied / "more.csv").unlink()
    (copied / "codebook.md").unlink()
    with refused("publication-files", "codebook.md"):
        folder.verify(copied, Trust())
    (copied / "codebook.md").symlink_to("README.md")
    with refused("publication-files"):
        folder.verify(copied, Trust())


@pytest.mark.parametrize("name", ["statement.md", "registry.yaml", "croissant.json", "statement.html"])
def test_a_document_that_says_something_else_is_refused(copied, name):
    (copied / name).write_bytes((copied / name).read_bytes().replace(b"2", b"1"))
    sealed(copied)
    with refused("publication-documents", name):
        folder.verify(copied, Trust())


@pytest.mark.parametrize("here", [True, False])
def test_an_exchanged_table_is_never_confirmed(copied, here, monkeypatch):
    """Where versions differ it cannot be told from a draw that came out otherwise: that is said, and no more."""
    other = pq.read_table(copied / "people.parquet").slice(1)
    pq.write_table(pa.concat_tables([other, other.slice(0, 1)]), copied / "people.parquet")
    if not here:
        monkeypatch.setattr(folder, "made_with", lambda: {**made_with(), "numpy": "0"})
    data = json.loads((copied / "publication.json").read_bytes())
    files = {name: folder._file(copied, name) for name in ("people.csv", "people.parquet", "people.release")}
    held = Publication.from_json(data, Release.load(copied / "people.release"), "x")
    for name, text in folder.documents(held, files, {}).items():
        (copied / name).write_bytes(text)
    sealed(copied)
    if here:
        with refused("rows-not-confirmed", folder.SAME):
            folder.verify(copied, Trust())
    else:
        doubt = folder.verify(copied, Trust())[3]
        assert doubt is not None
        assert doubt.code == "rows-not-confirmed"


def test_a_table_that_is_no_draw_is_not_published(made, tmp_path):
    table = Release.load(made / "people.release").sample(ROWS, seed=1)
    pq.write_table(table, tmp_path / "t.parquet")
    held = publication_of(made)
    with refused("not-a-draw", "seed 0"):
        folder.write(tmp_path / "f", held, made / "people.release", given=tmp_path / "t.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    held = publication_of(made, seed=1)
    assert folder.write(tmp_path / "f", held, made / "people.release", given=tmp_path / "t.parquet")
    assert folder.as_many_rows(held, tmp_path / "f" / "people.csv").tables[0].rows == ROWS


def test_a_folder_appears_whole_or_not_at_all(made, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "documents", stop)
    with pytest.raises(KeyboardInterrupt):
        publish(made, tmp_path / "f")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    left = tmp_path / ".f.0123.part"  # as a kill leaves it
    left.mkdir()
    (left / "people.csv").write_text("half")
    publish(made, tmp_path / "f")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    with refused("already-exists"):
        publish(made, tmp_path / "f")
    assert folder.verify(tmp_path / "f", Trust())[3] is None


def test_a_name_never_leads_out_of_the_folder(copied):
    data = json.loads((copied / "publication.json").read_bytes())
    for change in ({"release": "../people.release"}, {"tables": [{"name": "../people", "rows": 1, "seed": 0}]}):
        (copied / "publication.json").write_text(json.dumps({**data, **change}))
        sealed(copied)
        with refused("publication-name"):
            folder.verify(copied, Trust())
    (copied / "publication.json").write_text("[]")
    sealed(copied)
    with refused("publication-format"):
        folder.verify(copied, Trust())


def test_tables_of_counts_agree_and_say_what_is_known_of_their_error(made, tmp_path):
    wanted = counts.of([["kind", "flag"], {"columns": ["flag", "size"]}, ["flag"]], "w")
    held = replace(publication_of(made), counts=wanted)
    folder.write(tmp_path / "f", held, made / "people.release")
    assert folder.verify(tmp_path / "f", Trust())[3] is None
    texts = [(tmp_path / "f" / name).read_text() for name in counts.names(wanted)]
    tables = [list(csv.DictReader(text.splitlines())) for text in texts]
    sums = []
    for rows in tables:
        of_flag = dict.fromkeys(row["flag"] for row in rows)
        sums.append([sum(float(row["count"]) for row in rows if row["flag"] == flag) for flag in of_flag])
    for each in sums[1:]:
        assert each == pytest.approx(sums[0], abs=0.1)
    assert all(float(row["noise_std"]) > 0 for row in tables[2])  # measured by itself
    assert all(row["noise_std"] == "" for row in tables[0])  # independent measures no pair
    _same_in_sdmx(tmp_path / "f", tables, texts)
    (tmp_path / "f" / "counts" / "001.csv").write_text("kind,count\n")
    sealed(tmp_path / "f")
    with refused("numbers-not-confirmed", "counts/001.csv"):
        folder.verify(tmp_path / "f", Trust())
    for bad in ([], [[]], ["kind"], [["kind", "kind"]], {"a": 1}, [[1]]):
        with refused("bad-workload"):
            counts.of(bad, "w")
    with refused("unknown-column"):
        counts.counted(held.release, Tabulating(held.release), ("nobody",))
    with refused("too-many-cells"):
        counts.counted(held.release, Tabulating(held.release), ("kind", "size", "part", "day"))


def test_an_interval_in_a_table_of_counts_is_the_one_that_ask_gives(made):
    """Whether a cell is a value, a mark, or a bin of numbers."""
    release = Release.load(made / "people.release")
    wheres = {
        "kind": {"c|d": "kind = 'c|d'", "-8": "kind = '-8'", "'-8": "kind = '-8'"},
        "part": {"0 – 0.25": "part < 0.25", "0.75 – 1": "part >= 0.75"},
        "flag": {"True": "flag"},
    }
    for columns in (("kind",), ("part",), ("kind", "part"), ("kind", "flag")):
        found = counts.counted(release, Tabulating(release), columns)
        lines = list(csv.DictReader(counts.table(release, found).decode().splitlines()))
        cells = {tuple(line[name] for name in found.cells.attributes): line for line in lines}
        asked = 0
        for cell, line in cells.items():
            parts = [wheres[name].get(value) for name, value in zip(found.cells.attributes, cell, strict=True)]
            if all(parts):
                asked += 1
                (answer,) = release.ask(f"SELECT COUNT(*) WHERE {' AND '.join(parts)}")
                (row,) = answer.rows
                assert float(line["count"]) == pytest.approx(row.estimate, abs=0.01), cell
                assert [float(line["low"]), float(line["high"])] == pytest.approx([row.low, row.high], abs=0.2), cell
                assert line["basis"] == row.basis
        assert asked, (columns, list(cells))


def _same_in_sdmx(published, tables, texts):
    """Read with the structure alone, the observations hold the cells of the file for people, under the same names."""
    root = ElementTree.parse(published / "sdmx.xml").getroot()
    spaces = {"s": sdmx._STRUCTURE, "c": sdmx._COMMON}
    said = lambda path: {each.get("id"): each.find("c:Name", spaces).text for each in root.iterfind(path, spaces)}  # noqa: E731
    concepts = said(".//s:Concept")
    for number, (rows, text) in enumerate(zip(tables, texts, strict=True), start=1):
        dimensions = root.findall(f".//s:DataStructure[@id='COUNTS_{number}']//s:Dimension", spaces)
        names = [concepts[each.get("id")] for each in dimensions]
        assert names == text.splitlines()[0].split(",")[: len(names)]
        labels = [said(f".//s:Codelist[@id='CL_{each.get('id')}']/s:Code") for each in dimensions]
        read = list(csv.DictReader((published / "counts" / f"{number:03}.sdmx.csv").read_text().splitlines()))
        assert [row["OBS_VALUE"] for row in read] == [row["count"] for row in rows]
        for row, seen in zip(read, rows, strict=True):
            values = [label[row[each.get("id")]] for label, each in zip(labels, dimensions, strict=True)]
            assert values == [seen[name].removeprefix("'") for name in names]


@pytest.mark.parametrize(
    "change",
    [
        {"ledger": {"presence": [7]}},
        {"ledger": {"epsilon": "x"}},
        {"ledger": []},
        {"tables": [{"name": "people", "rows": 10**15, "seed": 0}]},
        {"tables": [{"name": "people", "rows": -1, "seed": 0}]},
        {"made_with": 3},
        {"counts": "kind"},
        {"counts": [["nobody"]]},
        {"publisher": {}},
    ],
)
def test_a_strangers_facts_are_refused_in_a_sentence(copied, change):
    data = json.loads((copied / "publication.json").read_bytes())
    (copied / "publication.json").write_text(json.dumps({**data, **change}))
    sealed(copied)
    with pytest.raises(HedgerowError):
        folder.verify(copied, Trust())


# ------------------------------------------------------------ the publisher's words


def test_nothing_is_invented_for_the_publisher(tmp_path):
    with refused("no-publisher", "drafted"):
        load(tmp_path / "publisher.yaml")
    assert (tmp_path / "publisher.yaml").read_text() == draft()
    with refused("publisher-incomplete", "title", "justification"):
        load(tmp_path / "publisher.yaml")
    assert yaml.safe_load(draft()).keys() == {key for key, asked in QUESTIONS.items() if asked.needed}


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ({"titel": "x"}, "unknown-publisher-key"),
        ({"publication_date": "31.3.2026"}, "bad-publisher-fact"),
        ({"license": "do as you like"}, "bad-publisher-fact"),
        ({"sector": "Farming"}, "bad-publisher-fact"),
        ({"title": ["a", "b"]}, "bad-publisher-fact"),
        ({"title": "a\x1b[2J"}, "bad-publisher-fact"),
        ({"url": "javascript:alert(1)"}, "bad-publisher-fact"),
        ({"title": {"a": "b"}}, "bad-publisher-fact"),
        ({"region": "TODO"}, "publisher-incomplete"),
    ],
)
def test_answers_that_cannot_be_used_are_refused(answers, code):
    with refused(code):
        Publisher.of({**ANSWERS, **answers}, "publisher.yaml")
    with refused("not-a-publisher"):
        Publisher.of([], "publisher.yaml")


# ------------------------------------------------------------ templates and pages


def test_a_table_without_words_in_its_header_keeps_its_first_row():
    page = page_body("| | |\n|---|:-:|\n| a | b |\n| c | d |\n")
    assert page.count("<th") == 3  # and <thead>
    assert page.count("<td") == 4


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc"))))
def test_a_fact_is_text_wherever_it_stands(fact):
    words = " ".join(fact.split())
    page = page_body(filled("before {fact} after\n\n| a |\n|---|\n| {fact} |\n\n- x {fact}\n", {"fact": fact}, "t"))
    seen = html.unescape(re.sub(r"</?(p|ul|li|div|table|thead|tbody|tr|th|td)( [a-z]+=\"[a-z]*\")*>", "", page))
    assert not re.search(r"<(?!/?(p|ul|li|div|table|thead|tbody|tr|th|td)\b)", page)
    assert seen.count(visible(words)) >= 3 or not words


def test_what_a_template_asks_for_exists():
    for text, code in (
        ("{nothing}", "unknown-fact"),
        ("::if nothing\n::end", "unknown-fact"),
        ("::if fact\n", "bad-template"),
        ("::end", "bad-template"),
        ("::while fact\n::end", "bad-template"),
    ):
        with refused(code):
            filled(text, {"fact": "x"}, "mine.md")
    assert filled("::if fact\na\n::else\nb\n::end\nc", {"fact": ""}, "t") == "b\nc\n"
    assert filled("::each all\n{one}{two}\n::end", {"two": 2, "all": [{"one": 1}, {"one": 3}]}, "t") == "12\n32\n"
    assert escaped("- a") == "\\- a"


def test_a_translation_is_a_file_away(made, tmp_path):
    german = "# Erklärung: {title}\n\nε = {epsilon}, δ = {delta}\n"
    publish(made, tmp_path / "f", translations={"statement.de.md": german})
    assert (tmp_path / "f" / "statement.de.md").read_text() == "# Erklärung: People, made up\n\nε = 2, δ = 1e-09\n"
    assert "<h1>Erklärung" in (tmp_path / "f" / "statement.de.html").read_text()
    assert folder.verify(tmp_path / "f", Trust())[3] is None


# ------------------------------------------------------------ what catalogues read


def test_the_registry_entry_has_the_keys_of_its_schema(made):
    """As its schema of 2026 names them, in a list of our own: keys that it does not name are refused there."""
    known = {
        "basic": "name data_curators description intended_use data_product_type data_product_region publication_date "
        "data_product_sector",
        "dp_variant": "variant_name data_domain unprotected_quantities",
        "privacy_loss": "privacy_unit privacy_unit_details privacy_parameters privacy_parameters_details",
        "deployment_model": "model_name model_name_details actors release_type release_type_details data_source_type "
        "data_source_type_details access_type access_type_details",
        "accounting": "post_processing composition",
        "implementation": "preprocessing_and_hyperparameter_tuning mechanisms justification",
        "administrative": "sources notes registry_authors",
    }
    entry = yaml.safe_load((made / "folder" / "registry.yaml").read_text())
    assert entry.keys() == {"url_slug", "status", "tier", "deployment"}
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    assert entry["deployment"].keys() == known.keys()
    for part, names in known.items():
        optional = {"data_product_sector"}
        assert entry["deployment"][part].keys() >= set(names.split()) - optional
        assert entry["deployment"][part].keys() <= set(names.split())
    basic = entry["deployment"]["basic"]
    assert basic["publication_date"] == "2026-03-31"  # text, not a date
    assert basic["data_product_type"] == "Synthetic data"
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(2.0)
    assert re.fullmatch(r"[a-z0-9-]+", entry["url_slug"])
    listed = {
        "basic.data_product_sector": {"Technology", "Healthcare", "Education", "Government", "Energy", "Finance", None},
        "dp_variant.variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
        "deployment_model.model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
        "deployment_model.release_type": {"One release", "Many releases"},
        "deployment_model.data_source_type": {"Static", "Dynamic"},
        "deployment_model.access_type": {"Interactive", "Non-interactive"},
    }
    for key, values in listed.items():
        part, _, name = key.partition(".")
        assert entry["deployment"][part].get(name) in values, key
    assert {*SECTORS, None} == listed["basic.data_product_sector"]
    lists = (("basic", "data_curators"), ("administrative", "registry_authors"))
    assert all(entry["deployment"][part][name] for part, name in lists)
    for part in known:
        for name, held in entry["deployment"][part].items():
            if (part, name) in lists:
                assert all(isinstance(each, str) for each in held)
            elif name == "privacy_parameters":
                assert held.keys() <= {"epsilon", "delta", "rho"}
            else:
                assert isinstance(held, str), (part, name)


def test_catalogues_name_the_files_that_are_there(made):
    path = made / "folder"
    sums = dict(reversed(line.split("  ")) for line in (path / "SHA256SUMS").read_text().splitlines())
    package = json.loads((path / "datapackage.json").read_text())
    assert package["resources"][0]["hash"] == f"sha256:{sums['people.csv']}"
    for name in ("croissant.json", "dataset.jsonld"):
        for file in json.loads((path / name).read_text())["distribution"]:
            assert file["sha256"] == sums[file["contentUrl"]]
            assert file["contentSize"] == f"{(path / file['contentUrl']).stat().st_size} B"
    for file in json.loads((path / "dcat.jsonld").read_text())["dcat:distribution"]:
        assert file["spdx:checksum"]["spdx:checksumValue"]["@value"] == sums[file["dcat:downloadURL"]["@id"]]
    assert yaml.safe_load((path / "CITATION.cff").read_text())["authors"] == [
        {"name": "The Office"},
        {"name": "A. Uthor"},
    ]


def test_ddi_names_every_column_and_its_values(made):
    root = ElementTree.parse(made / "folder" / "ddi.xml").getroot()
    space = {"d": "ddi:codebook:2_5"}
    variables = root.findall("d:dataDscr/d:var", space)
    assert [each.get("name") for each in variables] == ["kind", "flag", "size", "part", "day", "when", "key"]
    values = [each.text for each in variables[0].findall("d:catgry/d:catValu", space)]
    assert values == ["'=a", "'-b", "c|d", "<script>", "it's", "-8"]
    assert root.findtext("d:fileDscr/d:fileTxt/d:dimensns/d:caseQnty", namespaces=space) == str(ROWS)


def test_the_formats_own_validators_agree(made):
    """hedgerow[validators]"""
    frictionless = pytest.importorskip("frictionless")
    report = frictionless.validate(str(made / "folder" / "datapackage.json"))
    assert report.valid, report.flatten(["rowNumber", "fieldName", "type", "note"])
    croissant = pytest.importorskip("mlcroissant").Dataset(jsonld=str(made / "folder" / "croissant.json"))
    assert not croissant.metadata.ctx.issues.errors
    assert len(list(croissant.records(record_set="people"))) == ROWS
    described = pytest.importorskip("csvw").CSVW(str(made / "folder" / "csvw.json"), validate=True)
    assert described.is_valid


SHAPES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix vcard: <http://www.w3.org/2006/vcard/ns#> .
@prefix spdx: <http://spdx.org/rdf/terms#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
[] a sh:NodeShape; sh:targetClass dcat:Dataset;
  sh:property [sh:path dct:title; sh:minCount 1; sh:nodeKind sh:Literal],
    [sh:path dct:description; sh:minCount 1; sh:nodeKind sh:Literal],
    [sh:path dct:issued; sh:maxCount 1; sh:datatype xsd:date],
    [sh:path dct:publisher; sh:maxCount 1; sh:nodeKind sh:BlankNodeOrIRI],
    [sh:path dcat:contactPoint; sh:minCount 1; sh:class vcard:Organization],
    [sh:path dcat:distribution; sh:minCount 2; sh:class dcat:Distribution] .
[] a sh:NodeShape; sh:targetClass dcat:Distribution;
  sh:property [sh:path dcat:accessURL; sh:minCount 1; sh:nodeKind sh:IRI],
    [sh:path dcat:downloadURL; sh:nodeKind sh:IRI],
    [sh:path dct:license; sh:maxCount 1; sh:nodeKind sh:IRI],
    [sh:path dcat:mediaType; sh:maxCount 1; sh:nodeKind sh:IRI],
    [sh:path dcat:byteSize; sh:maxCount 1; sh:datatype xsd:nonNegativeInteger],
    [sh:path spdx:checksum; sh:maxCount 1; sh:class spdx:Checksum] .
"""
"""What DCAT-AP asks of a dataset and of its files, as far as it has to be there and how it is written."""


def test_dcat_is_what_portals_ask_for(made):
    """hedgerow[validators]"""
    graph = pytest.importorskip("rdflib").Graph
    about = graph().parse(made / "folder" / "dcat.jsonld", format="json-ld", publicID="https://example.org/f/")
    agrees, _, words = pytest.importorskip("pyshacl").validate(about, shacl_graph=graph().parse(data=SHAPES))
    assert agrees, words
    without = graph()
    without += (each for each in about if "accessURL" not in each[1])
    assert not pytest.importorskip("pyshacl").validate(without, shacl_graph=graph().parse(data=SHAPES))[0]


def test_sdmx_is_read_by_its_own_library(made, tmp_path):
    """hedgerow[validators]"""
    io = pytest.importorskip("pysdmx.io")
    held = tmp_path / "f"
    told = replace(publication_of(made), counts=counts.of([["kind", "flag"], ["size"]], "w"))
    folder.write(held, told, made / "people.release")
    said = io.read_sdmx(str(held / "sdmx.xml"), validate=True)
    assert len(said.get_data_structure_definitions()) == 2
    for number, file in enumerate(sorted((held / "counts").glob("*.sdmx.csv")), start=1):
        (data,) = io.get_datasets(str(file), str(held / "sdmx.xml"))
        assert f"COUNTS_{number}" in data.short_urn
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert list(data.data["OBS_VALUE"].astype(float)) == [float(row["OBS_VALUE"]) for row in rows]


# ------------------------------------------------------------ the command


def test_publish_and_verify_on_the_command_line(made, tmp_path, server):
    def hedgerow(*words):
        return server.run(words, tmp_path)

    Ledger.create(tmp_path / "l", "people", Budget(4.0, 1e-8))
    (tmp_path / "publisher.yaml").write_text(yaml.safe_dump(ANSWERS))
    shutil.copy(made / "people.release", tmp_path)
    shutil.copy(made / "folder" / "people.csv", tmp_path / "mine.csv")
    done = hedgerow("publish", "people.release", "--table", "mine.csv", "-o", "out", "--zip", "-q")
    assert done.code == 0, done.err
    with zipfile.ZipFile(tmp_path / "out.zip") as packed:
        assert sorted(packed.namelist()) == sorted(f"out/{name}" for name in folder._names(tmp_path / "out"))
    assert hedgerow("verify", "out").code == 0
    assert hedgerow("verify", "out.zip").refusal == "packed-publication"
    assert hedgerow("publish", "people.release", "-o", "b", "--ledger", "l").refusal == "no-ledger-named"
    assert not (tmp_path / "b").exists()
    data = (tmp_path / "out" / "mine.csv").read_bytes()
    assert hashlib.sha256(data).hexdigest() in (tmp_path / "out" / "SHA256SUMS").read_text()
    (tmp_path / "out" / "mine.csv").write_bytes(data + b"\n")
    assert hedgerow("verify", "out").refusal == "publication-altered"
    assert hedgerow("verify", tmp_path).refusal == "not-a-publication"


def test_every_branch_of_every_template_asks_for_facts_that_exist(made):
    """Also in the branches that this publication does not take."""
    known = facts_of(publication_of(made))
    inside = {key for value in known.values() if isinstance(value, list) for each in value for key in each}
    inside |= {key for table in known["tables"] for each in table["columns_of_table"] for key in each}
    listed = {"doubt", "note", "mark", "meaning", "names", "attribute", "column", "share", "departure", "quantity"}
    listed |= {"measured", "distance", "counts_file", "counts_sdmx", "counts_of", "below", "above", "most"}
    presence = {"present", "opened", "spent_epsilon", "spent_delta", "cap_epsilon", "cap_delta"}
    for name in ("statement.md", "README.md", "datasheet.md", "codebook.md", "registry.md"):
        asked = set(re.findall(r"\{([a-z_]+)\}|^::(?:if|each) ([a-z_]+)$", template(name), re.M))
        assert {a or b for a, b in asked} <= known.keys() | inside | listed | presence, name
