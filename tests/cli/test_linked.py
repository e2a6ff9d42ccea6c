"""Linked tables on the command line: from a folder to a folder, and what is not there yet says so."""

import json

import pyarrow.csv
import pyarrow.parquet
import pytest


@pytest.fixture
def clinic(hedgerow, tmp_path):
    done = hedgerow("example", "visits", "-o", "clinic", "--rows", 300)
    assert done.code == 0, done.err
    return tmp_path


def test_from_a_folder_to_a_folder(hedgerow, clinic):
    page = ("--report", "page.html", "--rows", 250)
    done = hedgerow("synth", "clinic", "-s", "clinic.yaml", "-e", 2, "-m", "mst", "-o", "made", *page, "-q")
    assert done.code == 0, done.err
    assert "250 made-up units" in (clinic / "page.html").read_text(encoding="utf-8")
    patients, visits = (
        pyarrow.csv.read_csv(clinic / "made" / f"{each}.csv").to_pandas() for each in ("patients", "visits")
    )
    assert patients.id.is_unique
    assert len(patients) == 250
    assert len(patients) == 250
    assert visits.patient.isin(patients.id).all()
    assert visits.groupby("patient").size().max() <= 10
    assert all(days.is_monotonic_increasing for _, days in visits.groupby("patient").day)
    assert hedgerow("verify", "made.release").code == 0
    done = hedgerow("sample", "made.release", "-o", "more", "--rows", 20, "-q")
    assert done.out == "more: 20 synthetic units; 1 part written now\n"
    assert pyarrow.parquet.read_table(clinic / "more" / "patients").num_rows == 20
    assert hedgerow("evaluate", "clinic", "more", "-s", "made.release", "-q").code == 0
    done = hedgerow("evaluate", "clinic", "made", "-s", "made.release", "-q")
    assert done.code == 0, done.err
    assert done.out.startswith("PRIVATE")
    assert "visits: " in done.out
    assert "0 orphans" in done.out
    question = "SELECT sex, AVG(cost) FROM patients JOIN visits ON patients.id = visits.patient GROUP BY sex"
    done = hedgerow("ask", "made.release", question, "--json")
    assert done.code == 0, done.err
    (answer,) = json.loads(done.out)["answers"]
    assert [row["group"] for row in answer["rows"]] == [{"sex": "f"}, {"sex": "m"}]
    done = hedgerow("ask", "made.release", question, "--minus", "made.release")
    assert done.code == 0, done.err
    done = hedgerow("ask", "made.release", "SELECT COUNT(*) FROM nobody")
    assert done.code == 2
    assert "patients, visits" in done.err
    for refused in (
        ("sample", "made.release", "-o", "more.csv"),
        ("ask", "made.release", "SELECT COUNT(*) FROM visits", "--confirm", "clinic", "-e", 1),
    ):
        done = hedgerow(*refused)
        assert done.code == 2
        assert "not-of-linked-tables" in done.err


REFUSED = {
    ("plan", "-e", 1, "--rows", 100): "not-for-linked-tables",
    ("synth", "clinic", "-e", 1, "-o", "x.csv"): "output-not-a-folder",
    ("synth", "clinic", "-e", 1, "-o", "x", "--stay"): "not-with-tables",
    ("synth", "clinic", "-e", 1, "-o", "x", "--dry-run"): "not-for-linked-tables",
    ("synth", "clinic", "-e", 1, "-o", "x", "-m", "aim"): "method-without-links",
    ("synth", "nowhere", "-e", 1, "-o", "x"): "no-such-folder",
}


def test_what_is_not_there_is_refused_before_anything_is_spent(hedgerow, clinic):
    for words, code in REFUSED.items():
        done = hedgerow(*words, "-s", "clinic.yaml")
        assert done.code == 2
        assert code in done.err
        assert "nothing was spent" in done.err
    assert not (clinic / "x.release").exists()
    assert not list(clinic.glob("x/*.csv"))


def test_one_table_whose_persons_are_kept(hedgerow, clinic):
    """A table in, a table out: the same persons' rows stand together, whatever command makes them."""
    patients, visits = (
        pyarrow.csv.read_csv(clinic / "clinic" / f"{each}.csv").to_pandas() for each in ("patients", "visits")
    )
    visits.merge(patients, left_on="patient", right_on="id").drop(columns="id").to_csv(clinic / "all.csv", index=False)
    columns = (clinic / "clinic.yaml").read_text(encoding="utf-8")
    declared = [line.strip() for line in columns.splitlines() if line.strip().endswith("}")]
    head = ["person: patient", "max_rows_per_person: 10", "keep: person", "person_columns: [sex, born]", "order: day"]
    schema = "\n".join([*head, "columns:", *(f"  {line}" for line in declared)])
    (clinic / "all.yaml").write_text(schema + "\n", encoding="utf-8")
    done = hedgerow("synth", "all.csv", "-s", "all.yaml", "-e", 2, "-m", "mst", "-o", "made.csv", "--report", "p.html")
    assert done.code == 0, done.err
    assert "made-up persons" in (clinic / "p.html").read_text(encoding="utf-8")
    for words in (
        ("sample", "made.release", "-o", "more.csv", "--rows", 20),
        ("ask", "made.release", "SELECT sex, AVG(cost) FROM visits GROUP BY sex"),
    ):
        done = hedgerow(*words)
        assert done.code == 0, (words, done.err)
    more = pyarrow.csv.read_csv(clinic / "more.csv").to_pandas()
    assert more.groupby("patient").born.nunique().max() == 1
    assert more.patient.nunique() == 20
    done = hedgerow("sample", "made.release", "-o", "parts", "--rows", 30)
    assert done.out == "parts: 30 synthetic persons with their rows; 1 part written now\n"
    assert set(
        pyarrow.parquet.read_table(clinic / "parts" / "part-000000.parquet").column("patient").to_pylist()
    ) == set(range(1, 31))
