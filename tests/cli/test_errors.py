"""Messages: one line, and every letter of a name in them can be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import HedgerowError, TableError, visible

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
