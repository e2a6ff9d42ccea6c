"""The long audits, run by `make audit`: two hundred neighbours per method, ten million draws per kind of noise."""

import pytest

from hedgerow import methods
from hedgerow.audit.method import check_method
from hedgerow.audit.noise import check_noise
from hedgerow.measurement import Noise
from hedgerow.private.mechanisms import Mechanisms

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("name", methods.names())
def test_two_hundred_neighbours(name):
    check_method(methods.build(name), count=200, seed=1)


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0, 1e4])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_ten_million_draws(kind, scale):
    check_noise(Mechanisms(), Noise(kind, scale), draws=10_000_000)
