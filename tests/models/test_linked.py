"""Rows of a child table: by parents or by every code of the row before, they are drawn from the same distribution."""

import numpy as np
import pytest

from hedgerow.coded.recoding import Recoding
from hedgerow.errors import HedgerowError
from hedgerow.models import families
from hedgerow.models.families import Children, Coding, Rows
from hedgerow.models.linked import Chain, Local, pick
from hedgerow.schema import Schema

SCHEMA = Schema.parse("""
tables:
  shops: {key: id, columns: {region: {type: code, size: 2}}}
  sales:
    parent: shops
    link: shop
    max_per_parent: 20
    columns: {kind: {type: code, size: 4}}
""")
TOLD = np.log(
    np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25] * 4, [0.05, 0.05, 0.8, 0.1], [0.4, 0.3, 0.2, 0.1]])
)
"""Of a kind given the one before; the last line is that of first rows, which have none before."""


def drawn(counts: list[int], seed: int = 1) -> tuple[Children, np.ndarray]:
    """Rows of some shops whose kind depends on the one before and on the region."""
    encoding = SCHEMA.with_histories().encoding()
    tables = SCHEMA.linked
    assert tables is not None
    coding = Coding(encoding, np.random.default_rng(seed))
    shops = np.arange(len(counts))
    parents = Rows({"shops.region": shops % 2}, shops, shops, {"sales": np.array(counts)})
    rows = Children(coding, tables, "sales", parents)
    region = np.log(np.array([[0.25] * 4, [0.4, 0.2, 0.2, 0.2]]))
    domain = encoding.domain
    size = domain["sales.before(kind)"].size
    factor = np.zeros((size, 4))
    factor[:4], factor[4:] = TOLD[:4], TOLD[4]
    local = Local("sales.kind", ("sales.before(kind)", "shops.region"), np.zeros(4), (factor, region))
    chain = Chain(domain, [local], Recoding(domain, {}), {})
    rows.draw(chain, local)
    return rows, region


def expected(region: np.ndarray, place: int) -> np.ndarray:
    weights = np.exp(TOLD + region[place])
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("parents", "each"), [(1, 60_000), (3, 20_000), (10, 6_000), (20_000, 3)])
def test_rows_follow_the_one_before_however_they_are_drawn(parents, each, monkeypatch):
    counts = [each] * parents
    counts[-1] += 7
    monkeypatch.setattr(families, "CELLS_AT_A_TIME", 1 << 14)
    rows, region = drawn(counts)
    kinds = rows.own["sales.kind"].astype(int)
    before = np.where(rows.place == 0, 4, np.append(4, kinds[:-1]))
    for place in (0, 1):
        here = rows.parent % 2 == place
        counted = np.zeros((5, 4))
        np.add.at(counted, (before[here], kinds[here]), 1)
        lines = counted.sum(axis=1, keepdims=True)
        spread = np.sqrt(expected(region, place) * lines + 1)
        assert (np.abs(counted - expected(region, place) * lines) < 6 * spread).all()


def test_a_million_rows_of_one_parent_are_drawn_whole():
    rows, _ = drawn([1_000_000])
    assert len(rows) == 1_000_000
    assert len(np.unique(rows.own["sales.kind"])) == 4
    assert (rows.known("shops.region", np.array([999_999])) == 0).all()


def test_a_place_is_picked_by_its_weight():
    logs = np.log(np.array([[1.0, 2.0, 1.0]] * 5))
    assert pick(logs + 700, np.array([0.0, 0.24, 0.26, 0.76, 1.0])).tolist() == [0, 0, 1, 2, 2]
    assert pick(np.array([[-1e4, 0.0], [0.0, -1e4]]), np.array([0.0, 0.999])).tolist() == [1, 0]


def test_tables_of_a_chain_are_of_its_codes():
    encoding = SCHEMA.with_histories().encoding()
    wrong = Local("sales.kind", ("shops.region",), np.zeros(4), (np.zeros((3, 4)),))
    with pytest.raises(HedgerowError, match="merged codes"):
        Chain(encoding.domain, [wrong], Recoding(encoding.domain, {}), {})
