"""A table in a database: counted there, or read once and counted here where its codes fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hedgerow.coded.query import Query
from hedgerow.private.bounding import fresh_key
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.engines.sql.coding import code_in_place
from hedgerow.private.engines.sql.counting import CountsInPlace
from hedgerow.private.engines.sql.database import Database, count
from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.schema import Encoding, Schema

_LEAST_MEMORY = 1 << 26


class SqlEngine:
    """Counts a table where it lives. Implements `hedgerow.private.engines.engine.Engine`.

    Where the coded rows take less than a quarter of `memory`, the rows are read once and counted in this process: many
    thousand counts over few rows are cheaper here. Otherwise counts travel and rows stay. Both give the same counts;
    which of the two it was is known on the private side alone.
    """

    def __init__(self, database: Database, *, bounding_key: bytes | None = None, memory: int = 4 << 30):
        self._database = database
        self._key = fresh_key() if bounding_key is None else bounding_key
        self._memory = memory
        self._here = ArrowEngine(database, bounding_key=self._key, memory=memory // 16)
        self._there: CountsInPlace | None = None

    def header(self) -> tuple[str, ...]:
        return self._database.header()

    def prepare(self, encoding: Encoding) -> None:
        """Later rounds look at what is made here, so a table that changes meanwhile changes nothing."""
        self._there = None
        rows = self._database.fetch_all(self._database.table.agg(rows=count))["rows"][0].as_py()
        row_bytes = sum(attribute.dtype.itemsize for attribute in encoding.domain)
        if rows * row_bytes < self._memory // 4:
            self._here.prepare(encoding)
        else:
            table = code_in_place(self._database, encoding, self._key, max(self._memory // 4, _LEAST_MEMORY))
            self._there = CountsInPlace(self._database, encoding.domain, table)

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        """One pass over one column (and the person's), read here: our own code tells texts apart."""
        return self._here.people_per_value(schema, column)

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        return self._here.count(queries) if self._there is None else self._there.count(queries)
