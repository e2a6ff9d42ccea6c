"""What a worker does with a partition: rows in, blocks of codes out; blocks in, counts out; counts in, sums out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hedgerow.coded.domain import Codes, Domain, IntArray
from hedgerow.coded.query import Query
from hedgerow.private.engines.arrow import refuse_nested
from hedgerow.private.engines.cluster.blocks import (
    FAULT,
    Batches,
    Blocks,
    Roll,
    Work,
    codes_of,
    guarded,
    layout,
    refuse_passed_on,
)
from hedgerow.private.engines.tally import CELLS_AT_ONCE, Answer, Tally, added, batched
from hedgerow.private.sources.source import BATCH_ROWS
from hedgerow.schema import Encoding

COUNTS = pa.schema(
    [
        pa.field("slot", pa.int64()),
        pa.field("query", pa.int64()),
        pa.field("cells", pa.binary()),
        pa.field("counts", pa.binary()),
        FAULT,
    ]
)
"""Counts of the cells that are named, or of every cell of a query and of those that were counted with it."""
ROLL = -1
"""The number of the query that calls the roll: its cells are partitions, its counts their digests."""


def coding(encoding: Encoding, kinds: pa.Schema) -> Work:
    """Blocks of a partition's rows, each of which is a person's only one."""

    def work(part: int, batches: Batches) -> Batches:
        blocks = Blocks(encoding.domain, part)
        for batch in gathered(batches, kinds):
            yield from blocks.add(encoding.encode(batch), batch.num_rows)
        yield from blocks.rest()

    return guarded(work, layout(encoding.domain))


def gathered(batches: Iterable[pa.RecordBatch], kinds: pa.Schema) -> Batches:
    """The same rows, as many at a time as are worth encoding, of the types that were declared to us."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from _one(held, kinds)
            held, rows = [], 0
    if rows:
        yield from _one(held, kinds)


def _one(held: list[pa.RecordBatch], kinds: pa.Schema) -> Batches:
    for batch in pa.Table.from_batches(held).cast(kinds).combine_chunks().to_batches():
        refuse_nested(batch)
        yield batch


def counting(domain: Domain, indices: Sequence[int], queries: Sequence[Query], dense: int) -> Work:
    """Counts of a partition's blocks; `domain` has the attributes whose numbers in the whole domain are `indices`."""

    def work(part: int, batches: Batches) -> Batches:
        tallies = [Tally(domain, batch, dense) for batch in batched(queries, dense, CELLS_AT_ONCE)]
        roll = Roll()
        for batch in batches:
            rows = roll.call(batch)
            columns = [codes_of(batch, index, a.dtype) for index, a in zip(indices, domain, strict=True)]
            joined: dict[bytes, Codes] = {}
            for tally in tallies:
                for join in tally.joins:
                    if join.digest not in joined:
                        joined[join.digest] = join.codes([columns[domain.index(name)] for name in join.members])
                tally.add([*columns, *(joined[join.digest] for join in tally.joins)], rows)
        if roll.digests:
            yield from _written(part, {**packed([tally.answers for tally in tallies]), ROLL: roll.arrays()})

    return guarded(work, COUNTS)


def packed(batches: Sequence[Sequence[Answer]]) -> dict[int, Answer]:
    """Answers of queries that come in batches, by their number; dense ones of a batch as one, under the first's."""
    numbers = itertools.count()
    found: dict[int, Answer] = {}
    for batch in batches:
        numbered = [(next(numbers), answer) for answer in batch]
        found |= {number: answer for number, answer in numbered if isinstance(answer, tuple)}
        dense = [(number, answer) for number, answer in numbered if not isinstance(answer, tuple)]
        if dense:
            found[dense[0][0]] = np.concatenate([answer for _, answer in dense])
    return found


def unpacked(found: Mapping[int, Answer], batches: Sequence[Sequence[Query]]) -> Iterator[Answer]:
    """The answer of every query."""
    numbers = itertools.count()
    for batch in batches:
        numbered = [(next(numbers), query) for query in batch]
        sparse = {number: found[number] for number, _ in numbered if isinstance(found.get(number), tuple)}
        dense = [(number, query.cells) for number, query in numbered if number not in sparse]
        ends = np.cumsum([cells for _, cells in dense])
        parts = dict(zip([n for n, _ in dense], np.split(found[dense[0][0]], ends[:-1]), strict=True)) if dense else {}
        yield from (sparse[number] if number in sparse else parts[number] for number, _ in numbered)


def adding() -> Work:
    """Sums of the counts of several partitions."""

    def work(part: int, batches: Batches) -> Batches:
        sums: dict[int, Answer] = {}
        for batch in batches:
            refuse_passed_on(batch)
            add(sums, batch)
        yield from _written(part, sums)

    return guarded(work, COUNTS)


def add(sums: dict[int, Answer], batch: pa.RecordBatch) -> None:
    """Add what a batch holds to the sums, by the numbers of their queries."""
    for row, query in enumerate(batch.column("query").to_pylist()):
        counts = _numbers(batch.column("counts")[row])
        cells = batch.column("cells")[row]
        answer: Answer = (_numbers(cells), counts) if cells.is_valid else counts
        sums[query] = added(sums[query], answer) if query in sums else answer


def _numbers(scalar: pa.Scalar) -> IntArray:
    return np.frombuffer(scalar.as_buffer(), dtype=np.int64).copy()


def _written(slot: int, answers: dict[int, Answer]) -> Batches:
    for query, answer in answers.items():
        cells, counts = answer if isinstance(answer, tuple) else (None, answer)
        row = [slot, query, None if cells is None else cells.tobytes(), counts.tobytes(), None]
        arrays = [pa.array([value], field.type) for value, field in zip(row, COUNTS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=COUNTS)
