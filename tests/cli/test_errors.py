"""Messages: one line, and every letter of a name in them can be seen."""

import copy
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
from hedgerow.errors import HedgerowError, TableError, code_of, visible
from hedgerow.foreign import fault
from hedgerow.models.graphical.inference import TooLargeError
from hedgerow.private.evaluate import find
from hedgerow.schema.kinds import NotAllowedError
from refusals import code_in

UNSEEN = "\u202e\u2066\u200f\u061c\x00\x1b\n\r\t\x7f\x9b\u2028\ufeff\u00ad\ud800"


@given(st.text(st.sampled_from("ab é日\u05d0\u200d" + UNSEEN)))
def test_no_message_hides_or_turns_a_name(name):
    message = str(TableError(f'the table lacks "{name}".'))
    assert not set(message) & set(UNSEEN)
    assert len(message.splitlines()) == 1
    assert visible(message) == message


@given(st.text())
def test_what_can_be_seen_is_left_alone(text):
    if text.isprintable():
        assert str(HedgerowError(text)) == text
    assert visible(text, keep=text) == text


def test_controls_are_spelled_by_their_number():
    assert visible("a\u202eb\nc") == "a⟨U+202E⟩b⟨U+000A⟩c"
    assert visible("a\u202eb\nc", keep="\n") == "a⟨U+202E⟩b\nc"


@pytest.mark.parametrize("name", ["se\u202ex", "se\x1b[2Jx", '"se\nhedgerow: all is well"'])
def test_a_header_cannot_write_to_the_terminal(name, tmp_path, hedgerow):
    (tmp_path / "s.yaml").write_text("columns: {age: {type: boolean}, kind: {type: boolean}}")
    (tmp_path / "t.csv").write_text(f"age,kind,{name}\n1,1,1\n", encoding="utf-8")
    done = hedgerow("schema", "check", "t.csv", "-s", "s.yaml")
    assert done.code == 2
    assert "⟨U+" in done.err
    assert done.err.isprintable() or done.err[:-1].isprintable()


def test_codes_and_sentences_are_those_of_the_golden_file():
    """A changed sentence, or a new code, is seen in the diff of that file: python tests/support/golden.py"""
    assert golden.GOLDEN.read_text(encoding="utf-8") == golden.spelled(), "run: python tests/support/golden.py"


def test_codes_are_words_and_every_error_has_one():
    found = list(golden.raised())
    assert len(found) > 400
    for _, code, sentence in found:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code) or code == golden.KEPT, sentence
        assert sentence


@given(st.sampled_from([HedgerowError, TableError, TooLargeError, NotAllowedError]), st.text(), st.none() | st.text())
def test_an_error_keeps_its_code_in_another_process(kind, message, standing):
    problem = kind("some-code", message)
    problem.standing = standing
    for other in (pickle.loads(pickle.dumps(problem)), copy.copy(problem)):
        assert (type(other), other.code, other.standing, str(other)) == (kind, "some-code", standing, str(problem))


def test_whoever_extends_hedgerow_needs_no_codes():
    problem = TableError("mine is not yours.")
    assert (problem.code, str(problem)) == ("other", "mine is not yours.")
    assert code_of(problem) == "other"
    assert code_of(KeyError("x")) == "internal"


def test_an_error_of_a_metric_of_ours_is_ours():
    """Ours are found by the same kind of name as those made elsewhere."""
    with pytest.raises(AttributeError) as raised:
        find("tvd1").compute(None)
    assert fault(raised.value).startswith("an error of ours, not of your input: AttributeError at ")


def test_the_command_says_the_code_first(tmp_path, hedgerow):
    done = hedgerow("sample", "nowhere.release", "-o", "out.csv")
    assert done.err.startswith("hedgerow [no-such-release]: ")
    assert (done.code, done.refusal) == (2, "no-such-release")
    assert hedgerow("smaple").refusal == "usage"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("rules: [a < 3, b < 3, a > 5]", "rules-clash"),
        ("rules: [a > 9]", "unsatisfiable-rule"),
        ("rules: [ab > 3]", "unknown-column"),
        ("rules: [a >> 3]", "unknown-operator"),
        ("rules: [a > ]", "bad-condition"),
        ("derive: {c: d + 1, d: c + 1}\nrules: [c > 0]", "recursive-derive"),
        ("rules: ['" + " OR ".join(f"{name} IN (1, 3, 5, 7)" for name in "abcdefg") + "']", "huge-rule"),
        (f"rules: {['a < 9'] * 1001}", "huge-rules"),
        ("rules: ['" + "(" * 4000 + "a > 1" + ")" * 4000 + "']", "condition-too-deep"),
        ("totals: [{table: [[1, 5]], columns: [a]}, {table: [[1, 4]], columns: [b]}]", "totals-disagree"),
    ],
)
def test_rules_that_cannot_be_kept_end_a_command_with_one_sentence(hedgerow, tmp_path, said, code):
    """Exit code 2, nothing written, nothing of the ledger spent."""
    columns = "".join(f"  {name}: {{type: integer, min: 0, max: 9}}\n" for name in "abcdefg"[: 7 if "g" in said else 2])
    (tmp_path / "s.yaml").write_text(f"dataset: t\ncolumns:\n{columns}{said}\n")
    (tmp_path / "t.csv").write_text("a,b,c,d,e,f,g\n" if "g" in said else "a,b\n")
    hedgerow("ledger", "create", "t.ledger", "--dataset", "t", "--epsilon", 5)
    before = (tmp_path / "t.ledger").read_bytes()
    done = hedgerow("synth", "t.csv", "-s", "s.yaml", "-e", 1, "-o", "out.csv", "--ledger", "t.ledger")
    assert (done.code, code_in(done.err)) == (2, code)
    assert len(done.err.strip().splitlines()) == 1
    assert (tmp_path / "t.ledger").read_bytes() == before
    assert not (tmp_path / "out.csv").exists()
