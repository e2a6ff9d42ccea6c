"""What a place where a table lives must be able to do. Private side: it sees rows and exact counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from hedgerow.coded.query import Query
from hedgerow.private.exact import Exact, ExactCounts
from hedgerow.schema import Encoding, Schema


@runtime_checkable
class Engine(Protocol):
    """A private table that can be encoded once and then counted many times.

    One that may let rows go to whoever evaluates has a `source` as well (`hedgerow.private.sources.source.Source`).
    """

    def header(self) -> tuple[str, ...]:
        """Column names, from the header or metadata alone; no row is read."""
        ...

    def prepare(self, encoding: Encoding) -> None:
        """Encode and bound contributions once; every later count sees the same rows."""
        ...

    def people_per_value(self, schema: Schema, column: str) -> Exact[Mapping[str, int]]:
        """How many people hold each value of an open category; a person counts for at most θ of their values."""
        ...

    def count(self, queries: Sequence[Query]) -> Iterator[Exact[ExactCounts]]:
        """One exact answer per query, in order."""
        ...
