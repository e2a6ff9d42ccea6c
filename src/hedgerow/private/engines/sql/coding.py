"""A table as codes, inside its database, with at most θ rows of every person.

**Coding.** SQL never re-implements a kind of column. The distinct values of a column (or of a group's columns) are
numbered in the database; the numbered values come here, where the schema's own encoder gives each its codes; the codes
go back as (number, code), and the table is joined with them. A row's codes follow from its own values alone, as they
must: texts are compared by their bytes, whatever collation they have.

**Bounding.** The rule of `hedgerow.private.bounding` in SQL: MD5 of KEY|PERSON|CODE,CODE,…|DUPLICATE, the θ smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.coded.domain import Attribute, IntArray
from hedgerow.errors import LimitError, TableError
from hedgerow.private.engines.sql.database import Database, md5
from hedgerow.schema import Encoding
from hedgerow.schema.encoding import PASSES, Block
from hedgerow.schema.rules.zeros import Mend

_SPACE = "20"
"""In hexadecimal. Taking it out leaves nothing of spaces alone, and something of anything else."""
UNKNOWN = -1
"""The code of a value that was not there when the distinct ones were read."""


def code_in_place(database: Database, encoding: Encoding, key: bytes, memory: int) -> Any:
    """The coded, bounded table, computed once: `c3` holds the codes of attribute number 3."""
    with database.snapshot():
        indices = {name: index for index, name in enumerate(encoding.columns)}
        values = keyed(database, encoding.columns, encoding.person)
        joined = values
        maps = []
        for block in encoding.blocks:
            columns = [indices[name] for name in block.columns]
            codes = _code_map(database, values, block, columns, encoding, memory)
            maps.append(codes)
            joined = joined.left_join(
                codes, [(name, _theirs(name)) for index in columns for name in (_value(index), _blank(index))]
            )
        owner = [] if encoding.person is None else ["person"]
        codes = {
            _code(index): joined[_code(index)].fill_null(UNKNOWN).cast(_narrow(attribute))
            for index, attribute in enumerate(encoding.domain)
        }
        coded = joined.select(*owner, **codes)
        for mend in encoding.mends * PASSES:
            before, moves = database.hold(coded), _moves(database, mend, encoding)
            maps += [before, moves]
            coded = _mended(before, moves, mend, encoding)
        if encoding.person is not None:
            secret = database.upload({"secret": pa.array([key.hex()])})
            maps.append(secret)
            coded = _bounded(coded, secret, list(codes), encoding.rows_per_person)
        held = database.hold(coded)
        for each in maps:
            database.drop(each)
    return held


def keyed(database: Database, columns: Sequence[str], person: str | None) -> Any:
    """Every column as what it is told apart by: a value that is never null, and whether there was none.

    Equality of such pairs is plain equality, which every database can join by hashing. Rows that name nobody are left
    out.
    """
    table = database.table if person is None else database.naming(person)
    keys: dict[str, Any] = {}
    for index, name in enumerate(columns):
        column = table[name]
        filled = column.fill_null(_placeholder(column.type()))
        keys[_value(index)] = database.exact(filled) if column.type().is_string() else filled
        keys[_blank(index)] = column.isnull()
    if person is None:
        return table.select(**keys)
    keys["person"] = _person(database, table[person], person)
    named = table.select(**keys)
    return named.filter(named.person.replace(_SPACE, "") != "")


def _placeholder(kind: Any) -> Any:
    if kind.is_string():
        return ""
    if kind.is_binary():
        return ibis.literal(b"")
    if kind.is_boolean():
        return False
    return ibis.literal("1970-01-01").cast(kind) if kind.is_temporal() else ibis.literal(0).cast(kind)


def _person(database: Database, column: Any, name: str) -> Any:
    """The bytes that spell a person, in hexadecimal; null or spaces alone for nobody."""
    if not (column.type().is_string() or column.type().is_binary()):
        raise TableError(
            "person-type",
            f'the column "{name}", which names a person, has the type "{column.type()}"; a database can only bound '
            "persons that are named by text, bytes, whole numbers or decimals. Hint: give a view in "
            "which the column is text, or raise --max-memory so that rows are bounded here.",
        )
    return database.hexadecimal(column)


def _code_map(
    database: Database, values: Any, block: Block, columns: Sequence[int], encoding: Encoding, memory: int
) -> Any:
    """A table of a block's distinct values and their codes, inside the database."""
    names = [name for index in columns for name in (_value(index), _blank(index))]
    numbered = distinct_values(database, values, columns)
    numbers: list[IntArray] = []
    coded: list[tuple[IntArray, ...]] = []
    attributes = [(_code(encoding.domain.index(attribute.name)), attribute) for attribute in block.attributes]
    for batch in database.fetch(numbered):
        memory -= batch.num_rows * 8 * (1 + len(attributes))
        if memory < 0:
            raise LimitError(
                "too-many-values",
                f"{' × '.join(block.columns)} has more distinct values than fit --max-memory. Hint: "
                "give a view in which it is rounded, or raise --max-memory.",
            )
        numbers.append(batch.column("number").to_numpy())
        coded.append(block.encode(original(batch, block.columns, columns)).codes)
    uploaded: dict[str, Any] = {"number": np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)}
    for each, (name, attribute) in enumerate(attributes):
        codes = np.concatenate([parts[each] for parts in coded]) if coded else np.empty(0)
        uploaded[name] = codes.astype(_narrow(attribute))
    codes_of = database.upload(uploaded)
    answer = numbered.inner_join(codes_of, "number").select(
        *(name for name, _ in attributes), **{_theirs(name): numbered[name] for name in names}
    )
    held = database.hold(answer)
    database.drop(numbered)
    database.drop(codes_of)
    return held


def distinct_values(database: Database, values: Any, columns: Sequence[int]) -> Any:
    """The distinct values of some columns, numbered."""
    names = [name for index in columns for name in (_value(index), _blank(index))]
    return database.hold(values.select(*names).distinct().mutate(number=ibis.row_number().cast("int64")))


def original(batch: pa.RecordBatch, names: Sequence[str], columns: Sequence[int]) -> pa.Table:
    """The values that a batch of keys stands for; texts are still bytes, which an encoder reads alike."""
    arrays = []
    for index in columns:
        values = batch.column(_value(index))
        arrays.append(pc.if_else(batch.column(_blank(index)), pa.scalar(None, values.type), values))
    return pa.table(arrays, names=list(names))


def _bounded(coded: Any, secret: Any, codes: Sequence[str], rows_per_person: int) -> Any:
    """The rows that stay."""
    alike = ibis.window(group_by=["person", *codes], order_by="person")
    numbered = coded.mutate(duplicate=ibis.row_number().over(alike)).cross_join(secret)
    row = ibis.literal(",").join([numbered[name].cast("string") for name in codes])
    text = ibis.literal("|").join([numbered.secret, numbered.person, row, numbered.duplicate.cast("string")])
    hashed = numbered.select("person", *codes, digest=md5(text))
    own = ibis.window(group_by="person", order_by="digest")
    placed = hashed.mutate(place=ibis.row_number().over(own))
    return placed.filter(placed.place < rows_per_person).select(*codes)


def _moves(database: Database, mend: Mend, encoding: Encoding) -> Any:
    """The combinations of codes that become others, and what they become."""
    cells = np.flatnonzero(mend.to != np.arange(len(mend.to)))
    before, after = np.unravel_index(cells, mend.shape), np.unravel_index(mend.to[cells], mend.shape)
    uploaded: dict[str, Any] = {}
    for name, old, new in zip(mend.marginal, before, after, strict=True):
        code, kind = _code(encoding.domain.index(name)), _narrow(encoding.domain[name])
        uploaded |= {f"old_{code}": old.astype(kind), f"new_{code}": new.astype(kind)}
    return database.upload(uploaded)


def _mended(coded: Any, moves: Any, mend: Mend, encoding: Encoding) -> Any:
    """The coded rows with what the rules do not allow recoded, as `Mend` does it."""
    codes = [_code(encoding.domain.index(name)) for name in mend.marginal]
    joined = coded.left_join(moves, [(code, f"old_{code}") for code in codes])
    changed = {code: ibis.coalesce(joined[f"new_{code}"], joined[code]) for code in codes}
    return joined.select(**{name: changed.get(name, joined[name]) for name in coded.columns})


def _narrow(attribute: Attribute) -> str:
    return "int16" if attribute.size < 1 << 15 else "int32"


def _code(index: int) -> str:
    return f"c{index}"


def _value(index: int) -> str:
    return f"v{index}"


def _blank(index: int) -> str:
    return f"n{index}"


def _theirs(name: str) -> str:
    return f"m_{name}"
