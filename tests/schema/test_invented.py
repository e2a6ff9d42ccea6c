"""Columns that are never read: what the output has in them is invented, the same for everybody who draws it."""

import re
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.budget.amounts import Budget
from hedgerow.models.model import BLOCK_ROWS
from hedgerow.pages.release import release_page
from hedgerow.private.evaluate.evaluation import evaluate
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, verify
from hedgerow.release.parts import write_parts
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from hedgerow.schema.invented import INVENTED, POOL, Fake, FreeText, Id
from refusals import code_in, refused

CANARY = "canary-4711"
SCHEMA = """dataset: d
person: id
max_rows_per_person: 3
columns:
  id: {type: id, pattern: "C-######/x"}
  age: {type: integer, min: 0, max: 9}
  key: {type: id}
  note: {type: text}
  memo: {type: text, constant: "[removed]"}
  sex: {type: category, values: [f, m]}
  mail: {type: fake, what: email}
"""
TABLE = pa.table(
    {
        "age": np.arange(400) % 10,
        "id": [f"{CANARY}-{row // 2}" for row in range(400)],
        "key": [CANARY] * 400,
        "note": [CANARY] * 400,
        "memo": [CANARY] * 400,
        "sex": ["f", "m"] * 200,
        "mail": [f"{CANARY}@example.com"] * 400,
    }
)


def released(table=TABLE):
    pytest.importorskip("faker")
    return synthesize(table, Schema.parse(SCHEMA), Budget(1.0, 1e-9), "independent", unsafe_noise_seed=1)


def test_they_are_no_part_of_what_is_coded_and_stand_where_they_were_declared():
    encoding = Schema.parse(SCHEMA).encoding()
    assert encoding.columns == encoding.domain.names == ("age", "sex")
    assert encoding.arrow_schema.names == ["id", "age", "key", "memo", "sex", "mail"]
    made = released().sample(50)
    assert made.column_names == encoding.arrow_schema.names
    assert made["id"].to_pylist() == [f"C-{row:06}/x" for row in range(1, 51)]
    assert made["memo"].unique().to_pylist() == ["[removed]"]
    assert len(set(made["key"].to_pylist())) == 50
    assert all(
        text.partition("@")[2] in ("example.com", "example.org", "example.net") for text in made["mail"].to_pylist()
    )


def test_nothing_depends_on_what_the_private_columns_hold_or_whether_they_are_there(tmp_path):
    """The person is named by one of them, and is read for that alone."""
    release = released()
    without = released(TABLE.select(["sex", "id", "age"]))
    assert release.sample(300).equals(without.sample(300))
    assert release.certificate.person
    release.save(tmp_path / "a.release")
    assert CANARY.encode() not in (tmp_path / "a.release").read_bytes()
    assert CANARY not in release_page(release) + str(release.sample(300).to_pydict())


def test_who_draws_the_rows_does_not_matter(tmp_path):
    """One process, several of them, or a block by itself; another seed invents others, and keys go on counting."""
    release = released()
    release.save(tmp_path / "a.release")
    rows = BLOCK_ROWS + 70
    write_parts(tmp_path / "a.release", tmp_path / "parts", rows, 5, 2, Progress(), blocks_per_part=1)
    drawn = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "parts").glob("*.parquet"))])
    assert Release.load(tmp_path / "a.release").sample(rows, 5).equals(drawn.replace_schema_metadata(None))
    (last,) = release.block(70, 5, 1)
    assert last.equals(drawn.slice(BLOCK_ROWS).combine_chunks())
    assert last["id"][69].as_py() == f"C-{rows}/x"
    assert len(drawn["id"].unique()) == len(drawn["key"].unique()) == rows
    assert len(drawn["mail"].slice(0, BLOCK_ROWS).unique()) <= POOL
    other = release.sample(70, 6)
    assert not set(other["key"].to_pylist()) & set(release.sample(70, 5)["key"].to_pylist())


def test_they_are_named_as_invented(tmp_path, hedgerow):
    release = released()
    release.save(tmp_path / "a.release")
    found, confirmed = verify(tmp_path / "a.release")
    assert "never read, and invented or left out: id, key, note, memo, mail" in confirmed
    assert found.schema == release.schema
    page = release_page(release)
    assert (
        "id (fresh keys), key (fresh keys), note (left out), memo (the same words in every row), mail (invented" in page
    )
    assert "6 columns, drawn from" in page
    report = tmp_path / "e.html"
    figures = evaluate(TABLE, release.sample(100), release.schema, metrics=["tvd1"], report=report)
    assert figures["never_read"] == ["id", "key", "note", "memo", "mail"]
    assert figures["columns"] == 2
    words = "ot compared, because they are invented or left out: id, key, note, memo, mail"
    assert words in report.read_text(encoding="utf-8")
    assert CANARY not in report.read_text(encoding="utf-8")
    (tmp_path / "s.yaml").write_text(SCHEMA)
    pq.write_table(TABLE, tmp_path / "t.parquet")
    pq.write_table(release.sample(100), tmp_path / "o.parquet")
    assert words in hedgerow("evaluate", "t.parquet", "o.parquet", "-s", "s.yaml", "--metrics", "tvd1", "--quiet").out


def test_a_column_that_is_invented_cannot_be_asked_about():
    with refused("unknown-column", '"mail"; columns: age, sex'):
        released().marginal(["mail"])


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 10**9), st.integers(1, 15))
def test_keys_in_a_pattern_count_on(one, other, first, width):
    column = Id(pattern=f"a{'#' * width}b")
    whole = column.values(one + other, first, np.random.default_rng(0)).to_pylist()
    parts = [
        column.values(rows, begin, np.random.default_rng(1)) for rows, begin in ((one, first), (other, first + one))
    ]
    assert whole == [text for part in parts for text in part.to_pylist()]
    assert len(set(whole)) == one + other
    assert all(re.fullmatch(rf"a\d{{{width},}}b", text) for text in whole)


@given(st.integers(0, 300), st.integers(0, 2**31))
def test_keys_without_a_pattern_are_uuids(rows, seed):
    made = Id().values(rows, 0, np.random.default_rng(seed))
    made.validate(full=True)
    texts = made.to_pylist()
    assert len(set(texts)) == rows
    assert all(str(uuid.UUID(text)) == text and uuid.UUID(text).version == 4 for text in texts)


@pytest.mark.parametrize("what", Fake.model_fields["what"].annotation.__args__)
@pytest.mark.parametrize("locale", ["en_US", "de_DE", "ja_JP"])
def test_fakes_are_the_same_under_the_same_seed(what, locale):
    pytest.importorskip("faker")
    column = Fake(what=what, locale=locale)
    first, second, other = (column.values(30, 0, np.random.default_rng(seed)).to_pylist() for seed in (1, 1, 2))
    assert first == second != other
    assert all(text and "\n" not in text for text in first)
    if what == "phone":
        assert all(re.fullmatch(r"\([1-9]\d\d\) 555-01\d\d", text) for text in first)


def test_more_rows_than_fakes_repeat_them():
    pytest.importorskip("faker")
    made = Fake(what="first_name").values(POOL + 1000, 0, np.random.default_rng(1))
    assert len(made) == POOL + 1000
    assert len(made.dictionary) == POOL


@pytest.mark.parametrize(
    ("column", "code", "where"),
    [
        ("{type: id, patern: x}", "unknown-key", "line 3: columns.b: "),
        ("{type: id, pattern: x}", "bad-pattern", "line 3: columns.b.pattern: "),
        ("{type: id, pattern: TODO}", "todo-left", "columns.b.pattern"),
        ("{type: fake}", "missing-key", "line 3: columns.b: "),
        ("{type: fake, what: dog}", "not-a-choice", "line 3: columns.b.what: "),
        ("{type: fake, what: name, locale: ../x}", "unknown-locale", "line 3: columns.b.locale: "),
        ("{type: text, constant: [a]}", "not-text", "line 3: columns.b.constant: "),
        ("{type: text, constant: " + "x" * 201 + "}", "text-too-long", "line 3: columns.b.constant: "),
        ("{type: idd}", "unknown-type", 'code, id, text, fake. Did you mean "id"?'),
        ("{type: id}\nignore: [b]", "ignored-and-declared", '"b"'),
        ("{type: id}\ngroups: [{columns: [a, b], allowed: public}]", "invented-in-group", '"b"'),
        ("{type: id}\ninvented: {}", "unknown-key", '"invented"'),
    ],
)
def test_what_is_declared_wrongly_is_refused_with_its_line(column, code, where):
    with refused(code, "schema, line ", where):
        Schema.parse(f"columns:\n  a: {{type: code, size: 3}}\n  b: {column}\n")
    with refused("all-invented"):
        Schema.parse("columns: {a: {type: id}}")


declared = st.one_of(
    st.builds(Id, pattern=st.sampled_from([None, "##", "C #####-ü"])),
    st.builds(FreeText, constant=st.sampled_from([None, "", "= 1", "x y"])),
    st.builds(Fake, what=st.sampled_from(["name", "email"]), locale=st.sampled_from(["en_US", "fr_FR"])),
)


@given(st.lists(declared, max_size=4), st.permutations(range(5)))
def test_declarations_read_back_in_their_order(columns, order):
    named = {"a": {"type": "code", "size": 3}} | {f"i{index}": column for index, column in enumerate(columns)}
    names = [list(named)[index] for index in order if index < len(named)]
    schema = Schema(columns={name: named[name] for name in names})
    assert Schema.parse(schema.to_yaml()) == Schema.from_dict(schema.to_dict()) == schema
    assert list(schema.names) == names
    assert list(schema.columns) == ["a"]


def test_editors_know_them():
    described = Schema.json_schema()["$defs"]
    assert {INVENTED[kind].__name__ for kind in INVENTED} <= set(described)
    assert described["Fake"]["required"] == ["type", "what"]


def test_a_library_that_is_not_installed_is_named_before_anything_is_read(tmp_path, hedgerow):
    (tmp_path / "faker.py").write_text("raise ImportError\n")
    (tmp_path / "s.yaml").write_text(SCHEMA)
    hedgerow("ledger", "create", "d.ledger", "--dataset", "d", "--epsilon", 2)
    before = (tmp_path / "d.ledger").read_bytes()
    words = ["synth", "none.csv", "-s", "s.yaml", "-e", 1, "-o", "o.csv", "--ledger", "d.ledger", "--quiet"]
    done = hedgerow(*words, env={"PYTHONPATH": str(tmp_path)})
    assert done.code == 2
    assert code_in(done.err) == "missing-package"
    assert "columns.mail: " in done.err
    assert "No row was read, nothing was spent. Hint: pip install 'hedgerow[fake]'." in done.err
    assert (tmp_path / "d.ledger").read_bytes() == before
    (tmp_path / "s.yaml").write_text(SCHEMA.replace("email", "email, locale: xx_XX"))
    (tmp_path / "faker.py").unlink()
    pytest.importorskip("faker")
    assert code_in(hedgerow(*words).err) == "unknown-locale"
