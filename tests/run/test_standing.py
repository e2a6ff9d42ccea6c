"""What an error says of the budget: the books know, wherever and whenever it is raised."""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.errors import BudgetError, HedgerowError, LimitError, OptionError, TableError, standing
from hedgerow.methods.method import About
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.models.model import Model
from hedgerow.private.engines import open_engine
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Limits, Progress
from hedgerow.run import Run

OTHERS = "b: {type: code, size: 2}, c: {type: code, size: 4}"
SCHEMA = f"columns: {{a: {{type: code, size: 3}}, {OTHERS}}}"
PRIVATE_BINS = f"columns: {{a: {{type: number, min: 0, max: 9, bins: private}}, {OTHERS}}}"
CHARGED = "What was charged before stays charged."
NOTHING = "Nothing was spent."


def table(rows=200):
    rng = np.random.default_rng(0)
    return pa.table({name: rng.integers(0, size, rows) for name, size in (("a", 3), ("b", 2), ("c", 4))})


@dataclass(frozen=True)
class Greedy:
    """Spends everything and asks again, one way or the other."""

    again: str = "measure"
    about: ClassVar[About] = About("greedy", "Greedy", "Asks too often.", "None.", "None.")

    def run(self, curator, progress) -> Model:
        measure_one_ways(curator, curator.remaining)
        if self.again == "measure":
            measure_one_ways(curator, curator.remaining)
        curator.select([Candidate(MarginalQuery(curator.domain, ("a",)))], against=Uniform(), spend=curator.remaining)


class Uniform:
    def answers(self, queries):
        return (np.ones(query.cells) for query in queries)


@pytest.mark.parametrize("again", ["measure", "select"])
def test_a_method_that_asks_again_with_nothing_left_is_not_told_that_nothing_was_read(again):
    with pytest.raises(BudgetError) as refused:
        hr.synthesize(table(), hr.Schema.parse(SCHEMA), hr.Budget(1.0), Greedy(again))
    assert CHARGED in str(refused.value)
    assert "othing was" not in str(refused.value)


def test_an_option_that_fails_after_a_discovery_was_paid_for_does_not_say_that_nothing_was_spent():
    method = hr.methods.build("aim", {"target": "nobody"})
    with pytest.raises(OptionError, match='unknown column "nobody"') as refused:
        hr.synthesize(table(), hr.Schema.parse(PRIVATE_BINS), hr.Budget(1.0), method)
    assert CHARGED in str(refused.value)
    with pytest.raises(OptionError, match='unknown column "nobody"') as refused:
        hr.synthesize(table(), hr.Schema.parse(SCHEMA), hr.Budget(1.0), method)
    assert str(refused.value).endswith(NOTHING)


def test_counts_that_do_not_fit_after_a_first_charge():
    progress = Progress(Limits(memory=64))
    with pytest.raises(LimitError, match="The widest is") as refused:
        Run(hr.Schema.parse(SCHEMA), hr.Budget(1.0), hr.methods.build("mst"), 0, progress).release(
            open_engine(table()), Mechanisms()
        )
    assert CHARGED in str(refused.value)


TYPED = [
    "it broke.",
    "it broke. Nothing was read.",
    "it broke. Nothing was spent. Hint: mend it.",
    "it broke. Nothing was read, nothing was spent.",
    "it broke. Nothing was read or spent. Hint: mend it.",
]


class Failing:
    """An engine whose n-th call is refused."""

    def __init__(self, inner, after, problem):
        self.inner, self.left, self.problem = inner, after, problem
        self.counted = 0

    def header(self):
        return self.inner.header()

    def prepare(self, encoding):
        self._call()
        self.inner.prepare(encoding)

    def count(self, queries):
        self.counted += 1  # a charge comes before every count
        self._call()
        return self.inner.count(queries)

    def _call(self):
        self.left -= 1
        if self.left < 0:
            raise self.problem


@given(
    after=st.integers(0, 6),
    text=st.sampled_from(TYPED),
    kind=st.sampled_from([TableError, LimitError, OptionError, HedgerowError]),
    schema=st.sampled_from([SCHEMA, PRIVATE_BINS]),
)
def test_whatever_fails_and_whenever_the_claim_is_that_of_the_books(after, text, kind, schema):
    engine = Failing(open_engine(table()), after, kind(text))
    run = Run(hr.Schema.parse(schema), hr.Budget(2.0), hr.methods.build("mst"), 0, Progress())
    try:
        run.release(engine, Mechanisms())
    except kind as problem:
        said = str(problem)
        assert said.startswith("it broke. ")
        assert (CHARGED in said) == (engine.counted > 0)
        assert (NOTHING in said) == (engine.counted == 0)
        assert len(re.findall("othing was", said)) == (engine.counted == 0)
        assert ("Hint: mend it." in said) == ("Hint" in text)
        assert said.endswith("Hint: mend it.") or "Hint" not in text


def test_the_innermost_books_speak():
    with pytest.raises(OptionError, match=r"^no\. Inner\.$"), standing(lambda: "Outer."), standing(lambda: "Inner."):
        raise OptionError("no.")
