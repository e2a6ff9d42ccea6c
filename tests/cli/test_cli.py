"""The command line as a user meets it: what works, what is refused, and what is never said."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow import cli
from hedgerow.private.ledger import Ledger
from hedgerow.samples import opm
from refusals import code_in

CANARY = "Zaphod-7731"


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def synth(hedgerow, *words, table="people.parquet", schema="people.yaml", epsilon=1, out="out.csv"):
    """A run of the quickest method, unless the words name another."""
    method = () if "-m" in words else ("-m", "independent")
    return hedgerow("synth", table, "-s", schema, "-e", epsilon, "-o", out, *method, *words)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_from_a_table_to_a_verified_release_and_more_rows(hedgerow, people, suffix):
    done = synth(hedgerow, out=f"out.{suffix}")
    assert done.code == 0, done.err
    assert "synthetic rows, 8 columns" in done.out
    assert "no --ledger" in done.err
    verified = hedgerow("verify", "out.release")
    assert verified.code == 0, verified.err
    assert "the guarantee is that of the whole budget" in verified.out
    assert "dp-accounting's privacy loss distributions agree" in verified.out
    more = hedgerow("sample", "out.release", "--rows", 77, "-o", f"more.{suffix}")
    assert more.code == 0, more.err
    assert "77 synthetic rows" in more.out


def test_rows_on_demand(hedgerow, people):
    synth(hedgerow)
    met = hedgerow("sample", "out.release", "-o", "met.csv", "--rows", 40, "--where", "sex = 'F' AND pay >= 20500")
    assert met.code == 0, met.err
    assert "40 synthetic rows; the model expects 0." in met.out
    (people / "given.csv").write_text("sex,pay\nF,31234\n,\nM,\n")
    whole = hedgerow("sample", "out.release", "-o", "whole.csv", "--given", "given.csv")
    assert whole.code == 0, whole.err
    assert "3 synthetic rows" in whole.out
    assert "the guarantee does not cover it" in whole.out
    lines = (people / "whole.csv").read_text().splitlines()
    assert lines[1].endswith(",31234")
    assert '"M"' in lines[3]
    for words, code in (
        (("--where", "pay < 0"), "where-no-mass"),
        (("--where", "pai < 0"), "unknown-column"),
        (("--given", "given.csv", "--rows", 3), "given-with-others"),
        (("--given", "nothing.csv"), "no-such-table"),
    ):
        done = hedgerow("sample", "out.release", "-o", "none.csv", *words)
        assert (done.code, code_in(done.err)) == (2, code)
    assert not (people / "none.csv").exists()


def test_json_is_one_object_for_a_program(hedgerow, people):
    done = synth(hedgerow, "--json", "--rows", 50)
    assert done.code == 0, done.err
    report = done.json
    assert report["rows"] == 50
    assert report["columns"] == 8
    assert report["guarantee"]["epsilon"] <= 1.0
    assert set(report["phases"]) >= {"read and encode", "draw rows"}
    assert report["peak_rss_mb"] > 0
    assert hedgerow("verify", "out.release", "--json").json["certificate"]["method"]["name"] == "independent"


@pytest.mark.parametrize("delta", ["1e-9", "0"])
def test_a_dry_run_says_what_would_be_asked_and_opens_nothing(hedgerow, people, delta):
    done = hedgerow(
        "synth", "does-not-exist.csv", "-s", "people.yaml", "-e", 1, "-m", "independent", "--delta", delta, "--dry-run"
    )
    assert done.code == 0, done.err
    assert "The table was not opened, nothing was spent" in done.out
    assert "2.0% of the budget" in done.out  # a first look
    assert "93.0% of the budget" in done.out  # and 5 % for quality
    assert "10,000 such rows, every value as likely as any other" in done.out
    assert files(people) == ["people.parquet", "people.yaml"]


@pytest.mark.parametrize("method", ["mst", "privsyn"])
def test_a_dry_run_says_what_of_a_step_is_noise_and_what_is_not(hedgerow, people, method):
    """A choice has no noise but an ε: the smaller, the more it is left to chance. Scores have noise, all the same."""
    (people / "small.yaml").write_text("columns: {a: {type: boolean}, b: {type: boolean}, c: {type: boolean}}")
    words = ("synth", "none.csv", "-s", "small.yaml", "-e", 1, "-m", method, "--dry-run", "--dry-run-rows", 20_001)
    said = hedgerow(*words).out
    assert "It had 20,001 such rows, " in said
    assert "1 query, 1 cell: gaussian noise" in said
    steps = hedgerow(*words, "--json").json
    assert steps["rows"] == 20_001
    [chosen, *_] = [step for step in steps["charges"] if step["purpose"] in ("select", "score")]
    if method == "mst":
        assert chosen["mechanism"] == "exponential"
        assert "least_noise" not in chosen
        assert f"a choice among {chosen['candidates']} candidates at ε = {chosen['epsilon']:.3g}, " in said
        assert "exponential noise" not in said
    else:
        assert chosen["least_noise"] == chosen["most_noise"] == chosen["scale"]
        assert f"scores of {chosen['candidates']} candidates: gaussian noise {chosen['scale']:.3g}, " in said


def test_a_dry_run_says_that_each_made_up_person_has_one_row(hedgerow, people):
    schema = people / "people.yaml"
    schema.write_text("person: id\nmax_rows_per_person: 3\n" + schema.read_text())
    said = hedgerow("synth", "none.csv", "-s", "people.yaml", "-e", 1, "-m", "independent", "--dry-run").out
    assert "10,000 such rows, each of another person" in said


def test_the_same_seed_draws_the_same_rows_but_never_the_same_noise(hedgerow, people):
    first, second = synth(hedgerow, out="a.csv"), synth(hedgerow, out="b.csv")
    assert first.code == second.code == 0
    assert (people / "a.csv").read_bytes() != (people / "b.csv").read_bytes()
    hedgerow("sample", "a.release", "-o", "again.csv")
    assert (people / "a.csv").read_bytes() == (people / "again.csv").read_bytes()


def test_methods_and_examples_explain_themselves(hedgerow, tmp_path):
    assert "hedge          Hedged measurements (default)" in hedgerow("methods").out
    about = hedgerow("methods", "mst").out
    assert "Why it is private" in about
    assert "merge = 3   " in about
    made = hedgerow("example", "opm", "-o", "opm.csv", "--rows", 300)
    assert made.code == 0, made.err
    assert synth(hedgerow, table="opm.csv", schema="opm.yaml").code == 0
    unknown = hedgerow("example", "opmm", "-o", "x.csv")
    assert (unknown.code, unknown.refusal) == (2, "unknown-example")
    assert 'Did you mean "opm"' in unknown.err


def test_the_demo_says_what_it_does_and_where_things_are(hedgerow, tmp_path):
    done = hedgerow("demo", "--rows", 2000)
    assert done.code == 0, done.err
    made = ["synthetic.html", "synthetic.parquet", "synthetic.release"]
    assert files(tmp_path / "demo") == ["private.parquet", "private.yaml", *made]
    assert "demo/synthetic.parquet" in done.out


# ---------------------------------------------------------------- bad input: exit 2, one sentence, nothing written


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"table": "missing.csv"}, ("no-such-table", "missing.csv")),
        ({"schema": "missing.yaml"}, ("no-such-schema", "missing.yaml")),
        ({"epsilon": 0}, ("bad-epsilon",)),
        ({"epsilon": -1}, ("bad-epsilon",)),
        ({"epsilon": "nan"}, ("bad-epsilon",)),
        ({"epsilon": "inf"}, ("bad-epsilon",)),
        ({"extra": ["--delta", "1"]}, ("bad-delta",)),
        ({"extra": ["--delta", "-1e-9"]}, ("bad-delta",)),
        ({"extra": ["-m", "independant"]}, ("unknown-method", 'Did you mean "independent"')),
        ({"extra": ["-m", "mst", "--set", "merg=3"]}, ("unknown-option", 'Did you mean "merge"')),
        ({"extra": ["-m", "mst", "--set", "merge=many"]}, ("bad-option", '"merge"')),
        ({"extra": ["-m", "mst", "--set", "merge=nan"]}, ("bad-option", '"merge"')),
        ({"extra": ["-m", "mst", "--set", "merge=-1"]}, ("bad-option", '"merge"')),
        ({"extra": ["--delta", "1e-300"]}, ("bad-delta", "1e-300")),
        ({"extra": ["-m", "aim", "--set", "accounting=foo"]}, ("bad-option", '"accounting"', "gdp, zcdp")),
        ({"extra": ["-m", "aim", "--set", "workload=3", "--workload", "2"]}, ("set-twice", '"workload"')),
        ({"extra": ["-m", "aim", "--set", "target=sex", "--target", "age"]}, ("set-twice", '"target"')),
        ({"extra": ["-m", "aim", "--set", "rounds=3", "--set", "rounds=4"]}, ("set-twice", '"rounds"')),
        ({"extra": ["--ledger", "people.yaml"]}, ("not-a-ledger",)),
        ({"extra": ["-m", "os:path"]}, ("not-a-method",)),
        ({"extra": ["--max-memory", "1KB"]}, ("bad-size",)),
        ({"extra": ["--max-time", "soon"]}, ("bad-time",)),
        ({"epsilon": "1e300"}, ("bad-epsilon", "1e+06")),
        ({"extra": ["-m", "mst", "--set", "merge"]}, ("bad-setting",)),
        ({"extra": ["--workload", "2"]}, ("unknown-option", '"workload"')),
        ({"extra": ["-m", "aim", "--workload", "missing.yaml"]}, ("bad-workload",)),
        ({"extra": ["-m", "aim", "--workload", "2", "--target", "wage"]}, ("unknown-column", '"wage"')),
        ({"extra": ["--public", "missing.csv"]}, ("no-such-table", "missing.csv")),
        ({"extra": ["--max-memory", "lots"]}, ("bad-size", "lots")),
        ({"extra": ["--ledger", "missing.ledger"]}, ("no-ledger", "missing.ledger")),
        ({"extra": ["--sign", "people.yaml"]}, ("bad-key", "people.yaml")),
        ({"extra": ["--rows", "0"]}, ("usage", "--rows")),
        ({"extra": ["--sign", "missing.pem"]}, ("usage", "'missing.pem'")),
        ({"extra": ["--seed", "-5"]}, ("usage", "--seed")),
        ({"out": "out.xlsx"}, ("unknown-suffix",)),
        ({"out": "no/such/folder/out.csv"}, ("cannot-write",)),
        ({"out": "people.parquet"}, ("output-is-input", "private table")),
        ({"extra": ["--release", "people.yaml"]}, ("output-is-input", "schema")),
        ({"extra": ["--release", "out.csv"]}, ("output-twice",)),
        ({"epsilon": "one"}, ("bad-epsilon", "one")),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(hedgerow, people, words, complaint):
    before = files(people)
    done = synth(hedgerow, *words.pop("extra", []), **words)
    code, *held = complaint
    assert (done.code, done.refusal) == (2, code)
    assert all(text in done.err for text in held)
    assert "Traceback" not in done.err
    assert done.out == ""
    assert files(people) == before


def test_a_schema_and_a_table_that_do_not_fit_are_refused(hedgerow, people):
    table = opm.generate(50)
    pq.write_table(table.drop_columns(["race"]), people / "lacking.parquet")
    lacking = synth(hedgerow, table="lacking.parquet")
    assert (lacking.code, lacking.refusal) == (2, "missing-column")
    assert '"race"' in lacking.err
    pq.write_table(table.append_column("shoe_size", pa.array([CANARY] * 50)), people / "strange.parquet")
    strange = synth(hedgerow, table="strange.parquet")
    assert (strange.code, strange.refusal) == (2, "undeclared-column")
    assert '"shoe_size"' in strange.err
    assert CANARY not in strange.err
    assert not (people / "out.csv").exists()


def test_damaged_tables_are_refused_without_quoting_them(hedgerow, people):
    whole = (people / "people.parquet").read_bytes()
    header = "year,sex,race,age,agency,occupation,education,pay\n"
    row = f"1990,F,A,22,AAAA,0005,14,{CANARY}\n"
    bad = {
        "cut.parquet": whole[: len(whole) // 2],
        "empty.csv": b"",
        "open-quote.csv": (header + row * 20 + f'1990,"{CANARY},A,22,AAAA,0005,14,1\n' + row * 20).encode(),
        "no-header.csv": (f"1990,{CANARY},A,22,AAAA,0005,14,1\n" * 9).encode(),
        "ragged.csv": (header + row + f"1990,F,{CANARY}\n").encode(),
        "encoding.csv": (header + row).encode() + b"1990,\xff\xfe,A,22,AAAA,0005,14,1\n",
        "twice.csv": header.replace("race", "sex").encode() + row.encode(),
        "twice-no-header.csv": f"1990,{CANARY},A,22,{CANARY},0005,14,1\n".encode() + row.encode(),
    }
    for name, data in bad.items():
        (people / name).write_bytes(data)
        done = synth(hedgerow, table=name)
        assert done.code == 2, (name, done.err)
        assert CANARY not in done.err + done.out, name
        assert "Traceback" not in done.err
        assert not (people / "out.csv").exists()
        assert not (people / "out.release").exists()


def test_an_unwritable_folder_is_noticed_before_anything_is_spent(hedgerow, people):
    hedgerow("ledger", "create", "l", "--dataset", "opm", "--epsilon", 2)
    done = synth(hedgerow, "--ledger", "l", out="/proc/out.csv")
    assert (done.code, done.refusal) == (2, "cannot-write")
    assert len((people / "l").read_text().splitlines()) == 1


def test_a_paid_release_is_not_overwritten_by_the_next(hedgerow, people):
    assert synth(hedgerow).code == 0
    before = (people / "out.release").read_bytes()
    again = synth(hedgerow, out="out.parquet")
    assert (again.code, again.refusal) == (2, "release-exists")
    assert "--overwrite" in again.err
    assert (people / "out.release").read_bytes() == before
    assert synth(hedgerow, "--overwrite", out="out.parquet").code == 0


def test_other_commands_do_not_overwrite_their_inputs_either(hedgerow, people):
    (people / "t.csv").write_text("a\n1\n")
    (people / "t.yaml").write_text("columns: {a: {type: code, size: 3}}\n")
    hedgerow("ledger", "create", "l", "--dataset", "t", "--epsilon", 1)
    before = {name: (people / name).read_bytes() for name in ("t.csv", "t.yaml", "l")}
    for words in (
        ("schema", "check", "t.csv", "-s", "t.yaml", "--private", "t.csv"),
        ("schema", "check", "t.csv", "-s", "t.yaml", "--private", "l", "--ledger", "l"),
        ("schema", "draft", "t.csv", "-o", "t.csv", "--overwrite"),
    ):
        done = hedgerow(*words)
        assert (done.code, done.refusal) == (2, "output-is-input"), words
    assert {name: (people / name).read_bytes() for name in before} == before


def test_a_full_disk_is_no_error_of_ours(hedgerow, people):
    done = hedgerow("example", "opm", "-o", "/dev/full/x.csv", "--rows", 10)
    assert done.code == 2
    code = (
        "import errno, hedgerow.release.files as files\n"
        "def full(*a, **k): raise OSError(errno.ENOSPC, 'x')\n"
        "files.write_table = full\n"
        "from hedgerow.cli import main; main()"
    )
    arguments = ["synth", "people.parquet", "-s", "people.yaml", "-e", "1", "-m", "independent", "-o", "out.csv"]
    command = [sys.executable, "-c", code, *arguments]
    failed = subprocess.run(command, cwd=people, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert code_in(failed.stderr) == "cannot-write"
    assert '"out.csv"' in failed.stderr
    assert (people / "out.release").exists()
    again = synth(hedgerow, "--resume")
    assert again.code == 2
    assert "--overwrite" not in again.err
    for said in (failed.stderr, again.err):
        assert "hedgerow sample out.release -o out.csv" in said
    assert hedgerow("sample", "out.release", "-o", "out.csv").code == 0


def test_columns_that_hold_lists_are_refused_before_anything_is_spent(hedgerow, people):
    pq.write_table(pa.table({"a": [[1, 2], [3]]}), people / "lists.parquet")
    (people / "lists.json").write_text('{"a": 4}')
    done = synth(hedgerow, table="lists.parquet", schema="lists.json")
    assert (done.code, done.refusal) == (2, "column-type")


def test_a_budget_that_buys_mostly_noise_is_pointed_out(hedgerow, people):
    assert "most of the counts are noise" in synth(hedgerow, epsilon=0.01).err
    assert "noise" not in synth(hedgerow, "--overwrite", epsilon=5).err


# ---------------------------------------------------------------- the ledger on the command line


def test_the_ledger_pays_refuses_and_shows(hedgerow, people):
    created = hedgerow("ledger", "create", "l", "--dataset", "opm", "--epsilon", 1.2, "--delta", "1e-8")
    assert created.code == 0, created.err
    fresh = hedgerow("ledger", "show", "l").out
    assert "spent: ε = 0 at δ = 1e-08" in fresh
    assert "left:  ε = 1.2 at δ = 1e-08" in fresh  # all of it, at the δ that it was opened with
    paid = synth(hedgerow, "--ledger", "l")
    assert paid.code == 0, paid.err
    assert "no --ledger" not in paid.err
    refused = synth(hedgerow, "--ledger", "l", out="second.csv")
    assert (refused.code, refused.refusal) == (2, "ledger-exhausted")
    assert "ε = 1;" in refused.err
    assert not (people / "second.csv").exists()
    shown = hedgerow("ledger", "show", "l").out
    assert "a first look, ε = 0.1" in shown  # 2 % of μ²
    assert "release by independent, ε = 0.9" in shown
    certificate = hedgerow("verify", "out.release", "--json").json["certificate"]
    _, *records = (people / "l").read_text().splitlines()
    digests = [hashlib.sha256((record + "\n").encode()).hexdigest() for record in records]
    assert [certificate["ledger"]["look"], certificate["ledger"]["hash"]] == digests


def test_the_ledger_is_never_overwritten_and_binds_the_certificate(hedgerow, people):
    hedgerow("ledger", "create", "l", "--dataset", "opm", "--epsilon", 4)
    clobbering = synth(hedgerow, "--ledger", "l", "--release", "l")
    assert (clobbering.code, clobbering.refusal) == (2, "output-is-input")
    assert "ledger" in clobbering.err
    before = (people / "l").read_bytes()
    assert synth(hedgerow, "--ledger", "l").code == 0
    bound = hedgerow("verify", "out.release", "--ledger", "l")
    assert bound.code == 0, bound.err
    assert "holds the record that the certificate names" in bound.out
    (people / "l").write_bytes(before)
    assert hedgerow("verify", "out.release", "--ledger", "l").code == 2


def test_a_folder_of_private_files_gets_no_synthetic_ones(hedgerow, people):
    (people / "folder").mkdir()
    (people / "people.parquet").rename(people / "folder" / "a.parquet")
    done = synth(hedgerow, table="folder", out="folder/out.parquet")
    assert (done.code, done.refusal) == (2, "output-inside-input")


def test_another_datasets_ledger_and_a_voided_guarantee_are_refused(hedgerow, people):
    hedgerow("ledger", "create", "l", "--dataset", "patients", "--epsilon", 4)
    other = synth(hedgerow, "--ledger", "l")
    assert (other.code, other.refusal) == (2, "another-dataset")
    assert '"patients"' in other.err
    hedgerow("ledger", "create", "m", "--dataset", "opm", "--epsilon", 4)
    seeded = synth(hedgerow, "--ledger", "m", "--unsafe-noise-seed", 1)
    assert (seeded.code, seeded.refusal) == (2, "ledger-needs-guarantee")
    (people / "nameless.yaml").write_text(opm.SCHEMA.replace("dataset: opm\n", ""))
    nameless = synth(hedgerow, "--ledger", "m", schema="nameless.yaml")
    assert (nameless.code, nameless.refusal) == (2, "missing-dataset")
    assert "dataset: opm" in nameless.err


def test_eight_runs_at_once_hold_the_budget(hedgerow, people):
    hedgerow("ledger", "create", "l", "--dataset", "opm", "--epsilon", 1.0, "--delta", "1e-8")
    command = [sys.executable, "-m", "hedgerow"]
    arguments = [
        "synth",
        "people.parquet",
        "-s",
        "people.yaml",
        "-e",
        "0.5",
        "-m",
        "independent",
        "--ledger",
        "l",
        "-q",
    ]
    runs = [
        subprocess.Popen([*command, *arguments, "-o", f"out{number}.csv"], cwd=people, stderr=subprocess.PIPE)
        for number in range(8)
    ]
    codes = [run.wait() or run.stderr.close() for run in runs]
    succeeded = sum(code is None for code in codes)
    debits = Counter(entry.record.get("method") for entry in Ledger(people / "l").entries())
    assert succeeded == debits["independent"] <= debits["look"]
    assert 1 <= succeeded < 8
    assert len(list(people.glob("out*.release"))) == succeeded


# ---------------------------------------------------------------- what is never said, what is never left


def test_seeded_noise_is_marked_in_every_file(hedgerow, people):
    for suffix in ("csv", "parquet", "arrow"):
        done = synth(hedgerow, "--unsafe-noise-seed", 5, "--overwrite", out=f"seeded.{suffix}")
        assert done.code == 0, done.err
        assert "NO privacy guarantee" in done.out
    assert b"NO privacy guarantee" in pq.read_schema(people / "seeded.parquet").metadata[b"hedgerow"]
    with pa.ipc.open_file(str(people / "seeded.arrow")) as reader:
        assert b"NO privacy guarantee" in reader.schema.metadata[b"hedgerow"]
    assert "NO privacy guarantee" in (people / "seeded.csv.NO-GUARANTEE.txt").read_text()
    checked = hedgerow("verify", "seeded.release", "--json")
    assert checked.json["certificate"]["guarantee"] is None
    assert (checked.code, checked.refusal) == (2, "no-guarantee")


def test_odd_values_change_neither_columns_nor_types_and_are_never_quoted(hedgerow, people):
    rows = opm.generate(300).to_pylist()
    odd = {"sex": CANARY, "pay": 10**12, "year": -5, "race": None, "age": "", "agency": "ünïcode", "education": "NaN"}
    rows[7].update(odd)
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, people / "odd.parquet")
    pq.write_table(opm.generate(300), people / "plain.parquet")
    outputs = {}
    for name in ("odd", "plain"):
        done = synth(hedgerow, table=f"{name}.parquet", epsilon=1000, out=f"{name}-out.parquet")
        assert done.code == 0, done.err
        assert CANARY not in done.out + done.err
        outputs[name] = pq.read_table(people / f"{name}-out.parquet")
    assert outputs["odd"].schema == outputs["plain"].schema
    assert CANARY not in str(outputs["odd"].to_pylist())
    assert set(outputs["odd"]["sex"].to_pylist()) <= {"F", "M"}


def test_formulas_in_a_csv_stay_text(hedgerow, tmp_path):
    values = ["=cmd()", "+1+1", "-x", "@sum", "plain", "-8"]
    (tmp_path / "t.csv").write_text("=v\n" + "".join(f'"{value}"\n' for value in values * 200))
    listed = ", ".join(json.dumps(value) for value in values)
    (tmp_path / "t.yaml").write_text(f"columns:\n  '=v': {{type: category, values: [{listed}]}}\n")
    done = synth(hedgerow, table="t.csv", schema="t.yaml", epsilon=100)
    assert done.code == 0, done.err
    written = set((tmp_path / "out.csv").read_text().replace('"', "").split("\n")[1:]) - {""}
    assert (tmp_path / "out.csv").read_text().startswith('"\'=v"')
    assert written == {"'=cmd()", "'+1+1", "'-x", "'@sum", "plain", "-8"}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopping_leaves_no_half_files(people, how):
    table = pa.concat_tables([opm.generate(1_000_000)] * 3)
    pq.write_table(table, people / "large.parquet")
    before = files(people)
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()"]
    arguments = ["synth", "large.parquet", "-s", "people.yaml", "-e", "1", "-m", "independent", "-o", "out.csv"]
    run = subprocess.Popen([*command, *arguments], cwd=people, stderr=subprocess.PIPE, text=True)
    line = run.stderr.readline()
    assert "read and encode" in line
    run.send_signal(how)
    _, error = run.communicate(timeout=60)
    assert run.returncode == 130
    assert code_in(error) == "stopped"
    assert "Traceback" not in error
    assert files(people) == before


def test_an_error_of_ours_shows_no_message_of_its_own(hedgerow, people):
    """An unexpected exception may carry a private value in its text: only its type and place are shown."""
    code = (
        "import hedgerow.run as run\n"
        f"def fail(*a, **k): raise ValueError('{CANARY}')\n"
        "run.Run.release = fail\n"
        "from hedgerow.cli import main; main()"
    )
    arguments = ["synth", "people.parquet", "-s", "people.yaml", "-e", "1", "-o", "out.csv"]
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=people, capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 1
    assert code_in(done.stderr) == "internal"
    assert CANARY not in done.stderr + done.stdout
    assert "ValueError" in done.stderr


def test_help_and_import_stay_light():
    """No heavy package is imported by `import hedgerow` or for --help."""
    heavy = {"numpy", "scipy", "pyarrow", "pydantic", "yaml", "cryptography", "pandas", "polars"}
    for code in ("import hedgerow", "import sys; sys.argv=['hedgerow','--help']; import hedgerow.cli.app"):
        names = subprocess.run(
            [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        assert heavy.isdisjoint(names), (code, heavy & set(names))


def test_a_request_to_end_is_heard_wherever_it_comes(tmp_path):
    program = """
import signal, time, weakref
from hedgerow import cli
class Held: pass
def run():
    held = Held()
    asked = weakref.ref(held, lambda _: signal.raise_signal(signal.SIGTERM))
    del held  # what a callback raises is dropped
    for _ in range(6000):
        time.sleep(0.01)
cli._run = run
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, f"hedgerow [stopped]: {cli._ENDED}\n")
