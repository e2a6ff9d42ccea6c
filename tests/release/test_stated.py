"""What a release says of its guarantee: that of the whole budget, and nothing that tells of other releases."""

import hashlib
import json
import shutil
import zipfile
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.budget.accounting import guarantee, whole
from hedgerow.budget.amounts import Budget
from hedgerow.cli.verify import verify as verify_command
from hedgerow.methods.method import About
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.models.histograms import Histograms, Part, project_to_simplex
from hedgerow.pages.release import release_page
from hedgerow.private.ledger import Ledger, confirm_entry
from hedgerow.release import editions
from hedgerow.release.bundle import verify
from hedgerow.release.certificate import second_opinion
from refusals import refused
from repository import EDITIONS

SCHEMA = hr.Schema.parse("dataset: people\ncolumns: {a: {type: code, size: 3}, b: {type: code, size: 2}}")
FIRST = EDITIONS / "first.release"
"""Half of ε = 1 was spent, and a ledger debited, by a version that stated ε = 0.696 and an entry number."""


@dataclass(frozen=True)
class StopsEarly:
    """Stops when the first answer looks large enough: what it spends depends on the data."""

    spends: float = 0.5

    about: ClassVar[About] = About("stops", "Stops early", "Stops.", "One stack of counts.", "None.")

    def run(self, curator, progress) -> Histograms:
        columns = measure_one_ways(curator, curator.remaining.share(self.spends))
        total = max(1.0, columns[0].total)
        counts = [project_to_simplex(column.values.astype(float), total) for column in columns]
        parts = [Part((name,), count) for name, count in zip(curator.domain.names, counts, strict=True)]
        return Histograms(curator.domain, parts, total)


def table(rows=600):
    rng = np.random.default_rng(0)
    return pa.table({"a": rng.integers(0, 3, rows), "b": rng.integers(0, 2, rows)})


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_a_run_that_stops_early_states_the_guarantee_of_all_that_it_was_given(tmp_path, delta, capsys):
    """Smith and Thakurta's filter bounds the whole; what was spent is chosen by answers, and no bound by itself."""
    budget = hr.Budget(1.0, delta)
    release = hr.synthesize(table(), SCHEMA, budget, StopsEarly(), quality=0)
    stated = guarantee(whole(budget), delta)
    assert release.certificate.spent.units < release.certificate.whole.units
    assert release.guarantee == stated
    assert stated.epsilon == pytest.approx(1.0, rel=1e-6)
    assert release.certificate.to_json()["guarantee"]["epsilon"] == stated.epsilon
    assert str(stated) in release.certificate.statements()[0]
    assert any("when to stop may depend on the answers" in said for said in release.certificate.statements())
    page = release_page(release)
    assert "(1, " in page
    assert "0.69" not in page.split("Where the budget went")[0]
    release.save(tmp_path / "x.release")
    loaded, confirmed = verify(tmp_path / "x.release")
    assert loaded.guarantee == stated
    assert any(f"that of the whole budget: {stated}" in line for line in confirmed)
    verify_command(tmp_path / "x.release", json_=True)
    assert json.loads(capsys.readouterr().out)["guarantee"]["epsilon"] == stated.epsilon
    assert second_opinion(loaded.certificate) == pytest.approx(stated.epsilon, rel=2e-3)


def test_a_certificate_cannot_state_the_smaller_guarantee_of_what_was_spent(tmp_path):
    release = hr.synthesize(table(), SCHEMA, hr.Budget(1.0), StopsEarly(), quality=0)
    release.save(tmp_path / "x.release")
    smaller = guarantee(release.certificate.spent, 1e-9)

    def change(stated):
        stated["guarantee"].update(epsilon=smaller.epsilon, mu=smaller.mu)

    edit(tmp_path / "x.release", change)
    with refused("certificate-not-recomputed", '"guarantee"'):
        verify(tmp_path / "x.release")


def test_a_certificate_of_the_first_edition_is_read_and_its_charges_hold_but_not_its_epsilon(tmp_path, capsys):
    loaded, confirmed = verify(FIRST)
    assert loaded.certificate.to_json()["guarantee"]["epsilon"] == pytest.approx(0.696, abs=1e-3)
    assert loaded.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    assert any("first edition, states (0.696069, 1e-09)" in line and "do not quote" in line for line in confirmed)
    said = " ".join(loaded.certificate.statements())
    assert "(1, 1e-09)-differential privacy" in said
    assert "the guarantee above is the one that holds" in said
    assert "entry" not in said
    verify_command(FIRST, json_=True)
    assert json.loads(capsys.readouterr().out)["guarantee"]["epsilon"] == loaded.guarantee.epsilon
    loaded.save(tmp_path / "again.release")
    assert verify(tmp_path / "again.release")[0].guarantee == loaded.guarantee
    assert loaded.sample(10).num_rows == 10


def test_a_certificate_of_the_first_edition_is_still_checked(tmp_path):
    copy = tmp_path / "first.release"
    shutil.copy(FIRST, copy)
    edit(copy, lambda stated: stated["guarantee"].update(epsilon=0.1))
    with refused("certificate-not-recomputed", '"guarantee"'):
        verify(copy)


def edit(path, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    stated = json.loads(members["certificate.json"])
    change(stated)
    members["certificate.json"] = json.dumps(stated, ensure_ascii=False, indent=1).encode()
    listed = {n: hashlib.sha256(d).hexdigest() for n, d in members.items() if n != "manifest.json"}
    members["manifest.json"] = json.dumps(listed, indent=1).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, data)


# ---------------------------------------------------------------- the ledger


def test_a_release_does_not_tell_how_many_came_before_it(tmp_path):
    """The threat page calls the number of releases sensitive; the n-th entry of a ledger gives it away."""
    ledger = Ledger.create(tmp_path / "people.ledger", "people", Budget(9.0, 1e-8))
    for _ in range(2):
        release = hr.synthesize(table(), SCHEMA, hr.Budget(1.0), "independent", ledger=ledger.path)
    named = release.certificate.ledger
    assert set(named) == {"dataset", "hash"}
    assert "entry" not in json.dumps(release.certificate.to_json())
    assert "entry 2" not in release_page(release)
    assert "holds the record" in confirm_entry(ledger.path, named)
    assert "holds the record" in confirm_entry(ledger.path, {**named, "entry": 2})  # as the first edition named it


# ---------------------------------------------------------------- guarantees that promise nothing


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (1.0, 0.9, ["δ = 0.9 promises next to nothing"]),
        (1.0, 0.01, ["δ = 0.01 promises next to nothing"]),
        (1e3, 1e-9, ["ε = 1000 promises next to nothing"]),
        (50.0, 0.5, ["ε = 50 promises", "δ = 0.5 promises"]),
        (10.0, 1e-4, []),
        (1.0, 0.0, []),
    ],
)
def test_a_budget_that_promises_nothing_says_so(epsilon, delta, said):
    doubts = Budget(epsilon, delta).doubts()
    assert len(doubts) == len(said)
    assert all(doubt.startswith(words) for doubt, words in zip(doubts, said, strict=True))


def test_a_doubtful_guarantee_is_doubted_before_it_is_paid_for_and_wherever_it_is_stated(tmp_path, hedgerow):
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    asked = ("synth", "t.parquet", "-s", "s.yaml", "-m", "independent", "-e", 1, "-o", "o.csv", "--report", "o.html")
    done = hedgerow(*asked, "--delta", "0.9")
    assert done.code == 0, done.err
    assert done.err.index("warning: δ = 0.9 promises next to nothing") < done.err.index("measure every column")
    assert "warning: δ = 0.9 is more than 1 divided by the estimated number of rows" in done.err
    page = (tmp_path / "o.html").read_text()
    assert "δ = 0.9 promises next to nothing" in page
    assert "δ = 0.9 is more than 1 divided by" in page
    assert "δ = 0.9 promises next to nothing" in hedgerow("verify", "o.release").out
    assert hedgerow(*asked, "--delta", "1", "--overwrite").code == 2


def test_delta_is_measured_against_the_estimated_number_of_rows():
    many = hr.synthesize(table(5000), SCHEMA, hr.Budget(5.0, 5e-4), "independent")
    assert not many.certificate.budget.doubts()
    assert len(many.doubts) == 1
    assert not hr.synthesize(table(100), SCHEMA, hr.Budget(5.0, 5e-4), "independent").doubts


def test_a_release_whose_wide_integers_had_a_cell_each_is_read_as_it_was_meant(tmp_path):
    """Before wide integers were cut, up to 10,000 values had a cell each, and the schema did not say so."""
    table = pa.table({"n": [0, 500, 999, 7]})
    release = hr.synthesize(
        table, hr.Schema(columns={"n": {"type": "integer", "min": 0, "max": 999, "bins": 1000}}), hr.Budget(9.0)
    )
    release.schema = editions.schema_of({"columns": {"n": {"type": "integer", "min": 0, "max": 999}}})
    release.save(tmp_path / "old.release")
    again, _ = verify(tmp_path / "old.release")
    assert again.sample(20).equals(release.sample(20))
    assert again.schema.to_dict() == {"columns": {"n": {"type": "integer", "min": 0, "max": 999}}}
    assert again.encoding.domain["n"].size == 1001
