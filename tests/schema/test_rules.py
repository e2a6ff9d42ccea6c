"""Rules of a schema: what they say, when they are refused, what they leave possible."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.joining import Join, Joining
from hedgerow.coded.recoding import Recoding
from hedgerow.schema import Schema
from hedgerow.schema.draft import draft_schema
from hedgerow.schema.leaves import Leaf, parted
from hedgerow.schema.rules.boundaries import boundaries
from hedgerow.schema.rules.satisfying import satisfied
from hedgerow.schema.rules.zeros import Mend
from refusals import refused

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99},
    "status": {"type": "category", "values": ["N", "married", "single"]},
    "income": {"type": "number", "min": 0, "max": 10_000, "decimals": 2, "missing": True},
    "tip": {"type": "number", "min": 0, "max": 10_000, "decimals": 2},
    "first": {"type": "date", "min": "2020-01-01", "max": "2020-03-01"},
    "last": {"type": "date", "min": "2020-01-01", "max": "2020-03-01"},
}


def declared(*rules, derive=None, columns=COLUMNS):
    return Schema.from_dict({"columns": columns, "rules": list(rules), "derive": derive or {}})


def test_a_schema_with_rules_reads_back_as_itself(tmp_path):
    (tmp_path / "zones.csv").write_text("zone,price,unused\na,1.5,x\nb,2.5,y\na,1.5,z\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns:\n"
        "  zone: {type: category, values: [a, b]}\n"
        "  price: {type: number, min: 0, max: 100, decimals: 1}\n"
        "  age: {type: integer, min: 0, max: 99}\n"
        "derive: {half: price / 2}\n"
        "rules:\n"
        "  - age > 3\n"
        "  - {when: zone = 'a', then: half < 1}\n"
        "  - {columns: [zone, price], lookup: zones.csv}\n"
    )
    schema = Schema.load(path)
    assert schema.rules[2].lookup == (("a", "1.5"), ("b", "2.5"))
    assert schema.discoveries == []  # the table lists every price
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.parse(schema.to_yaml()) == schema
    assert schema.encoding().domain.names == ("zone+price", "age")
    table = pa.table({"zone": ["a", "a", "b"], "price": [1.5, 2.5, 2.5], "age": [4, 4, 3]})
    assert schema.kept_rules.broken(table).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("rules", "derive", "code"),
    [
        (["ages > 3"], {}, "unknown-column"),
        ([{"when": "age < 3", "than": "status = 'N'"}], {}, "unknown-key"),
        ([{"when": "age < 3"}], {}, "bad-rule"),
        (["age >"], {}, "bad-condition"),
        (["1 = 1"], {}, "rule-without-columns"),
        ([{"columns": ["age", "x"], "lookup": [["1", "2"]]}], {}, "unknown-column"),
        ([{"columns": ["age", "status"], "lookup": [["1", "widowed"]]}], {}, "undeclared-value"),
        ([{"columns": ["age", "status"], "lookup": [["1"]]}], {}, "bad-lookup"),
        ([{"columns": ["age", "status"], "lookup": "/etc/passwd"}], {}, "lookup-path"),
        ([], {"a": "b + 1", "b": "a + 1"}, "recursive-derive"),
        ([], {"a": "a + 1"}, "recursive-derive"),
        ([], {"age": "tip + 1"}, "derived-and-declared"),
        ([], {"total": "tip + incom"}, "unknown-column"),
    ],
)
def test_rules_that_cannot_be_read_are_refused(rules, derive, code):
    with refused(code):
        declared(*rules, derive=derive)


def test_a_comma_in_a_condition_is_explained():
    with refused("not-yaml", "double quotes"):
        Schema.parse(
            "columns:\n  a: {type: category, values: [x, y, z]}\nrules:\n  - {when: a = 'x', then: a IN ('x', 'y')}\n"
        )


@pytest.mark.parametrize(
    ("rules", "code", "held"),
    [
        (["age > 120"], "unsatisfiable-rule", ["rule 1 (age > 120)"]),
        (["age < 10", "tip < 5", "age > 20"], "rules-clash", ["rule 1", "rule 3"]),
        (["age < last - first", "last < first", "age > 3"], "rules-clash", ["rule 1", "rule 2"]),
        (["tip + income > 15000", "tip < 100", "income IS NOT NULL"], "rules-clash", ["rule 1", "rule 2", "rule 3"]),
        (["age + tip * 2 = 0.005 + tip"], "unsatisfiable-rule", ["rule 1"]),
    ],
)
def test_rules_that_no_row_can_obey_are_named(rules, code, held):
    with refused(code, *held):
        declared(*rules).check_rules()


def test_a_rule_of_too_many_combinations_is_refused():
    wide = {f"c{index}": {"type": "category", "values": [str(value) for value in range(60)]} for index in range(4)}
    with refused("huge-rule", "rule 1"):
        declared("c0 = '1' OR c1 = '2' OR c2 = '3' OR c3 = '4'", columns=wide).check_rules()


@pytest.mark.parametrize(
    "rules",
    [
        ["first <= last", "last - first < 3"],
        ["tip + income = 1234.56", "tip > 1000"],
        [{"when": "age < 15", "then": "status = 'N' AND income IS NULL"}, "age < 10"],
        ["tip * 3 = income", "income > 0.5", "income < 1"],
    ],
)
def test_a_legal_row_is_found(rules):
    schema = declared(*rules)
    row = satisfied(schema.settled().kept_rules)
    assert not schema.kept_rules.broken(row).any()


SMALL = {
    "a": {"type": "integer", "min": 0, "max": 3, "missing": True},
    "b": {"type": "category", "values": ["x", "y"]},
    "c": {"type": "integer", "min": 1, "max": 3},
}
PARTS = st.sampled_from(
    ["a < 2", "a > c", "b = 'x'", "a IS NULL", "c <> 2", "a + c = 4", "a = c", "b = 'y' AND c = 1", "c * 2 > a + 3"]
)
RULES = st.lists(
    st.one_of(PARTS, st.tuples(PARTS, PARTS).map(lambda two: {"when": two[0], "then": two[1]})), min_size=1, max_size=4
)


def _everything():
    values = [[0, 1, 2, 3, None], ["x", "y"], [1, 2, 3]]
    return pa.table(dict(zip(SMALL, map(list, zip(*itertools.product(*values), strict=True)), strict=True)))


@settings(max_examples=80, deadline=None)
@given(RULES)
def test_zeros_and_satisfiability_are_those_of_brute_force(rules):
    """On a domain with a cell for each value, what is possible is exactly what some legal row holds."""
    schema = declared(*rules, columns=SMALL)
    everything = _everything()
    broken = schema.kept_rules.broken(everything)
    if broken.all():
        with pytest.raises(Exception, match="rule"):
            schema.check_rules()
        return
    schema.check_rules()
    encoding = schema.encoding()
    codes = {name: codes.astype(int) for name, codes in zip(SMALL, _codes(schema, everything), strict=True)}
    legal = np.ones(len(broken), dtype=bool)
    for marginal, possible in encoding.domain.support.items():
        legal &= possible[tuple(codes[name] for name in marginal)]
    assert (legal == ~broken).all()
    mended = encoding.encode(everything)
    assert all((mended[name][~broken] == codes[name][~broken]).all() for name in SMALL)


def _codes(schema, table):
    return [schema.columns[name].encode(table.column(name).combine_chunks()).codes[0] for name in SMALL]


def test_a_mend_changes_what_a_rule_names_last_to_the_nearest_legal_code():
    domain = Domain.of({"age": 4, "status": 3})
    legal = np.array([[True, False, False], [True, False, False], [False, True, True], [False, True, True]])
    mend = Mend.of(("age", "status"), ["age", "status"], legal, domain)
    coded = {"age": np.array([0, 1, 2, 3], np.uint8), "status": np.array([2, 1, 0, 2], np.uint8)}
    mend(coded)
    assert coded["age"].tolist() == [0, 1, 2, 3]
    assert coded["status"].tolist() == [0, 0, 1, 2]


def test_numbers_are_cut_where_rules_tell_them_apart():
    schema = declared("tip = 0 OR tip >= 2.5", {"when": "income > 100", "then": "tip < 7"})
    assert boundaries(schema.kept_rules.conditions, "tip") == [0, 1, 250, 700]
    assert boundaries(schema.kept_rules.conditions, "income") == [10_001]
    assert parted([[Leaf(0, 99, 100), Leaf(200, 299, 50)]], [0, 1, 250]) == [
        [Leaf(0, 0, 1)],
        [Leaf(1, 99, 99), Leaf(200, 249, 25)],
        [Leaf(250, 299, 25)],
    ]


def test_a_draft_takes_what_sql_checks_of_several_columns(tmp_path):
    path = tmp_path / "trips.sql"
    path.write_text(
        "CREATE TABLE trips (fare numeric(8,2) CHECK (fare BETWEEN 0 AND 500),\n"
        " tip numeric(8,2) CHECK (tip >= 0 AND tip <= 500), pay text CHECK (pay IN ('cash', 'card')), note text,\n"
        " CONSTRAINT no_tip CHECK (pay <> 'cash' OR tip = 0), CHECK (tip <= fare), CHECK (length(note) < tip));"
    )
    draft = draft_schema(["fare", "tip", "pay", "note"], [str(path)])
    assert "# CHECK (length(note) < tip) may become one of the `rules`." in draft.text
    schema = Schema.parse(draft.text.replace("values: TODO", "values: [a]"))
    assert [str(rule) for rule in schema.rules] == ["pay <> 'cash' OR tip = 0", "tip <= fare"]


def test_what_follows_from_other_zeros_is_no_clique_and_still_cannot_occur():
    """The wide table goes; over all codes that are declared, what can occur is what the rules say, by brute force."""
    columns = {
        "age": {"type": "integer", "min": 0, "max": 9},
        "code": {"type": "category", "values": ["N", *"abcdef"]},
        "group": {"type": "category", "values": ["N", "x", "y"]},
    }
    listed = [["N", "N"], ["a", "x"], ["b", "x"], ["c", "y"], ["d", "y"], ["e", "y"], ["f", "x"]]
    young = [{"when": "age < 3", "then": f"{name} = 'N'"} for name in ("code", "group")]
    schema = declared(*young, {"columns": ["code", "group"], "lookup": listed}, columns=columns)
    domain = schema.encoding().domain
    assert set(domain.support) == {("age", "group"), ("code", "group")}
    values = [columns["code"]["values"], columns["group"]["values"]]
    rows = list(itertools.product(range(10), *values))
    table = pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))
    codes = schema.with_stand_ins().encoding()
    legal = np.ones(len(rows), dtype=bool)
    coded = {block.names[0]: block.encode(table).codes[0] for block in codes.blocks}
    for marginal, possible in domain.support.items():
        legal &= possible[tuple(coded[name] for name in marginal)]
    assert np.array_equal(legal, ~schema.kept_rules.broken(table))


def test_a_join_keeps_what_can_occur():
    possible = np.array([[True, False], [False, False], [False, True]])
    domain = Domain(Domain.of({"a": 3, "b": 2, "c": 2}), {("a", "b"): possible, ("b", "c"): np.eye(2, dtype=bool)})
    joined = Joining(domain, {"ac": Join({"a": 3, "c": 2}, np.array([[0, 1], [2, 1]]))}).target()
    assert joined.names == ("ac", "b")
    assert joined.support["ac", "b"].tolist() == [[False, False], [False, True], [True, True]]


def test_a_recoding_keeps_what_can_occur():
    possible = np.array([[True, False], [False, False], [False, True]])
    domain = Domain(Domain.of({"a": 3, "b": 2}), {("a", "b"): possible})
    assert domain.kinds("a").tolist() == [2, 0, 1]
    merged = Recoding(domain, {"a": np.array([0, 0, 1])}).target()
    assert merged.support["a", "b"].tolist() == [[True, False], [False, True]]
