"""The further metrics: each by hand, and beside scipy or scikit-learn where they have it too."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mean_squared_error

from four_rows import DOMAIN, REAL, SYNTHETIC, table
from hedgerow.coded.domain import Attribute, Domain
from hedgerow.private.evaluate import correlations
from hedgerow.private.evaluate.classifier import boosting, svm
from hedgerow.private.evaluate.conjunctions import conjunction_error, conjunctions, random_conjunctions
from hedgerow.private.evaluate.correlations import cramers_v, kendall, mean_difference, pearson
from hedgerow.private.evaluate.marginals import worst_marginals
from hedgerow.private.evaluate.matches import apparent_matches, row_numbers, unique_matches
from hedgerow.private.evaluate.propensity import pmse, propensity
from hedgerow.private.evaluate.subsample import subsample_equivalent


def test_the_worst_marginals_come_first():
    """Pairs: a×b ½, a×c ½, b×c ¾ (worked in test_evaluate)."""
    found = worst_marginals(table(REAL), table(SYNTHETIC), DOMAIN, 2, most=2)
    assert found == [(("b", "c"), 0.75), (("a", "b"), 0.5)]


two_columns = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=2, max_size=40)
GRADES = Domain([Attribute("x", 5, ordered=5), Attribute("y", 7, ordered=7)])
LINE = {"x": 5, "y": 7}


class TestCorrelations:
    def test_worked_by_hand(self):
        """Rows (0,0) (1,1) (2,1): r = 1/√(2·⅔) = √3/2. Of 3 pairs of rows 2 agree and one is tied in y: 2/√(3·2)."""
        rows = table([(0, 0), (1, 1), (2, 1)], GRADES)
        assert pearson(rows, GRADES, LINE).matrix[0, 1] == pytest.approx(math.sqrt(3) / 2)
        assert kendall(rows, GRADES, LINE).matrix[0, 1] == pytest.approx(2 / math.sqrt(6))
        # the cross table has one row in each of three cells: y tells nothing that x does not know, so V = 1
        assert cramers_v(rows, GRADES).matrix[0, 1] == pytest.approx(1)
        # (0,0) (0,1) (1,0) (1,1): nothing goes together
        square = table([(0, 0), (0, 1), (1, 0), (1, 1)], GRADES)
        for found in (pearson(square, GRADES, LINE), kendall(square, GRADES, LINE), cramers_v(square, GRADES)):
            assert found.matrix[0, 1] == 0
        assert mean_difference(pearson(rows, GRADES, LINE), pearson(square, GRADES, LINE)) == pytest.approx(
            math.sqrt(3) / 2
        )

    @given(two_columns)
    def test_as_numpy_and_scipy_have_them(self, rows):
        x, y = np.array(rows).T
        coded = table(rows, GRADES)
        varies = len(set(x)) > 1 and len(set(y)) > 1
        wanted = np.corrcoef(x, y)[0, 1] if varies else 0
        assert pearson(coded, GRADES, LINE).matrix[0, 1] == pytest.approx(wanted, abs=1e-9)
        wanted = stats.kendalltau(x, y).statistic if varies else 0
        assert kendall(coded, GRADES, LINE).matrix[0, 1] == pytest.approx(wanted, abs=1e-9)
        crossed = stats.contingency.crosstab(x, y).count
        wanted = stats.contingency.association(crossed, "cramer") if varies else 0
        assert cramers_v(coded, GRADES).matrix[0, 1] == pytest.approx(wanted, abs=1e-9)

    @given(two_columns)
    def test_symmetric_and_of_one_with_itself_1(self, rows):
        for found in (pearson(table(rows, GRADES), GRADES, LINE), cramers_v(table(rows, GRADES), GRADES)):
            assert (found.matrix == found.matrix.T).all()
            assert (np.diag(found.matrix) == 1).all()

    def test_codes_beyond_the_line_are_left_out(self):
        """y = 6 says "missing": those rows have no place in the order, and scipy without them agrees."""
        rng = np.random.default_rng(0)
        rows = np.column_stack([rng.integers(0, 5, 500), rng.integers(0, 7, 500)])
        rows[:, 1] = np.where(rows[:, 1] < 6, np.minimum(rows[:, 0] + rng.integers(0, 2, 500), 5), 6)
        known = rows[rows[:, 1] < 6]
        line = {"x": 5, "y": 6}
        coded = table(rows, GRADES)
        assert pearson(coded, GRADES, line).matrix[0, 1] == pytest.approx(np.corrcoef(known.T)[0, 1])
        assert kendall(coded, GRADES, line).matrix[0, 1] == pytest.approx(stats.kendalltau(*known.T).statistic)

    def test_wide_columns_are_ranked_on_merged_codes(self):
        """1,000 and 5,000 codes: merged into 128 runs, τ moves by little; r and V are exact on occupied cells."""
        rng = np.random.default_rng(1)
        x = rng.integers(0, 1000, 3000)
        y = np.clip(4 * x + rng.integers(0, 1500, 3000), 0, 4999)
        wide = Domain([Attribute("x", 1001, ordered=1001), Attribute("y", 5001, ordered=5001)])
        coded = table(np.column_stack([x, y]), wide)
        line = {"x": 1000, "y": 5000}
        assert kendall(coded, wide, line).matrix[0, 1] == pytest.approx(stats.kendalltau(x, y).statistic, abs=0.01)
        assert pearson(coded, wide, line).matrix[0, 1] == pytest.approx(np.corrcoef(x, y)[0, 1])
        occupied = correlations.cramers_v(coded, wide).matrix[0, 1]
        crossed = stats.contingency.crosstab(x, y).count
        assert occupied == pytest.approx(stats.contingency.association(crossed, "cramer"))

    def test_one_ordered_column_has_no_correlation(self):
        rows = table(REAL)
        assert mean_difference(pearson(rows, DOMAIN, {"b": 3}), pearson(rows, DOMAIN, {"b": 3})) is None


class TestConjunctions:
    def test_worked_by_hand(self):
        """b in {1, 2}: ¾ and ½, ln ⅔. a = 0 and c = 0: ½ and ½. b = 2: ¼ and nothing, so 10⁻⁶."""
        asked = [
            {"b": np.array([False, True, True])},
            {"a": np.array([True, False]), "c": np.array([True, False])},
            {"b": np.array([False, False, True])},
        ]
        off = conjunction_error(table(REAL), table(SYNTHETIC), asked[:2])
        assert off == pytest.approx(abs(math.log(2 / 3)) / math.sqrt(2))
        assert conjunction_error(table(REAL), table(SYNTHETIC), asked[2:]) == pytest.approx(math.log(0.25 / 1e-6))

    def test_each_has_4_to_8_conditions_that_its_row_meets(self):
        domain = Domain(
            [Attribute(f"x{index}", 3 + index, ordered=(3 + index) * (index % 2 == 0)) for index in range(12)]
        )
        rng = np.random.default_rng(0)
        rows = {each.name: rng.integers(0, each.size, 50).astype(each.dtype) for each in domain}
        asked = random_conjunctions(rows, domain, seed=3)
        assert {len(each) for each in asked} == {4, 5, 6, 7, 8}
        for each in asked:
            assert any(all(passing[rows[name][row]] for name, passing in each.items()) for row in range(50))
            for name, passing in each.items():
                if domain[name].ordered:  # an interval: at most two places where it changes
                    assert np.abs(np.diff(np.concatenate([[0], passing, [0]]))).sum() == 2
        assert conjunctions(rows, rows, domain, seed=3) == 0


class TestSubsample:
    domain = Domain.of({"x": 8, "y": 8, "z": 8})

    def rows(self, count, seed=0):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 8, count)
        return table(np.column_stack([x, (x + rng.integers(0, 3, count)) % 8, rng.integers(0, 8, count)]), self.domain)

    def test_the_table_itself_is_as_good_as_itself(self):
        rows = self.rows(300)
        assert subsample_equivalent(rows, rows, self.domain) == 1

    @pytest.mark.parametrize("share", [0.8, 0.4, 0.1, 0.03])
    def test_a_sample_is_as_good_as_itself(self, share):
        real = self.rows(20_000)
        kept = np.random.default_rng(7).permutation(20_000)[: round(20_000 * share)]
        sample = {name: codes[kept] for name, codes in real.items()}
        assert subsample_equivalent(real, sample, self.domain) == pytest.approx(share, rel=0.25)

    def test_a_bootstrap_is_as_good_as_half_of_the_rows(self):
        """A share's variance is p(1−p)/n with replacement, (1−f)/f times that for a sample of f: equal at f = ½."""
        real = self.rows(20_000)
        drawn = np.random.default_rng(3).integers(0, 20_000, 20_000)
        bootstrap = {name: codes[drawn] for name, codes in real.items()}
        assert subsample_equivalent(real, bootstrap, self.domain) == pytest.approx(0.5, abs=0.08)

    def test_nothing_in_common_is_as_good_as_the_smallest_sample(self):
        real = self.rows(1000)
        constant = {name: np.zeros(5, dtype=np.uint8) for name in real}
        assert subsample_equivalent(real, constant, self.domain) == 16 / 1000  # 500, 250, 125, 62, 31, 16


class TestMatches:
    def test_worked_by_hand(self):
        """Real: 000 twice, 011, 121. Synthetic: 000, 011, 110. Unique and found: 011 alone, ¼ of the rows."""
        real = table([(0, 0, 0), (0, 0, 0), (0, 1, 1), (1, 2, 1)])
        synthetic = table([(0, 0, 0), (0, 1, 1), (1, 1, 0)])
        assert unique_matches(real, synthetic, DOMAIN) == 0.25
        # by b: 1 and 2 are unique among the real rows; 1 stands twice among the synthetic ones, 2 nowhere
        assert apparent_matches(real, synthetic, DOMAIN, ("b",)).share == 0
        # by a and b: (0,1) and (1,2) are unique; (0,1) meets one synthetic row, and c agrees
        found = apparent_matches(real, synthetic, DOMAIN, ("a", "b"))
        assert (found.share, found.agreement) == (0.25, 1.0)
        # by a: 1 is unique in both tables, (1,2,1) beside (1,1,0): neither b nor c agrees
        found = apparent_matches(real, synthetic, DOMAIN, ("a",))
        assert (found.share, found.agreement) == (0.25, 0.0)
        assert apparent_matches(real, table([(0, 0, 0)] * 2), DOMAIN, ("b",)).agreement is None

    @given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
    def test_numbers_are_equal_exactly_where_rows_are(self, rows):
        wide = Domain.of({"a": 1 << 30, "b": 1 << 30, "c": 1 << 30})
        first, second = row_numbers([table(rows, wide), table(rows[::-1], wide)], wide, wide.names)
        assert first.tolist() == second[::-1].tolist()
        assert len(set(first.tolist())) == len(set(rows))


class TestLearning:
    domain = Domain.of({"x": 2, "y": 2, "label": 2})

    def rows(self, count, seed=0, flipped=False):
        """The label is x xor y, which no linear machine learns; flipped: its opposite."""
        rng = np.random.default_rng(seed)
        x, y = rng.integers(0, 2, (2, count))
        return table(np.column_stack([x, y, x ^ y ^ flipped]), self.domain)

    def test_trees_learn_what_a_line_cannot(self):
        """Trained on real rows both know; on rows that say the opposite, trees are always wrong."""
        found = boosting(self.rows(400), self.rows(400, 1, flipped=True), self.domain, ("label",))
        assert (found.synthetic, found.real) == (1.0, 0.0)
        assert svm(self.rows(400), self.rows(400, 1), self.domain, ("label",)).synthetic > 0.3

    def test_propensity_worked_by_hand(self):
        """Probabilities ½: nothing known, 0. Probabilities 0 and 1: ¼."""
        assert pmse(np.array([0.5, 0.5])) == 0
        assert pmse(np.array([0.0, 1.0, 1.0])) == 0.25
        said = np.array([0.2, 0.9, 0.6])
        assert pmse(said) == pytest.approx(mean_squared_error(np.full(3, 0.5), said))

    def test_tables_that_differ_are_told_apart(self):
        opposite = propensity(self.rows(1000), self.rows(1000, 1, flipped=True), self.domain)
        assert opposite.pmse == pytest.approx(0.25, abs=0.01)
        assert opposite.detected == 1
        same = propensity(self.rows(4000), self.rows(4000, 1), self.domain)
        assert same.pmse < 0.002
        assert 0.45 < same.detected < 0.55
        assert propensity(self.rows(1), self.rows(9), self.domain).detected == 0.5


@settings(max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=30))
def test_a_table_beside_itself(rows):
    coded = table(rows)
    assert conjunctions(coded, coded, DOMAIN) == 0
    assert subsample_equivalent(coded, coded, DOMAIN) == 1
    assert unique_matches(coded, coded, DOMAIN) == sum(rows.count(row) == 1 for row in rows) / len(rows)
