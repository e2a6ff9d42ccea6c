"""What notebooks show of a schema, a release, a certificate and answers: nothing in it can become markup."""

from html.parser import HTMLParser

import pyarrow as pa
import pytest

import hedgerow as hr

CANARY = "<script>alert('7731')</script>"
HIDDEN = "a\u202eb"


@pytest.fixture(scope="module")
def release():
    schema = hr.Schema.from_dict(
        {
            "dataset": CANARY,
            "columns": {
                CANARY: {"type": "category", "values": [CANARY, "b"]},
                HIDDEN: {"type": "boolean"},
                "many": {"type": "category", "values": [f"value {number}" for number in range(200)]},
            },
        }
    )
    table = pa.table({CANARY: [CANARY, "b"] * 100, HIDDEN: [True, False] * 100, "many": ["value 1"] * 200})
    return hr.synthesize(table, schema, hr.Budget(1, 1e-9), "independent")


class Seen(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        assert not attributes
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_names_and_values_are_text_wherever_they_stand(release):
    question = f'SELECT "{CANARY}", COUNT(*) FROM people GROUP BY "{CANARY}"'
    answers = release.ask(question)
    fitted = hr.fit({CANARY: 2}, [hr.noisy(CANARY, [10.0, 20.0], std=1.0)])
    for shown in (release, release.schema, release.certificate, answers, answers[0], fitted):
        seen = Seen(shown._repr_html_())
        assert seen.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p", "ul", "li"}
        assert "\u202e" not in seen.text
    for shown in (release, release.schema, answers):
        assert CANARY in Seen(shown._repr_html_()).text
    assert "a⟨U+202E⟩b" in Seen(release._repr_html_()).text


def test_they_say_what_matters(release):
    said = Seen(release._repr_html_()).text
    assert "(1, 1e-09)-differential privacy" in said
    assert "independent" in said
    assert f"about {release.estimated_rows:,}" in said
    assert "value 199" not in said  # a long list is cut
    certificate = Seen(release.certificate._repr_html_()).text
    assert "gaussian" in certificate
    answers = Seen(release.ask("SELECT COUNT(*) FROM people")._repr_html_()).text
    assert "estimate" in answers
    assert "measured" in answers or "modelled" in answers


def test_a_wide_schema_is_cut():
    wide = hr.Schema.from_dict({"columns": {f"c{number}": {"type": "boolean"} for number in range(1000)}})
    said = wide._repr_html_()
    assert "and 800 columns more" in said
    assert "c199" in said
    assert "c200<" not in said
