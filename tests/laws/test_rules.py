"""No written row breaks a rule, whatever the schema, the rules and the method; and what is drawn is the model's own
distribution given the rules."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.coded.domain import Domain
from hedgerow.coded.measurement import Measurement, Noise
from hedgerow.coded.query import MarginalQuery
from hedgerow.errors import SchemaError
from hedgerow.methods import names
from hedgerow.models.graphical.estimation import fit
from hedgerow.models.histograms import Histograms, Part
from hedgerow.models.model import block_rng
from hedgerow.private.sources.source import open_source
from hedgerow.release.drawing import Drawing
from hedgerow.schema.rules.words import explained

COLUMNS = {
    "a": {"type": "integer", "min": 0, "max": 4, "missing": True},
    "b": {"type": "category", "values": ["x", "y", "z"]},
    "c": {"type": "number", "min": 0, "max": 50, "decimals": 1},
    "d": {"type": "number", "min": 0, "max": 60, "decimals": 1},
    "e": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
}
PARTS = st.sampled_from(
    ["a < 2", "b = 'x'", "b <> 'y'", "c <= d", "c = 0", "a IS NULL", "c + a < d", "EXTRACT(MONTH FROM e) = 2",
     "e < DATE '2020-06-01'", "d - c > 3.5", "b IN ('x', 'z') AND a = 1", "total < 70"]
)  # fmt: skip
RULES = st.lists(
    st.one_of(PARTS, st.tuples(PARTS, PARTS).map(lambda two: {"when": two[0], "then": two[1]})), min_size=1, max_size=4
)


def _table(rows, seed):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(rng.integers(0, 5, rows), mask=rng.random(rows) < 0.2),
            "b": rng.choice(["x", "y", "z"], rows),
            "c": np.round(rng.gamma(2, 5, rows), 1),
            "d": np.round(rng.gamma(2, 9, rows), 1),
            "e": pa.array(np.datetime64("2020-01-01") + rng.integers(0, 366, rows)),
        }
    )


@pytest.mark.parametrize("method", names())
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rules=RULES, epsilon=st.sampled_from([0.1, 5.0]), seed=st.integers(0, 3))
def test_no_written_row_breaks_a_rule(method, rules, epsilon, seed):
    schema = hr.Schema.from_dict({"columns": COLUMNS, "derive": {"total": "c + d"}, "rules": rules, "max_misfits": 1})
    try:
        schema.check_rules()
    except SchemaError:
        return  # refused before anything is spent
    release = hr.synthesize(_table(120, seed), schema, hr.Budget(epsilon, 1e-3), method)
    made = release.sample(150, seed=seed)
    assert made.num_rows == 150
    assert not release.schema.kept_rules.broken(made).any()
    assert np.allclose(made["total"].to_numpy(), made["c"].to_numpy() + made["d"].to_numpy())


TINY = {
    "p": {"type": "integer", "min": 0, "max": 3, "missing": True},
    "q": {"type": "category", "values": ["u", "v", "w"], "other": True},
    "r": {"type": "integer", "min": 0, "max": 2, "missing": True},
}


def _tiny(rules):
    schema = hr.Schema.from_dict({"columns": TINY, "rules": rules})
    return schema.encoding()


def _law(model, encoding):
    """The model's probability of every combination of values, given the rules, by brute force."""
    values = [[0, 1, 2, 3, None], ["u", "v", "w", "other"], [0, 1, 2, None]]
    rows = list(itertools.product(*values))
    columns = map(list, zip(*rows, strict=True))
    table = pa.table({name: pa.array(column) for name, column in zip(TINY, columns, strict=True)})
    legal = ~encoding.rules.broken(table)
    assert not any(attribute.hidden for attribute in encoding.domain)
    weight = np.where(legal, model.marginal(model.domain.names).reshape(-1), 0)
    return rows, weight / weight.sum()


@pytest.mark.parametrize(
    "rules",
    [
        ["p + r < 4"],
        [{"when": "q = 'u'", "then": "p = 0"}, "r IS NOT NULL"],
        ["p <> 2 OR q = 'v'", {"when": "r = 1", "then": "q IN ('u', 'w')"}, "p >= r"],
    ],
)
@pytest.mark.parametrize("kind", ["graphical", "histograms"])
def test_what_is_drawn_is_the_model_given_the_rules(rules, kind):
    """By χ² at a false-alarm rate below 1e-6, for a model that knows the zeros and for one that does not."""
    encoding = _tiny(rules)
    sizes = [attribute.size for attribute in encoding.domain]
    rng = np.random.default_rng(1)
    weights = [rng.dirichlet(np.ones(size)) for size in sizes]
    parts = [Part((name,), each) for name, each in zip(encoding.domain.names, weights, strict=True)]
    model = Histograms(Domain(encoding.domain), parts, 1000.0)
    if kind == "graphical":
        queries = [MarginalQuery(encoding.domain, part.marginal) for part in parts]
        counts = [np.rint(1000 * part.weights).astype(int) for part in parts]
        noise = Noise("gaussian", 5.0)
        model = fit(encoding.domain, [Measurement(*each, noise) for each in zip(queries, counts, strict=True)])
    rows, law = _law(model, encoding)
    drawn = 20_000
    made = pa.concat_tables(Drawing(_Independent(model), encoding, block_rng(3, 0)).rows(drawn))
    found = dict.fromkeys(rows, 0)
    for row in zip(*(made.column(name).to_pylist() for name in TINY), strict=True):
        found[row] += 1
    counts = np.array([found[row] for row in rows])
    assert counts[law == 0].sum() == 0
    expected = drawn * law[law > 1e-4]
    statistic = float(((counts[law > 1e-4] - expected) ** 2 / expected).sum())
    freedom = len(expected)
    assert statistic < freedom + 5.5 * np.sqrt(2 * freedom) + 20


@pytest.mark.parametrize("method", ["rdt", "field-groups", "privsyn", "dpsyn", "independent"])
def test_records_and_trees_are_drawn_as_by_whole_row_rejection(method):
    """What a model of records, trees or histograms draws under rules, against rows of its own that obey, by χ² of two
    samples at a false-alarm rate below 1e-6; rows of one draw are more even than independent ones."""
    rng = np.random.default_rng(4)
    p, r = rng.integers(0, 4, 800), rng.integers(0, 3, 800)
    table = pa.table({"p": p, "q": rng.choice(["u", "v", "w"], 800), "r": np.minimum(r, p)})
    rules = ["p >= r", {"when": "q = 'u'", "then": "p = 0"}]
    schema = hr.Schema.from_dict({"columns": TINY, "rules": rules, "max_misfits": 1})
    release = hr.synthesize(table, schema, hr.Budget(3.0, 1e-3), method)
    model, encoding = release.model, release.encoding
    free = [encoding.decode(model.draw(5_000, rng), rng) for rng in (block_rng(8, block) for block in range(6))]
    whole = pa.concat_tables([each.filter(pa.array(~encoding.rules.broken(each))) for each in free])
    made = pa.concat_tables(
        [each for block in range(4) for each in Drawing(model, encoding, block_rng(9, block)).rows(5_000)]
    )
    tallies = [_tally(each) for each in (whole, made)]
    cells = sorted({cell for tally in tallies for cell in tally}, key=str)
    first, second = (np.array([tally.get(cell, 0) for cell in cells], dtype=float) for tally in tallies)
    seen = first + second > 20
    ratio = np.sqrt(second.sum() / first.sum())
    statistic = float(((first * ratio - second / ratio)[seen] ** 2 / (first + second)[seen]).sum())
    freedom = int(seen.sum())
    assert statistic < freedom + 5.5 * np.sqrt(2 * freedom) + 20


def _tally(table):
    return Counter(zip(*(table.column(name).to_pylist() for name in TINY), strict=True))


def test_a_length_that_the_table_lacks_is_solved_from_its_ends():
    """The same codes, so the same release, as of a table that has the length; and every row ends after it begins."""
    rng = np.random.default_rng(2)
    seconds = np.rint(rng.gamma(2, 400, 300)).astype(np.int64)
    pickup = np.datetime64("2024-02-01") + rng.integers(0, 20 * 86_400, 300).astype("timedelta64[s]")
    ends = pa.table({"pickup": pickup, "dropoff": pickup + seconds.astype("timedelta64[s]")})
    ends = ends.set_column(1, "dropoff", pc.if_else(pc.equal(pa.array(seconds % 50), 0), None, ends["dropoff"]))
    known = pa.table({"pickup": pickup, "seconds": pa.array(seconds, mask=seconds % 50 == 0)})
    schema = hr.Schema.from_dict(
        {
            "columns": {
                "pickup": {"type": "datetime", "min": "2024-02-01", "max": "2024-02-29", "step": "second"},
                "seconds": {"type": "integer", "min": 0, "max": 86_400, "missing": True},
            },
            "derive": {"dropoff": "pickup + seconds * INTERVAL '1 second'"},
            "rules": ["dropoff <= '2024-02-29'", "dropoff >= pickup"],
        }
    )
    names = list(schema.columns)
    read = [pa.Table.from_batches(open_source(each, schema.written).batches(names)) for each in (ends, known)]
    encoding = schema.with_stand_ins().encoding()
    for first, second in zip(*(encoding.encode(each).values() for each in read), strict=True):
        assert np.array_equal(first, second)
    made = hr.synthesize(ends, schema, hr.Budget(1.0, 1e-3), "mst").sample(500)
    assert made.column_names == ["pickup", "seconds", "dropoff"]
    assert made["dropoff"].null_count == made["seconds"].null_count
    assert pc.all(pc.greater_equal(made["dropoff"], made["pickup"])).as_py()


class _Independent:
    """A model whose rows are drawn one by one, so that counts are multinomial."""

    def __init__(self, model):
        self.model = model

    def draw(self, rows, rng):
        if hasattr(self.model, "draw_independent"):
            return self.model.draw_independent(rows, rng)
        columns = {}
        for attribute in self.model.domain:
            share = self.model.marginal((attribute.name,))
            columns[attribute.name] = rng.choice(attribute.size, rows, p=share / share.sum()).astype(attribute.dtype)
        return columns


def test_where_a_model_leaves_no_legal_mass_rows_are_completed():
    encoding = _tiny(["p = 3", {"when": "q = 'u'", "then": "r = 2"}])
    lost = [np.array([1.0, 0, 0, 0, 0]), np.array([1.0, 0, 0, 0]), np.array([1.0, 0, 0, 0])]
    parts = [Part((name,), each) for name, each in zip(encoding.domain.names, lost, strict=True)]
    drawing = Drawing(Histograms(Domain(encoding.domain), parts, 10.0), encoding, block_rng(0, 0))
    made = pa.concat_tables(drawing.rows(50))
    assert drawing.completed == 50
    assert not encoding.rules.broken(made).any()
    assert len(made.group_by(["q", "r"]).aggregate([])) > 3


def test_a_release_alone_draws_rows_that_obey(tmp_path):
    (tmp_path / "t.csv").write_text("b,w\nx,1.5\ny,2.5\nz,3.5\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns:\n  b: {type: category, values: [x, y, z]}\n  w: {type: number, min: 0, max: 9, decimals: 1}\n"
        "  a: {type: integer, min: 0, max: 4}\nrules:\n  - {columns: [b, w], lookup: t.csv}\n"
        "  - {when: b = 'x', then: a < 2}\nmax_misfits: 1\n"
    )
    table = pa.table({"b": ["x", "y", "z"] * 20, "w": [1.5, 2.5, 3.5] * 20, "a": [0, 3, 4] * 20})
    release = hr.synthesize(table, path, hr.Budget(1.0, 1e-3), "mst")
    release.save(tmp_path / "r.release")
    (tmp_path / "t.csv").unlink()
    again = hr.Release.load(tmp_path / "r.release")
    made = again.sample(500, seed=2)
    assert made.equals(release.sample(500, seed=2))
    assert not again.schema.kept_rules.broken(made).any()
    assert set(zip(made["b"].to_pylist(), made["w"].to_pylist(), strict=True)) <= {("x", 1.5), ("y", 2.5), ("z", 3.5)}


def test_the_examples_of_the_page_are_kept():
    """docs/use/rules.md, one after the other."""
    money = {"type": "number", "min": 0, "max": 500, "decimals": 2}
    moment = {"type": "datetime", "min": "2020-01-01", "max": "2020-01-20", "step": "minute"}
    columns = {
        **dict.fromkeys(("fare", "tip", "tolls"), money),
        "payment": {"type": "category", "values": ["cash", "card"]},
        "pickup": moment,
        "dropoff": moment,
        "day": {"type": "date", "min": "2020-01-01", "max": "2020-12-31"},
        "season": {"type": "category", "values": ["summer", "other"]},
        "AGEP": {"type": "integer", "min": 0, "max": 99},
        "MSP": {"type": "category", "values": ["N", "1"]},
        "PINCP": {"type": "number", "min": 0, "max": 9000, "decimals": 0, "missing": True},
        "NOC": {"type": "integer", "min": 0, "max": 9, "missing": True},
        "NPF": {"type": "integer", "min": 2, "max": 9, "missing": True},
        "PUMA": {"type": "category", "values": ["a", "b"]},
        "DENSITY": {"type": "number", "min": 0, "max": 9000, "decimals": 1},
        "INDP": {"type": "category", "values": ["170", "180", "770"]},
        "INDP_CAT": {"type": "category", "values": ["0", "3"]},
    }
    rules = [
        "NOC < NPF",
        {"when": "AGEP < 15", "then": "MSP = 'N' AND PINCP IS NULL"},
        {"when": "AGEP >= 15", "then": "MSP <> 'N'"},
        {"when": "payment = 'cash'", "then": "tip = 0"},
        "dropoff >= pickup",
        "dropoff - pickup <= INTERVAL '6 hours'",
        {"when": "season = 'summer'", "then": "EXTRACT(MONTH FROM day) BETWEEN 6 AND 8"},
        {"columns": ["PUMA", "DENSITY"], "lookup": [["a", "12.5"], ["b", "99"]]},
        {"columns": ["INDP", "INDP_CAT"], "lookup": [["170", "0"], ["180", "0"], ["770", "3"]]},
        "members >= 1",
    ]
    derive = {"total": "fare + tip + tolls", "members": "NPF - NOC"}
    schema = hr.Schema.from_dict({"columns": columns, "rules": rules, "derive": derive, "max_misfits": 1})
    schema.check_rules()
    assert len(explained(schema)) == 12
    rng = np.random.default_rng(0)
    encoding = schema.with_stand_ins().encoding()
    codes = {a.name: rng.integers(0, a.size - a.hidden, 200).astype(a.dtype) for a in encoding.domain}
    table = encoding.decode(codes, rng).select(list(columns))
    made = hr.synthesize(table, schema, hr.Budget(2.0, 1e-3), "mst").sample(300)
    assert not schema.kept_rules.broken(made).any()
    assert made.column_names[-2:] == ["total", "members"]
