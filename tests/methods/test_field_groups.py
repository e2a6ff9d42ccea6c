"""Field groups: one stack over all groups, noise on every cell, nothing learnt from the rows."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit import check_method
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods import build
from hedgerow.methods.field_groups import FieldGroups, histogram
from hedgerow.release.bundle import verify
from looking import asked
from refusals import refused

SCHEMA = """
columns:
  a: {type: code, size: 4}
  b: {type: code, size: 6}
  c: {type: code, size: 5}
  wage: {type: integer, min: 0, max: 999, bins: 10, heaps: [100, 10]}
"""


def rows(count=4000):
    rng = np.random.default_rng(5)
    a = rng.integers(0, 4, count)
    return pa.table({"a": a, "b": (a + rng.integers(0, 2, count)) % 6, "c": rng.integers(0, 5, count), "wage": 100 * a})


def release(method, epsilon=5.0, delta=1e-9, schema=SCHEMA):
    return hr.synthesize(
        rows(), hr.Schema.parse(schema), hr.Budget(epsilon, delta), method, unsafe_noise_seed=3, quality=0
    )


def test_groups_keep_what_they_hold_and_nothing_else():
    table = release(FieldGroups(groups=(("a", "b"),))).sample(3000)
    a, b = np.asarray(table["a"]), np.asarray(table["b"])
    assert ((b - a) % 6 <= 1).mean() > 0.99
    wage = np.asarray(table["wage"])
    assert (wage % 100 == 0).mean() > 0.99  # a column of two attributes is one group
    assert abs(np.corrcoef(a, wage)[0, 1]) < 0.1


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_all_groups_are_one_stack(delta):
    made = release(FieldGroups(groups=(("a", "b"),)), epsilon=1.0, delta=delta)
    _, stack = asked(made)
    assert [query["cells"] for query in stack.queries] == [24, 5, 33]  # 10 bins and a hidden one, 3 classes
    assert stack.mechanism == ("gaussian" if delta else "laplace")
    if not delta:
        assert stack.scale / stack.weights[0] == pytest.approx(3 / (0.98 * 0.99), rel=1e-6)  # b = groups / ε
    assert made.certificate.spent == made.certificate.whole


def test_a_number_of_rows_that_was_given_costs_nothing(tmp_path):
    """All of the budget after the look goes to the groups, and the release reads back."""
    made = hr.synthesize(rows(), hr.Schema.parse(SCHEMA), hr.Budget(1.0, 0.0), FieldGroups(), rows=250, quality=0)
    (stack,) = asked(made)
    assert made.certificate.spent == made.certificate.whole
    assert stack.scale == pytest.approx(4 / 0.98)  # b = groups / ε, as printed
    assert made.sample().num_rows == made.estimated_rows == 250
    made.save(tmp_path / "given.release")
    verify(tmp_path / "given.release")


@given(cells=st.integers(2, 10**8), threshold=st.floats(0.1, 4))
def test_both_noises_let_the_same_share_of_empty_cells_through(cells, threshold):
    method = FieldGroups(threshold=threshold)
    wanted = 0.5 * cells ** (-threshold / math.log(10))
    laplace = method.scales(cells, Noise("laplace", 39.0))
    gaussian = method.scales(cells, Noise("gaussian", 34.0))
    assert laplace == pytest.approx(threshold * math.log10(cells))
    assert 0.5 * math.exp(-laplace) == pytest.approx(wanted, rel=1e-6)
    assert 0.5 * math.erfc(gaussian / math.sqrt(2)) == pytest.approx(wanted, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_histogram_without_survivors_is_uniform_over_the_declared_domain(seed):
    domain = hr.Schema.parse(SCHEMA).encoding().domain
    nothing = np.zeros(0, dtype=np.int64)
    measurement = Measurement(MarginalQuery(domain, ("a", "b")), nothing, Noise("laplace", 39.0), nothing)
    parts = histogram(domain, measurement)
    assert [part.marginal for part in parts] == [("a",), ("b",)]
    assert all(len(set(part.weights)) == 1 for part in parts)


def test_an_empty_table_still_gives_rows():
    schema = hr.Schema.parse(SCHEMA)
    made = hr.synthesize(
        rows(0),
        schema,
        hr.Budget(0.1, 0.0),
        FieldGroups(groups=(("a", "b", "c"),), threshold=3.0),
        unsafe_noise_seed=3,
        quality=0,
    )
    assert len(made.sample(50)) == 50


def test_rows_out_follow_the_noisy_total():
    made = release(FieldGroups(), epsilon=8.0)
    assert abs(made.estimated_rows - 4000) < 200


def test_groups_from_a_file(tmp_path):
    path = tmp_path / "groups.yaml"
    path.write_text("- [a, b]\n- [c, wage]\n")
    assert build("field-groups", {"groups": str(path)}).groups == (("a", "b"), ("c", "wage"))


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ((("a", "b"), ("b", "c")), ("column-in-two-groups", '"b"')),
        ((("a", "bb"),), ("unknown-column", '"bb"')),
        ((("wage",), ("wage:heap", "a")), ("column-in-two-groups", '"wage:heap"')),
    ],
)
def test_bad_groups_cost_nothing(groups, says, tmp_path):
    from hedgerow.private.ledger import Ledger

    schema = "dataset: small\n" + SCHEMA
    ledger = tmp_path / "small.ledger"
    Ledger.create(ledger, "small", hr.Budget(2.0, 1e-8))
    with refused(*says) as told:
        hr.synthesize(
            rows(), hr.Schema.parse(schema), hr.Budget(1.0), FieldGroups(groups=groups), ledger=ledger, quality=0
        )
    assert "Nothing was spent" in str(told.value)
    assert len(Ledger(ledger).entries()) == 1  # the opening alone


def test_a_group_too_wide_for_noise_is_refused():
    wide = "columns:\n" + "".join(f"  c{n}: {{type: code, size: 10000}}\n" for n in range(3))
    table = pa.table({f"c{n}": [0, 1] for n in range(3)})
    with refused("too-many-cells", "1,000,000,000,000"):
        hr.synthesize(
            table, hr.Schema.parse(wide), hr.Budget(1.0), FieldGroups(groups=(("c0", "c1", "c2"),)), quality=0
        )


@pytest.mark.parametrize("text", ["-1", "nan", "many"])
def test_a_bad_threshold_is_refused(text):
    with refused("bad-option", '"threshold"'):
        build("field-groups", {"threshold": text})


@pytest.mark.parametrize("value", ["nowhere.yaml", 7, [["a", 3]], [[""]]])
def test_groups_that_are_no_lists_are_refused(value):
    with refused("cannot-read" if isinstance(value, str) else "not-a-list"):
        build("field-groups", {"groups": value})


def test_laws_hold_with_groups():
    check_method(FieldGroups(groups=(("grade", "age"), ("site", "flag"))))


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_sixteen_million_cells_never_stand_in_memory_whole(delta):
    import tracemalloc

    schema = hr.Schema.parse("columns:\n  a: {type: code, size: 4096}\n  b: {type: code, size: 4096}\n")
    table = pa.table({"a": [7] * 4000, "b": [9] * 4000})
    tracemalloc.start()
    made = hr.synthesize(
        table, schema, hr.Budget(1.0, delta), FieldGroups(groups=(("a", "b"),)), unsafe_noise_seed=3, quality=0
    )
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 4096 * 4096 / 2  # half of the histogram as counts
    assert held < 16 << 20
    assert (np.asarray(made.sample(100)["a"]) == 7).mean() > 0.5
