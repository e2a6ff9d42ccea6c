"""Small models in full: the dense joint that every answer of the engine must agree with."""

import numpy as np
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.models.graphical.junction import plan
from hedgerow.models.graphical.model import GraphicalModel

NAMES = "abcdef"


@st.composite
def structures(draw, most_cells=2000):
    """A domain of up to six small attributes (one-cell ones too) and up to seven cliques, some of them nested."""
    count = draw(st.integers(1, 6))
    sizes = {name: draw(st.integers(1, 5)) for name in NAMES[:count]}
    domain = Domain.of(sizes)
    while np.prod(list(sizes.values())) > most_cells:
        largest = max(sizes, key=sizes.get)
        sizes[largest] -= 1
        domain = Domain.of(sizes)
    subsets = st.sets(st.sampled_from(domain.names), min_size=1, max_size=min(4, count))
    cliques = [domain.marginal(names) for names in draw(st.lists(subsets, max_size=7))]
    return domain, cliques


@st.composite
def models(draw, spread=3.0):
    domain, cliques = draw(structures())
    structure = plan(domain, cliques)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return GraphicalModel(
        structure, rng.normal(0, spread, structure.leaf_cells), total=draw(st.sampled_from([1, 500.0]))
    )


def joint(model):
    """The model's whole distribution, with axes in domain order, summing to the total."""
    domain = model.domain
    logarithm = np.zeros(domain.shape(domain.names))
    for clique in model.cliques:
        shape = [domain[name].size if name in clique else 1 for name in domain.names]
        logarithm = logarithm + model.potential(clique).reshape(shape)
    weight = np.exp(logarithm - logarithm.max())
    return model.total * weight / weight.sum()


def marginal_of(table, domain, marginal):
    return table.sum(axis=tuple(index for index, name in enumerate(domain.names) if name not in marginal))


def measured(domain, marginal, values, std=1.0, **aggregation):
    """A measurement of a marginal with values that were worked out beforehand."""
    query = MarginalQuery(domain, marginal, **aggregation)
    scale = np.sqrt(std**2 - 1 / 12) if std >= 0.6 else std
    return Measurement(query, np.asarray(values).reshape(-1), Noise("gaussian", float(scale)))
