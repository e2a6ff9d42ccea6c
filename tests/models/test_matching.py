"""Totals are matched to the last row, and the rest of the distribution stays as near to the model as they allow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.matching import matched, raked, split
from hedgerow.models.records import Records, Target
from hedgerow.schema.totals import _ordered

SMALL = Domain.of({"a": 3, "b": 4, "c": 2, "d": 3})
ORDERS = [[("a",)], [("a", "b"), ("b", "c")], [("a",), ("c", "d")], [("a", "b"), ("a", "d"), ("a", "c"), ("c",)]]


def graphical():
    structure = plan(SMALL, [("a", "b"), ("b", "c"), ("c", "d")])
    return GraphicalModel(structure, np.random.default_rng(5).normal(0, 1, structure.leaf_cells), 900.0)


def histograms():
    rng = np.random.default_rng(1)
    return Histograms(SMALL, [Part((name,), rng.random(SMALL[name].size)) for name in SMALL.names], 900.0)


def records():
    shares = np.random.default_rng(2).random((3, 4))
    return Records(SMALL, [Target(("a", "b"), shares / shares.sum())], 900.0)


def counted(rows, marginal):
    table = np.zeros(SMALL.shape(marginal), dtype=np.int64)
    np.add.at(table, tuple(rows[name] for name in marginal), 1)
    return table


def totals(marginals, count, seed):
    """Tables that agree, because they count the same rows."""
    rng = np.random.default_rng(seed)
    rows = {name: rng.integers(0, SMALL[name].size, count) ** 2 % SMALL[name].size for name in SMALL.names}
    return [(marginal, counted(rows, marginal)) for marginal in marginals]


@pytest.mark.parametrize("marginals", ORDERS)
@pytest.mark.parametrize("made", [graphical, histograms, records])
def test_rows_match_every_table(made, marginals):
    model, wanted = made(), totals(marginals, 700, 3)
    rows = matched(raked(model, wanted), wanted, np.random.default_rng(0))
    for marginal, counts in wanted:
        assert np.array_equal(counted(rows, marginal), counts)
    again = matched(raked(model, wanted), wanted, np.random.default_rng(0))
    assert all(np.array_equal(rows[name], again[name]) for name in SMALL.names)


@pytest.mark.parametrize("marginals", ORDERS)
def test_a_raked_model_is_the_nearest_one_with_the_totals(marginals):
    """Against raking of the whole joint; where no total speaks, ratios inside a cell of the totals are the model's."""
    model, wanted = graphical(), totals(marginals, 5000, 4)
    found = raked(model, wanted)
    joint = model.marginal(SMALL.names) / model.total
    for _ in range(500):
        for marginal, counts in wanted:
            axes = tuple(axis for axis, name in enumerate(SMALL.names) if name not in marginal)
            have = joint.sum(axis=axes, keepdims=True)
            joint = joint * (counts / counts.sum()).reshape(have.shape) / np.where(have > 0, have, 1)
    assert np.allclose(found.marginal(SMALL.names) / found.total, joint, atol=1e-7)


def test_rows_given_the_totals_follow_the_model():
    """b given a is the model's, whatever the totals of a are: each cell within six and a half standard deviations."""
    model, wanted = graphical(), [(("a",), np.array([4000, 15000, 1000]))]
    rows = matched(raked(model, wanted), wanted, np.random.default_rng(0))
    pairs = model.marginal(("a", "b"))
    expected = pairs / pairs.sum(axis=1, keepdims=True) * wanted[0][1][:, None]
    assert (np.abs(counted(rows, ("a", "b")) - expected) <= 6.5 * np.sqrt(expected) + 14).all()


@given(st.integers(0, 3), st.lists(st.integers(1, 400), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_blocks_share_the_totals(which, sizes, seed):
    """What blocks are dealt adds up to the totals, and agrees within every block."""
    wanted = totals(ORDERS[which], sum(sizes), seed)
    parts = [split(wanted, sizes, number, np.random.default_rng(seed)) for number in range(len(sizes))]
    for index, (_, counts) in enumerate(wanted):
        assert np.array_equal(sum(part[index][1] for part in parts), counts)
    for size, part in zip(sizes, parts, strict=True):
        assert all(counts.sum() == size and counts.min() >= 0 for _, counts in part)
        rows = matched(graphical(), part, np.random.default_rng(1))
        assert all(np.array_equal(counted(rows, marginal), counts) for marginal, counts in part)


@pytest.mark.parametrize(
    ("marginals", "tree"),
    [
        ([("a", "b"), ("b", "c"), ("a", "c")], False),
        ([("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], False),
        ([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")], True),
        ([("a", "b"), ("c", "d"), ("b", "c")], True),
        ([("a",), ("b",)], True),
    ],
)
def test_junction_trees_are_told_from_circles(marginals, tree):
    assert (_ordered(marginals) is not None) == tree
