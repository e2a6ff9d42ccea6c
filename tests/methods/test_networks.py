"""PrivBayes and PrivMRF beyond the laws that all methods keep: parents, networks, graphs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.coded.domain import Attribute, Domain
from hedgerow.coded.halving import halved, heights, size_at
from hedgerow.methods.privmrf import PrivMRF
from hedgerow.methods.shared.parents import maximal_parents
from hedgerow.models.graphical.junction import size
from hedgerow.models.network import BayesianNetwork, Conditional, Family
from hedgerow.private.evaluate import marginal_distances
from hedgerow.samples import opm

SCHEMA = hr.Schema.parse(opm.SCHEMA)


@given(st.integers(0, 40), st.integers(0, 3))
def test_halving_keeps_the_order_and_what_has_none(ordered, beyond):
    if ordered + beyond == 0:
        return
    attribute = Attribute("a", ordered + beyond, ordered)
    for level in range(heights(attribute)):
        codes = halved(attribute, level)
        assert codes.tolist() == sorted(codes)
        assert len(np.unique(codes)) == codes.max() + 1 == size_at(attribute, level)
        assert len(np.unique(codes[ordered:])) == beyond
        assert ordered < 2 or codes[ordered - 1] >= 1


@settings(deadline=None)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.floats(0.5, 60), st.booleans())
def test_parents_are_maximal_and_all_that_are(sizes, cells, coarse):
    """Against every choice of levels: none is too large, and none could be finer or have one attribute more."""
    domain = Domain(Attribute(f"c{n}", each, each if n % 2 else 0) for n, each in enumerate(sizes))
    levels = [[None, *range(heights(each) if coarse else 1)] for each in domain]

    def fits(choice):
        return (
            np.prod([size_at(a, level) for a, level in zip(domain, choice, strict=True) if level is not None]) <= cells
        )

    def finer(choice):
        for n, level in enumerate(choice):
            better = max(levels[n][1:]) if level is None else level - 1
            if level is None or level > 0:
                yield (*choice[:n], better, *choice[n + 1 :])

    allowed = {choice for choice in product(*levels) if fits(choice)}
    expected = {choice for choice in allowed if not any(other in allowed for other in finer(choice))}
    found = maximal_parents(domain, domain.names, cells, coarse)
    assert len(set(found)) == len(found)
    assert {tuple(dict(parents).get(name) for name in domain.names) for parents in found} == expected


def test_a_network_draws_what_its_families_say():
    domain = Domain([Attribute("a", 2), Attribute("b", 6, 6)])
    counts = np.array([[30.0, 10], [0, 40], [20, 0]])  # of b at half its resolution, and a
    network = BayesianNetwork(
        domain,
        [
            Conditional.of(domain, Family("b"), np.full(6, 10.0)),
            Conditional.of(domain, Family("a", (("b", 1),)), counts.T),
        ],
        100.0,
    )
    drawn = network.draw(60_000, np.random.default_rng(0))
    for code, share in enumerate([0.25, 0.25, 1, 1, 0, 0]):
        assert (drawn["a"][drawn["b"] == code] == 1).mean() == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("name", ["privbayes", "privmrf"])
def test_relations_are_kept_that_independent_columns_lose(name):
    table = opm.generate(5000)
    encoding = SCHEMA.encoding()

    def error(method):
        release = hr.synthesize(table, SCHEMA, hr.Budget(8.0), method, unsafe_noise_seed=1, quality=0)
        real, made = encoding.encode(table.combine_chunks()), encoding.encode(release.sample().combine_chunks())
        return float(marginal_distances(real, made, encoding.domain, 2).mean())

    method = PrivMRF(size=0.1) if name == "privmrf" else name
    assert error(method) < 0.8 * error("independent")


def test_the_graph_stays_within_its_size():
    release = hr.synthesize(opm.generate(2000), SCHEMA, hr.Budget(8.0), PrivMRF(size=0.02), quality=0)
    assert size(release.model.domain, release.model.cliques) <= 0.02 * 2**20
