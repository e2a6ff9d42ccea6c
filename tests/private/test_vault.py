"""The vault: charge, then count, then draw; nothing else."""

import numpy as np
import pytest

from hedgerow.budget.accounting import whole
from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Threshold
from hedgerow.coded.query import InteractionQuery, MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.curator import INDEPENDENCE, Candidate
from hedgerow.errors import BudgetError
from hedgerow.models.histograms import Histograms, Part
from hedgerow.private.account import Account
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.exact import Exact, SparseCounts
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.private.noise import UnsafeSeededStream
from hedgerow.private.scores import _distance, _independence, grid_scores
from hedgerow.private.vault import Vault
from refusals import refused

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2})
CODES = {
    "a": np.array([0, 0, 1, 2, 2, 2], dtype=np.uint8),
    "b": np.array([0, 1, 2, 3, 3, 0], dtype=np.uint8),
    "c": np.array([0, 1, 0, 1, 0, 1], dtype=np.uint8),
}


class CountingEngine(ArrowEngine):
    """Notes every time that the data are touched."""

    touched = 0

    def count(self, queries):
        type(self).touched += 1
        return super().count(queries)


def make_vault(budget=None, rows_per_person=1, engine=None, seed=0):
    budget = budget or Budget(1.0)
    account = Account(whole(budget))
    engine = engine or ArrowEngine.from_codes(DOMAIN, CODES)
    mechanisms = Mechanisms(UnsafeSeededStream(seed))
    return Vault(engine, DOMAIN, rows_per_person, account, mechanisms, np.random.default_rng(0)), account


def uniform(total=6.0):
    return Histograms(DOMAIN, [Part((a.name,), np.ones(a.size)) for a in DOMAIN], total)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_a_refused_charge_makes_no_engine_call_and_says_what_is_left(delta):
    engine = CountingEngine.from_codes(DOMAIN, CODES)
    vault, account = make_vault(Budget(1.0, delta), engine=engine)
    all_of_it = vault.remaining
    vault.measure([MarginalQuery(DOMAIN, ("a",))], spend=all_of_it.share(0.8))
    CountingEngine.touched = 0
    query = MarginalQuery(DOMAIN, ("b",))
    candidates = [Candidate(query)]
    for ask in (
        lambda: vault.measure([query], spend=all_of_it.share(0.5)),
        lambda: vault.select(candidates, against=uniform(), spend=all_of_it.share(0.5)),
        lambda: vault.score(candidates, against=uniform(), spend=all_of_it.share(0.5)),
        lambda: vault.total(spend=all_of_it.share(0.5)),
    ):
        with refused("budget-exceeded", "0.5", "0.2"):
            ask()
    assert CountingEngine.touched == 0
    assert len(account.charges) == 1


def test_the_ledger_is_debited_before_the_first_count_and_only_once():
    events = []

    class Engine(ArrowEngine):
        def count(self, queries):
            events.append("count")
            return super().count(queries)

    account = Account(whole(Budget(1.0)), open_books=lambda: events.append("debit"))
    engine = Engine.from_codes(DOMAIN, CODES)
    vault = Vault(engine, DOMAIN, 1, account, Mechanisms(), np.random.default_rng(0))
    vault.total(spend=vault.remaining.share(0.5))
    vault.total(spend=vault.remaining)
    assert events == ["debit", "count", "count"]


def test_weights_divide_the_noise_and_everything_is_spent_to_the_last_unit():
    vault, account = make_vault()
    queries = [MarginalQuery(DOMAIN, (name,)) for name in DOMAIN.names]
    first, second, third = vault.measure(queries, spend=vault.remaining, weights=[1.0, 2.0, 4.0])
    assert first.noise.scale == pytest.approx(2 * second.noise.scale) == pytest.approx(4 * third.noise.scale)
    assert not vault.remaining
    assert account.spent == account.whole
    assert all(measured.values.dtype == np.int64 for measured in (first, second, third))


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_a_person_of_many_rows_scales_every_noise(delta):
    one, _ = make_vault(Budget(1.0, delta))
    seven, _ = make_vault(Budget(1.0, delta), rows_per_person=7)
    share = one.remaining.share(0.5)
    assert seven.noise(share)[0].scale == pytest.approx(7 * one.noise(share)[0].scale)
    measured = seven.total(spend=share)
    assert measured.noise == seven.noise(share)[0]


def test_a_huge_budget_gives_exact_answers():
    vault, _ = make_vault(Budget(1e4))
    query = MarginalQuery(DOMAIN, ("a", "c"))
    measured = vault.measure([query], spend=vault.remaining.share(0.5))[0]
    assert measured.values.tolist() == [1, 1, 1, 0, 1, 2]
    kept = vault.measure([query], spend=vault.remaining, keep=[Threshold(20.0)])[0]
    assert kept.dense().tolist() == [1, 1, 1, 0, 1, 2]
    assert kept.kept is not None
    assert 3 not in kept.kept


def test_selection_finds_what_the_model_gets_wrong():
    vault, _ = make_vault(Budget(1e3))
    wrong, right = MarginalQuery(DOMAIN, ("a", "b")), MarginalQuery(DOMAIN, ("c",))
    chosen = vault.select([Candidate(right), Candidate(wrong)], against=uniform(), spend=vault.remaining.share(0.5))
    assert chosen.query is wrong
    scores = vault.score([Candidate(right), Candidate(wrong)], against=uniform(), spend=vault.remaining)
    assert scores[0] == pytest.approx(0.0, abs=0.5)
    assert scores[1] == pytest.approx(np.abs(np.bincount([0, 1, 6, 11, 11, 8], minlength=12) - 0.5).sum(), abs=0.5)


def test_sparse_and_dense_distances_agree():
    rng = np.random.default_rng(1)
    dense = rng.poisson(0.3, 200)
    expected = rng.random(200)
    cells = np.flatnonzero(dense)
    assert _distance(dense, expected) == pytest.approx(_distance(SparseCounts(cells, dense[cells]), expected))


def test_independence_score_by_hand():
    # counts [[2, 0], [0, 2]]: the product of the marginals is 1 everywhere, so the distance is 4
    domain = Domain.of({"a": 2, "b": 2})
    engine = ArrowEngine.from_codes(domain, {k: np.array([0, 0, 1, 1], dtype=np.uint8) for k in ("a", "b")})
    query = MarginalQuery(domain, ("a", "b"))
    assert _independence(Candidate(query), next(iter(engine.count([query])))) == pytest.approx(4.0)
    exact = grid_scores(engine, [Candidate(query, weight=0.5)], INDEPENDENCE, 0.25).opened()
    assert exact.tolist() == [8]


def test_independence_moves_by_at_most_four_per_row():
    """Of two attributes, and of one from two others read as one: the score of the pair that they are together."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        sizes = dict(zip("abc", rng.integers(2, 5, 3).tolist(), strict=True))
        domain = Domain.of(sizes)
        counts = rng.poisson(rng.choice([0.2, 1, 5]), tuple(sizes.values()))
        if counts.sum() == 0:
            continue
        fewer = counts.copy()
        fewer[tuple(rng.choice(np.argwhere(counts)))] -= 1
        label = Candidate(MarginalQuery(domain, ("a", "b", "c")), label="b")
        others = Domain.of({"b": sizes["b"], "ac": sizes["a"] * sizes["c"]})
        pair = Candidate(MarginalQuery(others, ("b", "ac")))
        scores = []
        for table in (counts, fewer):
            scores.append(_independence(label, Exact(table.reshape(-1))))
            turned = np.moveaxis(table, 1, 0).reshape(-1)
            assert scores[-1] == pytest.approx(_independence(pair, Exact(turned)))
            cells = np.flatnonzero(table.reshape(-1))
            sparse = SparseCounts(cells, table.reshape(-1)[cells])
            assert scores[-1] == pytest.approx(_independence(label, Exact(sparse)))
        assert abs(scores[0] - scores[1]) <= 4 + 1e-9


def test_a_recoded_curator_counts_the_merged_codes():
    vault, _ = make_vault(Budget(1e4))
    recoding = Recoding(DOMAIN, {"b": np.array([0, 1, 1, 1])})
    recoded = vault.recode(recoding)
    assert recoded.domain["b"].size == 2
    query = MarginalQuery(recoded.domain, ("a", "b"))
    measured = recoded.measure([query], spend=vault.remaining.share(0.25))[0]
    assert measured.query is query
    assert measured.values.tolist() == [1, 1, 0, 1, 1, 2]
    target = recoded.domain
    flat = Histograms(target, [Part((a.name,), np.ones(a.size)) for a in target], 6.0)
    chosen = recoded.select([Candidate(query)], against=flat, spend=vault.remaining.share(0.25))
    assert chosen.query is query
    again = recoded.recode(Recoding(target, {"a": np.array([0, 0, 1])}))
    twice = MarginalQuery(again.domain, ("a", "b"))
    assert again.measure([twice], spend=vault.remaining)[0].values.tolist() == [1, 2, 1, 2]


def test_a_recoded_curator_asks_for_interactions_of_what_stayed_as_it_is():
    vault, _ = make_vault(Budget(1e4))
    recoded = vault.recode(Recoding(DOMAIN, {"b": np.array([0, 1, 1, 1])}))
    untouched = InteractionQuery(recoded.domain, ("a",))
    half = vault.remaining.share(0.5)
    [measured] = recoded.measure([untouched], spend=half)
    [counted] = vault.measure([MarginalQuery(DOMAIN, ("a",))], spend=half)
    assert measured.values.tolist() == untouched.combined(counted.values).tolist()
    with refused("tree-through-recoding"):
        recoded.measure([InteractionQuery(recoded.domain, ("a", "b"))], spend=half)


def test_nonsense_is_refused_before_anything_is_charged():
    vault, account = make_vault()
    query = MarginalQuery(DOMAIN, ("a",))
    for weights in ([0.0], [-1.0], [np.nan], [1.0, 1.0]):
        with refused("bad-weights"):
            vault.measure([query], spend=vault.remaining, weights=weights)
    with refused("nothing-asked"):
        vault.measure([], spend=vault.remaining)
    with refused("no-share"):
        vault.measure([query], spend=vault.remaining.share(0))
    assert not account.charges


def test_counts_that_would_not_fit_in_memory_are_refused_before_they_are_charged():
    from hedgerow.progress import Limits, Progress

    account = Account(whole(Budget(1.0)))
    engine = CountingEngine.from_codes(DOMAIN, CODES)
    small = Progress(Limits(memory=64))
    vault = Vault(engine, DOMAIN, 1, account, Mechanisms(), np.random.default_rng(0), progress=small)
    CountingEngine.touched = 0
    with refused("counts-too-large", "a × b with 12 cells"):
        vault.measure([MarginalQuery(DOMAIN, ("a", "b"))], spend=vault.remaining)
    assert not account.charges
    assert CountingEngine.touched == 0


@pytest.mark.parametrize("shape", [(1,), (12, 1), (12,)])
def test_an_estimate_of_the_wrong_shape_or_size_is_refused(shape):
    """A shape that broadcasts would move a score by many times what was charged; a huge one drowns it in rounding."""

    class Wrong:
        def answers(self, queries):
            return iter([np.full(shape, 1e15)])

    vault, _ = make_vault()
    with refused("inexact-score" if shape == (12,) else "bad-estimate"):
        vault.select([Candidate(MarginalQuery(DOMAIN, ("a", "b")))], against=Wrong(), spend=vault.remaining)


def test_a_huge_penalty_is_refused():
    vault, _ = make_vault()
    candidates = [Candidate(MarginalQuery(DOMAIN, ("a",)), penalty=1e18)]
    with refused("inexact-score"):
        vault.score(candidates, against=uniform(), spend=vault.remaining)


def test_an_estimate_that_overloads_arithmetic_never_sees_a_count():
    seen = []

    class Spy(np.ndarray):
        def __array_ufunc__(self, *inputs, **options):
            seen.append(inputs)
            return NotImplemented

    class Spying:
        def answers(self, queries):
            return (np.zeros(query.cells).view(Spy) for query in queries)

    vault, _ = make_vault()
    vault.select([Candidate(MarginalQuery(DOMAIN, ("a",)))], against=Spying(), spend=vault.remaining)
    assert not seen


def test_questions_that_cannot_be_answered_are_refused_before_they_are_charged():
    vault, account = make_vault()
    query = MarginalQuery(DOMAIN, ("a", "b", "c"))
    with refused("not-a-pair"):
        vault.score([Candidate(query)], against=INDEPENDENCE, spend=vault.remaining)
    with refused("not-a-pair"):
        vault.pool([Candidate(query, label="d")], against=INDEPENDENCE)
    with refused("bad-thresholds"):
        vault.measure([query], spend=vault.remaining, keep=[])
    assert not account.charges


def test_a_query_cannot_be_changed_after_it_was_made():
    level = np.array([0, 0, 1])
    query = MarginalQuery(DOMAIN, ("a",), levels={"a": level})
    level[:] = 0
    assert query.levels[0].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        query.levels[0][0] = 1


def test_threads_cannot_spend_the_same_budget_twice():
    from concurrent.futures import ThreadPoolExecutor

    for _ in range(50):
        vault, _ = make_vault()
        spend = vault.remaining

        def ask(vault=vault, spend=spend):
            try:
                vault.total(spend=spend)
            except BudgetError:
                return 0
            return 1

        with ThreadPoolExecutor(4) as pool:
            assert sum(job.result() for job in [pool.submit(ask) for _ in range(4)]) == 1


def test_a_pool_counts_once_and_charges_every_choice():
    vault, account = make_vault()
    counted = []
    real = vault._engine.count
    vault._engine.count = lambda queries: counted.append(len(queries)) or real(queries)
    candidates = [Candidate(MarginalQuery(DOMAIN, (name,))) for name in DOMAIN.names]
    pool = vault.pool(candidates, against=uniform())
    assert not counted
    left = np.arange(len(candidates))
    while len(left):
        index = pool.select(left, spend=vault.remaining.share(0.1))
        assert index in left
        left = left[left != index]
    assert counted == [len(candidates)]
    assert [charge.queries[0]["candidates"] for charge in account.charges] == list(range(len(candidates), 0, -1))
    for among in ([], [len(candidates)], [-1]):
        with refused("nothing-to-choose"):
            pool.select(np.array(among, dtype=np.int64), spend=vault.remaining)
    assert len(account.charges) == len(candidates)
