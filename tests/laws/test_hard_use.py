"""Tables at the edge of what a table can be: nothing fails, nothing is lost, and limits are said before they hurt."""

import numpy as np
import pyarrow as pa
import pytest

from hedgerow import methods
from hedgerow.budget.amounts import Budget
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Noise
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.model import block_sizes
from hedgerow.private.exact import Exact, SparseCounts
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Limits
from hedgerow.run import synthesize
from hedgerow.schema import Schema
from refusals import refused

BUDGET = Budget(1.0, 1e-9)
SMALL = Schema.parse("""
columns:
  kind: {type: category, values: [a, b], missing: true}
  size: {type: integer, min: 0, max: 20, bins: 4, missing: true}
  only: {type: category, values: [x]}
  when: {type: date, min: 2020-01-01, max: 2020-12-31, step: month}
""")


def small(rows, **columns):
    table = {"kind": ["a"] * rows, "size": [3] * rows, "only": ["x"] * rows, "when": ["2020-02-02"] * rows}
    return pa.table({name: pa.array(columns.get(name, values)) for name, values in table.items()})


TABLES = {
    "no rows": small(0),
    "a single row": small(1),
    "columns without values": small(
        30, kind=pa.nulls(30, pa.string()), size=pa.nulls(30, pa.int64()), when=pa.nulls(30, pa.string())
    ),
    "constant columns": small(30),
}


@pytest.mark.parametrize("method", methods.names())
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_every_method_survives(method, kind, delta):
    release = synthesize(TABLES[kind], SMALL, Budget(1.0, delta), method)
    drawn = release.sample(50)
    assert drawn.num_rows == 50
    assert drawn.schema.names == ["kind", "size", "only", "when"]
    assert release.certificate.spent == release.certificate.whole


def wide(columns, rows=40):
    rng = np.random.default_rng(0)
    table = pa.table({f"c{index}": rng.integers(0, 3, rows) for index in range(columns)})
    return table, Schema.parse("columns:\n" + "".join(f"  c{n}: {{type: code, size: 3}}\n" for n in range(columns)))


@pytest.mark.parametrize(("method", "columns"), [("independent", 1000), ("field-groups", 1000), ("mst", 100)])
def test_many_columns(method, columns):
    table, schema = wide(columns)
    assert synthesize(table, schema, BUDGET, method).sample(10).num_columns == columns


@pytest.mark.parametrize(
    ("method", "size"),
    [
        ("independent", 2_000_000),
        pytest.param("independent", 10_000_000, marks=pytest.mark.audit),
        pytest.param("mst", 10_000_000, marks=pytest.mark.audit),
    ],
)
def test_millions_of_categories(method, size):
    schema = Schema.parse(f"columns: {{a: {{type: code, size: {size}}}, b: {{type: code, size: 2}}}}")
    table = pa.table({"a": np.arange(0, size, size // 200), "b": np.arange(200) % 2})
    drawn = synthesize(table, schema, BUDGET, method).sample(20)
    assert drawn.num_rows == 20


def test_what_would_not_fit_is_refused_before_anything_is_spent():
    schema = Schema.parse("columns: {a: {type: code, size: 16000000}}")
    table = pa.table({"a": [1, 2, 3]})
    with refused("counts-too-large", "Nothing was spent"):
        synthesize(table, schema, BUDGET, "independent", limits=Limits(memory=64 << 20))


def test_totals_beyond_32_bits_are_exact():
    rows = 3 << 31
    noise = Noise("laplace", 1e-9)
    for counts in (np.array([rows]), SparseCounts(np.array([0]), np.array([rows]))):
        assert Mechanisms().noisy_counts(Exact(counts), 1, noise).tolist() == [rows]
    model = Histograms(Domain.of({"a": 2}), [Part(("a",), np.array([1.0, 2.0]))], float(rows))
    assert model.marginal(("a",)).sum() == pytest.approx(rows)
    sizes = block_sizes(rows)
    assert next(iter(sizes)) == 1 << 20
    assert 1 + sum(1 for _ in sizes) in (rows >> 20, 1 + (rows >> 20))
