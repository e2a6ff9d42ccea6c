"""What a public table teaches: relations that are there, and not those that chance shows in few rows."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit import check_method, check_model
from hedgerow.audit.method import BUDGETS, check_release, pairs, replay_pair
from hedgerow.audit.method import SCHEMA as AUDITED
from hedgerow.coded.domain import Domain
from hedgerow.methods import build
from hedgerow.methods.field_groups import FieldGroups
from hedgerow.methods.hedge import Hedge
from hedgerow.methods.match3 import Match3, Wanted
from hedgerow.methods.shared.public import Relations, forest
from hedgerow.models.segments import Segments
from hedgerow.models.tilted import Tilted
from hedgerow.run.prior import Prior


def relations(columns, sizes=None):
    domain = Domain.of(sizes or {name: int(max(codes, default=0)) + 1 for name, codes in columns.items()})
    table = {name: np.asarray(codes, dtype=domain[name].dtype) for name, codes in columns.items()}
    return Relations(domain, table, np.random.default_rng(1))


# what is learnt of a table


def test_a_copy_tells_everything_and_an_independent_column_nothing():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 8, 5000), rng.integers(0, 8, 5000)
    found = relations({"a": a, "copy": a[:], "b": b}).information()
    assert found["a", "copy"] == pytest.approx(np.log(8), abs=0.02)
    assert abs(found["a", "b"]) < 0.02


def test_wide_columns_of_few_rows_do_not_look_related():
    """By plain counts these two share about 3.6 of 4.6 nats, because most cells hold one row."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 120, 300), rng.integers(0, 120, 300)
    assert abs(relations({"a": a, "b": b}).information()["a", "b"]) < 0.15


def test_a_tree_misses_what_only_three_columns_show():
    """Two coins and whether they agree: by pairs 8 cells of 1/8, in truth 4 of 1/4, so an L1 distance of 1."""
    rng = np.random.default_rng(4)
    a, b, free = rng.integers(0, 2, 8000), rng.integers(0, 2, 8000), rng.integers(0, 5, 8000)
    found = relations({"a": a, "b": b, "agree": a ^ b, "free": free})
    assert found.missed("a", "b", "agree") == pytest.approx(1, abs=0.05)
    assert found.missed("agree", "a", "b") == pytest.approx(1, abs=0.05)
    assert abs(found.missed("a", "b", "free")) < 0.05


def test_a_tree_misses_nothing_of_a_chain_even_in_few_rows():
    rng = np.random.default_rng(5)
    a = rng.integers(0, 6, 400)
    left, right = (a * 5 + rng.integers(0, 12, 400) for _ in range(2))
    assert abs(relations({"a": a, "left": left, "right": right}).missed("a", "left", "right")) < 0.1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_codes_that_do_not_occur_and_names_of_codes_change_nothing(seed, rows):
    rng = np.random.default_rng(seed)
    columns = {name: rng.integers(0, 3, rows) for name in "abc"}
    spread = {name: np.array([7, 300, 70_000])[codes] for name, codes in columns.items()}
    plain, wide = relations(columns), relations(spread, dict.fromkeys("abc", 70_001))
    assert plain.information() == wide.information()
    assert plain.entropies() == wide.entropies()
    assert plain.missed("b", "a", "c") == wide.missed("b", "a", "c")


def test_pairs_that_are_too_wide_are_not_looked_at():
    found = relations({"a": range(100), "b": range(100), "c": [0, 1] * 50})
    assert set(found.information(most_cells=201)) == {("a", "c"), ("b", "c")}


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(10)))
def test_a_forest_is_the_spanning_tree_of_largest_strength(order):
    strengths = dict(zip(combinations("abcde", 2), order, strict=True))
    grown = forest([(name,) for name in "abcde"], strengths)
    trees = [
        four
        for four in combinations(strengths, 4)
        if len(forest([(n,) for n in "abcde"], dict.fromkeys(four, 0)).trees) == 1
    ]
    assert len(trees) == 5**3  # Cayley
    assert set(grown.pairs) == set(max(trees, key=lambda four: sum(strengths[pair] for pair in four)))
    assert grown.trees == [tuple("abcde")]


def test_a_forest_joins_whole_trees_and_only_what_fits():
    strengths = {("a", "c"): 3.0, ("c", "d"): 2.0, ("d", "e"): 1.0}
    grown = forest([("a", "b"), ("c",), ("d",), ("e",)], strengths, lambda tree: len(tree) <= 3)
    assert grown.pairs == [("a", "c"), ("d", "e")]
    assert grown.trees == [("a", "b", "c"), ("d", "e")]


# what the methods do with it

SCHEMA = """
columns:
  a: {type: code, size: 4}
  b: {type: code, size: 3}
  c: {type: code, size: 8}
  d: {type: code, size: 3}
  wage: {type: integer, min: 0, max: 999, bins: 10, heaps: [100, 10]}
"""


def planted(seed, count=3000):
    """c tells a, and b mostly the hundreds of the wage; d is b, or nothing where the wage is not round."""
    rng = np.random.default_rng(seed)
    a, b, odd = rng.integers(0, 4, count), rng.integers(0, 3, count), rng.integers(0, 2, count)
    hundreds = np.where(rng.random(count) < 0.9, b, rng.integers(0, 3, count))
    c, d = 2 * a + rng.integers(0, 2, count), np.where(odd, 0, b)
    return pa.table({"a": a, "b": b, "c": c, "d": d, "wage": 100 * hundreds + 5 * odd})


def loose(seed, count=3000):
    """The same columns, each shuffled by itself."""
    rng = np.random.default_rng(seed)
    table = planted(seed, count)
    return pa.table({name: table[name].to_numpy()[rng.permutation(count)] for name in table.column_names})


def asked(method, private, public):
    """The attributes of each query of the last charge."""
    schema = hr.Schema.parse(SCHEMA)
    made = hr.synthesize(private, schema, hr.Budget(4.0), method, public=public, unsafe_noise_seed=3, quality=0)
    return [tuple(query["attributes"]) for query in made.certificate.charges[-1].queries]


def test_groups_follow_the_public_table_and_never_the_private_one():
    together = [("a", "c"), ("b", "wage", "wage:heap"), ("d",)]
    alone = [("a",), ("b",), ("c",), ("d",), ("wage", "wage:heap")]
    assert asked(FieldGroups(), planted(1), planted(2)) == together
    assert asked(FieldGroups(), loose(1), planted(2)) == together
    assert asked(FieldGroups(), planted(1), loose(2)) == alone
    assert asked(FieldGroups(), planted(1), None) == alone


def test_groups_that_are_given_win_over_the_public_table():
    given = FieldGroups(groups=(("a", "d"),))
    assert asked(given, planted(1), planted(2)) == [("a", "d"), ("b",), ("c",), ("wage", "wage:heap")]


def test_learnt_groups_stay_below_their_limit(monkeypatch):
    monkeypatch.setattr("hedgerow.methods.field_groups.MOST_LEARNT_CELLS", 32)
    assert ("a", "c") in asked(FieldGroups(), planted(1), planted(2))
    monkeypatch.setattr("hedgerow.methods.field_groups.MOST_LEARNT_CELLS", 31)
    assert ("a", "c") not in asked(FieldGroups(), planted(1), planted(2))


def test_marginals_follow_the_public_table_and_never_the_private_one():
    found = asked(Match3(), planted(1), planted(2))
    assert {("a", "c"), ("b", "wage")} <= set(found)
    assert ("b", "d", "wage:heap") in found  # around d, what its two pairs miss
    assert ("b", "wage:heap") in found  # and the pair of its neighbours
    assert found == asked(Match3(), loose(1), planted(2))
    assert ("b", "d", "wage:heap") not in asked(Match3(), planted(1), loose(2))


def test_a_list_that_is_given_wins_over_the_public_table():
    assert asked(Match3(marginals=(Wanted(("a", "d")),)), planted(1), planted(2)) == [("a", "d")]


def test_forced_marginals_are_measured_beside_what_is_learnt():
    """The tree grows around their pairs: a and d, which have nothing to do with each other, are one of its branches."""
    forced = (Wanted(("a", "d"), 3.0), Wanted(("a", "b", "d")))
    found = asked(Match3(forced=forced), planted(1), planted(2))
    assert found[:2] == [("a", "d"), ("a", "b", "d")]
    assert {("a", "c"), ("b", "wage")} <= set(found)
    assert len(set(found)) == len(found)
    weights = (
        hr.synthesize(
            planted(1), hr.Schema.parse(SCHEMA), hr.Budget(4.0), Match3(forced=forced), public=planted(2), quality=0
        )
        .certificate.charges[-1]
        .weights
    )
    assert weights[:2] == (3.0, 1.0)


def test_the_word_public_asks_for_what_the_public_table_teaches(tmp_path):
    """Also where a preset has a list; a list of one's own is forced beside it."""
    (tmp_path / "block.yaml").write_text("- {columns: [a, d], weight: 2}\n")
    method = build("match3", {"marginals": "public", "forced": str(tmp_path / "block.yaml")})
    assert method.marginals == ()
    assert asked(method, planted(1), planted(2))[0] == ("a", "d")


# what it may not do


@pytest.mark.parametrize(
    "method",
    [FieldGroups(), Match3(), Match3(forced=(Wanted(("site", "age")),)), Hedge(), Hedge(segments=("site",))],
    ids=["field-groups", "match3", "match3 forced", "hedge", "hedge segments"],
)
def test_every_law_holds_with_a_public_table(method):
    check_method(method, seed=3, public=next(pairs(1, seed=9)).table)


@pytest.mark.parametrize("method", [Hedge(), Hedge(segments=("site",))], ids=["hedge", "hedge segments"])
def test_replay_finds_no_difference_where_a_public_table_is_doubted(method):
    """So large an ε that the distances from public pairs are asked for, and that rows of segments are chosen."""
    public = next(pairs(1, seed=9, people=400)).table
    for pair in pairs(5, seed=3, people=2_000):
        charges = replay_pair(method, hr.Budget(3000.0, 1e-9), pair, public=public).release.certificate.charges
        asked = [charge.purpose for charge in charges]
        assert asked.count("score") >= 2
        assert not method.segments or charges[-1].queries[0]["of"] == ["public rows", "model rows", "model"]


def test_replay_finds_no_difference_with_an_earlier_release(tmp_path):
    """Nor with segments."""
    earlier = next(pairs(1, seed=9, people=400)).table
    path = tmp_path / "earlier.release"
    hr.synthesize(earlier, hr.Schema.parse(AUDITED), hr.Budget(8.0, 1e-9), quality=0).save(path)
    for method in (Hedge(), Hedge(segments=("site",))):
        for budget in (*BUDGETS, hr.Budget(3000.0, 1e-9)):
            for pair in pairs(2, seed=3):
                made = replay_pair(method, budget, pair, prior=Prior.load(path)).release
                check_release(made)
                assert made.certificate.prior["sha256"] == Prior.load(path).digest


@pytest.mark.parametrize("kind", [Segments, Tilted])
def test_one_row_that_rounding_made_a_little_less_is_a_row(kind):
    """Shares that are added up again: 0.9999999999999999 rows were refused after they were paid for, or as a file."""
    domain = Domain.of({"site": 5, "age": 2})
    counts = np.array([0.07, 0.13, 0.23, 0.27, 0.3]) * (1 - 1e-15)
    assert counts.sum() < 1
    pool = {"age": np.array([0, 1], dtype=np.uint8)}
    rest = ({}, {}) if kind is Tilted else ((), (), 1)
    model = kind(domain, ("site",), counts, pool, *rest)
    assert len(model.draw(3, np.random.default_rng(0))["age"]) == 3
    check_model(model)
    with pytest.raises(hr.HedgerowError, match="a row at least"):
        kind(domain, ("site",), counts * 0, pool, *rest)
