"""How many people hold each value of an open category, counted inside the database.

The distinct values of the column come here, where the schema reads each as text; who holds which value stays. The rule
is that of `hedgerow.private.bounding.Holders`: of a person with more than θ values those with the smallest hashes.
"""

from __future__ import annotations

from typing import Any

import ibis
import pyarrow as pa

from hedgerow.errors import LimitError
from hedgerow.private.engines.sql.coding import distinct_values, keyed, original
from hedgerow.private.engines.sql.database import Database, count, md5
from hedgerow.schema import Schema

_ENTRY = 200
"""About the bytes of one value while they are numbered."""


def people_in_place(database: Database, schema: Schema, column: str, key: bytes, memory: int) -> dict[str, int]:
    """Everyone counts for at most θ of the values that they hold, and once for each; rows of nobody do not."""
    with database.snapshot():
        rows = keyed(database, [column], schema.person)
        held = distinct_values(database, rows, [0])
        values: dict[str, int] = {}
        numbers, places = [], []
        for batch in database.fetch(held):
            read = schema.open_values(column, original(batch, [column], [0]).column(column)).to_pylist()
            for number, text in zip(batch.column("number").to_pylist(), read, strict=True):
                if text is not None:
                    numbers.append(number)
                    places.append(values.setdefault(text, len(values)))
            if len(values) * _ENTRY > memory:
                raise LimitError(
                    "too-many-values",
                    f"{column} has more distinct values than fit --max-memory. Hint: give a view in which it has "
                    "fewer, or raise --max-memory.",
                )
        numbered = database.upload({"number": pa.array(numbers, pa.int64()), "value": pa.array(places, pa.int64())})
        named = database.upload(
            {"place": pa.array(range(len(values)), pa.int64()), "text": pa.array([*values], pa.string())}
        )
        found = held.inner_join(numbered, "number").select("value", m_v0=held.v0, m_n0=held.n0)
        owner = [] if schema.person is None else ["person"]
        pairs = rows.inner_join(found, [("v0", "m_v0"), ("n0", "m_n0")]).select(*owner, "value")
        uploads = [numbered, named, held]
        if owner:
            secret = database.upload({"secret": pa.array([key.hex()])})
            uploads.append(secret)
            pairs = _bounded(pairs.distinct(), named, secret, schema.max_rows_per_person)
        counted = database.fetch_all(pairs.group_by("value").agg(people=count))
        for each in uploads:
            database.drop(each)
    texts = list(values)
    return {
        texts[place]: people
        for place, people in zip(*(counted[name].to_pylist() for name in ("value", "people")), strict=True)
    }


def _bounded(pairs: Any, named: Any, secret: Any, most: int) -> Any:
    """The values that a person counts for."""
    spelled = pairs.inner_join(named, [("value", "place")]).cross_join(secret)
    text = ibis.literal("|").join([spelled.secret, spelled.person, spelled.text])
    hashed = spelled.select("person", "value", digest=md5(text))
    place = ibis.row_number().over(ibis.window(group_by="person", order_by="digest"))
    placed = hashed.mutate(place=place)
    return placed.filter(placed.place < most).select("value")
