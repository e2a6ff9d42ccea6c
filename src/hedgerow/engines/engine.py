"""What a place where a table lives must be able to do. Private side: it sees rows and exact counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.query import Query
from hedgerow.schema import Encoding


class Engine(Protocol):
    """A private table that can be encoded once and then counted many times."""

    def header(self) -> tuple[str, ...]:
        """Column names, from the header or metadata alone; no row is read."""
        ...

    def prepare(self, encoding: Encoding) -> None:
        """Encode and bound contributions once; every later count sees the same rows."""
        ...

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order."""
        ...
