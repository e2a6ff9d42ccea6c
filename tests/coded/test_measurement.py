"""A measurement is checked when it is made, so that whoever fits one gets numbers that a fit can end on."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.errors import HedgerowError
from hedgerow.models.graphical.estimation import fit, fit_near
from hedgerow.models.graphical.model import GraphicalModel
from refusals import refused

DOMAIN = Domain.of({"a": 2, "b": 3})
PAIR = MarginalQuery(DOMAIN, ("a", "b"))
NOISE = Noise("gaussian", 1.0)


@pytest.mark.parametrize("scale", [0, 0.0, -1.0, math.nan, math.inf, -math.inf, None, "1", np.ones(6), [1.0]])
def test_noise_has_one_scale_above_nothing(scale):
    with refused("bad-noise-scale"):
        Noise("gaussian", scale)


def test_noise_is_of_a_kind_that_exists():
    with refused("unknown-noise"):
        Noise("uniform", 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_values_are_finite(value):
    with refused("bad-noisy-counts"):
        Measurement(PAIR, np.array([1.0, 2, 3, 4, 5, value]), NOISE)


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(5),
        np.zeros(7),
        np.zeros((2, 3)),
        np.zeros(0),
        np.array(1),
        [0] * 6,
        np.zeros(6, complex),
        np.full(6, "1"),
    ],
)
def test_there_is_one_number_for_every_cell(values):
    with refused("answer-length", "a × b has 6 cells"):
        Measurement(PAIR, values, NOISE)


@pytest.mark.parametrize("kept", [[0, 6], [-1, 0], [1, 0], [1, 1], [0], [[0, 1]], [0.0, 1.0]])
def test_kept_cells_are_in_order_and_inside(kept):
    with refused("answer-length" if kept == [0] else "bad-kept-cells", "a × b"):
        Measurement(PAIR, np.array([3, 4]), NOISE, np.array(kept))


def test_the_total_has_a_name_in_messages():
    with refused("answer-length", "the total has 1 cell"):
        Measurement(total_query(DOMAIN), np.zeros(2), NOISE)


def test_nothing_of_the_values_is_quoted():
    with refused("bad-noisy-counts") as told:
        Measurement(PAIR, np.array([12345.5, math.nan, 0, 0, 0, 0]), NOISE)
    assert "12345" not in str(told.value)


# the fit


def test_a_measurement_of_another_domain_is_refused():
    wider = Domain.of({"a": 2, "b": 4})
    measurement = Measurement(MarginalQuery(wider, ("a", "b")), np.arange(8), NOISE)
    with refused("another-domain"):
        fit(DOMAIN, [measurement])
    with refused("another-domain"):
        fit_near(GraphicalModel.uniform(DOMAIN, 10.0), [measurement])


@pytest.mark.parametrize("total", [math.nan, math.inf, -math.inf])
def test_a_total_is_a_number(total):
    with refused("bad-total"):
        fit(DOMAIN, [Measurement(PAIR, np.arange(6), NOISE)], total=total)


def test_a_start_and_a_support_must_fit_the_domain():
    measurement = Measurement(PAIR, np.arange(6), NOISE)
    with refused("another-domain"):
        fit(DOMAIN, [measurement], start=GraphicalModel.uniform(Domain.of({"a": 3, "b": 3}), 10.0))
    with refused("bad-zeros"):
        fit(Domain(DOMAIN, {("a",): np.array([True] * 3)}), [measurement])


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.one_of(st.integers(-(1 << 62), 1 << 62), st.integers(-10, 10)), min_size=6, max_size=6),
    st.sampled_from([5e-324, 1e-300, 1e-9, 0.3, 10.0, 1e9, 1e149]),
    st.sampled_from([None, 1e-300, 1.0, 1e15, 1e300]),
)
def test_a_fit_ends_whatever_is_measured(values, scale, total):
    """With a model, or with a sentence."""
    measurement = Measurement(PAIR, np.array(values), Noise("gaussian", scale))
    try:
        model = fit(DOMAIN, [measurement], total=total, most_calls=50)
    except HedgerowError:
        return
    assert np.isfinite(model.marginal(("a", "b"))).all()
