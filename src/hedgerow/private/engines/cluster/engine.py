"""A table of a cluster, counted by our kernels on its workers.

Only counts come here: every task counts its own blocks, sums of some tasks are made on the workers, and of few tasks
here. Where all coded rows are few, they come here instead, as codes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow import __version__
from hedgerow.coded.domain import Domain, IntArray
from hedgerow.coded.query import Query
from hedgerow.errors import HedgerowError, LimitError, TableError
from hedgerow.private.bounding import fresh_key
from hedgerow.private.engines.arrow import ArrowEngine, check_query, most_dense
from hedgerow.private.engines.cluster import persons
from hedgerow.private.engines.cluster.blocks import FAULT, HEAD, Roll, Work, codes_of, column, layout, refuse_faults
from hedgerow.private.engines.cluster.tasks import COUNTS, ROLL, add, adding, coding, counting, unpacked
from hedgerow.private.engines.sql.engine import SqlEngine
from hedgerow.private.engines.storage import StoredColumns
from hedgerow.private.engines.tally import CELLS_AT_ONCE, Answer, attributes_of, batched
from hedgerow.private.exact import Exact, ExactCounts, SparseCounts
from hedgerow.schema import Encoding, Schema

if TYPE_CHECKING:
    from hedgerow.private.engines.sql.spark import Spark

_TOGETHER = 16
"""So many tasks' counts are summed by one task, or here."""
_DENSE = 1 << 20
_FETCHED_AT_ONCE = 1 << 25
_LEAST_MEMORY = 1 << 26
_VALUE_BYTES = 256
"""What a value of an open category takes here, about."""


class ClusterEngine:
    """Counts a table on the workers of its cluster. Implements `hedgerow.private.engines.engine.Engine`.

    Where the workers lack this package, `SqlEngine` counts the table by SQL. With `stay` coded rows stay there, however
    few they are.
    """

    def __init__(
        self, database: Spark, *, bounding_key: bytes | None = None, memory: int = 4 << 30, stay: bool = False
    ):
        self._database = database
        self._key = fresh_key() if bounding_key is None else bounding_key
        self._memory = memory
        self._stay = stay
        self._by_sql = None
        if not database.has_kernels:
            self._by_sql = SqlEngine(database, bounding_key=self._key, memory=memory, stay=stay)
        self._counting: ArrowEngine | _CodedThere | None = None

    @property
    def place(self) -> str:
        """What codes and counts the rows; it follows from the cluster alone."""
        if self._by_sql is None:
            return f"workers of {self._database.name} have hedgerow {__version__}: it codes and counts the rows there"
        return (
            f"workers of {self._database.name} lack hedgerow {__version__}: the rows are counted by SQL, which takes "
            "many times the work"
        )

    def header(self) -> tuple[str, ...]:
        return self._database.header()

    def prepare(self, encoding: Encoding) -> None:
        """Every later count sees the rows that are coded here and now, or none: the roll tells."""
        if self._by_sql is not None:
            self._by_sql.prepare(encoding)
            return
        self._counting = None
        coded = _CodedThere(self._database, encoding.domain, self._blocks(encoding), self._memory)
        if coded.bytes < self._memory // 4 and not self._stay:
            self._counting = ArrowEngine.over(coded.fetched(self._memory // 16))
        else:
            self._counting = coded

    def _blocks(self, encoding: Encoding) -> Any:
        database, blocks = self._database, layout(encoding.domain)
        columns = list(encoding.columns)
        if encoding.person is None:
            rows, kinds = database.rows(columns)
            return database.mapped(rows, coding(encoding, kinds), blocks)
        rows, kinds = database.rows(list(dict.fromkeys([*columns, encoding.person])), encoding.person)
        spread = database.mapped(rows, persons.spreading(encoding, kinds, database.buckets), persons.SPREAD)
        return database.mapped(database.shuffled(spread, "bucket"), persons.bounding(encoding, self._key), blocks)

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        """A pass over one open column (and the person's): only values and how many hold them come here."""
        if self._by_sql is not None:
            return self._by_sql.people_per_value(schema, column)
        database, person = self._database, schema.person
        rows, kinds = database.rows(list(dict.fromkeys([column, *([person] if person else [])])), person)
        work: Work
        if person is None:
            work = persons.holding_alone(schema, column, kinds)
        else:
            spreading = persons.spreading_values(schema, column, kinds, database.buckets)
            rows = database.shuffled(database.mapped(rows, spreading, persons.SPREAD), "bucket")
            work = persons.holding(schema.max_rows_per_person, self._key)
        most = max(self._memory // 4, _LEAST_MEMORY) // _VALUE_BYTES
        found = database.summed(database.mapped(rows, work, persons.HELD), most + 1)
        refuse_faults(found[FAULT.name].to_pylist(), database.what)
        if len(found) > most:
            raise LimitError(
                "too-many-values",
                f"{column} has more distinct values than fit --max-memory. Hint: give a view in which it is rounded, "
                "or raise --max-memory.",
            )
        values = (value.decode() for value in found["value"].to_pylist())
        return Exact(dict(zip(values, found["people"].to_pylist(), strict=True)))

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        if self._by_sql is not None:
            return self._by_sql.count(queries)
        if self._counting is None:
            raise HedgerowError("not-prepared", "an engine must be prepared before it can count.")
        return self._counting.count(queries)


class _CodedThere:
    """A table's blocks on the workers: in memory, on their disks what does not fit. Spark makes lost ones anew."""

    def __init__(self, database: Spark, domain: Domain, blocks: Any, memory: int):
        self._database = database
        self._domain = domain
        self._row_bytes = sum(attribute.dtype.itemsize for attribute in domain)
        self._blocks = database.kept(blocks)
        weakref.finalize(self, _forget, database, self._blocks).atexit = False  # a session that ends forgets by itself
        found = database.collected(database.selected(self._blocks, [field.name for field in (*HEAD, FAULT)]))
        refuse_faults(found[FAULT.name].to_pylist(), database.what)
        roll = Roll()
        for batch in found.to_batches():
            roll.call(batch)
        self._roll = roll.arrays()
        self._tasks = max(roll.digests, default=-1) + 1
        order = np.argsort(found["place"].to_numpy())
        self._places, self._rows = (found[name].to_numpy()[order] for name in ("place", "rows"))
        self._dense = most_dense(int(self._rows.sum()))
        self._cells_at_once = max(1 << 18, memory // (64 * _TOGETHER))

    @property
    def bytes(self) -> int:
        """What all coded rows take."""
        return int(self._rows.sum()) * self._row_bytes

    def fetched(self, memory: int) -> StoredColumns:
        """All coded rows, here."""
        stored = StoredColumns(self._domain, memory)
        at_once = np.cumsum(self._rows) * self._row_bytes // _FETCHED_AT_ONCE
        roll = Roll()
        for number in np.unique(at_once):
            some = self._places[at_once == number].tolist()
            blocks = self._database.between(self._blocks, "place", some[0], some[-1])
            found = self._database.counted(blocks)
            refuse_faults(found[FAULT.name].to_pylist(), self._database.what)
            for batch in found.to_batches():
                rows = roll.call(batch)
                codes = {a.name: codes_of(batch, index, a.dtype) for index, a in enumerate(self._domain)}
                stored.append(codes, rows)
        self._refuse_others(roll.arrays())
        return stored

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order; as many share a scan as fit memory here."""
        for query in queries:
            check_query(query, self._domain)
        return self._answers(queries)

    def _answers(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        dense = min(self._dense, _DENSE)
        for batch in batched(queries, dense, self._cells_at_once):
            for query, answer in zip(batch, self._sums(batch, dense), strict=True):
                yield Exact(_answer(answer, query.cells, self._dense))

    def _sums(self, batch: Sequence[Query], dense: int) -> Sequence[Answer]:
        if not self._tasks:
            return [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))] * len(batch)
        touched = sorted({self._domain.index(name) for query in batch for name in attributes_of(query)}) or [0]
        domain = Domain(self._domain.attributes[index] for index in touched)
        wanted = [*(field.name for field in (*HEAD, FAULT)), *map(column, touched)]
        blocks = self._database.selected(self._blocks, wanted)
        counted = self._database.mapped(blocks, counting(domain, touched, batch, dense), COUNTS)
        tasks = self._tasks
        while tasks > _TOGETHER:
            tasks = -(-tasks // _TOGETHER)
            counted = self._database.mapped(self._database.shuffled(counted, "slot", tasks), adding(), COUNTS)
        sums: dict[int, Answer] = {}
        for found in self._database.counted(counted).to_batches():
            refuse_faults(found.column(FAULT.name).to_pylist(), self._database.what)
            add(sums, found)
        self._refuse_others(sums.pop(ROLL, None))
        return list(unpacked(sums, list(batched(batch, dense, CELLS_AT_ONCE))))

    def _refuse_others(self, called: Answer | None) -> None:
        """Whoever was called must be whoever was read."""
        if isinstance(called, tuple) and all(map(np.array_equal, called, self._roll)):
            return
        raise TableError(
            "table-changed",
            f"{self._database.what} was changed after it was read, and a worker that held rows was lost. "
            "Hint: run again, on a copy if it changes all the time.",
        )


def _forget(database: Spark, blocks: Any) -> None:
    with suppress(Exception):
        database.dropped(blocks)


def _answer(answer: Answer, cells: int, dense: int) -> ExactCounts:
    if isinstance(answer, tuple) and cells > dense:
        return SparseCounts(*answer)
    if not isinstance(answer, tuple):
        return answer
    counts: IntArray = np.zeros(cells, dtype=np.int64)
    counts[answer[0]] = answer[1]
    return counts
