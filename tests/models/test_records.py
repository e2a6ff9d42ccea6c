"""Rows come to match their targets; privsyn chooses what to measure as its paper does."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow import _records
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Noise
from hedgerow.methods.privsyn import merged_cliques, trade_off
from hedgerow.methods.shared.views import pooled, shrunk
from hedgerow.models import load
from hedgerow.models.consistency import View
from hedgerow.models.model import block_rng
from hedgerow.models.records import Records, Target, shares_of
from hedgerow.samples import opm
from looking import asked
from refusals import refused


def chain(attributes, size, rows, seed=0):
    """Columns of which each follows the one before it."""
    rng = np.random.default_rng(seed)
    table, last = {}, rng.integers(0, size, rows)
    for number in range(attributes):
        last = np.where(rng.random(rows) < 0.6, (3 * last + 1) % size, rng.integers(0, size, rows))
        table[f"x{number}"] = last.astype(np.uint8)
    return Domain.of({f"x{number}": size for number in range(attributes)}), table


def model_of(domain, table, degree=2):
    marginals = domain.marginals(degree)
    return Records(domain, [Target(each, shares_of(table, domain, each)) for each in marginals], len(table["x0"]))


def distance(rows, targets, domain):
    """Mean total variation distance from the targets."""
    found = [np.abs(shares_of(rows, domain, t.marginal) - t.shares).sum() / 2 for t in targets]
    return float(np.mean(found))


def update(rows, sizes, targets, iterations, exchanges=0, seed=1):
    columns = [np.array(column, dtype=np.uint32) for column in rows]
    _records.update(
        columns,
        sizes,
        [list(indices) for indices, _ in targets],
        [np.array(shares, dtype=float) for _, shares in targets],
        iterations,
        0.84,
        20,
        exchanges,
        [seed, 2, 3, 4],
    )
    return columns


def test_rows_come_closer_to_all_pairs_than_a_sample_of_the_table_is():
    domain, table = chain(8, 5, 40_000)
    model = model_of(domain, table)
    drawn = model.draw(4000, block_rng(0, 0))
    sample = {name: codes[:4000] for name, codes in table.items()}
    assert distance(drawn, model.targets, domain) < 0.8 * distance(sample, model.targets, domain)


def test_the_gradual_update_settles_one_marginal():
    """Without exchanges: 61 steps on one pair leave less than a row per cell."""
    shares = np.random.default_rng(0).dirichlet(np.ones(12))
    start = np.random.default_rng(1).integers(0, [[3], [4]], (2, 5000))
    first, second = update(start, [3, 4], [((0, 1), shares)], 61)
    counts = np.bincount(4 * first + second, minlength=12)
    assert np.abs(counts - 5000 * shares).max() <= 2


def test_one_step_by_hand():
    """60, 40 and 0 rows, wanted 30, 50, 20: the empty cell is filled, the small one grows, the large one pays."""
    start = [np.repeat([0, 1], [60, 40])]
    (codes,) = update(start, [3], [((0,), [0.3, 0.5, 0.2])], 1)
    np.testing.assert_array_equal(np.bincount(codes, minlength=3), [30, 50, 20])


def test_duplicates_bring_their_other_values_along():
    """The second column follows the first in every row; most rows that change hands keep it so."""
    code = np.repeat([0, 1], [900, 100])
    first, second = update([code, code], [2, 2], [((0,), [0.5, 0.5])], 8)
    assert np.bincount(first)[1] == pytest.approx(500, abs=1)
    assert (first == second).mean() > 0.8


def test_exchanges_keep_every_column_and_never_lose():
    domain, table = chain(5, 4, 2000)
    goals = [Target(pair, shares_of(table, domain, pair)) for pair in domain.marginals(2)]
    targets = [([domain.index(name) for name in goal.marginal], goal.shares.reshape(-1)) for goal in goals]
    rng = np.random.default_rng(3)
    start = [rng.permutation(codes) for codes in table.values()]
    losses = []
    for exchanges in (0, 1, 5):
        found = update(start, [4] * 5, targets, 0, exchanges)
        for before, after in zip(start, found, strict=True):
            np.testing.assert_array_equal(np.bincount(before), np.bincount(after))
        losses.append(distance(dict(zip(domain.names, found, strict=True)), goals, domain))
    assert losses[0] > losses[1] > losses[2]


@given(st.integers(0, 50), st.integers(0, 3))
def test_any_number_of_rows_fits_the_domain_and_depends_on_the_rng_alone(rows, seed):
    domain, table = chain(3, 4, 500)
    model = model_of(domain, table)
    again = load(domain, model.state())
    drawn, repeated = model.draw(rows, block_rng(seed, 0)), again.draw(rows, block_rng(seed, 0))
    for name in domain.names:
        assert len(drawn[name]) == rows
        assert drawn[name].dtype == domain[name].dtype
        np.testing.assert_array_equal(drawn[name], repeated[name])


def test_an_attribute_without_a_target_is_uniform():
    domain = Domain.of({"x": 2, "free": 4})
    drawn = Records(domain, [Target(("x",), np.array([0.25, 0.75]))], 100).draw(400, block_rng(0, 0))
    np.testing.assert_array_equal(np.bincount(drawn["free"]), [100] * 4)
    np.testing.assert_array_equal(np.bincount(drawn["x"]), [100, 300])


@pytest.mark.parametrize("shares", [np.array([0.5, 0.6]), np.array([-0.5, 1.5]), np.array([1.0])])
def test_targets_must_be_distributions(shares):
    with refused("bad-target"):
        Records(Domain.of({"x": 2}), [Target(("x",), shares)], 10)


# ------------------------------------------------------------ privsyn


def total_error(chosen, losses, cells, noise):
    power = 2 / 3 if noise.kind == "gaussian" else 1 / 2
    load = sum(cells[index] ** power for index in chosen)
    return noise.mean_absolute * load ** (1 / power) + sum(np.delete(losses, list(chosen)))


@given(st.integers(0, 10_000), st.sampled_from(["gaussian", "laplace"]))
def test_greedy_selection_is_no_worse_than_nothing_or_everything_and_locally_best(seed, kind):
    rng = np.random.default_rng(seed)
    losses, cells = rng.uniform(0, 1000, 6), rng.integers(4, 400, 6).astype(float)
    noise = Noise(kind, float(rng.uniform(0.1, 20)))
    chosen = trade_off(losses, cells, noise)
    error = total_error(chosen, losses, cells, noise)
    assert error <= total_error((), losses, cells, noise) + 1e-6
    for more in set(range(6)) - set(chosen):
        assert error <= total_error([*chosen, more], losses, cells, noise) + 1e-6


def test_without_noise_every_pair_is_measured_and_with_much_noise_none():
    losses, cells = np.array([5.0, 1.0, 3.0]), np.array([4.0, 4.0, 4.0])
    assert sorted(trade_off(losses, cells, Noise("gaussian", 1e-9))) == [0, 1, 2]
    assert trade_off(losses, cells, Noise("gaussian", 100.0)) == []


def test_shared_noise_is_the_least():
    """(Σ c^(2/3))^(3/2) is what the weights c^(1/3) give, and other weights give more."""
    cells = np.array([4.0, 100.0, 30.0])

    def error(weights):
        return float((cells / weights).sum() * np.sqrt((weights**2).sum()))

    best = error(cells ** (1 / 3))
    assert best == pytest.approx((cells ** (2 / 3)).sum() ** 1.5)
    assert all(error(cells**power) > best for power in (0.0, 0.2, 0.5, 1.0))


def test_a_triangle_becomes_one_marginal_where_it_is_small():
    domain = Domain.of({"a": 2, "b": 3, "c": 4, "d": 50})
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]
    assert merged_cliques(domain, pairs, 100) == [("a", "b", "c"), ("c", "d"), ("b", "d")]
    assert merged_cliques(domain, pairs, 10) == pairs


def test_merged_cliques_share_at_most_two_attributes_and_cover_every_pair():
    domain = Domain.of(dict.fromkeys("abcdef", 2))
    pairs = list(itertools.combinations("abcdef", 2))
    found = merged_cliques(domain, pairs, 16)
    assert all(domain.cells(each) <= 16 for each in found)
    assert all(len(set(a) & set(b)) <= 2 for a, b in itertools.combinations([f for f in found if len(f) > 2], 2))
    assert all(any(set(pair) <= set(each) for each in found) for pair in pairs)


def test_views_of_one_marginal_are_averaged_by_precision():
    (found,) = pooled([View(("a",), np.array([10.0, 0.0]), 1.0), View(("a",), np.array([0.0, 10.0]), 3.0)])
    np.testing.assert_allclose(found.counts, [2.5, 7.5])
    assert found.weight == 4.0


@given(st.integers(0, 1000))
def test_shrinking_lies_between_the_measured_and_the_prior_and_follows_the_evidence(seed):
    rng = np.random.default_rng(seed)
    prior = rng.uniform(0, 100, 50)
    near = View(("a",), prior + rng.normal(0, 5.0, 50), 1 / 25)
    far = View(("a",), prior + rng.normal(0, 500.0, 50), 1 / 25)
    assert np.abs(shrunk(near, prior).counts - prior).sum() <= np.abs(near.counts - prior).sum()
    np.testing.assert_allclose(shrunk(far, prior).counts, far.counts, rtol=0.01, atol=1.0)


def test_shrinking_beats_both_sources_on_average():
    rng = np.random.default_rng(0)
    errors = np.zeros(3)
    for _ in range(200):
        truth = rng.uniform(0, 100, 60)
        prior, measured = truth + rng.normal(0, 8.0, 60), truth + rng.normal(0, 8.0, 60)
        for index, found in enumerate((shrunk(View(("a",), measured, 1 / 64), prior).counts, measured, prior)):
            errors[index] += ((found - truth) ** 2).sum()
    assert errors[0] < 0.7 * min(errors[1:])


def test_privsyn_keeps_relations_and_spends_all():
    schema = hr.Schema.parse(opm.SCHEMA)
    table = opm.generate(5000)
    release = hr.synthesize(table, schema, hr.Budget(8.0), "privsyn", unsafe_noise_seed=1, quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert [charge.purpose for charge in asked(release)] == ["measure", "measure", "score", "measure"]
    encoding = schema.encoding()
    real, made = encoding.encode(table.combine_chunks()), encoding.encode(release.sample().combine_chunks())
    pair = encoding.domain.marginal(["agency", "occupation"])
    assert np.abs(shares_of(real, encoding.domain, pair) - shares_of(made, encoding.domain, pair)).sum() / 2 < 0.1


@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize("epsilon", [0.01, 100.0])
def test_extreme_budgets_give_valid_tables(epsilon, delta):
    schema = hr.Schema.parse(opm.SCHEMA)
    release = hr.synthesize(opm.generate(400), schema, hr.Budget(epsilon, delta), "privsyn", quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert release.sample(50).schema == schema.encoding().arrow_schema
