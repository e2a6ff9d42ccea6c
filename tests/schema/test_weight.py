"""Survey weights: a column like any other, a bound that is a misfit beyond it, and tables drawn as a population."""

import numpy as np
import pyarrow as pa
import pytest
import yaml

import hedgerow as hr
from hedgerow.audit.replay import replay
from hedgerow.private.engines import open_engine
from hedgerow.progress import Progress
from hedgerow.release.bundle import Release, verify
from hedgerow.run.run import Run
from hedgerow.schema import Schema
from refusals import refused

TOWNS = "town: {type: category, values: [a, b, c]}, x: {type: code, size: 4}"


def schema(weight="{column: w, max: 500}", columns=TOWNS):
    return Schema.parse(f"columns: {{{columns}}}\nweight: {weight}")


def survey(rows=6000):
    """Rows of town c weigh most."""
    rng = np.random.default_rng(0)
    town = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    weight = np.choose(town, [rng.integers(1, 20, rows), rng.integers(50, 180, rows), rng.integers(100, 400, rows)])
    x = np.where(rng.random(rows) < 0.7, town, rng.integers(0, 4, rows))
    return pa.table({"town": np.array(["a", "b", "c"])[town], "x": x, "w": weight})


def shares(table):
    frame = table.to_pandas()
    return np.array([frame.w[frame.town == town].sum() for town in "abc"]) / frame.w.sum()


def test_the_column_is_declared_by_its_bound_and_reads_back():
    found = schema()
    assert found.names == ("town", "x", "w")
    assert found.columns["w"].max == 500
    assert Schema.from_dict(found.to_dict()) == found
    assert Schema.parse(found.to_yaml()) == found
    assert schema("{column: w, max: 12.5, decimals: 2}").columns["w"].decimals == 2
    own = schema(columns=f"{TOWNS}, w: {{type: number, min: 0, max: 500, decimals: 1}}")
    assert own.columns["w"].decimals == 1


@pytest.mark.parametrize(
    ("weight", "code"),
    [
        ("{column: w}", "missing-key"),
        ("{column: w, max: -1}", "bad-weight-bound"),
        ("{column: w, max: 1.5}", "bad-weight-bound"),
        ("{column: town, max: 5}", "bad-weight-column"),
        ("{column: x, max: 500}", "bad-weight-column"),
        ("{column: w, max: 500, drawn: sample}", "unknown-key"),
        ("{column: w, max: 500, draw: people}", "not-a-choice"),
    ],
)
def test_a_weight_that_cannot_be_used_is_refused(weight, code):
    with refused(code):
        schema(weight)


@pytest.mark.parametrize("extra", ["rules: [w >= x]", "derive: {twice: w + w}", "derive: {v: w + 1}\nrules: [v > x]"])
def test_a_rule_about_weights_has_no_population(extra):
    """Every row of every output obeys: in a population the weight is 1, whatever the model drew."""
    declared = schema().to_dict() | yaml.safe_load(extra)
    hr.Schema.from_dict(declared)
    with refused("rules-of-weights", '"w"'):
        hr.Schema.from_dict(declared | {"weight": declared["weight"] | {"draw": "population"}})


@pytest.fixture(scope="module")
def releases():
    return {
        draw: hr.synthesize(
            survey(), schema(f"{{column: w, max: 500, draw: {draw}}}"), hr.Budget(4.0), "mst", unsafe_noise_seed=3
        )
        for draw in ("sample", "population")
    }


@pytest.mark.parametrize("draw", ["sample", "population"])
def test_weighted_figures_come_out_right(releases, draw):
    """At ε = 4: towns' weighted shares within .02, the sum of weights within 2 %."""
    real, release = survey(), releases[draw]
    table = release.sample(30_000) if draw == "population" else release.sample()
    assert np.abs(shares(table) - shares(real)).max() < 0.02
    total = release.expected_rows() if draw == "population" else table["w"].to_numpy().sum()
    assert abs(total / real["w"].to_numpy().sum() - 1) < 0.02


def test_a_population_is_the_sample_drawn_by_weight(releases):
    """Against the same model's own sample, weighted: every share within seven standard deviations."""
    release = releases["population"]
    sample = Release(schema(), release.model, release.certificate, release.answers)
    sample.schema = release.schema.model_copy(update={"weight": releases["sample"].schema.weight})
    rows = 40_000
    plain, drawn = sample.sample(rows).to_pandas(), release.sample(rows).to_pandas()
    assert (drawn.w == 1).all()
    effective = plain.w.sum() ** 2 / (plain.w**2).sum()
    for town in "abc":
        for x in range(4):
            expected = plain.w[(plain.town == town) & (plain.x == x)].sum() / plain.w.sum()
            found = ((drawn.town == town) & (drawn.x == x)).mean()
            spread = np.sqrt(expected * (1 - expected) * (1 / rows + 1 / effective))
            assert abs(found - expected) < 7 * spread + 1e-3
    where = "town = 'c'"
    assert release.share(where) == pytest.approx(shares(sample.sample(rows))[2], abs=0.02)
    assert set(release.sample(50, where=where)["town"].to_pylist()) == {"c"}


def test_the_certificate_names_what_is_unprotected(tmp_path):
    release = hr.synthesize(survey(500), schema(), hr.Budget(4.0), "independent")
    assert any(said.startswith('Unprotected: the weights in "w"') for said in release.certificate.statements())
    release.save(tmp_path / "x.release")
    loaded, _ = verify(tmp_path / "x.release")
    assert loaded.certificate.unprotected == release.schema.unprotected
    object.__setattr__(release.certificate, "unprotected", ())
    release.save(tmp_path / "y.release")
    object.__setattr__(release.certificate, "unprotected", release.schema.unprotected)
    with refused("certificate-unprotected"):
        verify(tmp_path / "y.release")


def test_a_weight_beyond_its_bound_is_a_misfit():
    heavy = survey().set_column(2, "w", pa.array(np.full(6000, 900)))
    with refused("misfits", '"w"'):
        hr.synthesize(heavy, schema(), hr.Budget(4.0), "mst")


@pytest.mark.parametrize("weight", [3, 500, 10**6, None])
def test_neighbours_replay_whatever_the_weight(weight):
    """One row more, of any weight: the same calls, and no sum further apart than was charged."""
    table = survey(300)
    more = pa.concat_tables([table, pa.table({"town": ["c"], "x": [1], "w": pa.array([weight], pa.int64())})])
    run = Run(schema(), hr.Budget(1.0), hr.methods.build("mst"), 0, Progress())
    replayed = replay(*(lambda m, t=t: run.release(open_engine(t), m) for t in (table, more)))
    assert max(replayed.ratios) <= 1 + 1e-9
