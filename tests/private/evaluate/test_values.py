"""Figures of values as they stand: each by hand, and beside scipy or scikit-learn where they have it too."""

import datetime
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from hedgerow.private.evaluate import evaluate, find, raw
from hedgerow.private.evaluate.detector import area, detected, detected_alone
from hedgerow.private.evaluate.digits import FINEST, decimals, habits
from hedgerow.private.evaluate.metric import Comparison, percentage
from hedgerow.private.evaluate.profiles import hours, weekdays
from hedgerow.private.evaluate.ranks import spearman
from hedgerow.private.evaluate.raw import coded_and_raw, raw_table
from hedgerow.private.evaluate.samples import sample_rows, verdict
from hedgerow.private.evaluate.spikes import commonest
from hedgerow.private.evaluate.values import deviation, kolmogorov, mean, quantiles, wasserstein
from hedgerow.private.evaluate.views import histogram, pairs
from hedgerow.private.sources.source import open_source
from hedgerow.schema import Schema

NUMBERS = Schema.parse("columns: {x: {type: number, min: -1e6, max: 1e6, bins: 10, missing: true}}")
SCHEMA = Schema.parse("""
columns:
  wage:  {type: number, min: 0, max: 1000, bins: 2, missing: {"-8": refused}}
  kids:  {type: integer, min: 0, max: 9}
  city:  {type: category, values: [north, south], other: false}
  born:  {type: date, min: 2020-01-01, max: 2020-12-31}
  seen:  {type: datetime, min: 2020-01-01, max: 2020-01-31, step: hour, missing: true}
""")
ROWS = {
    "wage": ["10", "20.5", "-8", "many", "2000", ""],
    "kids": [0, 1, 2, 3, 4, 12],
    "city": ["north", "south", "yelow", None, "north", "north"],
    "born": ["2020-01-06", "2020-01-07", "2019-01-01", "soon", "2020-12-31", "2020-01-06"],
    "seen": ["2020-01-06 13:59:59", None, "2020-01-06", "2020-01-06 23:00", "2020-01-07 00:10", "2020-01-05 05:00"],
}


def compared(metric, real, synthetic, schema=NUMBERS):
    """A metric of two lists of numbers, or of two tables."""
    rows = [
        each if isinstance(each, pa.Table) else pa.table({"x": pa.array(each, pa.float64())})
        for each in (real, synthetic)
    ]
    return evaluate(*rows, schema, metrics=[metric])


def table_of(columns):
    names = list(columns)
    schema = Schema.from_dict(
        {"columns": {name: {"type": "number", "min": -1e6, "max": 1e6, "bins": 4, "missing": True} for name in names}}
    )
    return raw_table(pa.table({name: pa.array(columns[name], pa.float64()) for name in names}), schema.encoding())


class TestReading:
    def test_marks_and_blanks_have_no_value_and_misfits_are_counted(self):
        """-8 is a mark, "" is blank and not declared, "many" cannot be read, 2000 and 12 lie beyond the bounds."""
        table = raw_table(pa.table(ROWS), SCHEMA.with_stand_ins().encoding())
        assert [column.kind for column in table.columns.values()] == ["number", "number", "category", "day", "moment"]
        assert table.columns["wage"].present.tolist() == [10, 20.5]
        assert table.columns["wage"].misfits.tolist() == [3, 4, 5]
        assert table.columns["kids"].present.tolist() == [0, 1, 2, 3, 4]
        assert table.columns["city"].misfits.tolist() == [2, 3]
        assert table.columns["born"].misfits.tolist() == [2, 3]
        assert len(table.columns["seen"].present) == 5
        assert not len(table.columns["seen"].misfits)
        seconds = table.columns["seen"].values[0]
        assert datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat() == "2020-01-06T13:59:59+00:00"

    def test_misfits_are_said(self):
        report = evaluate(pa.table(ROWS), pa.table(ROWS).slice(0, 2), SCHEMA, metrics=["means"])
        assert report["left_out"] == {
            "wage": {"real": 0.5, "synthetic": 0.0},
            "kids": {"real": 1 / 6, "synthetic": 0.0},
            "city": {"real": 1 / 3, "synthetic": 0.0},
            "born": {"real": 1 / 3, "synthetic": 0.0},
        }

    def test_single_precision_is_read_as_it_is_written(self):
        schema = NUMBERS.encoding()
        for kind in (pa.float32(), pa.float64()):
            read = raw_table(pa.table({"x": pa.array([0.1, 2.5, None], kind)}), schema).columns["x"]
            assert read.present.tolist() == [0.1, 2.5]

    def test_many_rows_are_judged_by_a_sample_that_the_seed_draws(self, monkeypatch):
        monkeypatch.setattr(raw, "MOST_ROWS", 100)
        values = np.arange(1000.0)
        rows = pa.table({"x": values})
        batches = pa.Table.from_batches([batch for at in range(10) for batch in rows.slice(100 * at, 100).to_batches()])
        coded, drawn = coded_and_raw(open_source(batches), NUMBERS.encoding(), "real", 0)
        assert len(coded["x"]) == 1000
        assert drawn.rows == 100 == len(set(drawn.columns["x"].values.tolist()))
        assert abs(mean(drawn.columns["x"].values) - 499.5) < 6 * 289 / 10
        _, again = coded_and_raw(open_source(batches), NUMBERS.encoding(), "real", 0)
        _, other = coded_and_raw(open_source(batches), NUMBERS.encoding(), "real", 1)
        assert (again.columns["x"].values == drawn.columns["x"].values).all()
        assert (other.columns["x"].values != drawn.columns["x"].values).any()

    def test_batches_are_joined_in_order(self):
        parts = [pa.table(ROWS), pa.table(ROWS).slice(3)]
        encoding = SCHEMA.with_stand_ins().encoding()
        whole = raw_table(pa.concat_tables(parts), encoding)
        batches = pa.Table.from_batches([batch for part in parts for batch in part.to_batches()])
        _, joined = coded_and_raw(open_source(batches), encoding, "real", 0)
        for name, column in whole.columns.items():
            assert np.array_equal(joined.columns[name].values, column.values, equal_nan=True)
            assert joined.columns[name].misfits.tolist() == column.misfits.tolist()

    def test_codes_alone_give_values_of_their_cells(self):
        encoding = SCHEMA.with_stand_ins().encoding()
        coded = encoding.encode(pa.table(ROWS).slice(0, 2))
        real, _ = Comparison(encoding, coded, coded).values
        assert ((real.columns["wage"].values >= 0) & (real.columns["wage"].values < 500)).all()
        assert real.columns["kids"].values.tolist() == [0, 1]


samples = st.lists(st.floats(-1e5, 1e5).map(lambda x: round(x, 3)), min_size=1, max_size=40)


class TestMoments:
    def test_worked_by_hand(self):
        """1 2 3 4 beside 2 4: means 2.5 and 3, deviations √1.25 and 1, sums per row 2.5 and 3."""
        real, synthetic = [1, 2, 3, 4], [2, 4]
        assert compared("means", real, synthetic)["means"] == pytest.approx(0.5 / math.sqrt(1.25))
        assert compared("deviations", real, synthetic)["deviations"] == pytest.approx(1 - 1 / math.sqrt(1.25))
        assert compared("sums", real, synthetic)["sums"] == pytest.approx(0.2)
        # quantiles 5, 25, 50, 75, 95 %: 1 1 2 3 4 beside 2 2 2 4 4
        assert compared("quantiles", real, synthetic)["quantiles"] == pytest.approx(0.6 / math.sqrt(1.25))
        # shares at or below 1, 2, 3, 4: ¼ ½ ¾ 1 beside 0 ½ ½ 1
        assert compared("ks", real, synthetic)["ks"] == 0.25
        assert compared("wasserstein", real, synthetic)["wasserstein"] == pytest.approx(0.5 / math.sqrt(1.25))

    def test_what_is_missing_adds_nothing_to_a_sum(self):
        """4 + 4 over two rows beside 4 + nothing: half of it is gone, though the means are equal."""
        report = evaluate(pa.table({"x": [4.0, 4.0]}), pa.table({"x": [4.0, None]}), NUMBERS, metrics=["means", "sums"])
        assert (report["means"], report["sums"]) == (0, 0.5)

    def test_columns_that_do_not_vary_or_hold_nothing(self):
        names = ["means", "deviations", "sums", "quantiles", "ks", "wasserstein", "spikes", "digits"]

        def found(real, synthetic):
            report = evaluate(
                *(pa.table({"x": pa.array(x, pa.float64())}) for x in (real, synthetic)), NUMBERS, metrics=names
            )
            return [report[name] for name in names]

        assert found([5, 5], [5]) == [0] * 8
        assert found([0, 0], [0]) == [0] * 8
        assert found([5, 5], [6]) == [1, 0, 0.2, 1, 1, 1, 1, 1]
        assert found([None, None], [6]) == [None] * 8
        assert found([5, 7], [None]) == [1] * 8

    def test_the_worst_column_is_named_and_all_stand_in_the_order_of_the_schema(self):
        schema = Schema.parse("columns: {b: {type: integer, min: 0, max: 9}, a: {type: integer, min: 0, max: 9}}")
        report = evaluate(pa.table({"a": [1, 3], "b": [1, 3]}), pa.table({"a": [2, 2], "b": [2, 4]}), schema)
        assert report["means_columns"] == {"b": 1.0, "a": 0.0}
        assert list(report["means_columns"]) == ["b", "a"]
        assert (report["means"], report["means_at"]) == (0.5, "b")

    def test_numbers_at_the_end_of_what_a_number_can_hold(self):
        wide = Schema.parse("columns: {x: {type: number, min: -1e308, max: 1e308, bins: [0]}}")
        names = ["means", "deviations", "sums", "quantiles", "ks", "wasserstein"]
        report = evaluate(pa.table({"x": [-1e308, 1e308]}), pa.table({"x": [1e308, 1e308]}), wide, metrics=names)
        assert [report[name] for name in names] == pytest.approx([1, 1, 1, 1.2, 0.5, 1])

    @given(samples, samples)
    def test_as_scipy_and_numpy_have_them(self, one, other):
        real, synthetic = np.sort(one), np.sort(other)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the p-values, which are not asked for
            expected = stats.ks_2samp(one, other, method="asymp").statistic
        assert kolmogorov(real, synthetic) == pytest.approx(expected, abs=1e-12)
        assert wasserstein(real, synthetic) == pytest.approx(stats.wasserstein_distance(one, other), rel=1e-9, abs=1e-9)
        assert mean(real) == pytest.approx(np.mean(one), rel=1e-9, abs=1e-9)
        assert deviation(real) == pytest.approx(np.std(one), rel=1e-9, abs=1e-6)
        for level, found in zip((0.05, 0.25, 0.5, 0.75, 0.95), quantiles(real), strict=True):
            assert found == real[max(0, math.ceil(round(level * len(one), 9)) - 1)]

    @given(samples, samples)
    def test_distances_are_0_beside_itself_and_do_not_know_left_from_right(self, one, other):
        real, synthetic = np.sort(one), np.sort(other)
        for distance in (kolmogorov, wasserstein):
            assert distance(real, real) == 0
            assert distance(real, synthetic) == pytest.approx(distance(synthetic, real))
            assert (distance(real, synthetic) == 0) == (kolmogorov(real, synthetic) == 0)


class TestSpikes:
    def test_worked_by_hand(self):
        """0 has ½ of six values beside ¼ of four, 7 a third beside ½, the other value a sixth beside a quarter."""
        report = compared("spikes", [0, 0, 0, 7, 7, 1], [0, 7, 7, 3])
        assert report["spikes"] == pytest.approx((0.25 + 1 / 6 + 1 / 6 + 0.25) / 2)
        assert commonest(np.array([3.0, 3, 1, 1, 2])).tolist() == [1, 3, 2]
        assert compared("spikes", list(range(10)), [99])["spikes"] == pytest.approx(0.5)  # the rest is one cell

    def test_a_spike_that_became_a_smear(self):
        rng = np.random.default_rng(0)
        real = np.where(rng.random(2000) < 0.75, 0, rng.random(2000))
        assert compared("spikes", real, rng.random(2000))["spikes"] == pytest.approx(0.75, abs=0.05)


class TestDigits:
    def test_worked_by_hand(self):
        values = np.array([0, 7, 12.5, 12.25, 0.1, 1.005, 300, 1e6, 1e9, 0.6950313188216157, -4.75, 1e-9])
        assert decimals(values).tolist() == [0, 0, 1, 2, 1, 3, 0, 0, 0, FINEST + 1, 2, 9]
        same = [(10, 20), (0.5, 12.5), (15, 25), (1e6, 7e7), (-3, 13)]
        other = [(10, 100), (10, 11), (0.5, 0.4), (15, 10), (0, 10), (0.1, 0.01)]
        assert all(habits(np.array(pair))[0] == habits(np.array(pair))[1] for pair in same)
        assert all(habits(np.array(pair))[0] != habits(np.array(pair))[1] for pair in other)

    @given(st.integers(0, 6), st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30))
    def test_as_the_text_has_them(self, places, wholes):
        values = np.array([whole / 10**places for whole in wholes])
        written = [f"{value:.9f}".rstrip("0") for value in values]
        assert decimals(values).tolist() == [len(text.partition(".")[2]) for text in written]

    def test_a_table_with_more_digits_than_the_real_one(self):
        report = compared("digits", [1.25, 2.5, 3.1, 4.0], [1.25, 2.51234, 3.1, 4.123])
        assert report["digits_finer"] == 0.5
        assert report["digits"] == 0.5
        assert compared("digits", [1.25, 2.5], [5.75, 9.5])["digits"] == 0


class TestRanks:
    @settings(max_examples=40)
    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=30))
    def test_as_scipy_has_them(self, rows):
        found = spearman(table_of({"x": [x for x, _ in rows], "y": [y for _, y in rows]})).matrix[0, 1]
        varies = all(len(set(column)) > 1 for column in zip(*rows, strict=True))
        expected = stats.spearmanr(rows).statistic if varies else 0.0
        assert found == pytest.approx(expected, abs=1e-9)

    def test_worked_by_hand_with_a_missing_value(self):
        """Ranks 1 2 3 beside 3 2 1: −1. A value without partner changes ranks, not the order of the others."""
        found = spearman(table_of({"x": [1, 2, 3], "y": [9, 5, 1]}))
        assert found.matrix[0, 1] == pytest.approx(-1)
        partly = spearman(table_of({"x": [1, 2, 3, 2.5], "y": [9, 5, 1, None]}))
        assert -1 <= partly.matrix[0, 1] < -0.95
        assert spearman(table_of({"x": [1, None], "y": [None, 1]})).matrix[0, 1] == 0

    def test_the_figure_is_the_mean_difference(self):
        schema = Schema.parse("columns: {x: {type: integer, min: 0, max: 9}, y: {type: integer, min: 0, max: 9}}")
        real, synthetic = pa.table({"x": [1, 2, 3], "y": [1, 2, 3]}), pa.table({"x": [1, 2, 3], "y": [3, 2, 1]})
        assert evaluate(real, synthetic, schema, metrics=["spearman"])["spearman"] == pytest.approx(2)
        assert evaluate(*([pa.table({"x": [1.0]})] * 2), NUMBERS, metrics=["spearman"])["spearman"] is None


class TestRhythms:
    @given(st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1)))
    def test_as_the_calendar_has_them(self, moment):
        seconds = np.array([moment.replace(tzinfo=datetime.UTC).timestamp()])
        assert (hours(seconds)[0], weekdays(seconds)[0]) == (moment.hour, moment.weekday())

    def test_worked_by_hand(self):
        """2020-01-06 is a Monday."""
        schema = Schema.parse("""
columns:
  day: {type: date, min: 2020-01-01, max: 2020-01-31}
  at:  {type: datetime, min: 2020-01-01, max: 2020-01-31, step: hour}
""")
        monday, sunday = datetime.date(2020, 1, 6), datetime.date(2020, 1, 5)
        noon, evening = datetime.datetime(2020, 1, 6, 12, 30), datetime.datetime(2020, 1, 13, 20, 1)
        real = pa.table({"day": [monday, monday], "at": [noon, noon]})
        made = pa.table({"day": [monday, sunday], "at": [noon, evening]})
        report = evaluate(real, made, schema, metrics=["hours", "weekdays"])
        assert report["hours"] == 0.5
        assert report["weekdays_columns"] == {"day": 0.5, "at": 0.0}
        assert report["samples"]["bootstrap"] == {"hours": 0.0, "weekdays": 0.0}

    def test_a_table_without_dates_has_none(self):
        assert compared("hours", [1], [1])["hours"] is None


class TestDetector:
    schema = Schema.parse("""
columns:
  x: {type: number, min: 0, max: 1, bins: 4, missing: true}
  c: {type: category, values: [a, b, c]}
""")

    def rows(self, seed, rounded=False, letters="ab", count=600):
        rng = np.random.default_rng(seed)
        x = rng.random(count)
        return pa.table({"x": np.round(x, 1) if rounded else x, "c": rng.choice(list(letters), count)})

    def test_the_area_as_scikit_learn_has_it(self):
        rng = np.random.default_rng(0)
        made_up, scores = rng.random(200) < 0.4, rng.integers(0, 9, 200).astype(float)
        assert area(scores, made_up) == pytest.approx(roc_auc_score(made_up, scores))
        assert area(np.array([0.1, 0.9]), np.array([False, True])) == 1

    def test_it_sees_what_codes_forget(self):
        """Values in tenths are told from smooth ones, though all bins agree; which column it was, it says."""
        encoding = self.schema.encoding()
        real, fine, rounded, letters = (
            raw_table(rows, encoding)
            for rows in (self.rows(0), self.rows(1), self.rows(1, rounded=True), self.rows(1, letters="ac"))
        )
        assert abs(detected(real, fine) - 0.5) < 0.12
        assert detected(real, rounded) > 0.95
        assert detected(real, letters) > 0.7
        alone = detected_alone(real, letters)
        assert max(alone, key=alone.get) == "c"
        report = evaluate(self.rows(0), self.rows(1, rounded=True), self.schema, metrics=["detector"])
        assert report["detector_at"] == "x"
        assert report["detector_verdict"] == "told apart nearly always"

    def test_missing_values_and_many_categories(self):
        many = Schema.from_dict({"columns": {"k": {"type": "code", "size": 1000}, "x": NUMBERS.columns["x"]}})
        real = pa.table({"k": np.arange(300) * 3, "x": pa.array([None] * 300, pa.float64())})
        assert 0 <= evaluate(real, real, many, metrics=["detector"])["detector"] <= 1


class TestSamples:
    def test_a_tenth_a_half_and_a_bootstrap(self):
        assert [len(sample_rows(name, 200, 0)) for name in ("tenth", "half", "bootstrap")] == [20, 100, 200]
        assert len(set(sample_rows("half", 200, 0).tolist())) == 100
        assert len(set(sample_rows("bootstrap", 200, 0).tolist())) < 160

    def test_they_stand_beside_the_figures(self):
        rng = np.random.default_rng(0)
        real = rng.normal(size=5000)
        report = compared("ks", real, rng.normal(size=5000) + 0.5)
        samples = {name: found["ks"] for name, found in report["samples"].items()}
        assert set(samples) == {"tenth", "half", "bootstrap"}
        assert max(samples["half"], samples["bootstrap"]) < samples["tenth"] < 0.1 < report["ks"]
        assert "samples" not in compared("tvd1", real, real)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (0.0, "no difference"),
            (0.02, "as close as a half of the real rows"),
            (0.05, "between a half and a tenth of the real rows"),
            (0.12, "2.0 times as far as a tenth of the real rows"),
            (1.2, "20 times as far as a tenth of the real rows"),
            (None, ""),
        ],
    )
    def test_in_words(self, value, said):
        assert verdict(value, {"tenth": 0.06, "half": 0.02, "bootstrap": 0.01}) == said
        assert verdict(0.1, {"tenth": 0.0, "half": 0.0, "bootstrap": 0.0}) == "further than any sample of the real rows"
        assert verdict(0.1, {}) == ""

    def test_percentages(self):
        assert [percentage(x) for x in (0, 0.0004, 0.123, 1)] == ["0.0 %", "0.04 %", "12.3 %", "100.0 %"]
        sentence = find("means").figures["means"].sentence(0.02)
        assert sentence == "Means are off by 2.0 % of a standard deviation."


class TestHistograms:
    def drawn(self, real, synthetic, schema=NUMBERS):
        encoding = schema.encoding()
        tables = [raw_table(pa.table({"x": pa.array(each)}), encoding) for each in (real, synthetic)]
        empty = encoding.encode(pa.table({"x": pa.array(real)}))
        comparison = Comparison(encoding, empty, empty, raw_tables=(tables[0], tables[1]))
        return histogram("x", pairs(comparison)["x"])

    def test_few_values_have_a_bar_each(self):
        shown, far = self.drawn([1.0, 2.5, None], [1.0, 1.0, 4.0])
        assert shown.labels == ["1", "2.5", "4", "no value"]
        assert far == pytest.approx(2 / 3)

    def test_bars_of_like_width_hold_all_rows(self):
        values = np.arange(1000.0)
        shown, far = self.drawn(values, values + 400)
        assert shown.labels[0] == "below 4"
        assert all(shares.sum() == pytest.approx(1) for _, shares in shown.series)
        assert far == pytest.approx(0.4, abs=0.03)

    def test_where_most_rows_share_a_value_it_has_a_bar_of_its_own(self):
        rng = np.random.default_rng(0)
        costs = np.where(rng.random(1000) < 0.75, 0, np.round(rng.pareto(0.7, 1000) * 100))
        shown, _ = self.drawn(np.minimum(costs, 1e6), np.minimum(costs, 1e6))
        assert shown.labels[0] == "0"
        assert shown.series[0][1][0] > 0.7
        assert len(shown.labels) > 4
        fine = np.where(costs > 0, costs + 0.25, 0)
        assert self.drawn(np.minimum(fine, 1e6), costs / 3)[0].labels[1].startswith(">0 – ")
