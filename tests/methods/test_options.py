"""Options of methods: declared once, checked wherever a method is made, shown by the command line and the pages."""

import dataclasses
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow import methods
from hedgerow.methods.option import Option, Options, declared, option
from refusals import refused
from repository import ROOT

PAGES = ROOT / "docs" / "understand" / "methods"
OPTIONS = [(name, option) for name in methods.names() for option in declared(methods.find(name))]


@dataclass(frozen=True)
class Knobs(Options):
    """Options of every kind."""

    part: float = option(0.5, "a part", above=0, below=1)
    count: int = option(3, "a count", at_least=1, at_most=9)
    wide: float = option(2.0, "a number of any size")
    word: str = option("mass", "a word", one_of=("mass", "error"))
    file: str = option("", "a file")
    sure: bool = option(True, "a truth")
    names: tuple[str, ...] = option((), "names", read=lambda value: tuple(value.split(",")))


@dataclass(frozen=True)
class Made(Knobs):
    """A method from elsewhere."""

    plain: int = 4

    about = methods.find("independent").about

    def run(self, curator, progress):
        raise NotImplementedError


def table(kind):
    """The options as the method's page lists them."""
    lines = ["| option | default | takes | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {about.shown} | {about.wanted} | {about.help} |".replace("|  |", "| |")
        for name, about in declared(kind).items()
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("name", methods.names())
def test_every_page_lists_the_options_as_they_are_declared(name):
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    expected = table(methods.find(name)) if declared(methods.find(name)) else ""
    assert expected in page, f"put this table into {name}.md:\n{expected}"
    assert expected or "| option |" not in page


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_every_option_says_what_it_is_for_and_allows_its_default(name, option):
    about = declared(methods.find(name))[option]
    assert re.fullmatch(r"[^.]{8,}", about.help), "a phrase without a full stop"
    assert about.allows(about.default)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"part": 0}, 'option "part" must be a number above 0 and below 1, got 0.'),
        ({"part": "0.5"}, "got"),
        ({"part": True}, "a number above 0"),
        ({"part": float("nan")}, "got nan"),
        ({"count": 10}, "a whole number of at least 1 and at most 9, got 10"),
        ({"count": 2.5}, "a whole number"),
        ({"wide": float("inf")}, "must be a number, got inf"),
        ({"word": "maas"}, 'one of mass, error, got "maas". Did you mean "mass"?'),
        ({"file": 7}, "must be text"),
        ({"sure": "yes"}, "must be true or false"),
    ],
)
def test_what_an_option_does_not_allow_is_refused_when_the_method_is_made(given, says):
    with refused("bad-option") as told:
        Knobs(**given)
    assert says in str(told.value)


def test_text_and_plain_data_become_values(monkeypatch):
    made = f"{__name__}:Made"
    monkeypatch.setitem(__import__("sys").modules, __name__, __import__("types").SimpleNamespace(Made=Made))
    texts = {"part": ".25", "count": "4", "word": "error", "sure": "no", "names": "a,b", "plain": "-7", "file": "w"}
    assert methods.build(made, texts) == Made(0.25, 4, 2.0, "error", "w", False, ("a", "b"), -7)
    assert methods.build(made, {"part": 0.25, "count": 4.0, "wide": 3, "sure": False, "file": 2}) == Made(
        0.25, 4, 3.0, file="2", sure=False
    )
    for wrong in ({"count": "4.5"}, {"sure": "perhaps"}, {"plain": "x"}, {"part": "1"}, {"count": 2.5}, {"part": None}):
        with refused("bad-option"):
            methods.build(made, wrong)


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-5, 5),
    st.floats(-5, 5),
    st.booleans(),
    st.booleans(),
)
def test_a_number_is_allowed_just_within_its_bounds(value, low, high, open_below, open_above):
    below = {"above": low} if open_below else {"at_least": low}
    above = {"below": high} if open_above else {"at_most": high}
    inside = (value > low if open_below else value >= low) and (value < high if open_above else value <= high)
    assert Option(0.0, "", **below, **above).allows(value) == inside


def test_methods_stay_frozen_and_their_options_plain():
    method = methods.build("aim", {"rounds": "4"})
    assert methods.options(method)["rounds"] == 4.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.rounds = 2.0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hegde", ("unknown-method", '"hegde"', 'Did you mean "hedge"')),
        ("no.such.module:Thing", ("cannot-import",)),
        ("hedgerow.methods.aim:AMI", ("cannot-import", '"AMI"')),
        ("hedgerow.methods.aim:LEAST_SHARE", ("not-a-method",)),
        ("hedgerow methods:AIM", ("cannot-import",)),
    ],
)
def test_a_method_that_is_none_is_refused(name, says):
    with refused(*says):
        methods.build(name)


METHOD = """
from hedgerow.methods.independent import Independent
class Mine(Independent):
    pass
"""


def test_a_method_is_named_by_its_file(tmp_path):
    (tmp_path / "a_file_of_mine.py").write_text(METHOD)
    assert methods.find(f"{tmp_path}/a_file_of_mine.py:Mine").__name__ == "Mine"
    (tmp_path / "json.py").write_text(METHOD)
    with refused("cannot-import", "another name"):
        methods.find(f"{tmp_path}/json.py:Mine")
    with refused("cannot-import"):
        methods.find(f"{tmp_path}/not_there.py:Mine")
