"""Domains bought with budget: what is found, what it costs, and what is never let out."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.audit.method import Pair, replay_pair
from hedgerow.audit.replay import Violation
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.methods.independent import Independent
from hedgerow.private.bounding import Holders
from hedgerow.private.discovery import _consistent, _dyadic
from hedgerow.release.bundle import verify
from looking import asked
from refusals import refused

SCHEMA = """
dataset: shops
person: id
max_rows_per_person: 3
columns:
  city: {type: category, values: private}
  spent: {type: number, min: 0, max: 1000, bins: private, missing: true}
  visits: {type: integer, min: 0, max: 40, bins: private}
"""


def table(people=6000, seed=0, canary=None):
    rng = np.random.default_rng(seed)
    rows = people * 2
    city = np.array(["Ghent", "Lyon", "Turin", "Graz"])[rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])].tolist()
    spent = np.round(rng.exponential(30, rows), 2).tolist()
    visits = rng.poisson(4, rows).tolist()
    person = [f"p{number // 2}" for number in range(rows)]
    for row in canary or []:
        person.append("canary"), city.append(row[0]), spent.append(row[1]), visits.append(row[2])
    columns = {"id": person, "city": pa.array(city, pa.string()), "spent": pa.array(spent, pa.float64())}
    return pa.table({**columns, "visits": pa.array(visits, pa.int64())})


def test_common_values_are_found_rare_ones_become_other_and_bins_follow_the_data(tmp_path):
    canary = [("Atlantis", None, 10**6)] * 9
    release = hr.synthesize(table(canary=canary), hr.Schema.parse(SCHEMA), hr.Budget(5.0), "independent")
    columns = release.schema.to_dict()["columns"]
    assert columns["city"]["values"] == ["Ghent", "Graz", "Lyon", "Turin"]
    assert columns["city"]["discovered"]
    edges = np.array(columns["spent"]["bins"])
    assert len(edges) > 5
    assert np.median(edges) < 60, "quantile bins crowd where the rows are, not evenly up to 1000"
    assert release.certificate.spent == release.certificate.whole
    assert [charge.purpose for charge in asked(release)] == ["discover", "measure", "measure", "measure"]
    release.save(tmp_path / "x.release")
    assert b"Atlantis" not in (tmp_path / "x.release").read_bytes()
    _, confirmed = verify(tmp_path / "x.release")
    assert any("the guarantee is that of the whole budget" in line for line in confirmed)
    drawn = release.sample(2000).to_pydict()
    assert set(drawn["city"]) <= {"Ghent", "Graz", "Lyon", "Turin", "other"}
    assert release.certificate.guarantee.delta == 1e-9
    assert 0 < release.certificate.spent.delta <= 1.001e-10


def test_open_categories_need_delta_and_say_why():
    with refused("discovery-needs-delta", '"city"'):
        hr.synthesize(table(50), hr.Schema.parse(SCHEMA), hr.Budget(1.0, 0.0))
    bins_only = hr.Schema.parse(SCHEMA.replace("values: private", "values: [Ghent, Lyon], other: true"))
    assert hr.synthesize(table(500), bins_only, hr.Budget(1.0, 0.0)).guarantee.delta == 0


def test_a_value_of_one_person_is_kept_back():
    """δ = 1e-9 of a thousandth of a chance: in 30 runs at a huge ε it must never come through."""
    schema = hr.Schema.parse(SCHEMA)
    for seed in range(5):
        release = hr.synthesize(
            table(100, seed, canary=[("Atlantis", 1.0, 1)] * 3), schema, hr.Budget(50.0), "independent"
        )
        assert "Atlantis" not in release.schema.to_dict()["columns"]["city"]["values"]


def test_discoveries_pass_the_replay_audit():
    for canary in ([("Atlantis", 1.0, 1)] * 8, [("Lyon", None, None)], [("a", -5.0, 99), ("b", 2e9, -1), ("c", 0, 0)]):
        pair = Pair("discovery", table(40, canary=canary), table(40))
        replayed = replay_pair(Independent(), hr.Budget(1.0), pair, SCHEMA)
        assert all(ratio <= 1 + 1e-9 for ratio in replayed.ratios)


def test_a_discovery_that_ignores_the_bound_on_values_is_caught(monkeypatch):
    honest = Holders.per_value
    monkeypatch.setattr(Holders, "per_value", lambda self, most, key: honest(self, 10**6, key))
    canary = [(f"city {number}", 1.0, 1) for number in range(8)]
    with pytest.raises(Violation, match="declares the sensitivity"):
        replay_pair(Independent(), hr.Budget(1.0), Pair("values", table(40, canary=canary), table(40)), SCHEMA)


def test_a_person_counts_for_at_most_so_many_values_and_no_one_elses_matter():
    def counts(extra):
        holders = Holders()
        people = ["a"] * 5 + ["b"] * 2 + [None, None] + extra
        values = ["v", "w", "x", "y", "v", "v", "w", "v", "v"] + ["v"] * len(extra)
        holders.add(pa.array(values, pa.string()), pa.array(people, pa.string()))
        return holders.per_value(2, b"key")

    first = counts([])
    assert sum(first.values()) == 2 + 2  # of nobody none
    second = counts(["c"])
    assert second["v"] == first["v"] + 1
    assert {k: v for k, v in second.items() if k != "v"} == {k: v for k, v in first.items() if k != "v"}


def test_consistent_dyadic_counts_reproduce_exact_ones_and_average_noisy_ones():
    domain = hr.Schema.parse("columns: {x: {type: number, min: 0, max: 1, bins: 16}}").encoding().domain
    queries = _dyadic(domain, 16)
    assert [query.cells for query in queries] == [2, 4, 8, 16]
    rng = np.random.default_rng(0)
    exact = rng.integers(0, 100, domain["x"].size)
    exact[16:] = 0
    noise = Noise("gaussian", 1.0)
    levels = [Measurement(query, query.aggregate(exact).astype(np.int64), noise) for query in queries]
    assert _consistent(levels) == pytest.approx(exact[:16])
    # least squares: compare with the plain solution
    noisy = [Measurement(m.query, m.values + rng.integers(-5, 6, len(m.values)), noise) for m in levels]
    design = np.vstack([np.kron(np.eye(1 << (k + 1)), np.ones(1 << (3 - k))) for k in range(4)])
    plain = np.linalg.lstsq(design, np.concatenate([m.values for m in noisy]), rcond=None)[0]
    assert _consistent(noisy) == pytest.approx(plain)


def test_a_dry_run_states_what_discoveries_will_cost(hedgerow, tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    done = hedgerow("synth", "unopened.csv", "-s", "s.yaml", "-e", 1, "-m", "independent", "--dry-run", "--json")
    assert done.code == 0, done.err
    charges = done.json["charges"]
    assert [charge["purpose"] for charge in charges] == ["look", "discover", "measure", "measure", "measure"]
    assert [charge["share"] for charge in charges] == pytest.approx([0.02, 0.049, 0.049, 0.049, 0.833])


def test_a_table_that_cannot_be_read_is_refused_before_a_discovery_is_paid_for(hedgerow, tmp_path):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    hedgerow("ledger", "create", "l", "--dataset", "shops", "--epsilon", 2)
    bad = {"open.csv": 'id,city,spent,visits\na,"b,1,2\n', "ragged.csv": "id,city,spent,visits\na,b,1,2\na,b\n"}
    for name, text in bad.items():
        (tmp_path / name).write_text(text)
        done = hedgerow("synth", name, "-s", "s.yaml", "-e", 1, "-o", "o.csv", "--ledger", "l")
        assert done.code == 2, done.err
        assert (tmp_path / "l").read_text().count("debit") == 0


def test_a_reader_that_can_be_read_once_is_enough():
    reader = table(200).to_reader()
    assert hr.synthesize(reader, hr.Schema.parse(SCHEMA), hr.Budget(1.0)).guarantee is not None
