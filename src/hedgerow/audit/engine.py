"""`check_engine`: the laws that every engine must keep, for our own and for those made elsewhere."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from hedgerow.audit.replay import Violation
from hedgerow.coded.domain import CodedTable, Domain, IntArray
from hedgerow.coded.joining import Join
from hedgerow.coded.query import MarginalQuery, Query, TreeQuery, total_query
from hedgerow.private.discovery import Cutting
from hedgerow.private.engines.elsewhere import TAKES, takes_location
from hedgerow.private.engines.engine import Engine
from hedgerow.private.exact import Exact, SparseCounts
from hedgerow.schema import Encoding, Schema

MakeEngine = Callable[[pa.Table, Encoding], Engine]

SCHEMA = """
columns:
  grade: {type: category, values: [low, mid, high], other: true, missing: true}
  age:   {type: integer, min: 0, max: 119}
  hours: {type: integer, min: 1, max: 99, bins: 7}
  flag:  {type: category, values: ["yes", "no"]}
  site:  {type: code, size: 300}
  place: {type: code, size: 70000}
  item:  {type: code, size: 70000}
"""
PERSON_SCHEMA = """
person: id
max_rows_per_person: 3
columns:
  who:   {type: code, size: 41}
  grade: {type: category, values: [low, mid, high]}
  age:   {type: integer, min: 0, max: 9}
"""
ODD_SCHEMA = """
columns:
  size:  {type: number, min: 0, max: 10, bins: 4, missing: true}
  wage:  {type: integer, min: 0, max: 999, bins: 10, special: [9998], heaps: [100, 10]}
  name:  {type: category, values: ["é", "É", "e", "東京", "a b"], other: true, missing: true}
  left:  {type: category, values: [a, b]}
  right: {type: category, values: [x, "y"]}
  born:  {type: date, min: 1900-01-01, max: 2009-12-31, step: month}
  seen:  {type: datetime, min: 2020-01-01, max: 2020-01-03, step: hour}
  well:  {type: boolean, missing: true}
groups:
  - {columns: [left, right], allowed: [[a, x], [b, x], [b, "y"]]}
"""

WAITING_SCHEMA = """
columns:
  size:  {type: number, min: -1000, max: 1000000, decimals: 2, missing: true}
  wage:  {type: integer, min: 0, max: 1000000, special: [9998]}
  born:  {type: date, min: 1900-01-01, max: 2009-12-31}
  seen:  {type: datetime, min: 2020-01-01, max: 2020-12-31, step: second, other: true}
"""

OPEN_SCHEMA = """
columns:
  city: {type: category, values: private}
"""


def check_engine(make_engine: MakeEngine) -> None:
    """Raise `Violation`, naming the law, unless an engine keeps all of them.

    `make_engine(table, encoding)` gives an engine over that table, not yet prepared. Every query must count what a
    plain reference counts, cell for cell, on full, one-row and empty tables and on awkward values; nobody may keep more
    than θ rows, nobody with at most θ rows may lose one; rows that name nobody are left out; later counts must see the
    rows that earlier ones saw; people are counted once for each value that they hold, and for at most θ values; columns
    that wait to be cut are looked at alike; answers must be sealed; its class takes what
    `package.module:Class://LOCATION` is opened with.
    """
    encoding = Schema.parse(SCHEMA).encoding()
    for rows in (3000, 1, 0):
        table = sample_table(rows)
        engine = make_engine(table, encoding)
        _hold(tuple(engine.header()) == tuple(table.column_names), "the header gives the table's column names")
        engine.prepare(encoding)
        coded = encoding.encode(table)
        queries = list(sample_queries(encoding.domain))
        _check_counts(engine, queries, coded, f"counts equal the reference on a table of {rows} rows")
        _check_counts(engine, queries[::-1], coded, "later counts see the same rows as earlier ones")
    encoding_of_odd = Schema.parse(ODD_SCHEMA).encoding()
    table = odd_table(500)
    engine = make_engine(table, encoding_of_odd)
    engine.prepare(encoding_of_odd)
    queries = [MarginalQuery(encoding_of_odd.domain, m) for k in (1, 2) for m in encoding_of_odd.domain.marginals(k)]
    law = "nulls, infinities, texts that look alike, days, heaps and groups are coded as the schema codes them"
    _check_counts(engine, queries, encoding_of_odd.encode(table), law)
    _check_looks(make_engine, table.select(["size", "wage", "born", "seen"]))
    for name in (lambda person: f"p{person}", lambda person: 2**60 + person):
        _check_bounding(make_engine, name)
    _check_people(make_engine, encoding)
    opened = f"a class of engines takes {TAKES}, so that commands can open it by its name"
    _hold(takes_location(type(engine)), opened, f"{type(engine).__name__} does not")


def _check_looks(make_engine: MakeEngine, table: pa.Table) -> None:
    """Columns that wait to be cut, and whether their values fit, before they have cells."""
    looking = Cutting(Schema.parse(WAITING_SCHEMA)).encoding()
    engine = make_engine(table, looking)
    engine.prepare(looking)
    queries = [MarginalQuery(looking.domain, marginal) for marginal in looking.domain.marginals(1)]
    law = "numbers, dates and moments that wait to be cut are looked at in the same runs"
    _check_counts(engine, queries, looking.encode(table), law)


def sample_table(rows: int, seed: int = 0) -> pa.Table:
    """Made-up rows with text, numbers, nulls and values outside the declaration."""
    rng = np.random.default_rng(seed)
    favourite = rng.random(rows) < 0.5
    grades = np.array(["low", "mid", "high", "unheard-of", None], dtype=object)
    grade = rng.choice(grades, rows, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    return pa.table(
        {
            "grade": pa.array(grade.tolist(), pa.string()),
            "age": pa.array(rng.integers(-5, 130, rows)),
            "hours": pa.array(np.where(favourite, 40, rng.integers(1, 100, rows)), mask=rng.random(rows) < 0.05),
            "flag": pa.array(rng.choice(["yes", "no"], rows).tolist(), pa.string()),
            "site": pa.array(np.where(favourite, 7, rng.integers(0, 300, rows))),
            "place": pa.array(np.where(favourite, 69_999, rng.integers(0, 70_000, rows))),
            "item": pa.array(np.where(favourite, 0, rng.integers(0, 70_000, rows))),
        }
    )


def odd_table(rows: int, seed: int = 0) -> pa.Table:
    """Values that are easily confused: null and empty, capitals and accents, −0 and 0, infinities, days far away."""
    rng = np.random.default_rng(seed)

    def some(values: Sequence[object], kind: pa.DataType) -> pa.Array:
        return pa.array([values[index] for index in rng.integers(0, len(values), rows)], kind)

    day, moment = datetime.date, datetime.datetime
    infinity, none = float("inf"), float("nan")
    return pa.table(
        {
            "size": some([0.0, -0.0, 2.5, 9.999, 1e300, -1e300, infinity, -infinity, none, None], pa.float64()),
            "wage": some([0, 100, 110, 555, 999, 1000, 9998, -7, 2**53, None], pa.int64()),
            "name": some(["é", "e\u0301", "É", "e", "E", "e ", "東京", "a b", "a\u00a0b", "", None], pa.string()),
            "left": some(["a", "b", "c", "", None], pa.string()),
            "right": some(["x", "y", "X", None], pa.string()),
            "born": some([day(1900, 1, 1), day(1969, 12, 31), day(9999, 12, 31), day(1, 1, 1), None], pa.date32()),
            "seen": some([moment(2020, 1, 1), moment(2020, 1, 2, 23, 59, 59, 999_999), None], pa.timestamp("us")),
            "well": some([True, False, None], pa.bool_()),
        }
    )


def sample_queries(domain: Domain) -> Iterator[Query]:
    """Totals, marginals of 1 to 5 attributes, levels, blocks, trees, and marginals too wide to write out."""
    yield total_query(domain)
    for degree in (1, 2):
        for marginal in domain.marginals(degree):
            yield MarginalQuery(domain, marginal)
    yield MarginalQuery(domain, ("grade", "age", "flag"))
    yield MarginalQuery(domain, ("age", "hours", "site"))
    yield MarginalQuery(domain, ("grade", "age", "hours", "flag", "site"))
    yield MarginalQuery(domain, ("age", "site", "place", "item"))
    decade = np.arange(domain["age"].size) // 10
    yield MarginalQuery(domain, ("age",), levels={"age": decade})
    yield MarginalQuery(domain, ("grade", "age", "place"), levels={"age": decade, "place": np.arange(70_000) % 11})
    cells = domain["hours"].size * domain["flag"].size
    blocks = np.arange(cells) % 4 - 1
    yield MarginalQuery(domain, ("hours", "flag"), blocks=blocks)
    yield MarginalQuery(
        domain, ("age", "flag"), levels={"age": decade}, blocks=np.arange((decade[-1] + 1) * domain["flag"].size) // 5
    )
    join = Join({"hours": domain["hours"].size, "grade": domain["grade"].size}, np.array([[0, 1], [1, 0], [3, 1]]))
    yield MarginalQuery(domain, ("hours and grade",), joins={"hours and grade": join})
    yield MarginalQuery(
        domain,
        ("hours and grade", "flag"),
        levels={"hours and grade": np.array([0, 1, 1, 2])},
        joins={"hours and grade": join},
    )
    yield sample_tree(domain, label="grade")
    yield sample_tree(domain, label=None)


def sample_tree(domain: Domain, label: str | None) -> TreeQuery:
    """Split on flag; one side on hours, the other is a leaf."""
    flags, hours = domain["flag"].size, domain["hours"].size
    split = [0, 1, *([-1] * (flags - 1)), *([-1] * hours)]
    child = [1, 1 + flags, *range(flags - 1), *range(flags - 1, flags - 1 + hours)]
    return TreeQuery(domain, ("flag", "hours"), split, child, label)


def reference_cells(query: Query, coded: CodedTable) -> IntArray:
    """The cell that each row reaches, −1 for none: slow, and plain enough to be believed."""
    rows = len(next(iter(coded.values())))
    cells = np.zeros(rows, dtype=np.int64)
    if isinstance(query, MarginalQuery):
        for name, join, level, size in zip(query.attributes, query.joins, query.levels, query.shape, strict=True):
            codes = coded[name].astype(np.int64) if join is None else _joined(join, coded)
            cells = cells * size + (codes if level is None else level[codes])
        return cells if query.blocks is None else query.blocks[cells]
    for row in range(rows):
        node = 0
        while query.split[node] >= 0:
            node = int(query.child[node]) + int(coded[query.splits_on[query.split[node]]][row])
        cells[row] = query.child[node]
    return cells if query.label is None else cells * query.label_size + coded[query.label]


def _joined(join: Join, coded: CodedTable) -> IntArray:
    lines = {tuple(line): number for number, line in enumerate(join.combinations.tolist())}
    rows = zip(*(coded[name].tolist() for name in join.members), strict=True)
    return np.array([lines.get(row, len(lines)) for row in rows], dtype=np.int64)


def occupied(answer: Exact[IntArray | SparseCounts], query: Query, law: str) -> tuple[IntArray, IntArray]:
    """Occupied cells in order and their counts, of a dense or a sparse answer that is well formed."""
    _hold(isinstance(answer, Exact), law, f"{query!r} is not answered by a sealed count")
    counts = answer.opened()
    if isinstance(counts, SparseCounts):
        well_formed = bool((np.diff(counts.cells) > 0).all() and (counts.counts > 0).all())
        _hold(well_formed, law, f"the occupied cells of {query!r} are not in order, once each, with positive counts")
        return counts.cells, counts.counts
    shaped = counts.dtype == np.int64 and counts.shape == (query.cells,)
    _hold(shaped, law, f"{query!r} needs {query.cells} int64 counts")
    cells = np.flatnonzero(counts)
    return cells, counts[cells]


def _check_counts(engine: Engine, queries: Sequence[Query], coded: CodedTable, law: str) -> None:
    answers = list(engine.count(queries))
    _hold(len(answers) == len(queries), law, "there is not one answer per query")
    for query, answer in zip(queries, answers, strict=True):
        cells = reference_cells(query, coded)
        expected, times = np.unique(cells[cells >= 0], return_counts=True)
        found, counts = occupied(answer, query, law)
        _hold(np.array_equal(found, expected) and np.array_equal(counts, times), law, f"{query!r} is counted wrongly")


def _check_bounding(make_engine: MakeEngine, name: Callable[[int], str | int]) -> None:
    """Persons 0 … 39 have 0 … 39 rows; cell 40 of `who` holds the rows that name nobody."""
    encoding = Schema.parse(PERSON_SCHEMA).encoding()
    rng = np.random.default_rng(1)
    who = rng.permutation(np.repeat(np.arange(41), [*range(40), 20]))
    table = pa.table(
        {
            "id": pa.array([None if person == 40 else name(person) for person in who.tolist()]),
            "who": pa.array(who),
            "grade": pa.array(rng.choice(["low", "mid", "high", "unheard-of"], len(who)).tolist()),
            "age": pa.array(rng.integers(0, 10, len(who))),
        }
    )
    engine = make_engine(_in_pieces(table), encoding)
    engine.prepare(encoding)
    coded = encoding.encode(table)
    whole = MarginalQuery(encoding.domain, encoding.domain.names)
    law = "at most θ rows of every person are kept, and all rows of a person who has no more"
    rows = np.zeros(41, dtype=np.int64)
    by_person = MarginalQuery(encoding.domain, ("who",))
    cells, counts = occupied(next(engine.count([by_person])), by_person, law)
    rows[cells] = counts
    for person in range(40):
        had = int((who == person).sum())
        _hold(rows[person] == min(had, 3), law, f"of {had} rows {rows[person]} were kept where θ is 3")
    _hold(rows[40] == 0, "rows that name nobody are left out", f"{rows[40]} were kept")
    law = "the rows that are kept are rows of the table"
    before = np.bincount(reference_cells(whole, coded), minlength=whole.cells)
    cells, counts = occupied(next(engine.count([whole])), whole, law)
    _hold(bool((counts <= before[cells]).all()), law, "a row appears more often than in the table")
    law = "every count sees the same rows"
    again = occupied(next(engine.count([whole])), whole, law)
    _hold(np.array_equal(again[0], cells) and np.array_equal(again[1], counts), law, "a second count differs")


def _check_people(make_engine: MakeEngine, encoding: Encoding) -> None:
    """Person k holds k values that nobody else holds, each in two rows; 1 and 2 hold a common one as well.

    An open category is counted before the table is prepared, so any encoding will do to make the engine.
    """
    twice = [(f"p{person}", f"{person}/{value}") for person in range(6) for value in range(person)] * 2
    holdings = [*twice, ("p1", "common"), ("p2", "common"), (None, "lost"), ("", "lost")]
    persons = [person for person, _ in holdings]
    cities = [city for _, city in holdings]
    table = pa.table({"id": pa.array(persons, pa.string()), "city": pa.array(cities, pa.string())})
    schema = Schema.parse("person: id\nmax_rows_per_person: 3\n" + OPEN_SCHEMA.lstrip())
    law = "a person counts once for each value, and for at most θ of them"
    answer = make_engine(_in_pieces(table), encoding).people_per_value(schema, "city")
    _hold(isinstance(answer, Exact), law, "the answer is not sealed")
    found = dict(answer.opened())
    _hold(found.pop("common", 0) == 2, law, "a value that two people hold counts wrongly")
    lost = found.pop("lost", 0)
    for person in range(6):
        own = [count for value, count in found.items() if value.startswith(f"{person}/")]
        _hold(own == [1] * min(person, 3), law, f"of {person} values {len(own)} were counted where θ is 3")
    _hold(lost == 0, "rows that name nobody are left out", "a value that only they hold was counted")
    law = "without persons every row counts"
    answer = make_engine(table, encoding).people_per_value(Schema.parse(OPEN_SCHEMA), "city")
    _hold(dict(answer.opened()) == Counter(cities), law)


def _in_pieces(table: pa.Table) -> pa.Table:
    """The same rows in batches of seven, so that persons straddle them."""
    return pa.Table.from_batches(table.to_batches(max_chunksize=7), table.schema)


def _hold(kept: bool, law: str, detail: str = "") -> None:
    if not kept:
        raise Violation(f"this engine breaks a law: {law}{f' ({detail})' if detail else ''}.")
