"""Counts that were kept are the counts, and no more is kept than there is room for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.coded.domain import Domain
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.remembering import Remembering

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 5})
ROWS = {a.name: np.random.default_rng(1).integers(0, a.size, 50).astype(a.dtype) for a in DOMAIN}
QUERIES = [
    MarginalQuery(DOMAIN, ("a", "b")),
    MarginalQuery(DOMAIN, ("a", "b"), levels={"b": np.array([0, 0, 1, 1])}),
    MarginalQuery(DOMAIN, ("a", "b"), levels={"b": np.array([0, 1, 1, 1])}),
    MarginalQuery(DOMAIN, ("a", "b"), levels={"a": np.array([0, 1, 1])}),
    MarginalQuery(DOMAIN, ("c",)),
    MarginalQuery(DOMAIN, ("c",), blocks=np.array([0, 0, -1, 1, 1])),
]


class Counted(ArrowEngine):
    asked = 0

    def count(self, queries):
        self.asked += len(queries)
        return super().count(queries)


@settings(deadline=None)
@given(
    rounds=st.lists(st.lists(st.sampled_from(range(len(QUERIES))), max_size=8), max_size=5), memory=st.integers(0, 500)
)
def test_answers_are_those_of_the_engine(rounds, memory):
    engine = Counted.from_codes(DOMAIN, ROWS)
    remembering = Remembering(engine, memory)
    for indices in rounds:
        asked = [MarginalQuery(DOMAIN, q.attributes, levels=_levels(q), blocks=q.blocks) for q in _pick(indices)]
        found = [exact.opened().tolist() for exact in remembering.count(asked)]
        assert found == [exact.opened().tolist() for exact in ArrowEngine.from_codes(DOMAIN, ROWS).count(asked)]
    assert sum(exact.opened().nbytes for exact in remembering._kept.values()) <= memory


def test_a_marginal_is_counted_once():
    engine = Counted.from_codes(DOMAIN, ROWS)
    remembering = Remembering(engine, 1 << 20)
    for _ in range(3):
        list(remembering.count(QUERIES))
    assert engine.asked == len(QUERIES) + 2  # the partition each time


def _pick(indices):
    return [QUERIES[index] for index in indices]


def _levels(query):
    return {name: level for name, level in zip(query.attributes, query.levels, strict=True) if level is not None}
