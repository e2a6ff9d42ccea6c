"""rdt: one stack of leaf counts, synthetic rows alone in the trees; and the printed procedure, which replay catches."""

import importlib

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.audit import Violation, check_method
from hedgerow.audit.method import BUDGETS, KINDS, pairs, replay_pair
from hedgerow.methods import build
from hedgerow.methods.rdt import RDT
from hedgerow.models.histograms import Histograms
from hedgerow.models.model import block_rng
from hedgerow.private.ledger import Ledger
from hedgerow.progress import Limits, Progress
from hedgerow.samples import opm
from looking import asked
from refusals import refused
from repository import ROOT

SCHEMA = hr.Schema.parse(opm.SCHEMA.split("  pay:")[0])


@pytest.fixture(scope="module")
def table():
    return opm.generate(20_000).drop_columns(["pay"])


def release(table, epsilon=2.0, delta=1e-9, limits=None, **options):
    return hr.synthesize(
        table,
        SCHEMA,
        hr.Budget(epsilon, delta),
        RDT(**options),
        unsafe_noise_seed=4,
        progress=Progress(limits),
        quality=0,
    )


def test_trees_keep_every_law():
    """The registry's check runs on a few rows, which deserve no trees; this one has them."""
    check_method(RDT(height=3, trees=2, sweeps=1))


@pytest.mark.parametrize("pair", list(pairs(len(KINDS))), ids=KINDS)
def test_clipped_leaves_replay(pair):
    replay_pair(RDT(height=4, trees=1, noise="clip"), BUDGETS[0], pair)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
def test_all_trees_of_all_attributes_are_one_stack_that_a_row_touches_once_each(table, delta):
    made = release(table, delta=delta, trees=3, height=3)
    total, one_ways, leaves = asked(made)
    assert [len(charge.queries) for charge in (total, one_ways, leaves)] == [1, 7, 21]
    assert set(leaves.weights) == {1.0}
    assert leaves.sensitivity == pytest.approx(21 if delta == 0 else 21**0.5)
    assert made.certificate.spent == made.certificate.whole
    assert sorted({query["label"] for query in leaves.queries}) == sorted(SCHEMA.encoding().domain.names)


def heights(made):
    """How many attributes the answers to the leaf charge show on a path."""
    query = made.answers[-1].measurements[0].query
    node, depth = 0, 0
    while query.split[node] >= 0:
        node, depth = query.child[node], depth + 1
    return depth + 1


def test_trees_grow_with_the_budget(table):
    small, large = (heights(release(table, epsilon)) for epsilon in (1.0, 30.0))
    assert 1 < small < large <= 7


def test_trees_stay_within_the_memory(table):
    """Where the tallest trees would not fit, lower ones are grown; the budget is spent all the same."""
    made = [release(table, 300.0, limits=Limits(memory=memory)) for memory in (1 << 14, 1 << 26, 1 << 32)]
    assert isinstance(made[0].model, Histograms)
    assert 1 < heights(made[1]) < heights(made[2])
    assert all(one.certificate.spent == one.certificate.whole for one in made)


def test_a_budget_that_allows_no_tree_is_spent_on_columns(table):
    made = release(table.slice(0, 200), 0.1)
    assert isinstance(made.model, Histograms)
    assert made.certificate.spent == made.certificate.whole
    assert [len(charge.queries) for charge in asked(made)] == [1, 7]


def test_one_column_and_columns_with_one_value_need_no_trees():
    import pyarrow as pa

    schema = hr.Schema.parse("columns: {a: {type: code, size: 4}, b: {type: code, size: 1}}")
    rows = pa.table({"a": np.arange(500) % 4, "b": np.zeros(500, dtype=np.int64)})
    made = hr.synthesize(rows, schema, hr.Budget(5.0), RDT(height=3), quality=0)
    assert made.certificate.spent == made.certificate.whole
    assert made.sample(10).num_rows == 10


def test_a_tree_too_large_is_refused_before_anything_is_spent(table, tmp_path):
    books = tmp_path / "opm.ledger"
    Ledger.create(books, "opm", hr.Budget(4.0))
    before = books.read_bytes()
    with refused("tree-too-large", "height 7"):
        hr.synthesize(
            table, SCHEMA, hr.Budget(1.0), RDT(height=7), ledger=books, limits=Limits(memory=8 << 20), quality=0
        )
    assert books.read_bytes() == before


def test_relations_are_kept_that_independent_columns_lose(table):
    """Occupations 1–4 belong to the agencies E–H, 5–8 to A–D: independent columns mix a quarter of the rows."""

    def mixed(rows):
        early = np.asarray(rows["agency"].cast("string").to_numpy(zero_copy_only=False).astype(str) < "E")
        high = np.asarray(rows["occupation"].to_numpy(zero_copy_only=False).astype(str) > "0004")
        return float((early != high).mean())

    assert mixed(table) == 0
    independent = hr.synthesize(table, SCHEMA, hr.Budget(8.0), "independent", unsafe_noise_seed=1, quality=0)
    assert mixed(independent.sample()) > 0.2
    assert mixed(release(table, 8.0).sample()) < 0.1
    three = table.select(["sex", "agency", "occupation"])
    schema = hr.Schema.parse(opm.SCHEMA.split("  education:")[0]).to_dict()
    schema["columns"] = {name: schema["columns"][name] for name in three.column_names}
    full = hr.synthesize(
        three, hr.Schema.from_dict(schema), hr.Budget(1e4), RDT(height=3), unsafe_noise_seed=1, quality=0
    )
    assert mixed(full.sample()) == 0  # a tree of full height makes no combination that the rows do not have


def test_shrinking_helps_where_leaves_are_noisy(table):
    encoding = SCHEMA.encoding()
    real = encoding.encode(table.combine_chunks())

    def error(made):
        rows = made.model.draw(20_000, block_rng(0, 0))
        sizes = {attribute.name: attribute.size for attribute in encoding.domain}
        shares = [(np.bincount(t[n], minlength=sizes[n]) for t in (real, rows)) for n in sizes]
        return np.mean([np.abs(ours - theirs).sum() for ours, theirs in shares])

    assert error(release(table, 1.0, height=4)) < 0.5 * error(release(table, 1.0, height=4, noise="clip"))


def test_the_order_says_what_is_drawn_first(table):
    made = release(table, order=("sex", "agency"), height=2)
    labels = [forest.label for forest in made.model.forests]
    assert labels[:2] == ["sex", "agency"]
    assert sorted(labels) == sorted(SCHEMA.encoding().domain.names)
    with refused("unknown-column", '"sxe"', 'Did you mean "sex"'):
        release(table, order=("sxe",))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"trees": "0"}, ("bad-option",)),
        ({"sweeps": "0"}, ("bad-option", "1,000")),
        ({"sweeps": "1001"}, ("bad-option", "1,000")),
        ({"ranges": "1"}, ("bad-option",)),
        ({"noise": "none"}, ("bad-option",)),
        ({"columns": "1"}, ("bad-option",)),
        ({"hight": "3"}, ("unknown-option", 'Did you mean "height"')),
    ],
)
def test_bad_options_are_refused(options, complaint):
    with refused(*complaint):
        build("rdt", options)
    assert build("rdt", {"order": "a,b", "noise": "clip"}) == RDT(order=("a", "b"), noise="clip")


@pytest.fixture
def printed(monkeypatch):
    """The module of the printed procedure, which is not part of the package."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("reproduce.printed_trees")


@pytest.mark.parametrize("stage", ["frequencies", "proportions"])
@pytest.mark.parametrize("pair", list(pairs(len(KINDS))), ids=KINDS)
def test_replay_catches_the_printed_procedure(printed, stage, pair):
    with pytest.raises(Violation, match="although every answer was the same"):
        replay_pair(printed.PrintedTrees(stage, height=3), BUDGETS[0], pair)


def test_the_printed_procedure_has_no_guarantee_and_no_ledger_takes_it(printed, table, tmp_path):
    method = printed.PrintedTrees(height=3)
    made = hr.synthesize(table.slice(0, 500), SCHEMA, hr.Budget(1.0), method, quality=0)
    assert made.certificate.guarantee is None
    assert made.sample().num_rows == 500  # it even tells the number of rows
    Ledger.create(tmp_path / "opm.ledger", "opm", hr.Budget(4.0))
    with refused("ledger-needs-guarantee"):
        hr.synthesize(table, SCHEMA, hr.Budget(1.0), method, ledger=tmp_path / "opm.ledger", quality=0)


def test_the_printed_steps_by_hand(printed):
    """Two leaves: three rows of label 0, one of label 1; one row alone."""
    counts = np.array([[3.0, 1.0], [0.0, 1.0]])
    leaves, labels = np.array([0, 0, 0, 0, 1], dtype=np.uint32), np.array([0, 0, 0, 1, 1], dtype=np.uint8)
    assert printed.removal_changes(counts, leaves, labels).tolist() == pytest.approx([1 / 12] * 3 + [1 / 4, 1.0])
    unchanged = printed.PrintedTrees("none").perturbed(counts, np.random.default_rng(0))
    assert unchanged.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    certain = printed.drawn([unchanged], [np.ones(40_000, dtype=np.uint32)], np.random.default_rng(0))
    assert (certain == 1).all()
    mixed = printed.drawn([unchanged], [np.zeros(40_000, dtype=np.uint32)], np.random.default_rng(0))
    assert mixed.mean() == pytest.approx(0.25, abs=0.02)


def test_truncated_noise_never_makes_a_proportion_negative_and_follows_its_law(printed):
    """Given noise ≥ −p, P(noise > 0) = ½ / (1 − ½e^(−p/b)); at p = b that is 0.6127."""
    shares = np.full((1, 100_000), 0.1)
    noise = printed.truncated_laplace(shares, 0.1, np.random.default_rng(1))
    assert (shares + noise >= 0).all()
    assert (noise > 0).mean() == pytest.approx(0.5 / (1 - 0.5 * np.exp(-1)), abs=0.01)
