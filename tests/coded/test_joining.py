"""Attributes read as one: every row has one code, and counts through a join are counts of rows."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.joining import Join, Joining
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.private.engines.arrow import ArrowEngine
from refusals import refused

DOMAIN = Domain.of({"a": 4, "b": 3, "c": 5, "e": 2})
CELLS = list(itertools.product(range(4), range(5)))
NAME = "a and c"


def join_of(lines):
    return Join({"a": 4, "c": 5}, np.array(lines))


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    return {a.name: rng.integers(0, a.size, count).astype(a.dtype) for a in DOMAIN}


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=20, unique=True), st.integers(0, 50))
def test_a_row_has_the_code_of_its_combination_or_the_last(lines, count):
    table = rows(count)
    codes = join_of(lines).codes([table["a"], table["c"]])
    place = {line: number for number, line in enumerate(lines)}
    expected = [place.get(pair, len(lines)) for pair in zip(table["a"].tolist(), table["c"].tolist(), strict=True)]
    assert codes.tolist() == expected


def test_ten_wide_members_are_numbered():
    """100¹⁰ cells have no number of 64 bits; their combinations do."""
    rng = np.random.default_rng(1)
    lines = np.unique(rng.integers(0, 100, (300, 10)), axis=0)
    join = Join({f"x{index}": 100 for index in range(10)}, rng.permutation(lines))
    assert join.codes(list(join.combinations.T)).tolist() == list(range(len(lines)))


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=20, unique=True), st.data())
def test_counts_through_joins_and_maps_are_those_of_recoded_rows(lines, data):
    table = rows(200)
    joining = Joining(DOMAIN, {NAME: join_of(lines)})
    target = joining.target()
    assert target.names == (NAME, "b", "e")
    levels = data.draw(st.lists(st.integers(0, 2), min_size=len(lines) + 1, max_size=len(lines) + 1))
    recoding = Recoding(target, {NAME: np.unique(levels, return_inverse=True)[1]})
    read = recoding.rows(joining.rows(table))
    for marginal in [(NAME,), (NAME, "e"), ("b", "e"), (NAME, "b", "e")]:
        asked = joining.translated(recoding.translated(MarginalQuery(recoding.target(), marginal)))
        [exact] = ArrowEngine.from_codes(DOMAIN, table).count([asked])
        cells = np.zeros(200, dtype=np.int64)
        for name in marginal:
            cells = cells * recoding.target()[name].size + read[name]
        assert exact.opened().tolist() == np.bincount(cells, minlength=asked.cells).tolist()
        assert set(asked.reads) == {m for n in marginal for m in (("a", "c") if n == NAME else (n,))}
        assert asked.description["attributes"] == list(asked.reads)


def test_what_a_marginal_is_part_of():
    joining = Joining(DOMAIN, {NAME: join_of([(0, 0)])})
    assert joining.marginal(("a", "b")) == (NAME, "b")
    assert joining.marginal(("a", "c")) == (NAME,)
    assert joining.marginal(("b", "e")) == ("b", "e")


def test_another_join_is_another_query():
    queries = [
        Joining(DOMAIN, {NAME: join_of(lines)}).translated(MarginalQuery(Domain.of({NAME: 3}), (NAME,)))
        for lines in ([(0, 0), (1, 1)], [(0, 0), (1, 2)])
    ]
    assert queries[0].description != queries[1].description


@pytest.mark.parametrize("lines", [[], [(0, 0), (0, 0)], [(4, 0)], [(0, -1)], [(0, 0, 0)]])
def test_lines_that_are_no_combinations_are_refused(lines):
    with refused("bad-join"):
        join_of(np.array(lines, dtype=np.int64).reshape(len(lines), -1) if lines else np.empty((0, 2), dtype=np.int64))


def test_joins_that_share_a_member_or_a_name_are_refused():
    first, second = join_of([(0, 0)]), Join({"a": 4, "b": 3}, np.array([[0, 0]]))
    with refused("bad-join"):
        Joining(DOMAIN, {"one": first, "two": second})
    with refused("bad-join"):
        Joining(DOMAIN, {"b": first})
    with refused("bad-join"):
        Joining(DOMAIN, {"one": Join({"c": 5, "a": 4}, np.array([[0, 0]]))})
    with refused("another-domain"):
        MarginalQuery(DOMAIN, ("one",), joins={"one": Join({"a": 3, "c": 5}, np.array([[0, 0]]))})
