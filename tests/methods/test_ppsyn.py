"""ppsyn: partitions come from noisy answers alone and are fitted as they are; the printed version is caught."""

import importlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit import Violation
from hedgerow.audit.method import BUDGETS, KINDS, Pair, pairs, replay_pair
from hedgerow.budget.amounts import Amount, Currency
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods import ppsyn
from hedgerow.methods.ppsyn import PPSyn
from hedgerow.methods.shared import blocks, ratio, rounds
from hedgerow.methods.shared.blocks import resolutions
from hedgerow.methods.shared.rounds import Round, adapted, drawn_by_lot
from hedgerow.private.ledger import Ledger
from hedgerow.private.vault import Vault
from hedgerow.progress import Limits, Progress
from hedgerow.samples import opm
from looking import answered
from refusals import refused
from repository import ROOT

SCHEMA = hr.Schema.parse(opm.SCHEMA)


@pytest.fixture(scope="module")
def table():
    return opm.generate(5_000)


@pytest.fixture
def printed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("reproduce.printed_ppsyn")


def partitioned(release):
    return [q for charge in release.certificate.charges for q in charge.queries if "aggregation" in q]


@pytest.mark.parametrize("family", ["error", "sorted"])
def test_the_other_families_of_partitions_are_private_too(family):
    for budget, pair in zip(BUDGETS, pairs(2), strict=True):
        assert max(replay_pair(PPSyn(partition=family), budget, pair).ratios) <= 1 + 1e-9


def test_the_write_ups_choice_is_private_too():
    """Contribution per unit of budget: distances, prices and partitions all come from noisy answers."""
    for budget, pair in zip(BUDGETS * 3, pairs(6), strict=True):
        assert max(replay_pair(PPSyn(selection="ratio"), budget, pair).ratios) <= 1 + 1e-9


def test_a_price_from_exact_counts_is_caught(monkeypatch):
    """Contr itself, as printed, decides how much a marginal costs: the noise scale then tells of a row."""

    def exact(self, model):
        def distance(marginal):
            query = curators[-1]._translate(MarginalQuery(model.domain, marginal))
            counts = next(curators[-1]._base._engine.count([query])).opened()
            return float(np.abs(counts - model.marginal(marginal).reshape(-1)).sum())

        return distance

    curators = []
    bought = ratio.Contributions.bought.__func__
    monkeypatch.setattr(ratio.Contributions, "now", exact)
    monkeypatch.setattr(
        ratio.Contributions,
        "bought",
        classmethod(lambda cls, curator, *rest: curators.append(curator) or bought(cls, curator, *rest)),
    )
    crowded = next(pair for pair in pairs(len(KINDS)) if pair.kind == "many rows")
    with pytest.raises(Violation):
        replay_pair(PPSyn(selection="ratio"), hr.Budget(100.0, 1e-9), crowded)


def test_by_ratio_each_marginal_brings_its_own_budget(table):
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), PPSyn(selection="ratio"), unsafe_noise_seed=1, quality=0)
    assert release.certificate.spent == release.certificate.whole
    costs = {
        charge.amount.units
        for charge in release.certificate.charges
        if charge.purpose == "measure" and len(charge.queries) == 1 and len(charge.queries[0]["attributes"]) > 1
    }
    assert len(costs) > 3


def test_the_cheapest_partition_of_algorithms_3_and_4():
    """By hand: reconstruction errors 8, 2, 0 for one, two and three blocks, 10 allowed: noise 2, 4 and 10/3."""
    errors = np.array([8.0, 2.0, 0.0])
    assert ratio.cheapest(errors, 10.0, fewest=1) == ratio.Cheapest(2, 4.0)
    assert ratio.cheapest(errors, 10.0, fewest=3).blocks == 3
    assert ratio.cheapest(np.array([8.0, 7.0]), 5.0, fewest=1) == ratio.Cheapest(2, 2.5)


@given(
    errors=st.lists(st.floats(0, 1e6), min_size=1, max_size=50), allowed=st.floats(1e-3, 1e6), fewest=st.integers(1, 4)
)
def test_the_cheapest_partition_keeps_the_bound_of_theorems_4_and_5(errors, allowed, fewest):
    """Reconstruction error + expected noise ≤ η·Contr wherever some partition leaves room for noise."""
    falling = np.sort(errors)[::-1]
    found = ratio.cheapest(falling, allowed, min(fewest, len(errors)))
    assert 1 <= found.blocks <= len(errors)
    assert found.noise > 0
    if (falling[fewest - 1 :] < allowed).any():
        assert falling[found.blocks - 1] + found.blocks * found.noise <= allowed * (1 + 1e-9)


@given(times=st.floats(0, 1e9), spend=st.integers(1, 10**6), most=st.integers(1, 10**6))
def test_a_price_lies_between_the_rounds_budget_and_the_most(times, spend, most):
    found = ratio.clipped(times, Amount(Currency.GDP, spend), Amount(Currency.GDP, most)).units
    assert spend <= found <= max(spend, most)


def test_columns_are_candidates_and_partitioned_by_their_counts():
    domain = Domain.of({"a": 100, "b": 2})
    counts = np.random.default_rng(0).random((100, 2)) * 100
    model = type("M", (), {"marginal": lambda self, m: counts.sum(1) if m == ("a",) else counts.sum(0)})()
    now = Round(domain, model, {("a",): 1.0}, [("a",)], Noise("gaussian", 1.0), 0.5, None, None)
    [offered] = blocks.offer_blocks(now, [("a",)], 10, 1.0).candidates
    of_cell = offered.query.blocks
    assert offered.query.cells == 10
    ordered = of_cell[np.argsort(counts.sum(1), kind="stable")]
    assert (np.diff(ordered) >= 0).all()


def test_partitions_are_measured_saved_and_verified(table, tmp_path):
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), "ppsyn", quality=0)
    pairs_or_more = [query for query in partitioned(release) if len(query["attributes"]) > 1]
    assert pairs_or_more
    domain = SCHEMA.encoding().domain
    assert all(query["cells"] < domain.cells(query["attributes"]) for query in pairs_or_more)
    assert release.certificate.spent == release.certificate.whole
    release.save(tmp_path / "p.release")
    assert hr.Release.load(tmp_path / "p.release").sample(100, seed=1).equals(release.sample(100, seed=1))


def test_the_model_answers_as_the_blocks_were_measured(table):
    """Nearly without noise, the fit reproduces every block's count, though cells were never measured."""
    release = hr.synthesize(table, SCHEMA, hr.Budget(1e4), PPSyn(eta=1e-4, size=0.5), unsafe_noise_seed=1, quality=0)
    inner = getattr(release.model, "model", release.model)
    blocks = [
        measurement
        for measurement in release.measurements
        if isinstance(measurement.query, MarginalQuery) and measurement.query.blocks is not None
    ]
    assert blocks
    for measurement in blocks:
        [answer] = release.model.answers([measurement.query])
        assert np.abs(answer - measurement.values).sum() < 0.02 * inner.total


def test_partitions_follow_the_budget():
    method = PPSyn(eta=0.5)
    counts = [method.blocks(Noise("laplace", 1 / spend), 10_000) for spend in (0.001, 0.01, 0.1, 1.0)]
    assert counts == sorted(counts)
    for spend, count in zip((0.001, 0.01, 0.1, 1.0), counts, strict=True):
        assert count / spend <= 0.5 * ppsyn.CONTRIBUTION * 10_000


def test_a_marginal_is_offered_in_two_resolutions_unless_it_is_small():
    domain = Domain.of({"a": 10, "b": 20})
    counts = np.random.default_rng(0).random((10, 20))

    def cells(most):
        offered = list(resolutions(domain, ("a", "b"), counts, most))
        for query, answer in offered:
            assert answer == pytest.approx(query.aggregate(counts))
        return [query.cells for query, _ in offered]

    assert cells(20) == [20]
    assert cells(60) == [60, 20]
    assert cells(300) == [200, 100]
    assert cells(900) == [200]


@given(budget=st.integers(1, 1000), least=st.integers(1, 1000), moved=st.floats(0, 1e9))
def test_a_round_costs_more_when_the_last_one_told_little(budget, least, moved):
    def amount(units):
        return Amount(Currency.GDP, units)

    after = adapted(amount(budget), amount(least), moved).units
    assert after >= least
    assert after <= max(least, 4 * budget)
    if moved <= 0.5:
        assert after == max(least, 4 * budget)
    if moved >= 4:
        assert after == max(least, budget // 2)


def test_a_round_considers_no_more_cells_than_it_can_and_pairs_first(monkeypatch):
    class Public:
        domain = Domain.of({f"a{i}": 4 for i in range(8)})
        rng = np.random.default_rng(0)

    marginals = [*Public.domain.marginals(3), *Public.domain.marginals(2)]
    assert drawn_by_lot(Public, marginals) == marginals
    monkeypatch.setattr(rounds, "CELLS_A_ROUND", 28 * 16 + 10 * 64)
    chosen = drawn_by_lot(Public, marginals)
    assert {m for m in chosen if len(m) == 2} == set(Public.domain.marginals(2))
    assert sum(len(m) == 3 for m in chosen) == 10


@pytest.mark.parametrize("options", [{"partition": "masses"}, {"eta": "0"}, {"measuring": "1"}, {"one_ways": "1.5"}])
def test_bad_options_are_refused(options):
    with refused("bad-option"):
        hr.methods.build("ppsyn", options)


def test_relations_are_kept_that_independent_columns_lose(table):
    def error(method):
        from hedgerow.private.evaluate import marginal_distances

        encoding = SCHEMA.encoding()
        release = hr.synthesize(table, SCHEMA, hr.Budget(2.0), method, unsafe_noise_seed=1, quality=0)
        real, made = encoding.encode(table.combine_chunks()), encoding.encode(release.sample().combine_chunks())
        return float(marginal_distances(real, made, encoding.domain, 2).mean())

    assert error(PPSyn(size=0.5)) < 0.8 * error("independent")


def test_a_budget_too_small_for_relations_is_spent_on_columns(table):
    release = hr.synthesize(table.slice(0, 300), SCHEMA, hr.Budget(0.05), "ppsyn", unsafe_noise_seed=1, quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert all(len(query["attributes"]) < 2 for c in release.certificate.charges for query in c.queries)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (0.01, 0.0), (30.0, 1e-9), (30.0, 0.0)])
def test_extreme_budgets_give_valid_tables(epsilon, delta):
    release = hr.synthesize(opm.generate(300), SCHEMA, hr.Budget(epsilon, delta), PPSyn(size=0.1), quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert release.sample(50).schema == SCHEMA.encoding().arrow_schema


def test_out_of_time_ends_rounds_and_spends_the_rest(table):
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), "ppsyn", progress=Progress(Limits(seconds=1e-9)), quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert sum(charge.purpose == "select" for charge in release.certificate.charges) == 1


ONE_COLUMN = "dataset: d\nperson: id\nmax_rows_per_person: 1\ncolumns: {a: {type: code, size: 3}}"


def one_column(*counts):
    codes = np.repeat(np.arange(len(counts)), counts)
    return pa.table({"id": [f"p{row}" for row in range(len(codes))], "a": codes})


def test_the_printed_version_is_caught_on_the_example_of_three_cells(printed):
    """(50, 71, 91) and (50, 70, 91) merge other cells. The total is equal: it is not the exact n that gives it away."""
    both = [printed.Exposed(np.array(counts)) for counts in ([50.0, 71.0, 91.0], [50.0, 70.0, 91.0])]
    assert both[0].partitions.blocks(2).tolist() != both[1].partitions.blocks(2).tolist()
    pair = Pair("three cells", one_column(50, 71, 91), one_column(50, 70, 91))
    with pytest.raises(Violation, match="differ"):
        replay_pair(printed.Printed((("a",),), rounds=3), BUDGETS[0], pair, ONE_COLUMN)


@pytest.mark.parametrize("kind", KINDS)
def test_the_printed_version_fails_replay_on_every_kind_of_pair(printed, kind):
    pair = next(pair for pair in pairs(len(KINDS)) if pair.kind == kind)
    method = printed.Printed((("grade", "site"), ("site", "age"), ("age", "flag")), rounds=3)
    with pytest.raises(Violation):
        replay_pair(method, BUDGETS[0], pair)


def test_a_printed_release_has_no_guarantee_and_no_ledger_takes_it(printed, table, tmp_path):
    method = printed.Printed((("sex", "race"),), rounds=2)
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), method, quality=0)
    assert release.certificate.guarantee is None
    release.save(tmp_path / "printed.release")
    assert "NO privacy guarantee" in hr.Release.load(tmp_path / "printed.release").certificate.statements()[0]
    Ledger.create(tmp_path / "d.ledger", "opm", hr.Budget(3.0))
    with refused("ledger-needs-guarantee"):
        hr.synthesize(table, SCHEMA, hr.Budget(1.0), method, ledger=tmp_path / "d.ledger", quality=0)
    assert "ppsyn-printed" not in hr.methods.names()


def test_a_partition_from_exact_counts_is_caught(monkeypatch):
    class Peeking(PPSyn):
        def consider(self, curator, wanted):
            def peeking(domain, marginal, counts, *how):
                vault = curator._base
                assert isinstance(vault, Vault)
                query = curator._translate(MarginalQuery(domain, marginal))
                exact = next(vault._engine.count([query])).opened()
                return resolutions(domain, marginal, counts + exact.reshape(counts.shape), *how)

            monkeypatch.setattr(blocks, "resolutions", peeking)
            return super().consider(curator, wanted)

    crowded = next(pair for pair in pairs(len(KINDS)) if pair.kind == "many rows")
    enough = hr.Budget(100.0, 1e-9)  # for partitions of so few rows
    assert partitioned(replay_pair(PPSyn(), enough, crowded).release)
    with pytest.raises(Violation):
        replay_pair(Peeking(), enough, crowded)


def test_the_stopping_points_of_algorithms_3_and_4(printed):
    """By hand: reconstruction errors 8, 2, 0 for one, two and three blocks, 10 allowed."""
    budgets = printed.required(np.array([8.0, 2.0, 0.0]), 10.0)
    assert budgets == pytest.approx([1 / (4 * np.pi), 4 / (64 * np.pi), 9 / (100 * np.pi)])
    assert printed.split_until(budgets) == 2
    assert printed.merged_until(budgets) == 2
    assert np.isinf(printed.required(np.array([8.0, 2.0, 0.0]), 5.0)[0])


def test_the_printed_version_spends_on_columns_as_printed(printed, table):
    """ρ_i ∝ c_i^(2/3) of a tenth: a column's 1/σ² is in proportion to the cells' two-thirds power."""
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), printed.Printed((("sex", "race"),), rounds=2), quality=0)
    first = answered(release)[0].measurements
    assert len(first) == len(SCHEMA.columns)
    shares = np.array([1 / m.noise.scale**2 for m in first])
    cells = np.array([m.query.cells for m in first], dtype=float)
    assert shares / shares.sum() == pytest.approx(cells ** (2 / 3) / (cells ** (2 / 3)).sum(), rel=0.01)


@pytest.fixture
def experiments(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("reproduce.ppsyn")


def test_the_write_ups_workload_is_that_of_adult(experiments):
    """210 marginals of three and 37 of five attributes have at most 10,000 cells."""
    sizes = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
    domain = Domain.of({f"a{index}": size for index, size in enumerate(sizes)})
    assert [len(experiments.workload(domain, degree)) for degree in (3, 5)] == [210, 37]


def test_the_test_fold_is_kept_out_of_synthesis(experiments):
    rows = {"row": np.arange(101)}
    folds = [experiments.fold_of(rows, fold) for fold in range(experiments.FOLDS)]
    for train, test in folds:
        assert sorted([*train["row"], *test["row"]]) == list(range(101))
        assert len(test["row"]) in (20, 21)
    assert sorted(row for _, test in folds for row in test["row"]) == list(range(101))


def test_the_grid_holds_every_experiment(experiments):
    for full in (False, True):
        cells = set(experiments.grid(full))
        assert {cell.study for cell in cells} == {"errors", "degree", "eta", "svm", "family"}
        assert {cell.degree for cell in cells if cell.study == "degree"} == {2, 3, 4, 5}
        for table in ("adult", "br2000", "loans"):  # each has its panel in figures 3–5, 7 and 8
            here = [cell for cell in cells if cell.table == table]
            assert {cell.epsilon for cell in here if cell.study == "errors"} >= {0.05, 0.1, 0.3, 1.0, 2.0}
            assert len({(cell.method, cell.eta) for cell in here if cell.study == "eta"}) == 16
        assert {cell.run for cell in cells if cell.study == "svm"} == set(range(5))
