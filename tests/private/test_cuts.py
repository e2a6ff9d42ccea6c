"""Where columns are cut: what is found, that tails end, that nothing is lost, and what it costs."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.audit.method import Pair, replay_pair
from hedgerow.coded.domain import Attribute, Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods.independent import Independent
from hedgerow.private.cuts.growing import FINEST, MOST_RUNS, Growing, Node
from hedgerow.private.cuts.settling import settle
from hedgerow.private.engines import open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.exact import SparseCounts
from hedgerow.release.bundle import verify
from hedgerow.schema.leaves import Leaf, Leaves
from hedgerow.schema.probing import Probing
from hedgerow.schema.trees import Block, Decimal

SCHEMA = """
columns:
  cost: {type: number, min: 0, max: 10000000, decimals: 2}
  change: {type: integer, min: -1000000, max: 1000000, missing: true}
"""


def cut(
    values: np.ndarray, low: int, high: int, scale: float = 10.0, seed: int = 0
) -> list[list[tuple[int, int, int]]]:
    """The cells of one line, noise of a given scale on every level."""
    return [[tuple(leaf) for leaf in cell] for cell in settle(grown(values, low, high, scale, seed))]


def grown(values: np.ndarray, low: int, high: int, scale: float, seed: int) -> Node:
    """Its tree."""
    rng = np.random.default_rng(seed)
    line = Growing("x", Decimal(low, high))
    while line.levels_left:
        if not line.in_sight:
            starts = line.look()
            assert len(starts) <= 3 * MOST_RUNS
            codes = np.searchsorted(starts, values, side="right") - 1
            exact = np.bincount(codes, minlength=len(starts) + 1)
        query = line.query(Domain([Attribute("x", len(starts) + 1)]))
        noisy = np.rint(query.aggregate(exact) + rng.normal(0, scale, query.cells)).astype(np.int64)
        line.answer(Measurement(query, noisy, Noise("gaussian", scale)))
    return line.root


def test_every_level_counts_the_whole_line_and_what_stays_whole_gets_surer():
    values = np.random.default_rng(0).gamma(2, 900, 20_000).astype(np.int64)
    root = grown(values, 0, 10**6, 20.0, 0)

    def unsplit(node: Node) -> list[Node]:
        return [leaf for part in node.parts for leaf in unsplit(part)] if node.parts else [node]

    front = unsplit(root)
    assert [node.block.low for node in front[1:]] == [node.block.high + 1 for node in front[:-1]]
    assert (front[0].block.low, front[-1].block.high) == (0, 10**6)
    once = max(node.variance for node in front)
    counted = {round(once / node.variance, 6) for node in front}
    assert counted == set(range(1, len(counted) + 1))
    assert len(counted) > 3


def test_what_is_doubtful_at_first_is_found_by_counting_again():
    values = np.append(np.zeros(6_000, np.int64), np.full(200, 576))
    found = [leaves(cut(values, 0, 10**6, scale=60.0, seed=seed)) for seed in range(10)]
    assert sum(each[-1][0] <= 576 <= each[-1][1] for each in found) >= 6


def test_a_tail_has_a_cell_of_its_own_and_thins_out_as_the_rows_before_it_do():
    """Steep and slow: the same leaf is drawn from by what lies before it."""
    steep, slow = ([[Leaf(50, 99, weight)], [Leaf(100, 999, 1_000)]] for weight in (15_000, 1_000))
    rng = np.random.default_rng(0)
    means = [Leaves(cells, 0, 999).draw(np.ones(20_000, np.int64), None, rng).mean() for cells in (steep, slow)]
    exact = [(100 - 100**4 / 1000**3) * (4 / 3) / (1 - 100**4 / 1000**4), 100 * math.log(10) / (1 - 0.1)]
    assert means == pytest.approx(exact, rel=0.02)
    mirrored = [[Leaf(-999, -100, 1_000)], [Leaf(-99, -50, 15_000)]]
    drawn = Leaves(mirrored, -999, 0).draw(np.zeros(20_000, np.int64), None, rng)
    assert drawn.mean() == pytest.approx(-exact[0], rel=0.02)
    values = np.random.default_rng(3).lognormal(5, 1.2, 20_000).astype(np.int64)
    for seed in range(5):
        last = cut(values, 0, 10**9, scale=60.0, seed=seed)[-1]
        assert len(last) == 1 or last[-1][1] < 2 * last[-1][0]


def test_a_leaf_that_stands_apart_is_no_tail_of_what_lies_before_it():
    apart = Leaves([[Leaf(0, 0, 9_000)], [Leaf(100, 999, 200)]], 0, 10**6)
    drawn = apart.draw(np.ones(20_000, np.int64), None, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(549.5, rel=0.02)


def test_days_alike_are_cut_no_finer_than_a_week():
    root = Node(Block(0, 27, 2))
    root.parts = [Node(Block(day, day, 2), 500.0 + day % 2, 100.0) for day in range(28)]
    assert [[(first, last) for first, last, _ in cell] for cell in settle(root, 7)] == [
        [(first, first + 6)] for first in range(0, 28, 7)
    ]
    assert len(settle(root)) == 28


def leaves(cells: list[list[tuple[int, int, int]]]) -> list[tuple[int, int, int]]:
    return [leaf for cell in cells for leaf in cell]


def test_spikes_stand_alone_and_the_tail_ends_where_rows_end():
    rng = np.random.default_rng(1)
    smooth = rng.lognormal(6, 1, 8_000).astype(np.int64)
    values = np.concatenate([np.zeros(10_000, np.int64), np.full(900, 999), np.full(700, 1177), smooth])
    cells = cut(values, 0, 10**9)
    single = {first for first, last, _ in leaves(cells) if first == last}
    assert {0, 999, 1177} <= single
    assert leaves(cells)[-1][1] < 10 * values.max(), "one leaf over empty decades would ruin the mean"
    weight = sum(leaf[2] for leaf in leaves(cells))
    assert weight == pytest.approx(len(values), rel=0.05)
    heavy = [sum(leaf[2] for leaf in cell) for cell in cells]
    assert len(cells) <= 120
    assert max(heavy) > 9_000


@pytest.mark.parametrize("seed", range(5))
def test_where_noise_is_large_nothing_falls_between_leaves(seed: int):
    values = np.random.default_rng(seed).gamma(9, 60, 6_000).astype(np.int64)
    found = leaves(cut(values, 0, 10**7, scale=60.0, seed=seed))
    assert sum(((values >= first) & (values <= last)).sum() for first, last, _ in found) > 0.93 * len(values)
    upto = np.cumsum([0, *(weight for _, _, weight in found)]) / sum(weight for *_, weight in found)
    edges = [found[0][0], *(last + 1 for _, last, _ in found)]
    assert np.abs(upto - np.searchsorted(np.sort(values), edges) / len(values)).max() < 0.08


@pytest.mark.parametrize(
    ("low", "high", "middle", "spread"), [(0, 20_000, 10_130, 90), (40_000_000, 50_000_000, 44_970_000, 60_000)]
)
def test_noise_far_from_all_rows_is_no_leaf(low: int, high: int, middle: int, spread: int):
    """One made-up row in five hundred, fifty standard deviations away, would move the mean by a tenth of one."""
    values = np.random.default_rng(0).normal(middle, spread, 40_000).astype(np.int64)
    for seed in range(25):
        leaves = [leaf for cell in cut(values, low, high, 80.0, seed) for leaf in cell]
        assert leaves[0][0] > middle - 15 * spread
        assert leaves[-1][1] < middle + 15 * spread


def test_a_few_tolls_of_one_amount_are_not_lost():
    """Three in a hundred of 6,400 rows, at noise of 60: decades lie between them and zero, and one of them is split."""
    values = np.concatenate([np.zeros(6_150, np.int64), np.full(250, 576)])
    seen = []
    for seed in range(25):
        found = leaves(cut(values, 0, 10**6, 60.0, seed))
        seen.append(sum(weight for first, last, weight in found if first >= 100 and last <= 999))
    assert sum(100 < weight < 500 for weight in seen) >= 24  # one has noise of three standard deviations against it


def test_a_tail_that_goes_on_is_held_although_no_part_of_it_is_beyond_doubt():
    rng = np.random.default_rng(0)
    values = 100 * np.where(rng.random(20_000) < 0.9, rng.gamma(6, 90, 20_000), 1_000 + rng.exponential(300, 20_000))
    for seed in range(8):
        last = cut(values.astype(np.int64), 0, 10**9, 80.0, seed)[-1][-1]
        assert 150_000 < last[1] < 400_000


def test_very_many_rows_are_cut_no_finer_than_anybody_can_see():
    values = np.random.default_rng(0).lognormal(11, 1, 1_000_000).astype(np.int64)
    assert sum(map(len, cut(values, 0, 10**9, 5.0))) < 10 * FINEST


def test_round_numbers_are_seen_together_where_none_is_seen_alone():
    rng = np.random.default_rng(0)
    inner = [rng.integers(1, 10, 3_000) * 1_000, rng.integers(1_000, 10_000, 3_000)]
    values = np.concatenate([*inner, rng.integers(10_000, 100_000, 3_000)])
    single = {first for first, last, _ in leaves(cut(values, 0, 10**6, scale=130.0)) if first == last}
    assert {1_000 * digit for digit in range(1, 10)} <= single


def test_the_rows_are_gone_through_once_however_many_levels_are_counted():
    rng = np.random.default_rng(0)
    codes = {"x": rng.integers(0, 50, 5_000).astype(np.uint8), "y": rng.integers(0, 40, 5_000).astype(np.uint8)}
    domain = Domain([Attribute("x", 50), Attribute("y", 40)])
    engine = ArrowEngine.from_codes(domain, codes)
    levels = [
        [MarginalQuery(domain, (name,), blocks=rng.integers(-1, 6, domain[name].size)) for name in ("x", "y")]
        for _ in range(3)
    ]
    with mock.patch.object(engine, "_count_batch", wraps=engine._count_batch) as scans:
        for level in levels:
            for query, exact in zip(level, engine.count(level), strict=True):
                plain = np.bincount(codes[query.attributes[0]], minlength=query.base_shape[0])
                assert exact.opened().tolist() == query.aggregate(plain).tolist()
    assert scans.call_count == 1


@pytest.mark.parametrize("declared", [{"type": "number", "decimals": 1}, {"type": "integer"}])
def test_few_numbers_have_a_cell_each(declared: dict[str, object]):
    schema = hr.Schema(columns={"x": {**declared, "min": 0, "max": 5}})
    assert not schema.discoveries
    column = schema.columns["x"]
    values = [value / 10 for value in range(51)] if declared["type"] == "number" else list(range(6))
    codes = column.encode(pa.array(values)).codes
    assert column.write(codes, np.random.default_rng(0)).to_pylist() == values


def test_negative_values_are_cut_like_positive_ones():
    values = np.random.default_rng(0).normal(-300, 40, 20_000).astype(np.int64)
    mirrored = [[(-b, -a) for a, b, _ in reversed(cell)] for cell in reversed(cut(-values, -(10**6), 10**6))]
    assert len(cut(values, -(10**6), 10**6)) == pytest.approx(len(mirrored), rel=0.2)
    assert leaves(cut(values, -(10**6), 10**6))[0][0] > -1000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.full(5_000, 37), {37}),
        (np.zeros(5_000, np.int64), {0}),
        (np.append(np.full(5_000, 37), 10**9), {37}),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_a_constant_column_is_one_value_and_one_outlier_adds_no_more_than_noise(
    values: np.ndarray, expected: set[int], seed: int
):
    found = leaves(cut(values, 0, 10**9, seed=seed))
    alone = sum(weight for first, last, weight in found if first == last and first in expected)
    assert alone > 0.98 * sum(weight for *_, weight in found)
    assert found[-1][1] < 100


def test_a_column_of_nothing_and_one_that_drowns_in_noise_are_one_cell():
    assert [len(cells) for cells in (cut(np.empty(0, np.int64), -5, 10**6), cut(np.arange(50), 0, 10**6, 1e4))] == [
        1,
        1,
    ]


def test_many_distinct_values_stay_in_bounded_cells():
    values = np.random.default_rng(0).permutation(1_000_000)
    cells = cut(values, 0, 10**15, scale=100.0)
    assert 50 < len(cells) <= 150


def test_every_declared_value_has_a_cell_and_comes_back_on_the_grid():
    rng = np.random.default_rng(0)
    rows = 20_000
    cost = np.where(rng.random(rows) < 0.7, 0.0, np.round(rng.lognormal(5, 2, rows), 2))
    change = [
        None if coin < 0.1 else int(value)
        for coin, value in zip(rng.random(rows), rng.normal(0, 900, rows), strict=True)
    ]
    table = pa.table({"cost": cost, "change": pa.array(change, pa.int64())})
    release = hr.synthesize(table, hr.Schema.parse(SCHEMA), hr.Budget(2.0, 1e-6), "independent")
    drawn = release.sample(rows)
    made = np.array(drawn["cost"])
    assert np.array_equal(made, np.round(made, 2))
    assert abs((made == 0).mean() - 0.7) < 0.02
    assert abs(np.minimum(made, 1e4).mean() - np.minimum(cost, 1e4).mean()) < 0.1 * cost.std()
    assert made.max() < 100 * cost.max()
    assert drawn["change"].null_count / rows == pytest.approx(0.1, abs=0.02)
    real = np.array([value for value in change if value is not None])
    synthetic = np.array(drawn["change"].drop_null())
    grid = np.quantile(real, np.linspace(0.01, 0.99, 99))
    distance = np.searchsorted(np.sort(real), grid) / len(real) - np.searchsorted(np.sort(synthetic), grid) / len(
        synthetic
    )
    assert np.abs(distance).max() < 0.04
    assert release.encoding.domain["cost"].ordered == len(release.schema.to_dict()["columns"]["cost"]["leaves"])


def test_cuts_are_charged_level_by_level_and_verify(tmp_path):
    table = pa.table({"cost": np.arange(3000) / 7, "change": np.arange(3000)})
    release = hr.synthesize(table, hr.Schema.parse(SCHEMA), hr.Budget(1.0), "independent")
    levels = [
        charge for charge in release.certificate.charges if all("aggregation" in query for query in charge.queries)
    ]
    assert levels
    spent = sum(charge.amount.value for charge in levels)
    assert spent <= 0.15 * release.certificate.whole.value * (1 + 1e-9)
    assert release.certificate.discovered == ("cost", "change")
    release.save(tmp_path / "x.release")
    again, _ = verify(tmp_path / "x.release")
    assert again.sample(50).equals(release.sample(50))


def test_pure_privacy_is_cut_too():
    table = pa.table({"cost": np.repeat([0.0, 12.5], 4000), "change": np.zeros(8000, np.int64)})
    release = hr.synthesize(table, hr.Schema.parse(SCHEMA), hr.Budget(3.0, 0.0), "independent")
    assert release.guarantee.delta == 0
    made = np.array(release.sample(1000)["cost"])
    assert abs((made == 0).mean() - 0.5) < 0.1


def test_cuts_pass_the_replay_audit():
    """Whatever one row holds: a far value, none, one beyond the bounds, one with too many digits."""
    rows = {"cost": np.random.default_rng(0).lognormal(3, 1, 400), "change": np.arange(400) % 50}
    for cost, change in ((9e6, 999_999), (math.nan, None), (-1e300, 10**9), (math.inf, -7), (0.123456789, 0)):
        more = {
            "cost": np.append(rows["cost"], cost),
            "change": pa.array([*rows["change"].tolist(), change], pa.int64()),
        }
        replayed = replay_pair(Independent(), hr.Budget(1.0), Pair("cuts", pa.table(more), pa.table(rows)), SCHEMA)
        assert all(ratio <= 1 + 1e-9 for ratio in replayed.ratios)


def test_a_look_that_codes_a_row_twice_as_often_would_be_caught():
    """A worst pair attains the sensitivity that each level declares: a row that lies in every query of the stack."""
    rows = pa.table({"cost": np.full(300, 5.0), "change": np.full(300, 5)})
    more = pa.concat_tables([rows, rows.slice(0, 1)])
    replayed = replay_pair(Independent(), hr.Budget(1.0), Pair("cuts", more, rows), SCHEMA)
    assert max(replayed.ratios) == pytest.approx(1)


@pytest.mark.parametrize("kind", ["arrow", "duckdb"])
def test_a_look_is_the_same_on_every_engine(kind, tmp_path):
    schema = hr.Schema.parse(SCHEMA)
    table = pa.table(
        {
            "cost": ["0", "11.77", "", "1e300", "nan", "x", "9999999.996"],
            "change": ["-1", "", "0", "7.5", "8", None, "-99"],
        }
    )
    if kind == "arrow":
        engine = open_engine(table)
    else:
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(str(tmp_path / "x.db")) as connection:
            connection.register("given", table)
            connection.execute("create table t as select * from given")
        engine = open_engine(f"duckdb://{tmp_path}/x.db/t", stay=True)
    lines = {name: Growing(name, schema.waiting(name).trees()[""]) for name in ("cost", "change")}
    waiting = {name: schema.waiting(name) for name in lines}
    encoding = Probing(schema.with_stand_ins(), waiting, {name: {"": line.look()} for name, line in lines.items()})
    engine.prepare(encoding)
    queries = [line.query(encoding.domain) for line in lines.values()]
    found = []
    for query, exact in zip(queries, engine.count(queries), strict=True):
        counts = exact.opened()
        if isinstance(counts, SparseCounts):
            counts = np.bincount(counts.cells, counts.counts, minlength=query.cells)
        found.append({cell: int(count) for cell, count in enumerate(counts) if count})
    tops = [[part.low for part in tree.trees()[""].top().listed()] for tree in waiting.values()]
    assert {tops[0][cell]: count for cell, count in found[0].items()} == {0: 1, 1000: 1, 10**9: 2}
    assert {tops[1][cell]: count for cell, count in found[1].items()} == {-99: 1, -9: 1, 0: 1, 1: 2}


TRIPS = """
columns:
  pickup: {type: datetime, min: 2019-01-01, max: 2019-12-31, step: minute, missing: true}
  booked: {type: date, min: 1990-01-01, max: 2029-12-31, format: "%d.%m.%Y"}
"""


def trips(rows: int, seed: int = 0) -> pa.Table:
    """Weekdays from eight to six, round minutes, all in spring; booked on working days of the year before."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2019-03-01") + rng.integers(0, 92, rows)
    days -= np.where(rng.random(rows) < 0.8, np.maximum((days.astype("datetime64[D]").view("i8") + 3) % 7 - 4, 0), 0)
    hour = np.clip(np.rint(rng.normal(13, 3, rows)), 0, 23).astype(int)
    minute = np.where(rng.random(rows) < 0.3, 30, rng.integers(0, 60, rows))
    pickup = days.astype("datetime64[m]") + hour * 60 + minute
    booked = np.datetime64("2018-01-01") + rng.integers(0, 52, rows) * 7 + rng.integers(0, 5, rows)
    spelled = [day.strftime("%d.%m.%Y") for day in booked.astype("datetime64[D]").tolist()]
    return pa.table({"pickup": pa.array(pickup.astype("datetime64[s]")), "booked": spelled})


def profile(moments: np.ndarray, per: str) -> np.ndarray:
    days = moments.astype("datetime64[D]")
    if per == "weekday":
        return np.bincount((days.view("i8") + 3) % 7, minlength=7) / len(moments)
    return np.bincount((moments - days).astype("timedelta64[h]").astype(int), minlength=24) / len(moments)


def test_weekdays_times_of_the_day_and_stretches_survive():
    table = trips(20_000)
    release = hr.synthesize(table, hr.Schema.parse(TRIPS), hr.Budget(2.0, 1e-6), "hedge")
    drawn = release.sample(20_000)
    real, made = (t["pickup"].to_numpy() for t in (table, drawn.filter(drawn["pickup"].is_valid())))
    for per in ("weekday", "hour"):
        assert np.abs(profile(real, per) - profile(made, per)).sum() / 2 < 0.08
    assert made.min() > np.datetime64("2019-01-01")
    assert ((made >= np.datetime64("2019-02-20")) & (made < np.datetime64("2019-06-10"))).mean() > 0.97
    assert (made.astype("datetime64[m]") == made).all(), "nothing finer than the step comes back"
    assert abs((made.astype("datetime64[m]").view("i8") % 60 == 30).mean() - 0.31) < 0.08
    spelled = drawn["booked"].to_pylist()
    booked = np.array([f"{text[6:]}-{text[3:5]}-{text[:2]}" for text in spelled], dtype="datetime64[D]")
    assert profile(booked, "weekday")[5:].sum() < 0.05
    assert ((booked >= np.datetime64("2018-01-01")) & (booked < np.datetime64("2019-01-01"))).mean() > 0.97


@pytest.mark.parametrize(("minutes", "held"), [(60, 0.99), (15, 0.97), (1, 0.97)])
def test_a_table_of_round_times_gives_round_times_where_no_step_is_declared(minutes: int, held: float):
    """However few rows each minute has: 1,440 of them share 6,000 rows."""
    rng = np.random.default_rng(0)
    moments = np.datetime64("2019-01-01T00:00:00") + rng.integers(0, 364 * 1440 // minutes, 6_000) * 60 * minutes
    schema = hr.Schema.parse("columns: {at: {type: datetime, min: 2019-01-01, max: 2019-12-31}}")
    table = pa.table({"at": pa.array(moments.astype("datetime64[s]"))})
    made = hr.synthesize(table, schema, hr.Budget(1.0, 1e-6), "independent").sample(6_000)["at"].to_numpy()
    assert (made.astype("datetime64[s]").view("i8") % (60 * minutes) == 0).mean() > held


def test_seconds_come_back_as_seconds_where_no_step_is_declared():
    rng = np.random.default_rng(0)
    moments = np.datetime64("2019-01-01T00:00:00") + rng.integers(0, 364 * 86_400, 6_000)
    schema = hr.Schema.parse("columns: {at: {type: datetime, min: 2019-01-01, max: 2019-12-31}}")
    table = pa.table({"at": pa.array(moments.astype("datetime64[s]"))})
    made = hr.synthesize(table, schema, hr.Budget(1.0, 1e-6), "independent").sample(6_000)["at"].to_numpy()
    assert (made.astype("datetime64[s]").view("i8") % 60 == 0).mean() < 0.1


def test_cut_dates_pass_the_replay_audit():
    rows = trips(300)
    for pickup, booked in (("2019-12-31T23:59", "31.12.2029"), (None, "1.1.1"), ("2050-01-01", ""), ("x", None)):
        texts = pa.table({"pickup": rows["pickup"].cast(pa.string()), "booked": rows["booked"]})
        more = pa.concat_tables(
            [texts, pa.table({"pickup": pa.array([pickup], pa.string()), "booked": pa.array([booked], pa.string())})]
        )
        replayed = replay_pair(Independent(), hr.Budget(1.0), Pair("dates", more, texts), TRIPS)
        assert all(ratio <= 1 + 1e-9 for ratio in replayed.ratios)


def test_a_column_that_was_cut_into_days_and_times_verifies(tmp_path):
    release = hr.synthesize(trips(2_000), hr.Schema.parse(TRIPS), hr.Budget(1.0), "mst")
    assert release.certificate.discovered == ("pickup", "booked")
    release.save(tmp_path / "x.release")
    again, _ = verify(tmp_path / "x.release")
    assert again.sample(100).equals(release.sample(100))
    assert {"pickup", "pickup:weekday", "pickup:time", "booked", "booked:weekday"} == set(again.encoding.domain.names)
