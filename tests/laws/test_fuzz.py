"""Readers under arbitrary bytes: a clear refusal or a correct reading, never anything else."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.budget.amounts import Budget
from hedgerow.errors import ReleaseError, SchemaError, TableError
from hedgerow.private.sources.source import open_source
from hedgerow.release import archive
from hedgerow.release.bundle import Release
from hedgerow.run import synthesize
from hedgerow.samples import opm
from hedgerow.schema import Schema
from hedgerow.schema.file import File, Written

LIMITS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
WORDS = [
    *("columns:", "groups:", "person: id", "type: category", "values: [a, b]", "type: integer", "min: 0", "max: 9"),
    *("bins: 3", "heaps: [5, 10]", "special: [7]", "missing: true", "other: true", "allowed: public", "- ", "  ", "{"),
    *(
        "}",
        "[",
        "]",
        ": ",
        ",",
        "\n",
        "&a",
        "*a",
        "!!python/object:os.system",
        "<<: *a",
        "1e999",
        "null",
        "~",
        "\t",
        "'",
    ),
]


@LIMITS
@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)))
def test_any_text_is_a_schema_or_a_schema_error(text):
    try:
        schema = Schema.parse(text)
    except SchemaError:
        return
    assert Schema.parse(schema.to_yaml()) == schema


@LIMITS
@given(data=st.data())
def test_a_schema_with_lines_moved_about_is_a_schema_or_a_schema_error(data):
    lines = opm.SCHEMA.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index] = data.draw(st.sampled_from(["", lines[index][1:], "  " + lines[index], lines[index] * 2, *lines]))
    try:
        Schema.parse("\n".join(lines))
    except SchemaError:
        return


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "r.release"
    synthesize(opm.generate(300), Schema.parse(opm.SCHEMA), Budget(1.0, 1e-9), "independent").save(path)
    return path.read_bytes()


@LIMITS
@given(data=st.data())
def test_a_damaged_release_is_refused_or_is_the_release(saved, tmp_path, data):
    damaged = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "d.release").write_bytes(bytes(damaged))
    try:
        read = Release.load(tmp_path / "d.release")
    except ReleaseError:
        return
    (tmp_path / "whole.release").write_bytes(saved)
    whole = Release.load(tmp_path / "whole.release")
    same = read.sample(20).equals(whole.sample(20)) and read.certificate.to_json() == whole.certificate.to_json()
    assert same


@LIMITS
@given(name=st.sampled_from(["model.json", "answers.json", "schema.json", "certificate.json"]), data=st.data())
def test_members_of_any_content_are_refused(saved, tmp_path, name, data):
    """The manifest is mended, so that only the reading itself can notice."""
    import hashlib
    import json

    content = data.draw(
        st.one_of(
            st.binary(max_size=60),
            st.recursive(
                st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
                max_leaves=8,
            ).map(lambda value: json.dumps(value).encode()),
        )
    )
    (tmp_path / "m.release").write_bytes(saved)
    members = archive.read(tmp_path / "m.release")
    members[name] = content
    manifest = {each: hashlib.sha256(value).hexdigest() for each, value in members.items() if each != "manifest.json"}
    members["manifest.json"] = json.dumps(manifest, indent=1).encode()
    archive.write(tmp_path / "m.release", members)
    with pytest.raises(ReleaseError):
        Release.load(tmp_path / "m.release")


CELLS = st.sampled_from(
    ['"', "a", "Zaphod", ",", "\n", "\r\n", "\r", "\x00", "é", "\ufeff", " ", "=1", "1e400", "nan", ";"]
)


@LIMITS
@given(
    st.one_of(st.binary(max_size=120), st.lists(CELLS, max_size=40).map("".join).map(str.encode)),
    st.sampled_from([{}, {"encoding": "utf-16"}, {"encoding": "latin-1"}, {"encoding": "shift_jis"}]),
    st.sampled_from([",", ";", "tab"]),
)
def test_any_bytes_are_a_text_file_or_a_table_error(tmp_path, content, file, delimiter):
    written = Written(File(delimiter=delimiter, **file))
    path = tmp_path / "t.csv"
    path.write_bytes(f"a{written.file.delimiter}b\n".encode(file.get("encoding", "utf-8")) + content)
    said = ""
    try:
        names = {tuple(batch.schema.names) for batch in open_source(path, written).batches(["a", "b"])}
    except TableError as refused:
        names, said = set(), str(refused)
    assert names <= {("a", "b")}
    assert "Zaphod" not in said
