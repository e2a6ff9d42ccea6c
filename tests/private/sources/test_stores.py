"""Tables in object stores and on web servers are read like files, and nothing that such a server says is repeated."""

import gzip
import io
import socket

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.audit import check_engine
from hedgerow.coded.query import total_query
from hedgerow.private.engines import open_engine
from hedgerow.private.sources.sameness import same_table
from hedgerow.private.sources.source import header_of, open_source
from hedgerow.schema import Schema
from refusals import refused
from stores import SECRET, answering, certified, files_of, serving

AGES = "columns: {age: {type: integer, min: 0, max: 9}}\n"


@pytest.fixture
def bucket(server, asked):
    """Puts bytes into a bucket; their URL."""
    import boto3

    asked(server)
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server}")
    client.create_bucket(Bucket="people")

    def put(name, content):
        client.put_object(Bucket="people", Key=name, Body=content)
        return f"s3://people/{name}"

    return put


def ages(rows=50, seed=0):
    return pa.table({"age": np.random.default_rng(seed).integers(0, 10, rows)})


def as_parquet(table):
    written = io.BytesIO()
    pq.write_table(table, written)
    return written.getvalue()


def as_text(table):
    written = io.BytesIO()
    pc.write_csv(table, written)
    return written.getvalue()


def rows_of(table):
    source = open_source(table)
    return pa.Table.from_batches(source.batches(source.header()))


def test_files_in_a_bucket_are_read_like_files_here(bucket):
    table = ages()
    assert rows_of(bucket("one.parquet", as_parquet(table))).equals(table)
    text = pa.table({"age": table["age"].cast(pa.string())})
    assert rows_of(bucket("one.csv", as_text(table))).equals(text)
    assert rows_of(bucket("one.csv.gz", gzip.compress(as_text(table)))).equals(text)


def test_a_bucket_keeps_every_law_of_an_engine(bucket):
    numbers = iter(range(100))
    check_engine(lambda table, _: open_engine(bucket(f"laws/{next(numbers)}.parquet", as_parquet(table))))


def test_folders_say_what_their_names_say_in_a_bucket_and_here(bucket, tmp_path):
    parts = {"year=2023/site=a%2Fb": ages(3, 1), "year=2024/site=__HIVE_DEFAULT_PARTITION__": ages(2, 2)}
    for name, part in parts.items():
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(part, tmp_path / name / "part.parquet")
        bucket(f"parted/{name}/part.parquet", as_parquet(part))
    bucket("parted/_SUCCESS", b"")
    for table in (str(tmp_path), "s3://people/parted"):
        assert header_of(table) == ("age", "year", "site")
        found = rows_of(table)
        assert found["year"].to_pylist() == ["2023"] * 3 + ["2024"] * 2
        assert found["site"].to_pylist() == ["a/b"] * 3 + [None] * 2
        assert found["age"].to_pylist() == [age for part in parts.values() for age in part["age"].to_pylist()]
        only = pa.Table.from_batches(open_source(table).batches(["site"]))
        assert only["site"].to_pylist() == ["a/b"] * 3 + [None] * 2


def test_no_message_names_what_folders_say_of_rows(bucket, tmp_path, monkeypatch):
    """A folder `disease=…` is a value of a column: a message about a file in it is about the file."""
    for name in ("name=CANARY-1", "name=CANARY-2"):
        (tmp_path / name).mkdir()
        pq.write_table(ages(), tmp_path / name / "part.parquet")
        bucket(f"told/{name}/part.parquet", as_parquet(ages()))
    for table, damage in (
        (str(tmp_path), lambda data: (tmp_path / "name=CANARY-2" / "part.parquet").write_bytes(data)),
        ("s3://people/told", lambda data: bucket("told/name=CANARY-2/part.parquet", data)),
    ):
        source = open_source(table)
        whole = as_parquet(ages())
        damage(whole[:4] + bytes(len(whole) - 12) + whole[-8:])
        with pytest.raises(hr.HedgerowError) as changed:
            list(source.batches(("age",)))
        with pytest.raises(hr.HedgerowError) as damaged:
            open_source(table)
        damage(as_parquet(pa.table({"old": [1]})))
        with refused("files-differ") as differing:
            open_source(table)
        for error in (changed, damaged, differing):
            assert "CANARY" not in str(error.value), error.value
            assert "part.parquet" in str(error.value)


@pytest.mark.parametrize("folders", [("year=2023", "month=1"), ("age=3", "age=4")])
def test_folders_that_say_different_things_or_what_files_say_themselves_are_no_columns(tmp_path, folders):
    for name in folders:
        (tmp_path / name).mkdir()
        pq.write_table(ages(), tmp_path / name / "part.parquet")
    assert header_of(str(tmp_path)) == ("age",)
    assert rows_of(str(tmp_path)).equals(pa.concat_tables([ages(), ages()]))


def test_a_run_over_a_bucket_is_the_run_over_the_file(bucket, tmp_path):
    table = ages(300)
    pq.write_table(table, tmp_path / "ages.parquet")
    url = bucket("ages.parquet", as_parquet(table))
    made = [
        hr.synthesize(each, Schema.parse(AGES), hr.Budget(1.0, 1e-9), "independent", unsafe_noise_seed=3).sample(20)
        for each in (tmp_path / "ages.parquet", url)
    ]
    assert made[0].equals(made[1])


def test_what_is_not_there_is_one_sentence(bucket):
    url = bucket("one.parquet", as_parquet(ages()))
    for missing in ("s3://people/none.parquet", "s3://nowhere/one.parquet"):
        with refused("no-such-table") as error:
            open_source(missing)
        assert SECRET not in str(error.value)
    bucket("empty.csv", b"")
    with refused("empty-file"):
        open_source("s3://people/empty.csv")
    bucket("words/readme.txt", b"nothing")
    with refused("no-parquet"):
        open_source("s3://people/words")
    bucket("book.xlsx", b"nothing")
    with refused("unknown-table-kind"):
        open_source("s3://people/book.xlsx")
    with refused("nowhere-to-stay"):
        open_engine(url, stay=True)


def test_a_file_that_changes_between_passes_is_noticed(bucket):
    engine = open_engine(bucket("changes.parquet", as_parquet(ages())))
    encoding = Schema.parse(AGES).encoding()
    engine.prepare(encoding)
    (total,) = engine.count([total_query(encoding.domain)])
    assert total.opened().tolist() == [50]
    bucket("changes.parquet", as_parquet(ages(70)))
    with refused("table-changed"):
        engine.prepare(encoding)


COSTS = "dataset: people\ncolumns: {cost: {type: number, min: 0, max: 1000000, decimals: 2}}\n"


def costs(seed=1):
    return as_parquet(pa.table({"cost": np.round(np.random.default_rng(seed).gamma(2, 500, 300), 2)}))


def held(server):
    """Everything in the bucket, byte for byte, also what somebody began to write."""
    import boto3

    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server}")
    assert not client.list_multipart_uploads(Bucket="people").get("Uploads")
    names = [each["Key"] for each in client.list_objects_v2(Bucket="people").get("Contents", [])]
    return {name: client.get_object(Bucket="people", Key=name)["Body"].read() for name in names}


def test_a_file_that_changes_in_the_middle_of_a_run_leaves_the_charge_and_a_run_to_go_on_with(
    bucket, server, tmp_path, monkeypatch
):
    """After the look was paid for: what is said and debited, that the run goes on, and that nothing is left there."""
    from hedgerow.private.engines.arrow import ArrowEngine
    from hedgerow.private.ledger import Ledger

    url = bucket("costs.parquet", costs())
    before = held(server)
    Ledger.create(tmp_path / "l", "people", hr.Budget(2.0, 1e-8))
    prepare, passes = ArrowEngine.prepare, []

    def changes(engine, encoding):
        passes.append(encoding)
        if len(passes) == 2:
            bucket("costs.parquet", costs(2) + b" ")
        return prepare(engine, encoding)

    with monkeypatch.context() as patched:
        patched.setattr(ArrowEngine, "prepare", changes)
        given = {"ledger": tmp_path / "l", "journal": tmp_path / "paid"}
        with refused("table-changed", "costs.parquet", "stays charged"):
            hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **given)
    paid = Ledger(tmp_path / "l").entries()
    assert len(paid) == 3
    bucket("costs.parquet", costs())
    hr.synthesize(url, Schema.parse(COSTS), hr.Budget(1.0, 1e-9), "independent", **given, resume=True)
    assert Ledger(tmp_path / "l").entries() == paid
    assert held(server) == before


EXPIRED = b"""<?xml version="1.0"?><Error><Code>ExpiredToken</Code>
<Message>The provided token has expired: geheim-7f3a</Message></Error>"""


@pytest.mark.parametrize("url", ["s3://people/one.parquet", "s3://people/folder/one.csv"])
def test_credentials_that_have_expired_are_one_sentence(asked, url):
    for status in (400, 403):
        with serving(answering(status, EXPIRED)) as port:
            asked(port)
            with refused("store-failed") as error:
                open_source(url)
        assert "credentials" in str(error.value) or status == 400  # a HEAD has no words
        assert SECRET not in str(error.value)


def test_credentials_that_expire_in_the_middle_of_a_run_leave_the_charge_and_a_run_to_go_on_with(
    bucket, asked, server, tmp_path, monkeypatch
):
    """After the look was paid for: what is said, what is debited, and that the run goes on without paying again."""
    from hedgerow.private.engines.arrow import ArrowEngine
    from hedgerow.private.ledger import Ledger
    from hedgerow.private.sources.stores import _Bucket

    url, schema = bucket("costs.parquet", costs()), Schema.parse(COSTS)
    before = held(server)
    Ledger.create(tmp_path / "l", "people", hr.Budget(2.0, 1e-8))
    prepare, state, passes = ArrowEngine.prepare, _Bucket.state, []
    with serving(answering(403, EXPIRED)) as broken:

        def expires(engine, encoding):
            passes.append(encoding)
            if len(passes) == 2:
                asked(broken)
                monkeypatch.setattr(_Bucket, "state", lambda _: state(_Bucket(url)))
            return prepare(engine, encoding)

        monkeypatch.setattr(ArrowEngine, "prepare", expires)
        given = {"ledger": tmp_path / "l", "journal": tmp_path / "paid"}
        with refused("unreadable-table", "credentials") as error:
            hr.synthesize(url, schema, hr.Budget(1.0, 1e-9), "independent", **given)
    assert "stays charged" in str(error.value)
    assert SECRET not in str(error.value)
    paid = Ledger(tmp_path / "l").entries()
    assert len(paid) == 3
    monkeypatch.undo()
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    asked(server)
    hr.synthesize(url, schema, hr.Budget(1.0, 1e-9), "independent", **given, resume=True)
    assert Ledger(tmp_path / "l").entries() == paid
    assert held(server) == before


def test_a_store_that_cannot_be_reached_is_one_sentence(asked):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        asked(port)
        for url in ("s3://people/one.parquet", f"https://127.0.0.1:{port}/one.parquet"):
            with refused("store-failed", "cannot be reached") as error:
                open_source(url)
            assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "url",
    ["s3://people/one.parquet?versionId=geheim", "https://me:geheim@host/one.csv", "https://host/one.csv?sig=geheim"],
)
def test_a_url_that_holds_a_secret_is_refused_and_not_repeated(url):
    with refused("credentials-in-url") as error:
        open_source(url)
    assert "geheim" not in str(error.value)


def test_files_on_a_web_server_are_read_like_files_here(tmp_path, monkeypatch):
    table = ages(5000)
    (tmp_path / "one.parquet").write_bytes(as_parquet(table))
    (tmp_path / "one.csv").write_bytes(as_text(table))
    (tmp_path / "one.csv.gz").write_bytes(gzip.compress(as_text(table)))
    context = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    with serving(files_of(tmp_path), context) as port:
        at = f"https://127.0.0.1:{port}"
        assert rows_of(f"{at}/one.parquet").equals(table)
        for name in ("one.csv", "one.csv.gz"):
            assert rows_of(f"{at}/{name}")["age"].cast(pa.int64()).equals(table["age"])
        with refused("no-such-table"):
            open_source(f"{at}/none.csv")
        engine = open_engine(f"{at}/one.csv")
        (tmp_path / "one.csv").write_bytes(as_text(ages(7)))
        with refused("table-changed"):
            engine.prepare(Schema.parse(AGES).encoding())
    with serving(files_of(tmp_path, parts=False), context) as port, refused("unreadable-table", "parts of a file"):
        rows_of(f"https://127.0.0.1:{port}/one.parquet")
    with serving(answering(401), context) as port, refused("store-failed", "credentials"):
        open_source(f"https://127.0.0.1:{port}/one.csv")


def test_a_server_whose_certificate_nobody_vouches_for_is_not_read_from(tmp_path):
    (tmp_path / "one.csv").write_bytes(as_text(ages()))
    with serving(files_of(tmp_path), certified(tmp_path)) as port, refused("store-failed"):
        open_source(f"https://127.0.0.1:{port}/one.csv")


@pytest.mark.parametrize(
    ("public", "table", "same"),
    [
        ("s3://people/a/one.parquet", "s3://people/a", True),
        ("s3://people//a/", "s3://people/a", True),
        ("abfss://c@x.net/a", "abfs://c@x.net/a", True),
        ("s3://people/ab", "s3://people/a", False),
        ("https://host/a.csv", "s3://host/a.csv", False),
    ],
)
def test_the_private_table_is_not_its_own_public_one_in_a_store(public, table, same):
    assert same_table(public, table) == same
