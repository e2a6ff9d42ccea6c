"""An earlier release as what is believed beforehand: at no new charge, by value, and named in the certificate."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.release.bundle import verify
from hedgerow.run import Request
from refusals import refused

SCHEMA = """
columns:
  town: {type: category, values: [north, south, west]}
  kind: {type: category, values: [a, b, c]}
  born: {type: date, min: 1900-01-01, max: 2029-12-31}
"""
REORDERED = SCHEMA.replace("[north, south, west]", "[west, east, north, south]")


def people(rows, seed):
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 3, rows)
    kind = np.where(rng.random(rows) < 0.9, town, rng.integers(0, 3, rows))
    born = np.datetime64("1950-01-01") + rng.integers(0, 9000, rows) + 2000 * town
    return pa.table(
        {
            "town": np.array(["north", "south", "west"])[town],
            "kind": np.array(list("abc"))[kind],
            "born": pa.array(born),
        }
    )


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    path = tmp_path_factory.mktemp("earlier") / "2023.release"
    hr.synthesize(people(20_000, 1), hr.Schema.parse(SCHEMA), hr.Budget(2.0, 1e-6), quality=0).save(path)
    return path


def this_year(prior, text=SCHEMA, **words):
    return hr.synthesize(people(400, 2), hr.Schema.parse(text), hr.Budget(0.3, 1e-6), prior=prior, quality=0, **words)


def tied(table):
    """How often a town has its own kind."""
    own = dict(zip(["north", "south", "west"], "abc", strict=True))
    pairs = zip(table["town"].to_pylist(), table["kind"].to_pylist(), strict=True)
    return np.mean([own.get(town) == kind for town, kind in pairs])


def test_what_an_earlier_release_knew_is_known_again(earlier):
    """Codes stand in another order this year, and there is one town more."""
    assert tied(this_year(earlier, REORDERED, unsafe_noise_seed=1).sample(2000)) > 0.75
    assert tied(this_year(None, REORDERED, unsafe_noise_seed=1).sample(2000)) < 0.65


def test_the_certificate_names_it_and_it_costs_nothing(earlier, tmp_path):
    made = this_year(earlier)
    made.save(tmp_path / "2024.release")
    read, _ = verify(tmp_path / "2024.release")
    guarantee = hr.Release.load(earlier).certificate.guarantee
    digest = hashlib.sha256(earlier.read_bytes()).hexdigest()
    assert read.certificate.prior == {"sha256": digest, "epsilon": guarantee.epsilon, "delta": guarantee.delta}
    said = " ".join(read.certificate.statements())
    assert digest in said
    assert "pay for both" in said
    assert "public table" not in said
    assert read.certificate.guarantee.epsilon == this_year(None).certificate.guarantee.epsilon


def test_cuts_that_were_bought_are_used_again(earlier):
    """Last year paid for the cuts of dates; this year nothing does."""
    bought = hr.Release.load(earlier).schema
    assert bought.discovered == ["born"]
    made = this_year(earlier)
    assert made.schema.columns["born"].leaves == bought.columns["born"].leaves
    assert not made.certificate.discovered


def test_a_release_without_a_guarantee_is_refused(tmp_path):
    path = tmp_path / "void.release"
    schema = hr.Schema.parse(SCHEMA)
    hr.synthesize(people(500, 1), schema, hr.Budget(2.0, 1e-6), unsafe_noise_seed=1, quality=0).save(path)
    with refused("prior-without-guarantee"):
        this_year(path)
    request = Request(people(500, 1), schema, hr.Budget(2.0, 1e-6))
    request.checked().rehearsal(500).save(tmp_path / "rehearsed.release")
    with refused("prior-without-guarantee"):
        this_year(tmp_path / "rehearsed.release")


def test_a_prior_beside_a_public_table_and_one_without_a_column_are_refused(earlier):
    with refused("prior-and-public"):
        this_year(earlier, public=people(100, 3))
    with refused("prior-lacks-column"):
        hr.synthesize(
            people(100, 1).append_column("new", pa.array(["x"] * 100)),
            hr.Schema.parse(SCHEMA + "  new: {type: category, values: [x]}\n"),
            hr.Budget(1.0, 1e-6),
            prior=earlier,
        )


def test_a_certificate_that_names_no_release_is_refused(earlier):
    from hedgerow.release.certificate import Certificate

    stated = json.loads(json.dumps(this_year(earlier).certificate.to_json()))
    for changed in ({"sha256": "x"}, {"sha256": "0" * 64, "epsilon": 1.0, "delta": 0.0, "more": 1}):
        with pytest.raises((hr.HedgerowError, KeyError)):
            Certificate.from_json({**stated, "prior": changed})


def test_linked_tables_start_from_nothing(earlier):
    linked = """
tables:
  homes: {key: id, columns: {size: {type: code, size: 4}}}
  people: {parent: homes, link: home, max_per_parent: 2, columns: {sex: {type: code, size: 2}}}
"""
    with refused("not-with-tables"):
        hr.synthesize({}, hr.Schema.parse(linked), hr.Budget(1.0, 1e-6), "mst", prior=earlier)


def test_values_are_discovered_anew(earlier):
    """There may be new ones this year, and a list that lacks them would make misfits of them."""
    made = this_year(earlier, SCHEMA.replace("values: [a, b, c]", "values: private"), unsafe_noise_seed=1)
    assert made.certificate.discovered == ("kind",)
