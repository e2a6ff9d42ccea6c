"""The bridge between columns and attributes: groups, heaps, types, and the example schemas."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Attribute
from hedgerow.schema import Schema
from refusals import refused
from repository import ROOT

EXAMPLES = ROOT / "docs" / "use" / "examples"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def people() -> Schema:
    return Schema.parse("""
dataset: people
person: id
max_rows_per_person: 3
ignore: [note]
columns:
  age: {type: integer, min: 0, max: 115}
  wage: {type: integer, min: 0, max: 4999, bins: 50, special: [9999], heaps: [100, 50, 10]}
  covered: {type: category, values: [1, 2]}
  sex: {type: category, values: [f, m], missing: true}
  payer: {type: category, values: [1, 2, 3]}
  site: {type: code, size: 300}
groups:
  - {columns: [covered, payer], allowed: [[2, 1], [1, 3], [1, 2]]}
""")


def test_attributes_and_columns_are_many_to_many(people: Schema) -> None:
    encoding = people.encoding()
    assert encoding.domain.attributes == (
        Attribute("age", 117, ordered=116),
        Attribute("wage", 52, ordered=50),
        Attribute("wage:heap", 4, ordered=0),
        Attribute("covered+payer", 4, ordered=0),
        Attribute("sex", 4, ordered=0),
        Attribute("site", 300, ordered=None),
    )
    assert encoding.columns == ("age", "wage", "covered", "sex", "payer", "site")
    assert (encoding.person, encoding.rows_per_person) == ("id", 3)
    assert encoding.attributes_of("wage") == ("wage", "wage:heap")
    assert encoding.attributes_of("payer") == ("covered+payer",)
    assert encoding.columns_of("covered+payer") == ("covered", "payer")
    with refused("unknown-column", 'Did you mean "wage"'):
        encoding.attributes_of("wages")


def test_text_and_typed_batches_give_the_same_narrow_codes(people: Schema) -> None:
    encoding = people.encoding()
    typed = {
        "age": pa.array([39, None, 200]),
        "wage": pa.array([1500.0, 9999.0, 1234.0]),
        "covered": pa.array([2, 1, 2], pa.int8()),
        "sex": pa.array(["f", None, "x"]).dictionary_encode(),
        "payer": pa.array([1, 3, 3], pa.int64()),
        "site": pa.array([0, 299, 1000], pa.uint16()),
        "id": pa.array([1, 1, 2]),
    }
    text = {
        "age": ["39", "", "200"], "wage": ["1500", "9999", "1234"], "covered": ["2", "1", "2"], "sex": ["f", "", "x"],
        "payer": ["1", "3", "3"], "site": ["0", "299", "1000"],
    }  # fmt: skip
    coded = encoding.encode(pa.record_batch(typed))
    again = encoding.encode(pa.record_batch({name: pa.array(values) for name, values in text.items()}))
    assert list(coded) == list(encoding.domain.names)
    for attribute in encoding.domain:
        assert coded[attribute.name].dtype == attribute.dtype
        assert coded[attribute.name].tolist() == again[attribute.name].tolist()
    assert coded["wage"].tolist() == [15, 50, 12]
    assert coded["wage:heap"].tolist() == [0, 0, 3]
    assert coded["covered+payer"].tolist() == [0, 1, 3]


def test_decoding_gives_declared_types_back_and_repeats_itself(people: Schema) -> None:
    encoding = people.encoding()
    coded = {
        attribute.name: rng(index).integers(0, attribute.size, 2_000).astype(attribute.dtype)
        for index, attribute in enumerate(encoding.domain)
    }
    table = encoding.decode(coded, rng(5))
    assert table.schema == encoding.arrow_schema
    assert table.equals(encoding.decode(coded, rng(5)))
    pairs = set(zip(table["covered"].to_pylist(), table["payer"].to_pylist(), strict=True))
    assert pairs == {("2", "1"), ("1", "3"), ("1", "2")}, "impossible combinations never come back"
    assert table["age"].null_count == 0
    assert table["sex"].null_count > 0
    wages = np.array(table["wage"])
    round_ones = wages[(coded["wage:heap"] == 0) & (coded["wage"] < 50)]
    assert (round_ones % 100 == 0).all()


def test_slices_are_the_same_table(people: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedgerow.schema.encoding.SLICE_ROWS", 700)
    encoding = people.encoding()
    coded = {a.name: rng(1).integers(0, a.size, 2_000).astype(a.dtype) for a in encoding.domain}
    slices = list(encoding.decode_in_slices(coded, rng(5)))
    assert [len(each) for each in slices] == [700, 700, 600]
    assert pa.concat_tables(slices).equals(encoding.decode(coded, rng(5)))


def test_the_last_of_256_bins_is_drawn_from_like_any_other() -> None:
    """Codes of one byte: what lies one further must not wrap around."""
    encoding = Schema.parse("columns: {x: {type: number, min: 0, max: 256, bins: 256, missing: true}}").encoding()
    short = Schema.parse("columns: {x: {type: number, min: 0, max: 255, bins: 255, missing: true}}").encoding()
    for each in (encoding, short):
        last = each.domain["x"].size - 2
        drawn = each.decode({"x": np.full(50, last, dtype=each.domain["x"].dtype)}, rng())["x"].to_numpy()
        assert ((drawn >= last) & (drawn <= last + 1)).all()


def test_an_outlier_changes_neither_domain_nor_types(people: Schema) -> None:
    encoding = people.encoding()
    plain = {"age": ["1"], "wage": ["1"], "covered": ["1"], "sex": ["f"], "payer": ["2"], "site": ["1"]}
    odd = {"age": ["1e400"], "wage": ["ÿ"], "covered": ["CANARY"], "sex": ["\u0000"], "payer": [None], "site": ["-1"]}
    for values in (plain, odd):
        coded = encoding.encode(
            pa.record_batch({name: pa.array(column, pa.string()) for name, column in values.items()})
        )
        assert {name: codes.dtype for name, codes in coded.items()} == {
            each.name: each.dtype for each in encoding.domain
        }
        decoded = encoding.decode(coded, rng())
        assert decoded.schema == encoding.arrow_schema
        assert "CANARY" not in str(decoded.to_pydict())


def test_an_open_domain_has_no_encoding(people: Schema) -> None:
    data = people.to_dict()
    data["groups"][0]["allowed"] = "public"
    waiting = Schema.from_dict(data)
    assert waiting.public_groups == [0]
    with refused("needs-public-table"):
        waiting.encoding()
    filled = waiting.with_allowed(0, [("2", "1"), (1, 3), ("1", "2"), ("2", "1")])
    assert filled == people


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_group_codes_every_allowed_combination_and_nothing_else(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=12))
    row = st.tuples(*(st.integers(0, size - 1).map(str) for size in sizes))
    allowed = data.draw(st.lists(row, min_size=1, max_size=12, unique=True))
    names = [f"c{index}" for index in range(len(sizes))]
    schema = Schema(
        columns={name: {"type": "category", "values": list(map(str, range(size)))}
                 for name, size in zip(names, sizes, strict=True)},
        groups=[{"columns": names, "allowed": allowed}],
    )  # fmt: skip
    encoding = schema.encoding()
    rows = data.draw(st.lists(st.one_of(st.sampled_from(allowed), row), min_size=1, max_size=20))
    columns: list[Any] = list(zip(*rows, strict=True))
    batch = pa.record_batch({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
    (codes,) = encoding.encode(batch).values()
    expected = [allowed.index(each) if each in allowed else len(allowed) for each in rows]
    assert codes.tolist() == expected
    decoded = encoding.decode({"+".join(names): codes}, rng())
    for before, after, code in zip(rows, zip(*decoded.to_pydict().values(), strict=True), expected, strict=True):
        assert after == before if code < len(allowed) else after in allowed


@pytest.mark.parametrize("name", ["adult", "titanic"])
def test_examples_describe_their_tables(name: str, real_table) -> None:
    schema = Schema.load(EXAMPLES / f"{name}-raw.yaml")
    encoding = schema.encoding()
    path = real_table(f"{name}-raw") / f"{name}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    schema.check_header(lines[0])
    table = {column: [line[index] for line in lines[1:]] for index, column in enumerate(lines[0])}
    batch = pa.record_batch({column: pa.array(table[column]) for column in encoding.columns})
    misfits = {columns: int(outside.sum()) for columns, outside in encoding.outside(batch).items()}
    assert not any(count for columns, count in misfits.items() if columns != ("Cabin",))
    decoded = encoding.decode(encoding.encode(batch), rng())
    for column in encoding.columns:
        empty = [value == "" for value in table[column]]
        assert [value is None for value in decoded[column].to_pylist()] == empty, "missing values stay where they are"
    if name == "adult":
        gain = np.array(table["capital-gain"], dtype=int)
        kept = np.array(decoded["capital-gain"])
        for special in (0, 7298, 7688, 15024, 99999):
            assert ((gain == special) == (kept == special)).all()
