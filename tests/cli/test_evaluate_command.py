"""hedgerow evaluate as a user meets it."""

import json

import pyarrow.parquet as pq
import pytest

from hedgerow.samples import opm

CANARY = "Zaphod-7731"


@pytest.fixture
def tables(tmp_path):
    """Two tables and their schema."""
    pq.write_table(opm.generate(600, seed=0), tmp_path / "real.parquet")
    pq.write_table(opm.generate(500, seed=1), tmp_path / "synthetic.parquet")
    (tmp_path / "people.yaml").write_text(opm.SCHEMA)
    return tmp_path


def evaluate(hedgerow, *words, schema="people.yaml"):
    return hedgerow("evaluate", "real.parquet", "synthetic.parquet", "-s", schema, *words)


def test_words_start_with_private(hedgerow, tables):
    done = evaluate(hedgerow, "-q")
    assert done.code == 0, done.err
    assert done.out.startswith("PRIVATE")
    assert "600 real rows, 500 synthetic rows" in done.out
    assert done.err == ""
    assert "svm" not in done.out


def test_json_is_one_object_marked_private(hedgerow, tables):
    done = evaluate(hedgerow, "--json", "--target", "sex", "--seed", 5)
    assert done.code == 0, done.err
    report = done.json
    assert report["private"] is True
    assert {"tvd1", "tvd2", "tvd3", "k_marginal", "range3", "range5", "svm", "svm_real"} <= set(report)
    assert report["seed"] == 5
    few = evaluate(hedgerow, "--json", "--metrics", "tvd1, tvd3").json
    assert (few["tvd1"], few["tvd3"]) == (report["tvd1"], report["tvd3"])
    assert "tvd2" not in few


def test_values_are_said_in_words_and_what_does_not_fit_is_named(hedgerow, tmp_path):
    (tmp_path / "real.csv").write_text("\n".join(["x", *(str(i) for i in range(400)), "much"]))
    (tmp_path / "made.csv").write_text("\n".join(["x", *(str(2 * i) for i in range(400))]))
    (tmp_path / "x.yaml").write_text("columns: {x: {type: integer, min: 0, max: 1000, bins: 3}}")
    done = hedgerow("evaluate", "real.csv", "made.csv", "-s", "x.yaml", "--metrics", "ks,sums", "-q")
    assert done.code == 0, done.err
    ks = next(line for line in done.out.splitlines() if line.startswith("ks "))
    assert ks.split()[1] == "0.5000"
    assert ks.endswith("times as far as a tenth of the real rows")
    assert 'left out: 0.25 % of the real and 0.0 % of the synthetic values of "x" do not fit' in done.out
    assert "much" not in done.out + done.err
    found = hedgerow("evaluate", "real.csv", "made.csv", "-s", "x.yaml", "--metrics", "ks", "--json").json
    assert found["ks_columns"] == {"x": 0.5}
    assert found["rows_of_values"] == {"real": 401, "synthetic": 400}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--metrics", "tdv1"], "unknown-metric", 'Did you mean "tvd1"?'),
        (["--target", "sexx"], "unknown-column", 'Did you mean "sex"?'),
        (["--metrics", "svm"], "missing-option", "--target"),
        (["--seed", "-1"], "usage", "--seed"),
        (["--ledger", "none.ledger"], "no-ledger", "none.ledger"),
    ],
)
def test_what_is_at_fault_is_said_in_a_sentence(hedgerow, tables, words, code, said):
    done = evaluate(hedgerow, *words)
    assert (done.code, done.refusal) == (2, code)
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_a_synthetic_table_with_other_columns(hedgerow, tables):
    synthetic = pq.read_table(tables / "synthetic.parquet")
    pq.write_table(synthetic.drop(["sex"]), tables / "synthetic.parquet")
    done = evaluate(hedgerow)
    assert (done.code, done.refusal) == (2, "missing-column")
    assert 'the synthetic table lacks "sex"' in done.err


def test_a_file_without_rows(hedgerow, tables):
    pq.write_table(pq.read_table(tables / "synthetic.parquet").slice(0, 0), tables / "synthetic.parquet")
    done = evaluate(hedgerow)
    assert (done.code, done.refusal) == (2, "no-rows")


def test_the_ledger_notes_the_look(hedgerow, tables):
    assert hedgerow("ledger", "create", "x.ledger", "--dataset", "opm", "--epsilon", 4, "--delta", 1e-8).code == 0
    assert evaluate(hedgerow, "--ledger", "x.ledger", "--metrics", "tvd1").code == 0
    last = json.loads((tables / "x.ledger").read_text().splitlines()[-1])
    assert last["looked"] == "evaluate"


def test_the_schema_that_was_given_or_the_release_brings_the_domain(hedgerow, tmp_path):
    """The values are open: those of the real rows, or those that were bought. A rare value is never said."""
    cities = ["north"] * 3000 + ["south"] * 2000 + [CANARY]
    (tmp_path / "real.csv").write_text("\n".join(["city,sex", *(f"{city},{i % 2}" for i, city in enumerate(cities))]))
    (tmp_path / "open.yaml").write_text(
        "columns:\n  city: {type: category, values: private}\n  sex: {type: code, size: 2}\n"
    )
    made = hedgerow(
        "synth", "real.csv", "-s", "open.yaml", "-e", 4, "--delta", 1e-6, "-o", "out.csv", "-m", "independent"
    )
    assert made.code == 0, made.err
    by_rows = hedgerow("evaluate", "real.csv", "out.csv", "-s", "open.yaml", "--metrics", "tvd2")
    assert by_rows.code == 0, by_rows.err
    assert "codes of city are compared in cells where the real rows lie; " in by_rows.out
    assert "-s FILE.release" in by_rows.out
    done = hedgerow("evaluate", "real.csv", "out.csv", "-s", "out.release", "--json", "--metrics", "tvd2")
    assert done.code == 0, done.err
    assert done.json["tvd2"] < 0.05
    assert CANARY not in done.out + done.err + by_rows.out + by_rows.err
