"""Metrics: hand-worked examples, laws, and mutants that must be caught."""

import itertools
import math
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from four_rows import DOMAIN, REAL, SYNTHETIC, table
from hedgerow.coded.domain import Domain
from hedgerow.private.evaluate import METRICS, evaluate, marginal_distances
from hedgerow.private.evaluate.classifier import svm
from hedgerow.private.evaluate.correlations import cramers_v_error
from hedgerow.private.evaluate.marginals import chosen_marginals, distances, k_marginal, tvd1, tvd2, tvd3
from hedgerow.private.evaluate.ranges import random_ranges, range3, range5, range_error, weighted_sets
from hedgerow.schema import Schema
from refusals import refused


def halved_l1(real, synthetic, indices):
    """The definition, word for word, over every cell that occurs."""

    def share(rows, cell):
        return sum(tuple(row[index] for index in indices) == cell for row in rows) / len(rows)

    cells = {tuple(row[index] for index in indices) for row in [*real, *synthetic]}
    return sum(abs(share(real, cell) - share(synthetic, cell)) for cell in cells) / 2


@st.composite
def two_tables(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    row = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    rows = st.lists(row, min_size=1, max_size=30)
    return Domain.of({f"x{index}": size for index, size in enumerate(sizes)}), draw(rows), draw(rows)


class TestMarginals:
    def test_worked_by_hand(self):
        """a: (½, ½) beside (1, 0) → ½.  b: (¼, ½, ¼) beside (½, ½, 0) → ¼.  c: (¾, ¼) beside (½, ½) → ¼."""
        real, synthetic = table(REAL), table(SYNTHETIC)
        assert distances(real, synthetic, DOMAIN, [("a",), ("b",), ("c",)]).tolist() == [0.5, 0.25, 0.25]
        assert tvd1(real, synthetic, DOMAIN) == pytest.approx(1 / 3)
        # a×b shares 00 (¼) and 01 (¼) → ½; a×c shares 00 (½) → ½; b×c shares 00 (¼) → ¾
        assert marginal_distances(real, synthetic, DOMAIN, 2).tolist() == [0.5, 0.5, 0.75]
        assert tvd2(real, synthetic, DOMAIN) == pytest.approx(7 / 12)
        # of the triples only 000 occurs in both: ¼ of the real rows, ½ of the synthetic ones
        assert tvd3(real, synthetic, DOMAIN) == 0.75
        assert k_marginal(real, synthetic, DOMAIN) == pytest.approx(1000 * (1 - 7 / 12))
        assert k_marginal(real, synthetic, DOMAIN, k=3) == pytest.approx(250)

    @given(two_tables())
    def test_the_definition(self, tables):
        domain, real, synthetic = tables
        for degree in (1, 2, 3):
            found = marginal_distances(table(real, domain), table(synthetic, domain), domain, degree)
            indices = itertools.combinations(range(len(domain)), min(degree, len(domain)))
            assert found == pytest.approx([halved_l1(real, synthetic, each) for each in indices], abs=1e-12)

    @given(two_tables())
    def test_a_distance_between_0_and_1_that_does_not_know_left_from_right(self, tables):
        domain, real, synthetic = tables
        one, other = table(real, domain), table(synthetic, domain)
        there = marginal_distances(one, other, domain, 2)
        assert ((there >= 0) & (there <= 1)).all()
        assert there.tolist() == marginal_distances(other, one, domain, 2).tolist()

    @given(two_tables())
    def test_a_marginal_is_no_nearer_than_what_it_contains(self, tables):
        """Forgetting an attribute cannot make two distributions easier to tell apart."""
        domain, real, synthetic = tables
        one, other = table(real, domain), table(synthetic, domain)
        for pair in domain.marginals(min(2, len(domain))):
            wide, *narrow = distances(one, other, domain, [pair, *((name,) for name in pair)])
            assert max(narrow) <= wide + 1e-12

    @given(two_tables(), st.integers(1, 4))
    def test_repeating_every_row_changes_no_share(self, tables, times):
        domain, real, _ = tables
        assert not marginal_distances(table(real, domain), table(real * times, domain), domain, 3).any()

    @given(st.integers(1, 200), st.integers(1, 200))
    def test_disjoint_supports_are_at_distance_exactly_1(self, ones, others):
        wide = Domain.of({"x": 1000, "y": 1000})
        one, other = table([(7, 7)] * ones, wide), table([(8, 8)] * others, wide)
        assert (distances(one, other, wide, [("x",), ("x", "y")]) == 1).all()

    @pytest.mark.parametrize(("real_rows", "synthetic_rows"), [(50, 70), (50, 40_000), (40_000, 50)])
    def test_wide_marginals_are_counted_sparse_on_either_side(self, real_rows, synthetic_rows):
        """250,000 cells: dense for a table of many rows, sparse for one of few, and the same answer."""
        rng = np.random.default_rng(5)
        wide = Domain.of({"x": 500, "y": 500})
        real = rng.integers(0, 20, (real_rows, 2)) * 25
        synthetic = rng.integers(0, 20, (synthetic_rows, 2)) * 25
        cells = [np.bincount(rows @ [500, 1], minlength=250_000) / len(rows) for rows in (real, synthetic)]
        found = distances(table(real, wide), table(synthetic, wide), wide, [("x", "y")])
        assert found[0] == pytest.approx(np.abs(cells[0] - cells[1]).sum() / 2)

    def test_all_marginals_up_to_the_cap_and_then_a_fixed_sample(self):
        domain = Domain.of({f"x{index}": 2 for index in range(30)})
        assert chosen_marginals(domain, 2, seed=0) == list(domain.marginals(2))
        sample = chosen_marginals(domain, 3, seed=0)
        assert len(set(sample)) == len(sample) == 2_000 < math.comb(30, 3)
        assert all(domain.marginal(each) == each for each in sample)
        assert sample == chosen_marginals(domain, 3, seed=0) != chosen_marginals(domain, 3, seed=1)

    def test_a_thousand_columns_are_sampled_without_listing_all_triples(self):
        domain = Domain.of({f"x{index}": 2 for index in range(1000)})
        assert len(chosen_marginals(domain, 3, seed=0, most=50)) == 50


class TestRanges:
    def test_worked_by_hand(self):
        """b in 1…2: ¾ of the real rows, ½ of the synthetic. a = 0 and c = 0: ½ and ½. Mean of 1/16 and 0."""
        queries = [{"b": range(1, 3)}, {"a": range(1), "c": range(1)}]
        assert range_error(table(REAL), table(SYNTHETIC), queries) == 1 / 32
        assert range_error(table(REAL), table(SYNTHETIC), queries[:1]) == 1 / 16

    def test_codes_at_the_end_of_their_type(self):
        domain = Domain.of({"x": 256})
        real, synthetic = table([[0], [255]], domain), table([[0], [0]], domain)
        assert range_error(real, synthetic, [{"x": range(255, 256)}]) == 0.25
        assert range_error(real, synthetic, [{"x": range(256)}]) == 0

    @given(two_tables())
    def test_the_definition(self, tables):
        domain, real, synthetic = tables

        def share(rows, query):
            return sum(all(row[domain.index(x)] in span for x, span in query.items()) for row in rows) / len(rows)

        queries = random_ranges(domain, 3, seed=1)[:40]
        squares = [(share(real, query) - share(synthetic, query)) ** 2 for query in queries]
        found = range_error(table(real, domain), table(synthetic, domain), queries)
        assert found == pytest.approx(sum(squares) / len(squares), abs=1e-12)

    def test_queries_have_so_many_attributes_and_depend_on_the_seed_alone(self):
        domain = Domain.of({f"x{index}": index + 1 for index in range(9)})
        for attributes in (3, 5):
            queries = random_ranges(domain, attributes, seed=4)
            assert len(queries) == 1024
            assert {len(query) for query in queries} == {attributes}
            assert all(0 <= span[0] <= span[-1] < domain[x].size for query in queries for x, span in query.items())
            assert queries == random_ranges(domain, attributes, seed=4) != random_ranges(domain, attributes, seed=5)
        assert {len(query) for query in random_ranges(DOMAIN, 5, seed=0)} == {3}

    def test_every_interval_is_equally_likely(self):
        domain = Domain.of({"x": 4})
        drawn = [query["x"] for seed in range(40) for query in random_ranges(domain, 1, seed)]
        counts = [drawn.count(range(low, high)) for low in range(4) for high in range(low + 1, 5)]
        assert sum(counts) == len(drawn)
        assert chi_square(counts, np.full(10, 0.1)) < 50  # 9 degrees of freedom: 1e-7

    def test_sets_are_drawn_in_proportion_to_the_product_of_their_weights(self):
        weights = np.array([0.5, 1, 2, 4, 0.1])
        sets = list(itertools.combinations(range(5), 3))
        product = np.array([weights[list(each)].prod() for each in sets])
        drawn = [tuple(each) for each in weighted_sets(weights, 3, 20_000, np.random.default_rng(0))]
        counts = [drawn.count(each) for each in sets]
        assert chi_square(counts, product / product.sum()) < 50
        # the mutant that picks one place after another ∝ the weights that are left
        rng = np.random.default_rng(0)
        picked = [tuple(sorted(rng.choice(5, 3, False, weights / weights.sum()))) for _ in range(20_000)]
        assert chi_square([picked.count(each) for each in sets], product / product.sum()) > 100


def chi_square(counts, probabilities):
    expected = sum(counts) * probabilities
    return float(((np.array(counts) - expected) ** 2 / expected).sum())


class TestClassifier:
    domain = Domain.of({"sign": 2, "other": 2, "label": 2})

    def rows(self, count, flipped=False):
        """The label is the sign (or its opposite); the third attribute is a coin."""
        codes = np.arange(count) % 2
        return {
            "sign": codes.astype(np.uint8),
            "other": (np.arange(count) // 2 % 2).astype(np.uint8),
            "label": (1 - codes if flipped else codes).astype(np.uint8),
        }

    def test_worked_by_hand(self):
        """Synthetic rows that say the opposite teach a machine that is always wrong; real rows, one always right."""
        found = svm(self.rows(400), self.rows(100, flipped=True), self.domain, ("label",))
        assert (found.synthetic, found.real) == (1.0, 0.0)
        assert svm(self.rows(400), self.rows(100), self.domain, ("label",)).synthetic == 0.0

    def test_synthetic_rows_of_one_class_teach_that_class(self):
        real = self.rows(400)
        real["label"][:] = np.arange(400) % 4 == 0
        constant = {**self.rows(30), "label": np.zeros(30, dtype=np.uint8)}
        found = svm(real, constant, self.domain, ("label",))
        assert found.synthetic == found.majority  # the majority is 0 too
        assert 0.1 < found.majority < 0.4
        assert (
            svm(real, {**constant, "label": constant["label"] + np.uint8(1)}, self.domain, ("label",)).synthetic > 0.6
        )

    def test_the_attributes_of_the_target_are_no_features(self):
        """A copy of the label that belongs to the target column does not give the label away."""
        rng = np.random.default_rng(0)
        label = rng.integers(0, 2, 2000).astype(np.uint8)
        noise = rng.integers(0, 2, 2000).astype(np.uint8)
        rows = {"label": label, "copy": label, "noise": noise}
        domain = Domain.of({"label": 2, "copy": 2, "noise": 2})
        assert svm(rows, rows, domain, ("label",)).synthetic == 0
        assert svm(rows, rows, domain, ("label", "copy")).synthetic > 0.3

    def test_codes_that_training_never_saw(self):
        domain = Domain.of({"x": 300, "label": 3})
        real = {"x": np.arange(300, dtype=np.uint16), "label": (np.arange(300) // 100).astype(np.uint8)}
        synthetic = {"x": np.array([0, 150, 299], dtype=np.uint16), "label": np.array([0, 1, 2], dtype=np.uint8)}
        assert 0 < svm(real, synthetic, domain, ("label",)).synthetic <= 1

    def test_what_cannot_be_learnt_is_refused(self):
        with refused("nothing-to-learn-from"):
            svm({"x": np.zeros(5, np.uint8)}, {"x": np.zeros(5, np.uint8)}, Domain.of({"x": 2}), ("x",))
        with refused("too-few-rows"):
            svm(self.rows(1), self.rows(9), self.domain, ("label",))


DISTANCES = {
    "tvd1": tvd1,
    "tvd2": tvd2,
    "tvd3": tvd3,
    "k_marginal": k_marginal,
    "range3": range3,
    "range5": range5,
    "cramers_v": cramers_v_error,
}
PERFECT = {"tvd1": 0, "tvd2": 0, "tvd3": 0, "k_marginal": 1000, "range3": 0, "range5": 0, "cramers_v": 0}


@settings(max_examples=15)
@given(two_tables())
def test_a_table_is_perfect_beside_itself(tables):
    domain, rows, _ = tables
    coded = table(rows, domain)
    for name, distance in DISTANCES.items():
        assert distance(coded, coded, domain, 0) == PERFECT[name]


@settings(max_examples=15)
@given(two_tables(), st.randoms(use_true_random=False))
def test_the_order_of_rows_means_nothing(tables, rng):
    domain, real, synthetic = tables
    shuffled = rng.sample(real, len(real)), rng.sample(synthetic, len(synthetic))
    for distance in DISTANCES.values():
        before = distance(table(real, domain), table(synthetic, domain), domain, 0)
        assert distance(*(table(rows, domain) for rows in shuffled), domain, 0) == before


@settings(max_examples=15)
@given(two_tables())
def test_every_number_lies_in_its_interval(tables):
    domain, real, synthetic = tables
    for name, distance in DISTANCES.items():
        assert 0 <= distance(table(real, domain), table(synthetic, domain), domain, 3) <= (1000 if "k_" in name else 1)


def test_a_table_without_rows_has_no_shares():
    for distance in (tvd1, range3, range5):
        with refused("no-rows"):
            distance(table(REAL), table([]), DOMAIN)


SCHEMA = Schema.from_dict(
    {
        "person": "who",
        "max_rows_per_person": 2,
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 9},
            "city": {"type": "category", "values": ["north", "south"], "other": True},
            "wage": {"type": "integer", "min": 0, "max": 99, "bins": 4, "heaps": [10]},
        },
    }
)


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 10, rows)
    return pa.table(
        {
            "who": ["p"] * rows,
            "age": age,
            "city": np.where(age < 5, "north", "south"),
            "wage": 10 * rng.integers(0, 10, rows),
        }
    )


class TestEvaluate:
    def test_every_metric_under_one_roof(self):
        real = people(300)
        report = evaluate(real, people(200, seed=1).drop(["who"]), SCHEMA, target="city", seed=3)
        assert report["private"] is True
        assert report["rows"] == {"real": 300, "synthetic": 200}
        assert (report["columns"], report["attributes"], report["target"]) == (3, 4, "city")
        assert set(METRICS) - {"apparent_matches", "nist2018", "nist2020"} < set(report)  # these are left out of "all"
        assert not {"nist2018", "nist2020"} & set(report)
        assert report["svm"] == report["svm_real"] == 0 < report["majority"]
        assert report == evaluate(real, people(200, seed=1).to_pandas(), SCHEMA, target="city", seed=3)

    def test_all_rows_count_also_those_that_a_release_would_drop(self):
        assert evaluate(people(50), people(50), SCHEMA)["rows"]["real"] == 50

    def test_without_a_target_all_but_the_classifier(self):
        report = evaluate(people(50), people(50), SCHEMA)
        assert {name: report[name] for name in DISTANCES} == PERFECT
        assert "svm" not in report
        assert set(METRICS) & set(evaluate(people(50), people(50), SCHEMA, metrics=["range5", "tvd1"])) == {
            "range5",
            "tvd1",
        }

    def test_a_column_of_two_attributes_as_the_target(self):
        """The bin is the class, and the divisibility is not used to guess it."""
        report = evaluate(people(300), people(300, seed=1), SCHEMA, metrics=["svm"], target="wage")
        assert report["svm"] > 0.5

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"metrics": ["tvd4"]}, ("unknown-metric", '"tvd4"', 'Did you mean "tvd')),
            ({"metrics": []}, ("no-metric",)),
            ({"metrics": ["svm"]}, ("missing-option", "--target")),
            ({"metrics": ["tvd1"], "target": "city"}, ("unused-option", "svm and boosting")),
            ({"target": "ciyt"}, ("unknown-column", '"ciyt"', 'Did you mean "city"')),
        ],
    )
    def test_options_that_do_not_exist(self, options, message):
        with refused(*message):
            evaluate(people(5), people(5), SCHEMA, **options)

    def test_a_synthetic_table_that_lacks_columns(self):
        lacking = people(5).rename_columns(["who", "agee", "city", "wage"])
        with refused("missing-column", 'synthetic table lacks "age"', 'Did you mean "agee"'):
            evaluate(people(5), lacking, SCHEMA)
        with refused("missing-column", 'real table lacks "age"'):
            evaluate(lacking, people(5), SCHEMA)

    def test_an_empty_synthetic_table(self):
        with refused("no-rows"):
            evaluate(people(5), people(0), SCHEMA)

    def test_a_domain_that_waits_for_a_public_table(self):
        columns = {name: {"type": "integer", "min": 0, "max": 9} for name in ("age", "wage")}
        waiting = Schema.from_dict({"columns": columns, "groups": [{"columns": list(columns), "allowed": "public"}]})
        with refused("needs-public-table", "-s FILE.release"):
            evaluate(people(5), people(5), waiting)

    def test_without_scikit_learn_the_classifier_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn", None)
        with refused("missing-package", "[evaluate]"):
            evaluate(people(5), people(5), SCHEMA, target="city")
        assert evaluate(people(5), people(5), SCHEMA)["tvd1"] == 0


class TestRealTables:
    def test_two_samples_of_adult_differ_by_the_known_floor(self, real_table):
        """A table and a bootstrap sample of it: .035 over three-way marginals, measured independently."""
        folder = real_table("adult")
        schema = Schema.load(folder / "domain.json")
        import pyarrow.parquet as pq

        adult = pq.read_table(folder / "data.parquet")
        bootstrap = adult.take(np.random.default_rng(1).integers(0, len(adult), len(adult)))
        report = evaluate(adult, bootstrap, schema, metrics=["tvd1", "tvd2", "tvd3"])
        assert report["tvd3"] == pytest.approx(0.035, abs=0.001)
        assert report["tvd1"] < report["tvd2"] < report["tvd3"]
