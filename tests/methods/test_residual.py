"""Fixed workloads: the mechanism is the best there is, tables agree and say how far they are off, rows fit them."""

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit import check_method
from hedgerow.coded.domain import Attribute, Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import InteractionQuery, MarginalQuery, total_query
from hedgerow.methods.residual import Residual
from hedgerow.methods.shared.strategies import FixedWorkload, best_gram
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.graphical.terms import Terms
from hedgerow.models.interactions import Asked, Interactions, of_cliques, parts
from refusals import code_in, refused

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
SCHEMA = """
columns:
  age:   {type: integer, min: 0, max: 9}
  sex:   {type: category, values: [F, M]}
  place: {type: category, values: [a, b, c, d], ordered: false}
"""


def domain_of(sizes):
    return Domain(Attribute(name, size, size) for name, size in zip("abcd", sizes, strict=False))


def tables_of(domain, chosen):
    every = [each for length in (1, 2, 3) for each in combinations(domain.names, length)]
    return {every[number % len(every)]: 1.0 + number % 3 for number in chosen}


def whole_gram(plan):
    """Wᵀ·W of the whole workload over the whole domain."""
    total = 0
    for table, weight in plan.tables.items():
        gram = np.ones((1, 1))
        for attribute in plan.domain:
            held = attribute.name in table
            asked = plan.asked.get(attribute.name, Asked())
            gram = np.kron(gram, asked.gram(attribute) if held else np.ones((attribute.size, attribute.size)))
        total = total + weight * gram
    return total


def variances(plan, objective="sum"):
    """Of every table's counts, summed, at a cost of 1."""
    noise = {part: 1 / weight**2 for part, weight in zip(plan.interactions, plan.weights("l2", objective), strict=True)}
    return {
        table: sum(error * noise[part] for part, error in errors.items()) for table, errors in plan.errors("l2").items()
    }


@settings(max_examples=40, deadline=None)
@given(SIZES, st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_plain_tables_are_measured_by_the_best_of_all_gaussian_mechanisms(sizes, chosen):
    domain = domain_of(sizes)
    plan = FixedWorkload(domain, tables_of(domain, chosen), {})
    assert math.isclose(sum(weight**2 for weight in plan.weights("l2", "sum")), 1)
    found = sum(plan.tables[table] * value for table, value in variances(plan).items())
    best = best_gram(whole_gram(plan))
    assert math.isclose(found, best.error, rel_tol=1e-6)
    assert math.isclose(best.error, best.bound, rel_tol=1e-6)


def test_the_best_mechanism_is_below_all_others_that_were_tried():
    rng = np.random.default_rng(0)
    wanted = Asked("ranges").gram(Attribute("age", 5, 5))
    best = best_gram(wanted)
    assert np.diagonal(best.gram).max() <= 1 + 1e-12
    for _ in range(2000):
        near = rng.random() < 0.5
        root = np.linalg.cholesky(best.gram) + 0.05 * rng.normal(size=(5, 5)) if near else rng.normal(size=(5, 5))
        gram = root @ root.T
        gram /= np.diagonal(gram).max()
        assert np.trace(wanted @ np.linalg.inv(gram)) >= best.bound * (1 - 1e-9)


@pytest.mark.parametrize(
    ("sizes", "ask", "worse"),
    [
        ((5, 4), {"a": "prefixes"}, 0.07),
        ((20,), {"a": "ranges"}, 0.06),
        ((20,), {"a": "prefixes"}, 0.1),
        ((8,), {"a": {"x": [0, 1, 2], "y": [3, 4, 5, 6, 7]}}, 0.01),
    ],
)
def test_other_queries_are_near_the_best(sizes, ask, worse):
    domain = domain_of(sizes)
    asked = {name: Asked.read(value, name) for name, value in ask.items()}
    plan = FixedWorkload(domain, {domain.names: 1.0}, asked)
    found = sum(variances(plan).values())
    assert best_gram(whole_gram(plan)).bound * (1 - 1e-9) <= found
    assert found <= (1 + worse) * best_gram(whole_gram(plan)).error


@settings(max_examples=20, deadline=None)
@given(SIZES, st.lists(st.integers(0, 40), min_size=1, max_size=3))
def test_the_largest_variance_can_be_made_least(sizes, chosen):
    domain = domain_of(sizes)
    plan = FixedWorkload(domain, tables_of(domain, chosen), {})

    def largest(objective):
        return max(
            plan.tables[table] * value / plan.queries(table) for table, value in variances(plan, objective).items()
        )

    assert largest("largest") <= (1 + 1e-6) * largest("sum")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(0, 10**6))
def test_an_interaction_reaches_as_far_as_its_longest_column(sizes, seed):
    domain, rng = domain_of(sizes), np.random.default_rng(seed)
    matrices = {name: rng.integers(-9, 10, (3, domain[name].size)) | 1 for name in domain.names if rng.random() < 0.5}
    query = InteractionQuery(domain, domain.names, matrices)
    moved = [query.combined(row) for row in np.eye(math.prod(sizes), dtype=np.int64)]
    assert query.reach("l1") == max(np.abs(step).sum() for step in moved)
    assert math.isclose(query.reach("l2"), max(np.sqrt((step**2).sum()) for step in moved))
    assert all(step.dtype == np.int64 for step in moved)


def measured(plan, counts, rng, std=1e-9):
    """Interactions of a public joint table, with as much noise."""
    found = []
    for part in plan.interactions:
        query = plan.query(part)
        axes = tuple(axis for axis, name in enumerate(plan.domain.names) if name not in part)
        exact = counts.sum(axis=axes)
        exact = query.combined(exact) if part else exact.reshape(1)
        scale = std * query.reach("l2")
        noise = np.rint(rng.normal(0, scale, len(exact))).astype(np.int64)
        found.append(Measurement(query, exact + noise, Noise("gaussian", scale)))
    return found


def test_tables_are_the_counts_themselves_where_there_is_no_noise_and_agree_where_there_is():
    rng = np.random.default_rng(1)
    domain = domain_of((6, 3, 2))
    counts = rng.integers(0, 50, (6, 3, 2))
    asked = {"a": Asked("prefixes"), "b": Asked.read({"low": [0, 1]}, "b")}
    plan = FixedWorkload(domain, {("a", "b"): 1.0, ("b", "c"): 1.0}, asked)
    exact = Interactions(domain, measured(plan, counts, rng))
    assert np.allclose(exact.table(("a", "b")).values, counts.sum(axis=2))
    prefixes = exact.table(("a", "b"), asked).values
    assert np.allclose(prefixes[:, :3], counts.sum(axis=2).cumsum(axis=0))
    assert np.allclose(prefixes[:, 3], prefixes[:, 0] + prefixes[:, 1])
    noisy = Interactions(domain, measured(plan, counts, rng, std=5.0))
    apart = noisy.table(("a", "b")).values
    assert np.allclose(apart.sum(axis=0), noisy.table(("b",)).values)
    assert np.allclose(noisy.table(("b", "c")).values.sum(axis=1), noisy.table(("b",)).values)
    assert not np.allclose(apart, counts.sum(axis=2))
    with refused("not-measured"):
        noisy.table(("a", "c"))


def test_tables_are_off_by_as_much_as_they_say():
    """A table is a linear function of the answers, so what each of them adds to its variance is seen one by one."""
    domain = domain_of((5, 3))
    asked = {"a": Asked("ranges")}
    plan = FixedWorkload(domain, {("a", "b"): 1.0}, asked)
    answers = measured(plan, np.zeros((5, 3), dtype=np.int64), np.random.default_rng(2), std=5.0)
    nothing = [Measurement(each.query, np.zeros_like(each.values), each.noise) for each in answers]
    variance = 0
    for number, each in enumerate(nothing):
        for impulse in 10**6 * np.eye(each.query.cells, dtype=np.int64):
            changed = [*nothing[:number], Measurement(each.query, impulse, each.noise), *nothing[number + 1 :]]
            told = Interactions(domain, changed).table(("a", "b"), asked).values / 10**6
            variance = variance + each.noise.variance * told**2
    assert np.allclose(np.sqrt(variance), Interactions(domain, answers).table(("a", "b"), asked).std)


def test_a_model_follows_interactions_as_it_follows_the_tables_they_come_to():
    rng = np.random.default_rng(3)
    domain = domain_of((6, 3))
    counts = 20 + rng.integers(0, 50, (6, 3))
    plan = FixedWorkload(domain, {("a", "b"): 1.0}, {"a": Asked("prefixes")})
    answers = measured(plan, counts, rng, std=2.0)
    table = Interactions(domain, answers).table(("a", "b")).values
    assert table.min() > 0
    model = fit(domain, answers, total=answers[0].total)
    assert np.allclose(model.marginal(("a", "b")), table, atol=0.05)
    assert len(Terms(model.plan, answers)) < sum(each.query.cells for each in answers)  # no direction twice


@pytest.mark.parametrize(
    "options",
    [
        {"workload": "3", "ask": {"grade": "ranges"}, "objective": "largest"},
        {"size": 0.0, "workload": [["grade", "flag"], ["age"]], "ask": {"grade": {"upper": [1, 2]}}},
    ],
)
def test_it_keeps_its_promise(options):
    check_method(Residual(**options))


def rows_of(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 10, rows)
    place = np.array(list("abcd"))[np.minimum(3, rng.poisson(age / 4))]
    return pa.table({"age": age, "sex": np.array(["F", "M"])[rng.integers(0, 2, rows)], "place": place})


def test_a_release_holds_the_tables_that_were_named(tmp_path):
    ask = {"age": "prefixes", "place": {"north": ["a", "b"], "south": {"coast": ["c"], "inland": ["d"]}}}
    tables = [["place", "age"], ["sex"]]
    (tmp_path / "tables.yaml").write_text("- [place, age]\n- [sex]\n")
    method = hr.methods.build("residual", {"workload": str(tmp_path / "tables.yaml"), "ask": ask})
    made = hr.synthesize(rows_of(), hr.Schema.parse(SCHEMA), hr.Budget(4, 1e-6), method)
    path = tmp_path / "people.release"
    made.save(path)
    (tmp_path / "tables.yaml").unlink()
    release = hr.Release.load(path)
    for each in (made, release):
        found = each.counts(tables[0])
        assert found.columns == ("age", "place")
        assert found.labels[0][:2] == ("0", "0 to 1")
        assert found.labels[1][-4:] == ("north", "south", "coast", "inland")
        assert found.values.shape == found.std.shape == tuple(map(len, found.labels))
        assert np.array_equal(found.values, made.counts(tables[0]).values)
    plain = release.counts(["age", "place"], ask={})
    assert np.allclose(plain.values[:10].cumsum(axis=0), found.values[:10, : plain.values.shape[1]])
    assert release.counts(["sex"]).table().column_names == ["sex", "count", "std"]
    assert abs(release.counts(["sex"]).values[0] - 1000) < 200
    answer = release.ask("SELECT COUNT(*) FROM people GROUP BY sex")[0].rows[0]
    assert answer.basis == "measured"
    with refused("not-measured"):
        release.counts(["age", "sex"])
    other = hr.synthesize(rows_of(), hr.Schema.parse(SCHEMA), hr.Budget(4, 1e-6), "mst")
    with refused("no-named-tables"):
        other.counts(["sex"])


def test_the_command_writes_all_tables_that_were_named_or_none(hedgerow, people):
    (people / "tables.yaml").write_text("- [sex, age]\n- [education]\n")
    words = ("-m", "residual", "--workload", "tables.yaml", "--set", "ask=age:prefixes", "-o", "out.csv")
    made = hedgerow("synth", "people.parquet", "-s", "people.yaml", "-e", 1, *words)
    assert made.code == 0, made.err
    done = hedgerow("counts", "out.release", "-o", "counts")
    assert done.code == 0, done.err
    assert sorted(path.name for path in (people / "counts").iterdir()) == ["001.csv", "002.csv"]
    assert (people / "counts" / "001.csv").read_text().splitlines()[0] == '"sex","age","count","std"'
    assert code_in(hedgerow("counts", "out.release", "-o", "counts").err) == "already-exists"
    missing = hedgerow("counts", "out.release", "-o", "more", "--table", "education", "--table", "sex,education")
    assert code_in(missing.err) == "not-measured"
    assert not (people / "more").exists()


def test_laplace_noise_serves_where_delta_is_0():
    release = hr.synthesize(rows_of(), hr.Schema.parse(SCHEMA), hr.Budget(4, 0), Residual())
    assert {each.noise.kind for each in release.measurements} == {"laplace"}
    sizes = {attribute.name: attribute.size for attribute in release.model.domain}
    refitted = hr.fit(sizes, release.measurements)
    assert np.isfinite(refitted.loss)
    assert np.allclose(refitted.marginal("sex"), release.model.marginal(("sex",)), atol=2)
    with refused("not-a-marginal-query"):
        hr.fit(sizes, release.measurements, loss="absolute")
    assert abs(release.counts(["sex"]).values[0] - 1000) < 300


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"ask": {"place": "prefixes"}}, "bad-ask"),
        ({"ask": {"height": "prefixes"}}, "unknown-column"),
        ({"ask": {"place": {"north": ["a", "x"]}}}, "bad-ask"),
        ({"workload": [["height"]]}, "unknown-column"),
    ],
)
def test_what_a_column_cannot_answer_is_refused_before_anything_is_spent(options, code):
    with refused(code) as problem:
        hr.synthesize(rows_of(), hr.Schema.parse(SCHEMA), hr.Budget(1, 1e-9), Residual(**options))
    assert "pent" in str(problem.value)


def test_a_word_that_is_no_question_is_refused_as_it_is_read():
    with refused("bad-ask"):
        Residual(ask={"age": "prefix"})
    with refused("not-a-mapping"):
        Residual(ask=3)


def test_counts_are_not_asked_through_interactions_of_one_value_or_with_other_columns():
    domain = domain_of((1, 3))
    assert FixedWorkload(domain, {("a", "b"): 1.0}, {}).interactions == [(), ("b",)]
    with refused("bad-combination"):
        InteractionQuery(domain, ("a",))
    with refused("bad-combination"):
        InteractionQuery(domain, ("b",), {"b": [[1, 2]]})
    with refused("bad-combination"):
        InteractionQuery(domain, ("b",), {"b": [[1 << 40, 0, 0]]})
    assert total_query(domain).reach("l2") == MarginalQuery(domain, ("b",)).reach("l1") == 1


@given(SIZES, st.integers(0, 2**32 - 1))
def test_interactions_told_of_cliques_pose_the_same_least_squares(sizes, seed):
    """For any counts: Σ of squared residuals in units of the noise, of the interactions and of what they come to."""
    domain, rng = domain_of(sizes), np.random.default_rng(seed)
    told = [part for part in parts(domain, domain.names) if part]
    noises = [Noise("gaussian", float(rng.uniform(1, 9))) for _ in told]
    answers = [
        Measurement(InteractionQuery(domain, part), rng.integers(-50, 50, domain.cells(part)), noise)
        for part, noise in zip(told, noises, strict=True)
    ]
    # answers that some counts could give, as far as they go along the contrasts
    counts = [rng.uniform(0, 20, domain.shape(domain.names)) for _ in range(2)]

    def of_interactions(table):
        loss = 0.0
        for each in answers:
            axes = tuple(axis for axis, name in enumerate(domain.names) if name not in each.query.attributes)
            loss += float(((each.query.combined(table.sum(axis=axes)) - each.values) ** 2).sum()) / each.noise.variance
        return loss

    def of_numbers(table):
        return sum(
            float((((each.matrix @ table.reshape(-1)) - each.values) ** 2 / each.std**2).sum())
            for each in of_cliques(domain, [domain.names], answers)
        )

    between = [of_interactions(table) - of_numbers(table) for table in counts]
    assert between[0] == pytest.approx(between[1], rel=1e-6, abs=1e-6), "the same but for a constant"
