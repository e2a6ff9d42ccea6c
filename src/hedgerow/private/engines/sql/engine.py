"""A table in a database: its rows come here and are counted here, or they stay and are counted there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hedgerow.coded.query import Query
from hedgerow.private.bounding import fresh_key
from hedgerow.private.engines.arrow import ArrowEngine
from hedgerow.private.engines.sql.coding import code_in_place
from hedgerow.private.engines.sql.counting import CountsInPlace
from hedgerow.private.engines.sql.database import Database, count
from hedgerow.private.engines.sql.holders import people_in_place
from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.schema import Encoding, Schema
from hedgerow.schema.probing import Probing

_LEAST_MEMORY = 1 << 26


class SqlEngine:
    """Counts a table of a database. Implements `hedgerow.private.engines.engine.Engine`.

    Rows that may leave the database come here batch by batch, into the same coded files that a Parquet file goes
    through: that is cheaper than counting there, and takes no more memory. With `stay` counts travel and rows do not.
    Both give the same counts. Of a database that cannot hand out rows in batches they come while their codes take less
    than a quarter of `memory`; which of the two it was then follows from the rows, so it is said to nobody.
    """

    def __init__(
        self, database: Database, *, bounding_key: bytes | None = None, memory: int = 4 << 30, stay: bool = False
    ):
        self._database = database
        self._key = fresh_key() if bounding_key is None else bounding_key
        self._memory = memory
        self._stay = stay
        self._here = ArrowEngine(database, bounding_key=self._key, memory=memory // 16)
        self._there: CountsInPlace | None = None

    @property
    def place(self) -> str | None:
        """Where rows are counted, in words; None where that follows from them."""
        if self._stay:
            return f"rows stay in {self._database.name} and are counted there, as --stay asks"
        if self._database.streams:
            return f"rows of {self._database.name} are read and counted here; --stay would leave them there"
        return None

    def header(self) -> tuple[str, ...]:
        return self._database.header()

    def prepare(self, encoding: Encoding) -> None:
        """Later rounds look at what is made here, so a table that changes meanwhile changes nothing."""
        self._there = None
        if self._comes_here(encoding):
            self._here.prepare(encoding)
            if not isinstance(encoding, Probing):  # after a look others come, which must see the same rows
                self._database.let_go()
        else:
            table = code_in_place(self._database, encoding, self._key, self._room)
            self._there = CountsInPlace(self._database, encoding.domain, table)

    @property
    def _room(self) -> int:
        """What distinct values may take while they are coded."""
        return max(self._memory // 4, _LEAST_MEMORY)

    def _comes_here(self, encoding: Encoding) -> bool:
        if self._stay or self._database.streams:
            return not self._stay
        rows = self._database.fetch_all(self._database.table.agg(rows=count))["rows"][0].as_py()
        return bool(rows * sum(attribute.dtype.itemsize for attribute in encoding.domain) < self._memory // 4)

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        """One pass over one column (and the person's), read here; or counted there, and its distinct values read."""
        if self._stay:
            return Exact(people_in_place(self._database, schema, column, self._key, self._room))
        return self._here.people_per_value(schema, column)

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        return self._here.count(queries) if self._there is None else self._there.count(queries)
