"""Hedge and what it is made of: denoised columns, coarse domains, views, a fit that stays near its prior."""

import itertools
import math
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit import check_method, check_model
from hedgerow.audit.method import Pair, check_release, replay_pair
from hedgerow.coded.domain import Attribute, Domain, Workload
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.methods import hedge
from hedgerow.methods.hedge import Hedge
from hedgerow.methods.shared import at_once, joins, outside, rounds
from hedgerow.methods.shared.columns import Columns
from hedgerow.methods.shared.coverings import covering, pairs_of
from hedgerow.models import denoising
from hedgerow.models.denoising import denoised
from hedgerow.models.graphical.estimation import fit, fit_near, loss
from hedgerow.models.graphical.junction import plan, size
from hedgerow.models.graphical.model import GraphicalModel
from hedgerow.models.records import Adjusted, Target, shares_of
from hedgerow.private.evaluate import marginal_distances
from hedgerow.progress import Limits, Progress
from hedgerow.samples import opm
from looking import asked
from refusals import refused

SCHEMA = hr.Schema.parse(opm.SCHEMA)


def measured(values, std, name="a"):
    domain = Domain.of({name: len(values)})
    query = MarginalQuery(domain, (name,))
    return Measurement(query, np.asarray(values, dtype=np.int64), Noise("gaussian", std))


noisy = st.lists(st.integers(-50, 500), min_size=1, max_size=60)


# single columns


@given(noisy, st.floats(0.1, 300), st.data())
def test_denoised_counts_are_a_histogram_of_the_total(values, std, data):
    line = data.draw(st.one_of(st.none(), st.integers(0, len(values))))
    column = denoised(measured(values, std), Attribute("a", len(values), line), 1000.0)
    assert column.counts.min() >= 0
    assert column.counts.sum() == pytest.approx(1000.0)
    assert 0 < column.std <= 10 * std + np.abs(values).max() + 1000


@given(noisy, st.floats(0.1, 300), st.randoms(use_true_random=False))
def test_an_unordered_column_knows_no_neighbours(values, std, random):
    order = list(range(len(values)))
    random.shuffle(order)
    plain = denoised(measured(values, std), Attribute("a", len(values), ordered=0), 1000.0).counts
    shuffled = denoised(
        measured([values[index] for index in order], std), Attribute("a", len(values), ordered=0), 1000.0
    )
    assert shuffled.counts == pytest.approx(plain[order])


def rough(truth, std, seed):
    return np.rint(truth + std * np.random.default_rng(seed).normal(size=len(truth)))


HILL = 2000 * np.exp(-0.5 * ((np.arange(100) - 40) / 15) ** 2)


def test_an_ordered_column_borrows_from_its_neighbours_and_knows_how_much_is_left():
    raw, smooth, believed = [], [], []
    for seed in range(20):
        values = rough(HILL, 150, seed)
        column = denoised(measured(values, 150), Attribute("a", 100, ordered=100), float(HILL.sum()))
        raw.append(((values - HILL) ** 2).mean())
        smooth.append(((column.counts - HILL) ** 2).mean())
        believed.append(column.std**2)
    assert np.mean(smooth) < np.mean(raw) / 4
    assert np.mean(smooth) / 3 < np.mean(believed) < 3 * np.mean(smooth)


@pytest.mark.parametrize("std", [50, 150, 500])
def test_averaging_the_options_is_no_worse_than_the_best_of_them_by_risk(std):
    def error(patience):
        with mock.patch.object(denoising, "PATIENCE", patience):
            columns = [
                denoised(measured(rough(HILL, std, seed), std), Attribute("a", 100), float(HILL.sum()))
                for seed in range(40)
            ]
        return np.mean([((column.counts - HILL) ** 2).mean() for column in columns])

    assert error(denoising.PATIENCE) < error(1e-6)


def test_an_order_that_nobody_declared_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    values = rough(HILL, 150, 1)
    total = float(HILL.sum())
    known = denoised(measured(values, 150), Attribute("a", 100, ordered=100), total)
    found = denoised(measured(values, 150), Attribute("a", 100), total)
    assert found.counts == pytest.approx(known.counts, abs=150)  # less at the ends, where the order is declared
    jumbled = rng.permutation(HILL)
    kept = denoised(measured(rough(jumbled, 20, 2), 20), Attribute("a", 100), total)
    assert np.abs(kept.counts - jumbled).max() < 6 * 20


def test_a_spike_stays_a_spike():
    truth = HILL.copy()
    truth[60] += 20_000
    column = denoised(measured(rough(truth, 150, 3), 150), Attribute("a", 100, ordered=100), float(truth.sum()))
    assert column.counts[60] == pytest.approx(truth[60], abs=6 * 150)
    assert column.counts[59] == pytest.approx(truth[59], abs=3 * 150)


@pytest.mark.parametrize(("codes", "held"), [(101, 7), (21, 6), (400, 40)])
def test_bounds_that_were_declared_too_wide_do_not_move_the_mean(codes: int, held: int):
    """Noise in what nobody has, up to 14 times as far out as what somebody has, all of it on one side."""
    truth = np.zeros(codes)
    truth[:held] = 8_000 * 0.7 ** np.arange(held)
    number, off, apart = np.arange(codes), [], []
    for seed in range(40):
        values, mean = measured(rough(truth, 25, seed), 25), number @ truth / truth.sum()
        spread = math.sqrt(number**2 @ truth / truth.sum() - mean**2)
        for order, errors in ((codes, off), (0, apart)):
            counts = denoised(values, Attribute("a", codes, ordered=order), float(truth.sum())).counts
            errors.append(abs(number @ counts / counts.sum() - mean) / spread)
    assert np.median(off) < 0.02
    assert np.mean(off) < np.mean(apart) / 2


def test_a_tail_of_which_no_cell_is_beyond_doubt_is_no_noise():
    truth = np.concatenate([1_000 * 0.6 ** np.arange(10), np.full(30, 60.0), np.zeros(60)])
    for seed in range(20):
        counts = denoised(measured(rough(truth, 40, seed), 40), Attribute("a", 100, ordered=100), truth.sum()).counts
        assert counts[10:40].sum() > 0.6 * 30 * 60
        assert counts[50:].sum() < 0.2 * 30 * 60


def test_codes_beyond_the_line_are_not_smoothed_into_it():
    truth = np.concatenate([HILL, [9000.0, 0.0]])
    column = denoised(measured(rough(truth, 100, 4), 100), Attribute("a", 102, ordered=100), float(truth.sum()))
    assert column.counts[100] == pytest.approx(9000, abs=600)
    assert column.counts[101] < 400


def test_a_column_of_very_many_codes_is_quick_to_smooth():
    """A convolution by definition would take 10¹¹ steps."""
    truth = np.full(200_000, 5.0)
    column = denoised(measured(rough(truth, 20, 5), 20), Attribute("a", 200_000, ordered=200_000), float(truth.sum()))
    assert np.abs(column.counts - 5).mean() < 2


# coarser domains


def columns_of(counts, lines, std=1.0):
    domain = Domain(Attribute(name, len(values), lines[name]) for name, values in counts.items())
    one_ways = [
        Measurement(MarginalQuery(domain, (name,)), np.asarray(values, dtype=np.int64), Noise("gaussian", std))
        for name, values in counts.items()
    ]
    return Columns.known_from(domain, one_ways, float(sum(next(iter(counts.values())))))


@given(
    st.lists(st.integers(0, 300), min_size=17, max_size=60).filter(lambda v: sum(v) > 100),
    st.sampled_from(["line", "none", "part"]),
    st.floats(2, 80),
)
def test_what_could_be_merged_further_holds_enough(values, order, finest):
    line = {"line": len(values), "none": 0, "part": len(values) - 3}[order]
    columns = columns_of({"a": values}, {"a": line})
    recoding = columns.coarsening(finest)
    mapping = recoding.maps.get("a", np.arange(len(values)))
    held = np.bincount(mapping, weights=columns.of["a"].counts)
    assert sorted(set(mapping.tolist())) == list(range(len(held)))
    least = columns.total / finest - 1e-6
    if line > 16:
        assert (np.diff(mapping[:line]) >= 0).all()
        inside = int(mapping[line - 1]) + 1
        assert not np.isin(mapping[line:], mapping[:line]).any()
        assert all(held[i] + held[i + 1] >= least for i in range(inside - 1))
        assert recoding.target()["a"].ordered in (inside, len(values), line)
    else:
        assert len(held) < 2 or np.sort(held)[:2].sum() >= least


def test_independent_columns_come_back_whole():
    rng = np.random.default_rng(6)
    counts = {"a": rng.integers(0, 90, 40), "b": rng.integers(0, 90, 30)}
    counts["b"][0] += counts["a"].sum() - counts["b"].sum()
    columns = columns_of(counts, {"a": 40, "b": 0})
    recoding = columns.coarsening(8.0)
    assert set(recoding.maps) == {"a", "b"}
    model = columns.expand(columns.model(recoding), recoding)
    for name in ("a", "b"):
        assert model.marginal((name,)) == pytest.approx(columns.of[name].counts, abs=1.0)
    assert [m.query.cells for m in columns.measurements(recoding)] == [a.size for a in recoding.target()]


# views


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 6), min_size=3, max_size=8), st.integers(1, 3))
def test_views_hold_the_workload(sizes, degree):
    domain = Domain.of(sizes)
    workload = Workload.degree(domain, degree).weights
    views = covering(domain, workload)
    for marginal in workload:
        assert any(set(marginal) <= set(view) for view in views)
    assert max(map(domain.cells, views)) <= 8 * max(map(domain.cells, workload))
    assert set(pairs_of(workload)) == {pair for m in workload for pair in itertools.combinations(m, 2)}


def test_sixteen_bits_are_covered_by_a_steiner_system():
    """140 quadruples hold each of the 560 triples exactly once: no covering by quadruples has fewer."""
    domain = Domain.of({f"x{index:02}": 2 for index in range(16)})
    views = covering(domain, Workload.degree(domain, 3).weights)
    assert len(views) == 140
    assert {len(view) for view in views} == {4}


# a fit near its prior

PAIR = Domain.of({"a": 3, "b": 4})
TRUTH = np.array([[50, 10, 5, 35], [20, 60, 15, 5], [10, 10, 70, 10]])


def product(total=300.0):
    structure = plan(PAIR, [("a",), ("b",)])
    return GraphicalModel(structure, np.zeros(structure.leaf_cells), total)


def pair(std):
    return Measurement(MarginalQuery(PAIR, ("a", "b")), TRUTH.reshape(-1), Noise("gaussian", std))


def test_nothing_measured_leaves_the_prior():
    assert fit_near(product(), []).marginal(("a", "b")) == pytest.approx(product().marginal(("a", "b")))


def test_exact_answers_are_followed_and_noise_is_not():
    assert fit_near(product(), [pair(1e-3)]).marginal(("a", "b")) == pytest.approx(TRUTH, abs=0.5)
    assert fit_near(product(), [pair(1e5)]).marginal(("a", "b")) == pytest.approx(np.full((3, 4), 25.0), rel=0.02)


@given(st.floats(1.0, 500.0))
def test_no_other_model_is_better_by_the_penalised_loss(std):
    def objective(model):
        p, q = (m.marginal(("a", "b")).reshape(-1) / 300.0 for m in (model, product()))
        divergence = float((p * np.log(np.maximum(p, 1e-300) / q)).sum())
        return loss(model, [pair(std)]) + 300.0 / (3.0 * pair(std).std) * divergence

    near, plain = fit_near(product(), [pair(std)]), fit(PAIR, [pair(std)], total=300.0)
    assert objective(near) <= min(objective(product()), objective(plain)) * (1 + 1e-3) + 1e-6
    assert loss(near, [pair(std)]) >= loss(plain, [pair(std)]) - 1e-3


# the method


def release_of(table, schema, epsilon, seed=0, delta=1e-9, method=None, **words):
    method = method or Hedge()
    return hr.synthesize(
        table, schema, hr.Budget(epsilon, delta), method, unsafe_noise_seed=seed, seed=seed, **words, quality=0
    )


def kinds(release):
    return [charge.purpose for charge in asked(release)]


def bits(rows, columns=8, seed=0):
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 2, rows)
    table = {}
    for index in range(columns):
        before = np.where(rng.random(rows) < 0.8, before, rng.integers(0, 2, rows))
        table[f"x{index}"] = before
    text = "columns:\n" + "".join(f"  {name}: {{type: code, size: 2}}\n" for name in table)
    return pa.table(table), hr.Schema.parse(text)


def test_a_narrow_table_is_measured_in_one_go():
    table, schema = bits(5000)
    release = release_of(table, schema, 1.0)
    assert kinds(release) == ["measure", "measure", "measure"]
    interactions = release.certificate.charges[-1].queries
    assert len(interactions) == sum(math.comb(8, degree) for degree in (1, 2, 3))
    assert all("interaction" in query for query in interactions)


def test_what_cannot_be_measured_at_once_costs_nothing(monkeypatch):
    """A table of merged codes or too many numbers goes round by round, with all of the budget."""
    table, schema = bits(5000)
    monkeypatch.setattr(at_once, "MOST_ENTRIES", 1)
    assert "select" in kinds(release_of(table, schema, 1.0))


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_measuring_at_once_replays(delta):
    table, schema = bits(1000)
    replayed = replay_pair(Hedge(), hr.Budget(4.0, delta), Pair("one row", table, table.slice(1)), schema.to_yaml())
    assert any("interaction" in query for charge in asked(replayed.release) for query in charge.queries)
    check_release(replayed.release)


def test_a_narrow_table_without_budget_for_that_goes_round_by_round():
    table, schema = bits(400)
    assert "select" in kinds(release_of(table, schema, 0.3))


def test_several_picks_a_round_are_each_charged_and_replay(monkeypatch):
    monkeypatch.setattr(hedge, "MOST_ROUNDS", 2)
    table = opm.generate(2000)
    spent = kinds(release_of(table, SCHEMA, 3.0))
    runs = [len(list(group)) for kind, group in itertools.groupby(spent) if kind == "select"]
    assert max(runs) > 1
    check_method(Hedge(), count=12)


def test_rounds_are_fewer_where_each_looks_at_many_marginals(monkeypatch):
    table = opm.generate(2000)

    def rounds_of():
        return sum(1 for kind, _ in itertools.groupby(kinds(release_of(table, SCHEMA, 3.0))) if kind == "select")

    before = rounds_of()
    monkeypatch.setattr(hedge, "MARGINALS_IN_ALL", 1)
    monkeypatch.setattr(hedge, "FEWEST_ROUNDS", 2)
    assert 2 <= rounds_of() < before


def test_where_relations_cannot_be_seen_columns_get_everything():
    table = opm.generate(300)
    assert kinds(release_of(table, SCHEMA, 0.01)) == ["measure", "measure"]


def test_out_of_time_still_spends_the_budget():
    table = opm.generate(1000)
    late = Progress(Limits(seconds=0.0))
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0, 1e-9), Hedge(), progress=late, quality=0)
    assert kinds(release).count("select") <= 1
    assert release.certificate.spent == release.certificate.whole


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_error_falls_with_the_budget_and_beats_independent_columns(delta):
    table = opm.generate(6000)
    encoding = SCHEMA.encoding()
    real = encoding.encode(table)

    def error(epsilon, method):
        drawn = release_of(table, SCHEMA, epsilon, delta=delta, method=method).sample(6000)
        return float(marginal_distances(real, encoding.encode(drawn.combine_chunks()), encoding.domain, 2).mean())

    errors = [error(epsilon, Hedge()) for epsilon in (0.3, 3.0, 30.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[1] < error(3.0, hr.methods.build("independent"))


def test_a_parity_of_five_columns_is_seen_only_where_a_workload_names_them():
    """Every four of them are independent: no marginal of three tells of it, and no budget is large enough."""
    rng = np.random.default_rng(5)
    columns = {f"x{index}": rng.integers(0, 2, 3000) for index in range(4)}
    columns["x4"] = sum(columns.values()) % 2
    columns |= {f"y{index}": rng.integers(0, 8, 3000) for index in range(5)}
    schema = hr.Schema.from_dict(
        {"columns": {name: {"type": "code", "size": 2 if name < "y" else 8} for name in columns}}
    )
    five = [name for name in columns if name < "y"]

    def even(method):
        rows = release_of(pa.table(columns), schema, 10.0, method=method).sample()
        return float(np.mean(sum(rows[name].to_numpy() for name in five) % 2 == 0))

    assert even(Hedge(picks=0.5)) == pytest.approx(0.5, abs=0.1)
    assert even(Hedge(picks=0.5, workload=((tuple(five), 1.0),))) > 0.9


def test_a_public_table_is_where_the_model_starts():
    table, public = opm.generate(500), opm.generate(3000, seed=9)
    encoding = SCHEMA.encoding()
    real = encoding.encode(table)

    def error(**words):
        drawn = release_of(table, SCHEMA, 0.2, **words).sample(500)
        return float(marginal_distances(real, encoding.encode(drawn.combine_chunks()), encoding.domain, 2).mean())

    assert error(public=public) < error() - 0.02


def test_merged_codes_keep_their_line():
    domain = Domain([Attribute("a", 6, ordered=4)])
    assert Recoding(domain, {"a": np.array([0, 0, 1, 1, 2, 3])}).target()["a"].ordered == 2
    assert Recoding(domain, {"a": np.array([0, 1, 0, 1, 2, 3])}).target()["a"].ordered == 0
    assert Recoding(domain, {"a": np.array([0, 0, 1, 1, 1, 2])}).target()["a"].ordered == 0


def test_pairs_beyond_the_model_are_measured_where_they_can_be_seen():
    """Six columns that all copy one: with room for few pairs in the model, the others are given to its rows."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 6, 20_000)
    table = {f"x{i}": np.where(rng.random(20_000) < 0.7, hidden, rng.integers(0, 6, 20_000)) for i in range(6)}
    schema = hr.Schema.parse("columns:\n" + "".join(f"  {name}: {{type: code, size: 6}}\n" for name in table))
    encoding = schema.encoding()
    errors = []
    for sharp in (outside.MOST_SCORE_NOISE, 0.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outside, "MOST_SCORE_NOISE", sharp)
            patch.setattr(joins, "promising", lambda *_: [])
            release = release_of(pa.table(table), schema, 10.0, method=Hedge(size=0.005))
        assert ("score" in kinds(release)) == (sharp > 0)
        drawn = encoding.encode(release.sample().combine_chunks())
        errors.append(float(marginal_distances(table, drawn, encoding.domain, 2).mean()))
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.parametrize("rows", [5_000, 150_000])  # one slice, and several
def test_exchanges_leave_every_column_as_it_was(rows):
    model = product(5000.0)
    adjusted = Adjusted(model, [Target.of(("a", "b"), TRUTH.astype(float))])
    before, after = model.draw(rows, np.random.default_rng(2)), adjusted.draw(rows, np.random.default_rng(2))
    for name in PAIR.names:
        assert np.bincount(before[name]).tolist() == np.bincount(after[name]).tolist()
    want = TRUTH / TRUTH.sum()

    def apart(drawn):
        return np.abs(np.histogram2d(drawn["a"], drawn["b"], bins=(3, 4))[0] / rows - want).sum()

    assert apart(after) < apart(before) / 3
    check_model(adjusted)


@pytest.mark.parametrize("options", [{"picks": "0"}, {"measuring": "1"}, {"measuring": "0"}, {"noise": "0"}])
def test_bad_options_are_refused(options):
    with refused("bad-option"):
        hr.methods.build("hedge", options)


class Late(Progress):
    """Time is up once the first round has begun."""

    def out_of_time(self):
        return True


@pytest.mark.parametrize("columns", [5, 10, 22, 46])
def test_a_last_round_of_several_picks_spends_no_more_than_there_is(columns, monkeypatch):
    monkeypatch.setattr(hedge, "MOST_ROUNDS", 4)
    monkeypatch.setattr(at_once, "MOST_NOISE_SHARE", 0.0)
    table, schema = bits(3000, columns)
    release = hr.synthesize(table, schema, hr.Budget(3.0, 1e-9), Hedge(workload="2"), progress=Late(), quality=0)
    assert release.certificate.spent == release.certificate.whole


@pytest.mark.parametrize(("epsilon", "delta"), [(1e4, 0.0), (1e6, 1e-9)])
@pytest.mark.parametrize("method", ["hedge", "aim", "mst", "independent"])
def test_hardly_any_noise_is_no_trouble(epsilon, delta, method):
    table, schema = bits(500, 4)
    hr.synthesize(table, schema, hr.Budget(epsilon, delta), method, quality=0).sample(10)


def test_a_wide_marginal_does_not_hide_the_narrow_ones():
    class Public:
        domain = Domain.of({"a": 2500, "b": 2500, "c": 4, "d": 4})
        rng = np.random.default_rng(0)

    pairs = list(Public.domain.marginals(2))
    assert set(rounds.drawn_by_lot(Public, pairs)) == set(pairs) - {("a", "b")}


@pytest.mark.parametrize(("codes", "megabytes"), [(2, 4.0), (16, 4.0), (60, 11.0), (300, 32.0)])
def test_the_model_may_grow_as_the_columns_need(codes, megabytes):
    domain = Domain.of({f"x{index}": codes for index in range(13)})
    assert Hedge().megabytes(domain, Limits()) == pytest.approx(megabytes, rel=0.1)
    assert Hedge(size=2.0).megabytes(domain, Limits()) == 2.0
    assert Hedge().megabytes(domain, Limits(memory=1 << 30)) <= (1 << 30) / hedge.MEMORY_A_SIZE / 2**20


def test_hundreds_of_columns_have_a_size():
    domain = Domain.of({f"x{index}": 10 for index in range(320)})
    assert size(domain, itertools.combinations(domain.names, 2)) == np.inf


def test_a_public_table_of_wide_columns_starts_a_model_that_fits():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 20_000, 500)
    table = pa.table({"a": codes, "b": codes, "c": rng.integers(0, 3, 500)})
    schema = hr.Schema.parse(
        "columns: {a: {type: code, size: 20000}, b: {type: code, size: 20000}, c: {type: code, size: 3}}"
    )
    hr.synthesize(table, schema, hr.Budget(0.1, 1e-9), "hedge", public=table.slice(0), quality=0).sample(10)


# what is nearly a function


def places(rows, seed=0, odd=0.02):
    """A place with its city and its region, some of them wrong, a column that depends on the region, and a wide one."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 48, rows)
    wrong = [rng.random(rows) < odd for _ in range(2)]
    table = {
        "kind": (place // 8 + rng.integers(0, 2, rows)) % 6,
        "place": place,
        "city": np.where(wrong[0], rng.integers(0, 24, rows), place // 2),
        "colour": rng.integers(0, 5, rows),
        "region": np.where(wrong[1], rng.integers(0, 12, rows), place // 4),
    }
    sizes = {"kind": 6, "place": 48, "city": 24, "colour": 45, "region": 12}
    schema = hr.Schema.parse("columns:\n" + "".join(f"  {n}: {{type: code, size: {k}}}\n" for n, k in sizes.items()))
    return pa.table(table), schema


def test_narrow_columns_are_not_joined():
    """Where all pairs are small a join saves no room, and what would find it is kept for relations."""
    table, schema = places(8000)
    narrow = hr.Schema.parse(schema.to_yaml().replace("45", "5"))
    assert not joined_by(release_of(table, narrow, 3.0))


def joined_by(release):
    state = release.model.state()
    return state.values["joins"] if state.kind == "joined" else []


def test_columns_that_are_nearly_functions_are_joined_and_come_apart_again(tmp_path):
    table, schema = places(8000)
    release = release_of(table, schema, 3.0)
    assert joined_by(release) == [["place", "city", "region"]]
    check_model(release.model)
    release.save(tmp_path / "r.release")
    again = hr.Release.load(tmp_path / "r.release")
    assert again.sample(500, seed=1).equals(release.sample(500, seed=1))
    assert [m.query.description for m in again.measurements] == [m.query.description for m in release.measurements]
    encoding = schema.encoding()
    real = encoding.encode(table)

    def error(release):
        drawn = encoding.encode(release.sample(8000).combine_chunks())
        shares = [shares_of(rows, encoding.domain, ("place", "city", "region")) for rows in (real, drawn)]
        return float(np.abs(shares[0] - shares[1]).sum())

    with mock.patch.object(joins, "promising", return_value=[]):
        apart = release_of(table, schema, 3.0)
    assert joined_by(apart) == []
    assert error(release) < 0.7 * error(apart)


def test_what_depends_loosely_is_not_joined():
    table, schema = places(8000, odd=0.6)
    assert joined_by(release_of(table, schema, 3.0)) == []
    assert joined_by(release_of(opm.generate(4000), SCHEMA, 3.0)) == []


def test_a_join_leaves_few_rows_to_its_last_code():
    """They know nothing of the other columns: a fifth of them costs more than a joined column saves."""
    domain = Domain.of({"a": 20, "b": 20})
    column = np.arange(20).reshape(-1, 1), np.full(20, 500.0), 20.0
    first, second = joins.Group(("a",), *column), joins.Group(("b",), *column)
    for odd in (0.1, 0.2):
        counts = np.rint((1 - odd) * 500 * np.eye(20) + odd * 10_000 / 400).astype(np.int64)
        measured = Measurement(MarginalQuery(domain, ("a", "b")), counts.reshape(-1), Noise("gaussian", 20.0))
        assert (joins.combined(domain, first, second, measured, 10_000.0) is not None) == (odd < joins.MOST_REST)


def test_what_was_kept_for_its_noise_is_not_taken_from_what_was_not():
    """The largest of many noisy counts are too large by more than chance; what is left over must not pay for it."""
    truth = np.zeros((80, 80))
    truth[np.arange(80), np.arange(80)] = 420.0
    truth[np.arange(79), np.arange(1, 80)] = 40.0
    total, domain, seen = float(truth.sum()), Domain.of({"a": 80, "b": 80}), []
    for seed in range(10):
        noisy = truth + np.random.default_rng(seed).normal(0, 60, truth.shape)
        counts = np.rint(noisy).astype(np.int64).reshape(-1)
        groups = [joins.Group((name,), np.arange(80).reshape(-1, 1), truth.sum(axis), 20.0) for name, axis in KNOWN]
        measurement = Measurement(MarginalQuery(domain, ("a", "b")), counts, Noise("gaussian", 60.0))
        group = joins.combined(domain, *groups, measurement, total)
        assert group is not None
        seen.append(group.counts[-1] - (total - truth[tuple(group.lines.T)].sum()))
    assert abs(np.mean(seen)) < 0.02 * total


KNOWN = (("a", 1), ("b", 0))


@pytest.mark.parametrize("odd", [0.02, 0.3])  # joined, and measured but not joined
def test_runs_that_join_columns_replay_on_neighbouring_tables(odd):
    table, schema = places(3000, odd=odd)
    pair = Pair("one row", table, table.slice(1))
    replay_pair(Hedge(), hr.Budget(4.0, 1e-9), pair, schema.to_yaml())


def test_counts_are_brought_in_line_with_sums_that_are_known_better():
    rng = np.random.default_rng(0)
    truth = rng.integers(100, 1000, 60).astype(float)
    groups = np.arange(60) // 6
    sums = np.bincount(groups, weights=truth)
    noisy = truth + rng.normal(0, 50, 60)
    found = joins.reconciled(noisy, 50.0, [(groups, sums, 0.1)])
    assert np.bincount(groups, weights=found) == pytest.approx(sums, abs=1.0)
    assert np.abs(found - truth).sum() < np.abs(noisy - truth).sum()
    assert joins.reconciled(noisy, 50.0, []) == pytest.approx(noisy)
