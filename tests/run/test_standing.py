"""What an error says of the budget: the books know, wherever and whenever it is raised."""

import re
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golden
import hedgerow as hr
from hedgerow.coded.query import MarginalQuery
from hedgerow.curator import Candidate
from hedgerow.errors import UNREAD, HedgerowError, LimitError, OptionError, TableError, standing
from hedgerow.methods.method import About
from hedgerow.methods.shared.start import measure_one_ways
from hedgerow.models.model import Model
from hedgerow.private.engines import open_engine
from hedgerow.private.mechanisms import Mechanisms
from hedgerow.progress import Limits, Progress
from hedgerow.run import Request, Run
from hedgerow.run.run import rehearse
from refusals import refused

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
    with refused("no-share") as told:
        hr.synthesize(table(), hr.Schema.parse(SCHEMA), hr.Budget(1.0), Greedy(again))
    assert CHARGED in str(told.value)
    assert "othing was" not in str(told.value)


def test_an_option_that_fails_after_a_discovery_was_paid_for_does_not_say_that_nothing_was_spent():
    method = hr.methods.build("aim", {"target": "nobody"})
    with refused("unknown-column", '"nobody"') as told:
        hr.synthesize(table(), hr.Schema.parse(PRIVATE_BINS), hr.Budget(1.0), method)
    assert CHARGED in str(told.value)
    with refused("unknown-column", '"nobody"') as told:
        hr.synthesize(table(), hr.Schema.parse(SCHEMA), hr.Budget(1.0), method)
    assert str(told.value).endswith(NOTHING)


def test_counts_that_do_not_fit_after_a_first_charge():
    progress = Progress(Limits(memory=64))
    with refused("counts-too-large") as told:
        Run(hr.Schema.parse(SCHEMA), hr.Budget(1.0), hr.methods.build("mst"), 0, progress).release(
            open_engine(table()), Mechanisms()
        )
    assert CHARGED in str(told.value)


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
    with refused("other") as told, standing(lambda: "Outer."), standing(lambda: "Inner."):
        raise OptionError("no.")
    assert str(told.value) == "no. Inner."


def test_no_sentence_of_ours_claims_what_its_place_cannot_know():
    claims = re.compile(r"(nothing|no row)( else)? was (read|spent)", re.I)
    assert [sentence for _, _, sentence in golden.raised() if claims.search(sentence)] == []


def made(**changes):
    asked = {"table": table(), "schema": hr.Schema.parse(SCHEMA), "budget": hr.Budget(1.0), "method": "mst"}
    return Request(**(asked | changes)).checked().release()


BEFORE_A_ROW = {
    "no-such-table": {"table": "nowhere.parquet"},
    "no-such-schema": {"schema": "nowhere.yaml"},
    "unknown-method": {"method": "msst"},
    "unknown-option": {"options": {"merg": 3}},
    "bad-option": {"options": {"merge": "many"}},
    "bad-budget": {"budget": 1.0},
    "missing-column": {"table": pa.table({"a": [0], "b": [0]})},
    "undeclared-column": {"table": table().append_column("d", [range(200)])},
    "no-ledger": {"ledger": "nowhere.ledger"},
    "nothing-to-resume": {"journal": "nowhere.journal", "resume": True},
}


@pytest.mark.parametrize("code", BEFORE_A_ROW)
def test_what_is_refused_before_a_row_is_read_says_so_once(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused(code, UNREAD) as told:
        made(**BEFORE_A_ROW[code])
    assert len(re.findall(r"(?i)was (read|spent)", str(told.value))) == 2  # both in the one claim


def test_a_rehearsal_spends_nothing_whatever_its_own_books_say():
    run = Run(hr.Schema.parse(SCHEMA), hr.Budget(1.0), Greedy(), 0, Progress())
    with refused("no-share") as told:
        rehearse(run, 100)
    assert CHARGED not in str(told.value)
    request = Request(table(), hr.Schema.parse(SCHEMA), hr.Budget(1.0), Greedy())
    with refused("no-share", UNREAD):
        request.checked().rehearsal(100)


def test_the_command_says_it_of_its_own_options_too_but_not_once_a_release_is_made(hedgerow, tmp_path):
    pq.write_table(table(), tmp_path / "t.parquet")
    (tmp_path / "s.yaml").write_text(SCHEMA)
    words = ("synth", "t.parquet", "-s", "s.yaml", "-e", 1, "-m", "mst", "-o", "out.csv", "-q")
    for more in (("--set", "merge"), ("--max-time", "soon"), ("--delta", "2"), ("--release", "out.csv")):
        assert UNREAD in hedgerow(*words, *more).err
    assert UNREAD in hedgerow("compare", "t.parquet", "-s", "s.yaml", "-o", "c", "--epsilons", "x").err
    assert UNREAD in hedgerow("evaluate", "t.parquet", "t.parquet", "-s", "s.yaml", "--metrics", "tvd9").err
    assert UNREAD in hedgerow("schema", "check", "none.parquet", "-s", "s.yaml").err
    lost = hedgerow("sample", "out.release", "-o", "x.csv")
    assert lost.refusal == "no-such-release"
    assert "was read" not in lost.err
