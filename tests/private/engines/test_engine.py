"""The embedded engine keeps the laws of engines, and nobody keeps more rows than were declared."""

import hashlib
import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.audit import Violation, check_engine
from hedgerow.coded.domain import Domain
from hedgerow.coded.query import MarginalQuery, total_query
from hedgerow.private import bounding
from hedgerow.private.bounding import Persons, fresh_key, kept_rows
from hedgerow.private.engines import arrow, open_engine
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.exact import Exact, SparseCounts
from hedgerow.schema import Schema
from refusals import refused

KEY = b"a key for tests"


def test_the_embedded_engine_keeps_every_law():
    check_engine(lambda table, encoding: open_engine(table))


def test_so_does_one_that_reads_a_file_in_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("hedgerow.private.sources.source.BATCH_ROWS", 7)
    monkeypatch.setattr(arrow, "CELLS_AT_ONCE", 50)
    numbers = itertools.count()

    def make(table, encoding):
        if table.num_rows == 0:
            return open_engine(table)
        path = tmp_path / f"{next(numbers)}.parquet"
        pq.write_table(table, path)
        return open_engine(path)

    check_engine(make)


class Mutant(ArrowEngine):
    def __init__(self, table, encoding):
        super().__init__(open_engine(table)._source)


class LosesARow(Mutant):
    def prepare(self, encoding):
        super().prepare(encoding)
        self._table = self._table.kept(np.arange(self._table.rows) > 0)


class BoundsNobody(Mutant):
    def prepare(self, encoding):
        encoding.rows_per_person = 10**6
        super().prepare(encoding)


class BoundsTooMuch(Mutant):
    def prepare(self, encoding):
        encoding.rows_per_person = 2
        super().prepare(encoding)


def as_one_person(source, encoding):
    """Rows that name nobody get a name."""
    table = pa.Table.from_batches(source.batches(source.header()))
    index = table.column_names.index(encoding.person)
    named = [str(name) if name else "nobody" for name in table[encoding.person].to_pylist()]
    return open_engine(table.set_column(index, encoding.person, pa.array(named)))._source


class PoolsWhoeverHasNoName(Mutant):
    def prepare(self, encoding):
        if encoding.person:
            self._source = as_one_person(self._source, encoding)
        super().prepare(encoding)


class CountsValuesOfNobody(Mutant):
    def people_per_value(self, schema, column):
        if schema.person:
            self._source = as_one_person(self._source, schema)
        return super().people_per_value(schema, column)


class BoundsAgain(Mutant):
    def count(self, queries):
        self._key = fresh_key()
        self.prepare(self.encoding)
        return super().count(queries)

    def __init__(self, table, encoding):
        super().__init__(table, encoding)
        self.encoding = encoding


class Unsealed(Mutant):
    def count(self, queries):
        return (answer.opened() for answer in super().count(queries))


class CountsTheDropped(Mutant):
    """Block −1 is counted in the last block."""

    def count(self, queries):
        for query in queries:
            answer = next(super().count([query]))
            if getattr(query, "blocks", None) is not None and self._table.rows:
                counts = answer.opened().copy()
                counts[-1] += self._table.rows - counts.sum()
                answer = Exact(counts)
            yield answer


class ForgetsTheOrder(Mutant):
    def count(self, queries):
        for answer in super().count(queries):
            counts = answer.opened()
            if isinstance(counts, SparseCounts):
                answer = Exact(SparseCounts(counts.cells[::-1], counts.counts[::-1]))
            yield answer


class CountsRowsForPeople(Mutant):
    def people_per_value(self, schema, column):
        return super().people_per_value(schema.model_copy(update={"person": None}), column)


class CountsAllValuesOfAPerson(Mutant):
    def people_per_value(self, schema, column):
        return super().people_per_value(schema.model_copy(update={"max_rows_per_person": 99}), column)


MUTANTS = {
    CountsRowsForPeople: "a person counts once",
    CountsAllValuesOfAPerson: "a person counts once",
    LosesARow: "counts equal the reference",
    BoundsNobody: "at most θ rows",
    BoundsTooMuch: "at most θ rows",
    PoolsWhoeverHasNoName: "name nobody",
    CountsValuesOfNobody: "name nobody",
    BoundsAgain: "same rows",
    Unsealed: "sealed",
    CountsTheDropped: "counted wrongly",
    ForgetsTheOrder: "not in order",
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_the_law_that_it_breaks(mutant):
    with pytest.raises(Violation, match=MUTANTS[mutant]):
        check_engine(mutant)


def bounded(persons, columns, rows_per_person, key=KEY):
    names = Persons()
    for begin in range(0, len(persons), 5):
        names.add(pa.array(persons[begin : begin + 5], pa.string()))
    codes = [np.array(column, dtype=np.uint8) for column in columns]
    return kept_rows(names, codes, rows_per_person, key)


def kept_by_person(rows, rows_per_person, key=KEY):
    """Of rows (person, code, code): the multiset that each person keeps."""
    persons, *columns = zip(*rows, strict=True) if rows else ((), (), ())
    kept = bounded(list(persons), columns, rows_per_person, key)
    stay = {}
    for row, stays in zip(rows, kept, strict=True):
        if row[0]:
            stay.setdefault(row[0], Counter())[row[1:]] += bool(stays)
        else:
            assert not stays
    return {person: +codes for person, codes in stay.items()}


PERSON = st.sampled_from(["ann", "bob", "cy", "dee", "", None])
ROWS = st.lists(st.tuples(PERSON, st.integers(0, 2), st.integers(0, 1)), max_size=60)


@given(ROWS, st.integers(1, 5))
def test_everyone_keeps_at_most_theta_rows_and_whoever_has_fewer_keeps_all(rows, theta):
    had = Counter(person for person, *_ in rows)
    for person, codes in kept_by_person(rows, theta).items():
        assert codes.total() == min(theta, had[person])
        assert codes <= Counter(tuple(row) for name, *row in rows if name == person)


@given(ROWS, st.integers(1, 5), st.randoms())
def test_what_a_person_keeps_depends_neither_on_others_nor_on_the_order_of_rows(rows, theta, rng):
    kept = kept_by_person(rows, theta)
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert kept_by_person(shuffled, theta) == kept
    for person in kept:
        alone = [row for row in rows if row[0] == person]
        others = [row for row in rows if row[0] != person]
        assert kept_by_person(alone, theta) == {person: kept[person]}
        assert kept_by_person(others, theta) == {name: codes for name, codes in kept.items() if name != person}


@given(ROWS, st.integers(1, 3))
def test_parts_of_any_number_and_size_keep_the_same_rows(rows, theta):
    kept = kept_by_person(rows, theta)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounding, "_PARTS", 3)
        patch.setattr(bounding, "_TEXTS_AT_ONCE", 2)
        assert kept_by_person(rows, theta) == kept


@given(ROWS, st.integers(1, 4))
def test_the_rows_kept_are_those_with_the_smallest_hashes_of_the_documented_text(rows, theta):
    seen, hashes = Counter(), {}
    for row in rows:
        person, *codes = row
        if not person:
            continue
        text = f"{KEY.hex()}|{person.encode().hex()}|{codes[0]},{codes[1]}|{seen[row]}"
        seen[row] += 1
        hashes.setdefault(person, []).append((hashlib.md5(text.encode()).hexdigest(), tuple(codes)))
    expected = {person: Counter(codes for _, codes in sorted(all_of)[:theta]) for person, all_of in hashes.items()}
    assert kept_by_person(rows, theta) == expected


def test_a_fresh_key_chooses_afresh():
    rows = [("ann", a, b) for a in range(3) for b in range(2)] * 20
    choices = {tuple(sorted(kept_by_person(rows, 3, fresh_key())["ann"].items())) for _ in range(20)}
    assert len(choices) > 1


@pytest.mark.parametrize(
    "persons",
    [
        pa.array([1, 1, 1, 2, None, None, None]),
        pa.array([1.0, 1.0, 1.0, 2.0, float("nan"), None, float("nan")]),
        pa.array(["a", "a", "a", "b", "", None, ""]).dictionary_encode(),
        pa.array([b"\xff", b"\xff", b"\xff", b"\xfe", None, None, None]),
        pa.array([b"\xff", b"\xff", b"\xff", b"\xfe", None, None, None], pa.binary(1)),
        pa.array([0, 0, 0, 1, None, None, None], pa.timestamp("s")),
    ],
)
def test_persons_of_any_type_are_told_apart_and_rows_without_one_are_left_out(persons):
    names = Persons()
    names.add(persons)
    kept = kept_rows(names, [np.zeros(7, dtype=np.uint8)], 2, KEY)
    assert kept[:3].sum() == 2
    assert kept[3]
    assert not kept[4:].any()


def test_persons_that_cannot_be_told_apart_are_refused():
    with refused("person-type", "list"):
        Persons().add(pa.array([[1], [2]]))


def test_rows_beyond_the_reach_of_32_bits_keep_their_numbers():
    persons = Persons()
    persons.rows = 2**32 - 2
    persons.add(pa.array(["ann", "bob", "ann", None, "ann"]))
    found = {row for rows, *_ in persons.parts() for row in rows.tolist()}
    assert found == {2**32 - 2, 2**32 - 1, 2**32, 2**32 + 2}
    assert persons.rows == 2**32 + 3


PEOPLE = """
person: id
max_rows_per_person: 2
columns:
  age: {type: integer, min: 0, max: 9}
"""


def test_two_engines_with_one_key_count_the_same_rows():
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.integers(0, 10, 500), "id": rng.integers(0, 40, 500)})
    encoding = Schema.parse(PEOPLE).encoding()
    query = MarginalQuery(encoding.domain, ("age",))

    def counts(key):
        engine = open_engine(table, bounding_key=key)
        engine.prepare(encoding)
        return next(engine.count([query])).opened()

    np.testing.assert_array_equal(counts(KEY), counts(KEY))
    assert counts(KEY).sum() == 80
    assert any((counts(KEY) != counts(fresh_key())).any() for _ in range(5))


def test_neighbouring_tables_count_neighbouring_rows():
    """One person more moves the counts by at most θ rows, all of them that person's."""
    rng = np.random.default_rng(1)
    ids, ages = rng.integers(0, 30, 300), rng.integers(0, 10, 300)
    encoding = Schema.parse(PEOPLE).encoding()
    query = MarginalQuery(encoding.domain, ("age",))

    def counts(rows):
        engine = open_engine(pa.table({"age": ages[rows], "id": ids[rows]}), bounding_key=KEY)
        engine.prepare(encoding)
        return next(engine.count([query])).opened()

    whole = counts(ids >= 0)
    for person in range(30):
        moved = whole - counts(ids != person)
        assert (moved >= 0).all()
        assert moved.sum() == min(2, (ids == person).sum())


def test_a_table_that_lacks_a_declared_column_is_refused():
    encoding = Schema.parse(PEOPLE).encoding()
    with refused("missing-column", "1 of the 2 columns"):
        open_engine(pa.table({"agee": [1], "id": [1]})).prepare(encoding)


def test_an_engine_counts_only_once_it_is_prepared():
    domain = Domain.of({"a": 2})
    with refused("not-prepared"):
        open_engine(pa.table({"a": [1]})).count([total_query(domain)])


def test_coded_rows_need_no_preparation_but_accept_their_own():
    encoding = Schema.parse("columns: {a: {type: code, size: 3}}").encoding()
    codes = {name: np.zeros(4, dtype=np.uint8) for name in encoding.domain.names}
    engine = ArrowEngine.from_codes(encoding.domain, codes)
    assert engine.header() == encoding.domain.names
    engine.prepare(encoding)
    assert next(engine.count([total_query(encoding.domain)])).opened().tolist() == [4]
    with refused("another-domain"):
        engine.prepare(Schema.parse(PEOPLE).encoding())


def test_a_real_table_is_counted_like_numpy_counts_it(real_table):
    folder = real_table("adult")
    encoding = Schema.load(folder / "domain.json").encoding()
    engine = open_engine(folder / "data.parquet")
    engine.prepare(encoding)
    raw = pq.read_table(folder / "data.parquet").to_pydict()
    domain = encoding.domain
    queries = [MarginalQuery(domain, marginal) for marginal in itertools.islice(domain.marginals(3), 0, None, 17)]
    for query, answer in zip(queries, engine.count(queries), strict=True):
        counts = answer.opened()
        cells = np.ravel_multi_index([raw[name] for name in query.attributes], query.shape)
        expected = np.bincount(cells, minlength=query.cells)
        if isinstance(counts, SparseCounts):
            np.testing.assert_array_equal(counts.cells, np.flatnonzero(expected))
            counts, expected = counts.counts, expected[counts.cells]
        np.testing.assert_array_equal(counts, expected)
