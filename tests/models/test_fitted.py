"""The engine as a library: what `hedgerow.fit` returns is what its words say, against references that share no code."""

import itertools
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings

import hedgerow as hr
from refusals import refused

SIZES = {"a": 3, "b": 2, "c": 4}
ROWS = np.array(list(itertools.product(*map(range, SIZES.values()))))


def counts(seed, columns, rows=1000):
    joint = rows * np.random.default_rng(seed).dirichlet(np.ones(len(ROWS))).reshape(tuple(SIZES.values()))
    names = list(SIZES)
    summed = joint.sum(axis=tuple(index for index, name in enumerate(names) if name not in columns), keepdims=True)
    kept = summed.reshape([SIZES[name] for name in names if name in columns])
    held = [name for name in names if name in columns]
    return np.transpose(kept, [held.index(name) for name in columns])


def measured(seed, columns, std=5.0, query=None):
    exact = counts(seed, columns)
    answers = exact if query is None else query @ exact.reshape(-1)
    return hr.noisy(columns, answers + std * np.random.default_rng(seed + 1).normal(size=answers.shape), std, query)


def joint(model):
    return model.marginal(tuple(SIZES))


def on_the_simplex(matrix, values, total):
    """½ ‖matrix · x − values‖² over x ≥ 0 with that sum: accelerated projected gradients, to the end."""

    def projected(point):
        ordered = np.sort(point)[::-1]
        beyond = np.cumsum(ordered) - total
        last = np.flatnonzero(ordered - beyond / (np.arange(len(point)) + 1) > 0)[-1]
        return np.maximum(point - beyond[last] / (last + 1), 0.0)

    steep = np.linalg.norm(matrix, 2) ** 2
    best = ahead = np.full(matrix.shape[1], total / matrix.shape[1])
    momentum = 1.0
    for _ in range(20_000):
        after = projected(ahead - matrix.T @ (matrix @ ahead - values) / steep)
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        best, ahead, momentum = after, after + (momentum - 1) / grown * (after - best), grown
    return 0.5 * float(((matrix @ best - values) ** 2).sum())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.permutations(["a", "b", "c"]), st.permutations(["a", "c"]))
def test_the_order_of_columns_is_a_matter_of_words(seed, order, pair):
    """Axes may come in any order, and go out in any."""
    plain = hr.fit(SIZES, [measured(seed, ("a", "b", "c")), measured(seed + 2, ("a", "c"))])
    turned = [
        hr.noisy(order, np.transpose(first, ["abc".index(name) for name in order]), 5.0)
        if len(order) == 3
        else hr.noisy(order, first if tuple(order) == ("a", "c") else first.T, 5.0)
        for order, first in (
            (order, measured(seed, ("a", "b", "c")).values.reshape(3, 2, 4)),
            (pair, measured(seed + 2, ("a", "c")).values.reshape(3, 4)),
        )
    ]
    again = hr.fit(SIZES, turned)
    assert np.allclose(again.marginal(("c", "a")), plain.marginal(("a", "c")).T, atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_identity_is_no_query_at_all(sparse):
    plain = measured(3, ("b", "c"))
    identity = scipy.sparse.identity(8) if sparse else np.identity(8)
    asked = hr.noisy(("b", "c"), plain.values, 5.0, query=identity)
    first, second = hr.fit(SIZES, [plain]), hr.fit(SIZES, [asked])
    assert np.allclose(joint(first), joint(second), atol=0.05)
    assert first.total == pytest.approx(second.total)


@pytest.mark.parametrize("kind", ["prefixes", "ranges", "haar"])
def test_linear_queries_reach_the_least_squares_of_a_reference(kind):
    size, total = 32, 10_000.0
    rng = np.random.default_rng(4)
    exact = total * rng.dirichlet(np.full(size, 0.3))
    if kind == "prefixes":
        query = np.tril(np.ones((size, size)))
    elif kind == "ranges":
        query = np.array(
            [[first <= cell <= last for cell in range(size)] for first in range(size) for last in range(first, size)]
        )
    else:
        halves = [np.repeat([1, -1], width) for width in (16, 8, 4, 2, 1)]
        query = np.vstack([np.ones(size), *(np.kron(np.eye(size // len(half)), half) for half in halves)])
    query = query.astype(float)
    values = query @ exact + 10 * rng.normal(size=len(query))
    model = hr.fit({"x": size}, [hr.noisy("x", values, 10, query=query)], total=total, trace=True)
    best = on_the_simplex(query / 10, values / 10, total)
    assert model.loss <= best * 1.001 + 0.02
    assert min(model.trace) == pytest.approx(model.loss, rel=1e-6)


def test_linear_queries_too_many_to_rotate_are_kept_sparse(monkeypatch):
    from hedgerow.models.graphical import terms

    query = np.tril(np.ones((8, 8)))
    plain = measured(5, ("b", "c"), query=query)
    rotated = hr.fit(SIZES, [plain])
    monkeypatch.setattr(terms, "MOST_ROTATED", 1)
    assert hr.fit(SIZES, [plain]).loss == pytest.approx(rotated.loss, abs=0.05)


def test_a_standard_deviation_for_each_cell_weighs_each_cell():
    once = hr.fit({"a": 3}, [hr.noisy("a", [130, 300, 600], [1e-2, 10, 10])], total=1000)
    assert once.marginal("a") == pytest.approx([130, 285, 585], abs=0.1)  # 30 too many, shared by those in doubt


def test_the_total_is_read_off_queries_that_count_every_row():
    query = np.tril(np.ones((4, 4)))
    model = hr.fit(SIZES, [hr.noisy("c", query @ [10.0, 20, 30, 40], 1, query=query)])
    assert model.total == pytest.approx(100, abs=1e-6)
    without = hr.fit(SIZES, [hr.noisy("c", [10.0, 20], 1, query=np.eye(4)[:2])])
    assert without.total == 1.0
    both = hr.fit(SIZES, [hr.noisy("c", np.full(4, 25.0), 1), hr.noisy((), [400.0], 1e6)])
    assert both.total == pytest.approx(100, abs=1e-3)


def test_zeros_hold_everywhere_and_in_any_order_of_columns():
    mask = np.zeros((4, 3), dtype=bool)
    mask[1:, 0] = True  # where a is 0, c is 0
    model = hr.fit(SIZES, [measured(6, ("a", "b")), measured(7, ("c",))], zeros={("c", "a"): mask})
    assert (model.marginal(("c", "a"))[mask] == 0).all()
    rows = model.sample(5000)
    assert not ((rows["a"] == 0) & (rows["c"] > 0)).any()
    assert np.isneginf(model.log_prob([[0, 0, 1]])).all()
    prior = hr.fit(SIZES, [measured(6, ("a", "b"))])
    near = hr.fit(SIZES, [measured(7, ("c",))], prior=prior, zeros={("c", "a"): mask})
    assert (near.marginal(("c", "a"))[mask] == 0).all()


def test_what_is_given_is_conditioned_on():
    model = hr.fit(SIZES, [measured(8, ("a", "b")), measured(9, ("b", "c"))])
    whole = joint(model)
    held = model.given({"a": 2, "c": [0, 3]})
    expected = np.zeros_like(whole)
    expected[2, :, [0, 3]] = whole[2, :, [0, 3]]
    assert np.allclose(joint(held), expected, atol=1e-9 * model.total)
    assert held.total == pytest.approx(expected.sum())
    assert np.allclose(model.given({"b": np.array([False, True])}).marginal("a"), whole[:, 1].sum(axis=1))


def test_probabilities_of_rows_are_those_of_the_whole_table():
    model = hr.fit(SIZES, [measured(10, ("a", "b")), measured(11, ("c", "b"))])
    expected = np.log(joint(model).reshape(-1) / model.total)
    assert np.allclose(model.log_prob(ROWS), expected)
    assert np.allclose(model.log_prob({name: ROWS[:, index] for index, name in enumerate(SIZES)}), expected)


def test_least_absolute_errors_are_those_of_a_linear_programme():
    rng = np.random.default_rng(12)
    first, second = measured(12, ("a", "b")), hr.noisy("a", rng.integers(0, 900, 3), 20.0)
    model = hr.fit(SIZES, [first, second], loss="absolute", total=1000)
    query = np.vstack([np.eye(6) / 5, np.kron(np.eye(3), np.ones(2)) / 20])
    values = np.concatenate([first.values / 5, second.values / 20])
    apart = np.eye(9)
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(6), np.ones(9)]),
        A_ub=np.block([[query, -apart], [-query, -apart]]),
        b_ub=np.concatenate([values, -values]),
        A_eq=np.concatenate([np.ones(6), np.zeros(9)])[None],
        b_eq=[1000],
    )
    assert found.fun * 0.9999 <= model.loss <= found.fun * 1.01


def test_a_loss_of_ones_own_is_minimised():
    known = measured(13, ("b", "a"))
    values = known.values.reshape(2, 3)

    def squares(marginals):
        residual = (marginals[("b", "a")] - values) / 5
        return 0.5 * (residual**2).sum(), {("b", "a"): residual / 5}

    own = hr.fit(SIZES, [], loss=squares, cliques=[("b", "a")], total=1000, trace=True)
    plain = hr.fit(SIZES, [known], total=1000)
    assert own.loss == pytest.approx(plain.loss, rel=1e-3, abs=1e-3)
    assert np.allclose(own.marginal(("b", "a")), plain.marginal(("b", "a")), atol=0.5)
    assert own.trace


def test_the_strength_of_a_prior_goes_from_nothing_to_everything():
    prior = hr.fit(SIZES, [measured(14, ("a",))])
    answer = measured(15, ("a", "b"))
    believed = hr.fit(SIZES, [answer], prior=prior, strength=1e4)
    assert np.allclose(joint(believed), joint(prior), atol=2)
    followed = hr.fit(SIZES, [answer], prior=prior, strength=1e-4)
    assert np.allclose(
        followed.marginal(("a", "b")), hr.fit(SIZES, [answer], total=prior.total).marginal(("a", "b")), atol=2
    )


def test_a_start_shortens_the_search_and_changes_nothing_else():
    answers = [measured(16, ("a", "b")), measured(17, ("b", "c"))]
    cold = hr.fit(SIZES, answers, trace=True)
    warm = hr.fit(SIZES, answers, start=cold, trace=True)
    assert np.allclose(joint(warm), joint(cold), atol=0.5)
    assert len(warm.trace) <= len(cold.trace)


def test_a_fit_is_pickled_printed_and_drawn_alike():
    model = hr.fit(SIZES, [measured(18, ("a", "b")), measured(19, ("c",))])
    again = pickle.loads(pickle.dumps(model))
    for name, codes in model.sample(100, seed=5).items():
        assert np.array_equal(codes, again.sample(100, seed=5)[name])
    assert again.loss == model.loss
    assert repr(model).startswith("Fitted({a: 3, b: 2, c: 4}, 2 cliques, total=")
    assert "<td>a × b</td><td>6</td>" in model._repr_html_()
    assert "&lt;x&gt;" in hr.fit({"<x>": 2}, [hr.noisy("<x>", [1, 2], 1)])._repr_html_()
    assert repr(hr.noisy("a", [1, 2, 3], [1, 2, 3])) == "noisy(a: 3 numbers, std=1 to 3)"
    assert len(model.sample()["a"]) == round(model.total)
    assert set(model.sample(7, independent=True)) == set(SIZES)


def test_factors_are_all_there_is_to_a_model():
    model = hr.fit(SIZES, [measured(20, ("a", "b")), measured(21, ("b", "c"))])
    total = np.zeros(len(ROWS))
    for clique, factor in model.factors().items():
        total += factor[tuple(ROWS[:, list(SIZES).index(name)] for name in clique)]
    weights = np.exp(total - total.max())
    assert np.allclose(weights / weights.sum(), joint(model).reshape(-1) / model.total)


def test_the_same_model_in_mbi():
    pytest.importorskip("mbi")
    model = hr.fit(SIZES, [measured(22, ("a", "b")), measured(23, ("b", "c"))])
    theirs = model.to_mbi()
    for columns in [("a", "b"), ("a", "c"), ("c",)]:
        assert np.allclose(theirs.project(columns).datavector(flatten=False), model.marginal(columns), rtol=1e-3)


ANSWER = hr.noisy("a", [1, 2, 3], 1)


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("answer-length", lambda: hr.fit(SIZES, [hr.noisy("a", [1, 2], 1)])),
        ("answer-length", lambda: hr.fit(SIZES, [hr.noisy(("a", "b"), np.ones((2, 3)), 1)])),
        ("answer-length", lambda: hr.noisy("a", [1, 2, 3], [1, 2])),
        ("answer-length", lambda: hr.noisy("a", [1, 2, 3], 1, query=np.eye(2))),
        ("answer-length", lambda: hr.fit(SIZES, [hr.noisy("a", [1, 2], 1, query=np.eye(2))])),
        ("bad-query", lambda: hr.noisy("a", [1, 2, 3], 1, query=np.full((3, 3), np.nan))),
        ("bad-query", lambda: hr.noisy("a", [], 1, query=np.ones((0, 3)))),
        ("bad-noisy-counts", lambda: hr.noisy("a", [1, np.nan, 3], 1)),
        ("bad-noise-scale", lambda: hr.noisy("a", [1, 2, 3], 0)),
        ("bad-marginal", lambda: hr.noisy(("a", "a"), [1, 2, 3], 1)),
        ("unknown-attribute", lambda: hr.fit(SIZES, [hr.noisy("z", [1, 2], 1)])),
        ("bad-strength", lambda: hr.fit(SIZES, [ANSWER], prior=hr.fit(SIZES, [ANSWER]), strength=0)),
        ("unknown-loss", lambda: hr.fit(SIZES, [ANSWER], loss="cubes")),
        (
            "prior-and-start",
            lambda: hr.fit(SIZES, [ANSWER], prior=hr.fit(SIZES, [ANSWER]), start=hr.fit(SIZES, [ANSWER])),
        ),
        ("loss-and-measurements", lambda: hr.fit(SIZES, [ANSWER], loss=lambda marginals: (0.0, {}))),
        ("bad-cliques", lambda: hr.fit(SIZES, [], loss=lambda marginals: (0.0, {}))),
        ("bad-zeros", lambda: hr.fit(SIZES, [ANSWER], zeros={("a", "b"): np.zeros(5, dtype=bool)})),
        ("nothing-possible", lambda: hr.fit(SIZES, [ANSWER], zeros={"a": np.ones(3, dtype=bool)})),
        ("nothing-possible", lambda: hr.fit(SIZES, [ANSWER], zeros={"a": [True, False, False]}).given({"a": 0})),
        ("bad-code", lambda: hr.fit(SIZES, [ANSWER]).given({"a": 3})),
        ("bad-code", lambda: hr.fit(SIZES, [ANSWER]).given({"a": [True, False]})),
        ("bad-code", lambda: hr.fit(SIZES, [ANSWER]).log_prob([[0, 0, 4]])),
        ("missing-columns", lambda: hr.fit(SIZES, [ANSWER]).log_prob([[0, 0]])),
        ("missing-columns", lambda: hr.fit(SIZES, [ANSWER]).log_prob({"a": [0]})),
        ("bad-rows", lambda: hr.fit(SIZES, [ANSWER]).sample(-1)),
    ],
)
def test_what_cannot_be_is_said_when_it_is_made(code, wrong):
    with refused(code):
        wrong()
