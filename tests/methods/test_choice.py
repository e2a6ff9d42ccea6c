"""A private choice among methods: it keeps every law of a method, and takes the nearer one."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow import methods
from hedgerow.audit import check_method
from hedgerow.methods.choice import CHOOSING_SHARE, Choice
from hedgerow.release.bundle import verify
from refusals import refused

CODES = hr.Schema.from_dict({"a": 3, "b": 3, "c": 2})


def table(rows=20_000):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, rows)
    return pa.table({"a": a, "b": (a + (rng.random(rows) < 0.05)) % 3, "c": rng.integers(0, 2, rows)})


def test_it_keeps_every_law_of_a_method():
    check_method(Choice([methods.build("independent"), methods.build("mst")]))


@pytest.mark.parametrize("names", ["independent,mst", "mst,independent"])
def test_the_one_that_holds_the_relation_is_taken(names, tmp_path):
    made = hr.synthesize(table(), CODES, hr.Budget(1.0), names, unsafe_noise_seed=1)
    *_, choice, quality = made.certificate.charges
    assert (choice.purpose, quality.purpose) == ("select", "quality")
    assert made.answers[-2].chosen == {"method": "mst"}
    assert choice.queries[0]["of"] == names.split(",")
    assert made.certificate.method["name"] == names
    assert [each["name"] for each in made.certificate.method["options"]["among"]] == names.split(",")
    assert choice.amount.value == pytest.approx(CHOOSING_SHARE * 0.95 * made.certificate.whole.value, rel=1e-6)
    assert made.quality.mean_pair.value < 0.1
    made.save(tmp_path / "x.release")
    verify(tmp_path / "x.release")


def test_each_gets_an_equal_part():
    made = hr.synthesize(table(), CODES, hr.Budget(1.0), "independent,mst", quality=0)
    spent = [charge.amount.value for charge in made.certificate.charges]
    alone = hr.synthesize(table(), CODES, hr.Budget(1.0), "independent", quality=0).certificate
    first = spent[: len(alone.charges)]
    assert sum(first) == pytest.approx((1 - CHOOSING_SHARE) / 2 * alone.whole.value)
    assert made.certificate.spent == made.certificate.whole


@pytest.mark.parametrize("names", ["mst,mst", "mst,", "mst,nothing"])
def test_choices_that_are_none_are_refused(names):
    with refused("bad-choice" if names == "mst,mst" else "unknown-method", "No row was read"):
        hr.synthesize(table(), CODES, hr.Budget(1.0), names)


def test_books_of_another_kind_are_refused():
    with refused("bad-choice"):
        Choice([methods.build("mst"), methods.build("hedge", {"accounting": "zcdp"})])
