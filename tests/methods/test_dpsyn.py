"""DPSyn: regimes where the write-up puts them, rows segment by segment, people with many rows, public tables."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit.method import BUDGETS, KINDS, SCHEMA, check_release, pairs, replay_pair
from hedgerow.audit.replay import replay
from hedgerow.budget.accounting import Guarantee, covers
from hedgerow.budget.amounts import Amount, Currency
from hedgerow.coded.domain import Domain
from hedgerow.errors import ReleaseError
from hedgerow.methods import build
from hedgerow.methods.dpsyn import DPSyn, Regime, Thresholds, priced
from hedgerow.models import load
from hedgerow.models.model import block_rng
from hedgerow.models.records import Records, Target, shares_of
from hedgerow.models.segments import Segments
from hedgerow.private.engines import open_engine
from hedgerow.private.ledger import Ledger
from hedgerow.progress import Progress
from hedgerow.release.bundle import verify
from hedgerow.release.certificate import check, second_opinion
from hedgerow.run import Run
from looking import answered
from refusals import refused

SEVEN = SCHEMA.replace("max_rows_per_person: 3", "max_rows_per_person: 7")

# ------------------------------------------------------------ regimes


def test_thresholds_of_the_contest():
    """θ = 7 and 1,033,968 rows: ε = 0.1 is low, 1 and 10 are high, and τ₁, τ₂ are 0.0102 and 0.0609."""
    found = Thresholds(7)
    assert (found.total, found.low, found.least, found.high) == pytest.approx((0.005, 0.14, 0.2, 0.28))
    assert found.one_way(1_033_968) == pytest.approx(0.01015, abs=5e-5)
    assert found.two_way(1_033_968) == pytest.approx(0.0609, abs=5e-5)
    regimes = [found.regime(epsilon, 1_033_968) for epsilon in (0.1, 1.0, 10.0)]
    assert regimes == [Regime.PUBLIC, Regime.TWO_WAY, Regime.TWO_WAY]
    assert found.for_segments(1.0, 1_033_968) == pytest.approx(0.28)


@given(st.integers(1, 20), st.integers(100, 10**7), st.floats(0, 0.2))
def test_regimes_switch_where_the_thresholds_say(persons, rows, beyond):
    found = Thresholds(persons)
    one = max(found.least, found.total + found.low + found.one_way(rows))
    two = max(found.least, found.total + found.low + found.two_way(rows))
    assert found.regime(one * (1 - 1e-9), rows) is Regime.PUBLIC
    assert found.regime(one * (1 + 1e-9), rows) is not Regime.PUBLIC
    assert found.regime(two * (1 - 1e-9), rows) is not Regime.TWO_WAY
    assert found.regime(two * (1 + 1e-9) + beyond, rows) is Regime.TWO_WAY


@given(st.integers(1, 20), st.integers(100, 10**7), st.floats(0.001, 20))
def test_segments_never_get_more_than_there_is(persons, rows, epsilon):
    found = Thresholds(persons)
    if found.regime(epsilon, rows) is not Regime.PUBLIC:
        assert found.low <= found.for_segments(epsilon, rows) <= min(found.high, epsilon - found.total)


def test_segment_noise_is_that_of_the_laplace_mechanism_or_half_of_the_budget():
    """σ = √2·θ/y costs y²/2 of μ²; under δ = 0 noise for y costs y."""
    assert priced(Amount.of(Currency.GDP, 1.0), 0.28, 0.5).value == pytest.approx(0.28**2 / 2)
    assert priced(Amount.of(Currency.GDP, 0.02), 0.28, 0.5).value == pytest.approx(0.01)
    assert priced(Amount.of(Currency.PURE, 1.0), 0.28, 0.5).value == pytest.approx(0.28)


# ------------------------------------------------------------ the model

DOMAIN = Domain.of({"place": 3, "a": 4, "year": 2, "b": 3})
COUNTS = np.array([[50.0, 50.0], [20.0, 0.0], [50.0, 30.0]])


def segments(counts=COUNTS, pool_rows=400, first=None):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, pool_rows)
    pool = {"a": a.astype(np.uint8), "b": ((a + (rng.random(pool_rows) < 0.3)) % 3).astype(np.uint8)}
    inner = Domain.of({"a": 4, "b": 3})
    targets = [Target(each, shares_of(pool, inner, each)) for each in [("a",), ("b",), ("a", "b")]]
    return Segments(
        DOMAIN, ("place", "year"), counts, pool, targets, [1.0, 1.0, 2.0], pool_rows if first is None else first
    )


def test_every_segment_gets_its_number_of_rows():
    drawn = segments().draw(200, block_rng(0, 0))
    counted = np.zeros((3, 2))
    np.add.at(counted, (drawn["place"], drawn["year"]), 1)
    np.testing.assert_array_equal(counted, COUNTS)


def test_segments_of_equal_size_get_rows_of_their_own():
    drawn = segments().draw(200, block_rng(0, 0))
    same = [(drawn["place"] == p) & (drawn["year"] == y) for p, y in ((0, 0), (0, 1), (2, 0))]
    rows = [np.sort(4 * drawn["b"][mask] + drawn["a"][mask], kind="stable").tolist() for mask in same]
    order = [(4 * drawn["b"][mask] + drawn["a"][mask]).tolist() for mask in same]
    assert all(len(each) == 50 for each in rows)
    assert order[0] != order[1] != order[2]


def test_a_segment_is_closer_to_the_targets_than_random_rows():
    model = segments()
    distances = []
    for drawn in (model.draw(200, block_rng(0, 0)), model.pool):
        rows = {name: codes[:50] for name, codes in drawn.items() if name in ("a", "b")}
        if "place" in drawn:
            mask = (drawn["place"] == 0) & (drawn["year"] == 0)
            rows = {name: drawn[name][mask] for name in ("a", "b")}
        distances.append(sum(np.abs(shares_of(rows, model.inner, t.marginal) - t.shares).sum() for t in model.targets))
    assert distances[0] < 0.6 * distances[1]


@given(st.integers(0, 1500), st.integers(0, 3))
def test_any_number_of_rows_from_a_saved_model(rows, seed):
    model = segments()
    again = load(DOMAIN, model.state())
    drawn, repeated = model.draw(rows, block_rng(seed, 0)), again.draw(rows, block_rng(seed, 0))
    for attribute in DOMAIN:
        assert len(drawn[attribute.name]) == rows
        assert drawn[attribute.name].dtype == attribute.dtype
        np.testing.assert_array_equal(drawn[attribute.name], repeated[attribute.name])


def test_small_tables_from_a_large_pool_are_closer_than_records_updated_at_their_size():
    """What the write-up found: its record update makes good tables only when they are large.

    Exchanges, which ours ends with, mend most of that.
    """
    rng = np.random.default_rng(2)
    domain = Domain.of({"a": 6, "b": 5, "c": 4, "d": 6})
    latent = rng.random(20_000)
    real = {
        x.name: np.minimum((latent + rng.random(20_000) / 3) * x.size / 1.4, x.size - 1).astype(int) for x in domain
    }
    targets = [Target.of(pair, 1.0 * shares_of(real, domain, pair)) for pair in domain.marginals(2)]

    def distance(rows):
        return np.mean(
            [np.abs(shares_of(rows, domain, t.marginal).reshape(-1) - t.shares.reshape(-1)).sum() for t in targets]
        )

    pool = Records(domain, targets, 5000).made(5000, np.random.default_rng(3), 30, 20)
    with_place = Domain.of({"place": 2, **{x.name: x.size for x in domain}})
    chosen = Segments(with_place, ("place",), np.array([150.0, 150.0]), pool, targets, [1.0] * len(targets), 5000)
    drawn = chosen.draw(300, np.random.default_rng(4))
    mine = {name: codes[drawn["place"] == 0] for name, codes in drawn.items() if name != "place"}
    updated = Records(domain, targets, 150).made(150, np.random.default_rng(5), 30, 0)
    exchanged = Records(domain, targets, 150).made(150, np.random.default_rng(5), 30, 20)
    assert len(mine["a"]) == len(updated["a"]) == 150
    assert distance(mine) < 0.75 * distance(updated)
    assert distance(mine) < distance(exchanged)


def test_marginals_are_segment_counts_times_shares_of_the_pool():
    model = segments()
    joint = model.marginal(("place", "a", "b"))
    np.testing.assert_allclose(joint.sum(axis=(1, 2)), COUNTS.sum(axis=1))
    np.testing.assert_allclose(joint.sum(axis=0), model.marginal(("a", "b")))
    np.testing.assert_allclose(model.marginal(("year",)), COUNTS.sum(axis=0))
    assert model.marginal(()) == pytest.approx(200)


@pytest.mark.parametrize("first", [0, 401])
def test_a_search_must_begin_inside_the_pool(first):
    with refused("bad-pool"):
        segments(first=first)


def test_a_search_begins_with_the_first_rows_and_takes_others_where_they_help():
    """The first hundred rows all hold one value of `a`; the wanted shares need the others."""
    model = segments()
    order = np.argsort(model.pool["a"], kind="stable")
    pool = {name: codes[order] for name, codes in model.pool.items()}
    first = int((pool["a"] == 0).sum())
    narrow = Segments(DOMAIN, ("place", "year"), COUNTS, pool, model.targets, model.weights, first)
    drawn = narrow.draw(200, block_rng(0, 0))
    wanted = model.targets[0].shares
    np.testing.assert_allclose(np.bincount(drawn["a"], minlength=4) / 200, wanted, atol=0.05)


@pytest.mark.parametrize("counts", [np.zeros((3, 2)), -COUNTS, np.ones((2, 3))])
def test_bad_counts_are_refused(counts):
    with refused("bad-segments"):
        segments(counts)


# ------------------------------------------------------------ the method

PEOPLE = """
dataset: people
person: id
max_rows_per_person: 7
columns:
  place: {type: code, size: 4}
  year:  {type: code, size: 3}
  a:     {type: code, size: 5}
  b:     {type: code, size: 3}
  c:     {type: code, size: 4}
"""


def people(count=3000, seed=0, tilt=0.0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(count), rng.integers(1, 4, count))
    rows = len(ids)
    a = np.minimum(rng.geometric(0.4 + tilt, rows) - 1, 4)
    return pa.table(
        {
            "id": ids,
            "place": rng.integers(0, 4, rows),
            "year": rng.integers(0, 3, rows),
            "a": a,
            "b": (a + (rng.random(rows) < 0.2)) % 3,
            "c": (a + rng.integers(0, 2, rows)) % 4,
        }
    )


def synthesize(table, epsilon, options=None, public=None, delta=1e-9):
    method = build("dpsyn", {"segments": "place,year", **(options or {})})
    return hr.synthesize(
        table, hr.Schema.parse(PEOPLE), hr.Budget(epsilon, delta), method, public=public, unsafe_noise_seed=1, quality=0
    )


@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize(
    ("epsilon", "asked"),
    # θ = 7: ε₂ = 0.2; about 6,000 rows, so τ₁ = 1.75 and τ₂ = 10.5, give or take the noise of scale 1,400
    [(0.1, [1]), (0.3, [1, 1]), (60.0, [1, 1, 3])],
)
def test_a_run_asks_what_its_regime_says(epsilon, asked, delta):
    release = synthesize(people(), epsilon, public=people(seed=1), delta=delta)
    assert [len(charge.queries) for charge in release.certificate.charges] == asked
    assert release.certificate.spent == release.certificate.whole
    assert release.sample().num_rows == release.estimated_rows


@pytest.mark.parametrize(
    ("epsilon", "scale"),
    # θ = 7: all of ε; all but ε₀; y = ε₃ of ε = 1 and 3
    [(0.1, 70.0), (0.22, 7 / 0.215), (1.0, 25.0), (3.0, 25.0)],
)
def test_segments_have_the_noise_that_is_printed(epsilon, scale):
    """Laplace noise of scale θ/y, although δ > 0: pure ε satisfies (ε, δ) too. In μ² it would be 392 at ε = 0.1."""
    table = people(200_000) if epsilon >= 1 else people()
    release = synthesize(table, epsilon, public=people(seed=1), delta=3.45e-11)
    counted = next(a.measurements[0] for a in release.answers if len(a.measurements[0].query.attributes) == 2)
    assert counted.noise.kind == "laplace"
    assert counted.noise.scale == pytest.approx(scale)
    certificate = release.certificate
    assert certificate.spent == certificate.whole
    assert covers(certificate.budget, certificate.whole)


def test_segments_are_never_noisier_than_printed_where_all_is_kept_in_mu():
    """At ε = 10 the Gaussian of the same deviation costs less than exchanging would lose."""
    release = synthesize(people(20_000), 10.0, public=people(seed=1), delta=3.45e-11)
    total, counted = (answer.measurements[0] for answer in release.answers[:2])
    assert {total.noise.kind, counted.noise.kind} == {"gaussian"}
    assert counted.noise.scale <= np.sqrt(2) * 25 * (1 + 1e-9)
    assert not release.certificate.whole.is_direct


def test_a_ledger_keeps_the_books_in_mu(tmp_path):
    """Its sum over releases is one of μ², where ε that is spent directly has no place."""
    path = tmp_path / "people.ledger"
    Ledger.create(path, "people", hr.Budget(3.0))
    method = build("dpsyn", {"segments": "place,year"})
    release = hr.synthesize(
        people(100), hr.Schema.parse(PEOPLE), hr.Budget(0.1), method, public=people(seed=1), ledger=path, quality=0
    )
    assert not release.certificate.whole.is_direct
    assert release.answers[0].measurements[0].noise.kind == "gaussian"


def test_a_release_that_was_paid_in_both_is_stated_saved_and_verified(tmp_path):
    method = build("dpsyn", {"segments": "place,year"})
    given = hr.Budget(1.0, 1e-9)
    release = hr.synthesize(people(30_000), hr.Schema.parse(PEOPLE), given, method, public=people(seed=1), quality=0)
    assert release.certificate.whole.is_direct
    assert release.certificate.guarantee == Guarantee(1.0, 1e-9, None)
    assert any("paid for in ε" in said for said in release.certificate.statements())
    release.save(tmp_path / "both.release")
    loaded, _ = verify(tmp_path / "both.release")
    assert loaded.certificate.whole == release.certificate.whole
    assert loaded.certificate.charges == release.certificate.charges
    assert second_opinion(loaded.certificate) <= 1.0
    stated = loaded.certificate.to_json()
    more = {**stated["whole"], "epsilon_units": str(2 * int(stated["whole"]["epsilon_units"]))}
    with pytest.raises(ReleaseError, match="more than"):
        check({**stated, "whole": more}, loaded.answers, loaded.schema)


def test_rounding_follows_the_regime_and_not_epsilon():
    """K = 10 where only segments are measured, 100 otherwise."""
    options = {"round": "100", "public_round": "10", "shrink": "no"}
    public = people(seed=1)
    only = synthesize(people(), 0.3, options, public=public).model.counts
    beside = synthesize(people(), 60.0, options, public=public).model.counts
    assert (only % 10 == 0).all()
    assert (only % 100).any()
    assert (beside % 100 == 0).all()


def test_the_middle_regime_measures_columns():
    release = synthesize(people(), 5.0, public=people(seed=1))
    assert [len(q["attributes"]) for q in release.certificate.charges[-1].queries] == [1, 1, 1]


def test_without_a_public_table_columns_are_the_least_that_is_measured():
    release = synthesize(people(), 0.1)
    assert [len(charge.queries) for charge in release.certificate.charges] == [1, 1, 3]
    assert release.certificate.spent == release.certificate.whole


def test_rows_beyond_the_bound_never_count():
    """One person has 40 rows in one place and year; seven of them count, whatever the others are."""
    one = pa.table(
        {"id": [10**6] * 40, "place": [2] * 40, "year": [1] * 40, "a": [4] * 40, "b": [0] * 40, "c": [3] * 40}
    )
    release = synthesize(one, 1e5)
    counted = {m.query.attributes: m.values.reshape(m.query.shape) for m in release.answers[2].measurements}
    assert all(counts.sum() == 7 for counts in counted.values())
    assert counted["a", "b"][4, 0] == counted["a", "c"][4, 3] == 7
    in_all = pa.concat_tables([people(200), one])
    without = synthesize(people(200), 1e5).answers[2].measurements[0].values
    assert (synthesize(in_all, 1e5).answers[2].measurements[0].values - without).sum() == 7


def test_floor_and_rounding_by_hand():
    release = synthesize(people(60), 1e5, {"floor": "15", "round": "10", "shrink": "no"})
    counted = release.answers[1].measurements[0].values.reshape(4, 3)
    np.testing.assert_array_equal(release.model.counts, np.maximum(np.rint(counted / 10) * 10, 15))


def test_undeclared_places_get_no_floor():
    schema = hr.Schema.parse(PEOPLE.replace("place: {type: code, size: 4}", "place: {type: category, values: [0, 1]}"))
    method = build("dpsyn", {"segments": "place,year", "floor": "50", "shrink": "no"})
    release = hr.synthesize(
        people(60), schema, hr.Budget(1e5), method, unsafe_noise_seed=1, allow_misfits=["place"], quality=0
    )
    assert release.model.counts.shape == (3, 3)
    counted = answered(release)[1].measurements[0].values.reshape(3, 3)
    np.testing.assert_array_equal(release.model.counts[:2], np.maximum(counted[:2], 50))
    np.testing.assert_array_equal(release.model.counts[2], np.maximum(counted[2], 0))  # the hidden cell


def test_noisy_segments_are_drawn_to_their_mean():
    """Twelve segments of about 500 rows each, with noise of several hundred."""
    table, public = people(), people(seed=1)
    spread = [synthesize(table, 0.1, {"shrink": shrink}, public=public).model.counts.std() for shrink in ("yes", "no")]
    assert spread[0] < 0.5 * spread[1]


def distance(release, table):
    encoding = release.encoding
    real, made = encoding.encode(table.combine_chunks()), encoding.encode(release.sample().combine_chunks())
    found = [
        np.abs(shares_of(real, encoding.domain, pair) - shares_of(made, encoding.domain, pair)).sum() / 2
        for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    return float(np.mean(found))


def test_a_public_table_carries_where_the_budget_does_not():
    table, public = people(), people(seed=1)
    assert distance(synthesize(table, 0.1, public=public), table) < 0.05
    assert distance(synthesize(table, 0.1), table) > 0.15


def test_a_large_budget_overrules_a_misleading_public_table():
    table, public = people(), people(seed=1, tilt=0.4)
    assert distance(synthesize(table, 0.1, public=public), table) > 0.15
    assert distance(synthesize(table, 60.0, public=public), table) < 0.06


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"segments": "place,yeer"}, ("unknown-column", '"yeer"', 'Did you mean "year"')),
        ({"round": "0"}, ("bad-option", '"round"')),
    ],
)
def test_bad_options_are_refused(options, complaint):
    with refused(*complaint):
        synthesize(people(10), 1.0, options)


def test_all_columns_may_be_segments():
    release = synthesize(people(50), 1.0, {"segments": "place,year,a,b,c"})
    assert release.certificate.spent == release.certificate.whole
    check_release(release)


# ------------------------------------------------------------ audits with seven rows a person


@pytest.mark.parametrize("method", [build("privsyn"), DPSyn(segments=("site",), floor=3, round=2), DPSyn()])
def test_replays_find_no_difference_with_seven_rows_a_person(method):
    for budget in BUDGETS:
        for pair in pairs(len(KINDS)):
            replay_pair(method, budget, pair, SEVEN)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 10.0, 400.0])
def test_replays_with_a_public_table(epsilon):
    """Public marginals only (also after the total was looked at), one-way, and two-way marginals drawn to them."""
    schema = hr.Schema.parse(SEVEN)
    public = next(pairs(1, seed=9)).table
    method = DPSyn(segments=("site",))

    def on(table):
        def run(mechanisms):
            engine = open_engine(table, bounding_key=b"one key")
            return Run(schema, hr.Budget(epsilon), method, 0, Progress(), public).release(engine, mechanisms)

        return run

    for pair in pairs(len(KINDS), seed=1):
        release = replay(on(pair.table), on(pair.neighbour)).release
    check_release(release)
