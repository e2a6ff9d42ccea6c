"""Quality under the same guarantee: noisy distances of the default draw, charged, certified, replayed, and honest."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.audit.method import SCHEMA, pairs
from hedgerow.audit.replay import replay
from hedgerow.budget.accounting import stack_scale, whole
from hedgerow.coded.domain import Domain
from hedgerow.coded.query import MarginalQuery
from hedgerow.methods.independent import Independent
from hedgerow.models.rows import CountedRows
from hedgerow.pages.uses import uses
from hedgerow.private.engines import open_engine
from hedgerow.private.evaluate.marginals import marginal_distances
from hedgerow.private.quality import MOST_PAIRS, distances_of
from hedgerow.progress import Progress
from hedgerow.release.bundle import verify
from hedgerow.release.quality import Distance, Quality, mean
from hedgerow.run import Run
from refusals import refused

BUDGET = hr.Budget(1.0, 1e-6)
CODES = hr.Schema.from_dict({"a": 3, "b": 4, "c": 2, "d": 5})


def table(rows=5_000, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    c = (a + (rng.random(rows) < 0.2)) % 2
    return pa.table({"a": a, "b": (a + rng.integers(0, 2, rows)) % 4, "c": c, "d": rng.integers(0, 5, rows) * c})


def released(**given):
    return hr.synthesize(table(), CODES, BUDGET, "independent", **given)


def test_the_distances_are_those_of_the_rows_that_are_written():
    """At an enormous budget there is no noise to speak of, so what is left is the distance itself."""
    budget = hr.Budget(1e5, 0.5)
    made = hr.synthesize(table(), CODES, budget, "independent", seed=3)
    assert made.certificate.drawn == {"rows": made.estimated_rows, "seed": 3}
    real, drawn = (CODES.encoding().encode(rows) for rows in (table(), made.sample(seed=3)))
    found = made.quality
    for degree, measured in ((1, found.columns), (2, found.pairs)):
        exact = marginal_distances(real, drawn, CODES.encoding().domain, degree)
        np.testing.assert_allclose([each.value for each in measured], exact, atol=1e-3)
    assert found.mean_pair.value == pytest.approx(exact.mean(), abs=1e-3)
    assert found.worst_pair.value == pytest.approx(exact.max(), abs=1e-3)


@pytest.mark.parametrize(
    "kind", [{"type": "integer", "min": 0, "max": 9}, {"type": "date", "min": "2020-01-01", "max": "2020-01-09"}]
)
@pytest.mark.parametrize("written", ["frame", "csv"])
def test_what_is_missing_comes_back_as_nothing_and_is_no_distance(kind, written, tmp_path):
    """A number cannot hold the mark N, so a released table is empty there: still the same rows."""
    schema = hr.Schema(columns={"a": {**kind, "missing": {"N": "not applicable"}}, "b": {"type": "boolean"}})
    value = "7" if kind["type"] == "integer" else "2020-01-07"
    rows = pa.table({"a": ["N", value] * 1_000, "b": ["true", "true", "false", "true"] * 500})
    made = hr.synthesize(rows, schema, hr.Budget(1e5, 0.5), "mst")
    assert max(each.value for each in (*made.quality.columns, *made.quality.pairs)) < 0.01
    drawn = made.sample()
    assert drawn["a"].null_count == pytest.approx(1_000, abs=20)
    if written == "csv":
        pa.csv.write_csv(drawn, tmp_path / "drawn.csv")
        drawn = pa.csv.read_csv(
            tmp_path / "drawn.csv", convert_options=pa.csv.ConvertOptions(column_types={"a": pa.string()})
        )
    back = schema.encoding().read_back(drawn)["a"]
    assert (back == schema.columns["a"].layout.mark("N")).sum() == made.sample()["a"].null_count


def test_it_is_the_last_charge_takes_its_share_and_reads_back(tmp_path):
    made = released(quality=0.1)
    charges = made.certificate.charges
    assert [charge.purpose == "quality" for charge in charges] == [False] * (len(charges) - 1) + [True]
    assert charges[-1].amount.value == pytest.approx(0.1 * made.certificate.whole.value)
    assert made.certificate.spent == made.certificate.whole
    made.save(tmp_path / "x.release")
    loaded, _ = verify(tmp_path / "x.release")
    assert loaded.quality == made.quality


def test_no_share_asks_for_nothing():
    made = released(quality=0)
    assert made.quality is None
    assert made.certificate.drawn is None
    assert all(charge.purpose != "quality" for charge in made.certificate.charges)


@pytest.mark.parametrize("share", [-0.1, 0.3, math.nan, "much"])
def test_a_share_that_is_none_is_refused(share):
    with refused("bad-quality-share", "No row was read"):
        released(quality=share)


@pytest.mark.parametrize("budget", [hr.Budget(1.0, 1e-9), hr.Budget(1.0, 0.0)])
def test_neighbours_make_the_same_release_and_stay_within_the_sensitivity(budget):
    schema = hr.Schema.parse(SCHEMA)

    def on(rows):
        def run(mechanisms):
            engine = open_engine(rows, bounding_key=b"the same key for both neighbours")
            return Run(schema, budget, Independent(), 0, Progress(), quality=0.2).release(engine, mechanisms)

        return run

    replayed = [replay(on(pair.table), on(pair.neighbour)) for pair in pairs(6)]
    assert {each.release.certificate.charges[-1].purpose for each in replayed} == {"quality"}
    assert max(each.ratios[-1] for each in replayed) > 0.3  # distances of all marginals at once are seldom all moved


def test_a_method_that_began_in_epsilon_leaves_the_share_in_gaussian_noise():
    made = hr.synthesize(table(), CODES, BUDGET, "dpsyn")
    assert made.certificate.charges[-1].mechanism == "gaussian"
    assert made.certificate.spent == made.certificate.whole


@given(st.integers(1, 40), st.integers(0, 10))
def test_every_kind_gets_the_same_part(count, wider):
    domain = Domain.of({f"x{number}": 3 for number in range(count)})
    workload = [domain.names[start : start + 3] for start in range(min(wider, max(0, count - 2)))]
    asked = distances_of(domain, workload, 0)
    kinds = {1: count, 2: math.comb(count, 2), 3: len(workload)}
    for degree, expected in kinds.items():
        kind = [each for each in asked if len(each.query.attributes) == degree]
        assert len(kind) == expected
        assert sum(each.weight**2 for each in kind) == pytest.approx(1.0 if kind else 0.0)


def test_very_many_pairs_are_drawn_by_lot_and_wide_ones_left_out():
    many = Domain.of({f"x{number}": 2 for number in range(150)})
    drawn = [[each.query.attributes for each in distances_of(many, (), seed)] for seed in (0, 0, 1)]
    assert len(drawn[0]) == 150 + MOST_PAIRS
    assert drawn[0] == drawn[1] != drawn[2]
    wide = Domain.of({"a": 1 << 20, "b": 1 << 20, "c": 2})
    assert [each.query.attributes for each in distances_of(wide, (), 0)] == [
        ("a",), ("b",), ("c",), ("a", "c"), ("b", "c")
    ]  # fmt: skip


def test_asking_for_all_pairs_tells_their_mean_as_well_as_asking_for_it_alone():
    """The reason why there is no question for the mean: it would buy nothing."""
    amount = whole(BUDGET)
    alone = stack_scale(amount, [1.0], 1)
    each = stack_scale(amount, [1 / math.sqrt(91)] * 91, 1) * math.sqrt(91)
    assert each / math.sqrt(91) == pytest.approx(alone)


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_stated_errors_hold(delta):
    """Of noise drawn 200 times over, as many errors lie below the bounds as are said to (6 standard deviations)."""
    rows = table(500)
    real = CODES.encoding().encode(rows)
    below = squares = count = 0
    for seed in range(40):
        made = hr.synthesize(rows, CODES, hr.Budget(1.0, delta), "independent", seed=seed, unsafe_noise_seed=seed)
        drawn = CountedRows(made.written(made.estimated_rows, seed), made.model.total)
        for each in (*made.quality.columns, *made.quality.pairs):
            query = MarginalQuery(CODES.encoding().domain, each.attributes)
            (counts,) = CountedRows(real, 500).answers([query])
            (expected,) = drawn.answers([query])
            truth = float(np.abs(counts - expected).sum()) / (2 * made.model.total)
            below += truth <= each.upper
            squares += ((each.value - truth) / each.std) ** 2
            count += 1
    assert count == 400
    assert below / count == pytest.approx(0.9, abs=6 * math.sqrt(0.09 / count))
    assert squares / count == pytest.approx(1.0, abs=6 * math.sqrt(5 / count))


def test_a_mean_has_the_noise_of_a_mean():
    each = Distance(("a",), 0.1, 0.03, 0.1 + 0.03 * 1.28)
    assert mean([each] * 9).std == pytest.approx(0.01)
    assert mean([each] * 9).upper < each.upper
    assert mean([]) is None
    found = Quality((), (each, each), ())
    assert found.typical(found.pairs) == pytest.approx(math.sqrt(0.1**2 - 0.03**2))
    assert found.typical(()) == 0.0


# ---------------------------------------------------------------- what a schema accepts

ACCEPTING = """
accept: {{pairs: {pairs}, worst_pair: 0.9}}
columns:
  a: {{type: code, size: 3}}
  b: {{type: code, size: 4}}
"""


@pytest.fixture
def asked(hedgerow, tmp_path):
    """`hedgerow synth` of a table whose schema accepts so much distance of pairs."""
    import pyarrow.csv as pacsv

    pacsv.write_csv(table().select(["a", "b"]), tmp_path / "t.csv")

    def run(pairs, *more):
        (tmp_path / "s.yaml").write_text(ACCEPTING.format(pairs=pairs))
        return hedgerow("synth", "t.csv", "-s", "s.yaml", "-e", 1, "-m", "independent", "-o", "out.csv", *more)

    return run


def test_a_release_that_misses_what_is_accepted_is_kept_and_no_table_is_written(asked, tmp_path):
    done = asked(0.01)
    assert done.code == 4
    assert "pairs: at most 1 %, measured" in done.err
    assert "worst_pair" not in done.err.split("hedgerow [not-accepted]")[1].split("Hint")[0]
    assert not (tmp_path / "out.csv").exists()
    assert not (tmp_path / "out.release").exists()
    kept, _ = verify(tmp_path / "out.refused.release")
    assert kept.missed
    assert not list(tmp_path.glob("*.journal"))
    again = asked(0.01)
    assert again.code == 2
    assert "out.refused.release" in again.err


def test_a_release_that_is_as_good_as_demanded_passes(asked, tmp_path):
    assert asked(0.9).code == 0
    assert (tmp_path / "out.csv").exists()
    assert not (tmp_path / "out.refused.release").exists()
    assert not verify(tmp_path / "out.release")[0].missed


def test_what_is_accepted_must_be_measured(asked):
    done = asked(0.5, "--quality", 0)
    assert done.code == 2
    assert "accept-needs-quality" in done.err
    accepting = hr.Schema.parse(ACCEPTING.format(pairs=0.5))
    made = hr.synthesize(table().select(["a", "b"]), accepting, BUDGET, "independent", quality=0)
    assert made.missed == ["pairs: at most 50 %, not measured", "worst_pair: at most 90 %, not measured"]


@pytest.mark.parametrize(
    ("accept", "code"),
    [({"pair": 0.1}, "unknown-criterion"), ({"pairs": 0}, "bad-criterion"), ({"pairs": 5}, "bad-criterion")],
)
def test_criteria_that_are_none_are_refused(accept, code):
    with refused(code, "accept."):
        hr.Schema(columns={"a": {"type": "code", "size": 3}}, accept=accept)


def test_what_is_accepted_reads_back():
    schema = hr.Schema.parse(ACCEPTING.format(pairs=0.25))
    assert hr.Schema.parse(schema.to_yaml()).accept == schema.accept == {"pairs": 0.25, "worst_pair": 0.9}


GROUPED = hr.Schema.from_dict(
    {
        "columns": {
            "a": {"type": "code", "size": 3},
            "b": {"type": "code", "size": 4},
            "c": {"type": "code", "size": 2},
            "d": {"type": "code", "size": 5},
        },
        "subgroups": ["a"],
        "accept": {"worst_subgroup": 0.9},
    }
)


def test_the_rows_of_declared_subgroups_are_measured_by_themselves(tmp_path):
    """At an enormous budget, beside the distances of the rows themselves."""
    made = hr.synthesize(table(), GROUPED, hr.Budget(1e5, 0.5), "independent")
    real, drawn = (GROUPED.encoding().encode(rows) for rows in (table(), made.sample()))
    domain = GROUPED.encoding().domain
    assert [(each.column, each.value) for each in made.quality.subgroups] == [("a", "0"), ("a", "1"), ("a", "2")]
    for code, found in enumerate(made.quality.subgroups):
        inside = [{name: codes[rows["a"] == code] for name, codes in rows.items()} for rows in (real, drawn)]
        own = [len(rows["a"]) for rows in inside]
        assert found.rows == pytest.approx(own[1], rel=0.02)
        counts = [[np.bincount(rows[name], minlength=domain[name].size) for name in "bcd"] for rows in inside]
        exact = [np.abs(one - other).sum() / 2 / own[1] for one, other in zip(*counts, strict=True)]
        assert found.distance.value == pytest.approx(np.mean(exact), abs=0.02)
    assert made.missed == []
    assert "a: 2" in str(uses(made))
    made.save(tmp_path / "x.release")
    assert verify(tmp_path / "x.release")[0].quality == made.quality
    assert hr.Schema.parse(GROUPED.to_yaml()) == GROUPED


def test_neighbours_stay_within_the_sensitivity_within_subgroups_too():
    rows = table(60)

    def on(given):
        def run(mechanisms):
            return Run(GROUPED, BUDGET, Independent(), 0, Progress(), quality=0.2).release(
                open_engine(given), mechanisms
            )

        return run

    replayed = replay(on(rows), on(rows.slice(1)))
    assert sum("aggregation" in query for query in replayed.release.certificate.charges[-1].queries) == 9
    assert 0 < replayed.ratios[-1] <= 1


def test_subgroups_that_cannot_be_told_are_refused():
    columns = {"a": {"type": "code", "size": 501}, "n": {"type": "integer", "min": 0, "max": 10_000}}
    for named, code in ((["x"], "unknown-column"), (["n"], "bad-subgroup"), (["a"], "too-many-subgroups")):
        with refused(code):
            hr.Schema.from_dict({"columns": columns, "subgroups": named})
