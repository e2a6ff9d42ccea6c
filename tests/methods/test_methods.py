"""Methods beyond the laws that all of them keep: workloads, limits, small and large budgets."""

import json

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.coded.domain import Domain, Workload
from hedgerow.methods.aim import AIM
from hedgerow.methods.mst import MST
from hedgerow.methods.mwem import MWEM
from hedgerow.methods.shared.workloads import closure, workload_of
from hedgerow.private.evaluate import marginal_distances
from hedgerow.progress import Limits, Progress
from hedgerow.samples import opm
from refusals import refused

SCHEMA = hr.Schema.parse(opm.SCHEMA)
METHODS = ["mst", "aim", "mwem"]


class Public:
    """The part of a curator that is public."""

    def __init__(self, domain, columns):
        self.domain, self.columns = domain, columns
        self.rng = np.random.default_rng(0)


CURATOR = Public(Domain.of({"a": 2, "b": 3, "b:heap": 2, "c": 4}), {"a": ("a",), "b": ("b", "b:heap"), "c": ("c",)})


def test_a_workload_is_a_degree_or_a_file_of_columns(tmp_path):
    assert set(workload_of(CURATOR, "1").weights) == {("a",), ("b",), ("b:heap",), ("c",)}
    assert len(workload_of(CURATOR, "9").weights) == 1
    path = tmp_path / "w.yaml"
    path.write_text("- [a, c]\n- {columns: [b], weight: 3}\n- [c, a]\n")
    assert workload_of(CURATOR, str(path)).weights == {("a", "c"): 2.0, ("b", "b:heap"): 3.0}
    path.write_text(json.dumps([["a", "b"]]))
    assert workload_of(CURATOR, str(path)).weights == {("a", "b", "b:heap"): 1.0}


@pytest.mark.parametrize(
    "given",
    [
        [["a", "c"], {"columns": ["b"], "weight": 3}],
        ({("c", "a"): 1.0, ("b",): 3}),
        [[["a", "c"], 1.0], [["b"], 3.0]],  # as a certificate has it
    ],
)
def test_a_workload_is_an_object_too(given):
    method = AIM(workload=given)
    assert workload_of(CURATOR, method.workload).weights == {("a", "c"): 1.0, ("b", "b:heap"): 3.0}
    assert AIM(workload=json.loads(json.dumps(method.workload))) == method
    assert AIM(workload=2).workload == "2"
    for bad in ([], [7], 2.5, {"a": "x"}):
        with refused("bad-workload"):
            AIM(workload=bad)


@pytest.mark.parametrize(("columns", "degree"), [(107, 3), (108, 2), (700, 2)])
def test_the_degree_is_lowered_on_tables_of_very_many_columns(columns, degree):
    domain = Domain.of({f"c{index}": 2 for index in range(columns)})
    assert {len(marginal) for marginal in workload_of(Public(domain, {}), "3").weights} == {degree}


def test_a_target_weighs_its_marginals_more():
    weights = workload_of(CURATOR, "2", target="b").weights
    assert weights["a", "b"] == weights["b:heap", "c"] == 4 * weights["a", "c"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- [a, cc]", ("unknown-column", '"cc"', 'Did you mean "c"')),
        ("- {columns: [a], weight: -1}", ("bad-weight",)),
        ("- 7", ("bad-workload",)),
        ("a: 1", ("bad-workload",)),
        ("[", ("bad-workload",)),
    ],
)
def test_bad_workloads_are_refused(tmp_path, text, complaint):
    (tmp_path / "w.yaml").write_text(text)
    with refused(*complaint):
        workload_of(CURATOR, str(tmp_path / "w.yaml"))


def test_a_workload_that_is_no_file_is_refused():
    with refused("bad-workload"):
        workload_of(CURATOR, "triples")


def test_the_closure_weighs_parts_by_their_overlap():
    """Σ over the workload of weight · |r ∩ s|, by hand."""
    workload = Workload({("a", "b"): 2.0, ("b", "c"): 1.0})
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    assert closure(workload, domain) == {
        ("a",): 2.0,
        ("b",): 3.0,
        ("c",): 1.0,
        ("a", "b"): 2 * 2.0 + 1.0,
        ("b", "c"): 2.0 + 2 * 1.0,
    }


@pytest.fixture(scope="module")
def table():
    return opm.generate(20_000)


def error(release, table, degree=2):
    encoding = SCHEMA.encoding()
    real, made = encoding.encode(table.combine_chunks()), encoding.encode(release.sample().combine_chunks())
    return float(marginal_distances(real, made, encoding.domain, degree).mean())


@pytest.mark.parametrize("name", METHODS)
def test_relations_are_kept_that_independent_columns_lose(table, name):
    table, budget = table.slice(0, 5000), hr.Budget(8.0)
    alone = error(hr.synthesize(table, SCHEMA, budget, "independent", unsafe_noise_seed=1, quality=0), table)
    method = hr.methods.build(name, {} if name == "mst" else {"size": "0.2"})
    assert error(hr.synthesize(table, SCHEMA, budget, method, unsafe_noise_seed=1, quality=0), table) < 0.8 * alone


@pytest.mark.parametrize("name", ["mst", "aim"])
def test_a_budget_too_small_for_relations_is_spent_on_columns(table, name):
    few = table.slice(0, 300)
    release = hr.synthesize(few, SCHEMA, hr.Budget(0.05), name, unsafe_noise_seed=1, quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert all(len(query["attributes"]) < 2 for c in release.certificate.charges for query in c.queries)


@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize("epsilon", [0.01, 100.0])
@pytest.mark.parametrize("name", METHODS)
def test_extreme_budgets_give_valid_tables(name, epsilon, delta):
    size = {} if name == "mst" else {"size": "0.1"}
    method = hr.methods.build(name, size)
    release = hr.synthesize(opm.generate(400), SCHEMA, hr.Budget(epsilon, delta), method, quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert release.sample(50).schema == SCHEMA.encoding().arrow_schema


def test_out_of_time_ends_rounds_and_spends_the_rest(table):
    progress = Progress(Limits(seconds=1e-9))
    release = hr.synthesize(table, SCHEMA, hr.Budget(1.0), AIM(), progress=progress, quality=0)
    assert release.certificate.spent == release.certificate.whole
    assert sum(charge.purpose == "select" for charge in release.certificate.charges) == 1
    assert any("time was up" in statement for statement in release.certificate.statements())


def test_the_tree_has_no_cycle(table):
    release = hr.synthesize(table, SCHEMA, hr.Budget(2.0), MST(), quality=0)
    pairs = [tuple(answer.chosen["attributes"]) for answer in release.answers if answer.chosen]
    component = {name: name for pair in pairs for name in pair}
    for first, second in pairs:
        a, b = component[first], component[second]
        assert a != b
        component = {name: a if root == b else root for name, root in component.items()}


def test_models_stay_within_their_size(table):
    release = hr.synthesize(table, SCHEMA, hr.Budget(5.0), AIM(size=0.01), quality=0)
    inner = getattr(release.model, "model", release.model)
    largest = max((np.prod([inner.domain[name].size for name in clique]) for clique in inner.cliques), default=0)
    assert largest * 8 <= 0.01 * 2**20 * 2


@pytest.mark.parametrize("method", [AIM, MWEM])
@pytest.mark.parametrize(
    ("options", "code"), [({"workload": "missing.yaml"}, "bad-workload"), ({"target": "wage"}, "unknown-column")]
)
def test_a_workload_that_cannot_be_is_refused_before_anything_is_asked(method, options, code):
    class Untouched(Public):
        remaining = None

    with refused(code):
        method(**options).run(Untouched(CURATOR.domain, CURATOR.columns), Progress())
