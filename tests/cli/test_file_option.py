"""What a user is told whose file is not what was declared, that it costs nothing, and the way through."""

import pytest

from hedgerow.compare.cell import run_cell
from hedgerow.compare.plan import Cell, Plan
from hedgerow.private.evaluate.evaluation import evaluate
from hedgerow.private.evaluate.metric import Figure, Metric
from refusals import code_in

SCHEMA = """dataset: d
columns:
  größe: {type: number, min: 0, max: 300, bins: 6}
  age: {type: integer, min: 0, max: 99}
  town: {type: category, values: [Köln, Bonn]}
"""
CANARY = "canary-4711"
ROWS = "".join(f"{150 + row % 40},5;{row % 99};{('Köln', 'Bonn')[row % 2]}\n" for row in range(300))
CONTINENTAL = f"größe;age;town\n{ROWS}"
PLAIN = CONTINENTAL.replace(",", ".").replace(";", ",")

UNSPENT = "No row was read, nothing was spent."
BAD = {
    "typo in a header": (PLAIN.replace("age", "agee").encode(), "missing-column", ('Did you mean "agee"?', UNSPENT)),
    "no header": (
        PLAIN.partition("\n")[2].replace("Köln", CANARY, 1).encode(),
        "missing-column",
        ("lacks 3 of the 3 columns", "Has the table a header line", "Its names are not shown", UNSPENT),
    ),
    "wrong delimiter": (
        CONTINENTAL.encode(),
        "wrong-delimiter",
        (
            'probably ";"',
            "Hint: add --file delimiter=semicolon, or file: {delimiter: semicolon} to the schema",
            UNSPENT,
        ),
    ),
    "another encoding": (PLAIN.encode("latin-1"), "wrong-encoding", ("--file encoding=windows-1252", UNSPENT)),
    "another encoding below an English header": (
        PLAIN.encode("latin-1").replace("größe".encode("latin-1"), "größe".encode()),
        "wrong-encoding",
        ("--file encoding=windows-1252", "Nothing was spent."),
    ),
    "UTF-16": (PLAIN.encode("utf-16"), "wrong-encoding", ("--file encoding=utf-16", UNSPENT)),
    "a delimiter in one field": (
        f"{PLAIN}180.5,{CANARY},Köln,Bonn\n".encode(),
        "ragged-row",
        ("row 302", "4 fields where the header has 3", "Nothing was spent."),
    ),
}


@pytest.fixture
def ledger(tmp_path, hedgerow):
    (tmp_path / "s.yaml").write_text(SCHEMA, encoding="utf-8")
    hedgerow("ledger", "create", "d.ledger", "--dataset", "d", "--epsilon", 2)
    return tmp_path / "d.ledger"


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_not_what_was_declared_costs_nothing(kind, tmp_path, hedgerow, ledger):
    content, code, words = BAD[kind]
    (tmp_path / "t.csv").write_bytes(content)
    before = ledger.read_bytes()
    done = hedgerow("synth", "t.csv", "-s", "s.yaml", "-e", 1, "-o", "o.csv", "--ledger", ledger, "--quiet")
    assert done.code == 2
    assert code_in(done.err) == code
    assert all(said in done.err for said in words)
    assert done.err.count("\n") == 1
    assert CANARY not in done.err
    assert ledger.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"d.ledger", "s.yaml", "t.csv"}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("delimiter", "bad-setting"),
        ("delimeter=;", "bad-setting"),
        ("delimiter=ab", "bad-delimiter"),
        ("encoding=klingon", "unknown-encoding"),
    ],
)
def test_an_option_that_means_nothing_is_refused(given, code, tmp_path, hedgerow, ledger):
    (tmp_path / "t.csv").write_text(CONTINENTAL, encoding="utf-8")
    assert code_in(hedgerow("schema", "check", "t.csv", "-s", "s.yaml", "--file", given).err) == code


def test_every_command_reads_a_file_as_it_is_declared(tmp_path, hedgerow, ledger):
    """By options, by the schema that a draft wrote, or by the release."""
    (tmp_path / "t.csv").write_bytes(CONTINENTAL.encode("latin-1"))
    file = ["--file", "delimiter=semicolon", "--file", "decimal=comma", "--file", "encoding=latin-1"]
    done = hedgerow("schema", "draft", "t.csv", "-o", "draft.yaml", *file)
    assert done.code == 0, done.err
    drafted = (tmp_path / "draft.yaml").read_text(encoding="utf-8")
    assert "file: {delimiter: ;, decimal: ',', encoding: latin-1}\n" in drafted
    assert "größe: TODO" in drafted
    (tmp_path / "declared.yaml").write_text(drafted.partition("columns:")[0] + SCHEMA.partition("\n")[2], "utf-8")
    for words in (["s.yaml", *file], ["declared.yaml"]):
        done = hedgerow("schema", "check", "t.csv", "-s", *words, "--private", "misfits.html", "--overwrite")
        assert done.code == 0, done.err
        assert "0</td>" in (tmp_path / "misfits.html").read_text(encoding="utf-8")
    done = hedgerow("synth", "t.csv", "-s", "s.yaml", *file, "-e", 2, "-m", "independent", "-o", "o.csv", "--quiet")
    assert done.code == 0, done.err
    made = (tmp_path / "o.csv").read_text(encoding="utf-8").splitlines()
    assert made[0] == '"größe","age","town"'
    assert not any(";" in line for line in made)  # what is written is plain
    for words in (["-s", "o.release"], ["-s", "s.yaml", *file]):
        done = hedgerow("evaluate", "t.csv", "o.csv", *words, "--metrics", "tvd1", "--json", "--quiet")
        assert done.code == 0, done.err
        assert done.json["rows"]["real"] == 300
        assert done.json["tvd1"] < 0.5


def test_the_other_decimal_sign_stops_the_run_and_costs_the_look_alone(tmp_path, hedgerow, ledger):
    (tmp_path / "t.csv").write_text("größe;age;town\n" + ROWS * 20, encoding="utf-8")
    words = ["synth", "t.csv", "-s", "s.yaml", "-e", 1.9, "-m", "independent", "-o", "o.csv", "--quiet"]
    done = hedgerow(*words, "--file", "delimiter=semicolon", "--ledger", ledger)
    assert done.code == 3
    assert code_in(done.err) == "misfits"
    assert 'of "größe". More than 20 %' in done.err
    assert not list(tmp_path.glob("o.*"))
    shown = hedgerow("ledger", "show", ledger).out
    assert shown.count("a first look, ε = 0.2") == shown.count(", ε = 0.") == 1


def test_a_metric_that_reads_the_rows_again_reads_them_as_they_are_declared(tmp_path, ledger):
    (tmp_path / "t.csv").write_bytes(CONTINENTAL.encode("latin-1"))
    (tmp_path / "o.csv").write_text(PLAIN, encoding="utf-8")
    schema = tmp_path / "s.yaml"
    file = {"delimiter": ";", "decimal": ",", "encoding": "latin-1"}
    alike = Metric("alike", lambda both: {"alike": float(both.rows()[0] == both.rows()[1])}, {"alike": Figure("", "")})
    found = evaluate(str(tmp_path / "t.csv"), str(tmp_path / "o.csv"), schema, file=file, metrics=[alike])
    assert found["alike"] == 1


def test_a_comparison_reads_a_file_as_it_is_declared(tmp_path, ledger):
    (tmp_path / "t.csv").write_bytes(CONTINENTAL.encode("latin-1"))
    plan = Plan(
        table=str(tmp_path / "t.csv"),
        schema=str(tmp_path / "s.yaml"),
        methods=("independent",),
        epsilons=(2.0,),
        runs=1,
        metrics=("tvd1",),
        file={"delimiter": "semicolon", "decimal": "comma", "encoding": "latin-1"},
        unsafe_noise_seed=1,
    )
    for cell in (Cell("method", "independent", 2.0, 0), Cell("floor", "bootstrap", None, 0)):
        assert run_cell(plan, cell)["tvd1"] < 0.5
