"""Sentences that were found to be false, and must not come back in any of their wordings."""

import re

import pytest

from repository import ROOT

FALSE = {
    "the C library's last bits differ between machines": (
        r"same (bits |rows |model )?(on every|on any) machine|bit-identical|draws the same rows everywhere"
        r"|every machine (of the same architecture\s+)?(computes|plans)"
    ),
    "a method that smooths can be better than a bootstrap": r"nothing can be\s+expected to be better",
    "a guarantee follows from the whole, not from the charges": r"the guarantee follows from the charges",
    "the noise on a measured count is not the error of the model's": r"standard_error",
    "a placeholder is not a figure": r"\bRESULTS\b",
    "replay checks, it cannot see everything": r"replay\s+proves",
    "a method is code in the process that holds the rows": r"no way to rows|So a method can be\s+wasteful",
    "a run promises what its whole budget is worth": r"follows from what was spent",
    "seconds of public work depend on the rows": r"(counts|count) (wall )?seconds of public",
}
SAID = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted(path for path in (ROOT / "kernels").rglob("*") if path.is_file()),
    ROOT / "README.md",
    ROOT / "CMakeLists.txt",
]


@pytest.mark.parametrize("why", FALSE)
def test_what_is_false_is_not_said(why):
    saying = [path.name for path in SAID if re.search(FALSE[why], path.read_text(encoding="utf-8"))]
    assert not saying, why
