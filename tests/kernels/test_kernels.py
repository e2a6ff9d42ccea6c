"""The compiled modules trust nobody: sizes do not wrap, nothing is read or written outside an array, and what is wrong
ends in an exception. Each of these ended a process, hung, or was wrong in silence before."""

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hedgerow
import kernel_calls
from hedgerow import _count, _model, _records
from hedgerow.coded.domain import Domain
from hedgerow.coded.query import TreeQuery
from hedgerow.private.engines.arrow import ArrowEngine

WORDS = [1, 2, 3, 4]


def test_no_call_does_more_than_raise():
    ended = {kernel_calls.call(seed) for seed in range(3000)}
    assert {name for name, how in ended if how == "done"} == {call.__name__ for call in kernel_calls.CALLS}


@pytest.mark.audit
def test_no_call_out_of_many_does_more_than_raise():
    for seed in range(3000, 300_000):
        kernel_calls.call(seed)


# sizes


def test_a_message_whose_size_wraps_is_refused():
    """x·a, x·b, x·c: eliminating x leaves a·b·c, 2⁶⁴ cells less a few, while no leaf has more than 2²²."""
    sizes = [1, (1 << 22) - 1, 1 << 21, 1 << 21]
    leaves = [[0, 1], [0, 2], [0, 3]]
    buckets = [([0, 1, 2], [1, 2, 3]), ([3], [2, 3]), ([4], [3]), ([5], [])]
    with pytest.raises(ValueError, match="cells of a table: more than 1099511627776"):
        _model.Network(sizes, leaves, buckets, [])


@pytest.mark.parametrize("shape", [[1 << 32, 1 << 32], [-2, -2], [0], []])
def test_a_shape_whose_product_wraps_is_refused(shape):
    with pytest.raises(ValueError):
        _model.split_sequence(np.zeros(4), shape, 2, True)


def test_a_marginal_whose_cells_wrap_to_nothing_is_refused():
    columns = [np.zeros(3, dtype=np.uint32)] * 1
    for marginal in ([0] * 64, list(range(64))):
        sizes = [6] * (max(marginal) + 1)
        with pytest.raises(ValueError, match=r"distinct|cells of a marginal"):
            _records.Selection(columns * len(sizes), sizes, [marginal], [np.zeros(0)], [1.0])


# codes and indices


def test_a_code_that_no_query_declares_is_refused_wherever_it_lies():
    codes = np.zeros(600_000, dtype=np.uint8)
    codes[-1] = 9
    tree = _count.Tree([0], [2], np.array([0, -1, -1], np.int32), np.array([1, 0, 1]), 2, None, 1)
    labelled = _count.Tree([], [], np.array([-1], np.int32), np.array([0]), 1, 0, 2)
    level = _count.Marginal([0], [2], [np.array([0, 1])], None)
    for query in (_count.Marginal([0], [9], [None], None), level, tree, labelled):
        for threads in (1, 2):
            with pytest.raises(ValueError, match="a code outside the size that a query declares"):
                _count.count([codes], len(codes), [query], 100, threads)
    with pytest.raises(ValueError, match="a code outside the size"):
        _count.find_leaves([codes], len(codes), tree)


def test_level_maps_that_begin_alike_are_told_apart():
    whole = np.array([0, 1, 2, 0])
    codes = np.array([3, 1], dtype=np.uint8)
    short, full = (_count.Marginal([0], [3], [level], None) for level in (whole[:3], whole))
    with pytest.raises(ValueError, match="a code outside"):
        _count.count([codes], 2, [full, short], 100, 1)
    assert _count.count([codes], 2, [full], 100, 1)[0].tolist() == [1, 1, 0]


def test_a_level_map_that_was_changed_afterwards_is_looked_at_again():
    level = np.array([0, 1])
    query = _count.Marginal([0], [2], [level], None)
    level[1] = 1 << 20
    with pytest.raises(ValueError, match="a code outside"):
        _count.count([np.array([0, 1], dtype=np.uint8)], 2, [query], 100, 1)


def test_a_leaf_that_is_reached_on_a_longer_and_a_shorter_way_is_counted_once_for_both():
    """0 → 1 → 3 → 4 → 6 and 0 → 2 → 5 → 6; the longer way ended at node 4, which was taken for leaf 0."""
    domain = Domain.of({"a": 2, "one": 1})
    split, child = [0, 1, 1, 1, 1, 1, -1, -1], [1, 3, 5, 4, 6, 6, 1, 0]
    tree = TreeQuery(domain, ("a", "one"), split, child)
    coded = {"a": np.array([0, 1, 1], np.uint8), "one": np.zeros(3, np.uint8)}
    (counts,) = ArrowEngine.from_codes(domain, coded).count([tree])
    assert counts.opened().tolist() == [0, 3]


def test_tensors_by_number():
    network = _model.Network([2], [[0]], [([0], [])], [])
    for number in (-1, 2, 1 << 30):
        with pytest.raises(IndexError):
            network.value(number)
    for number in (-1, 0, 2):
        with pytest.raises(IndexError):
            network.ratio(number)
    assert not network.value(0).flags.writeable


@pytest.mark.parametrize(
    "buckets",
    [
        [([0], [1]), ([0], [0])],  # a neighbour that is not drawn yet
        [([0], [1])],  # an attribute that nobody eliminates
        [([], [0]), ([0], [])],
        [([0, 0], [1]), ([1], [])],
        [([0], []), ([1], [])],
        [([0, 2], [1]), ([1], [])],
        [([-1], [1]), ([1], [])],
    ],
)
def test_a_network_that_is_no_elimination_is_refused(buckets):
    with pytest.raises((ValueError, IndexError)):
        _model.Network([2, 2], [[0, 1]], buckets, [])


def test_axes_must_fit():
    one = np.ones(2)
    for sizes, inputs, axes, kept in [
        ([2], [one], [[5]], []),
        ([2], [one], [[0], [0]], []),
        ([2, 2], [np.ones(4)], [[1, 0]], []),
        ([2], [one], [[0]], [-1]),
        ([-2], [one], [[0]], []),
    ]:
        with pytest.raises((ValueError, IndexError)):
            _model.contract(sizes, inputs, axes, kept, np.empty(1), False)
    with pytest.raises(ValueError, match="among those of its leaf"):
        _model.Marginals([2, 2], [[0]], [(0, [1])], [1.0], [])


def test_cliques_must_be_of_attributes_that_exist():
    for cliques, kept in [([[0, 1_000_000]], []), ([[-1, 0]], []), ([], [7]), ([], [0, 0])]:
        with pytest.raises((ValueError, IndexError)):
            _model.elimination_order([2.0, 3.0], cliques, kept, 2)


# arrays


def test_columns_that_share_memory_are_refused():
    """A code of the wider attribute would be read as one of the narrower."""
    codes = np.zeros(10, dtype=np.uint32)
    with pytest.raises(ValueError, match="shares memory"):
        _records.update([codes, codes], [2, 9], [[0, 1]], [np.full(18, 1 / 18)], 2, 0.84, 1, 1, WORDS)
    network = _model.Network([2, 9], [[0], [1]], [([0], []), ([1], [])], [])
    network.calibrate(np.zeros(11), np.empty(11))
    with pytest.raises(ValueError, match="shares memory"):
        network.draw([codes, codes], WORDS, True)
    with pytest.raises(ValueError, match="too narrow"):
        _model.Network([300], [[0]], [([0], [])], []).draw([np.zeros(3, dtype=np.uint8)], WORDS, True)


def test_columns_to_be_filled_are_not_copied_in_silence():
    network = _model.Network([2], [[0]], [([0], [])], [])
    network.calibrate(np.zeros(2), np.empty(2))
    for columns in (np.zeros(10, dtype=np.uint8)[::2], np.zeros(5, dtype=np.float32), [0] * 5):
        with pytest.raises((TypeError, ValueError)):
            network.draw([columns], WORDS, True)


def test_addresses_that_do_not_suit_the_type_are_refused():
    odd = np.zeros(17, dtype=np.uint8)[1:].view(np.float64)
    with pytest.raises(ValueError, match="address"):
        _model.merge_sequence(odd)


# numbers


def test_words_of_zero_would_draw_zeros_for_ever():
    with pytest.raises(ValueError, match="not all 0"):
        _records.update([np.zeros(3, dtype=np.uint32)], [3], [], [], 1, 0.84, 1, 1, [0, 0, 0, 0])


@pytest.mark.parametrize("share", [np.nan, np.inf, -0.5, 1e300])
def test_shares_are_shares(share):
    column = np.zeros(9, dtype=np.uint32)
    with pytest.raises(ValueError, match="between 0 and 1"):
        _records.update([column], [2], [[0]], [np.array([0.5, share])], 3, 0.84, 1, 1, WORDS)


def test_a_decay_above_one_would_ask_cells_for_more_rows_than_they_have():
    column = np.array([0] * 90 + [1] * 2, dtype=np.uint32)
    with pytest.raises(ValueError, match="decay"):
        _records.update([column], [2], [[0]], [np.array([0.1, 0.9])], 9, 50.0, 1, 0, WORDS)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_potential_that_is_no_number_has_no_weight(value):
    network = _model.Network([3], [[0]], [([0], [])], [])
    assert network.calibrate(np.array([0.0, value, 0.0]), np.empty(3)) == -np.inf


# the stubs


def documented(body):
    """Names that a stub declares and explains, those inside of classes too; parameters by name."""
    found = {}
    for each in body:
        if isinstance(each, ast.ClassDef):
            found |= {each.name: ast.get_docstring(each)}
            found |= {f"{each.name}.{name}": text for name, text in documented(each.body).items()}
        elif isinstance(each, ast.FunctionDef):
            found[each.name] = ast.get_docstring(each)
    for each, beside in pairwise(body):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            said = isinstance(beside, ast.Expr) and isinstance(beside.value, ast.Constant) and beside.value.value
            found[each.target.id] = said
    return found


@pytest.mark.parametrize("module", [_count, _model, _records])
def test_every_name_that_is_exported_is_explained_in_the_stub(module):
    name = module.__name__.split(".")[-1]
    stub = ast.parse((Path(hedgerow.__file__).parent / f"{name}.pyi").read_text(encoding="utf-8"))
    explained = documented(stub.body)
    assert ast.get_docstring(stub)
    assert all(explained.values())
    exported = set()
    for public, thing in vars(module).items():
        if not public.startswith("_"):
            exported.add(public)
            if isinstance(thing, type):
                exported |= {f"{public}.{each}" for each in vars(thing) if not each.startswith("_")}
    assert exported == {name for name in explained if not name.endswith("__init__")}


# the machine


def test_one_object_serves_several_threads():
    """They wait for each other: its working space is one."""
    rng = np.random.default_rng(0)
    structure = [[0, 1], [1, 2]], [([0], [1]), ([1, 2], [2]), ([3], [])]
    network = _model.Network([150, 160, 170], *structure, [])
    cells = 150 * 160 + 160 * 170
    potentials, expected = rng.normal(size=cells), np.empty(cells)
    network.calibrate(potentials, expected)
    columns = [rng.integers(0, 4, 300).astype(np.uint32)]
    selection = _records.Selection(columns, [4], [[0]], [np.full(4, 0.25)], [1.0])
    alone = np.zeros(40, dtype=np.int64)
    selection.choose(alone, 300, 100, 5, WORDS)

    def work(_):
        marginals, chosen = np.empty(cells), np.zeros(40, dtype=np.int64)
        for _ in range(20):
            network.calibrate(potentials, marginals)
            network.draw([np.zeros(50, dtype=np.uint8) for _ in range(3)], WORDS, True)
            selection.choose(chosen, 300, 100, 5, WORDS)
        return np.array_equal(marginals, expected) and np.array_equal(chosen, alone)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="a sanitizer needs all of the address space")
def test_threads_that_cannot_be_started_are_done_without():
    """Stacks of 1 GB each in an address space of 3: the count is the same, and nothing is ended by force."""
    program = (
        "import resource, numpy as np; from hedgerow import _count;"
        "codes = np.arange(300_000, dtype=np.uint32) % 7;"
        "query = _count.Marginal([0], [7], [None], None);"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "answers = _count.count([codes], len(codes), [query] * 20, 100, 16);"
        "assert all(np.array_equal(a, np.bincount(codes)) for a in answers)"
    )
    narrow = ["bash", "-c", 'ulimit -s 1048576 && exec "$@"', "-", sys.executable, "-c", program]
    assert subprocess.run(narrow, check=False).returncode == 0
