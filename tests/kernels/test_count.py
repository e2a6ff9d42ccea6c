"""The counting kernel counts what a plain reference counts, whatever the shapes, types, threads and layouts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow import _count
from hedgerow.audit.engine import reference_cells
from hedgerow.coded.domain import Domain
from hedgerow.coded.query import MarginalQuery, TreeQuery, total_query
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.engines.tally import plan
from hedgerow.private.exact import SparseCounts
from refusals import refused

SIZES = st.one_of(st.integers(1, 12), st.sampled_from([255, 256, 257, 65_535, 65_536, 65_537, 1 << 20]))
EVERYTHING_DENSE = 1 << 62


def random_codes(domain, rows, rng):
    """Codes of which half are one favourite, as in real tables, and the largest is always possible."""
    coded = {}
    for attribute in domain:
        codes = rng.integers(0, attribute.size, rows)
        codes[rng.random(rows) < 0.5] = attribute.size - 1
        coded[attribute.name] = codes.astype(attribute.dtype)
    return coded


@st.composite
def tables(draw, sizes=SIZES):
    domain = Domain.of({f"x{index}": size for index, size in enumerate(draw(st.lists(sizes, min_size=1, max_size=6)))})
    rows = draw(st.sampled_from([0, 1, 3, 50, 4095, 4097]))
    return domain, random_codes(domain, rows, np.random.default_rng(draw(st.integers(0, 2**32))))


@st.composite
def marginal_queries(draw, domain, most_cells=1 << 60):
    names = draw(st.lists(st.sampled_from(domain.names), unique=True, max_size=5))
    while domain.cells(names) > most_cells:
        names = names[1:]
    marginal = domain.marginal(names)
    levels = {}
    for name in marginal:
        if draw(st.booleans()):
            targets = draw(st.integers(1, 9))
            levels[name] = np.arange(domain[name].size) * 7 % targets
            levels[name][0] = targets - 1
    query = MarginalQuery(domain, marginal, levels=levels)
    if np.prod(query.shape, dtype=float) > 1e5 or draw(st.booleans()):
        return query
    blocks = np.arange(query.cells) % draw(st.integers(2, 9)) - 1
    blocks[-1] = 3
    return MarginalQuery(domain, marginal, levels=levels, blocks=blocks)


@st.composite
def tree_queries(draw, domain):
    """Random trees of at most 200 nodes: every node is a leaf or splits, children in one stretch after it."""
    attributes = domain.marginal(draw(st.lists(st.sampled_from(domain.names), unique=True, min_size=1)))
    split, child, leaves, nodes, node = [], [], 0, 1, 0
    while node < nodes:
        attribute = draw(st.integers(-1, len(attributes) - 1))
        size = domain[attributes[attribute]].size if attribute >= 0 else 0
        if attribute >= 0 and nodes + size <= 200:
            split.append(attribute)
            child.append(nodes)
            nodes += size
        else:
            split.append(-1)
            child.append(leaves)
            leaves += 1
        node += 1
    return TreeQuery(domain, attributes, split, child, draw(st.sampled_from([None, *domain.names])))


def count(domain, coded, queries, dense_cells, threads=1):
    rows = len(next(iter(coded.values())))
    return _count.count(
        list(coded.values()), rows, [plan(query, domain, {}) for query in queries], dense_cells, threads
    )


def occupied(answer):
    if isinstance(answer, tuple):
        return answer
    cells = np.flatnonzero(answer)
    return cells, answer[cells]


def assert_counted(query, answer, coded):
    cells = reference_cells(query, coded)
    expected, times = np.unique(cells[cells >= 0], return_counts=True)
    found, counts = occupied(answer)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(counts, times)


@settings(deadline=None, max_examples=150)
@given(st.data(), tables(), st.sampled_from([1, 1 << 10, 1 << 16, 1 << 20]), st.integers(1, 3))
def test_marginals_equal_the_reference_dense_or_sparse_on_any_number_of_threads(data, table, dense_cells, threads):
    domain, coded = table
    queries = data.draw(st.lists(marginal_queries(domain), max_size=5))
    answers = count(domain, coded, queries, dense_cells, threads)
    assert len(answers) == len(queries)
    for query, answer in zip(queries, answers, strict=True):
        assert isinstance(answer, tuple) == (query.cells > dense_cells)
        if not isinstance(answer, tuple):
            assert answer.dtype == np.int64
            assert answer.shape == (query.cells,)
        assert_counted(query, answer, coded)


@settings(deadline=None, max_examples=100)
@given(st.data(), tables(sizes=st.integers(1, 40)), st.sampled_from([1, 1 << 20]))
def test_trees_equal_the_reference(data, table, dense_cells):
    domain, coded = table
    coded = {name: codes[:200] for name, codes in coded.items()}
    query = data.draw(tree_queries(domain))
    assert_counted(query, count(domain, coded, [query], dense_cells)[0], coded)


@settings(deadline=None, max_examples=50)
@given(st.data(), tables(sizes=st.integers(1, 40)))
def test_leaves_are_those_that_a_walk_finds(data, table):
    domain, coded = table
    coded = {name: codes[:1100] for name, codes in coded.items()}
    query = data.draw(tree_queries(domain))
    unlabelled = TreeQuery(domain, query.splits_on, query.split, query.child)
    rows = len(next(iter(coded.values())))
    leaves = _count.find_leaves(list(coded.values()), rows, plan(unlabelled, domain, {}))
    np.testing.assert_array_equal(leaves, reference_cells(unlabelled, coded))


def test_many_tiles_are_counted_once_each_and_sparse_runs_merge():
    """More rows than a tile, so that lanes are added up several times and sorted runs are merged."""
    rng = np.random.default_rng(5)
    domain = Domain.of({"a": 7, "b": 300, "c": 4000, "d": 90_000})
    coded = random_codes(domain, 3 * (1 << 18) + 17, rng)
    level = np.arange(300) // 7
    queries = [
        total_query(domain),
        MarginalQuery(domain, ("a",)),
        MarginalQuery(domain, ("a", "b")),
        MarginalQuery(domain, ("b", "c")),
        MarginalQuery(domain, ("a", "b"), levels={"b": level}),
        MarginalQuery(domain, ("b", "c"), levels={"b": level}),
        MarginalQuery(domain, ("a", "b", "c", "d")),
    ]
    for dense_cells in (1, 1 << 22):
        for query, answer in zip(queries, count(domain, coded, queries, dense_cells, threads=2), strict=True):
            assert_counted(query, answer, coded)


def test_cells_beyond_four_billion_keep_their_numbers():
    domain = Domain.of({"a": 1 << 31, "b": 1 << 30, "c": 2})
    coded = {
        "a": np.array([(1 << 31) - 1, 0, (1 << 31) - 1], dtype=np.uint32),
        "b": np.array([(1 << 30) - 1, 5, (1 << 30) - 1], dtype=np.uint32),
        "c": np.array([1, 1, 1], dtype=np.uint8),
    }
    ((cells, counts),) = count(domain, coded, [MarginalQuery(domain, ("a", "b", "c"))], 1 << 16)
    assert cells.tolist() == [11, (1 << 62) - 1]
    assert counts.tolist() == [1, 2]


def test_more_cells_than_can_be_numbered_are_refused_by_name_before_anything_is_counted():
    domain = Domain.of({"a": 1 << 31, "b": 1 << 30, "c": 3})
    engine = ArrowEngine.from_codes(domain, {a.name: np.zeros(2, dtype=a.dtype) for a in domain})
    with refused("too-many-cells", "a × b × c"):
        engine.count([MarginalQuery(domain, ("a", "b", "c"))])
    with pytest.raises(ValueError, match=r"2\^62"):
        _count.Marginal([0, 1, 2], [1 << 31, 1 << 30, 3], [None] * 3, None)


def test_the_engine_answers_in_order_with_sealed_counts_dense_or_sparse_as_they_fit():
    rng = np.random.default_rng(2)
    domain = Domain.of({"a": 60, "b": 300, "c": 1000, "d": 100})
    coded = random_codes(domain, 500, rng)
    engine = ArrowEngine.from_codes(domain, coded)
    queries = [MarginalQuery(domain, m) for degree in (3, 1, 2) for m in domain.marginals(degree)] * 3
    for query, sealed in zip(queries, engine.count(queries), strict=True):
        counts = sealed.opened()
        assert isinstance(counts, SparseCounts) == (query.cells > 1 << 16)
        if isinstance(counts, SparseCounts):
            counts = (counts.cells, counts.counts)
        assert_counted(query, counts, coded)


def test_an_answer_stays_as_it_was_when_later_ones_reuse_buffers():
    domain = Domain.of({"a": 200, "b": 200})
    coded = random_codes(domain, 300, np.random.default_rng(3))
    query = MarginalQuery(domain, ("a", "b"))
    first = count(domain, coded, [query], EVERYTHING_DENSE)[0]
    copy = first.copy()
    for _ in range(20):
        count(domain, random_codes(domain, 300, np.random.default_rng(4)), [query] * 5, EVERYTHING_DENSE)
    np.testing.assert_array_equal(first, copy)


def test_a_query_of_another_domain_is_refused_because_the_kernel_trusts_shapes():
    domain = Domain.of({"a": 5, "b": 3})
    engine = ArrowEngine.from_codes(domain, {"a": np.array([4], np.uint8), "b": np.array([2], np.uint8)})
    smaller = Domain.of({"a": 4, "b": 3})
    tree = TreeQuery(smaller, ("b",), [0, -1, -1, -1], [1, 0, 1, 2], "a")
    for query in (MarginalQuery(smaller, ("a", "b")), tree):
        with refused("another-domain"):
            engine.count([query])


def test_codes_outside_their_attribute_are_refused_once_and_for_all():
    with refused("bad-codes", '"a"'):
        ArrowEngine.from_codes(Domain.of({"a": 5}), {"a": np.array([5], np.uint8)})


def test_the_kernel_refuses_plans_that_do_not_fit_the_table():
    codes = np.zeros(3, dtype=np.uint8)
    plan = _count.Marginal([1], [2], [None], None)
    with pytest.raises(ValueError, match="lacks"):
        _count.count([codes], 3, [plan], 10, 2)
    with pytest.raises(ValueError, match="as long as"):
        _count.count([codes], 4, [plan], 10, 1)
    with pytest.raises(ValueError, match="uint8"):
        _count.count([codes.astype(np.int64)], 3, [plan], 10, 1)
    with pytest.raises(ValueError, match="outside its size"):
        _count.Marginal([0], [2], [np.array([0, 2])], None)
    with pytest.raises(ValueError, match="one entry per cell"):
        _count.Marginal([0], [2], [None], np.array([0]))
    with pytest.raises(ValueError, match="after their parent"):
        _count.Tree([0], [2], np.array([0, -1], np.int32), np.array([1, 0]), 1, None, 1)
