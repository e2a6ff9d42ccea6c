"""Private rows that break a rule: they count, they are seen, and nobody's row moves more than was charged."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from databases import DuckDBFiles
from hedgerow.audit.replay import replay
from hedgerow.coded.query import MarginalQuery
from hedgerow.private.engines import open_engine
from hedgerow.progress import Progress
from hedgerow.run.run import Run
from hedgerow.schema.fits import Looked
from refusals import refused

SCHEMA = hr.Schema.from_dict(
    {
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99},
            "status": {"type": "category", "values": ["N", "married", "single"]},
            "fare": {"type": "number", "min": 0, "max": 500, "decimals": 2},
            "tip": {"type": "number", "min": 0, "max": 500, "decimals": 2},
            "pay": {"type": "category", "values": ["cash", "card"]},
        },
        "derive": {"total": "fare + tip"},
        "rules": [
            {"when": "age < 15", "then": "status = 'N'"},
            {"when": "pay = 'cash'", "then": "tip = 0"},
            "total < 400",
        ],
    }
)


def table(rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(0, 100, rows),
            "status": rng.choice(["N", "married", "single"], rows),
            "fare": np.round(rng.gamma(2, 9, rows), 2),
            "tip": np.round(rng.gamma(1, 3, rows), 2) * (rng.random(rows) < 0.5),
            "pay": rng.choice(["cash", "card"], rows),
        }
    )


BREACH = {"age": [3], "status": ["married"], "fare": [450.0], "tip": [9.0], "pay": ["cash"]}


@pytest.mark.parametrize("method", ["mst", "hedge", "independent"])
@pytest.mark.parametrize("row", [BREACH, {**BREACH, "age": [None], "tip": [None]}, {**BREACH, "status": ["widow"]}])
def test_a_neighbour_that_breaks_every_rule_replays(method, row):
    small = table(60)
    more = pa.concat_tables([small, pa.table(row, schema=small.schema)])
    schema = hr.Schema.from_dict({**SCHEMA.to_dict(), "max_misfits": 1})
    run = Run(schema, hr.Budget(1.0, 1e-3), hr.methods.build(method), 0, Progress())
    replayed = replay(*(lambda m, t=t: run.release(open_engine(t), m) for t in (small, more)))
    assert max(replayed.ratios) <= 1 + 1e-9


def test_breaches_are_misfits():
    rows = table(3000)
    broken = [each.condition.truth(rows).false.mean() for each in SCHEMA.kept_rules.kept]
    with refused("misfits", "rule 2", "--allow-misfits 'rule 2'"):
        hr.synthesize(rows, SCHEMA, hr.Budget(8.0, 1e-3), "mst")
    release = hr.synthesize(rows, SCHEMA, hr.Budget(8.0, 1e-3), "mst", allow_misfits=["rule 2"])
    found = {each.column: each.share for each in release.misfits.columns}
    assert found["rule 1"] == pytest.approx(broken[0], abs=0.05)
    assert found["rule 2"] == pytest.approx(broken[1], abs=0.05)
    assert "rules" in " ".join(release.certificate.statements())


def test_rows_that_break_a_rule_still_count_once():
    encoding = SCHEMA.with_stand_ins().encoding()
    engine = open_engine(pa.concat_tables([table(50), pa.table(BREACH)]).select(list(SCHEMA.columns)))
    engine.prepare(encoding)
    (counts,) = engine.count([MarginalQuery(encoding.domain, ("age", "status"))])
    held = counts.opened().reshape(encoding.domain.shape(("age", "status")))
    assert held.sum() == 51
    assert held[:15, 1:3].sum() == 0


def test_a_database_recodes_as_it_is_done_here(tmp_path):
    """Every pair of columns, with and without a bound on rows, counted where the table lies."""
    rows = pa.concat_tables([table(120), pa.table(BREACH), pa.table({**BREACH, "status": ["single"]})])
    schema = SCHEMA.with_stand_ins()
    encoding = Looked(schema)
    here = open_engine(rows)
    there = open_engine(DuckDBFiles(tmp_path).install(rows), stay=True)
    queries = [MarginalQuery(encoding.domain, pair) for pair in encoding.domain.marginals(2)]
    answers = []
    for engine in (here, there):
        engine.prepare(encoding)
        answers.append(
            [
                np.asarray(_dense(each.opened(), query))
                for each, query in zip(engine.count(queries), queries, strict=True)
            ]
        )
    for query, one, other in zip(queries, *answers, strict=True):
        assert np.array_equal(one, other), query


def _dense(counts, query):
    if isinstance(counts, np.ndarray):
        return counts.reshape(-1)
    found = np.zeros(query.cells, dtype=np.int64)
    found[counts.cells] = counts.counts
    return found
