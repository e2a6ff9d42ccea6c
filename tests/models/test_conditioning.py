"""Models given something draw what their joint says given it: every kind, on small domains, against brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.joining import Join, Joining
from hedgerow.coded.recoding import Recoding
from hedgerow.models import conditioning
from hedgerow.models.conditioning import Factor, TooRareError, completed
from hedgerow.models.expanded import Expanded
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.joined import Joined
from hedgerow.models.records import Adjusted, Records, Target
from hedgerow.models.segments import Segments
from models_by_hand import models

ROWS = 20_000
SMALL = Domain.of({"a": 3, "b": 4, "c": 2})


def share(model, factors):
    """Weights of every row of the domain under the model, times the factors."""
    joint = model.marginal(model.domain.names) / model.total
    for factor in factors:
        order = [factor.marginal.index(name) for name in model.domain.names if name in factor.marginal]
        shape = [model.domain[name].size if name in factor.marginal else 1 for name in model.domain.names]
        joint = joint * factor.weights.transpose(order).reshape(shape)
    return joint


def drawn(model, factors, rows=ROWS, seed=0):
    """Rows of a model that is given factors, whatever it leaves."""
    return conditioning.drawn(conditioning.given(model, factors), rows, np.random.default_rng(seed))


def counts(domain, rows):
    table = np.zeros(domain.shape(domain.names))
    np.add.at(table, tuple(rows[name] for name in domain.names), 1)
    return table


def follows(rows, law, domain):
    """Each cell within six and a half standard deviations and some rows (false alarms below 1e-9 a cell)."""
    expected = law / law.sum() * len(rows[domain.names[0]])
    return (np.abs(counts(domain, rows) - expected) <= 6.5 * np.sqrt(expected) + 14).all()


@st.composite
def conditioned(draw):
    """A small graphical model, and up to three factors that leave it some mass."""
    model = draw(models())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    subsets = st.sets(st.sampled_from(model.domain.names), min_size=1, max_size=3)
    marginals = [model.domain.marginal(names) for names in draw(st.lists(subsets, min_size=1, max_size=3))]
    factors = []
    for marginal in marginals:
        shape = model.domain.shape(marginal)
        weights = rng.integers(0, 2, shape).astype(float) if draw(st.booleans()) else rng.random(shape)
        factors.append(Factor(marginal, weights))
    return model, factors


@given(conditioned())
@settings(max_examples=60, deadline=None)
def test_a_graphical_model_takes_up_every_factor_exactly(case):
    model, factors = case
    law = share(model, factors)
    found = conditioning.given(model, factors)
    assert not found.left
    assert np.isclose(found.share, law.sum(), rtol=1e-6, atol=1e-12)
    if found.possible:
        exact = found.model.marginal(model.domain.names) / model.total
        assert np.allclose(exact, law / law.sum(), atol=1e-7)


def graphical():
    structure = plan(SMALL, [("a", "b"), ("b", "c")])
    return GraphicalModel(structure, np.random.default_rng(5).normal(0, 1, structure.leaf_cells), 5000.0)


def expanded():
    """b has seven codes that stand for the four of the model inside."""
    domain = Domain.of({"a": 3, "b": 7, "c": 2})
    return Expanded(graphical(), Recoding(domain, {"b": np.array([0, 0, 1, 2, 2, 2, 3])}), {"b": np.arange(1.0, 8)})


def histograms():
    rng = np.random.default_rng(3)
    return Histograms(
        SMALL, [Part(("a", "c"), rng.random(4), np.array([0, 2, 3, 5])), Part(("b",), rng.random(4))], 900
    )


def segments():
    pool = {"b": np.array([0, 1, 1, 2, 3, 3, 3], np.uint8), "c": np.array([0, 1, 0, 0, 1, 1, 0], np.uint8)}
    return Segments(SMALL, ("a",), np.array([30.0, 50.0, 20.0]), pool, [], [], 7)


def joined():
    """a and b are one attribute inside: four combinations, and the rest."""
    rng = np.random.default_rng(4)
    joining = Joining(SMALL, {"a + b": Join({"a": 3, "b": 4}, np.array([[0, 1], [2, 3], [1, 1], [0, 0]]))})
    structure = plan(joining.target(), [("a + b", "c")])
    inside = GraphicalModel(structure, rng.normal(0, 1, structure.leaf_cells), 700.0)
    rest = Histograms(Domain.of({"a": 3, "b": 4}), [Part(("a",), rng.random(3)), Part(("b",), rng.random(4))], 9.0)
    return Joined(inside, joining, {"a + b": rest})


MODELS = {
    "graphical": graphical,
    "expanded": expanded,
    "histograms": histograms,
    "segments": segments,
    "joined": joined,
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_draws_its_joint_given_factors(kind):
    model = MODELS[kind]()
    domain, rng = model.domain, np.random.default_rng(11)
    a, b = domain["a"].size, domain["b"].size
    diagonal = Factor(("a", "b"), rng.integers(0, 2, (a, b)).astype(float))
    for factors in (
        [Factor(("b",), np.arange(b) / b)],
        [Factor(("a",), np.array([1.0, 0.0, 1.0])), Factor(("c",), np.array([0.3, 1.0]))],
        [diagonal],
        [diagonal, Factor(("b",), np.arange(b) / b), Factor(("a", "b", "c"), rng.random((a, b, 2)))],
    ):
        assert follows(drawn(model, factors), share(model, factors), domain)


@pytest.mark.parametrize("kind", MODELS)
def test_given_rows_come_back_in_order_with_the_rest_of_the_joint(kind):
    model = MODELS[kind]()
    domain, rng = model.domain, np.random.default_rng(7)
    likely = model.marginal(("a", "c")).reshape(-1)
    cells = rng.choice(np.flatnonzero(likely > 0), ROWS)
    fixed = {"a": (cells // 2).astype(np.uint8), "c": (cells % 2).astype(np.uint8)}
    rows = completed(model, fixed, {}, ROWS, rng)
    assert all(np.array_equal(rows[name], codes) for name, codes in fixed.items())
    joint = model.marginal(domain.names)
    weight = joint.sum(axis=1, keepdims=True)
    conditional = np.divide(joint, weight, out=np.zeros_like(joint), where=weight > 0)
    law = conditional * np.bincount(cells, minlength=6).reshape(3, 1, 2)
    assert follows(rows, law, domain)


@pytest.mark.parametrize("kind", MODELS)
def test_rows_given_in_part_of_an_attribute_hold_what_is_allowed(kind):
    """a is fixed; of b only some codes are allowed, others in each half of the rows."""
    model = MODELS[kind]()
    codes = model.domain["b"].size
    odd = np.arange(codes) % 2 == 1
    rows = 4000
    fixed = {"a": np.full(rows, 1, np.uint8)}
    allowed = np.where(np.arange(rows)[:, None] < rows // 2, odd, ~odd)
    found = completed(model, fixed, {"b": allowed}, rows, np.random.default_rng(0))
    joint = model.marginal(("a", "b", "c"))[1]
    for half, mask in ((slice(None, rows // 2), odd), (slice(rows // 2, None), ~odd)):
        part = {name: each[half] for name, each in found.items()}
        law = np.zeros_like(model.marginal(("a", "b", "c")))
        law[1] = joint * mask[:, None]
        assert follows(part, law, model.domain)


@pytest.mark.parametrize("kind", ["records", "segments", "histograms", "graphical"])
def test_what_has_no_mass_is_said(kind, monkeypatch):
    monkeypatch.setattr(conditioning, "MOST_REJECTED", 1 << 14)
    domain = Domain.of({"a": 2, "b": 2})
    shares = np.array([[0.5, 0.0], [0.25, 0.25]])
    made = {
        "records": lambda: Records(domain, [Target(("a", "b"), shares)], 100.0),
        "histograms": lambda: Histograms(domain, [Part(("a", "b"), shares.reshape(-1))], 100.0),
        "segments": lambda: Segments(domain, ("a", "b"), 100 * shares, {}, [], [], 1),
        "graphical": lambda: GraphicalModel(plan(domain, [("a", "b")]), _logarithm(shares), 100.0),
    }[kind]()
    fixed = {"a": np.array([1, 0], np.uint8), "b": np.array([0, 1], np.uint8)}
    with pytest.raises(TooRareError) as problem:
        completed(made, fixed, {}, 2, np.random.default_rng(0))
    assert problem.value.rows.tolist() == [1]


def _logarithm(shares):
    with np.errstate(divide="ignore"):
        return np.log(shares.reshape(-1))


def test_a_rare_kind_of_row_comes_from_the_model_before_its_exchanges():
    inside = graphical()
    target = inside.marginal(("a", "c")) / inside.total
    model = Adjusted(inside, [Target(("a", "c"), target)])
    rare = Factor(("b",), np.array([1e-3, 0, 0, 0]))
    assert conditioning.given(model, [rare]).model.kind == "graphical"
    likely = Factor(("b",), np.array([1.0, 1.0, 0.5, 0.0]))
    found = conditioning.given(model, [likely])
    assert found.model is model
    assert found.left == [likely]
