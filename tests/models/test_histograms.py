"""Histograms, domain compression and expansion: laws of the simplest models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.audit import check_model
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise, estimated_total
from hedgerow.coded.query import MarginalQuery
from hedgerow.coded.recoding import Recoding
from hedgerow.methods.shared.compression import compress
from hedgerow.models import load
from hedgerow.models.expanded import Expanded
from hedgerow.models.histograms import Histograms, Part, project_to_simplex, systematic
from hedgerow.models.model import BLOCK_ROWS, block_rng, block_sizes
from refusals import refused

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2})


def joint_model():
    sparse = Part(("a", "c"), np.array([2.0, 1.0, 1.0]), cells=np.array([0, 3, 5]))
    return Histograms(DOMAIN, [sparse, Part(("b",), np.array([1.0, 2.0, 0.0, 1.0]))], 8)


def test_marginals_are_products_of_parts():
    model = joint_model()
    assert model.marginal(("a",)).tolist() == [4.0, 2.0, 2.0]
    assert model.marginal(("a", "c")).tolist() == [[4.0, 0.0], [0.0, 2.0], [0.0, 2.0]]
    assert model.marginal(("a", "b")) == pytest.approx(np.outer([4, 2, 2], [0.25, 0.5, 0, 0.25]))
    assert model.marginal(("b", "c")) == pytest.approx(np.outer([2, 4, 0, 2], [0.5, 0.5]))
    assert model.marginal(()) == pytest.approx(8.0)


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=30).filter(lambda w: sum(w) > 1e-3),
    st.integers(0, 5000),
    st.integers(0, 99),
)
def test_systematic_rounding_is_within_one_of_the_expectation(weights, rows, seed):
    counts = systematic(np.array(weights), rows, np.random.default_rng(seed))
    expected = np.array(weights) / sum(weights) * rows
    assert counts.sum() == rows
    assert (counts >= 0).all()
    assert (np.abs(counts - expected) < 1 + 1e-6).all()


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40), st.floats(0.1, 1e5))
def test_projection_is_feasible_and_the_nearest(values, total):
    values = np.array(values)
    projected = project_to_simplex(values, total)
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, rel=1e-6)
    # nearest: moving mass towards any single cell never brings it closer
    for cell in range(len(values)):
        towards = -projected
        towards[cell] += total
        assert (values - projected) @ towards <= 1e-6 * (1 + np.abs(values).max()) * total


def test_columns_of_a_histogram_model_are_independent():
    model = Histograms(DOMAIN, [Part((a.name,), np.ones(a.size)) for a in DOMAIN], 100)
    rows = model.draw(60_000, block_rng(0, 0))
    table = np.histogram2d(rows["a"], rows["b"], bins=[3, 4])[0]
    assert np.abs(table - 5000).max() < 5000 * 0.08


def test_a_bad_cover_is_refused():
    with refused("histogram-parts"):
        Histograms(DOMAIN, [Part(("a",), np.ones(3))], 10)
    with refused("histogram-length"):
        Histograms(Domain.of({"a": 3}), [Part(("a",), np.ones(2))], 10)
    with refused("histogram-mass"):
        Histograms(Domain.of({"a": 2}), [Part(("a",), np.zeros(2))], 10)


def test_models_keep_the_laws_and_read_back():
    check_model(joint_model())
    recoding = Recoding(DOMAIN, {"b": np.array([0, 2, 1, 2])})
    inner = Histograms(recoding.target(), [Part((a.name,), np.arange(1.0, a.size + 1)) for a in recoding.target()], 60)
    model = Expanded(inner, recoding, {"b": np.array([1.0, 3.0, 1.0, 1.0])})
    check_model(model)
    assert model.marginal(("b",)) == pytest.approx([10, 22.5, 20, 7.5])
    assert load(DOMAIN, model.state()).marginal(("a", "b")) == pytest.approx(model.marginal(("a", "b")))
    drawn = np.bincount(model.draw(6000, block_rng(0, 0))["b"], minlength=4)
    assert np.abs(drawn - [1000, 2250, 2000, 750]).max() <= 2


def test_compression_merges_what_noise_hides_and_loses_no_count():
    noise = Noise("gaussian", 10.0)
    one_ways = [
        Measurement(MarginalQuery(DOMAIN, ("a",)), np.array([500, 3, -8]), noise),
        Measurement(MarginalQuery(DOMAIN, ("b",)), np.array([200, 100, 100, 95]), noise),
        Measurement(MarginalQuery(DOMAIN, ("c",)), np.array([490, 12]), noise),
    ]
    compression = compress(DOMAIN, one_ways)
    assert set(compression.recoding.maps) == {"a"}
    assert compression.recoding.maps["a"].tolist() == [0, 1, 1]
    assert compression.recoding.target()["a"].size == 2
    kept, merged, *rest = compression.reexpress(one_ways)
    assert (kept.values.tolist(), merged.values.tolist()) == ([500], [-5])
    assert merged.noise.scale == pytest.approx(10 * np.sqrt(2))
    assert [len(measurement.values) for measurement in rest] == [4, 2]
    everything = compress(DOMAIN, [Measurement(MarginalQuery(DOMAIN, ("a",)), np.array([1, 2, 3]), noise)])
    assert everything.recoding.maps["a"].tolist() == [1, 1, 0], "the commonest code stays visible"


def test_compression_merges_rare_codes_of_one_kind_with_each_other():
    domain = Domain.of({"a": 6, "b": 2})
    possible = np.array([[1, 1], [1, 1], [1, 0], [1, 0], [1, 0], [0, 1]], dtype=bool)
    domain = Domain(domain, {("a", "b"): possible})
    one_way = Measurement(MarginalQuery(domain, ("a",)), np.array([2, 3, 4, 500, 5, 6]), Noise("gaussian", 10.0))
    compression = compress(domain, [one_way])
    assert compression.recoding.maps["a"].tolist() == [3, 3, 2, 0, 2, 1], "the last is alone of its kind"
    assert compression.recoding.target().support["a", "b"].tolist() == [[1, 0], [0, 1], [1, 0], [1, 1]]
    single, merged = compression.reexpress([one_way])
    assert (single.values.tolist(), merged.values.tolist()) == ([500, 6], [9, 5])


def test_the_total_weighs_measurements_by_their_precision():
    noise = Noise("gaussian", 10.0)
    narrow = Measurement(MarginalQuery(DOMAIN, ("c",)), np.array([50, 52]), noise)
    wide = Measurement(MarginalQuery(DOMAIN, ("b",)), np.array([50, 50, 50, 0]), noise)
    assert estimated_total([narrow, wide]) == pytest.approx((102 / 2 + 150 / 4) / (1 / 2 + 1 / 4))
    assert estimated_total([Measurement(MarginalQuery(DOMAIN, ()), np.array([-40]), noise)]) == 1.0


def test_blocks_cover_the_rows_and_have_an_rng_of_their_own():
    assert list(block_sizes(0)) == []
    assert list(block_sizes(BLOCK_ROWS + 1)) == [BLOCK_ROWS, 1]
    draws = {block_rng(seed, block).integers(1 << 62) for seed in range(5) for block in range(5)}
    assert len(draws) == 25
