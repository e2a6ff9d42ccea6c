"""The reference covers what `import hedgerow` has, and what it names has words of its own to show."""

import inspect
import re

import pytest

import hedgerow as hr
from repository import ROOT

PAGE = (ROOT / "docs" / "use" / "reference.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^::: hedgerow\.(\S+)(?:\n    options:\n      members: \[([^\]]*)\])?", PAGE, re.M)


def test_every_public_name_is_covered():
    covered = {name.partition(".")[0] for name, _ in SHOWN} | {"__version__"}
    assert covered == set(hr.__all__)
    assert "`hedgerow.__version__`" in PAGE


@pytest.mark.parametrize(("name", "members"), SHOWN, ids=[name for name, _ in SHOWN])
def test_what_is_shown_has_words(name, members):
    shown = hr
    for part in name.split("."):
        shown = getattr(shown, part)
    if inspect.isclass(shown) or inspect.isfunction(shown):
        assert len(inspect.getdoc(shown) or "") > 30, name
    for member in filter(None, re.split(r"[,\s]+", members)):
        assert inspect.getdoc(inspect.getattr_static(shown, member)) or inspect.getdoc(getattr(shown, member)), member


@pytest.mark.parametrize("function", [hr.synthesize, hr.fit, hr.noisy])
def test_every_argument_is_explained(function):
    listed = re.findall(r"^    (\w+): ", inspect.getdoc(function), re.M)
    assert listed == list(inspect.signature(function).parameters)
