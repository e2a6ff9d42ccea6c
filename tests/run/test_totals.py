"""Totals already published: matched to the last row by every method, free of charge, never from the private table."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import hedgerow as hr
from hedgerow.audit.replay import replay
from hedgerow.methods.rdt import RDT
from hedgerow.private.engines import open_engine
from hedgerow.progress import Progress
from hedgerow.release import bundle
from hedgerow.release.bundle import verify
from hedgerow.run.run import Run
from refusals import code_in, refused

COLUMNS = """
columns:
  district: {type: category, values: [north, south, east]}
  sex: {type: category, values: [F, M]}
  age: {type: integer, min: 0, max: 9}
  paid: {type: number, min: 0, max: 100, decimals: 1}
"""
DISTRICTS = {"north": 400, "south": 150, "east": 50}
PAIRS = [["F", "north", 190], ["M", "north", 210], ["F", "south", 100], ["M", "south", 50], ["M", "east", 50]]
TOTALS = f"""
totals:
  - {{table: {[[name, count] for name, count in DISTRICTS.items()]}, columns: [district]}}
  - {{table: {PAIRS}, columns: [sex, district], count: people}}
"""
METHODS = [
    "hedge",
    "mst",
    "aim",
    "independent",
    "field-groups",
    "privsyn",
    hr.methods.build("dpsyn", {"segments": "sex"}),
    RDT(trees=2, height=2, sweeps=1),
]


def people(rows=500, seed=0):
    """Private rows that have other counts than the totals say."""
    rng = np.random.default_rng(seed)
    district = rng.choice(["north", "south", "east"], rows)
    return pa.table(
        {
            "district": district,
            "sex": rng.choice(["F", "M"], rows),
            "age": rng.integers(0, 10, rows),
            "paid": np.round(rng.random(rows) * 50 + 50 * (district == "east"), 1),
        }
    )


def counts(table, *names):
    return table.group_by(list(names)).aggregate([([], "count_all")])


def found(table, *names):
    rows = counts(table, *names).to_pylist()
    return {tuple(row[name] for name in names): row["count_all"] for row in rows}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: getattr(method, "about", None) and method.about.name)
def test_every_method_matches_the_totals(method, tmp_path):
    schema = hr.Schema.parse(COLUMNS + TOTALS)
    release = hr.synthesize(people(), schema, hr.Budget(2.0), method, unsafe_noise_seed=1)
    assert release.estimated_rows == 600
    table = release.sample(seed=1)
    assert found(table, "district") == {(name,): count for name, count in DISTRICTS.items()}
    assert found(table, "sex", "district") == {(sex, district): count for sex, district, count in PAIRS}
    release.save(tmp_path / "x.release")
    assert hr.Release.load(tmp_path / "x.release").sample(seed=1).equals(table)
    assert len(release.sample(100)) == 100


@pytest.mark.parametrize("method", ["mst", "independent", "privsyn"])
def test_totals_are_matched_by_rows_that_obey_rules(method):
    rules = """
rules:
  - {when: district = 'east', then: age < 5}
  - {when: sex = 'F', then: paid < 80.5}
"""
    schema = hr.Schema.parse(COLUMNS + rules + TOTALS)
    release = hr.synthesize(people(), schema, hr.Budget(2.0), method, unsafe_noise_seed=1)
    table = release.sample()
    assert found(table, "sex", "district") == {(sex, district): count for sex, district, count in PAIRS}
    frame = table.to_pandas()
    assert (frame.age[frame.district == "east"] < 5).all()
    assert (frame.paid[frame.sex == "F"] < 80.5).all()
    with refused("totals-break-rule", "rule 1"):
        hr.Schema.parse(COLUMNS + "rules: [district <> 'east']" + TOTALS)


def test_blocks_match_together(monkeypatch):
    """Several blocks of a draw have the totals between them; nobody needs to see more than one."""
    monkeypatch.setattr(bundle, "BLOCK_ROWS", 250)
    monkeypatch.setattr(bundle, "block_sizes", lambda rows: [min(250, rows - at) for at in range(0, rows, 250)])
    schema = hr.Schema.parse(COLUMNS + TOTALS)
    release = hr.synthesize(people(), schema, hr.Budget(2.0), "mst", unsafe_noise_seed=1)
    table = release.sample()
    assert found(table, "sex", "district") == {(sex, district): count for sex, district, count in PAIRS}
    last = pa.concat_tables(release.block(100, 0, 2))
    assert last.equals(table.slice(500).combine_chunks()) or last.to_pylist() == table.slice(500).to_pylist()


def test_a_model_that_can_hold_them_has_the_totals(tmp_path):
    schema = hr.Schema.parse(COLUMNS + TOTALS)
    release = hr.synthesize(people(), schema, hr.Budget(2.0), "mwem", unsafe_noise_seed=1)
    shares = release.marginal(["district"]).counts / release.model.total
    assert np.allclose(shares[:3], np.array([400, 150, 50]) / 600, atol=1e-6)


@pytest.mark.parametrize("method", ["mst", "independent", "aim", "privsyn", "hedge"])
def test_what_totals_tell_is_not_bought(method):
    """No marginal of the totals is measured; the others get what it would have cost."""
    schema = hr.Schema.parse(COLUMNS + TOTALS)
    release = hr.synthesize(people(), schema, hr.Budget(2.0), method, unsafe_noise_seed=1, quality=0)
    found = [each for answer in release.answers for each in answer.measurements]
    measured = {each.query.attributes for each in found if len(each.values) > 1}  # misfits are one count each
    assert ("age",) in measured
    assert not {marginal for marginal in measured if marginal and set(marginal) <= {"district", "sex"}}


def test_they_are_read_beside_the_schema_and_written_into_it(tmp_path):
    (tmp_path / "d.csv").write_text("district,n,more\nnorth,400,x\nsouth,150,x\neast,50,x\n")
    text = COLUMNS + "totals: [{table: d.csv, columns: [district], count: n}]"
    (tmp_path / "s.yaml").write_text(text)
    schema = hr.Schema.load(tmp_path / "s.yaml")
    assert schema.totals[0].rows == 600
    assert [path.name for path in schema.files] == ["d.csv"]
    assert hr.Schema.parse(schema.to_yaml()).totals == schema.totals
    assert hr.Schema.from_dict(schema.to_dict()).published[0].counts.tolist() == [400, 150, 50, 0]


@pytest.mark.parametrize(
    ("totals", "code"),
    [
        ("[{table: nothing.csv, columns: [district]}]", "bad-public-table"),
        ("[{table: [[north, 1.5]], columns: [district]}]", "bad-totals"),
        ("[{table: [[north, -1]], columns: [district]}]", "bad-totals"),
        ("[{table: [[north]], columns: [district]}]", "bad-totals"),
        ("[{table: [[north, 1], [north, 2]], columns: [district]}]", "bad-totals"),
        ("[{table: [[north, 0]], columns: [district]}]", "totals-disagree"),
        ("[{table: [[west, 1]], columns: [district]}]", "undeclared-value"),
        ("[{table: [[1, 5]], columns: [distrct]}]", "unknown-column"),
        ("[{table: [[1, 5]], columns: [paid]}]", "totals-column"),
        ("[{table: [[north, 5]], columns: [district], counts: n}]", "unknown-key"),
        ("[{table: [[north, 5]], columns: [district]}, {table: [[F, 4]], columns: [sex]}]", "totals-disagree"),
        (
            "[{table: [[north, F, 5]], columns: [district, sex]}, {table: [[south, 1, 5]], columns: [district, age]}]",
            "totals-disagree",
        ),
        (
            "[{table: [[north, F, 5]], columns: [district, sex]}, {table: [[F, 1, 5]], columns: [sex, age]}, "
            "{table: [[north, 1, 5]], columns: [district, age]}]",
            "totals-no-tree",
        ),
    ],
)
def test_what_cannot_be_matched_is_refused_before_anything_is_read(tmp_path, totals, code):
    (tmp_path / "s.yaml").write_text(COLUMNS + f"totals: {totals}\n")
    with refused(code):
        hr.synthesize(tmp_path / "not-there.csv", tmp_path / "s.yaml", hr.Budget(1.0))


def test_totals_that_disagree_end_a_command_with_one_sentence(hedgerow, tmp_path):
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    totals = "[{table: [[north, 5]], columns: [district]}, {table: [[F, 4]], columns: [sex]}]"
    (tmp_path / "s.yaml").write_text("dataset: people\n" + COLUMNS + f"totals: {totals}\n")
    hedgerow("ledger", "create", "people.ledger", "--dataset", "people", "--epsilon", 5)
    before = (tmp_path / "people.ledger").read_bytes()
    done = hedgerow("synth", "people.csv", "-s", "s.yaml", "-e", 1, "-o", "out.csv", "--ledger", "people.ledger")
    assert (done.code, code_in(done.err)) == (2, "totals-disagree")
    assert len(done.err.strip().splitlines()) == 1
    assert (tmp_path / "people.ledger").read_bytes() == before
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "said",
    [
        "totals: [{table: people.csv, columns: [district], count: age}]",
        "rules: [{columns: [district, sex], lookup: people.csv}]",
    ],
)
def test_the_private_table_is_no_public_one(hedgerow, tmp_path, said):
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    (tmp_path / "s.yaml").write_text(COLUMNS + said)
    done = hedgerow("synth", "people.csv", "-s", "s.yaml", "-e", 1, "-o", "out.csv")
    assert (done.code, code_in(done.err)) == (2, "private-as-public")
    assert not (tmp_path / "out.csv").exists()
    checked = hedgerow("schema", "check", "people.csv", "-s", "s.yaml")
    compared = hedgerow("compare", "people.csv", "-s", "s.yaml", "-o", "folder", "--methods", "independent")
    for done in (checked, compared):
        assert (done.code, code_in(done.err)) == (2, "private-as-public")


def test_the_certificate_calls_them_unprotected(tmp_path):
    release = hr.synthesize(people(), hr.Schema.parse(COLUMNS + TOTALS), hr.Budget(2.0), "independent")
    assert any(
        "Unprotected: the totals of district (3 counts, 600 rows)" in s for s in release.certificate.statements()
    )
    release.save(tmp_path / "x.release")
    verify(tmp_path / "x.release")
    from hedgerow.pages.release import release_page

    assert "matched exactly by a table of 600 rows" in release_page(release)


def test_neighbours_replay():
    table = people(200)
    more = pa.concat_tables([table, table.slice(0, 1)])
    run = Run(hr.Schema.parse(COLUMNS + TOTALS), hr.Budget(1.0), hr.methods.build("mst"), 0, Progress())
    replay(*(lambda m, t=t: run.release(open_engine(t), m) for t in (table, more)))


def test_totals_and_a_population_do_not_go_together():
    with refused("totals-of-population"):
        hr.Schema.parse(COLUMNS + TOTALS + "weight: {column: w, max: 9, draw: population}")
