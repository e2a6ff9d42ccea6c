"""The distinguishing game on linked tables: who plays wants to know whether one unit is there, with all its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hedgerow.audit.game import RUNS, Side, Verdict, counted_by, play
from hedgerow.audit.mutants import bounded_after_joining
from hedgerow.methods import build
from hedgerow.private.engines import open_tables
from hedgerow.private.engines.linked import LinkedEngine
from hedgerow.schema import Schema

SCHEMA = Schema.parse("""
tables:
  houses: {key: id, columns: {region: {type: code, size: 2}}}
  persons: {key: pid, parent: houses, link: house, max_per_parent: 2, columns: {sex: {type: code, size: 2}}}
  visits: {parent: persons, link: person, max_per_parent: 2, columns: {kind: {type: code, size: 2}}}
""")


def side(houses: int) -> Side:
    """Nobody, or one unit with more persons than count, each with more visits than count, all alike."""
    persons = 9 * houses
    names = [f"p{number}" for number in range(persons)]
    tables = {
        "houses": pa.table({"id": pa.array(["h"] * houses, pa.string()), "region": pa.array([1] * houses, pa.int64())}),
        "persons": pa.table(
            {
                "pid": pa.array(names, pa.string()),
                "house": pa.array(["h"] * persons, pa.string()),
                "sex": pa.array([1] * persons, pa.int64()),
            }
        ),
        "visits": pa.table(
            {"person": pa.array(4 * names, pa.string()), "kind": pa.array([1] * 4 * persons, pa.int64())}
        ),
    }

    def engine() -> LinkedEngine:
        return open_tables(tables, SCHEMA)

    known = engine()
    known.prepare(SCHEMA.with_histories().encoding())
    return Side(engine, counted_by(known))


def played(method: str, runs: int) -> Verdict:
    return play(build(method), runs, sides=[side(0), side(1)], schema=SCHEMA)


@pytest.mark.audit
def test_a_mutant_that_bounds_after_joining_loses_the_game() -> None:
    with bounded_after_joining(build("independent")):
        assert not played("independent", 400).kept


@pytest.mark.audit
@pytest.mark.parametrize("method", ["hedge", "mst", "independent"])
def test_a_unit_is_told_no_better_than_promised(method: str) -> None:
    verdict = played(method, RUNS)
    assert verdict.kept
    assert verdict.alive
