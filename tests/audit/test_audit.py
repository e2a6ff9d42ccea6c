"""The long checks of the noise itself, run by `make audit` after `hedgerow audit`: ten million draws each."""

import pytest

from hedgerow.audit.noise import check_noise
from hedgerow.coded.measurement import Noise
from hedgerow.private.mechanisms import Mechanisms

pytestmark = pytest.mark.audit


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0, 1e4])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_ten_million_draws(kind, scale):
    check_noise(Mechanisms(), Noise(kind, scale), draws=10_000_000)
