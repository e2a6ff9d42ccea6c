"""Tables of a lake hold what their logs say; rows that were replaced or deleted are never read."""

import base64
import json
import shutil
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.audit import check_engine
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.ledger import Ledger
from hedgerow.private.sources import lakes
from hedgerow.private.sources.sameness import same_table
from hedgerow.private.sources.source import dataset_name, header_of, open_source
from hedgerow.schema import Schema
from refusals import refused
from stores import SECRET, answering, serving

CANARY = "canary-7f3a"
PEOPLE = pa.table({"name": ["ann", CANARY, "bob", "eve"], "age": pa.array([30, 40, 50, 60], pa.int32())})
MORE = pa.table({"name": ["joe"], "age": pa.array([70], pa.int32())})
HELD = Counter({("ann", 30): 1, ("bob", 50): 1, ("eve", 61): 1, ("joe", 70): 1})
"""What is left once a row was deleted, another one replaced, and a third one added."""
VERSION = "00003-35eedade-7e2c-4878-9f5f-2c8b98a5bc60.metadata.json"


def rows_of(table, columns=None):
    source = open_source(table)
    names = list(columns or source.header())
    columns = (batch.select(names).to_pydict().values() for batch in source.batches(names))
    return Counter(row for batch in columns for row in zip(*batch, strict=True))


def delta(folder, table=PEOPLE, **options):
    written = pytest.importorskip("deltalake", reason="hedgerow[lakes] is not installed")
    written.write_deltalake(str(folder), table, **options)
    return written.DeltaTable(str(folder))


def changed_delta(folder):
    table = delta(folder)
    table.delete(f"name = '{CANARY}'")
    table.update({"age": "61"}, predicate="name = 'eve'")
    return delta(folder, MORE, mode="append")


def iceberg(folder, table=PEOPLE, name="people"):
    """A table of a catalogue that lies beside it."""
    pytest.importorskip("pyiceberg", reason="hedgerow[lakes] is not installed")
    pytest.importorskip("sqlalchemy", reason="the catalogue of these tests needs it")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse=str(folder))
    catalog.create_namespace_if_not_exists("db")
    made = catalog.create_table(f"db.{name}", schema=table.schema, location=f"{folder}/{name}")
    made.append(table)
    return made


def changed_iceberg(folder):
    made = iceberg(folder)
    made.delete(f"name = '{CANARY}'")
    made.overwrite(pa.table({"name": ["eve"], "age": pa.array([61], pa.int32())}), overwrite_filter="name = 'eve'")
    made.append(MORE)
    return made


def as_hadoop(made, folder, hint):
    """The same table as an engine without a catalogue leaves it: versions have numbers, and a file names one."""
    metadata = folder / "people" / "metadata"
    for number, path in enumerate(sorted(metadata.glob("*.metadata.json")), 1):
        path.rename(metadata / f"v{number}.metadata.json")
    (metadata / "version-hint.text").write_text(hint)
    return str(folder / "people")


# ------------------------------------------------------------ Delta


def test_a_delta_table_is_what_its_log_says(tmp_path):
    changed_delta(tmp_path / "people")
    plain = [row for path in (tmp_path / "people").glob("*.parquet") for row in pq.read_table(path)["name"].to_pylist()]
    assert CANARY in plain
    assert plain.count("eve") > 1
    assert header_of(str(tmp_path / "people")) == ("name", "age")
    assert rows_of(str(tmp_path / "people")) == HELD
    assert rows_of(tmp_path / "people", ["age"]) == Counter((age,) for _, age in HELD)


def test_nothing_is_written_to_a_lake(tmp_path):
    changed_delta(tmp_path / "delta")
    described = changed_iceberg(tmp_path / "iceberg").metadata_location.removeprefix("file://")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for table in (tmp_path / "delta", described):
        assert rows_of(table) == HELD
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_lake_that_is_cleaned_up_in_the_middle_of_a_run_leaves_the_charge_and_a_run_to_go_on_with(
    tmp_path, monkeypatch
):
    """A version is read to its end, or the run ends; what was paid for is gone on with."""
    costs = pa.table({"cost": np.round(np.random.default_rng(1).gamma(2, 500, 300), 2)})
    delta(tmp_path / "costs", costs)
    schema = Schema.parse("dataset: people\ncolumns: {cost: {type: number, min: 0, max: 1000000, decimals: 2}}\n")
    Ledger.create(tmp_path / "l", "people", hr.Budget(2.0, 1e-8))
    prepare, passes = ArrowEngine.prepare, []

    def cleaned(engine, encoding):
        passes.append(encoding)
        if len(passes) == 2:
            (old,) = (tmp_path / "costs").glob("*.parquet")
            delta(tmp_path / "costs", costs, mode="overwrite")
            old.unlink()
        return prepare(engine, encoding)

    given = {"ledger": tmp_path / "l", "journal": tmp_path / "paid"}
    with monkeypatch.context() as patched:
        patched.setattr(ArrowEngine, "prepare", cleaned)
        with refused("unreadable-table", "stays charged"):
            hr.synthesize(tmp_path / "costs", schema, hr.Budget(1.0, 1e-9), "independent", **given)
    paid = Ledger(tmp_path / "l").entries()
    assert len(paid) == 3
    hr.synthesize(tmp_path / "costs", schema, hr.Budget(1.0, 1e-9), "independent", **given, resume=True)
    assert Ledger(tmp_path / "l").entries() == paid


def test_parts_of_a_delta_table_are_columns_of_their_types(tmp_path):
    delta(tmp_path / "a b", partition_by=["age"]).delete("age = 40")
    assert rows_of(tmp_path / "a b") == Counter({("ann", 30): 1, ("bob", 50): 1, ("eve", 60): 1})


def test_rows_that_are_marked_as_deleted_are_not_read(tmp_path):
    """Engines of clusters leave a file as it is, and mark the rows of it that are gone."""
    delta(tmp_path / "people", configuration={"delta.enableDeletionVectors": "true"})
    mark_as_deleted(tmp_path / "people", [1, 3])
    assert rows_of(tmp_path / "people") == Counter({("ann", 30): 1, ("bob", 50): 1})


def mark_as_deleted(folder, rows):
    """A version in which these rows of the only file are gone, as its protocol has it: a bitmap inside the log."""
    from pyroaring import BitMap

    log = folder / "_delta_log"
    first = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    added = next(line["add"] for line in first if "add" in line)
    bits = struct.pack("<iqi", 1681511377, 1, 0) + BitMap(rows).serialize()
    marked = base64.b85encode(bits + bytes(-len(bits) % 4)).translate(bytes.maketrans(ENCODED, Z85)).decode()
    vector = {"storageType": "i", "pathOrInlineDv": marked, "sizeInBytes": len(bits), "cardinality": len(rows)}
    gone = {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}
    lines = [{"remove": gone}, {"add": {**added, "deletionVector": vector}}]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, lines)) + "\n")


ENCODED = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The same digits, as Python and as Delta's protocol write them."""


def test_all_passes_see_the_version_that_the_first_one_saw(tmp_path):
    changed_delta(tmp_path / "people")
    source = open_source(tmp_path / "people")
    delta(tmp_path / "people", MORE, mode="overwrite")
    assert sum(batch.num_rows for batch in source.batches(("age",))) == HELD.total()
    assert rows_of(tmp_path / "people") == Counter({("joe", 70): 1})


def test_a_version_whose_files_are_gone_is_one_sentence(tmp_path):
    changed_delta(tmp_path / "people")
    source = open_source(tmp_path / "people")
    for path in (tmp_path / "people").glob("*.parquet"):
        path.unlink()
    with refused("unreadable-table", "people") as error:
        list(source.batches(("age",)))
    assert ".parquet" not in str(error.value)
    (tmp_path / "people/_delta_log" / f"{0:020}.json").write_text("{")
    with refused("unreadable-table", "people"):
        open_source(tmp_path / "people")


def test_a_delta_table_keeps_every_law_of_an_engine(tmp_path):
    numbers = iter(range(100))

    def opened(table, _):
        folder = tmp_path / str(next(numbers))
        delta(folder, table)
        return open_engine(str(folder))

    check_engine(opened)


def test_a_run_over_a_lake_is_the_run_over_its_rows(tmp_path):
    ages = np.random.default_rng(0).integers(0, 10, 500)
    kept, gone = pa.table({"age": ages}), pa.table({"age": np.full(300, 11)})
    schema = Schema.parse("columns: {age: {type: integer, min: 0, max: 11}}")
    pq.write_table(kept, tmp_path / "kept.parquet")
    delta(tmp_path / "delta", pa.concat_tables([kept, gone])).delete("age = 11")
    made = iceberg(tmp_path, pa.concat_tables([kept, gone]))
    made.delete("age = 11")
    tables = [tmp_path / "kept.parquet", tmp_path / "delta", made.metadata_location.removeprefix("file://")]
    releases = [hr.synthesize(table, schema, hr.Budget(1.0), unsafe_noise_seed=3) for table in tables]
    assert len({str(release.sample(rows=400, seed=1)) for release in releases}) == 1


# ------------------------------------------------------------ Iceberg


def test_an_iceberg_table_is_what_its_metadata_says(tmp_path):
    made = changed_iceberg(tmp_path)
    described = made.metadata_location.removeprefix("file://")
    assert header_of(described) == ("name", "age")
    assert rows_of(described) == HELD
    assert rows_of(described, ["age"]) == Counter((age,) for _, age in HELD)
    assert dataset_name(described) == "people"
    made.append(MORE)
    assert rows_of(described) == HELD  # a file of metadata is one version


def test_rows_that_are_deleted_by_their_place_are_not_read(tmp_path):
    """Engines of clusters leave a file as it is, and write another one that says which of its rows are gone."""
    made = iceberg(tmp_path)
    delete_by_place(made, [1, 3])
    assert rows_of(made.metadata_location.removeprefix("file://")) == Counter({("ann", 30): 1, ("bob", 50): 1})


def delete_by_place(made, rows):
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    (file,) = (task.file for task in made.scan().plan_files())
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    path = f"{made.location()}/data/deletes.parquet"
    gone = pa.table([[file.file_path] * len(rows), rows], schema=pa.schema(fields))
    pq.write_table(gone, path)
    written = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=100,
    )
    written.spec_id = made.metadata.default_spec_id
    with made.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(written)


def test_a_folder_that_names_its_version_is_read_and_no_other(tmp_path):
    made = changed_iceberg(tmp_path)
    versions = len(list((tmp_path / "people/metadata").glob("*.metadata.json")))
    with refused("iceberg-version", "metadata_location"):
        open_source(tmp_path / "people")
    folder = as_hadoop(made, tmp_path, f"{versions}\n")
    assert rows_of(folder) == HELD
    (tmp_path / "people/metadata/version-hint.text").write_text("2")  # written after the version itself
    assert rows_of(folder) == HELD
    for hint in ("v2", "../../elsewhere", f"{versions + 1}", "²"):
        (tmp_path / "people/metadata/version-hint.text").write_text(hint)
        with refused("iceberg-version"):
            open_source(folder)


def test_what_a_table_says_of_its_settings_is_not_followed(tmp_path):
    """It could name any server, and any program to read with."""
    described = Path(iceberg(tmp_path).metadata_location.removeprefix("file://"))
    written = json.loads(described.read_text())
    written["properties"] = {"py-io-impl": f"{CANARY}.Reader", "s3.endpoint": "http://127.0.0.1:1"}
    described.write_text(json.dumps(written))
    assert rows_of(described).total() == 4


def test_an_iceberg_table_whose_files_are_gone_is_one_sentence(tmp_path):
    made = changed_iceberg(tmp_path)
    described = made.metadata_location.removeprefix("file://")
    source = open_source(described)
    shutil.rmtree(tmp_path / "people/data")
    with refused("unreadable-table") as error:
        list(source.batches(("age",)))
    assert ".parquet" not in str(error.value)


def test_an_iceberg_table_keeps_every_law_of_an_engine(tmp_path):
    numbers = iter(range(100))

    def opened(table, _):
        made = iceberg(tmp_path, table, f"t{next(numbers)}")
        return open_engine(made.metadata_location.removeprefix("file://"))

    check_engine(opened)


# ------------------------------------------------------------ what is not read


def plain(folder, name="part.parquet"):
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(PEOPLE, folder / name)
    return folder


@pytest.mark.parametrize("log", [".hoodie/hoodie.properties", "_spark_metadata/0"])
def test_tables_of_other_lakes_are_refused(tmp_path, log):
    file = plain(tmp_path / "people") / log
    file.parent.mkdir()
    file.write_text("")
    with refused("rows-that-count"):
        open_source(tmp_path / "people")


@pytest.mark.parametrize(
    "log", ["_delta_log/00000000000000000000.json", f"metadata/{VERSION}", "metadata/v1.metadata.json"]
)
def test_a_part_of_a_lake_is_not_read_as_files(tmp_path, log):
    for folder in ("", "data", "age=30", "age=30/name=ann"):
        plain(tmp_path / "lake/people" / folder)
    (tmp_path / "lake/people" / log).parent.mkdir()
    (tmp_path / "lake/people" / log).write_text("")
    for part in ("data", "age=30", "age=30/name=ann", "part.parquet", "data/part.parquet", "age=30/part.parquet"):
        with refused("rows-that-count", part, "whole table"):
            open_source(tmp_path / "lake/people" / part)
    (tmp_path / "linked.parquet").symlink_to(tmp_path / "lake/people/part.parquet")
    with refused("rows-that-count", "linked.parquet"):
        open_source(tmp_path / "linked.parquet")
    with refused("rows-that-count", "folder of the table itself"):
        open_source(tmp_path / "lake")


def test_a_log_that_nobody_may_look_into_is_a_log(tmp_path, monkeypatch):
    (plain(tmp_path / "people") / "_delta_log").mkdir()
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with refused("missing-package", "hedgerow[lakes]"):
        open_source(tmp_path / "people")


def test_folders_that_are_no_lake_are_read_as_ever(tmp_path):
    """A folder of metadata of somebody's own says nothing of which rows count."""
    plain(tmp_path / "project/data")
    (tmp_path / "project/metadata").mkdir()
    (tmp_path / "project/metadata/people.metadata.json").write_text("{}")
    for table in ("project/data", "project/data/part.parquet", "project"):
        assert rows_of(tmp_path / table).total() == 4


def test_a_lake_is_not_its_own_public_table(tmp_path):
    changed_delta(tmp_path / "delta")
    file = next((tmp_path / "delta").glob("*.parquet"))
    assert same_table(str(file), str(tmp_path / "delta"))
    folder = "/lake/people"
    for described in (f"{folder}/metadata/v1.metadata.json", f"s3://b{folder}/metadata/v1.metadata.json"):
        folder = described.rsplit("/", 2)[0]
        assert same_table(f"{folder}/data/one.parquet", described)
        assert same_table(described, folder)
        assert not same_table(f"{folder}s/one.parquet", described)


# ------------------------------------------------------------ over the network


@pytest.fixture
def lake(server, asked):
    """Puts a folder into a bucket; its URL."""
    import boto3

    asked(server)
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server}")
    client.create_bucket(Bucket="lakes")

    def put(folder):
        for path in folder.rglob("*"):
            if path.is_file():
                name = f"lake/{path.relative_to(folder).as_posix()}"
                client.put_object(Bucket="lakes", Key=name, Body=path.read_bytes())
        return "s3://lakes/lake"

    return put


def test_a_delta_table_in_a_bucket_is_what_its_log_says(lake, tmp_path):
    changed_delta(tmp_path / "people")
    url = lake(tmp_path / "people")
    assert rows_of(url) == HELD
    assert rows_of(f"{url}/") == HELD
    name = next((tmp_path / "people").glob("*.parquet")).name
    with refused("rows-that-count", "whole table"):
        open_source(f"{url}/{name}")


def test_an_iceberg_table_in_a_bucket_is_what_its_metadata_says(lake, server):
    """Its metadata name files by their whole URLs, so it is written there."""
    from pyiceberg.catalog.sql import SqlCatalog

    files = {"s3.endpoint": f"http://127.0.0.1:{server}", "s3.region": "us-east-1"}
    catalog = SqlCatalog("tests", uri="sqlite:///:memory:", warehouse="s3://lakes/warehouse", **files)
    catalog.create_namespace("db")
    made = catalog.create_table("db.people", schema=PEOPLE.schema, location="s3://lakes/warehouse/people")
    made.append(PEOPLE)
    made.delete(f"name = '{CANARY}'")
    assert rows_of(made.metadata_location) == Counter({("ann", 30): 1, ("bob", 50): 1, ("eve", 60): 1})
    with refused("iceberg-version"):
        open_source("s3://lakes/warehouse/people")
    with refused("rows-that-count"):
        open_source("s3://lakes/warehouse/people/data")
    with refused("rows-that-count"):
        open_source("s3://lakes/warehouse")


def test_credentials_that_expired_while_a_lake_is_read_are_one_sentence(lake, tmp_path, asked):
    changed_delta(tmp_path / "people")
    source = open_source(lake(tmp_path / "people"))
    body = f"<Error><Code>ExpiredToken</Code><Message>{SECRET}</Message></Error>".encode()
    with serving(answering(403, body)) as port:
        asked(port)
        with refused("unreadable-table", "credentials") as error:
            lakes.delta("s3://lakes/lake")
        assert SECRET not in str(error.value)
        described = "s3://lakes/lake/metadata/v1.metadata.json"
        with refused("unreadable-table", "credentials") as error:
            lakes.iceberg(described, described)
        assert SECRET not in str(error.value)
    assert sum(batch.num_rows for batch in source.batches(("age",))) == HELD.total()
