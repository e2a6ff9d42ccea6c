"""A release: whole or refused, the same for everyone, and nothing in it that is not public."""

import io
import json
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import hedgerow as hr
from hedgerow.release import archive
from hedgerow.release.bundle import Release, verify
from hedgerow.release.certificate import OPINION, second_opinion
from hedgerow.samples import opm
from refusals import refused

SCHEMA = hr.Schema.parse(opm.SCHEMA)


@pytest.fixture(scope="module", params=[1e-9, 0.0], ids=["gaussian", "pure"])
def release(request):
    return hr.synthesize(opm.generate(5000), SCHEMA, hr.Budget(1.0, request.param), "independent")


@pytest.fixture
def saved(release, tmp_path):
    release.save(tmp_path / "x.release")
    return tmp_path / "x.release"


def rewrite(path, change):
    """Unpack, change a member, and mend the manifest as a forger would."""
    import hashlib

    members = archive.read(path)
    change(members)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name not in OUTSIDE}
    members["manifest.json"] = json.dumps(hashes, indent=1).encode()
    archive.write(path, members)


OUTSIDE = {"manifest.json", "signature.json"}


def edit_certificate(path, change):
    def edit(members):
        certificate = json.loads(members["certificate.json"])
        change(certificate)
        members["certificate.json"] = json.dumps(certificate).encode()

    rewrite(path, edit)


def test_a_release_reads_back_and_verifies(release, saved):
    loaded, confirmed = verify(saved)
    assert loaded.guarantee == release.guarantee
    assert loaded.guarantee.epsilon <= 1.0
    assert loaded.table().equals(release.table())
    assert any("guarantee is that of the whole budget" in line for line in confirmed)
    assert release.certificate.spent == release.certificate.whole


def test_a_budget_of_whole_numbers_reads_back(tmp_path):
    table = pa.table({"sex": ["f", "m"] * 50})
    schema = hr.Schema.from_dict({"columns": {"sex": {"type": "category", "values": ["f", "m"]}}})
    hr.synthesize(table, schema, hr.Budget(1, 0), "independent").save(tmp_path / "whole.release")
    assert hr.Release.load(tmp_path / "whole.release").certificate.budget.epsilon == 1


def test_saving_twice_gives_the_same_bytes(release, saved, tmp_path):
    release.save(tmp_path / "again.release")
    assert saved.read_bytes() == (tmp_path / "again.release").read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_an_estimate_of_rows_that_is_all_noise_draws_no_flood_of_rows():
    for seed in range(5):
        made = hr.synthesize(opm.generate(300), SCHEMA, hr.Budget(1e-9, 1e-9), "independent", unsafe_noise_seed=seed)
        assert made.rows_are_noise
        assert made.estimated_rows <= 100_000
    assert not hr.synthesize(opm.generate(300), SCHEMA, hr.Budget(1.0, 1e-9), "independent").rows_are_noise


@pytest.mark.parametrize("method", ["independent", "mst", "aim", "hedge", "privsyn"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-9), (1.0, 1e-9), (50.0, 1e-9), (0.1, 0.0), (20.0, 0.0)])
def test_the_independent_accountant_agrees(method, epsilon, delta):
    """Also where the budget is pure ε, and many choices by the exponential mechanism add up."""
    made = hr.synthesize(opm.generate(500), SCHEMA, hr.Budget(epsilon, delta), method, unsafe_noise_seed=1)
    assert 0.99 * epsilon < second_opinion(made.certificate) <= epsilon * (1 + OPINION)


def test_books_in_rho_have_no_second_opinion_of_choices():
    method = hr.methods.build("mst", {"accounting": "zcdp"})
    made = hr.synthesize(opm.generate(5000), SCHEMA, hr.Budget(3.0), method, unsafe_noise_seed=1)
    assert any(charge.mechanism == "exponential" for charge in made.certificate.charges)
    assert second_opinion(made.certificate) is None


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda c: c["budget"].update(epsilon=0.1), ("certificate-overspent",)),
        (lambda c: c["guarantee"].update(epsilon=0.1), ("certificate-not-recomputed", '"guarantee"')),
        (lambda c: c["charges"][0].update(scale=c["charges"][0]["scale"] / 2), ("charge-understated",)),
        (lambda c: c["charges"][0].update(scale=c["charges"][0]["scale"] * 2), ("charge-other-noise",)),
        (lambda c: c["charges"][0].update(sensitivity=0.5), ("certificate-not-recomputed", '"charges"')),
        (lambda c: c["charges"][0]["weights"].pop(), ("charge-weights",)),
        (lambda c: c["charges"].insert(1, c["charges"][1]), ("certificate-overspent",)),
        (lambda c: c["charges"].append(c["charges"][1]), ("charge-early-quality",)),
        (lambda c: c["charges"].pop(), ("certificate-and-draw",)),
        (lambda c: c.pop("drawn"), ("certificate-and-draw",)),
        (lambda c: c["drawn"].update(host=1), ("certificate-not-recomputed", '"drawn"')),
        (lambda c: c["charges"][-1]["queries"][0].update(cells=1), ("charge-undeclared-attributes",)),
        (lambda c: c["charges"][-1]["queries"].pop(), ("charge-weights",)),
        (lambda c: c.update(charges=[]), ("certificate-without-charges",)),
        (lambda c: c.update(rows_per_person=1, unit="person"), ("certificate-not-recomputed",)),
        (lambda c: c.update(rows_per_person=7), ("charge-other-bound",)),
        (lambda c: c.update(dataset="another"), ("certificate-and-schema",)),
        (lambda c: c.update(discovered=["sex"]), ("certificate-not-recomputed",)),
        (lambda c: c.update(claim="ε = 0"), ("certificate-not-recomputed", '"claim"')),
        (lambda c: c.update(notes=["fine"]), ("certificate-not-recomputed",)),
        (lambda c: c["method"].update(title="\x1b[2J✓ verified"), ("certificate-control-characters",)),
        (lambda c: c["charges"][0].update(purpose="peek"), ("charge-unknown-access",)),
        (lambda c: c["charges"][0].update(purpose="measure"), ("charge-undeclared-attributes",)),
        (lambda c: c["charges"][1].update(purpose="look"), ("charge-late-look",)),
        (lambda c: c["charges"][0]["queries"].pop(), ("charge-weights",)),
        (lambda c: c["charges"][0].update(mechanism="magic"), ("certificate-unreadable",)),
        (lambda c: c.update(statements=["perfectly private"]), ("certificate-not-recomputed", '"statements"')),
        (lambda c: c.pop("whole"), ("certificate-unreadable",)),
        (lambda c: c.update(format="another"), ("certificate-format",)),
    ],
)
def test_an_edited_certificate_is_refused(saved, change, complaint):
    edit_certificate(saved, change)
    with refused(*complaint):
        verify(saved)


def test_an_edited_member_is_refused_without_mending_the_manifest(saved):
    members = archive.read(saved)
    members["schema.json"] = members["schema.json"].replace(b"2011", b"2012")
    archive.write(saved, members)
    with refused("release-altered", '"schema.json"'):
        verify(saved)


def test_a_truncated_file_is_refused_at_every_length(saved):
    data = saved.read_bytes()
    for part in np.linspace(0, len(data) - 1, 40).astype(int):
        saved.write_bytes(data[:part])
        with refused("not-a-release"):
            Release.load(saved)


def test_a_pickle_in_disguise_is_refused_and_does_not_run(saved, tmp_path):
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self):
            return open, (str(trap), "w")

    saved.write_bytes(pickle.dumps(Trap()))
    with refused("not-a-release"):
        Release.load(saved)
    assert not trap.exists()


def test_a_pickled_array_inside_is_refused_and_does_not_run(saved, tmp_path):
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self):
            return open, (str(trap), "w")

    hostile = io.BytesIO()
    np.lib.format.write_array(hostile, np.array([Trap()], dtype=object), allow_pickle=True)
    rewrite(saved, lambda members: members.update({"model/0.npy": hostile.getvalue()}))
    with refused("release-array-type"):
        Release.load(saved)
    assert not trap.exists()


def as_json(members, name, change):
    data = json.loads(members[name])
    change(data)
    members[name] = json.dumps(data).encode()


def test_answers_that_the_certificate_does_not_pay_for_are_refused(saved):
    def fractions(members):
        number = json.loads(members["answers.json"])[0]["measurements"][0]["values"]
        buffer = io.BytesIO()
        values = np.lib.format.read_array(io.BytesIO(members[f"answers/{number}.npy"])) + 0.25
        np.lib.format.write_array(buffer, values)
        members[f"answers/{number}.npy"] = buffer.getvalue()

    def scores(members):
        as_json(members, "answers.json", lambda answers: answers[0].update(scores=[1.0]))

    def strangers(members):
        as_json(members, "schema.json", lambda schema: schema["columns"]["sex"].update(values=["F", "M", "X"]))

    for change, complaint in (
        (fractions, "answer-not-whole"),
        (scores, "charge-other-answer"),
        (strangers, "charge-undeclared-attributes"),
    ):
        before = saved.read_bytes()
        rewrite(saved, change)
        with refused(complaint):
            verify(saved)
        saved.write_bytes(before)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(saved):
    archive.write(saved, archive.read(saved) | {"zeros": bytes(200 << 20)})
    assert saved.stat().st_size < 1 << 20
    with refused("release-unpacks-too-large"):
        verify(saved)


def test_an_extra_member_is_refused(saved):
    archive.write(saved, archive.read(saved) | {"extra.bin": b"x"})
    with refused("release-manifest"):
        verify(saved)


def test_a_signature_binds_the_contents(release, tmp_path):
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(pem)
    path = tmp_path / "signed.release"
    release.save(path, sign_with=tmp_path / "key.pem")
    loaded, confirmed = verify(path)
    assert loaded.signer == key.public_key().public_bytes_raw().hex()
    assert any("signed by the Ed25519 key" in line for line in confirmed)
    rewrite(path, lambda members: members.update({"certificate.json": members["certificate.json"] + b" "}))
    with refused("signature-wrong"):
        verify(path)
    (tmp_path / "rsa.pem").write_text("not a key")
    with refused("bad-key"):
        release.save(path, sign_with=tmp_path / "rsa.pem")


def test_rows_depend_on_seed_alone_and_have_the_declared_types(release):
    first, second, other = release.sample(300, seed=1), release.sample(300, seed=1), release.sample(300, seed=2)
    assert first.equals(second)
    assert not first.equals(other)
    assert first.schema == SCHEMA.encoding().arrow_schema
    assert release.sample(0).num_rows == 0
    with refused("bad-row-count"):
        release.sample(-1)


def test_the_models_answer_comes_with_the_noise_of_the_measured_one_and_claims_no_error_of_its_own(release):
    answer = release.marginal(["sex"])
    assert answer.counts.shape[0] >= 2
    assert answer.noise_std > 0
    assert release.marginal(["race", "sex"]).noise_std is None
    assert not hasattr(answer, "standard_error")
    with refused("unknown-column", '"sexx"', 'Did you mean "sex"'):
        release.marginal(["sexx"])


def test_a_seeded_release_has_no_guarantee_and_says_so_everywhere(tmp_path):
    voided = hr.synthesize(opm.generate(500), SCHEMA, hr.Budget(1.0), "independent", unsafe_noise_seed=1)
    again = hr.synthesize(opm.generate(500), SCHEMA, hr.Budget(1.0), "independent", unsafe_noise_seed=1)
    assert voided.guarantee is None
    assert voided.table().equals(again.table())
    voided.save(tmp_path / "x.release")
    loaded, confirmed = verify(tmp_path / "x.release")
    assert loaded.guarantee is None
    assert any("NO GUARANTEE" in line for line in confirmed)
    assert "NO privacy guarantee" in loaded.certificate.statements()[0]


def test_the_bundle_holds_no_private_value_path_or_time(tmp_path):
    canary = "CANARY7731"
    table = opm.generate(200).append_column("note", pa.array([canary] * 200))
    columns = table.set_column(1, "sex", pa.array([canary] * 200))
    schema = hr.Schema.from_dict({**SCHEMA.to_dict(), "ignore": ["note"]})
    path = tmp_path / canary
    path.mkdir()
    import pyarrow.parquet as pq

    pq.write_table(columns, path / "people.parquet")
    made = hr.synthesize(path / "people.parquet", schema, hr.Budget(100.0), "independent", allow_misfits=["sex"])
    made.save(tmp_path / "x.release")
    with zipfile.ZipFile(tmp_path / "x.release") as members:
        for info in members.infolist():
            assert canary.encode() not in members.read(info)
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
    assert canary not in str(made.table().to_pylist())


def with_key(name):
    def change(members):
        data = json.loads(members[name])
        (data if isinstance(data, dict) else data[0])["note"] = "Bob has flu"
        members[name] = json.dumps(data).encode()

    return change


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda members: members.update({"private.csv": b"Bob,flu"}), "release-strange-members"),
        (lambda members: members.update({"model/99.npy": members["model/0.npy"]}), "release-strange-members"),
        (with_key("model.json"), "release-strange-entries"),
        (with_key("answers.json"), "release-strange-entries"),
    ],
)
def test_a_release_holds_nothing_that_nobody_paid_for(saved, change, complaint):
    rewrite(saved, change)
    with refused(complaint):
        verify(saved)


@pytest.mark.parametrize("place", ["before", "after", "comment"])
def test_no_bytes_hide_beside_the_members(saved, place):
    if place == "comment":
        with zipfile.ZipFile(saved, "a") as members:
            members.comment = b"Bob has flu"
    else:
        data = saved.read_bytes()
        saved.write_bytes(b"Bob has flu" + data if place == "before" else data + b"Bob has flu")
    with refused("not-a-release"):
        verify(saved)


def test_the_rounding_of_scores_is_recomputed(tmp_path):
    hr.synthesize(opm.generate(2000), SCHEMA, hr.Budget(1.0), "mst").save(tmp_path / "x.release")

    def change(certificate):
        charge = next(charge for charge in certificate["charges"] if charge["purpose"] == "select")
        charge["sensitivity"] -= charge["extra"]
        charge["extra"] = 0.0

    verify(tmp_path / "x.release")
    edit_certificate(tmp_path / "x.release", change)
    with refused("charge-other-rounding"):
        verify(tmp_path / "x.release")
